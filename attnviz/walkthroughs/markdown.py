"""A walkthrough as Markdown, with tables as GitHub draws them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from attnviz.walkthroughs.page import Section, Sheet, Table, signs
from attnviz.walkthroughs.wording import multiplied

_MARKS = re.compile(r"[\\`*_{}\[\]<>|#&~$!@]")
"""What Markdown, its tables or HTML inside it would obey."""

_BEGINNING = re.compile(r"^(?:[-+=]|\d+(?=[.)]))")
"""What makes a list or a heading of a line that begins with it."""


def page(sheet: Sheet) -> str:
    """The page, with a line end at its end."""
    return "\n".join(_lines(sheet)) + "\n"


def escaped(text: str) -> str:
    """The text as Markdown shows it, letter for letter."""
    return _MARKS.sub(r"\\\g<0>", " ".join(text.split()))


def _lines(sheet: Sheet) -> Iterator[str]:
    yield f"# {escaped(sheet.title)}"
    if sheet.source:
        yield from ("", _paragraph(sheet.source))
    for section in sheet.sections:
        yield from _section(section)
    for text in (signs(sheet), *sheet.notes, sheet.receipt):
        yield from ("", _paragraph(text))


def _section(section: Section) -> Iterator[str]:
    yield from ("", f"## {escaped(section.title)}")
    symbols = [_code(multiplied(text)) for text in (section.formula, section.shapes) if text]
    if symbols:
        yield from ("", " · ".join(symbols))
    if section.sentence:
        yield from ("", _paragraph(section.sentence))
    yield ""
    yield from _table(section.table)
    if section.table.remark:
        yield from ("", _paragraph(section.table.remark))
    if section.hand:
        yield from ("", _paragraph(section.hand))


def _table(table: Table) -> Iterator[str]:
    yield _row([escaped(table.corner), *map(escaped, table.columns)])
    yield _row(["---", *["---:" for _ in table.columns]])
    for label, cells in table.rows:
        yield _row([escaped(label), *(escaped(cell.text) for cell in cells)])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _paragraph(text: str) -> str:
    plain = escaped(text)
    beginning = _BEGINNING.match(plain)
    if beginning is None:
        return plain
    place = beginning.end() if beginning[0].isdigit() else 0
    return f"{plain[:place]}\\{plain[place:]}"


def _code(text: str) -> str:
    """The text between as many backticks as it does not hold."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if longest else ""
    return f"{fence}{padding}{text}{padding}{fence}"
