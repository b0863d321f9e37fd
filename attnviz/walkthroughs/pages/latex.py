"""A walkthrough as LaTeX, for pdflatex, xelatex or lualatex, by itself or read by another; Korean needs kotex."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Unpack

from attnviz.render.latex import character, document, escaped
from attnviz.walkthroughs.pages.content import DEPTH, PageCell, PageTable, lay_out
from attnviz.walkthroughs.pages.mathematics import tex
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.view import View, ViewOptions

_PACKAGES = "amsmath, booktabs, colortbl, graphicx"

_SET_UP = r"""\providecommand{\fitted}[1]{\nobreak\smallskip\noindent
  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{#1}\par\nobreak\smallskip}
\renewcommand{\arraystretch}{1.1}
\setlength{\tabcolsep}{4pt}
\setlength{\parindent}{0pt}
\setlength{\parskip}{0.5ex}
\raggedright"""
_MINUS = re.compile(
    r"(?:(?<![^\s(\[])|(?<=\de))-(?=[\d∞]|\s|$)"
)  # before a number, between two, in an exponent


def latex(walk: Walkthrough, **options: Unpack[ViewOptions]) -> str:
    r"""The walkthrough as LaTeX, a document by itself, and in another one by ``\input``."""
    view = View(walk=walk, **options)
    lines = [
        rf"\section*{{{escaped(view.title)}}}",
        *([_paragraph(view.source)] if view.source else []),
    ]
    for section in lay_out(view):
        # What belongs together stays on one page: a table never stands on the page after its title.
        blocks = [_BLOCKS[kind](block) for kind, block in section.blocks]
        lines += [
            rf"\subsection*{{{escaped(section.title)}}}",
            "\n\\par\\nobreak\n".join(blocks),
            r"\par",
        ]
    return document(
        "\n".join([*lines, r"\medskip", *map(_paragraph, (*view.notes, view.receipt))]),
        _PACKAGES,
        _SET_UP,
    )


def arithmetic(text: str) -> str:
    """Arithmetic as LaTeX prints it: with minus signs, where a name that is calculated with keeps its hyphens."""
    return r"\ensuremath{-}".join(
        "".join(map(character, part)) for part in _MINUS.split(" ".join(text.split()))
    )


def _symbols(formulas: Mapping[str, str]) -> str:
    return " \\qquad\n".join(f"${tex(text)}$" for text in formulas.values())


def _table(table: PageTable) -> str:
    rows = [
        _row([escaped(label), *map(_cell, cells)])
        if cells  # else rows left out: what says so would make the column of names wide
        else rf"\multicolumn{{{len(table.columns) + 1}}}{{l}}{{{escaped(label)}}} \\"
        for label, cells in table.rows
    ]
    head = _row([escaped(name) for name in (table.corner, *table.columns)])
    begin = rf"\fitted{{\begin{{tabular}}{{l{'r' * len(table.columns)}}} \toprule"
    return "\n".join([begin, head + r" \midrule", *rows, r"\bottomrule \end{tabular}}"])


def _row(cells: list[str]) -> str:
    # In brackets, since a row that begins with one would be taken for the space after the row before it.
    return f"{{{cells[0]}}} & {' & '.join(cells[1:])} \\\\"


def _cell(cell: PageCell) -> str:
    mixed = ",".join(f"{1 - cell.share * DEPTH * (1 - part / 255):.3f}" for part in cell.hue)
    return (rf"\cellcolor[rgb]{{{mixed}}}" if cell.share else "") + arithmetic(cell.text)


def _paragraph(text: str) -> str:
    return escaped(text) + r"\par"


_BLOCKS: dict[str, Callable[[Any], str]] = {
    "symbols": _symbols,
    "sentence": escaped,
    "table": _table,
    "remark": escaped,
    "hand": arithmetic,
}
