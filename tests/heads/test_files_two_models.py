"""Surveys of two models as ``.stats`` files: what is read is what was written, and nothing else is read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from attnviz.capture.source import open_source
from attnviz.errors import FileFormatError, OutputError
from attnviz.heads import files as both
from attnviz.heads import files as surveys
from attnviz.heads.files import PairStats, Stats, SurveyRun
from attnviz.heads.settings import SurveySettings
from attnviz.models.language.splits import corpus_lines
from attnviz.storage import encoding
from tests.heads.surveys import survey_pair
from tests.heads.test_files import same

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def stats() -> PairStats:
    """Of sentences with coreference, the controls taken."""
    source = open_source("toy-random", sizes={"seed": 1})
    found = survey_pair(
        corpus_lines(8), source, open_source("toy-random"), SurveySettings(controls=4)
    )
    run = Stats(
        survey=found.before, corpora=("하나.txt",), n_lines=512, run=SurveyRun(against="toy-random")
    )
    assert found.divergences is not None
    return PairStats(before=run, after=found.after, divergences=found.divergences)


def test_what_is_read_is_what_was_written(stats: PairStats, tmp_path: Path) -> None:
    """Every number of both models and of what is between them, to the last bit."""
    path = both.save_stats(stats, tmp_path / "a.stats")
    found = both.load_pair(path)
    assert same(found, stats)
    assert not same(found, replace(stats, after=stats.before.survey)), (
        "this would not see a difference"
    )
    assert both.save_stats(found, tmp_path / "b.stats").read_bytes() == path.read_bytes()
    with pytest.raises(OutputError, match=r"saved as \.stats, not '\.npz'"):
        both.save_stats(stats, tmp_path / "a.npz")


def test_one_model_is_not_two(stats: PairStats, tmp_path: Path) -> None:
    """Each file is refused where the other is looked for, and it is said which it is."""
    one, two = (
        surveys.save_stats(stats.before, tmp_path / "one.stats"),
        both.save_stats(stats, tmp_path / "two.stats"),
    )
    with pytest.raises(
        FileFormatError, match=r"one\.stats holds a run of one model, not of two models$"
    ):
        both.load_pair(one)
    with pytest.raises(
        FileFormatError, match=r"two\.stats holds a run of two models, not of one model$"
    ):
        surveys.load_stats(two)


@pytest.mark.parametrize("wrong", ["fewer heads", "fewer sentences", "other divergences"])
def test_parts_that_do_not_fit_together_are_refused(
    stats: PairStats, tmp_path: Path, wrong: str
) -> None:
    """As the file is read, not where they are used."""
    heads, apart = stats.after.heads, stats.divergences
    changed = {
        "fewer heads": replace(
            stats, after=replace(stats.after, heads=replace(heads, sums=heads.sums[:, :, :1]))
        ),
        "fewer sentences": replace(
            stats, after=replace(stats.after, heads=replace(heads, n_sentences=7))
        ),
        "other divergences": replace(stats, divergences=replace(apart, sums=apart.sums[:, :1])),
    }[wrong]
    with pytest.raises(FileFormatError, match=r"holds no stats of attnviz's, or is not whole$"):
        both.load_pair(both.save_stats(changed, tmp_path / "a.stats"))


def test_another_version_is_refused(stats: PairStats, tmp_path: Path) -> None:
    """And so is a file that is not there."""
    from safetensors import safe_open
    from safetensors.numpy import load_file
    from safetensors.numpy import save as serialised

    path = both.save_stats(stats, tmp_path / "a.stats")
    with safe_open(path, framework="numpy") as file:
        described = json.loads(file.metadata()["attnviz"])
    described["version"] = encoding.VERSION + 1
    path.write_bytes(serialised(load_file(path), {"attnviz": json.dumps(described)}))
    with pytest.raises(FileFormatError, match="written by another version of attnviz"):
        both.load_pair(path)
    with pytest.raises(FileFormatError, match="cannot be read: No such file"):
        both.load_pair(tmp_path / "missing.stats")
