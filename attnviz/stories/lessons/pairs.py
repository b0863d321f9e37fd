"""Pairs of words: which look at each other much, which little, and in which head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from attnviz.capture.source import Model
from attnviz.models.language import splits
from attnviz.models.language.grammar import load_grammar
from attnviz.models.language.sentences import GoldSentence
from attnviz.models.language.splits import Split
from attnviz.models.registry import TOY
from attnviz.models.training.measure import Head
from attnviz.stories import common
from attnviz.stories.common import Estimate, Look, head_name, percent, square, words_of
from attnviz.stories.record import Bars, Cell, Panel, Series, Story, StoryView, Table
from attnviz.text.phrase import Phrase, Texts, join_phrases

SENTENCE = "She is eating a green apple"
WORDS = words_of(SENTENCE)
VERB, ADJECTIVE, NOUN = "eating", "green", "apple"
PAIRS = ((VERB, NOUN), (ADJECTIVE, NOUN), (VERB, ADJECTIVE))
"""The first two should look at each other much, the third little."""
NAMES = tuple(map("-".join, PAIRS))
CONTROL = NAMES[-1]
# each pair both ways: who looks, and at what
WAYS = tuple(way for pair in PAIRS for way in (pair, pair[::-1]))
FROM_END = {
    VERB: 5,
    ADJECTIVE: 3,
    NOUN: 2,
}  # how far from its end such a word stands in "... eating a green apple."
# how many unseen sentences heads are chosen on, and as many others that they are tried on
SENTENCES = 200


Rates: TypeAlias = Sequence[tuple[float, float]]
"""For each way, how often the largest weight goes it, and how often it goes as far from other words."""
TEXTS = Texts(
    """
trained | It learned to name hidden words and what “it” stands for, not what to look at.
    | toy는 가려진 단어와 “it”이 가리키는 명사를 대도록 배웠지, 무엇을 보라고 배우지는 않았습니다.
title | {shown_who}: {listed} | {shown_who}: {listed}
introduction | In “{SENTENCE}” one expects eating and apple to look at each other much (one eats an apple), green and
    apple too (the apple is green), eating and green little. Does {name} do so? {trained} If it looked everywhere alike,
    each weight would be 1/{n} = {even:.3f}.
    | “{SENTENCE}”에서 eating과 apple은 서로 많이 보고(사과를 먹으니까), green과 apple도 많이 보고(사과가 초록색이니까),
    eating과 green은 조금만 볼 것 같습니다. {name} 모델도 그럴까요? {trained} 모든 곳을 똑같이 본다면 가중치는 1/{n} =
    {even:.3f}씩입니다.
heads | Heads do different things, so each pair asks the head that links such words. For each way a head is chosen, on
    {n_validation} unseen sentences that end with verb, article, adjective and noun: the one whose largest weight goes
    that way most often, beyond how often it goes the same step from other words, since a head may only look at the next
    word, whatever it is. The same is done with a model of the same sizes and random weights.
    | 헤드마다 하는 일이 다르므로 쌍마다 그런 단어를 잇는 헤드를 봅니다. 방향마다 헤드를 하나씩 고릅니다. 동사, 관사,
    형용사, 명사로 끝나는, 학습에 쓰지 않은 문장 {n_validation}개에서 가장 큰 가중치가 그 방향으로 가는 일이 가장 많은
    헤드입니다. 다만 무슨 단어든 바로 다음 단어만 보는 헤드도 있으므로, 다른 단어에서 같은 거리만큼 가는 비율을 뺍니다.
    크기가 같은 무작위 가중치 모델로도 똑같이 합니다.
shown | Clearly more often than the same step elsewhere and than random weights (95 % intervals): {yes}. Not clearly:
    {no}.
    | 다른 단어에서 같은 거리만큼 가는 비율보다도, 무작위 가중치보다도 뚜렷이 많은 쌍(95 % 신뢰구간): {yes}. 뚜렷하지
    않은 쌍: {no}.
one_way | {name} reads from left to right: a word never looks at a later one, so three of the six ways are closed.
    | {name}: 왼쪽에서 오른쪽으로만 읽는 모델이라 뒤의 단어는 보지 못합니다. 여섯 방향 가운데 셋이 막혀 있습니다.
between | attention between the pairs: mean over all heads, and the most in any head
    | 두 단어 사이의 어텐션: 모든 헤드의 평균, 그리고 가장 큰 헤드의 값
between_columns | pair; first at second; second at first; most; in layer.head
    | 쌍; 첫째가 둘째를; 둘째가 첫째를; 최대; 층.헤드
