"""The calculation written down: by hand, with every term, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attnviz.capture.stream import Scoring, weights_in_blocks
from attnviz.errors import RecordError
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.record import Grid
from tests.walkthroughs.by_hand import attention_walk, largest_error

DRAW = np.random.default_rng(1)
NAMES = tuple(f"k{n}" for n in range(4))
QUERIES = Grid(values=DRAW.normal(size=(3, 5)), rows=("q0", "q1", "q2"))
KEYS, VALUES = (Grid(values=DRAW.normal(size=(4, width)), rows=NAMES) for width in (5, 6))


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"scaling": 1.0, "sink": 1},
        {"scaling": 0.3, "softcap": 0.5, "bias": 1, "mask": 1, "sink": 1},
    ],
)
def test_terms(terms: dict[str, float]) -> None:
    """Scaling, soft cap, bias, mask and sink: the weights that the stream of a model has."""
    draw = np.random.default_rng(9)
    bias, mask, sink = draw.normal(size=(3, 4)), np.tril(np.ones((3, 4)), 1), np.array([[0.4]])
    grids = {
        name: Grid(values=values)
        for name, values in (("bias", bias), ("mask", mask), ("sink", sink))
    }
    given = {name: grids.get(name, value) for name, value in terms.items()}
    walk = attention_walk(title="terms", query=QUERIES, keys=KEYS, values=VALUES, **given)
    scoring = Scoring(
        scaling=terms.get("scaling"),
        softcap=terms.get("softcap"),
        bias=torch.from_numpy(bias)[None, None] if "bias" in terms else None,
        mask=torch.from_numpy(mask == 1)[None, None] if "mask" in terms else None,
        sinks=torch.tensor([0.4], dtype=torch.float64) if "sink" in terms else None,
    )
    query, key = (torch.from_numpy(grid.values.copy())[None, None] for grid in (QUERIES, KEYS))
    ((_, _, weights),) = weights_in_blocks(query, key, scoring)
    np.testing.assert_allclose(walk.grids["weights"].values, weights[0, 0].numpy(), rtol=1e-12)
    names = [step.name for step in walk.steps]
    assert ("scaled" in names) == (terms.get("scaling") != 1)
    assert {"softcap", "bias", "mask"} & set(names) == {"softcap", "bias", "mask"} & set(terms)
    assert largest_error(walk) == 0


@pytest.mark.parametrize(
    ("name", "values", "line"),
    [
        ("q", np.ones((1, 1)), "there are two grids q"),
        ("K", np.ones((0, 3)), r"K is empty: its shape is \(0, 3\)"),
        ("K", np.array([[1.0, np.nan]]), "K must hold finite numbers: row 0, column 1 is nan"),
    ],
)
def test_refused(name: str, values: np.ndarray, line: str) -> None:
    """Two grids of a name, none, and numbers that are none."""
    c = Calculation()
    c.give("q", QUERIES)
    with pytest.raises(RecordError, match=line):
        c.give(name, Grid(values=values))
    with pytest.raises(RecordError, match="there are two grids q"):
        c.step("query", "q", "relu", "q")
    with pytest.raises(RecordError, match=r"step keys \(relu\) is made from X, which is not there"):
        c.step("keys", "K", "relu", "X")
