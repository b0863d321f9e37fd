"""Why scores are divided by sqrt(d_k), by experiment.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1 and footnote 4:
https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from attnviz.models.scores import dot, scaled_dot
from attnviz.stories.common import Estimate, prose
from attnviz.stories.record import Lines, Series, Story, Table

WIDTHS = tuple(2**power for power in range(10))
"""Each d_k that is tried."""
N_QUERIES, N_KEYS = 2000, 10
SEED = 0
WINNER = 0.99
"""A weight that leaves next to nothing to the other keys."""
CERTAIN = 1.96
"""Standard errors on each side of a mean, between which it lies in 95 % of such experiments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreStatistics:
    """What scores of one width come to; each a mean over queries."""

    variance: Estimate  # of a score
    largest: Estimate  # the largest weight of a row
    entropy: Estimate  # of a row's weights, in nats
    movement: Estimate  # the slopes of a row's weights by its scores: the sum of |d weight / d score|
    one_sided: float  # the share of rows in which one key has more than `WINNER`


def tell() -> Story:
    """The demo: the spread of scores, what the softmax makes of it, and what is left to learn from."""
    plain, divided = experiment()
    last, held = plain[-1], divided[-1]
    return Story(
        name="scaling",
        title="why scores are divided by sqrt(d_k)",
        parts=(
            prose("""A score is the dot product of a query and a key: d_k products, added. Let all their numbers be
            independent, with mean 0 and variance 1. Then each product has mean 0 and variance 1 too, variances of
            independent numbers add, and the score has variance d_k. Longer vectors give larger scores, whatever they
            mean. Divided by sqrt(d_k) the score has its variance divided by d_k, which makes it 1 again."""),
            prose(f"""The experiment: for each d_k {N_QUERIES:,} random queries (seed {SEED}), each with {N_KEYS} random
            keys of its own."""),
            _table(plain, divided),
            prose(f"""At d_k = {WIDTHS[-1]} the variance is {last.variance.mean:.0f} without division (95 % interval
            {last.variance.low:.0f} to {last.variance.high:.0f}) and {held.variance.mean:.2f} with it
            ({held.variance.low:.2f} to {held.variance.high:.2f})."""),
            prose(f"""The softmax takes the exponential of each score, so scores that are far apart leave one winner.
            Without division the largest of the {N_KEYS} weights is {last.largest.mean:.2f} on average at d_k =
            {WIDTHS[-1]}, and in {100 * last.one_sided:.0f} % of the rows one key has more than {WINNER}; with division
            it is {held.largest.mean:.2f}. Weights that are all alike would be {1 / N_KEYS:.2f}, with an entropy of
            ln({N_KEYS}) = {math.log(N_KEYS):.2f} nats; here it is {last.entropy.mean:.2f} without division and
            {held.entropy.mean:.2f} with it."""),
            prose(f"""One winner is bad for learning. When score j moves a little, weight i moves by weight_i (1 -
            weight_j) if i is j, and by -weight_i weight_j if not: by nothing where weights are 0 or 1. The last two
            columns add the sizes of all these slopes of a row: {last.movement.mean:.2f} without division and
            {held.movement.mean:.2f} with it, {held.movement.mean / last.movement.mean:.1f} times as much. What a model
            learns comes back through these slopes, and before training queries and keys are about as random as here:
            without division it would begin where there is next to nothing to learn from."""),
        ),
        picture=_picture(plain, divided),
        receipt=f"an experiment with {N_QUERIES:,} queries of {N_KEYS} keys for each d_k, seed {SEED}; scores and "
        "softmax as in Vaswani et al. 2017, equation 1; intervals hold 95 %",
    )


@torch.inference_mode()
def experiment() -> tuple[list[ScoreStatistics], list[ScoreStatistics]]:
    """What comes of random queries and keys, for each width: without division, and with it."""
    random = torch.Generator().manual_seed(SEED)
    plain, divided = [], []
    for d_k in WIDTHS:
        query = torch.randn(N_QUERIES, 1, d_k, generator=random)
        key = torch.randn(N_QUERIES, N_KEYS, d_k, generator=random)
        plain.append(measure(dot(query, key)[:, 0]))
        divided.append(measure(scaled_dot(query, key)[:, 0]))
    return plain, divided


def measure(scores: Tensor) -> ScoreStatistics:
    """What scores [query, key] of mean 0 come to."""
    weights = scores.softmax(dim=-1)
    largest = weights.amax(dim=-1)
    # The softmax's slopes are weight_i (1 - weight_i) for i = j and -weight_i weight_j else; in a row of the table
    # both kinds have the same sum of sizes.
    return ScoreStatistics(
        variance=_mean(scores.square().mean(dim=-1)),  # the mean is known to be 0
        largest=_mean(largest),
        entropy=_mean(-torch.special.xlogy(weights, weights).sum(dim=-1)),
        movement=_mean(2 * (weights * (1 - weights)).sum(dim=-1)),
        one_sided=float((largest > WINNER).float().mean()),
    )


def _mean(values: Tensor) -> Estimate:
    mean, error = float(values.double().mean()), float(values.double().std() / len(values) ** 0.5)
    return Estimate(mean, mean - CERTAIN * error, mean + CERTAIN * error)


def _table(plain: list[ScoreStatistics], divided: list[ScoreStatistics]) -> Table:
    shown = {"variance": "variance", "largest weight": "largest", "entropy": "entropy", "slopes": "movement"}
    return Table(
        title="scores as they are, and divided by sqrt(d_k)",
        columns=("d_k", *(f"{what}{how}" for what in shown for how in ("", ", divided"))),
        rows=tuple(
            (d_k, *(getattr(scores, name).mean for name in shown.values() for scores in pair))
            for d_k, *pair in zip(WIDTHS, plain, divided, strict=True)
        ),
        digits=2,
    )


def _picture(plain: list[ScoreStatistics], divided: list[ScoreStatistics]) -> tuple[Lines, ...]:
    def lines(title: str, y_title: str, name: str, top: float | None = None) -> Lines:
        ways = {"as they are": plain, "divided by sqrt(d_k)": divided}
        return Lines(
            title=title,
            x=tuple(map(float, WIDTHS)),
            x_title="d_k",
            series=tuple(Series.of(how, [getattr(one, name) for one in way]) for how, way in ways.items()),
            y_title=y_title,
            y_limits=None if top is None else (0.0, top),
            doubling=True,
            y_doubling=top is None,
        )

    return (
        lines("how far scores spread", "variance of a score", "variance"),
        lines(f"how peaked the softmax over {N_KEYS} keys is", "largest weight, mean", "largest", 1.0),
        lines("what is left to learn from", "sum of |d weight / d score|", "movement", 2.0),
    )
