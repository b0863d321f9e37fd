"""Figures of every size: no text lies on another, and none leaves the picture."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from attnviz.attention import Attention, Note
from attnviz.heatmaps.figure import draw
from attnviz.render.sheet import Scale, Sheet, resolve
from tests.fixtures.pictures import expect_apart

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

Make = Callable[..., Attention]
Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]

SHAPES = [(1, 1), (1, 12), (6, 12), (2, 4), (6, 1)]
LONG = "Rechtsschutzversicherungsgesellschaften"


def assert_clear(sheet: Sheet, texts_of: Texts) -> None:
    """No two texts of a figure share more than a pixel, and none is outside."""
    figure = draw(sheet).figure
    expect_apart(texts_of(figure), figure)


@pytest.mark.parametrize("tokens", [1, 3, 7, 23, 60])
@pytest.mark.parametrize(("n_layers", "n_heads"), SHAPES)
def test_texts_keep_clear(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int, tokens: int
) -> None:
    """Few and many panels, of few and many tokens."""
    record = fixed_record([f"word{i}" for i in range(tokens)], n_layers=n_layers, n_heads=n_heads)
    assert_clear(resolve(record), texts_of)


@pytest.mark.parametrize("tokens", [1, 7])
@pytest.mark.parametrize(("n_layers", "n_heads"), SHAPES)
def test_texts_keep_clear_with_a_scale_each(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int, tokens: int
) -> None:
    """The same with each panel's largest weight above it."""
    record = fixed_record([f"w{i}" for i in range(tokens)], n_layers=n_layers, n_heads=n_heads)
    assert_clear(resolve(record, "panel"), texts_of)


@pytest.mark.parametrize(("queries", "keys"), [(3, 11), (11, 3), (1, 30), (30, 1)])
@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (1, 12), (2, 4)])
@pytest.mark.parametrize("scale", ["shared", "panel"])
def test_lopsided_panels_keep_clear(
    fixed_record: Make,
    texts_of: Texts,
    *,
    n_layers: int,
    n_heads: int,
    queries: int,
    keys: int,
    scale: Scale,
) -> None:
    """Cross-attention of few queries on many keys, and the reverse."""
    record = fixed_record(
        [f"query{i}" for i in range(queries)],
        keys=[f"key{i}" for i in range(keys)],
        n_layers=n_layers,
        n_heads=n_heads,
    )
    assert_clear(resolve(record, scale), texts_of)


@pytest.mark.parametrize("tokens", [1, 11])
@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (1, 5), (2, 3)])
@pytest.mark.parametrize(
    "label", [LONG, "W" * 60, "나는너희모두를사랑해요정말로진심으로그렇답니다"]
)
def test_long_labels_keep_clear(
    fixed_record: Make, texts_of: Texts, *, n_layers: int, n_heads: int, tokens: int, label: str
) -> None:
    """Labels longer than there is room for, narrow, wide and Korean."""
    record = fixed_record(
        [f"{i}{label}" for i in range(tokens)], n_layers=n_layers, n_heads=n_heads
    )
    assert_clear(resolve(record), texts_of)


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (2, 4)])
@pytest.mark.parametrize("tokens", [3, 60])
def test_long_words_around_keep_clear(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int, tokens: int
) -> None:
    """A long sentence, many notes, and a model that is a long path."""
    record = fixed_record(
        [f"w{i}" for i in range(tokens)],
        n_layers=n_layers,
        n_heads=n_heads,
        text=" ".join([LONG] * 50),
        model="/home/somebody/models/" + "very-long-name-" * 8,
        notes=tuple(
            Note.of("text", text=f"{LONG} {LONG} was done to what is shown here, number {i}")
            for i in range(4)
        ),
    )
    assert_clear(resolve(record), texts_of)


def test_a_long_sheet_keeps_clear(fixed_record: Make, texts_of: Texts) -> None:
    """Six layers and twelve heads of 100 long tokens: labels are thinned, the sentence is cut, all keep clear."""
    record = fixed_record([f"internationalization{i}" for i in range(100)], n_layers=6, n_heads=12)
    assert_clear(resolve(record), texts_of)
