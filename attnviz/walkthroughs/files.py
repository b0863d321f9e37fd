"""Saving and loading walkthroughs as JSON, with all numbers and steps in full precision."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.errors import FileFormatError, RecordError, SettingsError
from attnviz.storage.encoding import decode, decode_fields, from_text, show, to_text
from attnviz.storage.files import as_file_error, check_is_file
from attnviz.storage.record_files import harmless
from attnviz.text.display import visible
from attnviz.walkthroughs.calculation import compute
from attnviz.walkthroughs.record import Grid, Walkthrough

FORMAT = "attnviz-walkthrough"
VERSION = 1
LARGEST = 2**29  # bytes of a file that is read; a layer of DistilBERT takes about 150 million
MOST_STEPS = 5_000  # of a file that is read; a layer of 128 heads has about 1,000
HIDDEN = "-inf"  # stands for minus infinity, which JSON numbers cannot express
BOUND = 1e-5  # largest difference from the model's own numbers, if no receipt gives a tolerance
SLACK = 100  # factor of the tolerance from the input on, where the model's format rounds more


@dataclass(frozen=True, slots=True, kw_only=True)
class GridFields:
    """The fields of a grid in JSON."""

    values: tuple[tuple[float | str, ...], ...]
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


def to_json(walk: Walkthrough, *, blanks: Collection[object] = ()) -> str:
    """Return the walkthrough as JSON on one line; each number is the shortest text that gives the same double.

    A walkthrough with a receipt gets a digest of all fields. Raises RecordError: NaN, plus infinity, or text with half
    a surrogate pair; SettingsError: there are blank cells.
    """
    if blanks:
        raise SettingsError(
            "JSON holds every number: an exercise with blank cells cannot be written so"
        )
    fields: dict[str, object] = {"format": FORMAT, "version": VERSION}
    fields |= {field.name: getattr(walk, field.name) for field in dataclass_fields(Walkthrough)}
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

    Raises FileFormatError, in one line: the file cannot be read, is no walkthrough, or was changed after its receipt
    was issued.
    """
    walk, is_changed = read(path)
    if is_changed:
        reason = "it was changed after its receipt was issued (attnviz verify says where)"
        raise FileFormatError(visible(f"{path}: {reason}"))
    return walk


def read(path: str | os.PathLike[str]) -> tuple[Walkthrough, bool]:
    """Return a walkthrough, and whether it was changed after its receipt was issued.

    Its numbers are not checked here, but in `attnviz.walkthroughs.verify`. Raises FileFormatError, in one line: the
    file cannot be read, or is no walkthrough.
    """
    with as_file_error(path, "a walkthrough"):
        check_is_file(Path(path), LARGEST)
        fields = from_text(Path(path).read_bytes())
        if fields.get("format") != FORMAT:
            writes = 'attnviz writes one with "attnviz walkthrough -o walk.json"'
            raise FileFormatError(f"it holds no walkthrough ({writes})")
        if fields.get("version") != VERSION:
            version = show(fields.get("version"))
            raise FileFormatError(
                f"it is of version {version}, but this attnviz reads version {VERSION}: update attnviz"
            )
        has_receipt = fields.get("receipt") is not None or fields.get("digest") is not None
        is_changed = has_receipt and fields.get("digest") != digest(fields)
        return _rebuild(fields), is_changed


def digest(fields: Mapping[str, object]) -> str:
    """Return the SHA-256 digest of all fields, which does not depend on how a program formats JSON."""
    text = json.dumps({name: value for name, value in fields.items() if name != "digest"})
    # Integers become floats, since some programs write 1.0 as 1.
    canonical = json.dumps(json.loads(text, parse_int=float), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _rebuild(fields: Mapping[str, object]) -> Walkthrough:
    """Return the walkthrough with these fields. Raises FileFormatError: a field is missing or invalid."""
    labels = decode_fields(fields, Walkthrough, apart={"grids"})
    if len(labels["steps"]) > MOST_STEPS:
        n_steps = len(labels["steps"])
        raise FileFormatError(f"it has {n_steps:,} steps, and at most {MOST_STEPS:,} are read")
    grid_values = decode(fields.get("grids"), dict[str, Any], "grids")
    for name in (*grid_values, *(step.name for step in labels["steps"])):
        if not name.strip() or not name.isprintable():
            raise FileFormatError(f"a name must be text that can be printed, not {show(name)}")
    grids = {name: _grid(grid, f"grids.{name}") for name, grid in grid_values.items()}
    # Remove control characters, which a terminal would obey, from everything that is printed.
    labels |= {name: harmless(labels[name]) for name in ("title", "notes", "model", "receipt")}
    walk = Walkthrough(grids=grids, **labels)
    for step in walk.steps:
        shape, saved = compute(step, grids).shape, grids[step.result].values.shape
        if shape != saved:
            text = f"{shape[0]} x {shape[1]} numbers, but {step.result} has {saved[0]} x {saved[1]}"
            raise FileFormatError(f"step {step.name} makes {text}")
    _check_distance(walk)
    return walk


def _grid(content: object, where: str) -> Grid:
    """Return a grid from its JSON value. Raises FileFormatError: it is invalid; the message begins with `where`."""
    fields: GridFields = decode(content, GridFields, where)
    values = [[-math.inf if cell == HIDDEN else cell for cell in row] for row in fields.values]
    for i, row in enumerate(values):
        for j, cell in enumerate(row):
            if isinstance(cell, str):
                raise FileFormatError(
                    f"{where}.values[{i}][{j}] must be a number, not {show(cell)}"
                )
        if len(row) != len(values[0]):
            raise FileFormatError(
                f"{where}.values[{i}] has {len(row)} numbers, but the first row has {len(values[0])}"
            )
    if not values or not values[0]:
        raise FileFormatError(f"{where}.values is empty")
    try:
        rows, columns = tuple(map(visible, fields.rows)), tuple(map(visible, fields.columns))
        return Grid(values=np.array(values, dtype=np.float64), rows=rows, columns=columns)
    except RecordError as error:
        raise FileFormatError(f"{where}: {error}") from None


def _check_distance(walk: Walkthrough) -> None:
    """Raise FileFormatError if a difference from the model's own numbers is larger than the tolerance."""
    if (walk.own is None) != (walk.difference is None) or walk.own not in {None, *walk.grids}:
        raise FileFormatError(
            "own must name a grid, and difference say how far it is from the model's"
        )
    if walk.own is None:
        return
    numbers = walk.grids[walk.own].values
    largest = max(1.0, float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0)))
    tolerance = BOUND if walk.receipt is None else walk.receipt.tolerance
    for name, slack in (("difference", 1), ("from_input", SLACK)):
        distance, bound = getattr(walk, name), tolerance * largest * slack
        if distance is not None and not 0 <= distance <= bound:
            raise FileFormatError(f"{name} must be from 0 to {bound:.1e}, not {distance!r}")


def _rows(grid: Grid, name: str) -> list[list[float | str]]:
    """Return the numbers of a grid for JSON. Raises RecordError: NaN, plus infinity, or no numbers."""
    values = grid.values
    if np.isnan(values).any() or np.isposinf(values).any():
        raise RecordError(f"the walkthrough cannot be written: {name} holds NaN or infinity")
    if not values.size:
        raise RecordError(f"the walkthrough cannot be written: {name} is empty")
    return [[HIDDEN if cell == -math.inf else cell for cell in row] for row in values.tolist()]
