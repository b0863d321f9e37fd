"""A home-built model is one entry of a table, or one file that was trained: listed, loaded and drawn."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import attnviz
from attnviz.models.config import LanguageConfig, ToyConfig
from attnviz.models.language.vocabulary import load_vocabulary
from attnviz.models.registry import HOME_BUILT, HomeBuiltModel
from attnviz.models.training.files import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result


def test_an_entry_from_outside(
    typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one entry every command knows the model."""
    wide = HomeBuiltModel(
        name="wide",
        architecture="random",
        about="one layer of three wide heads",
        config=ToyConfig(d_model=24, n_heads=3, n_layers=1),
    )
    monkeypatch.setitem(HOME_BUILT, "wide", wide)
    listed = typed("models").output
    assert "\nwide: one layer of three wide heads\n" in listed
    record = attnviz.attend("I love you", model="wide")
    assert (record.model, record.weights.shape) == ("wide (seed 0)", (1, 3, 3, 3))
    result = typed("heatmap", "-m", "wide:seed=3", "I love you")
    assert (result.status, result.errors) == (
        0,
        "wrote outputs/heatmap-i-love-you-wide-seed-3.png\n",
    )


def test_sizes_are_those_of_the_vocabularies() -> None:
    """Each number of words in the table is that of its list of words."""
    for model in HOME_BUILT.values():
        if isinstance(model.config, LanguageConfig):
            assert model.config.n_words == len(load_vocabulary(model.config.language))
        elif not isinstance(model.config, ToyConfig):
            assert model.config.n_source_words == len(load_vocabulary("source"))
            assert model.config.n_target_words == len(load_vocabulary("target"))


@pytest.fixture
def trained(here: Path) -> Path:
    """A file as ``attnviz train`` writes it."""
    shutil.copy(FOLDER / "toy.safetensors", here / "mine.safetensors")
    return here / "mine.safetensors"


def test_a_file_of_weights(typed: Callable[..., Result], trained: Path) -> None:
    """A trained file works by its path in every command and in Python, and is listed."""
    name = f"./{trained.name}"
    for arguments in (
        ("heatmap", "I love you"),
        ("walkthrough", "I love you"),
        ("compare-heads", "I love you"),
    ):
        result = typed(*arguments, "-m", name, "-o", "a.json")
        assert (result.status, "mine.safetensors" in result.output) == (0, True)
    record = attnviz.attend("I love you", model=trained)
    assert np.array_equal(record.weights, attnviz.attend("I love you", model="toy").weights)
    attnviz.attend("I love you", model="toy").save(trained.with_name("record.safetensors"))
    listed = typed("models").output.partition("Trained here:\n")[2]
    assert "\nmine.safetensors: " in listed
    assert "record" not in listed


def test_a_file_that_is_none(
    refused: Callable[..., tuple[int, str]], here: Path, trained: Path
) -> None:
    """A record, a file of another version, and one that is not there: one clear line each."""
    assert refused("heatmap", "I", "-m", "./no.safetensors") == (
        1,
        "attnviz: there is no file ./no.safetensors",
    )
    attnviz.attend("I", model="toy").save(here / "record.safetensors")
    status, line = refused("heatmap", "I", "-m", "record.safetensors")
    assert (status, line) == (
        1,
        "attnviz: record.safetensors holds no model of attnviz, as attnviz train writes one",
    )
    with safe_open(trained, framework="np") as file:
        card = json.loads(file.metadata()["card"])
        weights = {one: file.get_tensor(one) for one in file.keys()}  # noqa: SIM118 - it is no dictionary
    card["config"]["rotary"] = True
    save_file(weights, trained, {"card": json.dumps(card)})
    status, line = refused("heatmap", "I", "-m", str(trained.name))
    assert status == 1
    assert (
        "mine.safetensors holds no model of attnviz that this version reads: train it again" in line
    )
