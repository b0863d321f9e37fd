"""The demo of alignment: its weights, its looks and its error rates, worked out anew."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice, pairwise, product
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from attnviz.capture.attend import attend
from attnviz.models.language import splits
from attnviz.models.language.grammar import load_grammar
from attnviz.models.training import files
from attnviz.models.wholes import TranslationTransformer
from attnviz.stories.lessons import alignment
from attnviz.stories.record import Matrix, Story
from tests.stories.lessons import by_hand_recurrent
from tests.stories.parts import tables, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnviz.models.language.sentences import Pair
    from attnviz.models.training.files import ModelCard

SENTENCES = [sentence.split() for sentence in alignment.SENTENCES]
RIGHT = [sentence.split() for sentence in alignment.RIGHT]
RECURRENT, TRANSFORMER = alignment.RECURRENT, alignment.TRANSFORMER


@cache
def transformer() -> tuple[ModelCard, TranslationTransformer]:
    """The Transformer, opened once."""
    card, model = files.load_home_built(TRANSFORMER)
    assert isinstance(model, TranslationTransformer)
    return card, model


def cross(english: Sequence[str], korean: Sequence[str]) -> np.ndarray:
    """Where the Transformer's head for alignment looks while these words are forced on it [step, source]."""
    card, model = transformer()
    assert card.target is not None
    source = torch.tensor([card.source.encode(english)])
    target = torch.tensor([[*card.target.encode(korean), model.config.end]])
    with torch.inference_mode():
        weights = model(source, target).weights.cross[int(card.quality["alignment layer"])]
    assert weights is not None
    looks: np.ndarray = weights[0, int(card.quality["alignment head"])].numpy()
    return looks


def recurrent(
    english: Sequence[str], korean: Sequence[str] | None = None
) -> by_hand_recurrent.Said:
    """The recurrent model, in numpy."""
    return by_hand_recurrent.say(RECURRENT, english, korean)


def error_rate(looks: Sequence[np.ndarray], pairs: Sequence[Pair]) -> float:
    """Och and Ney 2003, from the largest weight of each Korean word."""
    made = sure = hits = 0
    for look, pair in zip(looks, pairs, strict=True):
        found = {(step, int(look[step])) for step in range(len(pair.korean))}
        made += len(found)
        sure += len(pair.sure)
        hits += sum(link in pair.sure for link in found) + sum(
            link in pair.possible for link in found
        )
    return 1 - hits / (made + sure)


class Wished(Random):
    """Chance that chooses what stands in a sentence, and else takes its turns as they are given."""

    def __init__(self, words: Sequence[str], turns: Sequence[float]) -> None:
        super().__init__()
        self._words, self._turns = set(words), iter(turns)

    def random(self) -> float:
        """The next turn; when all are taken, none is."""
        return next(self._turns, 0.99)

    def choice(self, seq: Sequence[Any]) -> Any:  # type: ignore[override]
        """The first that stands in the sentence, or else the first."""

        def forms(word: Any) -> set[str]:
            if isinstance(word, str):
                return {word}
            return {form for form in word.values() if isinstance(form, str)}

        return next((word for word in seq if forms(word) & self._words), seq[0])


@pytest.mark.parametrize(("kind", "which"), [("clause", 0), ("reference", 1)])
def test_the_right_korean_is_what_the_language_makes_of_it(kind: str, which: int) -> None:
    """The generator, led to these English words, says this Korean, and nothing else."""
    english = [word.lower() for word in SENTENCES[which]]
    grammar = load_grammar("translation")
    grammar = replace(grammar, rules=grammar.rules | {"kinds": {kind: 1}, "clauses": {1: 1}})
    chances = product((0.0, 0.99), repeat=8)  # two of them for the kind and the number of clauses
    pairs = [grammar.pair(Wished(english, turns)).split("\t") for turns in chances]
    said = {in_korean for in_english, in_korean, _ in pairs if in_english == " ".join(english)}
    assert said == {alignment.RIGHT[which]}


@pytest.mark.parametrize("which", [0, 1])
def test_both_models_translate_both_sentences_rightly(which: int) -> None:
    """By themselves, with nothing forced on them."""
    for name in (RECURRENT, TRANSFORMER):
        assert attend(alignment.SENTENCES[which], name).target == alignment.RIGHT[which], name


def test_what_a_model_says_by_itself_is_told_where_it_is_wrong() -> None:
    """A wrong translation is called one; where all are right, that is said."""
    one, other = alignment.RIGHT
    assert alignment._by_themselves([(one, one), (other, other)]) == (
        "By themselves both models generate these very words for both sentences."
    )
    told = alignment._by_themselves([(one, one), (other, one)])
    assert told == (
        f"By itself {TRANSFORMER} generates “{one}” for “{alignment.SENTENCES[1]}”, which is not right."
    )


def test_the_weights_of_the_recurrent_model(story: Story) -> None:
    """After the right words, in numpy: the same weights; a row a step, a column an English word."""
    for panel, english, right in zip(story.picture[:2], SENTENCES, RIGHT, strict=True):
        assert isinstance(panel, Matrix)
        said = recurrent(english, right)
        assert panel.rows == (*right, "<end>")
        assert " ".join(english) in panel.title
        assert panel.columns == tuple(english)
        assert panel.values == pytest.approx(said.weights, abs=1e-4)
        assert panel.values.sum(axis=1) == pytest.approx(1, abs=1e-4)


