"""Files that attnviz wrote before it was rebuilt still load, draw what they drew then, and are written the same again.

`old_files` holds what version 0.1.0 wrote at its commit 64cde0e, and beside some of it what it printed of it.
"""

from __future__ import annotations

import json
import lzma
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnviz.heads.changes.compare import changes
from attnviz.heads.files import load_pair, load_stats, save_stats
from attnviz.results import load_record, save
from attnviz.walkthroughs.files import load as load_walkthrough
from attnviz.walkthroughs.files import to_json
from attnviz.walkthroughs.pages.markdown import markdown
from attnviz.walkthroughs.verify.saved import digest
from tests.heads.test_files import same

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

OLD = Path(__file__).parent / "old_files"


def unpacked(name: str, folder: Path) -> Path:
    """A file that lies compressed among the old ones, in a folder as it was."""
    path = folder / name
    path.write_bytes(lzma.decompress((OLD / f"{name}.xz").read_bytes()))
    return path


def printed(name: str) -> str:
    """What the old command printed of a file."""
    return (OLD / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("suffix", [".json", ".npz", ".safetensors"])
def test_a_record(typed: Callable[..., Result], here: Path, suffix: str) -> None:
    """All three formats hold the same record, verified; its rows are drawn as they were."""
    old = OLD / f"record{suffix}"
    record = load_record(old)
    assert record == load_record(OLD / "record.json")
    assert record.receipt is not None
    again = save(record, here / old.name)
    assert load_record(again) == record
    if suffix != ".npz":  # a zip archive holds the hour
        assert again.read_bytes() == old.read_bytes()
    drawn = typed("heatmap", "--load", str(again), "--layer", "0", "--head", "1", "-o", "a.png")
    assert drawn.status == 0
    assert [
        line for line in drawn.output.splitlines() if line[:2] in {"0 ", "1 ", "2 "}
    ] == printed("record.txt").splitlines()[5:8]
    assert (here / "a.png").stat().st_size > 1000


@pytest.mark.parametrize("name", ["walkthrough", "example"])
def test_a_walkthrough(typed: Callable[..., Result], here: Path, name: str) -> None:
    """Every number is there, is verified as it was, and is written the same again, with the names of today."""
    shutil.copy(OLD / f"{name}.json", here)
    walk = load_walkthrough(f"{name}.json")
    old = printed(f"{name}.json")
    again = old.replace('"operation": "map"', '"operation": "projection"')
    if walk.receipt is not None:
        again = again.replace(json.loads(old)["digest"], digest(json.loads(again)))
    assert to_json(walk) + "\n" == again
    assert f"{walk.grids['context'].values[0, 0]:.2f}" in markdown(walk)
    assert typed("verify", f"{name}.json").output == printed(f"{name}.txt")


def test_a_survey_of_one_model(typed: Callable[..., Result], here: Path) -> None:
    """A treebank with relations and coreference: the numbers of then; not merged with itself, but compared with it."""
    old = unpacked("one.stats", here)
    stats = load_stats(old)
    again = save_stats(stats, here / "again.stats")
    assert same(load_stats(again), stats)
    assert (
        save_stats(load_stats(again), here / "once_more.stats").read_bytes() == again.read_bytes()
    )
    shown = typed("compare-heads", "--load", "one.stats", "--table", "-o", "a.csv")
    assert shown.status == 0
    then = next(line for line in printed("one.txt").splitlines() if line.startswith("0.1"))
    now = next(line for line in shown.output.splitlines() if line.startswith("0.1"))
    # intervals are other ones today
    score, of_today = (re.sub(r"\d\.\d\d\u2013\d\.\d\d", "", line) for line in (then, now))
    assert re.findall(r"\d\.\d\d", of_today) == re.findall(r"\d\.\d\d", score)
    assert shown.output.splitlines()[-1] == printed("one.txt").splitlines()[-1]
    merged = typed("merge", "one.stats", "again.stats", "-o", "both.stats")
    assert (merged.status, "no part is counted twice" in merged.errors) == (1, True)
    assert (
        typed(
            "compare-heads", "--load", "one.stats", "--against", "again.stats", "-o", "b.csv"
        ).status
        == 0
    )


def test_a_survey_of_two_models(here: Path) -> None:
    """What a run of two models goes on from; the change of a head is the one that was found."""
    old = unpacked("two.stats", here)
    stats = load_pair(old)
    assert same(load_pair(save_stats(stats, here / "again.stats")), stats)
    found = changes(
        stats.before.survey, stats.after, stats.divergences, corpus="; ".join(stats.before.corpora)
    )
    head = found.heads[0]
    assert (head.before.layer, head.before.head) == (0, 0)
    assert head.pattern == pytest.approx(0.19728619481126466, rel=1e-12)
    # Of two sentences the interval of then, percentiles of replicates, was from 0.19 to 0.20: far too narrow.
    assert head.low < 0.19051022827625275 < head.pattern < 0.2040621613462766 < head.high
