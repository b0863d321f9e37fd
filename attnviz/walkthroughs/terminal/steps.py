"""A walkthrough in a terminal: what one query makes of the keys on one screen; or every step, and one cell by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from rich.cells import cell_len
from rich.text import Text

from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.table import Column, folded_table
from attnviz.render.terminal.text import READABLE, behind
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.operations import MATRIX
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.terminal.numbers import ColumnGroup, GridTable, ScreenView
from attnviz.walkthroughs.texts import BY_KEY
from attnviz.walkthroughs.view import LEAST, GridView, StepView, ViewOptions, query_weights

INDENT = 3  # cells before the lines of a step
MOST_KEYS = 32  # of more keys those with the largest weights are shown
SHOWN_KEYS = 24
FEW_KEYS = 5  # of their values and alignment vectors, where these stand below the weights
BAR, WIDE_BAR = 5, 16  # cells of a weight's bar
WIDE = 100  # cells of a screen with wide bars
MANY_LINES = 21  # lines of a calculation that leave only one line for the next words
LINES = 50  # of one screen; empty lines that would pass it are left out
FEW = 24  # rows of all steps of several queries that fit on one screen


def draw_overview(
    walk: Walkthrough, screen: Screen, **settings: Unpack[ViewOptions]
) -> Iterator[Text]:
    """Draw the calculation on one screen: a row for each key of one query, or the weights of several."""
    lines = list(_overview(_view(walk, screen, settings)))
    full = [line for line in lines if line.plain]
    yield from full if len(full) <= LINES < len(lines) else lines


def _overview(view: ScreenView) -> Iterator[Text]:
    walk, every = view.walk, view.step_views()
    steps = [one for one in every if one.step.name in BY_KEY and one.step.operation != "mask"]
    heads = len(walk.distributions())
    title = f"{view.title} · “{walk.text}”" if walk.text else view.title
    yield from view.wrap(title, "bold")
    if query_weights(walk) is not None:
        lines = list(_query_and_keys(view, steps))
        yield from lines
        if "probabilities" in walk.grids and len(lines) > MANY_LINES:
            yield from _words(view, is_short=True)
            # that line begins with it
            notes = tuple(note for note in walk.notes if note.code != "next_chosen")
            view = replace(view, walk=replace(walk, notes=notes))
        elif "probabilities" in walk.grids:
            yield Text()
            yield from _words(view, is_short=False)
            yield Text()
    elif heads == 1:
        yield from _several_queries(
            view, [*steps, *(one for one in every if one.step.name == "context")]
        )
    else:
        yield from _list_of_steps(view)
    yield from _foot(view, shaded=heads == 1 and query_weights(walk) is None)
    yield from view.wrap(
        view.say("more", options="--query WORD, --head 2.3, " if walk.model else ""), "dim"
    )


def draw_walk(walk: Walkthrough, screen: Screen, **settings: Unpack[ViewOptions]) -> Iterator[Text]:
    """Draw every step, in lines no wider than the screen."""
    view = _view(walk, screen, settings)
    steps = view.step_views()
    yield from _head(view)
    yield from _steps(view, steps)
    yield Text()
    yield from view.wrap(view.signs, "dim")
    yield from _foot(view, shaded=query_weights(walk) is None)


def draw_step(
    walk: Walkthrough, screen: Screen, number: int, **settings: Unpack[ViewOptions]
) -> list[Text]:
    """Draw one step with the keys so far; the last step also has the receipt."""
    view = _view(walk, screen, settings)
    so_far = view.step_views()[:number]
    lines = [*_head(view), *_steps(view, so_far, only=number)]
    if number >= len(walk.steps):
        lines += [Text(), *_foot(view, shaded=query_weights(walk) is None)]
    return lines


def _view(walk: Walkthrough, screen: Screen, settings: ViewOptions) -> ScreenView:
    view = ScreenView(walk=walk, screen=screen, **settings)
    lang = screen.language(view.lang)
    return replace(view, lang=lang, lacks_korean=lang != view.lang)


def _head(view: ScreenView) -> Iterator[Text]:
    yield from view.wrap(view.title, "bold")
    yield from view.wrap(view.source)


def _foot(view: ScreenView, *, shaded: bool) -> Iterator[Text]:
    """Yield the key to the colours, the notes on the input, and the receipt."""
    scales = ["signed"] if view.screen.colour else []
    if shaded:
        scales.append("weights")
    for scale in scales:
        bar = view.screen.scale_bar(8, signed=scale == "signed")
        yield from behind(bar, view.wrap(" " * bar.cell_len + view.say(scale), "dim"))
    if view.lacks_korean:
        yield from view.wrap(view.say("no korean"), "dim")
    for note in view.notes:
        yield from view.wrap(note, "dim")
    yield from view.wrap(view.receipt, "bold" if view.walk.own is not None else "")


def _query_and_keys(view: ScreenView, steps: Sequence[StepView]) -> Iterator[Text]:
    """Yield the query, the formulas, a row for each key, and the context."""
    walk, first = view.walk, steps[0].step
    yield Text()
    if first.name == "scores":
        yield from _vector(view, "q", first.operands[0])
    formulas = [wording.formula_for_key(walk, one.step, view.lang) for one in steps]
    context = next((step for step in walk.steps if step.name == "context"), None)
    if context is not None:
        formulas.append(view.say("context sum"))
    dot = " · " if view.screen.unicode else "·"  # between spaces it would be a dash there
    yield from _side_by_side(view, [formula.replace(" · ", dot) for formula in formulas if formula])
    yield Text()
    yield from _keys(view, steps, is_short=True)
    if context is not None:
        yield from _vector(view, "context", context.result)
    yield Text()
    vectors = ["K"] if first.name == "scores" and "K" in first.operands else []
    for one in steps:
        if one.step.operation == "weigh":
            vectors += [one.step.operands[1], one.step.result]
    widths = {walk.grids[name].values.shape[1] for name in vectors}
    shortened = sorted(width for width in widths if width > LEAST)
    remarks = []
    if shortened:
        remarks.append(view.say("lengths", n=", ".join(map(str, shortened))))
    if _masked(walk):
        remarks.append(view.say("masked keys"))
    yield from view.wrap("; ".join(remarks), "dim")


def _words(view: ScreenView, *, is_short: bool) -> Iterator[Text]:
    grid = view.grid("probabilities", upright=True)
    if is_short and not grid.blanks:
        words = ", ".join(
            f"{word} {value:.2f}" for word, value in zip(grid.rows, grid.values[:, 0], strict=True)
        )
        yield Text(
            view.fit(f"{view.say('and then')}: {words}", view.screen.width), "bold", no_wrap=True
        )
        return
    yield from view.wrap(view.say("and then"), "bold")
    rows = range(len(grid.values))
    group = ColumnGroup(view, grid, rows, title=view.say("probability"), bar=WIDE_BAR)
    yield from GridTable([group]).draw()
    rest = 1 - float(grid.values.sum())
    if not view.blanks and rest > 0:
        yield from view.wrap(view.say("other words", total=view.number(rest)), "dim")


def _side_by_side(view: ScreenView, texts: Sequence[str]) -> Iterator[Text]:
    gap, line, width = " " * INDENT, "", min(view.screen.width, READABLE)
    for text in map(view.spell, texts):
        if line and cell_len(line + gap + text) > width:
            yield Text(line, no_wrap=True)
            line = ""
        line += (gap if line else "") + text
    yield from view.wrap(line)


def _vector(view: ScreenView, label: str, name: str) -> Iterator[Text]:
    grid = replace(view.grid(name), rows=(label,))
    yield from GridTable([ColumnGroup(view, grid, [0], has_heading=False)]).draw()


def _several_queries(view: ScreenView, steps: Sequence[StepView]) -> Iterator[Text]:
    """Yield the weights of all queries and their contexts; where there is room, the scores too."""
    is_short = len(steps[0].result.values) * len(steps) > FEW
    for one in steps:
        if not is_short or one.step.name in {"softmax", "context"}:
            yield Text()
            yield from view.wrap(wording.shown_formula(one.formula), "bold")
            yield from view.draw(one.result)
    yield Text()


def _list_of_steps(view: ScreenView) -> Iterator[Text]:
    """Yield the steps of a whole layer, those of each head once, and its output."""
    walk = view.walk
    titles, shapes, formulas = [], [], []
    for one in view.cards():
        shape, n = "({},{})".format(*one.result.values.shape), len(one.heads)
        titles.append(view.spell(f"{one.numbers}. {one.title}"))
        shapes.append(view.spell(f"{n}{MATRIX}{shape}" if n > 1 else shape))
        formulas.append(view.spell(wording.shown_formula(one.formula)))
    yield Text()
    if sum(len(walk.grids[name].values) for name in walk.distributions()) <= FEW // 2:
        yield from view.wrap(wording.explain("softmax", view.lang).title, "bold")
        yield from _weights_of_heads(view, [view.grid(name) for name in walk.distributions()])
    yield from folded_table(
        [Column("", titles), Column("", formulas), Column("", shapes)], view.screen
    )
    yield Text()
    last = view.step_views()[-1]
    yield from view.wrap(last.title, "bold")
    yield from view.draw(last.result)
    yield Text()


def _steps(view: ScreenView, steps: Sequence[StepView], only: int | None = None) -> Iterator[Text]:
    """Yield each step after the given grids that it needs; or only the step of this number."""
    by_key = [one for one in steps if one.is_by_key]
    for one in steps:
        if only not in {None, one.number}:
            continue
        needed = [view.grid(name) for name in one.inputs]
        if (
            one.step.operation == "concatenate"
            and len(needed) > 1
            and all(len(grid.values) == 1 for grid in needed)
        ):
            yield from _explain(view, "contexts", f"({len(needed)} x {needed[0].values.shape[1]})")
            yield from view.draw(_stack(needed, one.inputs))
            needed = []
        for grid in needed:
            yield from _explain(view, grid.name, str(grid.values.shape))
            yield from view.draw(grid)
        yield from _step(view, one)
        if not one.is_by_key:
            yield from view.draw(one.result)
        elif one is by_key[-1]:
            yield Text()
            yield from view.wrap(view.say("by key"), "bold", INDENT)
            yield from _keys(view, by_key)


def _explain(view: ScreenView, name: str, shape: str) -> Iterator[Text]:
    explanation = wording.explain(name, view.lang)
    yield Text()
    yield from view.wrap(f"{explanation.title} {shape}", "bold")
    yield from view.wrap(explanation.sentence, indent=INDENT)


def _stack(grids: Sequence[GridView], names: tuple[str, ...]) -> GridView:
    """Return grids of one row each as one grid with these names."""
    blanks = frozenset((row, column) for row, grid in enumerate(grids) for _, column in grid.blanks)
    return replace(
        grids[0], values=np.vstack([grid.values for grid in grids]), rows=names, blanks=blanks
    )


def _step(view: ScreenView, one: StepView) -> Iterator[Text]:
    yield Text()
    yield from view.wrap(f"{one.number}. {one.title}", "bold")
    formula, shapes = (
        view.spell(wording.write_products(text)) for text in (one.formula, one.shapes)
    )
    if INDENT + cell_len(formula) + INDENT + cell_len(shapes) <= view.screen.width:
        yield Text.assemble(" " * INDENT, formula, " " * INDENT, (shapes, "dim"), no_wrap=True)
    else:
        yield from view.wrap(formula, indent=INDENT)
        yield from view.wrap(shapes, "dim", INDENT)
    yield from view.wrap(one.sentence, indent=INDENT)
    yield from view.wrap(one.hand, indent=INDENT)


def _weights_of_heads(view: ScreenView, grids: Sequence[GridView]) -> Iterator[Text]:
    """Yield the weights of several heads: of one query a row for each head, of several the heads side by side."""
    for keys in dict.fromkeys(grid.columns for grid in grids):
        own, head = [grid for grid in grids if grid.columns == keys], ""
        if len(own[0].values) == 1:
            head = view.say("head", n="").strip()
            own = [_stack(own, tuple(grid.name.removeprefix("weights_") for grid in own))]
        groups = [view.group(grid, title="" if head else grid.name) for grid in own]
        yield from GridTable(groups, head=head).draw()
        yield Text()


def _keys(view: ScreenView, steps: Sequence[StepView], *, is_short: bool = False) -> Iterator[Text]:
    """Yield a row for each key of one query, with its weight as a number and a bar; in the last line the sums.

    Where not all fits side by side, values and alignment vectors follow below: if short, those of the largest weights.
    """
    weights = query_weights(view.walk)
    if weights is None:
        return
    shares = weights.values[0]
    n = len(shares)
    rows = _largest(shares, n if n <= MOST_KEYS else SHOWN_KEYS)
    labels = weights.columns or tuple(map(str, range(n)))

    def table(groups: Sequence[ColumnGroup]) -> GridTable:
        return GridTable(
            groups,
            labels=labels,
            head=view.say("key"),
            dim_rows=_masked(view.walk),
            last=view.say("sum"),
            counts_hidden_rows=False,
        )

    groups = _key_columns(view, steps, rows)
    n_first = next((i for i, one in enumerate(groups, start=1) if one.grid.is_weights), len(groups))
    if n_first < len(groups) and not table(groups).fits:
        yield from table(groups[:n_first]).draw()
        yield from _other_keys(view, shares, rows)
        yield Text()
        if is_short and len(rows) > FEW_KEYS:
            rows = _largest(shares, FEW_KEYS)
        # A short view has no sums below the alignment vectors: they are the context, which follows.
        groups = _key_columns(view, steps, rows, has_sums=not is_short)[n_first:]
    yield from table(groups).draw()
    yield from _other_keys(view, shares, rows)
    has_sink = any(one.step.operation == "softmax" and len(one.step.operands) > 1 for one in steps)
    if has_sink and not view.blanks:
        rest = view.number(1 - float(shares.sum()))
        yield from view.wrap(view.say("rest", rest=rest), "dim")


def _key_columns(
    view: ScreenView, steps: Sequence[StepView], rows: Sequence[int], *, has_sums: bool = True
) -> list[ColumnGroup]:
    """Return the columns of the keys' rows: the keys, what each step makes of them, and the values."""
    walk, masked = view.walk, _masked(view.walk)

    def group(grid: GridView, title: str, *, is_summed: bool = False, **more: Any) -> ColumnGroup:
        sums = None
        if is_summed and has_sums and not view.blanks:
            sums = grid.values.sum(axis=0)
        return ColumnGroup(view, grid, rows, title=title, sums=sums, **more)

    def weights_group(grid: GridView) -> ColumnGroup:
        bar = BAR if view.screen.width < WIDE else WIDE_BAR
        if masked:
            bar = max(bar, cell_len(view.say("masked")))
        remarks = dict.fromkeys(masked, view.say("masked"))
        title = wording.short_title("softmax", view.lang)
        return group(grid, title, is_summed=True, bar=bar, remarks=remarks)

    groups = []
    if steps[0].step.name == "scores" and "K" in steps[0].step.operands:
        groups.append(group(view.grid("K"), "k"))
    groups += [
        weights_group(view.grid(name, upright=True))
        for name in walk.distributions()
        if name in walk.inputs()
    ]
    for one in steps:
        if one.step.operation == "softmax":
            groups.append(weights_group(one.result))
        elif one.step.operation == "weigh":
            groups.append(group(one.parts[1][1], view.say("value")))
            groups.append(group(one.result, one.column, is_summed=True))
        else:
            groups.append(group(one.result, one.column))
    return groups


def _largest(shares: np.ndarray, most: int) -> list[int]:
    return sorted(np.argsort(-shares, kind="stable")[:most].tolist())


def _other_keys(view: ScreenView, shares: np.ndarray, rows: Sequence[int]) -> Iterator[Text]:
    """Yield a line with the weight of the keys that are not shown."""
    if len(rows) < len(shares):
        rest = float(shares.sum() - shares[rows].sum())
        yield from view.wrap(
            view.say("other keys", n=len(shares) - len(rows), total=view.number(rest)), "dim"
        )


def _masked(walk: Walkthrough) -> frozenset[int]:
    masks = [walk.grids[step.result].values[0] for step in walk.steps if step.operation == "mask"]
    return (
        frozenset(np.flatnonzero(np.isneginf(masks).any(axis=0)).tolist()) if masks else frozenset()
    )
