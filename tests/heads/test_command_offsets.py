"""``--max-offset``: fixed offsets measured as far as is asked."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

pytestmark = pytest.mark.usefixtures("here", "few_seeds")

TEXT = "the animal didn't cross the street because it was too tired ."


def test_farther_offsets_are_measured(typed: Callable[..., Result]) -> None:
    """As far as is asked, in tables and roles; what was measured before stays as it is."""
    plain = json.loads(typed("compare-heads", TEXT, "--toy", "--json").output)
    far = json.loads(typed("compare-heads", TEXT, "--toy", "--json", "--max-offset", "12").output)
    names, names_far = ([one["name"] for one in found["measures"]] for found in (plain, far))
    assert [name for name in names_far if name in names] == names
    assert {name.partition("_")[2] for name in set(names_far) - set(names)} == {
        f"{sign}{n}" for sign in "+-" for n in range(9, 13)
    }
    result = typed(
        "compare-heads",
        TEXT,
        "--toy",
        "--max-offset",
        "12",
        "-o",
        "heads.csv",
        "--sort",
        "offset_-11",
    )
    assert result.status == 0
    assert "weight at offset -11" in result.output
    with Path("heads.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    weights = [float(row["offset_-11"]) for row in rows]
    assert len(weights) == 18
    assert 0 < max(weights) <= 1


def test_a_page_of_far_offsets_is_no_longer_than_it_must_be(typed: Callable[..., Result]) -> None:
    """The near offsets and the strongest of the others, and how many are left out."""
    found = typed(
        "head", "1.2", f"{TEXT} {TEXT}", "--toy", "--max-offset", "12", "-o", "head.png", "--full"
    ).output
    shown = [
        line.split()[0]
        for line in found.splitlines()
        if line.lstrip()[:2] in {f"{s}{n}" for s in "+-" for n in range(1, 9)}
    ]
    assert {f"{n:+d}" for n in range(-8, 9) if n} <= set(shown)
    assert "other offsets not shown, with at most 0." in found
    assert Path("head.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sort", "offset_-11"], "there is no measure 'offset_-11': did you mean offset_-1?"),
        (["--role", "offset_-11"], "there is no role 'offset_-11'"),
        (["--max-offset", "0"], "'--max-offset'"),
        (["--max-offset", "129"], "'--max-offset'"),
    ],
)
def test_offsets_that_are_not_measured_are_refused(
    arguments: list[str], said: str, typed: Callable[..., Result]
) -> None:
    """Before a model is loaded."""
    result = typed("compare-heads", TEXT, "--toy", *arguments)
    assert result.status == 2
    assert said in result.errors


def test_a_role_far_away_can_be_asked_for(typed: Callable[..., Result]) -> None:
    """In whatever order the options are typed."""
    result = typed(
        "compare-heads", TEXT, "--toy", "--role", "offset_-9", "--max-offset", "12", "-o", "x.csv"
    )
    assert (result.status, "no head has such a role here" in result.output) == (0, True)


def test_an_offset_that_few_rows_see_is_no_role(typed: Callable[..., Result]) -> None:
    """The last token of a sentence of twelve looks eleven back or does not: no head is for that."""
    result = typed("compare-heads", TEXT, "--toy", "--max-offset", "12", "-o", "x.json")
    assert "11 back" not in result.output
    found = json.loads(Path("x.json").read_text())
    at = [one["name"] for one in found["measures"]].index("peak_-11")
    assert max(head[at] for layer in found["estimates"]["value"] for head in layer) == 1


def test_parts_with_other_offsets_are_not_put_together(typed: Callable[..., Result]) -> None:
    """It is said what differs."""
    typed("compare-heads", TEXT, "--toy", "-o", "near.stats")
    typed("compare-heads", TEXT, "--toy", "-o", "far.stats", "--max-offset", "12")
    result = typed("merge", "near.stats", "far.stats", "-o", "both.stats")
    assert result.status == 1
    assert "fixed offsets: up to 8 and up to 12" in result.errors
    result = typed("compare-heads", "--load", "near.stats", "--against", "far.stats")
    assert (
        result.status,
        "fixed offsets: toy was measured with up to 8, toy with up to 12" in result.errors,
    ) == (
        1,
        True,
    )
    result = typed(
        "compare-heads", TEXT, "--toy", "--specials", "exclude", "--against", "far.stats"
    )
    line = "far.stats was measured otherwise: special tokens: keep, not exclude; fixed offsets: up to 12, not up to 8"
    assert (result.status, result.errors) == (1, f"attnviz: {line}\n")
    assert json.loads(typed("compare-heads", "--load", "far.stats", "--json").output)["measures"]
