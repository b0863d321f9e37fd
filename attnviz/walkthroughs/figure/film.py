"""A walkthrough as a film: a picture a step, large, below the names of the steps around it; it stays to be read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np

from attnviz.render.figure.export import usual_settings
from attnviz.render.figure.film import Reel, even, expect_writer, pixels_of, write_film
from attnviz.render.figure.page import Page, page_of
from attnviz.render.palette import DEFAULT
from attnviz.walkthroughs.figure.card import FEWEST, Strip, Words, block_of, bold, words_of
from attnviz.walkthroughs.figure.flow import Flow, flow_of
from attnviz.walkthroughs.figure.sheet import FEW_ROWS, SheetText, blocks, fresh, prepare_sheet
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.view import StepView, ViewOptions, query_weights

WIDE, HIGH = (
    12.0,
    6.75,
)  # the size of a picture in inches, which gets higher where there are many rows
LARGER, LARGEST, LEAST = (
    1.35,
    1.7,
    10.2,
)  # numbers, and words, beside those on a sheet; the least letters in points
EDGE, APART = 0.3, 0.3  # at the sides of a picture, and between its parts, in inches
MOST_ROWS, MOST_PARTS, MOST_COLUMNS = (
    24,
    3,
    5,
)  # rows of a matrix, matrices of heads, columns of vectors: the first
CRUMB, AROUND = (
    0.35,
    1,
)  # the height of the line with the steps, in inches, and how many of those to come are named
PALE = "#8a8a8a"  # of the steps that are not shown
SECONDS, LAST = 2.0, 5.0  # how long a step is shown, and the last step of a calculation


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenes:
    """The steps of one calculation, measured in inches; those of one query share one picture, which grows."""

    it: SheetText  # what is told
    words: dict[int, Words]  # those of each step, by its number
    bodies: dict[int, Flow | Strip]  # what each step shows below them
    width: float
    height: float


def film(
    shown: Walkthrough | Sequence[Walkthrough],
    *,
    cmap: str = DEFAULT,
    **options: Unpack[ViewOptions],
) -> Callable[[Path], str]:
    """What fills a file with all steps of calculations, one after another, and returns the characters no font has.

    Raises OutputError, when it is filled: ffmpeg is not there, or fails.
    """
    walks = [shown] if isinstance(shown, Walkthrough) else shown

    def fill(path: Path) -> str:
        expect_writer(path.suffix.lower())
        with usual_settings():
            reels = [reel_of(walk, cmap=cmap, **options) for walk in walks]
            size = max(reel.width for reel in reels), max(reel.height for reel in reels)
            pictures = [
                [pixels_of(draw_step(reel, card, size)) for card in reel.it.cards] for reel in reels
            ]
            write_film([Reel(pictures=each, seconds=SECONDS, last=LAST) for each in pictures], path)
        return "".join(
            sorted(
                {character for reel in reels for character in reel.it.style.pen.typefaces.missing}
            )
        )

    return fill


def reel_of(walk: Walkthrough, *, cmap: str = DEFAULT, **options: Unpack[ViewOptions]) -> Scenes:
    """The steps of a calculation, measured; to be called in `usual_settings`."""
    it = prepare_sheet(walk, cmap, LARGER, **options)
    it = replace(it, style=replace(it.style, most=MOST_COLUMNS))
    large, weights, new = replace(it.style, scale=LARGEST), query_weights(walk), fresh(it.cards)
    words = {card.number: words_of(card, WIDE - 2 * EDGE, large) for card in it.cards}
    bodies: dict[int, Flow | Strip] = {}
    for kind, made in blocks(it.cards):
        if kind == "rows" and weights is not None:
            bodies |= dict.fromkeys(
                (card.number for card in made), _flow(it, made, weights.values[0])
            )
            continue
        for card in made:
            parts = (card.parts if kind == "attention" else new[card.number] or card.parts[-1:])[
                :MOST_PARTS
            ]
            rows = MOST_ROWS if kind == "attention" else FEW_ROWS
            block = block_of(card, parts, it.style, WIDE - 2 * EDGE, words=False, rows=rows)
            bodies[card.number] = Strip([[block]], it.rows)
    above = 2 * EDGE + CRUMB + max(one.height for one in words.values()) + APART
    wide = max(body.width for body in bodies.values())
    high = max(body.height for body in bodies.values())
    return Scenes(
        it=it,
        words=words,
        bodies=bodies,
        width=max(WIDE, wide + 2 * EDGE),
        height=max(HIGH, above + high),
    )


def _flow(it: SheetText, made: Sequence[StepView], weights: np.ndarray) -> Flow:
    for most in range(it.style.most, FEWEST - 1, -1):
        flow = flow_of(made, replace(it.style, most=most), weights, lit=it.lit, words=False)
        if flow.width <= WIDE - 2 * EDGE:
            break
    return flow


def draw_step(reel: Scenes, card: StepView, size: tuple[float, float]) -> Page:
    """Draw one picture of a film of this size in inches; its figure is drawn on again for the next."""
    pen = reel.it.style.pen
    pen.figure.clear()
    page = page_of(pen, *map(even, size))
    _write_crumbs(page, reel.it, card)
    top = EDGE + CRUMB
    reel.words[card.number].write(page, (EDGE, top))
    top += max(one.height for one in reel.words.values()) + APART
    body = reel.bodies[card.number]
    if isinstance(body, Flow):
        body.draw(page, (EDGE, top), card)
    else:
        body.draw(page, (EDGE, top))
    return page


def _write_crumbs(page: Page, it: SheetText, card: StepView) -> None:
    """Which step of how many this is, and what the steps around it are, pale."""
    size, following, left = LEAST, it.cards.index(card) + 1, EDGE
    count = it.view.say("step", n=card.numbers, total=len(it.view.walk.steps))
    around = [one.title for one in it.cards[following : following + AROUND]]
    for index, text in enumerate([count, card.title, *around]):
        look = bold(text) if index < 2 else {"color": PALE}
        wide = 1.12 * it.style.pen.width(text, size)
        if left + wide < page.size[0] - EDGE:
            page.text(left, EDGE, text, size, va="center", **look)
        left += wide + APART
