"""Walkthroughs as files: nothing is lost, and no bad file is more than one clear line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_type_hints

import jaxtyping
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.errors import FileFormatError, RecordError
from attnviz.walkthroughs.files import load, to_json
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.verify import verify
from tests.walkthroughs.by_hand import layer, note, walks

if TYPE_CHECKING:
    from pathlib import Path

WALKS = walks()


@pytest.mark.parametrize("name", WALKS)
def test_it_comes_back_as_it_went(tmp_path: Path, name: str) -> None:
    """Every bit of every number, every name, every step, the receipt and the notes."""
    path, walk = tmp_path / "new" / "walk.json", WALKS[name]
    assert walk.save(path) == path
    found = load(path)
    assert to_json(found) == to_json(walk)
    for label in get_type_hints(Walkthrough).keys() - {"grids"}:
        assert getattr(found, label) == getattr(walk, label)
    for grid, saved in zip(found.grids.values(), walk.grids.values(), strict=True):
        assert grid.values.tobytes() == saved.values.tobytes()
        assert (grid.rows, grid.columns) == (saved.rows, saved.columns)


@given(
    numbers=st.lists(st.floats(allow_nan=False) | st.just(-math.inf), min_size=1, max_size=6),
    n_rows=st.integers(1, 3),
)
def test_every_double_comes_back(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[float], n_rows: int
) -> None:
    """The smallest, the largest, minus zero and minus infinity; plus infinity is refused."""
    values = np.array([numbers] * n_rows)
    step = CalculationStep(name="sum", result="s", operation="relu", operands=("a",))
    walk = Walkthrough(
        title=note("t"), grids={"a": Grid(values=values), "s": Grid(values=values)}, steps=(step,)
    )
    path = tmp_path_factory.mktemp("walks") / "walk.json"
    if math.inf in numbers:
        with pytest.raises(RecordError, match="a holds NaN or infinity"):
            walk.save(path)
    else:
        assert load(walk.save(path)).grids["a"].values.tobytes() == values.tobytes()


@pytest.mark.parametrize(
    ("values", "title", "line"),
    [
        ([[1.0, math.nan]], "t", "a holds NaN or infinity"),
        ([[1.0]], "half \ud83d", "'utf-8' codec"),
        (np.ones((0, 2)), "t", "a is empty"),
    ],
)
def test_what_no_file_can_hold(tmp_path: Path, values: Any, title: str, line: str) -> None:
    """It is refused before anything is written."""
    walk = Walkthrough(title=note(title), grids={"a": Grid(values=np.array(values))}, steps=())
    with pytest.raises(RecordError, match=f"the walkthrough cannot be written: {line}"):
        walk.save(tmp_path / "w.json")
    assert list(tmp_path.iterdir()) == []


def test_nothing_a_terminal_obeys_is_read(tmp_path: Path) -> None:
    """Control characters in a file are spelled out in every view."""
    walk = layer()
    assert walk.receipt
    grids = dict(walk.grids) | {"X": replace(walk.grids["X"], rows=("\x1b[2J", "b", "c", "d"))}
    wicked = replace(
        walk,
        title=note("\x07t"),
        model="m\n",
        notes=(note("\u202e"),),
        grids=grids,
        receipt=replace(walk.receipt, native="\x1b"),
    )
    found = load(wicked.save(tmp_path / "w.json"))
    assert found.receipt
    assert (found.title, found.model, found.notes) == (note(r"\x07t"), r"m\n", (note(r"\u202e"),))
    assert (found.grids["X"].rows[0], found.receipt.native) == (r"\x1b[2J", r"\x1b")


# ---------------------------------------------------------------------------------------------- bad files


def remade(edit: Callable[[dict[str, Any]], Any], name: str = "seq2seq") -> bytes:
    """A walkthrough's file after an edit."""
    fields = json.loads(to_json(WALKS[name]))
    edit(fields)
    return json.dumps(fields, ensure_ascii=False).replace("Infinity", "1e999").encode()


def cell(value: object) -> Callable[[dict[str, Any]], Any]:
    """An edit of one number of the scores."""

    def edit(fields: dict[str, Any]) -> None:
        fields["grids"]["scores"]["values"][0][1] = value

    return edit


NO_RECORD = b'{"format": "attnviz", "version": 1}'
CLASH = "step scores (dot): these shapes do not fit together: q (1, 2), K (4, 3)"
BAD: list[tuple[bytes | Callable[[dict[str, Any]], Any], str]] = [
    (b"", "it is empty"),
    (to_json(WALKS["layer"]).encode()[:-400], "it is not JSON: "),
    (NO_RECORD, "it holds no walkthrough"),
    (b"[" * 100_000 + b"]" * 100_000, "it is nested too deeply to be a walkthrough"),
    (lambda f: f.update(version=2), "it is of version 2, but this attnviz reads version 1"),
    (lambda f: f.pop("steps"), "it lacks steps"),
    (lambda f: f.update(steps=f["steps"] * 1_001), "it has "),
    (
        lambda f: f["grids"]["K"]["values"][2].append(1),
        "grids.K.values[2] has 4 numbers, but the first row has 3",
    ),
    (cell("60"), 'grids.scores.values[0][1] must be a number, not "60"'),
    (lambda f: f["grids"].update({"\x1b": f["grids"]["q"]}), "a name must be text that can be"),
    (lambda f: f["steps"][0].update(operation="divide"), "step scores: there is no operation"),
    (lambda f: f["grids"]["q"].update(values=[[1, 2]]), CLASH),
    (lambda f: f.update(kind="both"), "kind must be one of encoder, decoder, cross"),
    (lambda f: f.update(receipt={}, digest=0), "it lacks receipt.native"),
]


@pytest.mark.parametrize(("content", "line"), BAD, ids=[line for _, line in BAD])
def test_bad_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: Any, line: str
) -> None:
    """Each is one line that names the file and what is wrong with it, and where."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    path = tmp_path / "walk.json"
    path.write_bytes(content if isinstance(content, bytes) else remade(content))
    with pytest.raises(FileFormatError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: {line}")
    assert message.isprintable()
    assert len(message) < len(str(path)) + 300


@pytest.mark.parametrize(
    "edit",
    [
        cell(60.1),
        lambda fields: fields.update(title={"code": "another"}),
        lambda fields: fields.update(model="another"),
        lambda fields: fields.update(receipt=None),
        lambda fields: fields["steps"][0].update(name="other"),
        lambda fields: fields.update(difference=0.0),
    ],
)
def test_an_edit_after_the_receipt(tmp_path: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    """A receipt holds for the very numbers and labels it was issued for, even where all cells agree."""
    path = tmp_path / "walk.json"
    path.write_bytes(remade(edit, "layer"))
    with pytest.raises(FileFormatError, match="it was changed after its receipt was issued"):
        load(path)
    fault = verify(path).fault
    assert fault.startswith(("a number or label was changed after the receipt was issued", "step "))
