"""What every view of a walkthrough chooses alike: steps, a query, the cell done by hand; and the steps as shown."""

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
PRECISION, PRECISE = (
    3,
    {"title_seq2seq": 8},
)  # usual digits after the point; by title, where small weights need more
MOST_PLACES = 3  # steps of heads whose places are all told; of more, the first two and the last
LEVEL = 0.005  # weights that differ by less are the same in two digits: such a query looks at all keys alike
HEADED = {
    "query",
    "keys",
    "values",
    "split_query",
    "split_keys",
    "split_values",
    *BY_KEY,
    "context",
}  # of each head
LEAST = 4  # vectors of no more numbers are never shortened; of longer ones the first number is always shown


class ViewOptions(TypedDict, total=False):
    """What every view of a walkthrough takes; each has the default that is written here.

    A language that is not there is refused with a SelectionError; so is a palette, in pictures.
    """

    lang: str  # one of `attnviz.text.messages.LANGUAGES`; English
    # digits after the point of each number; None is 3, of the example ``seq2seq`` 8
    precision: int | None
    blanks: Blanks  # cells that a learner fills in: grid, row, column; none


def frame(walk: Walkthrough) -> DataFrame:
    """What each query makes of each key, by name or number: a column a grid. Raises SelectionError: no scores."""
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
    """Of n rows or columns all; of more than so many the first and the last."""
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
        """What its rows are called: by their names, a single one by the grid's, else by their numbers."""
        n_rows = len(self.values)
        return self.rows or (
            (self.name,) if n_rows == 1 and not self.is_upright else tuple(map(str, range(n_rows)))
        )

    @property
    def has_vectors(self) -> bool:
        """Whether its columns are the numbers of vectors, of which the first and the last tell enough."""
        return not self.is_upright and not self.columns

    @cached_property
    def top(self) -> float:
        """What the last colour stands for: a weight of 1, or the largest amount."""
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
        return (
            PRECISE.get(self.walk.title.code, PRECISION)
            if self.precision is None
            else self.precision
        )

    def say(self, phrase: str, /, **fields: object) -> str:
        """One of the phrases, in the language of the view."""
        return wording.say(phrase, self.lang, **fields)

    @property
    def title(self) -> str:
        """What is calculated, in one line."""
        return in_language(sentence(self.walk.title, NOTES), self.lang)

    @property
    def source(self) -> str:
        """Whose calculation it is: sentence, layer, head, query, and the model if the title does not name it."""
        walk, say = self.walk, self.say
        places = [
            say(what, n=n)
            for what, n in (("layer", walk.layer), ("head", walk.head))
            if n is not None
        ]
        parts = [walk.model] if walk.model and walk.model not in self.title else []
        parts += [f"“{visible(walk.text)}”"] if walk.text else []
        parts += [say("counted", where=", ".join(places))] if places else []
        name = wording.query_name(walk)
        parts += [say("query is", name=f"{name} ({say('row', n=walk.query)})")] if name else []
        return " · ".join(parts)

    @property
    def finding(self) -> str:
        """Which query looks most at which key, and how much, in one line; empty where nobody has a name."""
        walk, found = self.walk, wording.strongest(self.walk)
        if found is None:
            return ""
        row, key, head, weight = found
        grids = [walk.grids[name] for name in walk.distributions()]
        weights, query, name = (
            grids[head].values[row],
            grids[head].rows[row],
            grids[head].columns[key],
        )
        itself = walk.kind in {"encoder", "decoder"} and key == walk.query and name == query
        what = (
            "finds one"
            if (weights > 0).sum() == 1
            else "finds all"
            if np.ptp(weights) < LEVEL
            else "finds"
        )
        number = head if walk.layer is None else f"{walk.layer}.{head}"
        where = f" ({self.say('head', n=number)})" if len(grids) > 1 else ""
        seen = self.say("itself") if itself else f"“{name}”"
        return self.say(what, query=query, key=seen, weight=f"{weight:.2f}") + where

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the input, a sentence each."""
        return tuple(in_language(sentence(note, NOTES), self.lang) for note in self.walk.notes)

    @property
    def receipt(self) -> str:
        """How far the numbers are from the model's own, and how these were proved."""
        walk = self.walk
        if walk.own is None or walk.difference is None:
            return self.say("model" if walk.model else "hand")
        text = self.say(
            "near" if walk.difference else "same", own=walk.own, difference=f"{walk.difference:.1e}"
        )
        if walk.from_input is not None:
            text += self.say("from input", difference=f"{walk.from_input:.1e}")
        return (
            text
            if walk.receipt is None
            else f"{text}; {in_language(proof(walk.receipt), self.lang)}"
        )

    @property
    def signs(self) -> str:
        """What the signs in the formulas of its steps mean."""
        is_by_cells = wording.by_cells(self.walk.steps)
        return self.say("products") + (self.say("cells") if is_by_cells else "")

    def grid(self, name: str, *, upright: bool = False) -> GridView:
        """A grid as it is shown, its rows and columns exchanged if it is to stand upright."""
        walk, grid = self.walk, self.walk.grids[name]
        blanks = frozenset((row, column) for of, row, column in self.blanks if of == name)
        made = {step.result for step in walk.steps if step.operation == "softmax"}
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
            is_weights=name in made or name in walk.distributions(),
        )

    def step_views(self) -> list[StepView]:
        """The steps, in the order of the calculation."""
        found, left, is_one = [], set(self.walk.inputs()), query_weights(self.walk) is not None
        for number, step in enumerate(self.walk.steps, start=1):
            needed = tuple(name for name in dict.fromkeys(step.operands) if name in left)
            left -= set(needed)
            by_key = is_one and step.name in BY_KEY
            found.append(
                StepView(view=self, number=number, step=step, inputs=needed, is_by_key=by_key)
            )
        return found

    def cards(self) -> list[StepView]:
        """The steps, in the order of the calculation; of several heads the same step once."""
        made = self.step_views()
        if len(self.walk.distributions()) <= 1:
            return made
        found: dict[tuple[str | bool, ...], list[StepView]] = {}
        for one in made:
            is_headed = one.step.name in HEADED
            of = (one.step.name, "_cross_" in one.step.result) if is_headed else (one.step.result,)
            found.setdefault(of, []).append(one)
        return [
            replace(each[0], heads=tuple(each)) if each[0].step.name in HEADED else each[0]
            for each in found.values()
        ]


