"""The demo of alignment: its weights, its looks and its error rates, worked out anew."""

from __future__ import annotations

from functools import cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from attnviz.demos import alignment
from attnviz.models.language import splits
from attnviz.models.training import shipped
from attnviz.models.translation import TranslationTransformer
from attnviz.story import Matrix, Story, Table
from tests.demos import by_hand_recurrent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnviz.models.language.korean import Pair

SENTENCES = [sentence.split() for sentence in alignment.SENTENCES]
RECURRENT, TRANSFORMER = alignment.RECURRENT, alignment.TRANSFORMER


@pytest.fixture(scope="module")
def story() -> Story:
    """The demo, told once."""
    return alignment.tell()


def told(story: Story) -> str:
    """Its sentences."""
    return " ".join(part for part in story.parts if isinstance(part, str))


def tables(story: Story) -> list[Table]:
    """Its tables: the two sentences, the one with gold, the error rates."""
    return [part for part in story.parts if isinstance(part, Table)]


@cache
def transformer() -> tuple[shipped.Card, TranslationTransformer]:
    """The Transformer, opened once."""
    card, model = shipped.load(shipped.FOLDER / f"{TRANSFORMER}.safetensors")
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


def recurrent(english: Sequence[str], korean: Sequence[str] | None = None) -> by_hand_recurrent.Said:
    """The recurrent model, in numpy."""
    return by_hand_recurrent.say(RECURRENT, english, korean)


def error_rate(looks: Sequence[np.ndarray], pairs: Sequence[Pair]) -> float:
    """Och and Ney 2003, from the largest weight of each Korean word."""
    made = sure = hits = 0
    for look, pair in zip(looks, pairs, strict=True):
        found = {(step, int(look[step])) for step in range(len(pair.korean))}
        made += len(found)
        sure += len(pair.sure)
        hits += sum(link in pair.sure for link in found) + sum(link in pair.possible for link in found)
    return 1 - hits / (made + sure)


def test_the_weights_of_the_recurrent_model(story: Story) -> None:
    """Free running, in numpy: the same words, the same weights; a row a step, a column an English word."""
    for panel, english in zip(story.picture[:2], SENTENCES, strict=True):
        assert isinstance(panel, Matrix)
        said = recurrent(english)
        assert panel.rows == said.words
        assert panel.columns == tuple(english)
        assert panel.values == pytest.approx(said.weights, abs=1e-4)
        assert panel.values.sum(axis=1) == pytest.approx(1, abs=1e-4)


def test_the_weights_of_the_transformer(story: Story) -> None:
    """Those of its cross attention, its head for alignment, while it says the same words."""
    for panel, english in zip(story.picture[2:], SENTENCES, strict=True):
        assert isinstance(panel, Matrix)
        assert panel.rows == recurrent(english).words
        assert panel.values == pytest.approx(cross(english, panel.rows[:-1]), abs=1e-5)


def test_each_step_names_the_word_most_looked_at(story: Story) -> None:
    """The place and the weight of the largest number in each row, of both models."""
    for table, english, panels in zip(
        tables(story), SENTENCES, zip(story.picture[:2], story.picture[2:], strict=True), strict=False
    ):
        assert english[-1] in table.title
        for step, (number, word, *looks) in enumerate(table.rows):
            assert (number, word) == (step, recurrent(english).words[step])
            for panel, (look, weight) in zip(panels, (looks[:2], looks[2:]), strict=True):
                assert isinstance(panel, Matrix)
                place = int(panel.values[step].argmax())
                assert look == f"{english[place]} ({place})"
                assert weight == pytest.approx(panel.values[step, place])


def test_the_alignment_crosses(story: Story) -> None:
    """The looks go back to the left, as often as is said; a model that went straight on would fail this."""
    for which, english in zip(("first", "second"), SENTENCES, strict=True):
        path = recurrent(english).weights[:-1].argmax(axis=1).tolist()
        back = sum(there < here for here, there in pairwise(path))
        assert back >= 1
        words = ", ".join(map(str, path))
        assert f"In the {which} sentence {RECURRENT} looks most at words {words} (counted from 0)" in told(story)
        assert f"{back} of {len(path) - 1} moves go back to the left" in told(story)


def test_shapes(story: Story) -> None:
    """Queries x keys, K and V of one length."""
    shapes = [recurrent(english).weights.shape for english in SENTENCES]
    assert f"{shapes[0][0]} x {shapes[0][1]} and {shapes[1][0]} x {shapes[1][1]} (queries x keys)" in told(story)
    assert shapes[1][0] != shapes[1][1]
    n = len(SENTENCES[1])
    assert f"K has {n} rows for the second sentence, V has {n}." in told(story)


def test_both_models_say_the_same_or_it_is_told(story: Story) -> None:
    """What the Transformer says by itself is compared with what it was made to say."""
    card, model = transformer()
    assert card.target is not None
    for english in SENTENCES:
        own = model.translate(torch.tensor([card.source.encode(english)])).words[0].tolist()
        words = card.target.decode(own)
        if words != recurrent(english).words:
            assert "by itself it says" in told(story)
            assert " ".join(words[:-1]) in told(story)
            return
    assert "says the same words by itself" in told(story)


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
        error_rate([np.arange(len(p.korean)) * len(p.english) // len(p.korean) for p in pairs], pairs),
    ]
    assert [row[1] for row in tables(story)[3].rows] == pytest.approx(rates, abs=2e-3)
    assert max(rates[:2]) < rates[2] / 2
    said = told(story)
    assert f"Over {len(pairs)} unseen pairs" in said
    for name, row in zip((RECURRENT, TRANSFORMER), tables(story)[3].rows, strict=False):
        assert f"{name} errs less ({row[1]:.3f})" in said
    assert f"({rates[2]:.3f})" in said


def test_receipts(story: Story) -> None:
    """Both models' weights were proved."""
    assert story.receipt.count("verified: max difference") == 2
