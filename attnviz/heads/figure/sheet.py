"""The page of a comparison: the map of heads, their roles, and a card for each role with an example of it.

A card says what a head does, has a sentence where it does it, and its weights there; all cards are of one size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Real

from attnviz.attention import Attention
from attnviz.heads import wording
from attnviz.heads.figure import grid
from attnviz.heads.figure.grid import Inches, draw_key, key_width
from attnviz.heads.measures import ENOUGH_ROWS
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.relations import FAMILY
from attnviz.heads.selection import (
    RoleCard,
    by_role,
    received_by_words,
    strongest,
    strongest_links,
    without_card,
)
from attnviz.heads.wording import proof, sample, say
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Line, Page, height_of, lines
from attnviz.render.figure.pen import BLACK, GREY, LEAST_TEXT, MARGIN, POINT, SMALL, TEXT, Pen
from attnviz.render.figure.style import STYLES, Style
from attnviz.render.palette import colours, hexed, ink, levels, pixels
from attnviz.render.sheet import Sheet, pool, resolve
from attnviz.text.display import clip, visible
from attnviz.text.messages import in_language

WIDTH = 12.0  # inches of the page
FULL = WIDTH - 2 * MARGIN
LEAST = 1.7  # inches of the map at least: the words above it
FEW = 2.1  # inches of a pattern where all cards stand in one row
WORD = (0.84, 0.26)  # inches of a cell that has a word in it, the most
CHANGED = 12  # so many heads are named that differ most from those of a second model
NAMED = 4  # so many roles are named in the title where each is that of one head
BAR = 0.9  # inches of the scale of colours
ACROSS = 4  # cards beside one another
BETWEEN = 0.25  # inches between two cards
CARD = (FULL - (ACROSS - 1) * BETWEEN) / ACROSS  # inches of the width of a card
SIDE, CELL, MOST_TOKENS = 1.45, 0.24, 24
"""Inches of the largest pattern and of its largest cell, and its tokens: of a longer sentence it is pooled."""
LABEL = 11  # characters of a token beside its row
LINE = 1.35 * TEXT * POINT
MOST_LINES = 2  # lines of what a head does, and of its sentence


def draw(
    comparison: HeadComparison,
    *,
    patterns: Mapping[str, Attention] | None = None,
    unseen: str = "",
    language: str = "en",
    style: Style = STYLES["sheet"],
) -> Picture:
    """A picture of a comparison; of one sentence, where its weights are known, what each head looks at in it.

    On a slide and in a column stand the map and the roles alone, in letters that can be read there. Raises
    SelectionError: a pattern without the head that it is given for.
    """
    if grid.is_brief(style) and comparison.attention is None:
        return _draw_brief(comparison, style, language)
    cards, rows = cards_of(comparison, patterns or {}, language), by_role(comparison)
    roles = [row[0].role for row in rows]
    title, notes = finding(comparison, language), _notes(comparison, language)
    about = grid.about(comparison, language)
    over = _heading(comparison, unseen if cards else "", language)
    changed = [visible(text) for text in wording.explain_changes(comparison, language)]
    with usual_settings():
        texts = [
            title,
            about,
            over,
            *notes,
            *changed,
            *(text for card in cards for text in card.texts),
            "√→–·●○",
        ]
        pen = blank_figure(
            [*texts, *(visible(wording.role_words(role, language)) for role in roles)]
        )
        page = grid.begin_page(pen, WIDTH)
        top = page.write(grid.heading(pen, title, [about], FULL), MARGIN) + 0.16
        shape = comparison.n_layers, comparison.n_heads
        cell = (grid.map_cell if comparison.attention is None else _word_cell)(*shape)
        size = grid.grid_size(*shape, cell)
        table = 0.0 if comparison.attention is not None else grid.ENTRY * (len(rows) + 1) + 0.1
        below = top + max(size[1], table) + 0.24
        if comparison.against is not None:
            place = MARGIN, below
            below = _draw_changes(page, comparison, changed, place, cell, language) + 0.24
        if comparison.attention is not None:
            _draw_words(page, comparison.attention, (MARGIN, top), cell, language)
        else:
            grid.draw_grid(page, comparison, (MARGIN, top), cell, language)
            left = max(size[0], LEAST) + grid.GAP
            room = FULL - left - grid.keys_width(pen, roles)
            columns = grid.fitting(pen, wording.role_columns(rows, language), room)
            grid.draw_table(page, columns, (MARGIN + left, top), roles=roles)
        what = lines(pen, [over] if cards else [], FULL - BAR - 0.6, TEXT + 1)
        cards_top = page.write(what, below) + 0.12 * bool(cards)
        if any(card.sheet for card in cards):
            page.colour_bar(
                colours(),
                (WIDTH - MARGIN - BAR - 0.12, below, BAR),
                {0.0: "0", 1.0: "1"},
                along=True,
            )
        foot = draw_cards(page, cards, cards_top) + 0.04
        grid.end_page(page, page.write(lines(pen, notes, FULL), foot) + MARGIN)
    return Picture(
        pen,
        f"{title}: {visible(wording.model_names(comparison))}",
        f"{sample(comparison)}; {proof(comparison)}",
    )


def finding(comparison: HeadComparison, language: str = "en") -> str:
    """Summarise the comparison: how many heads have an established role, and which one most often."""
    n_heads = len(comparison.heads)
    if comparison.attention is not None:
        return say("found_words", language, n_heads=n_heads)
    if not comparison.n_established:
        return say("found_none", language, n_heads=n_heads)
    sure = {
        role: len(row)
        for row in by_role(comparison)
        if (role := row[0].role) is not None and role.established
    }
    most = max(sure, key=lambda role: sure[role])
    if sure[most] > 1:
        which = say(
            "found_most", language, role=visible(wording.role_words(most, language)), n=sure[most]
        )
    else:
        names = [visible(role.rule.short) for role in sure]
        which = ": " + ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    return say("found", language, n=comparison.n_established, n_heads=n_heads) + which


def _heading(comparison: HeadComparison, unseen: str, language: str) -> str:
    if comparison.attention is not None:
        return f"{say('cards_links', language)}; {say('pattern_axes', language)}"
    more = without_card(comparison)
    left = say("cards_more", language, n=more) if more else ""
    return "; ".join(
        [
            say("cards" if comparison.n_established else "cards_unsure", language) + left,
            say("no_patterns", language, why=visible(unseen))
            if unseen
            else say("pattern_axes", language),
        ]
    )


def _notes(comparison: HeadComparison, language: str) -> list[str]:
    if comparison.attention is not None:
        how = [say("one_few", language)]
    else:
        why = wording.doubts(comparison.heads, language)
        how = [say("solid", language)] * bool(comparison.n_established) + [
            say("hatched", language, why=why)
        ] * bool(why)
        if any(math.isfinite(role.low) for head in comparison.heads for role in head.roles):
            how.append(say("resampled", language))
        if any(role.narrow for head in comparison.heads for role in head.roles[:1]):
            how.append(say("narrow", language))
        if comparison.relations:
            how.append(say("halves", language))
    notes = [
        wording.note_words(note, language)
        for note in comparison.notes
        if note.code not in wording.MINOR
        and not (note.code == "few_sentences" and comparison.attention is not None)
    ]
    return [
        proof(comparison, language),
        *notes,
        "; ".join([*how, say("not_explanation", language)]),
    ]


def _word_cell(n_layers: int, n_heads: int) -> Inches:
    return min(WORD[0], (FULL - grid.BESIDE) / n_heads), min(WORD[1], 7.0 / n_layers)


def _draw_words(page: Page, record: Attention, corner: Inches, cell: Inches, language: str) -> None:
    """Draw the map of one sentence: in each cell the word that gets most of the head's weight, in the colour of it."""
    received = received_by_words(record)
    words = {
        (layer, head): clip(record.key_tokens[int(received[layer, head].argmax())].text, 12)
        for layer, head in np.ndindex(*received.shape[:2])
    }
    _draw_values(page, received.max(axis=2), words, corner, cell, language)
    page.text(
        WIDTH - MARGIN,
        corner[1] + 0.02,
        say("one_map_colour", language),
        SMALL + 1,
        va="top",
        ha="right",
        color=GREY,
    )


