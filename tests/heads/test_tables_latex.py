"""The table of roles for a paper: what TeX prints are the comparison's numbers, by itself and in another document."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.errors import OutputError
from attnviz.heads.selection import by_role
from attnviz.heads.settings import SurveySettings
from attnviz.heads.tables import to_latex
from tests.programs import output, printed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.heads.record import HeadComparison
    from tests.fixtures.command_line import Result

pytestmark = pytest.mark.usefixtures("whole_corpora", "few_seeds")

SENTENCES = [
    "the boy sees a girl near the house .",
    "a girl sees two dogs .",
    "the old queen sees the boy .",
] * 8
WICKED = r"my_model$1 50% \z {x} #2 & ~^ 나의 모델"


@pytest.fixture(scope="module")
def comparison() -> HeadComparison:
    """The heads of the home-built encoder, one of them with a role of a wicked name."""
    found = attnviz.compare_heads(SENTENCES, model="toy", settings=SurveySettings(controls=8))
    at = next(at for at, head in enumerate(found.heads) if head.roles)
    role = found.heads[at].roles[0]
    wicked = replace(role, rule=replace(role.rule, name="odd", short=r"a_b $5 9% \z 관계"))
    heads = list(found.heads)
    heads[at] = replace(heads[at], roles=(wicked,))
    return replace(found, model=WICKED, heads=tuple(heads))


def compiled(engine: str, text: str, folder: Path) -> str:
    """What TeX prints; nothing runs off the page and no character is missing."""
    (folder / "paper.tex").write_text(text, encoding="utf-8")
    output(engine, "-interaction=nonstopmode", "-halt-on-error", "paper.tex", folder=folder)
    log = (folder / "paper.log").read_text(encoding="utf-8", errors="replace")
    assert "Overfull" not in log
    assert "Missing character" not in log
    return printed(folder / "paper.pdf")


@pytest.mark.parametrize("engine", ["pdflatex", "lualatex"])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_latex_is_printed_and_read_by_another_document(
    comparison: HeadComparison, language: str, engine: str, tmp_path: Path
) -> None:
    """Each role with its head, score, interval and control; the first line says what it needs: booktabs."""
    path = comparison.save(tmp_path / "table.tex", lang=language)
    text = path.read_text(encoding="utf-8")
    (needed,) = re.findall(
        r"^% Compile it, or .input it .*\\usepackage\{([^}]*)\}\.$", text, re.MULTILINE
    )
    assert needed == "booktabs, kotex"
    paper = (
        r"\documentclass{article}\ifdefined\pdftexversion\usepackage[T1]{fontenc}\usepackage{lmodern}\fi "
        rf"\usepackage{{{needed}}}\begin{{document}}Before.\par\noindent\input{{table}} "
        r"Between.\begin{table}\centering\input{table}\caption{Roles}\end{table} After.\end{document}"
    )
    alone, within = compiled(engine, text, tmp_path), compiled(engine, paper, tmp_path)
    assert within.count(r"a_b $5 9% \z 관계") == 2
    for said in (alone, within):
        lines = [" ".join(one.split()) for one in said.splitlines()]
        for row in by_role(comparison):
            head, role = row[0]
            if role is not None:
                (line,) = {
                    one for one in lines if f"{role.rule.short} " in one and f" {head.name} " in one
                }
                assert f"{role.score:.2f}" in line
                between = f"{role.low:.2f}–{role.high:.2f}"
                assert f"{'∼' * role.narrow}{between}" in line.replace("∼ ", "∼")
                assert (line.count(".") >= 5) == any(one.rules_out for one in role.controls)
    assert ("확인됨" in alone) == (language == "ko")


def test_without_korean_it_needs_booktabs_alone(comparison: HeadComparison) -> None:
    """And a model's name is a comment in it, which no line break ends."""
    plain = replace(comparison, model="a\nmodel", heads=comparison.heads[-1:])
    text = to_latex(plain)
    assert text.startswith(
        "% Compile it, or \\input it into a document with \\usepackage{booktabs}.\n"
    )
    assert "kotex" not in text
    assert "\nmodel" not in text


def test_the_command_writes_it(
    typed: Callable[..., Result], refused: Callable[..., tuple[int, str]], here: Path
) -> None:
    """Beside other files, in the language that is asked for; of two models there is none."""
    (here / "corpus.txt").write_text("\n".join(SENTENCES))
    one = ("compare-heads", "--toy", "--corpus", "corpus.txt", "--controls", "4")
    result = typed(*one, "-o", "table.tex", "--lang", "ko")
    assert result.status == 0, result.errors
    assert "역할" in (here / "table.tex").read_text(encoding="utf-8")
    status, line = refused(*one, "--against", "toy", "-o", "changes.tex")
    assert status == 2
    assert "changes.tex: a comparison of two models is not saved as tex" in line
    with pytest.raises(OutputError, match="tex"):
        attnviz.compare_models("toy", "toy", SENTENCES[:2]).save(here / "changes.tex")
