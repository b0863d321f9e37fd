"""Many heads on one sheet: layers down and heads across."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from attnviz.render.figure.page import canvas, caption, caption_heights, colour_bar, frame, write_caption
from attnviz.render.figure.pattern import BAR, number_size, write_numbers
from attnviz.render.figure.pen import (
    GAP,
    GREY,
    LARGEST,
    LEAST_TEXT,
    MARGIN,
    PITCH,
    PIXELS,
    POINT,
    SMALL,
    TEXT,
    Pen,
    clipped,
    ordinal,
)
from attnviz.render.palette import colours, levels
from attnviz.render.sheet import Sheet, pool

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where everything on a sheet stands, in inches from its upper left corner.

    Attributes:
        across: panels side by side.
        wrapped: whether panels are a run that goes on in the next line, each with its name, rather than a matrix of
            layers and heads with names at its edges.
        cell: the side of a cell.
        left: where the first panel begins.
        top: likewise, from above.
        panel: width and height of a panel.
        gaps: between panels, across and down.
        names: what stands above each panel; empty where nothing does.
        print: the size of the tokens' labels, in points.
        step: every how many tokens one is named.
    """

    across: int
    wrapped: bool
    cell: float
    left: float
    top: float
    panel: tuple[float, float]
    gaps: tuple[float, float]
    names: tuple[str, ...]
    print: float
    step: int

    def place(self, index: int) -> tuple[float, float]:
        """The upper left corner of a panel."""
        row, column = divmod(index, self.across)
        return (
            self.left + column * (self.panel[0] + self.gaps[0]),
            self.top + row * (self.panel[1] + self.gaps[1]),
        )


def draw_grid(
    sheet: Sheet,
    palette: str | Colormap,
    pen: Pen,
    *,
    title: str | None = "auto",
    cbar: bool = True,
    annot: bool | None = None,
) -> None:
    """Draw all panels of a sheet on one figure; the arguments are those of `attnviz.heatmaps.figure.figure`."""
    wrapped = len(sheet.layers) == 1 or len(sheet.heads) == 1
    across = _near_square(len(sheet.panels)) if wrapped else len(sheet.heads)
    down = math.ceil(len(sheet.panels) / across)
    sheet = pool(sheet, int(PIXELS * 0.8 / down), int(PIXELS * 0.8 / across))
    least = LEAST_TEXT * POINT / 0.35 if annot else PITCH
    plan = _plan(sheet, pen, across, wrapped=wrapped, least=least)
    pen = replace(pen, larger=min(1.6, max(1.0, plan.panel[0] * across / 10)))
    plan = _plan(sheet, pen, across, wrapped=wrapped, least=least, size=plan.print)
    right, bottom = plan.place(across * down - 1)
    right, bottom = right + plan.panel[0] + plan.gaps[0] - GAP, bottom + plan.panel[1]
    width = max(right + BAR * cbar + MARGIN, 4.5)
    lines = caption(sheet, pen, width - 2 * MARGIN, title, *_thinned(plan))
    head, foot = caption_heights(lines, pen)
    plan = _plan(sheet, pen, across, wrapped=wrapped, above=head, least=least, size=plan.print)
    height = plan.place(across * down - 1)[1] + plan.panel[1] + max(0.15, plan.gaps[1] - GAP) + foot
    ax = canvas(pen, width, height)
    write_caption(ax, pen, lines, height)
    # With an alpha channel Matplotlib resamples each panel in one pass instead of two.
    table = np.pad(colours(palette), ((0, 0), (0, 1)), constant_values=255)
    for index, panel in enumerate(sheet.panels):
        x, y = plan.place(index)
        ax.imshow(
            table[levels(panel.matrix, panel.top)],
            extent=(x, x + plan.panel[0], y + plan.panel[1], y),
            aspect="auto",
            interpolation="none",
            zorder=2,
        )
        frame(ax, x, y, *plan.panel)
        write_numbers(ax, panel, palette, pen, number_size(plan.cell, annot or False), place=(x, y, plan.cell))
    _label(ax, sheet, plan, pen, head)
    if cbar:
        colour_bar(ax, pen, sheet, palette, (right + 0.15, plan.top, min(1.5, max(0.6, plan.panel[1]))))
    ax.set(xlim=(0, width), ylim=(height, 0))