def test_the_weights_of_the_transformer(story: Story) -> None:
    """Those of its cross attention, its head for alignment, while it says the same words."""
    for panel, english, right in zip(story.picture[2:], SENTENCES, RIGHT, strict=True):
        assert isinstance(panel, Matrix)
        assert panel.rows == (*right, "<end>")
        assert " ".join(english) in panel.title
        assert panel.values == pytest.approx(cross(english, panel.rows[:-1]), abs=1e-5)


def test_each_step_names_the_word_most_looked_at(story: Story) -> None:
    """The place and the weight of the largest number in each row, of both models."""
    for table, english, right, panels in zip(
        tables(story),
        SENTENCES,
        RIGHT,
        zip(story.picture[:2], story.picture[2:], strict=True),
        strict=False,
    ):
        assert english[-1] in table.title
        for step, (number, word, *looks) in enumerate(table.rows):
            assert (number, word) == (step, [*right, "<end>"][step])
            for panel, (look, weight) in zip(panels, (looks[:2], looks[2:]), strict=True):
                assert isinstance(panel, Matrix)
                place = int(panel.values[step].argmax())
                assert look == f"{english[place]} ({place})"
                assert weight == pytest.approx(panel.values[step, place])


def test_the_alignment_crosses(story: Story) -> None:
    """The looks go back to the left, as often as is said; a model that went straight on would fail this."""
    for which, english, right in zip(("first", "second"), SENTENCES, RIGHT, strict=True):
        path = recurrent(english, right).weights[:-1].argmax(axis=1).tolist()
        back = sum(there < here for here, there in pairwise(path))
        assert back >= 1
        words = ", ".join(map(str, path))
        assert (
            f"In the {which} sentence {RECURRENT} looks most at words {words} (counted from 0)"
            in told(story)
        )
        assert f"{back} of {len(path) - 1} moves go back to the left" in told(story)


def test_shapes(story: Story) -> None:
    """Queries x keys, K and V of one length."""
    shapes = [recurrent(*both).weights.shape for both in zip(SENTENCES, RIGHT, strict=True)]
    assert (
        f"{shapes[0][0]} x {shapes[0][1]} and {shapes[1][0]} x {shapes[1][1]} (queries x keys)"
        in told(story)
    )
    assert shapes[1][0] != shapes[1][1]
    n = len(SENTENCES[1])
    assert f"K has {n} rows for the second sentence, V has {n}." in told(story)


def test_the_gold_alignment_is_that_of_an_unseen_pair(story: Story) -> None:
    """Each row: where the model looks, what the word means, whether that is right."""
    table = tables(story)[2]
    pair = next(p for p in splits.pairs("test") if f"“{' '.join(p.english)}”" in table.title)
    assert splits.split_of(pair.english) == "test"
    assert [row[1] for row in table.rows] == list(pair.korean)
    looks = recurrent(pair.english, pair.korean).weights.argmax(axis=1)
    for step, row in enumerate(table.rows):
        gold = sorted(place for at, place in pair.sure if at == step)
        assert row[2] == f"{pair.english[looks[step]]} ({looks[step]})"
        assert row[4] == ", ".join(f"{pair.english[place]} ({place})" for place in gold)
        assert row[5] == ("yes" if (step, looks[step]) in pair.possible else "no")
    firsts = [min(p for at, p in pair.sure if at == step) for step in range(len(pair.korean))]
    assert firsts != sorted(firsts)


def test_error_rates(story: Story) -> None:
    """Of both models and of the diagonal, on the same unseen pairs; the models err less than half as much."""
    pairs = list(islice(splits.pairs("test"), alignment.N_PAIRS))
    rates = [
        error_rate([recurrent(p.english, p.korean).weights.argmax(axis=1) for p in pairs], pairs),
        error_rate([cross(p.english, p.korean).argmax(axis=1) for p in pairs], pairs),
        error_rate(
            [np.arange(len(p.korean)) * len(p.english) // len(p.korean) for p in pairs], pairs
        ),
    ]
    assert [row[1] for row in tables(story)[3].rows] == pytest.approx(rates, abs=2e-3)
    assert max(rates[:2]) < rates[2] / 2
    said = told(story)
    assert f"Over {len(pairs)} unseen pairs" in said
    for name, row in zip((RECURRENT, TRANSFORMER), tables(story)[3].rows, strict=False):
        assert f"{name} errs less ({row[1]:.3f})" in said
    assert f"({rates[2]:.3f})" in said


def test_receipts(story: Story) -> None:
    """Both models' weights were proved, and the largest difference of all that is shown is told."""
    assert story.receipt.count("verified: max difference") == 2
    for name, n in ((RECURRENT, 3), (TRANSFORMER, 2)):
        given = [*zip(alignment.SENTENCES, alignment.RIGHT, strict=True)]
        if n > len(given):
            pair = alignment.crossing_pair()
            given.append((" ".join(pair.english), " ".join(pair.korean)))
        receipts = [attend(english, name, target=right).receipt for english, right in given]
        largest = max(receipt.max_difference for receipt in receipts if receipt)
        (part,) = (part for part in story.receipt.split("; ") if part.startswith(name))
        assert part.endswith(f"the largest of {n} sentences")
        assert float(part.split("max difference ")[1].split()[0]) == pytest.approx(
            largest, rel=0.06
        )
