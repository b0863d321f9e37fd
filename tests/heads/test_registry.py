"""A measure is one entry: one written here is measured, controlled, shown everywhere, and names heads for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import attnviz
from attnviz.capture.observers import WeightCollector
from attnviz.capture.source import open_source
from attnviz.heads.api import compare_heads
from attnviz.heads.files import to_csv
from attnviz.heads.measures import MEASURES, Measure, RoleRule
from attnviz.heads.settings import SurveySettings
from tests.fixtures.command_line import sentences

if TYPE_CHECKING:
    from pathlib import Path

    from attnviz.heads.record import HeadComparison

SECOND = Measure(
    name="second",
    label="2nd",
    unit="share",
    meaning="weight on the second token",
    takes="keys",
    compute=lambda rows: rows.on(rows.marks.first.roll(1, dims=1)),
    role=RoleRule(
        name="second",
        words="rests on the second token",
        threshold=0.01,
        short="2nd token",
    ),
)
SQUARES = Measure(
    name="squares",
    label="sq",
    unit="share",
    meaning="sum of the squared weights of a row",
    takes="rows",
    compute=lambda rows: rows.total(rows.weights.square().sum(dim=-1)),
)


@pytest.fixture(scope="module")
def comparison() -> HeadComparison:
    """The home-built encoder on a few sentences, with two measures more."""
    return compare_heads(
        sentences(12),
        model="toy",
        settings=SurveySettings(controls=12),
        measures=(*MEASURES, SECOND, SQUARES),
    )


def test_it_is_measured(comparison: HeadComparison) -> None:
    """As its formula has it, on every row that sees two keys: straight from the weights, in double precision."""
    source = open_source("toy")
    seconds, squares = [], []
    for text in sentences(12):
        keep = WeightCollector()
        source.stream(source.encode([text]), [keep])
        weights = keep.weights(0).astype(np.float64)
        seconds.append(weights[..., 1])
        squares.append(np.square(weights).sum(axis=-1))
    for name, rows in (("second", seconds), ("squares", squares)):
        expected = np.concatenate(rows, axis=-1).mean(axis=-1)
        found = comparison.estimates.value[:, :, comparison.names.index(name)]
        assert np.allclose(found, expected, atol=1e-6), name


def test_it_names_heads(comparison: HeadComparison) -> None:
    """With its words and its short name, in the legend of the picture."""
    roles = [role for head in comparison.heads for role in head.roles if role.name == "second"]
    assert roles
    assert {(role.rule.words, role.rule.short) for role in roles} == {
        ("rests on the second token", "2nd token")
    }
    assert {control.name for control in roles[0].controls if control.rules_out} == {
        "chance",
        "untrained",
        "offset",
    }


def test_a_file_keeps_it(comparison: HeadComparison, tmp_path: Path) -> None:
    """Read where nobody knows the entry, its numbers, its unit and its roles are there."""
    loaded = attnviz.load(comparison.save(tmp_path / "a.json"))
    assert loaded.estimate("second", 0, 0) == comparison.estimate("second", 0, 0)
    column = comparison.names.index("squares")
    assert loaded.measures[column].meaning == SQUARES.meaning
    assert loaded.measures[column].unit == SQUARES.unit
    assert to_csv(loaded) == to_csv(comparison)
    roles = [role.rule for head in loaded.heads for role in head.roles if role.name == "second"]
    assert roles
    assert set(roles) == {SECOND.role}
