"""The patterns of examples where no model was run: it is opened again and proved the same, or why not is said."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.heads import files as surveys
from attnviz.heads.settings import ModelSettings
from tests.fixtures.command_line import sentences
from tests.fixtures.zoo import Zoo

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.capture.sources import Source
    from tests.fixtures.command_line import Result

pytestmark = pytest.mark.usefixtures("few_seeds")

NONE = "attnviz: the picture shows no patterns of examples: "


@pytest.fixture
def long(here: Path) -> Path:
    """Twenty sentences in which tokens stand far apart."""
    path = here / "long.txt"
    path.write_text("\n".join([one for one in sentences(600) if len(one.split()) > 13][:20]) + "\n")
    return path


@pytest.fixture
def bert(here: Path, tiny_bert: str) -> Path:
    """A pretrained model's folder in the folder that commands are run in."""
    return Path(shutil.copytree(tiny_bert, here / "bert"))


@pytest.fixture(autouse=True)
def short_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its own language a model reads 60 sentences, not 600."""
    monkeypatch.setattr("attnviz.heads.api.OWN", 60)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub may not be asked for anything: not even whether it has a model."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr("attnviz.capture.sources.hub._ask_hub", fail)


def words_of(path: Path) -> str:
    """What an SVG says, in one line."""
    said = " ".join(
        unescape(text)
        for text in re.findall(r"<text[^>]*>(.*?)</text>", path.read_text(), re.DOTALL)
    )
    return " ".join(re.sub(r"<[^>]*>", " ", said).split())


def with_model(path: Path, model: ModelSettings) -> None:
    """Write into a .stats file how its model was loaded."""
    stats = surveys.load_stats(path)
    surveys.save_stats(replace(stats, run=replace(stats.run, model=model)), path)


# ------------------------------------------------------------------------------------------ the model is there


@pytest.mark.parametrize(
    "arguments",
    [
        ["--toy", "--corpus", "corpus.txt"],
        ["--toy"],
        ["-m", "toy-random:seed=3,n_layers=3,d_model=24", "--corpus", "corpus.txt"],
        [
            "-m",
            "toy-transformer",
            "--kind",
            "cross",
            "--corpus",
            "corpus.txt",
            "--threshold",
            "broad=0.1",
        ],
        ["-m", "toy-decoder", "--controls", "0", "--corpus", "corpus.txt"],
        [
            "-m",
            "bert",
            "--conllu",
            "treebank.conllu",
            "--threshold",
            "broad=0.3",
            "--threshold",
            "first=0.1",
        ],
        [
            "-m",
            "bert",
            "--corpus",
            "corpus.txt",
            "--truncate",
            "--threshold",
            "broad=0.1",
            "--dtype",
            "bfloat16",
        ],
    ],
)
@pytest.mark.usefixtures("corpus", "long", "bert", "treebank", "offline")
def test_the_picture_of_the_run(
    typed: Callable[..., Result], here: Path, arguments: list[str]
) -> None:
    """Drawn from the saved file, the sheet is that of the run, to the last dot, with its patterns."""
    run = typed("compare-heads", *arguments, "-o", "a.svg", "-o", "a.stats")
    assert run.status == 0
    set_again = [
        word for at, word in enumerate(arguments) if "--threshold" in {word, arguments[at - 1]}
    ]
    again = typed("compare-heads", "--load", "a.stats", *set_again, "-o", "b.svg")
    assert (again.status, again.errors) == (0, "wrote b.svg\n")
    assert "rows are queries" in words_of(here / "a.svg")
    assert (here / "a.svg").read_bytes() == (here / "b.svg").read_bytes()


def test_a_checkpoint_at_its_end(typed: Callable[..., Result], corpus: Path, here: Path) -> None:
    """The same command again, which measures nothing, draws the same picture."""
    command = ["compare-heads", "--toy", "--corpus", corpus.name, "--checkpoint", "c.stats"]
    assert typed(*command, "-o", "a.png").errors == "wrote a.png\n"
    assert typed(*command, "-o", "b.png").errors == "wrote b.png\n"
    assert (here / "a.png").read_bytes() == (here / "b.png").read_bytes()


def test_merged_parts(typed: Callable[..., Result], corpus: Path, here: Path) -> None:
    """Of parts put together the model is opened too, by its name alone where that is all that is known."""
    for name, some in (("a", slice(12)), ("b", slice(12, None))):
        (here / f"{name}.txt").write_text("\n".join(corpus.read_text().splitlines()[some]))
        assert (
            typed("compare-heads", "--toy", "--corpus", f"{name}.txt", "-o", f"{name}.stats").status
            == 0
        )
    assert typed("merge", "a.stats", "b.stats", "-o", "all.stats").status == 0
    for name in ("all.svg", "named.svg"):
        assert typed("compare-heads", "--load", "all.stats", "-o", name).errors == f"wrote {name}\n"
        assert "rows are queries" in words_of(here / name)
        with_model(here / "all.stats", ModelSettings())


def test_opened_once_and_only_for_a_picture(
    typed: Callable[..., Result], stats_of: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables and JSON need no model; two pictures need one, and so does the page of a head, for its example."""
    from attnviz.capture import source

    stats_of("--toy")
    opened: list[Any] = []
    real = source.open_source

    def count(*arguments: Any, **more: Any) -> Source:
        opened.append(arguments)
        return real(*arguments, **more)

    monkeypatch.setattr(source, "open_source", count)
    assert (
        typed(
            "compare-heads", "--load", "a.stats", "-o", "a.csv", "-o", "a.json", "-o", "b.stats"
        ).status
        == 0
    )
    assert typed("compare-heads", "--load", "a.stats", "-o", "-").status == 0
    assert opened == []
    assert typed("compare-heads", "--load", "a.stats", "-o", "a.png", "-o", "a.pdf").status == 0
    assert len(opened) == 1
    assert typed("head", "2.3", "--load", "a.stats", "-o", "a.png").status == 0
    assert len(opened) == 2


