"""A home-built model trained by one call from Python, as the command line does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from safetensors.torch import load_file

from attnviz.errors import OutputError, SettingsError
from attnviz.models.training import files, measure
from attnviz.models.training.run import train

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(autouse=True)
def few_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure models of three steps on a few sentences."""
    whole = measure.quality
    monkeypatch.setattr(
        measure, "quality", lambda model, clauses=(None,): whole(model, n=5, clauses=clauses)
    )


def same(one: Path, other: Path) -> bool:
    """Whether two files hold the same weights to the last bit."""
    first, second = load_file(one), load_file(other)
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


@pytest.mark.parametrize("name", ["toy-decoder", "toy-seq2seq"])
def test_the_same_seed_gives_the_same_file(name: str, tmp_path: Path) -> None:
    """A seed gives the same weights to the last bit, and the file has the returned card."""
    one, other = tmp_path / "one.safetensors", tmp_path / "other.safetensors"
    steps: list[int] = []
    card = train(name, one, steps=3, progress=lambda step, _: steps.append(step))
    assert steps == [0, 1, 2]
    train(name, other, steps=3)
    assert same(one, other)
    assert files.load_card(one) == card


def test_the_callers_torch_stays_as_it_was(tmp_path: Path) -> None:
    """Threads, determinism and random numbers are the caller's."""
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    state = torch.get_rng_state()
    train("toy-decoder", tmp_path / "a.safetensors", steps=1)
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
    assert torch.equal(torch.get_rng_state(), state)


def test_refused(tmp_path: Path) -> None:
    """A name that is not there, a model that is not trained, no place for the file."""
    path = tmp_path / "a.safetensors"
    for name in ("toy-foo", "toy-random"):
        with pytest.raises(SettingsError, match=f"no model '{name}' to train: "):
            train(name, path)
    for place in ("a.pt", "/proc/a.safetensors"):
        with pytest.raises(OutputError):
            train("toy-decoder", tmp_path / place)
