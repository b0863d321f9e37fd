"""A walkthrough as a film: the steps one after another, each picture the sheet as far as that step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import UInt8

from attnviz.errors import OutputError
from attnviz.views.figure import usual_settings
from attnviz.views.palette import DEFAULT
from attnviz.views.walk_figure import figure
from attnviz.views.walk_words import NO_BLANKS, Blanks, chosen
from attnviz.walk import Walkthrough

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".gif", ".mp4")
PIXELS = 1600
"""The widest and highest that a picture of a film may get."""
DPI = 110.0
SECONDS, LAST = 2.0, 5.0
"""How long a step is shown, and the last step of a calculation."""

Picture = UInt8[np.ndarray, "_ _ 3"]


def film(
    walks: Sequence[Walkthrough],
    path: Path,
    suffix: str,
    *,
    palette: str = DEFAULT,
    language: str = "en",
    precision: int = 3,
    steps: Sequence[str] | None = None,
    blanks: Blanks = NO_BLANKS,
) -> None:
    """Write the steps of calculations one after another.

    Args:
        walks: the calculations, such as one for each decoding step.
        path: the file.
        suffix: one of `SUFFIXES`; ``.mp4`` needs the program ffmpeg.
        palette: one of `attnviz.views.palette.PALETTES`.
        language: one of `attnviz.text.steps.LANGUAGES`.
        precision: digits after the point of each number.
        steps: the names of the steps to show; None shows all.
        blanks: cells that a learner fills in: grid, row, column.

    Raises:
        OutputError: there is no ffmpeg for an ``.mp4``.
        SelectionError: a step, language or palette that is not there.
    """
    if suffix == ".mp4":
        _need_ffmpeg()
    pictures: list[tuple[Picture, float]] = []
    for walk in walks:
        numbers = [number for number, _ in chosen(walk, steps)]
        for number in numbers:
            made = figure(
                walk,
                palette=palette,
                language=language,
                precision=precision,
                steps=steps,
                blanks=blanks,
                until=number,
            )
            pictures.append((_picture(made), LAST if number == numbers[-1] else SECONDS))
    height = max(picture.shape[0] for picture, _ in pictures)
    width = max(picture.shape[1] for picture, _ in pictures)
    framed = [(_framed(picture, height, width), seconds) for picture, seconds in pictures]
    if suffix == ".mp4":
        _write_mp4(framed, path)
    else:
        _write_gif(framed, path)


def _picture(made: Figure) -> Picture:
    """The pixels of a figure."""
    from PIL import Image

    buffer = BytesIO()
    with usual_settings():
        made.savefig(buffer, format="png", dpi=min(DPI, PIXELS / max(made.get_size_inches())))
    return np.asarray(Image.open(buffer).convert("RGB"))


def _framed(picture: Picture, height: int, width: int) -> Picture:
    """A picture on white, as large as all others; of even size, which films need."""
    framed = np.full((height + height % 2, width + width % 2, 3), 255, dtype=np.uint8)
    framed[: picture.shape[0], : picture.shape[1]] = picture
    return framed


def _write_gif(pictures: Sequence[tuple[Picture, float]], path: Path) -> None:
    from PIL import Image

    first, *rest = (Image.fromarray(picture).quantize(dither=Image.Dither.NONE) for picture, _ in pictures)
    durations = [round(1000 * seconds) for _, seconds in pictures]
    first.save(path, format="GIF", save_all=True, append_images=rest, duration=durations, loop=0)


def _need_ffmpeg() -> None:
    from matplotlib.animation import FFMpegWriter

    if not FFMpegWriter.isAvailable():
        raise OutputError("an .mp4 needs the program ffmpeg, which is not installed: install it, or write a .gif")


def _write_mp4(pictures: Sequence[tuple[Picture, float]], path: Path) -> None:
    from matplotlib.animation import FFMpegWriter
    from matplotlib.figure import Figure

    height, width, _ = pictures[0][0].shape
    sheet = Figure(figsize=(width / 100, height / 100), dpi=100)
    writer = FFMpegWriter(fps=2, extra_args=["-pix_fmt", "yuv420p"])
    with writer.saving(sheet, str(path), dpi=100):
        for picture in _repeated(pictures):
            sheet.clear()
            sheet.figimage(picture)
            writer.grab_frame()


def _repeated(pictures: Sequence[tuple[Picture, float]]) -> Iterator[Picture]:
    """Each picture as often as it is shown, at two a second."""
    for picture, seconds in pictures:
        for _ in range(round(2 * seconds)):
            yield picture
