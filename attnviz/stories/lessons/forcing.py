"""Teacher forcing and free running: a decoder on the right words before, and on its own.

Source: Williams and Zipser 1989, "A Learning Algorithm for Continually Running Fully Recurrent Neural Networks".
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnviz.attention import Attention
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.language import splits
from attnviz.models.language.sentences import Pair
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.registry import Recipe
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.measure import Translator
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.common import (
    ROWS,
    Estimate,
    open_model,
    percent,
    receipt_of,
    row_view,
    steps_panel,
    story,
    table,
)
from attnviz.stories.lessons.alignment import RECURRENT
from attnviz.stories.record import Cell, Lines, Series, Story, Table
from attnviz.text.phrase import Phrase, Texts, join_phrases

SENTENCE = "She is eating a green apple"
FORCED = "그녀는 초록색 사과를 먹는다 있다"  # "eats" where "eating" is right; the word after it is left as it was
N_PAIRS = 120  # test pairs that both ways are measured on
CLAUSES = 4  # in each of them; the sentences of training have one fewer at most
AFTER = 6  # steps after the first error that are looked at
BEFORE = 2  # steps shown before the first error of a sentence
SEVERAL = 4  # an error of so many words one after another goes on; one of fewer does not
TEXTS = Texts(
    """
receipt | free: {own}; forced: {right}; the shares are counted on {n} test sentences
    | 자유 생성: {own}; 교사 강요: {right}; 비율은 시험 문장 {n}개에서 셈
no_error | no error on {n} unseen sentences: {right} of the words right forced, {own} free
    | 학습에 쓰지 않은 문장 {n}개에서 오류 없음: 맞은 단어 교사 강요 {right}, 자유 생성 {own}
errors | {last.steps} steps after an error {mended} of the words are right if errors are mended, {unmended} if not
    | 오류가 난 뒤 {last.steps}단계: 오류를 고쳐 주면 {mended}, 그대로 두면 {unmended}가 맞음
forgot | , but for {share} of the words before, which were shown as unknown: so it had to look at the English sentence
    | 다만 앞 단어의 {share}는 모르는 단어로 보여 주어, 영어 문장을 보지 않을 수 없게 했습니다.
two_ways | A decoder reads, at each step, the word before. While it is trained that is the right one, whatever it would
    have chosen itself (teacher forcing); in use there is no right one, and it reads its own (free running). {RECURRENT}
    was trained by teacher forcing{forgot}. Here it translates “{SENTENCE}” freely, and once more with a wrong word
    forced on it: 먹는다 (eats) where 먹고 있다 (is eating) is right.
    | 디코더는 단계마다 바로 앞의 단어를 읽습니다. 학습할 때 그 단어는 모델이 스스로 무엇을 골랐든 언제나 올바른
    단어입니다(교사 강요). 실제로 쓸 때는 올바른 단어가 없으므로 자기가 생성한 단어를 읽습니다(자유 생성). {RECURRENT}
    모델은 교사 강요로 학습했습니다. {forgot} 여기서는 “{SENTENCE}”을 자유롭게 한 번, 틀린 단어를 넣어 주고 한 번 더
    번역합니다. 넣어 주는 단어는 “먹고 있다”가 맞는 자리의 “먹는다”입니다.
wrong_word | “{SENTENCE}”: free running, and with “{FORCED}” forced on it
    | “{SENTENCE}”: 자유 생성, 그리고 “{FORCED}” 넣어 주기
no_difference | The words forced on the model are those that it generates itself, so nothing differs.
    | 넣어 준 단어가 모델이 스스로 생성하는 단어와 같아서 달라지는 것이 없습니다.
english_decides | Here the English sentence decides: the wrong word does not change what it generates next.
    | 여기서는 영어 문장이 결정합니다. 틀린 단어를 읽어도 다음에 생성할 단어가 바뀌지 않습니다.
word_decides | What it generates next depends on the word it was given, not on the English sentence alone.
    | 다음에 생성할 단어는 영어 문장만이 아니라 방금 받은 단어에도 달려 있습니다.
