"""Pictures of heads: the map of their roles with the table of these roles, and the card of a head.

All is drawn on one Axes whose unit is an inch, from the upper left corner of the page, so that the height of a sheet
follows from what stands on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.attention import Attention
from attnviz.heads import tables, words
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.selection import (
    Cells,
    RoleCard,
    clearest_card,
    link_words,
    linked_cells,
    received_by_words,
    strongest,
    strongest_links,
)
from attnviz.heads.settings import Place
from attnviz.look import Look
from attnviz.render.columns import Column
from attnviz.render.fonts import typefaces_for
from attnviz.render.palette import levels, rgb_of, text_colours
from attnviz.render.picture import (
    POINT,
    Line,
    Picture,
    Style,
    break_lines,
    height_of,
    length_of,
    missing_line,
    new_figure,
    settings,
    style_of,
)
from attnviz.render.theme import Theme, theme_of
from attnviz.text.display import clip, visible
from attnviz.text.messages import N_, _

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, CARD_WIDTH = 13.0, 9.0  # of a sheet, and of one with a single head, in inches; at least
NARROW = 7.0  # a narrower picture, such as one for a paper, has its parts below one another
LARGEST_LETTERS, NARROW_LETTERS = 10.5, 6.0  # points; titles are larger
# Lengths in sizes of letters.
ROW = 2.0  # height of a row of a table
CODE, BETWEEN = 4.6, 1.6  # width of a swatch with a code, distance of columns
BESIDE, ABOVE = 3.6, 3.4  # room for the numbers of layers and of heads
GAP = 4.0  # between a map and the table beside it
CELL = (4.6, 9.0, 4.2)  # least and largest width, and largest height, of a cell on a sheet
# Characters of a token beside a pattern, of a word in a map, and of a cell of a table.
LABEL, WORD, LONGEST_CELL, LONGEST_ON_SLIDE = 11, 12, 48, 24
ACROSS = 4  # examples in a row
MOST_CHANGED = 12  # heads in the table of those that differ most from a second model
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
    bottom: float | None  # the lower end of the room on a slide; None if the page may grow

    @property
    def inner(self) -> float:
        """The width between the margins."""
        return self.width - 2 * self.margin

    def letters(self, n: float) -> float:
        """Return the length of n sizes of letters, in inches."""
        return n * self.size * POINT

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """Write a text; by default in the usual letters and left-aligned."""
        usual: dict[str, Any] = {"fontsize": self.size, "va": "center"}
        # Texts of an Axes also get a clip path, which takes time.
        self.ax.figure.text(x, y, text, transform=self.ax.transData, **(usual | style))

    def write(self, lines: Iterable[Line], left: float, top: float) -> float:
        """Write lines below one another; return their lower end."""
        for line in lines:
            colour = self.theme.quiet if line.is_quiet else self.theme.ink
            self.text(left, top, line.text, va="top", fontsize=line.size, color=colour)
            top += line.height
        return top

    def paragraph(
        self, texts: Iterable[str], left: float, top: float, width: float, **options: Any
    ) -> float:
        """Write texts in lines of at most this width; return their lower end."""
        size = options.pop("size", 1.0) * self.size
        return self.write(break_lines(map(visible, texts), width, size, **options), left, top)

    def box(self, x: float, y: float, width: float, height: float, **style: Any) -> None:
        """Draw a rectangle."""
        from matplotlib.patches import Rectangle

        self.ax.add_patch(Rectangle((x, y), width, height, **style))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadMap:
    """A map of heads with a colour and a label for each, and a table."""

    colours: np.ndarray  # [layer, head, rgb]
    labels: np.ndarray  # [layer, head]: a text, which may have several lines
    columns: Sequence[Column] = ()

    @property
    def longest(self) -> float:
        """The length of the longest line of a label, in sizes of its letters; at least 1."""
        lines = [line for label in self.labels.flat for line in str(label).split("\n")]
        return max([1.0, *map(length_of, lines)])


def draw(comparison: HeadComparison, look: Look, heads: Sequence[Place] = ()) -> Picture:
    """Draw a comparison, or the cards of some heads; of one sentence, what each head attends to in it.

    A slide or a narrow column has only the map and the roles. Raises SelectionError: there is no such head, or a
    pattern lacks a head.
    """
    style, theme = style_of(look), theme_of(look.theme)
    profiles = [comparison.head(place) for place in heads]
    maps = [] if heads else _maps(comparison, style, theme)
    title = _title(comparison, profiles)
    notes = _notes(comparison, profiles, style.caption)
    if profiles and comparison.patterns and style.caption == "all":
        notes.insert(1, _(PATTERN))
    typefaces = typefaces_for([title, *notes, *_texts(comparison, maps)])
    is_narrow = style.width is not None and style.width < NARROW
    size = min(style.letters, NARROW_LETTERS if is_narrow else LARGEST_LETTERS)
    width = style.width or _sheet_width(maps, profiles, size, style.margin)
    with settings(style, theme, typefaces):
        figure = new_figure(width, style.height or 1.0)
        ax = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(style.height or 1.0, 0))
        ax.set_axis_off()
        inner = width - 2 * style.margin
        foot = break_lines(map(visible, notes), inner, size, is_quiet=True)
        foot += missing_line(typefaces, style, inner)
        foot_top = (style.height or 0.0) - height_of(foot) - style.margin
        page = Page(
            ax=ax,
            theme=theme,
            width=width,
            margin=style.margin,
            size=size,
            least=style.least,
            bottom=foot_top - size * POINT if style.height else None,
        )
        top = page.margin
        if style.has_title:
            top = page.paragraph([title], top, top, inner, size=1.4 * style.letters / size, most=3)
            about = [_about(comparison, is_brief=style.height is not None or len(heads) == 1)]
            top = page.paragraph(about, page.margin, top, inner, is_quiet=True, most=2)
            top += page.letters(1.5)
        for head_map in maps:
            top = _draw_map_and_table(page, head_map, top) + page.letters(2.5)
        if profiles:
            top = _draw_heads(page, comparison, profiles, top)
        elif style.height is None and width >= NARROW:
            top = _draw_examples(page, comparison, top)
        if style.height is None:
            height = page.write(foot, page.margin, top) + style.margin
            figure.set_size_inches(width, height)
            ax.set_ylim(height, 0)
        else:
            page.write(foot, page.margin, foot_top)
    return Picture(
        figure=figure,
        title=f"{title}: {visible(words.model_names(comparison))}",
        description=f"{words.sample(comparison)}; {words.proof(comparison)}",
        style=style,
        theme=theme,
        typefaces=typefaces,
    )


def _sheet_width(
    maps: Sequence[HeadMap], profiles: Sequence[HeadProfile], size: float, margin: float
) -> float:
    """Return the width of a sheet: all labels of its maps fit."""
    if profiles:
        return CARD_WIDTH if len(profiles) == 1 else WIDTH
    letters = [BESIDE + item.labels.shape[1] * max(CELL[0], item.longest + 1) for item in maps]
    return max([WIDTH, *(2 * margin + float(n) * size * POINT for n in letters)])


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


def _about(comparison: HeadComparison, *, is_brief: bool) -> str:
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
    if not profiles and comparison.attention is None:
        notes.append(words.signs(comparison))
    if not profiles and comparison.against is not None:
        notes.append(_(words.DIVERGENCE))
    if any(role.narrow for head in heads for role in head.roles):
        notes.append(_(words.TOO_NARROW))
    return [*notes, _(words.NOT_EXPLANATION)]


def _texts(comparison: HeadComparison, maps: Sequence[HeadMap]) -> Iterable[str]:
    """Return the other texts that a picture may have, to choose fonts."""
    yield from (_about(comparison, is_brief=False), _(PATTERN), "√→–·≤…“”")
    for item in maps:
        yield from (*item.labels.flat, *(cell for column in item.columns for cell in column.cells))
    cards = strongest(comparison)
    cards += [clearest_card(head, comparison) for head in comparison.heads if head.roles]
    yield from {card.example.text for card in cards if card.example is not None}
    for record in (*comparison.patterns.values(), *filter(None, [comparison.attention])):
        yield from {token.text for token in (*record.query_tokens, *record.key_tokens)}
    yield from (words.role_score(role) for head in comparison.heads for role in head.roles)


# The map and the table.


def _maps(comparison: HeadComparison, style: Style, theme: Theme) -> list[HeadMap]:
    """Return the maps of a picture: of roles, of the words of one sentence, or of the change from a second model."""
    record = comparison.attention
    if record is not None:
        return [_map_of_words(record, theme, is_slide=style.height is not None)]
    maps = [_map_of_roles(comparison, theme)]
    if comparison.against is not None and (style.width or WIDTH) >= NARROW:
        changes = _map_of_changes(comparison, theme)
        maps = [changes] if style.height is not None else [changes, *maps]
    return maps


def _map_of_roles(comparison: HeadComparison, theme: Theme) -> HeadMap:
    """Return the map of the clearest established role of each head."""
    roles = [
        next((role for role in head.roles if role.established), None) for head in comparison.heads
    ]
    shape = comparison.n_layers, comparison.n_heads
    colours = np.array([rgb_of(role.rule.colour if role else theme.shade) for role in roles])
    labels = [tables.map_code(head).replace("+", "\n+") for head in comparison.heads]
    return HeadMap(
        colours=colours.reshape(*shape, 3),
        labels=np.array(labels).reshape(shape),
        columns=tables.overview_table(comparison)[0],
    )


def _map_of_words(record: Attention, theme: Theme, *, is_slide: bool) -> HeadMap:
    """Return the map of the word that receives most attention from each head, in the colour of its share."""
    received = received_by_words(record)
    texts = [clip(visible(token.text), 8 if is_slide else WORD) for token in record.key_tokens]
    colours = theme.pixels(received.max(axis=2), 1.0, theme.colours())
    columns = tables.link_table(record) if is_slide else []
    return HeadMap(
        colours=colours, labels=np.array(texts)[received.argmax(axis=2)], columns=columns
    )


def _map_of_changes(comparison: HeadComparison, theme: Theme) -> HeadMap:
    """Return the map of the divergence of each head from the second model; the largest is darkest."""
    values = np.array([head.change.divergence for head in comparison.heads if head.change])
    largest = max(float(np.nanmax(values, initial=0.0)), 1e-9)  # no division by 0
    labels = ["" if math.isnan(value) else f"{value:.2f}"[1:] for value in values]
    shape = comparison.n_layers, comparison.n_heads
    return HeadMap(
        colours=theme.colours()[levels(np.nan_to_num(values), largest)].reshape(*shape, 3),
        labels=np.array(labels).reshape(shape),
        columns=tables.change_table(comparison, MOST_CHANGED),
    )


def _draw_map_and_table(page: Page, head_map: HeadMap, top: float) -> float:
    """Draw a map, and its table beside it or, where there is no room, below it; return their lower end."""
    n_layers, n_heads = head_map.labels.shape
    longest = LONGEST_CELL if page.bottom is None else LONGEST_ON_SLIDE
    columns = [
        replace(column, cells=[clip(visible(cell), longest) for cell in column.cells])
        for column in head_map.columns
    ]
    room = page.inner - page.letters(BESIDE)
    if page.bottom is not None:
        columns = _fitting(page, columns, 0.45 * page.inner)
    beside = _table_width(page, columns) + page.letters(GAP)
    least = n_heads * page.letters(max(CELL[0], head_map.longest + 1))
    is_beside = bool(columns) and (page.bottom is not None or least <= room - beside)
    width = (room - beside * is_beside) / n_heads
    if page.bottom is None:
        width = min(width, page.letters(CELL[1]))
        height = min(0.8 * width, page.letters(CELL[2]))
    else:
        height = min(1.6 * width, (page.bottom - top - page.letters(ABOVE)) / n_layers)
    end = _draw_map(page, head_map, top, (width, height))
    if not columns or not columns[0].cells:
        return end
    left, table_top = page.margin, end + page.letters(1)
    if is_beside:
        left, table_top = left + page.letters(BESIDE + GAP) + n_heads * width, top
    return max(end, _draw_table(page, _fitting(page, columns, page.width - left), left, table_top))


def _draw_map(page: Page, head_map: HeadMap, top: float, cell: tuple[float, float]) -> float:
    """Draw a map, with its labels if all of them fit in letters that can be read; return its lower end."""
    (n_layers, n_heads), (width, height) = head_map.labels.shape, cell
    left, top = page.margin + page.letters(BESIDE), top + page.letters(ABOVE)
    right, end = left + n_heads * width, top + n_layers * height
    page.ax.imshow(
        head_map.colours, extent=(left, right, end, top), aspect="auto", interpolation="none"
    )
    gap: dict[str, Any] = {"color": page.theme.paper, "linewidth": min(1.2, 0.05 * height / POINT)}
    page.ax.hlines([top + n * height for n in range(1, n_layers)], left, right, **gap)
    page.ax.vlines([left + n * width for n in range(1, n_heads)], top, end, **gap)
    n_lines = 1 + max(label.count("\n") for label in head_map.labels.flat)
    fitting = 0.92 * width / head_map.longest, height / (1.25 * n_lines)
    size = min(1.2 * page.size, min(fitting) / POINT)
    inks = text_colours(head_map.colours)
    xs = [left + (head + 0.5) * width for head in range(n_heads)]
    ys = [top + (layer + 0.5) * height for layer in range(n_layers)]
    without = np.argwhere(head_map.labels == tables.NO_LABEL)
    dots: dict[str, Any] = {"color": page.theme.ink, "markersize": 1.2, "markeredgewidth": 0}
    page.ax.plot(
        [xs[head] for _layer, head in without], [ys[layer] for layer, _head in without], "o", **dots
    )
    for (layer, head), label in np.ndenumerate(head_map.labels) if size >= page.least else ():
        if label != tables.NO_LABEL:
            look = {"color": inks[layer, head], "fontsize": size, "linespacing": 1.1}
            page.text(xs[head], ys[layer], label, ha="center", **look)
    step = max(1, math.ceil(page.letters(1.8) / width))
    for head in range(0, n_heads, step):
        page.text(xs[head], top - page.letters(0.9), str(head), ha="center")
    for layer in range(0, n_layers, max(1, math.ceil(page.letters(1.2) / height))):
        page.text(left - page.letters(0.6), ys[layer], str(layer), ha="right")
    quiet = page.theme.quiet
    page.text(left, top - page.letters(2.4), visible(_("head, counted from 0")), color=quiet)
    text = visible(_("layer"))
    style = {"rotation": 90 if len(text) > 1 else 0, "va": "top", "ha": "center", "color": quiet}
    page.text(left - page.letters(BESIDE - 0.7), top, text, **style)
    return float(end)


def _column_width(page: Page, column: Column) -> float:
    """Return the width of a column; one of roles without a title has their codes in swatches."""
    if _is_of_codes(column):
        return page.letters(CODE)
    return page.letters(max(map(length_of, (column.title, *column.cells))))


def _is_of_codes(column: Column) -> bool:
    return not column.title and bool(column.roles)


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


def _draw_table(page: Page, columns: Sequence[Column], left: float, top: float) -> float:
    """Draw a table with as many rows as there is room for, and say how many more there are; return its lower end."""
    row, n_rows = page.letters(ROW), len(columns[0].cells)
    n_shown = n_rows
    if page.bottom is not None and top + (n_rows + 1) * row > page.bottom + page.letters(1):
        n_shown = max(1, int((page.bottom - top) / row) - 2)
        text = visible(_("and {n} more: --style sheet").format(n=n_rows - n_shown))
        page.text(left, top + (n_shown + 1.5) * row, text, color=page.theme.quiet)
    for column in columns:
        width = _column_width(page, column)
        x, ha = (left + width, "right") if column.right else (left, "left")
        page.text(x, top + 0.5 * row, column.title, ha=ha, color=page.theme.quiet)
        for number, text in enumerate(column.cells[:n_shown]):
            middle = top + (number + 1.5) * row
            if _is_of_codes(column):
                _draw_swatch(page, column.roles[number].rule.colour, left, middle, text)
            else:
                page.text(x, middle, text, ha=ha)
        left += width + page.letters(BETWEEN)
    return top + row * (n_shown + 1)


def _draw_swatch(page: Page, colour: str, x: float, middle: float, code: str) -> None:
    """Draw a small box in the colour of a role, with its code."""
    width, height = page.letters(CODE), page.letters(1.5)
    page.box(x, middle - height / 2, width, height, facecolor=colour, linewidth=0)
    size = page.size * min(1.0, 0.9 * CODE / length_of(code))
    ink = str(text_colours(rgb_of(colour)))
    page.text(x + width / 2, middle, code, ha="center", color=ink, fontsize=size)


# Examples and cards.


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A role or a link of a head, with the head's weights on a sentence."""

    title: str
    role: Role | None = None
    sentence: str = ""
    links: str = ""
    record: Attention | None = None  # of this head alone; None if its weights are not known
    cells: Sequence[Cells] = ()  # outlined


