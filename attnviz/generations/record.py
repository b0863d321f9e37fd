"""One step of a generation: the token that came, and its row of attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32

from attnviz.attention import Kind, Token
from attnviz.text.messages import Phrase, _

LEAST = 0.005  # the least weight that is named


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Step:
    """A token that was generated, and what it attends to."""

    number: int  # which one it is, from 1
    most: int  # how many there may be
    token: Token
    # how likely the model found it among all tokens; None where it is not known any more
    probability: float | None
    # that can be attended to: of a decoder the text so far; else the sentence to translate
    keys: tuple[Token, ...]
    so_far: tuple[Token, ...]  # the tokens generated so far, this one included
    # its row in each head, of the layers and heads that are kept
    weights: Float32[np.ndarray, "layer head key"]
    model: str
    kind: Kind  # ``decoder`` or ``cross``

    @property
    def mean(self) -> Float32[np.ndarray, " key"]:
        """Its row of weights, the mean over layers and heads."""
        return np.asarray(self.weights.mean(axis=(0, 1)))

    def top(self, n: int) -> list[tuple[Token, float]]:
        """The tokens that it attends to most, with their mean weights; those that round to 0.00 are left out."""
        mean = self.mean
        order = np.argsort(-mean, kind="stable")[:n]
        return [
            (self.keys[place], float(mean[place]))
            for place in order.tolist()
            if mean[place] >= LEAST
        ]


def whose(step: Step) -> Phrase:
    """Whose weights are shown, as ``mean of 3 layers x 6 heads``."""
    n_layers, n_heads = step.weights.shape[:2]
    if n_layers == n_heads == 1:
        return _("one head")
    layers = _("1 layer") if n_layers == 1 else _("{n} layers").format(n=n_layers)
    heads = _("1 head") if n_heads == 1 else _("{n} heads").format(n=n_heads)
    return _("mean of {layers} x {heads}").format(layers=layers, heads=heads)


def running_text(tokens: Sequence[Token]) -> list[str]:
    """Tokens as a text has them: a space before each that begins a word; pieces that go on without their mark."""
    return [
        token.text.removeprefix("·")
        if token.text.startswith("·") and index
        else f"{' ' * bool(index)}{token.text}"
        for index, token in enumerate(tokens)
    ]