means | Over all heads and both ways: {listed}; if it looked everywhere alike, each would be {even:.3f}. As expected:
    {yes}. Not as expected: {no}.
    | 모든 헤드와 두 방향의 평균: {listed}. 모든 곳을 똑같이 본다면 {even:.3f}씩입니다. 예상대로: {yes}. 예상과 달리:
    {no}.
tried | how often the largest weight goes there, on {n_others} other unseen sentences; random weights: in a head of
    their own, found likewise
    | 가장 큰 가중치가 그리로 가는 비율, 학습에 쓰지 않은 다른 문장 {n_others}개에서; 무작위 가중치: 같은 방법으로 고른
    그 모델의 헤드
tried_columns | way; layer.head; goes there; same step elsewhere; random weights; weight here
    | 방향; 층.헤드; 그리로 감; 다른 단어에서 같은 거리; 무작위 가중치; 이 문장의 가중치
above | not as expected: {CONTROL} is not below {names} | 예상과 달리 {CONTROL} 쌍이 {names}보다 낮지 않음
yardstick | By their better way and its lead {what}: {listed}; {end}.
    | 쌍마다 더 나은 방향을 골라 {what}를 보면: {listed}; {end}.
disagree | The yardsticks do not agree on which pair leads. | 어느 쌍이 앞서는지는 기준에 따라 다릅니다.
one_leads | By both {leads} leads; the order of the other two depends on the yardstick.
    | 두 기준 모두 {leads} 쌍이 앞서고, 나머지 둘의 순서는 기준에 따라 다릅니다.
verdict | {agreed} So it is in this model; `attnviz demo pairs -m MODEL` tells it of another. {rows}
    | {agreed} 이 모델에서는 그렇습니다. 다른 모델은 `attnviz demo pairs -m MODEL`로 봅니다. {rows}
who | how often the head of each pair links such words | 쌍마다 그 쌍의 헤드가 그런 단어를 잇는 비율
who_else | {name}, how often a head links them | {name}, 헤드가 잇는 비율
none | none | 없음
nothing | nothing | 없음
just | {pair} is just that | {pair} 꼭 그만큼
more | {pair} is above that | {pair} 그보다 큼
less | {pair} is below that | {pair} 그보다 작음
lowest | {CONTROL} is the lowest | {CONTROL} 가장 작음
not_lowest | {CONTROL} is not below {names} | {CONTROL}, {names}보다 작지 않음
most_in | {layer}.{head}: {way} | {layer}.{head}: {way}
yardsticks | over the same step elsewhere; over the best head of random weights
    | 다른 단어에서 같은 거리만큼 가는 비율과의 차이; 무작위 가중치의 가장 나은 헤드와의 차이
last | {CONTROL} is the last, as expected | 예상대로 {CONTROL} 쌍이 마지막
against | {pair} ({there} against {elsewhere}) | {pair} ({there} 대 {elsewhere})
agree | Both yardsticks give this order. | 두 기준의 순서가 같습니다.
elsewhere | {name}, same step elsewhere | {name}, 다른 단어에서 같은 거리
random | random weights | 무작위 가중치
mean | mean over all heads | 모든 헤드의 평균
bars | how often the largest weight goes there | 가장 큰 가중치가 그리로 가는 비율
share | share of unseen sentences | 학습에 쓰지 않은 문장에서의 비율
view | In head {head}, “{one}” gives {weight:.2f} of its weight to “{other}”.
    | 헤드 {head}에서 “{one}”이 “{other}”에 주는 가중치는 {weight:.2f}입니다.
