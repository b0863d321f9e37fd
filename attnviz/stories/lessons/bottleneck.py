"""The bottleneck: recurrent translators with attention and without, on sentences that grow longer.

Source: Bahdanau et al. 2015, figure 2: https://arxiv.org/abs/1409.0473
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.models import registry
from attnviz.models.language import splits
from attnviz.models.language.sentences import Pair
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.files import ModelCard
from attnviz.models.training.measure import hits
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.common import Estimate, open_model, percent, story, table
from attnviz.stories.record import Cell, Lines, Series, Story, Table
from attnviz.text.phrase import Phrase, Texts

SEEDS = len(registry.SEEDS)
WITH, WITHOUT = "with", "without"
CLAUSES = (1, 2, 3)  # in a test sentence: as many as in training
LENGTHS = (range(3, 6), range(6, 9), range(9, 12), range(12, 15), range(15, 18), range(18, 22))
"""Groups of lengths, in English words."""
N_SENTENCES = 40  # in each group
STUDENT = 4.302653
"""Standard errors on each side of the mean that hold 95 % of Student's t with 2 degrees of freedom, for 3 seeds."""
TEXTS = Texts(
    """
title | of sentences of {long} words {one} are translated faultlessly with attention, {other} without
    | {long}단어 문장을 오류 없이 번역한 비율: 어텐션이 있으면 {one}, 없으면 {other}
receipt | counted live: {SEEDS} models of each kind on {n_pairs} unseen test sentences, running free; no attention is
    shown, so there is none to verify
    | 지금 셈: 종류마다 모델 {SEEDS}개, 학습에 쓰지 않은 시험 문장 {n_pairs}개, 자유 생성; 어텐션을 보이지 않으므로
    검증할 것도 없음
models | A recurrent encoder reads an English sentence, a decoder generates it in Korean. Without attention the decoder
    gets the encoder's last state alone: {wide_other} numbers, whether the sentence has {short} words or {long}. With
    attention it can also look back, at each step, at the state after every word: {wide} numbers each. {SEEDS} models of
    each kind were {alike}, from {SEEDS} seeds; those with attention have {sizes[0]:,} weights, those without
    {sizes[1]:,}. The test sentences have {CLAUSES[0]} to {most_clauses} clauses, {seen} those of training.
    | 순환 신경망 인코더가 영어 문장을 읽고, 디코더가 그것을 한국어로 생성합니다. 어텐션이 없으면 디코더는 인코더의
    마지막 상태만 받습니다. 문장이 {short}단어든 {long}단어든 수 {wide_other}개뿐입니다. 어텐션이 있으면 단계마다 모든
    단어 뒤의 상태를 다시 볼 수 있고, 상태마다 수가 {wide}개씩입니다. 종류마다 시드 {SEEDS}개로 모델 {SEEDS}개를
    {alike}. 파라미터는 어텐션이 있는 모델이 {sizes[0]:,}개, 없는 모델이 {sizes[1]:,}개입니다. 시험 문장의
    절은 {CLAUSES[0]}~{most_clauses}개로, {seen}.
lengths_table | unseen test sentences by length, {N_SENTENCES} each: means over {SEEDS} models of each kind
    | 학습에 쓰지 않은 시험 문장, 길이마다 {N_SENTENCES}개: 종류마다 모델 {SEEDS}개의 평균
lengths_table_columns | English words; with: no fault; 95 %; without: no fault; 95 %; with: words right; without: words
    right
    | 영어 단어; 있음: 오류 없음; 95 %; 없음: 오류 없음; 95 %; 있음: 맞은 단어; 없음: 맞은 단어
why | A state of a fixed size holds only so much of a sentence; attention lets the decoder fetch each part when it is
    needed.
    | 크기가 정해진 상태 하나에는 문장이 다 담기지 않습니다. 어텐션이 있으면 디코더가 필요한 부분을 그때그때 가져올 수
    있습니다.
finding | Of the sentences of {short} words the models with attention translate {one_short} without a fault, those
    without {other_short}; of those of {long} words, {one_long} and {other_long}. From the shortest to the longest that
    is a change of {change:+.1f} points with attention and of {change_other:+.1f} points without. {why}
    | 오류 없이 번역한 문장은 {short}단어에서 어텐션이 있는 모델이 {one_short}, 없는 모델이 {other_short}이고,
    {long}단어에서는 {one_long}, {other_long}입니다. 가장 짧은 문장에서 가장 긴 문장으로 가면 어텐션이 있을 때
    {change:+.1f}포인트, 없을 때 {change_other:+.1f}포인트 변합니다. {why}
interval | With attention minus without, the share of faultless sentences differs by {shorter} on the shorter half of
    the lengths and by {longer} on the longer half: {verdict}. The 95 % intervals count both what other seeds would
    change (Student's t over {SEEDS} seeds) and what other sentences would (Wilson's interval); that of a difference is
    put together from the two (Newcombe's).
    | 오류 없는 문장의 비율에서 어텐션이 있는 쪽에서 없는 쪽을 빼면 짧은 절반에서 {shorter}, 긴 절반에서 {longer}입니다.
    긴 문장에서의 차이는 {verdict}. 95 % 신뢰구간에는 시드를 바꿀 때의 변화(시드 {SEEDS}개의 스튜던트 t)와 문장을 바꿀
    때의 변화(윌슨 구간)가 모두 들어 있고, 차이의 구간은 두 구간을 합친 것(뉴컴)입니다.
example | the first of the longest sentences, by the first model of each kind
    | 가장 긴 문장들 가운데 첫째, 종류마다 첫 모델의 번역
kinds | with attention; without attention | 어텐션 있음; 어텐션 없음
span | {first} to {last} | {first}~{last}
interval_of | {low:.2f} to {high:.2f} | {low:.2f}~{high:.2f}
alike | trained alike, on the same sentences | 같은 문장으로 똑같이 학습했습니다
not_alike | not trained alike | 서로 다르게 학습했습니다
as_seen | as | 학습한 문장과 같습니다
unseen | not as | 학습한 문장과는 다릅니다
by_chance | perhaps by chance | 우연일 수 있습니다
certain | more than chance | 우연으로 볼 수 없습니다
opposite | the other way round | 반대입니다
english | English | 영어
right | right | 올바른 번역
sentence | sentence | 문장
panels | sentences without a fault; words right at their place | 오류 없는 문장; 제자리에 맞은 단어
bands | {title} (bands: 95 %) | {title} (띠: 95 %)
lengths | English words in the sentence (middle of each group) | 문장의 영어 단어 수 (묶음마다 가운데)
""",
    globals(),
)


