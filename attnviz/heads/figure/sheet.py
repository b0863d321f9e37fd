"""The sheet of a comparison: heads by role, clusters, heads as points, each role's clearest head with its pattern."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from attnviz.attention import Attention
from attnviz.heads.figure import scatter, similarity
from attnviz.heads.figure.grid import (
    KEY,
    cell_of,
    draw_grid,
    draw_key,
    draw_legend,
    grid_size,
    legend_entries,
    legend_height,
)
from attnviz.heads.measures import ENOUGH_ROWS
from attnviz.heads.notes import note_words, proof
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.relations import FAMILY
from attnviz.heads.selection import RoleCard, strongest, without_card
from attnviz.heads.wording import counted, described, sample, say
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, Page, height_of, lines, page_of
from attnviz.render.figure.pattern import draw_pattern
from attnviz.render.figure.pen import BLACK, GREY, MARGIN, POINT, TEXT, TITLE, Pen, clipped
from attnviz.render.palette import DEFAULT, colours
from attnviz.render.sheet import Sheet, pool, resolve
from attnviz.text.display import clip, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RIGHT = 6.8
"""Inches of the right column: the legend, the heads as points, cards."""
LEFT = 1.8
"""Inches of the left column at least: the words above a grid of one head."""
GAP = 0.55
LEVEL = 2.5
"""Inches that may stay free below the grid or its legend, so that the points stand level with the clusters."""
LEGEND = 0.1
"""Inches above the legend."""
HEADING, TWO_LINES = 0.34, 0.48
"""Inches that the heading of a part takes."""
AROUND = 0.5
"""Inches at the left of the points and below them."""
LEADING = 1.4
"""From line to line, in sizes of the letters."""
LINE = LEADING * TEXT * POINT

WIDTH, LEAST = 6.8, 3.35
"""Inches of a card: the most, and the least of one that stands beside another."""
BETWEEN = 0.3
"""Inches between two cards."""
SENTENCE = 3
"""Lines of a card's sentence; a longer one is cut."""
LARGEST, MOST_TOKENS = 2.3, 32
"""Inches of the largest pattern, and its tokens: of a longer sentence the pattern is pooled."""
INDENT = KEY + 0.1
AXIS = 0.22
"""Inches of what stands along a pattern's sides: that keys are looked at, and queries look."""
CARDS = "each role's clearest head, and the sentence where it is strongest"
COLOUR = "colour: attention weight, on every card from 0 to 1"


def draw(
    comparison: HeadComparison,
    *,
    patterns: Mapping[str, Attention] | None = None,
    unseen: str = "",
    palette: str = DEFAULT,
) -> Picture:
    """A picture of a comparison.

    Args:
        comparison: of heads.
        patterns: by role, the attention on the sentence of `attnviz.heads.selection.strongest`; the patterns of
            those heads are drawn below their sentences.
        unseen: why there are no patterns, which is said where they would be; empty says nothing.
        palette: one of `attnviz.render.names.PALETTES`, for distances and patterns.

    Raises:
        SelectionError: a pattern without the head that it is given for, or no such palette.
    """
    given = patterns or {}
    with usual_settings():
        pen = blank_figure(_texts(comparison, given, unseen))
        _draw(pen, comparison, _deck(comparison, given, unseen, pen), palette)
    title = f"What each head does: {visible(comparison.model)}"
    return Picture(pen, title, f"{sample(comparison)}; {proof(comparison)}")


def pattern_of(card: RoleCard, patterns: Mapping[str, Attention]) -> Sheet | None:
    """The pattern of a card's head, on a scale from 0 to 1; None where it is not given."""
    record = patterns.get(card.role.name)
    if record is None:
        return None
    return pool(resolve(record.select([card.head.layer], [card.head.head]), "unit"), MOST_TOKENS, MOST_TOKENS)


def columns_in(width: float, n_cards: int) -> tuple[int, float]:
    """How many cards stand side by side in so many inches, and how wide each is."""
    n = max(1, min(int((width + BETWEEN) / (LEAST + BETWEEN)), n_cards))
    return n, min(WIDTH, (width - (n - 1) * BETWEEN) / n)


