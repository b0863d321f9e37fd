"""What the picture of a walkthrough shows, and in which order: a card for each step, with its words and its matrices.

The steps of one query stand side by side, a row a key; several heads below one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from attnviz.walkthroughs.operations import OPERATIONS
from attnviz.walkthroughs.record import CalculationStep
from attnviz.walkthroughs.texts import BEFORE
from attnviz.walkthroughs.view import HEADED, GridView, StepView

MOST_JOINED = 3  # vectors put side by side that are drawn; of more, as the contexts of a dozen heads, the result is
SMALL = (6, 8)  # rows and columns of given numbers that are drawn; larger ones are weights, whose shape says enough
PARAMETERS = {"projection": 1, "norm": 1, "rms_norm": 1, "general": 1, "additive": 1, "gru": 2}
"""How many operands of an operation, from the first, are no weights of the model; of others all."""

Kind = Literal["before", "attention", "rows", "after"]


def blocks(made: Sequence[StepView]) -> list[tuple[Kind, list[StepView]]]:
    """The cards of a sheet in blocks: what comes before attention, its steps, and what follows it."""

    def kind(card: StepView) -> Kind:
        if card.heads or card.step.name not in HEADED:
            return "before" if card.step.name in BEFORE else "after"
        if card.step.name in BEFORE:
            return "before"
        return "rows" if card.is_by_key or card.step.operation == "sum" else "attention"

    return [(kind, list(group)) for kind, group in groupby(made, key=kind)]


def fresh(made: Sequence[StepView]) -> dict[int, list[tuple[str, GridView]]]:
    """The matrices drawn on each card, by its number: those that no card before it has.

    What a later step of attention is made from is drawn there; of a model's weights the shapes say enough, and of heads
    with many rows the weights and contexts.
    """
    later = {name for card in made if card.step.name not in BEFORE for name in card.step.operands}
    results = {matrix.name for card in made for _, matrix in card.parts[0 if card.heads else -1 :]}
    drawn: set[str] = set()
    found: dict[int, list[tuple[str, GridView]]] = {}
    for card in made:
        step, new = card.step, found.setdefault(card.number, [])
        given = [matrix for _, matrix in card.parts if matrix.name not in results]
        is_large = len(given) > MOST_JOINED or not all(map(_is_small, given))
        for place, (sign, matrix) in enumerate(card.parts):
            if card.heads:
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


def _is_small(matrix: GridView) -> bool:
    return all(n <= most for n, most in zip(matrix.values.shape, SMALL, strict=True))
