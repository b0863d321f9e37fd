"""What every view of a walkthrough says and chooses: words, formulas, steps, a query, the cell done by hand.

A formula has no sign for the matrix product, as on any blackboard (Q K^T); between pictures, where nothing would look
like nothing, it is a cross. Cell by cell is always "⊙", and the dot is for numbers alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import Formatter
from typing import TypedDict

import numpy as np

from attnviz.attention import Receipt
from attnviz.errors import SelectionError
from attnviz.text.display import clip, visible
from attnviz.text.names import did_you_mean
from attnviz.text.notes import sentence
from attnviz.walkthroughs.calculation import spell_out
from attnviz.walkthroughs.operations import CELLS, OPERATIONS, SEVERAL, factor, scale
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.texts import BY_KEY, LANGUAGES, NOTES, PHRASES, words_of

_COUNTED = ("gain", "shift", "norm", "residual")
"""Grids whose numbers are no heads."""
MOST_LISTED = 16
"""Rows that a refusal names one by one."""
LEVEL = 0.005
"""Weights that differ by less are the same in two digits: such a query looks at all keys alike."""


def say(what: str, language: str, **fields: object) -> str:
    """One of the phrases, in a language of `LANGUAGES`."""
    return PHRASES[what][language == "ko"].format(**fields)


# -------------------------------------------------------------------------------------------------- steps and grids


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a step or a grid is.

    Attributes:
        title: a few words.
        sentence: one sentence for somebody who sees it for the first time; empty where nobody knows it.
    """

    title: str
    sentence: str


def explain(name: str, language: str = "en") -> Explanation:
    """What a step or a grid with this name is; a name that is not known explains itself.

    Args:
        name: as in `attnviz.walkthroughs.record`, such as ``scores`` or ``Wq``; ``Wq_3`` is that of head 3,
            ``Wq_cross_3`` of head 3 of cross attention where a layer has both.
        language: one of `LANGUAGES`.

    Raises:
        SelectionError: there is no such language.
    """
    expect_language(language)
    base, _, number = name.rpartition("_")
    known, more = words_of(name), ""
    if known is None:
        if not number.isdigit():
            base = name
        else:
            more = f" {number}" if base in _COUNTED else say("of head", language, number=number)
        of = base.removesuffix("_cross")
        known, more = words_of(of), (say("across", language) if of != base else "") + more
    if known is None:
        return Explanation(title=name.replace("_", " "), sentence="")
    title, sentence = known.ko if language == "ko" else known.en
    return Explanation(title=title + more, sentence=sentence)


def expect_language(language: str) -> None:
    """Refuse a language that is not there.

    Raises:
        SelectionError: it is none of `LANGUAGES`.
    """
    if language not in LANGUAGES:
        raise SelectionError(f"there is no language {language!r}: choose one of {', '.join(LANGUAGES)}")


def short_title(name: str, language: str) -> str:
    """What a column of a step's numbers is called."""
    words = words_of(name)
    return words.short[language == "ko"] if words is not None else name


def formula_of(
    step: CalculationStep,
    instead: Mapping[str, str] | None = None,
    *,
    language: str = "en",
    walk: Walkthrough | None = None,
) -> str:
    """The formula of a step with the names of its own grids, such as "scores = q K^T".

    Args:
        step: the step.
        instead: what to write for some of its operands.
        language: of the few words in it.
        walk: whose step it is: a factor is only written as a root where that is of the width of its queries and keys.
    """
    names = [(instead or {}).get(name, name) for name in step.operands]
    turned = [f"{name}^T" for name in names]
    return f"{step.result} = {_filled(step, names, turned, language, walk)}"


def shapes_of(walk: Walkthrough, step: CalculationStep, *, language: str = "en") -> str:
    """The formula of a step with the shapes put in, such as "(1, 4) = (1, 8) (8, 4)"; its few words in a language."""
    found = [walk.grids[name].values.shape for name in step.operands]
    own = OPERATIONS[step.operation].shapes
    text = None if own is None else own(found, language)
    if text is None:
        text = _filled(step, list(map(str, found)), [str(shape[::-1]) for shape in found], language, walk)
    return f"{walk.grids[step.result].values.shape} = {text}"


