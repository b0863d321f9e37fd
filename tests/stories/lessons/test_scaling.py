"""The demo of scaling: its experiment made again with other random numbers, its formulas with autograd."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import torch

from attnviz.stories.lessons.scaling import experiment, measure
from attnviz.stories.record import Lines, Story, Table
from tests.stories.parts import tables

WIDTHS = [2**power for power in range(10)]


@pytest.fixture(scope="module")
def table(story: Story) -> Table:
    """Its one table."""
    (found,) = tables(story)
    return found


@pytest.fixture(scope="module")
def again() -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """The same experiment by NumPy, with its own random numbers: for each d_k weights without division and with it."""
    random = np.random.default_rng(7)
    found = {}
    for d_k in WIDTHS:
        query, key = random.standard_normal((4000, 1, d_k)), random.standard_normal((4000, 10, d_k))
        scores = (query * key).sum(axis=-1)
        plain, divided = (
            np.exp(s - s.max(axis=1, keepdims=True)) for s in (scores, scores / math.sqrt(d_k))
        )
        found[d_k] = (
            plain / plain.sum(axis=1, keepdims=True),
            divided / divided.sum(axis=1, keepdims=True),
        )
    return found


def error(estimate: tuple[float, float, float]) -> float:
    """The standard error of a mean, from its 95 % interval."""
    mean, _, high = estimate
    return (high - mean) / 1.96


def entropy(weights: np.ndarray) -> float:
    """The mean entropy of rows of weights, in nats."""
    logarithms = np.log(np.where(weights > 0, weights, 1))
    return float(-(weights * logarithms).sum(axis=1).mean())


def test_variance(table: Table) -> None:
    """It is d_k as scores are, and 1 where they are divided: within five standard errors."""
    plain, divided = experiment()
    assert [row[0] for row in table.rows] == WIDTHS
    for d_k, one, other, row in zip(WIDTHS, plain, divided, table.rows, strict=True):
        assert row[1:3] == (one.variance.mean, other.variance.mean)
        assert abs(one.variance.mean - d_k) < 5 * error(one.variance)
        assert abs(other.variance.mean - 1) < 5 * error(other.variance)
        assert error(one.variance) < 0.06 * d_k


def test_softmax(table: Table, again: dict[int, tuple[np.ndarray, np.ndarray]]) -> None:
    """Largest weight, entropy and slopes are those of other random numbers, nearly."""
    for row in table.rows:
        d_k, _, _, *measured = row
        assert isinstance(d_k, int)
        expected = []
        for describe in (
            lambda w: w.max(axis=1).mean(),
            entropy,
            lambda w: 2 * (w * (1 - w)).sum(axis=1).mean(),
        ):
            expected += [float(describe(weights)) for weights in again[d_k]]
        assert measured == pytest.approx(expected, abs=0.05)


def test_measure() -> None:
    """Every number of a few scores by hand, and the slopes from the softmax's own derivative."""
    scores = torch.tensor([[0.0, 0.0], [math.log(3), 0.0], [200.0, -200.0]], dtype=torch.float64)
    found = measure(scores)
    assert found.variance.mean == pytest.approx((0 + math.log(3) ** 2 / 2 + 40_000) / 3)
    assert found.largest.mean == pytest.approx((0.5 + 0.75 + 1) / 3)
    three_to_one = -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert found.entropy.mean == pytest.approx((math.log(2) + three_to_one) / 3)
    slopes = [
        torch.autograd.functional.jacobian(lambda row: row.softmax(dim=-1), row).abs().sum().item()  # type: ignore[no-untyped-call]
        for row in scores
    ]
    assert found.movement.mean == pytest.approx(sum(slopes) / 3)
    assert found.one_sided == pytest.approx(1 / 3)
    largest = np.array([0.5, 0.75, 1])
    assert error(found.largest) == pytest.approx(largest.std(ddof=1) / math.sqrt(3))
    assert found.largest.high - found.largest.mean == pytest.approx(
        found.largest.mean - found.largest.low
    )


def test_stated_numbers(story: Story, table: Table) -> None:
    """The sentences state the last row of the table, and how often one key wins."""
    text = " ".join(part for part in story.parts if isinstance(part, str))
    numbers = [float(cell) for cell in table.rows[-1]]
    assert f"At d_k = 512 the variance is {numbers[1]:.0f} without division" in text
    assert f"and {numbers[2]:.2f} with it" in text
    assert f"largest of the 10 weights is {numbers[3]:.2f} on average at d_k = 512" in text
    assert f"with division it is {numbers[4]:.2f}" in text
    assert (
        f"ln(10) = {math.log(10):.2f} nats; here it is {numbers[5]:.2f} without division and {numbers[6]:.2f}"
        in text
    )
    assert (
        f"{numbers[7]:.2f} without division and {numbers[8]:.2f} with it, {numbers[8] / numbers[7]:.1f} times"
        in text
    )
    found = re.search(r"in (\d+) % of the rows one key has more than 0.99", text)
    assert found is not None
    assert int(found[1]) == round(100 * experiment()[0][-1].one_sided)


def test_what_the_story_claims(table: Table) -> None:
    """Without division the softmax peaks and its slopes vanish; with it both stay."""
    rows = np.array([[float(cell) for cell in row] for row in table.rows])
    assert (np.diff(rows[:, 3]) > 0).all()
    assert (np.diff(rows[:, 7]) < 0).all()
    assert rows[-1, 3] > 0.9
    assert rows[-1, 7] < 0.25 * rows[-1, 8]
    assert np.ptp(rows[:, 4]) < 0.1
    assert np.ptp(rows[:, 8]) < 0.1


def test_picture(story: Story, table: Table) -> None:
    """The lines are the table's columns, each inside its interval, over d_k that doubles."""
    columns = list(zip(*table.rows, strict=True))
    for lines, first in zip(story.picture, (1, 3, 7), strict=True):
        assert isinstance(lines, Lines)
        assert lines.doubling
        assert lines.x == tuple(map(float, WIDTHS))
        for series, column in zip(lines.series, (first, first + 1), strict=True):
            assert series.values == columns[column]
            for low, value, high in zip(series.low, series.values, series.high, strict=True):
                assert low < value < high
    assert story.picture[0].y_doubling  # type: ignore[union-attr]


def test_same_again() -> None:
    """The experiment gives the same numbers each time, and leaves the random numbers of others alone."""
    torch.manual_seed(5)
    first = experiment()
    after = torch.rand(1).item()
    torch.manual_seed(5)
    assert torch.rand(1).item() == after
    assert experiment() == first
