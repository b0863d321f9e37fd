"""Comparisons as files: JSON is read as it was written and nothing else is read, CSV has every number."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
from dataclasses import replace
from io import BytesIO, StringIO
from typing import TYPE_CHECKING, Any

import pytest

import attnviz
from attnviz.errors import FileFormatError
from attnviz.heads import figure
from attnviz.heads.files import load, to_csv, to_json
from attnviz.heads.html import page
from attnviz.heads.record import HeadComparison
from attnviz.heads.terminal import draw_heads, draw_overview, draw_table
from attnviz.heads.words import reason
from attnviz.look import Look
from attnviz.render.terminal.screen import Screen
from attnviz.text.messages import language
from tests.heads.comparisons_by_hand import KOREAN, NAMES, compared, made

if TYPE_CHECKING:
    from pathlib import Path

LARGE = made(3, 7, all_roles=True, weights="0" * 64)


def views(comparison: HeadComparison) -> list[object]:
    """Everything that is shown of a comparison."""
    screen = Screen(width=100)
    shown: list[object] = [to_csv(comparison), *draw_table(comparison, screen)]
    with language("ko"):
        shown += [
            *draw_overview(comparison, screen),
            *draw_heads(comparison, [(0, 0), (0, 1)], screen),
            page(comparison, Look(theme="light")).html,
        ]
        drawn = BytesIO()
        figure.draw(comparison, Look()).write(drawn, ".svg")
    return [*shown, drawn.getvalue()]


@pytest.mark.parametrize("comparison", [LARGE, compared(made(relations=()))])
def test_what_is_read_is_what_was_written(comparison: HeadComparison, tmp_path: Path) -> None:
    """Every view shows the same, NaN and the Korean names of roles included."""
    path = comparison.save(tmp_path / "a.json")
    loaded = attnviz.load(path)
    assert views(loaded) == views(comparison)
    assert loaded.save(tmp_path / "b.json").read_bytes() == path.read_bytes()
    assert loaded.weights == comparison.weights
    assert views(replace(loaded, n_tokens=7)) != views(comparison), "a difference is not seen"


def test_it_is_json(tmp_path: Path) -> None:
    """Under the names of its fields, in standard JSON: a number that is missing is null."""

    def refuse(constant: str) -> float:
        pytest.fail(f"{constant} is not JSON")

    comparison = made()
    found = json.loads(to_json(comparison), parse_constant=refuse)
    assert found["format"] == "attnviz-comparison"
    assert [measure["name"] for measure in found["measures"]] == list(NAMES)
    assert found["estimates"]["value"][0][0][NAMES.index("same_word")] is None
    assert found["heads"][0]["roles"][0]["rule"]["name"] == "previous"
    assert found["notes"] == [{"code": "sentences_cut", "fields": [["n", 3]]}]
    assert found["examples"]["0.0"]["previous"][0] == {
        "text": f"{KOREAN} 0.0",
        "score": 0.75,
        "links": [],
    }


def signed(content: dict[str, Any]) -> str:
    """Return a file with the digest of its content: SHA-256 of the JSON with sorted keys."""
    text = json.dumps(content, sort_keys=True)
    return json.dumps({**content, "digest": hashlib.sha256(text.encode()).hexdigest()})


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["estimates"], None),
        (["estimates", "value"], [[[0.5]]]),
        (["controls", "chance"], {"value": [], "low": [], "high": []}),
        (["kind"], "sideways"),
        (["bad"], [["3", "too long"]]),
        (["measures"], [{"name": "self", "unit": "share", "meaning": ""}]),
        (["heads"], []),
        (["heads", 0, "layer"], 1),
        (["relations", 0, "role"], None),
        (["examples"], {"0.0": ["a sentence"]}),
        (["typical"], {"0.0": {"previous": {"text": "a sentence", "score": "high"}}}),
        (["against"], {"model": "before"}),
    ],
)
def test_what_does_not_fit_together_is_refused(
    tmp_path: Path, place: list[Any], value: object
) -> None:
    """A file with wrong types, with its digest, is refused as it is read, and not where it is used."""
    path = tmp_path / "a.json"
    content = json.loads(to_json(made()))
    del content["digest"]
    path.write_text(signed(content), encoding="utf-8")
    load(path)
    *way, last = place
    part = content
    for step in way:
        part = part[step]
    part[last] = value
    path.write_text(signed(content), encoding="utf-8")
    with pytest.raises(FileFormatError, match=r"a\.json.* it is damaged, or was not written by"):
        load(path)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.stats", "", "it was made by an earlier version of attnviz: make it again, as .json"),
        ("a.json", to_json(made()).replace("98765", "98766"), "it was changed after attnviz wrote"),
        ("a.json", to_json(made())[:-9], "it is not JSON"),
        ("a.json", "[1]", "it must hold a JSON object"),
        ("a.json", signed({"format": "attnviz-walkthrough"}), "it holds no comparison of heads"),
        (
            "a.json",
            signed({"format": "attnviz-comparison"}),
            "it was made by another version of attnviz: make it again",
        ),
    ],
)
def test_other_files_are_refused(tmp_path: Path, name: str, content: str, words: str) -> None:
    """In one line that says what is wrong; of a pipe nobody waits for a writer."""
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(FileFormatError, match=words) as refusal:
        load(tmp_path / name)
    assert "\n" not in str(refusal.value)
    os.mkfifo(tmp_path / "b.json")
    with pytest.raises(FileFormatError, match="it is not a regular file"):
        load(tmp_path / "b.json")


def test_csv_has_every_number() -> None:
    """A row a head and measure, then a row a relation that it finds, with its interval, role, and controls."""
    comparison = compared(made(3, 7, all_roles=True))
    rows = list(csv.DictReader(StringIO(to_csv(comparison))))
    assert len(rows[0]) <= 14
    by_place = {(row["layer"], row["head"], row["measure"]): row for row in rows}
    assert len(by_place) == len(rows)
    columns = {"chance": "chance", "random": "untrained", "offset": "offset"}
    for head in comparison.heads:
        roles = {role.measure: role for role in head.roles}
        for name in {*NAMES, *roles}:
            row = by_place.pop((str(head.layer), str(head.head), name))
            role = roles.get(name)
            if name in NAMES:
                numbers = comparison.estimate(name, *head.place)
                controls = [comparison.control(one, name, head) for one in columns.values()]
            else:
                assert role is not None
                numbers = role.score, role.low, role.high
                found = [role.control(one) for one in columns.values()]
                controls = [math.nan if one is None else one.value for one in found]
            for column, value in zip(
                ("value", "low", "high", *columns), (*numbers, *controls), strict=True
            ):
                assert row[column] == ("" if math.isnan(value) else str(value))
            assert row["role"] == ("" if role is None else role.name)
            assert row["established"] == ("" if role is None else str(role.established))
            assert row["reason"] == ("" if role is None else reason(role.doubt))
            assert head.change is not None
            assert float(row["divergence"]) == head.change.divergence
    assert not by_place