what_follows | At step {place} {made.word} is forced on it, to which it gives a chance of {made.chance:.3f}; itself it
    would generate {made.expected} ({made.expected_chance:.3f}). Up to here both runs have read the same words and
    expect the same. After its own {own.word} it expects {after_own.expected} ({after_own.expected_chance:.3f}); after
    {made.word} it expects {after_made.expected} ({after_made.expected_chance:.3f}). {verdict}
    | 단계 {place}에서 넣어 준 단어는 “{made.word}”이고, 모델이 이 단어에 준 확률은 {made.chance:.3f}입니다. 스스로
    생성했을 단어는 “{made.expected}”({made.expected_chance:.3f})입니다. 여기까지는 두 번 모두 같은 단어를 읽었고 예상도
    같습니다. 다음에 예상하는 단어는 자기 단어 “{own.word}” 뒤에서
    “{after_own.expected}”({after_own.expected_chance:.3f}), “{made.word}” 뒤에서
    “{after_made.expected}”({after_made.expected_chance:.3f})입니다. {verdict}
late | The wrong word is step {wrong}, yet the patterns are the same up to row {row}: a step looks with the state of
    the step before, and only then reads its word.
    | 틀린 단어는 단계 {wrong}인데 패턴은 행 {row}까지 같습니다. 각 단계는 앞 단계의 상태로 먼저 보고, 그다음에야 자기
    단어를 읽기 때문입니다.
patterns | {late} Both patterns are drawn by {command}, without and with {more}. {rows}
    | {late} 두 패턴은 {command} 명령으로, {more} 옵션 없이 또 함께 그릴 수 있습니다. {rows}
accuracy | On {n} unseen sentences of {CLAUSES} clauses, one more than any it was trained on, it generates {right} of
    the words right after the right words, and {own} after its own.
    | 학습한 어느 문장보다 절이 하나 더 많은, {CLAUSES}개의 절로 된 새 문장 {n}개에서 모델은 올바른 단어 다음에는 단어의
    {right}, 자기 단어 다음에는 {own}만큼 맞힙니다.
goes_on | its own error goes on. In training it never read an error of its own (exposure bias).
    | 자기 오류가 다음으로 이어집니다. 학습 중에는 자기 오류를 읽어 본 적이 없기 때문입니다(노출 편향).
after_error | {text} {which} of the sentences have an error; the first is at the same step both ways, for until then
    both have read the same. {last.steps} steps later {forced} of the words are right where the right word was put in
    the place of each wrong one, and {free} where the model reads on from its own: {verdict}
    | {text} {which}에 오류가 있습니다. 그때까지는 같은 단어를 읽었으므로 첫 오류의 단계는 두 방식이 같습니다. 그로부터
    {last.steps}단계 뒤에 맞는 단어는, 틀릴 때마다 올바른 단어로 바꾸어 주면 {forced}, 자기 단어를 계속 읽으면
    {free}입니다: {verdict}
after | words right at their place after the first error, {n} sentences of {CLAUSES} clauses
    | 첫 오류 뒤에 제자리에 맞은 단어, 절 {CLAUSES}개로 된 문장 {n}개
moved | A word that is left out moves all that follow, and at its place each of them then counts as wrong. Counted
    wherever they stand, as long as they are in the right order, {forced} of the words are generated forced and {free}
    free: {near} points apart, where at their place they are {far} apart. The right word before shows what may come
    next, and also how far the sentence has got.
    | 한 단어가 빠지면 뒤의 단어가 모두 밀려서, 자리로 세면 모두 틀린 것이 됩니다. 자리와 상관없이 순서만 맞으면 맞은
    것으로 세면 교사 강요는 {forced}, 자유 생성은 {free}로 차이가 {near}포인트입니다. 자리까지 따지면
    {far}포인트였습니다. 앞의 올바른 단어는 다음에 무엇이 올 수 있는지뿐 아니라 문장이 어디까지 왔는지도 알려 줍니다.
first_found | the first of them in which {SEVERAL} words or more are wrong in a row when free, and fewer when forced
    | 자유 생성에서는 {SEVERAL}단어 이상이 잇달아 틀리고, 교사 강요에서는 그보다 적게 틀리는 첫 문장
