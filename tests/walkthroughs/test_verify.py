"""Checking a saved walkthrough: what is right passes, and one wrong number anywhere is found and named."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.errors import FileFormatError
from attnviz.walkthroughs.files import digest, to_json
from attnviz.walkthroughs.operations import OPERATIONS
from attnviz.walkthroughs.verify import FORMULAS, examine, verify
from tests.walkthroughs.by_hand import walks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.walkthroughs.record import Walkthrough
    from tests.fixtures.command_line import Result

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


def test_every_operation_is_known() -> None:
    """Every operation of the walkthrough can be verified, and occurs in the walkthroughs of the tests."""
    assert set(FORMULAS) == set(OPERATIONS)
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
    labels = {step.result: f"step {i} ({step.name})" for i, step in enumerate(walk.steps, start=1)}
    for grid_name, grid in walk.grids.items():
        if grid_name == "n_heads":  # a file with a part of a head is refused when it is read
            continue
        uses = {labels[step.result] for step in walk.steps if grid_name in step.operands}
        for (row, column), right in np.ndenumerate(grid.values):
            wrong = 0.0 if math.isinf(right) else float(right) + 1e-6 * (abs(float(right)) or 1)
            if grid_name == "mask":
                wrong = 1 - float(right)
            fault = examine(planted(walk, grid_name, row, column, wrong)).fault
            if grid_name not in labels:
                assert fault.partition(":")[0] in uses, (grid_name, row, column)
                continue
            cell = f"{labels[grid_name]}: {grid_name}, {grid.describe_cell(row, column)}"
            assert fault.startswith(f"{cell}: the file says {wrong!r}, recomputed it is ")
            assert float(fault.rpartition(" ")[2]) == pytest.approx(right, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"difference": 1e-3}, "difference must be from 0 to "),
        ({"difference": 1e999}, "difference must be a number, not Infinity"),
        ({"from_input": 0.1}, "from_input must be from 0 to "),
        ({"difference": "0"}, 'difference must be a number, not "0"'),
        ({"difference": None}, "own must name a grid"),
        ({"own": "else"}, "own must name a grid"),
        ({"receipt": 7}, "receipt must be an object"),
    ],
)
def test_what_it_says_of_itself(tmp_path: Path, changes: dict[str, Any], fault: str) -> None:
    """A receipt's numbers, and the distance from the model, must be possible."""
    with pytest.raises(FileFormatError, match=f"edited.json: {fault}"):
        verify(edited(tmp_path, "layer", **changes))


def test_what_was_checked(typed: Callable[..., Result], here: Path) -> None:
    """Each step with its shape and its largest difference; what was given; how many cells."""
    WALKS["seq2seq"].save(here / "walk.json")
    result = typed("verify", "walk.json")
    assert (result.status, result.errors) == (0, "")
    assert result.output.splitlines() == [
        "1. scores        scores (1, 4)        largest difference 0",
        "2. softmax       weights (1, 4)       largest difference 0",
        "3. alignment     alignment (4, 3)     largest difference 0",
        "4. context       context (1, 3)       largest difference 0",
        "5. concatenated  concatenated (1, 6)  largest difference 0",
        "given, so not computed: q, K, V",
        "verified: 5 steps, 29 cells, largest difference 0 (at most 1e-12 of what a cell is made of)",
    ]


def test_the_first_wrong_cell(refused: Callable[..., tuple[int, str]], here: Path) -> None:
    """Named by step, grid, row and column, with what stands there and what should."""
    planted(WALKS["seq2seq"], "scores", 0, 1, 61).save(here / "walk.json")
    line = (
        "attnviz: walk.json: step 1 (scores): scores, row 0 (decoder), column 1 (encoder 2): the file says 61.0, "
        "recomputed it is 60.0"
    )
    assert refused("verify", "walk.json") == (1, line)


@pytest.mark.parametrize(
    ("arguments", "status", "line"),
    [
        (["none.json"], 1, "attnviz: none.json: it cannot be read: No such file or directory"),
        (["."], 1, "attnviz: .: it is a folder"),
        (["\x1b[2J"], 1, r"attnviz: \x1b[2J: it cannot be read: No such file or directory"),
        ([], 2, "attnviz verify: Missing argument 'FILE' (see attnviz verify --help)"),
    ],
)
def test_bad_input(
    refused: Callable[..., tuple[int, str]], arguments: list[str], status: int, line: str
) -> None:
    """One line each."""
    assert refused("verify", *arguments) == (status, line)