def _draw(pen: Pen, comparison: HeadComparison, deck: _Deck, palette: str) -> None:
    """Measure all parts, give the figure its size, then draw them."""
    alike = comparison.similarity if len(comparison.heads) > 1 else None
    shape = comparison.n_layers, comparison.n_heads
    grid = grid_size(*shape, cell_of(*shape))
    tree = similarity.tree_size(len(comparison.heads)) if alike is not None else (0.0, 0.0)
    right = MARGIN + max(grid[0], tree[0], LEFT) + GAP
    width = right + RIGHT + MARGIN
    full = width - 2 * MARGIN
    title = f"What each head does · {visible(comparison.model)}"
    about = [visible(text) for text in (described(comparison), sample(comparison))]
    heading = lines(pen, [title], full, TITLE * 1.2)
    source = lines(pen, about, full, colour=GREY, leading=LEADING)
    top = MARGIN + height_of(heading) + height_of(source) + 0.2
    ends = [top + grid[1], top + LEGEND + legend_height(comparison, pen, RIGHT)]
    tree_top, points_top = (end + GAP for end in ends)
    points: Axes | None = None
    legend, tall = 0.0, 0.0
    if alike is not None:
        points, (legend, tall) = scatter.draw_heads(pen, comparison, alike, RIGHT - AROUND)
        if abs(tree_top - points_top) < LEVEL:
            tree_top = points_top = max(tree_top, points_top)
        ends = [tree_top + HEADING + tree[1], points_top + TWO_LINES + (legend + tall) + AROUND]
    below = max(ends) + GAP / 2
    places, end = _placed(deck, pen, width=full, below=below, beside=(right, ends[1] + GAP / 2), floor=ends[0])
    notes = lines(pen, _notes(comparison), full, leading=LEADING)
    below = max(*ends, end) + 0.35
    page = page_of(pen, width, below + height_of(notes) + MARGIN)
    page.write([*heading, *source], MARGIN)
    page.write(notes, below)
    draw_grid(page, comparison, MARGIN, top)
    draw_legend(page, comparison, (right, top + LEGEND, RIGHT))
    if alike is not None and points is not None:
        page.text(MARGIN, tree_top, "heads that look alike stand together", TEXT + 1, va="top")
        similarity.draw_with_roles(page, comparison, alike, (MARGIN, tree_top + HEADING), palette)
        what = pen.wrap(scatter.heading(comparison, alike), RIGHT, TEXT + 1)
        page.text(right, points_top, "\n".join(what), TEXT + 1, va="top")
        page.move(points, (right + AROUND, points_top + TWO_LINES + legend, RIGHT - AROUND, tall))
    _draw_deck(page, deck, places, palette)


def _notes(comparison: HeadComparison) -> list[str]:
    """What stands below the picture: the proof, what to know, how to read it."""
    notes = [proof(comparison), *(note_words(note) for note in comparison.notes)]
    if comparison.similarity is not None and len(comparison.heads) > 1:
        notes.append(
            f"distances: {similarity.UNIT}; a tree of average linkage, the strip beside it the colours of the roles"
        )
    notes += [say("halves")] * bool(comparison.relations)
    sure = any(math.isfinite(role.low) for head in comparison.heads for role in head.roles)
    how = "intervals: 95 %, from resampling sentences; " * sure
    return [*notes, f"{how}layers and heads count from 0; {say('not_explanation')}"]


def _texts(comparison: HeadComparison, patterns: Mapping[str, Attention], unseen: str) -> list[str]:
    """All that the picture says, for its fonts."""
    texts = [visible(comparison.model), visible(comparison.corpus), visible(unseen), *_notes(comparison), "√→–·"]  # noqa: RUF001 - a dash
    texts += [words for _, words in legend_entries(comparison)]
    for card in strongest(comparison):
        texts.append(visible(card.role.rule.words))
        if card.example is not None:
            texts.append(visible(card.example.text))
        pattern = pattern_of(card, patterns)
        if pattern is not None:
            texts += [*pattern.query_labels, *pattern.key_labels]
    return texts


# The cards.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deck:
    """The cards of a comparison.

    Attributes:
        cards: each with its pattern; None where it is not given.
        notes: what stands below their heading, in lines.
    """

    cards: tuple[tuple[RoleCard, Sheet | None], ...]
    notes: tuple[Line, ...]

    @property
    def heading(self) -> float:
        """Inches of all that stands above the cards."""
        return 0.3 + LINE * len(self.notes) + 0.1


def _deck(comparison: HeadComparison, patterns: Mapping[str, Attention], unseen: str, pen: Pen) -> _Deck:
    """The cards of a comparison, and why some have no pattern or are not there."""
    cards = tuple((card, pattern_of(card, patterns)) for card in strongest(comparison))
    more = without_card(comparison)
    notes = [
        *([COLOUR] if any(sheet is not None for _, sheet in cards) else []),
        *([f"no patterns: {visible(unseen)}"] if cards and unseen else []),
        *([f"{counted(more, 'more role')} without a card: less clear"] if more else []),
    ]
    return _Deck(cards=cards, notes=tuple(lines(pen, notes, WIDTH, colour=GREY, leading=LEADING)))


