"""Films: pictures one after another, as GIF or as mp4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile

import numpy as np
from jaxtyping import UInt8

from attnviz.errors import OutputError
from attnviz.render.figure.page import Page

DPI = 100.0  # points of a picture for an inch
COLOURS = 64  # colours of a picture of a GIF
NEARLY_WHITE = 250  # from here on a colour is the paper's, which the choice of colours mixes with the palest shades
A_SECOND = 2  # pictures in a second of an ``.mp4``

Pixels = UInt8[np.ndarray, "_ _ 3"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reel:
    """Pictures that share their colours, each shown for some seconds; the last may stay longer."""

    pictures: Sequence[Pixels]
    seconds: float
    last: float


def even(inches: float) -> float:
    """A length that has an even number of points, as films need it."""
    return 2 * round(inches * DPI / 2) / DPI


def write_film(reels: Sequence[Reel], path: Path) -> None:
    """Write reels one after another, as ``.gif``, or as ``.mp4``: an `OutputError` where ffmpeg fails."""
    {".gif": _write_gif, ".mp4": _write_mp4}[path.suffix.lower()](reels, path)


def pixels_of(page: Page) -> Pixels:
    """A page as a picture of a film."""
    figure = page.pen.figure
    figure.set_dpi(DPI)
    figure.canvas.draw()
    return np.asarray(figure.canvas.buffer_rgba())[..., :3].copy()  # type: ignore[attr-defined]


def _write_gif(reels: Sequence[Reel], path: Path) -> None:
    from PIL import Image

    images = []
    for reel in reels:
        # Pictures that share their colours need only what is new in each.
        colours = Image.fromarray(np.concatenate([picture[::3] for picture in reel.pictures]))
        colours = colours.quantize(COLOURS, Image.Quantize.FASTOCTREE)
        table = np.array(colours.getpalette(), dtype=np.uint8).reshape(-1, 3)
        table[(table >= NEARLY_WHITE).all(axis=1)] = 255
        colours.putpalette(table.tobytes())
        images += [
            Image.fromarray(one).quantize(palette=colours, dither=Image.Dither.NONE)
            for one in reel.pictures
        ]
    first, *others = images
    durations = [round(1000 * seconds) for _, seconds in _timed(reels)]
    first.save(
        path,
        format="GIF",
        save_all=True,
        append_images=others,
        duration=durations,
        loop=0,
        optimize=True,
    )


def expect_writer(suffix: str) -> str:
    """The program that such a film needs, asked for before anything is drawn; an `OutputError` where it is missing."""
    path = which("ffmpeg") if suffix == ".mp4" else ""
    if path is None:
        raise OutputError(
            "an .mp4 needs the program ffmpeg, which is not installed: install it, or write a .gif"
        )
    return path


def _write_mp4(reels: Sequence[Reel], path: Path) -> None:
    height, width, _ = reels[0].pictures[0].shape
    source = [
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-s",
        f"{width}x{height}",
        "-r",
        str(A_SECOND),
        "-i",
        "-",
    ]
    # Players know no other colours than these, and browsers begin to show what has its index in front.
    target = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart", f"file:{path}"]
    command = [expect_writer(".mp4"), "-y", "-loglevel", "error", *source, *target]
    with TemporaryFile() as messages:
        try:
            with Popen(command, stdin=PIPE, stdout=DEVNULL, stderr=messages) as ffmpeg:
                assert ffmpeg.stdin is not None
                with suppress(BrokenPipeError):  # it ended early, and says why
                    for picture, seconds in _timed(reels):
                        for _ in range(round(A_SECOND * seconds)):
                            ffmpeg.stdin.write(picture.data)
                    ffmpeg.stdin.close()
        except OSError as error:
            raise OutputError(
                f"ffmpeg cannot be run here ({error.strerror}): write a .gif"
            ) from None
        if ffmpeg.returncode:
            messages.seek(0)
            reasons = messages.read().decode(errors="replace").split("\n")
            reason = next(
                (line.strip() for line in reversed(reasons) if line.strip()), "it does not say why"
            )
            raise OutputError(f"ffmpeg cannot write an .mp4 here ({reason}): write a .gif")


def _timed(reels: Sequence[Reel]) -> Iterator[tuple[Pixels, float]]:
    for reel in reels:
        for number, picture in enumerate(reel.pictures, start=1):
            yield picture, reel.last if number == len(reel.pictures) else reel.seconds
