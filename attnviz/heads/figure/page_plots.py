"""The two plots of a head's page: its mean weight by offset, and its measures beside their controls."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from attnviz.heads.figure.grid import colour_of
from attnviz.heads.record import HeadComparison, HeadProfile
from attnviz.heads.selection import at_offset, control_of, estimate_of
from attnviz.heads.wording import CONTROLS_OF_A_HEAD
from attnviz.render.figure.pen import BLACK, FRAME, GREY, SMALL, TEXT, Pen

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROW = 0.19
"""Inches of a measure."""
MARKS = {
    "shuffled": ("x", "#d55e00"),
    "untrained": ("^", "#009e73"),
    "offset": ("s", "#999999"),
    "chance": ("D", "#cc79a7"),
}
"""The shape and the colour of each control."""
PLAIN = "#555555"
"""Of a head with no clear role."""
MOST_TICKS = 17
"""More offsets than this are not all named below their bars, and none has a bar's room where nothing was measured."""


def shares(comparison: HeadComparison) -> list[str]:
    """The measures that are shares of 1, but for those by offset, which have a picture of their own."""
    return [one.name for one in comparison.measures if one.unit == "share" and one.offset is None]


def draw_offsets(ax: Axes, pen: Pen, comparison: HeadComparison, profile: HeadProfile) -> None:
    """Draw the mean weight at each offset as bars with their intervals."""
    offsets = _drawn(comparison, profile)
    found = np.array([at_offset(comparison, offset, profile) for offset in offsets])
    colour = colour_of(profile.roles[0]) if profile.roles else PLAIN
    values = np.nan_to_num(found[:, 0])
    ax.bar(offsets, values, width=0.75, color=colour, zorder=2)
    for offset, (value, low, high) in zip(offsets, found, strict=True):
        if math.isnan(value) and len(offsets) <= MOST_TICKS:
            ax.text(offset, 0, "—", ha="center", va="bottom", **pen.style(SMALL, color=GREY))
        elif not math.isnan(low):
            ax.plot([offset, offset], [low, high], color=BLACK, linewidth=1.0, zorder=3)
    top = float(np.nanmax([*found.ravel(), 0.05])) if np.isfinite(found).any() else 1.0
    ax.set(ylim=(0, min(1.0, 1.08 * top)), xlim=(offsets[0] - 0.6, offsets[-1] + 0.6))
    step = -(-len(offsets) // MOST_TICKS)
    ticks = [offset for offset in offsets if offset % step == 0]
    ax.set_xticks(ticks, [f"{offset:+d}" if offset else "0" for offset in ticks], **pen.style(SMALL))
    ax.set_title("mean weight by offset, with its 95 % interval", loc="left", pad=8, **pen.style(TEXT + 1))
    ax.set_xlabel("offset of the key in tokens: 0 is the token itself, -1 the one before", **pen.style(color=GREY))
    _plain(ax, pen)


def _drawn(comparison: HeadComparison, profile: HeadProfile) -> tuple[int, ...]:
    """The offsets to draw: of very many, from the first to the last that some row sees."""
    offsets = comparison.offsets
    seen = [at for at in offsets if not math.isnan(at_offset(comparison, at, profile)[0])]
    if len(offsets) <= MOST_TICKS or not seen:
        return offsets
    return tuple(at for at in offsets if seen[0] <= at <= seen[-1])


def draw_measures(ax: Axes, pen: Pen, comparison: HeadComparison, profile: HeadProfile) -> None:
    """Draw each share as a dot with its interval, and its controls beside it."""
    names = shares(comparison)
    colour = colour_of(profile.roles[0]) if profile.roles else PLAIN
    rows = np.arange(len(names))
    found = np.array([estimate_of(comparison, name, profile) for name in names]).reshape(-1, 3)
    for control, (marker, shade) in MARKS.items():
        if control not in comparison.controls:
            continue
        values = np.array([control_of(comparison, control, name, profile) for name in names])
        drawn = ax.scatter(
            values, rows, marker=marker, s=16, linewidth=1.1, label=CONTROLS_OF_A_HEAD[control], color=shade, zorder=6
        )
        if marker != "x":
            drawn.set_facecolor("none")
            drawn.set_edgecolor(shade)
    for row, (value, low, high) in enumerate(found):
        if math.isnan(value):
            ax.text(0.0, row, "—", ha="center", va="center", **pen.style(SMALL, color=GREY))
        if not math.isnan(low):
            ax.plot([low, high], [row, row], color=colour, linewidth=2.4, alpha=0.6, zorder=4, solid_capstyle="butt")
    ax.scatter(found[:, 0], rows, s=30, color=colour, edgecolor="white", linewidth=0.5, label="this head", zorder=5)
    ax.set(xlim=(-0.02, 1.02), ylim=(len(names) - 0.5, -0.5))
    ax.set_yticks(rows, names, **pen.style(SMALL + 0.5))
    ax.set_xticks(np.linspace(0, 1, 6), [f"{x:.1f}" for x in np.linspace(0, 1, 6)], **pen.style(SMALL))
    ax.set_title("measures, with 95 % intervals, and controls", loc="left", pad=8, **pen.style(TEXT + 1))
    handles, labels = ax.get_legend_handles_labels()
    legend = ax.legend(
        handles[::-1],
        labels[::-1],
        loc="upper center",
        bbox_to_anchor=(0.5, -0.28 / (ROW * max(len(names), 1))),
        ncols=len(labels),
        frameon=False,
        borderpad=0,
        handletextpad=0.1,
        columnspacing=1.0,
    )
    for text in legend.get_texts():
        text.set(**pen.style(SMALL + 0.5))
    _plain(ax, pen)


def _plain(ax: Axes, pen: Pen) -> None:
    ax.grid(color="#eeeeee", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, pad=3)
    for label in ax.get_yticklabels():
        label.set(**pen.style(SMALL + 0.5))
    ax.spines[:].set(color=FRAME, linewidth=0.6)
