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
from attnviz.text.phrase import Texts

WIDTHS = tuple(2**power for power in range(10))  # each d_k that is tried
N_QUERIES, N_KEYS = 2000, 10
SEED = 0
WINNER = 0.99  # a weight that leaves next to nothing to the other keys
TEXTS = Texts(
    """
title | at d_k = {widest} the largest weight is {last.largest.mean:.2f}; of scores divided by sqrt(d_k),
    {held.largest.mean:.2f}
    | d_k = {widest}에서 가장 큰 가중치는 {last.largest.mean:.2f}, 스코어를 sqrt(d_k)로 나누면 {held.largest.mean:.2f}
experiment | The experiment: for each d_k {N_QUERIES:,} random queries (seed {SEED}), each with {N_KEYS} random keys of
    its own.
    | 실험: d_k마다 무작위 쿼리 {N_QUERIES:,}개(시드 {SEED})를 만들고, 쿼리마다 무작위 키를 {N_KEYS}개씩 둡니다.
spread | At d_k = {widest} the variance is {last.variance.mean:.0f} without division (95 % interval
    {last.variance.low:.0f} to {last.variance.high:.0f}) and {held.variance.mean:.2f} with it ({held.variance.low:.2f}
    to {held.variance.high:.2f}).
    | d_k = {widest}에서 스코어의 분산은 나누지 않으면 {last.variance.mean:.0f}(95 % 신뢰구간
    {last.variance.low:.0f}~{last.variance.high:.0f}), 나누면
    {held.variance.mean:.2f}({held.variance.low:.2f}~{held.variance.high:.2f})입니다.
peaks | The softmax takes the exponential of each score, so scores that are far apart leave one winner. Without division
    the largest of the {N_KEYS} weights is {last.largest.mean:.2f} on average at d_k = {widest}, and in
    {winners:.0f} % of the rows one key has more than {WINNER}; with division it is {held.largest.mean:.2f}.
    Weights that are all alike would be {even:.2f}, with an entropy of ln({N_KEYS}) = {most:.2f} nats; here it is
    {last.entropy.mean:.2f} without division and {held.entropy.mean:.2f} with it.
    | 소프트맥스는 스코어마다 지수 함수를 씌우므로, 스코어의 차이가 크면 하나만 이깁니다. d_k = {widest}에서 가중치
    {N_KEYS}개 가운데 가장 큰 것은 나누지 않으면 평균 {last.largest.mean:.2f}이고, 행의 {winners:.0f} %에서 키
    하나가 {WINNER}보다 많이 가져갑니다. 나누면 평균 {held.largest.mean:.2f}입니다. 가중치가 모두 같다면
    {even:.2f}씩이고 엔트로피는 ln({N_KEYS}) = {most:.2f} nat입니다. 여기서는 나누지 않으면 {last.entropy.mean:.2f},
    나누면 {held.entropy.mean:.2f}입니다.
receipt | an experiment with {N_QUERIES:,} queries of {N_KEYS} keys for each d_k, seed {SEED}; scores and softmax as in
    Vaswani et al. 2017, equation 1; intervals hold 95 %
    | 실험: d_k마다 쿼리 {N_QUERIES:,}개와 키 {N_KEYS}개, 시드 {SEED}; 스코어와 소프트맥스는 Vaswani 외 2017, 식 1;
    구간은 95 % 신뢰구간
variance | A score is the dot product of a query and a key: d_k products, added. Let all their numbers be independent,
    with mean 0 and variance 1. Then each product has mean 0 and variance 1 too, variances of independent numbers add,
    and the score has variance d_k. Longer vectors give larger scores, whatever they mean. Divided by sqrt(d_k) the
    score has its variance divided by d_k, which makes it 1 again.
    | 스코어는 쿼리와 키의 내적, 곧 곱 d_k개를 더한 값입니다. 모든 수가 서로 독립이고 평균 0, 분산 1이라고 합시다.
    그러면 각각의 곱도 평균 0, 분산 1이고, 독립인 수는 분산끼리 더해지므로 스코어의 분산은 d_k가 됩니다. 벡터가 길면
    뜻과 상관없이 스코어가 커지는 것입니다. 스코어를 sqrt(d_k)로 나누면 분산은 d_k로 나뉘어 다시 1이 됩니다.
slopes | One winner is bad for learning. When score j moves a little, weight i moves by weight_i (1 - weight_j) if i is
    j, and by -weight_i weight_j if not: by nothing where weights are 0 or 1. The last two columns add the sizes of all
    these slopes of a row: {last.movement.mean:.2f} without division and {held.movement.mean:.2f} with it, {times:.1f}
    times as much. What a model learns comes back through these slopes, and before training queries and keys are about
    as random as here: without division it would begin where there is next to nothing to learn from.
    | 하나만 이기면 학습에는 좋지 않습니다. 스코어 j가 조금 움직일 때 가중치 i는, i와 j가 같으면 weight_i (1 -
    weight_j)만큼, 다르면 -weight_i weight_j만큼 움직입니다. 가중치가 0이나 1이면 움직이지 않습니다. 표의 마지막 두 열은
    한 행에서 이 기울기의 크기를 모두 더한 값으로, 나누지 않으면 {last.movement.mean:.2f}, 나누면
    {held.movement.mean:.2f}입니다({times:.1f}배). 모델은 이 기울기를 거쳐 배우고, 학습 전의 쿼리와 키는 여기서처럼 거의
    무작위입니다. 나누지 않으면 배울 것이 거의 없는 곳에서 시작하게 됩니다.
table | scores as they are, and divided by sqrt(d_k) | 스코어를 그대로 둘 때와 sqrt(d_k)로 나눌 때
columns | variance; largest weight; entropy; slopes | 분산; 최대 가중치; 엔트로피; 기울기
divided | {what}, divided | {what} (나눔)
ways | as they are; divided by sqrt(d_k) | 그대로; sqrt(d_k)로 나눔
panels | how far scores spread; how peaked the softmax over {N_KEYS} keys is; what is left to learn from
    | 스코어가 퍼진 정도; 키 {N_KEYS}개의 소프트맥스가 쏠린 정도; 학습에 남는 기울기
heights | variance of a score; largest weight, mean; sum of |d weight / d score|
    | 스코어의 분산; 가장 큰 가중치의 평균; |d 가중치 / d 스코어|의 합
""",
    globals(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreStatistics:
    """What scores of one width come to; each a mean over queries."""

    variance: Estimate  # of a score
    largest: Estimate  # the largest weight of a row
    entropy: Estimate  # of a row's weights, in nats
    movement: (
        Estimate  # the slopes of a row's weights by its scores: the sum of |d weight / d score|
    )
    one_sided: float  # the share of rows in which one key has more than `WINNER`


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


def tell() -> Story:
    """The demo: the spread of scores, what the softmax makes of it, and what is left to learn from."""
    plain, divided = experiment()
    last, held = plain[-1], divided[-1]
    say = TEXTS.filled(
        widest=WIDTHS[-1],
        last=last,
        held=held,
        times=held.movement.mean / last.movement.mean,
        winners=100 * last.one_sided,
        even=1 / N_KEYS,
        most=math.log(N_KEYS),
    )
    measures = ("variance", "largest", "entropy", "movement")
    columns = (way for name in say.names("columns") for way in (name, say("divided", what=name)))
    rows = (
        (d_k, *(getattr(scores, name).mean for name in measures for scores in pair))
        for d_k, *pair in zip(WIDTHS, plain, divided, strict=True)
    )
    ways = dict(zip(say.names("ways"), (plain, divided), strict=True))
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
            drawn.items(), say.names("panels"), say.names("heights"), strict=True
        )
    )
    numbers = table(say, "table", rows, ("d_k", *columns), digits=2)
    return story(say, ("variance", "experiment", numbers, "spread", "peaks", "slopes"), picture)
