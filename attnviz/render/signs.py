"""Signs of what heads do, to stand on any picture of them: plain values, whoever measured them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnviz.errors import SelectionError


@dataclass(frozen=True, slots=True)
class HeadSign:
    """What a head does, in a few characters, a colour (``#rrggbb``) and in words."""

    sign: str
    colour: str
    words: tuple[str, str]  # in English and in Korean


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSigns:
    """The signs of a model's heads, by layer and head; a head without one has no established role."""

    model: str
    kind: str  # which attention, such as ``encoder``
    n_layers: int
    n_heads: int
    of: Mapping[tuple[int, int], HeadSign]

    def among(
        self, model: str, kind: str, layers: Sequence[int], heads: Sequence[int]
    ) -> dict[tuple[int, int], HeadSign]:
        """Those of some heads of a model; a `SelectionError` where it is another, or another attention of it."""
        if (model, kind) != (self.model, self.kind) or max(layers) >= self.n_layers or max(heads) >= self.n_heads:
            raise SelectionError(
                f"the roles are those of {self.model} ({self.kind}, {self.n_layers} layers x {self.n_heads} heads), "
                f"and cannot be shown on {model} ({kind}, layers to {max(layers)}, heads to {max(heads)}): "
                "measure them by attnviz compare-heads on the same model"
            )
        return {place: sign for place, sign in self.of.items() if place[0] in layers and place[1] in heads}
