"""Positions, the paper's waves; and words that no model reads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from attnviz.errors import AttnvizError, InputError, ModelError, TooLongError
from attnviz.models.config import LanguageConfig, RecurrentConfig, TranslationConfig
from attnviz.models.embedding import sinusoidal_positions
from attnviz.models.language_models import LanguageDecoder, LanguageEncoder, TranslationTransformer
from attnviz.models.seq2seq import RecurrentTranslator


class TestSinusoidalPositions:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos(the same)."""

    def test_by_hand(self) -> None:
        """Four wide, the two frequencies are 1 and 1/100."""
        expected = [
            [0, 1, 0, 1],
            [math.sin(1), math.cos(1), math.sin(0.01), math.cos(0.01)],
            [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)],
        ]
        assert_close(sinusoidal_positions(3, 4), torch.tensor(expected))

    def test_odd_width_ends_with_a_sine(self) -> None:
        """Five wide: sin, cos, sin, cos, sin."""
        table = sinusoidal_positions(2, 5)
        assert table.shape == (2, 5)
        assert table[0].tolist() == [0, 1, 0, 1, 0]
        assert_close(table[1, 4].item(), math.sin(1 / 10_000 ** (4 / 5)))


SIZES: dict[str, Any] = {"d_model": 12, "n_heads": 3, "n_layers": 1, "d_ff": 5, "max_length": 11}
BOTH: dict[str, Any] = {"n_source_words": 23, "n_target_words": 23}
MODELS: dict[str, Callable[[], nn.Module]] = {
    "encoder": lambda: LanguageEncoder(LanguageConfig(n_words=23, **SIZES)),
    "decoder": lambda: LanguageDecoder(LanguageConfig(n_words=23, **SIZES)),
    "recurrent": lambda: RecurrentTranslator(RecurrentConfig(max_length=11, **BOTH)),
    "translation": lambda: TranslationTransformer(TranslationConfig(**SIZES, **BOTH)),
}


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ([[]], InputError, "a sentence without words: expected at least 1, got 0"),
        ([[7], [0]], InputError, "a sentence without words: expected at least 1, got 0"),
        ([[7] * 13], TooLongError, "too many words: expected at most 11, got 13"),
        ([[7, 23]], ModelError, "no word has this number: expected 0 to 22, got 23"),
        ([[7, -1]], ModelError, "no word has this number: expected 0 to 22, got -1"),
        ([[7, 0, 7]], ModelError, "expected it after the words, got it before one"),
    ],
)
def test_words_that_no_model_reads(
    name: str, words: list[list[int]], error: type[AttnvizError], message: str
) -> None:
    """No words, too many, numbers of no word, padding before a word; of a translator also in the target."""
    model, numbers, right = MODELS[name](), torch.tensor(words).long(), torch.full((1, 2), 7)
    right = right.expand(len(words), -1)
    inputs = (
        [(numbers,)] if name in {"encoder", "decoder"} else [(numbers, right), (right, numbers)]
    )
    for arguments in inputs:
        with pytest.raises(error, match=message):
            model(*arguments)
