"""A story as a page: text, tables and panels, and live views of the attention that the text describes."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.heatmaps.html import StoryText
from attnviz.heatmaps.html import story as with_views
from attnviz.look import Look
from attnviz.pages import WebPage
from attnviz.render.html import build, palettes
from attnviz.render.theme import theme_of
from attnviz.stories.record import Cell, Story, StoryView, Table, cell_text, is_number, typeset
from attnviz.text.display import hold_units

SCRIPTS = Path(__file__).parent / "scripts"
OWN = tuple(SCRIPTS / name for name in ("charts.js", "story.js", "story.css"))


def page(story: Story, look: Look) -> WebPage:
    """Return a story as a page.

    Raises SelectionError: the palette is unknown.
    """
    palette, theme = look.palette, look.theme
    theme_of(theme, palette)
    parts = [_plain(part) for part in story.parts]
    # The first paragraph of a story with views is shown next to them.
    introduction = parts.pop(0) if story.views else None
    plan = {
        "title": _typeset(story.title),
        "receipt": _typeset(story.receipt),
        "parts": parts,
        "live": bool(story.views),
        "picture": [_plain(panel) for panel in story.picture],
        "signed": palettes(signed=True),
    }
    if introduction is None:
        labels = {"palette": palettes(palette), "story": plan}
        head = [("proof", _typeset(story.receipt))]
        title = _typeset(story.title)
        html = build(title, head, labels=labels, data=b"", own=OWN, theme=theme)
        return WebPage(html)
    text = StoryText(
        title=_typeset(story.title),
        introduction=introduction,
        views=[(_typeset(view.text), _state(view, story)) for view in story.views],
        records=story.records,
    )
    return with_views(text, palette=palette, theme=theme, more={"story": plan}, own=OWN)


def _state(view: StoryView, story: Story) -> dict[str, object]:
    """Return the state of the page that shows a view."""
    state: dict[str, object] = {
        "head": "" if view.head is None else f"{view.head[0]}.{view.head[1]}",
        "query": -1 if view.query is None else view.query,
        "key": -1 if view.key is None else view.key,
        "step": view.step,
    }
    return state | ({"record": view.record} if story.records else {"text": view.sentence})


def _typeset(text: str) -> str:
    """Return a text with its formulas typeset, and with numbers and units held together."""
    return hold_units(typeset(text))


def _plain(value: Any) -> Any:
    """Return a part of a story for JSON: None for missing numbers."""
    if isinstance(value, str):
        return _typeset(value)
    if isinstance(value, Table):
        return _table(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        content = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        return {"is": type(value).__name__} | content
    if isinstance(value, float):
        return float(f"{value:.6g}") if math.isfinite(value) else None
    return value


def _table(table: Table) -> dict[str, Any]:
    """Return a table for JSON: texts, which columns are numbers, and the shade of each cell from 0 to 1."""
    return {
        "title": _typeset(table.title),
        "columns": [_typeset(name) for name in table.columns],
        "rows": [[_typeset(cell_text(cell, table.digits)) for cell in row] for row in table.rows],
        "numbers": [any(map(is_number, column)) for column in zip(*table.rows, strict=True)],
        "shades": [[_shade(cell, table) for cell in row] for row in table.rows],
    }


def _shade(cell: Cell, table: Table) -> float | None:
    """Return the shade of a cell from 0 to 1; None for a cell without one."""
    if table.shade is None or not isinstance(cell, float) or math.isnan(cell):
        return None
    low, high = table.shade
    return float(f"{(cell - low) / (high - low):.6g}")
