"""Checking a saved walkthrough: what is right passes, and one wrong number anywhere is found and named."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.walkthroughs import operations
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.files import to_json
from attnviz.walkthroughs.record import Grid
from attnviz.walkthroughs.verify import BOUND, examine, verify
from attnviz.walkthroughs.verify.arithmetic import OPERATIONS
from attnviz.walkthroughs.verify.saved import parse
from tests.walkthroughs.by_hand import grid, layer, walks

if TYPE_CHECKING:
    from pathlib import Path

    from attnviz.walkthroughs.verify.saved import SavedFile

WALKS = walks()


def edit(name: str, **changes: Any) -> SavedFile:
    """A saved walkthrough with some fields changed, its receipt issued anew."""
    fields = json.loads(to_json(WALKS[name])) | changes
    fields.pop("digest", None)
    if fields["receipt"] is not None:
        from attnviz.walkthroughs.verify.saved import digest

        fields["digest"] = digest(fields)
    return parse(json.dumps(fields).replace("Infinity", "1e999"))


def test_every_operation_is_known() -> None:
    """What the walkthrough can say can be checked, and is between them in the tests' walkthroughs."""
    assert set(OPERATIONS) == set(operations.OPERATIONS)
    for name, operation in operations.OPERATIONS.items():
        assert (OPERATIONS[name].operands, OPERATIONS[name].numbered) == (
            operation.operands,
            operation.numbered,
        )
    steps = [step for walk in WALKS.values() for step in walk.steps]
    assert {step.operation for step in steps} == set(OPERATIONS)
    assert all((step.number is not None) == OPERATIONS[step.operation].numbered for step in steps)


@pytest.mark.parametrize("name", WALKS)
def test_what_is_right_passes(tmp_path: Path, name: str) -> None:
    """Every step and every cell is counted; two ways to compute in double precision are as good as equal."""
    walk = WALKS[name]
    verdict = verify(walk.save(tmp_path / "walk.json"))
    assert verdict.fault == ""
    assert [step.step for step in verdict.checked] == [step.name for step in walk.steps]
    assert verdict.cells == sum(walk.grids[step.result].values.size for step in walk.steps)
    assert verdict.largest < 1e-14
    assert verdict.inputs == walk.inputs()
    assert verdict.unused == ()
    assert verdict.own == walk.own
    assert verdict.difference == walk.difference


def wrong(value: float, *, is_mask: bool) -> float:
    """A number that is off by a millionth; a mask's opposite."""
    if is_mask:
        return 1 - value
    return 0.0 if math.isinf(value) else value + 1e-6 * (abs(value) or 1)


@pytest.mark.parametrize("name", WALKS)
def test_a_wrong_number_in_any_cell_is_found(name: str) -> None:
    """A computed cell is named itself, where a given one is wrong a step that uses it."""
    saved = edit(name)
    made = {step.result: i + 1 for i, step in enumerate(saved.steps)}
    cells = 0
    for grid_name, found in saved.grids.items():
        used_by = [
            f"step {i + 1} ({step.name})"
            for i, step in enumerate(saved.steps)
            if grid_name in step.operands
        ]
        for i, row in enumerate(found.values):
            for j, right in enumerate(row):
                row[j] = wrong(right, is_mask=grid_name == "mask")
                fault = examine(saved).fault
                planted, row[j] = row[j], right
                cells += 1
                if grid_name not in made:
                    assert fault.partition(":")[0] in used_by, (grid_name, i, j, fault)
                    continue
                step = saved.steps[made[grid_name] - 1]
                row_name = f"{i} ({found.rows[i]})" if found.rows else str(i)
                column_name = f"{j} ({found.columns[j]})" if found.columns else str(j)
                start = f"step {made[grid_name]} ({step.name}): {grid_name}, row {row_name}, column {column_name}: "
                assert fault.startswith(f"{start}the file says {planted!r}, recomputed it is ")
                assert float(fault.rpartition(" ")[2]) == pytest.approx(right, rel=1e-12, abs=1e-14)
    assert cells == sum(each.values.size for each in WALKS[name].grids.values())
    assert examine(saved).fault == ""


