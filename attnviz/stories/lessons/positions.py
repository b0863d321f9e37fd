"""Positions as waves: the table that is added to the words' vectors, and what can be read from it.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5: https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

import math

from attnviz.models.embedding import sinusoidal_positions
from attnviz.stories import common
from attnviz.stories.common import signed, story
from attnviz.stories.record import Lines, Matrix, Panel, Series, Story, Table
from attnviz.text.messages import _

D_MODEL = 512  # the paper's width
N_POSITIONS = 64  # how many positions the picture shows
SMALL = 4  # a width at which every number can be followed by hand
STARTS = (0, 10, 30)
STEPS = (0, 1, 2, 5, 10, 20)
TITLE = _(
    "positions as waves: cosine {nearest:.3f} between neighbours, {farthest:.3f} at a distance of "
    "{far}"
)
WHY = _(
    "Attention by itself sees a set of words, not a row of them: it compares vectors, and a "
    "vector does not say where its word stands. So a vector for the position is added to the "
    "vector of the word, once, before the first layer. The Transformer takes waves: PE(pos, 2i) = "
    "sin(pos / 10000^(2i/d)) and PE(pos, 2i+1) = cos(pos / 10000^(2i/d)). Each pair of numbers is "
    "the hand of a clock; the first clock is the fastest, and each next one is slower."
)
DISTANCE = _(
    "How alike two positions are depends on their distance alone. One clock adds sin(a) sin(b) + "
    "cos(a) cos(b) to the dot product, which is cos(a - b): where the clocks stand is gone, and "
    "how far they have moved stays. So in this table each column has the same number in every "
    "row:"
)
LENGTH = _(
    "Every position has the same length, sqrt(d/2) = {length:.0f}, so no place in the sentence is "
    "louder than another. The next position is still much like this one (cosine {nearest:.3f}), "
    "the one {far} further on less so ({farthest:.3f}). And PE(pos + k) is PE(pos) with every "
    "clock turned by k steps, which one matrix does for all pos: so a layer can learn to look 1 "
    "back or 3 on, wherever it stands."
)
RECEIPT = _(
    "computed by the formula of Vaswani et al. 2017, section 3.5; the dot products differ from "
    "sums of cosines by {off:.1e} at most"
)
CLOCKS = _(
    "At d = {small} there are {n_small} clocks. The first goes round once in {fast:.2f} "
    "positions, the second in {slow:,.0f}: the fast one tells neighbours apart, the slow one "
    "tells the beginning from the end. At the paper's d = {d_model} there are {n_clocks}, from "
    "{first:.2f} to {last:,.0f} positions a round; they are the stripes of the picture, narrow at "
    "the left and wide at the right."
)


def wavelength(i: int, d_model: int) -> float:
    """After how many positions the sine and the cosine of pair i repeat."""
    return float(math.tau * 10_000 ** (2 * i / d_model))


def by_cosines(step: int) -> float:
    """The dot product of two positions so far apart, from the distance alone: the sum of cos(k / 10000^(2i/d))."""
    return sum(math.cos(step / 10_000 ** (2 * i / D_MODEL)) for i in range(D_MODEL // 2))


def tell() -> Story:
    """The demo: the numbers by the formula, the picture at the paper's size, and why distances can be read from it."""
    table = sinusoidal_positions(N_POSITIONS, D_MODEL).double().numpy()
    dots, far, n_clocks = table @ table.T, N_POSITIONS - 1, D_MODEL // 2
    cosines = dots / dots[0, 0]
    length = float(dots[0, 0] ** 0.5)
    off = max(
        abs(dots[start, start + step] - by_cosines(step)) for start in STARTS for step in STEPS
    )
    n_small = SMALL // 2
    fast = wavelength(0, SMALL)
    slow = wavelength(1, SMALL)
    first = wavelength(0, D_MODEL)
    last = wavelength(n_clocks - 1, D_MODEL)
    slower = [f" / {10_000 ** (2 * i / SMALL):.0f}" if i else "" for i in range(SMALL // 2)]
    columns = "pos", *(f"{wave}(pos{by})" for by in slower for wave in ("sin", "cos"))
    rows = ((place, *row) for place, row in enumerate(sinusoidal_positions(6, SMALL).tolist()))
    by_hand = common.table(
        _("the first positions by the formula, d = {small}").format(small=SMALL),
        columns,
        rows,
        digits=4,
    )
    products = {
        f"pos = {start}": [float(dots[start, start + step]) for step in STEPS] for start in STARTS
    }
    products[_("sum of cosines")] = [by_cosines(step) for step in STEPS]
    columns = "", *(f"k = {step}" for step in STEPS)
    title = f"PE(pos) . PE(pos + k), d = {D_MODEL}"
    by_distance = Table(title, columns, tuple((name, *row) for name, row in products.items()))
    position = _("position")
    three = Series.each(
        {_("position {start}").format(start=start): cosines[start] for start in STARTS}
    )
    picture: list[Panel] = [
        *(
            signed(title, table[:, number::2], (position, "i"), 1.0)
            for number, title in enumerate(
                (
                    _("sin: the numbers 2i of the vectors (d = {d_model})").format(d_model=D_MODEL),
                    _("cos: the numbers 2i + 1 (d = {d_model})").format(d_model=D_MODEL),
                )
            )
        ),
        Matrix(
            _("how alike two positions are (cosine)"),
            cosines,
            row_title=position,
            column_title=position,
        ),
        Lines(
            _("three rows of it: one shape, moved"),
            tuple(map(float, range(N_POSITIONS))),
            position,
            three,
            _("cosine"),
            (0.0, 1.0),
        ),
    ]
    return story(
        title=TITLE.format(nearest=cosines[0, 1], farthest=cosines[0, far], far=far),
        receipt=RECEIPT.format(off=off),
        parts=(
            WHY,
            by_hand,
            CLOCKS.format(
                small=SMALL,
                n_small=n_small,
                fast=fast,
                slow=slow,
                d_model=D_MODEL,
                n_clocks=n_clocks,
                first=first,
                last=last,
            ),
            DISTANCE,
            by_distance,
            LENGTH.format(length=length, nearest=cosines[0, 1], far=far, farthest=cosines[0, far]),
        ),
        picture=picture,
    )
