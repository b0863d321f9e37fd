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
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.terminal.numbers import ColumnGroup, GridTable, ScreenView, draw_numbers, fits, kept_rows
from attnviz.walkthroughs.texts import BY_KEY
from attnviz.walkthroughs.view import LEAST, ShownStep, ViewOptions, query_weights

INDENT = 3  # cells before what belongs to a step
MOST_KEYS, SHOWN_KEYS = 32, 24  # keys that all have a row; of more, those of the largest weights
BAR, WIDE_BAR, WIDE = 5, 16, 100  # cells of the bar of a weight, and from which width on it is the longer one
FEW_KEYS = 5  # keys whose values have a row on one screen, where they stand below the weights
MANY_LINES = 21  # lines of the calculation, from which on the next words are in two, so that all is on one screen
LINES = 50  # lines of one screen: what would pass it by its empty lines alone has none
FEW = 24  # rows of all steps of several queries that fit on one screen


def draw_overview(walk: Walkthrough, screen: Screen, **settings: Unpack[ViewOptions]) -> Iterator[Text]:
    """The calculation on one screen: what one query makes of each key, a row a key; of several queries the weights."""
    lines = list(_overview(_view(walk, screen, settings)))
    full = [line for line in lines if line.plain]
    yield from full if len(full) <= LINES < len(lines) else lines


def _overview(view: ScreenView) -> Iterator[Text]:
    walk = view.walk
    steps = [step for step in walk.steps if step.name in BY_KEY and step.operation != "mask"]
    heads = len(walk.distributions())
    title = [wording.title_line(walk, view.lang), *([f"“{walk.text}”"] if walk.text else [])]
    yield from view.wrap(" · ".join(title), "bold")
    if query_weights(walk) is not None:
        lines = list(_query_and_keys(view, steps))
        yield from lines
        if "probabilities" in walk.grids and len(lines) > MANY_LINES:
            yield from _words(view, is_short=True)
            notes = tuple(note for note in walk.notes if note.code != "next_chosen")  # that line begins with it
            view = replace(view, walk=replace(walk, notes=notes))
        elif "probabilities" in walk.grids:
            yield Text()
            yield from _words(view, is_short=False)
            yield Text()
    elif heads == 1:
        yield from _several_queries(view, [*steps, *(step for step in walk.steps if step.name == "context")])
    else:
        yield from _list_of_steps(view)
    yield from _foot(view, shaded=heads == 1 and query_weights(walk) is None)
    yield from view.wrap(view.say("more", options="--query WORD, --head 2.3, " if walk.model else ""), "dim")


def draw_walk(walk: Walkthrough, screen: Screen, *, first: int = 1, **settings: Unpack[ViewOptions]) -> Iterator[Text]:
    """Every step of the calculation from one on, in lines no wider than the screen."""
    view = _view(walk, screen, settings)
    steps = view.shown(first)
    yield from _head(view)
    yield from _steps(view, steps)
    yield Text()
    yield from view.wrap(view.say("products") + (view.say("cells") if wording.by_cells(walk.steps) else ""), "dim")
    yield from _foot(view, shaded=query_weights(walk) is None)


def draw_step(walk: Walkthrough, screen: Screen, number: int, **settings: Unpack[ViewOptions]) -> list[Text]:
    """The step of this number by itself, what the query makes of the keys so far, and at the last step how all ends."""
    view = _view(walk, screen, settings)
    every = view.shown()
    so_far = [one for one in every if one.number <= number]
    lines = [*_head(view), *_steps(view, so_far, only=number)]
    return [*lines, *((Text(), *_foot(view, shaded=query_weights(walk) is None)) if len(so_far) == len(every) else ())]


def draw_keys(walk: Walkthrough, number: int, lines: tuple[int, int, int], screen: Screen, language: str) -> str:
    """What stands below a page: which step it is, which lines of how many are seen, and which keys there are."""
    view = _view(walk, screen, {"lang": language})
    first, last, n = lines
    for form in ("", "short ", "shorter ", "shortest "):
        parts = [view.say(f"{form}step", n=number, total=len(walk.steps))]
        if last - first + 1 < n:
            parts.append(view.say(f"{form}lines", first=first, last=last, n=n))
        text = " · ".join([*parts, view.say(f"{form}keys")])
        if cell_len(view.spell(text)) <= screen.width:
            break
    return view.fit(text, screen.width)


def _view(walk: Walkthrough, screen: Screen, settings: ViewOptions) -> ScreenView:
    view = ScreenView(walk=walk, screen=screen, **settings)
    return view if screen.unicode else replace(view, lang="en", is_english_for_ascii=view.lang != "en")


