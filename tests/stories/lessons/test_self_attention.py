"""The demo of self-attention: all its numbers once more, in numpy in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnviz.stories.lessons import self_attention
from attnviz.stories.lessons.self_attention import D_K, D_MODEL, N_HEADS, WORDS
from attnviz.stories.record import Matrix, Story
from tests.stories.parts import panels, tables, told

X = self_attention.embed(WORDS)
ROUNDING = 10 * D_MODEL * float(np.finfo(np.float32).eps)
"""Sums of 20 products, rounded to single precision; all numbers here are below 10."""


def project(projection: torch.nn.Module, x: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
    """Return a projection of vectors, or some columns of it."""
    weight, bias = (projection.get_parameter(name).detach().double() for name in ("weight", "bias"))
    projected: np.ndarray = x @ weight.numpy()[rows].T + bias.numpy()[rows]
    return projected


def attend(model: torch.nn.Module, rows: slice = slice(None)) -> tuple[np.ndarray, ...]:
    """Return scores, weights and context of one head by the paper's formula."""
    query, key, value = (
        project(model.get_submodule(f"{name}_projection"), X[0].double().numpy(), rows)
        for name in ("query", "key", "value")
    )
    scores = query @ key.T / np.sqrt(D_K)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return scores, weights, weights @ value


def test_every_row_of_every_table(story: Story) -> None:
    """Scores, weights and output of one head, and the shapes on the way."""
    shapes, *steps = tables(story)
    for table, values in zip(steps, attend(self_attention.random_models()[0]), strict=True):
        assert [row[0] for row in table.rows] == list(WORDS)
        numbers = np.array([row[1:] for row in table.rows], dtype=float)
        assert numbers == pytest.approx(values, abs=ROUNDING)
    vector, head, square = "(1, 4, 20)", "(1, 4, 5)", "(1, 4, 4)"
    expected = [vector, head, head, head, square, square, head]
    assert [row[2] for row in shapes.rows] == expected


def test_one_cell_by_hand(story: Story) -> None:
    """Its five products, their sum and the weight."""
    scores, weights, _context = attend(self_attention.random_models()[0])
    assert f"/ {5**0.5:.3f} = {scores[1, 3]:.3f}" in told(story)
    total = np.exp(scores[1]).sum()
    assert f"{np.exp(scores[1, 3]):.3f} / {total:.3f} = {weights[1, 3]:.3f}" in told(story)
    assert told(story).count(" x ") >= 5
    most = WORDS[weights[1].argmax()]
    assert story.title == f"“love” attends most to “{most}” ({weights[1].max():.2f})"


def test_panels_are_the_heads(story: Story) -> None:
    """One head, then four heads side by side, each by its own part of the projections."""
    one, four = self_attention.random_models()
    parts = [slice(head * D_K, (head + 1) * D_K) for head in range(N_HEADS)]
    heads = [attend(four, part) for part in parts]
    for panel, weights in zip(
        panels(story, Matrix), [attend(one)[1], *(h[1] for h in heads)], strict=True
    ):
        assert (panel.rows, panel.columns) == (WORDS, WORDS)
        assert panel.values == pytest.approx(weights, abs=ROUNDING)
    output = project(four.output_projection, np.concatenate([h[2] for h in heads], axis=1))
    assert four(X)[0][0].detach().numpy() == pytest.approx(output, abs=10 * ROUNDING)
    assert "(1, 4, 20)" in told(story)


def test_refusal(story: Story) -> None:
    """The error for 3 heads is the model's own."""
    assert "“n_heads must divide d_model: expected a divisor of 20, got 3 heads”" in told(story)


def test_fused_projection(story: Story) -> None:
    """One product, split, is what three give: exactly in whole numbers, where nothing is rounded."""
    four = self_attention.random_models()[1]
    fused, separate = self_attention.project(four, X)
    assert torch.allclose(fused, separate, atol=ROUNDING)
    assert "Its result (1, 4, 60), split into three" in told(story)
    with torch.no_grad():
        for parameter in four.parameters():
            parameter.mul_(10).round_()
        assert torch.equal(*self_attention.project(four, (10 * X).round()))
