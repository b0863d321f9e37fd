"""``attnviz compare-heads --against``: two models head by head, and a watch for pipelines."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from attnviz.heads import api
from attnviz.heads import files as both
from tests.fixtures.command_line import sentences
from tests.heads.killed import goes_on_after_kill_9

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

    Typed = Callable[..., Result]
    Refused = Callable[..., tuple[int, str]]

pytestmark = pytest.mark.usefixtures("few_seeds")

TWO = (
    "compare-heads",
    "-m",
    "toy-random",
    "--seed",
    "1",
    "--against",
    "toy-random",
    "--controls",
    "5",
)
"""Two models of random weights, which differ in their seeds."""


@pytest.fixture
def corpus(here: Path) -> str:
    """A small corpus."""
    names = ("the boy", "a girl", "two dogs", "the old queen", "나는", "그는")
    (here / "corpus.txt").write_text(
        "".join(f"{one} sees {other} near the house .\n" for one in names for other in names)
    )
    return "corpus.txt"


def test_a_model_against_itself_has_not_changed(typed: Typed, corpus: str, here: Path) -> None:
    """Nothing differs, and a watch for anything at all is content."""
    result = typed(
        "compare-heads",
        "--toy",
        "--corpus",
        corpus,
        "--against",
        "toy",
        "--fail-above",
        "0",
        "-o",
        "same.csv",
    )
    assert result.status == 0, result.errors
    assert "no head's pattern changed by more than 0 nats" in result.output
    with (here / "same.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 18
    assert {row["change"] for row in rows} == {"0.0"}


def test_a_watch_ends_with_status_3(typed: Typed, corpus: str, here: Path) -> None:
    """Heads that changed too much are named last, and the files are written all the same."""
    result = typed(
        *TWO, "--corpus", corpus, "--fail-above", "0.001", "-o", "two.png", "-o", "two.json"
    )
    assert result.status == 3
    assert "8 heads changed by more than 0.001 nats" in result.output
    assert (here / "two.png").stat().st_size > 10_000
    assert json.loads((here / "two.json").read_text())
    assert typed(*TWO, "--corpus", corpus, "--fail-above", "0.69", "-o", "two.csv").status == 0
    piped = typed(*TWO, "--corpus", corpus, "--fail-above", "0.001", "--json")
    assert piped.status == 3
    assert json.loads(piped.output)


def test_saved_numbers_are_compared_too(typed: Typed, corpus: str, here: Path) -> None:
    """Measures and roles of a .stats file, but no patterns; a broken-off, foreign or missing one is refused."""
    assert typed(*TWO[:5], "--corpus", corpus, "--controls", "5", "-o", "one.stats").status == 0
    result = typed(
        "compare-heads",
        "-m",
        "toy-random",
        "--corpus",
        corpus,
        "--controls",
        "5",
        "--against",
        "one.stats",
    )
    assert result.status == 0, result.errors
    assert "(seed 1)" in result.output
    assert list((here / "outputs").iterdir())
    both = typed("compare-heads", "--load", "one.stats", "--against", "one.stats", "-o", "a.csv")
    assert both.status == 0, both.errors


@pytest.mark.parametrize("threshold", ["0.7", "-1", "nan"])
def test_a_threshold_that_watches_nothing(refused: Refused, corpus: str, threshold: str) -> None:
    """A pattern changes by 0 nats to ln 2."""
    status, line = refused(*TWO, "--corpus", corpus, "--fail-above", threshold)
    assert status == 2
    assert "0 nats to ln 2" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("compare-heads", "--toy", "--fail-above", "0.1"),
            "there is no other model to compare with",
        ),
        ((*TWO, "--checkpoint", "a.stats"), "a checkpoint is for a file of sentences"),
        ((*TWO, "--corpus", "a.txt", "--checkpoint", "a.csv"), "a checkpoint ends in .stats"),
        ((*TWO, "--clustermap", "a.png"), "--clustermap is of all pairs of heads of one model"),
        ((*TWO, "-o", "a.stats"), "not saved as stats"),
        (("compare-heads", "--load", "a.stats", "--against", "toy"), "another .stats file alone"),
        (
            ("compare-heads", "--toy", "--against", "b.stats", "--fail-above", "0.1"),
            "does not hold",
        ),
    ],
)
def test_what_cannot_be_meant_together(
    refused: Refused, arguments: tuple[str, ...], words: str
) -> None:
    """One line, before a model is loaded."""
    status, line = refused(*arguments)
    assert status == 2
    assert words in line


def test_models_that_cannot_be_compared(
    refused: Refused, corpus: str, tiny_bert: str, here: Path
) -> None:
    """Other tokens, other numbers of heads, other attention, no file, no stats: said in one line."""
    (here / "foreign.stats").write_bytes(b"nothing")
    one = ("compare-heads", "--corpus", corpus, "--controls", "0")
    for model, against, words in (
        ("toy-random", "toy", "layers x heads"),
        ("toy", "toy-decoder", "decoder"),
        ("toy-random", "missing.stats", "missing.stats"),
        ("toy-random", "foreign.stats", "foreign.stats"),
        ("toy-random", tiny_bert, "tokens"),
        ("toy-random", "toy-foo", "toy-foo"),
    ):
        status, line = refused(*one, "-m", model, "--against", against)
        assert status == 1, line
        assert words in line


def test_clusters_are_drawn(typed: Typed, refused: Refused, corpus: str, here: Path) -> None:
    """A picture of all pairs, unless heads are not compared with one another."""
    one = (
        "compare-heads",
        "-m",
        "toy-random",
        "--corpus",
        corpus,
        "--controls",
        "0",
        "-o",
        "a.csv",
    )
    assert typed(*one, "--clustermap", "clusters.svg").status == 0
    assert "1.3" in (here / "clusters.svg").read_text()
    status, line = refused(*one, "--no-similarity", "--clustermap", "b.svg")
    assert status == 2
    assert "not with --against, --no-similarity" in line


# A run that is broken off.

SEEDS = ["-m", "toy-random", "--seed", "1", "--against", "toy-random"]


@pytest.fixture
def long(here: Path) -> Path:
    """Forty sentences and some lines that are none."""
    path = here / "long.txt"
    lines = sentences(40)
    path.write_text("\n".join([*lines[:7], "\0", *lines[7:], "\0"]) + "\n")
    return path


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every ten lines."""
    monkeypatch.setattr("attnviz.heads.capture.survey.WINDOW", 10)


