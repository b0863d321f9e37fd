"""Heads compared from Python: the same as on the command line, with progress, checkpoints, tables and pictures."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from attnviz.heads.export import to_csv, to_json

import attnviz
from attnviz.errors import InputError, RecordError, SelectionError
from attnviz.heads.capture import survey as capture
from attnviz.heads.files import load_stats
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


def test_progress_and_checkpoint(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told from the start and after each window; what broke off is gone on with, to the same numbers."""
    monkeypatch.setattr(capture, "WINDOW", 8)
    told: list[CorpusProgress] = []

    def stop(progress: CorpusProgress) -> None:
        told.append(progress)
        if progress.n_sentences == 16:
            raise KeyboardInterrupt

    checkpoint = corpus.with_name("c.stats")
    with pytest.raises(KeyboardInterrupt):
        attnviz.compare_heads(
            corpus, model="toy", settings=FEW, checkpoint=checkpoint, progress=stop
        )
    assert [one.n_sentences for one in told] == [0, 8, 16]
    assert [one.shape for one in told] == [None, (3, 6), (3, 6)]
    assert told[0].n_bytes == corpus.stat().st_size
    assert load_stats(checkpoint).n_lines == 8
    told.clear()
    resumed = attnviz.compare_heads(
        corpus, model="toy", settings=FEW, checkpoint=checkpoint, progress=told.append
    )
    assert [one.n_sentences for one in told] == [8, 16, 24, 24, 24]
    assert [one.stage for one in told[2:]] == ["sentences", "controls", "roles"]
    assert to_json(resumed) == to_json(attnviz.compare_heads(corpus, model="toy", settings=FEW))
    with pytest.raises(RecordError, match="controls is 7, was 6"):
        attnviz.compare_heads(
            corpus, model="toy", settings=SurveySettings(controls=7), checkpoint=checkpoint
        )


def test_a_frame(comparison: HeadComparison) -> None:
    """A row a head with the columns of the CSV file, and its numbers."""
    frame = comparison.to_frame(full=True)
    assert list(frame.columns) == to_csv(comparison).splitlines()[0].split(",")
    assert len(frame) == len(comparison.heads) == 18
    for row, head in zip(frame.itertuples(), comparison.heads, strict=True):
        assert (row.layer, row.head) == (head.layer, head.head)
        assert row.words == head.words
        assert row.previous == comparison.estimate("previous", head.layer, head.head)[0]
    assert np.isfinite(frame["entropy"]).all()


def test_a_short_frame(comparison: HeadComparison) -> None:
    """By default the frame is narrow enough to read: the role of each head and its score."""
    frame, full = comparison.to_frame(), comparison.to_frame(full=True)
    assert list(frame.columns) == [
        "layer",
        "head",
        "role",
        "words",
        "established",
        "reason",
        "score",
        "cluster",
    ]
    assert frame.equals(full[frame.columns])


def test_what_it_shows_of_itself(comparison: HeadComparison) -> None:
    """A line, a picture in a notebook, a figure of all heads and of one."""
    n_sure = sum(any(role.established for role in head.roles) for head in comparison.heads)
    from matplotlib.figure import Figure

    text = f"<HeadComparison of 'toy' (encoder): 3 x 6 heads, 8 sentences; {n_sure} heads with an established role>"
    assert repr(comparison) == text
    assert comparison._repr_png_().startswith(b"\x89PNG")
    assert comparison._repr_html_().startswith("<iframe sandbox=")
    assert isinstance(comparison.figure(), Figure)
    assert isinstance(comparison.figure(head=(1, -1)), Figure)
    with pytest.raises(SelectionError, match="there is no head 6"):
        comparison.figure(head="0.6")


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


def test_no_text_among_the_sentences() -> None:
    """Something else in the list is refused in one line."""
    with pytest.raises(InputError, match="the text must be a string, not NoneType"):
        attnviz.compare_heads([None], model="toy")  # type: ignore[list-item]  # no text


def test_a_comparison_is_pickled(tmp_path: Path) -> None:
    """An unpickled comparison writes the same files, `.stats` too; its measures are those of the table."""
    comparison = attnviz.compare_heads(["I love all you", "you love"], model="toy")
    copied = pickle.loads(pickle.dumps(comparison))
    pairs = zip(copied.measures, comparison.measures, strict=True)
    assert all(one == other for one, other in pairs if one.offset is None)
    for ending in (".csv", ".json", ".stats", ".png"):
        paths = comparison.save(tmp_path / f"a{ending}"), copied.save(tmp_path / f"b{ending}")
        assert paths[0].read_bytes() == paths[1].read_bytes()