class LengthGroup(NamedTuple):
    """How the models of one kind do on sentences of like length."""

    exact: Tensor  # whether each sentence is right as a whole, its end included [seed, sentence]
    words: Tensor  # the share of each one's words that are right at their place [seed, sentence]


Kinds: TypeAlias = Mapping[str, Sequence[tuple[ModelCard, RecurrentTranslator]]]
"""The models of each kind with their cards, one for each seed."""
Results: TypeAlias = Mapping[str, Sequence[LengthGroup]]


def open_kinds() -> Kinds:
    """The models with attention, and those without."""
    seeds = range(SEEDS)
    return {
        w: [open_model(f"bottleneck-{w}-{seed}", RecurrentTranslator) for seed in seeds]
        for w in (WITH, WITHOUT)
    }


def unseen_pairs(n: int = N_SENTENCES) -> list[list[Pair]]:
    """So many test pairs of each group of lengths."""
    found: list[list[Pair]] = [[] for _ in LENGTHS]
    streams = cycle([splits.pairs("test", clauses=clauses) for clauses in CLAUSES])
    while min(map(len, found)) < n:
        pair = next(next(streams))
        for group, lengths in zip(found, LENGTHS, strict=True):
            if len(pair.english) in lengths and len(group) < n:
                group.append(pair)
    return found


def measure_group(models: Sequence[RecurrentTranslator], pairs: Sequence[Pair]) -> LengthGroup:
    """How each seed's model does on each sentence."""
    right, (here, *_), (inner, *_) = map(
        torch.stack, zip(*(hits(model, pairs) for model in models), strict=True)
    )
    return LengthGroup(
        (right == here).all(dim=-1).double(),
        (right & inner).sum(dim=-1).double() / inner.sum(dim=-1),
    )


def share(values: Float[Tensor, "seed sentence"]) -> Estimate:
    """The mean of shares over seeds and sentences, with an interval for other seeds and other sentences.

    The seeds are few, so theirs is Student's t. All seeds read the same sentences, so how far these can mislead is
    added to it: Wilson's interval, which is no point even where all are right. What seed and sentence do together is
    in both parts, so the interval is rather too wide than too narrow.
    """
    by_seed, n = values.mean(dim=1), values.shape[1]
    of_seeds = STUDENT * float(by_seed.std()) / math.sqrt(len(by_seed))
    mean, low, high = Estimate.of_share(float(values.mean()), n)
    return Estimate(
        mean,
        max(0.0, mean - math.hypot(of_seeds, mean - low)),
        min(1.0, mean + math.hypot(of_seeds, high - mean)),
    )


def difference(one: Estimate, other: Estimate) -> Estimate:
    """One share minus another, its interval put together from theirs.

    Source: Newcombe 1998, "Interval Estimation for the Difference between Independent Proportions", method 10.
    """
    apart = one.mean - other.mean
    return Estimate(
        apart,
        apart - math.hypot(one.mean - one.low, other.high - other.mean),
        apart + math.hypot(one.high - one.mean, other.mean - other.low),
    )


def compare(kinds: Kinds, groups: Sequence[Sequence[Pair]]) -> Results:
    """How the models of each kind do on each group of sentences."""
    return {
        kind: [measure_group([m for _, m in ones], pairs) for pairs in groups]
        for kind, ones in kinds.items()
    }