def _head(view: ScreenView) -> Iterator[Text]:
    yield from view.wrap(wording.title_line(view.walk, view.lang), "bold")
    yield from view.wrap(wording.source_line(view.walk, view.lang))


def _foot(view: ScreenView, *, shaded: bool) -> Iterator[Text]:
    """What colours and shades mean, what was done to the input, and how far all is from the model's own."""
    walk, screen = view.walk, view.screen
    for what in [*(["signed"] if screen.colour else []), *(["weights"] if shaded else [])]:
        bar = screen.scale_bar(8, signed=what == "signed")
        yield from behind(bar, view.wrap(" " * bar.cell_len + view.say(what), "dim"))
    if view.is_english_for_ascii:
        yield from view.wrap(view.say("ascii"), "dim")
    for note in wording.note_lines(walk, view.lang):
        yield from view.wrap(note, "dim")
    yield from view.wrap(wording.receipt_line(walk, view.lang), "bold" if walk.own is not None else "")


def _query_and_keys(view: ScreenView, steps: Sequence[CalculationStep]) -> Iterator[Text]:
    """The query, how each number of a key is made, a row for each key, and the context."""
    walk = view.walk
    yield Text()
    if steps[0].name == "scores":
        yield from _vector(view, "q", steps[0].operands[0])
    formulas = [wording.formula_for_key(walk, step, view.lang) for step in steps]
    context = next((step for step in walk.steps if step.name == "context"), None)
    formulas += [view.say("context sum")] if context is not None else []
    yield from _side_by_side(view, [formula for formula in formulas if formula])
    yield Text()
    yield from _keys(view, steps, is_short=True)
    if context is not None:
        yield from _vector(view, "context", context.result)
    yield Text()
    vectors = [name for name in steps[0].operands if name == "K" and steps[0].name == "scores"]
    vectors += [name for step in steps if step.operation == "weigh" for name in (step.operands[1], step.result)]
    lengths = {n for name in vectors if (n := walk.grids[name].values.shape[1]) > LEAST}
    told = [view.say("lengths", n=", ".join(map(str, sorted(lengths))))] if lengths else []
    told += [view.say("masked keys")] if _masked(walk) else []
    yield from view.wrap("; ".join(told), "dim")


def _words(view: ScreenView, *, is_short: bool) -> Iterator[Text]:
    grid, blanks = view.walk.grids["probabilities"], view.blanks_of("probabilities")
    if is_short and not blanks:
        told = ", ".join(f"{word} {value:.2f}" for word, value in zip(grid.columns, grid.values[0], strict=True))
        yield Text(view.fit(f"{view.say('and then')}: {told}", view.screen.width), "bold", no_wrap=True)
        return
    group = ColumnGroup(
        view=view, values=grid.values.T, title=view.say("probability"), rows=range(grid.values.shape[1]),
        is_weights=True, bar=WIDE_BAR, blanks=frozenset((column, row) for row, column in blanks),
    )  # fmt: skip
    yield from view.wrap(view.say("and then"), "bold")
    yield from draw_numbers(view, GridTable(groups=(group,), labels=grid.columns))
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
    values, blanks = view.walk.grids[name].values, view.blanks_of(name)
    group = ColumnGroup(view=view, values=values, rows=(0,), blanks=blanks, counted=False)
    yield from draw_numbers(view, GridTable(groups=(group,), labels=(label,)))


def _several_queries(view: ScreenView, steps: Sequence[CalculationStep]) -> Iterator[Text]:
    """The weights of all queries and their contexts; where there is room, the scores too."""
    n_rows = len(view.walk.grids[steps[0].result].values)
    shown = steps if n_rows * len(steps) <= FEW else [step for step in steps if step.name in {"softmax", "context"}]
    for step in shown:
        formula = wording.shown_formula(wording.formula_of(step, language=view.lang, walk=view.walk))
        yield Text()
        yield from view.wrap(formula, "bold")
        yield from draw_numbers(view, _table_of(view, step.result))
    yield Text()


