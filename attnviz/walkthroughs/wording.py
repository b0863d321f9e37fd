"""The formulas of walkthroughs for all views, the titles of steps and grids, and the finding.

Formulas write a matrix product without a sign (Q Kᵀ); between drawn matrices it is a cross. "⊙" always means a product
cell by cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from attnviz.text.messages import N_, _, pgettext
from attnviz.walkthroughs.operations import OPERATIONS, factor
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.texts import BIAS, BY_KEY, TEXTS, WEIGHTS, Text

MOST_LISTED = 6  # most operands that a formula lists; if there are more, the first two and the last
ROW_NAMES = {
    "key": N_("key {n}"),
    "query": N_("query"),
    "encoder": N_("encoder {n}"),
    "decoder": N_("decoder"),
}
"""The names of rows and columns in examples and exercises, by their first word."""
NAMED_HERE = {"title_exercise", "title_seq2seq", "title_seq2seq_word"}
# Names whose number is not that of a head.
COUNTED = ("gain", "shift", "norm", "residual")


def in_language(walk: Walkthrough) -> Walkthrough:
    """Return a calculation by hand with its rows and columns in the language of the view, such as 키 0 for key 0."""
    if walk.model or walk.title.code not in NAMED_HERE:
        return walk

    def say(names: tuple[str, ...]) -> tuple[str, ...]:
        kinds = [name.partition(" ")[::2] for name in names]
        return tuple(
            _(ROW_NAMES[kind]).format(n=number) if kind in ROW_NAMES else name
            for name, (kind, number) in zip(names, kinds, strict=True)
        )

    grids = {
        name: replace(grid, rows=say(grid.rows), columns=say(grid.columns))
        for name, grid in walk.grids.items()
    }
    return replace(walk, grids=grids)


def explain(name: str) -> tuple[str, str]:
    """Return the title of a step or a grid, and a sentence that explains it; no sentence if the name is unknown.

    ``K_3`` are the keys of head 3, ``K_cross_3`` those of head 3 of the cross attention.
    """
    text, base = _text_of(name), name
    additions: list[str] = []
    parts = re.fullmatch(r"(.+?)(_cross)?(?:_(\d+))?", name)
    if text is None and parts is not None:
        base, across, number = parts.groups()
        text = _text_of(base)
        if across:
            additions.append(_("cross attention"))
        if number and base in COUNTED:
            additions.append(number)
        elif number:
            additions.append(_("head {n}").format(n=number))
    if text is None:
        return name.replace("_", " "), ""
    title = ", ".join([_(text.title).format(name=base), *additions])
    return title, _(text.sentence)


def _text_of(name: str) -> Text | None:
    if name in TEXTS:
        return TEXTS[name]
    if re.fullmatch(r"[Wb][a-z0-9]", name):
        return WEIGHTS if name.startswith("W") else BIAS
    return None


def column_title(name: str) -> str:
    """Return the title of the column that shows a step's numbers."""
    text = TEXTS.get(name)
    return name if text is None or text.column is None else _(text.column)


def _formula_name(name: str) -> str:
    """Return what formulas for one key call the number of a step; a column may have a shorter title."""
    return pgettext("formula", "scaled") if name == "scaled" else column_title(name)


def formula_of(
    walk: Walkthrough,
    step: CalculationStep,
    *,
    instead: Mapping[str, str] | None = None,
) -> str:
    """Return the formula of a step, such as "scores = q Kᵀ"; `instead` replaces names of operands."""
    names = [(instead or {}).get(name, name) for name in step.operands]
    return f"{step.result} = {_fill(walk, step, names, [f'{name}ᵀ' for name in names])}"


def shapes_of(walk: Walkthrough, step: CalculationStep) -> str:
    """Return the formula of a step with shapes instead of names, such as "(1, 4) = (1, 8) (8, 4)"."""
    shapes = [walk.grids[name].values.shape for name in step.operands]
    filled = _fill(walk, step, list(map(str, shapes)), [str(shape[::-1]) for shape in shapes])
    return f"{walk.grids[step.result].values.shape} = {filled}"


def _fill(
    walk: Walkthrough, step: CalculationStep, operands: Sequence[str], transposed: Sequence[str]
) -> str:
    operation = OPERATIONS[step.operation]
    is_longer = operation.longer_formula and len(operands) == operation.n_operands[1]
    formula = operation.longer_formula if is_longer else operation.formula
    fields = _fields(walk, step, operands)
    return _(formula).format(**fields, **dict(zip("ABCDE", transposed, strict=False)))


def _fields(walk: Walkthrough, step: CalculationStep, operands: Sequence[str]) -> dict[str, str]:
    """Return the values for the fields of a formula, such as {a}, {all} and {factor}."""
    listed = list(operands)
    if len(listed) > MOST_LISTED:
        listed[2:-1] = ["…"]
    return {
        **dict(zip("abcdef", operands, strict=False)),
        "all": "; ".join(listed),
        "number": f"{step.number or 0:g}",
        "factor": factor(walk, step, "{:.6g}".format),
    }


def formula_for_key(walk: Walkthrough, step: CalculationStep) -> str:
    """Return the formula of a step for one query and one key, such as "score = q · k"."""
    columns = {
        any_step.result: _formula_name(any_step.name)
        for any_step in walk.steps
        if any_step.name in BY_KEY
    }
    names = [columns.get(name, name) for name in step.operands]
    if step.operation == "weigh":
        names[1] = _("value")
    operation = OPERATIONS[step.operation]
    filled = (operation.for_key or operation.formula).format(**_fields(walk, step, names))
    return f"{_formula_name(step.name)} = {filled}"


def between(step: CalculationStep, place: int) -> str:
    """Return the sign before an operand on a sheet; a comma if the formula has no signs between its operands."""
    signs = OPERATIONS[step.operation].signs
    return "" if place == 0 else signs[min(place, len(signs)) - 1]


def strongest(walk: Walkthrough) -> tuple[int, int, int, float] | None:
    """Return row, column, head and weight of the largest weight.

    If all words of self-attention are followed, the weight of a word on itself is skipped. None if there are no
    weights, or if their queries and keys have no names.
    """
    skips_own = walk.query is None and walk.kind in {"encoder", "decoder"}
    strongest_cell = None
    for head, name in enumerate(walk.distributions()):
        grid = walk.grids[name]
        if not grid.rows or not grid.columns:
            continue
        weights = grid.values.copy()
        if skips_own:
            np.fill_diagonal(weights, -1.0)
        row, key = map(int, np.unravel_index(weights.argmax(), weights.shape))
        if strongest_cell is None or weights[row, key] > strongest_cell[3]:
            strongest_cell = row, key, head, float(weights[row, key])
    return strongest_cell


def whole_formula(walk: Walkthrough) -> str:
    """Return the steps of attention in one line, such as "context = softmax(q Kᵀ / √8) V"."""
    # Each step puts the formula so far into its own, from the scores to the context.
    result = formula = ""
    for step in walk.steps:
        if step.name == "scores":
            result, formula = step.result, formula_of(walk, step).partition(" = ")[2]
        elif not formula:
            continue
        elif step.operation == "weigh" or (step.name == "context" and step.operation != "sum"):
            result, formula = "context", f"{formula} {step.operands[1]}"
            break
        elif step.name in BY_KEY:
            inner = f"({formula})" if step.operation == "times" and " + " in formula else formula
            instead = {step.operands[0]: inner}
            result = step.result
            formula = formula_of(walk, step, instead=instead).partition(" = ")[2]
    return re.sub(r"_\d+", "", f"{result} = {formula}") if formula else ""
