"""Rotary positions beside sinusoidal and learned ones: which scores depend on the distance alone.

Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", section 3.2:
https://arxiv.org/abs/2104.09864
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.models.embedding import sinusoidal_positions
from attnviz.stories.common import signed, small, story, table
from attnviz.stories.record import Cell, Story
from attnviz.text.phrase import Phrase, Texts

D, N = 16, 24  # numbers of a vector, and positions
SEED = 0
DISTANCE = 3
STARTS = (0, 5, 10, 20)
WAYS = {
    "rotary": Phrase("rotary", "회전"),
    "sinusoidal": Phrase("sinusoidal, added", "사인, 더함"),
    "learned": Phrase("learned, added", "학습, 더함"),
}
TEXTS = Texts(
    """
title | at one distance the score differs from place to place by {alone} if rotary, by {added} if sinusoidal
    | 같은 거리에서 스코어가 자리마다 다른 정도: 회전 위치 {alone}, 사인 위치 {added}
length | Turning changes no length: over {N} positions the vector is {length:.3f} long, to within {off}. Query and key
    are turned, values are not: positions decide where a word looks, and are not mixed into what it brings.
    | 돌려도 길이는 그대로입니다. 위치 {N}개에서 벡터의 길이는 {length:.3f}이고, 차이는 많아야 {off}입니다. 쿼리와 키는
    돌리고 밸류는 돌리지 않습니다. 위치는 어디를 볼지만 정하고, 가져오는 것에는 섞이지 않습니다.
receipt | computed by the formula of Su et al. 2021, section 3.2, in float64; two random words and a random table (seed
    {SEED}); largest difference along a diagonal of rotary scores {alone}
    | Su 외 2021, 3.2절의 식으로 float64로 계산함; 무작위 단어 둘과 무작위 표(시드 {SEED}); 대각선을 따라 최대 차이
    {alone}
introduction | Sinusoidal and learned positions are vectors that are added to the word, once, before the first layer.
    Rotary positions (Llama, Mistral, Qwen and most language models today) add nothing: in every layer, query and key
    are taken as {n_pairs} pairs of numbers, and each pair is turned like the hand of a clock, by the position times its
    own speed, 1 / 10000^(2i/{D}).
    | 사인 위치와 학습된 위치는 첫 층에 들어가기 전에 단어에 한 번 더하는 벡터입니다. 회전 위치(RoPE; Llama, Mistral,
    Qwen 등 요즘 언어 모델 대부분)는 아무것도 더하지 않습니다. 층마다 쿼리와 키를 수의 짝 {n_pairs}개로 보고, 짝마다
    시곗바늘처럼 돌립니다. 각도는 위치에 짝마다의 속도 1 / 10000^(2i/{D})를 곱한 값입니다.
distances | the score of the same two words, {DISTANCE} apart, at some places; last column: all of them
    | {DISTANCE}칸 떨어진 같은 두 단어의 스코어, 자리를 바꾸어 가며; 마지막 열은 모든 자리와 거리
why | A pair turned by a and one turned by b meet at the angle b - a: where they stand is gone, how far apart they are
    stays. So each diagonal of the first pattern of scores has one colour. With waves added, the product of the two
    positions depends on the distance alone too (see `attnviz demo positions`), but word times position stands beside
    it, and that depends on the place: the scores differ by up to {added}. A learned table (here as before training,
    random) promises nothing: {table}. And it ends with its last row, while angles go on.
    | a만큼 돌린 짝과 b만큼 돌린 짝이 이루는 각은 b - a입니다. 어디에 있는지는 사라지고 얼마나 떨어져 있는지만 남습니다.
    그래서 스코어의 첫 패턴은 대각선마다 색이 하나입니다. 파동을 더할 때도 두 위치끼리의 곱은 거리에만 달려
    있지만(`attnviz demo positions`), 단어와 위치의 곱이 함께 더해지고 이것은 자리에 따라 다릅니다. 그래서 스코어의
    차이가 {added}까지 납니다. 학습된 표(여기서는 학습 전처럼 무작위)는 아무것도 보장하지 않습니다: {table}. 또 표는
    마지막 행에서 끝나지만 각도는 계속됩니다.