def _draw_values(
    page: Page,
    values: Real[np.ndarray, "layer head"],
    texts: Mapping[tuple[int, int], str],
    corner: Inches,
    cell: Inches,
    language: str,
) -> None:
    """Draw a cell for each head in the colour of a value from 0 to 1, with a text in it."""
    table = colours()
    white = ink(table)
    for place, text in texts.items():
        level = levels(values[place].reshape(1), 1.0)[0]
        box = grid.place_of(place, corner, cell)
        page.box(box, facecolor=hexed(table[level]), edgecolor="white", linewidth=1.0, zorder=2)
        letters = "white" if white[level] else BLACK
        grid.write_inside(page, box, text, cell[0] - 0.05, 1.3, zorder=4, color=letters)
    grid.number_grid(page, (values.shape[0], values.shape[1]), corner, cell, language)


def _draw_changes(
    page: Page,
    comparison: HeadComparison,
    words: Sequence[str],
    corner: Inches,
    cell: Inches,
    language: str,
) -> float:
    """Draw how far each head is from that of the second model, beside the heads that differ most; return its end."""
    left, top = corner[0], page.write(lines(page.pen, words, FULL), corner[1]) + 0.08
    values = np.full((comparison.n_layers, comparison.n_heads), np.nan)
    for head in comparison.heads:
        if head.change is not None:
            values[head.place] = head.change.divergence
    texts = {
        head.place: "" if np.isnan(values[head.place]) else f"{values[head.place]:.2f}"[1:]
        for head in comparison.heads
    }
    # The darkest colour is the largest divergence of these two models.
    shades = np.nan_to_num(values / max(np.nanmax(values, initial=0.0), 1e-9))
    _draw_values(page, shades, texts, (left, top), cell, language)
    width, height = grid.grid_size(*values.shape, cell)
    most = max(1, int(height / grid.ENTRY) - 1)
    columns = wording.change_columns(comparison, min(most, CHANGED), language)
    beside = max(width, LEAST) + grid.GAP
    shown = grid.fitting(page.pen, columns, FULL - beside)
    grid.draw_table(page, shown, (left + beside, top))
    return top + max(height, grid.ENTRY * (1 + len(shown[0].cells)))