@pytest.mark.parametrize("name", WALKS)
def test_a_wrong_factor_is_found(name: str) -> None:
    """The number beside the grids counts like a cell."""
    fields = json.loads(to_json(WALKS[name]))
    numbered = [i for i, step in enumerate(fields["steps"]) if step["number"] is not None]
    assert bool(numbered) == any(OPERATIONS[step.operation].numbered for step in WALKS[name].steps)
    for i in numbered:
        steps = json.loads(json.dumps(fields["steps"]))
        steps[i]["number"] += 1e-4
        assert examine(edit(name, steps=steps)).fault.startswith(
            f"step {i + 1} ({steps[i]['name']}): "
        )


def test_a_file_without_steps_is_not_verified() -> None:
    """Where nothing is computed nothing is right, with and without numbers."""
    said = "it holds no step that could be computed"
    assert examine(edit("seq2seq", steps=[])).fault == said
    assert examine(edit("seq2seq", steps=[], grids={})).fault == said


def test_the_smallest_weights_count() -> None:
    """A weight of 2.9e-20 is held against itself, not against 1."""
    saved = edit("seq2seq")
    saved.grids["weights"].values[0][2] *= 1.0001
    assert (
        "weights, row 0 (decoder), column 2 (encoder 3): the file says 2.8628"
        in examine(saved).fault
    )


def test_a_given_number_that_nothing_is_made_from(tmp_path: Path) -> None:
    """It cannot be found wrong, and the verdict says so."""
    c = Calculation()
    c.give("a", grid(2, 2))
    c.give("spare", grid(1, 2))
    c.step("relu", "b", "relu", "a")
    verdict = verify(c.finish("t").save(tmp_path / "w.json"))
    assert (verdict.fault, verdict.inputs, verdict.unused) == ("", ("a", "spare"), ("spare",))


def test_wide_sums_are_no_false_alarm(tmp_path: Path) -> None:
    """768 products that nearly cancel, at values of hundreds of thousands, are still as they were computed."""
    rng = np.random.default_rng(1)
    c = Calculation()
    c.give("X", Grid(values=rng.normal(size=(3, 768)) * 300))
    c.give("W", Grid(values=rng.normal(size=(768, 40)) * 300))
    c.step("query", "Q", "projection", "X", "W")
    c.step("scores", "scores", "dot", "Q", "Q")
    c.step("softmax", "weights", "softmax", "scores")
    verdict = verify(c.finish("wide").save(tmp_path / "w.json"))
    assert verdict.fault == ""
    assert verdict.cells == 3 * 40 + 9 + 9


# ------------------------------------------------------------------------------- what the file says of itself


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"difference": -1e-9}, "difference must be from 0 to "),
        ({"difference": 1e-3}, "difference must be from 0 to "),
        ({"difference": 1e999}, "difference must be finite, not infinity"),
        ({"from_input": -1e-9}, "from_input must be from 0 to "),
        ({"from_input": 0.1}, "from_input must be from 0 to "),
        ({"from_input": None}, ""),
        (
            {"difference": "0"},
            'difference must be a number, not "0": write it without quotation marks',
        ),
        ({"difference": None}, "own and difference belong together"),
        ({"own": None}, "own and difference belong together"),
        ({"own": "else"}, "own names no grid of the file"),
        ({"own": ["context"]}, "own names no grid of the file"),
        ({"receipt": 7}, "the receipt must be an object"),
        (
            {"receipt": {"tolerance": 1, "layers": [0], "differences": []}},
            "the receipt must have a difference for each",
        ),
        (
            {"receipt": {"tolerance": 1e999, "layers": [], "differences": []}},
            "receipt.tolerance must be finite",
        ),
        (
            {"receipt": {"tolerance": 1, "layers": [1], "differences": [1e999]}},
            "receipt.differences[0] must be finite",
        ),
        (
            {"receipt": {"tolerance": 1, "layers": [1], "differences": [-1]}},
            "the receipt's numbers must not be negative",
        ),
        ({"receipt": None}, ""),
        ({"difference": 0}, ""),
    ],
)
def test_what_it_says_of_itself(changes: dict[str, Any], fault: str) -> None:
    """A receipt's numbers, and the distance from the model, must be possible."""
    found = examine(edit("layer", **changes)).fault
    assert found.startswith(fault)
    assert bool(found) == bool(fault)


