"""Reference: what "it" looks at, when it is tired and when it is wide."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnviz.capture.source import Model
from attnviz.models.language.sentences import GoldSentence
from attnviz.models.registry import TOY
from attnviz.models.training import measure
from attnviz.models.training.measure import Head
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories import common
from attnviz.stories.common import Estimate, Look, head_name, percent, receipt_of, words_of
from attnviz.stories.record import Bars, Panel, Series, Story, StoryView, Table
from attnviz.text.phrase import Phrase, Texts, join_phrases

TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
IT = "it"
# how many unseen sentences each share of toy is measured on: as many as what the card says
SENTENCES = measure.SAMPLES

TEXTS = Texts(
    """
title_same | {who}“it” looks at {first} ({here:.2f}), and with {wide} too ({there:.2f})
    | {who}“it”이 보는 단어는 {first} ({here:.2f}), {wide}이어도 같음 ({there:.2f})
title | {who}“it” looks at {first} ({here:.2f}); with {wide} at {second} ({there:.2f})
    | {who}“it”이 보는 단어: {first} ({here:.2f}), {wide}이면 {second} ({there:.2f})
told | toy was trained to name the noun that “it” stands for, but nobody told it where to look.
    | toy는 “it”이 가리키는 명사를 대도록 배웠지만, 어디를 보라고 배운 적은 없습니다.
introduction | “{tired}”: what is tired? The animal. With “wide” instead it is the street. {told} Of the heads of {name}
    the one shown here, {head}, looked from “it” at the right noun most often in {n} other sentences of this
    kind.
    | “{tired}”에서 피곤한(tired) 것은 무엇일까요? 동물(animal)입니다. 대신 “wide”라고 하면 길(street)입니다. {told}
    여기서 보는 것은 {name}의 {head}, 같은 종류의 다른 문장 {n}개에서 “it”이 맞는 명사를 보는 일이 가장 많았던
    헤드입니다.
ahead | {name} reads from left to right: at “it” it has not read “tired” or “wide”, so the row of “it” is the same in
    both sentences, and no head of it can turn with the last word.
    | {name}: 왼쪽에서 오른쪽으로만 읽는 모델입니다. “it”의 자리에서는 “tired”도 “wide”도 아직 읽지 않았으므로 “it”의
    행은 두 문장에서 같고, 어느 헤드도 마지막 단어에 따라 달라질 수 없습니다.
table | who finds the right noun, on {n} unseen test sentences
    | 학습에 쓰지 않은 시험 문장 {n}개에서 누가 맞는 명사를 찾는가
table_columns | who (layer.head); right; right also when turned | 누가 (층.헤드); 정답; 바꾼 뒤에도 정답
more | What one head looks at is not all that the model knows. | 헤드 하나가 보는 것이 모델이 아는 것의 전부는 아닙니다.
whole | The model names the right noun in {share} of them; this head alone looks at it in {looks}. {more}
    | 모델은 이 가운데 {share}에서 맞는 명사를 대고, 이 헤드 하나는 {looks}에서 그 명사를 봅니다. {more}
no_more | no more than the best head of random weights ({random}) or a coin ({coin}): {name} does not show it.
    | 무작위 가중치의 가장 나은 헤드({random})나 동전 던지기({coin})보다 많다고 할 수 없습니다. {name} 모델에서는 보이지
    않는 일입니다.
more_than_chance | more than the best head of random weights ({random}) and a coin ({coin}): it reads the last word too.
    | 무작위 가중치의 가장 나은 헤드({random})나 동전 던지기({coin})보다 많으므로, 마지막 단어까지 읽는 것입니다.
turned | Turned: tired becomes wide, or another such word, so that “it” stands for the other noun. What always looks at
    the same place cannot be right both times; this head is in {turns}, {verdict} {rows}
    | “바꾼 뒤”는 tired를 wide 같은 단어로 바꾸어 “it”이 다른 명사를 가리키게 했을 때입니다. 늘 같은 자리를 보는 것은 두
    번 다 맞힐 수 없지만, 이 헤드는 {turns}에서 두 번 다 맞힙니다. {verdict} {rows}
