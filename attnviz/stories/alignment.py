"""English to Korean: which English word each decoding step looks at, and how often that is the right one."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Float32

from attnviz.attention import Attention
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.language import splits
from attnviz.models.language.korean import Pair
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training import measure
from attnviz.models.training.files import ModelCard
from attnviz.models.wholes import TranslationTransformer
from attnviz.stories.common import ROWS, head_name, open_model, prose, steps_panel
from attnviz.stories.record import Cell, Story, Table

RECURRENT, TRANSFORMER = "toy-seq2seq", "toy-transformer"
SENTENCES = (
    "She is eating a green apple",
    "The animal didn't cross the street because it was too wide",
)
RIGHT = ("그녀는 초록색 사과를 먹고 있다", "길이 너무 넓었기 때문에 동물은 건너지 않았다")
"""What the small language makes of them; both models generate it under teacher forcing."""
N_PAIRS = 200
"""Test pairs that the alignment error rate is measured on."""
GOLD_WORDS = range(9, 14)
"""English words of the test pair that is shown with its gold alignment: enough to cross, few enough to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentHead:
    """One head's look at one sentence: the record it is taken from, and the layer and the head."""

    record: Attention
    head: measure.Head

    @property
    def pattern(self) -> Float32[np.ndarray, "step source"]:
        """The weights: a row for each step, a column for each English word."""
        return self.record.pattern(*self.head)

    @property
    def looks(self) -> tuple[int, ...]:
        """The English word that each step looks at most, counted from 0."""
        return tuple(self.pattern.argmax(axis=-1).tolist())

    @property
    def path(self) -> tuple[int, ...]:
        """The same for the Korean words only: the end means no English word."""
        return tuple(
            look for look, token in zip(self.looks, self.record.query_tokens, strict=True) if not token.special
        )

    def look(self, step: int) -> tuple[Cell, ...]:
        """The English word that a step looks at most, with its place, and its weight."""
        place = self.looks[step]
        return f"{self.record.key_tokens[place].text} ({place})", float(self.pattern[step, place])


def alignment_head(card: ModelCard) -> measure.Head:
    """The head that was found to align best on validation pairs."""
    return int(card.quality["alignment layer"]), int(card.quality["alignment head"])


def backward(path: Sequence[int]) -> int:
    """How many steps look further to the left than the one before them."""
    return sum(there < here for here, there in itertools.pairwise(path))


def crossing_pair() -> Pair:
    """The first unseen test pair, of a length to be read, whose gold alignment goes back to the left twice or more."""
    pairs = (pair for pair in splits.pairs("test") if len(pair.english) in GOLD_WORDS)
    return next(pair for pair in pairs if backward([min(gold) for gold in golds(pair) if gold]) > 1)


def golds(pair: Pair) -> tuple[tuple[int, ...], ...]:
    """For each Korean word the English ones that surely mean it, by their places."""
    n = len(pair.korean)
    return tuple(tuple(sorted(place for step, place in pair.sure if step == index)) for index in range(n))


def tell() -> Story:
    """The demo: two sentences whose order Korean turns around, one unseen pair with its gold, the error rate."""
    pair = crossing_pair()
    card, recurrent = open_model(RECURRENT, RecurrentTranslator)
    other, transformer = open_model(TRANSFORMER, TranslationTransformer)
    heads = [alignment_head(card), alignment_head(other)]
    sources = [open_source(name) for name in (RECURRENT, TRANSFORMER)]
    first, second = (
        [
            AlignmentHead(record=attend(sentence, source, target=right), head=head)
            for sentence, right in zip(SENTENCES, RIGHT, strict=True)
        ]
        for source, head in zip(sources, heads, strict=True)
    )
    own = [tuple(attend(sentence, source).target for source in sources) for sentence in SENTENCES]
    gold = AlignmentHead(record=attend(" ".join(pair.english), sources[0], target=" ".join(pair.korean)), head=heads[0])
    return Story(
        name="alignment",
        title="English to Korean: which word each decoding step looks at",
        parts=(
            _what_is_seen(first, recurrent),
            *(_steps(one, two) for one, two in zip(first, second, strict=True)),
            _by_themselves(own),
            _crossing(first),
            _against_gold(gold, pair),
            *_errors((recurrent, transformer), heads),
        ),
        picture=tuple(
            steps_panel(f"{one.record.model}, {head_name(one.head)}: “{one.record.text}”", one.record, one.head)
            for one in (*first, *second)
        ),
        receipt="; ".join(
            f"{name}: {_least_proved([one.record for one in found])}, the largest of {len(found)} sentences"
            for name, found in ((RECURRENT, [*first, gold]), (TRANSFORMER, second))
        ),
    )


def _least_proved(records: Sequence[Attention]) -> str:
    """The proof of the record with the largest difference; one without a receipt has the largest of all."""
    return max(records, key=lambda one: one.receipt.max_difference if one.receipt else np.inf).proof


