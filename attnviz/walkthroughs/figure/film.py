"""A walkthrough as a film: the steps one after another, each picture the sheet as far as that step.

Only what is new is drawn, each picture stays as long as its step needs, and a GIF has one choice of colours. Writers of
Matplotlib's draw all again for each of many equal pictures, and choose colours for each: measured on 12 steps, 5 to 6
times as slow, and GIFs 5 times as large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shutil import which
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Unpack

import numpy as np
from jaxtyping import UInt8

from attnviz.errors import OutputError
from attnviz.render.figure.export import usual_settings
from attnviz.render.figure.pen import Pen
from attnviz.render.fonts import Typefaces
from attnviz.render.palette import DEFAULT
from attnviz.walkthroughs.figure.sheet import stages
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.selection import ViewOptions

if TYPE_CHECKING:
    from matplotlib.artist import Artist

PIXELS = 1600
"""The widest and highest that a picture of a film may get."""
DPI = 110.0
SECONDS, LAST = 2.0, 5.0
"""How long a step is shown, and the last step of a calculation."""
NEARLY_WHITE = 250
"""From here on a colour is the paper's, which the choice of 256 colours mixes with the palest shades."""
A_SECOND = 2
"""Pictures in a second of an ``.mp4``."""

Pixels = UInt8[np.ndarray, "_ _ 3"]


def film(
    walks: Sequence[Walkthrough],
    path: Path,
    suffix: str,
    *,
    palette: str = DEFAULT,
    **options: Unpack[ViewOptions],
) -> Typefaces:
    """Write the steps of calculations one after another.

    Args:
        walks: the calculations, such as one for each decoding step.
        path: the file.
        suffix: one of `WRITERS`; ``.mp4`` needs the program ffmpeg.
        palette: one of `attnviz.render.names.PALETTES`.
        options: as in `attnviz.walkthroughs.selection.ViewOptions`.

    Returns:
        The fonts used, with the characters that none has.

    Raises:
        OutputError: there is no ffmpeg for an ``.mp4``, or it fails.
        SelectionError: a step, language or palette that is not there.
    """
    if suffix == ".mp4":
        need_ffmpeg()
    reels, pens = [], []
    for walk in walks:
        drawn = list(_pictures(stages(walk, palette=palette, **options)))
        reels.append([pixels for pixels, _ in drawn])
        pens.append(drawn[0][1])
    height = max(picture.shape[0] for reel in reels for picture in reel)
    width = max(picture.shape[1] for reel in reels for picture in reel)
    framed = [[_framed(picture, height, width) for picture in reel] for reel in reels]
    WRITERS[suffix](framed, path)
    missing = {character for pen in pens for character in pen.typefaces.missing}
    return Typefaces(families=pens[0].typefaces.families, missing="".join(sorted(missing)))


def _pictures(grown: Iterable[tuple[Pen, tuple[float, float]]]) -> Iterator[tuple[Pixels, Pen]]:
    """The pixels of a figure on which there is more each time: only what is new is drawn."""
    from matplotlib.artist import Artist

    drawn: set[Artist] = set()
    for pen, (begin, end) in grown:
        made = pen.figure
        canvas, ax = made.canvas, made.axes[0]
        with usual_settings():
            if not drawn:
                made.set_dpi(min(DPI, PIXELS / max(made.get_size_inches())))
                canvas.draw()
            pixels = np.asarray(canvas.buffer_rgba())  # type: ignore[attr-defined]
            if drawn:
                pixels[round(begin * made.dpi) : round(end * made.dpi)] = 255  # the words of the step before
                for artist in sorted(set(ax.get_children()) - drawn, key=Artist.get_zorder):
                    ax.draw_artist(artist)
        drawn |= set(ax.get_children())
        yield pixels[..., :3].copy(), pen


def _framed(picture: Pixels, height: int, width: int) -> Pixels:
    """A picture on white, as large as all others; of even size, which films need."""
    framed = np.full((height + height % 2, width + width % 2, 3), 255, dtype=np.uint8)
    framed[: picture.shape[0], : picture.shape[1]] = picture
    return framed


def _write_gif(reels: Sequence[Sequence[Pixels]], path: Path) -> None:
    from PIL import Image

    images = []
    for reel in reels:
        # The last picture has all that is on those before it, so that its colours are enough for them.
        colours = Image.fromarray(reel[-1]).quantize(dither=Image.Dither.NONE)
        table = np.array(colours.getpalette(), dtype=np.uint8).reshape(-1, 3)
        table[(table >= NEARLY_WHITE).all(axis=1)] = 255
        colours.putpalette(table.tobytes())
        images += [Image.fromarray(picture).quantize(palette=colours, dither=Image.Dither.NONE) for picture in reel]
    durations = [round(1000 * seconds) for _, seconds in _timed(reels)]
    images[0].save(path, format="GIF", save_all=True, append_images=images[1:], duration=durations, loop=0)


def need_ffmpeg() -> str:
    """The path of ffmpeg.

    Raises:
        OutputError: it is not installed.
    """
    path = which("ffmpeg")
    if path is None:
        raise OutputError("an .mp4 needs the program ffmpeg, which is not installed: install it, or write a .gif")
    return path


def _write_mp4(reels: Sequence[Sequence[Pixels]], path: Path) -> None:
    height, width, _ = reels[0][0].shape
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(A_SECOND), "-i", "-"]
    # Players know no other colours than these, and browsers begin to show what has its index in front.
    made = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart", f"file:{path}"]
    command = [need_ffmpeg(), "-y", "-loglevel", "error", *given, *made]
    with TemporaryFile() as messages:
        try:
            with Popen(command, stdin=PIPE, stdout=DEVNULL, stderr=messages) as ffmpeg:  # noqa: S603 - no shell; ours
                assert ffmpeg.stdin is not None  # noqa: S101 - for the types: it is a pipe
                with suppress(BrokenPipeError):  # it ended early, and says why
                    for picture, seconds in _timed(reels):
                        for _ in range(round(A_SECOND * seconds)):
                            ffmpeg.stdin.write(picture.data)
                    ffmpeg.stdin.close()
        except OSError as error:
            raise OutputError(f"ffmpeg cannot be run here ({error.strerror}): write a .gif") from None
        if ffmpeg.returncode:
            messages.seek(0)
            reasons = messages.read().decode(errors="replace").split("\n")
            reason = next((line.strip() for line in reversed(reasons) if line.strip()), "it does not say why")
            raise OutputError(f"ffmpeg cannot write an .mp4 here ({reason}): write a .gif")


def _timed(reels: Sequence[Sequence[Pixels]]) -> Iterator[tuple[Pixels, float]]:
    """Each picture, and how long it is shown in seconds."""
    for reel in reels:
        for number, picture in enumerate(reel, start=1):
            yield picture, LAST if number == len(reel) else SECONDS


WRITERS = {".gif": _write_gif, ".mp4": _write_mp4}
"""How a film is written, by the ending of its file."""
