"""One head's page as a figure: its weight by offset, its measures beside their controls, its roles, its sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnviz.heads.figure.grid import colour_of
from attnviz.heads.notes import note_words, proof, reason_of
from attnviz.heads.record import HeadComparison, HeadProfile
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import at_offset, control_of, estimate_of, nearest, strongest_shown
from attnviz.heads.wording import described, sample, say
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, height_of, lines, page_of
from attnviz.render.figure.pen import BLACK, FRAME, GREY, MARGIN, POINT, SMALL, TEXT, TITLE, Pen
from attnviz.text.display import clip, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BARS = (5.6, 2.5)
"""Inches of the bars by offset."""
DOTS = 4.2
"""Inches across of the measures."""
GAP = 0.5
NAMES = 1.15
"""Inches of the names of measures."""
LEADING = 1.45
"""From line to line, in sizes of the letters."""
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


def draw(comparison: HeadComparison, layer: int, head: int) -> Picture:
    """A picture of one head.

    Args:
        comparison: of heads.
        layer: its layer, counted from 0, negative from the end.
        head: its number, likewise.

    Raises:
        SelectionError: there is no such head.
    """
    profile = comparison.head(layer, head)
    with usual_settings():
        pen = blank_figure(_texts(comparison, profile))
        _draw(pen, comparison, profile)
    title = f"Head {profile.name} of {visible(comparison.model)}"
    return Picture(pen, title, f"{sample(comparison)}; {proof(comparison)}")


def _draw(pen: Pen, comparison: HeadComparison, profile: HeadProfile) -> None:
    """Measure the words, give the figure its size, then draw."""
    n_shares = len(shares(comparison))
    right = MARGIN + 0.5 + BARS[0] + GAP + NAMES
    width = right + DOTS + MARGIN + 0.1
    full = width - 2 * MARGIN
    title = f"Head {profile.name} · {visible(comparison.model)}"
    about = [described(comparison), visible(sample(comparison))]
    above = [
        *lines(pen, [title], full, TITLE * 1.2, leading=1.4),
        *lines(pen, about, full, colour=GREY, leading=1.4),
    ]
    top = MARGIN + height_of(above) + 0.6
    column = BARS[0] + 0.4
    left = [line for text, colour in _roles(profile) for line in _spaced(pen, [text], column, colour)]
    alike = _spaced(pen, _alike(comparison, profile), column, BLACK)
    left += [Line("", TEXT, BLACK, LEADING * TEXT * POINT), *alike] if alike else []
    left_top = top + BARS[1] + 0.6
    dots = ROW * n_shares
    lower = max(left_top + height_of(left), top + dots + 0.6) + 0.25
    sentences = _sentences(comparison, profile, pen, full)
    notes = lines(pen, _notes(comparison, profile), full, leading=LEADING)
    pitch = LEADING * TEXT * POINT
    foot = lower + (0.3 + pitch * len(sentences) + 0.2 if sentences else 0.0)
    page = page_of(pen, width, foot + height_of(notes) + MARGIN)
    page.write(above, MARGIN)
    page.write(left, left_top)
    page.write(notes, foot)
    if sentences:
        named = pen.widest([name for name, _, _ in sentences])
        page.text(MARGIN, lower, "where it is strongest", TEXT + 1, va="top")
        for index, (name, score, text) in enumerate(sentences):
            y = lower + 0.3 + pitch * index
            page.text(MARGIN, y, name, va="top", color=GREY)
            page.text(MARGIN + named + 0.4, y, score, va="top", ha="right")
            page.text(MARGIN + named + 0.5, y, text, va="top")
    draw_offsets(page.axes((MARGIN + 0.5, top, *BARS)), pen, comparison, profile)
    draw_measures(page.axes((right, top, DOTS, dots)), pen, comparison, profile)


def _spaced(pen: Pen, texts: Sequence[str], width: float, colour: str) -> list[Line]:
    return lines(pen, texts, width, colour=colour, leading=LEADING)


def _roles(profile: HeadProfile) -> list[tuple[str, str]]:
    """The roles with what they are held against, in lines and their colours."""
    if not profile.roles:
        return [(f"{profile.words}: no measure reaches the threshold of a role", BLACK)]
    written = []
    for role in profile.roles:
        score = f"{role.score:.2f}" + ("" if math.isnan(role.low) else f" ({role.low:.2f} to {role.high:.2f})")
        state = "established" if role.established else f"not established: {visible(reason_of(role.doubt))}"
        written.append((f"{visible(role.rule.words)} · {role.measure} {score} · {state}", BLACK))
        against = [
            f"{CONTROLS[one.name].say(control=one)} {one.value:.2f}" + (" *" if one.rules_out else "")
            for one in role.controls
        ]
        if against:
            written.append((f"    held against: {'; '.join(against)}", GREY))
    if any(control.rules_out for role in profile.roles for control in role.controls):
        written.append(("    * could rule the role out", GREY))
    return written


def _alike(comparison: HeadComparison, profile: HeadProfile) -> list[str]:
    """The heads most like it, in a line."""
    near = nearest(comparison, profile.layer, profile.head, 5)
    if not near:
        return []
    heads = ", ".join(f"{other.name} ({far:.3f})" for other, far in near)
    return [f"most like it (mean Jensen-Shannon divergence, nats): {heads}"]


def _sentences(comparison: HeadComparison, profile: HeadProfile, pen: Pen, width: float) -> list[tuple[str, str, str]]:
    """Each measure's name, its score, and the sentence where it is strongest, in a line."""
    names = dict.fromkeys([*(role.measure for role in profile.roles), *strongest_shown(comparison)])
    kept = {name: comparison.examples.get((profile.name, name), ()) for name in names}
    first = {name: several[0] for name, several in kept.items() if several}
    room = width - pen.widest(list(first)) - 0.5
    found = []
    for name, example in first.items():
        (line, *more) = pen.wrap(f"“{visible(example.text)}”", room, TEXT, 2)
        found.append((name, f"{example.score:.2f}", clip(line, len(line) - 1) if more else line))
    return found


