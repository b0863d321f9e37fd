"""Markdown and HTML in the programs they are for: the numbers shown are those of the walkthrough."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.walkthroughs.hand import one_format
from attnviz.walkthroughs.pages.content import (
    FIRST,
    FIRST_ROWS,
    LAST,
    LAST_ROWS,
    MOST,
    MOST_ROWS,
    lay_out,
)
from attnviz.walkthroughs.pages.html import page as web_page
from attnviz.walkthroughs.pages.markdown import markdown
from attnviz.walkthroughs.view import View
from tests.programs import browser, output
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


def expected(walk: Walkthrough) -> set[str]:
    """Every number that a page shows of a walk with names for its rows."""
    found = set()
    for there in walk.grids.values():
        n_rows, n_columns = there.values.shape
        rows = (
            range(n_rows)
            if n_rows <= MOST_ROWS
            else [*range(FIRST_ROWS), *range(n_rows - LAST_ROWS, n_rows)]
        )
        columns = (
            range(n_columns)
            if n_columns <= MOST
            else [*range(FIRST), *range(n_columns - LAST, n_columns)]
        )
        write = one_format(there.values, View(walk=walk).digits)
        found |= {write(float(there.values[row, column])) for row in rows for column in columns}
    return found


# -------------------------------------------------------------------------------------------------- Markdown


@pytest.mark.parametrize("language", ["en", "ko"])
def test_markdown_as_github_reads_it(language: str, tmp_path: Path) -> None:
    """Its parser finds the numbers and names in their cells, and no mark of a name is obeyed."""
    page = tmp_path / "walk.md"
    walk = wide()
    page.write_text(markdown(View(walk=walk, lang=language)), encoding="utf-8")
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
    sections = [*lay_out(View(walk=walk, lang=language))]
    assert len(tables) == len(sections)
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


def test_the_page_on_paper(tmp_path: Path) -> None:
    """Printed it has every number, of tables too that scroll on the screen, none cut off at the edge of the paper."""
    page, pdf = tmp_path / "walk.html", tmp_path / "walk.pdf"
    walk = wide()
    page.write_text(web_page(View(walk=walk)).html, encoding="utf-8")
    browser(page, "--no-pdf-header-footer", f"--print-to-pdf={pdf}")
    width, height = map(
        float, re.findall(r"Page size: +([\d.]+) x ([\d.]+)", output("pdfinfo", pdf))[0]
    )
    boxes = re.findall(
        r'xMin="([-\d.]+)" yMin="([-\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)">([^<]*)<',
        output("pdftotext", "-bbox", pdf, "-"),
    )
    assert expected(walk) <= {word for *_, word in boxes}
    corners = np.array([box[:4] for box in boxes], dtype=float)
    assert (corners.min(axis=0)[:2] > 0).all()
    assert (corners.max(axis=0)[2:] < (width, height)).all()
