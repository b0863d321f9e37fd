r"""A walkthrough as LaTeX, to be compiled as it is or read by another document: with pdflatex, xelatex or lualatex.

Korean needs kotex. A character that the font has not, such as an emoji, is spelled out as its number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Unpack

from attnviz.render.latex import character, document, escaped
from attnviz.walkthroughs.pages.content import DEPTH, PageCell, PageContent, PageTable, Section, lay_out
from attnviz.walkthroughs.pages.mathematics import tex
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.view import ViewOptions

_PACKAGES = "amsmath, booktabs, colortbl, graphicx"

_SET_UP = r"""\providecommand{\fitted}[1]{\nobreak\smallskip\noindent
  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{#1}\par\nobreak\smallskip}
\renewcommand{\arraystretch}{1.1}
\setlength{\tabcolsep}{4pt}
\setlength{\parindent}{0pt}
\setlength{\parskip}{0.5ex}
\raggedright"""
"""What holds for these lines alone."""

_MINUS = re.compile(r"(?:(?<![^\s(\[])|(?<=\de))-(?=[\d∞]|\s|$)")
"""A minus sign: before a number, between two, in an exponent."""


def latex(walk: Walkthrough, **options: Unpack[ViewOptions]) -> str:
    r"""The walkthrough as LaTeX, a document by itself, and in another one by ``\input``."""
    return document("\n".join(_lines(lay_out(walk, **options))), _PACKAGES, _SET_UP)


def arithmetic(text: str) -> str:
    """Arithmetic as LaTeX prints it: with minus signs, where a name that is calculated with keeps its hyphens."""
    parts = _MINUS.split(" ".join(text.split()))
    return r"\ensuremath{-}".join("".join(map(character, part)) for part in parts)


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
