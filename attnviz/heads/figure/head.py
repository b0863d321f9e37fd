"""The figure of one head: its roles with an example, its measures with their controls, its weight by offset."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.heads import words
from attnviz.heads.figure.cards import Patterns, card_of, draw_pattern, label_room
from attnviz.heads.figure.parts import begin, finish, picture_of, say
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import own_card
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import lines
from attnviz.render.figure.pen import MARGIN, SMALL, TEXT, TITLE, Pen
from attnviz.render.theme import Theme
from attnviz.text.display import visible
from attnviz.text.messages import Phrase, _, join_phrases

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, LEFT, SIDE, BARS = 10.0, 4.2, 3.6, 1.4
"""Sizes of the page of one head, in inches: width of the page and of its left column, side of the example pattern,
height of the bars by offset."""
NAMES, ROW = 1.4, 0.36  # inches: width of the names of measures, height of a row
LANES = {"untrained": 0.06, "offset": 0.24, "chance": 0.42}
OWN_LANE = -0.3
"""Where the marks of a head and of its controls stand within a row, in rows, so that none covers another."""
MEASURE_NAMES = {
    "self": _("weight on itself"),
    "previous": _("weight on the previous token"),
    "next": _("weight on the next token"),
    "first": _("weight on the first token"),
    "separator": _("weight on separators"),
    "punctuation": _("weight on punctuation"),
    "same_word": _("weight on the same word"),
    "induction": _("weight by induction"),
    "entropy_share": _("entropy (share of maximum)"),
    "meaning": _("similarity of meaning (rank)"),
    "confidence": _("largest weight of a row"),
    "sink": _("largest weight on one key"),
    "variability": _("variation with the words"),
}
"""The names of measures on the page of a head; another measure has its own name."""
MARKERS = {"untrained": ("^", 2), "offset": ("s", 7), "chance": ("D", 3)}
"""The marker of each control, and the index of its colour in the series of the theme."""


def draw_page(
    comparison: HeadComparison,
    profile: HeadProfile,
    patterns: Patterns,
    theme: Theme,
    language: str,
) -> Picture:
    """Draw one head: its roles and an example, its measures with their controls, and its weight by offset."""
    cards = [
        card_of(card, patterns.get(card.key), language) for card in own_card(profile, comparison)
    ]
    heading = say(title_of_head(profile), language)
    role_texts = [words.closest_roles(comparison, profile)]
    if profile.roles:
        role_texts = [
            text(role) for role in profile.roles for text in (words.role_score, words.how_sure)
        ]
    roles = [say(text, language) for text in role_texts]
    subtitle = (
        f"{visible(words.model_names(comparison))} · {say(words.sample(comparison), language)}"
    )
    notes = [say(text, language) for text in _notes_of_head(comparison, profile)]
    with usual_settings(theme):
        texts = [
            heading,
            subtitle,
            *roles,
            *notes,
            *(text for card in cards for text in card.texts),
        ]
        pen = blank_figure([*texts, "√→–·—“”…●○"], theme)
        text_width = WIDTH - 2 * MARGIN
        page = begin(pen, WIDTH)
        top = page.write(lines(pen, [heading], text_width, 1.35 * TITLE, leading=1.5), MARGIN)
        top = page.write(lines(pen, [subtitle], text_width, colour=pen.quiet), top) + 0.25
        left_end = page.write(lines(pen, roles, LEFT, colour=pen.ink), top)
        for card in cards:
            left_end = page.write(
                lines(pen, [card.sentence], LEFT, colour=pen.quiet), left_end + 0.1
            )
            if card.sheet is not None:
                label_width, label_height = label_room(pen, [card.sheet])
                corner = MARGIN + label_width, left_end + label_height + 0.1
                _right, left_end = draw_pattern(page, card.sheet, corner, SIDE)
        left_end = page.write(lines(pen, notes, LEFT), left_end + 0.2)
        n_shares = len(_shares(comparison))
        right = MARGIN + LEFT + 0.5 + NAMES
        width = WIDTH - MARGIN - 0.1 - right
        bars_top = top + 0.2 + ROW * n_shares + 1.0
        right_end = bars_top + BARS + 0.2 if has_offsets(comparison, profile) else bars_top - 0.3
        # Axes are placed relative to the height of the page, so it is set before they are added.
        finish(page, max(left_end, right_end) + MARGIN)
        if n_shares:
            ax = page.axes((right, top + 0.2, width, ROW * n_shares))
            _draw_measures(ax, pen, comparison, profile, language)
        if has_offsets(comparison, profile):
            ax = page.axes((right, bars_top, width, BARS))
            draw_offsets(ax, pen, comparison, profile, language)
    return picture_of(pen, heading, comparison)


def title_of_head(profile: HeadProfile) -> Phrase:
    """Return the layer and head, and what the head does."""
    place = _("Layer {layer}, head {head}").format(layer=profile.layer, head=profile.head)
    title = join_phrases([place, profile.words], ": ")
    if profile.role and not profile.role.established:
        return _("{title} (not established)").format(title=title)
    return title


def _notes_of_head(comparison: HeadComparison, profile: HeadProfile) -> list[str]:
    """Return the notes at the foot of the page of one head."""
    notes = [words.proof(comparison), *map(words.note_words, comparison.notes)]
    return [*notes, words.TOO_NARROW, words.NOT_EXPLANATION]


def _shares(comparison: HeadComparison) -> list[str]:
    """Return the names of the shares, without those at fixed offsets."""
    return [
        measure.name
        for measure in comparison.measures
        if measure.unit == "share" and measure.offset is None
    ]


def _mark_colour(role: Role | None, theme: Theme) -> str:
    """Return the colour of a role for marks on the paper."""
    return theme.quiet if role is None else theme.readable(role.rule.colour)


def has_offsets(comparison: HeadComparison, profile: HeadProfile) -> bool:
    """Return whether the weight by offset was measured; in cross-attention it is not."""
    values = [comparison.at_offset(offset, profile)[0] for offset in comparison.offsets]
    return not np.isnan(values).all()


def draw_offsets(
    ax: Axes, pen: Pen, comparison: HeadComparison, profile: HeadProfile, language: str
) -> None:
    """Draw the mean weight at each offset as a bar with its interval."""
    offsets = comparison.offsets
    estimates = np.array([comparison.at_offset(offset, profile) for offset in offsets])
    colour = _mark_colour(profile.role, pen.theme)
    ax.bar(offsets, np.nan_to_num(estimates[:, 0]), width=0.75, color=colour, zorder=2)
    for offset, (_value, low, high) in zip(offsets, estimates, strict=True):
        if not math.isnan(low):
            ax.plot([offset, offset], [low, high], color=pen.ink, linewidth=1.0, zorder=3)
    top = float(np.nanmax([*estimates.ravel(), 0.05]))
    ax.set(ylim=(0, min(1.0, 1.08 * top)), xlim=(offsets[0] - 0.6, offsets[-1] + 0.6))
    names = [f"{offset:+d}" if offset else "0" for offset in offsets]
    pitch = ax.bbox.width / pen.figure.dpi / len(offsets)
    step = math.ceil(pen.widest(names, SMALL) / pitch)
    ax.set_xticks(offsets[::step], names[::step], **pen.style(SMALL))
    _finish_axes(ax, pen, say(_("Mean weight by offset, 0 is the token itself"), language))


def _draw_measures(
    ax: Axes, pen: Pen, comparison: HeadComparison, profile: HeadProfile, language: str
) -> None:
    """Draw each share as a dot with its interval, with the controls in the same row."""
    names = _shares(comparison)
    rows = np.arange(len(names))
    estimates = np.array([comparison.estimate(name, *profile.place) for name in names])
    colour = _mark_colour(profile.role, pen.theme)
    has_interval = ~np.isnan(estimates[:, 1])
    style: dict[str, Any] = {"linewidth": 2.4, "alpha": 0.6, "zorder": 4}
    ax.hlines(
        rows[has_interval] + OWN_LANE,
        estimates[has_interval, 1],
        estimates[has_interval, 2],
        color=colour,
        **style,
    )
    label = say(_("this head"), language)
    own_rows = rows + OWN_LANE
    dots: dict[str, Any] = {"s": 26, "color": colour, "edgecolor": pen.theme.paper, "zorder": 5}
    ax.scatter(estimates[:, 0], own_rows, label=label, **dots)
    _draw_controls(ax, pen.theme, comparison, profile, language)
    ax.set(xlim=(-0.02, 1.02), ylim=(len(names) - 0.5, -0.5))
    narrow = {measure.name for measure in comparison.measures if measure.narrow}
    shown_names = [say(MEASURE_NAMES.get(name, name.replace("_", " ")), language) for name in names]
    labels = [
        f"~{shown}" if name in narrow else shown
        for name, shown in zip(names, shown_names, strict=True)
    ]
    ax.set_yticks(rows, labels, **pen.style(SMALL + 0.5))
    ticks = np.linspace(0, 1, 6)
    ax.set_xticks(ticks, [f"{x:.1f}" for x in ticks], **pen.style(SMALL))
    legend = ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.28 / (ROW * len(names))),
        ncols=1 + len(comparison.controls),
        frameon=False,
        handletextpad=0.1,
        columnspacing=0.6,
    )
    for text in legend.get_texts():
        text.set(**pen.style(SMALL + 0.5))
    _finish_axes(ax, pen, say(_("Measures with their 95% intervals, and controls"), language))
    ax.grid(visible=False, axis="y")
    for row in range(0, len(names), 2):
        ax.axhspan(row - 0.5, row + 0.5, color=pen.theme.shade, linewidth=0, zorder=0)


def _draw_controls(
    ax: Axes, theme: Theme, comparison: HeadComparison, profile: HeadProfile, language: str
) -> None:
    """Draw a marker for each control of each share."""
    names = _shares(comparison)
    for control, (marker, index) in MARKERS.items():
        shade = theme.series[index]
        if control in comparison.controls:
            values = [comparison.control(control, name, profile) for name in names]
            label = say(CONTROLS[control].title, language)
            rows = np.arange(len(names)) + LANES[control]
            markers = ax.scatter(
                values, rows, marker=marker, s=11, color=shade, label=label, zorder=6
            )
            if marker != "x":  # a cross has no face
                markers.set_facecolor("none")
                markers.set_edgecolor(shade)


def _finish_axes(ax: Axes, pen: Pen, title: str) -> None:
    """Write the title of axes, and style their grid, labels and frame."""
    width = ax.bbox.width / pen.figure.dpi
    broken = "\n".join(pen.wrap(title, width, TEXT + 0.5))
    ax.set_title(broken, loc="left", pad=6, **pen.style(TEXT + 0.5))
    ax.grid(color=pen.theme.grid, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(length=0, pad=3)
    for label in ax.get_yticklabels():
        label.set(**pen.style(SMALL + 0.5))
    ax.spines[:].set(color=pen.theme.frame, linewidth=0.6)
