"""A story as a page: its text, its tables, its panels as SVG; and where it speaks of patterns, live views of them."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.heatmaps.html import StoryText
from attnviz.heatmaps.html import story as with_views
from attnviz.pages import WebPage
from attnviz.render.html import build, palettes
from attnviz.render.palette import DEFAULT
from attnviz.stories.record import Story, StoryView, Table, cell_text, is_number
from attnviz.text.display import hold_units
from attnviz.text.messages import expect_language, korean

SCRIPTS = Path(__file__).parent / "scripts"
OWN = tuple(SCRIPTS / name for name in ("charts.js", "story.js", "story.css"))


def page(story: Story, *, palette: str = DEFAULT, lang: str | None = None) -> WebPage:
    """A story as a page in both languages, the story's own at first; or SelectionError: no such palette or language."""
    lang = lang or story.language
    expect_language(lang)
    story = story.original or story
    title, parts = _bilingual(story.title), [_plain(part) for part in story.parts]
    introduction = parts.pop(0) if story.views else None  # stands beside the views
    labels = {
        "lang": lang,
        "palette": palettes(palette),
        "story": {
            "title": title,
            "receipt": _bilingual(story.receipt),
            "parts": parts,
            "live": bool(story.views),
            "picture": [_plain(panel) for panel in story.picture],
            "signed": palettes(signed=True),
        },
    }
    if introduction is None:
        place = lang == "ko"
        head = [("proof", labels["story"]["receipt"][place])]  # type: ignore[index]
        return WebPage(build(title[place], head, labels=labels, data=b"", own=OWN, language=lang))
    views = [(_bilingual(view.text), _state(view, story)) for view in story.views]
    text = StoryText(title=title, introduction=introduction, views=views, records=story.records)
    return with_views(text, palette=palette, lang=lang, more={"story": labels["story"]}, own=OWN)


def _state(view: StoryView, story: Story) -> dict[str, object]:
    shown = {"record": view.record} if story.records else {"text": view.sentence}
    head = "" if view.head is None else "{}.{}".format(*view.head)
    query, key = (-1 if place is None else place for place in (view.query, view.key))
    return {**shown, "head": head, "query": query, "key": key, "step": view.step}


def _bilingual(text: str) -> tuple[str, str]:
    return hold_units(str(text)), hold_units(str(korean(text)))


def _plain(value: Any) -> Any:
    """A part of a story as plain values: a text in both languages, a number as it is, None for what is no number."""
    if isinstance(value, str):
        return _bilingual(value)
    if isinstance(value, Table):
        return _table(value)
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(one) for one in (value.tolist() if isinstance(value, np.ndarray) else value)]
    if is_dataclass(value):
        return {"is": type(value).__name__} | {
            one.name: _plain(getattr(value, one.name)) for one in fields(value)
        }
    if not isinstance(value, float):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None


def _table(table: Table) -> dict[str, Any]:
    """A table as it is shown: texts, which columns are of numbers, and how dark each cell is, from 0 to 1."""
    low, high = table.shade or (0.0, 1.0)
    return {
        "title": _bilingual(table.title),
        "columns": [_bilingual(name) for name in table.columns],
        "rows": [[_bilingual(cell_text(cell, table.digits)) for cell in row] for row in table.rows],
        "numbers": [
            any(is_number(row[index]) for row in table.rows) for index in range(len(table.columns))
        ],
        "shades": [
            [
                _plain((cell - low) / (high - low)) if isinstance(cell, float) else None
                for cell in row
            ]
            for row in table.rows
        ]
        if table.shade
        else [],
    }
