"""Measures, of models whose answers are known."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import pytest
import torch
from torch import Tensor

from attnviz.models.config import LanguageConfig, RecurrentConfig
from attnviz.models.language import splits
from attnviz.models.language.sentences import Reference, parse_pair, parse_sentence
from attnviz.models.language.vocabulary import load_vocabulary
from attnviz.models.language_models import LanguageDecoder, LanguageEncoder, Reading
from attnviz.models.seq2seq import RecurrentTranslation, RecurrentTranslator
from attnviz.models.training import measure
from attnviz.models.training.tasks import pad_numbers

WORDS, SOURCE, KOREAN = map(load_vocabulary, ("english", "source", "target"))
SMALL = LanguageConfig(n_words=len(WORDS), d_model=6, n_heads=3, n_layers=2, d_ff=5)


class Looking(LanguageEncoder):
    """An encoder that says one word, and whose heads look from every place where they are told to.

    Heads 0 and 1 look at places 0 and 1; head 2 of layer 1 looks at place `animal` where somebody is tired.
    """

    word = "is"

    def forward(self, words: Tensor, **_: Any) -> Reading:
        weights = torch.full((2, *words.shape[:1], 3, words.shape[1], words.shape[1]), 0.01)
        for head in (0, 1):
            weights[:, :, head, :, head] = 0.5
        weights[:, :, 2, :, 2] = 0.5
        for row, sentence in enumerate(words.tolist()):
            at = find(sentence)
            if at is not None:
                weights[1, row, 2, :, 2] = 0.01
                weights[1, row, 2, :, at] = 0.6
        logits = torch.zeros(*words.shape, len(WORDS))
        logits[..., WORDS.encode([self.word])[0]] = 1
        return Reading(logits, logits, torch.zeros(*words.shape, 6), list(weights))


def find(sentence: list[int]) -> int | None:
    """Where the right noun is in a sentence of reference, worked out anew: before "didn't" or before "because"."""
    words = WORDS.decode(sentence)
    if "because" not in words:
        return None
    last = words[words.index("because") + 4]
    lives = last in splits.endings("english")[0]
    failed = next(word for word in words if word in {"didn't", "couldn't"})
    return words.index(failed if lives else "because") - 1


class TestEncoder:
    """Hidden words and references."""

    def test_decided_words(self) -> None:
        """Whoever always says "is" is right as often as "is" is decided."""
        made = list(islice(splits.sentences("test"), 60))
        decided = [s.words[place] for s in made for place in s.decided]
        share = decided.count("is") / len(decided)
        assert 0 < share < 0.5
        assert measure.decided_words(Looking(SMALL), made) == pytest.approx(share)

    def test_named_referents(self) -> None:
        """Whoever always names the street is right as often as it is the street."""
        model = Looking(SMALL)
        model.word = "street"
        made = measure.references("test", 60)
        nouns = [s.words[s.reference.noun] for s in made if s.reference]
        assert 0 < nouns.count("street") < 20
        assert measure.named_referents(model, made) == pytest.approx(nouns.count("street") / 60)

    def test_looks(self) -> None:
        """Where each head looks from "it", and how often that is right."""
        made = measure.references("test", 40)
        looks = measure.weights_from_it(Looking(SMALL), made).argmax(dim=-1)
        assert looks.shape == (2, 3, 40)
        assert (looks[:, 0] == 0).all()
        assert (looks[:, 1] == 1).all()
        nouns = [s.reference.noun for s in made if s.reference]
        assert looks[1, 2].tolist() == nouns
        right = measure.reference_accuracy(Looking(SMALL), made)
        assert right[1, 2] == 1
        assert right[0, 1] == pytest.approx(nouns.count(1) / 40)
        assert right[0, 0] == 0
        assert measure.reference_head(Looking(SMALL), made) == (1, 2)

    def test_turning(self) -> None:
        """A head that reads the last word turns with it; one that always looks at one place never does."""
        made = measure.references("test", 40)
        assert measure.accuracy_when_swapped(Looking(SMALL), (1, 2), made) == 1
        assert measure.accuracy_when_swapped(Looking(SMALL), (0, 1), made) == 0


def test_tired_becomes_wide() -> None:
    """The last word is changed, and with it the noun; changed again, it is as before."""
    tired = parse_sentence(
        "reference\tthe animal/animal didn't cross the street/place because it/it was too tired .\t"
        "it animal place\t"
    )
    (other,) = measure.swap_referents([tired])
    assert other.words[:10] == tired.words[:10]
    assert other.words[10] in splits.endings("english")[1]
    assert other.reference == Reference(7, 5, 1)
    assert measure.swap_referents([other])[0].reference == tired.reference


class Uniform(LanguageDecoder):
    """A decoder that knows nothing."""

    def forward(self, words: Tensor, **_: Any) -> tuple[Tensor, list[Tensor | None]]:
        return torch.zeros(*words.shape, len(WORDS)), []


def test_next_words() -> None:
    """Who finds all words alike is surprised by the logarithm of their number."""
    made = list(islice(splits.sentences("test"), 20))
    assert measure.next_words(Uniform(SMALL), made) == pytest.approx(math.log(len(WORDS)), abs=1e-4)


class Parrot(RecurrentTranslator):
    """A translator that says what it is told to."""

    def __init__(self, *said: str) -> None:
        config = RecurrentConfig(n_source_words=len(SOURCE), n_target_words=len(KOREAN))
        super().__init__(config)
        self.said = pad_numbers([[*KOREAN.encode(words.split()), config.end] for words in said])

    def translate(self, source: Tensor, **_: Any) -> RecurrentTranslation:
        return RecurrentTranslation(self.said, torch.zeros(*self.said.shape, len(KOREAN)), None)


def test_right_and_wrong_words() -> None:
    """One of two is right; 4 + 1 of 6 words, since what is missing is wrong."""
    love = parse_pair("i love all you\t나는 너희 모두를 사랑한다\t0-0 1-3 2-2 3-1")
    prince = parse_pair("there is a prince\t왕자가 있다\t0-1 1-1 2p0 3-0")
    hits = measure.hits(Parrot(" ".join(love.korean), "왕자가"), [love, prince])
    assert hits.exact.tolist() == [True, False]
    assert hits.word_accuracy == pytest.approx(5 / 6)


def test_alignment_error() -> None:
    """1 - (|A and S| + |A and P|) / (|A| + |S|), summed over pairs, not averaged.

    S = {0-0, 1-2}, P = S and 2-1, A = {0-0, 1-1, 2-1}: 1 - (1 + 2) / (3 + 2).
    """
    one = parse_pair("a b c\tx y z\t0-0 2-1 1p2")
    assert measure.alignment_error([[0, 1, 1]], [one]) == pytest.approx(0.4)
    # All sure links found, the rest possible: no error. None found: all error.
    assert measure.alignment_error([[0, 2, 1]], [one]) == 0
    assert measure.alignment_error([[9, 9, 9]], [one]) == 1
    other = parse_pair("a b\tx y\t1-0 0-1")
    error = measure.alignment_error([[0, 1, 1], [1, 0]], [one, other])
    assert error == pytest.approx(1 - (1 + 2 + 2 + 2) / (5 + 4))
