r"""A walkthrough as LaTeX, to be compiled as it is or read by another document: with pdflatex, xelatex or lualatex.

Korean needs kotex. A character that the font has not, such as an emoji, is spelled out as its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Unpack

from attnviz.walkthroughs.pages.content import DEPTH, PageCell, PageContent, PageTable, Section, lay_out
from attnviz.walkthroughs.pages.mathematics import tex
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.view import ViewOptions

_PACKAGES = "amsmath, booktabs, colortbl, graphicx"

_ALONE = r"""\expandafter\ifx\csname @nodocument\endcsname\relax\else
\def\attnvizalone{}
\documentclass[a4paper]{article}
\ifdefined\pdftexversion
  \usepackage[utf8]{inputenc}
  \usepackage[T1]{fontenc}
  \usepackage{textcomp}
  \IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\fi
\usepackage[margin=2cm]{geometry}
\usepackage{PACKAGES}KOREAN
\begin{document}
\fi"""
"""What is skipped where a document has begun already: ``\\@nodocument`` is then empty.

Only what the smallest TeX has, so that no package is missing: Latin Modern is there or its place is taken.
"""

_BEGIN = r"""\begingroup
\providecommand{\numbered}[1]{\ifdefined\pdftexversion[U+#1]\else\iffontchar\font"#1 \symbol{"#1}\else[U+#1]\fi\fi}
\providecommand{\fitted}[1]{\nobreak\smallskip\noindent
  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{#1}\par\nobreak\smallskip}
\renewcommand{\arraystretch}{1.1}
\setlength{\tabcolsep}{4pt}
\setlength{\parindent}{0pt}
\setlength{\parskip}{0.5ex}
\raggedright"""
"""What holds for these lines alone."""

_END = r"""\par\endgroup
\ifdefined\attnvizalone\else\expandafter\endinput\fi
\end{document}"""

_KOREAN = "% texlive-lang-korean on Debian, collection-langkorean of TeX Live\n\\usepackage{kotex}"

_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\ensuremath{<}", ">": r"\ensuremath{>}",
    "|": r"\ensuremath{|}", '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}",
    "-": "{-}", "·": r"\ensuremath{\cdot}", "…": r"\ldots{}", "∞": r"\ensuremath{\infty}",
    "≈": r"\ensuremath{\approx}", "→": r"\ensuremath{\rightarrow}", "Φ": r"\ensuremath{\Phi}", "“": "``", "”": "''",
    "␣": r"\textvisiblespace{}",
}  # fmt: skip
"""Characters that LaTeX would obey, join (as it does hyphens) or not find in every font."""

_MINUS = re.compile(r"(?:(?<![^\s(\[])|(?<=\de))-(?=[\d∞]|\s|$)")
"""A minus sign: before a number, between two, in an exponent."""


def latex(walk: Walkthrough, **options: Unpack[ViewOptions]) -> str:
    r"""The walkthrough as LaTeX, a document by itself, and in another one by ``\input``; the rest as in `ViewOptions`.

    Raises:
        SelectionError: a step or a language that is not there.
    """
    body = "\n".join(_lines(lay_out(walk, **options)))
    is_korean = any(map(_is_korean, body))
    alone = _ALONE.replace("PACKAGES", _PACKAGES.replace(" ", "")).replace(
        "KOREAN", f"\n{_KOREAN}" if is_korean else ""
    )
    needed = f"{_PACKAGES}, kotex" if is_korean else _PACKAGES
    use = f"% Compile it, or \\input it into a document with \\usepackage{{{needed}}}."
    return f"{use}\n{alone}\n{_BEGIN}\n{body}\n{_END}\n"


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
    for text in page.foot:
        yield _paragraph(text)


def _section(section: Section) -> Iterator[str]:
    """What belongs together stays on one page: a table never stands on the page after its title."""
    yield rf"\subsection*{{{escaped(section.title)}}}"
    formulas = [f"${tex(text)}$" for text in (section.formula, section.shapes) if text]
    parts = [
        " \\qquad\n".join(formulas),
        escaped(section.sentence),
        "\n".join(_table(section.table)),
        escaped(section.table.remark),
        arithmetic(section.hand),
    ]
    yield "\n\\par\\nobreak\n".join(filter(None, parts))
    yield r"\par"


def _table(table: PageTable) -> Iterator[str]:
    yield rf"\fitted{{\begin{{tabular}}{{l{'r' * len(table.columns)}}} \toprule"
    yield _row([escaped(name) for name in (table.corner, *table.columns)]) + r" \midrule"
    for label, cells in table.rows:
        if any(cell.text for cell in cells):
            yield _row([escaped(label), *map(_cell, cells)])
        else:  # rows left out: what says so would make the column of names wide
            yield rf"\multicolumn{{{len(cells) + 1}}}{{l}}{{{escaped(label)}}} \\"
    yield r"\bottomrule \end{tabular}}"


def _row(cells: list[str]) -> str:
    # In brackets, since a row that begins with one would be taken for the space after the row before it.
    return f"{{{cells[0]}}} & {' & '.join(cells[1:])} \\\\"


def _cell(cell: PageCell) -> str:
    mixed = ",".join(f"{1 - cell.share * DEPTH * (1 - part / 255):.3f}" for part in cell.hue)
    return (rf"\cellcolor[rgb]{{{mixed}}}" if cell.share else "") + arithmetic(cell.text)


def _paragraph(text: str) -> str:
    return escaped(text) + r"\par"
