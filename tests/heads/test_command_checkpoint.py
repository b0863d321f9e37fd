"""``--checkpoint``: a run that was killed goes on, and ends with the same numbers to the last digit."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attnviz.heads import api
from attnviz.heads import files as surveys
from attnviz.heads.capture import survey as gathering
from tests.fixtures.command_line import sentences
from tests.heads.killed import goes_on_after_kill_9

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

pytestmark = pytest.mark.usefixtures("few_seeds")


@pytest.fixture
def corpus(here: Path) -> Path:
    """Forty sentences and some lines that are none."""
    path = here / "corpus.txt"
    lines = sentences(40)
    path.write_text("\n".join([*lines[:7], "\0", "qwxz", *lines[7:], "\0"]) + "\n")
    return path


def break_off(patch: pytest.MonkeyPatch, after: int) -> None:
    """Have a run end as by Ctrl-C once it has saved so many checkpoints."""
    save = surveys.save_stats
    n_saved = 0

    def broken(*given: object) -> None:
        nonlocal n_saved
        n_saved += 1
        save(*given)  # type: ignore[arg-type]
        if n_saved == after:
            raise KeyboardInterrupt

    patch.setattr(api, "save_stats", broken)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every ten lines."""
    monkeypatch.setattr(gathering, "WINDOW", 10)


def test_kill_9_in_the_middle(
    typed: Callable[..., Result], here: Path, environment: Callable[..., dict[str, str]]
) -> None:
    """Nothing is lost but what came after the checkpoint, and that is measured again."""
    (here / "c.txt").write_text("\n".join(sentences(300) * 4) + "\n")
    command = ["compare-heads", "-m", "toy-random", "--corpus", "c.txt", "--controls", "20"]
    goes_on_after_kill_9(
        command, typed, environment(), lambda path: surveys.load_stats(path).n_lines
    )


@pytest.mark.usefixtures("windows", "treebank")
@pytest.mark.parametrize(
    ("stops", "arguments"),
    [
        ((1, 4), ["--toy", "--corpus", "corpus.txt"]),
        ((3,), ["--toy", "--conllu", "treebank.conllu"]),
        ((3,), ["-m", "toy-transformer", "--corpus", "corpus.txt"]),
        ((3,), ["-m", "toy-random", "--against", "toy-random", "--corpus", "corpus.txt"]),
    ],
)
def test_broken_off_anywhere(
    typed: Callable[..., Result],
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    stops: tuple[int, ...],
    arguments: list[str],
) -> None:
    """After any window, with bad lines, a treebank, a model that translates: the same numbers to the last digit."""
    assert corpus.exists()
    command = ["compare-heads", *arguments, "--controls", "4", "-o", "-"]
    alone = typed(*command)
    for after in stops:
        going_on = [*command, "--checkpoint", f"{after}.stats"]
        with monkeypatch.context() as patch:
            break_off(patch, after)
            assert typed(*going_on).status == 130
        assert surveys.load_stats(going_on[-1]).n_lines == 10 * after
        resumed = typed(*going_on)
        assert (resumed.status, resumed.errors) == (0, "")
        assert resumed.output == alone.output