def formula_for_key(walk: Walkthrough, step: CalculationStep, language: str) -> str:
    """What a step makes of one query and one key, such as "score = q · k"; empty where that is no formula."""
    made = {one.result: one for one in walk.steps if one.name in BY_KEY}
    masked = {one.result: one.operands[0] for one in walk.steps if one.operation == "mask"}
    names = [masked.get(name, name) for name in step.operands]
    names = [short_title(made[name].name, language) if name in made else name for name in names]
    if step.operation == "weigh":
        names[1] = say("value", language)
    filled = OPERATIONS[step.operation].for_key.format(**_fields(step, names, names, walk))
    return filled and shown_formula(f"{short_title(step.name, language)} = {filled}")


def _filled(
    step: CalculationStep, names: Sequence[str], turned: Sequence[str], language: str, walk: Walkthrough | None
) -> str:
    """The formula of a step with its operands put in, as they are and with rows and columns exchanged."""
    operation = OPERATIONS[step.operation]
    if operation.joined is not None:
        begin, between_all, end = operation.joined
        listed = list(names) if len(names) <= 2 * SEVERAL else [*names[:2], "…", names[-1]]
        return begin + between_all.join(listed) + end
    fields = _fields(step, names, turned, walk)
    parts = operation.korean if language == "ko" and operation.korean else operation.formula
    return "".join(part.format(**fields) for part in parts if set(_holes(part)) <= set(fields))


def _fields(
    step: CalculationStep, names: Sequence[str], turned: Sequence[str], walk: Walkthrough | None
) -> dict[str, str]:
    """What stands for the operands and the number in the formula of a step."""
    number = 1.0 if step.number is None else step.number
    how, value = scale(number) if walk is None or step.operation != "times" else factor(walk, step)
    return {
        **dict(zip("abcde", names, strict=False)),
        **dict(zip("ABCDE", turned, strict=False)),
        "number": f"{number:g}",
        "factor": f"{how}({value:g})" if how != "*" else f"* {value:.6g}",
    }


def _holes(part: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(part) if name]


def between(step: CalculationStep, place: int) -> str:
    """The sign that stands on a sheet before an operand of a step; a comma where the formula is no chain of signs."""
    signs = OPERATIONS[step.operation].signs
    return "" if place == 0 else signs[min(place, len(signs)) - 1]


def multiplied(text: str) -> str:
    """A formula in which a product by a number has a dot and one cell by cell a circle."""
    return re.sub(r" \* (?=-?\d)", " · ", text).replace(" * ", f" {CELLS} ")


def shown_formula(text: str) -> str:
    """A formula as it is written on a blackboard."""
    text = re.sub(r"sqrt\((\d+)\)", r"√\1", text)
    return multiplied(text).replace("^T", "ᵀ").replace("sqrt(", "√(")


def by_cells(steps: Iterable[CalculationStep]) -> bool:
    """Whether any of these steps multiplies cell by cell."""
    return any(CELLS in multiplied(formula_of(step)) for step in steps)


# ---------------------------------------------------------------------------------------- a calculation as a whole


def title_line(walk: Walkthrough, language: str) -> str:
    """What is calculated, in one line."""
    return sentence(walk.title, language, NOTES)


def strongest(walk: Walkthrough) -> tuple[int, int, int, float] | None:
    """Row, column, head and weight of the largest weight; of several queries that on another key than the query's own.

    None where there are no weights, or their queries and keys have no names.
    """
    own = walk.query is None and walk.kind in {"encoder", "decoder"}
    grids = [walk.grids[step.result] for step in walk.steps if step.operation == "softmax"]
    found = [
        (weight, -head, -row, -key)
        for head, grid in enumerate(grids)
        if grid.rows and grid.columns
        for row, weights in enumerate(grid.values.tolist())
        for key, weight in enumerate(weights)
        if not (own and key == row)
    ]
    if not found:
        return None
    weight, head, row, key = max(found)
    return -row, -key, -head, weight


