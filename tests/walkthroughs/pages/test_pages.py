"""Markdown, HTML and CSV, read back: every shown number is the walkthrough's, and can be added up again."""

from __future__ import annotations

import csv as tables
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.walkthroughs.examples import make
from attnviz.walkthroughs.files import to_json
from attnviz.walkthroughs.pages import markdown as pages_markdown
from attnviz.walkthroughs.pages.content import FIRST, LAST, MOST
from attnviz.walkthroughs.pages.html import page as web_page
from attnviz.walkthroughs.pages.markdown import COLUMNS
from attnviz.walkthroughs.pages.mathematics import mathml, tex
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.view import View
from attnviz.walkthroughs.wording import explain, formula_of, shapes_of
from tests.walkthroughs.by_hand import RECEIPT, grid, layer, note, walks

if TYPE_CHECKING:
    from collections.abc import Callable


Tables = list[tuple[list[str], list[list[str]]]]
"""Of each table the heads, and the cells of each row, as texts."""

WALKS = walks()
WICKED = r"""\ ` * _ { } [ ] < > # | & ~ ^ $ % ! @ " ' - <b>&amp; \end{document} 1. x"""

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


class Page(HTMLParser):
    """A web page as it is seen without scripts; tags that are not closed, or closed in another order, fail."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        # of each open tag whether it is not seen: of another language, or no text
        self.hidden: list[bool] = []
        self.language = ""
        self.tables: Tables = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag == "meta":
            return
        self.open.append(tag)
        language = dict(attrs).get("lang") or ""
        self.language = self.language or language
        self.hidden.append(tag in {"script", "style"} or language not in {"", self.language})
        if tag == "table":
            self.tables.append(([], []))
        elif tag == "tr" and "tbody" in self.open:
            self.tables[-1][1].append([])
        elif tag in {"td", "th"}:
            row = self.tables[-1][1][-1] if "tbody" in self.open else self.tables[-1][0]
            row += [""] * int(dict(attrs).get("colspan") or 1)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.hidden.pop()

    def handle_data(self, data: str) -> None:
        if any(self.hidden):
            return
        self.texts.append(data)
        cells = {"td", "th"} & {*self.open}
        if cells:
            row = self.tables[-1][1][-1] if "tbody" in self.open else self.tables[-1][0]
            row[0 if cells == {"th"} and "tbody" in self.open else -1] += data


def parse(text: str) -> Page:
    """A whole page."""
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


def html_tables(text: str) -> Tables:
    """The tables of a web page."""
    return parse(text).tables


def markdown(walk: Walkthrough, **view: Any) -> str:
    """The walkthrough as Markdown."""
    return pages_markdown.markdown(View(walk=walk, **view))


def html(walk: Walkthrough, **view: Any) -> str:
    """The walkthrough as a web page."""
    return web_page(View(walk=walk, **view)).html


PAGES: dict[str, tuple[Callable[..., str], Callable[[str], Tables]]] = {
    "markdown": (markdown, markdown_tables),
    "html": (html, html_tables),
}


def number(text: str) -> float:
    """A shown number."""
    return -math.inf if text == "-∞" else float(text)


def shown(text: str, read: Callable[[str], Tables]) -> dict[str, tuple[list[str], np.ndarray]]:
    """The grids of a page by name: names of the columns, and numbers."""
    return {
        heads[0]: (heads[1:], np.array([[number(cell) for cell in row[1:]] for row in rows]))
        for heads, rows in read(text)
        if heads[0] not in {"key", "키"}
    }


# ------------------------------------------------------------------------------------------- what is shown


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("form", PAGES)
@pytest.mark.parametrize("name", WALKS)
def test_every_number_is_shown(name: str, form: str, language: str) -> None:
    """Each grid that a step makes or uses, to the asked precision, in order; and both languages say their words."""
    walk = WALKS[name]
    write, read = PAGES[form]
    text = write(walk, lang=language, precision=6)
    grids = shown(text, read)
    assert set(grids) == set(walk.grids)
    for grid_name, (columns, values) in grids.items():
        there = walk.grids[grid_name]
        assert columns == list(there.columns or map(str, range(there.values.shape[1])))
        assert values == pytest.approx(there.values, rel=1e-6, abs=5.1e-7)
    plain = " ".join(parse(text).texts) if form == "html" else text
    places = [plain.index(f"{i}. ") for i in range(1, len(walk.steps) + 1)]
    assert places == sorted(places)
    for step in walk.steps:
        assert explain(step.name, language)[0] in strip_marks(plain)
        write_formula = tex if form == "markdown" else mathml
        assert write_formula(formula_of(walk, step, language=language)) in text
        assert write_formula(shapes_of(walk, step, language=language)) in text


@pytest.mark.parametrize("form", PAGES)
def test_the_five_steps_digit_for_digit(form: str) -> None:
    """The course's numbers, as it prints them, and its table of key, score, weight and alignment."""
    write, read = PAGES[form]
    found = {heads[0]: (heads, rows) for heads, rows in read(write(WALKS["seq2seq"], precision=8))}
    one, five = "1.00000000e+00", "5.00000000e+00"
    assert found["scores"][1] == [["decoder", "15", "60", "15", "35"]]
    assert found["weights"][1] == [
        ["decoder", "2.86251858e-20", one, "2.86251858e-20", "1.38879439e-11"]
    ]
    assert found["context"][1] == [["decoder", five, "6.94397194e-11", one]]
    assert found["concatenated"][1][0][1:] == [
        five,
        "6.94397194e-11",
        one,
        "1.00000000e+01",
        five,
        "1.00000000e+01",
    ]
    heads, rows = found["key"]
    assert heads == ["key", "score", "weight", "alignment"]
    assert rows == [
        ["encoder 1", "15", "2.86251858e-20", "[0, 2.86251858e-20, 2.86251858e-20]"],
        ["encoder 2", "60", one, f"[{five}, 0, {one}]"],
        ["encoder 3", "15", "2.86251858e-20", "[2.86251858e-20, 2.86251858e-20, 0]"],
        ["encoder 4", "35", "1.38879439e-11", "[0, 6.94397193e-11, 1.38879439e-11]"],
    ]
    text = write(WALKS["seq2seq"], precision=8)
    assert "10·5 + 5·0 + 10·1 = 60" in text