lines | after the first error, {CLAUSES} clauses (bands: 95 %) | 첫 오류 뒤, 절 {CLAUSES}개 (띠: 95 %)
ways | free running; forced | 자유 생성; 교사 강요
wrong_word_columns | step; free: generates; chance; forced: given; chance; expects itself; chance
    | 단계; 자유 생성: 생성한 단어; 확률; 강요: 넣어 준 단어; 확률; 스스로 예상한 단어; 확률
view | {way}, step {step}: before “{word}” it looks most at “{at}” ({weight:.2f}).
    | {way}, 단계 {step}: “{word}” 앞에서 가장 많이 보는 단어는 “{at}” ({weight:.2f})입니다.
nothing_goes_on | There is nothing that could go on. | 오류가 없으므로 이어질 것도 없습니다.
by_chance | too small a difference to be told from chance. | 우연과 구별하기에는 차이가 작습니다.
all | All | 모든 문장
some | {wrong} | 문장 {wrong}개
after_columns | steps after it; sentences; forced: right; free: right | 오류 뒤 단계; 문장; 강요: 정답; 자유 생성: 정답
first | the first of them with an error | 오류가 있는 첫 문장
wrong | {word} (wrong) | {word} (틀림)
around | {what}, around its first error: “{english}” | {what}, 첫 오류의 앞뒤: “{english}”
around_columns | step; right; forced: generates; free: generates
    | 단계; 올바른 단어; 강요: 생성한 단어; 자유 생성: 생성한 단어