def _what_is_seen(shown: Sequence[AlignmentHead], model: RecurrentTranslator) -> str:
    shapes = " and ".join(f"{one.pattern.shape[0]} x {one.pattern.shape[1]}" for one in shown)
    with torch.inference_mode():
        encoded = model.encode(torch.tensor([[token.id or 0 for token in shown[-1].record.key_tokens]]))
    lengths = ""
    if encoded.key is not None and encoded.value is not None:
        lengths = f"""Rows and columns need not be equally many; keys and values must: K has {encoded.key.shape[1]} rows
        for the second sentence, V has {encoded.value.shape[1]}."""
    return prose(f"""{RECURRENT} reads an English sentence and generates it in Korean, a word a step. At each step the
    decoder's state is the query; the encoder's states, one for each English word, are the keys and the values. So there
    is a row for each step and a column for each English word: {shapes} (queries x keys) for the two sentences below.
    {lengths} Both models are given the right Korean (teacher forcing), so that their steps can be compared.""")


def _steps(one: AlignmentHead, other: AlignmentHead) -> Table:
    """The steps of both models side by side."""
    return Table(
        title=f"“{one.record.text}”, step by step",
        columns=("step", "forced word", f"{RECURRENT} looks at", "weight", f"{TRANSFORMER} looks at", "weight"),
        rows=tuple(
            (step, token.text, *one.look(step), *other.look(step)) for step, token in enumerate(one.record.query_tokens)
        ),
    )


def _by_themselves(own: Sequence[tuple[str | None, ...]]) -> str:
    """What each model generates when nothing is forced on it, where that is not the right Korean."""
    others = [
        f"by itself {name} generates “{words}” for “{sentence}”, which is not right"
        for sentence, right, generated in zip(SENTENCES, RIGHT, own, strict=True)
        for name, words in zip((RECURRENT, TRANSFORMER), generated, strict=True)
        if words != right
    ]
    if not others:
        return "By themselves both models generate these very words for both sentences."
    text = "; ".join(others)
    return f"{text[0].upper()}{text[1:]}."


def _crossing(shown: Sequence[AlignmentHead]) -> str:
    paths = [
        f"""In the {which} sentence {RECURRENT} looks most at words {", ".join(map(str, one.path))} (counted from 0):
        {backward(one.path)} of {len(one.path) - 1} moves go back to the left."""
        for one, which in zip(shown, ("first", "second"), strict=True)
    ]
    return prose(f"""Korean puts the verb last, so the steps do not walk through the English sentence from left to
    right. {" ".join(paths)} The weights of {TRANSFORMER} are those of its cross attention.""")


def _against_gold(one: AlignmentHead, pair: Pair) -> Table:
    rows = []
    for step, (word, gold) in enumerate(zip(pair.korean, golds(pair), strict=True)):
        hit = (step, one.looks[step]) in pair.possible
        meant = ", ".join(f"{pair.english[place]} ({place})" for place in gold)
        rows.append((step, word, *one.look(step), meant, "yes" if hit else "no"))
    return Table(
        title=f"an unseen test sentence with its gold alignment, {RECURRENT}: “{' '.join(pair.english)}”",
        columns=("step", "forced word", "looks at", "weight", "means", "right"),
        rows=tuple(rows),
    )


def _errors(models: Sequence[measure.Translator], heads: Sequence[measure.Head]) -> tuple[str | Table, ...]:
    """The alignment error rate on unseen pairs, against the diagonal."""
    pairs = list(islice(splits.pairs("test"), N_PAIRS))
    errors = [float(measure.alignment_errors(model, pairs)[head]) for model, head in zip(models, heads, strict=True)]
    diagonal = measure.diagonal_error(pairs)
    names = [f"{name}, {head_name(head)}" for name, head in zip((RECURRENT, TRANSFORMER), heads, strict=True)]
    compared = " and ".join(
        f"{name} {'errs less' if error < diagonal else 'errs no less'} ({error:.3f})"
        for name, error in zip((RECURRENT, TRANSFORMER), errors, strict=True)
    )
    return (
        prose(f"""The test sentences were made with their alignment, which no model was ever shown. The alignment error
        rate (Och and Ney 2003) is 0 where the largest weights agree with it, and 1 where none does. Over {len(pairs)}
        unseen pairs, with the right words forced, {compared} than the diagonal, which looks as far along in English as
        the step is in Korean ({diagonal:.3f}). A head need not look at the very word that is generated next: the
        weights show where the model fetched something, and the encoder may have carried it there. {ROWS}"""),
        Table(
            title=f"alignment error rate on {len(pairs)} unseen test pairs; heads chosen on validation pairs",
            columns=("what looks", "error rate"),
            rows=(*zip(names, errors, strict=True), ("the diagonal", diagonal)),
        ),
    )
