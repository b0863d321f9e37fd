"""What two models' heads do otherwise, on one page: a map of how far each changed, and tables of what changed most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attnviz.heads.changes import wording
from attnviz.heads.changes.compare import change_on_map, largest_changes
from attnviz.heads.changes.record import MOST, Change, Changes, RelationChange
from attnviz.heads.figure import grid
from attnviz.heads.figure.grid import Inches
from attnviz.heads.wording import MINOR, Cells, note_words, say
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Page, lines, scale_marks
from attnviz.render.figure.pen import BLACK, FRAME, GREY, MARGIN, SMALL, Pen
from attnviz.render.figure.style import STYLES, Style
from attnviz.render.palette import colours, diverging, hexed, ink, levels, signed_levels
from attnviz.render.sheet import BLANK
from attnviz.text.display import clip, visible

WIDTH = 12.0  # inches of the page
SCALE = 0.6  # inches of the colour scale beside the map
NOTHING = "#f1f1f1"  # of a head that was not measured
MOST_HEADS, MOST_ROLES, MOST_RELATIONS = 10, 12, 12
"""So many heads, roles and relations stand in their tables, those that changed most."""
MARKS = 1.1  # inches of the marks of changes of relations
DOT = 0.028  # inches of such a mark, from its middle
LONGEST = 24  # characters of the name of a relation


def draw(found: Changes, *, language: str = "en", style: Style = STYLES["sheet"]) -> Picture:
    """A picture of two models; on a slide and in a column the map and the heads that changed most alone."""
    title, below = (
        visible(wording.finding(found, language)),
        list(map(visible, _below(found, language))),
    )
    names = {"before": found.before.model, "after": found.after.model}
    about = [
        visible(say("changes_title", language, **names)),
        visible(wording.corpora_of(found, language)),
    ]
    with usual_settings():
        tables = (
            _heads(found, language),
            _roles(found, language),
            _relations(_shown(found), language),
        )
        cells = (
            visible(text)
            for columns in tables
            for one in columns
            for text in (one.title, *one.cells)
        )
        pen = blank_figure([title, *about, *below, "…→–←", *cells])
        if grid.is_brief(style):
            _draw_brief(pen, found, language=language, style=style)
        else:
            _draw_page(pen, found, above=[title, *about], below=below, language=language)
    return Picture(pen, f"{title}: {about[0]}", "; ".join(below))


def _draw_page(
    pen: Pen, found: Changes, *, above: Sequence[str], below: Sequence[str], language: str
) -> None:
    room = WIDTH - 2 * MARGIN
    page = grid.begin_page(pen, WIDTH)
    cell = grid.map_cell(found.before.n_layers, found.before.n_heads)
    size = grid.grid_size(found.before.n_layers, found.before.n_heads, cell)
    top = page.write(grid.heading(pen, above[0], above[1:], room), MARGIN) + 0.16
    across = MARGIN + size[0] + SCALE + grid.GAP
    heads = grid.fitting(pen, _heads(found, language), WIDTH - MARGIN - across)
    relations, moved = _shown(found), wording.moves(found)[:MOST_ROLES]
    second = top + max(size[1], grid.ENTRY * (1 + len(heads[0].cells))) + 0.2
    named = grid.fitting(pen, _relations(relations, language), room - MARKS - 0.3)
    wide = grid.table_width(pen, named) + 0.3 + MARKS if relations else 0.0
    keys = grid.keys_width(pen, [one.rule for one in moved])
    roles = grid.fitting(
        pen, _roles(found, language), room - wide - keys - grid.GAP * bool(relations)
    )
    rows = max(len(moved), len(relations))
    foot = second + (grid.ENTRY * (rows + 1) + 0.12) * bool(rows)
    _draw_map(page, found, (MARGIN, top), cell, language)
    grid.draw_table(page, heads, (across, top))
    if moved:
        grid.draw_table(page, roles, (MARGIN, second), roles=[one.rule for one in moved])
    if relations:
        grid.draw_table(
            page,
            named,
            (WIDTH - MARGIN - wide, second),
            quiet=[not one.established for one in relations],
        )
        _draw_marks(page, relations, (WIDTH - MARGIN - MARKS, second))
    grid.end_page(page, page.write(lines(pen, below, room), foot) + MARGIN)


def _draw_brief(pen: Pen, found: Changes, *, language: str, style: Style) -> None:
    least, grown = (grid.SLIDE, style.width or 1.0) if style.height else (style.width or 0.0, 0.0)
    larger = (least + 2 * style.margin) / grown if grown else 1.0
    notes = {"all": _below(found, language), "receipt": wording.proofs(found, language), "": []}[
        style.caption
    ]
    grid.draw_brief(
        replace(pen, least=style.least * larger),
        style,
        lambda page, corner, cell: _draw_map(page, found, corner, cell, language),
        shape=(found.before.n_layers, found.before.n_heads),
        columns=_heads(found, language),
        least=least,
        scale=SCALE,
        words=(visible(wording.finding(found, language)), list(map(visible, notes))),
    )


def _draw_map(page: Page, found: Changes, corner: Inches, cell: Inches, language: str) -> None:
    """A cell a head, layers from top to bottom, heads from left to right, with its number; a frame round a new role."""
    (left, top), (across, down) = corner, cell
    is_signed = found.pattern is None
    values = np.array([change_on_map(found, change) for change in found.heads])
    seen = values[np.isfinite(values)]
    limit = float(np.abs(seen).max()) if seen.any() else MOST
    table = diverging() if is_signed else colours()
    at = (
        signed_levels(np.nan_to_num(values), limit)
        if is_signed
        else levels(np.nan_to_num(values), limit)
    )
    for change, value, level in zip(found.heads, values, at, strict=True):
        place = grid.place_of(change.before.place, corner, cell)
        letters = "white" if ink(table)[level] and np.isfinite(value) else BLACK
        fill = hexed(table[level]) if np.isfinite(value) else NOTHING
        page.box(place, facecolor=fill, edgecolor="white", linewidth=1.0, zorder=2)
        page.box(place, fill=False, edgecolor=FRAME, linewidth=0.4, zorder=3)
        if change.role_changed:
            inset = 0.06 * down
            inner = (place[0] + inset, place[1] + inset, across - 2 * inset, down - 2 * inset)
            dashes = "-" if change.role_established else (0, (1.5, 1.5))
            page.box(
                inner, fill=False, edgecolor=letters, linewidth=1.1, linestyle=dashes, zorder=4
            )
        text = f"{value:{'+' if is_signed else ''}.2f}".replace("0.", ".")
        if abs(value) >= BLANK:
            grid.write_inside(page, place, text, 0.8 * across, 1.5, zorder=5, color=letters)
    shape = found.before.n_layers, found.before.n_heads
    grid.number_grid(page, shape, corner, cell, language)
    bar = (
        left + grid.BESIDE + shape[1] * across + 0.14,
        top + grid.ABOVE,
        min(1.6, max(0.6, shape[0] * down)),
    )
    page.colour_bar(table, bar, scale_marks(-limit if is_signed else 0.0, limit))
    page.text(
        bar[0],
        bar[1] - 0.1,
        "" if is_signed else "nats",
        max(SMALL, page.pen.least),
        va="bottom",
        color=GREY,
    )


def _heads(found: Changes, language: str) -> list[Cells]:
    heads = wording.changed_heads(found)[:MOST_HEADS]
    measured = [
        next(
            (
                f"{one.measure.label} {wording.with_sign(one.value)}"
                for one in largest_changes(found, change, 1)
            ),
            "",
        )
        for change in heads
    ]
    columns = [
        Cells(say("head", language), [change.name for change in heads]),
        Cells(say("change", language), [f"{change.pattern:.3f}" for change in heads], right=True),
        Cells(
            "95 %", [f"{one.low:.3f}–{one.high:.3f}" if one.low == one.low else "" for one in heads]
        ),
        Cells(say("role", language), [_role(change, language) for change in heads]),
        Cells(say("changed_most", language), measured),
    ]
    return columns if found.pattern is not None else [columns[0], *columns[3:]]


def _role(change: Change, language: str) -> str:
    names = [say("no_role", language) if role is None else role.rule.short for role in change.roles]
    return " → ".join(dict.fromkeys(names)) + "?" * (
        change.role_changed and not change.role_established
    )


def _roles(found: Changes, language: str) -> list[Cells]:
    *counts, lost, got = wording.role_columns(wording.moves(found)[:MOST_ROLES], language)
    return [
        *counts,
        *(
            one._replace(cells=[clip(names, LONGEST + 16) for names in one.cells])
            for one in (lost, got)
        ),
    ]


def _shown(found: Changes) -> list[RelationChange]:
    return wording.relations(found)[:MOST_RELATIONS]


def _relations(relations: Sequence[RelationChange], language: str) -> list[Cells]:
    names, *numbers = wording.relation_columns(relations, language)
    return [
        names._replace(cells=[clip(visible(name), LONGEST) or "?" for name in names.cells]),
        *numbers,
    ]


def _draw_marks(page: Page, relations: Sequence[RelationChange], corner: Inches) -> None:
    from matplotlib.patches import Ellipse

    left, top = corner
    reach = max(abs(end) for one in relations for end in (one.low, one.high))
    middle, half = left + MARKS / 2, MARKS / 2 - DOT
    bottom = top + (len(relations) + 1) * grid.ENTRY
    page.ax.plot([middle, middle], [top + grid.ENTRY, bottom], color=FRAME, linewidth=0.8, zorder=1)
    for value, side, text in (
        (-reach, "left", f"{-reach:.2f}"),
        (0.0, "center", "0"),
        (reach, "right", f"+{reach:.2f}"),
    ):
        page.text(
            middle + half * value / reach,
            top + grid.ENTRY / 2,
            text,
            ha=side,
            va="center",
            color=GREY,
        )
    for row, one in enumerate(relations, 1):
        y = top + (row + 0.5) * grid.ENTRY
        colour = BLACK if one.established else GREY
        ends = [middle + half * end / reach for end in (one.low, one.high)]
        page.ax.plot(
            ends, [y, y], color=colour, linewidth=1.1 if one.established else 0.7, zorder=2
        )
        at, fill = middle + half * one.value / reach, colour if one.established else "white"
        dot = Ellipse(
            (at, y), 2 * DOT, 2 * DOT, facecolor=fill, edgecolor=colour, linewidth=0.8, zorder=3
        )
        page.ax.add_patch(dot)


def _below(found: Changes, language: str) -> list[str]:
    relations = wording.on_relations(found, language, len(_shown(found)))
    notes = [note_words(note, language) for note in found.notes if note.code not in MINOR]
    return [
        *wording.proofs(found, language),
        *notes,
        wording.counts(found, language),
        *relations,
        "; ".join([wording.on_map(found, language), *wording.how_to_read(found, language)]),
    ]
