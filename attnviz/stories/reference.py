"""Reference: what "it" looks at, when it is tired and when it is wide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from attnviz.attention import Attention
from attnviz.capture.attend import attend_all
from attnviz.capture.source import open_source
from attnviz.models.training import measure
from attnviz.models.training.measure import Head
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories.common import ROWS, head_name, numbers, open_model, percent, proved, square, words_of
from attnviz.stories.record import Bars, Matrix, Series, Story, Table
from attnviz.text.phrase import Phrase

TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
IT = "it"
SENTENCES = measure.SAMPLES
"""How many unseen sentences each share is measured on: as many as what the card says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """The share of unseen test sentences in which something is so."""

    named: float  # the model names the noun that "it" stands for
    looks: float  # the head's largest weight from "it" is on that noun
    turns: float  # it is, both as the sentence is and with its last word turned
    offset: int  # the distance from "it" at which that noun stands most often in validation sentences
    at_offset: float  # it stands at this distance
    at_offset_turned: float  # both this noun and the one after turning stand there
    first: float  # it is the first of the two nouns
    first_turned: float  # it is, both times
    untrained: float  # as `looks`, for the best head of a model of the same sizes with random weights
    untrained_turns: float  # as `turns`, likewise
    untrained_head: Head  # which head that is; it is chosen on validation sentences


def measure_shares(model: LanguageEncoder, head: Head) -> Shares:
    """Try a head, and what stands beside it, on unseen sentences."""
    test, validation = measure.references("test", SENTENCES), measure.references("validation", SENTENCES)
    new = measure.untrained(model.config)
    other = measure.reference_head(new, SENTENCES)
    offset = measure.fixed_offset(validation)
    references = [s.reference for s in test if s.reference]
    return Shares(
        named=measure.named_referents(model, n=SENTENCES),
        looks=float(measure.right_looks(model, test)[head]),
        turns=measure.turning_looks(model, head, test),
        offset=offset,
        at_offset=measure.offset_looks(offset, test),
        at_offset_turned=float(np.mean([{r.noun - r.pronoun, r.other - r.pronoun} == {offset} for r in references])),
        first=float(np.mean([r.noun < r.other for r in references])),
        first_turned=float(np.mean([r.noun < r.other < r.noun for r in references])),
        untrained=float(measure.right_looks(new, test)[other]),
        untrained_turns=measure.turning_looks(new, other, test),
        untrained_head=other,
    )


@torch.inference_mode()
def tell() -> Story:
    """The demo: one row of attention in two sentences that differ in their last word."""
    card, model = open_model("toy", LanguageEncoder)
    head = int(card.quality["reference layer"]), int(card.quality["reference head"])
    texts = (TIRED, WIDE)
    records = attend_all(texts, open_source("toy"))
    words = [words_of(text) for text in texts]
    it = words[0].index(IT)
    named = card.source.decode(model(numbers(card.source, words)).referents[:, it].argmax(dim=-1).tolist())
    rows = [record.pattern(*head)[it] for record in records]
    (first, here), (second, there) = ((words[i][row.argmax()], row.max()) for i, row in enumerate(rows))
    name, wide = head_name(head), words[1][-2]
    return Story(
        name="reference",
        title=Phrase(
            f"“it” looks at {first} ({here:.2f}); with {wide} at {second} ({there:.2f})",
            f"“it”이 보는 단어: {first} ({here:.2f}), {wide}이면 {second} ({there:.2f})",
        ),
        parts=(
            Phrase(
                f"""“{TIRED[:-1]}”: what is tired? The animal. With “wide” instead it is the street. toy was trained
                to name the noun that “it” stands for, but nobody told it where to look. Of its heads the one shown
                here, {name}, looked from “it” at the right noun most often in validation sentences.""",
                f"""“{TIRED[:-1]}”에서 피곤한(tired) 것은 무엇일까요? 동물(animal)입니다. 대신 “wide”라고 하면
                길(street)입니다. toy는 “it”이 가리키는 명사를 대도록 배웠지만, 어디를 보라고 배운 적은 없습니다.
                여기서 보는 것은 {name.ko}, 검증 문장에서 “it”이 맞는 명사를 보는 일이 가장 많았던 헤드입니다.""",
            ),
            _looks(words, rows, named),
            _row(words, rows),
            *_how_often(head, measure_shares(model, head)),
        ),
        picture=_picture(records, head, words, rows),
        receipt=proved(records[0]),
    )