def _placed(
    deck: _Deck, pen: Pen, *, width: float, below: float, beside: tuple[float, float], floor: float
) -> tuple[list[tuple[float, float, float]], float]:
    """Where heading and cards stand: in the right column down to the floor as far as they fit, the others in rows.

    Args:
        deck: the cards.
        pen: for the figure.
        width: of a row, in inches.
        below: where rows begin.
        beside: the left and upper end of what is free in the right column.
        floor: the lower end of that.

    Returns:
        The left and upper end and the width of the heading and of each card, and where the lowest ends.
    """
    if not deck.cards:
        return [], 0.0
    n, wide = columns_in(width, len(deck.cards))
    heights = [_card_height(card, sheet, pen, wide) for card, sheet in deck.cards]
    x, y = beside
    places = []
    if y + deck.heading + heights[0] <= floor:
        places.append((x, y, wide))
        y += deck.heading
        while len(places) <= len(heights) and y + heights[len(places) - 1] <= floor:
            places.append((x, y, wide))
            y += heights[len(places) - 2]
        end = below
    else:
        places.append((MARGIN, below, wide))
        end = below + deck.heading
    rest = heights[len(places) - 1 :]
    for start in range(0, len(rest), n):
        places += [(MARGIN + at * (wide + BETWEEN), end, wide) for at in range(len(rest[start : start + n]))]
        end += max(rest[start : start + n])
    return places, max(y, end) if rest else y


def _draw_deck(page: Page, deck: _Deck, places: Sequence[tuple[float, float, float]], palette: str) -> None:
    """Draw heading, colour scale and cards."""
    if not deck.cards:
        return
    x, y, _ = places[0]
    page.text(x, y, CARDS, TEXT + 1, va="top")
    y += 0.3 - 0.08
    page.write(deck.notes, y, x)
    if deck.notes and deck.notes[0].text == COLOUR:
        bar = (x + page.pen.width(COLOUR) + 0.25, y + 0.02, 1.0)
        page.colour_bar(colours(palette), bar, {0.0: "0", 1.0: "1"}, along=True)
    for (card, sheet), place in zip(deck.cards, places[1:], strict=True):
        _draw_card(page, card, sheet, place, palette)


def _card_lines(card: RoleCard, pen: Pen, width: float) -> list[Line]:
    """What a card of this width says: the role with its score; the sentence, or why there is none."""
    role, room = card.role, width - INDENT
    doubt = "" if role.established else " · not established"
    numbers = f"{role.score:.2f}" + (f" ({role.low:.2f} to {role.high:.2f})" if role.low == role.low else "")
    title = f"{visible(role.rule.words)} · head {card.head.name} · {role.measure} {numbers}{doubt}"
    if card.example is None:
        sentence = pen.wrap(_no_example(role), room)
    else:
        sentence = pen.wrap(f"“{visible(card.example.text)}”", room, TEXT, SENTENCE + 1)
        if len(sentence) > SENTENCE:
            sentence = [*sentence[: SENTENCE - 1], clip(sentence[SENTENCE - 1], len(sentence[SENTENCE - 1]) - 1)]
    written = [(line, BLACK) for line in pen.wrap(title, room)] + [(line, GREY) for line in sentence]
    return [Line(line, TEXT, colour, LINE) for line, colour in written]


def _no_example(role: Role) -> str:
    if role.rule.family == FAMILY.name:
        return "no example: it is found in none of the sentences that controls were taken of"
    return f"no example: no sentence has {ENOUGH_ROWS} rows that it is counted for"


def _sides(sheet: Sheet, pen: Pen, width: float) -> tuple[float, float, float]:
    """The side of a pattern's cells on a card of this width, and the inches of its labels at the left and above."""
    queries, keys = clipped(sheet.query_labels), clipped(sheet.key_labels)
    beside, above = (AXIS + pen.widest(labels) + 0.08 for labels in (queries, keys))
    cell = min(0.26, LARGEST / max(len(queries), len(keys)), (width - beside) / len(keys))
    return cell, beside, above


def _card_height(card: RoleCard, sheet: Sheet | None, pen: Pen, width: float) -> float:
    """How high a card of this width is, in inches."""
    height = height_of(_card_lines(card, pen, width)) + 0.16
    if sheet is not None:
        cell, _, above = _sides(sheet, pen, width)
        height += above + cell * len(sheet.query_labels) + 0.22
    return height


def _draw_card(
    page: Page, card: RoleCard, sheet: Sheet | None, place: tuple[float, float, float], palette: str
) -> None:
    """Draw a card at (left, top, width), with its pattern where that is given."""
    left, top, wide = place
    draw_key(page, card.role, (left, top - 0.03))
    top = page.write(_card_lines(card, page.pen, wide), top, left + INDENT)
    if sheet is None:
        return
    cell, beside, above = _sides(sheet, page.pen, wide)
    across, down = cell * len(sheet.key_labels), cell * len(sheet.query_labels)
    ax = page.axes((left + min(INDENT, wide - beside - across) + beside, top + above + 0.04, across, down))
    draw_pattern(ax, sheet, palette, page.pen, cell=cell)
