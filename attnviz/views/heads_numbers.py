"""The numbers of one head, as every view of it takes them."""

from __future__ import annotations

import math

import numpy as np

from attnviz.analysis.roles import UNTRAINED
from attnviz.comparison import SHARES, Comparison, HeadProfile

STRONGEST = (*SHARES, "entropy_share", "distance", "confidence")
"""The measures of which the strongest sentence is shown, beside those that the head's roles are judged by."""


def estimate_of(comparison: Comparison, name: str, profile: HeadProfile) -> tuple[float, float, float]:
    """A measure of a head and both ends of its interval; NaN where it was not measured."""
    if name not in comparison.measures:
        return math.nan, math.nan, math.nan
    return comparison.estimate(name, profile.layer, profile.head)


def control_of(comparison: Comparison, control: str, name: str, profile: HeadProfile) -> float:
    """A control of one measure of a head: of random weights that of the best head, as roles are held against it."""
    values = comparison.controls[control].value[:, :, comparison.measures.index(name)]
    if control != UNTRAINED:
        return float(values[profile.layer, profile.head])
    return float(np.nanmax(values)) if np.isfinite(values).any() else math.nan
