"""Files of heads that attnviz wrote before it was rebuilt (commit 64cde0e): shown, merged and gone on with."""

from __future__ import annotations

import lzma
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnviz.heads import files
from attnviz.heads.capture import survey as capture
from attnviz.heads.files import SurveyRun
from attnviz.heads.settings import SurveySettings
from attnviz.settings import ModelSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

OLD = Path(__file__).parent / "old_files"
TINY = ("-m", "toy-random", "--seed", "3", "--d-model", "4", "--n-heads", "2", "--n-layers", "1", "--max-offset", "1")
PAIR = ("-m", "toy-random", "--seed", "3", "--max-offset", "1", "--controls", "2", "--against", "toy-random")


@pytest.fixture
def old(here: Path) -> Path:
    """The files as they were, and the corpus that they are of."""
    for path in OLD.glob("*.xz"):
        (here / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
    shutil.copy(OLD / "corpus.txt", here)
    (here / "four.txt").write_text("\n".join((here / "corpus.txt").read_text().splitlines()[:4]) + "\n")
    return here


@pytest.mark.usefixtures("old")
def test_shown_as_it_was(typed: Callable[..., Result]) -> None:
    """Every number of what was measured, to the last bit; it is not merged with itself."""
    shown = typed("compare-heads", "--load", "corpus.stats", "--json")
    assert (shown.status, shown.output) == (0, (OLD / "corpus.json").read_text())
    merged = typed("merge", "corpus.stats", "corpus.stats", "-o", "merged.stats")
    assert merged.status == 1
    assert "corpus.stats has the very sentences of corpus.stats: no part is counted twice" in merged.errors


@pytest.mark.usefixtures("old")
def test_how_it_was_measured_is_typed() -> None:
    """What an old file has as words is read as the settings of today, once, where the file is read."""
    run = files.load_stats("corpus.stats").run
    assert run == SurveyRun(
        model=ModelSettings(model="toy-random", seed=3, d_model=4, n_heads=2, n_layers=1),
        settings=SurveySettings(max_offset=1),
    )
    stats = files.load_pair("two.stats")
    assert stats.before.n_lines == 2
    assert stats.before.run.against == "toy-random"
    assert stats.before.run.settings.controls == 2


@pytest.mark.usefixtures("old")
def test_a_checkpoint_is_gone_on_with(typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken off after four lines by the old commit: the same numbers to the last digit as a run of now, left alone."""
    monkeypatch.setattr(capture, "WINDOW", 4)
    assert files.load_stats("checkpoint.stats").n_lines == 4
    command = ["compare-heads", *TINY, "--corpus", "corpus.txt", "--json"]
    resumed = typed(*command, "--checkpoint", "checkpoint.stats")
    assert (resumed.status, resumed.errors) == (0, "")
    assert resumed.output == typed(*command).output
    assert files.load_stats("checkpoint.stats").n_lines is None


@pytest.mark.usefixtures("old")
def test_a_checkpoint_of_two_models(typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise of two models; of another run it is refused, and what differs is named."""
    monkeypatch.setattr(capture, "WINDOW", 2)
    command = ["compare-heads", *PAIR, "--corpus", "four.txt", "--json"]
    other = typed(*command, "--checkpoint", "two.stats", "--truncate")
    assert other.status == 1
    assert "--truncate is True, was False" in other.errors
    resumed = typed(*command, "--checkpoint", "two.stats")
    assert (resumed.status, resumed.errors) == (0, "")
    assert resumed.output == typed(*command).output
