"""How far a head is from the same head of another model: the formula in numpy, and what must hold of it."""

from __future__ import annotations

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from attnviz.heads.capture.divergences import divergence_between
from tests.heads.by_formula import entropy


def sentence(rng: np.random.Generator, n_heads: int, n: int) -> np.ndarray:
    """Random rows, some of them sharp; every fourth weight exactly 0 where there is more than one key."""
    scores = rng.normal(size=(n_heads, n, n)) * rng.choice([0.5, 4.0, 20.0], size=(n_heads, n, 1))
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


def between(*pairs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """The divergence of each head, of sentences in one padded batch."""
    (one, counted), (other, _) = (padded([*ones]) for ones in zip(*pairs, strict=True))
    return divergence_between(one, other, counted)


def test_known_values() -> None:
    """Equal heads 0, heads that share no key ln 2, half and half against one: by hand."""
    rows = np.array([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]], [[0.5, 0.5]]], dtype=np.float32)
    half = 0.75 * math.log(4 / 3) + 0.25 * math.log(4) - math.log(2) / 2
    found = between((rows, rows[[1, 2, 3, 3]]))
    np.testing.assert_allclose(found, [[0, math.log(2), half, 0]], rtol=0, atol=1e-6)


@given(seed=st.integers(0, 10_000), lengths=st.lists(st.integers(1, 12), min_size=1, max_size=6))
def test_what_holds_of_any_heads(seed: int, lengths: list[int]) -> None:
    """The formula, symmetric, 0 for a model and itself, from 0 to ln 2 a row; alone or in a batch."""
    rng = np.random.default_rng(seed)
    pairs = [(sentence(rng, 4, n), sentence(rng, 4, n)) for n in lengths]
    found = between(*pairs)
    by_formula = [
        [
            sum(
                entropy((p + q) / 2) - (entropy(p) + entropy(q)) / 2
                for p, q in zip(a, b, strict=True)
            )
            for a, b in zip(*pair, strict=True)
        ]
        for pair in ([one.astype(np.float64) for one in pair] for pair in pairs)
    ]
    np.testing.assert_allclose(found, by_formula, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found, between(*((q, p) for p, q in pairs)), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(between(*((p, p) for p, _q in pairs)), np.zeros_like(found))
    assert (found >= 0).all()
    assert (found <= (math.log(2) + 1e-6) * np.array(lengths)[:, None]).all()
    alone = np.concatenate([between(pair) for pair in pairs])
    np.testing.assert_allclose(found, alone, rtol=0, atol=1e-5)
