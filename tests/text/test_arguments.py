"""What functions and groups of settings are given: what is of another type is refused by its name, wherever it is."""

from __future__ import annotations

import inspect
import re
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from torch import nn

import attnviz as installed
from attnviz.cli import COMMANDS
from attnviz.cli.groups import groups_of
from attnviz.errors import AttnvizError, SettingsError
from attnviz.settings import PageSettings
from attnviz.storage.formats import CHANGES, COMPARISON, RECORD, STORY, WALKTHROUGH, Formats
from attnviz.text.arguments import EVERY, did_you_mean, types_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.attention import Attention

pytestmark = pytest.mark.usefixtures("as_installed")

library: Any = installed  # as Python has it, which checks no types
settings: Any = PageSettings  # likewise
WRONG: Any = object()  # of no type that anything takes
FUNCTIONS = [name for name in library.__all__ if inspect.isfunction(getattr(library, name))]
OTHERS = {"model", "tokenizer", "before", "after", "module", "attention", "ax", "cmap", "result"}
"""Arguments of types that other libraries have: where they are used they are refused, by an error of attnviz."""
GROUPS = {group for command, _ in COMMANDS.values() for group in groups_of(command).values()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_of_every_function(name: str) -> None:
    """It is refused by its name, before anything is done: no other argument is needed for that."""
    function: Callable[..., object] = getattr(library, name)
    arguments = types_of(function).keys() - {EVERY}
    assert arguments
    for one in arguments - OTHERS:
        with pytest.raises(
            SettingsError, match=f"^Invalid value for '{one}': it must be .*, not <object object at"
        ):
            function(**{one: WRONG})


@pytest.mark.parametrize(
    "call",
    [
        lambda: library.attend("I", WRONG),
        lambda: library.attend("I", "toy", WRONG),
        lambda: library.compare_heads("I", WRONG),
        lambda: library.compare_models("toy", WRONG, "I"),
        lambda: library.compare_models(WRONG, "toy", "I"),
        lambda: library.watch(WRONG),
        lambda: library.heatmap(WRONG),
        lambda: library.heatmap(np.eye(2), ax=WRONG),
        lambda: library.heatmap(np.eye(2), cmap=WRONG),
        lambda: library.page(WRONG),
    ],
)
def test_what_other_libraries_have(call: Callable[[], object]) -> None:
    """A model, a tokenizer, axes, a colormap: what is none is refused, too."""
    with pytest.raises(
        AttnvizError, match=r"object|a tokenizer goes with a model that is in memory"
    ):
        call()


@pytest.fixture(scope="module")
def record() -> Attention:
    """A record."""
    return installed.attend("I love you", "toy")


@pytest.fixture(scope="module")
def results(record: Attention) -> dict[int, Any]:
    """A result of each kind, by its formats."""
    heads = library.compare_heads("I love you", "toy")
    return {
        id(RECORD): record,
        id(WALKTHROUGH): library.walkthrough(example="seq2seq"),
        id(COMPARISON): heads,
        id(CHANGES): library.compare_models("toy", "toy", "I love you"),
        id(STORY): library.tell("library"),
    }


@pytest.mark.parametrize(
    "formats", [RECORD, WALKTHROUGH, COMPARISON, CHANGES, STORY], ids=lambda one: one.what
)
def test_everything_that_can_be_said_of_a_file(formats: Formats, results: dict[int, Any]) -> None:
    """How a result is shown is refused by an error of attnviz, whatever is drawn or written."""
    for ending, one in formats.items():
        for name in one.names:
            with pytest.raises(AttnvizError, match="object"):
                formats.make(ending, results[id(formats)], **{name: WRONG})


@pytest.mark.parametrize("group", sorted(GROUPS, key=str), ids=lambda one: one.__name__)
def test_every_field_of_every_group(group: type) -> None:
    """As an argument is."""
    needed = {
        one.name: Path("a.stats") if types_of(group)[one.name] is Path else "1.2"
        for one in fields(group)
        if one.default is MISSING
    }
    for one in fields(group):
        with pytest.raises(
            SettingsError,
            match=f"^Invalid value for '{one.name}': it must be .*, not <object object",
        ):
            group(**(needed | {one.name: WRONG}))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda record, _: library.heatmap(record, width=3.3),
            "it must be a length such as 3.3in or 8cm, not 3.3",
        ),
        (
            lambda record, path: record.save(path / "a.png", dpi=99.5),
            "'dpi': it must be a whole number, not 99.5",
        ),
        (lambda record, _: library.page(record, lang=1), "'lang': it must be a text, not 1"),
        (
            lambda _, path: library.save(None, path / "a.png"),
            "'result': it must be a result, such as attend returns",
        ),
        (
            lambda _, path: library.save(np.eye(3), path / "a.png"),
            "'result': it must be a result, such as attend",
        ),
        (
            lambda *_: library.merge_words(np.eye(2)),
            "'record': it must be a record, such as attend returns, not",
        ),
        (
            lambda *_: library.hide_special("x"),
            "'record': it must be a record, such as attend returns, not 'x'",
        ),
        (
            lambda _, path: library.train("toy", path / "a.safetensors", steps=1.5),
            "'steps': it must be a whole number",
        ),
        (
            lambda _, path: library.train("toy", path / "a.safetensors", seed="x"),
            "'seed': it must be a whole number",
        ),
        (
            lambda *_: library.attend("I", layers=True),
            "'layers': it must be a list of whole numbers, not True",
        ),
        (
            lambda *_: library.attend("I", memory="much"),
            "'memory': 'much' is no size such as 500MB or 4GB",
        ),
        (
            lambda *_: library.attend("I", truncate="no"),
            "'truncate': it must be True or False, not 'no'",
        ),
        (
            lambda *_: library.walkthrough(example="seq2seq").figure(blanks=7),
            "be a list of tuples of texts, not 7",
        ),
        (
            lambda *_: library.walkthrough(example="seq2seq").blanks("1"),
            "'seed': it must be a whole number, not '1'",
        ),
        (
            lambda *_: library.watch(nn.Linear(1, 1)).attention(tokens=7),
            "it must be a list of texts or tokens, not 7",
        ),
        (lambda record, _: record.page().save(7), "'path': it must be a text or a path, not 7"),
        (lambda record, _: record.links(0, 0, n="3"), "'n': it must be a whole number, not '3'"),
        (
            lambda record, _: record.pattern(0.5, 0),
            "'layer': it must be a whole number or a text, not 0.5",
        ),
        (
            lambda *_: library.compare_heads(thresholds={"self": "1"}),
            "it must be a dictionary of numbers, not {'self'",
        ),
        (
            lambda *_: library.heatmap_all(["I"], "a.pdf", choose={"layers": 1}),
            "'layers': it must be a list of whole",
        ),
        (
            lambda *_: library.heatmap_all(["I"], "a.pdf", choose={"layer": 1}),
            "did you mean layers",
        ),
        (lambda *_: settings(transparent=1), "'transparent': it must be True or False, not 1"),
    ],
)
def test_what_is_wanted_is_said(call: Any, message: str, record: Attention, tmp_path: Path) -> None:
    """The argument, what it must be, and what was given."""
    with pytest.raises(SettingsError, match=re.escape(message)):
        call(record, tmp_path)


def test_what_is_as_good() -> None:
    """Numbers of NumPy, lists for tuples, and a size of memory as it is typed."""
    record = library.attend(
        "I love you", "toy", layers=np.array([0]), heads=["0.1"], memory="1GB", truncate=np.True_
    )
    assert record == library.attend(
        "I love you", "toy", layers=(0,), heads=[np.int64(1)], memory=2**30
    )
    assert settings(dpi=np.int64(100)) == settings(dpi=100)


@pytest.mark.parametrize(
    ("typed", "end"),
    [
        ("heatmpa", ": did you mean heatmap?"),
        (" HEAD", ": did you mean head?"),
        ("x", ": there are head, heatmap, X-ray"),
        ("", ": there are head, heatmap, X-ray"),
        ("x-ray", ": did you mean X-ray?"),
    ],
)
def test_did_you_mean(typed: str, end: str) -> None:
    """The nearest name, whatever the size of its letters; all of them where none is near."""
    assert did_you_mean(typed, ["head", "heatmap", "X-ray"]) == end


def test_only_some_are_listed() -> None:
    """Of many names those are listed that tell most."""
    assert (
        did_you_mean("x", ["offset_-1", "offset_1", "self"], ["offset", "self"])
        == ": there are offset, self"
    )