def finding(walk: Walkthrough, language: str) -> str:
    """What was found, in one line: which query looks most at which key, and how much; empty where nobody has a name."""
    found = strongest(walk)
    if found is None:
        return ""
    row, key, head, weight = found
    grids = [walk.grids[step.result] for step in walk.steps if step.operation == "softmax"]
    weights, query, name = grids[head].values[row], grids[head].rows[row], grids[head].columns[key]
    itself = walk.kind in {"encoder", "decoder"} and key == walk.query and name == query
    what = "finds one" if (weights > 0).sum() == 1 else "finds all" if np.ptp(weights) < LEVEL else "finds"
    number = head if walk.layer is None else f"{walk.layer}.{head}"
    where = f" ({say('head', language, n=number)})" if len(grids) > 1 else ""
    seen = say("itself", language) if itself else f"“{name}”"
    return say(what, language, query=query, key=seen, weight=f"{weight:.2f}") + where


def note_lines(walk: Walkthrough, language: str) -> tuple[str, ...]:
    """What was done to the input, a sentence each."""
    return tuple(sentence(note, language, NOTES) for note in walk.notes)


def source_line(walk: Walkthrough, language: str) -> str:
    """Whose calculation it is: sentence, layer, head, query, and the model if the title does not name it."""
    places = [say(what, language, n=n) for what, n in (("layer", walk.layer), ("head", walk.head)) if n is not None]
    parts = [walk.model] if walk.model and walk.model not in title_line(walk, language) else []
    parts += [f"“{visible(walk.text)}”"] if walk.text else []
    parts += [say("counted", language, where=", ".join(places))] if places else []
    name = query_name(walk)
    parts += [say("query is", language, name=f"{name} ({say('row', language, n=walk.query)})")] if name else []
    return " · ".join(parts)


def query_name(walk: Walkthrough) -> str:
    """The name of the one query that is walked; empty where there is none."""
    if walk.query is None:
        return ""
    for name in ("q", "x", "context"):
        grid = walk.grids.get(name)
        if grid is not None and len(grid.rows) == 1:
            return grid.rows[0]
    inputs = walk.grids.get("X")
    return inputs.rows[walk.query] if inputs is not None and walk.query < len(inputs.rows) else ""


def receipt_line(walk: Walkthrough, language: str) -> str:
    """How far the numbers are from the model's own, and how these were proved."""
    if walk.own is None or walk.difference is None:
        return say("model" if walk.model else "hand", language)
    if walk.difference:
        text = say("near", language, own=walk.own, difference=f"{walk.difference:.1e}")
    else:
        text = say("same", language, own=walk.own)
    if walk.from_input is not None:
        text += say("from input", language, difference=f"{walk.from_input:.1e}")
    return text if walk.receipt is None else f"{text}; {_proof(walk.receipt, language)}"


def _proof(receipt: Receipt, language: str) -> str:
    """The receipt in one line; in English it is the receipt's own."""
    if language == "en":
        return str(receipt)
    largest = receipt.max_difference
    return say("verified", language, difference=f"{largest:.1e}" if largest else "0", n=len(receipt.layers))


# ------------------------------------------------------------------------------ what is chosen alike by every view

Blanks = frozenset[tuple[str, int, int]]
"""Cells that a learner fills in: grid, row, column."""

BLANK = "____"

LEAST = 4
"""Vectors of no more numbers are never shortened; of longer ones the first number is always shown."""

NO_BLANKS: Blanks = frozenset()


class ViewOptions(TypedDict, total=False):
    """What every view of a walkthrough may be told; what it is not told is as written here.

    Attributes:
        language: one of `attnviz.walkthroughs.texts.LANGUAGES`; English.
        precision: digits after the point of each number; 3.
        steps: the names of the steps to show; None, which is all.
        blanks: cells that a learner fills in: grid, row, column; none.
    """

    language: str
    precision: int
    steps: Sequence[str] | None
    blanks: Blanks


def whole_formula(walk: Walkthrough) -> str:
    """The steps of attention in one line, such as "context = softmax(q K^T / sqrt(8)) V"."""
    text, written = "", ""
    for step in walk.steps:
        if step.name == "scores":
            written = formula_of(step, walk=walk).partition(" = ")[2]
            text = f"scores = {written}"
        elif step.name in BY_KEY and written and step.operation != "weigh":
            inner = f"({written})" if step.operation == "times" and " + " in written else written
            written = formula_of(step, {step.operands[0]: inner}, walk=walk).partition(" = ")[2]
            text = f"{step.result} = {written}"
        elif written and step.operation == "weigh":
            text = f"context = {written} {step.operands[1]}"
        elif written and step.name == "context":
            text = text if step.operation == "sum" else f"context = {written} {step.operands[1]}"
            break
    return re.sub(r"_\d+", "", text)  # of several heads all have the same


