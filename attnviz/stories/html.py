"""A story as a page: text, tables and charts, and live views of the attention that the text describes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from attnviz.heatmaps.html import StoryText
from attnviz.heatmaps.html import story as with_views
from attnviz.look import Look, Palette
from attnviz.pages import WebPage
from attnviz.render.html import build, palettes, template
from attnviz.render.theme import LIGHT, theme_of
from attnviz.stories.figure import NAMED, draw_alone, notes_of
from attnviz.stories.record import (
    Cell,
    Lines,
    Matrix,
    Panel,
    Series,
    Story,
    StoryView,
    Table,
    cell_text,
    is_number,
    typeset,
)
from attnviz.text.display import hold_units
from attnviz.text.messages import _

HERE = Path(__file__).parent
OWN = (HERE / "scripts" / "story.js", HERE / "scripts" / "story.css")
COLOURS = {
    LIGHT.ink: "var(--ink)",
    LIGHT.quiet: "var(--faint)",
    LIGHT.paper: "var(--paper)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(LIGHT.series)},
    **{getattr(LIGHT, name): f"var(--{name})" for name in ("frame", "grid", "shade", "hatch")},
}
"""The colours of a drawing, as a page names them; `story.css` has those of `Theme` for light and for dark pages."""
MINUS, MISSING = "\u2212", "\u2013"


def page(story: Story, look: Look) -> WebPage:
    """Return a story as a page.

    Raises SelectionError: the palette is unknown.
    """
    palette, theme = look.palette, look.theme
    theme_of(theme, palette)
    # The first paragraph of a story with views is shown next to them.
    has_views = bool(story.views)
    introduction, *rest = story.parts if has_views else ("", *story.parts)
    lesson = template(HERE / "templates" / "story.html").render(
        title=_("The whole story") if has_views else "",
        parts=[_typeset(part) if isinstance(part, str) else _table(part) for part in rest],
        panels=[_panel(panel, number, palette) for number, panel in enumerate(story.picture)],
        receipt=_typeset(story.receipt) if has_views else "",
    )
    title = _typeset(story.title)
    if not has_views:
        head, labels = [("proof", _typeset(story.receipt))], {"palette": palettes(palette)}
        return WebPage(build(title, head, labels=labels, own=OWN, theme=theme, body=lesson))
    text = StoryText(
        title=title,
        introduction=_typeset(str(introduction)),
        views=[(_typeset(view.text), _state(view, story)) for view in story.views],
        records=story.records,
    )
    return with_views(text, palette=palette, theme=theme, after=lesson, own=OWN)


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


def _table(table: Table) -> dict[str, Any]:
    """Return a table for the template: texts, which columns are numbers, and the shade of each cell from 0 to 1."""
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


# Panels.


def _panel(panel: Panel, number: int, palette: Palette) -> dict[str, Any]:
    """Return a panel for the template: its drawing, and its numbers as a table."""
    title, numbers = _typeset(panel.title), _numbers(panel)
    file = BytesIO()
    draw_alone(panel, palette).write(file, ".svg")
    return {
        "title": title,
        "note": " ".join(notes_of([panel])),
        "drawing": _inline(file.getvalue(), title, f"p{number}-"),
        "numbers": numbers and _table(numbers),
    }


def _inline(svg: bytes, label: str, prefix: str) -> str:
    """Return an SVG of Matplotlib's as an element of a page.

    The page's content security policy allows no styles within elements, so that they become attributes. Fonts are those
    of the page, and so are colours, but in the parts that are only for light or for dark pages. Ids begin with
    `prefix`, because they must be unique in the page.
    """
    root = ElementTree.fromstring(svg)
    used = set(re.findall(r"#([\w.-]+)", svg.decode()))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.rpartition("}")[2] in {"metadata", "style", "title"}:
                parent.remove(child)
    _clean(root, used, prefix, COLOURS)
    # The viewBox alone scales the drawing to the width that it has in the page.
    root.attrib.pop("height", None)
    root.attrib |= {"role": "img", "aria-label": label}
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: Element, used: set[str], prefix: str, colours: Mapping[str, str]) -> None:
    """Replace the styles, colours and ids of an element and of those within it; see `_inline`."""
    attributes = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    for declaration in attributes.pop("style", "").split(";"):
        key, _colon, text = map(str.strip, declaration.partition(":"))
        if key == "font":  # of older Matplotlib: size and families together
            size = re.search(r"[\d.]+px", text)
            key, text = "font-size", size[0] if size else "10px"
        if key and key != "font-family":
            attributes[key] = text
    name = attributes.pop("id", "")
    if name in {"on-light", "on-dark"}:
        attributes["class"] = name
        colours = {}
    elif name in used:
        attributes["id"] = prefix + name
    element.tag = element.tag.rpartition("}")[2]
    element.attrib.clear()
    for key, value in attributes.items():
        text = re.sub(r"url\(#", f"url(#{prefix}", colours.get(value, value))
        element.set(key, re.sub("^#", f"#{prefix}", text) if key == "href" else text)
    for child in element:
        _clean(child, used, prefix, colours)


def _numbers(panel: Panel) -> Table | None:
    """Return the numbers of a panel as a table; None for a matrix with too many."""
    if isinstance(panel, Matrix):
        n_rows, n_columns = panel.values.shape
        if max(n_rows, n_columns) > NAMED:
            return None
        title = panel.title
        first = _("rows: {0}, columns: {1}").format(panel.row_title, panel.column_title)
        names, columns = panel.rows or range(n_rows), panel.columns or range(n_columns)
        cells = [list(map(_short, row)) for row in panel.values.tolist()]
    else:
        title, columns = panel.y_title, [series.name for series in panel.series]
        names = list(map(_short, panel.x)) if isinstance(panel, Lines) else panel.labels
        first = panel.x_title if isinstance(panel, Lines) else ""
        cells = [[_range(series, n) for series in panel.series] for n in range(len(names))]
    rows = [(str(name), *row) for name, row in zip(names, cells, strict=True)]
    return Table(title, [first, *map(str, columns)], rows)


def _range(series: Series, n: int) -> str:
    """Return a number of a series with its interval, if it has one."""
    value = _short(series.values[n])
    if not series.low:
        return value
    low, high = _short(series.low[n]), _short(series.high[n])
    return _("{value} ({low} to {high})").format(value=value, low=low, high=high)


def _short(value: float) -> str:
    """Return a number with four digits; a dash if it is missing."""
    return f"{value:.4g}".replace("-", MINUS) if math.isfinite(value) else MISSING
