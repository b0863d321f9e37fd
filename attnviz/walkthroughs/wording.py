"""The words of every view of a walkthrough: formulas, titles, explanations, the finding.

A formula has no sign for the matrix product (Q K^T); between pictures it is a cross. "⊙" is always cell by cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from string import Formatter
from typing import NamedTuple

from attnviz.text.messages import expect_language, in_language
from attnviz.walkthroughs.operations import CELLS, OPERATIONS, SEVERAL, factor, scale
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.texts import BY_KEY, PHRASES, words_of

_COUNTED = ("gain", "shift", "norm", "residual")  # grids whose numbers are no heads


def say(what: str, language: str, **fields: object) -> str:
    """Return one of the phrases, in English or Korean."""
    return in_language(PHRASES[what].format(**fields), language)


class Explanation(NamedTuple):
    """The title of a step or a grid, and a sentence for a newcomer; empty where it is not known."""

    title: str
    sentence: str


def explain(name: str, language: str = "en") -> Explanation:
    """Return the explanation of a step or grid, such as ``scores`` or ``Wq``.

    ``Wq_3`` is that of head 3, ``Wq_cross_3`` of head 3 of cross attention where a layer has both.
    """
    expect_language(language)
    known, more = words_of(name), ""
    if known is None and (parts := re.fullmatch(r"(.+?)(_cross)?(?:_(\d+))?", name)):
        base, across, number = parts.groups()
        known, more = words_of(base), say("across", language) if across else ""
        if number:
            more += f" {number}" if base in _COUNTED else say("of head", language, number=number)
    if known is None:
        return Explanation(title=name.replace("_", " "), sentence="")
    title, sentence = (in_language(text, language) for text in (known.title, known.sentence))
    return Explanation(title=title + more, sentence=sentence)


def short_title(name: str, language: str) -> str:
    """Return the name of a column of a step's numbers."""
    words = words_of(name)
    return in_language(words.short, language) if words is not None else name


def formula_of(
    step: CalculationStep,
    instead: Mapping[str, str] | None = None,
    *,
    language: str = "en",
    walk: Walkthrough | None = None,
) -> str:
    """Return the formula of a step, such as "scores = q K^T", with its own names or others instead of some.

    Where it is known whose step it is, a factor is only written as a root of the width of its queries and keys.
    """
    names = [(instead or {}).get(name, name) for name in step.operands]
    return f"{step.result} = {_fill(step, names, [f'{name}^T' for name in names], language, walk)}"


def shapes_of(walk: Walkthrough, step: CalculationStep, *, language: str = "en") -> str:
    """Return the formula of a step with the shapes put in, such as "(1, 4) = (1, 8) (8, 4)"."""
    found = [walk.grids[name].values.shape for name in step.operands]
    own = OPERATIONS[step.operation].shapes
    text = None if own is None else in_language(own(found) or "", language)
    if not text:
        text = _fill(
            step, list(map(str, found)), [str(shape[::-1]) for shape in found], language, walk
        )
    return f"{walk.grids[step.result].values.shape} = {text}"


def formula_for_key(walk: Walkthrough, step: CalculationStep, language: str) -> str:
    """Return the formula of a step for one query and one key, such as "score = q · k"; empty where there is none."""
    made = {one.result: one for one in walk.steps if one.name in BY_KEY}
    masked = {one.result: one.operands[0] for one in walk.steps if one.operation == "mask"}
    names = [masked.get(name, name) for name in step.operands]
    names = [short_title(made[name].name, language) if name in made else name for name in names]
    if step.operation == "weigh":
        names[1] = say("value", language)
    filled = OPERATIONS[step.operation].for_key.format(**_fields(step, names, names, walk))
    return filled and shown_formula(f"{short_title(step.name, language)} = {filled}")


def _fill(
    step: CalculationStep,
    names: Sequence[str],
    turned: Sequence[str],
    language: str,
    walk: Walkthrough | None,
) -> str:
    """Return the formula of a step with its operands put in, as they are and with rows and columns exchanged."""
    operation = OPERATIONS[step.operation]
    fields = _fields(step, names, turned, walk)
    parts = [in_language(part, language) for part in operation.formula]
    there = [
        part
        for part in parts
        if {name for _text, name, *_more in Formatter().parse(part) if name} <= set(fields)
    ]
    return "".join(part.format(**fields) for part in there)


def _fields(
    step: CalculationStep, names: Sequence[str], turned: Sequence[str], walk: Walkthrough | None
) -> dict[str, str]:
    number = 1.0 if step.number is None else step.number
    how, value = scale(number) if walk is None or step.operation != "times" else factor(walk, step)
    return {
        **dict(zip("abcde", names, strict=False)),
        **dict(zip("ABCDE", turned, strict=False)),
        "all": "; ".join(names if len(names) <= 2 * SEVERAL else (*names[:2], "…", names[-1])),
        "number": f"{number:g}",
        "factor": f"{how}({value:g})" if how != "*" else f"* {value:.6g}",
    }


def between(step: CalculationStep, place: int) -> str:
    """Return the sign before an operand on a sheet; a comma where the formula is no chain of signs."""
    signs = OPERATIONS[step.operation].signs
    return "" if place == 0 else signs[min(place, len(signs)) - 1]


def write_products(text: str) -> str:
    """Return a formula in which a product by a number has a dot and one cell by cell a circle."""
    return re.sub(r" \* (?=-?\d)", " · ", text).replace(" * ", f" {CELLS} ")


def shown_formula(text: str) -> str:
    """Return a formula as it is written on a blackboard."""
    text = re.sub(r"sqrt\((\d+)\)", r"√\1", text)
    return write_products(text).replace("^T", "ᵀ").replace("sqrt(", "√(")


def by_cells(steps: Iterable[CalculationStep]) -> bool:
    """Return whether any of these steps multiplies cell by cell."""
    return any(CELLS in write_products(formula_of(step)) for step in steps)


def strongest(walk: Walkthrough) -> tuple[int, int, int, float] | None:
    """Return row, column, head and weight of the largest weight; of several queries not on their own key.

    None where there are no weights, or their queries and keys have no names.
    """
    own = walk.query is None and walk.kind in {"encoder", "decoder"}
    found = [
        (weight, -head, -row, -key)
        for head, grid in enumerate(walk.grids[name] for name in walk.distributions())
        if grid.rows and grid.columns
        for row, weights in enumerate(grid.values.tolist())
        for key, weight in enumerate(weights)
        if not (own and key == row)
    ]
    if not found:
        return None
    weight, head, row, key = max(found)
    return -row, -key, -head, weight


def query_name(walk: Walkthrough) -> str:
    """Return the name of the one query that is walked; empty where there is none."""
    if walk.query is None:
        return ""
    for name in ("q", "x", "context"):
        grid = walk.grids.get(name)
        if grid is not None and len(grid.rows) == 1:
            return grid.rows[0]
    inputs = walk.grids.get("X")
    return inputs.rows[walk.query] if inputs is not None and walk.query < len(inputs.rows) else ""


def whole_formula(walk: Walkthrough) -> str:
    """Return the steps of attention in one line, such as "context = softmax(q K^T / sqrt(8)) V"."""
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
