"""The rule by which a cut counts: against cuts of other edges of the same weight.

A cut counts if it changes the output at least 1.5 times as much as the median of 60 control cuts, and lies more than 3
robust deviations (1.4826 times the median absolute deviation) above that median. Out of all rows it must change twice
as much: all edges to one key carry much the same, while those of a control partly cancel each other. And a prediction
must change by 0.05 nats, as one of 90% does that falls to 78%: with less, tokens of random models stand out too.
A control cuts edges of the same rows to other keys, drawn at random until their weights add up to those of the cut. If
the output is all rows, it takes one key after another, but from no token its own: else any key would count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnviz.attributions.capture import Study, Variant

CONTROLS = 60
RATIO, DEVIATIONS = 1.5, 3.0
# The least share of a cut that a single head's makes, if the token is used by a head alone.
SHARE = 0.01
THROUGH = 2.0  # the least ratio of a cut out of all rows to its controls, and to the cut here
# Changes below this are those of rounding.
LEAST = 1e-5
LEAST_NATS = 0.05  # the least change of a prediction by which a token is used
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

    @property
    def ratio(self) -> float:
        """How many times the controls' median the change is."""
        return self.change / self.controls if self.controls > 0 else np.inf

    @property
    def deviations(self) -> float:
        """How many deviations of the controls the change lies above their median; infinite without a spread."""
        above = self.change - self.controls
        return above / self.spread if self.spread > 0 else np.copysign(np.inf, above)

    @property
    def counts(self) -> bool:
        """Whether the cut counts."""
        return self.change > LEAST and self.ratio >= RATIO and self.deviations > DEVIATIONS


def compare(
    study: Study,
    edges: Bool[Tensor, "layer head row key"],
    change: float,
    random: np.random.Generator,
    weights: Float[Tensor, "layer head row key"] | None = None,
    rows: Tensor | None = None,
    *,
    by_key: bool = False,
) -> Comparison | None:
    """Compare a cut with controls; None if no other edge has a weight.

    `edges` are those of the cut, and `weights` those of the same rows, if these are not the rows that are read. With
    `by_key` a control takes all edges to one key after another.
    """
    weights = study.weights if weights is None else weights
    total = float(weights[edges].sum())
    keys = edges.flatten(0, 2).any(dim=0)  # the controls have other keys
    is_other = (~keys).expand_as(weights) & (weights > 0)
    if by_key:
        is_other &= ~torch.eye(*weights.shape[2:], dtype=torch.bool)
    others = is_other.flatten().nonzero()[:, 0]
    shares = weights.flatten()[others].double().numpy()
    if not len(others):
        return None
    if shares.sum() <= total:  # all other edges together weigh less: they are the one control
        drawn = [np.arange(len(others))]
    else:
        orders = [random.permutation(len(others)) for _ in range(CONTROLS)]
        if by_key:
            of_key = (others % weights.shape[3]).numpy()
            orders = [
                order[np.argsort(random.permutation(len(keys))[of_key[order]], kind="stable")]
                for order in orders
            ]
        drawn = [
            order[: int(np.searchsorted(np.cumsum(shares[order]), total)) + 1] for order in orders
        ]
    variants = []
    for chosen in drawn:
        cut = torch.zeros(weights.numel(), dtype=torch.bool)
        cut[others[torch.from_numpy(chosen)]] = True
        variants.append(Variant(edges=cut.view(weights.shape)))
    changes, _ = study.run(variants, rows)
    median = float(np.median(changes))
    spread = 1.4826 * float(np.median(np.abs(changes - median)))
    return Comparison(change=change, controls=median, spread=spread)


def name_of(
    here: Comparison | None,
    everywhere: Comparison | None,
    head: Comparison | None,
    *,
    is_attended: bool,
    is_whole: bool = False,
    least: float = 0.0,
) -> Name:
    """Return the verdict on one token.

    Args:
        here: the cut out of the rows that are read; None if nothing is left to compare it with.
        everywhere: the cut out of all rows; None if it changes less than `THROUGH` times as much.
        head: the cut of the head that changes most alone.
        is_attended: whether the token has at least an even share of the attention.
        is_whole: whether all rows are read, so that the cut here is out of all rows.
        least: the least change by which the token is used.
    """
    if here is None:
        return "cannot tell"
    if here.counts and here.change >= least and (here.ratio >= THROUGH or not is_whole):
        is_alone = head is not None and head.counts and head.change >= SHARE * here.change
        return "used" if is_alone else "used together"
    if (
        everywhere is not None
        and everywhere.counts
        and everywhere.ratio >= THROUGH
        and everywhere.change >= least
    ):
        return "used through other words"
    if head is not None and head.counts and head.change >= max(least, RATIO * here.change):
        return "heads cancel"
    return "attended to, not used" if is_attended else "not used"