def _draw_brief(comparison: HeadComparison, style: Style, language: str) -> Picture:
    rows, title = by_role(comparison), finding(comparison, language)
    roles = [row[0].role for row in rows]
    notes = {"all": _notes(comparison, language), "receipt": [proof(comparison, language)], "": []}[
        style.caption
    ]
    with usual_settings():
        rules = [role.rule for role in roles if role is not None]
        said = (
            text
            for rule in rules
            for text in (rule.short, rule.sign, in_language(rule.words, language))
        )
        pen = blank_figure([title, *notes, "–·", *said])
        grid.draw_brief(
            pen if style.height else replace(pen, least=style.least),
            style,
            lambda page, corner, cell: grid.draw_grid(page, comparison, corner, cell, language),
            shape=(comparison.n_layers, comparison.n_heads),
            words=(title, notes),
            roles=roles,
            columns=wording.role_columns(rows, language),
            least=0.0 if style.height else style.width or 0.0,
        )
    return Picture(
        pen,
        f"{title}: {visible(wording.model_names(comparison))}",
        f"{sample(comparison)}; {proof(comparison)}",
    )


# The cards.


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCard:
    """The content of one card."""

    role: Role | None  # whose colour and sign it has; None has none
    title: str  # the head, and what it is called
    words: str  # what it does
    sentence: str  # where; or why there is none
    sheet: Sheet | None  # its weights there, from 0 to 1; None where they are not known

    @property
    def texts(self) -> list[str]:
        """All that it says, for its fonts."""
        tokens = [] if self.sheet is None else [*self.sheet.query_labels, *self.sheet.key_labels]
        return [self.title, self.words, self.sentence, *tokens]


def cards_of(
    comparison: HeadComparison, patterns: Mapping[str, Attention], language: str
) -> list[HeadCard]:
    """The cards of a comparison: of each established role; of one sentence the strongest links between its words."""
    record = comparison.attention
    if record is None:
        return [
            card_of(card, patterns.get(card.role.name), language) for card in strongest(comparison)
        ]
    return [
        HeadCard(
            role=None,
            title=say("of_head", language, head=f"{layer}.{head}"),
            words=visible(
                f"{record.query_tokens[query].text} → {record.key_tokens[key].text} {weight:.2f}"
            ),
            sentence="",
            sheet=_weights(record, layer, head),
        )
        for (query, key), (weight, layer, head) in strongest_links(record)
    ]


