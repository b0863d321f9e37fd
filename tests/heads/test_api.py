"""Heads compared from Python: the same as on the command line, with progress, tables and pictures."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import attnviz
from attnviz.errors import SelectionError, SettingsError
from attnviz.heads.capture import survey as capture
from attnviz.heads.files import to_csv, to_json
from attnviz.heads.settings import SurveySettings
from tests.fixtures.command_line import sentences

if TYPE_CHECKING:
    from attnviz.heads.api import CorpusProgress
    from attnviz.heads.record import HeadComparison

pytestmark = pytest.mark.usefixtures("few_seeds")

FEW = SurveySettings(controls=6)


@pytest.fixture(scope="module")
def comparison() -> HeadComparison:
    """The home-built encoder on a few sentences."""
    return attnviz.compare_heads(sentences(8), model="toy", settings=FEW)


def test_progress(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told from the start, after each window of lines, and before the controls and the roles."""
    monkeypatch.setattr(capture, "WINDOW", 8)
    told: list[CorpusProgress] = []
    attnviz.compare_heads(corpus, model="toy", settings=FEW, progress=told.append)
    assert [one.n_sentences for one in told] == [0, 8, 16, 24, 24, 24]
    assert [one.shape for one in told[:2]] == [None, (3, 6)]
    assert [one.stage for one in told[3:]] == ["sentences", "controls", "roles"]


def test_frames(comparison: HeadComparison) -> None:
    """The full frame is the CSV file; the short one has a row a head, with its role and its score."""
    full, short = comparison.to_frame(full=True), comparison.to_frame()
    assert list(full.columns) == to_csv(comparison).splitlines()[0].split(",")
    assert len(full) >= len(comparison.heads) * len(comparison.names)
    assert (full["measure"] == "previous").sum() == len(comparison.heads) == len(short) == 18
    assert list(short.columns) == [
        *("layer", "head", "role", "established", "reason", "words", "score")
    ]
    for row, head in zip(short.itertuples(), comparison.heads, strict=True):
        assert (row.layer, row.head, row.words) == (head.layer, head.head, str(head.words))
        if head.role is None:
            assert np.isnan(row.score)
        else:
            assert (row.role, row.score) == (head.role.name, head.role.score)
    entropy = full[full["measure"] == "entropy"].set_index(["layer", "head"])
    assert entropy.loc[(1, 2), "value"] == comparison.estimate("entropy", 1, 2)[0]


def test_what_it_shows_of_itself(comparison: HeadComparison) -> None:
    """A line; a figure of some heads, and a refusal of others."""
    text = "<HeadComparison of 'toy' (encoder): 3 x 6 heads, 8 sentences; "
    assert repr(comparison).startswith(text)
    assert comparison.figure([(1, -1), "0.2"]).axes
    with pytest.raises(SelectionError, match="there is no head 6"):
        comparison.figure(["0.6"])


def test_a_head_is_named_in_any_way(comparison: HeadComparison) -> None:
    """As two numbers, a pair or ``layer.head``, from the end too; what is none is refused."""
    head = comparison.head(2, 3)
    assert [
        comparison.head("2.3"),
        comparison["2.3"],
        comparison[2, 3],
        comparison[-1, -3],
        comparison[" -1.-3"],
    ] == [head] * 5
    assert comparison.estimate("previous", "2.3") == comparison.estimate("previous", 2, 3)
    for none in ("2", "2.x", "0-1.2", (1,)):
        with pytest.raises(SelectionError, match="is no head: give its layer and its number"):
            comparison.head(none)  # type: ignore[arg-type]
    with pytest.raises(SelectionError, match="there is no layer 9"):
        comparison.estimate("previous", "9.0")


def test_a_comparison_is_pickled(tmp_path: Path) -> None:
    """An unpickled comparison writes the same files; its measures are those of the table."""
    comparison = attnviz.compare_heads(["I love all you", "you love"], model="toy")
    copied = pickle.loads(pickle.dumps(comparison))
    assert copied.measures == comparison.measures
    for ending in (".csv", ".json", ".png"):
        paths = comparison.save(tmp_path / f"a{ending}"), copied.save(tmp_path / f"b{ending}")
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_saved_comparison_is_shown_as_it_was_measured(
    comparison: HeadComparison, tmp_path: Path
) -> None:
    """Its file is read in place of sentences; nothing that would change it can be given beside it."""
    path = comparison.save(tmp_path / "a.json")
    assert to_json(attnviz.compare_heads(path)) == to_json(comparison)
    changes: list[dict[str, Any]] = [{"model": "toy"}, {"settings": FEW}, {"against": "toy"}]
    for change in changes:
        with pytest.raises(SettingsError, match="as it was measured: omit"):
            attnviz.compare_heads(path, **change)
