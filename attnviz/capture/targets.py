"""The output of a model that is read, and how far a change moves it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.capture.sources import Outputs
from attnviz.errors import ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The vector of a word or of a sentence, or the probabilities of the words at one place or of classes."""

    outputs: Outputs
    rows: tuple[int, ...]  # the rows that it depends on first; of vectors the mean is read
    number: int = 0  # the word or class whose probability is read

    @property
    def predicts(self) -> bool:
        """Whether the output is a distribution."""
        return self.outputs != "vectors"

    def read(self, output: Float[Tensor, "variant token width"]) -> Float[Tensor, "variant width"]:
        """Return the vector of each variant, or the logarithms of its probabilities.

        Raises ModelError: it is not a number.
        """
        # Classes stand in one place, whatever rows they are computed from.
        rows = [0] if self.outputs == "classes" else list(self.rows)
        found = output[:, rows].cpu().to(torch.float64).mean(dim=1)
        if not found.isfinite().any(dim=1).all() or found.isnan().any():
            raise ModelError("the output of the model is not a number")
        return found.log_softmax(dim=-1) if self.predicts else found

    def change(
        self, before: Float[Tensor, " width"], after: Float[Tensor, "variant width"]
    ) -> Float[Tensor, " variant"]:
        """Return how far each variant is from the output before.

        Of a vector it is the distance as a share of the vector's length; of probabilities the divergence KL(before ||
        after) in nats. Raises ModelError: the vector is 0.
        """
        if not self.predicts:
            distance: Tensor = torch.linalg.vector_norm(after - before, dim=1)
            length: Tensor = torch.linalg.vector_norm(before)
            if length == 0:
                raise ModelError("the vector of the output is 0: a change is no share of it")
            return distance / length
        # A word that is never predicted has no share in the divergence.
        terms = before.exp() * (before - after)
        return terms.nan_to_num(nan=0.0).sum(dim=1).clamp(min=0.0)

    def probability(self, found: Float[Tensor, "variant width"]) -> Float[Tensor, " variant"]:
        """Return the probability of the word or class in each variant."""
        return found[:, self.number].exp()
