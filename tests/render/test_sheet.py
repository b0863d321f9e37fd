"""The content of a heatmap before it is drawn: labels, limits, sentences, pooled rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.attention import Attention, Token
from attnviz.look import Scale
from attnviz.render.sheet import Sheet, pool, resolve

# Two layers of two heads, each 1 query x 3 keys; the largest weights are 0.5, 0.7, 0.6 and 0.9.
SMALL = [[[[0.5, 0.3, 0.2]], [[0.1, 0.7, 0.2]]], [[[0.2, 0.2, 0.6]], [[0.9, 0.1, 0.0]]]]

# 5 queries x 7 keys; every row sums to 1.
MATRIX = np.array(
    [
        [0.10, 0.20, 0.30, 0.05, 0.05, 0.20, 0.10],
        [0.30, 0.00, 0.10, 0.10, 0.20, 0.10, 0.20],
        [0.40, 0.10, 0.10, 0.10, 0.10, 0.10, 0.10],
        [0.05, 0.05, 0.20, 0.30, 0.10, 0.10, 0.20],
        [0.00, 0.20, 0.00, 0.20, 0.20, 0.20, 0.20],
    ]
)

# The same in groups of 3 and 2 queries, of 3, 3 and 1 keys: keys added up, queries averaged.
POOLED = [
    [(0.60 + 0.40 + 0.60) / 3, (0.30 + 0.40 + 0.30) / 3, (0.10 + 0.20 + 0.10) / 3],
    [(0.30 + 0.20) / 2, (0.50 + 0.60) / 2, (0.20 + 0.20) / 2],
]


def small(**more: object) -> Attention:
    """A record of the small weights."""
    fields: dict[str, object] = {
        "weights": np.array(SMALL, dtype=np.float32),
        "query_tokens": (Token(text="one", piece="one"),),
        "key_tokens": tuple(Token(text=text, piece="x") for text in ("two", "three", "five")),
        "kind": "cross",
        "model": "by hand",
    }
    return Attention(**(fields | more))  # type: ignore[arg-type]


def sheet_of(matrix: np.ndarray) -> Sheet:
    """A sheet of two panels: the matrix, and the same turned upside down and halved."""
    queries, keys = (
        tuple(Token(text=f"{side}{i}", piece="x") for i in range(n))
        for side, n in zip("qk", matrix.shape, strict=True)
    )
    weights = np.stack([matrix, matrix[::-1] / 2])[None].astype(np.float32)
    rows = ("masked",)
    return resolve(small(weights=weights, query_tokens=queries, key_tokens=keys, short_rows=rows))


def test_panels_come_layer_by_layer_with_the_models_numbers() -> None:
    """The panels of layers 3 and 5, heads 2 and 7, keep these numbers, and each holds its own matrix."""
    sheet = resolve(small(layers=(3, 5), heads=(2, 7)))
    assert [(panel.layer, panel.head) for panel in sheet.panels] == [(3, 2), (3, 7), (5, 2), (5, 7)]
    assert [panel.place for panel in sheet.panels][1] == "3.7"
    assert (sheet.layers, sheet.heads) == ((3, 5), (2, 7))
    assert (sheet.query_labels, sheet.key_labels) == (("one",), ("two", "three", "five"))
    np.testing.assert_array_equal(sheet.panels[2].matrix, np.array([[0.2, 0.2, 0.6]], np.float32))


@pytest.mark.parametrize(
    ("scale", "tops", "legend"),
    [
        ("shared", [0.9, 0.9, 0.9, 0.9], "0 to 90% in all panels; even share: 33%"),
        ("panel", [0.5, 0.7, 0.6, 0.9], "the largest of each panel"),
    ],
)
def test_each_scale_has_its_limits(scale: Scale, tops: list[float], legend: str) -> None:
    """`shared` ends at the largest weight of all panels, `panel` at each panel's own."""
    sheet = resolve(small(), scale)
    assert [panel.top for panel in sheet.panels] == pytest.approx(tops)
    assert legend in sheet.legend


def test_pooled_numbers_by_hand() -> None:
    """5 x 7 in 2 x 3 cells: to a group the sum over its keys, from it the mean over its queries."""
    first, second = pool(sheet_of(MATRIX), 2, 3).panels
    np.testing.assert_allclose(first.matrix, POOLED, rtol=1e-6)
    assert second.matrix.shape == (2, 3)


@given(
    n_rows=st.integers(1, 31),
    n_columns=st.integers(1, 31),
    most=st.tuples(st.integers(1, 40), st.integers(1, 40)),
)
@settings(max_examples=60)
def test_pooling_keeps_sums_and_its_promise(
    n_rows: int, n_columns: int, most: tuple[int, int]
) -> None:
    """For any sizes: no more rows and columns than asked for, one label each, rows that sum to 1, a total unchanged."""
    matrix = np.random.default_rng(n_rows * 37 + n_columns).dirichlet(
        np.ones(n_columns), size=n_rows
    )
    pooled = pool(sheet_of(matrix), *most)
    shown = pooled.panels[0].matrix
    for size, tokens, limit in zip(shown.shape, (n_rows, n_columns), most, strict=True):
        assert size <= limit
        assert size == tokens or size > limit / 2 - 1  # no coarser than whole groups make it
    assert (len(pooled.query_labels), len(pooled.key_labels)) == shown.shape
    np.testing.assert_allclose(shown.sum(axis=1), 1.0, rtol=1e-5)


def test_colours_of_long_texts_end_below_the_largest() -> None:
    """Of many pooled cells a few are so strong that no other would be seen: the scale ends before, and says so."""
    matrix = np.full((200, 200), 0.0005)
    matrix[0, 0] = 0.9
    sheet = sheet_of(matrix)
    small = pool(sheet, 100, 100)
    strongest = (0.9 + 3 * 0.0005) / 2
    assert small.panels[0].top == pytest.approx(strongest / 20)
    assert (
        f"0 to {strongest / 20:.1%} (strongest colour above, up to {strongest:.0%}) in all panels"
        in small.legend
    )
    assert "strongest colour" not in pool(sheet, 40, 40).legend