turned | one query at some positions: its first two pairs | 몇몇 위치에서 쿼리 하나: 처음 두 짝
turns | position; angle 0; pair 0; angle 1; pair 1 | 위치; 각도 0; 짝 0; 각도 1; 짝 1
places | positions; differs by at most | 위치; 최대 차이
angles | rotation: cosine of each pair's angle | 회전: 짝마다 각도의 코사인
pairs | position; pair of numbers i | 위치; 수의 짝 i
scores | scores: {way} | 스코어: {way}
axes | position of the query; position of the key | 쿼리의 위치; 키의 위치
""",
    globals(),
)


def angles(n: int = N, d: int = D) -> Float[Tensor, "position pair"]:
    """How far each pair of numbers is turned at each position, in radians: position / 10000^(2i/d)."""
    speeds = 10_000.0 ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)
    return torch.arange(n, dtype=torch.float64)[:, None] * speeds


def rotate(x: Float[Tensor, "position d"]) -> Float[Tensor, "position d"]:
    """Each pair of numbers (2i, 2i + 1) of each row turned by its angle: (a cos - b sin, a sin + b cos)."""
    turn = angles(*x.shape)
    a, b = x[:, 0::2], x[:, 1::2]
    return torch.stack(
        [a * turn.cos() - b * turn.sin(), a * turn.sin() + b * turn.cos()], dim=-1
    ).flatten(1)


def two_words() -> tuple[Tensor, Tensor, Tensor]:
    """The vectors of two words [d], and a table of positions such as training begins with [position, d]."""
    random = torch.Generator().manual_seed(SEED)
    one, other = torch.randn(2, D, generator=random, dtype=torch.float64)
    return one, other, torch.randn(N, D, generator=random, dtype=torch.float64)


def scores() -> dict[str, Float[Tensor, "position position"]]:
    """The score q · k / sqrt(d) of the first word at each position (row) and the second at each (column), each way.

    Query and key are the words' vectors themselves: the projections are left out.
    """
    one, other, table = two_words()
    waves = sinusoidal_positions(N, D).double()
    turned = rotate(one.expand(N, D)), rotate(other.expand(N, D))
    ways = zip(
        WAYS, (turned, (one + waves, other + waves), (one + table, other + table)), strict=True
    )
    return {way: query @ key.T / math.sqrt(D) for way, (query, key) in ways}


def spread(found: Tensor) -> float:
    """How much a score differs from place to place at the same distance, at most over all distances."""
    diagonals = (found.diagonal(distance) for distance in range(1 - N, N))
    return float(max(diagonal.max() - diagonal.min() for diagonal in diagonals))


def tell() -> Story:
    """The demo: what turning does to one vector, and the same two words at equal distances all over the sentence."""
    found = scores()
    apart = {way: spread(values) for way, values in found.items()}
    one, turn, turned = two_words()[0], angles(), rotate(two_words()[0].expand(N, D))
    say = TEXTS.filled(
        alone=small(apart["rotary"]),
        added=f"{apart['sinusoidal']:.3f}",
        table=f"{apart['learned']:.3f}",
        length=float(one.norm()),
        off=small(float((turned.norm(dim=-1) - one.norm()).abs().max())),
        n_pairs=D // 2,
    )
    position, angle_0, pair_0, angle_1, pair_1 = say.names("turns")
    turns = (
        (
            place,
            *(
                x
                for i in (0, 1)
                for x in (float(turn[place, i]), *turned[place, 2 * i : 2 * i + 2].tolist())
            ),
        )
        for place in (0, 1, 2, DISTANCE, 10)
    )
    at_places = table(say, "turned", turns, (position, angle_0, pair_0, "", angle_1, pair_1, ""))
    places, most = [(start, start + DISTANCE) for start in STARTS], say.names("places")
    rows: list[tuple[Cell, ...]] = [
        (WAYS[way], *(float(values[at]) for at in places), small(apart[way]))
        for way, values in found.items()
    ]
    distances = table(say, "distances", rows, (most[0], *(f"{m}, {n}" for m, n in places), most[1]))
    axes = say.names("axes")
    picture = (
        signed(say("angles"), angles(4 * N).cos().numpy(), say.names("pairs"), 1.0),
        *(
            signed(say("scores", way=WAYS[way]), values.numpy(), axes)
            for way, values in found.items()
        ),
    )
    return story(say, ("introduction", at_places, "length", distances, "why"), picture)
