"""Which line of a sheet each matrix stands in: steps that belong together side by side, and little paper left empty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from attnviz.render.figure.pen import DPI, MARGIN, PIXELS, Pen, clipped
from attnviz.walkthroughs.figure.panel import Box, label_size, measured
from attnviz.walkthroughs.figure.plan import Unit

WIDEST = 18.5
"""Inches that matrices may take side by side before they go on below."""
GAP, ARROW = 0.22, 0.34
"""Between two matrices, without and with a symbol between them."""
BETWEEN = 0.32
"""Between two lines of matrices."""
STACKED = 0.16
"""Between matrices that stand over each other."""
SIGN, NAMES = 12.0, 9.5
"""The size of what stands between matrices, in points: signs alone, and signs with names."""
CLEAR = 0.07
"""At both sides of a symbol, at least."""
APART = 0.6
"""Between two heads that stand side by side."""
MOST_BESIDE = 4
"""Heads that may stand so."""
LEAST_WIDTH = 9.0
"""Inches: lines of matrices are broken no sooner."""
LONGEST = PIXELS / DPI
"""Inches: a sheet that is longer or wider has fewer points for an inch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A unit that has been measured; lengths in inches.

    Attributes:
        unit: what is drawn.
        upper: the size of what stands above.
        main: that of the middle.
        lower: that of what stands below.
        symbol: what stands before it.
        gap: before it, for the symbol.
        sign: the part of it that is the symbol's, next to the matrix.
        left: what the names of its rows take.
        width: of its widest part, without these names.
    """

    unit: Unit
    upper: Box | None
    main: Box
    lower: Box | None
    symbol: str
    gap: float
    sign: float
    left: float
    width: float

    @property
    def boxes(self) -> tuple[Box, ...]:
        """All that stands here, from above."""
        return tuple(box for box in (self.upper, self.main, self.lower) if box is not None)

    @property
    def above(self) -> float:
        """What stands above the cells in the middle, their own words not counted."""
        return 0.0 if self.upper is None else self.upper.head + self.upper.height + self.upper.below + STACKED

    @property
    def below(self) -> float:
        """The cells in the middle and what stands below them."""
        own = self.main.height + self.main.below
        return own if self.lower is None else own + STACKED + self.lower.head + self.lower.height + self.lower.below


Boxes = tuple[Box | None, Box, Box | None]
"""The sizes of a unit's matrices: above, in the middle, below."""


def arranged(bands: Sequence[list[Unit]], pen: Pen, precision: int) -> list[list[Place]]:
    """The matrices in lines, broken in the way that needs the least paper; several heads may stand side by side."""
    sizes = {id(unit): _measured(unit, pen, precision) for band in bands for unit in band}
    n_heads = sum(band[0].is_head for band in bands)
    found = []
    for beside in range(1, max(1, min(n_heads, MOST_BESIDE)) + 1):
        groups = _beside(bands, beside)
        longest = _lines(groups, sizes, pen, WIDEST)
        found.append(longest)
        limits = {round(width, 2) + 0.01 for width in map(length, longest) if width >= LEAST_WIDTH}
        found += [_lines(groups, sizes, pen, limit) for limit in sorted(limits)]
    return min(found, key=_paper)


def length(line: Sequence[Place]) -> float:
    """How long a line is."""
    return sum(place.gap + place.left + place.width for place in line)


def heights(lines: Sequence[Sequence[Place]], top: float) -> tuple[list[float], float]:
    """Where the cells of each line begin, and where the last line ends, if the first begins at the top given."""
    tops = []
    for line in lines:
        top += max(place.above for place in line) + max(place.main.head for place in line)
        tops.append(top)
        top += max(place.below for place in line) + BETWEEN
    return tops, top


def is_named(unit: Unit, before: Unit) -> bool:
    """Whether the rows of a unit are named behind its neighbour at the left, whose rows may be the same."""
    return unit.is_head or before.main.rows != unit.main.rows


