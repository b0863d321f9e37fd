"""One head's page as a figure: its weight by offset, its measures beside their controls, its roles, its sentences."""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attnviz.comparison import Comparison, HeadProfile, measure_of
from attnviz.text.display import clip, visible
from attnviz.views.caption import canvas
from attnviz.views.figure import blank_sheet, save, usual_settings
from attnviz.views.fonts import Typefaces, typefaces_for
from attnviz.views.heads_grid import colour_of
from attnviz.views.heads_numbers import STRONGEST, control_of, estimate_of
from attnviz.views.heads_roles import CONTROLS, NOT_EXPLANATION, described, nearest, sample
from attnviz.views.pen import BLACK, FRAME, GREY, MARGIN, POINT, SMALL, TEXT, TITLE, Pen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BARS = (5.6, 2.5)
"""Inches of the bars by offset."""
DOTS = 4.2
"""Inches across of the measures."""
ROW = 0.19
"""Inches of a measure."""
GAP = 0.5
NAMES = 1.15
"""Inches of the names of measures."""
LINE = 1.45 * TEXT * POINT
MARKS = {"shuffled": ("x", "#d55e00"), "untrained": ("^", "#009e73"), "offset": ("s", "#999999")}
"""The shape and the colour of each control."""
PLAIN = "#555555"
"""Of a head with no clear role."""
MOST_TICKS = 33
"""More offsets than this are not all named below their bars."""


def sheet(comparison: Comparison, layer: int, head: int) -> Figure:
    """A figure of one head.

    Args:
        comparison: of heads.
        layer: its layer, counted from 0, negative from the end.
        head: its number, likewise.

    Raises:
        SelectionError: there is no such head.
    """
    profile = comparison.head(layer, head)
    with usual_settings():
        pen = blank_sheet(_texts(comparison, profile))
        _draw(pen, comparison, profile)
    return pen.figure


def write(comparison: Comparison, layer: int, head: int, path: Path | BytesIO, suffix: str) -> Typefaces:
    """Draw one head's page into a file.

    Args:
        comparison: of heads.
        layer: its layer, counted from 0, negative from the end.
        head: its number, likewise.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.

    Returns:
        The fonts used, with the characters that none has.

    Raises:
        SelectionError: there is no such head.
    """
    profile = comparison.head(layer, head)
    made = sheet(comparison, layer, head)
    title = f"Head {profile.name} of {visible(comparison.model)}"
    save(made, path, suffix, title=title, description=f"{sample(comparison)}; {comparison.proof}")
    return typefaces_for(_texts(comparison, profile))


def _draw(pen: Pen, comparison: Comparison, profile: HeadProfile) -> None:
    """Measure the words, give the figure its size, then draw."""
    names = shares(comparison)
    right = MARGIN + 0.5 + BARS[0] + GAP + NAMES
    width = right + DOTS + MARGIN + 0.1
    full = width - 2 * MARGIN
    title = f"Head {profile.name} · {visible(comparison.model)}"
    above = [
        *((line, TITLE * 1.2, BLACK) for line in pen.wrap(title, full, TITLE * 1.2)),
        *(
            (line, TEXT, GREY)
            for text in (described(comparison), visible(sample(comparison)))
            for line in pen.wrap(text, full)
        ),
    ]
    top = MARGIN + sum(1.4 * size * POINT for _, size, _ in above) + 0.3
    column = BARS[0] + 0.4
    roles = [(line, colour) for text, colour in _roles(profile) for line in pen.wrap(text, column)]
    alike = [(line, BLACK) for text in _alike(comparison, profile) for line in pen.wrap(text, column)]
    left = [*roles, *([("", BLACK), *alike] if alike else [])]
    left_top = top + 0.3 + BARS[1] + 0.6
    dots = ROW * len(names)
    lower = max(left_top + LINE * len(left), top + 0.3 + dots + 0.6) + 0.25
    sentences = _sentences(comparison, profile, pen, full)
    said = [
        (line, GREY if index else BLACK)
        for index, text in enumerate(_said(comparison, profile))
        for line in pen.wrap(text, full)
    ]
    foot = lower + (0.3 + LINE * len(sentences) + 0.2 if sentences else 0.0)
    height = foot + LINE * len(said) + MARGIN
    paper = canvas(pen, width, height)
    named = pen.widest([name for name, _, _ in sentences])
    y = MARGIN
    for line, size, colour in above:
        paper.text(MARGIN, y, line, va="top", **pen.style(size, color=colour))
        y += 1.4 * size * POINT
    _lines(paper, pen, left, left_top)
    if sentences:
        paper.text(MARGIN, lower, "where it is strongest", va="top", **pen.style(TEXT + 1))
        for index, (name, score, text) in enumerate(sentences):
            at = lower + 0.3 + LINE * index
            paper.text(MARGIN, at, name, va="top", **pen.style(color=GREY))
            paper.text(MARGIN + named + 0.4, at, score, va="top", ha="right", **pen.style())
            paper.text(MARGIN + named + 0.5, at, text, va="top", **pen.style())
    _lines(paper, pen, said, foot)
    bars = pen.figure.add_axes(
        ((MARGIN + 0.5) / width, 1 - (top + 0.3 + BARS[1]) / height, BARS[0] / width, BARS[1] / height)
    )
    draw_offsets(bars, pen, comparison, profile)
    axes = pen.figure.add_axes((right / width, 1 - (top + 0.3 + dots) / height, DOTS / width, dots / height))
    draw_measures(axes, pen, comparison, profile)
    paper.set(xlim=(0, width), ylim=(height, 0))


