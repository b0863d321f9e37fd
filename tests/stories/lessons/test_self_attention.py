"""The demo of self-attention: all its numbers once more, in numpy in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnviz.models.attention import MultiHeadAttention
from attnviz.stories.lessons import self_attention
from attnviz.stories.lessons.self_attention import D_K, D_MODEL, N_HEADS, WORDS
from attnviz.stories.record import Matrix, Story
from tests.stories.parts import tables

ROUNDING = D_MODEL * float(np.finfo(np.float32).eps)
"""Sums of 20 products, rounded to single precision; all numbers here are below 10."""


def words(story: Story) -> str:
    """Its sentences."""
    return " ".join(part for part in story.parts if isinstance(part, str))


def project(projection: torch.nn.Module, x: np.ndarray, rows: slice = slice(None)) -> np.ndarray:
    """A projection of vectors [word, d_model]; of some rows of its weight alone."""
    weight, bias = (
        projection.get_parameter(name).detach().double().numpy() for name in ("weight", "bias")
    )
    projected: np.ndarray = x @ weight[rows].T + bias[rows]
    return projected


def attend(
    model: torch.nn.Module, x: np.ndarray, rows: slice = slice(None)
) -> tuple[np.ndarray, ...]:
    """Scores, weights and context of one head by the paper's formula."""
    query, key, value = (
        project(model.get_submodule(f"{name}_projection"), x, rows)
        for name in ("query", "key", "value")
    )
    scores = query @ key.T / np.sqrt(D_K)
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return scores, weights, weights @ value


def test_the_sizes_are_those_of_the_lesson() -> None:
    """Four words, 20 wide, one head of 5; four heads of 5 side by side."""
    assert WORDS == ("I", "love", "you", "all")
    assert (D_MODEL, D_K, N_HEADS) == (20, 5, 4)
    x, (one, four) = self_attention.vectors(), self_attention.models()
    head, (output, weights) = self_attention.one_head(one, x), four(x)
    assert (x.shape, head.output.shape, head.weights.shape) == ((1, 4, 20), (1, 4, 5), (1, 4, 4))
    assert (output.shape, weights.shape) == ((1, 4, 20), (1, 4, 4, 4))


def test_every_row_of_every_table(story: Story) -> None:
    """Scores, weights and output of one head: a row for each word, as the formula gives them."""
    x = self_attention.vectors()[0].double().numpy()
    expected = attend(self_attention.models()[0], x)
    for table, values in zip(tables(story)[1:-1], expected, strict=True):
        assert [row[0] for row in table.rows] == list(WORDS)
        assert np.array([row[1:] for row in table.rows], dtype=float) == pytest.approx(
            values, abs=10 * ROUNDING
        )


def test_the_shapes(story: Story) -> None:
    """Each step with the shape that it has."""
    shapes = [row[2] for row in tables(story)[0].rows]
    assert shapes == ["(1, 4, 20)", *["(1, 4, 5)"] * 3, "(1, 4, 4)", "(1, 4, 4)", "(1, 4, 5)"]


def test_one_cell_by_hand(story: Story) -> None:
    """The five products of one score, their sum, and the weight that comes of it."""
    x, model = self_attention.vectors()[0].double().numpy(), self_attention.models()[0]
    query, key = (
        project(model.get_submodule(f"{name}_projection"), x) for name in ("query", "key")
    )
    terms = " + ".join(f"({q:.3f} x {k:.3f})" for q, k in zip(query[1], key[3], strict=True))
    scores, weights, _ = attend(model, x)
    assert (
        "The score of “love” for “all” is the query of the one times the key of the other,"
        f" divided by sqrt(5): ({terms})" in words(story)
    )
    assert f"/ 2.236 = {scores[1, 3]:.3f}. Its weight is exp({scores[1, 3]:.3f})" in words(story)
    assert (
        f"{np.exp(scores[1, 3]):.3f} / {np.exp(scores[1]).sum():.3f} = {weights[1, 3]:.3f}."
        in words(story)
    )


def test_four_heads(story: Story) -> None:
    """Each head by the formula on its own rows of the projections; the pictures are their weights."""
    x, (one, four) = self_attention.vectors()[0].double().numpy(), self_attention.models()
    heads = [attend(four, x, slice(head * D_K, (head + 1) * D_K)) for head in range(N_HEADS)]
    patterns = [attend(one, x)[1], *(weights for _, weights, _ in heads)]
    for panel, pattern in zip(story.picture, patterns, strict=True):
        assert isinstance(panel, Matrix)
        assert (panel.rows, panel.columns) == (WORDS, WORDS)
        assert panel.values == pytest.approx(pattern, abs=10 * ROUNDING)
    output = project(
        four.output_projection, np.concatenate([context for *_, context in heads], axis=1)
    )
    assert four(self_attention.vectors())[0][0].detach().numpy() == pytest.approx(
        output, abs=100 * ROUNDING
    )


def test_the_refusal_is_the_models_own(story: Story) -> None:
    """What 3 heads on 20 numbers give is the very message."""
    refusal = self_attention.refusal(MultiHeadAttention, 20, 3)
    assert refusal == "n_heads must divide d_model: expected a divisor of 20, got 3 heads"
    assert f"the model refuses: “{refusal}”" in words(story)


def test_one_projection_gives_what_three_give(story: Story) -> None:
    """In whole numbers, where nothing is rounded, exactly; on these weights but for rounding, as the story says."""
    x, four = self_attention.vectors(), self_attention.models()[1]
    product, separate = self_attention.fused(four, x)
    assert product.shape == (1, 4, 60)
    difference = float((product - separate).abs().max())
    assert difference <= 10 * ROUNDING
    with torch.no_grad():
        for parameter in four.parameters():
            parameter.mul_(10).round_()
        assert torch.equal(*self_attention.fused(four, (10 * x).round()))
    said = "exactly, to the last bit" if not difference else f"largest difference {difference:.1e}"
    assert said in words(story)


def test_heads_that_differ_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads one after another that are not the same heads are told by their difference."""
    x, four = self_attention.vectors(), self_attention.models()[1]
    assert self_attention.apart(four, x) <= 10 * ROUNDING
    whole = four.forward
    monkeypatch.setattr(four, "forward", lambda given: whole(given.flip(1)))
    assert self_attention.apart(four, x) > 0.01


def test_the_receipt(story: Story) -> None:
    """It names the three differences, all of the size of rounding."""
    assert story.receipt.startswith("verified: max difference ")
    assert "between one projection and three" in story.receipt


def test_one_projection_number_by_number(story: Story) -> None:
    """Cut out of the one product and computed alone: the same numbers, which are those of the weights."""
    table = tables(story)[-1]
    four, x = self_attention.models()[1], self_attention.vectors()[0, self_attention.QUERY].double()
    projections = (four.query_projection, four.key_projection, four.value_projection)
    for number, projection in enumerate(projections):
        row, alone = table.rows[2 * number : 2 * number + 2]
        first = number * self_attention.D_MODEL
        assert row[1] == alone[1] == f"{first} to {first + self_attention.D_K - 1}"
        expected = (projection.weight.double() @ x + projection.bias.double())[
            : self_attention.D_K
        ].tolist()
        assert row[2:] == pytest.approx(expected, abs=1e-5)
        assert alone[2:] == pytest.approx(row[2:], abs=1e-6)
