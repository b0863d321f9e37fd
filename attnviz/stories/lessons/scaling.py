"""An experiment that shows why scores are divided by sqrt(d_k).

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1 and footnote 4:
https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnviz.models.scores import dot, scaled_dot
from attnviz.stories.common import CERTAIN, Estimate
from attnviz.stories.record import Lines, Series, Story, Table
from attnviz.text.messages import _

WIDTHS = [2**power for power in range(10)]  # values of d_k
N_QUERIES, N_KEYS = 2000, 10
SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreStatistics:
    """Statistics of the scores for one width, each a mean over queries."""

    variance: Estimate
    largest: Estimate  # the largest weight of a row
    slopes: Estimate  # the sum of |d weight_i / d score_j| over all pairs of keys i, j of a row


@torch.inference_mode()
def experiment() -> tuple[list[ScoreStatistics], list[ScoreStatistics]]:
    """Measure the scores of random queries and keys for each width, unscaled and scaled."""
    random = torch.Generator().manual_seed(SEED)
    plain, scaled = [], []
    for d_k in WIDTHS:
        query = torch.randn(N_QUERIES, 1, d_k, generator=random)
        key = torch.randn(N_QUERIES, N_KEYS, d_k, generator=random)
        plain.append(measure(dot(query, key)[:, 0]))
        scaled.append(measure(scaled_dot(query, key)[:, 0]))
    return plain, scaled


def measure(scores: Tensor) -> ScoreStatistics:
    """Return the statistics of scores [query, key] of mean 0."""
    weights = scores.softmax(dim=-1)
    return ScoreStatistics(
        variance=_mean(scores.square().mean(dim=-1)),  # the mean is known to be 0
        largest=_mean(weights.amax(dim=-1)),
        # The slopes are weight_i (1 - weight_i) for i = j, and -weight_i weight_j otherwise. In each row of the
        # matrix of slopes both kinds add up to the same size, so their sum is twice that of the first kind.
        slopes=_mean(2 * (weights * (1 - weights)).sum(dim=-1)),
    )


def _mean(values: Tensor) -> Estimate:
    """Return the mean of values with its 95% interval."""
    mean = float(values.double().mean())
    error = CERTAIN * float(values.double().std()) / len(values) ** 0.5
    return Estimate(mean, mean - error, mean + error)


def build_story() -> Story:
    """Measure the variance of scores, the largest weight after softmax, and the slopes of softmax."""
    plain, scaled = experiment()
    last, last_scaled = plain[-1], scaled[-1]
    rows = [
        (
            d_k,
            plain_row.variance.mean,
            scaled_row.variance.mean,
            plain_row.largest.mean,
            scaled_row.largest.mean,
            plain_row.slopes.mean,
            scaled_row.slopes.mean,
        )
        for d_k, plain_row, scaled_row in zip(WIDTHS, plain, scaled, strict=True)
    ]

    def chart(title: str, y_title: str, name: str, top: float | None) -> Lines:
        """Return a chart of a field of `ScoreStatistics`; the y axis is logarithmic if `top` is None."""
        return Lines(
            title,
            [float(d_k) for d_k in WIDTHS],
            "d_k",
            [
                Series.of(_("unscaled"), [getattr(item, name) for item in plain]),
                Series.of(_("divided by sqrt(d_k)"), [getattr(item, name) for item in scaled]),
            ],
            y_title,
            None if top is None else (0.0, top),
            doubling=True,
            y_doubling=top is None,
        )

    return Story(
        title=_(
            "At d_k = {widest}, one key takes {largest:.0%} of the attention without scaling, "
            "{scaled:.0%} with scaling"
        ).format(widest=WIDTHS[-1], largest=last.largest.mean, scaled=last_scaled.largest.mean),
        receipt=_(
            "An experiment with {n_queries:,} queries of {n_keys} keys for each d_k, seed {seed}; "
            "scores and softmax as in Vaswani et al. 2017, equation 1."
        ).format(n_queries=N_QUERIES, n_keys=N_KEYS, seed=SEED),
        parts=[
            _(
                "A score is the dot product of a query and a key, a sum of d_k products. If their "
                "numbers are independent, with mean 0 and variance 1, each product has mean 0 and "
                "variance 1, and variances add up: the score has variance d_k. Longer vectors give "
                "larger scores, whatever they mean. Dividing by sqrt(d_k) brings the variance back "
                "to 1."
            ),
            Table(
                _("{n_queries:,} random queries with {n_keys} random keys each").format(
                    n_queries=N_QUERIES, n_keys=N_KEYS
                ),
                [
                    "d_k",
                    _("variance"),
                    _("variance, scaled"),
                    _("largest weight"),
                    _("largest weight, scaled"),
                    _("slopes"),
                    _("slopes, scaled"),
                ],
                rows,
                digits=2,
            ),
            _(
                "Softmax takes the exponential of each score, so scores far apart leave one winner. "
                "At d_k = {widest} the largest of {n_keys} weights is {largest:.2f} on average without "
                "scaling, and {scaled:.2f} with it. Equal weights would be {even:.2f}."
            ).format(
                widest=WIDTHS[-1],
                n_keys=N_KEYS,
                largest=last.largest.mean,
                scaled=last_scaled.largest.mean,
                even=1 / N_KEYS,
            ),
            _(
                "One winner is bad for learning, because gradients pass through the slopes of "
                "softmax: weight_i (1 - weight_i) and -weight_i weight_j, almost 0 where weights are "
                "0 or 1. The last two columns add up the sizes of all slopes of a row: "
                "{slopes:.2f} without scaling, {scaled:.2f} with it. Before training, queries and "
                "keys are about as random as here, so without scaling there would be little to learn "
                "from."
            ).format(slopes=last.slopes.mean, scaled=last_scaled.slopes.mean),
        ],
        picture=[
            chart(_("Spread of the scores"), _("variance of a score"), "variance", None),
            chart(_("Largest weight of a row"), _("largest weight, mean"), "largest", 1.0),
            chart(_("Slopes of softmax"), _("sum of |d weight / d score|"), "slopes", 2.0),
        ],
    )
