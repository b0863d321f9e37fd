"""One step of a generation: the new token and its row of attention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from attnviz.attention import Kind, Token
from attnviz.text.messages import _

LEAST = 0.005  # the smallest weight that is shown


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """A token that was generated, and the row of attention that chose it."""

    number: int  # the number of the token, counted from 1
    token: Token
    probability: float  # by the model
    # the keys of its row: in a decoder all tokens before it, in a translator the source sentence
    keys: tuple[Token, ...]
    # the row that chose it, in each selected layer and head
    weights: Float32[np.ndarray, "layer head key"]
    model: str  # the name of the model
    kind: Kind  # ``decoder`` or ``cross``

    @property
    def mean(self) -> Float32[np.ndarray, " key"]:
        """The row of weights, as the mean over layers and heads."""
        return np.asarray(self.weights.mean(axis=(0, 1)))

    def top(self, n: int) -> list[tuple[Token, float]]:
        """Return the `n` tokens that its row attends to most, with mean weights, without weights below `LEAST`."""
        mean = self.mean
        order = np.argsort(-mean, kind="stable")[:n].tolist()
        return [(self.keys[key], float(mean[key])) for key in order if mean[key] >= LEAST]


def whose(step: Step) -> str:
    """Return which heads the weights come from, such as ``mean of 3 layers x 6 heads``."""
    n_layers, n_heads = step.weights.shape[:2]
    if n_layers == n_heads == 1:
        return _("one head")
    heads = _("1 head") if n_heads == 1 else _("{n} heads").format(n=n_heads)
    if n_layers == 1:
        return _("mean of {many}").format(many=heads)
    layers = _("{n} layers").format(n=n_layers)
    return _("mean of {layers} x {heads}").format(layers=layers, heads=heads)