def test_the_bound_grows_with_the_numbers() -> None:
    """The distance is held against the receipt's tolerance, relative to the largest number where that exceeds 1."""
    largest = float(np.abs(WALKS["layer"].grids["concatenated"].values).max())
    assert largest > 1
    assert examine(edit("layer", difference=1e-5 * largest * 0.999)).fault == ""
    assert examine(edit("layer", difference=1e-5 * largest * 1.001)).fault
    assert examine(edit("layer", difference=BOUND * largest * 1.001, receipt=None)).fault


def test_a_label_changed_after_the_receipt() -> None:
    """All cells may agree, and the file still not be what the receipt was issued for."""
    fields = json.loads(to_json(layer()))
    fields["model"] = "another"
    expected = "a number that was given, or a label, was changed after the receipt was issued"
    assert examine(parse(json.dumps(fields))).fault == expected
    del fields["digest"]
    assert examine(parse(json.dumps(fields))).fault == expected


# ------------------------------------------------------------------------------------- steps that cannot be


def calculate(
    operation: str,
    result: list[list[float]],
    *operands: list[list[Any]],
    number: float | None = None,
) -> str:
    """The fault of one step."""
    names = [f"g{i}" for i in range(len(operands))]
    grids = {name: {"values": values} for name, values in zip(names, operands, strict=True)}
    step = {"name": "s", "result": "r", "operation": operation, "operands": names, "number": number}
    fields = {
        "format": "attnviz-walkthrough",
        "version": 1,
        "grids": {**grids, "r": {"values": result}},
        "steps": [step],
    }
    return examine(parse(json.dumps(fields))).fault


@pytest.mark.parametrize(
    ("operation", "operands", "fault"),
    [
        ("dot", ([[1, 2, 3]], [[1, 2]]), "g0 has 3 columns, but g1 has 2 columns"),
        ("projection", ([[1, 2, 3]], [[1], [2]]), "g0 has 3 columns, but g1 has 2 rows"),
        ("projection", ([[1]], [[1]], [[1], [2]]), "g2 has 2 rows, but must have 1"),
        ("projection", ([[1]], [[1]], [[1, 2]]), "g2 has 2 columns, but g1 has 1 columns"),
        ("add", ([[1]], [[1, 2]]), "g1 has 2 columns, but g0 has 1 columns"),
        ("mask", ([[1]], [[1], [1]]), "g1 has 2 rows, but g0 has 1 rows"),
        ("mask", ([[1]], [[0.5]]), "a mask must be 0 or 1"),
        ("softmax", ([["-inf", "-inf"]],), "row 0 has no key that it may look at"),
        ("softmax", ([[1]], [[1, 2]]), "g1 has 2 columns, but must have 1"),
        ("weigh", ([[1], [2]], [[1]]), "g0 has 2 rows, but must have 1"),
        ("weigh", ([[1, 2]], [[1]]), "g0 has 2 columns, but g1 has 1 rows"),
        ("concatenate", ([[1]], [[1], [2]]), "g1 has 2 rows, but g0 has 1 rows"),
        ("general", ([[1]], [[1], [1]], [[1]]), "g0 has 1 columns, but g1 has 2 rows"),
        ("additive", ([[1]], [[1]], [[1]], [[1], [2]], [[1]]), "g2 has 1 rows, but g3 has 2 rows"),
        ("sum", ([[1e308], [1e308]],), "r cannot be computed: it leaves the range of numbers"),
        (
            "projection",
            ([["-inf", "-inf"]], [[1], [-1]]),
            "r cannot be computed: it leaves the range of numbers",
        ),
        ("relu", ([[1, 2]],), "r is 1 x 1, recomputed 1 x 2"),
        ("product", ([[1]], [[1, 2]]), "g1 has 2 columns, but g0 has 1 columns"),
        ("product", ([[1]], [[1], [2]]), "g1 has 2 rows, but g0 has 1 rows"),
    ],
)
def test_steps_that_cannot_be_computed(
    operation: str, operands: tuple[Any, ...], fault: str
) -> None:
    """Shapes that clash, and numbers out of range, are faults of the step and no tracebacks."""
    assert calculate(operation, [[1.0]], *operands) == f"step 1 (s): {fault}"


