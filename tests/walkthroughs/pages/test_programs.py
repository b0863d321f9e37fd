"""LaTeX and HTML in the programs they are for: what TeX prints and a browser shows are the walkthrough's numbers."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.walkthroughs.examples import make
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
from attnviz.walkthroughs.pages.latex import latex
from attnviz.walkthroughs.pages.markdown import markdown
from attnviz.walkthroughs.view import View
from tests.programs import PACKAGES, browser, output, printed, program
from tests.walkthroughs.by_hand import attention_walk, grid, walks

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough

WALKS = walks()
WORDS = (
    r"A&B 50% $5 #1 a_b {x} ~y ^z \z",
    'a|b "q" `c` don\'t',
    "나는",
    "사랑해",
    "🙂 漢字 é",
    *(f"w{i}" for i in range(45)),
)
"""Names with every mark that TeX obeys; so many that rows are left out in the middle."""


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


def numbers(text: str) -> set[str]:
    """The numbers in a text, whichever minus sign they have."""
    plain = text.replace("\N{MINUS SIGN}", "-")
    return set(re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|-∞", plain))


def test_a_program_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The test that needs it fails, and says what to install."""
    monkeypatch.setenv("PATH", "")
    for name, packages in PACKAGES.items():
        with pytest.raises(
            pytest.fail.Exception,
            match=rf"needs the program {name} \(.*apt-get install {packages}\)",
        ):
            program(name)


def test_the_readme_names_the_programs() -> None:
    """All packages that the tests need and no other, in one line, which CI runs."""
    readme = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"apt-get install ([^`\n]*)`", readme)
    assert set(line.split()) == set(" ".join(PACKAGES.values()).split())


# ------------------------------------------------------------------------------------------------------- TeX


def compile_tex(engine: str, text: str, folder: Path) -> str:
    """What a document says when it is printed; a line that runs off its page, or a letter that no font has, fails."""
    (folder / "walk.tex").write_text(text, encoding="utf-8")
    output(engine, "-interaction=nonstopmode", "-halt-on-error", "walk.tex", folder=folder)
    log = (folder / "walk.log").read_text(encoding="utf-8", errors="replace")
    assert "Overfull" not in log
    assert "Missing character" not in log
    assert "Warning" not in log.replace("Font Warning", "")
    return printed(folder / "walk.pdf")


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("name", ["seq2seq", "self-attention", "layer"])
def test_latex_is_printed(name: str, language: str, tmp_path: Path) -> None:
    """By pdflatex, with every number of the calculation."""
    walk = WALKS[name]
    said = compile_tex("pdflatex", latex(walk, lang=language), tmp_path)
    assert expected(walk) <= numbers(said)
    assert ("소프트맥스" in said) == (language == "ko")


@pytest.mark.parametrize("engine", ["pdflatex", "lualatex"])
def test_latex_is_read_by_another_document(engine: str, tmp_path: Path) -> None:
    """The first line says what it needs; what stands after it is as it was, and it can be read twice."""
    text = latex(WALKS["seq2seq"])
    (tmp_path / "table.tex").write_text(text, encoding="utf-8")
    (needed,) = re.findall(
        r"^% Compile it, or .input it into a document with (.usepackage\{[^}]*\})\.$",
        text,
        re.MULTILINE,
    )
    paper = "\n".join(
        [
            rf"\documentclass{{article}}{needed}\begin{{document}}",
            "Before.",
            r"\input{table}",
            "Between.",
            r"\input{table}",
            r"After, \the\parindent.",
            r"\end{document}",
        ]
    )
    said = compile_tex(engine, paper, tmp_path)
    assert expected(WALKS["seq2seq"]) <= numbers(said)
    assert said.count("Attention scores") == 2
    assert re.search(r"Between\.\s.*After, 15\.0pt\.", said, re.DOTALL)


