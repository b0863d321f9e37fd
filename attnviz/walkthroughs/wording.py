"""The formulas of walkthroughs in every view, the titles of steps and grids, and the finding.

A formula has no sign for the matrix product (Q K^T); between pictures it is a cross. "⊙" is always cell by cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from attnviz.text.messages import _, expect_language, in_language, join_phrases
from attnviz.walkthroughs.operations import CELLS, OPERATIONS, factor
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.texts import BIAS, BY_KEY, TEXTS, WEIGHTS, Text

MOST_LISTED = 6  # operands that a formula lists; of more the first two and the last
COUNTED = ("gain", "shift", "norm", "rms_norm", "residual")  # a number behind these is no head's


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand as it stands in a formula: its name, or its shape."""

    text: str
    transposed: str

    def __str__(self) -> str:
        return self.text


def explain(name: str, language: str = "en") -> tuple[str, str]:
    """Return the title of a step or a grid and a sentence for a newcomer; no sentence where it is unknown.

    ``K_3`` is that of head 3, ``K_cross_3`` of head 3 of cross attention where a layer has both.
    """
    expect_language(language)
    text, base = _text_of(name), name
    more: list[str] = []
    parts = re.fullmatch(r"(.+?)(_cross)?(?:_(\d+))?", name)
    if text is None and parts is not None:
        base, across, number = parts.groups()
        text = _text_of(base)
        if across:
            more.append(_("cross attention"))
        if number and base in COUNTED:
            more.append(number)
        elif number:
            more.append(_("head {n}").format(n=number))
    if text is None:
        return name.replace("_", " "), ""
    title = join_phrases([text.title.format(name=base), *more], ", ")
    return in_language(title, language), in_language(text.sentence, language)


def _text_of(name: str) -> Text | None:
    if name in TEXTS:
        return TEXTS[name]
    if re.fullmatch(r"[Wb][a-z0-9]", name):
        return WEIGHTS if name.startswith("W") else BIAS
    return None


def column_title(name: str, language: str) -> str:
    """Return the name of a column of a step's numbers."""
    text = TEXTS.get(name)
    return name if text is None or text.column is None else in_language(text.column, language)


def formula_of(
    walk: Walkthrough,
    step: CalculationStep,
    *,
    language: str = "en",
    instead: Mapping[str, str] | None = None,
) -> str:
    """Return the formula of a step, such as "scores = q K^T", with other names instead of some."""
    names = [(instead or {}).get(name, name) for name in step.operands]
    operands = [Operand(name, f"{name}^T") for name in names]
    return f"{step.result} = {_fill(walk, step, operands, language)}"


def shapes_of(walk: Walkthrough, step: CalculationStep, *, language: str = "en") -> str:
    """Return the formula of a step with the shapes put in, such as "(1, 4) = (1, 8) (8, 4)"."""
    shapes = [walk.grids[name].values.shape for name in step.operands]
    operands = [Operand(str(shape), str(shape[::-1])) for shape in shapes]
    filled = _fill(walk, step, operands, language)
    return f"{walk.grids[step.result].values.shape} = {filled}"


def _fill(
    walk: Walkthrough, step: CalculationStep, operands: Sequence[Operand], language: str
) -> str:
    operation = OPERATIONS[step.operation]
    is_longer = operation.longer_formula and len(operands) == operation.n_operands[1]
    formula = operation.longer_formula if is_longer else operation.formula
    return in_language(formula, language).format(**_fields(walk, step, operands))


def _fields(
    walk: Walkthrough, step: CalculationStep, operands: Sequence[Operand | str]
) -> dict[str, object]:
    names = [str(operand) for operand in operands]
    if len(names) > MOST_LISTED:
        names = [*names[:2], "…", names[-1]]
    how, value = factor(walk, step)
    return {
        **dict(zip("abcdef", operands, strict=False)),
        "all": "; ".join(names),
        "number": f"{step.number or 0:g}",
        "factor": f"{how}({value:g})" if how != "*" else f"* {value:.6g}",
    }


def formula_for_key(walk: Walkthrough, step: CalculationStep, language: str) -> str:
    """Return the formula of a step for one query and one key, such as "score = q · k"; empty without one."""
    columns = {
        other.result: column_title(other.name, language)
        for other in walk.steps
        if other.name in BY_KEY
    }
    names = [columns.get(name, name) for name in step.operands]
    if step.operation == "weigh":
        names[1] = in_language(_("value"), language)
    filled = OPERATIONS[step.operation].for_key.format(**_fields(walk, step, names))
    return filled and shown_formula(f"{column_title(step.name, language)} = {filled}")


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


def strongest(walk: Walkthrough) -> tuple[int, int, int, float] | None:
    """Return row, column, head and weight of the largest weight; of several queries not on their own key.

    None where there are no weights, or their queries and keys have no names.
    """
    skips_own = walk.query is None and walk.kind in {"encoder", "decoder"}
    best = None
    for head, name in enumerate(walk.distributions()):
        grid = walk.grids[name]
        if not grid.rows or not grid.columns:
            continue
        for row, weights in enumerate(grid.values.tolist()):
            for key, weight in enumerate(weights):
                is_skipped = skips_own and key == row
                if not is_skipped and (best is None or weight > best[3]):
                    best = row, key, head, weight
    return best


def whole_formula(walk: Walkthrough) -> str:
    """Return the steps of attention in one line, such as "context = softmax(q K^T / sqrt(8)) V"."""
    result = written = ""
    for step in walk.steps:
        if step.name == "scores":
            result, written = step.result, formula_of(walk, step).partition(" = ")[2]
        elif not written:
            continue
        elif step.operation == "weigh" or (step.name == "context" and step.operation != "sum"):
            result, written = "context", f"{written} {step.operands[1]}"
            break
        elif step.name in BY_KEY:
            inner = f"({written})" if step.operation == "times" and " + " in written else written
            instead = {step.operands[0]: inner}
            result = step.result
            written = formula_of(walk, step, instead=instead).partition(" = ")[2]
    return re.sub(r"_\d+", "", f"{result} = {written}") if written else ""
