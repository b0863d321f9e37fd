"""The patterns of examples where no model was run: it is opened again and proved the same, or why not is said."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import attnviz
from attnviz.heads.settings import ModelSettings
from tests.heads.surveys import with_thresholds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

pytestmark = pytest.mark.usefixtures("few_seeds")

NONE = "attnviz: the picture shows no patterns of examples: "


@pytest.fixture
def bert(here: Path, tiny_bert: str) -> Path:
    """A pretrained model's folder in the folder that commands are run in."""
    return Path(shutil.copytree(tiny_bert, here / "bert"))


@pytest.fixture(autouse=True)
def short_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its own language a model reads 60 sentences, not 600."""
    monkeypatch.setattr("attnviz.heads.api.OWN", 60)


@pytest.fixture
def low_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads have roles of which an example is drawn, though they are not established."""
    monkeypatch.setattr("attnviz.heads.api.MEASURES", with_thresholds(0.1))


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub may not be asked for anything: not even whether it has a model."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr("attnviz.capture.sources.hub._ask_hub", fail)


def words_of(path: Path) -> str:
    """Return the text of an SVG in one line."""
    said = " ".join(
        unescape(text)
        for text in re.findall(r"<text[^>]*>(.*?)</text>", path.read_text(), re.DOTALL)
    )
    return " ".join(re.sub(r"<[^>]*>", " ", said).split())


def with_model(path: Path, model: ModelSettings) -> None:
    """Write into a comparison how its model was loaded."""
    comparison = attnviz.load(path)
    replace(comparison, origin=replace(comparison.origin, model=model)).save(path)


@pytest.mark.parametrize("model", ["toy", "bert"])
@pytest.mark.usefixtures("corpus", "bert", "offline", "low_thresholds")
def test_the_picture_of_the_run(typed: Callable[..., Result], here: Path, model: str) -> None:
    """Drawn from the saved file, sheet and card are those of the run, to the last dot, with their patterns."""
    run = ("-m", model, "--corpus", "corpus.txt")
    for heads in ((), ("--head", "1.2")):
        measured = typed("compare-heads", *run, *heads, "-o", "a.svg", "-o", "a.json")
        assert measured.status == 0
        again = typed("compare-heads", "--load", "a.json", *heads, "-o", "b.svg")
        assert (again.status, again.errors) == (0, "wrote b.svg\n")
        assert "Rows are queries" in words_of(here / "a.svg")
        assert (here / "a.svg").read_bytes() == (here / "b.svg").read_bytes()


def test_no_model_is_opened_for_what_was_saved(
    typed: Callable[..., Result], here: Path, corpus: Path, bert: Path, low_thresholds: None
) -> None:
    """The file has the attention on its examples, so the picture needs no model."""
    typed("compare-heads", "-m", bert.name, "--corpus", corpus.name, "-o", "a.svg", "-o", "a.json")
    shutil.rmtree(bert)
    again = typed("compare-heads", "--load", "a.json", "-o", "b.svg")
    assert (again.status, again.errors) == (0, "wrote b.svg\n")
    assert (here / "a.svg").read_bytes() == (here / "b.svg").read_bytes()


def refused(typed: Callable[..., Result], here: Path, *arguments: str) -> str:
    """Draw twice what is saved without patterns; why there are none, which is said once, and in the picture."""
    shown = typed("compare-heads", "--load", "a.json", *arguments, "-o", "b.svg", "-o", "c.svg")
    assert shown.status == 0
    line, *wrote = shown.errors.splitlines()
    assert wrote == ["wrote b.svg", "wrote c.svg"]
    assert line.startswith(NONE)
    words = words_of(here / "b.svg")
    assert "Rows are queries" not in words
    assert " ".join(f"patterns are not shown: {line.removeprefix(NONE)}".split()) in words
    return line.removeprefix(NONE)


@pytest.fixture
def measured(typed: Callable[..., Result], corpus: Path, bert: Path, low_thresholds: None) -> Path:
    """The pretrained model, whose comparison is saved without patterns, as those of very many heads are."""
    ran = typed("compare-heads", "-m", bert.name, "--corpus", corpus.name, "-o", "a.json")
    assert ran.status == 0, ran.errors
    replace(attnviz.load("a.json"), patterns={}).save("a.json")
    return bert


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", [None, "someone/their-bert", "/nowhere/bert", ""])
def test_no_model(
    typed: Callable[..., Result], here: Path, measured: Path, name: str | None
) -> None:
    """A model that is not there is not asked for at the hub; the picture is written without it."""
    shutil.rmtree(measured)
    if name is not None:
        with_model(here / "a.json", ModelSettings(model=name))
    why = refused(typed, here)
    assert why.endswith(" is not here, and no model is downloaded for a picture")
    if name is None:
        assert why.startswith("bert is not")


def test_other_weights(typed: Callable[..., Result], here: Path, measured: Path) -> None:
    """Trained on, if by a thousandth, it is another model, though it has its name, its words and its shape."""
    from safetensors.numpy import load_file, save_file

    path = measured / "model.safetensors"
    rng = np.random.default_rng(0)
    weights = {
        name: one + 1e-3 * rng.standard_normal(one.shape).astype(one.dtype)
        for name, one in load_file(path).items()
    }
    save_file(weights, path, {"format": "pt"})
    assert (
        refused(typed, here) == "here/bert is another model than was measured: its weights differ"
    )


def test_code_runs_for_who_lets_it(
    typed: Callable[..., Result], here: Path, measured: Path
) -> None:
    """A file that says that code may run lets none run: who types it does."""
    assert measured.is_dir()
    with_model(here / "a.json", ModelSettings(model="bert", trust_remote_code=True))
    assert (
        refused(typed, here)
        == "bert comes with code of its own, which runs only with trust_remote_code"
    )
    shown = typed("compare-heads", "--load", "a.json", "--trust-remote-code", "-o", "c.png")
    assert shown.errors == "wrote c.png\n"