def _shown_role(card: RoleCard, comparison: HeadComparison) -> Shown:
    """Return what is shown of a role: a sentence, and the weights with the cells of its relation outlined."""
    title = f"{card.head.name} · {words.role_name(card.role)} {words.rounded(card.role.score)}"
    record = comparison.patterns.get(card.key)
    if card.example is None:
        return Shown(title=title, role=card.role)
    sentence = f"“{card.example.text}”"
    if record is None:
        return Shown(title=title, role=card.role, sentence=sentence)
    links = link_words(card.example)
    return Shown(
        title=title,
        role=card.role,
        sentence=sentence,
        links=_("Outlined: {links}").format(links=links) if links else "",
        record=record.select([card.head.layer], [card.head.head]),
        cells=linked_cells(card.example, record),
    )


def _shown_links(record: Attention) -> list[Shown]:
    """Return the strongest links of a sentence, each outlined in the pattern of its head."""
    shown = []
    for link in strongest_links(record):
        title = _("Layer {layer}, head {head}").format(layer=link.layer, head=link.head)
        shown.append(
            Shown(
                title=title,
                links=f"{link.words} {words.rounded(link.weight)}",
                record=record.select([link.layer], [link.head]),
                cells=[(link.row, link.row + 1, link.column, link.column + 1)],
            )
        )
    return shown