@dataclass(frozen=True, kw_only=True, eq=False)
class StepView:
    """A step as every view shows it."""

    view: View  # how
    number: int  # its place in the whole calculation, counted from 1
    step: CalculationStep  # the step itself
    inputs: tuple[str, ...]  # the grids made by no step that it is the first to need
    is_by_key: bool  # whether it makes something for each key of one query
    heads: tuple[StepView, ...] = ()  # where it stands for the same step of several heads, these

    @property
    def numbers(self) -> str:
        """Its place, as "2"; of several heads theirs, as "2, 9, … 37"."""
        places = [str(one.number) for one in self.heads] or [str(self.number)]
        return (
            ", ".join(places)
            if len(places) <= MOST_PLACES
            else f"{places[0]}, {places[1]}, … {places[-1]}"
        )

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return wording.explain(self.step.name, self.view.lang).title

    @property
    def sentence(self) -> str:
        """One for somebody who sees it for the first time."""
        return wording.explain(self.step.name, self.view.lang).sentence

    @property
    def column(self) -> str:
        """What a column of its numbers is called."""
        return wording.short_title(self.step.name, self.view.lang)

    @property
    def formula(self) -> str:
        """With the names of its grids, of several heads without their numbers."""
        text = wording.formula_of(self.step, language=self.view.lang, walk=self.view.walk)
        return re.sub(r"_\d+(?!\d)", "", text) if self.heads else text

    @property
    def shapes(self) -> str:
        """The formula with the shapes put in."""
        return wording.shapes_of(self.view.walk, self.step, language=self.view.lang)

    @property
    def hand(self) -> str:
        """One telling cell of it by hand; empty where it would fill in a blank."""
        view, walk, step = self.view, self.view.walk, self.step
        if {grid for grid, _, _ in view.blanks} & {step.result, *step.operands}:
            return ""
        row, column = telling_cell(walk, step)
        name = cell_name(step.result, walk.grids[step.result], row, column, view.lang)
        return f"{name}: {spell_out(walk, step, row, column, view.digits, language=view.lang)}"

    @cached_property
    def parts(self) -> tuple[tuple[str, GridView], ...]:
        """What it is made from and what it makes, each with the sign before it; of several heads what they make.

        What has a number for each key in a row stands upright.
        """
        if self.heads:
            return tuple(("", one.result) for one in self.heads)
        operation, weighs = OPERATIONS[self.step.operation], self.step.operation == "weigh"
        keys, sides = operation.axes[-2 if weighs else -1], operation.sides(len(self.step.operands))
        upright = {
            place for place, side, letter in sides if (side, letter.lower()) == ("columns", keys)
        }
        operands = [
            (
                wording.between(self.step, place),
                self.view.grid(name, upright=self.is_by_key and place in upright),
            )
            for place, name in enumerate(self.step.operands)
        ]
        return *operands, (
            ARROW,
            self.view.grid(self.step.result, upright=self.is_by_key and not weighs),
        )

    @property
    def result(self) -> GridView:
        """What it makes."""
        return self.parts[-1][1]


def query_weights(walk: Walkthrough) -> Grid | None:
    """The weights of the one query that is followed; None where several are walked, or several heads."""
    made = [walk.grids[name] for name in walk.distributions()]
    return made[0] if len(made) == 1 and len(made[0].values) == 1 else None


def telling_cell(walk: Walkthrough, step: CalculationStep) -> tuple[int, int]:
    """The cell that tells most, the same in every view: of the largest weight, or number; of vectors the first."""
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
    """As "scores, love" or "alignment, love, number 3"."""
    parts = [name]
    if len(grid.values) > 1:
        parts.append(grid.rows[row] if grid.rows else wording.say("row", language, n=row))
    parts.append(
        grid.columns[column] if grid.columns else wording.say("number", language, n=column)
    )
    return ", ".join(parts)
