"""An experiment that shows why scores are divided by sqrt(d_k).

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.1 and footnote 4:
https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from attnviz.models.attention import attention_scores
from attnviz.stories.common import CERTAIN, Estimate
from attnviz.stories.record import Lines, Series, Story, Table
from attnviz.text.messages import _

WIDTHS = [2**power for power in range(10)]  # values of d_k
N_QUERIES, N_KEYS = 2000, 10
SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreStatistics:
    """Statistics of the scores for one width, over queries.

    A slope is the length of the derivative of a row's weights with respect to its query and its keys.
    """

    variance: Estimate  # a mean
    largest: Estimate  # the mean of the largest weight of a row
    mean_slope: Estimate
    median_slope: Estimate


@torch.inference_mode()
def experiment() -> tuple[list[ScoreStatistics], list[ScoreStatistics]]:
    """Measure the scores of random queries and keys for each width, unscaled and scaled."""
    random = torch.Generator().manual_seed(SEED)
    plain, scaled = [], []
    for d_k in WIDTHS:
        query = torch.randn(N_QUERIES, 1, d_k, generator=random)
        key = torch.randn(N_QUERIES, N_KEYS, d_k, generator=random)
        dot_products = query @ key.transpose(-2, -1)
        plain.append(measure(dot_products[:, 0], query, key, 1.0))
        scaled.append(measure(attention_scores(query, key)[:, 0], query, key, d_k**-0.5))
    return plain, scaled


def measure(scores: Tensor, query: Tensor, key: Tensor, scale: float) -> ScoreStatistics:
    """Return the statistics of the scores [row, key] of queries [row, 1, d_k] and keys [row, key, d_k].

    The scores have mean 0; each is a dot product times the scale.
    """
    weights = scores.double().softmax(dim=-1)
    # d weight_i / d score_j is weight_i (1 - weight_i) for i = j, and -weight_i weight_j otherwise.
    by_score = torch.diag_embed(weights) - weights[:, :, None] * weights[:, None]
    by_score = by_score.to(query.dtype) * scale
    by_query = (by_score @ key).square().sum(dim=(1, 2))  # d score_j / d query = scale key_j
    by_keys = by_score.square().sum(dim=(1, 2)) * query.square().sum(dim=(1, 2))
    slopes = (by_query + by_keys).sqrt()
    return ScoreStatistics(
        variance=_mean(scores.square().mean(dim=-1)),  # the mean is known to be 0
        largest=_mean(weights.amax(dim=-1)),
        mean_slope=_mean(slopes),
        median_slope=_median(slopes),
    )


def _mean(values: Tensor) -> Estimate:
    """Return the mean of values with its 95% interval."""
    mean = float(values.double().mean())
    error = CERTAIN * float(values.double().std()) / len(values) ** 0.5
    return Estimate(mean, mean - error, mean + error)


def _median(values: Tensor) -> Estimate:
    """Return the median of values with its 95% interval, from the binomial distribution of ranks."""
    reach = CERTAIN / 2 / len(values) ** 0.5
    quantiles = torch.tensor([0.5, 0.5 - reach, 0.5 + reach], dtype=torch.float64)
    return Estimate(*values.double().quantile(quantiles.clamp(0, 1)).tolist())


def build_story() -> Story:
    """Measure the variance of scores, the largest weight after softmax, and the slopes to queries and keys."""
    plain, scaled = experiment()
    last, last_scaled = plain[-1], scaled[-1]
    names = (_("unscaled"), _("divided by sqrt(d_k)"))

    def chart(
        title: str, y_title: str, lines: dict[str, tuple[str, str]], top: float | None
    ) -> Lines:
        """Return a chart of fields of `ScoreStatistics`, with the names of their lines, unscaled and scaled.

        The y axis is logarithmic if `top` is None.
        """
        series = [
            Series.of(name, [getattr(item, field) for item in items])
            for field, names in lines.items()
            for name, items in zip(names, (plain, scaled), strict=True)
        ]
        return Lines(
            title,
            [float(d_k) for d_k in WIDTHS],
            "d_k",
            series,
            y_title,
            None if top is None else (0.0, top),
            doubling=True,
            y_doubling=top is None,
        )

    def table(title: str, columns: tuple[str, ...], fields: tuple[str, str], digits: int) -> Table:
        """Return a table of two fields of `ScoreStatistics`, each unscaled and scaled."""
        rows = [
            (d_k, *(getattr(item, field).mean for field in fields for item in pair))
            for d_k, *pair in zip(WIDTHS, plain, scaled, strict=True)
        ]
        return Table(title, ["d_k", *columns], rows, digits=digits)

    return Story(
        title=_(
            "Without scaling, one key takes {largest:.0%} of the attention; with it, "
            "{scaled:.0%} (d_k = {widest})"
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
            table(
                _("{n_queries:,} random queries with {n_keys} random keys each").format(
                    n_queries=N_QUERIES, n_keys=N_KEYS
                ),
                (
                    _("variance"),
                    _("variance, scaled"),
                    _("largest weight"),
                    _("largest weight, scaled"),
                ),
                ("variance", "largest"),
                2,
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
                "For learning, what counts is how much the weights of a row change when its query "
                "and its keys change a little. In most rows with one winner they hardly change at "
                "all; in the few rows where two keys are almost equal they change a lot."
            ),
            table(
                _("Size of the derivative of a row's weights with respect to its query and keys"),
                (
                    _("median, unscaled"),
                    _("median, scaled"),
                    _("mean, unscaled"),
                    _("mean, scaled"),
                ),
                ("median_slope", "mean_slope"),
                3,
            ),
            _(
                "At d_k = {widest} without scaling, the median row has a derivative {smaller:.0f} "
                "times smaller than with scaling, while the mean is {larger:.1f} times larger, because of "
                "a few rows. Without scaling half of the rows would learn almost nothing, and some "
                "would jump; with scaling the median and the mean are almost equal, whatever d_k is. "
                "Before training, queries and keys are about as random as here."
            ).format(
                widest=WIDTHS[-1],
                smaller=last_scaled.median_slope.mean / last.median_slope.mean,
                larger=last.mean_slope.mean / last_scaled.mean_slope.mean,
            ),
        ],
        main=1,
        picture=[
            chart(_("Spread of the scores"), _("variance of a score"), {"variance": names}, None),
            chart(_("Largest weight of a row"), _("largest weight, mean"), {"largest": names}, 1.0),
            chart(
                _("Derivative of a row's weights"),
                _("size of the derivative by query and keys"),
                {
                    "median_slope": (_("median, unscaled"), _("median, scaled")),
                    "mean_slope": (_("mean, unscaled"), _("mean, scaled")),
                },
                None,
            ),
        ],
    )