@pytest.mark.parametrize("write", [markdown, to_json], ids=["markdown", "json"])
def test_seq2seq_as_a_file(golden: Callable[[str], None], write: Callable[..., str]) -> None:
    """The book's example as the command writes it, letter for letter; another processor may choose a 15th digit."""
    text = write(WALKS["seq2seq"], **({} if write is to_json else {"precision": 8}))
    golden(
        re.sub(r"\d+\.\d+(?:e-\d+)?", lambda number: repr(float(f"{float(number[0]):.14g}")), text)
        if write is to_json
        else text
    )


@pytest.mark.parametrize("form", PAGES)
def test_blanks_stay_blank(form: str) -> None:
    """Every blank cell, wherever it is shown, and no arithmetic that would give it away; the solution has all."""
    write, read = PAGES[form]
    walk = make(5)
    empty = walk.blanks(2)
    found = {heads[0]: rows for heads, rows in read(write(walk, blanks=empty))}
    for name, there in walk.grids.items():
        for row in range(there.values.shape[0]):
            for column in range(there.values.shape[1]):
                assert (found[name][row][column + 1] == "____") == ((name, row, column) in empty)
    keyed = found["key"]
    for key, cells in enumerate(keyed):
        assert (cells[1] == "____") == (("scores", 0, key) in empty)
        assert cells[4].count("____") == sum(
            ("alignment", key, column) in empty for column in range(2)
        )
    assert "____" not in str(read(write(walk)))
    if form == "markdown":
        assert "= " not in re.sub(r"`[^`]*`", "", write(walk, blanks=empty))
        assert "= " in re.sub(r"`[^`]*`", "", write(walk))


@pytest.mark.parametrize("form", PAGES)
def test_long_vectors_are_shortened(form: str) -> None:
    """In the middle, with their length; long tables likewise, and so is the table by key."""
    write, read = PAGES[form]
    query, keys = grid(1, 64), grid(60, 64, seed=4, rows=tuple(f"w{i}" for i in range(60)))
    from tests.walkthroughs.by_hand import attention_walk

    walk = attention_walk(title="long", query=query, keys=keys, values=keys)
    found = {heads[0]: (heads, rows) for heads, rows in read(write(walk))}
    heads, rows = found["K"]
    assert heads[1:] == [*map(str, range(FIRST)), "…", *map(str, range(64 - LAST, 64))]
    assert len(rows) == 31
    assert [row[0] for row in rows][19:22] == ["w19", "... 30 more rows", "w50"]
    assert set(rows[20][1:]) == {""}
    assert float(rows[-1][-1]) == pytest.approx(keys.values[59, 63], abs=5.1e-4)
    assert "64 columns; those in the middle are left out" in write(walk)
    vector = found["key"][1][0][-1]
    assert vector.count(", ") == FIRST + LAST
    assert ", …, " in vector
    assert len(found["K"][0]) < 64 < MOST * 3
    unnamed = replace(keys, rows=())
    big = attention_walk(title="long", query=query, keys=unnamed, values=unnamed)
    assert len({heads[0]: rows for heads, rows in read(write(big))}["K"]) == FIRST + LAST + 1


