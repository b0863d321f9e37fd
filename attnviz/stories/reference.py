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
from attnviz.stories.common import ROWS, head_name, numbers, open_model, percent, prose, square, words_of
from attnviz.stories.record import Bars, Matrix, Series, Story, Table

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
    shares = measure_shares(model, head)
    return Story(
        name="reference",
        title=_found(words, rows),
        parts=(
            prose(f"""“{TIRED[:-1]}”: what is tired? The animal. With “wide” instead it is the street. toy was trained
            to name the noun that “it” stands for, but nobody told it where to look. Of its heads the one shown here,
            {head_name(head)}, looked from “it” at the right noun most often in validation sentences."""),
            _looks(words, rows, named),
            _row(words, rows),
            *_how_often(head, shares),
        ),
        picture=_picture(records, head, words, rows),
        receipt=records[0].proof,
    )


def _found(words: list[list[str]], rows: list[np.ndarray]) -> str:
    (tired, here), (wide, there) = ((words[i][row.argmax()], row.max()) for i, row in enumerate(rows))
    return f"“it” looks at {tired} ({here:.2f}); with {words[1][-2]} at {wide} ({there:.2f})"


def _looks(words: list[list[str]], rows: list[np.ndarray], named: tuple[str, ...]) -> str:
    looks = []
    for sentence, row, noun in zip(words, rows, named, strict=True):
        most = int(row.argmax())
        looks.append(
            f"with “{sentence[-2]}” its row puts the largest weight, {row[most]:.2f}, on “{sentence[most]}”, and the "
            f"model names the {noun} for “it”"
        )
    return f"{looks[0][0].upper()}{looks[0][1:]}; {looks[1]}. One word at the end of the sentence has changed."


def _row(words: list[list[str]], rows: list[np.ndarray]) -> Table:
    labels = [first if first == second else f"{first} / {second}" for first, second in zip(*words, strict=True)]
    return Table(
        title="the row of “it”: where it looks",
        columns=("word", *(f"... {sentence[-2]}" for sentence in words)),
        rows=tuple(zip(labels, *(row.tolist() for row in rows), strict=True)),
        shade=(0.0, float(max(row.max() for row in rows))),
    )


def _how_often(head: Head, shares: Shares) -> tuple[str | Table, ...]:
    ways = (
        ("toy {}.{}".format(*head), shares.looks, shares.turns),
        ("random weights, their best: {}.{}".format(*shares.untrained_head), shares.untrained, shares.untrained_turns),
        (f"always {-shares.offset} words before “it”", shares.at_offset, shares.at_offset_turned),
        ("always the first noun", shares.first, shares.first_turned),
    )
    table = Table(
        title=f"who finds the right noun, on {SENTENCES} unseen test sentences",
        columns=("who (layer.head)", "right", "right also when turned"),
        rows=tuple((who, percent(right), percent(turned)) for who, right, turned in ways),
    )
    more = " What one head looks at is not all that the model knows." if shares.named > shares.looks else ""
    return (
        table,
        prose(f"""The model names the right noun in {percent(shares.named)} of them; this head alone looks at it in
        {percent(shares.looks)}.{more}"""),
        prose(f"""Turned: tired becomes wide, or another such word, so that “it” stands for the other noun. What always
        looks at the same place cannot be right both times; this head is in {percent(shares.turns)}. {ROWS}"""),
    )


def _picture(
    records: list[Attention], head: Head, words: list[list[str]], rows: list[np.ndarray]
) -> tuple[Bars | Matrix, ...]:
    last = [sentence[-2] for sentence in words]
    labels = [first if first == second else f"{first}/{second}" for first, second in zip(*words, strict=True)]
    return (
        *(
            square(f"{head_name(head)}: ... {name}", record.pattern(*head), sentence)
            for name, record, sentence in zip(last, records, words, strict=True)
        ),
        Bars(
            title=f"{head_name(head)}: the row of “it”",
            labels=tuple(labels),
            series=tuple(Series(name=name, values=tuple(row.tolist())) for name, row in zip(last, rows, strict=True)),
            y_title="weight",
        ),
    )
