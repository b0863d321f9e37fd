"""``attnviz compare-heads``, ``head`` and ``merge``: every form of a corpus, every file, one set of numbers."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from attnviz.errors import ModelError
from tests.fixtures.command_line import sentences

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

pytestmark = pytest.mark.usefixtures("few_seeds")

SHAPE = {
    "toy": (3, 6),
    "toy-decoder": (3, 6),
    "toy-seq2seq": (1, 1),
    "toy-transformer": (2, 4),
    "toy-random": (2, 4),
}
KOREAN = "나는 너를 사랑해\n너는 나를 사랑해\n우리는 모두 사랑해\n"


@pytest.fixture
def numbers(typed: Callable[..., Result]) -> Callable[..., dict[str, Any]]:
    """Return what ``compare-heads -o -`` prints, without the name of the corpus."""

    def run(*arguments: str, **more: Any) -> dict[str, Any]:
        result = typed("compare-heads", *arguments, "-o", "-", **more)
        assert (result.status, result.errors) == (0, "")
        found: dict[str, Any] = json.loads(result.output)
        del found["corpus"]
        return found

    return run


def test_every_form_gives_the_same(
    numbers: Callable[..., dict[str, Any]], corpus: Path, here: Path
) -> None:
    """A file, one of Windows, standard input: to the last digit the same."""
    raw = corpus.read_bytes()
    (here / "windows.txt").write_bytes(
        b"\xef\xbb\xbf" + raw.replace(b"\n", b"\r\n").removesuffix(b"\r\n")
    )
    few = ("--toy", "--controls", "2")
    plain = numbers(*few, "--corpus", corpus.name)
    assert plain["n_sentences"] == 24
    assert numbers(*few, "--corpus", "windows.txt") == plain
    assert numbers(*few, "--corpus", "-", stdin=raw) == plain


def test_a_treebank(
    numbers: Callable[..., dict[str, Any]], typed: Callable[..., Result], here: Path, treebank: Path
) -> None:
    """As --conllu and as --corpus the same; its sentences without their grammar have the same heads."""
    shutil.move(treebank, here / "t.conllu")
    few = ("--toy", "--controls", "4")
    found = numbers(*few, "--conllu", "t.conllu")
    assert {"nsubj", "det", "obj"} <= {one["name"] for one in found["relations"]}
    assert numbers(*few, "--corpus", "t.conllu") == found
    (here / "t").write_bytes((here / "t.conllu").read_bytes())
    assert numbers(*few, "--conllu", "t") == found
    texts = [
        line[9:]
        for line in (here / "t.conllu").read_text().splitlines()
        if line.startswith("# text = ")
    ]
    (here / "t.txt").write_text("\n".join(texts))
    plain = numbers(*few, "--corpus", "t.txt")
    assert plain["relations"] == []
    assert plain["estimates"] == found["estimates"]
    shown = typed("compare-heads", *few, "--conllu", "t.conllu", "-o", "a.csv")
    assert "Relations between words that a head is established to find" in shown.output


def test_one_sentence(
    numbers: Callable[..., dict[str, Any]], typed: Callable[..., Result], here: Path
) -> None:
    """A sentence, typed or on standard input, is a corpus of one line; no role is established from one."""
    (text,) = sentences(1)
    (here / "one.txt").write_text(text)
    found = numbers("--toy", text)
    assert numbers("--toy", "-", stdin=text.encode() + b"\n") == found
    assert numbers("--toy", "--corpus", "one.txt") == found
    assert not any(role["established"] for head in found["heads"] for role in head["roles"])
    shown = typed("compare-heads", "--toy", text, "-o", "a.csv").output
    assert shown.startswith("Heads on one sentence · toy\n")
    assert "Roles need more sentences" in " ".join(shown.split())
    whole = typed("compare-heads", "--toy", text, "--table", "-o", "a.csv").output
    assert len(re.findall(r"^\d\.\d  .* → ", whole, re.MULTILINE)) == 18


@pytest.mark.parametrize("text", ["I", "나"])
def test_one_token(
    numbers: Callable[..., dict[str, Any]], typed: Callable[..., Result], text: str
) -> None:
    """Where there is nothing to choose from, nothing is measured, and nothing is divided by zero."""
    found = numbers("-m", "toy-random", text)
    assert (found["n_sentences"], found["n_tokens"]) == (1, 1)
    assert np.isnan(np.array(found["estimates"]["value"], dtype=float)).all()
    shown = typed("compare-heads", "-m", "toy-random", text, "-o", "a.png", "-o", "a.csv")
    assert (shown.status, shown.errors) == (0, "wrote a.png\nwrote a.csv\n")
    assert "nan" not in shown.output
    said = "Nothing was measured: every token sees only one token."
    assert f"Note: {said}\n" in shown.output
    assert said in found["notes"]
    assert said not in " ".join(numbers("-m", "toy-random", f"{text} b")["notes"])
    assert typed("head", "0.0", "-m", "toy-random", text, "-o", "b.png").status == 0


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("toy-decoder", "decoder"),
        ("toy-seq2seq", "cross"),
        ("toy-transformer", "encoder"),
        ("toy-transformer", "decoder"),
        ("toy-transformer", "cross"),
    ],
)
def test_every_kind_of_attention(
    numbers: Callable[..., dict[str, Any]], corpus: Path, model: str, kind: str
) -> None:
    """Models that say something, and each of their attentions; shuffling has no meaning for what they say."""
    found = numbers("-m", model, "--kind", kind, "--corpus", corpus.name, "--controls", "4")
    assert (found["model"], found["kind"], found["n_sentences"]) == (model, kind, 24)
    assert np.array(found["estimates"]["value"], dtype=float).shape[:2] == SHAPE[model]
    assert found["proof"].startswith("verified: ")
    names = [measure["name"] for measure in found["measures"]]
    values = np.array(found["estimates"]["value"], dtype=float)
    measured = [
        bool(np.isfinite(values[..., names.index(name)]).all())
        for name in ("offset_-1", "offset_+1")
    ]
    assert (
        measured
        == {"encoder": [True, True], "decoder": [True, False], "cross": [False, False]}[kind]
    )


def test_every_file(typed: Callable[..., Result], corpus: Path, here: Path) -> None:
    """Pictures, tables and .stats are written and named; each opens as what it is."""
    names = [f"a.{ending}" for ending in ("png", "svg", "pdf", "csv", "json", "stats")]
    outputs = [word for name in names for word in ("-o", name)]
    result = typed("compare-heads", "--toy", "--corpus", corpus.name, *outputs)
    assert (result.status, result.errors) == (0, "".join(f"wrote {name}\n" for name in names))
    assert sorted(path.name for path in here.iterdir()) == sorted([*names, corpus.name])
    assert Image.open(BytesIO((here / "a.png").read_bytes())).width > 500
    assert (here / "a.svg").read_text().lstrip().startswith("<?xml")
    assert (here / "a.pdf").read_bytes().startswith(b"%PDF")
    assert len(list(csv.reader(StringIO((here / "a.csv").read_text())))) == 1 + 18
    assert len(json.loads((here / "a.json").read_text())["heads"]) == 18
    pages = [f"b.{ending}" for ending in ("png", "svg", "pdf")]
    drawn = typed(
        "head", "2.2", "--load", "a.stats", *(word for name in pages for word in ("-o", name))
    )
    assert (drawn.status, drawn.errors) == (0, "".join(f"wrote {name}\n" for name in pages))


def test_a_saved_survey_is_shown_again(
    typed: Callable[..., Result], numbers: Callable[..., dict[str, Any]], corpus: Path
) -> None:
    """--load shows the very table of the run that saved it, with other thresholds and another order if wished."""
    run = typed("compare-heads", "--toy", "--corpus", corpus.name, "-o", "a.stats")
    again = typed("compare-heads", "--load", "a.stats", "-o", "b.stats")
    assert again.output == run.output
    assert Path("a.stats").read_bytes() == Path("b.stats").read_bytes()
    assert numbers("--load", "a.stats") == numbers("--toy", "--corpus", corpus.name)
    sharp = numbers(
        "--load", "a.stats", "--threshold", "broad=0.99", "--threshold", "previous=0.01"
    )
    roles = {role["name"] for head in sharp["heads"] for role in head["roles"]}
    assert "previous" in roles
    assert "broad" not in roles
    page = typed("head", "1.4", "--load", "a.stats", "-o", "c.csv")
    assert (
        page.output == typed("head", "1.4", "--toy", "--corpus", corpus.name, "-o", "d.csv").output
    )


def test_merged_parts_are_the_whole(
    typed: Callable[..., Result], numbers: Callable[..., dict[str, Any]], corpus: Path, here: Path
) -> None:
    """Three parts measured apart: the same sentences, tokens and roles."""
    lines = corpus.read_text().splitlines(keepends=True)
    for name, part in (("a", lines[:3]), ("b", lines[3:16]), ("c", lines[16:])):
        (here / f"{name}.txt").write_text("".join(part))
        assert (
            typed("compare-heads", "--toy", "--corpus", f"{name}.txt", "-o", f"{name}.stats").status
            == 0
        )
    merged = typed("merge", "c.stats", "a.stats", "b.stats", "-o", "all.stats")
    n_tokens = sum(len(line.split()) for line in lines)
    assert merged.status == 0
    assert merged.errors.startswith("wrote all.stats: 24 sentences, ")
    found, whole = numbers("--load", "all.stats"), numbers("--toy", "--corpus", corpus.name)
    assert found["n_tokens"] == whole["n_tokens"] >= n_tokens
    for one, other in zip(found["heads"], whole["heads"], strict=True):
        assert [(r["name"], r["established"]) for r in one["roles"]] == [
            (r["name"], r["established"]) for r in other["roles"]
        ]
    assert (
        "c.txt; a.txt; b.txt" in typed("compare-heads", "--load", "all.stats", "-o", "x.csv").output
    )


MEASURED = """
import sys
from pathlib import Path
from attnviz.cli import _run
for name in ("few", "many"):
    sys.argv = ["attnviz", "compare-heads", "-m", "toy-random", "--corpus", f"{name}.txt", "-o", f"{name}.csv"]
    assert _run() == 0
    (peak,) = [one.split()[1] for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM")]
    sys.stderr.write(f"{peak}\\n")
"""


def test_memory_does_not_grow_with_the_corpus(
    here: Path, environment: Callable[..., dict[str, str]]
) -> None:
    """The most memory that 3,000 sentences take is within 10 % of what a sixth of them takes."""
    for name, n in (("few", 2), ("many", 12)):
        (here / f"{name}.txt").write_text("\n".join(sentences(250) * n))
    command = [sys.executable, "-c", MEASURED]
    ran = subprocess.run(
        command, cwd=here, env=environment(), capture_output=True, text=True, check=True
    )
    few, many = (int(line) for line in ran.stderr.splitlines() if line.isdecimal())
    assert many < 1.1 * few


def test_a_model_without_random_weights(
    typed: Callable[..., Result],
    numbers: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If no random models can be made, screen and file say so and why; nothing is established without them."""
    command = ("--toy", "--controls", "8")
    monkeypatch.setattr("attnviz.heads.api.OWN", 150)
    monkeypatch.setattr("attnviz.heads.capture.survey.SEEDS", 8)
    assert any(role["established"] for head in numbers(*command)["heads"] for role in head["roles"])

    def fail(*_: object) -> None:
        raise ModelError("its class takes no configuration")

    monkeypatch.setattr("attnviz.capture.sources.home_built.TrainedSource.untrained", fail)
    why = "its class takes no configuration"
    words = (
        f"No role is established, since this model could not be built with random weights: {why}"
    )
    shown = typed("compare-heads", *command, "-o", "a.csv")
    assert shown.status == 0
    assert f"Note: {words}" in " ".join(shown.output.split())
    found = numbers(*command)
    assert words in found["notes"]
    assert "untrained" not in found["controls"]
    assert not any(role["established"] for head in found["heads"] for role in head["roles"])
