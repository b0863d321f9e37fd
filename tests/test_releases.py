"""Functions that serve other releases of the libraries than the ones that are installed."""

from __future__ import annotations

import importlib.metadata
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

from attnviz.errors import InputError
from attnviz.releases import (
    check_letters,
    input_embeddings,
    input_modalities,
    mask_by_length,
    registered_mask,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result


def causal_mask(cache_position: Tensor, kv_length: int, **_options: Any) -> Tensor:
    """A mask function in the form of transformers before 5.4."""
    return torch.arange(kv_length) <= cache_position[:, None]


def test_a_mask_function_that_takes_positions() -> None:
    """It gives the rows of the queries from the offset on."""
    mask = mask_by_length(causal_mask)(q_length=2, q_offset=3, kv_length=6)
    assert mask.tolist() == [[True] * 4 + [False] * 2, [True] * 5 + [False]]


def test_a_mask_function_that_is_called_with_positions() -> None:
    """It is called with their number and the first of them."""
    make_mask = registered_mask(mask_by_length(causal_mask))
    positions = torch.arange(2, 5)
    assert torch.equal(
        make_mask(cache_position=positions, kv_length=6), causal_mask(positions, kv_length=6)
    )
    assert torch.equal(
        make_mask(q_length=3, q_offset=2, kv_length=6), causal_mask(positions, kv_length=6)
    )


def test_a_library_outside_its_range(
    typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure is explained by what is installed and what is needed, in one line."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.0")

    def fail(*_given: object, **_more: object) -> None:
        raise AttributeError("no such name in this release")

    monkeypatch.setattr("attnviz.cli.heatmap.open_model", fail)
    failed = typed("heatmap", "--toy", "I love you")
    assert failed.status == 1
    assert "torch 1.0" in failed.errors
    assert "torch>=" in failed.errors
    assert failed.errors.count("\n") == 1


def test_a_model_that_does_not_say_what_it_reads() -> None:
    """Its main input tells."""
    assert input_modalities(SimpleNamespace(main_input_name="pixel_values")) == ("image",)
    assert input_modalities(SimpleNamespace(main_input_name="input_ids")) == ("text",)


def test_letters_that_matplotlib_cannot_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arabic, Hebrew and Devanagari words are named; others are drawn."""
    import matplotlib

    monkeypatch.setattr(matplotlib, "__version_info__", (3, 10, 9))
    for word in ("قطة", "חתול", "बिल्ली"):
        with pytest.raises(InputError, match=word):
            check_letters(["the", word])
    check_letters(["나는 너를", "猫が", "é ñ", "кошка"])


def test_the_encoder_that_does_not_name_its_table() -> None:
    """Its table is used all the same."""

    class Encoder(torch.nn.Module):
        """An encoder of transformers 4.53."""

        def __init__(self) -> None:
            super().__init__()
            self.embed_tokens = torch.nn.Embedding(3, 2)

        def get_input_embeddings(self) -> None:
            raise NotImplementedError

    encoder = Encoder()
    assert input_embeddings(encoder) is encoder.embed_tokens