def _list_of_steps(view: ScreenView) -> Iterator[Text]:
    """The steps of a whole layer, those of each head once; and what comes out."""
    walk = view.walk
    once: dict[tuple[str, str], list[int]] = {}
    for number, step in enumerate(walk.steps):
        once.setdefault((step.name, step.operation), []).append(number)
    titles, shapes, formulas = [], [], []
    for (name, _), numbers in once.items():
        step = walk.steps[numbers[0]]
        shape = "({},{})".format(*walk.grids[step.result].values.shape)
        titles.append(view.spell(f"{numbers[0] + 1}. {wording.explain(name, view.lang).title}"))
        shapes.append(view.spell(f"{len(numbers)}{MATRIX}{shape}" if len(numbers) > 1 else shape))
        formulas.append(view.spell(wording.shown_formula(wording.formula_of(step, language=view.lang, walk=walk))))
    yield Text()
    if sum(len(walk.grids[name].values) for name in walk.distributions()) <= FEW // 2:
        yield from view.wrap(wording.explain("softmax", view.lang).title, "bold")
        yield from _weights_of_heads(view, walk.distributions())
    yield from folded_table([Column("", titles), Column("", formulas), Column("", shapes)], view.screen)
    yield Text()
    yield from view.wrap(wording.explain(walk.steps[-1].name, view.lang).title, "bold")
    yield from draw_numbers(view, _table_of(view, walk.steps[-1].result))
    yield Text()


def _steps(view: ScreenView, steps: Sequence[ShownStep], only: int | None = None) -> Iterator[Text]:
    """Each step, and before it what it needs that was given; or only the one with this number."""
    walk = view.walk
    by_key = [one.step for one in steps if query_weights(walk) is not None and one.step.name in BY_KEY]
    for one in steps:
        step, needed = one.step, one.given
        if only not in {None, one.number}:
            continue
        if step.operation == "concatenate" and len(needed) > 1 and all(len(walk.grids[n].values) == 1 for n in needed):
            yield from _other_heads(view, needed)
        else:
            for name in needed:
                shape = walk.grids[name].values.shape
                yield from _explain(view, name, f"({shape[0]}, {shape[1]})")
                yield from draw_numbers(view, _table_of(view, name))
        yield from _step(view, one)
        if step not in by_key:
            yield from draw_numbers(view, _table_of(view, step.result))
        elif step is by_key[-1]:
            yield Text()
            yield from view.wrap(view.say("by key"), "bold", INDENT)
            yield from _keys(view, by_key)


def _explain(view: ScreenView, name: str, shape: str) -> Iterator[Text]:
    explanation = wording.explain(name, view.lang)
    yield Text()
    yield from view.wrap(f"{explanation.title} {shape}", "bold")
    yield from view.wrap(explanation.sentence, indent=INDENT)


def _other_heads(view: ScreenView, names: Sequence[str]) -> Iterator[Text]:
    values = np.vstack([view.walk.grids[name].values for name in names])
    blanks = frozenset((names.index(name), column) for name, _, column in view.blanks if name in names)
    yield from _explain(view, "contexts", f"({len(names)} x {values.shape[1]})")
    group = ColumnGroup(view=view, values=values, rows=range(len(names)), blanks=blanks)
    yield from draw_numbers(view, GridTable(groups=(group,), labels=tuple(names)))


def _step(view: ScreenView, one: ShownStep) -> Iterator[Text]:
    yield Text()
    yield from view.wrap(f"{one.number}. {one.title}", "bold")
    formula, shapes = (view.spell(wording.write_products(text)) for text in (one.formula, one.shapes))
    if INDENT + cell_len(formula) + INDENT + cell_len(shapes) <= view.screen.width:
        yield Text.assemble(" " * INDENT, formula, " " * INDENT, (shapes, "dim"), no_wrap=True)
    else:
        yield from view.wrap(formula, indent=INDENT)
        yield from view.wrap(shapes, "dim", INDENT)
    yield from view.wrap(one.sentence, indent=INDENT)
    yield from view.wrap(one.hand, indent=INDENT)


def _table_of(view: ScreenView, name: str) -> GridTable:
    grid = view.walk.grids[name]
    n_rows = len(grid.values)
    group = ColumnGroup(
        view=view, values=grid.values, names=grid.columns, is_weights=view.is_weights(name),
        rows=kept_rows(n_rows, is_named=bool(grid.rows) or n_rows == 1), blanks=view.blanks_of(name),
    )  # fmt: skip
    return GridTable(groups=(group,), labels=view.labels_of(name))


def _weights_of_heads(view: ScreenView, names: Sequence[str]) -> Iterator[Text]:
    """The weights of several heads: of one query a row for each head, of several the heads side by side."""
    grids = [view.walk.grids[name] for name in names]
    for keys in dict.fromkeys(grid.columns for grid in grids):
        own = [name for name, grid in zip(names, grids, strict=True) if grid.columns == keys]
        tables = [_table_of(view, name) for name in own]
        groups = tuple(replace(table.groups[0], title=name) for name, table in zip(own, tables, strict=True))
        labels, head = tables[0].labels, ""
        if len(labels) == 1:
            head = view.say("head", n="").strip()
            values = np.vstack([group.values for group in groups])
            groups = (replace(groups[0], title="", values=values, rows=range(len(own))),)
            labels = tuple(name.removeprefix("weights_") for name in own)
        yield from draw_numbers(view, GridTable(groups=groups, labels=labels, head=head))
        yield Text()


