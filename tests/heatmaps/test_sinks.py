"""Sinks left out: which tokens are sinks, how much goes to them, and what stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import attnviz
from attnviz.attention import Attention, Token
from attnviz.errors import SelectionError
from attnviz.heatmaps.finding import find
from attnviz.text.notes import sentence

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result

TIRED = "The animal didn't cross the street because it was too tired."
TOKENS = tuple(
    Token(text=text, piece=text, special=text.startswith("["))
    for text in ("[CLS]", "wolves", "eat", "apples", "[SEP]")
)


def record_of(weights: np.ndarray, kind: str = "encoder") -> Attention:
    """A record of one layer with one head for each matrix."""
    return Attention(
        weights=weights[None].astype(np.float32),
        query_tokens=TOKENS,
        key_tokens=TOKENS,
        kind=kind,  # type: ignore[arg-type]
        model="by hand",
    )


def words_of(record: Attention) -> str:
    """The notes of a record."""
    return " ".join(sentence(note) for note in record.notes)


def test_sinks_by_hand() -> None:
    """Two columns take 90%: they go, the other weights stay, and the note names them with their share."""
    row = [0.45, 0.04, 0.03, 0.03, 0.45]
    record = record_of(np.tile(row, (4, 5, 1)))
    shown = attnviz.hide_sinks(record)
    assert [token.text for token in shown.key_tokens] == ["wolves", "eat", "apples"]
    assert shown.query_tokens == record.query_tokens
    assert np.array_equal(shown.weights, record.weights[..., 1:4])
    assert "Without sinks ([CLS], [SEP]): 90% of the attention goes there" in words_of(shown)
    assert "not renormalised" in words_of(shown)
    assert shown.key_numbers == [1, 2, 3]


def test_even_attention_has_no_sinks() -> None:
    """Nothing is left out, and the note says so; a causal model's first token needs no more than its share."""
    record = record_of(np.full((2, 5, 5), 0.2))
    assert attnviz.hide_sinks(record).key_tokens == TOKENS
    assert "No token here is a sink" in words_of(attnviz.hide_sinks(record))
    causal = np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None]
    assert attnviz.hide_sinks(record_of(causal[None], "decoder")).key_tokens == TOKENS


def test_masked_cells_stay_hatched_where_they_are() -> None:
    """Without the first column, the mask still begins after each query's own token."""
    from attnviz.render.sheet import resolve

    causal = np.tril(np.full((5, 5), 0.02))
    causal[:, 0] += 1 - causal.sum(axis=1)
    shown = attnviz.hide_sinks(record_of(causal[None], "decoder"))
    assert shown.key_numbers == [1, 2, 3, 4]
    assert resolve(shown).masked_from.tolist() == [0, 1, 2, 3, 4]


def test_the_finding_skips_a_tokens_own_column() -> None:
    """A token that attends to itself is no finding, though its column has moved."""
    weights = np.full((5, 5), 0.02)
    weights[:, 0] = 0.6
    weights[1, 1] = weights[2, 3] = 0.34
    weights[:, 4] += 1 - weights.sum(axis=1)
    finding = find(attnviz.hide_sinks(record_of(weights[None])))
    assert finding is not None
    assert finding.words == ("eat", "apples")


def test_a_real_model(real_model: str, typed: Callable[..., Result], here: Path) -> None:
    """Its sink is [CLS], which takes about half of the attention."""
    shown = typed("heatmap", TIRED, "-m", real_model, "--without-sinks", "-o", str(here / "a.png"))
    assert shown.status == 0, shown.errors
    assert "Without sinks ([CLS]): 47% of the attention" in " ".join(shown.output.split())


def test_it_is_the_last_change(make_record: Callable[..., Attention]) -> None:
    """Words are merged and parts are taken before; a pooled record has no columns of tokens."""
    row = [0.6, 0.1, 0.1, 0.1, 0.1]
    shown = attnviz.hide_sinks(record_of(np.tile(row, (1, 5, 1))))
    for change in (attnviz.hide_special, attnviz.hide_sinks):
        with pytest.raises(SelectionError, match="left out already"):
            change(shown)
    with pytest.raises(SelectionError, match="take the part first"):
        shown.part(keys=slice(0, 2))
    pooled = attnviz.attend("the animal crossed the street " * 9, model="toy", memory=40_000)
    with pytest.raises(SelectionError, match="pooled"):
        attnviz.hide_sinks(pooled)
