"""The home-built model as a source: any sentence, no download, the same receipt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.capture.attend import attend
from attnviz.capture.sources.home_built import ToySource, random_source
from attnviz.errors import InputError, ModelError
from attnviz.models.config import ToyConfig
from attnviz.models.language_models import ToyEncoder

SIZES = ToyConfig(d_model=21, n_heads=3, n_layers=5, d_ff=11, seed=13)
TEXTS = ["I love all you", "Yes!", "The animal didn't cross the street.", "나는 너희 모두를 사랑해"]


class TestToySource:
    """The toy encoder as a source."""

    def test_weights(self) -> None:
        """The record holds what the model itself returns beside its output."""
        _, weights = ToyEncoder(SIZES)([["I", "love", "all", "you"]])
        record = attend(TEXTS[0], ToySource(SIZES))
        expected = np.stack(
            [pattern[0].detach().numpy() for pattern in weights if pattern is not None]
        )
        np.testing.assert_allclose(record.weights, expected, rtol=0, atol=1e-6)
        assert record.weights.shape == (5, 3, 4, 4)
        assert record.model == "toy-random (seed 13, d_model 21, n_heads 3, n_layers 5)"

    def test_tokens(self) -> None:
        """A word is a token, split as a person would, in a pair too."""
        record = attend("I can't, 3.14!", ToySource(SIZES), pair="나는 너희")
        assert " ".join(token.text for token in record.query_tokens) == "I can't , 3.14 ! 나는 너희"
        spans = [(0, 1), (2, 7), (7, 8), (9, 13), (13, 14), (0, 2), (3, 5)]
        assert [token.span for token in record.query_tokens] == spans
        assert [token.segment for token in record.query_tokens] == [0, 0, 0, 0, 0, 1, 1]
        assert [token.word for token in record.query_tokens] == [0, 1, 2, 3, 4, 5, 6]
        assert not any(token.special for token in record.query_tokens)


@settings(max_examples=150)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_any_sentence(text: str) -> None:
    """Any Unicode sentence works, or is refused in one line as empty."""
    if not text.strip():
        with pytest.raises(InputError, match=r"^the text is empty"):
            attend(text, "toy-random")
        return
    tokens = attend(text, "toy-random").query_tokens
    assert all(token.text.strip() for token in tokens)
    assert [text[slice(*token.span)] for token in tokens if token.span] == [
        token.piece for token in tokens
    ]


@pytest.mark.parametrize("sizes", [{"d_model": 100_000, "n_heads": 1}, {"n_layers": 100_000}])
def test_too_large(sizes: dict[str, int]) -> None:
    """Sizes that would take minutes, or all memory, are refused at once."""
    with pytest.raises(
        ModelError, match=r"^these sizes make [\d,]+ weights: at most 50,000,000 are drawn$"
    ):
        ToySource(ToyConfig(**sizes))  # type: ignore[arg-type]


def test_special_tokens() -> None:
    """In lower case between [CLS] and [SEP], a second sentence before another one, as an uncased BERT reads it."""
    source = random_source("toy-random-bert", {"n_layers": 1})
    (sentence,) = source.encode(["I love"], ["you"]).sentences
    assert " ".join(token.text for token in sentence.tokens) == "[CLS] i love [SEP] you [SEP]"
    assert [token.special for token in sentence.tokens] == [True, False, False, True, False, True]
    assert [token.segment for token in sentence.tokens] == [0, 0, 0, 0, 1, 1]
    assert attend("I love", source).weights.shape == (1, 4, 4, 4)