def _lines(paper: Axes, pen: Pen, lines: list[tuple[str, str]], top: float) -> None:
    for index, (line, colour) in enumerate(lines):
        paper.text(MARGIN, top + LINE * index, line, va="top", **pen.style(color=colour))


def shares(comparison: Comparison) -> list[str]:
    """The measures that are shares of 1, but for those by offset, which have a picture of their own."""
    return [
        name
        for name in comparison.measures
        if (one := measure_of(name)) is not None and one.unit == "share" and not name.startswith(("offset_", "peak_"))
    ]


def draw_offsets(ax: Axes, pen: Pen, comparison: Comparison, profile: HeadProfile) -> None:
    """Draw the mean weight at each offset as bars with their intervals."""
    offsets = comparison.offsets
    found = np.array([estimate_of(comparison, f"offset_{offset:+d}", profile) for offset in offsets])
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


def draw_measures(ax: Axes, pen: Pen, comparison: Comparison, profile: HeadProfile) -> None:
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
            values, rows, marker=marker, s=16, linewidth=0.9, label=CONTROLS[control], color=shade, zorder=3
        )
        if marker != "x":
            drawn.set_facecolor("none")
            drawn.set_edgecolor(shade)
    for row, (value, low, high) in enumerate(found):
        if math.isnan(value):
            ax.text(0.0, row, "—", ha="center", va="center", **pen.style(SMALL, color=GREY))
        if not math.isnan(low):
            ax.plot([low, high], [row, row], color=colour, linewidth=2.4, alpha=0.6, zorder=4, solid_capstyle="butt")
    ax.scatter(found[:, 0], rows, s=22, color=colour, edgecolor="white", linewidth=0.5, label="this head", zorder=5)
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


def _roles(profile: HeadProfile) -> list[tuple[str, str]]:
    """The roles with what they are held against, in lines and their colours."""
    if not profile.roles:
        return [(f"{profile.words}: no measure reaches the threshold of a role", BLACK)]
    said = []
    for role in profile.roles:
        score = f"{role.score:.2f}" + ("" if math.isnan(role.low) else f" ({role.low:.2f} to {role.high:.2f})")
        state = "established" if role.established else f"not established: {visible(role.reason)}"
        said.append((f"{visible(role.words)} · {role.measure} {score} · {state}", BLACK))
        against = [f"{one.what} {one.value:.2f}" + (" *" if one.rules_out else "") for one in role.controls]
        if against:
            said.append((f"    held against: {'; '.join(against)}", GREY))
    if any(control.rules_out for role in profile.roles for control in role.controls):
        said.append(("    * could rule the role out", GREY))
    return said


def _alike(comparison: Comparison, profile: HeadProfile) -> list[str]:
    """The heads most like it, in a line."""
    near = nearest(comparison, profile.layer, profile.head, 5)
    if not near:
        return []
    heads = ", ".join(f"{other.name} ({far:.3f})" for other, far in near)
    return [f"most like it (mean Jensen-Shannon divergence, nats): {heads}"]


def _sentences(comparison: Comparison, profile: HeadProfile, pen: Pen, width: float) -> list[tuple[str, str, str]]:
    """Each measure's name, its score, and the sentence where it is strongest, in a line."""
    names = dict.fromkeys([*(role.measure for role in profile.roles), *STRONGEST])
    kept = {name: comparison.examples.get((profile.name, name), ()) for name in names}
    first = {name: several[0] for name, several in kept.items() if several}
    room = width - pen.widest(list(first)) - 0.5
    found = []
    for name, example in first.items():
        (line, *more) = pen.wrap(f"“{visible(example.text)}”", room, TEXT, 2)
        found.append((name, f"{example.score:.2f}", clip(line, len(line) - 1) if more else line))
    return found


def _said(comparison: Comparison, profile: HeadProfile) -> list[str]:
    """What stands below: the proof, the measures that are no shares, relations, notes, how to read it."""
    others = []
    for name in comparison.measures:
        measure = measure_of(name)
        if measure is not None and measure.unit != "share":
            value, low, high = estimate_of(comparison, name, profile)
            if not math.isnan(value):
                ends = "" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"
                others.append(f"{name} {value:.2f} {measure.unit}{ends}")
    relations = [
        f"{visible(one.name)}{' (reversed)' * one.reverse} {one.accuracy:.2f} ({one.low:.2f} to {one.high:.2f})"
        for one in comparison.relations
        if (one.layer, one.head) == (profile.layer, profile.head)
    ]
    how = f"shuffled: this head on shuffled tokens; random weights: the best head of them; {NOT_EXPLANATION}"
    return [
        comparison.proof,
        *([" · ".join(others)] if others else []),
        *([f"best of all heads at: {', '.join(relations)}"] if relations else []),
        *(visible(note) for note in comparison.notes),
        f"layers and heads count from 0; {how}",
    ]


def _texts(comparison: Comparison, profile: HeadProfile) -> list[str]:
    """All that the picture says, for its fonts."""
    examples = [
        visible(one.text)
        for (name, _), several in comparison.examples.items()
        if name == profile.name
        for one in several[:1]
    ]
    words = [visible(comparison.model), visible(comparison.corpus), *_said(comparison, profile), "√→–·—“”…"]  # noqa: RUF001
    return [*words, *examples, *(text for text, _ in _roles(profile))]