steps_after | steps after the first error | 첫 오류 뒤 단계
at_place | words right at their place | 제자리에 맞은 단어
""",
    globals(),
)
WAYS = TEXTS.names("ways")


class After(NamedTuple):
    """What is right so many steps after the first error."""

    steps: int
    n: int  # sentences that are so long
    forced: Estimate  # the share of them that has the right word there, forced
    free: Estimate  # the same, running free


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoWays:
    """What a model generates for the same sentences forced and free; the end counts as a word, zeros follow it."""

    target: Int[Tensor, "sentence step"]  # the right words
    forced: Int[Tensor, "sentence step"]  # what it generates after the right words
    free: Int[Tensor, "sentence longer"]  # after its own, which may go on where the right words end

    @property
    def here(self) -> Bool[Tensor, "sentence step"]:
        """Where there is a word to be generated."""
        return self.target != 0

    @property
    def firsts(self) -> list[tuple[int, int]]:
        """The sentences with an error, and the step of the first: the same both ways, as it has read the same."""
        wrong = (self.free[:, : self.target.shape[1]] != self.target) & self.here
        return [(row, int(steps.nonzero()[0])) for row, steps in enumerate(wrong) if steps.any()]

    def goes_on(self, words: Int[Tensor, "sentence longer"], row: int, first: int) -> int:
        """How many words of a sentence are wrong one after another, from a step on."""
        right = (words[row, first : self.target.shape[1]] == self.target[row, first:]) | ~self.here[
            row, first:
        ]
        return int(right.nonzero()[0]) if right.any() else len(right)

    def accuracy(self, words: Int[Tensor, "sentence longer"]) -> float:
        """The share of the right words that are generated, at their place."""
        return int((words[:, : self.target.shape[1]] == self.target)[self.here].sum()) / int(
            self.here.sum()
        )

    def in_order(self, words: Int[Tensor, "sentence longer"]) -> float:
        """The share of the right words generated in the right order, wherever they stand (longest common row)."""
        longest = torch.zeros(
            len(words), words.shape[1] + 1, dtype=torch.long
        )  # common words up to each one
        for word, here in zip(self.target.T, self.here.T, strict=True):
            same = (words == word[:, None]) & here[:, None]  # (B, S)
            longest[:, 1:] = (
                torch.where(same, longest[:, :-1] + 1, longest[:, 1:]).cummax(dim=1).values
            )
        return int(longest[:, -1].sum()) / int(self.here.sum())

    def after_error(self, most: int = AFTER) -> list[After]:
        """Step by step after the first error, as far as there are sentences that long."""
        found = []
        for steps in range(1, most + 1):
            places = [
                (row, first + steps)
                for row, first in self.firsts
                if first + steps < self.target.shape[1]
            ]
            places = [place for place in places if self.here[place]]
            if n := len(places):
                hits = (
                    sum(bool(words[at] == self.target[at]) for at in places)
                    for words in (self.forced, self.free)
                )
                found.append(After(steps, n, *(Estimate.of_share(hit / n, n) for hit in hits)))
        return found


@torch.inference_mode()
def translate_ways(model: Translator, source: Tensor, target: Tensor) -> TwoWays:
    """Translate each sentence twice: after the right words, and after its own, at most twice as many as are right."""
    n_steps = target.shape[1]
    free = model.translate(source, max_length=2 * n_steps).words
    free = torch.nn.functional.pad(free, (0, max(0, n_steps - free.shape[1])))
    return TwoWays(target=target, forced=model(source, target).words, free=free)


class ForcedStep(NamedTuple):
    """One step of a sentence."""

    word: str  # the word that the model generates, or that is forced on it
    chance: float  # how likely the model finds it
    expected: str  # the word that the model finds likeliest there
    expected_chance: float


@torch.inference_mode()
def read(model: Translator, vocabulary: Vocabulary, record: Attention) -> list[ForcedStep]:
    """What the model expects at each step of what it generated, or of what was forced on it."""
    source, target = (
        torch.tensor([[token.id or 0 for token in tokens]])
        for tokens in (record.key_tokens, record.query_tokens)
    )
    steps = zip(record.query_tokens, model(source, target).logits[0].softmax(dim=-1), strict=True)
    return [
        ForcedStep(
            token.text,
            float(chance[token.id or 0]),
            vocabulary.words[int(chance.argmax())],
            float(chance.max()),
        )
        for token, chance in steps
    ]


def tell() -> Story:
    """The demo: one sentence with a wrong word forced on it, and unseen sentences too long for the model."""
    card, model = open_model(RECURRENT, RecurrentTranslator)
    vocabulary = card.target or card.source
    source = open_source(RECURRENT)
    records = free, forced = attend(SENTENCE, source), attend(SENTENCE, source, target=FORCED)
    pairs = list(islice(splits.pairs("test", clauses=CLAUSES), N_PAIRS))
    both = translate_ways(model, *encode_pairs(pairs, model.config.end))
    steps = [read(model, vocabulary, record) for record in records]
    word = next(
        (
            place
            for place, (own, made) in enumerate(zip(*steps, strict=False))
            if own.word != made.word
        ),
        None,
    )
    rows = enumerate(zip(*(record.pattern(0, 0) for record in records), strict=False))
    row = next(
        (place for place, (own, made) in rows if not np.allclose(own, made, atol=1e-6)), None
    )
    say = TEXTS.filled(
        own=receipt_of(free),
        right=receipt_of(forced),
        n=len(pairs),
        wrong=word,
        row=(row or 0) - 1,
        rows=ROWS,
        command=f'`attnviz heatmap "{SENTENCE}" --model {RECURRENT}`',
        more=f'`--target "{FORCED}"`',
    )
    late = Phrase("", "") if word is None or row is None else say("late")
    title, measures, lines = _measures(both)
    parts = (
        _two_ways(card.plan.recipe),
        _wrong_word(*steps),
        _what_follows(word, *steps),
        *measures,
        *_one_sentence(both, pairs, vocabulary),
        say("patterns", late=late),
    )
    patterns = (steps_panel(way, record, (0, 0)) for way, record in zip(WAYS, records, strict=True))
    views = (  # the first word that differs, and the first row that does, both ways
        row_view(TEXTS.filled(way=way, step=step), record, (0, 0), step, number)
        for step in sorted({word or 0, word or 0 if row is None else row})
        for number, (way, record) in enumerate(zip(WAYS, records, strict=True))
    )
    return story(say, parts, (*patterns, *lines), title=title, views=views, records=records)


def _two_ways(recipe: Recipe) -> Phrase:
    forgot = TEXTS("forgot", share=percent(recipe.forget)) if recipe.forget else Phrase("", "")
    return TEXTS("two_ways", forgot=forgot)


def _wrong_word(free: Sequence[ForcedStep], forced: Sequence[ForcedStep]) -> Table:
    """Both readings side by side, as far as the longer one goes."""
    rows = (
        (place, *(own[:2] if own else ("", "")), *(made or ("",) * 4))
        for place, (own, made) in enumerate(itertools.zip_longest(free, forced))
    )
    return table(TEXTS, "wrong_word", rows)


def _what_follows(
    place: int | None, free: Sequence[ForcedStep], forced: Sequence[ForcedStep]
) -> Phrase:
    if place is None or place + 1 >= min(len(free), len(forced)):
        return TEXTS("no_difference")
    own, made, after_own, after_made = (
        free[place],
        forced[place],
        free[place + 1],
        forced[place + 1],
    )
    verdict = TEXTS(
        "english_decides" if after_own.expected == after_made.expected else "word_decides"
    )
    say = TEXTS.filled(
        place=place, own=own, made=made, after_own=after_own, after_made=after_made, verdict=verdict
    )
    return say("what_follows")


def _measures(both: TwoWays) -> tuple[Phrase, tuple[Phrase | Table, ...], tuple[Lines, ...]]:
    """How often each way is right: in all, step by step after the first error, and wherever the words stand.

    Returns a title, the parts of the story, and lines with their intervals; none where there is no error.
    """
    n, after = len(both.target), both.after_error()
    placed, ordered = (
        [way(words) for words in (both.forced, both.free)] for way in (both.accuracy, both.in_order)
    )
    right, own = map(percent, placed)
    say = TEXTS.filled(n=n, right=right, own=own)
    text = say("accuracy")
    if not after:
        return say("no_error"), (join_phrases([text, say("nothing_goes_on")]),), ()
    wrong, last = len(both.firsts), after[-1]
    mended, unmended = percent(last.forced.mean), percent(last.free.mean)
    text = say(
        "after_error",
        text=text,
        which=say("all" if wrong == n else "some", wrong=wrong),
        last=last,
        forced=mended,
        free=unmended,
        verdict=say("goes_on" if last.forced.low > last.free.high else "by_chance"),
    )
    rows = ((a.steps, a.n, percent(a.forced.mean), percent(a.free.mean)) for a in after)
    series = (
        Series.of(WAYS[1], [a.forced for a in after]),
        Series.of(WAYS[0], [a.free for a in after]),
    )
    x = tuple(float(a.steps) for a in after)
    lines = Lines(say("lines"), x, say("steps_after"), series, say("at_place"), (0.0, 1.0))
    forced, free = map(percent, ordered)
    near, far = (
        f"{100 * (one - other):.1f}" for one, other in (ordered, placed)
    )  # words at another place, words lost
    parts = (
        text,
        table(say, "after", rows),
        say("moved", forced=forced, free=free, near=near, far=far),
    )
    return say("errors", last=last, mended=mended, unmended=unmended), parts, (lines,)


def _one_sentence(
    both: TwoWays, pairs: Sequence[Pair], vocabulary: Vocabulary
) -> tuple[Table, ...]:
    """The words around the first error of the first sentence in which its own error goes on and a mended one does not.

    Where there is no such sentence, of the first with an error.
    """
    if not both.firsts:
        return ()
    lengths = [
        (both.goes_on(both.forced, *place), both.goes_on(both.free, *place))
        for place in both.firsts
    ]
    found = [
        place
        for place, (forced, free) in zip(both.firsts, lengths, strict=True)
        if forced < SEVERAL <= free
    ]
    row, first = (found or both.firsts)[0]
    names = ("-", *vocabulary.words[1:])  # after its end it generates nothing
    rows: list[tuple[Cell, ...]] = []
    for place in range(max(0, first - BEFORE), min(int(both.here[row].sum()), first + AFTER + 1)):
        right, *generated = (
            names[int(words[row, place])] for words in (both.target, both.forced, both.free)
        )
        rows.append(
            (
                place,
                right,
                *(word if word == right else TEXTS("wrong", word=word) for word in generated),
            )
        )
    say = TEXTS.filled(
        what=TEXTS("first_found" if found else "first"), english=" ".join(pairs[row].english)
    )
    return (table(say, "around", rows),)
