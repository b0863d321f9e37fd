"""The rule by which a cut counts: against cuts of other edges of the same weight.

A cut counts if it changes the output at least twice as much as the median of 60 control cuts, and lies more than 3
robust deviations (1.4826 times the median absolute deviation) above that median. Out of the rows that are read, 1.5
times as much is enough where it lies more than 6 deviations above. The divergence of a prediction grows with the square
of the change: it must be 4 times as much, or 2.25. And it must be 0.05 nats, as that of one of 90% that falls to 78%:
with less, tokens of random models stand out too.
A control cuts edges of the same rows to other keys, drawn at random until their weights add up to those of the cut; of
the last edge only the part that is needed is cut. If the output is all rows, it takes one key after another, but from
no token its own: else any key would count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from attnviz.attributions.capture import Study, Variant

CONTROLS = 60
RATIO, DEVIATIONS, STRONG = 2.0, 3.0, 5.0
SMALL_RATIO, MANY_DEVIATIONS = 1.5, 6.0
RATIO_OF_ONE = 3.0  # the least ratio that tells something where there is one other token to cut
# The least share of a cut that a single head's makes, if the token is used by a head alone.
SHARE = 0.01
# Changes below this are those of rounding.
LEAST = 1e-5
LEAST_NATS = 0.05  # the least change of a prediction by which a token is used
LEAST_OF_HEAD = 0.01  # and that of one head, which others may cancel
Name = Literal[
    "used",
    "used together",
    "used through other words",
    "attended to, not used",
    "not used",
    "heads cancel",
    "cannot tell",
]
USED: frozenset[Name] = frozenset({"used", "used together", "used through other words"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A change of the output beside those of the control cuts."""

    change: float
    controls: float  # the median change of the control cuts
    spread: float  # 1.4826 times their median absolute deviation; 0 if there is only one control
    is_rest: bool = (
        False  # whether the one control is all other edges, which weigh less than the cut
    )
    is_divergence: bool = False
    # Whether the other edges weigh at least twice as much as the cut: else all controls are much alike.
    has_room: bool = True
    least: float = LEAST  # the least change, and the least ratio, with which it counts
    least_ratio: float = SMALL_RATIO

    @property
    def ratio(self) -> float:
        """How many times the controls' median the change is; of divergences, which grow with its square, the root."""
        times = self.change / self.controls if self.controls > 0 else math.inf
        return math.sqrt(times) if self.is_divergence else times

    @property
    def deviations(self) -> float:
        """How many deviations of the controls the change lies above their median; infinite without a spread."""
        above = self.change - self.controls
        return above / self.spread if self.spread > 0 else np.copysign(np.inf, above)

    @property
    def counts(self) -> bool:
        """Whether the cut counts."""
        deviations = DEVIATIONS if self.ratio >= RATIO else MANY_DEVIATIONS
        return (
            self.change > self.least
            and self.ratio >= self.least_ratio
            and self.deviations > deviations
        )

    @property
    def is_strong(self) -> bool:
        """Whether the cut counts, and lies far above many controls."""
        return self.counts and self.has_room and self.spread > 0 and self.deviations > STRONG


def compare(
    study: Study,
    edges: Int[Tensor, " edge"],
    change: float,
    random: np.random.Generator,
    *,
    everywhere: bool = False,
    least_nats: float = LEAST_NATS,
) -> Comparison | None:
    """Compare a cut with controls; None if there is too little else to cut.

    `everywhere` says whether its edges are among all weights, or among those of the rows that are read.
    """
    reads_all = study.reads_all and not everywhere
    weights = study.all_weights if everywhere else study.weights
    total = float(weights.flatten()[edges].sum())
    is_other = weights > 0
    is_other[..., torch.unique(edges % weights.shape[-1])] = False  # the controls have other keys
    if reads_all:
        is_other &= ~torch.eye(*weights.shape[2:], dtype=torch.bool)
    others = is_other.flatten().nonzero()[:, 0]
    shares = weights.flatten()[others].double().numpy()
    n_others = len(torch.unique(others % weights.shape[-1]))
    if not n_others:
        return None
    is_rest = bool(shares.sum() <= total)
    if is_rest:  # all other edges together weigh less: they are the one control
        drawn = [(np.arange(len(others)), 1.0)]
    elif reads_all:
        keys = (others % weights.shape[-1]).numpy()
        drawn = [_draw_keys(shares, keys, total, random) for _ in range(CONTROLS)]
    else:
        drawn = [_draw(shares, total, random) for _ in range(CONTROLS)]
    variants = [
        Variant(edges=others[torch.from_numpy(chosen)], part=part) for chosen, part in drawn
    ]
    changes, _ = study.run(variants, everywhere=everywhere)
    median = float(np.median(changes))
    spread = 1.4826 * float(np.median(np.abs(changes - median)))
    found = Comparison(
        change=change,
        controls=median,
        spread=spread,
        is_rest=is_rest,
        has_room=bool(shares.sum() >= 2 * total),
        is_divergence=study.predicts,
        least=least_nats if study.predicts else LEAST,
        least_ratio=RATIO if everywhere or reads_all else SMALL_RATIO,
    )
    return None if n_others == 1 and found.ratio < RATIO_OF_ONE else found


def _draw(
    shares: Float[np.ndarray, " edge"], total: float, random: np.random.Generator
) -> tuple[Int[np.ndarray, " chosen"], float]:
    """Return edges in random order until their shares add up to a total, and what part of the last one is needed."""
    # Of many edges few are needed: twice as many as on average are as good as all.
    n_needed = int(2 * total / shares.mean()) + 1000
    order = random.choice(len(shares), min(n_needed, len(shares)), replace=False)
    return _fill(order, shares, total)


def _draw_keys(
    shares: Float[np.ndarray, " edge"],
    keys: Int[np.ndarray, " edge"],
    total: float,
    random: np.random.Generator,
) -> tuple[Int[np.ndarray, " chosen"], float]:
    """Return the same of all edges to one key after another, in random order."""
    place_of_key = random.permutation(keys.max() + 1)
    order = random.permutation(len(shares))
    return _fill(order[np.argsort(place_of_key[keys[order]], kind="stable")], shares, total)


def _fill(
    order: Int[np.ndarray, " first"], shares: Float[np.ndarray, " edge"], total: float
) -> tuple[Int[np.ndarray, " chosen"], float]:
    """Return the first edges of an order that add up to a total, and what part of the last of them is needed."""
    sums = np.cumsum(shares[order])
    last = min(int(np.searchsorted(sums, total)), len(order) - 1)
    part = 1 - (sums[last] - total) / shares[order[last]]
    return order[: last + 1], float(np.clip(part, 0, 1))


def name_of(
    here: Comparison | None,
    everywhere: Comparison | None,
    head: Comparison | None,
    *,
    is_attended: bool,
) -> Name:
    """Return the verdict on one token.

    Args:
        here: the cut out of the rows that are read; None if nothing is left to compare it with.
        everywhere: the cut out of all rows; None if it changes less than `RATIO` times as much.
        head: the cut of the head that changes most alone.
        is_attended: whether the token has at least an even share of the attention.
    """
    if here is None:
        return "cannot tell"
    if here.counts:
        is_alone = head is not None and head.counts and head.change >= SHARE * here.change
        return "used" if is_alone else "used together"
    if everywhere is not None and everywhere.counts:
        return "used through other words"
    if head is not None and head.counts and head.change >= RATIO * here.change:
        return "heads cancel"
    return "attended to, not used" if is_attended else "not used"
