"""The recurrent translators in numpy, from their files and the formulas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tests.stories.lessons.by_hand import open_model, softmax

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray

PAD, START, END = 0, 2, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A model's translation of one sentence."""

    words: tuple[str, ...]  # the likeliest at each step, after its own words or those forced on it
    chances: Array  # of every word [step, word]
    weights: Array  # attention [step, source]; empty without attention


def vocabularies(name: str) -> tuple[list[str], list[str]]:
    """Return the words that a model reads, and those that it generates."""
    _, card = open_model(name)
    source, target = card["source"], card["target"]
    assert isinstance(source, list)
    assert isinstance(target, list)
    return source, target


def translate(
    name: str, english: Sequence[str], forced: Sequence[str] | None = None, most: int = 128
) -> Translation:
    """Translate one sentence, after its own words or after those forced on it; the end is a word."""
    weights, card = open_model(name)
    config = card["config"]
    assert isinstance(config, dict)
    assert config["attention"] in {"scaled_dot", None}
    reads, says = vocabularies(name)
    table = weights["source_embedding.table.weight"]
    width = table.shape[1] ** 0.5
    state = np.zeros(weights["encoder.weight_hh_l0"].shape[1])
    states = []
    for word in english:
        x = table[reads.index(word if word in reads else word.lower())] * width
        state = _gru({key: weights[f"encoder.{key}_l0"] for key in _PARTS}, x, state)
        states.append(state)
    keys, values = (
        _mapped(weights, f"attention.{what}_projection", np.stack(states))
        for what in ("key", "value")
    )
    given = None if forced is None else [*(says.index(word) for word in forced), END]
    read, words, chances, looks = START, [], [], []
    for step in range(most if given is None else len(given)):
        x = weights["target_embedding.table.weight"][read] * width
        if len(keys):
            query = _mapped(weights, "attention.query_projection", state)
            looks.append(softmax(keys @ query / len(query) ** 0.5))
            x = np.concatenate([x, looks[-1] @ values])
        state = _gru({key: weights[f"cell.{key}"] for key in _PARTS}, x, state)
        logits = _mapped(weights, "word_projection", state)
        chances.append(softmax(logits))
        logits[[PAD, START]] = -np.inf
        own = int(logits.argmax())
        words.append(says[own])
        read = own if given is None else given[step]
        if given is None and own == END:
            break
    return Translation(words=tuple(words), chances=np.stack(chances), weights=np.array(looks))


_PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def _gru(part: dict[str, Array], x: Array, state: Array) -> Array:
    """Cho et al. 2014, with the reset after the matrix, as in PyTorch."""
    r, z, n = np.split(part["weight_ih"] @ x + part["bias_ih"], 3)
    r_state, z_state, n_state = np.split(part["weight_hh"] @ state + part["bias_hh"], 3)
    reset, update = (1 / (1 + np.exp(-gate)) for gate in (r + r_state, z + z_state))
    result: Array = (1 - update) * np.tanh(n + reset * n_state) + update * state
    return result


def _mapped(weights: dict[str, Array], name: str, x: Array) -> Array:
    """A linear map; nothing where the model has none."""
    if f"{name}.weight" not in weights:
        return np.empty(0)
    result: Array = x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return result