@pytest.mark.parametrize(
    ("operands", "fault"),
    [
        (([[1, 2]], [[1, 2], [3, 4]]), "g1 has 2 rows, but must have 1"),
        (([[1, 2]], [[1]]), "g1 has 1 columns, but g0 has 2 columns"),
        (([[0, 0]], [[1, 1]]), "a row of zeros cannot be divided by its size"),
    ],
)
def test_a_root_mean_square_that_cannot_be_computed(operands: tuple[Any, ...], fault: str) -> None:
    """One gain for each number of a row, and no row of nothing but zeros."""
    assert calculate("rms_norm", [[1.0, 1.0]], *operands, number=0.0) == f"step 1 (s): {fault}"


@pytest.mark.parametrize("operation", ["silu", "gelu_tanh"])
def test_activations_far_from_0(operation: str) -> None:
    """No number is too large or too small for them; what is far below 0 is as good as shut."""
    assert calculate(operation, [[0.0, 0.0, 800.0]], [[-1e4, 0.0, 800.0]]) == ""
    assert "recomputed it is 800.0" in calculate(
        operation, [[0.0, 0.0, 800.1]], [[-1e4, 0.0, 800.0]]
    )


def test_the_approximation_of_gelu_is_another_operation() -> None:
    """They differ by up to 5e-4, which no tolerance hides."""
    exact = 0.5 * 2 * (1 + math.erf(2 / math.sqrt(2)))
    assert calculate("gelu", [[exact]], [[2]]) == ""
    assert "the file says" in calculate("gelu_tanh", [[exact]], [[2]])


@pytest.mark.parametrize(("operation", "number"), [("norm", 0.0), ("softcap", 0.0)])
def test_nothing_is_divided_by_zero(operation: str, number: float) -> None:
    """A row without variance, and a cap of 0, are said."""
    more = ([[1.0, 1.0]], [[1.0, 1.0]]) if operation == "norm" else ()
    assert calculate(operation, [[1.0, 1.0]], [[2.0, 2.0]], *more, number=number).startswith(
        "step 1 (s): a "
    )


@pytest.mark.parametrize("number", [2.0, -1.0, 0.5])
def test_a_row_that_is_not_there(number: float) -> None:
    """There are two, counted from 0."""
    said = f"step 1 (s): there is no row {number:g}: there are 2, counted from 0"
    assert calculate("row", [[1.0]], [[1], [2]], number=number) == said


def test_infinity_is_equal_to_itself_alone() -> None:
    """A masked cell must be minus infinity, and what is minus infinity must have been masked."""
    assert calculate("mask", [[1.0, "-inf"]], [[1, 2]], [[1, 0]]) == ""  # type: ignore[list-item]
    assert "recomputed it is -inf" in calculate("mask", [[1.0, -1e300]], [[1, 2]], [[1, 0]])
    assert "the file says -inf" in calculate("add", [["-inf"]], [[1]], [[1]])  # type: ignore[list-item]
    assert "the file says 5.0" in calculate("add", [[5]], [["-inf"]], [[1]])


def test_it_imports_neither_torch_nor_numpy(tmp_path: Path) -> None:
    """What checks shares nothing with what made: neither the module nor the whole command needs them."""
    path = layer().save(tmp_path / "walk.json")
    heavy = [
        "torch",
        "numpy",
        "jaxtyping",
        "attnviz.walkthroughs.record",
        "attnviz.attention",
        "attnviz.storage.record_files",
        "attnviz.storage.encoding",
        "attnviz.walkthroughs.calculation",
    ]
    code = (
        "import sys\nfrom attnviz.walkthroughs.verify import verify\nassert not verify(sys.argv[1]).fault\n"
        "sys.argv = ['attnviz', 'verify', sys.argv[1]]\nimport attnviz.cli\nassert attnviz.cli._run() == 0\n"
        f"sys.exit([name for name in {heavy} if name in sys.modules] or 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    assert "verified: " in result.stdout