view_all | All heads at once. | 모든 헤드를 한눈에.
""",
    globals(),
)


def sentences(split: Split, n: int = SENTENCES) -> list[GoldSentence]:
    """Unseen sentences that end as "... eating a green apple." does: verb, article, adjective, noun, full stop."""
    adjectives = {adjective["word"] for adjective in load_grammar("english").words["qualities"]}
    return list(
        islice((s for s in splits.sentences(split, kind="action") if s.words[-3] in adjectives), n)
    )


def looks(looked: Tensor, found: Sequence[GoldSentence]) -> tuple[Tensor, Tensor]:
    """How often every head goes each way [way, layer, head] in sentences such as those of `sentences`.

    From the word that looks at the other; and from the other words of the same sentences, equally many words on.
    """
    rows, places = torch.arange(len(found)), torch.arange(looked.shape[-1])
    n = torch.tensor([len(s.words) for s in found])
    rates, elsewhere = [], []
    for looker, other in WAYS:
        here, there = n - FROM_END[looker], places + FROM_END[looker] - FROM_END[other]
        hits = looked == there  # (B, L, H, T)
        others = (
            (places < n[:, None]) & (there >= 0) & (there < n[:, None]) & (places != here[:, None])
        )  # (B, T)
        rates.append(hits[rows, :, :, here].float().mean(dim=0))
        elsewhere.append((hits & others[:, None, None]).sum(dim=(0, 3)) / others.sum())
    return torch.stack(rates), torch.stack(elsewhere)


def choose(look: Look, n: int) -> tuple[list[Head], Rates]:
    """For each way the head that goes it most often beyond the same step elsewhere; and how often in test sentences."""
    (rate, elsewhere), rates = (
        looks(look(s), s) for s in (sentences("validation", n), sentences("test", n))
    )
    heads = [divmod(int(lead.argmax()), lead.shape[1]) for lead in rate - elsewhere]
    return heads, [
        (float(r[head]), float(e[head])) for r, e, head in zip(*rates, heads, strict=True)
    ]


@torch.inference_mode()
def tell(model: Model = None) -> Story:
    """The demo: three pairs of one sentence, over all heads and in the heads that other sentences choose."""
    source = common.open_own(model or TOY)
    (record,), name, is_toy = (
        common.read_words(source, [SENTENCE]),
        common.name_of(source),
        source.name == TOY,
    )
    *ways, n = common.looks_of(source, SENTENCES)
    (heads, rates), (_, of_random) = (choose(look, n) for look in ways)
    weights = record.weights
    shares = (percent(rates[way][0]) for way in better_ways(rates))
    say = TEXTS.filled(
        name=name,
        n=len(WORDS),
        even=1 / len(WORDS),
        n_others=n,
        n_validation=n,
        listed=", ".join(f"{pair} {share}" for pair, share in zip(NAMES, shares, strict=True)),
        trained=TEXTS("trained") if is_toy else Phrase("", ""),
    )
    rows: Iterator[tuple[Cell, ...]] = (
        (
            _way(way),
            "{}.{}".format(*head),
            *map(percent, (*mine, random)),
            between(weights[head], way)[0],
        )
        for way, head, mine, (random, _) in zip(WAYS, heads, rates, of_random, strict=True)
    )
    parts: list[str | Table] = [
        "introduction",
        "heads",
        common.table(say, "tried", rows),
        _clear_pairs(rates, of_random, n),
        *(["one_way"] if record.kind == "decoder" else []),
        *_verdict(rates, [there for there, _ in of_random]),
        _pairs(weights),
        _means(weights.mean(axis=(0, 1))),
        *common.notes_of([record]),
    ]
    picture = _picture(name, weights, heads, rates, of_random)
    return common.story(
        say.filled(shown_who=say("who" if is_toy else "who_else")),
        parts,
        picture,
        receipt=common.receipt_of(record),
        views=_views(weights, heads, rates),
        records=() if is_toy else (record,),
    )


def _views(weights: np.ndarray, heads: Sequence[Head], rates: Rates) -> Iterator[StoryView]:
    """Each pair in the head that links it best; then all heads."""
    for way in better_ways(rates):
        (one, other), head = WAYS[way], heads[way]
        weight = between(weights[head], WAYS[way])[0]
        text = TEXTS("view", head="{}.{}".format(*head), one=one, other=other, weight=weight)
        yield StoryView(
            text=text, sentence=SENTENCE, head=head, query=WORDS.index(one), key=WORDS.index(other)
        )
    yield StoryView(text=TEXTS("view_all"), sentence=SENTENCE)


def _clear_pairs(rates: Rates, of_random: Rates, n: int) -> Phrase:
    """Which pairs are linked beyond what both yardsticks explain, with room for chance."""
    clear, rest = list[str](), list[str]()
    for pair, way in zip(NAMES, better_ways(rates), strict=True):
        (there, elsewhere), (chance, _) = rates[way], of_random[way]
        beyond = Estimate.of_share(there, n).low > max(elsewhere, Estimate.of_share(chance, n).high)
        (clear if beyond else rest).append(pair)
    yes, no = (", ".join(names) or TEXTS("none") for names in (clear, rest))
    return TEXTS("shown", yes=yes, no=no)


def better_ways(rates: Rates) -> list[int]:
    """For each pair the number of the way that leads more over the same step elsewhere."""
    leads = [there - elsewhere for there, elsewhere in rates]
    return [max((2 * pair, 2 * pair + 1), key=leads.__getitem__) for pair in range(len(PAIRS))]


def between(weights: np.ndarray, pair: tuple[str, str]) -> tuple[float, float]:
    """The weight of the first word's row on the second, and of the second's on the first, of one pattern."""
    first, second = map(WORDS.index, pair)
    return float(weights[first, second]), float(weights[second, first])


def _pairs(weights: np.ndarray) -> Table:
    rows = []
    for name, pair in zip(NAMES, PAIRS, strict=True):
        first, second = map(WORDS.index, pair)
        both = np.stack([weights[:, :, first, second], weights[:, :, second, first]])
        layer, head = (int(i) for i in np.unravel_index(both.max(axis=0).argmax(), both.shape[1:]))
        way = _way(pair[:: -1 if both[0, layer, head] < both[1, layer, head] else 1])
        where = TEXTS("most_in", layer=layer, head=head, way=way)
        rows.append((name, *between(weights.mean(axis=(0, 1)), pair), float(both.max()), where))
    return common.table(TEXTS, "between", rows, shade=(0.0, 1.0))


def _means(mean: np.ndarray) -> Phrase:
    named = {name: sum(between(mean, pair)) / 2 for name, pair in zip(NAMES, PAIRS, strict=True)}
    order = sorted(named, key=lambda name: -named[name])
    even, expected, unexpected = 1 / len(WORDS), list[Phrase](), list[Phrase]()
    for name, value in named.items():
        stands = TEXTS("just" if value == even else "more" if value > even else "less", pair=name)
        (expected if (value > even) == (name != CONTROL) else unexpected).append(stands)
    above = [name for name in order if name != CONTROL and named[name] <= named[CONTROL]]
    if above:
        unexpected.append(TEXTS("not_lowest", names=_and(above)))
    else:
        expected.append(TEXTS("lowest"))
    yes, no = (join_phrases(found or [TEXTS("nothing")], "; ") for found in (expected, unexpected))
    listed = ", ".join(f"{name} {named[name]:.3f}" for name in order)
    return TEXTS("means", listed=listed, even=even, yes=yes, no=no)


def _way(way: tuple[str, ...]) -> Phrase:
    return Phrase(" at ".join(way), " → ".join(way))


def _and(names: Sequence[str]) -> Phrase:
    return Phrase(" and ".join(names), ", ".join(names))


def _verdict(rates: Rates, random: Sequence[float]) -> tuple[Phrase, ...]:
    """Which pair leads, by each of two yardsticks: the same step elsewhere, and a model of random weights."""
    by_chance = [(there, chance) for (there, _), chance in zip(rates, random, strict=True)]
    orders, found = [], []
    for what, ways in zip(TEXTS.names("yardsticks"), (rates, by_chance), strict=True):
        better = (
            max(both, key=lambda shares: shares[0] - shares[1])
            for both in zip(ways[::2], ways[1::2], strict=True)
        )
        leads = dict(zip(NAMES, better, strict=True))
        order = sorted(leads, key=lambda name: leads[name][1] - leads[name][0])
        shares = ((name, *map(percent, leads[name])) for name in order)
        listed = join_phrases(
            (TEXTS("against", pair=p, there=there, elsewhere=e) for p, there, e in shares), ", "
        )
        above = order[order.index(CONTROL) + 1 :]
        end = TEXTS("above", names=_and(above)) if above else TEXTS("last")
        found.append(TEXTS("yardstick", what=what, listed=listed, end=end))
        orders.append(order)
    one, other = orders
    agreed = "disagree" if one[0] != other[0] else "one_leads" if one != other else "agree"
    return join_phrases(found), TEXTS(
        "verdict", agreed=TEXTS(agreed, leads=one[0]), rows=common.ROWS
    )


def _picture(
    name: str, weights: np.ndarray, heads: Sequence[Head], rates: Rates, of_random: Rates
) -> Iterator[Panel]:
    """The heads that link the first two pairs, the mean over all, and how often each way is gone."""
    linked: dict[Head, list[Phrase]] = {}
    for way in better_ways(rates)[:-1]:
        linked.setdefault(heads[way], []).append(_way(WAYS[way]))
    top = float(max(weights[head].max() for head in linked))
    for head, ways in linked.items():
        yield square(
            join_phrases([head_name(head), join_phrases(ways, ", ")], ": "),
            weights[head],
            WORDS,
            top,
        )
    yield square(TEXTS("mean"), weights.mean(axis=(0, 1)), WORDS, top)
    (there, elsewhere), (random, _) = zip(*rates, strict=True), zip(*of_random, strict=True)
    series = Series.each(
        {name: there, TEXTS("elsewhere", name=name): elsewhere, TEXTS("random"): random}
    )
    yield Bars(TEXTS("bars"), tuple(map(_way, WAYS)), series, TEXTS("share"))
