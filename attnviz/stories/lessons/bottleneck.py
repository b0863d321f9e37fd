"""The bottleneck: recurrent translators with attention and without, on sentences that grow longer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnviz.errors import FileFormatError
from attnviz.heads.tally import wilson
from attnviz.models import registry
from attnviz.models.language import splits
from attnviz.models.language.korean import Pair
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.files import ModelCard
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.common import Estimate, open_model, percent
from attnviz.stories.record import Cell, Lines, Series, Story, Table
from attnviz.text.phrase import Phrase

SEEDS = len(registry.SEEDS)
WITH, WITHOUT = "with", "without"
KINDS = {WITH: Phrase("with attention", "어텐션 있음"), WITHOUT: Phrase("without attention", "어텐션 없음")}
CLAUSES = (1, 2, 3)
"""In a test sentence: as many as in training."""
LENGTHS = (range(3, 6), range(6, 9), range(9, 12), range(12, 15), range(15, 18), range(18, 22))
"""Groups of lengths, in English words."""
N_SENTENCES = 40
"""In each group."""
STUDENT = 4.302653
"""Standard errors on each side of the mean that hold 95 % of Student's t with 2 degrees of freedom, for 3 seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthGroup:
    """How the models of one kind do on sentences of like length."""

    exact: Float[Tensor, "seed sentence"]  # whether each sentence is right as a whole, its end included
    words: Float[Tensor, "seed sentence"]  # the share of each one's words that are right at their place


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The models of one kind, one for each seed, and the card of the first."""

    card: ModelCard
    models: tuple[RecurrentTranslator, ...]

    @property
    def n_weights(self) -> int:
        """How many numbers one of them learned."""
        return sum(parameter.numel() for parameter in self.models[0].parameters())


Kinds: TypeAlias = Mapping[str, Trained]
Results: TypeAlias = Mapping[str, Sequence[LengthGroup]]


def open_kind(kind: str) -> Trained:
    """The models with attention, or those without.

    Raises:
        FileFormatError: one of them is not there, or its file holds another kind of model.
    """
    cards, models = [], []
    for seed in range(SEEDS):
        card, model = open_model(f"bottleneck-{kind}-{seed}", RecurrentTranslator)
        if (model.attention is None) != (kind == WITHOUT):
            raise FileFormatError(f"{card.name} must be a recurrent model {kind} attention")
        cards.append(card)
        models.append(model)
    return Trained(card=cards[0], models=tuple(models))


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


@torch.inference_mode()
def right(model: RecurrentTranslator, source: Tensor, target: Tensor) -> Bool[Tensor, "sentence step"]:
    """Which words of the target the model generates at their place, running free; the end counts as a word."""
    generated = model.translate(source, max_length=target.shape[1]).words  # what comes later is wrong anyway
    generated = torch.nn.functional.pad(generated, (0, target.shape[1] - generated.shape[1]))
    return (generated == target) & (target != 0)


def measure_group(kind: Trained, pairs: Sequence[Pair]) -> LengthGroup:
    """How each seed's model does on each sentence."""
    end = kind.card.plan.config.end
    source, target = encode_pairs(pairs, end)
    here = target != 0
    words = here & (target != end)
    hits = torch.stack([right(model, source, target) for model in kind.models])  # (3, B, T)
    return LengthGroup(
        exact=(hits == here).all(dim=-1).double(), words=(hits & words).sum(dim=-1).double() / words.sum(dim=-1)
    )


