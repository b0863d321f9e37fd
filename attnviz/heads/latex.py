r"""The roles of heads as a LaTeX table for a paper, which another document reads by ``\input``; it needs booktabs."""

from __future__ import annotations

import math

from attnviz.heads.notes import proof
from attnviz.heads.record import HeadComparison, Role
from attnviz.heads.selection import by_role
from attnviz.heads.wording import described, sample, say
from attnviz.render.latex import document, escaped
from attnviz.text.display import visible

PACKAGES = "booktabs"
MARKS = {True: r"\ensuremath{\bullet}", False: r"\ensuremath{\circ}"}
"""Stand before a role: whether it is established."""


def to_latex(comparison: HeadComparison, language: str = "en") -> str:
    """The roles that heads have, a row each: how many heads have it, the best of them, its score and what that exceeds.

    Scores are shares of 1, as the terminal has them, with their 95 % intervals. The control is the highest of those
    that could rule the role out.
    """
    about = [comparison.model, described(comparison, language), sample(comparison, language)]
    titles = [escaped(say(name, language)) for name in ("role", "n_heads", "best", "score", "95 %", "control")]
    rows = [[titles[0], *(rf"\multicolumn{{1}}{{c}}{{{title}}}" for title in titles[1:])]]
    for row in by_role(comparison):
        head, role = row.heads[0]
        if role is None:
            rows.append([escaped(say("no_role", language)), f"{len(row.heads)}", *[""] * 4])
        else:
            name = f"{MARKS[row.doubt is None]} {escaped(role.rule.short)}"
            score = [f"{role.score:.2f}", _ends(role.low, role.high), _control(role, language)]
            rows.append([name, f"{len(row.heads)}", head.name, *score])
    lines = [f"{{{cells[0]}}} & {' & '.join(cells[1:])} \\\\" for cells in rows]
    marks = say("marks", language, yes="YES", no="NO", doubt="")
    legend = escaped(marks).replace("YES", MARKS[True]).replace("NO", MARKS[False])
    body = [
        *(f"% {' '.join(visible(text).split())}" for text in [*about, proof(comparison, language)]),
        r"\begin{tabular}{@{}lrlrcl@{}} \toprule", f"{lines[0]} \\midrule", *lines[1:], r"\bottomrule \end{tabular}",
        rf"\ifdefined\attnvizalone\par\medskip {legend}\fi",
    ]  # fmt: skip
    return document("\n".join(body), PACKAGES, r"\setlength{\tabcolsep}{4pt}")


def _ends(low: float, high: float) -> str:
    return "" if math.isnan(low) else f"{low:.2f}--{high:.2f}"


def _control(role: Role, language: str) -> str:
    """Of the controls that could rule a role out the one that reaches highest, with its interval."""
    held = [one for one in role.controls if one.rules_out and not math.isnan(one.high)]
    if not held:
        return ""
    one = max(held, key=lambda control: control.high)
    return f"{_ends(one.low, one.high)} ({escaped(say(f'mark_{one.name}', language))})"
