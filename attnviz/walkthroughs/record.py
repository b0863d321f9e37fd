"""The walkthrough as a value: named grids of numbers, and steps that each compute one grid from others.

A grid is a table of numbers, such as the queries or the weights; a cell is one number of it. Variables that hold a
walkthrough are called `walk`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Kind, Note, ReadOnly, Receipt, indices_of, parse_head
from attnviz.errors import RecordError, SelectionError
from attnviz.look import Look
from attnviz.result import Result
from attnviz.text.notes import sentence

if TYPE_CHECKING:
    from pandas import DataFrame

    from attnviz.walkthroughs.view import Blanks, View

__all__ = ["CalculationStep", "Grid", "Walkthrough"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid(ReadOnly):
    """Numbers in rows and columns, with their names. Raises RecordError: numbers and names do not fit together."""

    # in double precision; minus infinity for masked cells
    values: Float64[np.ndarray, "row column"]
    rows: tuple[str, ...] = ()  # a name for each row; empty if rows have only numbers
    columns: tuple[str, ...] = ()  # a name for each column, or empty

    def __post_init__(self) -> None:
        # copied, so that later changes of the caller's array do not change the grid
        values = np.array(self.values, dtype=np.float64)
        if values.ndim != 2:
            raise RecordError(f"a grid has rows and columns: got the shape {values.shape}")
        for axis, labels in (("row", self.rows), ("column", self.columns)):
            size = values.shape[axis == "column"]  # False and True index rows and columns
            if labels and len(labels) != size:
                raise RecordError(
                    f"a grid needs a name for each {axis}: expected {size}, got {len(labels)}"
                )
        self._lock(values=values)

    def describe_cell(self, row: int, column: int) -> str:
        """Return where a cell is, such as ``row 0 (love), column 2``."""
        places = []
        for axis, number, names in (("row", row, self.rows), ("column", column, self.columns)):
            has_name = names and names[number] != str(number)
            places.append(f"{axis} {number} ({names[number]})" if has_name else f"{axis} {number}")
        return ", ".join(places)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalculationStep:
    """One step of the calculation."""

    name: str  # the kind of step, such as ``scores``, which determines its explanation
    result: str  # the name of the grid that it computes
    operation: str  # a name in `attnviz.walkthroughs.operations.OPERATIONS`
    operands: tuple[str, ...]  # the names of the grids that it is computed from
    number: float | None = None  # a further argument of some operations, such as ``times``


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Walkthrough(Result):
    """A calculation of attention with all its numbers. Raises RecordError: a grid that a step names is missing."""

    ENDINGS = (".png", ".svg", ".pdf", ".html", ".json", ".md", ".csv")

    title: Note  # its text is in `attnviz.walkthroughs.texts.NOTES`
    # All given and computed numbers by name, in the order of the calculation. The names are the usual symbols: X, Wq,
    # q, K, V, scores, scaled, weights, alignment, context.
    grids: Mapping[str, Grid]
    # how each computed grid follows from earlier grids; the given grids have no step
    steps: tuple[CalculationStep, ...]
    model: str = ""  # the name of the model; empty for a calculation by hand
    text: str = ""  # the sentence that the model read, as typed; empty for a calculation by hand
    kind: Kind | None = None  # the kind of attention; here and below None for a calculation by hand
    layer: int | None = None  # its number, counted from 0
    head: int | None = None  # its number, counted from 0; also None for a whole layer
    # the index of the query's row; None if all queries are followed at once
    query: int | None = None
    own: str | None = None  # the grid that is compared with the model's own numbers
    # The largest difference between the recomputed grid and the model's own, if the steps start from the model's query,
    # keys and values. `from_input` is the difference if they start from the input; it includes the rounding of the
    # projections in the model's number format, and is None if query, keys and values are given.
    difference: float | None = None
    from_input: float | None = None
    receipt: Receipt | None = None  # proof of the forward pass from which q, k and v are taken
    notes: tuple[Note, ...] = ()  # remarks on how the input was changed

    def __post_init__(self) -> None:
        known_names = set(self.grids) - {step.result for step in self.steps}
        for step in self.steps:
            for name in step.operands:
                if name not in known_names:
                    raise RecordError(
                        f"step {step.name} is made from {name}, which is not there before it"
                    )
            if step.result not in self.grids:
                raise RecordError(f"step {step.name} makes {step.result}, which is not there")
            if step.result in known_names:
                raise RecordError(f"step {step.name} makes {step.result}, which is there already")
            known_names.add(step.result)

    def inputs(self) -> tuple[str, ...]:
        """Return the names of the given grids, which no step computes."""
        results = {step.result for step in self.steps}
        return tuple(name for name in self.grids if name not in results)

    def distributions(self) -> tuple[str, ...]:
        """Return the names of the attention weights, one per head: computed by a softmax, or given."""
        results = tuple(step.result for step in self.steps if step.name == "softmax")
        return results or tuple(name for name in self.inputs() if name == "weights")

    def __repr__(self) -> str:
        if not self.model:
            name = sentence(replace(self.title, code=self.title.code.removeprefix("title_")))
            return f"<Walkthrough {name!r}: {len(self.steps)} steps>"
        place = f"layer {self.layer}" if self.head is None else f"head {self.layer}.{self.head}"
        return f"<Walkthrough of {self.model!r} ({self.kind}), {place}: {self.text!r}, {len(self.steps)} steps>"

    def __getitem__(self, place: tuple[int, int] | str) -> Float64[np.ndarray, "query key"]:
        """Return the weights of one head, ``walk[layer, head]``; a calculation by hand is layer 0.

        If a layer has self-attention and cross attention, `kind` chooses. Raises SelectionError: the walkthrough has no
        such layer or head.
        """
        names = self.distributions()
        # The layer has self-attention and cross attention: keep the weights of one of them.
        if any("_cross" in name for name in names):
            names = tuple(name for name in names if ("_cross" in name) == (self.kind == "cross"))
        if not names:
            raise SelectionError("this calculation has no attention weights")
        layer, head = parse_head(place)
        indices_of([layer], [self.layer or 0], "layer")
        heads = range(len(names)) if self.head is None else [self.head]
        (number,) = indices_of([head], heads, "head")
        return np.asarray(self.grids[names[number]].values)

    def view(
        self, look: Look, *, precision: int | None = None, blanks: Blanks = frozenset()
    ) -> View:
        """Return what a view shows, with `precision` digits after the point and empty cells at `blanks`.

        Raises SettingsError: the precision is out of range.
        """
        from attnviz.walkthroughs.view import View
        from attnviz.walkthroughs.wording import in_language

        return View(walk=in_language(self), precision=precision, blanks=blanks)

    def blanks(self) -> frozenset[tuple[str, int, int]]:
        """Return the cells (grid, row, column) for a learner to fill in: all that are computed from the scores on.

        No computed number is given, since it would hand over others: a weight and its value, for example, give the
        alignment vector.
        """
        names = [step.name for step in self.steps]
        first = names.index("scores") if "scores" in names else 0
        return frozenset(
            (step.result, row, column)
            for step in self.steps[first:]
            for row, column in np.ndindex(self.grids[step.result].values.shape)
        )

    def to_frame(self) -> DataFrame:
        """Return the scores, weights and the steps between them as a pandas frame.

        There is one row per pair of query and key, by name or number, and one column per grid. Raises SelectionError:
        there are no scores.
        """
        from pandas import DataFrame, MultiIndex

        from attnviz.walkthroughs.texts import BY_KEY

        names = [
            step.result for step in self.steps if step.name in BY_KEY and step.operation != "weigh"
        ]
        grids = {name: self.grids[name] for name in dict.fromkeys([*names, *self.distributions()])}
        if not grids:
            raise SelectionError("this calculation has no scores: no query is compared with a key")
        first = next(iter(grids.values()))
        n_queries, n_keys = first.values.shape
        pairs = first.rows or range(n_queries), first.columns or range(n_keys)
        columns = {
            name: grid.values.ravel()
            for name, grid in grids.items()
            if grid.values.shape == first.values.shape
        }
        return DataFrame(columns, index=MultiIndex.from_product(pairs, names=("query", "key")))