def _draw_examples(page: Page, comparison: HeadComparison, top: float) -> float:
    """Draw an example of each of the clearest roles, or the strongest links of one sentence; return the lower end."""
    record = comparison.attention
    if record is not None:
        title = _("The strongest links between words, each of another head.")
        examples = _shown_links(record)
    else:
        title = _("A typical example of the clearest roles.")
        examples = [_shown_role(card, comparison) for card in strongest(comparison)]
    if any(shown.record for shown in examples):
        title = f"{title} {_(PATTERN)}"
    if not examples:
        return top
    top = page.paragraph([title], page.margin, top, page.inner, size=1.1, most=2)
    top += page.letters(1)
    gap = page.letters(3)
    width = (page.inner - (ACROSS - 1) * gap) / ACROSS
    for first in range(0, len(examples), ACROSS):
        row = [
            (shown, page.margin + n * (width + gap))
            for n, shown in enumerate(examples[first : first + ACROSS])
        ]
        top = max(_write_example(page, shown, left, top, width) for shown, left in row)
        top = max(_draw_pattern(page, shown, left, top, width, width) for shown, left in row)
        top += page.letters(2.5)
    return top


def _write_example(page: Page, shown: Shown, left: float, top: float, width: float) -> float:
    """Write the title of an example and its texts; return their lower end."""
    inset = 0.0
    if shown.role is not None and shown.title:
        code, colour = tables.code(shown.role), shown.role.rule.colour
        _draw_swatch(page, colour, left, top + page.letters(0.7), code)
        inset = page.letters(CODE + 0.8)
    if shown.title:
        top = page.paragraph([shown.title], left + inset, top, width - inset, most=2)
        top += page.letters(0.4)
    top = page.paragraph([shown.sentence], left, top, width, is_quiet=True, most=2)
    top = page.paragraph([shown.links], left, top, width, most=2)
    return top + page.letters(0.6)


