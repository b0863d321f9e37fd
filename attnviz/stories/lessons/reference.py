"""Reference: what "it" looks at, when it is tired and when it is wide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np
import torch

from attnviz.attention import Attention
from attnviz.capture.source import Model, Source
from attnviz.heads.tally import wilson
from attnviz.models.language.english import English
from attnviz.models.language.lexicon import FEELINGS, SHAPES
from attnviz.models.training import measure
from attnviz.models.training.measure import Head
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories import own_model
from attnviz.stories.common import ROWS, head_name, numbers, open_model, percent, proved, square, words_of
from attnviz.stories.own_model import name_of, notes_of, open_own, read_words, written
from attnviz.stories.record import Bars, Matrix, Series, Story, StoryView, Table
from attnviz.text.phrase import Phrase, Texts, joined

TOY = "toy"
TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
IT = "it"
SENTENCES = measure.SAMPLES
"""How many unseen sentences each share of toy is measured on: as many as what the card says."""

Look: TypeAlias = Callable[[Sequence[English]], np.ndarray]
"""Where each head of a model puts its largest weight from "it": words [layer, head, sentence]."""
TEXTS = Texts("""
title_same | {who}“it” looks at {first} ({here:.2f}), and with {wide} too ({there:.2f})
    | {who}“it”이 보는 단어는 {first} ({here:.2f}), {wide}이어도 같음 ({there:.2f})
title | {who}“it” looks at {first} ({here:.2f}); with {wide} at {second} ({there:.2f})
    | {who}“it”이 보는 단어: {first} ({here:.2f}), {wide}이면 {second} ({there:.2f})
told | toy was trained to name the noun that “it” stands for, but nobody told it where to look.
    | toy는 “it”이 가리키는 명사를 대도록 배웠지만, 어디를 보라고 배운 적은 없습니다.
introduction | “{tired}”: what is tired? The animal. With “wide” instead it is the street. {told} Of the heads of {name}
    the one shown here, {head}, looked from “it” at the right noun most often in {shares.n} other sentences of this
    kind.
    | “{tired}”에서 피곤한(tired) 것은 무엇일까요? 동물(animal)입니다. 대신 “wide”라고 하면 길(street)입니다. {told}
    여기서 보는 것은 {name}의 {head}, 같은 종류의 다른 문장 {shares.n}개에서 “it”이 맞는 명사를 보는 일이 가장 많았던
    헤드입니다.
ahead | {name} reads from left to right: at “it” it has not read “tired” or “wide”, so the row of “it” is the same in
    both sentences, and no head of it can turn with the last word.
    | {name}: 왼쪽에서 오른쪽으로만 읽는 모델입니다. “it”의 자리에서는 “tired”도 “wide”도 아직 읽지 않았으므로 “it”의
    행은 두 문장에서 같고, 어느 헤드도 마지막 단어에 따라 달라질 수 없습니다.
table | who finds the right noun, on {shares.n} unseen test sentences
    | 학습에 쓰지 않은 시험 문장 {shares.n}개에서 누가 맞는 명사를 찾는가
columns | who (layer.head); right; right also when turned | 누가 (층.헤드); 정답; 바꾼 뒤에도 정답
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
""", globals())  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """How often a head looks from "it" at the right noun, on unseen test sentences."""

    who: Phrase
    right: float  # as the sentences are
    turned: float  # both so and with their last word turned


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What is tried on the same sentences."""

    n: int  # how many
    head: Head  # chosen on as many validation sentences
    found: tuple[Found, ...]  # the head's; that of random weights; then what needs neither head nor model


def looks_in(source: Source, sentences: Sequence[English]) -> np.ndarray:
    """Where any model looks, word by word."""
    records = read_words(source, [written(one) for one in sentences])
    pronouns = (one.reference.pronoun for one in sentences if one.reference)
    return np.stack([r.weights[:, :, it].argmax(axis=-1) for r, it in zip(records, pronouns, strict=True)], axis=-1)


