"""Figures of every size: no text lies on another, and none leaves the picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from attnviz.attention import Attention
from attnviz.heatmaps.figure import draw
from attnviz.render.sheet import Sheet, resolve
from tests.fixtures.pictures import expect_apart

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

Make = Callable[..., Attention]
Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]


def assert_clear(sheet: Sheet, texts_of: Texts) -> None:
    """No two texts of a figure share more than a pixel, and none is outside."""
    figure = draw(sheet).figure
    expect_apart(texts_of(figure), figure)


@pytest.mark.parametrize(
    ("n_layers", "n_heads", "tokens"),
    [
        *((1, 1, 1), (1, 1, 23), (1, 1, 60), (1, 12, 7), (2, 4, 1), (2, 4, 60), (6, 1, 3)),
        *((6, 1, 23), (6, 12, 3), (6, 12, 23)),
    ],
)
def test_texts_keep_clear(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int, tokens: int
) -> None:
    """Few and many panels, of few and many tokens."""
    record = fixed_record([f"word{i}" for i in range(tokens)], n_layers=n_layers, n_heads=n_heads)
    assert_clear(resolve(record), texts_of)


def test_a_long_sheet_keeps_clear(fixed_record: Make, texts_of: Texts) -> None:
    """Six layers and twelve heads of 100 long tokens: labels are thinned, the sentence is cut, all keep clear."""
    record = fixed_record([f"internationalization{i}" for i in range(100)], n_layers=6, n_heads=12)
    assert_clear(resolve(record), texts_of)
