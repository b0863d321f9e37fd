"""``attnviz train``: weights that are made again, and what is refused."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
import torch

from attnviz.models.training import files, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.fixtures.command_line import Result


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Settings that the command changes for its own process are restored."""
    handler, threads = signal.getsignal(signal.SIGINT), torch.get_num_threads()
    # who starts tests in the background ignores Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(mode=False)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("no-such", "there is no model 'no-such' to train: there are toy, toy-decoder, toy-ko"),
        ("", "Missing argument 'NAME'"),
        ("toy --steps 0", "'--steps': Input should be greater than or equal to 1"),
        ("toy --seed -1", "'--seed': Input should be greater than or equal to 0"),
        ("toy -o weights.pt", "the ending must be one of safetensors"),
    ],
)
def test_misused(refused: Callable[..., tuple[int, str]], arguments: str, told: str) -> None:
    """Status 2 and one line, before anything is trained or written."""
    status, line = refused("train", *arguments.split())
    assert status == 2
    assert told in line


def test_trains(typed: Callable[..., Result], here: Path) -> None:
    """Three steps to a whole file: quality on standard output, the rest on standard error; nothing else stays."""
    (here / "new").mkdir()
    result = typed("train", "toy-decoder", "--steps", "3", "--seed", "2", "-o", "new/x.safetensors")
    assert result.status == 0, result.errors
    assert result.errors.endswith("wrote new/x.safetensors\n")
    assert [path.name for path in (here / "new").iterdir()] == ["x.safetensors"]
    card, _ = files.load(here / "new" / "x.safetensors")
    assert (card.name, card.plan.recipe.steps, card.plan.recipe.seed) == ("toy-decoder", 3, 2)
    assert result.output == "".join(f"{line}\n" for line in measure.quality_lines(card.quality))
    assert result.output.startswith("cross-entropy, nats per word: ")
