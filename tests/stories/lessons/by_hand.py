"""The shipped Transformers in numpy, from their files and the paper's formulas."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from safetensors import safe_open

from attnviz.models.training.files import FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    Array = np.ndarray


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """The numbers of a layer for one sentence."""

    # the input, attention, their sum, normed, feed-forward, their sum, normed
    steps: tuple[Array, ...]
    scores: Array  # before mask and softmax [head, query, key]
    weights: Array


@cache
def open_model(name: str) -> tuple[dict[str, Array], dict[str, object]]:
    """A model's weights in float64, and its card."""
    with safe_open(FOLDER / f"{name}.safetensors", framework="np") as file:
        card: dict[str, object] = json.loads(file.metadata()["card"])
        return {key: file.get_tensor(key).astype(np.float64) for key in file.keys()}, card  # noqa: SIM118


def softmax(scores: Array) -> Array:
    """The softmax over the last axis."""
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights: Array = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights


def normed(x: Array, weight: Array, bias: Array) -> Array:
    """Layer norm: mean 0, variance 1, then factors and summands."""
    mean = x.mean(axis=-1, keepdims=True)
    result: Array = (x - mean) / np.sqrt(
        ((x - mean) ** 2).mean(axis=-1, keepdims=True) + 1e-5
    ) * weight + bias
    return result


def read(name: str, words: Sequence[str], *, positions: bool = True) -> list[Layer]:
    """Each layer's numbers for one sentence, words in lower case or not."""
    weights, card = open_model(name)
    config, vocabulary = card["config"], card["source"]
    assert isinstance(config, dict)
    assert isinstance(vocabulary, list)
    numbers = [vocabulary.index(word if word in vocabulary else word.lower()) for word in words]
    table = weights["embedding.table.weight"]
    n, width = len(words), table.shape[1]
    x = table[numbers] * width**0.5
    if positions:
        for place in range(n):
            for i in range(0, width, 2):
                angle = place / 10_000 ** (i / width)
                x[place, i] += np.sin(angle)
                x[place, i + 1] += np.cos(angle)
    layers = []
    for number in range(config["n_layers"]):
        of = f"{card['kind']}.layers.{number}."
        layers.append(
            _layer({k.removeprefix(of): w for k, w in weights.items() if k.startswith(of)}, x, card)
        )
        x = layers[-1].steps[-1]
    return layers


def _layer(weights: dict[str, Array], x: Array, card: dict[str, object]) -> Layer:
    config = card["config"]
    assert isinstance(config, dict)
    n, width = x.shape
    heads = config["n_heads"]

    def mapped(name: str, y: Array) -> Array:
        out: Array = y @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return out

    query, key, value = (
        mapped(f"attention.{what}_projection", x)
        .reshape(n, heads, width // heads)
        .transpose(1, 0, 2)
        for what in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 2, 1) / (width // heads) ** 0.5
    allowed = np.tri(n, dtype=bool) if card["kind"] == "decoder" else np.ones((n, n), dtype=bool)
    looks = softmax(np.where(allowed, scores, -np.inf))
    attended = mapped(
        "attention.output_projection", (looks @ value).transpose(1, 0, 2).reshape(n, width)
    )
    first = normed(x + attended, weights["attention_norm.weight"], weights["attention_norm.bias"])
    fed = mapped("feed_forward.narrow", np.maximum(mapped("feed_forward.widen", first), 0))
    last = normed(
        first + fed, weights["feed_forward_norm.weight"], weights["feed_forward_norm.bias"]
    )
    return Layer(
        steps=(x, attended, x + attended, first, fed, first + fed, last),
        scores=scores,
        weights=looks,
    )


def patterns(name: str, words: Sequence[str]) -> Array:
    """The attention weights of one sentence [layer, head, query, key]."""
    return np.stack([layer.weights for layer in read(name, words)])
