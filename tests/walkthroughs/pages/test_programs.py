"""Markdown and HTML in the programs they are for: the numbers shown are those of the walkthrough."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnviz.text.messages import language
from attnviz.walkthroughs.pages.content import (
    MOST,
    lay_out,
)
from attnviz.walkthroughs.pages.markdown import markdown
from attnviz.walkthroughs.view import View
from tests.programs import output
from tests.walkthroughs.by_hand import attention_walk, grid

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough

WORDS = (
    r"A&B 50% $5 #1 a_b {x} ~y ^z \z",
    'a|b "q" `c` don\'t',
    "나는",
    "사랑해",
    "🙂 漢字 é",
    *(f"w{i}" for i in range(45)),
)
"""Names with marks that a page would obey; so many that rows are left out in the middle."""


def wide() -> Walkthrough:
    """A calculation with more columns than are shown, and with as many as are."""
    keys = grid(len(WORDS), 768, seed=4, rows=WORDS)
    values = grid(len(WORDS), MOST, seed=5, rows=WORDS)
    made = attention_walk(
        title="a-b: 768 wide", query=grid(1, 768, rows=("나는",)), keys=keys, values=values
    )
    return replace(made, text=" ".join(WORDS), model="no_model & 100 %")


# -------------------------------------------------------------------------------------------------- Markdown


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_markdown_as_github_reads_it(lang: str, tmp_path: Path) -> None:
    """Its parser finds the numbers and names in their cells, and no mark of a name is obeyed."""
    page = tmp_path / "walk.md"
    walk = wide()
    with language(lang):
        page.write_text(markdown(View(walk=walk)), encoding="utf-8")
        sections = [*lay_out(View(walk=walk))]
    made = output(
        "cmark-gfm", "-e", "table", "-e", "autolink", "-e", "strikethrough", "-e", "tagfilter", page
    )
    assert set(re.findall(r"<(\w+)", made)) == {
        *["h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td"]
    }
    tables = [
        [
            re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
            for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
        ]
        for table in re.findall(r"<table>(.*?)</table>", made, re.DOTALL)
    ]
    _whole, *tables = tables
    for table, section in zip(tables, sections, strict=True):
        there = section.table
        rows = [
            (there.corner, *there.columns),
            *(
                (label, *([cell.text for cell in cells] or [""] * len(there.columns)))
                for label, cells in there.rows
            ),
        ]
        assert [[unescape(cell) for cell in row] for row in table] == [list(row) for row in rows]


# --------------------------------------------------------------------------------------------------- browser
