"""Features of architectures: windows, shared layers, sinks, limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.attention import Note
from attnviz.capture.attend import attend
from attnviz.errors import NoAttentionError, TooLongError

if TYPE_CHECKING:
    from tests.fixtures.zoo import Zoo

LONG = "The animal didn't cross the street because it was too tired"


class TestTerms:
    """Each thing that a layer adds to the dot product is needed for the proof."""

    def test_window(self, zoo: Zoo) -> None:
        """Mistral looks at itself and the 4 tokens before it, no further."""
        weights = attend(LONG, zoo.source("mistral")).weights
        row, column = np.indices(weights.shape[2:])
        outside = (column > row) | (column <= row - 5)
        assert not weights[..., outside].any()
        assert weights[..., ~outside].all()


class TestSinks:
    """Heads that may look at nothing."""

    def test_rows_are_short(self, zoo: Zoo) -> None:
        """Each row of gpt-oss lacks what went to the sink, and the record says so."""
        record = attend(LONG, zoo.source("gpt_oss"))
        sums = record.weights.sum(axis=-1)
        assert sums.max() < 1
        assert sums.min() < 0.5
        assert record.short_rows == ("sink",)
        assert record.notes == (Note("sinks"),)


class TestNothingToSee:
    """Models whose attention cannot be seen say so, in one line."""

    @pytest.mark.parametrize("name", ["longformer", "mamba"])
    def test_not_on_the_interface(self, zoo: Zoo, name: str) -> None:
        """Longformer multiplies no whole rows of weights; Mamba has none."""
        with pytest.raises(
            NoAttentionError,
            match=rf"^zoo0/{name} has no attention that attnviz can see: [^\n]* drawn instead$",
        ):
            attend(LONG, zoo.source(name))


class TestLimits:
    """How long an input may be."""

    @pytest.mark.parametrize(
        ("name", "limit"),
        [("xlm_roberta", 512), ("roberta", 512), ("gpt2", 61), ("opt", 61), ("distilbert", 512)],
    )
    def test_longest(self, zoo: Zoo, name: str, limit: int) -> None:
        """The longest sentence runs; of one token more, both numbers are said. RoBERTa's 514 positions hold 512."""
        source = zoo.source(name)
        n_special = sum(token.special for token in attend("Yes", source, layers=[0]).query_tokens)
        longest = " love" * (limit - n_special)
        assert attend(longest, source, layers=[0], heads=[0]).weights.shape == (1, 1, limit, limit)
        cut = attend(longest + " love", source, layers=[0], heads=[0])
        assert cut.weights.shape == (1, 1, limit, limit)
        note = Note.of("input_truncated_tokens", kept=limit, total=limit + 1)
        assert note in cut.notes
        said = f"tokens, but zoo0/{name} takes at most {limit}: shorten it"
        with pytest.raises(TooLongError, match=said):
            attend(["love"] * (limit + 1), source)


def test_one_token(zoo: Zoo) -> None:
    """A single token looks at itself, and a decoder is still called one."""
    record = attend("I", zoo.source("gpt2"))
    assert record.kind == "decoder"
    assert record.weights.shape == (5, 3, 1, 1)
    assert (record.weights == 1).all()
