"""The signs of a calculation: how each product is written, and what stands between two matrices on a sheet.

A formula has no sign for the matrix product, as on any blackboard (Q K^T); between pictures, where nothing would look
like nothing, it is a cross. Cell by cell is always "⊙", and the dot is for numbers alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from attnviz.walkthroughs.record import Operation, Step
from attnviz.walkthroughs.steps import formulated

MATRIX, CELLS, ARROW = "\N{MULTIPLICATION SIGN}", "⊙", "→"

_BETWEEN: dict[Operation, tuple[str, ...]] = {
    "add": ("+",),
    "map": (MATRIX, "+"),
    "dot": (MATRIX,),
    "general": (MATRIX, MATRIX),
    "weigh": (CELLS,),
    "concatenate": (";",),
    "norm": (f"{ARROW} {CELLS}", "+"),
    "rms_norm": (f"{ARROW} {CELLS}",),
    "product": (CELLS,),
}
"""What stands before the second operand and those that follow, the last sign before all that are left.

The arrow of a norm says that what is multiplied is no longer the first operand: the formula says what it is.
"""


def between(step: Step, place: int) -> str:
    """The sign before an operand of a step; a comma where the formula is no chain of signs."""
    if place == 0:
        return ""
    signs = _BETWEEN.get(step.operation, (",",))
    return signs[min(place, len(signs)) - 1]


def multiplied(text: str) -> str:
    """A formula in which a product by a number has a dot and one cell by cell a circle."""
    return re.sub(r" \* (?=-?\d)", " · ", text).replace(" * ", f" {CELLS} ")


def shown_formula(text: str) -> str:
    """A formula as it is written on a blackboard."""
    text = re.sub(r"sqrt\((\d+)\)", r"√\1", text)
    return multiplied(text).replace("^T", "ᵀ").replace("sqrt(", "√(")


def by_cells(steps: Iterable[Step]) -> bool:
    """Whether any of these steps multiplies cell by cell."""
    return any(CELLS in multiplied(formulated(step)) for step in steps)
