"""Trained models as files: weights, and a card that tells all about them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from attnviz.errors import FileFormatError
from attnviz.models.language.vocabulary import load_vocabulary
from attnviz.models.registry import is_random, names, trained
from attnviz.models.training import files
from attnviz.models.training.files import ModelCard, new_model
from tests.models.training.conftest import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.models.registry import TrainingPlan


@pytest.fixture
def written(
    plan: Callable[..., TrainingPlan], tmp_path: Path
) -> Callable[[str], tuple[Path, ModelCard, Any]]:
    """A model of a kind in a file, its card, and the model itself."""

    def write(kind: str) -> tuple[Path, ModelCard, Any]:
        path, model = tmp_path / f"{kind}.safetensors", new_model(plan(kind))
        model.half().float()  # as the file holds it
        translates = kind in {"recurrent", "translation"}
        card = ModelCard(
            name=f"tiny-{kind}",
            plan=plan(kind, seed=5),
            source=load_vocabulary("source" if translates else "english"),
            target=load_vocabulary("target") if translates else None,
            quality={"words translated correctly": 0.125, "layer": 1},
        )
        files.save(path, card, model)
        return path, card, model

    return write


@pytest.mark.parametrize("kind", KINDS)
def test_everything_comes_back(
    written: Callable[[str], tuple[Path, ModelCard, Any]], kind: str
) -> None:
    """Weights to the last bit of half precision; name, sizes, recipe, words and quality."""
    path, card, model = written(kind)
    found, loaded = files.load(path)
    assert found == card == files.load_card(path)
    assert type(loaded) is type(model)
    assert not loaded.training
    assert loaded.state_dict().keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor)


class TestRefused:
    """Files that hold no model of attnviz."""

    def test_foreign(self, tmp_path: Path) -> None:
        """Tensors without a card, with another's card, and files that are something else."""
        path = tmp_path / "foreign.safetensors"
        for told in (
            None,
            {"format": "pt"},
            *({"card": card} for card in ("{", "null", "[]", "{}")),
        ):
            save_file({"weight": torch.zeros(2, 3)}, path, told)
            with pytest.raises(FileFormatError, match=r"^\S+/foreign\.safetensors holds no model"):
                files.load(path)
        for raw in (b"", b"PK\x03\x04", b"\x80\x04}"):
            path.write_bytes(raw)
            with pytest.raises(FileFormatError, match="holds no model of attnviz"):
                files.load_card(path)
        with pytest.raises(FileFormatError, match="holds no model of attnviz"):
            files.load(tmp_path / "none.safetensors")

    def test_a_pickle(self, tmp_path: Path) -> None:
        """A file that torch would unpickle is refused, and none of its code runs."""
        path, ran = tmp_path / "wicked.safetensors", tmp_path / "ran"

        class Wicked:
            def __reduce__(self) -> tuple[Any, Any]:
                return shutil.copy, (str(path), str(ran))

        torch.save({"weight": Wicked()}, path)
        with pytest.raises(FileFormatError, match="holds no model of attnviz"):
            files.load(path)
        assert not ran.exists()

    @pytest.mark.parametrize(
        "change", ["missing", "more", "shape", "kind", "size", "word", "unknown", "words"]
    )
    def test_weights_that_are_not_the_cards(
        self, written: Callable[[str], tuple[Path, ModelCard, Any]], change: str
    ) -> None:
        """Weights and card must fit each other."""
        path, _, model = written("decoder")
        with safe_open(path, framework="pt") as file:
            told = json.loads(file.metadata()["card"])
        weights = dict(model.state_dict())
        if change == "missing":
            weights.popitem()
        elif change == "more":
            weights["more"] = torch.zeros(2)
        elif change == "shape":
            weights["word_projection.bias"] = torch.zeros(2)
        elif change == "kind":
            told["kind"] = "encoder"
        elif change == "size":
            told["config"]["n_layers"] = 1
        elif change == "unknown":  # no word for those that the model does not know
            told["source"][1] = "a"
        elif change == "words":
            told["source"].pop()
        else:
            told["config"]["colour"] = "red"
        save_file(weights, path, {"card": json.dumps(told)})
        with pytest.raises(FileFormatError, match="holds no model of attnviz") as raised:
            files.load(path)
        assert "\n" not in str(raised.value)


def test_each_model_of_the_table_has_its_file() -> None:
    """Every trained model has one, and nothing else lies there."""
    assert {path.stem for path in files.FOLDER.iterdir()} == set(trained())
    assert set(names()) - set(trained()) == {name for name in names() if is_random(name)}
