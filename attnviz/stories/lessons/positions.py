"""Positions as waves: the table that is added to the words' vectors, and what can be read from it.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5: https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

import math

from attnviz.models.embedding import sinusoidal_positions
from attnviz.stories import common
from attnviz.stories.common import signed, story
from attnviz.stories.record import Lines, Matrix, Panel, Series, Story, Table
from attnviz.text.phrase import Texts

D_MODEL = 512  # the paper's width
N_POSITIONS = 64  # how many positions the picture shows
SMALL = 4  # a width at which every number can be followed by hand
STARTS = (0, 10, 30)
STEPS = (0, 1, 2, 5, 10, 20)
TEXTS = Texts(
    """
title | positions as waves: cosine {nearest:.3f} between neighbours, {farthest:.3f} at a distance of {far}
    | 파동으로 나타낸 위치: 코사인이 이웃끼리는 {nearest:.3f}, {far}칸 떨어지면 {farthest:.3f}
why | Attention by itself sees a set of words, not a row of them: it compares vectors, and a vector does not say where
    its word stands. So a vector for the position is added to the vector of the word, once, before the first layer. The
    Transformer takes waves: PE(pos, 2i) = sin(pos / 10000^(2i/d)) and PE(pos, 2i+1) = cos(pos / 10000^(2i/d)). Each
    pair of numbers is the hand of a clock; the first clock is the fastest, and each next one is slower.
    | 어텐션만으로는 단어의 순서를 알 수 없습니다. 어텐션은 벡터끼리 비교할 뿐이고, 벡터에는 단어가 몇 번째인지 적혀
    있지 않기 때문입니다. 그래서 첫 층에 들어가기 전에 위치를 나타내는 벡터를 단어 벡터에 한 번 더합니다. 트랜스포머는
    파동을 씁니다: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d)). 두 수의 짝 하나가
    시곗바늘 하나와 같아서, 첫 번째 시계가 가장 빠르고 뒤로 갈수록 느려집니다.
distance | How alike two positions are depends on their distance alone. One clock adds sin(a) sin(b) + cos(a) cos(b) to
    the dot product, which is cos(a - b): where the clocks stand is gone, and how far they have moved stays. So in this
    table each column has the same number in every row:
    | 두 위치가 얼마나 비슷한지는 둘 사이의 거리에만 달려 있습니다. 시계 하나가 내적에 보태는 값은 sin(a) sin(b) +
    cos(a) cos(b) = cos(a - b)입니다. 바늘이 어디를 가리키는지는 사라지고, 얼마나 움직였는지만 남습니다. 그래서 다음
    표에서는 각 열의 수가 모든 행에서 같습니다.
length | Every position has the same length, sqrt(d/2) = {length:.0f}, so no place in the sentence is louder than
    another. The next position is still much like this one (cosine {nearest:.3f}), the one {far} further on less so
    ({farthest:.3f}). And PE(pos + k) is PE(pos) with every clock turned by k steps, which one matrix does for all pos:
    so a layer can learn to look 1 back or 3 on, wherever it stands.
    | 위치 벡터의 길이는 모두 sqrt(d/2) = {length:.0f}입니다. 그래서 문장의 어느 자리도 다른 자리보다 두드러지지
    않습니다. 바로 다음 위치는 아직 많이 비슷하고(코사인 {nearest:.3f}), {far}칸 뒤의 위치는 덜
    비슷합니다({farthest:.3f}). 또 PE(pos + k)는 PE(pos)의 모든 시계를 k칸씩 돌린 것이고, 이 일은 어느 pos에서나 같은
    행렬 하나가 합니다. 그래서 층은 어디에 있든 “하나 앞”이나 “셋 뒤”를 보는 법을 배울 수 있습니다.
receipt | computed by the formula of Vaswani et al. 2017, section 3.5; the dot products differ from sums of cosines by
    {off:.1e} at most
    | Vaswani 외 2017, 3.5절의 식으로 계산함; 내적과 코사인 합의 차이는 최대 {off:.1e}