def looks_of_toy(model: LanguageEncoder, sentences: Sequence[English]) -> np.ndarray:
    """The same of a model that reads numbers of words, all sentences at once."""
    looks: np.ndarray = measure.weights_from_it(model, sentences).argmax(dim=-1).numpy()
    return looks


def best_head(look: Look, n: int) -> Head:
    """The head that looks at the right noun most often, chosen on validation sentences."""
    sentences = measure.references("validation", n)
    right = (look(sentences) == _nouns(sentences)).mean(axis=-1)
    layer, head = divmod(int(right.argmax()), right.shape[1])
    return layer, head


def turned(sentences: Sequence[English]) -> list[English]:
    """The same with tired turned to wide (or back), or to another such word: “it” is the other noun."""
    living = {adjective.english for adjective in FEELINGS}
    return [
        measure.turn(one, (SHAPES if one.words[-2] in living else FEELINGS)[number % len(SHAPES)].english)
        for number, one in enumerate(sentences)
    ]


def measure_shares(name: str, looks: Sequence[Look], heads: Sequence[Head], n: int) -> Shares:
    """Try the heads of a model and of random weights on unseen sentences, beside what needs no head."""
    test = measure.references("test", n)
    others = turned(test)
    (look, untrained), (mine, chance) = looks, ("{}.{}".format(*head) for head in heads)
    offset = measure.fixed_offset(measure.references("validation", n))
    it = np.array([one.reference.pronoun for one in test if one.reference])
    first = np.array([min(one.reference.noun, one.reference.other) for one in test if one.reference])
    ways = (
        (TEXTS("mine", name=name, head=mine), *(look(some)[heads[0]] for some in (test, others))),
        (TEXTS("random", head=chance), *(untrained(some)[heads[1]] for some in (test, others))),
        (TEXTS("offset", n=-offset), it + offset, it + offset),
        (TEXTS("first"), first, first),
    )
    found = []
    for who, here, there in ways:
        right = here == _nouns(test)
        both = right & (there == _nouns(others))
        found.append(Found(who=who, right=float(right.mean()), turned=float(both.mean())))
    found.append(Found(who=TEXTS("coin"), right=1 / 2, turned=1 / 4))
    return Shares(n=n, head=heads[0], found=tuple(found))


def _nouns(sentences: Sequence[English]) -> np.ndarray:
    return np.array([one.reference.noun for one in sentences if one.reference])


def tell(model: Model = None) -> Story:
    """The demo: one row of attention in two sentences that differ in their last word."""
    texts = (TIRED, WIDE)
    source = open_own(model or TOY)
    records = list(read_words(source, texts))
    words = [words_of(text) for text in texts]
    name, it, named = name_of(source), words[0].index(IT), None
    nouns: Sequence[str] = ("", "")
    if source.name == TOY:
        card, toy = open_model(TOY, LanguageEncoder)
        with torch.inference_mode():
            places = toy(numbers(card.source, words)).referents[:, it].argmax(dim=-1)
        nouns, named = card.source.decode(places.tolist()), measure.named_referents(toy, n=SENTENCES)
        models = toy, measure.untrained(toy.config)
        looks: list[Look] = [partial(looks_of_toy, one) for one in models]
        shares = measure_shares(name, looks, [measure.reference_head(one, SENTENCES) for one in models], SENTENCES)
    else:
        looks = [partial(looks_in, one) for one in (source, source.untrained())]
        n = own_model.SENTENCES
        shares = measure_shares(name, looks, [best_head(look, n) for look in looks], n)
    rows = [record.pattern(*shares.head)[it] for record in records]
    say = TEXTS.given(
        name=name, head=head_name(shares.head), shares=shares, tired=TIRED[:-1],
        told=TEXTS("told") if name == TOY else Phrase("", ""),
    )  # fmt: skip
    return Story(
        name="reference",
        title=_title(name, shares.head, words, rows),
        parts=(
            say("introduction"),
            _looks(words, rows, nouns),
            *([say("ahead")] if records[0].kind == "decoder" else []),
            _row(words, rows),
            *_how_often(say, shares, named),
            *notes_of(records),
        ),
        picture=_picture(records, shares.head, words, rows),
        views=_views(shares.head, words, rows, is_toy=name == TOY),
        records=() if name == TOY else tuple(records),
        receipt=proved(records[0]),
    )


