"""A walkthrough as one web page: nothing is fetched, nothing runs, dark and light as the reader has it."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Unpack
from unicodedata import east_asian_width

from attnviz.walkthroughs.pages.content import DEPTH, PageCell, PageContent, PageTable, Section, lay_out
from attnviz.walkthroughs.pages.mathematics import mathml
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.view import ViewOptions

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #fdfdfc; --faint: #5c5c66; --line: #d5d5da; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf1; --paper: #17171b; --faint: #a5a5b0; --line: #3c3c45; }
}
body { background: var(--paper); color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto;
  max-width: 80rem; padding: 0 1rem; overflow-wrap: anywhere; }
:lang(ko) { word-break: keep-all; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.15rem; margin: 2.5rem 0 0.5rem; }
p { margin: 0.5rem 0; max-width: 60rem; }
footer { margin-top: 2.5rem; }
.faint, .shapes { color: var(--faint); }
.hand, td { font-family: ui-monospace, monospace; }
.formula, .shapes { display: inline-block; margin-right: 1.5rem; }
.formula { font-size: 1.15rem; }
.table { margin: 0.75rem 0; max-width: 100%; overflow-x: auto; width: max-content; }
.table:focus-visible { outline: 3px solid #d6781e; outline-offset: 2px; }
table { border: solid var(--line); border-width: 1px 0 0 1px; border-spacing: 0; }
th, td { border: solid var(--line); border-width: 0 1px 1px 0; padding: 0.2rem 0.6rem; text-align: right;
  white-space: nowrap; }
th { font-weight: 600; } tbody th, thead th:first-child { background: var(--paper); left: 0; position: sticky;
  text-align: left; }
tbody th[colspan] { color: var(--faint); font-weight: 400; position: static; }
@media print {
  :root { --paper: #fff; }
  body { margin: 0; max-width: none; padding: 0; }
  section { break-inside: avoid; } h2 { break-after: avoid; }
  table { font-size: min(0.8rem, calc(100vw / var(--ems))); }
  th, td { padding: 0.1em 0.4em; print-color-adjust: exact; }
}
""".strip()
"""On a screen a wide table scrolls under the names of its rows; on paper it gets as small as it must to be there whole.
"""


def html(walk: Walkthrough, **options: Unpack[ViewOptions]) -> str:
    """The walkthrough as one web page that fetches nothing."""
    return "\n".join(_lines(lay_out(walk, **options))) + "\n"


def _lines(page: PageContent) -> Iterator[str]:
    title = escape(page.title)
    yield f'<!doctype html>\n<html lang="{page.language}">\n<head>\n<meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield ("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">")
    yield f"<title>{title}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>"
    if page.source:
        yield _paragraph(page.source)
    for number, section in enumerate(page.sections):
        yield from _section(section, f"part-{number}")
    yield "</main>\n<footer>"
    for text in (page.signs, *page.foot):
        yield _paragraph(text, "faint")
    yield "</footer>\n</body>\n</html>"


def _section(section: Section, name: str) -> Iterator[str]:
    yield f'<section>\n<h2 id="{name}">{escape(section.title)}</h2>'
    for kind, block in section.blocks:
        if kind == "symbols":
            yield f"<p>{' '.join(map(_symbols, block.items()))}</p>"
        elif kind == "table":
            yield from _table(block, name)
        else:
            yield _paragraph(block, {"remark": "faint", "hand": "hand"}.get(kind, ""))
    yield "</section>"


def _symbols(named: tuple[str, str]) -> str:
    return f'<span class="{named[0]}">{mathml(named[1])}</span>'


def _table(table: PageTable, name: str) -> Iterator[str]:
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in (table.corner, *table.columns))
    # Who has no mouse must reach a table to scroll it, and who does not see it must hear which one it is.
    yield f'<div class="table" role="group" tabindex="0" aria-labelledby="{name}">'
    yield f'<table aria-labelledby="{name}" style="--ems: {_ems(table):.1f}">\n<thead><tr>{heads}</tr></thead>\n<tbody>'
    for label, cells in table.rows:
        if not any(cell.text for cell in cells):  # rows left out
            yield f'<tr><th scope="row" colspan="{len(cells) + 1}">{escape(label)}</th></tr>'
            continue
        yield f'<tr><th scope="row">{escape(label)}</th>{"".join(map(_cell, cells))}</tr>'
    yield "</tbody>\n</table>\n</div>"


def _ems(table: PageTable) -> float:
    """How wide the table is at least, in units of its size of letters; the names are in wide ones."""
    columns = [[table.columns[i], *(cells[i].text for _, cells in table.rows)] for i in range(len(table.columns))]
    names = [table.corner, *(label for label, _ in table.rows)]
    widths = (max(map(_width, texts), default=0) for texts in columns)
    return 0.7 * max(map(_width, names)) + sum(0.62 * width + 0.9 for width in widths) + 0.9


def _width(text: str) -> int:
    """In columns of a terminal: Korean letters count twice."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def _cell(cell: PageCell) -> str:
    hue = " ".join(map(str, cell.hue))
    style = f' style="background: rgb({hue} / {cell.share * DEPTH:.2f})"' if cell.share else ""
    return f"<td{style}>{escape(cell.text)}</td>"


def _paragraph(text: str, name: str = "") -> str:
    return f'<p class="{name}">{escape(text)}</p>' if name else f"<p>{escape(text)}</p>"