clocks | At d = {SMALL} there are {n_small} clocks. The first goes round once in {fast:.2f} positions, the second in
    {slow:,.0f}: the fast one tells neighbours apart, the slow one tells the beginning from the end. At the paper's d =
    {D_MODEL} there are {n_clocks}, from {first:.2f} to {last:,.0f} positions a round; they are the stripes of the
    picture, narrow at the left and wide at the right.
    | d = {SMALL}이면 시계는 {n_small}개입니다. 한 바퀴 도는 데 첫 번째는 {fast:.2f}칸, 두 번째는 {slow:,.0f}칸이
    걸립니다. 빠른 시계로는 이웃한 단어를, 느린 시계로는 문장의 처음과 끝을 구별합니다. 논문의 d = {D_MODEL}에서는
    시계가 {n_clocks}개이고, 한 바퀴가 {first:.2f}칸부터 {last:,.0f}칸까지입니다. 그림의 줄무늬가 바로 이것으로, 왼쪽은
    좁고 오른쪽은 넓습니다.
position | position | 위치
place | position {start} | 위치 {start}
cosine | cosine | 코사인
by_hand | the first positions by the formula, d = {SMALL} | 식으로 구한 처음 몇 위치, d = {SMALL}
sum | sum of cosines | 코사인의 합
waves | sin: the numbers 2i of the vectors (d = {D_MODEL}); cos: the numbers 2i + 1 (d = {D_MODEL})
    | sin: 벡터의 2i번째 수 (d = {D_MODEL}); cos: 벡터의 2i + 1번째 수 (d = {D_MODEL})
alike | how alike two positions are (cosine) | 두 위치가 얼마나 비슷한가 (코사인)
rows | three rows of it: one shape, moved | 그 가운데 세 행: 같은 모양이 옮겨질 뿐
""",
    globals(),
)


def wavelength(i: int, d_model: int) -> float:
    """After how many positions the sine and the cosine of pair i repeat."""
    return float(math.tau * 10_000 ** (2 * i / d_model))


def by_cosines(step: int) -> float:
    """The dot product of two positions so far apart, from the distance alone: the sum of cos(k / 10000^(2i/d))."""
    return sum(math.cos(step / 10_000 ** (2 * i / D_MODEL)) for i in range(D_MODEL // 2))


def tell() -> Story:
    """The demo: the numbers by the formula, the picture at the paper's size, and why distances can be read from it."""
    table = sinusoidal_positions(N_POSITIONS, D_MODEL).double().numpy()
    dots, far, n_clocks = table @ table.T, N_POSITIONS - 1, D_MODEL // 2
    cosines = dots / dots[0, 0]
    say = TEXTS.filled(
        nearest=cosines[0, 1],
        farthest=cosines[0, far],
        far=far,
        length=float(dots[0, 0] ** 0.5),
        off=max(
            abs(dots[start, start + step] - by_cosines(step)) for start in STARTS for step in STEPS
        ),
        n_small=SMALL // 2,
        fast=wavelength(0, SMALL),
        slow=wavelength(1, SMALL),
        n_clocks=n_clocks,
        first=wavelength(0, D_MODEL),
        last=wavelength(n_clocks - 1, D_MODEL),
    )
    slower = [f" / {10_000 ** (2 * i / SMALL):.0f}" if i else "" for i in range(SMALL // 2)]
    columns = "pos", *(f"{wave}(pos{by})" for by in slower for wave in ("sin", "cos"))
    rows = ((place, *row) for place, row in enumerate(sinusoidal_positions(6, SMALL).tolist()))
    by_hand = common.table(say, "by_hand", rows, columns, digits=4)
    products = {
        f"pos = {start}": [float(dots[start, start + step]) for step in STEPS] for start in STARTS
    }
    products[say("sum")] = [by_cosines(step) for step in STEPS]
    columns = "", *(f"k = {step}" for step in STEPS)
    title = f"PE(pos) . PE(pos + k), d = {D_MODEL}"
    by_distance = Table(title, columns, tuple((name, *row) for name, row in products.items()))
    position = say("position")
    three = Series.each({say("place", start=start): cosines[start] for start in STARTS})
    picture: list[Panel] = [
        *(
            signed(title, table[:, number::2], (position, "i"), 1.0)
            for number, title in enumerate(say.names("waves"))
        ),
        Matrix(say("alike"), cosines, row_title=position, column_title=position),
        Lines(
            say("rows"),
            tuple(map(float, range(N_POSITIONS))),
            position,
            three,
            say("cosine"),
            (0.0, 1.0),
        ),
    ]
    return story(say, ("why", by_hand, "clocks", "distance", by_distance, "length"), picture)
