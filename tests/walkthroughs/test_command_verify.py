"""``attnviz verify``: what was checked, or the first thing that is wrong, in one line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.walkthroughs.by_hand import walks

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result


def test_what_was_checked(typed: Callable[..., Result], here: Path) -> None:
    """Each step with its shape and its largest difference; what was given; how many cells."""
    walks()["seq2seq"].save(here / "walk.json")
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
    path = walks()["seq2seq"].save(here / "walk.json")
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields["grids"]["scores"]["values"][0][1] = 61
    path.write_text(json.dumps(fields), encoding="utf-8")
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