def _looks(words: list[list[str]], rows: list[np.ndarray], named: tuple[str, ...]) -> Phrase:
    english, korean = [], []
    for sentence, row, noun in zip(words, rows, named, strict=True):
        most = int(row.argmax())
        english.append(
            f"with “{sentence[-2]}” its row puts the largest weight, {row[most]:.2f}, on “{sentence[most]}”, and the "
            f"model names the {noun} for “it”"
        )
        korean.append(
            f"""“{sentence[-2]}”: “it”의 행에서 가장 큰 가중치({row[most]:.2f})가 “{sentence[most]}”에 있고, 모델이
            대는 명사는 {noun}입니다."""
        )
    return Phrase(
        f"{english[0][0].upper()}{english[0][1:]}; {english[1]}. One word at the end of the sentence has changed.",
        f"{' '.join(korean)} 달라진 것은 문장 끝의 단어 하나뿐입니다.",
    )


def _row(words: list[list[str]], rows: list[np.ndarray]) -> Table:
    labels = [first if first == second else f"{first} / {second}" for first, second in zip(*words, strict=True)]
    return Table(
        title=Phrase("the row of “it”: where it looks", "“it”의 행: 어디를 보는가"),
        columns=(Phrase("word", "단어"), *(f"... {sentence[-2]}" for sentence in words)),
        rows=tuple(zip(labels, *(row.tolist() for row in rows), strict=True)),
        shade=(0.0, float(max(row.max() for row in rows))),
    )


def _how_often(head: Head, shares: Shares) -> tuple[Phrase | Table, ...]:
    mine, other = "{}.{}".format(*head), "{}.{}".format(*shares.untrained_head)
    ways = (
        (f"toy {mine}", shares.looks, shares.turns),
        (
            Phrase(f"random weights, their best: {other}", f"무작위 가중치에서 가장 나은 헤드: {other}"),
            shares.untrained,
            shares.untrained_turns,
        ),
        (
            Phrase(f"always {-shares.offset} words before “it”", f"늘 “it”의 {-shares.offset}단어 앞"),
            shares.at_offset,
            shares.at_offset_turned,
        ),
        (Phrase("always the first noun", "늘 첫째 명사"), shares.first, shares.first_turned),
    )
    table = Table(
        title=Phrase(
            f"who finds the right noun, on {SENTENCES} unseen test sentences",
            f"학습에 쓰지 않은 시험 문장 {SENTENCES}개에서 누가 맞는 명사를 찾는가",
        ),
        columns=(
            Phrase("who (layer.head)", "누가 (층.헤드)"), Phrase("right", "정답"),
            Phrase("right also when turned", "바꾼 뒤에도 정답"),
        ),
        rows=tuple((who, percent(right), percent(turned)) for who, right, turned in ways),
    )  # fmt: skip
    more = Phrase("", "")
    if shares.named > shares.looks:
        more = Phrase(
            "What one head looks at is not all that the model knows.",
            "헤드 하나가 보는 것이 모델이 아는 것의 전부는 아닙니다.",
        )
    named, looks, turns = percent(shares.named), percent(shares.looks), percent(shares.turns)
    return (
        table,
        Phrase(
            f"""The model names the right noun in {named} of them; this head alone looks at it in {looks}. {more}""",
            f"""모델은 이 가운데 {named}에서 맞는 명사를 대고, 이 헤드 하나는 {looks}에서 그 명사를 봅니다.
            {more.ko}""",
        ),
        Phrase(
            f"""Turned: tired becomes wide, or another such word, so that “it” stands for the other noun. What
            always looks at the same place cannot be right both times; this head is in {turns}. {ROWS}""",
            f"""“바꾼 뒤”는 tired를 wide 같은 단어로 바꾸어 “it”이 다른 명사를 가리키게 했을 때입니다. 늘 같은
            자리를 보는 것은 두 번 다 맞힐 수 없지만, 이 헤드는 {turns}에서 두 번 다 맞힙니다. {ROWS.ko}""",
        ),
    )


def _picture(
    records: list[Attention], head: Head, words: list[list[str]], rows: list[np.ndarray]
) -> tuple[Bars | Matrix, ...]:
    last, name = [sentence[-2] for sentence in words], head_name(head)
    labels = [first if first == second else f"{first}/{second}" for first, second in zip(*words, strict=True)]
    return (
        *(
            square(Phrase(f"{name}: ... {end}", f"{name.ko}: ... {end}"), record.pattern(*head), sentence)
            for end, record, sentence in zip(last, records, words, strict=True)
        ),
        Bars(
            title=Phrase(f"{name}: the row of “it”", f"{name.ko}: “it”의 행"),
            labels=tuple(labels),
            series=tuple(Series(name=end, values=tuple(row.tolist())) for end, row in zip(last, rows, strict=True)),
            y_title=Phrase("weight", "가중치"),
        ),
    )
