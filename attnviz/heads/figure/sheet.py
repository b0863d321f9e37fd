"""The page of a comparison: the map of heads, their roles, and an example of each established role."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from attnviz.attention import Attention
from attnviz.heads import wording
from attnviz.heads.figure import grid
from attnviz.heads.figure.card import ACROSS, SIDE, cards_of, draw_cards, lay_out_cards
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.selection import by_role, received_by_words, without_card
from attnviz.heads.wording import proof, sample, say
from attnviz.render.figure.export import Picture, blank_figure, usual_settings
from attnviz.render.figure.page import Page, height_of, lines, page_of
from attnviz.render.figure.pen import BLACK, GREY, LEAST_TEXT, MARGIN, POINT, SMALL, TEXT
from attnviz.render.figure.style import STYLES, Style
from attnviz.render.palette import colours, hexed, ink, levels
from attnviz.text.display import clip, visible

WIDTH = 12.0  # inches of the page
FULL = WIDTH - 2 * MARGIN
LEAST = 1.7  # inches of the map at least: the words above it
FEW = 2.1  # inches of a pattern where all cards stand in one row
WORD = (0.84, 0.26)  # inches of a cell that has a word in it, the most
NAMED = 4  # so many roles are named in the title where each is that of one head
BAR = 0.9  # inches of the scale of colours


def draw(
    comparison: HeadComparison, *, patterns: Mapping[str, Attention] | None = None, unseen: str = "",
    language: str = "en", style: Style = STYLES["sheet"],
) -> Picture:  # fmt: skip
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
    with usual_settings():
        texts = [title, about, over, *notes, *(text for card in cards for text in card.texts), "√→–·"]  # noqa: RUF001
        pen = blank_figure([*texts, *(visible(wording.role_words(role, language)) for role in roles)])
        above = grid.heading(pen, title, [about], FULL)
        top = MARGIN + height_of(above) + 0.16
        placed = lay_out_cards(pen, cards, FULL, SIDE if len(cards) > ACROSS else FEW)
        shape = comparison.n_layers, comparison.n_heads
        size = grid.grid_size(*shape, (grid.map_cell if comparison.attention is None else _word_cell)(*shape))
        table = 0.0 if comparison.attention is not None else grid.ENTRY * (len(rows) + 1) + 0.1
        below = top + max(size[1], table) + 0.24
        what = lines(pen, [over] if cards else [], FULL - BAR - 0.6, TEXT + 1)
        cards_top = below + height_of(what) + 0.12 * bool(cards)
        foot = cards_top + placed.height + 0.04
        noted = lines(pen, notes, FULL, leading=1.35)
        page = page_of(pen, WIDTH, foot + height_of(noted) + MARGIN)
        page.write(above, MARGIN)
        if comparison.attention is not None:
            _draw_words(page, comparison, comparison.attention, top, language)
        else:
            grid.draw_grid(page, comparison, (MARGIN, top), language)
            left = max(size[0], LEAST) + grid.GAP
            room = FULL - left - grid.keys_width(pen, roles)
            columns = grid.fitting(pen, wording.role_columns(rows, language), room)
            grid.draw_table(page, columns, (MARGIN + left, top), roles=roles, quiet=list(map(_is_quiet, roles)))
        page.write(what, below)
        if placed.side:
            page.colour_bar(colours(), (WIDTH - MARGIN - BAR - 0.12, below, BAR), {0.0: "0", 1.0: "1"}, along=True)
        draw_cards(page, placed, MARGIN, cards_top)
        page.write(noted, foot)
    return Picture(pen, f"{title}: {visible(comparison.model)}", f"{sample(comparison)}; {proof(comparison)}")


def finding(comparison: HeadComparison, language: str = "en") -> str:
    """What was found, in a line: of how many heads a role is established, and which most often."""
    n_heads = len(comparison.heads)
    counts = {"heads": wording.plural(n_heads, "head"), "n_heads": n_heads}
    if comparison.attention is not None:
        return say("found_words", language, **counts)
    if not comparison.n_established:
        return say("found_none", language, **counts)
    sure = {role: len(row) for row in by_role(comparison) if (role := row[0].role) is not None and role.established}
    most = max(sure, key=lambda role: sure[role])
    if sure[most] > 1:
        which = say("found_most", language, role=visible(wording.role_words(most, language)), n=sure[most])
    else:
        names = [visible(role.rule.short) for role in sure]
        which = ": " + ", ".join(names[:NAMED]) + (", …" if len(names) > NAMED else "")
    return say("found", language, n=comparison.n_established, **counts) + which


def _heading(comparison: HeadComparison, unseen: str, language: str) -> str:
    if comparison.attention is not None:
        return f"{say('cards_links', language)}; {say('pattern_axes', language)}"
    more = without_card(comparison)
    left = say("cards_more", language, roles=wording.plural(more, "more role"), n=more) if more else ""
    return "; ".join([
        say("cards" if comparison.n_established else "cards_unsure", language) + left,
        say("no_patterns", language, why=visible(unseen)) if unseen else say("pattern_axes", language),
    ])  # fmt: skip


def _notes(comparison: HeadComparison, language: str) -> list[str]:
    if comparison.attention is not None:
        how = [say("one_few", language)]
    else:
        why = wording.doubts(comparison.heads, language)
        how = [say("solid", language)] * bool(comparison.n_established) + [say("hatched", language, why=why)] * bool(
            why
        )
        if any(math.isfinite(role.low) for head in comparison.heads for role in head.roles):
            how.append(say("resampled", language))
        if any(role.narrow for head in comparison.heads for role in head.roles[:1]):
            how.append(wording.narrow(language))
        if comparison.relations:
            how.append(say("halves", language))
    notes = [
        wording.note_words(note, language)
        for note in comparison.notes
        if note.code not in wording.MINOR and not (note.code == "few_sentences" and comparison.attention is not None)
    ]
    return [proof(comparison, language), *notes, "; ".join([*how, say("not_explanation", language)])]


def _word_cell(n_layers: int, n_heads: int) -> tuple[float, float]:
    return min(WORD[0], (FULL - grid.BESIDE) / n_heads), min(WORD[1], 7.0 / n_layers)


def _draw_words(page: Page, comparison: HeadComparison, record: Attention, top: float, language: str) -> None:
    """Draw the map of one sentence: in each cell the word that gets most of the head's weight, in the colour of it."""
    shape = comparison.n_layers, comparison.n_heads
    across, down = _word_cell(*shape)
    received = received_by_words(record)
    table = colours()
    white = ink(table)
    for layer, head in np.ndindex(*shape):
        most = int(received[layer, head].argmax())
        level = levels(received[layer, head, most : most + 1], 1.0)[0]
        x, y = MARGIN + grid.BESIDE + head * across, top + grid.ABOVE + layer * down
        page.box((x, y, across, down), facecolor=hexed(table[level]), edgecolor="white", linewidth=1.0, zorder=2)
        word = clip(record.key_tokens[most].text, 12)
        size = min(TEXT, (across - 0.05) / max(page.pen.width(word, 1.0), POINT), down / POINT / 1.3)
        if size >= LEAST_TEXT:
            colour = "white" if white[level] else BLACK
            page.text(x + across / 2, y + down / 2, word, size, ha="center", va="center", zorder=4, color=colour)
    grid.number_grid(page, shape, (across, down), (MARGIN, top), language)
    page.text(WIDTH - MARGIN, top + 0.02, say("one_map_colour", language), SMALL + 1, va="top", ha="right", color=GREY)


def _is_quiet(role: Role | None) -> bool:
    return role is None or not role.established


def _draw_brief(comparison: HeadComparison, style: Style, language: str) -> Picture:
    rows, title = by_role(comparison), finding(comparison, language)
    roles = [row[0].role for row in rows]
    notes = {"all": _notes(comparison, language), "receipt": [proof(comparison, language)], "": []}[style.caption]
    with usual_settings():
        rules = [role.rule for role in roles if role is not None]
        said = (text for rule in rules for text in (rule.short, rule.sign, rule.say(language)))
        pen = blank_figure([title, *notes, "–·", *said])  # noqa: RUF001
        grid.draw_brief(
            pen if style.height else replace(pen, least=style.least), style,
            lambda page, corner, cell: grid.draw_grid(page, comparison, corner, language, cell),
            shape=(comparison.n_layers, comparison.n_heads), words=(title, notes), roles=roles,
            columns=wording.role_columns(rows, language), least=0.0 if style.height else style.width or 0.0,
            quiet=list(map(_is_quiet, roles)),
        )  # fmt: skip
    return Picture(pen, f"{title}: {visible(comparison.model)}", f"{sample(comparison)}; {proof(comparison)}")
