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
from attnviz.stories.common import CERTAIN, Estimate, story, table
from attnviz.stories.record import Lines, Series, Story
from attnviz.text.messages import _

WIDTHS = tuple(2**power for power in range(10))  # each d_k that is tried
N_QUERIES, N_KEYS = 2000, 10
SEED = 0
WINNER = 0.99  # a weight that leaves next to nothing to the other keys
TITLE = _(
    "at d_k = {widest} the largest weight is {largest:.2f}; of scores divided by sqrt(d_k), "
    "{divided_largest:.2f}"
)
EXPERIMENT = _(
    "The experiment: for each d_k {n_queries:,} random queries (seed {seed}), each with {n_keys} "
    "random keys of its own."
)
SPREAD = _(
    "At d_k = {widest} the variance is {variance:.0f} without division (95 % interval {low:.0f} "
    "to {high:.0f}) and {divided_variance:.2f} with it ({divided_low:.2f} to {divided_high:.2f})."
)
PEAKS = _(
    "The softmax takes the exponential of each score, so scores that are far apart leave one "
    "winner. Without division the largest of the {n_keys} weights is {largest:.2f} on average at "
    "d_k = {widest}, and in {winners:.0f} % of the rows one key has more than {winner}; with "
    "division it is {divided_largest:.2f}. Weights that are all alike would be {even:.2f}, with "
    "an entropy of ln({n_keys}) = {most:.2f} nats; here it is {entropy:.2f} without division and "
    "{divided_entropy:.2f} with it."
)
RECEIPT = _(
    "an experiment with {n_queries:,} queries of {n_keys} keys for each d_k, seed {seed}; scores "
    "and softmax as in Vaswani et al. 2017, equation 1; intervals hold 95 %"
)
VARIANCE = _(
    "A score is the dot product of a query and a key: d_k products, added. Let all their numbers "
    "be independent, with mean 0 and variance 1. Then each product has mean 0 and variance 1 too, "
    "variances of independent numbers add, and the score has variance d_k. Longer vectors give "
    "larger scores, whatever they mean. Divided by sqrt(d_k) the score has its variance divided "
    "by d_k, which makes it 1 again."
)
SLOPES = _(
    "One winner is bad for learning. When score j moves a little, weight i moves by weight_i (1 - "
    "weight_j) if i is j, and by -weight_i weight_j if not: by nothing where weights are 0 or 1. "
    "The last two columns add the sizes of all these slopes of a row: {slopes:.2f} without "
    "division and {divided_slopes:.2f} with it, {times:.1f} times as much. What a model learns "
    "comes back through these slopes, and before training queries and keys are about as random as "
    "here: without division it would begin where there is next to nothing to learn from."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreStatistics:
    """Statistics of scores of one width, each a mean over queries."""

    variance: Estimate  # of a score
    largest: Estimate  # the largest weight of a row
    entropy: Estimate  # of a row's weights, in nats
    movement: (
        Estimate  # the slopes of a row's weights by its scores: the sum of |d weight / d score|
    )
    one_sided: float  # the share of rows in which one key has more than `WINNER`


@torch.inference_mode()
def experiment() -> tuple[list[ScoreStatistics], list[ScoreStatistics]]:
    """Measure scores of random queries and keys for each width, unscaled and scaled."""
    random = torch.Generator().manual_seed(SEED)
    plain, divided = [], []
    for d_k in WIDTHS:
        query = torch.randn(N_QUERIES, 1, d_k, generator=random)
        key = torch.randn(N_QUERIES, N_KEYS, d_k, generator=random)
        plain.append(measure(dot(query, key)[:, 0]))
        divided.append(measure(scaled_dot(query, key)[:, 0]))
    return plain, divided


def measure(scores: Tensor) -> ScoreStatistics:
    """Return the statistics of scores [query, key] of mean 0."""
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


def tell() -> Story:
    """The demo: the spread of scores, what the softmax makes of it, and what is left to learn from."""
    plain, divided = experiment()
    last, held = plain[-1], divided[-1]
    times = held.movement.mean / last.movement.mean
    winners = 100 * last.one_sided
    even = 1 / N_KEYS
    most = math.log(N_KEYS)
    measures = ("variance", "largest", "entropy", "movement")
    columns = (
        way
        for name in (_("variance"), _("largest weight"), _("entropy"), _("slopes"))
        for way in (name, _("{what}, divided").format(what=name))
    )
    rows = (
        (d_k, *(getattr(scores, name).mean for name in measures for scores in pair))
        for d_k, *pair in zip(WIDTHS, plain, divided, strict=True)
    )
    ways = dict(zip((_("as they are"), _("divided by sqrt(d_k)")), (plain, divided), strict=True))
    drawn = {"variance": None, "largest": 1.0, "movement": 2.0}  # and how high its axis goes
    picture = (
        Lines(
            title,
            tuple(map(float, WIDTHS)),
            "d_k",
            tuple(Series.of(how, [getattr(one, name) for one in way]) for how, way in ways.items()),
            height,
            None if top is None else (0.0, top),
            doubling=True,
            y_doubling=top is None,
        )
        for (name, top), title, height in zip(
            drawn.items(),
            (
                _("how far scores spread"),
                _("how peaked the softmax over {n_keys} keys is").format(n_keys=N_KEYS),
                _("what is left to learn from"),
            ),
            (_("variance of a score"), _("largest weight, mean"), _("sum of |d weight / d score|")),
            strict=True,
        )
    )
    numbers = table(
        _("scores as they are, and divided by sqrt(d_k)"), ("d_k", *columns), rows, digits=2
    )
    return story(
        title=TITLE.format(
            widest=WIDTHS[-1], largest=last.largest.mean, divided_largest=held.largest.mean
        ),
        receipt=RECEIPT.format(n_queries=N_QUERIES, n_keys=N_KEYS, seed=SEED),
        parts=(
            VARIANCE,
            EXPERIMENT.format(n_queries=N_QUERIES, seed=SEED, n_keys=N_KEYS),
            numbers,
            SPREAD.format(
                widest=WIDTHS[-1],
                variance=last.variance.mean,
                low=last.variance.low,
                high=last.variance.high,
                divided_variance=held.variance.mean,
                divided_low=held.variance.low,
                divided_high=held.variance.high,
            ),
            PEAKS.format(
                n_keys=N_KEYS,
                largest=last.largest.mean,
                widest=WIDTHS[-1],
                winners=winners,
                winner=WINNER,
                divided_largest=held.largest.mean,
                even=even,
                most=most,
                entropy=last.entropy.mean,
                divided_entropy=held.entropy.mean,
            ),
            SLOPES.format(
                slopes=last.movement.mean, divided_slopes=held.movement.mean, times=times
            ),
        ),
        picture=picture,
    )