def break_off(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Let a run end as Ctrl-C ends it, once it has written so many checkpoints."""
    save = both.save_stats
    n_saved = 0

    def broken(*given: object) -> None:
        nonlocal n_saved
        n_saved += 1
        save(*given)  # type: ignore[arg-type]
        if n_saved == after:
            raise KeyboardInterrupt

    monkeypatch.setattr(api, "save_stats", broken)


def test_kill_9_of_two_models(
    typed: Typed, here: Path, environment: Callable[..., dict[str, str]]
) -> None:
    """A run of both goes on too."""
    (here / "c.txt").write_text("\n".join(sentences(300) * 4) + "\n")
    command = [*TWO[:-2], "--corpus", "c.txt", "--controls", "20"]
    goes_on_after_kill_9(
        command, typed, environment(), lambda path: both.load_pair(path).before.n_lines
    )


@pytest.mark.usefixtures("windows", "treebank")
@pytest.mark.parametrize(
    ("stops", "arguments"),
    [
        ((1, 3, 4), [*SEEDS, "--corpus", "long.txt"]),
        ((1, 3, 4), [*SEEDS, "--conllu", "treebank.conllu", "--specials", "exclude"]),
        (
            (3,),
            [
                "-m",
                "toy-transformer",
                "--against",
                "toy-transformer",
                "--corpus",
                "long.txt",
                "--no-similarity",
            ],
        ),
    ],
)
def test_two_models_broken_off_anywhere(
    typed: Typed,
    long: Path,
    monkeypatch: pytest.MonkeyPatch,
    stops: tuple[int, ...],
    arguments: list[str],
) -> None:
    """After any window, with bad lines, a treebank, models that translate: the same numbers to the last digit."""
    assert long.exists()
    command = ["compare-heads", *arguments, "--controls", "5", "--json"]
    alone = typed(*command)
    for after in stops:
        going_on = [*command, "--checkpoint", f"{after}.stats"]
        with monkeypatch.context() as patch:
            break_off(patch, after)
            assert typed(*going_on).status == 130
        assert both.load_pair(going_on[-1]).before.n_lines == 10 * after
        resumed = typed(*going_on)
        assert (resumed.status, resumed.errors) == (0, "")
        assert resumed.output == alone.output


@pytest.mark.usefixtures("windows")
def test_two_models_again_after_the_end(
    typed: Typed, long: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came to its end is shown again without being run, and watched; its file stays as it is."""
    command = [*TWO, "--corpus", long.name, "--checkpoint", "c.stats"]
    first = typed(*command, "-o", "a.csv")
    assert first.status == 0, first.errors
    before = Path("c.stats").read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a model was run for nothing")

    monkeypatch.setattr("attnviz.heads.capture.survey.survey_models", fail)
    monkeypatch.setattr("attnviz.capture.sources.home_built.ToySource.stream", fail)
    again = typed(*command, "-o", "b.csv")
    assert (again.status, again.output, again.errors) == (0, first.output, "wrote b.csv\n")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert Path("c.stats").read_bytes() == before
    assert typed(*command, "-o", "c.csv", "--fail-above", "0.001").status == 3


def test_a_checkpoint_of_another_run_of_two(typed: Typed, refused: Refused, long: Path) -> None:
    """Another model, option or corpus: what differs is said; the checkpoint stays as it is."""
    command = ["compare-heads", "--corpus", long.name, "--checkpoint", "c.stats", "--controls", "5"]
    assert typed(*command, *SEEDS, "-o", "a.csv").status == 0
    before = Path("c.stats").read_bytes()
    for arguments, line in (
        (["-m", "toy-random", "--seed", "2", "--against", "toy-random"], "seed is 2, was 1"),
        ([*SEEDS[:-1], "toy-foo"], "against is toy-foo, was toy-random"),
        ([*SEEDS, "--truncate"], "truncate is True, was False"),
        ([*SEEDS, "--specials", "exclude"], "specials is exclude, was keep"),
        ([*SEEDS, "--no-similarity"], "similarity is False, was True"),
        ([*SEEDS, "--controls", "9"], "controls is 9, was 5"),
        ([*SEEDS, "--max-offset", "2"], "max_offset is 2, was 8"),
    ):
        assert refused(*command, *arguments) == (
            1,
            f"attnviz: c.stats is a checkpoint of another run: {line}; remove it to begin anew",
        )
    size = long.stat().st_size
    long.write_text(long.read_text() + "I love you\n")
    was = f"attnviz: c.stats is a checkpoint of another run: the corpus is another (it was long.txt, {size:,} bytes)"
    status, said = refused(*command, *SEEDS)
    assert (status, said.partition(";")[0]) == (1, was)
    assert Path("c.stats").read_bytes() == before


@pytest.mark.parametrize("trained", ["one", "other"])
@pytest.mark.parametrize("ended", [True, False])
def test_one_of_two_models_trained_on_is_another(
    typed: Typed,
    long: Path,
    tiny_bert: str,
    monkeypatch: pytest.MonkeyPatch,
    trained: str,
    *,
    ended: bool,
) -> None:
    """Of the same name and shape: its numbers are not put together with those before, nor given out for its own."""
    monkeypatch.setattr("attnviz.heads.capture.survey.WINDOW", 10)
    for name in ("one", "other"):
        shutil.copytree(tiny_bert, name)
    command = [
        "compare-heads",
        "-m",
        "one",
        "--against",
        "other",
        "--corpus",
        long.name,
        "--truncate",
    ]
    command += ["--controls", "2", "--checkpoint", "c.stats"]
    with monkeypatch.context() as patched:
        if not ended:
            break_off(patched, 1)
        assert typed(*command, "-o", "a.json").status == (0 if ended else 130)
    assert (both.load_pair("c.stats").before.n_lines is None) == ended
    path = f"{trained}/model.safetensors"
    weights = {name: one * np.float32(1.001) for name, one in load_file(path).items()}
    save_file(weights, path, {"format": "pt"})
    result = typed(*command, "-o", "b.json")
    line = f"c.stats is a checkpoint of another run: here/{trained} had other weights; remove it to begin anew"
    assert (result.status, result.errors) == (1, f"attnviz: {line}\n")
    assert not Path("b.json").exists()


def test_a_checkpoint_of_two_is_none_of_one(typed: Typed, refused: Refused, long: Path) -> None:
    """Nor the other way round; neither is drawn or merged as if it were the other."""
    one = ["compare-heads", *SEEDS[:4], "--corpus", long.name, "--controls", "5"]
    two = [*one, *SEEDS[4:]]
    assert typed(*one, "--checkpoint", "one.stats", "-o", "a.csv").status == 0
    assert typed(*two, "--checkpoint", "two.stats", "-o", "a.csv").status == 0
    line = "attnviz: two.stats holds a run of two models, not of one model"
    for command in (
        [*one, "--checkpoint", "two.stats"],
        ["compare-heads", "--load", "two.stats"],
        [*one, "--against", "two.stats"],
        ["head", "0.0", "--load", "two.stats"],
        ["merge", "one.stats", "two.stats", "-o", "m.stats"],
    ):
        assert refused(*command) == (1, line)
    line = "attnviz: one.stats holds a run of one model, not of two models"
    assert refused(*two, "--checkpoint", "one.stats") == (1, line)
    raw = Path("two.stats").read_bytes()
    for n in (0, 7, 100, len(raw) // 2, len(raw) - 1):
        Path("two.stats").write_bytes(raw[:n])
        line = "attnviz: two.stats holds no stats of attnviz's, or is not whole"
        assert refused(*two, "--checkpoint", "two.stats") == (1, line)


def test_what_is_compared_with_a_file_goes_on_as_one_model(typed: Typed, long: Path) -> None:
    """Only one model is run: its checkpoint is that of a run of its own."""
    one = ["compare-heads", *SEEDS[:4], "--corpus", long.name, "--controls", "5"]
    assert typed(*one, "--checkpoint", "one.stats", "-o", "a.csv").status == 0
    result = typed(*one, "--checkpoint", "one.stats", "--against", "one.stats", "-o", "b.csv")
    assert (result.status, result.errors) == (0, "wrote b.csv\n")
    assert "no head changed" in result.output


# One sentence.


def test_of_one_sentence_no_line_is_spoken(refused: Refused, tiny_bert: str, here: Path) -> None:
    """What one model cannot read, or cuts otherwise, is said of the sentence: it stands in no line."""
    assert refused("compare-heads", "I love you", "-m", "toy-random", "--against", tiny_bert)[
        1
    ].startswith("attnviz: these models cut this sentence into other tokens: “I love you” is ")
    alone = refused("compare-heads", "qwxz", "--toy")
    assert refused("compare-heads", "qwxz", "--toy", "--against", "toy") == alone
    assert "line 1" not in alone[1]
    (here / "one.txt").write_text("qwxz\n")
    status, line = refused("compare-heads", "--toy", "--against", "toy", "--corpus", "one.txt")
    assert (status, line.partition(": line 1: ")[0]) == (
        1,
        "attnviz: one.txt: there is no sentence to measure heads on",
    )
