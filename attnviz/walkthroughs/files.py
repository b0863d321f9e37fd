"""A walkthrough in files, one entry for each kind; as JSON every number and every step, nothing lost."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection
from dataclasses import asdict, replace
from typing import get_type_hints

import numpy as np

from attnviz.attention import Receipt
from attnviz.errors import FileFormatError, RecordError, SettingsError
from attnviz.storage.encoding import decode_fields, plain, to_text
from attnviz.storage.record_files import full_note, harmless_note, plain_note
from attnviz.text.display import visible
from attnviz.walkthroughs.calculation import compute
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.verify.saved import FORMAT, HIDDEN, VERSION, SavedFile, digest
from attnviz.walkthroughs.verify.saved import read as read_saved


def to_json(walk: Walkthrough, *, blanks: Collection[object] = ()) -> str:
    """The walkthrough as JSON, on one line; each number is the shortest that gives back the same double.

    A receipt brings a digest of all that is there. Raises RecordError: NaN, plus infinity, or half a character;
    SettingsError: there are blank cells.
    """
    if blanks:
        raise SettingsError(
            "JSON holds every number: an exercise with blank cells cannot be written so"
        )
    fields: dict[str, object] = {"format": FORMAT, "version": VERSION}
    fields |= {name: getattr(walk, name) for name in get_type_hints(Walkthrough)}
    fields["steps"] = [asdict(step) for step in walk.steps]
    fields["grids"] = {
        name: {"rows": grid.rows, "columns": grid.columns, "values": _rows(grid, name)}
        for name, grid in walk.grids.items()
    }
    if walk.receipt is not None:
        fields["digest"] = digest(json.loads(to_text(fields, "the walkthrough")))
    return to_text(fields, "the walkthrough")


def load(path: str | os.PathLike[str]) -> Walkthrough:
    """Read a walkthrough that attnviz saved.

    Raises FileFormatError: unreadable, no walkthrough, or changed after its receipt was issued, in one line.
    """
    saved = read_saved(path)
    try:
        if saved.is_changed:
            raise FileFormatError(
                "it was changed after its receipt was issued (attnviz verify says where)"
            )
        return _rebuilt(saved)
    except RecordError as error:
        raise FileFormatError(visible(f"{path}: {error}")) from None


def _rebuilt(saved: SavedFile) -> Walkthrough:
    found = dict(saved.fields)
    labels = decode_fields(found, Walkthrough, apart={"grids", "steps"})
    if (labels["own"] is None) != (labels["difference"] is None) or labels["own"] not in {
        None,
        *saved.grids,
    }:
        raise FileFormatError(
            "own must name a grid, and difference say how far it is from the model's"
        )
    grids = {
        name: Grid(
            values=np.array(grid.values),
            rows=tuple(map(visible, grid.rows)),
            columns=tuple(map(visible, grid.columns)),
        )
        for name, grid in saved.grids.items()
    }
    for step in saved.steps:  # whether its numbers are right is for `verify` to say
        made, there = compute(step, grids).shape, grids[step.result].values.shape
        if made != there:
            by = f"{made[0]} x {made[1]} numbers, but {step.result} has {there[0]} x {there[1]}"
            raise FileFormatError(f"step {step.name} makes {by}")
    # In what every view prints stays nothing that a terminal would obey.
    labels |= {"title": harmless_note(labels["title"]), "model": visible(labels["model"])}
    labels["notes"] = tuple(map(harmless_note, labels["notes"]))
    receipt: Receipt | None = labels["receipt"]
    if receipt is not None:
        labels["receipt"] = replace(
            receipt, native=visible(receipt.native), dtype=visible(receipt.dtype)
        )
    return Walkthrough(grids=grids, steps=saved.steps, **labels)


def _rows(grid: Grid, name: str) -> list[list[float | str]]:
    values = grid.values
    if np.isnan(values).any() or np.isposinf(values).any():
        raise RecordError(f"the walkthrough cannot be written: {name} holds NaN or infinity")
    if not values.size:
        raise RecordError(f"the walkthrough cannot be written: {name} is empty")
    return [[HIDDEN if cell == -math.inf else cell for cell in row] for row in values.tolist()]