mine | {name} {head} | {name} {head}
random | random weights, their best: {head} | 무작위 가중치에서 가장 나은 헤드: {head}
offset | always {n} words before “it” | 늘 “it”의 {n}단어 앞
first | always the first noun | 늘 첫째 명사
coin | a coin: either noun | 동전 던지기: 두 명사 중 하나
looks | with “{end}” its row puts the largest weight, {weight:.2f}, on “{word}”
    | “{end}”: “it”의 행에서 가장 큰 가중치({weight:.2f})가 “{word}”에 있습니다.
looks_and_names | with “{end}” its row puts the largest weight, {weight:.2f}, on “{word}”, and the model names the
    {noun} for “it”
    | “{end}”: “it”의 행에서 가장 큰 가중치({weight:.2f})가 “{word}”에 있고, 모델이 대는 명사는 {noun}입니다.
one_word | One word at the end of the sentence has changed. | 달라진 것은 문장 끝의 단어 하나뿐입니다.
row | the row of “it”: where it looks | “it”의 행: 어디를 보는가
word | word | 단어
weight | weight | 가중치
pattern | {name}: ... {end} | {name}: ... {end}
view | With “{end}”, “it” gives {weight:.2f} of its weight to “{word}”.
    | “{end}”이면 “it”이 “{word}”에 주는 가중치는 {weight:.2f}입니다.
view_step | How “it” comes to that: q and k of “it” and “{word}”, number by number.
    | 그 가중치가 나오는 과정: “it”의 q와 “{word}”의 k, 성분 하나하나.
view_all | All heads at once: which others turn with the last word?
    | 모든 헤드: 마지막 단어를 바꾸면 함께 달라지는 헤드는?
bars | {name}: the row of “it” | {name}: “it”의 행
""",
    globals(),
)


class Resolution(NamedTuple):
    """How often a head looks from "it" at the right noun, on unseen test sentences."""

    who: Phrase
    right: float  # as the sentences are
    turned: float  # both so and with their last word turned


def looks_from_it(look: Look, sentences: Sequence[GoldSentence]) -> Tensor:
    """Where each head looks most from "it" [layer, head, sentence]."""
    pronouns, _ = measure.places(sentences)
    return look(sentences)[torch.arange(len(sentences)), :, :, pronouns].movedim(0, -1)


def best_head(look: Look, n: int) -> Head:
    """The head that looks at the right noun most often, chosen on validation sentences."""
    found = measure.references("validation", n)
    return measure.best(
        (looks_from_it(look, found) == measure.places(found)[1]).double().mean(dim=-1)
    )


def measure_shares(
    name: str, looks: Sequence[Look], heads: Sequence[Head], n: int
) -> list[Resolution]:
    """A model's head and that of random weights on so many unseen sentences; then what needs neither head nor model."""
    test = measure.references("test", n)
    others = measure.turn_all(test)
    offset = measure.fixed_offset(measure.references("validation", n))
    (mine, mine_turned), (random, random_turned) = (
        [looks_from_it(look, some)[head] for some in (test, others)]
        for look, head in zip(looks, heads, strict=True)
    )
    (it, nouns), (_, other_nouns) = map(measure.places, (test, others))
    first = torch.minimum(nouns, other_nouns)
    own, untrained = ("{}.{}".format(*head) for head in heads)
    ways = (
        (TEXTS("mine", name=name, head=own), mine, mine_turned),
        (TEXTS("random", head=untrained), random, random_turned),
        (TEXTS("offset", n=-offset), it + offset, it + offset),
        (TEXTS("first"), first, first),
    )
    found = []
    for who, here, there in ways:
        right = here == nouns
        both = right & (there == other_nouns)
        found.append(Resolution(who, *(float(one.double().mean()) for one in (right, both))))
    return [*found, Resolution(TEXTS("coin"), 1 / 2, 1 / 4)]


