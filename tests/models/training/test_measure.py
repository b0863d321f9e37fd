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
from attnviz.models.language.sentences import GoldSentence, Pair, Reference
from attnviz.models.language.vocabulary import load_vocabulary
from attnviz.models.language_models import LanguageDecoder, LanguageEncoder, Reading
from attnviz.models.seq2seq import RecurrentTranslation, RecurrentTranslator
from attnviz.models.training import measure

WORDS, SOURCE, KOREAN = (
    load_vocabulary("english"),
    load_vocabulary("source"),
    load_vocabulary("target"),
)
SMALL = LanguageConfig(n_words=len(WORDS), d_model=6, n_heads=3, n_layers=2, d_ff=5)


def constant(words: Tensor, word: str) -> Tensor:
    """One word, said at every place."""
    logits = torch.zeros(*words.shape, len(WORDS))
    logits[..., WORDS.encode([word])[0]] = 1
    return logits


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
        logits = constant(words, self.word)
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
        assert measure.decided_words(Looking(SMALL), n=60) == pytest.approx(share)

    def test_named_referents(self) -> None:
        """Whoever always names the street is right as often as it is the street."""
        model = Looking(SMALL)
        model.word = "street"
        nouns = [s.words[s.reference.noun] for s in measure.references("test", 60) if s.reference]
        assert 0 < nouns.count("street") < 20
        assert measure.named_referents(model, n=60) == pytest.approx(nouns.count("street") / 60)

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
        assert measure.reference_head(Looking(SMALL), 40) == (1, 2)

    def test_turning(self) -> None:
        """A head that reads the last word turns with it; one that always looks at one place never does."""
        made = measure.references("test", 40)
        assert measure.accuracy_when_swapped(Looking(SMALL), (1, 2), made) == 1
        assert measure.accuracy_when_swapped(Looking(SMALL), (0, 1), made) == 0


class TestReferences:
    """Tired turned to wide, and the best guess without reading."""

    def test_turned(self) -> None:
        """The last word, and with it the noun."""
        words = [
            "the",
            "animal",
            "didn't",
            "cross",
            "the",
            "street",
            "because",
            "it",
            "was",
            "too",
            "tired",
            ".",
        ]
        tired = GoldSentence(words=tuple(words), kind="reference", reference=Reference(7, 1, 5))
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
    assert measure.next_words(Uniform(SMALL), n=20) == pytest.approx(math.log(len(WORDS)), abs=1e-4)


def pair(source: str, target: str, sure: str = "", more: str = "") -> Pair:
    """A pair with links written as "0-0 1-2"."""
    links = [{(int(link[0]), int(link[2])) for link in told.split()} for told in (sure, more)]
    return Pair(
        english=tuple(source.split()),
        korean=tuple(target.split()),
        sure=frozenset(links[0]),
        possible=frozenset(links[0] | links[1]),
    )


class Parrot(RecurrentTranslator):
    """A translator that says what it is told to, and looks from step t at word t."""

    def __init__(self, said: dict[str, str], *, ends: bool = True) -> None:
        super().__init__(
            RecurrentConfig(
                n_source_words=len(SOURCE), n_target_words=len(KOREAN), d_embedding=3, d_hidden=5
            )
        )
        self.said, self.ends = said, ends

    def translate(self, source: Tensor, **_: Any) -> RecurrentTranslation:
        rows = []
        for row in source.tolist():
            words = " ".join(SOURCE.decode([number for number in row if number]))
            rows.append([*KOREAN.encode(self.said[words].split()), *([3] if self.ends else [])])
        width = max(map(len, rows))
        words_said = torch.tensor([row + [0] * (width - len(row)) for row in rows])
        return RecurrentTranslation(words_said, torch.zeros(*words_said.shape, len(KOREAN)), None)

    def forward(self, source: Tensor, target: Tensor, **_: Any) -> RecurrentTranslation:
        looks = torch.eye(target.shape[1], source.shape[1]).expand(len(source), -1, -1)
        return RecurrentTranslation(target, torch.zeros(*target.shape, len(KOREAN)), looks)


LOVE = pair("i love all you", "나는 너희 모두를 사랑한다", "0-0 1-3 2-2 3-1")
PRINCE = pair("there is a prince", "왕자가 있다", "0-3 1-1", "0-2 1-0")


class TestTranslations:
    """Right and wrong words."""

    def test_exact_match_and_word_accuracy(self) -> None:
        """One of two is right; 4 + 1 of 6 words, since what is missing is wrong."""
        model = Parrot({"i love all you": " ".join(LOVE.korean), "there is a prince": "왕자가"})
        hits = measure.hits(model, [LOVE, PRINCE])
        assert hits.exact.tolist().count(True) == 1
        assert hits.word_accuracy == pytest.approx(5 / 6)


class TestAlignmentError:
    """1 - (|A and S| + |A and P|) / (|A| + |S|)."""

    def test_by_hand(self) -> None:
        """S = {0-0, 1-2}, P = S and 2-1, A = {0-0, 1-1, 2-1}: 1 - (1 + 2) / (3 + 2)."""
        one = pair("a b c", "x y z", "0-0 1-2", "2-1")
        assert measure.alignment_error([[0, 1, 1]], [one]) == pytest.approx(0.4)
        # All sure links found, the rest possible: no error. None found: all error.
        assert measure.alignment_error([[0, 2, 1]], [one]) == 0
        assert measure.alignment_error([[9, 9, 9]], [one]) == 1

    def test_is_summed_over_pairs(self) -> None:
        """Not averaged: 1 - (1 + 2 + 2 + 2) / (5 + 4)."""
        one, other = pair("a b c", "x y z", "0-0 1-2", "2-1"), pair("a b", "x y", "0-1 1-0")
        error = measure.alignment_error([[0, 1, 1], [1, 0]], [one, other])
        assert error == pytest.approx(2 / 9)
