"""Positions as waves: the table that is added to the words' vectors, and what can be read from it.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5: https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

import math

import numpy as np

from attnviz.models.embedding import sinusoidal_positions
from attnviz.stories.common import prose
from attnviz.stories.record import Lines, Matrix, Series, Story, Table

D_MODEL = 512
"""The paper's width."""
N_POSITIONS = 64
"""How many positions the picture shows."""
SMALL = 4
"""A width at which every number can be followed by hand."""
STARTS = (0, 10, 30)
STEPS = (0, 1, 2, 5, 10, 20)


def tell() -> Story:
    """The demo: the numbers by the formula, the picture at the paper's size, and why distances can be read from it."""
    table = sinusoidal_positions(N_POSITIONS, D_MODEL).double().numpy()
    dots = table @ table.T
    length = float(np.sqrt(dots[0, 0]))
    off = max(abs(dots[start, start + step] - by_cosines(step)) for start in STARTS for step in STEPS)
    nearest, farthest = dots[0, 1] / dots[0, 0], dots[0, N_POSITIONS - 1] / dots[0, 0]
    return Story(
        name="positions",
        title="where a word stands, as waves added to its vector",
        parts=(
            prose("""Attention by itself sees a set of words, not a row of them: it compares vectors, and a vector does
            not say where its word stands. So a vector for the position is added to the vector of the word, once, before
            the first layer. The Transformer takes waves: PE(pos, 2i) = sin(pos / 10000^(2i/d)) and PE(pos, 2i+1) =
            cos(pos / 10000^(2i/d)). Each pair of numbers is the hand of a clock; the first clock is the fastest, and
            each next one is slower."""),
            _by_hand(),
            prose(f"""At d = {SMALL} there are {SMALL // 2} clocks. The first goes round once in
            {wavelength(0, SMALL):.2f} positions, the second in {wavelength(1, SMALL):,.0f}: the fast one tells
            neighbours apart, the slow one tells the beginning from the end. At the paper's d = {D_MODEL} there are
            {D_MODEL // 2}, from {wavelength(0, D_MODEL):.2f} to {wavelength(D_MODEL // 2 - 1, D_MODEL):,.0f} positions
            a round; they are the stripes of the picture, narrow at the left and wide at the right."""),
            prose("""How alike two positions are depends on their distance alone. One clock adds sin(a) sin(b) + cos(a)
            cos(b) to the dot product, which is cos(a - b): where the clocks stand is gone, and how far they have moved
            stays. So in this table each column has the same number in every row:"""),
            _dots(dots),
            prose(f"""Every position has the same length, sqrt(d/2) = {length:.0f}, so no place in the sentence is
            louder than another. The next position is still much like this one (cosine {nearest:.3f}), the one
            {N_POSITIONS - 1} further on less so ({farthest:.3f}). And PE(pos + k) is PE(pos) with every clock turned by
            k steps, which one matrix does for all pos: so a layer can learn to look 1 back or 3 on, wherever it
            stands."""),
        ),
        picture=_picture(table, dots / dots[0, 0]),
        receipt="computed by the formula of Vaswani et al. 2017, section 3.5; the dot products differ from sums of "
        f"cosines by {off:.1e} at most",
    )


def _picture(table: np.ndarray, cosines: np.ndarray) -> tuple[Matrix | Lines, ...]:
    return (
        _waves(table[:, 0::2], "sin: the numbers 2i of the vectors"),
        _waves(table[:, 1::2], "cos: the numbers 2i + 1"),
        Matrix("how alike two positions are (cosine)", cosines, row_title="position", column_title="position"),
        Lines(
            title="three rows of it: one shape, moved",
            x=tuple(map(float, range(N_POSITIONS))),
            x_title="position",
            series=tuple(Series(name=f"position {start}", values=tuple(cosines[start].tolist())) for start in STARTS),
            y_title="cosine",
            y_limits=(0.0, 1.0),
        ),
    )


def _waves(values: np.ndarray, what: str) -> Matrix:
    title = f"{what} (d = {D_MODEL})"
    return Matrix(title, values, row_title="position", column_title="i", limits=(-1.0, 1.0), diverging=True)


def wavelength(i: int, d_model: int) -> float:
    """After how many positions clock i has gone round once."""
    return float(math.tau * 10_000 ** (2 * i / d_model))


def by_cosines(step: int, d_model: int = D_MODEL) -> float:
    """The dot product of two positions so far apart, from the distance alone: the sum of cos(k / 10000^(2i/d))."""
    return sum(math.cos(step / 10_000 ** (2 * i / d_model)) for i in range(d_model // 2))


def _by_hand() -> Table:
    names = [
        f"{wave}(pos{'' if i == 0 else f' / {10_000 ** (2 * i / SMALL):.0f}'})"
        for i in range(SMALL // 2)
        for wave in ("sin", "cos")
    ]
    numbers: list[list[float]] = sinusoidal_positions(6, SMALL).tolist()
    return Table(
        title=f"the first positions by the formula, d = {SMALL}",
        columns=("pos", *names),
        rows=tuple((position, *row) for position, row in enumerate(numbers)),
        digits=4,
    )


def _dots(dots: np.ndarray) -> Table:
    rows = {f"pos = {start}": [float(dots[start, start + step]) for step in STEPS] for start in STARTS}
    rows["sum of cosines"] = [by_cosines(step) for step in STEPS]
    return Table(
        title=f"PE(pos) . PE(pos + k), d = {D_MODEL}",
        columns=("", *(f"k = {step}" for step in STEPS)),
        rows=tuple((name, *row) for name, row in rows.items()),
    )