def tell(model: Model = None) -> Story:
    """The demo: one row of attention in two sentences that differ in their last word."""
    source = common.open_own(model or TOY)
    records, name, is_toy = (
        list(common.read_words(source, (TIRED, WIDE))),
        common.name_of(source),
        source.name == TOY,
    )
    words = [words_of(text) for text in (TIRED, WIDE)]
    it, named = words[0].index(IT), 0.0
    nouns: Sequence[str] = ("", "")
    *looks, n = common.looks_of(source, SENTENCES)
    heads = [best_head(look, n) for look in looks]
    if is_toy:
        card, toy = common.open_model(TOY, LanguageEncoder)
        with torch.inference_mode():
            places = toy(common.numbers(card.source, words)).referents[:, it].argmax(dim=-1)
        nouns, named = card.source.decode(places.tolist()), measure.named_referents(toy, n=n)
    head, found = heads[0], measure_shares(name, looks, heads, n)
    patterns = [record.pattern(*head) for record in records]
    rows = [pattern[it] for pattern in patterns]
    (first, here), (second, there) = looks_most = [
        (w[row.argmax()], row.max()) for w, row in zip(words, rows, strict=True)
    ]
    says = [
        TEXTS.filled(end=w[-2], word=at, weight=most)
        for w, (at, most) in zip(words, looks_most, strict=True)
    ]
    mine, random, *_, coin = found
    say = TEXTS.filled(
        name=name,
        head=head_name(head),
        n=n,
        tired=TIRED[:-1],
        told=TEXTS("told") if is_toy else Phrase("", ""),
        who="" if is_toy else f"{name} {head[0]}.{head[1]}: ",
        first=first,
        here=here,
        second=second,
        there=there,
        wide=words[1][-2],
        turns=percent(mine.turned),
        random=percent(random.turned),
        coin=percent(coin.turned),
        rows=common.ROWS,
        share=percent(named),
        looks=percent(mine.right),
        more=TEXTS("more") if named > mine.right else Phrase("", ""),
    )
    mine_turned, random_turned = (Estimate.of_share(one.turned, n) for one in (mine, random))
    clear = mine_turned.low > max(random_turned.high, coin.turned)
    shares = ((one.who, percent(one.right), percent(one.turned)) for one in found)
    parts: list[str | Table] = [
        "introduction",
        _looks(says, nouns),
        *(["ahead"] if records[0].kind == "decoder" else []),
        _row(words, rows),
        common.table(say, "table", shares),
        *(["whole"] if is_toy else []),
        say("turned", verdict=say("more_than_chance" if clear else "no_more")),
        *common.notes_of(records),
    ]
    return common.story(
        say,
        parts,
        _picture(patterns, head, words, rows),
        title="title_same" if first == second else "title",
        receipt=receipt_of(records[0]),
        views=_views(says, head, it, int(rows[0].argmax()) if is_toy else None),
        records=() if is_toy else records,
    )


def _looks(says: list[Texts], nouns: Sequence[str]) -> Phrase:
    looks = (
        say("looks_and_names" if noun else "looks", noun=noun)
        for say, noun in zip(says, nouns, strict=True)
    )
    found = join_phrases(looks, "; ", " ")
    return join_phrases([Phrase(f"{found[0].upper()}{found[1:]}.", found.ko), TEXTS("one_word")])


def _views(says: list[Texts], head: Head, it: int, key: int | None) -> list[StoryView]:
    """The row in both sentences; how its weight on a key comes about, where there is one; all heads."""
    views = [
        StoryView(text=say("view"), sentence=text, record=number, head=head, query=it)
        for number, (say, text) in enumerate(zip(says, (TIRED, WIDE), strict=True))
    ]
    step = (
        [] if key is None else [replace(views[0], text=says[0]("view_step"), key=key, step="score")]
    )
    return [*views, *step, StoryView(text=TEXTS("view_all"), sentence=TIRED)]


def _row(words: list[list[str]], rows: list[np.ndarray]) -> Table:
    ends = (f"... {sentence[-2]}" for sentence in words)
    cells = tuple(zip(_labels(words, " / "), *(row.tolist() for row in rows), strict=True))
    top = float(max(row.max() for row in rows))
    return Table(TEXTS("row"), (TEXTS("word"), *ends), cells, shade=(0.0, top))


def _labels(words: list[list[str]], between: str) -> tuple[str, ...]:
    """The words of both sentences, each once where it is the same in both."""
    return tuple(between.join(dict.fromkeys(pair)) for pair in zip(*words, strict=True))


def _picture(
    patterns: list[np.ndarray], head: Head, words: list[list[str]], rows: list[np.ndarray]
) -> Iterator[Panel]:
    name, top = head_name(head), float(max(pattern.max() for pattern in patterns))
    for pattern, sentence in zip(patterns, words, strict=True):
        yield common.square(TEXTS("pattern", name=name, end=sentence[-2]), pattern, sentence, top)
    series = Series.each({sentence[-2]: row for sentence, row in zip(words, rows, strict=True)})
    yield Bars(TEXTS("bars", name=name), _labels(words, "/"), series, TEXTS("weight"))
