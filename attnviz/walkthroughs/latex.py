r"""A walkthrough as LaTeX that compiles as it is: with pdflatex, xelatex or lualatex; Korean with kotex in each.

A character that the font has not, such as an emoji, is spelled out as its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Unpack

from attnviz.walkthroughs.page import PageCell, PageContent, PageTable, Section, lay_out
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.selection import ViewOptions

_PREAMBLE = r"""\documentclass[a4paper]{article}
\usepackage{iftex}
\ifPDFTeX
  \usepackage[utf8]{inputenc}
  \usepackage[T1]{fontenc}
  \usepackage{textcomp}
  \IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\fi
\usepackage{amsmath}
\usepackage[margin=2cm]{geometry}
\usepackage{graphicx}
\usepackage{colortbl}
\newcommand{\numbered}[1]{\ifPDFTeX[U+#1]\else\iffontchar\font"#1 \symbol{"#1}\else[U+#1]\fi\fi}
\newcommand{\fitted}[1]{\nobreak\smallskip\noindent
  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{#1}\par\nobreak\smallskip}
\newcommand{\together}{\par\nobreak}
\renewcommand{\arraystretch}{1.1}
\setlength{\tabcolsep}{4pt}
\setlength{\parindent}{0pt}
\setlength{\parskip}{0.5ex}
\raggedright
\raggedbottom"""
"""Only what the smallest TeX has, so that no package is missing: Latin Modern is there or its place is taken."""

_KOREAN = r"""% texlive-lang-korean on Debian, collection-langkorean of TeX Live
\usepackage{kotex}"""

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\ensuremath{<}", ">": r"\ensuremath{>}",
    "|": r"\ensuremath{|}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}",
    "-": "{-}", "·": r"\ensuremath{\cdot}", "…": r"\ldots{}", "∞": r"\ensuremath{\infty}",
    "≈": r"\ensuremath{\approx}", "→": r"\ensuremath{\rightarrow}", "Φ": r"\ensuremath{\Phi}", "“": "``", "”": "''",
    "␣": r"\textvisiblespace{}",
}  # fmt: skip
"""Characters that LaTeX would obey, join (as it does hyphens) or not find in every font."""

_SYMBOLS = {
    "tanh": r"\tanh", "sqrt": r"\sqrt", "max": r"\max", "∞": r"\infty", "Φ": r"\Phi", "…": r"\ldots", "*": r"\odot",
    "^T": r"^{\top}", "^3": "^{3}", "pi": r"\pi", "·": r"\cdot", "softmax": r"\operatorname{softmax}", "exp": r"\exp",
}  # fmt: skip

_MATH = {
    "\\": r"\backslash ", "^": r"\hat{}", "~": r"\sim ", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_",
}  # fmt: skip
"""What LaTeX would obey inside mathematics."""

_PROSE = frozenset({"sum", "of", "the", "row", "rows", "where", "is", "and", "times", "mean", "square", "variance"})
"""Words of a formula that are no symbols."""

_PARTS = re.compile(r"\^T|\^3|sqrt\(([^()]*)\)|\d+(?:\.\d+)?(?:e[-+]?\d+)?|[^\W\d]\w*|\s+|.")


_MINUS = re.compile(r"(?:(?<![^\s(\[])|(?<=\de))-(?=[\d∞]|\s|$)")
"""A minus sign: before a number, between two, in an exponent."""


def latex(walk: Walkthrough, **options: Unpack[ViewOptions]) -> str:
    """The walkthrough as a LaTeX document that compiles as it is; the rest is as in `ViewOptions`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    body = "\n".join(_lines(lay_out(walk, **options)))
    preamble = f"{_PREAMBLE}\n{_KOREAN}" if any(map(_is_korean, body)) else _PREAMBLE
    return f"{preamble}\n\\begin{{document}}\n{body}\n\\end{{document}}\n"


def escaped(text: str) -> str:
    """The text as LaTeX prints it, letter for letter."""
    return "".join(map(_character, " ".join(text.split())))


def arithmetic(text: str) -> str:
    """Arithmetic as LaTeX prints it: with minus signs, where a name that is calculated with keeps its hyphens."""
    parts = _MINUS.split(" ".join(text.split()))
    return r"\ensuremath{-}".join("".join(map(_character, part)) for part in parts)


def _character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isascii() or _is_korean(character) or "\u00c0" <= character <= "\u00ff":
        return character
    return rf"\numbered{{{ord(character):X}}}"


def _is_korean(character: str) -> bool:
    return "\uac00" <= character <= "\ud7a3" or "\u3131" <= character <= "\u318e"


def _lines(page: PageContent) -> Iterator[str]:
    yield rf"\section*{{{escaped(page.title)}}}"
    if page.source:
        yield _paragraph(page.source)
    for section in page.sections:
        yield from _section(section)
    yield r"\medskip"
    for text in (*page.notes, page.receipt):
        yield _paragraph(text)


def _section(section: Section) -> Iterator[str]:
    """What belongs together stays on one page: a table never stands on the page after its title."""
    yield rf"\subsection*{{{escaped(section.title)}}}"
    formulas = [f"${formula(text)}$" for text in (section.formula, section.shapes) if text]
    parts = [
        " \\qquad\n".join(formulas),
        escaped(section.sentence),
        "\n".join(_table(section.table)),
        escaped(section.table.remark),
        arithmetic(section.hand),
    ]
    yield "\n\\together\n".join(filter(None, parts))
    yield r"\par"


def _table(table: PageTable) -> Iterator[str]:
    yield rf"\fitted{{\begin{{tabular}}{{l|{'r' * len(table.columns)}}}"
    yield _row([escaped(name) for name in (table.corner, *table.columns)]) + r" \hline"
    for label, cells in table.rows:
        if any(cell.text for cell in cells):
            yield _row([escaped(label), *map(_cell, cells)])
        else:  # rows left out: what says so would make the column of names wide
            yield rf"\multicolumn{{{len(cells) + 1}}}{{l}}{{{escaped(label)}}} \\"
    yield r"\end{tabular}}"


def _row(cells: list[str]) -> str:
    # In brackets, since a row that begins with one would be taken for the space after the row before it.
    return f"{{{cells[0]}}} & {' & '.join(cells[1:])} \\\\"


def _cell(cell: PageCell) -> str:
    shade = rf"\cellcolor[gray]{{{1 - 0.35 * cell.shade:.2f}}}" if cell.shade else ""
    return shade + arithmetic(cell.text)


def _paragraph(text: str) -> str:
    return escaped(text) + r"\par"


def formula(text: str) -> str:
    r"""A formula of a step as mathematics: "scores = q K^T" as ``\mathit{scores} = q\,K^{\top}``."""
    return re.sub(r" {2,}", " ", "".join(_part(part) for part in _PARTS.finditer(text))).strip()


def _part(part: re.Match[str]) -> str:
    word = part[0]
    if part[1] is not None:
        return rf"\sqrt{{{formula(part[1])}}} "
    if word in _SYMBOLS:
        return f"{_SYMBOLS[word]} "
    if word in _PROSE or not word.isascii():
        return rf"\text{{{escaped(word)}}}"
    return r"\ " if word.isspace() else _symbol(word)


def _symbol(word: str) -> str:
    """A name, a number or a mark."""
    if re.fullmatch(r"[Wbd][a-z0-9]", word):
        return f"{word[0]}_{{{word[1]}}}"
    plain = "".join(_MATH.get(character, character) for character in word)
    return rf"\mathit{{{plain}}}" if len(word) > 1 and not word[0].isdigit() else plain