@pytest.mark.usefixtures("offline")
def test_the_real_model(
    typed: Callable[..., Result], corpus: Path, here: Path, real_model: str
) -> None:
    """Of BERT's kind with special tokens: on a sentence alone it gives the numbers that it gave in a batch of many."""
    few = ("--corpus", corpus.name, "--controls", "4")
    run = typed("compare-heads", "-m", real_model, *few, "-o", "a.svg", "-o", "a.stats")
    assert run.status == 0
    assert typed("compare-heads", "--load", "a.stats", "-o", "b.svg").errors == "wrote b.svg\n"
    assert "rows are queries" in words_of(here / "a.svg")
    assert (here / "a.svg").read_bytes() == (here / "b.svg").read_bytes()


# ------------------------------------------------------------------------------------ it is not, or is another


def refused(typed: Callable[..., Result], here: Path, *arguments: str) -> str:
    """Draw twice what is saved without patterns; why there are none, which is said once, and in the picture."""
    arguments = (*arguments, "--threshold", "broad=0.3", "--threshold", "first=0.1")
    shown = typed("compare-heads", "--load", "a.stats", *arguments, "-o", "b.svg", "-o", "c.svg")
    assert shown.status == 0
    line, *wrote = shown.errors.splitlines()
    assert wrote == ["wrote b.svg", "wrote c.svg"]
    assert line.startswith(NONE)
    assert (
        shown.output
        == typed("compare-heads", "--load", "a.stats", *arguments, "-o", "b.csv").output
    )
    words = words_of(here / "b.svg")
    assert "rows are queries" not in words
    assert " ".join(f"no patterns: {line.removeprefix(NONE)}".split()) in words
    assert "An example of each role" in words
    return line.removeprefix(NONE)