def test_a_table_stays_with_its_title(tmp_path: Path) -> None:
    """On one page, with the formula and the sentence between them."""
    sections = [*lay_out(View(walk=WALKS["layer"]))]
    before_a_table = {
        text for section in sections for text in (section.title, section.sentence)
    } - {""}
    pages = compile_tex("pdflatex", latex(WALKS["layer"]), tmp_path).split("\f")[:-1]
    assert len(pages) > 2
    for page in pages:
        *lines, _number = filter(None, map(str.strip, page.splitlines()))
        assert lines[-1].replace("\N{RIGHT SINGLE QUOTATION MARK}", "'") not in before_a_table


@pytest.mark.parametrize("engine", ["pdflatex", "lualatex"])
def test_wide_tables_and_wicked_names_are_printed(engine: str, tmp_path: Path) -> None:
    """Nothing runs off the page, no name is obeyed, and what the font has not is there as a number."""
    walk = wide()
    said = compile_tex(engine, latex(walk, lang="en"), tmp_path)
    assert expected(walk) <= numbers(said)
    assert "768 numbers in each row" in said
    plain = said.replace("\N{MODIFIER LETTER CIRCUMFLEX ACCENT}", "^").replace(
        "\N{SMALL TILDE}", "~"
    )
    for word in (
        "A&B 50% $5 #1 a_b {x} ~y ^z \\z",
        "나는",
        "사랑해",
        "[U+1F642]",
        "[U+6F22]",
        "no_model & 100 %",
        "a-b: 768",
    ):
        assert word in plain


def test_blanks_are_printed(tmp_path: Path) -> None:
    """As lines to write on."""
    walk = make(5)
    said = compile_tex("pdflatex", latex(walk, blanks=walk.blanks(2)), tmp_path)
    whole = compile_tex("pdflatex", latex(walk), tmp_path)
    assert expected(walk) <= numbers(whole)
    assert len(numbers(said)) < len(numbers(whole))


# -------------------------------------------------------------------------------------------------- Markdown


@pytest.mark.parametrize("language", ["en", "ko"])
def test_markdown_as_github_reads_it(language: str, tmp_path: Path) -> None:
    """Its parser finds the numbers and names in their cells, and no mark of a name is obeyed."""
    page = tmp_path / "walk.md"
    walk = wide()
    page.write_text(markdown(walk, lang=language), encoding="utf-8")
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


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    """Nothing leaves the browser, nothing is complained about, and its tables are those that were written."""
    page = tmp_path / "walk.html"
    text = web_page(wide(), lang="ko").html
    page.write_text(text, encoding="utf-8")
    seen, complaints = browser(page, "--dump-dom", f"--log-net-log={tmp_path / 'net.json'}")
    assert complaints == ""
    assert requests(tmp_path / "net.json") == []

    def cells(page: str) -> list[str]:
        return re.findall(r"<(?:td|th)\b[^>]*>(.*?)</(?:td|th)>", page)

    assert cells(seen.replace('"', "&quot;").replace("&#x27;", "'")) == cells(
        text.replace('"', "&quot;").replace("&#x27;", "'")
    )


def test_a_request_would_be_seen(tmp_path: Path) -> None:
    """The same check of a page that does fetch something, and complains."""
    page = tmp_path / "walk.html"
    page.write_text(
        '<!doctype html><img src="http://127.0.0.1:9/x.png"><script>console.error("no")</script>'
    )
    _, complaints = browser(page, "--dump-dom", f"--log-net-log={tmp_path / 'net.json'}")
    assert '"no"' in complaints
    assert requests(tmp_path / "net.json") == ["http://127.0.0.1:9/x.png"]


def requests(log: Path) -> list[str]:
    """The addresses that a browser asked for, by its own account of the network."""
    return sorted(set(re.findall(r'"url":"(\w+://[^"]*)"', log.read_text(encoding="utf-8"))))


def test_the_page_on_paper(tmp_path: Path) -> None:
    """Printed it has every number, of tables too that scroll on the screen, none cut off at the edge of the paper."""
    page, pdf = tmp_path / "walk.html", tmp_path / "walk.pdf"
    walk = wide()
    page.write_text(web_page(walk).html, encoding="utf-8")
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
