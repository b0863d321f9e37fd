"""Checking a saved walkthrough: what is right passes, and one wrong number anywhere is found and named."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.errors import FileFormatError
from attnviz.walkthroughs import operations
from attnviz.walkthroughs.files import digest, to_json
from attnviz.walkthroughs.verify import FORMULAS, examine, verify
from tests.walkthroughs.by_hand import layer, walks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from attnviz.walkthroughs.record import Walkthrough

WALKS = walks()


def edited(folder: Path, name: str, **changes: Any) -> Path:
    """A saved walkthrough with some fields changed, its receipt issued anew."""
    fields = json.loads(to_json(WALKS[name])) | changes
    fields.pop("digest", None)
    if fields["receipt"] is not None:
        fields["digest"] = digest(fields)
    path = folder / "edited.json"
    path.write_text(json.dumps(fields).replace("Infinity", "1e999"), encoding="utf-8")
    return path


def planted(walk: Walkthrough, name: str, row: int, column: int, value: float) -> Walkthrough:
    """The walkthrough with another number in one cell."""
    values = walk.grids[name].values.copy()
    values[row, column] = value
    return replace(walk, grids={**walk.grids, name: replace(walk.grids[name], values=values)})


def cells(walk: Walkthrough) -> Iterator[tuple[str, int, int, float]]:
    """Every cell: its grid, row, column and number."""
    for name, found in walk.grids.items():
        for row, column in np.ndindex(found.values.shape):
            yield name, row, column, float(found.values[row, column])


def test_every_operation_is_known() -> None:
    """Every operation of the walkthrough can be verified, and occurs in the walkthroughs of the tests."""
    assert set(FORMULAS) == set(operations.OPERATIONS)
    steps = [step for walk in WALKS.values() for step in walk.steps]
    assert {step.operation for step in steps} == set(FORMULAS)


@pytest.mark.parametrize("name", WALKS)
def test_what_is_right_passes(tmp_path: Path, name: str) -> None:
    """Every step and every cell is counted; two ways to compute in double precision are as good as equal."""
    walk = WALKS[name]
    verdict = verify(walk.save(tmp_path / "walk.json"))
    assert (verify(walk).fault, verify(walk).cells) == (verdict.fault, verdict.cells)
    assert verdict.fault == ""
    assert len(verdict.differences) == len(walk.steps)
    assert verdict.cells == sum(walk.grids[step.result].values.size for step in walk.steps)
    assert max(verdict.differences) < 1e-14
    assert verdict.walk.inputs() == walk.inputs()
    assert (verdict.walk.own, verdict.walk.difference) == (walk.own, walk.difference)


@pytest.mark.parametrize("name", WALKS)
def test_a_wrong_number_in_any_cell_is_found(name: str) -> None:
    """A number off by a millionth; a computed cell is named itself, where a given one is wrong a step that uses it."""
    walk = WALKS[name]
    made = {step.result: (i, step) for i, step in enumerate(walk.steps, start=1)}
    for grid_name, row, column, right in cells(walk):
        if grid_name == "n_heads":  # a file with a part of a head is refused when it is read
            continue
        wrong = 0.0 if math.isinf(right) else right + 1e-6 * (abs(right) or 1)
        if grid_name == "mask":
            wrong = 1 - right
        verdict = examine(planted(walk, grid_name, row, column, wrong))
        if grid_name not in made:
            used_by = [
                f"step {i} ({step.name})"
                for i, step in enumerate(walk.steps, start=1)
                if grid_name in step.operands
            ]
            assert verdict.fault.partition(":")[0] in used_by, (grid_name, row, column)
            continue
        number, step = made[grid_name]
        place = walk.grids[grid_name].describe_cell(row, column)
        start = f"step {number} ({step.name}): {grid_name}, {place}: the file says {wrong!r}, recomputed it is "
        assert verdict.fault.startswith(start)
        assert float(verdict.fault.rpartition(" ")[2]) == pytest.approx(right, rel=1e-12, abs=1e-14)


def test_a_file_without_steps_is_not_verified(tmp_path: Path) -> None:
    """Where nothing is computed nothing is right, with and without numbers."""
    said = "it holds no step that could be computed"
    for grids in ({}, {"q": {"values": [[1]]}}):
        assert verify(edited(tmp_path, "seq2seq", steps=[], grids=grids)).fault == said


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"difference": -1e-9}, "difference must be from 0 to "),
        ({"difference": 1e-3}, "difference must be from 0 to "),
        ({"difference": 1e999}, "difference must be a number, not Infinity"),
        ({"from_input": -1e-9}, "from_input must be from 0 to "),
        ({"from_input": 0.1}, "from_input must be from 0 to "),
        ({"difference": "0"}, 'difference must be a number, not "0"'),
        ({"difference": None}, "own must name a grid"),
        ({"own": None}, "own must name a grid"),
        ({"own": "else"}, "own must name a grid"),
        ({"own": ["context"]}, "own must be text"),
        ({"receipt": 7}, "receipt must be an object"),
    ],
)
def test_what_it_says_of_itself(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    """A receipt's numbers, and the distance from the model, must be possible."""
    with pytest.raises(FileFormatError, match=f"edited.json: {fault}"):
        verify(edited(tmp_path, "layer", **changes))


def test_a_label_changed_after_the_receipt(tmp_path: Path) -> None:
    """All cells may agree, and the file still not be what the receipt was issued for."""
    fields = json.loads(to_json(layer()))
    fields["model"] = "another"
    path = tmp_path / "w.json"
    expected = "a number or label was changed after the receipt was issued"
    for _ in range(2):
        path.write_text(json.dumps(fields), encoding="utf-8")
        assert verify(path).fault == expected
        fields.pop("digest", None)