def sign_size(symbol: str) -> float:
    """The size of what stands between two matrices, in points."""
    return NAMES if any(map(str.isalnum, symbol)) else SIGN


def _paper(lines: Sequence[Sequence[Place]]) -> float:
    """How much paper a sheet needs; more counts where it is higher than wide, or so long that all on it is smaller."""
    width, height = max(map(length, lines)) + 2 * MARGIN, heights(lines, 1.0)[1] + 0.6
    upright, long = max(1.0, height / width), max(1.0, width / LONGEST, height / LONGEST)
    return width * height * math.sqrt(upright) * long * long


def _beside(bands: Sequence[list[Unit]], beside: int) -> list[list[Unit]]:
    """The bands, of heads so many in one."""
    groups: list[list[Unit]] = []
    heads = 0
    for band in bands:
        if band[0].is_head and heads % beside:
            groups[-1] = [*groups[-1], *band]
        else:
            groups.append(band)
        heads = heads + 1 if band[0].is_head else 0
    return groups


def _lines(bands: Sequence[list[Unit]], sizes: dict[int, Boxes], pen: Pen, widest: float) -> list[list[Place]]:
    """Bands in lines no longer than this, unless heads stand side by side; the matrices of a step stay together."""
    lines: list[list[Place]] = []
    for band in bands:
        room = widest
        if sum(unit.is_head for unit in band) > 1:
            room = math.inf
        elif any(unit.lower is not None for unit in band):
            room = WIDEST  # what one query makes of its keys is read across
        line: list[Place] = []
        for _, units in groupby(band, key=lambda unit: unit.main.number):
            step = list(units)
            whole = _run(step, line[-1].unit if line else None, sizes, pen)
            if line and length(line) + length(whole) > room and length(_run(step, None, sizes, pen)) <= room:
                lines.append(line)
                line = []
            for unit in step:
                place = _place(unit, line[-1].unit if line else None, sizes, pen)
                if line and length([*line, place]) > room:
                    lines.append(line)
                    place = _place(unit, None, sizes, pen)
                    line = []
                line.append(place)
        lines.append(line)
    return lines


def _run(units: Sequence[Unit], before: Unit | None, sizes: dict[int, Boxes], pen: Pen) -> list[Place]:
    """Units in one line, whatever its length."""
    return [_place(unit, left, sizes, pen) for left, unit in zip([before, *units[:-1]], units, strict=True)]


def _measured(unit: Unit, pen: Pen, precision: int) -> Boxes:
    upper, lower = (
        None if panel is None else measured(panel, pen, precision, small=unit.small)
        for panel in (unit.upper, unit.lower)
    )
    return upper, measured(unit.main, pen, precision, small=unit.small), lower


def _place(unit: Unit, before: Unit | None, sizes: dict[int, Boxes], pen: Pen) -> Place:
    """A unit behind its neighbour at the left, None at the beginning of a line."""
    upper, main, lower = sizes[id(unit)]
    boxes = [box for box in (upper, main, lower) if box is not None]
    named = [box for box in (main, upper) if box is not None and box.panel.rows]
    if before is not None and not is_named(unit, before):
        named = [box for box in named if box is not main]
    begins = before is None or unit.is_head
    symbol = unit.opening if begins else unit.symbol
    sign = max(ARROW, pen.width(symbol, sign_size(symbol)) + 2 * CLEAR) if symbol else 0.0
    gap = 0.0 if before is None else APART if begins else 0.0 if symbol and not symbol[0].isalnum() else GAP
    return Place(
        unit=unit,
        upper=upper,
        main=main,
        lower=lower,
        symbol=symbol,
        gap=gap + sign,
        sign=sign,
        left=max((pen.widest(clipped(box.panel.rows), label_size(box)) + 0.08 for box in named), default=0.0),
        width=max(box.room for box in boxes),
    )
