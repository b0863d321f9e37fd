"""How alike heads are: against the formula written out in numpy, and what must hold of any divergence."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attnviz.heads.capture.divergences import divergence_between, divergences
from tests.heads.by_formula import entropy


def by_hand(one: np.ndarray, other: np.ndarray) -> float:
    """The divergence of two heads, [row, key], summed over rows, by the definition."""
    return sum(
        entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2
        for p, q in zip(one.astype(np.float64), other.astype(np.float64), strict=True)
    )


def all_by_hand(sentences: list[np.ndarray]) -> np.ndarray:
    """All pairs of heads, sentences [head, row, key] without padding."""
    n = len(sentences[0])
    return np.array(
        [[sum(by_hand(s[i], s[j]) for s in sentences) for j in range(n)] for i in range(n)]
    )


def sentence(
    rng: np.random.Generator, n_heads: int, n: int, n_keys: int | None = None
) -> np.ndarray:
    """Random rows, some of them sharp; every fourth weight exactly 0 where there is more than one key."""
    n_keys = n_keys or n
    scores = rng.normal(size=(n_heads, n, n_keys)) * rng.choice(
        [0.5, 4.0, 20.0], size=(n_heads, n, 1)
    )
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights[(rng.random(weights.shape) < 0.25) & (weights < weights.max(-1, keepdims=True))] = 0
    return np.asarray(weights / weights.sum(-1, keepdims=True), dtype=np.float32)


def padded(sentences: list[np.ndarray], rubbish: float = 0.3) -> tuple[Tensor, Tensor]:
    """A batch: padded keys of weight 0, padded rows full of rubbish."""
    rows, keys = max(s.shape[1] for s in sentences), max(s.shape[2] for s in sentences)
    weights = np.full((len(sentences), len(sentences[0]), rows, keys), rubbish, dtype=np.float32)
    counted = np.zeros((len(sentences), rows), dtype=np.bool_)
    for number, one in enumerate(sentences):
        _, n_rows, n_keys = one.shape
        weights[number, :, :n_rows] = 0
        weights[number, :, :n_rows, :n_keys] = one
        counted[number, :n_rows] = True
    return torch.from_numpy(weights), torch.from_numpy(counted)


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same each time."""
    return np.random.default_rng(11)


@pytest.mark.parametrize("n_heads", [1, 2, 3, 12, 13])
def test_it_is_the_formula(rng: np.random.Generator, n_heads: int) -> None:
    """All pairs, of padded sentences of 1 to 9 tokens, within 1e-6 a row; rows are counted, not padding."""
    sentences = [sentence(rng, n_heads, n) for n in (5, 1, 9, 2)]
    found = divergences(*padded(sentences))
    assert found.n_rows == 17
    np.testing.assert_allclose(found.mean(), all_by_hand(sentences) / 17, rtol=0, atol=1e-6)


def test_more_cells_than_one_block(rng: np.random.Generator) -> None:
    """A sentence of 70 tokens has 4,900 cells: several blocks, the last not full."""
    one = sentence(rng, 3, 70)
    np.testing.assert_allclose(
        divergences(*padded([one])).mean(), all_by_hand([one]) / 70, rtol=0, atol=1e-6
    )


def test_causal_and_cross(rng: np.random.Generator) -> None:
    """Rows of a decoder, whose masked keys are 0, and rows that are not as long as there are rows."""
    causal = np.tril(sentence(rng, 4, 8) + np.float32(0.01))
    causal /= causal.sum(-1, keepdims=True)
    cross = sentence(rng, 4, 3, 7)
    for one in (causal, cross):
        found = divergences(*padded([one]))
        np.testing.assert_allclose(
            found.mean(), all_by_hand([one]) / one.shape[1], rtol=0, atol=1e-6
        )


def test_known_values() -> None:
    """Equal heads 0, heads that share no key ln 2, half and half against one: by hand."""
    rows = torch.tensor([[[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]], [[0.5, 0.5]]]])
    found = divergences(rows, torch.ones(1, 1, dtype=torch.bool)).mean()
    half = 0.75 * math.log(4 / 3) + 0.25 * math.log(4) - math.log(2) / 2
    expected = [
        [0, 0, math.log(2), half],
        [0, 0, math.log(2), half],
        [math.log(2), math.log(2), 0, half],
        [half, half, half, 0],
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


def test_between_two_models(rng: np.random.Generator) -> None:
    """The divergence of a head between two models is one number per sentence; 0 for a model and itself."""
    lengths = (4, 1, 7)
    ones, others = ([sentence(rng, 5, n) for n in lengths] for _ in range(2))
    (one, counted), (other, _) = padded(ones), padded(others, rubbish=math.nan)
    found = divergence_between(one, other, counted)
    expected = [[by_hand(p[h], q[h]) for h in range(5)] for p, q in zip(ones, others, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-6)
    np.testing.assert_array_equal(divergence_between(one, one, counted), np.zeros((3, 5)))


@given(
    seed=st.integers(0, 10_000),
    n_heads=st.integers(1, 7),
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    data=st.data(),
)
def test_what_holds_of_any_heads(
    seed: int, n_heads: int, lengths: list[int], data: st.DataObject
) -> None:
    """Symmetric, 0 on equal heads, from 0 to ln 2; neither the order of sentences nor splitting changes anything."""
    rng = np.random.default_rng(seed)
    sentences = [sentence(rng, n_heads, n) for n in lengths]
    sentences = [np.concatenate([one, one[:1]]) for one in sentences]
    found = divergences(*padded(sentences))
    mean = found.mean()
    assert found.n_rows == sum(lengths)
    np.testing.assert_array_equal(mean, mean.T)
    np.testing.assert_array_equal(mean.diagonal(), np.zeros(n_heads + 1))
    assert mean[0, -1] == 0
    np.testing.assert_allclose(mean[0], mean[-1], rtol=0, atol=1e-6)
    assert (mean >= 0).all()
    assert (mean <= math.log(2) + 1e-6).all()
    order = data.draw(st.permutations(range(len(sentences))))
    turned = divergences(*padded([sentences[i] for i in order]))
    np.testing.assert_allclose(turned.mean(), mean, rtol=0, atol=1e-6)
    cut = data.draw(st.integers(0, len(sentences)))
    parts = [divergences(*padded(part)) for part in (sentences[:cut], sentences[cut:]) if part]
    merged = sum(parts[1:], parts[0])
    assert merged.n_rows == found.n_rows
    np.testing.assert_allclose(merged.mean(), mean, rtol=0, atol=1e-6)
