"""``attnviz compare-heads``: every form of a corpus, every file, one set of numbers."""

from __future__ import annotations

import csv
import json
import re
import shutil
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image

from attnviz.errors import ModelError
from tests.fixtures.command_line import sentences
from tests.heads.surveys import with_thresholds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

pytestmark = pytest.mark.usefixtures("few_seeds")

SHAPE = {
    "toy": (3, 6),
    "toy-decoder": (3, 6),
    "toy-transformer": (2, 4),
    "toy-random": (2, 4),
}
KOREAN = "나는 너를 사랑해\n너는 나를 사랑해\n우리는 모두 사랑해\n"


@pytest.fixture
def numbers(typed: Callable[..., Result]) -> Callable[..., dict[str, Any]]:
    """Return what ``compare-heads -o -`` prints, without the name of the corpus and the digest."""

    def run(*arguments: str, **more: Any) -> dict[str, Any]:
        result = typed("compare-heads", *arguments, "-o", "-", **more)
        assert (result.status, result.errors) == (0, "")
        found: dict[str, Any] = json.loads(result.output)
        del found["corpus"], found["digest"]
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
    plain = numbers("--toy", "--corpus", corpus.name)
    assert plain["n_sentences"] == 24
    assert numbers("--toy", "--corpus", "windows.txt") == plain
    assert numbers("--toy", "--corpus", "-", stdin=raw) == plain


def test_a_treebank(numbers: Callable[..., dict[str, Any]], here: Path, treebank: Path) -> None:
    """As --conllu and as --corpus the same; its sentences without their grammar have the same heads."""
    shutil.move(treebank, here / "t.conllu")
    found = numbers("--toy", "--conllu", "t.conllu")
    assert {"nsubj", "det", "obj"} <= {one["name"] for one in found["relations"]}
    assert numbers("--toy", "--corpus", "t.conllu") == found
    texts = [
        line[9:]
        for line in (here / "t.conllu").read_text().splitlines()
        if line.startswith("# text = ")
    ]
    (here / "t.txt").write_text("\n".join(texts))
    plain = numbers("--toy", "--corpus", "t.txt")
    assert plain["relations"] == []
    assert plain["estimates"] == found["estimates"]


def test_one_sentence(numbers: Callable[..., dict[str, Any]], typed: Callable[..., Result]) -> None:
    """A sentence, typed or on standard input, is a corpus of one line; no role is established from one."""
    (text,) = sentences(1)
    found = numbers("--toy", text)
    assert numbers("--toy", "-", stdin=text.encode() + b"\n") == found
    assert not any(role["doubt"] is None for head in found["heads"] for role in head["roles"])
    shown = typed("compare-heads", "--toy", text, "-o", "a.csv").output
    assert shown.startswith("Heads on one sentence · toy\n")
    assert "Roles need more sentences" in " ".join(shown.split())
    whole = typed("compare-heads", "--toy", text, "--table", "-o", "a.csv").output
    assert len(re.findall(r"^\d\.\d  .* → ", whole, re.MULTILINE)) == 18


def test_one_token(numbers: Callable[..., dict[str, Any]], typed: Callable[..., Result]) -> None:
    """Where there is nothing to choose from, nothing is measured, and nothing is divided by zero."""
    text = "나"
    found = numbers("-m", "toy-random", text)
    assert (found["n_sentences"], found["n_tokens"]) == (1, 1)
    assert np.isnan(np.array(found["estimates"]["value"], dtype=float)).all()
    shown = typed("compare-heads", "-m", "toy-random", text, "-o", "a.png", "-o", "a.csv")
    assert (shown.status, shown.errors) == (0, "wrote a.png\nwrote a.csv\n")
    assert "nan" not in shown.output
    said = "Nothing was measured: every token sees only one token."
    assert f"Note: {said}\n" in shown.output
    assert "nothing_measured" in [note["code"] for note in found["notes"]]
    two_tokens = numbers("-m", "toy-random", f"{text} b")
    assert "nothing_measured" not in [note["code"] for note in two_tokens["notes"]]
    card = typed("compare-heads", "-m", "toy-random", text, "--head", "0.0", "-o", "b.png")
    assert (card.status, "nan" in card.output) == (0, False)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("toy-decoder", "decoder"),
        ("toy-transformer", "cross"),
    ],
)
def test_every_kind_of_attention(
    numbers: Callable[..., dict[str, Any]], corpus: Path, model: str, kind: str
) -> None:
    """Models that say something, and each of their attentions."""
    found = numbers("-m", model, "--kind", kind, "--corpus", corpus.name)
    assert (found["model"], found["kind"], found["n_sentences"]) == (model, kind, 24)
    assert np.array(found["estimates"]["value"], dtype=float).shape[:2] == SHAPE[model]
    assert max(found["differences"]) < 1e-5
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
    """Pictures, tables and pages are written and named."""
    names = [f"a.{ending}" for ending in ("png", "svg", "pdf", "html", "csv", "json")]
    outputs = [word for name in names for word in ("-o", name)]
    result = typed("compare-heads", "--toy", "--corpus", corpus.name, *outputs)
    assert (result.status, result.errors) == (0, "".join(f"wrote {name}\n" for name in names))
    assert sorted(path.name for path in here.iterdir()) == sorted([*names, corpus.name])
    with Image.open(here / "a.png") as picture:
        assert picture.width > 500
    assert len(list(csv.reader(StringIO((here / "a.csv").read_text())))) > 18 * 40


