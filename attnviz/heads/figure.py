"""Pictures of heads: the map of their roles with the table of these roles, and the card of a head.

All is drawn on one Axes whose unit is an inch, from the upper left corner of the page, so that the height of a sheet
follows from what stands on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.attention import Attention
from attnviz.heads import tables, words
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.selection import (
    Cells,
    RoleCard,
    WordLink,
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
NARROW = 6.5  # inches; a narrower picture, such as one for a paper, has its parts below one another
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


@dataclass(slots=True, kw_only=True)
class Page:
    """A column of a page, drawn from top to bottom; all positions are inches from the upper left corner of the page."""

    ax: Axes
    theme: Theme
    left: float
    width: float
    top: float  # where the next part begins: it moves down as the page is drawn
    size: float  # of letters, in points
    least: float
    bottom: float | None = None  # the lower end of the room on a slide; None if the page may grow

    def letters(self, n: float) -> float:
        """Return the length of n sizes of letters, in inches."""
        return n * self.size * POINT

    def skip(self, n: float) -> None:
        """Leave a gap of n sizes of letters."""
        self.top += self.letters(n)

    def right_of(self, left: float) -> Page:
        """Return the rest of the page that begins at `left`."""
        return replace(self, left=left, width=self.left + self.width - left)

    def columns(self, n: int, gap: float) -> list[Page]:
        """Return n columns of equal width, which begin here, with gaps in sizes of letters."""
        width = (self.width - (n - 1) * self.letters(gap)) / n
        lefts = [self.left + number * (width + self.letters(gap)) for number in range(n)]
        return [replace(self, left=left, width=width) for left in lefts]

    def text(self, x: Any, y: Any, text: str, **style: Any) -> None:
        """Write a text; by default in the usual letters and left-aligned."""
        usual: dict[str, Any] = {"fontsize": self.size, "va": "center"}
        # Texts of an Axes also get a clip path, which takes time.
        self.ax.figure.text(x, y, text, transform=self.ax.transData, **(usual | style))

    def write(self, lines: Iterable[Line]) -> None:
        """Write lines below one another."""
        for line in lines:
            colour = self.theme.quiet if line.is_quiet else self.theme.ink
            self.text(self.left, self.top, line.text, va="top", fontsize=line.size, color=colour)
            self.top += line.height

    def paragraph(self, *texts: str, size: float = 1.0, **options: Any) -> None:
        """Write texts in lines of at most this width."""
        self.write(break_lines(map(visible, texts), self.width, size * self.size, **options))

    def image(self, pixels: np.ndarray, x: float, y: float, width: float, height: float) -> None:
        """Draw an image whose pixels are cells."""
        extent = x, x + width, y + height, y
        self.ax.imshow(pixels, extent=extent, aspect="auto", interpolation="none")

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
        page = Page(
            ax=ax,
            theme=theme,
            left=style.margin,
            width=inner,
            top=style.margin,
            size=size,
            least=style.least,
        )
        if style.height is not None:
            foot_top = style.height - height_of(foot) - style.margin
            page.bottom = foot_top - page.letters(1)
        if style.has_title:
            page.paragraph(title, size=1.4 * style.letters / size, most=3)
            about = _about(comparison, is_brief=style.height is not None or len(heads) == 1)
            page.paragraph(about, is_quiet=True, most=2)
            page.skip(1.5)
        for head_map in maps:
            _draw_map_and_table(page, head_map)
            page.skip(2.5)
        if profiles:
            _draw_heads(page, comparison, profiles)
        elif style.height is None and width >= NARROW:
            _draw_examples(page, comparison)
        if style.height is not None:
            page.top = foot_top
        page.write(foot)
        if style.height is None:
            figure.set_size_inches(width, page.top + style.margin)
            ax.set_ylim(page.top + style.margin, 0)
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
    roles = [next(iter(head.established), None) for head in comparison.heads]
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


def _draw_map_and_table(page: Page, head_map: HeadMap) -> None:
    """Draw a map, and its table beside it or, where there is no room, below it."""
    n_layers, n_heads = head_map.labels.shape
    longest = LONGEST_CELL if page.bottom is None else LONGEST_ON_SLIDE
    columns = [
        replace(column, cells=[clip(visible(cell), longest) for cell in column.cells])
        for column in head_map.columns
    ]
    room = page.width - page.letters(BESIDE)
    if page.bottom is not None:
        columns = _fitting(page, columns, 0.45 * page.width)
    beside = _table_width(page, columns) + page.letters(GAP)
    least = n_heads * page.letters(max(CELL[0], head_map.longest + 1))
    is_beside = bool(columns) and (page.bottom is not None or least <= room - beside)
    width = (room - beside * is_beside) / n_heads
    if page.bottom is None:
        width = min(width, page.letters(CELL[1]))
        height = min(0.8 * width, page.letters(CELL[2]))
    else:
        height = min(1.6 * width, (page.bottom - page.top - page.letters(ABOVE)) / n_layers)
    right = page.right_of(page.left + page.letters(BESIDE + GAP) + n_heads * width)
    _draw_map(page, head_map, width, height)
    if columns and columns[0].cells:
        if is_beside:
            _draw_table(right, columns)
            page.top = max(page.top, right.top)
        else:
            page.skip(1)
            _draw_table(page, _fitting(page, columns, page.width))


def _draw_map(page: Page, head_map: HeadMap, width: float, height: float) -> None:
    """Draw a map of cells of this size, with its labels if all of them fit in letters that can be read."""
    n_layers, n_heads = head_map.labels.shape
    left, top = page.left + page.letters(BESIDE), page.top + page.letters(ABOVE)
    right, page.top = left + n_heads * width, top + n_layers * height
    page.image(head_map.colours, left, top, n_heads * width, n_layers * height)
    xs = left + width * (np.arange(n_heads) + 0.5)
    ys = top + height * (np.arange(n_layers) + 0.5)
    gap: dict[str, Any] = {"color": page.theme.paper, "linewidth": min(1.2, 0.05 * height / POINT)}
    page.ax.hlines(ys[1:] - height / 2, left, right, **gap)
    page.ax.vlines(xs[1:] - width / 2, top, page.top, **gap)
    layers, heads = np.nonzero(head_map.labels == tables.NO_LABEL)
    dots: dict[str, Any] = {"color": page.theme.ink, "markersize": 1.2, "markeredgewidth": 0}
    page.ax.plot(xs[heads], ys[layers], "o", **dots)
    n_lines = 1 + max(label.count("\n") for label in head_map.labels.flat)
    fitting = 0.92 * width / head_map.longest, height / (1.25 * n_lines)
    size = min(1.2 * page.size, min(fitting) / POINT)
    inks = text_colours(head_map.colours)
    for (layer, head), label in np.ndenumerate(head_map.labels) if size >= page.least else ():
        if label != tables.NO_LABEL:
            look = {"color": inks[layer, head], "fontsize": size, "linespacing": 1.1}
            page.text(xs[head], ys[layer], label, ha="center", **look)
    for head in range(0, n_heads, math.ceil(page.letters(1.8) / width)):
        page.text(xs[head], top - page.letters(0.9), str(head), ha="center")
    for layer in range(0, n_layers, math.ceil(page.letters(1.2) / height)):
        page.text(left - page.letters(0.6), ys[layer], str(layer), ha="right")
    quiet = page.theme.quiet
    page.text(left, top - page.letters(2.4), visible(_("head, counted from 0")), color=quiet)
    text = visible(_("layer"))
    style = {"rotation": 90 if len(text) > 1 else 0, "va": "top", "ha": "center", "color": quiet}
    page.text(left - page.letters(BESIDE - 0.7), top, text, **style)


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


def _draw_table(page: Page, columns: Sequence[Column]) -> None:
    """Draw a table with as many rows as there is room for, and say how many more there are."""
    row, n_rows = page.letters(ROW), len(columns[0].cells)
    n_shown = n_rows
    if page.bottom is not None and page.top + (n_rows + 1) * row > page.bottom + page.letters(1):
        n_shown = max(1, int((page.bottom - page.top) / row) - 2)
        text = visible(_("and {n} more: --style sheet").format(n=n_rows - n_shown))
        middle = page.top + (n_shown + 1.5) * row
        page.text(page.left, middle, text, color=page.theme.quiet)
    left = page.left
    for column in columns:
        width = _column_width(page, column)
        x, ha = (left + width, "right") if column.right else (left, "left")
        page.text(x, page.top + 0.5 * row, column.title, ha=ha, color=page.theme.quiet)
        for number, text in enumerate(column.cells[:n_shown]):
            middle = page.top + (number + 1.5) * row
            if _is_of_codes(column):
                _draw_swatch(page, column.roles[number], left, middle)
            else:
                page.text(x, middle, text, ha=ha)
        left += width + page.letters(BETWEEN)
    page.top += row * (n_shown + 1)


def _draw_swatch(page: Page, role: Role, x: float, middle: float) -> None:
    """Draw a small box in the colour of a role, with its code."""
    code, colour = tables.code(role), role.rule.colour
    width, height = page.letters(CODE), page.letters(1.5)
    page.box(x, middle - height / 2, width, height, facecolor=colour, linewidth=0)
    size = page.size * min(1.0, 0.9 * CODE / length_of(code))
    ink = str(text_colours(rgb_of(colour)))
    page.text(x + width / 2, middle, code, ha="center", color=ink, fontsize=size)


# Examples and cards.


def _draw_examples(page: Page, comparison: HeadComparison) -> None:
    """Draw an example of each of the clearest roles, or the strongest links of one sentence."""
    record = comparison.attention
    if record is not None:
        title = _("The strongest links between words, each of another head.")
        examples = [
            partial(_draw_link, record=record, link=link) for link in strongest_links(record)
        ]
        has_patterns = True
    else:
        title, cards = _("A typical example of the clearest roles."), strongest(comparison)
        examples = [partial(_draw_role, comparison=comparison, card=card) for card in cards]
        has_patterns = any(card.key in comparison.patterns for card in cards)
    if not examples:
        return
    page.paragraph(f"{title} {_(PATTERN)}" if has_patterns else title, size=1.1, most=2)
    page.skip(1)
    for first in range(0, len(examples), ACROSS):
        columns = page.columns(ACROSS, 3)
        for column, draw_example in zip(columns, examples[first : first + ACROSS], strict=False):
            draw_example(column)
        page.top = max(column.top for column in columns)
        page.skip(2.5)


def _draw_link(page: Page, record: Attention, link: WordLink) -> None:
    """Draw a link of one sentence, outlined in the pattern of its head."""
    title = _("Layer {layer}, head {head}").format(layer=link.layer, head=link.head)
    page.paragraph(title, f"{link.words} {words.rounded(link.weight)}", most=2)
    cell = link.row, link.row + 1, link.column, link.column + 1
    _draw_pattern(page, record, (link.layer, link.head), [cell])


def _draw_role(page: Page, comparison: HeadComparison, card: RoleCard) -> None:
    """Draw the role of a head with its example."""
    _draw_swatch(page, card.role, page.left, page.top + page.letters(0.7))
    beside = page.right_of(page.left + page.letters(CODE + 0.8))
    score = words.rounded(card.role.score)
    beside.paragraph(f"{card.head.name} · {words.role_name(card.role)} {score}", most=2)
    page.top = beside.top
    page.skip(0.4)
    _draw_example(page, comparison, card)


def _draw_example(page: Page, comparison: HeadComparison, card: RoleCard) -> None:
    """Draw the weights of a head on a typical sentence, with the cells of its relation outlined."""
    if card.example is None:
        return
    page.paragraph(f"“{card.example.text}”", is_quiet=True, most=2)
    record = comparison.patterns.get(card.key)
    if record is not None:
        if links := link_words(card.example):
            page.paragraph(_("Outlined: {links}").format(links=links), most=2)
        _draw_pattern(page, record, card.head.place, linked_cells(card.example, record))


def _draw_pattern(
    page: Page, record: Attention, place: tuple[int, int], outlined: Sequence[Cells]
) -> None:
    """Draw the weights of a head with their tokens, some cells outlined in the accent colour."""
    page.skip(0.6)
    weights = record.pattern(*place)
    queries, keys = (
        [clip(token.text, LABEL) for token in tokens]
        for tokens in (record.query_tokens, record.key_tokens)
    )
    beside, above = (page.letters(max(map(length_of, labels)) + 0.6) for labels in (queries, keys))
    rows, columns = weights.shape
    room = page.width if page.bottom is None else page.bottom - page.top
    cell = min((page.width - beside) / columns, (room - above) / rows, page.letters(2.4))
    cell = max(cell, 0.01)
    x, y, width, height = page.left + beside, page.top + above, columns * cell, rows * cell
    page.image(page.theme.pixels(weights, 1.0, page.theme.colours()), x, y, width, height)
    page.box(x, y, width, height, fill=False, edgecolor=page.theme.frame, linewidth=0.6)
    size = min(page.size, max(page.least, cell / POINT / 1.15))
    step = math.ceil(size * 1.15 * POINT / cell - 0.01)  # every n-th token has a label
    gap = page.letters(0.4)
    for n in range(0, rows, step):
        page.text(x - gap, y + (n + 0.5) * cell, queries[n], ha="right", fontsize=size)
    for n in range(0, columns, step):
        upright = {"rotation": 90, "ha": "center", "va": "bottom", "fontsize": size}
        page.text(x + (n + 0.5) * cell, y - gap, keys[n], **upright)
    for first_row, last_row, first_column, last_column in outlined:
        corner = x + first_column * cell, y + first_row * cell
        sides = (last_column - first_column) * cell, (last_row - first_row) * cell
        page.box(*corner, *sides, fill=False, edgecolor=page.theme.accent, linewidth=1.5)
    page.top = y + height


def _draw_heads(page: Page, comparison: HeadComparison, profiles: Sequence[HeadProfile]) -> None:
    """Draw the cards of heads, two beside each other on a wide page.

    A single card has its chart at the left and its example at the right.
    """
    n_across = 2 if page.width >= NARROW else 1
    for first in range(0, len(profiles), n_across):
        columns = page.columns(n_across, 4)
        for column, profile in zip(columns, profiles[first : first + n_across], strict=False):
            if len(profiles) > 1:
                column.paragraph(words.describe(profile), size=1.2, most=2)
                column.skip(0.8)
            _draw_evidence(column, comparison, profile)
            if profile.roles:
                is_alone = len(profiles) == 1 and n_across == 2
                example = columns[1] if is_alone else column
                if not is_alone:
                    example.skip(1)
                _draw_example(example, comparison, clearest_card(profile, comparison))
        page.top = max(column.top for column in columns)
        page.skip(2.5)


def _draw_evidence(page: Page, comparison: HeadComparison, profile: HeadProfile) -> None:
    """Chart the clearest role of a head beside its controls, and name its other roles."""
    if not profile.roles:
        page.paragraph(words.closest_roles(comparison, profile))
        return
    role, *others = profile.roles
    thick, threshold = page.letters(0.7), page.left + page.width * role.rule.threshold
    accent: dict[str, Any] = {"color": page.theme.accent}
    for number, (about, value, low, high) in enumerate(tables.evidence(role)):
        is_control = number > 0
        text = f"{words.with_interval(value, low, high)}  {about}"
        page.paragraph(text, is_quiet=is_control, most=2)
        middle = page.top + page.letters(0.5)
        fill = page.theme.frame if is_control else role.rule.colour
        end, *ends = (page.width * _share(number) for number in (value, low, high))
        page.box(page.left, middle - thick / 2, end, thick, facecolor=fill, linewidth=0)
        colour = page.theme.quiet if is_control else page.theme.ink
        first, last = (page.left + end for end in ends)
        page.ax.hlines([middle], first, last, color=colour, linewidth=1.2)
        page.ax.vlines([threshold], middle - thick, middle + thick, linewidth=1.2, **accent)
        page.skip(1.6)
    right = page.left + page.width
    page.ax.hlines([page.top], page.left, right, color=page.theme.frame, linewidth=0.6)
    least = _("threshold {value}").format(value=words.rounded(role.rule.threshold))
    page.text(threshold, page.top + page.letters(0.9), visible(least), ha="center", **accent)
    page.skip(2.4)
    notes = [words.not_established(role)] if role.doubt is not None else []
    notes += [words.role_score(other) for other in others]
    page.paragraph(*notes, is_quiet=True, most=2)


def _share(value: float) -> float:
    """Return a value as a share of the width of a chart from 0 to 1; 0 for NaN."""
    return min(1.0, max(0.0, value)) if math.isfinite(value) else 0.0