def _draw_pattern(
    page: Page, shown: Shown, left: float, top: float, width: float, height: float
) -> float:
    """Draw the weights of an example with their tokens, outlined cells in the accent colour; return the lower end."""
    if shown.record is None:
        return top
    weights = shown.record.weights[0, 0]
    queries, keys = (
        [clip(token.text, LABEL) for token in tokens]
        for tokens in (shown.record.query_tokens, shown.record.key_tokens)
    )
    beside, above = (page.letters(max(map(length_of, labels)) + 0.6) for labels in (queries, keys))
    rows, columns = weights.shape
    cell = min((width - beside) / columns, (height - above) / rows, page.letters(2.4))
    cell = max(cell, 0.01)
    x, y = left + beside, top + above
    right, end = x + cell * columns, y + cell * rows
    pixels = page.theme.pixels(weights, 1.0, page.theme.colours())
    page.ax.imshow(pixels, extent=(x, right, end, y), aspect="auto", interpolation="none")
    frame = {"fill": False, "edgecolor": page.theme.frame, "linewidth": 0.6}
    page.box(x, y, right - x, end - y, **frame)
    size = min(page.size, max(page.least, cell / POINT / 1.15))
    step = math.ceil(size * 1.15 * POINT / cell - 0.01)  # every n-th token has a label
    for n in range(0, rows, step):
        place = x - page.letters(0.4), y + (n + 0.5) * cell
        page.text(*place, queries[n], ha="right", fontsize=size)
    for n in range(0, columns, step):
        place = x + (n + 0.5) * cell, y - page.letters(0.4)
        page.text(*place, keys[n], rotation=90, ha="center", va="bottom", fontsize=size)
    outline: dict[str, Any] = {"fill": False, "edgecolor": page.theme.accent, "linewidth": 1.5}
    for first_row, last_row, first_column, last_column in shown.cells:
        corner = x + first_column * cell, y + first_row * cell
        sides = (last_column - first_column) * cell, (last_row - first_row) * cell
        page.box(*corner, *sides, **outline)
    return float(end)


