"""A walkthrough prepared for display: every view draws the same titles, formulas, grids and cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from attnviz.errors import SettingsError
from attnviz.text.display import rounding, visible
from attnviz.text.messages import N_, _
from attnviz.text.notes import CUT, proof, sentence
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.calculation import spell_out
from attnviz.walkthroughs.hand import BLANK, MANY, TINY, format_number
from attnviz.walkthroughs.operations import ARROW, KEYS_PLACE
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.texts import BY_KEY, NOTES

Blanks = frozenset[tuple[str, int, int]]  # cells that a learner fills in: grid, row, column
MOST_DIGITS = 17  # digits after the point; a double holds no more
DIGITS = 3
DIGITS_OF_EXAMPLE = 8  # the smallest weight of the example ``seq2seq`` is 2.9e-20
ALIKE = 0.005  # weights that differ by less look equal with two digits
MOST_SMALL = 4  # small weights that are listed
LEAST = 4  # vectors with at most this many numbers are never shortened

# Steps that occur once per head in a walkthrough of a layer.
OF_HEADS = {
    *("query", "keys", "values", "split_query", "split_keys", "split_values", "context"),
    *BY_KEY,
}


# The indices of the rows or columns that are shown; None stands for those left out at that place.
Cut = tuple[int | None, ...]


def cut(n: int, most: int, first: int, last: int) -> Cut:
    """Return the indices of all n rows or columns; if there are more than `most`, only the first and the last."""
    return tuple(range(n)) if n <= most else (*range(first), None, *range(n - last, n))


@dataclass(frozen=True, kw_only=True, eq=False)
class GridView:
    """One grid, prepared for display."""

    name: str  # its symbol, such as ``K``
    values: Float64[np.ndarray, "row column"]  # NaN for cells that a learner fills in
    rows: tuple[str, ...]  # a name for each row; empty if rows have only numbers
    columns: tuple[str, ...]  # a name for each column, or empty
    is_weights: bool  # whether it holds attention weights or probabilities
    is_upright: bool = False  # whether the grid is transposed, so that each key is a row

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the rows; rows without names have their numbers, a single row has the grid's name."""
        if self.rows:
            return self.rows
        if len(self.values) == 1 and not self.is_upright:
            return (self.name,)
        return tuple(map(str, range(len(self.values))))

    @property
    def has_vectors(self) -> bool:
        """True if the rows are vectors, which may be shortened to their first and last numbers."""
        return not self.is_upright and not self.columns

    @cached_property
    def top(self) -> float:
        """The number that has the strongest colour: 1 for weights, otherwise the largest absolute value."""
        finite = self.values[np.isfinite(self.values)]
        return 1.0 if self.is_weights else float(np.abs(finite).max(initial=0.0)) or 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A calculation with its display options, shared by terminal, pages and pictures.

    Raises SettingsError: the precision is out of range.
    """

    walk: Walkthrough
    # digits after the point; None is 3, and in the arithmetic of the example ``seq2seq`` 8
    precision: int | None = None
    blanks: Blanks = frozenset()  # cells that a learner fills in

    def __post_init__(self) -> None:
        if self.precision is not None and self.precision not in range(MOST_DIGITS + 1):
            raise SettingsError(
                f"the precision is from 0 to {MOST_DIGITS} digits, not {self.precision!r}"
            )

    @property
    def digits(self) -> int:
        """The number of digits after the point."""
        return DIGITS if self.precision is None else self.precision

    def digits_of(self, grid: GridView) -> int:
        """Return the digits of a matrix; vectors get one less unless the user chose, or computes with them."""
        is_short = self.precision is None and grid.has_vectors and not self.blanks
        return self.digits - is_short

    @property
    def full_digits(self) -> int:
        """The number of digits after the point where there is room: in arithmetic and in the tables of each step."""
        if self.precision is None and self.walk.title.code == "title_seq2seq":
            return DIGITS_OF_EXAMPLE
        return self.digits

    @property
    def title(self) -> str:
        """The title of the calculation."""
        return sentence(self.walk.title, NOTES)

    @property
    def heading(self) -> tuple[str, str]:
        """The finding, and below it the title and the sentence; without a finding, the title and the source."""
        finding = "" if self.blanks else self.finding
        if not finding:
            return self.title, self.source
        text = f" · “{visible(self.walk.text)}”" if self.walk.text else ""
        return finding, self.title + text

    @property
    def task(self) -> str:
        """A line for the learner's name, and what to do; empty without blanks."""
        if not self.blanks:
            return ""
        words = _("Name: {line}   Fill in the blanks; round to {n} decimals")
        return words.format(line=BLANK * 5, n=self.digits)

    @property
    def source(self) -> str:
        """The model (unless the title names it), the sentence, the layer and the head."""
        walk, parts = self.walk, []
        if walk.model and walk.model not in self.title:
            parts.append(walk.model)
        if walk.text:
            parts.append(f"“{visible(walk.text)}”")
        if walk.head is not None:
            words = _("layer {layer}, head {head} (counted from 0)")
            parts.append(words.format(layer=walk.layer, head=walk.head))
        elif walk.layer is not None:
            parts.append(_("layer {layer} (counted from 0)").format(layer=walk.layer))
        return " · ".join(parts)

    @property
    def finding(self) -> str:
        """A sentence about the query and key with the largest weight; empty if they have no names."""
        walk, strongest_cell = self.walk, wording.strongest(self.walk)
        if strongest_cell is None:
            return ""
        row, key, head, weight = strongest_cell
        names = walk.distributions()
        grid = walk.grids[names[head]]
        softmax = next((step for step in walk.steps if step.result == names[head]), None)
        if not walk.model and walk.query is not None and softmax and weight > 1 - 10**-DIGITS / 2:
            score = float(walk.grids[softmax.operands[0]].values[row, key])
            words = _("Score {score} takes all the attention")
            return words.format(score=format_number(score, self.digits))
        if len(grid.columns) > 1 and np.ptp(grid.values[row]) < ALIKE:
            found = N_("“{query}” attends equally to all keys ({weight} each)")
        else:
            found = N_("“{query}” attends most to “{key}” ({weight})")
        text = _(found.format(query=grid.rows[row], key=grid.columns[key], weight=f"{weight:.2f}"))
        if len(names) > 1:
            number = head if walk.layer is None else f"{walk.layer}.{head}"
            text += _(", head {n}").format(n=number)
        return text

    @property
    def cut(self) -> str:
        """The note that the text was cut to what the model reads, which comes first; empty if it was not."""
        notes = (note for note in self.walk.notes if note.code in CUT)
        return " ".join(sentence(note, NOTES) for note in notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """The other notes on the input, one sentence each."""
        notes = (note for note in self.walk.notes if note.code not in CUT)
        return tuple(sentence(note, NOTES) for note in notes)

    @property
    def small_weights(self) -> str:
        """The digits of the weights of the only query that are written "≈ 0"; empty if there are none."""
        weights = query_weights(self.walk)
        if weights is None or self.blanks or self.digits > MANY:
            return ""
        texts = [
            f"{label} {format_number(value, self.full_digits)}"
            for label, value in zip(weights.columns, weights.values[0].tolist(), strict=False)
            if 0 < value < TINY
        ]
        if not texts:
            return ""
        texts[MOST_SMALL:] = ["…"] if len(texts) > MOST_SMALL else []
        return _("≈ 0 is not exactly 0: {weights}").format(weights=", ".join(texts))

    @property
    def receipt(self) -> str:
        """The largest difference from the model's own numbers, and the receipt; empty for an exercise."""
        walk = self.walk
        if not walk.model:
            if walk.title.code == "title_exercise":
                return ""
            return _("A calculation by hand: no model to compare with")
        if walk.receipt is None:
            return _("not verified: this walkthrough came without a receipt")
        if walk.own is None or walk.difference is None:
            return _("The model has no such numbers of its own to compare with")
        words = _("The recomputed {own} matches the model's to {difference}")
        own = _("context") if walk.own == "context" else walk.own
        difference = max(walk.difference, walk.from_input or 0)
        text = words.format(own=own, difference=rounding(difference))
        return f"{text}; {proof(walk.receipt)}"

    @property
    def signs(self) -> str:
        """The meaning of the signs in the formulas."""
        return _("q Kᵀ is a matrix product; ⊙ multiplies cell by cell")

    def grid(self, name: str, *, upright: bool = False) -> GridView:
        """Return a grid prepared for display, transposed if `upright`."""
        walk, grid = self.walk, self.walk.grids[name]
        values, rows, columns = grid.values, grid.rows, grid.columns
        blanks = [(row, column) for of, row, column in self.blanks if of == name]
        if blanks:
            values = values.copy()
            values[tuple(zip(*blanks, strict=True))] = np.nan
        if upright:
            values, rows, columns = values.T, columns, ()
        softmaxes = [step.result for step in walk.steps if step.operation == "softmax"]
        return GridView(
            name=name,
            values=values,
            rows=rows,
            columns=columns,
            is_upright=upright,
            is_weights=name in softmaxes or name in walk.distributions(),
        )

    def step_views(self) -> list[StepView]:
        """Return the steps, in the order of the calculation."""
        walk, views, unused_inputs = self.walk, [], set(self.walk.inputs())
        has_one_query = query_weights(walk) is not None
        for number, step in enumerate(walk.steps, start=1):
            inputs = tuple(name for name in dict.fromkeys(step.operands) if name in unused_inputs)
            unused_inputs -= set(inputs)
            is_by_key = has_one_query and step.name in BY_KEY
            title, explanation = wording.explain(step.name)
            views.append(
                StepView(
                    number=number,
                    numbers=str(number),
                    step=step,
                    inputs=inputs,
                    is_by_key=is_by_key,
                    title=title,
                    sentence=explanation,
                    column=wording.column_title(step.name),
                    formula=wording.formula_of(walk, step),
                    shapes=wording.shapes_of(walk, step),
                    hand=self._hand(step),
                    parts=self._parts(step, is_by_key=is_by_key),
                )
            )
        return views

    def _hand(self, step: CalculationStep) -> str:
        """Return the arithmetic of one cell; empty if it would give away a blank."""
        if {grid for grid, _, _ in self.blanks} & {step.result, *step.operands}:
            return ""
        row, column = telling_cell(self.walk, step)
        name = cell_name(step.result, self.walk.grids[step.result], row, column)
        arithmetic = spell_out(self.walk, step, row, column, self.full_digits)
        return f"{name}: {arithmetic}"

    def _parts(self, step: CalculationStep, *, is_by_key: bool) -> tuple[tuple[str, GridView], ...]:
        """Return the operands and the result, each with the sign before it.

        If only one query is followed, grids with one number per key are transposed, so that each key is a row.
        """
        weights = query_weights(self.walk)
        is_row_of_keys = is_by_key and step.operation not in KEYS_PLACE
        parts = []
        for place, name in enumerate(step.operands):
            has_keys = weights is not None and (
                self.walk.grids[name].values.shape == weights.values.shape
            )
            grid = self.grid(name, upright=is_row_of_keys and has_keys)
            parts.append((wording.between(step, place), grid))
        result = self.grid(step.result, upright=is_by_key and step.operation != "weigh")
        return *parts, (ARROW, result)

    def cards(self) -> list[StepView]:
        """Return the steps in the order of the calculation, with one card for a step that several heads share."""
        views = self.step_views()
        if len(self.walk.distributions()) <= 1:
            return views
        groups: dict[tuple[str, bool], list[StepView]] = {}
        for view in views:
            if view.step.name in OF_HEADS:
                # Self-attention and cross attention of one layer stay on separate cards.
                key = view.step.name, "_cross_" in view.step.result
            else:
                key = view.step.result, False
            groups.setdefault(key, []).append(view)
        return [_join_heads(group) if len(group) > 1 else group[0] for group in groups.values()]


@dataclass(frozen=True, kw_only=True, eq=False)
class StepView:
    """A step, prepared for display."""

    number: int  # its position in the calculation, counted from 1
    numbers: str  # the number as text; for several heads all of them, such as "2, 9, … 37"
    step: CalculationStep
    inputs: tuple[str, ...]  # the given grids that no earlier step uses
    is_by_key: bool  # whether it computes something for each key of the only query
    title: str
    sentence: str
    column: str  # the title of the column with its numbers
    formula: str
    shapes: str  # the formula with shapes instead of names
    hand: str  # the arithmetic of one cell
    # operands and result with their signs; for several heads only the results
    parts: tuple[tuple[str, GridView], ...]
    heads: tuple[StepView, ...] = ()  # the steps of the heads that this card stands for

    @property
    def result(self) -> GridView:
        """The result of the step."""
        return self.parts[-1][1]


def _join_heads(views: list[StepView]) -> StepView:
    """Return one card for a step that several heads share."""
    places = [str(view.number) for view in views]
    if len(places) > 3:  # keep the first two and the last
        places[2:-1] = ["…"]
    return replace(
        views[0],
        heads=tuple(views),
        numbers=", ".join(places).replace("…,", "…"),
        formula=re.sub(r"_\d+(?!\d)", "", views[0].formula),  # names without the head's number
        parts=tuple(("", view.result) for view in views),
    )


def stack(grids: Sequence[GridView], names: tuple[str, ...]) -> GridView:
    """Return grids of one row each as one grid, with these names for its rows."""
    return replace(grids[0], values=np.vstack([grid.values for grid in grids]), rows=names)


def query_weights(walk: Walkthrough) -> Grid | None:
    """Return the weights of the only query; None if there are several queries or several heads."""
    weights = [walk.grids[name] for name in walk.distributions()]
    return weights[0] if len(weights) == 1 and len(weights[0].values) == 1 else None


def telling_cell(walk: Walkthrough, step: CalculationStep) -> tuple[int, int]:
    """Return the row and column of the cell whose arithmetic is shown.

    This is the cell with the largest weight or number; in a long vector, the first column.
    """
    grid, weights = walk.grids[step.result], query_weights(walk)
    values, row = grid.values, 0
    if weights is not None and step.name in BY_KEY:
        key = int(weights.values[0].argmax())
        if step.operation != "weigh":
            return 0, key
        row = key
    elif step.name in BY_KEY or step.name == "context":
        row = len(values) - 1  # under a causal mask the last query has the most keys
        first = next((walk.grids[name].values for name in walk.distributions()), values)
        if step.name in BY_KEY and first.shape == values.shape:
            return row, int(first[row].argmax())
    if not grid.columns and values.shape[1] > LEAST:
        return row, 0
    return row, int(np.where(np.isfinite(values[row]), np.abs(values[row]), -1.0).argmax())


def cell_name(name: str, grid: Grid, row: int, column: int) -> str:
    """Return the name of a cell, such as "scores, love" or "alignment, love, column 3"."""
    parts = [name]
    if len(grid.values) > 1:
        parts.append(line_name("row", grid.rows, row))
    parts.append(line_name("column", grid.columns, column))
    return ", ".join(parts)


def line_name(axis: str, names: tuple[str, ...], number: int) -> str:
    """Return the name of a row or a column, or its number if it has no name."""
    if names:
        return names[number]
    words = _("row {n}") if axis == "row" else _("column {n}")
    return words.format(n=number)
