"""Figures of every size: no text lies on another, and none leaves the picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from attnviz.attention import Attention
from attnviz.heatmaps.figure import draw
from attnviz.look import Look
from attnviz.render.figure.style import style_of
from attnviz.render.sheet import Sheet, resolve
from attnviz.text.messages import language
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


SENTENCE = "The animal didn't cross the street because it was too tired ."
KOREAN = "나 ·는 오늘 아침에 밥 ·을 먹었다"


@pytest.mark.filterwarnings("ignore::attnviz.errors.AttnvizWarning")
@pytest.mark.parametrize(
    ("size", "labels", "is_numbered"),
    [
        ({"figsize": (5, 3)}, SENTENCE, False),
        ({"figsize": (6, 4)}, SENTENCE, False),
        ({"figsize": (10, 10)}, SENTENCE, True),
        ({"figsize": (4, 3)}, KOREAN, False),
        ({"figsize": (10, 2.5)}, KOREAN, False),
        ({"figsize": (10, 2.5)}, "a b c d e f", False),  # narrow names, level until cells shrink
        ({"figsize": (2.8, 4)}, SENTENCE, False),
        ({"style": "paper", "figsize": (2.5, 2.5)}, SENTENCE, False),
    ],
)
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_a_small_pattern_keeps_clear(
    fixed_record: Make,
    texts_of: Texts,
    size: dict[str, Any],
    labels: str,
    is_numbered: bool,
    lang: str,
) -> None:
    """Names of axes are as long as there is room, and rounded numbers are mentioned where there are numbers."""
    with language(lang):
        picture = draw(resolve(fixed_record(labels)), style=style_of(Look(**size)))
    texts = texts_of(picture.figure)
    expect_apart(texts, picture.figure)
    shown = [text for text, _ in texts]
    names = ("key", "query") if lang == "en" else ("키", "쿼리")
    assert all(any(text.startswith(name) for text in shown) for name in names)
    assert any(text.startswith(".") and text[1:].isdigit() for text in shown) == is_numbered
    assert any(text.startswith(("Numbers:", "숫자:")) for text in shown) == is_numbered
