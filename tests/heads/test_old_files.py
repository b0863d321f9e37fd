"""Files of heads that attnviz wrote before it was rebuilt (commit 64cde0e): shown, merged and gone on with."""

from __future__ import annotations

import json
import lzma
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.heads import files, tally
from attnviz.heads.api import compare_heads, compare_models
from attnviz.heads.capture import survey as capture
from attnviz.heads.files import SurveyRun
from attnviz.heads.measures import MEASURES
from attnviz.heads.settings import SurveySettings
from attnviz.heads.tables import to_json
from attnviz.settings import ModelSettings

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

OLD = Path(__file__).parent / "old_files"
TINY = (
    "-m",
    "toy-random",
    "--seed",
    "3",
    "--d-model",
    "4",
    "--n-heads",
    "2",
    "--n-layers",
    "1",
    "--max-offset",
    "1",
    "--controls",
    "200",
)
PAIR = (
    "-m",
    "toy-random",
    "--seed",
    "3",
    "--max-offset",
    "1",
    "--controls",
    "2",
    "--against",
    "toy-random",
)


TINY_MODEL = ModelSettings(model="toy-random", seed=3, d_model=4, n_heads=2, n_layers=1)
TINY_SETTINGS = SurveySettings(max_offset=1, controls=200)
THEN = tuple(one for one in MEASURES if getattr(one, "name", "") != "meaning")
"""What was measured then: a run that goes on measures no more."""
JUDGED = {
    "low",
    "high",
    "established",
    "reason",
    "proof",
    "typical",
    "controls",
    "untrained",
    "relations",
    "role_established",
    "beyond_nearest",
    "narrow",
}
"""What is judged otherwise today: intervals by another method, and random weights of several seeds."""


def measured(shown: Any) -> Any:
    """What was measured, without what is made of it today; to 12 digits, as sums in another order are."""
    if isinstance(shown, float):
        return float(f"{shown:.12g}")
    if isinstance(shown, dict):
        return {name: measured(value) for name, value in shown.items() if name not in JUDGED}
    return [measured(one) for one in shown] if isinstance(shown, list) else shown


@pytest.fixture
def old(here: Path) -> Path:
    """The files as they were, and the corpus that they are of."""
    for path in OLD.glob("*.xz"):
        (here / path.stem).write_bytes(lzma.decompress(path.read_bytes()))
    shutil.copy(OLD / "corpus.txt", here)
    (here / "four.txt").write_text(
        "\n".join((here / "corpus.txt").read_text().splitlines()[:4]) + "\n"
    )
    return here


@pytest.mark.usefixtures("old")
def test_shown_as_it_was(typed: Callable[..., Result]) -> None:
    """Every number of what was measured, to the last bit; it is not merged with itself."""
    shown = typed("compare-heads", "--load", "corpus.stats", "--json")
    assert shown.status == 0
    now, then = json.loads(shown.output), json.loads((OLD / "corpus.json").read_text())
    then["similarity"] = then.pop("likeness")  # as it is called today
    assert measured(now) == measured(then)
    for name in ("shuffled", "chance"):
        assert now["controls"][name]["value"] == then["controls"][name]["value"]
    merged = typed("merge", "corpus.stats", "corpus.stats", "-o", "merged.stats")
    assert merged.status == 1
    assert (
        "corpus.stats has the very sentences of corpus.stats: no part is counted twice"
        in merged.errors
    )


@pytest.mark.usefixtures("old")
def test_how_it_was_measured_is_typed() -> None:
    """What an old file has as words is read as the settings of today, once, where the file is read."""
    run = files.load_stats("corpus.stats").run
    assert run == SurveyRun(
        model=ModelSettings(model="toy-random", seed=3, d_model=4, n_heads=2, n_layers=1),
        settings=SurveySettings(max_offset=1, controls=200),
    )
    stats = files.load_pair("two.stats")
    assert stats.before.n_lines == 2
    assert stats.before.run.against == "toy-random"
    assert stats.before.run.settings.controls == 2


@pytest.mark.usefixtures("old")
def test_a_checkpoint_is_gone_on_with(
    typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken off after four lines by the old commit: measured to the last digit as by a run of now, left alone."""
    monkeypatch.setattr(capture, "WINDOW", 4)
    assert files.load_stats("checkpoint.stats").n_lines == 4
    command = ["compare-heads", *TINY, "--corpus", "corpus.txt", "--json"]
    resumed = typed(*command, "--checkpoint", "checkpoint.stats")
    assert (resumed.status, resumed.errors) == (0, "")
    anew = compare_heads(
        Path("corpus.txt"), model=TINY_MODEL, settings=TINY_SETTINGS, measures=THEN
    )
    assert measured(json.loads(resumed.output)) == measured(json.loads(to_json(anew)))
    assert files.load_stats("checkpoint.stats").n_lines is None


@pytest.mark.usefixtures("old")
def test_a_checkpoint_of_two_models(
    typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Likewise of two models; of another run it is refused, and what differs is named."""
    monkeypatch.setattr(capture, "WINDOW", 2)
    command = ["compare-heads", *PAIR, "--corpus", "four.txt", "--json"]
    other = typed(*command, "--checkpoint", "two.stats", "--truncate")
    assert other.status == 1
    assert "truncate is True, was False" in other.errors
    resumed = typed(*command, "--checkpoint", "two.stats")
    assert (resumed.status, resumed.errors) == (0, "")
    before, after = (ModelSettings(model="toy-random", seed=seed) for seed in (3, None))
    settings = SurveySettings(max_offset=1, controls=2)
    anew = compare_models(before, after, Path("four.txt"), settings=settings, measures=THEN)
    assert measured(json.loads(resumed.output)) == measured(json.loads(to_json(anew)))


def test_replicates_are_read_as_groups_that_differ_as_much() -> None:
    """Of 200 sentences the interval of 400 bootstrap replicates and that of the groups made of them are about alike."""
    rng = np.random.default_rng(4)
    sums, counts = (
        rng.gamma(2.0, 1.0, size=(200, 50)),
        rng.integers(5, 20, size=(200, 50)).astype(float),
    )
    often = np.concatenate([np.ones((1, 200)), rng.poisson(1.0, size=(400, 200))])
    then = tally.Tally(sums=often @ sums, counts=often @ counts, n_sentences=200)
    low, high = np.quantile(then.sums[1:] / then.counts[1:], (0.025, 0.975), axis=0)
    now = then.regroup().estimate()
    assert np.array_equal(now.value, then.sums[0] / then.counts[0])
    assert np.mean((now.high - now.low) / (high - low)) == pytest.approx(1.0, abs=0.1)
