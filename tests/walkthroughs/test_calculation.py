"""The calculation written down: by hand, with every term, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from attnviz.capture.stream import Scoring, weights_in_blocks
from attnviz.errors import RecordError
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.record import Grid, Walkthrough
from tests.walkthroughs.by_hand import attend, attention_walk, largest_error

if TYPE_CHECKING:
    from attnviz.walkthroughs.settings import Score

STATES = Grid(
    values=np.array([[0.0, 1, 1], [5, 0, 1], [1, 1, 0], [0, 5, 1]]),
    rows=("one", "two", "three", "four"),
)
DECODER = Grid(values=np.array([[10.0, 5, 10]]), rows=("decoder",))


def by_hand() -> Walkthrough:
    """The five steps with numbers that can be done by hand."""
    return attention_walk(title="by hand", query=DECODER, keys=STATES, values=STATES, score="dot")


DRAW = np.random.default_rng(1)
NAMES = tuple(f"k{n}" for n in range(4))
QUERIES = Grid(values=DRAW.normal(size=(3, 5)), rows=("q0", "q1", "q2"))
KEYS, VALUES = (Grid(values=DRAW.normal(size=(4, width)), rows=NAMES) for width in (5, 6))


def test_by_hand() -> None:
    """Every digit of the five steps."""
    grids = by_hand().grids
    assert grids["scores"].values.tolist() == [[15, 60, 15, 35]]
    assert [f"{weight:.9g}" for weight in grids["weights"].values[0]] == [
        "2.86251858e-20",
        "1",
        "2.86251858e-20",
        "1.38879439e-11",
    ]
    assert [f"{number:.9g}" for number in grids["context"].values[0]] == [
        "5",
        "6.94397194e-11",
        "1",
    ]
    expected = grids["weights"].values[0][:, None] * STATES.values
    assert np.array_equal(grids["alignment"].values, expected)


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"scaling": 1.0},
        {"scaling": 0.3},
        {"softcap": 0.5},
        {"bias": 1},
        {"mask": 1},
        {"sink": 1},
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
    ("score", "sizes"), [("general", {"W": 5}), ("additive", {"W": 5, "U": 5, "v": 1})]
)
def test_other_scores(score: Score, sizes: dict[str, int]) -> None:
    """They need weights, and are not scaled."""
    weights = {
        name: Grid(values=np.random.default_rng(4).normal(size=(n, 5))) for name, n in sizes.items()
    }
    walk = attention_walk(
        title=score, query=QUERIES, keys=KEYS, values=VALUES, score=score, weights=weights
    )
    assert [step.name for step in walk.steps] == ["scores", "softmax", "context"]
    assert set(weights) < set(walk.inputs())
    for name in weights:
        with pytest.raises(RecordError, match=f"the score {score} needs a grid {name}"):
            attention_walk(
                title=score,
                query=QUERIES,
                keys=KEYS,
                values=VALUES,
                score=score,
                weights={k: g for k, g in weights.items() if k != name},
            )


def test_from_the_input() -> None:
    """Input, projections, attention, concatenation and output projection, one after another."""
    draw, words = np.random.default_rng(5), ("I", "am", "full")
    c = Calculation()
    for name, shape in (
        ("E", (3, 4)),
        ("P", (3, 4)),
        ("Wq", (4, 2)),
        ("bq", (1, 2)),
        ("Wo", (4, 4)),
    ):
        c.give(name, Grid(values=draw.normal(size=shape), rows=words if name in "EP" else ()))
    c.step("input", "X", "add", "E", "P")
    for name in "QKV":
        c.step(name, name, "projection", "X", "Wq", "bq")
    one = attend(c, query="Q", suffix="_0")
    two = attend(c, query="Q", suffix="_1")
    c.step("concatenated", "concatenated", "concatenate", one, two)
    c.step("output", "output", "projection", "concatenated", "Wo")
    walk = c.finish("whole")
    assert walk.grids["output"].values.shape == (3, 4)
    assert walk.grids["output"].rows == words
    assert np.array_equal(walk.grids["context_0"].values, walk.grids["context_1"].values)
    assert largest_error(walk) == 0


@pytest.mark.parametrize("name", ["scores", "weights", "alignment", "context"])
def test_a_planted_error_is_found(name: str) -> None:
    """A changed cell of any computed grid shows when all is computed again."""
    walk = by_hand()
    assert largest_error(walk) == 0
    values = walk.grids[name].values.copy()
    values[-1, -1] += 0.25
    changed = replace(walk, grids={**walk.grids, name: replace(walk.grids[name], values=values)})
    assert largest_error(changed) >= 0.2


def test_refused() -> None:
    """Two grids of a name, none, numbers that are none, shapes that clash, keys all masked."""
    c = Calculation()
    c.give("q", DECODER)
    for name, values, line in (
        ("q", np.ones((1, 1)), "there are two grids q"),
        ("K", np.ones((0, 3)), r"K is empty: its shape is \(0, 3\)"),
        ("K", np.array([[1.0, np.nan]]), "K must hold finite numbers: row 0, column 1 is nan"),
        ("K", np.array([[1.0], [np.inf]]), "K must hold finite numbers: row 1, column 0 is inf"),
    ):
        with pytest.raises(RecordError, match=line):
            c.give(name, Grid(values=values))
    with pytest.raises(RecordError, match="there are two grids q"):
        c.step("query", "q", "relu", "q")
    wide = Grid(values=np.ones((4, 9)))
    with pytest.raises(RecordError, match=r"do not fit together: Q \(3, 5\), K \(4, 9\)"):
        attention_walk(title="wide", query=QUERIES, keys=wide, values=wide)
    with pytest.raises(RecordError, match="all keys are masked: the query of row 2 "):
        attention_walk(
            title="masked",
            query=QUERIES,
            keys=KEYS,
            values=VALUES,
            mask=Grid(values=np.array([[1.0] * 4, [1] * 4, [0] * 4])),
        )
