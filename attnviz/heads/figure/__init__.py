"""Figures of heads: all heads with their roles, and one head, for a sheet, a slide or a column of a paper."""

from __future__ import annotations

from attnviz.heads.figure.cards import Patterns
from attnviz.heads.figure.head import draw_page
from attnviz.heads.figure.sheet import draw_column, draw_sheet
from attnviz.heads.figure.slide import draw_head_slide, draw_slide
from attnviz.heads.record import HeadComparison
from attnviz.render.figure.export import Picture
from attnviz.render.figure.style import STYLES, Style
from attnviz.render.theme import LIGHT, Theme

COLUMN = 7.0  # a picture that is narrower, in inches, has only the map and the table below it


def draw(
    comparison: HeadComparison,
    *,
    patterns: Patterns | None = None,
    unseen: str = "",
    language: str = "en",
    style: Style = STYLES["sheet"],
    theme: Theme = LIGHT,
) -> Picture:
    """Draw a comparison; for one sentence with known weights, draw what each head attends to in it.

    A slide or a narrow column has only the map and the roles, in readable letters. `patterns` has the attention on the
    examples; `unseen` says why there are no patterns.

    Raises SelectionError: a pattern lacks a head.
    """
    if style.height is not None:
        return draw_slide(comparison, style, theme, language)
    if style.width is not None and style.width < COLUMN and comparison.attention is None:
        return draw_column(comparison, style, style.width, theme, language)
    return draw_sheet(comparison, patterns or {}, unseen, theme, language)


def draw_head(
    comparison: HeadComparison,
    layer: int,
    head: int,
    *,
    patterns: Patterns | None = None,
    language: str = "en",
    style: Style = STYLES["sheet"],
    theme: Theme = LIGHT,
) -> Picture:
    """Draw one head: its roles and an example, its measures with their controls, and its weight by offset.

    A slide has its clearest role, the example and the weight by offset, in readable letters.

    Raises SelectionError: there is no such head.
    """
    profile = comparison.head(layer, head)
    if style.height is not None:
        return draw_head_slide(comparison, profile, patterns or {}, style, theme, language)
    return draw_page(comparison, profile, patterns or {}, theme, language)
