"""What the sheet of a walkthrough shows, and in which order: matrices side by side, as on a blackboard.

Where one query is followed, all that it makes of the keys stands upright, a row for each key, so that one row can be
read across the whole sheet: key, score, weight, value, alignment vector; their sum, the context, stands below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from attnviz.walkthroughs.operations import ARROW
from attnviz.walkthroughs.record import CalculationStep, Walkthrough
from attnviz.walkthroughs.selection import BY_KEY, Blanks, chosen, followed
from attnviz.walkthroughs.wording import between, explain, formula_of, say, shown_formula

BEFORE = ("input", "input_norm", "row", "query", "keys", "values")
"""Steps that make what attention works on."""

MOST_JOINED = 3
"""Vectors put side by side that are drawn; of more, as the contexts of a dozen heads are, all are only named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixPanel:
    """One matrix of the sheet.

    Attributes:
        title: what it is, in a few words.
        lines: its formula and its shape.
        values: its numbers as they are drawn [row, column].
        rows: a name for each row; empty where they are only counted.
        columns: likewise.
        blanks: rows and columns of cells that stay empty.
        number: the step, counted from 1, that it is drawn for.
        since: the step with which a film shows it: the one that makes it, if that is shown too.
        language: of what else is said of it.
    """

    title: str
    lines: tuple[str, ...]
    values: np.ndarray
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    blanks: frozenset[tuple[int, int]]
    number: int
    since: int
    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Matrices that stand over each other.

    Attributes:
        main: the one whose rows stand level with those of its neighbours.
        upper: the one above it.
        lower: the one below it.
        symbol: what stands between them and what is at their left: the signs of the step, and the names of those of
            its operands that are drawn elsewhere.
        opening: the same where they begin a line, and nothing is at their left.
        small: whether their numbers matter less than their shapes.
        is_head: whether they begin one of several heads.
    """

    main: MatrixPanel
    upper: MatrixPanel | None = None
    lower: MatrixPanel | None = None
    symbol: str = ""
    opening: str = ""
    small: bool = False
    is_head: bool = False

    @property
    def panels(self) -> tuple[MatrixPanel, ...]:
        """All of them, from above."""
        return tuple(panel for panel in (self.upper, self.main, self.lower) if panel is not None)


@dataclass(slots=True)
class _Sheet:
    """The sheet while it is planned: what has been drawn so far."""

    walk: Walkthrough
    language: str
    blanks: Blanks
    bands: list[list[Unit]] = field(default_factory=lambda: [[], []])
    small: bool = False
    drawn: set[str] = field(default_factory=set)
    made: dict[str, int] = field(default_factory=dict)
    last: str = ""
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def plan(walk: Walkthrough, *, language: str, steps: Sequence[str] | None, blanks: Blanks) -> list[list[Unit]]:
    """The matrices of a sheet in bands: what attention works on, attention itself, what is made of it.

    Several heads have a band each, drawn small, and their weights are left out.

    Raises:
        SelectionError: a step that is not there.
    """
    several = sum(step.operation == "softmax" for step in walk.steps) > 1
    sheet = _Sheet(walk, language, blanks, small=several)
    wanted = chosen(walk, steps)
    needed = {name for _, step in wanted if step.name not in BEFORE for name in step.operands}
    scored = {number for number, step in wanted if step.name == "scores"}
    after = False
    for number, step in wanted:
        sheet.made[step.result] = number
        if step.name in BEFORE or step.name.startswith("input"):
            place = -1 if after else 0  # what a second attention works on stands behind the first
            _operands(sheet, number, step, place, first=several and step.operation == "map")
            if step.name.startswith("input") or step.result not in needed:  # else it is drawn where it is needed
                _result(sheet, number, step, place)
            continue
        is_attention = step.name in BY_KEY or step.name == "context"
        if (several and step.name == "scores") or (not is_attention and not after):
            sheet.bands.append([])
        after = not is_attention
        sheet.small = several and is_attention
        sheet.before, sheet.after = [], []
        if step.operation != "concatenate" or len(step.operands) <= MOST_JOINED:
            _operands(sheet, number, step, -1)
        _result(sheet, number, step, -1)
    if several:
        for band in sheet.bands:
            if band and any(unit.main.number in scored for unit in band):
                band[0] = replace(band[0], is_head=True)
    return [band for band in sheet.bands if band]


def _operands(sheet: _Sheet, number: int, step: CalculationStep, band: int, *, first: bool = False) -> None:
    """Draw what a step needs and what is not there yet, or only the first of that."""
    grids = sheet.walk.grids
    names = [name for name in (step.operands[:1] if first else step.operands) if name not in sheet.drawn]
    sheet.drawn |= set(names)
    sheet.before, sheet.after = [], []
    if step.operation == "dot" and names == list(step.operands) and len(grids[names[0]].values) == 1:
        query, keys = (_panel(sheet, name, number) for name in names)
        sheet.bands[band].append(Unit(main=keys, upper=query, small=sheet.small))
        return
    turned = step.name in BY_KEY and followed(sheet.walk) is not None and step.operation in {"add", "mask", "softmax"}
    for place, name in enumerate(step.operands[:1] if first else step.operands):
        sign = between(step, place)
        sheet.before += [sign] if sign else []
        sheet.after += [sign] if sign else []
        if name in names:
            panel = _panel(sheet, name, number, turned=turned, across=step.operation == "dot" and place == 1)
            sheet.bands[band].append(_unit(sheet, panel, band))
            sheet.last = name
        else:
            sheet.after.append(name)
            sheet.before += [] if place == 0 and name == sheet.last else [name]


def _result(sheet: _Sheet, number: int, step: CalculationStep, band: int) -> None:
    """Draw what a step makes."""
    turned = step.name in BY_KEY and step.operation != "weigh" and followed(sheet.walk) is not None
    panel = _panel(sheet, step.result, number, step=step, turned=turned)
    sheet.drawn.add(step.result)
    units = sheet.bands[band]
    if step.operation == "sum" and units and units[-1].main.values.shape[1] == panel.values.shape[1]:
        units[-1] = replace(units[-1], lower=panel)
    else:
        sheet.before.append(ARROW)
        sheet.after.append(ARROW)
        units.append(_unit(sheet, panel, band))
    sheet.last = step.result


def _unit(sheet: _Sheet, panel: MatrixPanel, band: int) -> Unit:
    """A panel behind the signs, and the names of what stands elsewhere, that have gathered before it."""
    symbol, opening = (" ".join(parts).replace(" ;", ";").replace(" ,", ",") for parts in (sheet.before, sheet.after))
    sheet.before, sheet.after = [], []
    return Unit(main=panel, symbol=symbol, opening=opening, small=band == 0 or sheet.small)


def _panel(
    sheet: _Sheet,
    name: str,
    number: int,
    *,
    step: CalculationStep | None = None,
    turned: bool = False,
    across: bool = False,
) -> MatrixPanel:
    """One grid as it is drawn; `turned` exchanges rows and columns, `across` says that the product does so."""
    grid = sheet.walk.grids[name]
    step = step or next((one for one in sheet.walk.steps if one.result == name), None)
    if step is not None and step.name in BY_KEY:
        title = say(step.name, sheet.language)
    else:
        title = explain(name if step is None or step.name in BEFORE else step.name, sheet.language).title
    weights = followed(sheet.walk)
    rows = grid.rows if not turned else grid.columns or (weights.columns if weights is not None else ())
    blanks = frozenset((row, column) for other, row, column in sheet.blanks if other == name)
    n_rows, n_columns = grid.values.shape
    shape = f"({n_rows}, {n_columns})"
    if turned and n_rows != n_columns:
        shape = say("upright", sheet.language, shape=shape)
    elif across:
        shape = say("across", sheet.language, shape=shape, name=shown_formula(f"{name}^T"))
    return MatrixPanel(
        title=title[0].upper() + title[1:],
        lines=(shape,)
        if step is None
        else (shown_formula(formula_of(step, language=sheet.language, walk=sheet.walk)), shape),
        values=grid.values.T if turned else grid.values,
        rows=rows,
        columns=() if turned else grid.columns,
        blanks=frozenset((column, row) for row, column in blanks) if turned else blanks,
        number=number,
        since=sheet.made.get(name, number),
        language=sheet.language,
    )