def gaps(results: Results) -> tuple[Estimate, Estimate]:
    """With attention minus without: the share of faultless sentences, on the shorter and the longer lengths."""
    half = len(LENGTHS) // 2
    shorter, longer = (
        difference(
            *(
                share(torch.cat([group.exact for group in results[kind][part]], dim=1))
                for kind in (WITH, WITHOUT)
            )
        )
        for part in (slice(half), slice(half, None))
    )
    return shorter, longer


def tell() -> Story:
    """The demo: six models, sentences of six groups of lengths, and what attention makes of the difference."""
    groups, kinds = unseen_pairs(), open_kinds()
    results = compare(kinds, groups)
    one, other = (percent(share(results[kind][-1].exact).mean) for kind in (WITH, WITHOUT))
    say = TEXTS.filled(long=_span(LENGTHS[-1]), one=one, other=other, n_pairs=sum(map(len, groups)))
    middles, lengths = tuple((lengths[0] + lengths[-1]) / 2 for lengths in LENGTHS), say("lengths")
    picture = (
        Lines(
            say("bands", title=title),
            middles,
            lengths,
            tuple(
                Series.of(name, [share(group[what]) for group in results[kind]])
                for kind, name in zip(kinds, say.names("kinds"), strict=True)
            ),
            title,
            (0.0, 1.0),
        )
        for what, title in enumerate(say.names("panels"))
    )
    parts = (
        _models(kinds),
        _table(results),
        _finding(results),
        _interval(results),
        _example(kinds, groups[-1][0]),
    )
    return story(say, parts, picture)


def _span(lengths: range) -> Phrase:
    return TEXTS("span", first=lengths[0], last=lengths[-1])


def _models(kinds: Kinds) -> Phrase:
    (card, model), (other_card, other) = kinds[WITH][0], kinds[WITHOUT][0]
    cards, models = (card, other_card), (model, other)
    wide, wide_other = (model.config.d_hidden for model in models)
    sizes = [sum(parameter.numel() for parameter in model.parameters()) for model in models]
    config = cards[0].plan.config
    plans = [
        replace(card.plan, config=config, recipe=replace(card.plan.recipe, seed=0))
        for card in cards
    ]
    return TEXTS(
        "models",
        sizes=sizes,
        wide=wide,
        wide_other=wide_other,
        short=LENGTHS[0][0],
        long=LENGTHS[-1][-1],
        alike=TEXTS("alike" if plans[0] == plans[1] else "not_alike"),
        most_clauses=CLAUSES[-1],
        seen=TEXTS("as_seen" if set(CLAUSES) <= set(plans[0].clauses) else "unseen"),
    )


def _table(results: Results) -> Table:
    rows = []
    for lengths, *pair in zip(LENGTHS, results[WITH], results[WITHOUT], strict=True):
        row: list[Cell] = [_span(lengths)]
        for exact in (share(group.exact) for group in pair):
            row += [exact.mean, TEXTS("interval_of", low=exact.low, high=exact.high)]
        rows.append((*row, *(share(group.words).mean for group in pair)))
    return table(TEXTS, "lengths_table", rows)


def _finding(results: Results) -> Phrase:
    ends = [
        [share(results[kind][place].exact).mean for place in (0, -1)] for kind in (WITH, WITHOUT)
    ]
    change, change_other = (long - short for short, long in ends)
    (one_short, one_long), (other_short, other_long) = (map(percent, shares) for shares in ends)
    return TEXTS(
        "finding",
        short=_span(LENGTHS[0]),
        long=_span(LENGTHS[-1]),
        one_short=one_short,
        one_long=one_long,
        other_short=other_short,
        other_long=other_long,
        change=100 * change,
        change_other=100 * change_other,
        why=TEXTS("why") if change_other < min(change, 0.0) else Phrase("", ""),
    )


def _interval(results: Results) -> Phrase:
    """The difference between the kinds on the shorter and the longer half of the lengths."""
    shorter, longer = gaps(results)
    verdict = TEXTS("certain" if longer.low > 0 else "opposite" if longer.high < 0 else "by_chance")
    return TEXTS("interval", shorter=shorter, longer=longer, verdict=verdict)


def _example(kinds: Kinds, pair: Pair) -> Table:
    rows = [(TEXTS("english"), " ".join(pair.english)), (TEXTS("right"), " ".join(pair.korean))]
    for name, ((card, model), *_) in zip(TEXTS.names("kinds"), kinds.values(), strict=True):
        vocabulary, end = card.target or card.source, card.plan.config.end
        source, target = encode_pairs([pair], end)
        words = model.translate(source, max_length=target.shape[1]).words[0].tolist()
        rows.append((name, " ".join(vocabulary.decode([word for word in words if word != end]))))
    return Table(TEXTS("example"), ("", TEXTS("sentence")), tuple(rows))