def _notes(comparison: HeadComparison, profile: HeadProfile) -> list[str]:
    """What stands below: the proof, the measures that are no shares, relations, notes, how to read it."""
    others = []
    for measure in comparison.measures:
        if measure.unit in {"nats", "tokens"}:
            value, low, high = estimate_of(comparison, measure.name, profile)
            if not math.isnan(value):
                ends = "" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"
                others.append(f"{measure.name} {value:.2f} {measure.unit}{ends}")
    relations = [
        f"{visible(one.name)}{' (reversed)' * one.reverse} {one.accuracy:.2f} ({one.low:.2f} to {one.high:.2f})"
        for one in comparison.relations
        if (one.layer, one.head) == (profile.layer, profile.head)
    ]
    how = [f"{kind.titles[1]}: {kind.say()}" for name, kind in CONTROLS.items() if name in comparison.controls]
    return [
        proof(comparison),
        *([" · ".join(others)] if others else []),
        *([f"best of all heads at, on half of the sentences: {', '.join(relations)}"] if relations else []),
        *(note_words(note) for note in comparison.notes),
        *([say("halves")] if relations and profile.roles else []),
        "; ".join(["layers and heads count from 0", *how, say("not_explanation")]),
    ]


def _texts(comparison: HeadComparison, profile: HeadProfile) -> list[str]:
    """All that the picture says, for its fonts."""
    examples = [
        visible(one.text)
        for (name, _), several in comparison.examples.items()
        if name == profile.name
        for one in several[:1]
    ]
    words = [visible(comparison.model), visible(comparison.corpus), *_notes(comparison, profile), "√→–·—“”…"]  # noqa: RUF001
    return [*words, *examples, *(text for text, _ in _roles(profile))]


# The plots.


def shares(comparison: HeadComparison) -> list[str]:
    """The measures that are shares of 1, but for those by offset, which have a picture of their own."""
    return [one.name for one in comparison.measures if one.unit == "share" and one.offset is None]


def draw_offsets(ax: Axes, pen: Pen, comparison: HeadComparison, profile: HeadProfile) -> None:
    """Draw the mean weight at each offset as bars with their intervals."""
    offsets = _shown_offsets(comparison, profile)
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


def _shown_offsets(comparison: HeadComparison, profile: HeadProfile) -> tuple[int, ...]:
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
            values, rows, marker=marker, s=16, linewidth=1.1, label=CONTROLS[control].titles[1], color=shade, zorder=6
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
