"""What a translator says to the same sentences after the right words and after its own, and where they part."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnviz.models.training.measure import Translator

NORMAL = 1.959964
"""Standard deviations on each side of the middle that hold 95 % of a normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """What is right so many steps after the first error.

    Attributes:
        steps: how many.
        n: of the sentences that are so long.
        forced: how many have the right word there, forced.
        free: the same, running free.
    """

    steps: int
    n: int
    forced: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """What a model says to the same sentences forced and free; the end counts as a word.

    Attributes:
        target: the right words, zeros after their end.
        forced: what it says after the right words.
        free: what it says after its own, which may go on where the right words end; zeros after its end.
    """

    target: Int[Tensor, "sentence step"]
    forced: Int[Tensor, "sentence step"]
    free: Int[Tensor, "sentence longer"]

    @property
    def here(self) -> Bool[Tensor, "sentence step"]:
        """Where there is a word to be said."""
        return self.target != 0

    @property
    def firsts(self) -> list[tuple[int, int]]:
        """The sentences with an error, and the step of the first: the same both ways, as it has read the same."""
        wrong = (self.free[:, : self.target.shape[1]] != self.target) & self.here
        return [(row, int(steps.nonzero()[0])) for row, steps in enumerate(wrong) if steps.any()]

    def goes_on(self, said: Int[Tensor, "sentence longer"], row: int, first: int) -> int:
        """How many words of a sentence are wrong one after another, from a step on."""
        right = (said[row, first : self.target.shape[1]] == self.target[row, first:]) | ~self.here[row, first:]
        return int(right.nonzero()[0]) if right.any() else len(right)

    def accuracy(self, said: Int[Tensor, "sentence longer"]) -> float:
        """The share of the right words that are said, at their place."""
        return int((said[:, : self.target.shape[1]] == self.target)[self.here].sum()) / int(self.here.sum())

    def in_order(self, said: Int[Tensor, "sentence longer"]) -> float:
        """The share of the right words that are said in the right order, wherever they stand (longest common row)."""
        longest = torch.zeros(len(said), said.shape[1] + 1, dtype=torch.long)  # common words up to each one said
        for word, here in zip(self.target.T, self.here.T, strict=True):
            same = (said == word[:, None]) & here[:, None]  # (B, S)
            longest[:, 1:] = torch.where(same, longest[:, :-1] + 1, longest[:, 1:]).cummax(dim=1).values
        return int(longest[:, -1].sum()) / int(self.here.sum())

    def after_error(self, most: int) -> tuple[After, ...]:
        """Step by step after the first error, as many as asked for, as far as there are sentences that long."""
        found = []
        for steps in range(1, most + 1):
            places = [(row, first + steps) for row, first in self.firsts if first + steps < self.target.shape[1]]
            places = [place for place in places if self.here[place]]
            forced, free = (sum(bool(w[p] == self.target[p]) for p in places) for w in (self.forced, self.free))
            if places:
                found.append(After(steps=steps, n=len(places), forced=forced, free=free))
        return tuple(found)


@torch.inference_mode()
def both_ways(model: Translator, source: Tensor, target: Tensor) -> Both:
    """Say each sentence twice: after the right words, and after its own, at most twice as many as are right."""
    n_steps = target.shape[1]
    free = model.translate(source, max_length=2 * n_steps).words
    free = torch.nn.functional.pad(free, (0, max(0, n_steps - free.shape[1])))
    return Both(target=target, forced=model(source, target).words, free=free)


def wilson(share: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of n things.

    Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference".
    """
    z = NORMAL
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return middle - half, middle + half
