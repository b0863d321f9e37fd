"""Sinusoidal positions: the table that is added to the word vectors, and its properties.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5: https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from attnviz.models.embedding import sinusoidal_positions
from attnviz.stories.common import signed_panel
from attnviz.stories.record import Cell, Matrix, Story, Table
from attnviz.text.messages import _

D_MODEL = 512  # as in the paper
N_POSITIONS = 64
STARTS = (0, 10, 30)
DISTANCES = (0, 1, 2, 5, 10, 20)


def wavelength(i: int, d_model: int) -> float:
    """Return the number of positions after which the sine and cosine of pair i repeat."""
    return float(math.tau * 10_000 ** (2 * i / d_model))


def dot_product_at(distance: int) -> float:
    """Return the dot product of two positions by their distance: the sum of cos(distance / 10000^(2i/d))."""
    return sum(math.cos(distance / 10_000 ** (2 * i / D_MODEL)) for i in range(D_MODEL // 2))


def build_story() -> Story:
    """Compute the table of positions, and compare the dot products of its rows with `dot_product_at`."""
    table = sinusoidal_positions(N_POSITIONS, D_MODEL).double().numpy()
    dots = table @ table.T
    cosines = dots / dots[0, 0]
    expected = {distance: dot_product_at(distance) for distance in DISTANCES}
    difference = max(
        abs(dots[start, start + distance] - expected[distance])
        for start in STARTS
        for distance in DISTANCES
    )
    far, position = N_POSITIONS - 1, _("position")
    by_distance: list[Sequence[Cell]] = [
        (f"pos = {start}", *(float(dots[start, start + distance]) for distance in DISTANCES))
        for start in STARTS
    ]
    return Story(
        title=_(
            "Positions near each other are alike: a cosine of {nearest:.3f} for "
            "neighbours, {farthest:.3f} at a distance of {far}"
        ).format(nearest=cosines[0, 1], farthest=cosines[0, far], far=far),
        receipt=_(
            "Computed by the formula of Vaswani et al. 2017, section 3.5. The dot products match "
            "sums of cosines to {difference:.1e}."
        ).format(difference=difference),
        parts=[
            _(
                "Attention compares vectors, and the vector of a word does not tell where the word "
                "stands. So the Transformer adds a vector for the position, once, before the first "
                "layer: PE(pos, 2i) = sin(pos / 10000^(2i/d)) and PE(pos, 2i+1) = cos(pos / "
                "10000^(2i/d)). Each pair of numbers turns like the hand of a clock, and each clock "
                "is slower than the one before."
            ),
            Table(
                _("The first positions, d = 4"),
                ["pos", "sin(pos)", "cos(pos)", "sin(pos / 100)", "cos(pos / 100)"],
                [(pos, *row) for pos, row in enumerate(sinusoidal_positions(6, 4).tolist())],
                digits=4,
            ),
            _(
                "At d = 4 there are two clocks: one takes {fast:.2f} positions for a turn, the other "
                "{slow:.0f}. The fast one tells neighbours apart, the slow one tells the beginning from "
                "the end. At d = {d_model} there are {n_clocks}, from {fast:.2f} to {slowest:,.0f} "
                "positions a turn: the stripes of the picture."
            ).format(
                fast=wavelength(0, 4),
                slow=wavelength(1, 4),
                d_model=D_MODEL,
                n_clocks=D_MODEL // 2,
                slowest=wavelength(D_MODEL // 2 - 1, D_MODEL),
            ),
            Table(
                _("PE(pos) · PE(pos + k), d = {d_model}").format(d_model=D_MODEL),
                ["", *(f"k = {distance}" for distance in DISTANCES)],
                [*by_distance, (_("sum of cosines"), *expected.values())],
            ),
            _(
                "How similar two positions are depends only on their distance: each column has the "
                "same number in every row. This is because sin(a) sin(b) + cos(a) cos(b) = cos(a - "
                "b). And PE(pos + k) is PE(pos) with every clock turned by k steps, which one matrix "
                "does for all positions. So a layer can learn to attend one word back, wherever it "
                "stands."
            ),
        ],
        main=2,
        picture=[
            signed_panel(_("sin: components 2i, d = 512"), table[:, ::2], (position, "i")),
            signed_panel(_("cos: components 2i + 1, d = 512"), table[:, 1::2], (position, "i")),
            Matrix(
                _("Cosine of two positions"), cosines, row_title=position, column_title=position
            ),
        ],
    )