def test_a_saved_comparison_is_shown_again(
    typed: Callable[..., Result],
    numbers: Callable[..., dict[str, Any]],
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """--load shows the very screens, tables and pictures of the run that saved it, whatever the usual model is."""
    # Heads have roles of which an example is drawn, though they are not established.
    monkeypatch.setattr("attnviz.heads.api.MEASURES", with_thresholds(0.1))
    run = ("compare-heads", "--toy", "--corpus", corpus.name)
    first = typed(*run, "-o", "a.json", "-o", "a.svg")
    again = typed("compare-heads", "--load", "a.json", "-o", "b.json", "-o", "b.svg")
    assert again.output == first.output
    assert "Rows are queries" in Path("a.svg").read_text()
    for ending in ("json", "svg"):
        assert Path(f"a.{ending}").read_bytes() == Path(f"b.{ending}").read_bytes()
    assert numbers("--load", "a.json") == numbers(*run[1:])
    view = ("--table", "--lang", "ko")
    shown = typed("compare-heads", "--load", "a.json", *view, "-o", "b.csv")
    assert shown.output == typed(*run, *view, "-o", "c.csv").output
    assert Path("b.csv").read_bytes() == Path("c.csv").read_bytes()
    monkeypatch.setenv("ATTNVIZ_MODEL", "toy-ko")
    assert typed("compare-heads", "--load", "a.json", "-o", "b.csv").output == first.output


def test_heads_are_chosen(typed: Callable[..., Result], corpus: Path, here: Path) -> None:
    """One head or two are cards; more, or a layer, are rows of the table; the picture shows the same heads."""
    assert typed("compare-heads", "--toy", "--corpus", corpus.name, "-o", "a.json").status == 0
    load = ("compare-heads", "--load", "a.json")
    one = typed(*load, "--head", "1.3", "-o", "one.svg").output
    assert one.startswith("Layer 1, head 3: ")
    assert "Mean weight by offset, from -8 to +8:" in one
    two = typed(*load, "--head", "1.3", "--head", "2.4", "-o", "two.svg", columns=120).output
    first, *lines = two.splitlines()
    assert "Layer 1, head 3: " in first
    assert "   Layer 2, head 4: " in first
    assert max(map(len, lines)) <= 120
    below = typed(*load, "--head", "1.3", "--head", "2.4", "-o", "a.csv").output
    assert "\nLayer 2, head 4: " in below
    texts = [(here / name).read_text() for name in ("one.svg", "two.svg")]
    assert ["Layer 2, head 4" in text for text in texts] == [False, True]
    rows = typed(*load, "--head", "2.4", "--head", "0.1", "--head", "1.3", "-o", "a.csv").output
    assert re.findall(r"^\d\.\d", rows, re.MULTILINE)[:3] == ["0.1", "1.3", "2.4"]
    assert "Heads not shown: 15." in rows
    layer = typed(*load, "--layer", "2", "-o", "a.csv").output
    assert re.findall(r"^\d\.\d", layer, re.MULTILINE)[:6] == [f"2.{n}" for n in range(6)]


def test_a_model_without_random_weights(
    typed: Callable[..., Result],
    numbers: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If no random models can be made, screen and file say so and why; nothing is established without them."""
    monkeypatch.setattr("attnviz.heads.api.OWN", 150)
    monkeypatch.setattr("attnviz.heads.capture.survey.SEEDS", 8)
    found = numbers("--toy")
    assert any(role["doubt"] is None for head in found["heads"] for role in head["roles"])

    def fail(*_: object) -> None:
        raise ModelError("its class takes no configuration")

    monkeypatch.setattr("attnviz.capture.sources.home_built.TrainedSource.untrained", fail)
    why = "its class takes no configuration"
    words = (
        f"No role is established, since this model could not be built with random weights: {why}"
    )
    shown = typed("compare-heads", "--toy", "-o", "a.json")
    assert shown.status == 0
    assert f"Note: {words}" in " ".join(shown.output.split())
    found = json.loads(Path("a.json").read_text())
    assert {"code": "no_random_weights", "fields": [["why", why]]} in found["notes"]
    assert "untrained" not in found["controls"]
    assert not any(role["doubt"] is None for head in found["heads"] for role in head["roles"])


def test_each_stage_is_shown_and_erased(
    typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On standard error, if it is a terminal, in their order; afterwards the line is empty again."""
    monkeypatch.setattr("attnviz.cli.heads.shows_progress", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")  # standard error counts as a terminal
    result = typed("compare-heads", *sentences(1), "--toy", "-o", "heads.json")
    stages = ("starting", "loading toy", "measuring heads", "measuring controls", "computing")
    places = [result.errors.find(stage) for stage in stages]
    assert min(places) >= 0
    assert places == sorted(places)
    assert "\x1b[2K" in result.errors[places[-1] :]
    assert "measuring" not in result.output