def _title(name: str, head: Head, words: list[list[str]], rows: list[np.ndarray]) -> Phrase:
    (first, here), (second, there) = ((words[i][row.argmax()], row.max()) for i, row in enumerate(rows))
    who = "" if name == TOY else f"{name} {head[0]}.{head[1]}: "
    say = TEXTS.given(who=who, first=first, here=here, wide=words[1][-2], second=second, there=there)
    return say("title_same" if first == second else "title")


def _looks(words: list[list[str]], rows: list[np.ndarray], nouns: Sequence[str]) -> Phrase:
    looks = []
    for sentence, row, noun in zip(words, rows, nouns, strict=True):
        most = int(row.argmax())
        say = TEXTS.given(end=sentence[-2], weight=row[most], word=sentence[most], noun=noun)
        looks.append(say("looks_and_names" if noun else "looks"))
    found = joined(looks, "; ", " ")
    return joined([Phrase(f"{found[0].upper()}{found[1:]}.", found.ko), TEXTS("one_word")])


def _views(head: Head, words: list[list[str]], rows: list[np.ndarray], *, is_toy: bool) -> tuple[StoryView, ...]:
    """The row in both sentences; how its weight comes about, which a record of words does not hold; all heads."""
    views = []
    for number, (text, sentence, row) in enumerate(zip((TIRED, WIDE), words, rows, strict=True)):
        most = int(row.argmax())
        say = TEXTS.given(end=sentence[-2], weight=row[most], word=sentence[most])
        at = StoryView(
            text=say("view"), sentence=text, record=number, head="{}.{}".format(*head), query=sentence.index(IT)
        )
        views += [at, replace(at, text=say("view_step"), key=most, step="score")]
    first, step, second, _ = views
    return first, second, *([step] if is_toy else []), StoryView(text=TEXTS("view_all"), sentence=TIRED)


def _row(words: list[list[str]], rows: list[np.ndarray]) -> Table:
    labels = [first if first == second else f"{first} / {second}" for first, second in zip(*words, strict=True)]
    return Table(
        title=TEXTS("row"),
        columns=(TEXTS("word"), *(f"... {sentence[-2]}" for sentence in words)),
        rows=tuple(zip(labels, *(row.tolist() for row in rows), strict=True)),
        shade=(0.0, float(max(row.max() for row in rows))),
    )


def _how_often(say: Texts, shares: Shares, named: float | None) -> tuple[Phrase | Table, ...]:
    mine, random, *_, coin = shares.found
    table = Table(
        title=say("table"),
        columns=say.names("columns"),
        rows=tuple((one.who, percent(one.right), percent(one.turned)) for one in shares.found),
    )
    say = say.given(
        turns=percent(mine.turned), random=percent(random.turned), coin=percent(coin.turned), rows=ROWS,
    )  # fmt: skip
    clear = wilson(mine.turned, shares.n)[0] > max(wilson(random.turned, shares.n)[1], coin.turned)
    turned = say("turned", verdict=say("more_than_chance" if clear else "no_more"))
    if named is None:
        return table, turned
    more = say("more") if named > mine.right else Phrase("", "")
    return table, say("whole", share=percent(named), looks=percent(mine.right), more=more), turned


def _picture(
    records: list[Attention], head: Head, words: list[list[str]], rows: list[np.ndarray]
) -> tuple[Bars | Matrix, ...]:
    last, name = [sentence[-2] for sentence in words], head_name(head)
    top = float(max(record.pattern(*head).max() for record in records))
    labels = [first if first == second else f"{first}/{second}" for first, second in zip(*words, strict=True)]
    return (
        *(
            square(TEXTS("pattern", name=name, end=end), record.pattern(*head), sentence, top)
            for end, record, sentence in zip(last, records, words, strict=True)
        ),
        Bars(
            title=TEXTS("bars", name=name),
            labels=tuple(labels),
            series=Series.each(dict(zip(last, rows, strict=True))),
            y_title=TEXTS("weight"),
        ),
    )