@pytest.fixture
def measured(stats_of: Callable[..., Path], bert: Path) -> Path:
    """The pretrained model's .stats."""
    stats_of("-m", bert.name, "--truncate")
    return bert


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    "name", [None, "someone/their-bert", "/nowhere/bert", "~nobody/bert", "a" * 300, "", "\0"]
)
def test_no_model(
    typed: Callable[..., Result], here: Path, measured: Path, name: str | None
) -> None:
    """A model that is not there is not asked for at the hub; the picture is written without it."""
    shutil.rmtree(measured)
    if name is not None:
        with_model(here / "a.stats", ModelSettings(model=name))
    why = refused(typed, here)
    assert why.endswith(" is not here, and no model is downloaded for a picture")
    if name is None:
        assert why.startswith("bert is not")


def test_a_broken_model(typed: Callable[..., Result], here: Path, measured: Path) -> None:
    """Why it cannot be loaded is said as anywhere else."""
    (measured / "model.safetensors").unlink()
    assert refused(typed, here).startswith(
        "the folder bert has no model.safetensors: attnviz reads safetensors only"
    )


@pytest.mark.parametrize("share", [1.0, 1e-3])
def test_other_weights(
    typed: Callable[..., Result], here: Path, measured: Path, share: float
) -> None:
    """Trained on, if by a thousandth, it is another model, though it has its name, its words and its shape."""
    from safetensors.numpy import load_file, save_file

    path = measured / "model.safetensors"
    rng = np.random.default_rng(0)
    weights = {
        name: one + share * rng.standard_normal(one.shape).astype(one.dtype)
        for name, one in load_file(path).items()
    }
    save_file(weights, path, {"format": "pt"})
    assert (
        refused(typed, here) == "here/bert is another model than was measured: its weights differ"
    )


def test_another_shape_and_another_vocabulary(
    typed: Callable[..., Result], here: Path, measured: Path, tmp_path: Path, real_model: str
) -> None:
    """Another architecture under the name, and sentences that were written into the file by hand."""
    shutil.rmtree(measured)
    shutil.copytree(Zoo(tmp_path, real_model).folder("t5"), measured)
    assert "is another model than was measured: its weights differ" in refused(typed, here)
    assert typed("compare-heads", "--toy", "-o", "a.stats").status == 0
    surveyed = surveys.load_stats("a.stats")
    texts = dict.fromkeys(surveyed.survey.examples.texts, "qwxz")
    examples = replace(surveyed.survey.examples, texts=texts)
    kept = surveyed.survey.sample
    sample = replace(kept, own={}, texts=dict.fromkeys(kept.texts, ("qwxz", None)))
    surveys.save_stats(
        replace(surveyed, survey=replace(surveyed.survey, examples=examples, sample=sample)),
        "a.stats",
    )
    shown = typed(
        "compare-heads",
        "--load",
        "a.stats",
        "-o",
        "b.png",
        "--threshold",
        "broad=0.5",
        "--threshold",
        "relation=1",
    )
    assert shown.status == 0
    assert shown.errors.startswith(f"{NONE}toy knows none of these words (qwxz)")


def test_code_runs_for_who_lets_it(
    typed: Callable[..., Result], here: Path, measured: Path
) -> None:
    """A file that says that code may run lets none run: who types it does."""
    assert measured.is_dir()
    with_model(here / "a.stats", ModelSettings(model="bert", trust_remote_code=True))
    assert (
        refused(typed, here)
        == "bert comes with code of its own, which runs only with trust_remote_code"
    )
    shown = typed("compare-heads", "--load", "a.stats", "--trust-remote-code", "-o", "c.png")
    assert shown.errors == "wrote c.png\n"


# --------------------------------------------------------------------------------------------------- the pictures


def test_one_sentence_is_a_map_of_words(typed: Callable[..., Result], here: Path) -> None:
    """What each head looks at most there, and the strongest links; roles need more sentences."""
    assert typed("compare-heads", "--toy", "she is eating a green apple", "-o", "a.svg").status == 0
    words = words_of(here / "a.svg")
    assert "What each of 18 heads looks at most in one sentence" in words
    assert re.search(r"head \d\.\d \w+ → \w+ \d\.\d\d", words)
    assert "roles need more sentences" in words
    assert "from resampling sentences" not in words  # there is no interval
