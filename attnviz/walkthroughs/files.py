"""A walkthrough as a JSON file: every number, every step, nothing lost."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np

from attnviz.attention import Receipt
from attnviz.errors import FileFormatError, RecordError
from attnviz.storage.encoding import decode_fields, to_text
from attnviz.storage.files import check_ending, write_whole
from attnviz.storage.record import full_note, harmless_note, plain_note
from attnviz.text.display import visible
from attnviz.walkthroughs.calculation import compute
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.verify.saved import FORMAT, HIDDEN, VERSION, Saved, digest
from attnviz.walkthroughs.verify.saved import read as read_saved


def to_json(walk: Walkthrough) -> str:
    """The walkthrough as JSON, on one line; each number is the shortest that gives back the same double.

    A receipt brings a digest, which ties it to all numbers and labels.

    Raises:
        RecordError: a number is NaN or plus infinity, or a text holds half a character.
    """
    fields: dict[str, object] = {"format": FORMAT, "version": VERSION}
    fields |= {name: getattr(walk, name) for name in get_type_hints(Walkthrough)}
    fields["title"], fields["notes"] = plain_note(walk.title), list(map(plain_note, walk.notes))
    fields["receipt"] = None if walk.receipt is None else asdict(walk.receipt)
    fields["steps"] = [asdict(step) for step in walk.steps]
    fields["grids"] = {
        name: {"rows": grid.rows, "columns": grid.columns, "values": _rows(grid, name)}
        for name, grid in walk.grids.items()
    }
    if walk.receipt is not None:
        fields["digest"] = digest(fields)
    return to_text(fields, "the walkthrough")


def save(walk: Walkthrough, path: str | os.PathLike[str]) -> Path:
    """Write a walkthrough as ``.json``, whole or not at all, losing nothing.

    Returns:
        The path.

    Raises:
        OutputError: another ending, or the file cannot be written.
        RecordError: it holds what no file can hold.
    """
    check_ending(path, (".json",), "a walkthrough is")
    return write_whole(path, to_json(walk) + "\n")


def load(path: str | os.PathLike[str]) -> Walkthrough:
    """Read a walkthrough that attnviz saved.

    Raises:
        FileFormatError: the file cannot be read, holds no walkthrough, or was changed after its receipt was issued;
            the message is one line.
    """
    saved = read_saved(path)
    try:
        if saved.is_changed:
            raise FileFormatError("it was changed after its receipt was issued (attnviz verify says where)")
        return _rebuilt(saved)
    except RecordError as error:
        reason = str(error)
    raise FileFormatError(visible(f"{path}: {reason}"))


def _rebuilt(saved: Saved) -> Walkthrough:
    found = dict(saved.fields)
    if isinstance(title := found.get("title"), str):
        found["title"] = full_note(title)
    if isinstance(notes := found.get("notes"), list):
        found["notes"] = [full_note(note) for note in notes]
    labels = decode_fields(found, Walkthrough, apart={"grids", "steps"})
    if (labels["own"] is None) != (labels["difference"] is None) or labels["own"] not in {None, *saved.grids}:
        raise FileFormatError("own must name a grid, and difference say how far it is from the model's")
    grids = {
        name: Grid(
            values=np.array(grid.values),
            rows=tuple(map(visible, grid.rows)),
            columns=tuple(map(visible, grid.columns)),
        )
        for name, grid in saved.grids.items()
    }
    steps = tuple(
        CalculationStep(**{name: getattr(step, name) for name in get_type_hints(CalculationStep)})
        for step in saved.steps
    )
    for step in steps:
        _check_shape(step, grids)
    return Walkthrough(grids=grids, steps=steps, **_harmless(labels))


def _check_shape(step: CalculationStep, grids: Mapping[str, Grid]) -> None:
    """Refuse a step that its own grids do not fit; whether its numbers are right is for `verify` to say."""
    made, there = compute(step, grids).shape, grids[step.result].values.shape
    if made != there:
        raise FileFormatError(
            f"step {step.name} makes {made[0]} x {made[1]} numbers, but {step.result} has {there[0]} x {there[1]}"
        )


def _harmless(labels: dict[str, Any]) -> dict[str, Any]:
    """The labels with nothing in them, of what every view prints, that a terminal would obey."""
    shown = {"title": harmless_note(labels["title"]), "model": visible(labels["model"])}
    notes = tuple(map(harmless_note, labels["notes"]))
    receipt: Receipt | None = labels["receipt"]
    if receipt is not None:
        receipt = replace(receipt, native=visible(receipt.native), dtype=visible(receipt.dtype))
    return {**labels, **shown, "notes": notes, "receipt": receipt}


def _rows(grid: Grid, name: str) -> list[list[float | str]]:
    """The numbers, with minus infinity as text."""
    values = grid.values
    if np.isnan(values).any() or np.isposinf(values).any():
        raise RecordError(f"the walkthrough cannot be written: {name} holds NaN or infinity")
    if not values.size:
        raise RecordError(f"the walkthrough cannot be written: {name} is empty")
    return [[HIDDEN if cell == -math.inf else cell for cell in row] for row in values.tolist()]