def _plan(
    sheet: Sheet, pen: Pen, across: int, *, wrapped: bool, least: float, above: float = 1.0, size: float = TEXT
) -> Plan:
    """Cells as large as their labels need, smaller where the sheet would grow too large.

    Args:
        sheet: what is drawn.
        pen: what with.
        across: panels side by side.
        wrapped: as in the plan.
        least: the side of a cell at least, unless the sheet would grow too large.
        above: the height of what stands above the picture.
        size: the size that labels are expected to get, in points.
    """
    down = math.ceil(len(sheet.panels) / across)
    own = sheet.scale == "panel"
    names = tuple(
        " · ".join([*([panel.name] if wrapped else []), *([f"max {panel.top:.3g}"] if own else [])])
        for panel in sheet.panels
    )
    n_rows, n_columns = len(sheet.query_labels), len(sheet.key_labels)
    label_width, label_height = (
        pen.widest(clipped(labels), size) + 0.1 for labels in (sheet.query_labels, sheet.key_labels)
    )
    named = PITCH if wrapped or own else 0.0
    edge = 0 if wrapped else 0.22 * pen.larger
    left = MARGIN + edge + label_width
    top = above + edge + label_height + named
    gaps = (GAP, GAP + named)
    cell = min(
        max(least, (1.5 if wrapped else 0.9) / max(n_rows, n_columns), pen.widest(names, SMALL) / n_columns),
        (LARGEST - left - BAR - across * gaps[0]) / (across * n_columns),
        (LARGEST - top - 1.5 - down * gaps[1]) / (down * n_rows),
    )
    # Where panels are narrower or lower than the names along them, they stand further apart.
    wide, high = pen.widest(names, SMALL), 0.0
    if not wrapped:
        wide = max(wide, pen.widest([f"head {head}" for head in sheet.heads], TEXT * pen.larger))
        high = pen.widest([f"layer {layer}" for layer in sheet.layers], TEXT * pen.larger)
    gaps = (max(gaps[0], wide + 0.06 - n_columns * cell), max(gaps[1], high + 0.06 - n_rows * cell))
    size = max(LEAST_TEXT, min(TEXT, cell / POINT / 1.15))
    return Plan(
        across=across,
        wrapped=wrapped,
        cell=cell,
        left=left,
        top=top,
        panel=(n_columns * cell, n_rows * cell),
        gaps=gaps,
        names=names,
        print=size,
        step=max(1, math.ceil(1.15 * size * POINT / cell - 0.01)),
    )


def _label(ax: Axes, sheet: Sheet, plan: Plan, pen: Pen, head: float) -> None:
    """Tokens along the first column and the first row; names of layers and heads, or of each panel."""
    style = pen.style(plan.print)
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    for index, (panel, name) in enumerate(zip(sheet.panels, plan.names, strict=True)):
        x, y = plan.place(index)
        if name:
            ax.text(x, y - 0.03, name, va="bottom", **pen.style(SMALL, color=GREY))
        if index % plan.across == 0:
            for i in range(0, len(queries), plan.step):
                ax.text(x - 0.04, y + (i + 0.5) * plan.cell, queries[i], ha="right", va="center", **style)
            if not plan.wrapped:
                middle = y + plan.panel[1] / 2
                ax.text(
                    MARGIN, middle, f"layer {panel.layer}", rotation=90, va="center", **pen.style(TEXT * pen.larger)
                )
        if index < plan.across:
            above = y - 0.04 - (PITCH if name else 0)
            for i in range(0, len(keys), plan.step):
                middle = x + (i + 0.5) * plan.cell
                ax.text(middle, above, keys[i], rotation=90, ha="center", va="bottom", **style)
            if not plan.wrapped:
                middle = x + plan.panel[0] / 2
                ax.text(
                    middle, head + 0.08, f"head {panel.head}", ha="center", va="center", **pen.style(TEXT * pen.larger)
                )


def _thinned(plan: Plan) -> list[str]:
    return [f"every {ordinal(plan.step)} token is named"] if plan.step > 1 else []


def _near_square(n: int) -> int:
    """How many panels to put side by side: a sheet a little wider than high, with the fewest places left empty."""
    least = math.ceil(math.sqrt(n))
    return min(range(least, min(n, math.ceil(1.3 * least)) + 1), key=lambda across: (-n % across, across))