def _keys(view: ScreenView, steps: Sequence[CalculationStep], *, is_short: bool = False) -> Iterator[Text]:
    """What one query makes of each key: a row a key, its weight as a number and a bar; in the last line the sums.

    Where not all fits side by side, values and alignment vectors follow below: if short, those of the largest weights.
    """
    walk, weights = view.walk, query_weights(view.walk)
    if weights is None:
        return
    n, shares, masked = weights.values.shape[1], weights.values[0], _masked(walk)
    rows = list(range(n)) if n <= MOST_KEYS else _largest(shares, SHOWN_KEYS)
    groups = _columns(view, steps, rows)
    keys = GridTable(
        groups=tuple(groups), labels=weights.columns or tuple(map(str, range(n))), head=view.say("key"), faint=masked,
        last=view.say("sum"), is_cut=False,
    )  # fmt: skip
    behind_weights = next((place for place, one in enumerate(groups[:-1], start=1) if one.is_weights), 0)
    if behind_weights and not fits(view, keys):
        yield from draw_numbers(view, replace(keys, groups=keys.groups[:behind_weights]))
        yield from _rest(view, weights, rows)
        yield Text()
        if is_short and len(rows) > FEW_KEYS:
            rows = _largest(shares, FEW_KEYS)
        more: dict[str, Any] = {"sums": None} if is_short else {}  # they are the context, which follows
        keys = replace(keys, groups=tuple(replace(one, rows=rows, **more) for one in groups[behind_weights:]))
    yield from draw_numbers(view, keys)
    yield from _rest(view, weights, rows)
    if not view.blanks and any(step.operation == "softmax" and len(step.operands) > 1 for step in steps):
        yield from view.wrap(view.say("rest", rest=view.number(1 - float(shares.sum()))), "dim")


def _columns(view: ScreenView, steps: Sequence[CalculationStep], rows: Sequence[int]) -> list[ColumnGroup]:
    """What stands in these keys' rows: the keys, what each step makes of them, and the values."""
    walk, masked = view.walk, _masked(view.walk)

    def group(name: str, title: str, *, turned: bool = False, **more: Any) -> ColumnGroup:
        values, blanks = walk.grids[name].values, view.blanks_of(name)
        if turned:
            values, blanks = values.T, frozenset((column, row) for row, column in blanks)
        sums = values.sum(axis=0) if more.pop("summed", False) and not view.blanks else None
        return ColumnGroup(view=view, values=values, title=title, rows=rows, blanks=blanks, sums=sums, **more)

    def shared(name: str) -> ColumnGroup:
        bar = max(BAR if view.screen.width < WIDE else WIDE_BAR, cell_len(view.say("masked")) if masked else 0)
        remarks = dict.fromkeys(masked, view.say("masked"))
        title = wording.short_title("softmax", view.lang)
        return group(name, title, turned=True, is_weights=True, bar=bar, remarks=remarks, summed=True)

    groups = [group("K", "k")] if steps[0].name == "scores" and "K" in steps[0].operands else []
    groups += [shared(name) for name in walk.distributions() if name in walk.given()]
    for step in steps:
        title = wording.short_title(step.name, view.lang)
        if step.operation == "softmax":
            groups.append(shared(step.result))
        elif step.operation == "weigh":
            groups += [group(step.operands[1], view.say("value")), group(step.result, title, summed=True)]
        else:
            groups.append(group(step.result, title, turned=True))
    return groups


def _largest(shares: np.ndarray, most: int) -> list[int]:
    return sorted(sorted(range(len(shares)), key=lambda key: -shares[key])[:most])


def _rest(view: ScreenView, weights: Grid, rows: Sequence[int]) -> Iterator[Text]:
    """How much weight the keys have that are not shown."""
    shares = weights.values[0]
    if len(rows) < len(shares):
        rest = float(shares.sum() - shares[rows].sum())
        yield from view.wrap(view.say("other keys", n=len(shares) - len(rows), total=view.number(rest)), "dim")


def _masked(walk: Walkthrough) -> frozenset[int]:
    masks = [walk.grids[step.result].values[0] for step in walk.steps if step.operation == "mask"]
    return frozenset(np.flatnonzero(np.isneginf(masks).any(axis=0)).tolist()) if masks else frozenset()
