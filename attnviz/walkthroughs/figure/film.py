"""A walkthrough as a film: a picture a step, large, with its formula, what it is made from and what it makes.

Above them stand all steps, those before and behind pale. Each picture stays as long as it takes to read it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import which
from subprocess import DEVNULL, PIPE, Popen
from tempfile import TemporaryFile
from typing import Unpack

import numpy as np
from jaxtyping import UInt8

from attnviz.errors import OutputError
from attnviz.render.figure.export import usual_settings
from attnviz.render.figure.page import Line, Page, height_of, page_of
from attnviz.render.fonts import Typefaces
from attnviz.render.palette import DEFAULT
from attnviz.walkthroughs.figure.card import FEWEST, Block, block_of, heading, write_heading
from attnviz.walkthroughs.figure.flow import Flow, draw_flow, flow_of
from attnviz.walkthroughs.figure.panel import bold
from attnviz.walkthroughs.figure.plan import Card, blocks, fresh
from attnviz.walkthroughs.figure.sheet import FEW_ROWS, Told, told
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.view import ViewOptions, followed

WIDE, HIGH, DPI = 12.0, 6.75, 100.0
"""The size of a picture in inches, which gets higher where there are many rows, and its points for an inch."""
LARGER, LARGEST, LEAST = 1.35, 1.7, 10.2
"""How much larger numbers, and the words of the step, are than on a sheet, and the smallest letters, in points."""
EDGE, APART = 0.3, 0.3
"""At the sides of a picture, and between its parts, in inches."""
MOST_ROWS, MOST_PARTS, MOST_COLUMNS = 24, 3, 5
"""Rows of one matrix, matrices of several heads, and columns of vectors: of more the first are shown."""
CRUMB, AROUND = 0.35, 1
"""The height of the line with the steps, in inches, and how many of those to come are named."""
PALE = "#8a8a8a"
"""Of the steps that are not shown."""
SECONDS, LAST = 2.0, 5.0
"""How long a step is shown, and the last step of a calculation."""
COLOURS = 64
"""Colours of a picture of a GIF."""
NEARLY_WHITE = 250
"""From here on a colour is the paper's, which the choice of colours mixes with the palest shades."""
A_SECOND = 2
"""Pictures in a second of an ``.mp4``."""

