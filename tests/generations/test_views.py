"""A generation as it is shown: in a terminal, as files."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console

import attnviz
from attnviz.generations.terminal import StepLog
from attnviz.render.terminal.screen import Screen
from attnviz.text.messages import language

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.attention import Attention
    from attnviz.generations.record import Step
    from tests.fixtures.command_line import Result


@pytest.fixture(scope="module")
def made() -> list[tuple[Attention, list[Step]]]:
    """The records that two home-built models generate, and their steps."""
    generated = []
    for name in ("toy-decoder", "toy-seq2seq"):
        steps: list[Step] = []
        generated.append((attnviz.generate("The big animal", name, on_step=steps.append), steps))
    return generated


@pytest.mark.parametrize("width", [60, 80, 120])
def test_views(
    made: list[tuple[Attention, list[Step]]], golden: Callable[[str], None], width: int
) -> None:
    """The lines fit the screen; in Korean on the widest."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    log = StepLog(console, Screen(width=width, colour=False))
    with language("ko" if width == 120 else "en"):
        for record, steps in made:
            for step in steps:
                log.show(step)
            log.end(record)
    shown = [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert max(map(cell_len, shown)) <= width
    golden("\n".join(shown) + "\n")


def test_as_files(typed: Callable[..., Result], here: Path) -> None:
    """A line a token; the record, its picture and its page; the record is loaded and drawn again."""
    options = "--head 2.1 -o a.npz -o a.png -o a.html --lang ko"
    result = typed("generate", "I love", *options.split())
    assert result.status == 0
    assert len([line for line in result.output.splitlines() if line.lstrip()[:1].isdigit()]) == 4
    assert (here / "a.html").stat().st_size > 0
    record = attnviz.load(here / "a.npz")
    assert isinstance(record, attnviz.Attention)
    np.testing.assert_array_equal(
        record.weights, attnviz.generate("I love", layers=[2], heads=[1]).weights
    )
    assert typed("heatmap", "--load", "a.npz", "-o", "b.png").status == 0
    assert typed("generate", "I love", "--max-new-tokens", "0").status == 2
    assert typed("generate", "I love", "-m", "toy").status == 1
    assert typed("generate", "I love", "--top-k", "3").status == 2
