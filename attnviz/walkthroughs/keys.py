"""The calculation of one query as one table with one row per key, shared by terminal and pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.text.messages import _
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.operations import KEYS_PLACE
from attnviz.walkthroughs.view import GridView, StepView, View, query_weights


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
