"""One head's page as a figure: what it does, its example, its measures beside their controls, its weight by offset."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from attnviz.attention import Attention
from attnviz.heads import wording
from attnviz.heads.figure.grid import about, begin_page, end_page, heading
from attnviz.heads.figure.sheet import card_of, draw_weights, labels_of
from attnviz.heads.record import HeadComparison, HeadProfile
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import at_offset, control_of, estimate_of, own_card
from attnviz.heads.wording import proof, say
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import lines
from attnviz.render.figure.pen import BLACK, FRAME, GREY, MARGIN, SMALL, TEXT, Pen
from attnviz.text.display import visible
from attnviz.text.messages import in_language

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 10.0  # inches of the page
LEFT = 4.2  # inches of the left column, which has words and the example
GAP = 0.5  # inches between the columns
SIDE, BARS = 3.2, 1.4  # inches of the example, and the height of the bars by offset
NAMES = 0.95  # inches of the names of measures
ROW = 0.24  # inches of a measure
MARKS = {
    "shuffled": ("x", "#d55e00"),
    "untrained": ("^", "#009e73"),
    "offset": ("s", "#999999"),
    "chance": ("D", "#cc79a7"),
}
"""The shape and the colour of each control."""
PLAIN = "#555555"  # of a head with no clear role


def draw(
    comparison: HeadComparison,
    layer: int,
    head: int,
    *,
    patterns: Mapping[str, Attention] | None = None,
    language: str = "en",
) -> Picture:
    """A picture of one head. Raises SelectionError: there is no such head."""
    profile = comparison.head(layer, head)
    cards = [
        card_of(card, (patterns or {}).get(card.role.name), language)
        for card in own_card(profile, comparison)
    ]
    title, full = finding(profile, language), WIDTH - 2 * MARGIN
    notes = _notes(comparison, profile, language)
    roles, what = _roles(profile, comparison, language), about(comparison, language)
    with usual_settings():
        said = [
            title,
            what,
            *notes,
            *(text for text, _ in roles),
            *(text for card in cards for text in card.texts),
        ]
        pen = blank_figure([*said, "√→–·—“”…"])
        page = begin_page(pen, WIDTH)
        top = page.write(heading(pen, title, [what], full, 1.35), MARGIN) + 0.25
        words = [line for text, colour in roles for line in lines(pen, [text], LEFT, colour=colour)]
        sheet = next((card.sheet for card in cards), None)
        sentences = lines(pen, [card.sentence for card in cards], LEFT, colour=GREY)
        end = page.write(sentences, page.write(words, top) + 0.12 * bool(sentences))
        beside = over = 0.0
        if sheet is not None:
            beside = pen.widest(labels_of(sheet.query_labels)) + 0.05
            over = pen.widest(labels_of(sheet.key_labels)) + 0.05
        weights_from = end + over + 0.1
        end = weights_from + SIDE + 0.1 if sheet is not None else end
        offsets = shown_offsets(comparison, profile)
        right = MARGIN + LEFT + GAP + NAMES
        dots = ROW * len(shares(comparison))
        below = top + 0.2 + dots + 0.75  # the legend of the measures ends there
        # Where there is no example, the bars have its place.
        bars = (right, below + 0.25, WIDTH - MARGIN - 0.1 - right, BARS)
        if sheet is None:
            bars = (MARGIN + 0.3, end + 0.45, LEFT - 0.3, max(BARS, top + 0.2 + dots - end - 0.45))
        foot = max(end, below, (bars[1] + bars[3] + 0.35) if offsets else 0.0) + 0.15
        end_page(page, page.write(lines(pen, notes, full), foot) + MARGIN)
        if sheet is not None:
            draw_weights(page, sheet, (MARGIN + beside, weights_from, SIDE), 0.3)
        if offsets:
            draw_offsets(page.axes(bars), pen, comparison, profile, language)
        if dots:
            ax = page.axes((right, top + 0.2, WIDTH - MARGIN - 0.1 - right, dots))
            draw_measures(ax, pen, comparison, profile, language)
    return Picture(
        pen,
        f"{title}: {visible(wording.model_names(comparison))}",
        f"{wording.sample(comparison)}; {proof(comparison)}",
    )


def finding(profile: HeadProfile, language: str = "en") -> str:
    """Summarise the head in a line."""
    role = profile.role
    phrase = "head_none" if role is None else "head_does" if role.established else "head_may"
    return say(
        phrase, language, head=profile.name, role=visible(wording.role_words(role, language))
    )


def _roles(
    profile: HeadProfile, comparison: HeadComparison, language: str
) -> list[tuple[str, str]]:
    if not profile.roles:
        close = wording.closest_roles(comparison, profile, language)
        return [
            (say("no_threshold", language), BLACK),
            *([(visible(close), GREY)] if close else []),
        ]
    texts = ((wording.role_score, BLACK), (wording.how_sure, GREY))
    return [
        (visible(say_of(role, language)), colour)
        for role in profile.roles
        for say_of, colour in texts
    ]


def _notes(comparison: HeadComparison, profile: HeadProfile, language: str) -> list[str]:
    others = []
    for measure in comparison.measures:
        if measure.unit in {"nats", "tokens"}:
            value, low, high = estimate_of(comparison, measure.name, profile)
            if not math.isnan(value):
                between = wording.ends(low, high, narrow=measure.narrow)
                others.append(
                    f"{measure.name} {value:.2f} {measure.unit}{between and f' ({between})'}"
                )
    near = visible(wording.list_alike(comparison, profile, language))
    own = [one for one in comparison.relations if (one.layer, one.head) == profile.place]
    kinds = [kind for name, kind in CONTROLS.items() if name in comparison.controls]
    how = [
        f"{in_language(kind.title, language)}: {in_language(kind.words, language)}"
        for kind in kinds
    ]
    how += [say("halves", language)] * bool(own)
    return [
        proof(comparison, language),
        *([" · ".join(others)] if others else []),
        *([near] if near else []),
        *(
            wording.note_words(note, language)
            for note in comparison.notes
            if note.code not in wording.MINOR
        ),
        "; ".join([*how, say("narrow", language), say("not_explanation", language)]),
    ]


# The plots.


def shares(comparison: HeadComparison) -> list[str]:
    """The measures that are shares of 1, but for those by offset, which have a picture of their own, and of norms."""
    return [
        one.name
        for one in comparison.measures
        if one.unit == "share" and one.offset is None and one.takes != "norms"
    ]


def shown_offsets(comparison: HeadComparison, profile: HeadProfile) -> tuple[int, ...]:
    """The offsets to draw; none where nothing was measured."""
    values = [at_offset(comparison, offset, profile)[0] for offset in comparison.offsets]
    return () if all(map(math.isnan, values)) else comparison.offsets


def draw_offsets(
    ax: Axes, pen: Pen, comparison: HeadComparison, profile: HeadProfile, language: str
) -> None:
    """Draw the mean weight at each offset as bars with their intervals."""
    offsets = shown_offsets(comparison, profile)
    found = np.array([at_offset(comparison, offset, profile) for offset in offsets])
    colour = profile.role.rule.colour if profile.role else PLAIN
    values = np.nan_to_num(found[:, 0])
    ax.bar(offsets, values, width=0.75, color=colour, zorder=2)
    for offset, (value, low, high) in zip(offsets, found, strict=True):
        if math.isnan(value):
            ax.text(offset, 0, "—", ha="center", va="bottom", **pen.style(SMALL, color=GREY))
        elif not math.isnan(low):
            ax.plot([offset, offset], [low, high], color=BLACK, linewidth=1.0, zorder=3)
    top = float(np.nanmax([*found.ravel(), 0.05])) if np.isfinite(found).any() else 1.0
    ax.set(ylim=(0, min(1.0, 1.08 * top)), xlim=(offsets[0] - 0.6, offsets[-1] + 0.6))
    names = [f"{offset:+d}" if offset else "0" for offset in offsets]
    ax.set_xticks(offsets, names, **pen.style(SMALL))
    ax.set_title(say("at_offsets", language), loc="left", pad=6, **pen.style(TEXT + 0.5))
    _plain(ax, pen)


def draw_measures(
    ax: Axes, pen: Pen, comparison: HeadComparison, profile: HeadProfile, language: str
) -> None:
    """Draw each share as a dot with its interval, and its controls beside it."""
    names = shares(comparison)
    colour = profile.role.rule.colour if profile.role else PLAIN
    rows = np.arange(len(names))
    found = np.array([estimate_of(comparison, name, profile) for name in names]).reshape(-1, 3)
    for control, (marker, shade) in MARKS.items():
        if control not in comparison.controls:
            continue
        values = np.array([control_of(comparison, control, name, profile) for name in names])
        drawn = ax.scatter(
            values,
            rows,
            marker=marker,
            s=16,
            linewidth=1.1,
            label=in_language(CONTROLS[control].title, language),
            color=shade,
            zorder=6,
        )
        if marker != "x":
            drawn.set_facecolor("none")
            drawn.set_edgecolor(shade)
    for row, (value, low, high) in enumerate(found):
        if math.isnan(value):
            ax.text(0.0, row, "—", ha="center", va="center", **pen.style(SMALL, color=GREY))
        if not math.isnan(low):
            ax.plot(
                [low, high],
                [row, row],
                color=colour,
                linewidth=2.4,
                alpha=0.6,
                zorder=4,
                solid_capstyle="butt",
            )
    ax.scatter(
        found[:, 0],
        rows,
        s=30,
        color=colour,
        edgecolor="white",
        linewidth=0.5,
        label=say("this_head", language),
        zorder=5,
    )
    ax.set(xlim=(-0.02, 1.02), ylim=(len(names) - 0.5, -0.5))
    doubted = {one.name for one in comparison.measures if one.narrow}
    marked = [f"{wording.TOO_NARROW}{name}" if name in doubted else name for name in names]
    ax.set_yticks(rows, marked, **pen.style(SMALL + 0.5))
    ax.set_xticks(
        np.linspace(0, 1, 6), [f"{x:.1f}" for x in np.linspace(0, 1, 6)], **pen.style(SMALL)
    )
    ax.set_title(say("measures_title", language), loc="left", pad=6, **pen.style(TEXT + 0.5))
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
