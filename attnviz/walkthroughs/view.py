"""A walkthrough prepared for display: every view draws the same titles, formulas, grids and cells."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from attnviz.errors import SelectionError, SettingsError
from attnviz.text.display import visible
from attnviz.text.messages import Phrase, _, expect_language, in_language
from attnviz.text.notes import proof, sentence
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.calculation import spell_out
from attnviz.walkthroughs.operations import ARROW, KEYS_PLACE
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.texts import BY_KEY, NOTES

if TYPE_CHECKING:
    from pandas import DataFrame

Blanks = frozenset[tuple[str, int, int]]  # cells that a learner fills in: grid, row, column
BLANK = "____"
MOST_DIGITS = 17  # after the point: all that a double holds
DIGITS = 3
DIGITS_OF_EXAMPLE = 8  # the smallest weight of the example ``seq2seq`` is 2.9e-20
ALIKE = 0.005  # weights that differ by less are equal in two digits
LEAST = 4  # vectors of no more numbers are never shortened

# Steps that a layer has once for each head.
OF_HEADS = {
    *("query", "keys", "values", "split_query", "split_keys", "split_values", "context"),
    *BY_KEY,
}


def frame(walk: Walkthrough) -> DataFrame:
    """Return the numbers of each query and key as a frame, a column for each grid. Raises SelectionError: no scores."""
    from pandas import DataFrame, MultiIndex

    made = [step.result for step in walk.steps if step.name in BY_KEY and step.operation != "weigh"]
    grids = {name: walk.grids[name] for name in dict.fromkeys([*made, *walk.distributions()])}
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


# the rows or columns that are shown; None stands for those left out there
Cut = tuple[int | None, ...]


def cut(n: int, most: int, first: int, last: int) -> Cut:
    """Return all of n rows or columns; of more than `most` the first and the last."""
    return tuple(range(n)) if n <= most else (*range(first), None, *range(n - last, n))


@dataclass(frozen=True, kw_only=True, eq=False)
class GridView:
    """One grid as every view shows it."""

    name: str  # its symbol, such as ``K``
    values: Float64[np.ndarray, "row column"]
    rows: tuple[str, ...]  # a name for each row; empty where they are only counted
    columns: tuple[str, ...]  # likewise
    blanks: frozenset[tuple[int, int]]  # rows and columns of cells that stay empty
    is_weights: bool  # whether it holds attention weights or probabilities
    is_upright: bool = False  # whether rows and columns are exchanged, so that each key is a row

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the rows; a single row without one has the grid's, others have their numbers."""
        if self.rows:
            return self.rows
        if len(self.values) == 1 and not self.is_upright:
            return (self.name,)
        return tuple(map(str, range(len(self.values))))

    @property
    def has_vectors(self) -> bool:
        """True if rows are vectors, of which the first and the last numbers tell enough."""
        return not self.is_upright and not self.columns

    @cached_property
    def top(self) -> float:
        """The number of the last colour: a weight of 1, or the largest amount."""
        finite = self.values[np.isfinite(self.values)]
        return 1.0 if self.is_weights else float(np.abs(finite).max(initial=0.0)) or 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A calculation, and how it is shown: the same for terminal, pages and pictures.

    Raises SelectionError: another language; SettingsError: a precision that no number has.
    """

    walk: Walkthrough
    lang: str = "en"
    precision: int | None = None  # digits after the point; None is 3, of the example ``seq2seq`` 8
    blanks: Blanks = frozenset()  # cells that a learner fills in

    def __post_init__(self) -> None:
        expect_language(self.lang)
        if self.precision is not None and self.precision not in range(MOST_DIGITS + 1):
            raise SettingsError(
                f"the precision is from 0 to {MOST_DIGITS} digits, not {self.precision!r}"
            )

    @property
    def digits(self) -> int:
        """Digits after the point of each number."""
        if self.precision is not None:
            return self.precision
        return DIGITS_OF_EXAMPLE if self.walk.title.code == "title_seq2seq" else DIGITS

    def say(self, message: Phrase, /, **fields: object) -> str:
        """Return a message in the language of the view."""
        return in_language(message.format(**fields), self.lang)

    @property
    def title(self) -> str:
        """The title of the calculation."""
        return in_language(sentence(self.walk.title, NOTES), self.lang)

    @property
    def title_and_text(self) -> str:
        """The title, and the sentence that the model read."""
        return f"{self.title} · “{visible(self.walk.text)}”" if self.walk.text else self.title

    @property
    def source(self) -> str:
        """The model, if the title does not name it, the sentence, layer and head."""
        walk, parts = self.walk, []
        if walk.model and walk.model not in self.title:
            parts.append(walk.model)
        if walk.text:
            parts.append(f"“{visible(walk.text)}”")
        if walk.head is not None:
            words = _("layer {layer}, head {head} (counted from 0)")
            parts.append(self.say(words, layer=walk.layer, head=walk.head))
        elif walk.layer is not None:
            parts.append(self.say(_("layer {layer} (counted from 0)"), layer=walk.layer))
        return " · ".join(parts)

    @property
    def finding(self) -> str:
        """The query and key of the largest weight, in a sentence; empty where they have no names."""
        walk, largest = self.walk, wording.strongest(self.walk)
        if largest is None:
            return ""
        row, key, head, weight = largest
        names = walk.distributions()
        grid = walk.grids[names[head]]
        if len(grid.columns) > 1 and np.ptp(grid.values[row]) < ALIKE:
            words = _("“{query}” attends equally to all keys ({weight} each)")
        else:
            words = _("“{query}” attends most to “{key}” ({weight})")
        text = self.say(words, query=grid.rows[row], key=grid.columns[key], weight=f"{weight:.2f}")
        if len(names) > 1:
            number = head if walk.layer is None else f"{walk.layer}.{head}"
            text += self.say(_(", head {n}"), n=number)
        return text

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the input, a sentence each."""
        return tuple(in_language(sentence(note, NOTES), self.lang) for note in self.walk.notes)

    @property
    def receipt(self) -> str:
        """The distance of the numbers from the model's own, and the receipt."""
        walk = self.walk
        if not walk.model:
            return self.say(_("A calculation by hand: no model to compare with"))
        if walk.own is None or walk.difference is None:
            return self.say(_("The model has no such numbers of its own to compare with"))
        words = _("The recomputed {own} matches the model's to {difference}")
        text = self.say(words, own=walk.own, difference=_short(walk.difference))
        if walk.from_input is not None:
            words = _(" ({difference} from the input on)")
            text += self.say(words, difference=_short(walk.from_input))
        if walk.receipt is not None:
            text += f"; {in_language(proof(walk.receipt), self.lang)}"
        return text

    @property
    def signs(self) -> str:
        """The meaning of the signs in the formulas."""
        return self.say(_("q Kᵀ is a matrix product; ⊙ multiplies cell by cell"))

    def grid(self, name: str, *, upright: bool = False) -> GridView:
        """Return a grid as it is shown, its rows and columns exchanged if it is to stand upright."""
        walk, grid = self.walk, self.walk.grids[name]
        blanks = [(row, column) for of, row, column in self.blanks if of == name]
        values, rows, columns = grid.values, grid.rows, grid.columns
        if upright:
            values, rows, columns = values.T, columns, ()
            blanks = [(column, row) for row, column in blanks]
        softmaxes = [step.result for step in walk.steps if step.operation == "softmax"]
        return GridView(
            name=name,
            values=values,
            rows=rows,
            columns=columns,
            blanks=frozenset(blanks),
            is_upright=upright,
            is_weights=name in softmaxes or name in walk.distributions(),
        )

    def step_views(self) -> list[StepView]:
        """Return the steps, in the order of the calculation."""
        walk, views, unused = self.walk, [], set(self.walk.inputs())
        follows_one = query_weights(walk) is not None
        for number, step in enumerate(walk.steps, start=1):
            inputs = tuple(name for name in dict.fromkeys(step.operands) if name in unused)
            unused -= set(inputs)
            is_by_key = follows_one and step.name in BY_KEY
            title, explanation = wording.explain(step.name, self.lang)
            views.append(
                StepView(
                    number=number,
                    numbers=str(number),
                    step=step,
                    inputs=inputs,
                    is_by_key=is_by_key,
                    title=title,
                    sentence=explanation,
                    column=wording.column_title(step.name, self.lang),
                    formula=wording.formula_of(walk, step, language=self.lang),
                    shapes=wording.shapes_of(walk, step, language=self.lang),
                    hand=self._hand(step),
                    parts=self._parts(step, is_by_key=is_by_key),
                )
            )
        return views

    def _hand(self, step: CalculationStep) -> str:
        """Return one cell worked out by hand; empty where that would fill in a blank."""
        if {grid for grid, _, _ in self.blanks} & {step.result, *step.operands}:
            return ""
        row, column = telling_cell(self.walk, step)
        name = cell_name(step.result, self.walk.grids[step.result], row, column, self.lang)
        arithmetic = spell_out(self.walk, step, row, column, self.digits, language=self.lang)
        return f"{name}: {arithmetic}"

    def _parts(self, step: CalculationStep, *, is_by_key: bool) -> tuple[tuple[str, GridView], ...]:
        """Return the operands and the result, each with the sign before it.

        Of one query, rows of numbers for its keys stand upright.
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
        """Return the steps, in the order of the calculation; the same step of several heads once."""
        views = self.step_views()
        if len(self.walk.distributions()) <= 1:
            return views
        groups: dict[tuple[str, bool], list[StepView]] = {}
        for view in views:
            if view.step.name in OF_HEADS:
                key = view.step.name, "_cross_" in view.step.result
            else:
                key = view.step.result, False
            groups.setdefault(key, []).append(view)
        return [
            _join_heads(group) if group[0].step.name in OF_HEADS else group[0]
            for group in groups.values()
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class StepView:
    """A step as every view shows it."""

    number: int  # its place in the calculation, counted from 1
    numbers: str  # the same as text; of several heads their places, as "2, 9, … 37"
    step: CalculationStep
    inputs: tuple[str, ...]  # the given grids that it is the first to need
    is_by_key: bool  # whether it makes something for each key of one query
    title: str
    sentence: str
    column: str  # the name of a column of its numbers
    formula: str
    shapes: str  # the formula with the shapes put in
    hand: str  # one cell by hand
    # operands and result with their signs; of heads the results
    parts: tuple[tuple[str, GridView], ...]
    heads: tuple[StepView, ...] = ()  # the steps of several heads that it stands for

    @property
    def result(self) -> GridView:
        """The grid that it makes."""
        return self.parts[-1][1]


def _join_heads(views: list[StepView]) -> StepView:
    """Return one step for the same step of several heads."""
    places = [str(view.number) for view in views]
    if len(places) > 3:
        places[2:-1] = ["…"]
    return replace(
        views[0],
        heads=tuple(views),
        numbers=", ".join(places).replace("…,", "…"),
        formula=re.sub(r"_\d+(?!\d)", "", views[0].formula),  # names without the head's number
        parts=tuple(("", view.result) for view in views),
    )


def query_weights(walk: Walkthrough) -> Grid | None:
    """Return the weights of the one query that is followed; None where several are walked, or several heads."""
    weights = [walk.grids[name] for name in walk.distributions()]
    return weights[0] if len(weights) == 1 and len(weights[0].values) == 1 else None


def telling_cell(walk: Walkthrough, step: CalculationStep) -> tuple[int, int]:
    """Return the cell that every view works out: of the largest weight, or number; of vectors the first."""
    grid, weights = walk.grids[step.result], query_weights(walk)
    values, row = grid.values, 0
    if weights is not None and step.name in BY_KEY:
        key = int(weights.values[0].argmax())
        if step.operation != "weigh":
            return 0, key
        row = key
    elif step.name in BY_KEY or step.name == "context":
        row = len(values) - 1  # the last query is the one that may see most
        first = next((walk.grids[name].values for name in walk.distributions()), values)
        if step.name in BY_KEY and first.shape == values.shape:
            return row, int(first[row].argmax())
    if not grid.columns and values.shape[1] > LEAST:
        return row, 0
    return row, int(np.where(np.isfinite(values[row]), np.abs(values[row]), -1.0).argmax())


def cell_name(name: str, grid: Grid, row: int, column: int, language: str) -> str:
    """Return the name of a cell, as "scores, love" or "alignment, love, column 3"."""
    parts = [name]
    if len(grid.values) > 1:
        parts.append(line_name("row", grid.rows, row, language))
    parts.append(line_name("column", grid.columns, column, language))
    return ", ".join(parts)


def line_name(axis: str, names: tuple[str, ...], number: int, language: str) -> str:
    """Return the name of a row or a column; its number where it has none."""
    if names:
        return names[number]
    words = _("row {n}") if axis == "row" else _("column {n}")
    return in_language(words.format(n=number), language)


def _short(difference: float) -> str:
    return f"{difference:.1e}" if difference else "0"
