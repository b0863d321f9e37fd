"""A walkthrough in a terminal: an overview on one screen, or every step with the arithmetic of one cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from attnviz.render.columns import Column
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import folded_table
from attnviz.render.terminal.text import READABLE, behind
from attnviz.text.messages import _
from attnviz.text.notes import question
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.keys import KeyTable, in_numbers, key_table
from attnviz.walkthroughs.operations import MATRIX
from attnviz.walkthroughs.terminal.tables import (
    ColumnGroup,
    ScreenView,
    draw_grid,
    draw_table,
    rows_of,
)
from attnviz.walkthroughs.texts import BY_KEY
from attnviz.walkthroughs.view import GridView, StepView, View, query_weights, stack

INDENT = 3  # columns that the lines of a step are indented by
MOST_KEYS = 24  # if there are more keys, only those with the largest weights are shown
BAR, WIDE_BAR = 5, 16  # character cells for the bar of a weight
WIDE = 100  # screens at least this wide have wide bars
FEW = 24  # most rows that all steps of several queries may have on one screen


def draw_overview(view: View, screen: Screen) -> Iterator[Text]:
    """Draw the calculation on one screen: one row per key if there is one query, otherwise the weights."""
    view = _on(view, screen)
    walk, steps = view.walk, view.step_views()
    heads = len(walk.distributions())
    yield from _heading(view)
    table = key_table(view, steps)
    if table is not None:
        yield from _query_and_keys(view, table)
        if "probabilities" in walk.grids:
            yield from _words(view)
    elif heads == 1:
        yield from _several_queries(view, steps)
    else:
        yield from _list_of_steps(view, steps)
    yield Text()
    yield from _foot(view, has_weights=heads == 1 and table is None)
    if view.blanks:
        yield from view.wrap(_("Answers: the same command with --solution"), "dim")
        return
    options = "--query WORD, --head 2.3, " if walk.model else ""
    words = _("More: --full (every step), {options}-o FILE.html, --interactive")
    yield from view.wrap(words.format(options=options), "dim")
    weights = query_weights(walk)
    if walk.model and weights is not None and weights.rows is not None:
        yield from view.wrap(question(weights.rows[0]), "dim")


def draw_walk(view: View, screen: Screen, only: int | None = None) -> Iterator[Text]:
    """Draw every step, or only the step with this number, in lines no wider than the screen."""
    view = _on(replace(view, precision=view.full_digits), screen)
    steps = view.step_views()
    if only is None:
        yield from _heading(view)
    else:  # the result of the last step is not told before
        yield from view.wrap(view.cut)
        yield from view.wrap(view.title, "bold")
        yield from view.wrap(view.source)
        yield from view.wrap(view.task)
    yield from _steps(view, steps[:only], only)
    if only in {None, len(steps)}:
        yield Text()
        yield from view.wrap(view.signs, "dim")
        yield from _foot(view, has_weights=query_weights(view.walk) is None)


def _heading(view: ScreenView) -> Iterator[Text]:
    first, second = view.heading
    yield from view.wrap(view.cut)
    yield from view.wrap(first, "bold")
    yield from view.wrap(second)
    yield from view.wrap(view.task)


def _on(view: View, screen: Screen) -> ScreenView:
    """Return the view with its screen, in English if the screen has no Korean letters."""
    return ScreenView(
        walk=view.walk,
        precision=view.precision,
        blanks=view.blanks,
        screen=screen,
    )


def _foot(view: ScreenView, *, has_weights: bool) -> Iterator[Text]:
    """Yield the legend of the colours, the notes on the input, and the receipt."""
    scales = [(True, _("numbers below and above 0"))] if view.screen.colour else []
    if has_weights:
        scales.append((False, _("weights, from 0 to 1")))
    for signed, words in scales:
        bar = view.screen.scale_bar(8, signed=signed)
        yield from behind(bar, view.wrap(" " * bar.cell_len + words, "dim"))
    for note in filter(None, (view.small_weights, *view.notes)):
        yield from view.wrap(note, "dim")
    yield from view.wrap(view.receipt, "bold" if view.walk.own is not None else "")


def _query_and_keys(view: ScreenView, table: KeyTable) -> Iterator[Text]:
    """Yield the query, the formulas, one row per key, the context, and how the largest weight was computed."""
    yield Text()
    if table.query is not None:
        yield from _vector(view, "q", table.query)
    formulas = [column.formula for column in table.columns if column.formula]
    if table.context is not None:
        formulas.append(_("context = sum of the alignment vectors"))
    yield from _side_by_side(view, formulas)
    yield Text()
    yield from _keys(view, table)
    if table.context is not None:
        yield from _vector(view, _("context"), table.context)
    if worked := in_numbers(view, table):
        yield Text()
        yield from view.wrap(worked)
    if table.query is not None and table.columns[1].formula.endswith("q · k"):
        words = _("q, k: vectors of query and key ({n} numbers each); q · k: sum of their products")
        yield from view.wrap(words.format(n=table.query.values.shape[1]), "dim")


def _words(view: ScreenView) -> Iterator[Text]:
    """Yield the table of the most likely next words with their probabilities."""
    grid = view.grid("probabilities", upright=True)
    yield Text()
    yield from view.wrap(_("Most likely next words"), "bold")
    title = _("probability")
    yield from draw_table(
        [ColumnGroup(view, grid, range(len(grid.values)), title=title, bar=WIDE_BAR)]
    )
    remainder = 1 - float(grid.values.sum())
    if not view.blanks and remainder > 1e-9:
        words = _("all other words together: {total}")
        yield from view.wrap(words.format(total=view.number(remainder)), "dim")


def _side_by_side(view: ScreenView, texts: Sequence[str]) -> Iterator[Text]:
    """Yield texts with gaps between them, as many per line as fit."""
    line, width = "", min(view.screen.width, READABLE)
    for text in texts:
        # On a screen without "·" it would become " - " between spaces, which reads as a minus.
        text = view.spell(text if view.screen.unicode else text.replace(" · ", "·"))
        if line and cell_len(line) + INDENT + cell_len(text) > width:
            yield from view.wrap(line)
            line = ""
        line += (" " * INDENT if line else "") + text
    yield from view.wrap(line)


def _vector(view: ScreenView, label: str, grid: GridView) -> Iterator[Text]:
    return draw_table([ColumnGroup(view, replace(grid, rows=(label,)), [0], has_numbers=False)])


def _several_queries(view: ScreenView, steps: Sequence[StepView]) -> Iterator[Text]:
    """Yield the weights and contexts of all queries, and the scores too if there is room."""
    shown_steps = [step for step in steps if step.step.name in {*BY_KEY, "context"}]
    if len(shown_steps[0].result.values) * len(shown_steps) > FEW:
        shown_steps = [step for step in shown_steps if step.step.name in {"softmax", "context"}]
    for step in shown_steps:
        yield Text()
        yield from view.wrap(step.formula, "bold")
        yield from draw_grid(view, step.result)


def _list_of_steps(view: ScreenView, steps: Sequence[StepView]) -> Iterator[Text]:
    """Yield the weights of several heads if they have few rows, the list of steps, and the last result."""
    weights = [view.grid(name) for name in view.walk.distributions()]
    yield Text()
    if sum(len(grid.values) for grid in weights) <= FEW // 2:
        yield from view.wrap(wording.explain("softmax")[0], "bold")
        yield from _weights_of_heads(view, weights)
    titles, formulas, shapes = [], [], []
    for card in view.cards():
        shape, n_heads = "({},{})".format(*card.result.values.shape), len(card.heads)
        titles.append(view.spell(f"{card.numbers}. {card.title}"))
        formulas.append(view.spell(card.formula))
        shapes.append(view.spell(f"{n_heads}{MATRIX}{shape}" if n_heads > 1 else shape))
    columns = [Column("", titles), Column("", formulas), Column("", shapes)]
    yield from folded_table(columns, view.screen)
    yield Text()
    yield from view.wrap(steps[-1].title, "bold")
    yield from draw_grid(view, steps[-1].result)


def _weights_of_heads(view: ScreenView, grids: Sequence[GridView]) -> Iterator[Text]:
    """Yield the weights of several heads: one row per head for a single query, otherwise the heads side by side."""
    for keys in dict.fromkeys(grid.columns for grid in grids):
        group = [grid for grid in grids if grid.columns == keys]
        if len(group[0].values) == 1:
            names = tuple(grid.name.removeprefix("weights_") for grid in group)
            yield from draw_grid(view, stack(group, names))
        else:
            blocks = [ColumnGroup(view, grid, rows_of(grid), title=grid.name) for grid in group]
            yield from draw_table(blocks)
        yield Text()


def _steps(view: ScreenView, steps: Sequence[StepView], only: int | None = None) -> Iterator[Text]:
    """Yield each step, or only the step with this number, after the given grids that it uses first."""
    by_key = [step for step in steps if step.is_by_key]
    for step in steps:
        if only not in {None, step.number}:
            continue
        given_grids = [view.grid(name) for name in step.inputs]
        has_single_rows = all(len(grid.values) == 1 for grid in given_grids)
        # Contexts of the other heads, one row each, are shown as one table.
        if step.step.operation == "concatenate" and len(given_grids) > 1 and has_single_rows:
            shape = f"({len(given_grids)} x {given_grids[0].values.shape[1]})"
            yield from _explain(view, "contexts", shape)
            yield from draw_grid(view, stack(given_grids, step.inputs))
            given_grids = []
        for grid in given_grids:
            yield from _explain(view, grid.name, str(grid.values.shape))
            yield from draw_grid(view, grid)
        yield from _step(view, step)
        if not step.is_by_key:
            yield from draw_grid(view, step.result)
        elif step is by_key[-1] and (table := key_table(view, by_key)) is not None:
            yield Text()
            yield from view.wrap(_("Key by key"), "bold", INDENT)
            yield from _keys(view, table)


def _explain(view: ScreenView, name: str, shape: str) -> Iterator[Text]:
    title, sentence = wording.explain(name)
    yield Text()
    yield from view.wrap(f"{title} {shape}", "bold")
    yield from view.wrap(sentence, indent=INDENT)


def _step(view: ScreenView, step: StepView) -> Iterator[Text]:
    yield Text()
    yield from view.wrap(f"{step.number}. {step.title}", "bold")
    yield from view.wrap(step.formula, indent=INDENT)
    yield from view.wrap(step.shapes, "dim", INDENT)
    yield from view.wrap(step.sentence, indent=INDENT)
    yield from view.wrap(step.hand, indent=INDENT)


def _keys(view: ScreenView, table: KeyTable) -> Iterator[Text]:
    """Yield one row per key of the only query, with its weight as a number and a bar, and the sums."""
    weights = query_weights(view.walk)
    assert weights is not None
    shares = weights.values[0]
    largest = np.argsort(-shares, kind="stable")[:MOST_KEYS]
    rows: list[int] = sorted(largest.tolist())
    bar = BAR if view.screen.width < WIDE else WIDE_BAR
    blocks = [
        ColumnGroup(
            view,
            column.grid,
            rows,
            title=column.title,
            bar=bar if column.grid.is_weights else 0,
            is_summed=column.is_summed,
        )
        for column in table.columns
    ]
    yield from draw_table(
        blocks,
        labels=weights.columns or tuple(map(str, range(len(shares)))),
        head=_("key"),
        last=_("sum"),
        counts_hidden=False,
    )
    if len(rows) < len(shares):
        words = _("{n} more keys with smaller weights, together {total}")
        total = view.number(float(shares.sum() - shares[rows].sum()))
        yield from view.wrap(words.format(n=len(shares) - len(rows), total=total), "dim")
    if "sink" in view.walk.grids and not view.blanks:
        words = _("The sink takes {rest} of the attention")
        yield from view.wrap(words.format(rest=view.number(1 - float(shares.sum()))), "dim")