Pixels = UInt8[np.ndarray, "_ _ 3"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reel:
    """The steps of one calculation, measured in inches; those of one query share one picture, which grows."""

    it: Told  # what is told
    words: dict[int, list[Line]]  # those of each step, by its number
    bodies: dict[int, Flow | Block]  # what each step shows below them
    width: float
    height: float


def film(
    walks: Sequence[Walkthrough],
    path: Path,
    suffix: str,
    *,
    palette: str = DEFAULT,
    **options: Unpack[ViewOptions],
) -> Typefaces:
    """Write the steps of calculations one after another, in the way of `WRITERS`; the fonts that were used come back.

    Raises:
        OutputError: there is no ffmpeg for an ``.mp4``, or it fails.
    """
    if suffix == ".mp4":
        need_ffmpeg()
    with usual_settings():
        reels = [reel_of(walk, palette=palette, **options) for walk in walks]
        size = max(reel.width for reel in reels), max(reel.height for reel in reels)
        WRITERS[suffix]([[_pixels(draw_step(reel, card, size)) for card in reel.it.cards] for reel in reels], path)
    pens = [reel.it.style.pen for reel in reels]
    missing = {character for pen in pens for character in pen.typefaces.missing}
    return Typefaces(families=pens[0].typefaces.families, missing="".join(sorted(missing)))


def reel_of(walk: Walkthrough, *, palette: str = DEFAULT, **options: Unpack[ViewOptions]) -> Reel:
    """The steps of a calculation, measured; to be called in `usual_settings`."""
    it = told(walk, palette, LARGER, **options)
    it = replace(it, style=replace(it.style, most=MOST_COLUMNS))
    large, weights, new = replace(it.style, scale=LARGEST), followed(walk), fresh(it.cards)
    words = {card.number: heading(card, WIDE - 2 * EDGE, large) for card in it.cards}
    bodies: dict[int, Flow | Block] = {}
    for kind, made in blocks(it.cards):
        if kind == "rows" and weights is not None:
            bodies |= dict.fromkeys((card.number for card in made), _flow(it, made, weights.values[0]))
            continue
        for card in made:
            parts = (card.parts if kind == "attention" else new[card.number] or card.parts[-1:])[:MOST_PARTS]
            rows = MOST_ROWS if kind == "attention" else FEW_ROWS
            bodies[card.number] = block_of(card, parts, it.style, WIDE - 2 * EDGE, words=False, rows=rows)
    above = 2 * EDGE + CRUMB + max(map(height_of, words.values())) + APART
    wide = max(body.width for body in bodies.values())
    high = max(body.height if isinstance(body, Flow) else body.body for body in bodies.values())
    return Reel(it=it, words=words, bodies=bodies, width=max(WIDE, wide + 2 * EDGE), height=max(HIGH, above + high))


def _flow(it: Told, made: Sequence[Card], weights: np.ndarray) -> Flow:
    """The steps of one query, with as many columns as there is room for."""
    for most in range(it.style.most, FEWEST - 1, -1):
        flow = flow_of(made, replace(it.style, most=most), weights, lit=it.lit, words=False)
        if flow.width <= WIDE - 2 * EDGE:
            break
    return flow


def draw_step(reel: Reel, card: Card, size: tuple[float, float]) -> Page:
    """Draw one picture of a film of this size in inches; its figure is drawn on again for the next."""
    style, words = reel.it.style, reel.words[card.number]
    style.pen.figure.clear()
    width, height = (2 * round(length * DPI / 2) / DPI for length in size)  # films need even sizes
    page = page_of(style.pen, width, height)
    _write_crumbs(page, reel.it, card)
    top = EDGE + CRUMB
    write_heading(page, card, words, (EDGE, top), replace(style, scale=LARGEST))
    top += max(map(height_of, reel.words.values())) + APART
    body = reel.bodies[card.number]
    if isinstance(body, Flow):
        draw_flow(page, body, (EDGE, top), style, active=card)
    else:
        body.draw(page, (EDGE, top), 0.0, style, reel.it.rows)
    return page


def _write_crumbs(page: Page, it: Told, card: Card) -> None:
    """Which step of how many this is, and what the steps around it are, pale."""
    size, place, left = LEAST, it.cards.index(card), EDGE
    count = it.view.say("step", n=place + 1, total=len(it.cards))
    around = [one.title for one in it.cards[place + 1 : place + 1 + AROUND]]
    for index, text in enumerate([count, card.title, *around]):
        look = bold(text) if index < 2 else {"color": PALE}
        wide = 1.12 * it.style.pen.width(text, size)
        if left + wide < page.size[0] - EDGE:
            page.text(left, EDGE, text, size, va="center", **look)
        left += wide + APART


def _pixels(page: Page) -> Pixels:
    made = page.pen.figure
    made.set_dpi(DPI)
    made.canvas.draw()
    return np.asarray(made.canvas.buffer_rgba())[..., :3].copy()  # type: ignore[attr-defined]


def _write_gif(reels: Sequence[Sequence[Pixels]], path: Path) -> None:
    from PIL import Image

    images = []
    for reel in reels:
        # Pictures that share their colours need only what is new in each.
        colours = Image.fromarray(np.concatenate([picture[::3] for picture in reel]))
        colours = colours.quantize(COLOURS, Image.Quantize.FASTOCTREE)
        table = np.array(colours.getpalette(), dtype=np.uint8).reshape(-1, 3)
        table[(table >= NEARLY_WHITE).all(axis=1)] = 255
        colours.putpalette(table.tobytes())
        images += [Image.fromarray(picture).quantize(palette=colours, dither=Image.Dither.NONE) for picture in reel]
    durations = [round(1000 * seconds) for _, seconds in _timed(reels)]
    images[0].save(
        path, format="GIF", save_all=True, append_images=images[1:], duration=durations, loop=0, optimize=True
    )


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
