"""``attnviz models``: what is listed, and how good it is said to be."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.models.language.vocabulary import SPECIAL
from attnviz.models.registry import RANDOM, names, trained
from attnviz.models.training import files, measure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result


def test_list(typed: Callable[..., Result]) -> None:
    """Each home-built model, what it learned, and each figure on its card."""
    result = typed("models", columns=200)
    assert result.status == 0
    heads = [
        line.partition(":")[0] for line in result.output.splitlines() if line.startswith("toy")
    ]
    assert heads == list(names())
    assert not re.search(r"\bto (say|speak)\b", result.output)  # models predict and generate
    for name in set(names()) & set(trained()):
        card = files.load_card(files.FOLDER / f"{name}.safetensors")
        assert f"{name}: {card.plan.learns}\n" in result.output
        for line in measure.quality_lines(card.quality):
            assert f"  {line}\n" in result.output


def test_cache(
    typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A model that is whole in the cache is named, one that is not is left out."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    assert typed("models").output.endswith("In the cache of pretrained models: none\n")
    for name in ("some--body", "half"):
        (tmp_path / f"models--{name}").mkdir()
    monkeypatch.setattr("attnviz.capture.source.is_cached", lambda name: name == "some/body")
    assert typed("models").output.endswith("In the cache of pretrained models:\n  some/body\n")


def test_from_python(here: Path) -> None:
    """`list_models` returns names and cards, and models that were trained here."""
    (here / "outputs").mkdir()
    shutil.copy(files.FOLDER / "toy-decoder.safetensors", here / "outputs" / "mine.safetensors")
    (here / "record.safetensors").write_bytes(b"no model")
    listed = {model.name: model for model in attnviz.list_models()}
    assert [*listed] == [*names(), "outputs/mine.safetensors"]
    assert {name for name, model in listed.items() if model.card is None} == {*names()} - {
        *trained()
    }
    assert listed["outputs/mine.safetensors"].card == listed["toy-decoder"].card


def test_measured_again(typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    """With --measure the figures are new ones, not those on the card."""
    monkeypatch.setattr(
        measure,
        "quality",
        lambda model: {"cross-entropy, nats per word": float(sum(1 for _ in model.parameters()))},
    )
    result = typed("models", "--measure")
    assert result.status == 0
    for name in set(names()) & set(trained()):
        _, model = files.load_home_built(name)
        assert (
            f"  cross-entropy, nats per word: {sum(1 for _ in model.parameters()):.3f}\n"
            in result.output
        )


def test_words_of_a_model(typed: Callable[..., Result]) -> None:
    """All that it knows, in lines of a terminal, particles with a dot; of one that reads any word they are no list."""
    for name, some in (("toy", "mat"), ("toy-ko", "·에서"), ("toy-seq2seq", "사과를")):
        card = files.load_card(files.FOLDER / f"{name}.safetensors")
        result = typed("models", name)
        lines = [line for line in result.output.splitlines() if not line.endswith(" words:")]
        listed = " ".join(lines).split()
        assert (result.status, some in listed) == (0, True)
        target = () if card.target is None else card.target.words[len(SPECIAL) :]
        assert len(listed) == len(card.source.words[len(SPECIAL) :]) + len(target)
    for name, why in (
        (RANDOM, "it reads any words"),
        ("quokka", "cannot list the words of quokka: it is not one of the trained models"),
    ):
        refused = typed("models", name)
        assert (refused.status, why in refused.output + refused.errors) == (1, True)
