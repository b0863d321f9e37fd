"""Markdown, HTML and CSV, read back: every shown number is the walkthrough's, and can be added up again."""

from __future__ import annotations

import csv as tables
import math
import re
from html import escape
from io import StringIO
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.text.messages import language
from attnviz.walkthroughs.examples import make
from attnviz.walkthroughs.files import to_json
from attnviz.walkthroughs.pages import markdown as pages_markdown
from attnviz.walkthroughs.pages.markdown import COLUMNS
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.view import View
from attnviz.walkthroughs.wording import explain, formula_of, shapes_of
from tests.walkthroughs.by_hand import walks

if TYPE_CHECKING:
    from collections.abc import Callable


Tables = list[tuple[list[str], list[list[str]]]]
"""Of each table the heads, and the cells of each row, as texts."""

WALKS = walks()
# ------------------------------------------------------------------------------------------- reading back


def strip_marks(text: str) -> str:
    """Markdown as it is shown: backslashes taken away."""
    return re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", text)


def markdown_tables(text: str) -> Tables:
    """The tables of a Markdown page, by GitHub's rules."""
    found: Tables = []
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if not line.startswith("|"):
            continue
        cells = [strip_marks(cell.strip()) for cell in re.split(r"(?<!\\)(?:\\\\)*\|", line)[1:-1]]
        if re.fullmatch(r"\|(?: -+:? \|)+", line):
            assert lines[i + 1].startswith("|")
            continue
        if not lines[i - 1].startswith("|"):
            assert lines[i - 1] == ""
            assert re.fullmatch(r"\| --- \|(?: ---: \|)+", lines[i + 1])
            found.append((cells, []))
        else:
            assert len(cells) == len(found[-1][0])
            found[-1][1].append(cells)
    return found


def markdown(walk: Walkthrough, lang: str = "en", **view: Any) -> str:
    """The walkthrough as Markdown."""
    with language(lang):
        return pages_markdown.markdown(View(walk=walk, **view))


def html(walk: Walkthrough, **view: Any) -> str:
    """The walkthrough as a web page."""
    return walk.page(**view).html


def number(text: str) -> float:
    """A shown number."""
    return -math.inf if text == "-∞" else float(text)


def shown(text: str) -> dict[str, tuple[list[str], np.ndarray]]:
    """The grids of a page by name: names of the columns, and numbers."""
    return {
        heads[0]: (heads[1:], np.array([[number(cell) for cell in row[1:]] for row in rows]))
        for heads, rows in markdown_tables(text)
        if heads[0] not in {"key", "키"}
    }


# ------------------------------------------------------------------------------------------- what is shown


@pytest.mark.parametrize(("name", "lang"), [*zip(WALKS, cycle(("en", "ko")), strict=False)])
def test_every_number_is_shown(name: str, lang: str) -> None:
    """Each grid that a step makes or uses, to the asked precision, in order; and both languages say their words."""
    walk = WALKS[name]
    text = markdown(walk, lang=lang, precision=6)
    grids = shown(text)
    assert set(grids) == set(walk.grids)
    for grid_name, (columns, values) in grids.items():
        there = walk.grids[grid_name]
        assert columns == list(there.columns or map(str, range(there.values.shape[1])))
        assert values == pytest.approx(there.values, rel=1e-6, abs=5.1e-7)
    page = html(walk, lang=lang)
    places = [text.index(f"{i}. ") for i in range(1, len(walk.steps) + 1)]
    assert places == sorted(places)
    for step in walk.steps:
        with language(lang):
            title = explain(step.name)[0]
            formulas = formula_of(walk, step), shapes_of(walk, step)
        for written in (title, *formulas):
            assert written in strip_marks(text)
            assert escape(written, quote=False) in page


@pytest.mark.parametrize("write", [markdown, to_json], ids=["markdown", "json"])
def test_seq2seq_as_a_file(golden: Callable[[str], None], write: Callable[..., str]) -> None:
    """The book's example as the command writes it, letter for letter; another processor may choose a 15th digit."""
    text = write(WALKS["seq2seq"], **({} if write is to_json else {"precision": 8}))
    golden(
        re.sub(r"\d+\.\d+(?:e-\d+)?", lambda number: repr(float(f"{float(number[0]):.14g}")), text)
        if write is to_json
        else text
    )


def test_an_exercise_is_one_table() -> None:
    """It has a line for the name, what to do, the given numbers and every blank once; the solution has all."""
    walk = make(5)
    text = markdown(walk, blanks=walk.blanks())
    plain = text.replace("\\", "")
    assert "Name: ____" in plain
    assert "Fill in the blanks; round to 3 decimals" in plain
    ((heads, rows),) = markdown_tables(text)
    assert [head.split(" = ")[0] for head in heads] == [
        *("key", "k", "score", "scaled", "weight", "value", "alignment")
    ]
    assert str(rows).count("____") == len(walk.blanks())
    given = [[int(value) for value in row[1][1:-1].split(",")] for row in rows[:-1]]
    assert given == [*walk.grids["q"].values.tolist(), *walk.grids["K"].values.tolist()]
    assert not re.search("seed|model", text)
    assert "____" not in str(markdown_tables(markdown(walk)))


# ------------------------------------------------------------------------------------- what would be obeyed


def test_the_page_fetches_nothing() -> None:
    """No address, and scripts and styles by digests; and a language for whoever reads it aloud."""
    text = html(WALKS["layer"], lang="ko")
    assert '<html lang="ko">' in text
    assert not re.search(r"https?:|url\(|@import|<link|<img| src=| href=| on[a-z]+=", text)
    (policy,) = re.findall(r'content="([^"]*default-src[^"]*)"', text)
    assert "default-src 'none'; script-src 'sha256-" in policy.replace("&#x27;", "'")
    assert "unsafe" not in policy


# ------------------------------------------------------------------------------------------------------- csv


@pytest.mark.parametrize("name", WALKS)
def test_csv_holds_every_digit(name: str) -> None:
    """One line for each number, whose value is the very double, with its step, grid, row and column."""
    walk = WALKS[name]
    rows = list(tables.reader(StringIO(pages_markdown.csv(View(walk=walk)))))
    assert tuple(rows[0]) == COLUMNS
    made = {step.result: (str(i), step.name) for i, step in enumerate(walk.steps, start=1)}
    seen: dict[str, np.ndarray] = {
        key: np.full(there.values.shape, np.nan) for key, there in walk.grids.items()
    }
    for step, step_name, key, row, row_name, column, column_name, value in rows[1:]:
        there = walk.grids[key]
        assert (step, step_name) == made.get(key, ("", ""))
        assert row_name == (there.rows[int(row)] if there.rows else "")
        assert column_name == (there.columns[int(column)] if there.columns else "")
        assert math.isnan(seen[key][int(row), int(column)])
        seen[key][int(row), int(column)] = float(value)
    assert all(seen[key].tobytes() == there.values.tobytes() for key, there in walk.grids.items())
