"""A walkthrough prepared for display: every view draws the same titles, formulas, grids and cells."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from jaxtyping import Float64

from attnviz.errors import SelectionError, SettingsError
from attnviz.text.display import visible
from attnviz.text.messages import expect_language, in_language
from attnviz.text.notes import proof, sentence
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.calculation import spell_out
from attnviz.walkthroughs.operations import ARROW, OPERATIONS
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


class ViewOptions(TypedDict, total=False):
    """The options of every view of a walkthrough; each has the default that is written here.

    A language that is not there is refused with a SelectionError; so is a palette, in pictures.
    """

    lang: str  # one of `attnviz.text.messages.LANGUAGES`; English
    # digits after the point of each number; None is 3, of the example ``seq2seq`` 8
    precision: int | None
    blanks: Blanks  # cells that a learner fills in: grid, row, column; none


def frame(walk: Walkthrough) -> DataFrame:
    """Return the numbers of each query and key as a frame, a column for each grid. Raises SelectionError: no scores."""
    from pandas import DataFrame, MultiIndex

    made = [step.result for step in walk.steps if step.name in BY_KEY and step.operation != "weigh"]
    grids = {name: walk.grids[name] for name in dict.fromkeys([*made, *walk.distributions()])}
    if not grids:
        raise SelectionError("this calculation has no scores: no query looks at a key")
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
    values: Float64[np.ndarray, "row column"]  # its numbers
    rows: tuple[str, ...]  # a name for each row; empty where they are only counted
    columns: tuple[str, ...]  # likewise
    blanks: frozenset[tuple[int, int]]  # rows and columns of cells that stay empty
    is_weights: bool  # whether it holds shares of one: a softmax made it, or weights are given; others have signs
    is_upright: bool = False  # whether rows and columns are exchanged: what one query makes of its keys, a row a key

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the rows; a single row without one has the grid's, others have their numbers."""
        n_rows = len(self.values)
        return self.rows or (
            (self.name,) if n_rows == 1 and not self.is_upright else tuple(map(str, range(n_rows)))
        )

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
    """A calculation, and how it is shown, as in `ViewOptions`: the same for terminal, pages and pictures.

    Raises SelectionError: another language; SettingsError: a precision that no number has.
    """

    walk: Walkthrough
    lang: str = "en"
    precision: int | None = None
    blanks: Blanks = frozenset()

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

    def say(self, phrase: str, /, **fields: object) -> str:
        """Return one of the phrases, in the language of the view."""
        return wording.say(phrase, self.lang, **fields)

    @property
    def title(self) -> str:
        """The title of the calculation."""
        return in_language(sentence(self.walk.title, NOTES), self.lang)

    @property
    def source(self) -> str:
        """The model, if the title does not name it, the sentence, layer, head and query."""
        walk, parts, places = self.walk, [], []
        if walk.model and walk.model not in self.title:
            parts.append(walk.model)
        if walk.text:
            parts.append(f"“{visible(walk.text)}”")
        if walk.layer is not None:
            places.append(self.say("layer", n=walk.layer))
        if walk.head is not None:
            places.append(self.say("head", n=walk.head))
        if places:
            parts.append(self.say("counted", where=", ".join(places)))
        query = wording.query_name(walk)
        if query:
            parts.append(self.say("query is", name=f"{query} ({self.say('row', n=walk.query)})"))
        return " · ".join(parts)

    @property
    def finding(self) -> str:
        """The query and key of the largest weight, in a sentence; empty where they have no names."""
        walk, largest = self.walk, wording.strongest(self.walk)
        if largest is None:
            return ""
        row, key, head, weight = largest
        grids = [walk.grids[name] for name in walk.distributions()]
        grid = grids[head]
        query, name, weights = grid.rows[row], grid.columns[key], grid.values[row]
        is_itself = walk.kind in {"encoder", "decoder"} and key == walk.query and name == query
        if (weights > 0).sum() == 1:
            phrase = "finds one"
        elif np.ptp(weights) < ALIKE:
            phrase = "finds all"
        else:
            phrase = "finds"
        shown_key = self.say("itself") if is_itself else f"“{name}”"
        text = self.say(phrase, query=query, key=shown_key, weight=f"{weight:.2f}")
        if len(grids) > 1:
            number = head if walk.layer is None else f"{walk.layer}.{head}"
            text += f" ({self.say('head', n=number)})"
        return text

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes on the input, a sentence each."""
        return tuple(in_language(sentence(note, NOTES), self.lang) for note in self.walk.notes)

    @property
    def receipt(self) -> str:
        """The distance of the numbers from the model's own, and the receipt."""
        walk = self.walk
        if walk.own is None or walk.difference is None:
            return self.say("model" if walk.model else "hand")
        text = self.say(
            "near" if walk.difference else "same", own=walk.own, difference=f"{walk.difference:.1e}"
        )
        if walk.from_input is not None:
            text += self.say("from input", difference=f"{walk.from_input:.1e}")
        if walk.receipt is not None:
            text += f"; {in_language(proof(walk.receipt), self.lang)}"
        return text

    @property
    def signs(self) -> str:
        """The meaning of the signs in the formulas."""
        is_by_cells = wording.by_cells(self.walk.steps)
        return self.say("products") + (self.say("cells") if is_by_cells else "")

    def grid(self, name: str, *, upright: bool = False) -> GridView:
        """Return a grid as it is shown, its rows and columns exchanged if it is to stand upright."""
        walk, grid = self.walk, self.walk.grids[name]
        blanks = frozenset((row, column) for of, row, column in self.blanks if of == name)
        shares = {step.result for step in walk.steps if step.operation == "softmax"}
        values, rows, columns = grid.values, grid.rows, grid.columns
        if upright:
            values, rows, columns = values.T, columns, rows
            blanks = frozenset((row, column) for column, row in blanks)
        return GridView(
            name=name,
            values=values,
            rows=rows,
            columns=() if upright else columns,
            blanks=blanks,
            is_upright=upright,
            is_weights=name in shares or name in walk.distributions(),
        )

    def step_views(self) -> list[StepView]:
        """Return the steps, in the order of the calculation."""
        views, unused = [], set(self.walk.inputs())
        follows_one = query_weights(self.walk) is not None
        for number, step in enumerate(self.walk.steps, start=1):
            inputs = tuple(name for name in dict.fromkeys(step.operands) if name in unused)
            unused -= set(inputs)
            is_by_key = follows_one and step.name in BY_KEY
            words = wording.explain(step.name, self.lang)
            views.append(
                StepView(
                    number=number,
                    numbers=str(number),
                    step=step,
                    inputs=inputs,
                    is_by_key=is_by_key,
                    title=words.title,
                    sentence=words.sentence,
                    column=wording.short_title(step.name, self.lang),
                    formula=wording.formula_of(step, language=self.lang, walk=self.walk),
                    shapes=wording.shapes_of(self.walk, step, language=self.lang),
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

        What has a number for each key in a row stands upright.
        """
        operation, weighs = OPERATIONS[step.operation], step.operation == "weigh"
        keys = operation.axes[-2 if weighs else -1]
        upright = {
            place
            for place, side, letter in operation.sides(len(step.operands))
            if is_by_key and side == "columns" and letter.lower() == keys
        }
        parts = [
            (wording.between(step, place), self.grid(name, upright=place in upright))
            for place, name in enumerate(step.operands)
        ]
        return *parts, (ARROW, self.grid(step.result, upright=is_by_key and not weighs))

    def cards(self) -> list[StepView]:
        """Return the steps, in the order of the calculation; the same step of several heads once."""
        views = self.step_views()
        if len(self.walk.distributions()) <= 1:
            return views
        groups: dict[tuple[str, bool], list[StepView]] = {}
        for one in views:
            is_of_heads = one.step.name in OF_HEADS
            name = one.step.name if is_of_heads else one.step.result
            is_cross = is_of_heads and "_cross_" in one.step.result
            groups.setdefault((name, is_cross), []).append(one)
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
    parts: tuple[
        tuple[str, GridView], ...
    ]  # operands and result with their signs; of heads the results
    heads: tuple[StepView, ...] = ()  # the steps of several heads that it stands for

    @property
    def result(self) -> GridView:
        """The grid that it makes."""
        return self.parts[-1][1]


def _join_heads(views: list[StepView]) -> StepView:
    """Return one step for the same step of several heads."""
    places = [str(one.number) for one in views]
    if len(places) > 3:
        places = [places[0], f"{places[1]}, … {places[-1]}"]
    return replace(
        views[0],
        heads=tuple(views),
        numbers=", ".join(places),
        formula=re.sub(r"_\d+(?!\d)", "", views[0].formula),  # names without the head's number
        parts=tuple(("", one.result) for one in views),
    )


def query_weights(walk: Walkthrough) -> Grid | None:
    """Return the weights of the one query that is followed; None where several are walked, or several heads."""
    made = [walk.grids[name] for name in walk.distributions()]
    return made[0] if len(made) == 1 and len(made[0].values) == 1 else None


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
        made = next((walk.grids[one].values for one in walk.distributions()), values)
        if step.name in BY_KEY and made.shape == values.shape:
            return row, int(made[row].argmax())
    if not grid.columns and values.shape[1] > LEAST:
        return row, 0
    return row, int(np.where(np.isfinite(values[row]), np.abs(values[row]), -1.0).argmax())


def cell_name(name: str, grid: Grid, row: int, column: int, language: str) -> str:
    """Return the name of a cell, as "scores, love" or "alignment, love, number 3"."""
    parts = [name]
    if len(grid.values) > 1:
        parts.append(grid.rows[row] if grid.rows else wording.say("row", language, n=row))
    parts.append(
        grid.columns[column] if grid.columns else wording.say("number", language, n=column)
    )
    return ", ".join(parts)