def card_of(card: RoleCard, record: Attention | None, language: str) -> HeadCard:
    """The card of a role. Raises SelectionError: the record lacks the head."""
    role = card.role
    if card.example is not None:
        sentence = f"“{visible(card.example.text)}” {card.example.score:.2f}"
    elif role.rule.family == FAMILY.name:
        sentence = say("no_example", language)
    else:
        sentence = say("no_example_rows", language, rows=ENOUGH_ROWS)
    return HeadCard(
        role=role,
        title=f"{card.head.name} · {visible(role.rule.short)} {role.score:.2f}",
        words=visible(in_language(role.rule.words, language)),
        sentence=sentence,
        sheet=None if record is None else _weights(record, card.head.layer, card.head.head),
    )


def _weights(record: Attention, layer: int, head: int) -> Sheet:
    return pool(resolve(record.select([layer], [head]), "unit"), MOST_TOKENS, MOST_TOKENS)


def labels_of(labels: Sequence[str]) -> list[str]:
    """The words along a pattern, the longest cut."""
    return [clip(label, LABEL) for label in labels]


def _lines(card: HeadCard, pen: Pen) -> list[Line]:
    inset = 0.0 if card.role is None else key_width(card.role, pen) + 0.08
    (title, *more) = pen.wrap(card.title, CARD - inset, TEXT + 0.5, 2)
    written = [Line(clip(title, len(title) - 1) if more else title, TEXT + 0.5, BLACK, LINE * 1.25)]
    for text, colour in ((card.words, BLACK), (card.sentence, GREY)):
        found = pen.wrap(text, CARD, TEXT, MOST_LINES + 1)
        if len(found) > MOST_LINES:
            found = [
                *found[: MOST_LINES - 1],
                clip(found[MOST_LINES - 1], len(found[MOST_LINES - 1]) - 1),
            ]
        written += [Line(line, TEXT, colour, LINE) for line in found]
    return written


def draw_cards(page: Page, cards: Sequence[HeadCard], top: float) -> float:
    """Draw cards of one size, `ACROSS` in a row, and return where the next row would stand."""
    pen, written = page.pen, [_lines(card, page.pen) for card in cards]
    sheets = [card.sheet for card in cards if card.sheet is not None]
    beside = (
        pen.widest([label for sheet in sheets for label in labels_of(sheet.query_labels)]) + 0.05
    )
    above = pen.widest([label for sheet in sheets for label in labels_of(sheet.key_labels)]) + 0.08
    side = min(SIDE if len(cards) > ACROSS else FEW, CARD - beside)
    text = max(map(height_of, written), default=0.0)
    pitch = text + (above + side + 0.06 if sheets else 0.0) + 0.14
    for number, (card, said) in enumerate(zip(cards, written, strict=True)):
        row, column = divmod(number, ACROSS)
        x, y = MARGIN + column * (CARD + BETWEEN), top + row * pitch
        inset = 0.0
        if card.role is not None:
            draw_key(page, card.role, (x, y - 0.02))
            inset = key_width(card.role, pen) + 0.08
        page.write(said[:1], y + 0.015, x + inset)
        page.write(said[1:], y + said[0].pitch + 0.02, x)
        if card.sheet is not None:
            draw_weights(page, card.sheet, (x + beside, y + text + above, side))
    return top + pitch * -(-len(cards) // ACROSS)


def draw_weights(
    page: Page, sheet: Sheet, place: tuple[float, float, float], largest: float = CELL
) -> None:
    """Draw a pattern at (left, top, side) with its words at the left and above, thinned where they have no room."""
    left, top, side = place
    panel = sheet.panels[0]
    queries, keys = labels_of(sheet.query_labels), labels_of(sheet.key_labels)
    cell = min(largest, side / max(len(queries), len(keys)))
    size = min(TEXT, max(LEAST_TEXT, cell / POINT / 1.15))
    step = max(1, round(size * 1.15 * POINT / cell + 0.49))
    page.image(
        pixels(panel.matrix, panel.top, colours()),
        (left, top, cell * len(keys), cell * len(queries)),
    )
    for at in range(0, len(queries), step):
        page.text(left - 0.05, top + (at + 0.5) * cell, queries[at], size, ha="right", va="center")
    for at in range(0, len(keys), step):
        page.text(
            left + (at + 0.5) * cell,
            top - 0.05,
            keys[at],
            size,
            ha="center",
            va="bottom",
            rotation=90,
        )