def chosen(walk: Walkthrough, names: Sequence[str] | None, first: int = 1) -> list[tuple[int, CalculationStep]]:
    """The steps with these names, from a step on, and the number that each has in the whole calculation, from 1.

    Raises:
        SelectionError: a name that no step has, or no step is left.
    """
    steps = list(enumerate(walk.steps, start=1))
    for name in names or ():
        _expect_step(walk, name, is_there=name in {step.name for step in walk.steps})
    found = [(number, step) for number, step in steps if names is None or step.name in names]
    if found and not 1 <= first <= found[-1][0]:
        raise SelectionError(f"there is no step {first} to begin at: the last one is {found[-1][0]}, counted from 1")
    return [(number, step) for number, step in found if number >= first]


def steps_named(walk: Walkthrough, typed: str) -> tuple[str, ...]:
    """The names of the steps that a person means: a step, the beginning of its name, or what it makes.

    Raises:
        SelectionError: one that this calculation has not.
    """
    found = []
    for part in filter(None, (part.strip() for part in typed.split(","))):
        word = part.lower()
        exact = [step.name for step in walk.steps if word in {step.name, step.result.lower()}]
        meant = exact or [step.name for step in walk.steps if step.name.startswith(word)]
        _expect_step(walk, part, is_there=bool(meant))
        found += meant
    if not found:
        raise SelectionError("no step is named: choose some, such as score,softmax,context")
    return tuple(dict.fromkeys(found))


def _expect_step(walk: Walkthrough, typed: str, *, is_there: bool) -> None:
    known = dict.fromkeys(step.name for step in walk.steps)
    if not is_there:
        raise SelectionError(f"there is no step '{visible(typed)}'{did_you_mean(typed, known)}")


def keyed_columns(walk: Walkthrough) -> tuple[Sequence[object], Sequence[object], dict[str, np.ndarray]]:
    """What queries make of keys: names of queries and keys, or their numbers, and by grid a number for each pair.

    Raises:
        SelectionError: the calculation has no scores.
    """
    grids = {step.result: walk.grids[step.result] for step in walk.steps if step.name in BY_KEY}
    pairs = {step.result for step in walk.steps if step.operation != "weigh"}
    if not grids:
        raise SelectionError("this calculation has no scores: no query looks at a key")
    first = next(iter(grids.values()))
    n_queries, n_keys = first.values.shape
    columns = {
        name: grid.values.ravel() for name, grid in grids.items()
        if name in pairs and grid.values.shape == first.values.shape
    }  # fmt: skip
    return first.rows or range(n_queries), first.columns or range(n_keys), columns


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStep:
    """A step as every view shows it.

    Attributes:
        number: its place in the whole calculation, counted from 1.
        step: the step itself.
        given: the grids made by no step that it is the first to need.
        title: what it is, in a few words.
        sentence: one for somebody who sees it for the first time.
        formula: with the names of its grids.
        shapes: the same with the shapes put in.
        hand: one telling cell of it by hand; empty where it would fill in a blank.
    """

    number: int
    step: CalculationStep
    given: tuple[str, ...]
    title: str
    sentence: str
    formula: str
    shapes: str
    hand: str


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A calculation, and how it is shown: the same for terminal, pages and pictures.

    Attributes:
        walk: the calculation.
        language: as in `ViewOptions`, like those that follow.
        precision: likewise.
        steps: likewise.
        blanks: likewise.

    Raises:
        SelectionError: there is no such language.
    """

    walk: Walkthrough
    language: str = "en"
    precision: int = 3
    steps: Sequence[str] | None = None
    blanks: Blanks = NO_BLANKS

    def __post_init__(self) -> None:
        expect_language(self.language)

    def say(self, phrase: str, /, **fields: object) -> str:
        """One of the phrases, in the language of the view."""
        return say(phrase, self.language, **fields)

    def shown(self, first: int = 1) -> list[ShownStep]:
        """The steps that are wanted, from a step on.

        Raises:
            SelectionError: a step that is not there.
        """
        walk, language = self.walk, self.language
        found, given = [], set(walk.given())
        for number, step in chosen(walk, self.steps, first):
            words = explain(step.name, language)
            needed = tuple(name for name in dict.fromkeys(step.operands) if name in given)
            given -= set(needed)
            found.append(
                ShownStep(
                    number=number,
                    step=step,
                    given=needed,
                    title=words.title,
                    sentence=words.sentence,
                    formula=formula_of(step, language=language, walk=walk),
                    shapes=shapes_of(walk, step, language=language),
                    hand=_by_hand(walk, step, self.precision, language, self.blanks),
                )
            )
        return found

    def blanks_of(self, name: str) -> frozenset[tuple[int, int]]:
        """The rows and columns of one grid's blank cells."""
        return frozenset((row, column) for grid, row, column in self.blanks if grid == name)

    def labels_of(self, name: str) -> tuple[str, ...]:
        """What the rows of a grid are called: by their names, a single one by the grid's, else by their numbers."""
        grid = self.walk.grids[name]
        n_rows = len(grid.values)
        return grid.rows or ((name,) if n_rows == 1 else tuple(map(str, range(n_rows))))

    def is_weights(self, name: str) -> bool:
        """Whether a softmax made a grid."""
        return any(step.result == name and step.operation == "softmax" for step in self.walk.steps)


