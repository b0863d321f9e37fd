"""A story in a terminal: wrapped paragraphs, tables that fit the window, and the receipt."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from attnviz.render.columns import Column
from attnviz.render.palette import levels
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import folded_table
from attnviz.render.terminal.text import READABLE, legend, spell, wrap
from attnviz.stories.record import Cell, Story, Table, cell_text, is_number
from attnviz.text.messages import Message, _


def draw(story: Story, screen: Screen) -> list[Text]:
    """Return the lines of a story, no wider than the screen."""
    lines = wrap(story.title, screen, "bold")
    for part in story.parts:
        lines.append(Text())
        lines += _draw_table(part, screen) if isinstance(part, Table) else wrap(part, screen)
    return [*lines, Text(), *wrap(story.receipt, screen, "dim")]


def draw_list(chapters: Mapping[Message, Mapping[str, Message]], screen: Screen) -> list[Text]:
    """Return the lines of a list of demos by chapter, with descriptions, and how to choose one."""
    narrow = replace(screen, width=min(READABLE, screen.width))
    longest = max(cell_len(name) for names in chapters.values() for name in names)
    lines = []
    for title, names in chapters.items():
        descriptions = [_(meaning) for meaning in names.values()]
        columns = [
            Column(
                "", [Text(spell(set_cell_size(name, longest), screen), "bold") for name in names]
            ),
            Column("", [spell(meaning, screen) for meaning in descriptions]),
        ]
        lines += [Text(_(title), "dim"), *folded_table(columns, narrow), Text()]
    return [*lines, Text(_("To see one: attnviz demo NAME"))]


def _draw_table(table: Table, screen: Screen) -> Iterator[Text]:
    """Yield the title of a table, its columns (in several blocks if the window is narrow), and its colour scale."""
    yield from wrap(table.title, screen, "bold")
    columns = [
        Column(
            spell(name, screen),
            [_text(row[index], table, screen) for row in table.rows],
            right=any(is_number(row[index]) for row in table.rows),
        )
        for index, name in enumerate(table.columns)
    ]
    yield from folded_table(columns, screen)
    if table.shade is not None:
        low, high = table.shade
        yield Text()
        text = _("From {low:.3g} to {high:.3g}").format(low=low, high=high)
        yield from legend(text, screen)


def _text(cell: Cell, table: Table, screen: Screen) -> Text:
    """Return a cell; in a shaded table a float has its colour, or without colours a shade character after it."""
    text = cell_text(cell, table.digits)
    if isinstance(cell, str):
        return Text(spell(text, screen))
    if table.shade is None:
        return Text(text)
    if isinstance(cell, int) or math.isnan(cell):
        # A space where other cells have their shade character keeps the numbers aligned.
        return Text(text if screen.colour else f"{text} ")
    low, high = table.shade
    level = int(levels(np.array([cell - low]), high - low)[0])
    return Text(text, screen.paint(level)) if screen.colour else Text(text + screen.shade(level))
