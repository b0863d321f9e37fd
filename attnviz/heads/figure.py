"""Pictures of heads: the map and the table of their roles, and the card of a head.

All is drawn on one Axes whose unit is an inch, from the upper left corner of the page.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from attnviz.attention import Attention
from attnviz.errors import AttnvizWarning
from attnviz.heads import tables, words
from attnviz.heads.measures import GROUPS
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import (
    RoleCard,
    by_role,
    clearest_card,
    groups_of,
    received_by_words,
    strongest,
    strongest_links,
)
from attnviz.look import Look
from attnviz.render.columns import Column
from attnviz.render.fonts import typefaces_for
from attnviz.render.palette import levels, rgb_of, text_colours
from attnviz.render.picture import (
    POINT,
    Line,
    Picture,
    break_lines,
    length_of,
    missing_line,
    settings,
    style_of,
)
from attnviz.render.sheet import pool, resolve, with_limits
from attnviz.render.theme import Theme, theme_of
from attnviz.text.display import clip, visible
from attnviz.text.messages import N_, _

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Patterns: TypeAlias = Mapping[tuple[str, str], Attention]
"""The attention on examples, by the name of the head and the sentence."""

Span: TypeAlias = tuple[int, int]  # the first and one-past-last character of a word
Cells: TypeAlias = tuple[
    int, int, int, int
]  # first and one-past-last row, first and one-past-last column

WIDTH = 12.0  # of a sheet, in inches
COLUMN = 7.0  # a narrower picture has no examples
LARGEST_LETTERS = 12.0  # points; titles are larger
# Lengths in sizes of letters.
ROW = 2.0  # height of a row of a table
SWATCH, CODE, BETWEEN = (
    2.4,
    4.6,
    1.6,
)  # widths of a swatch and of one with a code, distance of columns
BESIDE, ABOVE = 3.6, 3.4  # room for the numbers of layers and of heads
GAP = 4.0  # between a map and the table beside it
CELL = (10.0, 4.2)  # largest width and height of a cell on a sheet
LEAST_CELL = 0.12  # inches
# Characters of a token beside a pattern and in a map, and of a cell of a table.
LABEL, WORD, LONGEST_CELL = 11, 12, 48
MOST_TOKENS = 24  # of a pattern; neighbours are pooled in a longer one
ACROSS = 4  # examples in a row
MOST_CHANGED = 12  # heads in the table of those that differ most from a second model
BELOW = (
    4  # a table of at most this many rows stands below the map of a slide, a longer one beside it
)
PATTERN = N_("Rows are queries, columns are keys; the stronger the colour, the larger the weight.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page that is drawn from top to bottom; all positions are inches from its upper left corner."""

    ax: Axes
    theme: Theme
    width: float
    margin: float
    size: float  # of letters, in points
    least: float

    def letters(self, n: float) -> float:
        """Return the length of n sizes of letters, in inches."""
        return n * self.size * POINT

    def length(self, text: str) -> float:
        """Return about how long a text is, in inches."""
        return self.letters(length_of(text))

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """Write a text; by default in the usual letters and left-aligned."""
        usual: dict[str, Any] = {"fontsize": self.size, "va": "center"}
        self.ax.text(x, y, text, **(usual | style))

    def write(self, lines: Iterable[Line], top: float, left: float | None = None) -> float:
        """Write lines below one another; return their lower end."""
        for line in lines:
            colour = self.theme.quiet if line.is_quiet else self.theme.ink
            x = self.margin if left is None else left
            self.text(x, top, line.text, va="top", fontsize=line.size, color=colour)
            top += line.height
        return top

    def lines(self, texts: Iterable[str], width: float, **options: Any) -> list[Line]:
        """Return texts in lines of at most this width."""
        return break_lines(map(visible, texts), width, options.pop("size", self.size), **options)

    def box(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """Draw a rectangle."""
        from matplotlib.patches import Rectangle

        self.ax.add_patch(Rectangle((x, y), width, height, **style))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadMap:
    """A map of heads, with a colour and a label for each, by layer and head."""

    colours: np.ndarray  # [layer, head, rgb]
    labels: Mapping[tuple[int, int], str]
    # What stands in cells that are too small for the labels, and also in the table.
    codes: Sequence[Sequence[str]] = ()  # each with a text for each row of the table
    rows: Mapping[tuple[int, int], int] = field(default_factory=dict)  # the row of each head

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of layers and of heads."""
        return self.colours.shape[0], self.colours.shape[1]


def draw(
    comparison: HeadComparison,
    look: Look,
    heads: Sequence[tuple[int, int]] = (),
    *,
    patterns: Patterns | None = None,
    unseen: str = "",
) -> Picture:
    """Draw a comparison, or the cards of some heads; of one sentence, what each head attends to in it.

    A slide or a narrow column has only the map and the roles. `patterns` has the attention on the examples; `unseen`
    says why there are no patterns.

    Raises SelectionError: there is no such head, or a pattern lacks a head.
    """
    from matplotlib.figure import Figure

    style, theme = style_of(look), theme_of(look.theme)
    profiles = [comparison.head(place) for place in heads]
    title = _title(comparison, profiles)
    typefaces = typefaces_for([*_texts(comparison, patterns or {}), title, unseen])
    width = style.width or WIDTH
    with settings(style, theme, typefaces):
        figure = Figure(figsize=(width, style.height or 1.0))
        ax = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(style.height or 1.0, 0))
        ax.set_axis_off()
        page = Page(
            ax=ax,
            theme=theme,
            width=width,
            margin=style.margin,
            size=min(style.letters, LARGEST_LETTERS),
            least=style.least,
        )
        inner = width - 2 * style.margin
        heading = page.lines([title] * style.has_title, inner, size=1.4 * style.letters, most=3)
        about = [_about(comparison, is_brief=style.height is not None)] if style.has_title else []
        heading += page.lines(about, inner, is_quiet=True, most=2 if style.height is None else 1)
        top = page.write(heading, style.margin) + (page.letters(1.5) if heading else 0)
        notes = _notes(comparison, profiles, style.caption)
        if profiles and patterns and style.caption == "all":
            notes.insert(1, _(PATTERN))
        foot = page.lines(notes, inner, is_quiet=True)
        foot += missing_line(typefaces, style, inner)
        foot_height = math.fsum(line.height for line in foot) + style.margin
        bottom = None if style.height is None else style.height - foot_height - page.letters(1)
        if heads:
            end = _draw_heads(page, comparison, profiles, patterns or {}, top, bottom)
        else:
            end = _draw_all(page, comparison, top, bottom)
            if style.height is None and width >= COLUMN:
                end = _draw_examples(
                    page, comparison, patterns or {}, unseen, end + page.letters(2.5)
                )
        if style.height is None:
            end += page.letters(1.5) if foot else 0
            height = page.write(foot, end) + style.margin
            figure.set_size_inches(width, height)
            ax.set_ylim(height, 0)
        else:
            page.write(foot, style.height - foot_height)
    names = visible(words.model_names(comparison))
    return Picture(
        figure=figure,
        title=f"{title}: {names}",
        description=f"{words.sample(comparison)}; {words.proof(comparison)}",
        style=style,
        theme=theme,
        typefaces=typefaces,
    )


def _title(comparison: HeadComparison, profiles: Sequence[HeadProfile]) -> str:
    """Return the finding, or what the chosen heads do."""
    if len(profiles) == 1:
        return visible(words.describe(profiles[0]))
    if profiles:
        names = ", ".join(profile.name for profile in profiles)
        return _("Heads {names}").format(names=names)
    if comparison.against is not None:
        return visible(words.changes(comparison, comparison.against))
    return visible(words.finding(comparison))


def _about(comparison: HeadComparison, *, is_brief: bool = False) -> str:
    """Return the model, its size, which a slide leaves out, and the corpus."""
    size = [] if is_brief else [words.description(comparison)]
    return " · ".join([words.model_names(comparison), *size, words.sample(comparison)])


def _notes(comparison: HeadComparison, profiles: Sequence[HeadProfile], caption: str) -> list[str]:
    """Return the lines at the foot: all of a sheet, only the receipt of a slide, none of a paper."""
    if not caption:
        return []
    notes = [words.proof(comparison)]
    if caption == "receipt":
        return notes
    if not profiles:
        notes += map(words.note_words, comparison.notes)
    heads = profiles or comparison.heads
    roles = [head.role for head in heads if head.role is not None]
    if comparison.attention is None and not all(role.established for role in roles):
        notes.append(
            _(
                "Pale and with a question mark: not established, because the interval of the score does not lie above "
                "the threshold and above every control."
            )
        )
    if any(role.narrow for role in roles):
        notes.append(_(words.TOO_NARROW))
    return [*notes, _(words.NOT_EXPLANATION)]


def _texts(comparison: HeadComparison, patterns: Patterns) -> list[str]:
    """Return all texts that a picture may have, to choose fonts."""
    texts = [_about(comparison), *_notes(comparison, (), "all"), _(PATTERN), "√→–·≤…“”"]
    texts += [
        text
        for column in tables.role_table(by_role(comparison))
        for text in (column.title, *column.cells)
    ]
    texts += [example.text for example in comparison.typical.values()]
    texts += [example.text for several in comparison.examples.values() for example in several]
    records = [*patterns.values(), *([comparison.attention] if comparison.attention else [])]
    texts += [
        token.text for record in records for token in (*record.query_tokens, *record.key_tokens)
    ]
    if comparison.against is not None:
        texts += [words.changes(comparison, comparison.against), _(words.DIVERGENCE)]
    return texts


# The map and the table.


def _draw_all(page: Page, comparison: HeadComparison, top: float, bottom: float | None) -> float:
    """Draw the map of all heads and its table; return their lower end."""
    record = comparison.attention
    if record is not None:
        head_map, columns = _map_of_words(record, page.theme), tables.link_table(record)
        return _draw_map_and_table(page, head_map, columns if bottom else [], top, bottom)
    if comparison.against is not None and page.width >= COLUMN:
        texts = page.lines([_(words.DIVERGENCE)], page.width - 2 * page.margin, is_quiet=True)
        top = page.write(texts, top) + page.letters(0.8)
        changes = tables.change_table(comparison, MOST_CHANGED)
        top = _draw_map_and_table(
            page, _map_of_changes(comparison, page.theme), changes, top, bottom
        )
        if bottom is not None:
            return top
        top += page.letters(2)
    columns = tables.role_table(by_role(comparison))
    return _draw_map_and_table(
        page, _map_of_roles(comparison, page.theme), columns, top, bottom, comparison
    )


def _map_of_roles(comparison: HeadComparison, theme: Theme) -> HeadMap:
    """Return the map of the clearest role of each head."""
    roles = {head.place: head.role for head in comparison.heads}
    in_table = [row[0].role for row in by_role(comparison)]
    row_of = {(role.name, role.established): n for n, role in enumerate(in_table) if role}
    colours = np.array([rgb_of(_colour(role, theme)) for role in roles.values()])
    return HeadMap(
        colours=colours.reshape(comparison.n_layers, comparison.n_heads, 3),
        labels={
            place: visible(tables.map_label(role)) if role else "" for place, role in roles.items()
        },
        codes=[
            [tables.code(role) if role else "" for role in in_table],
            [str(number) if role else "" for number, role in enumerate(in_table, 1)],
        ],
        rows={place: row_of[role.name, role.established] for place, role in roles.items() if role},
    )


def _map_of_words(record: Attention, theme: Theme) -> HeadMap:
    """Return the map of the word that receives most attention from each head, in the colour of its share."""
    received = received_by_words(record)
    labels = {
        place: clip(visible(record.key_tokens[int(received[place].argmax())].text), WORD)
        for place in np.ndindex(*received.shape[:2])
    }
    colours = theme.pixels(received.max(axis=2), 1.0, theme.colours())
    return HeadMap(colours=colours, labels=labels)


def _map_of_changes(comparison: HeadComparison, theme: Theme) -> HeadMap:
    """Return the map of the divergence of each head from the second model; the largest is darkest."""
    values = np.array([head.change.divergence for head in comparison.heads if head.change])
    values = values.reshape(comparison.n_layers, comparison.n_heads)
    top = max(float(np.nanmax(values, initial=0.0)), 1e-9)  # no division by 0
    labels = {
        place: "" if np.isnan(values[place]) else f"{values[place]:.2f}"[1:]
        for place in np.ndindex(*values.shape)
    }
    colours = theme.colours()[levels(np.nan_to_num(values), top)]
    return HeadMap(colours=colours, labels=labels)


def _colour(role: Role | None, theme: Theme) -> str:
    """Return the colour of a role, pale if the role is not established."""
    if role is None:
        return theme.shade
    return role.rule.colour if role.established else theme.paler(role.rule.colour)


def _draw_map_and_table(
    page: Page,
    head_map: HeadMap,
    columns: Sequence[Column],
    top: float,
    bottom: float | None,
    comparison: HeadComparison | None = None,
) -> float:
    """Draw a map and a table beside it, or below it where that is wider; return the lower end.

    `bottom` is the lower end of the room on a slide, which the map fills. With a `comparison`, the groups of roles are
    named below the map.
    """
    n_layers, n_heads = head_map.shape
    columns = [
        replace(
            column,
            title=visible(column.title),
            cells=[clip(visible(cell), LONGEST_CELL) for cell in column.cells],
        )
        for column in columns
    ]
    n_rows = len(columns[0].cells) if columns else 0
    table_height = page.letters(ROW) * (n_rows + 1) if columns else 0.0
    inner = page.width - 2 * page.margin
    widest, highest = (page.letters(length) for length in CELL)
    if bottom is not None and n_rows <= BELOW:
        columns = _fitting(page, columns, inner)
        highest = (bottom - top - table_height) / n_layers - page.letters(ABOVE + 1) / n_layers
        cell = min((inner - page.letters(BESIDE)) / n_heads, 2 * highest), highest
        is_beside = False
    elif bottom is not None:
        columns = _fitting(page, columns, 0.42 * inner)
        room = inner - _table_width(page, columns) - page.letters(BESIDE + GAP)
        highest = (bottom - top - page.letters(ABOVE + 1)) / n_layers
        cell = room / n_heads, min(1.6 * room / n_heads, highest)
        is_beside = True
    else:
        across = min(widest, (inner - page.letters(BESIDE)) / n_heads)
        cell = across, min(highest, max(LEAST_CELL, 0.75 * across))
        left = page.letters(BESIDE + GAP) + n_heads * cell[0]
        is_beside = bool(columns) and _table_width(page, columns[:-1]) <= inner - left
        columns = _fitting(page, columns, inner - left * is_beside)
    codes, end = _draw_map(page, head_map, page.margin, top, cell)
    if comparison is not None and bottom is None:
        end = _draw_groups(
            page,
            comparison,
            end + page.letters(0.8),
            page.letters(BESIDE) + n_heads * cell[0] if is_beside else inner,
        )
    if not columns:
        return end
    left = page.margin
    table_top = end + page.letters(1)
    if is_beside:
        left, table_top = left + page.letters(BESIDE + GAP) + n_heads * cell[0], top
    if bottom is not None and table_top + table_height > bottom + page.letters(1):
        columns = _first_rows(page, columns, left, table_top, bottom)
    _draw_table(page, columns, left, table_top, codes)
    return max(end, table_top + page.letters(ROW) * (len(columns[0].cells) + 1))


def _draw_map(
    page: Page, head_map: HeadMap, left: float, top: float, cell: tuple[float, float]
) -> tuple[Sequence[str], float]:
    """Draw a map, its labels in the largest letters in which all of them fit, or else codes.

    Return the codes for the rows of the table, if there are some on the map, and its lower end.
    """
    (n_layers, n_heads), (width, height) = head_map.shape, cell
    left, top = left + page.letters(BESIDE), top + page.letters(ABOVE)
    right, end = left + n_heads * width, top + n_layers * height
    page.ax.imshow(
        head_map.colours, extent=(left, right, end, top), aspect="auto", interpolation="none"
    )
    gap: dict[str, Any] = {"color": page.theme.paper, "linewidth": min(1.2, 0.05 * height / POINT)}
    page.ax.hlines([top + n * height for n in range(1, n_layers)], left, right, **gap)
    page.ax.vlines([left + n * width for n in range(1, n_heads)], top, end, **gap)

    codes: Sequence[str] = ()
    texts, size = _fit(page, head_map.labels, cell)
    for codes in head_map.codes if not size else ():
        labels = {place: codes[row] for place, row in head_map.rows.items()}
        texts, size = _fit(page, labels, cell)
        if size:
            break
    inks = text_colours(head_map.colours)
    for (layer, head), text in texts.items() if size else ():
        x, y = left + (head + 0.5) * width, top + (layer + 0.5) * height
        ink = inks[layer, head]
        page.text(x, y, text, ha="center", fontsize=size, color=ink, linespacing=1.1)

    step = max(1, math.ceil(page.letters(1.8) / width))
    for head in range(0, n_heads, step):
        page.text(left + (head + 0.5) * width, top - page.letters(0.9), str(head), ha="center")
    for layer in range(0, n_layers, max(1, math.ceil(page.letters(1.2) / height))):
        page.text(left - page.letters(0.6), top + (layer + 0.5) * height, str(layer), ha="right")
    quiet = page.theme.quiet
    page.text(left, top - page.letters(2.4), visible(_("head, counted from 0")), color=quiet)
    text = visible(_("layer"))
    style = {"rotation": 90 if len(text) > 1 else 0, "va": "top", "ha": "center", "color": quiet}
    page.text(left - page.letters(BESIDE - 0.7), top, text, **style)
    return codes, end


def _fit(
    page: Page, labels: Mapping[tuple[int, int], str], cell: tuple[float, float]
) -> tuple[dict[tuple[int, int], str], float]:
    """Return labels in lines, and the size of the letters in which all of them fit their cells; 0 if there is none."""
    size = min(1.4 * page.size, max(page.size, cell[1] / POINT / 4))
    while size >= page.least:
        width, most = cell[0] - 0.06, int(cell[1] / (1.25 * size * POINT))
        broken = {
            place: [line.text for line in break_lines([text], width, size)]
            for place, text in labels.items()
        }
        # No word is broken where a smaller size has room for it.
        lengths = [length_of(word) for text in labels.values() for word in text.split()]
        longest = max(lengths, default=0.0) * size * POINT
        if longest <= width and max(map(len, broken.values()), default=0) <= most:
            return {place: "\n".join(lines) for place, lines in broken.items()}, size
        size -= 0.5
    return {}, 0.0


def _draw_groups(page: Page, comparison: HeadComparison, top: float, width: float) -> float:
    """Draw the colour and the name of each group of roles on the map; return the lower end."""
    left = start = page.margin + page.letters(BESIDE)
    for name, colour in map(GROUPS.__getitem__, groups_of(comparison)):
        text = visible(_(name))
        length = page.letters(SWATCH + 0.6) + page.length(text)
        if left > start and left + length > page.margin + width:
            left, top = start, top + page.letters(ROW)
        _draw_swatch(page, colour, left, top + page.letters(0.6))
        page.text(
            left + page.letters(SWATCH + 0.6), top + page.letters(0.6), text, color=page.theme.quiet
        )
        left += length + page.letters(2)
    return top + page.letters(1.2)


def _draw_swatch(
    page: Page, colour: str, x: float, middle: float, text: str = "", width: float = 0.0
) -> None:
    """Draw a small box in the colour of a role, with an outline by which a pale one is seen on the paper."""
    length, height = width or page.letters(SWATCH), page.letters(1.4)
    style = {"facecolor": colour, "edgecolor": page.theme.quiet, "linewidth": 0.5}
    page.box(x, middle - height / 2, length, height, **style)
    ink = str(text_colours(rgb_of(colour)))
    size = min(page.size, 0.9 * length / POINT / max(1.0, length_of(text)))
    page.text(x + length / 2, middle, text, ha="center", color=ink, fontsize=size)


def _column_width(page: Page, column: Column) -> float:
    """Return the width of a column; one of roles without a title has their marks, drawn as swatches."""
    if not column.title and column.roles:
        return page.letters(CODE if page.width >= COLUMN else SWATCH)
    return max(map(page.length, (column.title, *column.cells)))


def _table_width(page: Page, columns: Sequence[Column]) -> float:
    """Return the width of a table."""
    gaps = page.letters(BETWEEN) * (len(columns) - 1)
    return math.fsum(_column_width(page, column) for column in columns) + gaps


def _fitting(page: Page, columns: Sequence[Column], width: float) -> list[Column]:
    """Return as many of the first columns as fit, but at least two."""
    n = len(columns)
    while n > 2 and _table_width(page, columns[:n]) > width:
        n -= 1
    return list(columns[:n])


def _first_rows(
    page: Page, columns: Sequence[Column], left: float, top: float, bottom: float
) -> list[Column]:
    """Return as many rows of a table as fit; write below them how many do not, and warn."""
    n_rows, row = len(columns[0].cells), page.letters(ROW)
    n_shown = max(1, int((bottom - top) / row) - 2)  # without the titles and the line below
    text = visible(_("and {n} more: --style sheet").format(n=n_rows - n_shown))
    page.text(left, top + (n_shown + 1.5) * row, text, color=page.theme.quiet)
    warnings.warn(
        f"the slide has room for {n_shown} of {n_rows} roles: --style sheet shows all of them",
        AttnvizWarning,
        stacklevel=2,
    )
    return [
        replace(column, cells=column.cells[:n_shown], roles=column.roles[:n_shown])
        for column in columns
    ]


def _draw_table(
    page: Page, columns: Sequence[Column], left: float, top: float, codes: Sequence[str]
) -> None:
    """Draw a table, with the codes of its rows in the swatches; roles that are not established are grey."""
    row, roles = page.letters(ROW), columns[0].roles
    for column in columns:
        width = _column_width(page, column)
        x, ha = (left + width, "right") if column.right else (left, "left")
        page.text(x, top + 0.5 * row, column.title, ha=ha, color=page.theme.quiet)
        for number, text in enumerate(column.cells):
            middle = top + (number + 1.5) * row
            role = roles[number] if roles else None
            if not column.title and column.roles:
                label = codes[number] if codes else ""
                mark = "?" if role and not role.established else ""
                _draw_swatch(page, _colour(role, page.theme), left, middle, label or mark, width)
                continue
            is_quiet = bool(roles) and not (role and role.established)
            colour = page.theme.quiet if is_quiet else page.theme.ink
            page.text(x, middle, text, ha=ha, color=colour)
        left += width + page.letters(BETWEEN)


# Examples and cards.


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A role or a link of a head, with the head's weights on a sentence."""

    title: str
    role: Role | None
    texts: Sequence[str]
    record: Attention | None  # of this head alone; None if its weights are not known
    cells: Sequence[Cells] = ()  # outlined


def _shown_role(card: RoleCard, record: Attention | None) -> Shown:
    """Return what is shown of a role: a sentence, and the weights with the cells of its relation outlined."""
    score = words.rounded(card.role.score)
    title = f"{card.head.name} · {_(card.role.rule.short)} {score}"
    if card.example is None:
        texts, links = [_("no example among the sentences kept")], []
    else:
        sentence, links = card.example.text, list(card.example.links)
        texts = [f"“{sentence}”"]
    if links and record is not None:
        pairs = [" → ".join(sentence[start:end] for start, end in link) for link in links]
        texts.append(_("Outlined: {links}").format(links=", ".join(pairs)))
    own = None if record is None else record.select([card.head.layer], [card.head.head])
    cells = [] if own is None else [_cells_of(own, *link) for link in links]
    return Shown(
        title=title, role=card.role, texts=texts, record=own, cells=list(filter(None, cells))
    )


def _shown_links(record: Attention) -> list[Shown]:
    """Return the strongest links of a sentence, each outlined in the pattern of its head."""
    shown = []
    tokens = (
        [token.text for token in record.query_tokens],
        [token.text for token in record.key_tokens],
    )
    for link in strongest_links(record):
        query, key = tokens[0].index(link.query), tokens[1].index(link.key)
        title = _("Layer {layer}, head {head}").format(layer=link.layer, head=link.head)
        shown.append(
            Shown(
                title=title,
                role=None,
                texts=[f"{link.words} {words.rounded(link.weight)}"],
                record=record.select([link.layer], [link.head]),
                cells=[(query, query + 1, key, key + 1)],
            )
        )
    return shown


def _cells_of(record: Attention, query: Span, key: Span) -> Cells | None:
    """Return the first and last row and column of the tokens of two words; None if they have none."""
    ends = []
    for tokens, (start, end) in ((record.query_tokens, query), (record.key_tokens, key)):
        spans = [token.span or (0, 0) for token in tokens]
        inside = [n for n, span in enumerate(spans) if span[0] < end and start < span[1]]
        if not inside:
            return None
        ends += [inside[0], inside[-1] + 1]
    return ends[0], ends[1], ends[2], ends[3]


def _draw_examples(
    page: Page, comparison: HeadComparison, patterns: Patterns, unseen: str, top: float
) -> float:
    """Draw an example of each of the clearest roles, or the strongest links of one sentence; return the lower end."""
    record = comparison.attention
    if record is not None:
        title = _("The strongest links between words, each of another head.")
        examples = _shown_links(record)
    else:
        title = _("A typical example of the clearest roles.")
        examples = [_shown_role(card, patterns.get(card.key)) for card in strongest(comparison)]
    if unseen:
        title = _("Examples; their patterns are not shown: {why}").format(why=unseen)
    elif any(shown.record for shown in examples):
        title = f"{title} {_(PATTERN)}"
    if not examples:
        return top
    inner = page.width - 2 * page.margin
    top = page.write(page.lines([title], inner, size=1.1 * page.size, most=2), top) + page.letters(
        1
    )
    width = (inner - (ACROSS - 1) * page.letters(3)) / ACROSS
    for first in range(0, len(examples), ACROSS):
        row = examples[first : first + ACROSS]
        lefts = [page.margin + n * (width + page.letters(3)) for n in range(len(row))]
        ends = [
            _write_example(page, shown, left, top, width)
            for shown, left in zip(row, lefts, strict=True)
        ]
        top = max(ends)
        ends += [
            _draw_pattern(page, shown, left, top, width, 0.72 * width)
            for shown, left in zip(row, lefts, strict=True)
        ]
        top = max(ends) + page.letters(2.5)
    return top - page.letters(2.5)


def _write_example(page: Page, shown: Shown, left: float, top: float, width: float) -> float:
    """Write the title of an example and its texts; return their lower end."""
    inset = 0.0
    if shown.role is not None and shown.title:
        mark = "" if shown.role.established else "?"
        _draw_swatch(page, _colour(shown.role, page.theme), left, top + page.letters(0.7), mark)
        inset = page.letters(SWATCH + 0.8)
    if shown.title:
        title = page.lines([shown.title], width - inset, size=1.05 * page.size, most=2)
        top = page.write(title, top, left + inset) + page.letters(0.4)
    for number, text in enumerate(shown.texts):
        lines = page.lines([text], width, is_quiet=number == 0 and shown.role is not None, most=2)
        top = page.write(lines, top, left)
    return top + page.letters(0.6)


def _draw_pattern(
    page: Page, shown: Shown, left: float, top: float, width: float, height: float
) -> float:
    """Draw the weights of an example with their tokens, outlined cells in the accent colour; return the lower end."""
    if shown.record is None:
        return top
    sheet = with_limits(resolve(shown.record), 0.0, 1.0)
    is_whole = max(sheet.tokens) <= MOST_TOKENS
    sheet = pool(sheet, MOST_TOKENS, MOST_TOKENS)
    queries, keys = (
        [clip(label, LABEL) for label in labels]
        for labels in (sheet.query_labels, sheet.key_labels)
    )
    beside, above = (
        max(map(page.length, labels)) + page.letters(0.6) for labels in (queries, keys)
    )
    cell = min((width - beside) / len(keys), (height - above) / len(queries), page.letters(3))
    cell = max(cell, 0.02)
    x, y = left + beside, top + above
    right, end = x + cell * len(keys), y + cell * len(queries)
    panel = sheet.panels[0]
    pixels = page.theme.pixels(panel.matrix, panel.top, page.theme.colours())
    page.ax.imshow(pixels, extent=(x, right, end, y), aspect="auto", interpolation="none")
    frame = {"fill": False, "edgecolor": page.theme.frame, "linewidth": 0.6}
    page.box(x, y, right - x, end - y, **frame)
    size = min(page.size, max(page.least, cell / POINT / 1.15))
    step = math.ceil(size * 1.15 * POINT / cell - 0.01)
    for n in range(0, len(queries), step):
        page.text(
            x - page.letters(0.4), y + (n + 0.5) * cell, queries[n], ha="right", fontsize=size
        )
    for n in range(0, len(keys), step):
        style = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": size}
        page.text(x + (n + 0.5) * cell, y - page.letters(0.4), keys[n], **style)
    for first_row, last_row, first_column, last_column in shown.cells if is_whole else ():
        place = x + first_column * cell, y + first_row * cell
        size_of = (last_column - first_column) * cell, (last_row - first_row) * cell
        page.box(*place, *size_of, fill=False, edgecolor=page.theme.accent, linewidth=1.5)
    return end


def _draw_heads(
    page: Page,
    comparison: HeadComparison,
    profiles: Sequence[HeadProfile],
    patterns: Patterns,
    top: float,
    bottom: float | None,
) -> float:
    """Draw the cards of heads, two beside each other on a wide page; return their lower end.

    A single card has its chart at the left and its example at the right.
    """
    is_wide = page.width >= COLUMN
    gap = page.letters(4)
    width = (page.width - 2 * page.margin - gap * is_wide) / (2 if is_wide else 1)
    lefts = [page.margin, page.margin + width + gap] if is_wide else [page.margin]
    for first in range(0, len(profiles), len(lefts)):
        row = profiles[first : first + len(lefts)]
        ends = []
        for profile, left in zip(row, lefts, strict=False):
            end = _draw_evidence(
                page, comparison, profile, left, top, width, named=len(profiles) > 1
            )
            ends.append(end)
            if profile.roles:
                card = clearest_card(profile, comparison)
                shown = replace(_shown_role(card, patterns.get(card.key)), title="")
                place, start = left, end + page.letters(1)
                if is_wide and len(profiles) == 1:
                    place, start = lefts[1], top
                start = _write_example(page, shown, place, start, width)
                height = 0.75 * width if bottom is None else bottom - start
                ends.append(_draw_pattern(page, shown, place, start, width, height))
        top = max(ends) + page.letters(3)
    return top - page.letters(3)


def _draw_evidence(
    page: Page,
    comparison: HeadComparison,
    profile: HeadProfile,
    left: float,
    top: float,
    width: float,
    *,
    named: bool,
) -> float:
    """Chart the clearest role of a head against what it must exceed, and name its other roles; return the lower end."""
    if named:
        heading = page.lines([words.describe(profile)], width, size=1.2 * page.size, most=2)
        top = page.write(heading, top, left) + page.letters(0.8)
    if not profile.roles:
        texts = page.lines([words.closest_roles(comparison, profile)], width)
        return page.write(texts, top, left)
    role, *others = profile.roles
    bars = [(_("this head"), role.score, role.low, role.high)]
    for control in role.controls:
        if control.rules_out:
            about = CONTROLS[control.name].describe(control)
            bars.append((about, control.value, control.low, control.high))
    start = top
    for number, (about, value, low, high) in enumerate(bars):
        text = f"{words.with_interval(value, low, high)}  {about}"
        top = page.write(page.lines([text], width, is_quiet=number > 0, most=2), top, left)
        colour = page.theme.ink if number == 0 else page.theme.quiet
        fill = role.rule.colour if number == 0 else page.theme.frame
        middle, thick = top + page.letters(0.5), page.letters(0.7)
        page.box(
            left, middle - thick / 2, width * _share(value), thick, facecolor=fill, linewidth=0
        )
        first, last = left + width * _share(low), left + width * _share(high)
        page.ax.hlines([middle], first, last, color=colour, linewidth=1.2)
        top += page.letters(1.6)
    threshold = left + width * role.rule.threshold
    style: dict[str, Any] = {"color": page.theme.quiet, "linewidth": 0.8, "linestyles": "dotted"}
    page.ax.vlines([threshold], start, top, **style)
    page.ax.hlines([top], left, left + width, color=page.theme.frame, linewidth=0.6)
    least = _("threshold {value}").format(value=words.rounded(role.rule.threshold))
    page.text(
        threshold, top + page.letters(0.9), visible(least), ha="center", color=page.theme.quiet
    )
    top += page.letters(2.4)
    notes = [words.how_sure(role)] if role.doubt is not None else []
    notes += [words.role_score(other) for other in others]
    return page.write(page.lines(notes, width, is_quiet=True, most=2), top, left)


def _share(value: float) -> float:
    """Return a value as a share of the width of a chart from 0 to 1; 0 for NaN."""
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0