def _by_hand(walk: Walkthrough, step: CalculationStep, precision: int, language: str, blanks: Blanks) -> str:
    """The arithmetic of one telling cell of a step, with the cell's name."""
    if {grid for grid, _, _ in blanks} & {step.result, *step.operands}:
        return ""
    row, column = telling_cell(walk, step)
    grid = walk.grids[step.result]
    return f"{cell_name(step.result, grid, row, column, language)}: " + spell_out(
        walk, step, row, column, precision, language=language
    )


def followed(walk: Walkthrough) -> Grid | None:
    """The weights of the one query that is followed; None where several are walked, or several heads."""
    made = [walk.grids[step.result] for step in walk.steps if step.operation == "softmax"]
    return made[0] if len(made) == 1 and len(made[0].values) == 1 else None


def telling_cell(walk: Walkthrough, step: CalculationStep) -> tuple[int, int]:
    """The cell that tells most: of the largest weight, or number; of a longer vector its first number.

    It is the same in every view, and in windows of any width.
    """
    grid, weights = walk.grids[step.result], followed(walk)
    values, row = grid.values, 0
    if weights is not None and step.name in BY_KEY:
        key = int(weights.values[0].argmax())
        if step.operation != "weigh":
            return 0, key
        row = key
    elif step.name in BY_KEY or step.name == "context":
        row = len(values) - 1  # the last query is the one that may see most
        made = next((walk.grids[one.result].values for one in walk.steps if one.operation == "softmax"), values)
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


def chosen_row(rows: Sequence[Sequence[str]], wanted: str | int) -> int:
    """The number of the row that a person means.

    Args:
        rows: how each is spelled, first as it is shown; nothing where rows are only counted.
        wanted: a spelling, whatever the size of its letters where none is exactly so; or a number counted from 0,
            negative from the end, as a number or in digits.

    Raises:
        SelectionError: there is none, or there are several.
    """
    n = len(rows)
    if isinstance(wanted, str):
        typed = visible(wanted.strip())
        exact = [number for number, spelled in enumerate(rows) if typed in spelled]
        found = exact or [place for place, one in enumerate(rows) if typed.casefold() in map(str.casefold, one)]
        if len(found) == 1:
            return found[0]
        if found:
            raise SelectionError(
                f"several queries are '{clip(typed, 40)}': choose one by its number: {_listed(rows, found)}"
            )
        digits = typed.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
            known = [word for spelled in rows for word in spelled]
            there = did_you_mean(typed, known, [_listed(rows, range(n))])
            raise SelectionError(f"there is no query '{clip(typed, 40)}'{there}")
        wanted = int(wanted)
    if not -n <= wanted < n:
        raise SelectionError(f"there is no query {wanted}: there are {_listed(rows, range(n))}")
    return wanted % n


def _listed(rows: Sequence[Sequence[str]], numbers: Sequence[int]) -> str:
    """Rows with their numbers, those in the middle left out where there are many."""
    shown = [" ".join([str(number), *rows[number][:1]]) for number in numbers]
    return clip(", ".join(shown if len(shown) <= MOST_LISTED else [*shown[: MOST_LISTED - 2], "…", shown[-1]]), 400)
