"""Functions that serve other releases of the libraries than the ones that are installed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from attnviz.releases import (
    config_fields,
    input_modalities,
    mask_by_length,
    registered_mask,
)


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


def test_a_configuration_that_is_no_dataclass() -> None:
    """Its attributes are its settings."""
    assert config_fields(SimpleNamespace(hidden_size=32, n_layers=2)) == ["hidden_size", "n_layers"]


def test_a_model_that_does_not_say_what_it_reads() -> None:
    """Its main input tells."""
    assert input_modalities(SimpleNamespace(main_input_name="pixel_values")) == ("image",)
    assert input_modalities(SimpleNamespace(main_input_name="input_ids")) == ("text",)