def share(values: Float[Tensor, "seed sentence"]) -> Estimate:
    """The mean of shares over seeds and sentences, with an interval for other seeds and other sentences.

    The seeds are few, so theirs is Student's t. All seeds read the same sentences, so how far these can mislead is
    added to it: Wilson's interval, which is no point even where all are right. What seed and sentence do together is
    in both parts, so the interval is rather too wide than too narrow.
    """
    by_seed, n = values.mean(dim=1), values.shape[1]
    mean = float(values.mean())
    of_seeds = STUDENT * float(by_seed.std()) / math.sqrt(len(by_seed))
    low, high = wilson(mean, n)
    return Estimate(
        mean, max(0.0, mean - math.hypot(of_seeds, mean - low)), min(1.0, mean + math.hypot(of_seeds, high - mean))
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
    return {kind: [measure_group(models, pairs) for pairs in groups] for kind, models in kinds.items()}


def gaps(results: Results) -> tuple[Estimate, Estimate]:
    """With attention minus without: the share of faultless sentences, on the shorter and the longer lengths."""
    half = len(LENGTHS) // 2
    apart = []
    for part in (slice(None, half), slice(half, None)):
        one, other = (torch.cat([group.exact for group in results[kind][part]], dim=1) for kind in (WITH, WITHOUT))
        apart.append(difference(share(one), share(other)))
    return apart[0], apart[1]


def tell() -> Story:
    """The demo: six models, sentences of six groups of lengths, and what attention makes of the difference."""
    groups = unseen_pairs()
    kinds = {kind: open_kind(kind) for kind in (WITH, WITHOUT)}
    results = compare(kinds, groups)
    n_pairs, long = sum(map(len, groups)), _span(LENGTHS[-1])
    one, other = (percent(share(results[kind][-1].exact).mean) for kind in (WITH, WITHOUT))
    return Story(
        name="bottleneck",
        title=Phrase(
            f"of sentences of {long} words {one} are translated faultlessly with attention, {other} without",
            f"{long.ko}단어 문장을 오류 없이 번역한 비율: 어텐션이 있으면 {one}, 없으면 {other}",
        ),
        parts=(_models(kinds), _table(results), _finding(results), _interval(results), _example(kinds, groups[-1])),
        picture=(
            _lines(Phrase("sentences without a fault", "오류 없는 문장"), "exact", results),
            _lines(Phrase("words right at their place", "제자리에 맞은 단어"), "words", results),
        ),
        receipt=Phrase(
            f"""counted live: {SEEDS} models of each kind on {n_pairs} unseen test sentences, running free; no
            attention is shown, so there is none to verify""",
            f"""지금 셈: 종류마다 모델 {SEEDS}개, 학습에 쓰지 않은 시험 문장 {n_pairs}개, 자유 생성; 어텐션을 보이지
            않으므로 검증할 것도 없음""",
        ),
    )


def _span(lengths: range) -> Phrase:
    return Phrase(f"{lengths[0]} to {lengths[-1]}", f"{lengths[0]}~{lengths[-1]}")


def _models(kinds: Kinds) -> Phrase:
    """What is compared, and how alike it was made."""
    one, other = kinds[WITH], kinds[WITHOUT]
    wide, wide_other = (kind.models[0].config.d_hidden for kind in (one, other))
    plans = [
        replace(kind.card.plan, config=one.card.plan.config, recipe=replace(kind.card.plan.recipe, seed=0))
        for kind in (one, other)
    ]
    alike = Phrase("not trained alike", "서로 다르게 학습했습니다")
    if plans[0] == plans[1]:
        alike = Phrase("trained alike, on the same sentences", "같은 문장으로 똑같이 학습했습니다")
    seen = Phrase("not as", "학습한 문장과는 다릅니다")
    if set(CLAUSES) <= set(plans[0].clauses):
        seen = Phrase("as", "학습한 문장과 같습니다")
    short, long = LENGTHS[0][0], LENGTHS[-1][-1]
    return Phrase(
        f"""A recurrent encoder reads an English sentence, a decoder generates it in Korean. Without attention the
        decoder gets the encoder's last state alone: {wide_other} numbers, whether the sentence has {short} words or
        {long}. With attention it can also look back, at each step, at the state after every word: {wide} numbers
        each. {SEEDS} models of each kind were {alike}, from {SEEDS} seeds; those with attention have
        {one.n_weights:,} weights, those without {other.n_weights:,}. The test sentences have {CLAUSES[0]} to
        {CLAUSES[-1]} clauses, {seen} those of training.""",
        f"""순환 신경망 인코더가 영어 문장을 읽고, 디코더가 그것을 한국어로 생성합니다. 어텐션이 없으면 디코더는
        인코더의 마지막 상태만 받습니다. 문장이 {short}단어든 {long}단어든 수 {wide_other}개뿐입니다. 어텐션이
        있으면 단계마다 모든 단어 뒤의 상태를 다시 볼 수 있고, 상태마다 수가 {wide}개씩입니다. 종류마다 시드
        {SEEDS}개로 모델 {SEEDS}개를 {alike.ko}. 파라미터는 어텐션이 있는 모델이 {one.n_weights:,}개, 없는 모델이
        {other.n_weights:,}개입니다. 시험 문장의 절은 {CLAUSES[0]}~{CLAUSES[-1]}개로, {seen.ko}.""",
    )


def _table(results: Results) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for index, lengths in enumerate(LENGTHS):
        one, other = results[WITH][index], results[WITHOUT][index]
        exact: list[Cell] = []
        for mean, low, high in (share(one.exact), share(other.exact)):
            exact += [mean, Phrase(f"{low:.2f} to {high:.2f}", f"{low:.2f}~{high:.2f}")]
        words = [share(kind.words).mean for kind in (one, other)]
        rows.append((_span(lengths), *exact, *words))
    return Table(
        title=Phrase(
            f"unseen test sentences by length, {N_SENTENCES} each: means over {SEEDS} models of each kind",
            f"학습에 쓰지 않은 시험 문장, 길이마다 {N_SENTENCES}개: 종류마다 모델 {SEEDS}개의 평균",
        ),
        columns=(
            Phrase("English words", "영어 단어"), Phrase("with: no fault", "있음: 오류 없음"), "95 %",
            Phrase("without: no fault", "없음: 오류 없음"), "95 %", Phrase("with: words right", "있음: 맞은 단어"),
            Phrase("without: words right", "없음: 맞은 단어"),
        ),
        rows=tuple(rows),
    )  # fmt: skip


def _finding(results: Results) -> Phrase:
    """Where each kind begins, and where it ends."""
    ends = [[share(results[kind][place].exact).mean for place in (0, -1)] for kind in (WITH, WITHOUT)]
    change, change_other = (long - short for short, long in ends)
    (one_short, one_long), (other_short, other_long) = (map(percent, shares) for shares in ends)
    short, long = _span(LENGTHS[0]), _span(LENGTHS[-1])
    why = Phrase("", "")
    if change_other < min(change, 0.0):
        why = Phrase(
            """A state of a fixed size holds only so much of a sentence; attention lets the decoder fetch each part
            when it is needed.""",
            """크기가 정해진 상태 하나에는 문장이 다 담기지 않습니다. 어텐션이 있으면 디코더가 필요한 부분을
            그때그때 가져올 수 있습니다.""",
        )
    return Phrase(
        f"""Of the sentences of {short} words the models with attention translate {one_short} without a fault, those
        without {other_short}; of those of {long} words, {one_long} and {other_long}. From the shortest to the
        longest that is a change of {100 * change:+.1f} points with attention and of {100 * change_other:+.1f}
        points without. {why}""",
        f"""오류 없이 번역한 문장은 {short.ko}단어에서 어텐션이 있는 모델이 {one_short}, 없는 모델이
        {other_short}이고, {long.ko}단어에서는 {one_long}, {other_long}입니다. 가장 짧은 문장에서 가장 긴 문장으로
        가면 어텐션이 있을 때 {100 * change:+.1f}포인트, 없을 때 {100 * change_other:+.1f}포인트 변합니다. {why.ko}""",
    )


def _interval(results: Results) -> Phrase:
    """The difference between the kinds on the shorter and the longer half of the lengths."""
    shorter, longer = gaps(results)
    verdict = Phrase("perhaps by chance", "우연일 수 있습니다")
    if longer.low > 0:
        verdict = Phrase("more than chance", "우연으로 볼 수 없습니다")
    elif longer.high < 0:
        verdict = Phrase("the other way round", "반대입니다")
    return Phrase(
        f"""With attention minus without, the share of faultless sentences differs by {shorter} on the shorter half
        of the lengths and by {longer} on the longer half: {verdict}. The 95 % intervals count both what other seeds
        would change (Student's t over {SEEDS} seeds) and what other sentences would (Wilson's interval); that of a
        difference is put together from the two (Newcombe's).""",
        f"""오류 없는 문장의 비율에서 어텐션이 있는 쪽에서 없는 쪽을 빼면 짧은 절반에서 {shorter.ko}, 긴 절반에서
        {longer.ko}입니다. 긴 문장에서의 차이는 {verdict.ko}. 95 % 신뢰구간에는 시드를 바꿀 때의 변화(시드
        {SEEDS}개의 스튜던트 t)와 문장을 바꿀 때의 변화(윌슨 구간)가 모두 들어 있고, 차이의 구간은 두 구간을 합친
        것(뉴컴)입니다.""",
    )


def _example(kinds: Kinds, pairs: Sequence[Pair]) -> Table:
    """What the first model of each kind makes of one long sentence."""
    rows = [
        (Phrase("English", "영어"), " ".join(pairs[0].english)),
        (Phrase("right", "올바른 번역"), " ".join(pairs[0].korean)),
    ]
    for name, kind in kinds.items():
        vocabulary, end = kind.card.target or kind.card.source, kind.card.plan.config.end
        source, target = encode_pairs(pairs[:1], end)
        with torch.inference_mode():
            words = kind.models[0].translate(source, max_length=target.shape[1]).words[0].tolist()
        rows.append((KINDS[name], " ".join(vocabulary.decode([word for word in words if word != end]))))
    title = Phrase(
        "the first of the longest sentences, by the first model of each kind",
        "가장 긴 문장들 가운데 첫째, 종류마다 첫 모델의 번역",
    )
    return Table(title=title, columns=("", Phrase("sentence", "문장")), rows=tuple(rows))


def _lines(title: Phrase, what: Literal["exact", "words"], results: Results) -> Lines:
    return Lines(
        title=Phrase(f"{title} (bands: 95 %)", f"{title.ko} (띠: 95 %)"),
        x=tuple((lengths[0] + lengths[-1]) / 2 for lengths in LENGTHS),
        x_title=Phrase("English words in the sentence (middle of each group)", "문장의 영어 단어 수 (묶음마다 가운데)"),
        series=tuple(
            Series.of(name, [share(getattr(group, what)) for group in results[kind]]) for kind, name in KINDS.items()
        ),
        y_title=title,
        y_limits=(0.0, 1.0),
    )
