"""The walkthrough as a value: named grids of numbers, and steps that each make one grid from others.

A view draws it, a file holds it, and whoever doubts it computes each step again from the grids before it: the
operations are few, and each is one line of arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Kind, Receipt
from attnviz.errors import RecordError

Operation: TypeAlias = Literal[
    "add", "map", "dot", "general", "additive", "times", "softcap", "mask", "softmax", "weigh", "sum", "concatenate",
    "norm", "rms_norm", "relu", "gelu", "gelu_tanh", "silu", "product", "row",
]  # fmt: skip
"""What a step computes from its operands a, b, c, ... (rows are queries or tokens):

- ``add``: a + b, cell by cell.
- ``map``: a b, plus the one row c where there is one: a linear map of each row.
- ``dot``: a b^T: each query with each key.
- ``general``: a b c^T, with b the map between them (Luong et al. 2015, equation 8).
- ``additive``: e . tanh(c q + d k) for each row q of a and k of b (Bahdanau et al. 2015, appendix A.1.2).
- ``times``: a times the step's number.
- ``softcap``: number * tanh(a / number) (Gemma Team 2024, section 2).
- ``mask``: a where b is 1, minus infinity where it is 0.
- ``softmax``: exp(a) over the sum of its row; b, where there is one, is a score for looking at nothing, which takes
  part in the sum and is then dropped.
- ``weigh``: each row of b times its weight in the one row a: an alignment vector for each key.
- ``sum``: the sum of the rows of a: one row.
- ``concatenate``: the operands side by side.
- ``norm``: each row without its mean, over the root of its variance plus the step's number, times b, plus c (Ba et al.
  2016, layer normalisation).
- ``rms_norm``: each row over the root of the mean of its squares plus the step's number, times b (Zhang and Sennrich
  2019, root mean square layer normalisation).
- ``relu``, ``gelu``: cell by cell; gelu is a times the normal distribution function (Hendrycks and Gimpel 2016).
- ``gelu_tanh``: a / 2 * (1 + tanh(sqrt(2 / pi) * (a + 0.044715 a^3))), an approximation of gelu from the same paper.
- ``silu``: a / (1 + exp(-a)) (Hendrycks and Gimpel 2016, section 4; also called swish).
- ``product``: a times b, cell by cell: a gated network opens one with the other (Shazeer 2020).
- ``row``: the one row of a that the step's number names, counted from 0.
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """Numbers in rows and columns, with their names.

    Attributes:
        values: the numbers [row, column], in double precision; minus infinity where a mask says so.
        rows: a name for each row; empty where they are only counted.
        columns: likewise.
    """

    values: Float64[np.ndarray, "row column"]
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        values = np.array(self.values, dtype=np.float64)  # a copy of its own, so that nobody else can change it
        if values.ndim != 2:
            raise RecordError(f"a grid has rows and columns: got the shape {values.shape}")
        for axis, labels in (("row", self.rows), ("column", self.columns)):
            size = values.shape[axis == "column"]
            if labels and len(labels) != size:
                raise RecordError(f"a grid needs a name for each {axis}: expected {size}, got {len(labels)}")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of the calculation.

    Attributes:
        name: which step it is, such as ``scores``; explanations are found by it.
        result: the grid that it makes.
        operation: how.
        operands: the grids that it is made from.
        number: what ``times``, ``softcap``, ``norm``, ``rms_norm`` and ``row`` need beside them; None for the others.
    """

    name: str
    result: str
    operation: Operation
    operands: tuple[str, ...]
    number: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Walkthrough:
    """One calculation of attention, every number of it.

    Attributes:
        title: what is calculated, in one line.
        grids: all numbers by name, those given and those computed, in the order of the calculation. Names are the
            field's symbols: ``X``, ``Wq``, ``q``, ``K``, ``V``, ``scores``, ``scaled``, ``weights``, ``alignment``,
            ``context``.
        steps: how each computed grid is made from those before it. A grid that no step makes is given.
        model: whose calculation it is; empty for numbers made by hand.
        text: what the model read, as typed; empty likewise.
        kind: which attention it is; None for numbers made by hand.
        layer: its number, counted from 0; None where there is no model.
        head: likewise.
        query: the number of the query's row; None where all queries are walked at once.
        own: the grid that was computed and that the model computed too; None where there is no model.
        difference: the largest difference between the two, where the steps start from the query, keys and values that
            the model itself handed to its attention; None likewise.
        from_input: the same from the input on: what the model's number format rounds off in the maps that make query,
            keys and values is then in it. None where these are given.
        receipt: proof of the forward pass that q, k and v were taken from.
        notes: what was done to the input, a sentence each.
    """

    title: str
    grids: Mapping[str, Grid]
    steps: tuple[Step, ...]
    model: str = ""
    text: str = ""
    kind: Kind | None = None
    layer: int | None = None
    head: int | None = None
    query: int | None = None
    own: str | None = None
    difference: float | None = None
    from_input: float | None = None
    receipt: Receipt | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        known = set(self.grids) - {step.result for step in self.steps}
        for step in self.steps:
            missing = [name for name in step.operands if name not in known]
            if missing or step.result not in self.grids:
                raise RecordError(
                    f"step {step.name} is made from {', '.join(step.operands)}: no {missing or step.result}"
                )
            known.add(step.result)

    def given(self) -> tuple[str, ...]:
        """The grids that no step makes."""
        made = {step.result for step in self.steps}
        return tuple(name for name in self.grids if name not in made)
