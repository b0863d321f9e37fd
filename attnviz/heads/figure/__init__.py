"""Figures of heads, for a sheet, a slide or a column of a paper."""

from __future__ import annotations

from collections.abc import Sequence

from attnviz.heads.figure.cards import Patterns
from attnviz.heads.figure.sheet import draw_column, draw_sheet, draw_some
from attnviz.heads.figure.slide import draw_slide
from attnviz.heads.record import HeadComparison
from attnviz.render.figure.export import Picture
from attnviz.render.figure.style import STYLES, Style
from attnviz.render.theme import LIGHT, Theme

COLUMN = 7.0  # a picture that is narrower, in inches, has only the map and the table below it


def draw(
    comparison: HeadComparison,
    heads: Sequence[tuple[int, int]] = (),
    *,
    patterns: Patterns | None = None,
    unseen: str = "",
    style: Style = STYLES["sheet"],
    theme: Theme = LIGHT,
) -> Picture:
    """Draw a comparison, or only some of its heads; of one sentence, draw what each head attends to in it.

    A slide or a narrow column has only the map and the roles, in readable letters. `patterns` has the attention on the
    examples; `unseen` says why there are no patterns.

    Raises SelectionError: there is no such head, or a pattern lacks a head.
    """
    if heads:
        return draw_some(comparison, heads, patterns or {}, theme)
    if style.height is not None:
        return draw_slide(comparison, style, theme)
    if style.width is not None and style.width < COLUMN and comparison.attention is None:
        return draw_column(comparison, style, style.width, theme)
    return draw_sheet(comparison, patterns or {}, unseen, theme)
