"""Whole models: words embedded, read in one direction or both, and each kind of attention apart."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

import torch
from torch import Tensor, nn
from torch.testing import assert_close

from attnviz.models.attention import AttendFunction, scaled_dot_product_attention
from attnviz.models.config import LanguageConfig, ToyConfig, TranslationConfig
from attnviz.models.embedding import WordEmbedding, sinusoidal_positions
from attnviz.models.language_models import (
    LanguageDecoder,
    LanguageEncoder,
    ToyEncoder,
    TranslationTransformer,
    word_vector,
)
from tests.models.parity import words

# Different primes; only d_model must divide by the heads: 3 x 7.
BATCH, SOURCE, TARGET, READ, SAID, HEADS, D_MODEL, D_FF, LAYERS = 3, 11, 5, 23, 19, 3, 21, 17, 2
SIZES: dict[str, Any] = {"d_model": D_MODEL, "n_heads": HEADS, "d_ff": D_FF, "n_layers": LAYERS}
LANGUAGE = LanguageConfig(n_words=READ, **SIZES)
TRANSLATION = TranslationConfig(n_source_words=READ, n_target_words=SAID, **SIZES)


def ready(model: nn.Module) -> Any:
    """The model after training, in double precision, which rounds too little to hide a mistake."""
    return model.double().eval()


def counting(calls: list[tuple[int, int]]) -> AttendFunction:
    """The formula, writing down how many queries met how many keys and keeping the weights to itself."""

    def attend(
        query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, None]:
        calls.append((query.shape[2], key.shape[2]))
        return scaled_dot_product_attention(query, key, value, mask)[0], None

    return attend


class TestPositions:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same)."""

    def test_by_hand(self) -> None:
        """Four wide, the two frequencies are 1 and 1/100; an odd width ends with a sine."""
        expected = [
            [0, 1, 0, 1],
            [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
            [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)],
        ]
        assert_close(sinusoidal_positions(3, 4), torch.tensor(expected))
        assert sinusoidal_positions(2, 5)[0].tolist() == [0, 1, 0, 1, 0]
        assert_close(sinusoidal_positions(2, 5)[1, 4].item(), math.sin(1 / 10_000 ** (4 / 5)))

    def test_word_embedding(self) -> None:
        """A word is its row, times the root of the width, plus the position's wave."""
        embedding, sentence = WordEmbedding(READ, D_MODEL), words(READ, 11)
        rows = math.sqrt(D_MODEL) * embedding.table.weight[sentence]
        assert_close(embedding(sentence), rows + sinusoidal_positions(SOURCE, D_MODEL))
        assert_close(embedding(sentence, positions=False), rows)
        embedding.positions = False
        assert_close(embedding(sentence), rows)


class TestToyEncoder:
    """The encoder with random weights: any words, no vocabulary."""

    def test_korean_typed_in_two_ways(self) -> None:
        """A word of whole syllables and the same word as a Mac stores it are one word."""
        decomposed = unicodedata.normalize("NFD", "사랑")
        assert torch.equal(word_vector("사랑", 7), word_vector(decomposed, 7))

    def test_word_plus_position(self) -> None:
        """Positions are waves, or a row of numbers for each place, the same whatever the sentence, as in BERT."""
        typed = ["I", "I", "love"]
        vectors = torch.stack([word_vector(word, 20) for word in typed])
        assert torch.equal(ToyEncoder().embed(typed), vectors + sinusoidal_positions(3, 20))
        learned = ToyEncoder(ToyConfig(positions="learned"))
        assert torch.equal(learned.embed(typed), vectors + learned.positions(3))
        assert torch.equal(learned.positions(5)[:3], learned.positions(3))


class TestLanguageEncoder:
    """Both directions."""

    def test_padding_changes_nothing(self) -> None:
        """In a batch each sentence gets the numbers that it gets alone."""
        model, sentences = ready(LanguageEncoder(LANGUAGE)), words(READ, 11, 1, 5)
        together = model(sentences)
        for row, n in enumerate((11, 1, 5)):
            alone = model(sentences[row : row + 1, :n])
            assert_close(together.logits[row, :n], alone.logits[0])
            assert_close(together.referents[row, :n], alone.referents[0])
            for pattern, other in zip(together.weights, alone.weights, strict=True):
                assert_close(pattern[row, :, :n, :n], other[0])
                assert (pattern[row, :, :, n:] == 0).all()

    def test_word_order(self) -> None:
        """Without positions shuffled words give the same numbers, shuffled; with them, not."""
        model, sentence = ready(LanguageEncoder(LANGUAGE)), words(READ, 11)
        shuffled = torch.randperm(SOURCE)
        for positions in (False, True):
            straight = model(sentence, positions=positions).logits[:, shuffled]
            mixed = model(sentence[:, shuffled], positions=positions).logits
            assert torch.allclose(mixed, straight) != positions


class TestLanguageDecoder:
    """From left to right."""

    def test_a_later_word_changes_nothing_before_it(self) -> None:
        """Neither a logit nor a weight, to the last bit."""
        model, sentence = ready(LanguageDecoder(LANGUAGE)), words(READ, 11)
        changed = sentence.clone()
        changed[:, 7:] = LANGUAGE.unknown
        (logits, weights), (other, other_weights) = model(sentence), model(changed)
        assert torch.equal(logits[:, :7], other[:, :7])
        assert not torch.allclose(logits[:, 7:], other[:, 7:])
        for pattern, other_pattern in zip(weights, other_weights, strict=True):
            assert torch.equal(pattern[:, :, :7], other_pattern[:, :, :7])
            assert (pattern.triu(1) == 0).all()


class TestTranslationTransformer:
    """It reads one language and says another."""

    def test_attend_tells_the_three_kinds_apart(self) -> None:
        """Each function sees its own kind once a layer, for all steps at once."""
        model, source = TranslationTransformer(TRANSLATION), words(READ, 11)
        target = model.translate(source, max_length=5).words
        n = target.shape[1]
        calls: dict[str, list[tuple[int, int]]] = {"encoder": [], "decoder": [], "cross": []}
        hooks: dict[str, Any] = {f"attend_{kind}": counting(seen) for kind, seen in calls.items()}
        translation = model(source, target, **hooks)
        assert calls == {
            "encoder": [(SOURCE, SOURCE)] * LAYERS,
            "decoder": [(n, n)] * LAYERS,
            "cross": [(n, SOURCE)] * LAYERS,
        }
        assert tuple(translation.weights) == ([None] * LAYERS,) * 3
        assert torch.equal(translation.words, target)