@pytest.mark.parametrize("form", PAGES)
def test_whose_and_how_checked(form: str) -> None:
    """The model, its text, layer and head, the notes and the receipt are on every page."""
    text = PAGES[form][0](WALKS["layer"])
    page = " ".join(parse(text).texts) if form == "html" else text
    for said in ("toy", "나는 love", "layer 1, head 0", "masked", "1.0e", "over 2 layers"):
        assert said in page
    assert "1.0e" not in PAGES[form][0](replace(layer(), own=None, difference=None))
    assert str(RECEIPT).startswith("verified")


# ------------------------------------------------------------------------------------- what would be obeyed


def wicked() -> Walkthrough:
    """A calculation with every mark that a page would obey in every name."""
    names = (WICKED, "|", "\\")
    there = Grid(values=np.array([[1.5], [-2.0], [0.0]]), rows=names, columns=("a\\|b",))
    step = CalculationStep(name="relu", result="r", operation="relu", operands=("g",))
    return Walkthrough(
        title=note(WICKED),
        grids={"g": there, "r": there},
        steps=(step,),
        model=WICKED,
        text="漢字 🙂 é",
        notes=tuple(map(note, (WICKED, "1. a", "- b"))),
    )


@pytest.mark.parametrize("form", PAGES)
def test_nothing_is_obeyed(form: str) -> None:
    """Names come back letter for letter, in one cell each."""
    write, read = PAGES[form]
    for heads, rows in read(write(wicked())):
        assert heads == [heads[0], "a\\|b"]
        assert [row[0] for row in rows] == [WICKED, "|", "\\"]
        assert [float(row[1]) for row in rows] == [1.5, -2, 0]


@pytest.mark.parametrize(
    ("plain", "mathematics"),
    [
        ("scores = q K^T", r"\mathit{scores}=q\ K^{\top}"),
        ("scaled = scores / sqrt(5)", r"\mathit{scaled}=\mathit{scores}/\sqrt{5}"),
        ("Q = X Wq_3 + bq", r"Q=X\ W_{q,3}+b_{q}"),
        ("a_1 = sum of x_cross_2", r"a_{1}=\text{sum}\ \text{of}\ x_{\text{cross 2}}"),
        ("h = 한 Φ(x)", r"h=\text{한}\ \Phi (x)"),
        ("(1, 4) = softmax((1, 4))", r"(1,4)=\operatorname{softmax}((1,4))"),
        ("n = 1e-12 % {x}", r"n=1e-12\ \%\ \{x\}"),
        ("r = x / sqrt(mean + 1e-05) * g", r"r=x/\sqrt{\text{mean}+1e-05} \odot g"),
    ],
)
def test_formulas(plain: str, mathematics: str) -> None:
    """A formula as mathematics."""
    assert tex(plain) == mathematics


def test_the_page_fetches_nothing() -> None:
    """No address, and scripts and styles by digests; and a language for whoever reads it aloud."""
    text = html(WALKS["layer"], lang="ko")
    page = parse(text)
    assert {name for _, name, _ in page.attributes} <= {
        "lang",
        "charset",
        "name",
        "content",
        "http-equiv",
        "class",
        "scope",
        "colspan",
        "id",
        "role",
        "tabindex",
        "aria-labelledby",
        "width",
        "stretchy",
        "type",
    }
    assert ("html", "lang", "ko") in page.attributes
    assert not re.search(r"https?:|url\(|@import|<link|<img| src=| on[a-z]+=", text)
    (policy,) = [
        value or ""
        for tag, name, value in page.attributes
        if tag == "meta" and "default-src" in (value or "")
    ]
    assert "default-src 'none'; script-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert "prefers-color-scheme: dark" in text


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
