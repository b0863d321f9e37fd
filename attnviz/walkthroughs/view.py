"""What every view of a walkthrough chooses alike: steps, a query, the cell done by hand; and the steps as shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from attnviz.errors import SelectionError, SettingsError
from attnviz.text.display import visible
from attnviz.text.names import did_you_mean
from attnviz.text.phrase import expect_language
from attnviz.walkthroughs.calculation import spell_out
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.texts import BY_KEY
from attnviz.walkthroughs.wording import explain, formula_of, say, shapes_of

Blanks = frozenset[tuple[str, int, int]]  # cells that a learner fills in: grid, row, column
BLANK = "____"
MOST_DIGITS = 17  # after the point: all that a double holds
PRECISION, PRECISE = 3, {"title_seq2seq": 8}  # usual digits after the point; by title, where small weights need more
LEAST = 4  # vectors of no more numbers are never shortened; of longer ones the first number is always shown


class ViewOptions(TypedDict, total=False):
    """What every view of a walkthrough takes; each has the default that is written here.

    A language, or a step, that is not there is refused with a SelectionError; so is a palette, in pictures.
    """

    lang: str  # one of `attnviz.text.phrase.LANGUAGES`; English
    precision: int | None  # digits after the point of each number; None is 3, of the example ``seq2seq`` 8
    steps: str | Sequence[str] | None  # the steps to show, as `step_names` reads them; None is all
    blanks: Blanks  # cells that a learner fills in: grid, row, column; none


def find_steps(
    walk: Walkthrough, wanted: str | Sequence[str] | None, first: int = 1
) -> list[tuple[int, CalculationStep]]:
    """The steps wanted, from a step on, with their numbers from 1. Raises SelectionError: one is not there, or none."""
    steps, names = list(enumerate(walk.steps, start=1)), None if wanted is None else step_names(walk, wanted)
    found = [(number, step) for number, step in steps if names is None or step.name in names]
    if found and not 1 <= first <= found[-1][0]:
        raise SelectionError(f"there is no step {first} to begin at: the last one is {found[-1][0]}, counted from 1")
    return [(number, step) for number, step in found if number >= first]


def step_names(walk: Walkthrough, wanted: str | Sequence[str]) -> tuple[str, ...]:
    """The names of steps that a person means, in a list or with commas: names, results, or how a name begins.

    Raises SelectionError: one that this calculation has not.
    """
    found: list[str] = []
    for part in filter(None, (str(one).strip() for one in (wanted.split(",") if isinstance(wanted, str) else wanted))):
        word = part.lower()
        meant = (
            [step.name for step in walk.steps if step.name.lower() == word]
            or [step.name for step in walk.steps if step.result.lower() == word]
            or [step.name for step in walk.steps if step.name.lower().startswith(word)]
        )
        if not meant:
            known = dict.fromkeys(step.name for step in walk.steps)
            raise SelectionError(f"there is no step '{visible(part)}'{did_you_mean(part, known)}")
        found += meant
    if not found:
        raise SelectionError("no step is named: choose some, such as score,softmax,context")
    return tuple(dict.fromkeys(found))


def columns_by_key(walk: Walkthrough) -> tuple[Sequence[object], Sequence[object], dict[str, np.ndarray]]:
    """Queries and keys, by name or number, and by grid a number for each pair. Raises SelectionError: no scores."""
    made = [step.result for step in walk.steps if step.name in BY_KEY and step.operation != "weigh"]
    grids = {name: walk.grids[name] for name in dict.fromkeys([*made, *walk.distributions()])}
    if not grids:
        raise SelectionError("this calculation has no scores: no query looks at a key")
    first = next(iter(grids.values()))
    n_queries, n_keys = first.values.shape
    columns = {
        name: grid.values.ravel() for name, grid in grids.items()
        if grid.values.shape == first.values.shape
    }  # fmt: skip
    return first.rows or range(n_queries), first.columns or range(n_keys), columns


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """A step as every view shows it."""

    number: int  # its place in the whole calculation, counted from 1
    step: CalculationStep  # the step itself
    given: tuple[str, ...]  # the grids made by no step that it is the first to need
    title: str  # what it is, in a few words
    sentence: str  # one for somebody who sees it for the first time
    formula: str  # with the names of its grids
    shapes: str  # the same with the shapes put in
    hand: str  # one telling cell of it by hand; empty where it would fill in a blank


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A calculation, and how it is shown, as in `ViewOptions`: the same for terminal, pages and pictures."""

    walk: Walkthrough
    lang: str = "en"
    precision: int | None = None
    steps: str | Sequence[str] | None = None
    blanks: Blanks = frozenset()

    def __post_init__(self) -> None:
        expect_language(self.lang)
        if self.precision is not None and self.precision not in range(MOST_DIGITS + 1):
            raise SettingsError(f"the precision is from 0 to {MOST_DIGITS} digits, not {self.precision!r}")

    @property
    def digits(self) -> int:
        """Digits after the point of each number."""
        return PRECISE.get(self.walk.title.code, PRECISION) if self.precision is None else self.precision

    def say(self, phrase: str, /, **fields: object) -> str:
        """One of the phrases, in the language of the view."""
        return say(phrase, self.lang, **fields)

    def shown(self, first: int = 1) -> list[ShownStep]:
        """The steps that are wanted, from a step on."""
        walk, language = self.walk, self.lang
        found, given = [], set(walk.given())
        for number, step in find_steps(walk, self.steps, first):
            words = explain(step.name, language)
            needed = tuple(name for name in dict.fromkeys(step.operands) if name in given)
            given -= set(needed)
            formula = formula_of(step, language=language, walk=walk)
            shapes, hand = shapes_of(walk, step, language=language), self._by_hand(step)
            texts = {"title": words.title, "sentence": words.sentence, "formula": formula, "shapes": shapes}
            found.append(ShownStep(number=number, step=step, given=needed, hand=hand, **texts))
        return found

    def _by_hand(self, step: CalculationStep) -> str:
        if {grid for grid, _, _ in self.blanks} & {step.result, *step.operands}:
            return ""
        row, column = telling_cell(self.walk, step)
        name = cell_name(step.result, self.walk.grids[step.result], row, column, self.lang)
        return f"{name}: {spell_out(self.walk, step, row, column, self.digits, language=self.lang)}"

    def blanks_of(self, name: str) -> frozenset[tuple[int, int]]:
        """The rows and columns of one grid's blank cells."""
        return frozenset((row, column) for grid, row, column in self.blanks if grid == name)

    def labels_of(self, name: str) -> tuple[str, ...]:
        """What the rows of a grid are called: by their names, a single one by the grid's, else by their numbers."""
        grid = self.walk.grids[name]
        n_rows = len(grid.values)
        return grid.rows or ((name,) if n_rows == 1 else tuple(map(str, range(n_rows))))

    def is_weights(self, name: str) -> bool:
        """Whether a grid holds shares of one: a softmax made it, or weights are given."""
        made = {step.result for step in self.walk.steps if step.operation == "softmax"}
        return name in made or name in self.walk.distributions()


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
        parts.append(grid.rows[row] if grid.rows else say("row", language, n=row))
    parts.append(grid.columns[column] if grid.columns else say("number", language, n=column))
    return ", ".join(parts)