def _draw_heads(
    page: Page,
    comparison: HeadComparison,
    profiles: Sequence[HeadProfile],
    top: float,
) -> float:
    """Draw the cards of heads, two beside each other on a wide page; return their lower end.

    A single card has its chart at the left and its example at the right.
    """
    n_across = 2 if page.width >= NARROW else 1
    gap = page.letters(4)
    width = (page.inner - gap * (n_across - 1)) / n_across
    for first in range(0, len(profiles), n_across):
        ends = []
        for number, profile in enumerate(profiles[first : first + n_across]):
            left, start = page.margin + number * (width + gap), top
            if len(profiles) > 1:
                heading = [words.describe(profile)]
                start = page.paragraph(heading, left, start, width, size=1.2, most=2)
                start += page.letters(0.8)
            end = _draw_evidence(page, comparison, profile, left, start, width)
            ends.append(end)
            if not profile.roles:
                continue
            card = clearest_card(profile, comparison)
            shown = replace(_shown_role(card, comparison), title="")
            start = end + page.letters(1)
            if len(profiles) == 1 and n_across == 2:
                left, start = left + width + gap, top
            start = _write_example(page, shown, left, start, width)
            height = width if page.bottom is None else page.bottom - start
            ends.append(_draw_pattern(page, shown, left, start, width, height))
        top = max(ends) + page.letters(2.5)
    return top


