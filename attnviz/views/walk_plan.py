"""What the sheet of a walkthrough shows, and in which order: matrices side by side, as on a blackboard.

Where one query is followed, all that it makes of the keys stands upright, a row for each key, so that one row can be
read across the whole sheet: key, score, weight, value, alignment vector; their sum, the context, stands below.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from attnviz.text.steps import explained, formulated
from attnviz.views.walk_words import BY_KEY, Blanks, chosen, followed, say
from attnviz.walk import Step, Walkthrough

BEFORE = ("input", "input_norm", "row", "query", "keys", "values")
"""Steps that make what attention works on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One matrix of the sheet.

    Attributes:
        title: what it is, in a few words.
        lines: its formula and its shape.
        values: its numbers as they are drawn [row, column].
        rows: a name for each row; empty where they are only counted.
        columns: likewise.
        blanks: rows and columns of cells that stay empty.
        number: the step, counted from 1, with which it appears.
    """

    title: str
    lines: tuple[str, ...]
    values: np.ndarray
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    blanks: frozenset[tuple[int, int]]
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Matrices that stand over each other.

    Attributes:
        main: the one whose rows stand level with those of its neighbours.
        upper: the one above it.
        lower: the one below it.
        symbol: what stands before them: an arrow where they follow from what stands at their left.
        small: whether their numbers matter less than their shapes.
    """

    main: Panel
    upper: Panel | None = None
    lower: Panel | None = None
    symbol: str = ""
    small: bool = False

    @property
    def panels(self) -> tuple[Panel, ...]:
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
    last: str = ""


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
    after = False
    for number, step in wanted:
        if step.name in BEFORE:
            _operands(sheet, number, step, 0, first=several and step.operation == "map")
            if step.name.startswith("input") or step.result not in needed:  # else it is drawn where it is needed
                _result(sheet, number, step, 0)
            continue
        is_attention = step.name in BY_KEY or step.name == "context"
        if (several and step.name == "scores") or (not is_attention and not after):
            sheet.bands.append([])
            after = not is_attention
        sheet.small = several and is_attention
        if step.operation != "concatenate":  # a dozen other heads are only named
            _operands(sheet, number, step, -1)
        _result(sheet, number, step, -1)
    return [band for band in sheet.bands if band]


def shown_formula(text: str) -> str:
    """A formula as it is written on a blackboard."""
    text = re.sub(r"sqrt\((\d+)\)", r"√\1", text)
    return text.replace("^T", "ᵀ").replace("sqrt(", "√(").replace(" * ", " · ")


def _operands(sheet: _Sheet, number: int, step: Step, band: int, *, first: bool = False) -> None:
    """Draw what a step needs and what is not there yet, or only the first of that."""
    grids = sheet.walk.grids
    names = [name for name in (step.operands[:1] if first else step.operands) if name not in sheet.drawn]
    sheet.drawn |= set(names)
    if step.operation == "dot" and names == list(step.operands) and len(grids[names[0]].values) == 1:
        query, keys = (_panel(sheet, name, number) for name in names)
        sheet.bands[band].append(Unit(main=keys, upper=query, small=sheet.small))
        return
    turned = step.name in BY_KEY and followed(sheet.walk) is not None and step.operation in {"add", "mask", "softmax"}
    symbols = {"add": ("", "+"), "map": ("", "·", "+"), "weigh": ("", "·")}.get(step.operation, ())
    before = dict(zip(step.operands[1:], step.operands, strict=False))
    for name in names:
        place = step.operands.index(name)
        # A symbol stands only between what it joins.
        symbol = symbols[place] if place < len(symbols) and before.get(name) == sheet.last else ""
        sheet.bands[band].append(
            Unit(main=_panel(sheet, name, number, turned=turned), symbol=symbol, small=band == 0 or sheet.small)
        )
        sheet.last = name


def _result(sheet: _Sheet, number: int, step: Step, band: int) -> None:
    """Draw what a step makes."""
    turned = step.name in BY_KEY and step.operation != "weigh" and followed(sheet.walk) is not None
    panel = _panel(sheet, step.result, number, step=step, turned=turned)
    sheet.drawn.add(step.result)
    units = sheet.bands[band]
    if step.operation == "sum" and units and units[-1].main.values.shape[1] == panel.values.shape[1]:
        units[-1] = replace(units[-1], lower=panel)
    else:
        units.append(Unit(main=panel, symbol="→", small=band == 0 or sheet.small))
    sheet.last = step.result


def _panel(sheet: _Sheet, name: str, number: int, *, step: Step | None = None, turned: bool = False) -> Panel:
    """One grid as it is drawn; `turned` exchanges rows and columns."""
    grid = sheet.walk.grids[name]
    step = step or next((one for one in sheet.walk.steps if one.result == name), None)
    if step is not None and step.name in BY_KEY:
        title = say(step.name, sheet.language)
    else:
        title = explained(name if step is None or step.name in BEFORE else step.name, sheet.language).title
    weights = followed(sheet.walk)
    rows = grid.rows if not turned else grid.columns or (weights.columns if weights is not None else ())
    blanks = frozenset((row, column) for other, row, column in sheet.blanks if other == name)
    n_rows, n_columns = grid.values.shape
    shape = f"({n_rows}, {n_columns})"
    return Panel(
        title=title[0].upper() + title[1:],
        lines=(shape,) if step is None else (shown_formula(formulated(step, language=sheet.language)), shape),
        values=grid.values.T if turned else grid.values,
        rows=rows,
        columns=() if turned else grid.columns,
        blanks=frozenset((column, row) for row, column in blanks) if turned else blanks,
        number=number,
    )
