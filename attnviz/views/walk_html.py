"""A walkthrough as one web page: nothing is fetched, nothing runs, dark and light as the reader has it."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from attnviz.views.walk_sheet import Cell, Section, Sheet, Table

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #fdfdfc; --faint: #5c5c66; --line: #d5d5da; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf1; --paper: #17171b; --faint: #a5a5b0; --line: #3c3c45; }
}
body { background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 60rem; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.faint, .shapes { color: var(--faint); }
.formula, .shapes, .hand, td { font-family: ui-monospace, monospace; }
.formula { font-size: 1.05rem; margin-right: 1.5rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { border: 1px solid var(--line); padding: 0.2rem 0.6rem; text-align: right; white-space: nowrap; }
th { font-weight: 600; } tbody th, thead th:first-child { text-align: left; }
td { background: rgb(214 120 30 / calc(var(--share, 0) * 0.5)); }
""".strip()
"""The shade is thin enough for dark ink on light paper and light ink on dark."""


def page(sheet: Sheet) -> str:
    """The page, with a line end at its end."""
    return "\n".join(_lines(sheet)) + "\n"


def _lines(sheet: Sheet) -> Iterator[str]:
    title = escape(sheet.title)
    yield f'<!doctype html>\n<html lang="{sheet.language}">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield ("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">")
    yield f"<title>{title}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n<h1>{title}</h1>"
    if sheet.source:
        yield _paragraph(sheet.source)
    for section in sheet.sections:
        yield from _section(section)
    yield "<footer>"
    for text in (*sheet.notes, sheet.receipt):
        yield _paragraph(text, "faint")
    yield "</footer>\n</body>\n</html>"


def _section(section: Section) -> Iterator[str]:
    yield f"<section>\n<h2>{escape(section.title)}</h2>"
    symbols = [
        f'<span class="{name}">{escape(text)}</span>'
        for name, text in (("formula", section.formula), ("shapes", section.shapes))
        if text
    ]
    if symbols:
        yield f"<p>{' '.join(symbols)}</p>"
    if section.sentence:
        yield _paragraph(section.sentence)
    yield from _table(section.table)
    if section.table.remark:
        yield _paragraph(section.table.remark, "faint")
    if section.hand:
        yield _paragraph(section.hand, "hand")
    yield "</section>"


def _table(table: Table) -> Iterator[str]:
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in (table.corner, *table.columns))
    yield f'<div class="table">\n<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>'
    for label, cells in table.rows:
        yield f'<tr><th scope="row">{escape(label)}</th>{"".join(map(_cell, cells))}</tr>'
    yield "</tbody>\n</table>\n</div>"


def _cell(cell: Cell) -> str:
    style = f' style="--share: {cell.shade:.2f}"' if cell.shade else ""
    return f"<td{style}>{escape(cell.text)}</td>"


def _paragraph(text: str, name: str = "") -> str:
    return f'<p class="{name}">{escape(text)}</p>' if name else f"<p>{escape(text)}</p>"
