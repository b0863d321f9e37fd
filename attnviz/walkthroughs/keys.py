"""The calculation of one query as one table with one row per key, shared by terminal and pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.text.messages import _
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.hand import Hand, format_number
from attnviz.walkthroughs.operations import KEYS_PLACE, factor
from attnviz.walkthroughs.record import CalculationStep
from attnviz.walkthroughs.texts import BY_KEY
from attnviz.walkthroughs.view import LEAST, GridView, StepView, View, query_weights

MOST_PRODUCTS = 2  # products that are written of a score that has more than LEAST
LARGEST_POWER = 20.0  # the largest score of which a power of e is written


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A number or a vector for each key."""

    title: str  # such as "score"
    formula: str = ""  # such as "score = q · k"; empty for keys, values and given weights
    grid: GridView  # one row per key
    is_summed: bool = False  # whether the sum over the keys means something


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTable:
    """The query, the columns of the keys from left to right, and the context."""

    query: GridView | None  # stands above the first column; None if no query is compared with keys
    columns: tuple[KeyColumn, ...]
    context: GridView | None  # stands below the last column; None without values
    keys: tuple[str, ...]  # the names of the keys
    largest: int | None  # the key with the largest weight; None if cells are blank


def key_table(view: View, steps: Sequence[StepView] | None = None) -> KeyTable | None:
    """Return the calculation of the only query as one table; None if there are several queries or heads.

    If `steps` are given, the table has only these.
    """
    weights = query_weights(view.walk)
    if weights is None:
        return None
    steps = [step for step in steps or view.step_views() if step.is_by_key]
    if not steps:
        return None
    first, query = steps[0].step, None
    columns = []
    if first.operation in KEYS_PLACE:
        query = view.grid(first.operands[0])
        keys = view.grid(first.operands[KEYS_PLACE[first.operation]])
        columns.append(KeyColumn(title="k", grid=keys))
    else:  # the calculation starts from given weights
        title = wording.column_title("softmax")
        grid = view.grid(first.operands[0], upright=True)
        columns.append(KeyColumn(title=title, grid=grid, is_summed=True))
    for step in steps:
        if step.step.operation == "weigh":
            columns.append(KeyColumn(title=_("value"), grid=step.parts[1][1]))
        formula = wording.formula_for_key(view.walk, step.step)
        is_summed = step.step.operation in {"softmax", "weigh"}
        columns.append(
            KeyColumn(title=step.column, formula=formula, grid=step.result, is_summed=is_summed)
        )
    contexts = [step.result for step in view.walk.steps if step.name == "context"]
    return KeyTable(
        query=query,
        columns=tuple(columns),
        context=view.grid(contexts[0]) if contexts else None,
        keys=max((column.grid.labels for column in columns), key=len),
        largest=None if view.blanks else int(weights.values[0].argmax()),
    )


def in_numbers(view: View, table: KeyTable) -> str:
    """Return how the weight of the largest key comes about, from the score to the softmax; empty if it is given.

    Such as "score = 0.002·0.094 + 0.725·1.441 + … = 5.321; / √8 = 1.881; softmax: e^1.881 = 6.56 of 8.47 in all =
    0.774".
    """
    walk, key = view.walk, table.largest
    if table.query is None or key is None:
        return ""
    hand = Hand(digits=view.digits, numbers=[])
    parts = []
    for step in walk.steps:
        if step.name not in BY_KEY or step.operation in {"weigh", "mask"}:
            continue
        result = hand.write(float(walk.grids[step.result].values[0, key]))
        if step.operation == "softmax":
            parts.append(_softmax_in_numbers(view, step, key))
        elif step.operation == "dot":
            query, keys = (walk.grids[name].values for name in step.operands)
            terms = list(zip(query[0].tolist(), keys[key].tolist(), strict=True))
            n_shown = len(terms) if len(terms) <= LEAST else MOST_PRODUCTS
            texts = [f"{hand.factor(q)}·{hand.factor(k)}" for q, k in terms[:n_shown]]
            products = " + ".join([*texts, "…"] if n_shown < len(terms) else texts)
            parts.append(f"{wording.column_title(step.name)} = {products} = {result}")
        elif step.operation == "times":
            parts.append(f"{factor(walk, step, '{:.4g}'.format)} = {result}")
        elif step.operation == "add":
            bias = hand.factor(float(walk.grids[step.operands[1]].values[0, key]))
            parts.append(f"+ {bias} = {result}")
        else:
            parts.append(f"{wording.column_title(step.name)} = {result}")
    return f"“{table.keys[key]}”: {'; '.join(parts)}"


def _softmax_in_numbers(view: View, step: CalculationStep, key: int) -> str:
    """Return the power of e of the largest score, those of all scores together, and the weight."""
    scores, *sinks = (view.walk.grids[name].values[0] for name in step.operands)
    largest = float(scores[key])
    # Powers of large scores are unreadable: subtracting the same number from all scores changes no weight.
    shift = largest if abs(largest) > LARGEST_POWER else 0.0
    total = float(np.exp(np.concatenate([scores, *sinks]) - shift).sum())
    score = format_number(largest, view.digits)
    power = f"e^({score} - {score})" if shift else f"e^{score}"
    weight = format_number(float(view.walk.grids[step.result].values[0, key]), view.digits)
    return _("softmax: {power} = {value} of {total} in all = {weight}").format(
        power=power,
        value=format_number(math.exp(largest - shift), 2),
        total=format_number(total, 2),
        weight=weight,
    )