@pytest.mark.usefixtures("windows")
def test_another_run_is_refused(
    typed: Callable[..., Result], refused: Callable[..., tuple[int, str]], corpus: Path
) -> None:
    """The error names the difference; the checkpoint is unchanged."""
    command = ["compare-heads", "--corpus", corpus.name, "--checkpoint", "c.stats"]
    assert typed(*command, "-m", "toy-random:seed=1", "-o", "a.csv").status == 0
    for arguments, line in (
        (["--toy"], "model is toy, was toy-random:seed=1"),
        (["-m", "toy-random"], "model is toy-random, was toy-random:seed=1"),
        (["-m", "toy-random:seed=2"], "model is toy-random:seed=2, was toy-random:seed=1"),
        (["-m", "toy-random:seed=1", "--truncate"], "truncate is True, was False"),
        (
            ["-m", "toy-random:seed=1", "--against", "toy-random"],
            "against is toy-random, was not given",
        ),
        (["-m", "toy-random:seed=1", "--controls", "9"], "controls is 9, was 50"),
    ):
        status, said = refused(*command, *arguments)
        wanted = f"attnviz: c.stats is a checkpoint of another run: {line}; remove it to begin anew"
        assert (status, said) == (1, wanted)
    size = corpus.stat().st_size
    was = f"attnviz: c.stats is a checkpoint of another run: the corpus is another (it was corpus.txt, {size:,} bytes)"
    corpus.write_text(corpus.read_text() + "I love you\n")
    status, said = refused(*command, "-m", "toy-random:seed=1")
    assert (status, said.partition(";")[0]) == (1, was)
    assert typed(*command, "-m", "toy-random:seed=1", "--threshold", "broad=0.9").status == 1
    corpus.with_name("other.txt").write_text("You love me\nI am full\n")
    other = ["compare-heads", "--corpus", "other.txt", "-m", "toy-random:seed=1", "-o", "d.stats"]
    assert typed(*other).status == 0
    assert refused("merge", "c.stats", "c.stats", "-o", "m.stats")[0] == 1
    assert typed("merge", "c.stats", "d.stats", "-o", "m.stats").status == 0
    status, said = refused(*command[:-1], "m.stats", "-m", "toy-random:seed=1")
    assert status == 1
    assert "the corpus is another (it was corpus.txt; other.txt)" in said


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize("ended", [True, False])
def test_a_model_trained_on_is_another(
    typed: Callable[..., Result],
    corpus: Path,
    tiny_bert: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    ended: bool,
) -> None:
    """Of the same name and shape: its numbers are not put together with those before, nor given out for its own."""
    shutil.copytree(tiny_bert, "bert")
    command = [
        "compare-heads",
        "-m",
        "bert",
        "--corpus",
        corpus.name,
        "--checkpoint",
        "c.stats",
        "--truncate",
    ]
    with monkeypatch.context() as patched:
        if not ended:
            break_off(patched, 1)
        assert typed(*command, "-o", "a.json").status == (0 if ended else 130)
    assert (surveys.load_stats("c.stats").n_lines is None) == ended
    path = "bert/model.safetensors"
    weights = {name: one * np.float32(1.001) for name, one in load_file(path).items()}
    save_file(weights, path, {"format": "pt"})
    result = typed(*command, "-o", "b.json")
    line = "c.stats is a checkpoint of another run: here/bert had other weights; remove it to begin anew"
    assert (result.status, result.errors) == (1, f"attnviz: {line}\n")
    assert not Path("b.json").exists()


@pytest.mark.usefixtures("windows")
def test_a_checkpoint_is_no_result(
    typed: Callable[..., Result],
    refused: Callable[..., tuple[int, str]],
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A checkpoint is neither drawn nor merged as if it were complete, and half of its file is refused."""
    command = ["compare-heads", "--toy", "--corpus", corpus.name, "--checkpoint", "c.stats"]
    with monkeypatch.context() as patch:
        break_off(patch, 1)
        assert typed(*command).status == 130
    line = "attnviz: c.stats is a checkpoint of a run that did not finish: run it again to continue"
    assert refused("compare-heads", "--load", "c.stats") == (1, line)
    assert refused("head", "0.0", "--load", "c.stats") == (1, line)
    assert refused("merge", "c.stats", "-o", "m.stats") == (1, line)
    raw = Path("c.stats").read_bytes()
    for n in (0, 7, 100, len(raw) // 2, len(raw) - 1):
        Path("c.stats").write_bytes(raw[:n])
        reason = " is damaged, or was not written by attnviz" if n else ": it is empty"
        line = f"attnviz: c.stats{reason}"
        assert refused(*command) == (1, line)
        assert refused("compare-heads", "--load", "c.stats") == (1, line)
