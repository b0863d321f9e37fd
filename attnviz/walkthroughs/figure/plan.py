"""What the picture of a walkthrough shows, and in which order: a card for each step, with its words and its matrices.

The steps of one query stand side by side, a row a key; several heads below one another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import groupby
from typing import Literal, Unpack

import numpy as np

from attnviz.walkthroughs.operations import ARROW, OPERATIONS
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.texts import BEFORE, BY_KEY
from attnviz.walkthroughs.view import ShownStep, View, ViewOptions, query_weights
from attnviz.walkthroughs.wording import between, shown_formula

HEADED = {"query", "keys", "values", "split_query", "split_keys", "split_values", *BY_KEY, "context"}  # of each head
MOST_JOINED = 3  # vectors put side by side that are drawn; of more, as the contexts of a dozen heads, the result is
SMALL = (6, 8)  # rows and columns of given numbers that are drawn; larger ones are weights, whose shape says enough
PARAMETERS = {"projection": 1, "norm": 1, "rms_norm": 1, "general": 1, "additive": 1, "gru": 2}
"""How many operands of an operation, from the first, are no weights of the model; of others all."""

Kind = Literal["before", "attention", "rows", "after"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnGrid:
    """One grid as it is drawn."""

    name: str  # its symbol, such as ``K``
    values: np.ndarray  # its numbers [row, column]
    rows: tuple[str, ...]  # a name for each row; empty where they are only counted
    columns: tuple[str, ...]  # likewise
    blanks: frozenset[tuple[int, int]]  # rows and columns of cells that stay empty
    is_weights: bool  # whether it holds weights, which a softmax made; all other numbers have signs
    has_vectors: bool  # whether its columns are the numbers of vectors, of which the first and the last tell enough


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Card(ShownStep):
    """One step with its matrices."""

    parts: tuple[tuple[str, DrawnGrid], ...]  # what it is made from and what it makes, each with the sign before it
    is_by_key: bool  # whether it makes a row for each key of one query
    is_of_heads: bool = False  # whether it is the same step of several heads, whose results are its parts

    @property
    def result(self) -> DrawnGrid:
        """What it makes."""
        return self.parts[-1][1]

    def texts(self) -> Iterable[str]:
        """All that is written on it."""
        for sign, matrix in self.parts:
            yield from (sign, matrix.name, *matrix.rows, *matrix.columns)
        yield from (self.title, self.formula, self.shapes, self.sentence)


def cards(walk: Walkthrough, **options: Unpack[ViewOptions]) -> list[Card]:
    """A card for each step that is wanted, in the order of the calculation; of several heads one for the same step."""
    view = View(walk=walk, **options)
    made = [_card(view, one) for one in view.shown()]
    if len(walk.distributions()) <= 1:
        return made
    found: dict[tuple[str, ...], Card] = {}
    for card in made:
        is_headed = card.step.name in HEADED
        key = (card.step.name, str("_cross_" in card.step.result)) if is_headed else (card.step.result,)
        before = found[key].parts if key in found else ()
        found[key] = replace(found.get(key, card), parts=(*before, ("", card.result))) if is_headed else card
    for of, card in found.items():
        if of != (card.step.result,):
            found[of] = replace(card, is_of_heads=True, formula=re.sub(r"_\d+(?!\d)", "", card.formula))
    return list(found.values())


def blocks(made: Sequence[Card]) -> list[tuple[Kind, list[Card]]]:
    """The cards of a sheet in blocks: what comes before attention, its steps, and what follows it."""

    def kind(card: Card) -> Kind:
        if card.is_of_heads or card.step.name not in HEADED:
            return "before" if card.step.name in BEFORE else "after"
        if card.step.name in BEFORE:
            return "before"
        return "rows" if card.is_by_key or card.step.operation == "sum" else "attention"

    return [(kind, list(group)) for kind, group in groupby(made, key=kind)]


def fresh(made: Sequence[Card]) -> dict[int, list[tuple[str, DrawnGrid]]]:
    """The matrices drawn on each card, by its number: those that no card before it has.

    What a later step of attention is made from is drawn there; of a model's weights the shapes say enough, and of heads
    with many rows the weights and contexts.
    """
    later = {name for card in made if card.step.name not in BEFORE for name in card.step.operands}
    results = {matrix.name for card in made for _, matrix in card.parts[0 if card.is_of_heads else -1 :]}
    drawn: set[str] = set()
    found: dict[int, list[tuple[str, DrawnGrid]]] = {}
    for card in made:
        step, new = card.step, found.setdefault(card.number, [])
        given = [matrix for _, matrix in card.parts if matrix.name not in results]
        is_large = len(given) > MOST_JOINED or not all(map(_is_small, given))
        for place, (sign, matrix) in enumerate(card.parts):
            if card.is_of_heads:
                left_out = len(matrix.values) > SMALL[0] and step.name not in {"softmax", "context"}
            elif step.name in BEFORE:
                left_out = is_large or not _is_small(matrix) or (matrix is card.result and matrix.name in later)
            else:
                learned = place >= PARAMETERS.get(step.operation, place + 1) and step.name != "context"
                left_out = matrix in given and is_large and (learned or step.operation == "concatenate")
            masks = step.operation == "mask" and 0 < place < len(card.parts) - 1  # what it makes shows it
            if not (left_out or masks or matrix.name in drawn):
                new.append((sign, matrix))
                drawn.add(matrix.name)
    return found


def keys_of(step: CalculationStep) -> int | None:
    """The place of the keys among the operands of what compares them with a query; None of other steps."""
    operation = OPERATIONS[step.operation]
    sides = operation.sides(len(step.operands))
    return next((i for i, side, letter in sides if (side, letter.lower()) == ("rows", operation.axes[-1])), None)


def _is_small(matrix: DrawnGrid) -> bool:
    return all(n <= most for n, most in zip(matrix.values.shape, SMALL, strict=True))


def _card(view: View, one: ShownStep) -> Card:
    step, is_by_key = one.step, query_weights(view.walk) is not None and one.step.name in BY_KEY
    operation, weighs = OPERATIONS[step.operation], step.operation == "weigh"
    keys = operation.axes[-2 if weighs else -1]  # who has a number for each key in a row stands upright
    sides = operation.sides(len(step.operands))
    upright = {place for place, side, letter in sides if is_by_key and (side, letter.lower()) == ("columns", keys)}
    parts = [
        (between(step, place), _matrix(view, name, upright=place in upright))
        for place, name in enumerate(step.operands)
    ]
    parts.append((ARROW, _matrix(view, step.result, upright=is_by_key and not weighs)))
    words = {field.name: getattr(one, field.name) for field in fields(one)}
    words |= {name: shown_formula(words[name]) for name in ("formula", "shapes")}
    return Card(**words, parts=tuple(parts), is_by_key=is_by_key)


def _matrix(view: View, name: str, *, upright: bool) -> DrawnGrid:
    """One grid as it is drawn; what one query makes of its keys stands upright, a row a key."""
    grid, weights, cells = view.walk.grids[name], query_weights(view.walk), view.blanks_of(name)
    keys = grid.columns or (weights.columns if weights is not None else ())
    values, rows, columns = (grid.values.T, keys, ()) if upright else (grid.values, grid.rows, grid.columns)
    return DrawnGrid(
        name=name, values=values, rows=rows, columns=columns, is_weights=view.is_weights(name),
        blanks=frozenset((column, row) for row, column in cells) if upright else cells,
        has_vectors=not upright and not grid.columns,
    )  # fmt: skip