def _draw_evidence(
    page: Page,
    comparison: HeadComparison,
    profile: HeadProfile,
    left: float,
    top: float,
    width: float,
) -> float:
    """Chart the clearest role of a head beside its controls, and name its other roles; return the lower end."""
    if not profile.roles:
        return page.paragraph([words.closest_roles(comparison, profile)], left, top, width)
    role, *others = profile.roles
    thick, threshold = page.letters(0.7), left + width * role.rule.threshold
    accent: dict[str, Any] = {"color": page.theme.accent}
    for number, (about, value, low, high) in enumerate(tables.evidence(role)):
        text = f"{words.with_interval(value, low, high)}  {about}"
        top = page.paragraph([text], left, top, width, is_quiet=number > 0, most=2)
        colour = page.theme.ink if number == 0 else page.theme.quiet
        fill = role.rule.colour if number == 0 else page.theme.frame
        middle = top + page.letters(0.5)
        length = width * _share(value)
        page.box(left, middle - thick / 2, length, thick, facecolor=fill, linewidth=0)
        ends = left + width * _share(low), left + width * _share(high)
        page.ax.hlines([middle], *ends, color=colour, linewidth=1.2)
        page.ax.vlines([threshold], middle - thick, middle + thick, linewidth=1.2, **accent)
        top += page.letters(1.6)
    page.ax.hlines([top], left, left + width, color=page.theme.frame, linewidth=0.6)
    least = _("threshold {value}").format(value=words.rounded(role.rule.threshold))
    page.text(threshold, top + page.letters(0.9), visible(least), ha="center", **accent)
    notes = [words.not_established(role)] if role.doubt is not None else []
    notes += [words.role_score(other) for other in others]
    return page.paragraph(notes, left, top + page.letters(2.4), width, is_quiet=True, most=2)


def _share(value: float) -> float:
    """Return a value as a share of the width of a chart from 0 to 1; 0 for NaN."""
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0
