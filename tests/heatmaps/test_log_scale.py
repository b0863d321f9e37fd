"""A logarithmic colour scale: in the terminal, in pictures and on pages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from attnviz.attention import Attention, Token
from attnviz.render.palette import colours, levels
from attnviz.render.theme import LIGHT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result

TOKENS = tuple(Token(text=text, piece=text) for text in "abcd")


def record_of(rows: list[list[float]]) -> Attention:
    """A record of one head, whose rows may be short."""
    return Attention(
        weights=np.array(rows, dtype=np.float32)[None, None],
        query_tokens=TOKENS[: len(rows)],
        key_tokens=TOKENS,
        kind="encoder",
        model="by hand",
        short_rows=("masked",),
    )


def test_a_tenth_is_an_even_step() -> None:
    """From 0.0001 to 1, each power of ten is a quarter of the scale; 0 and everything below is at its beginning."""
    weights = np.array([0.0, 0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0])
    assert levels(weights, 1.0, log=True).tolist() == [0, 0, 0, 64, 128, 191, 255]


def test_in_the_terminal(typed: Callable[..., Result]) -> None:
    """The legend names both ends, and that it is logarithmic."""
    shown = typed("heatmap", "I love all you", "--toy", "--head", "1.2", "--scale", "log")
    assert shown.status == 0
    assert re.search(r"0\.01% to \d\d%, logarithmic", shown.output)


def test_zeros_are_blank(tmp_path: Path) -> None:
    """Zeros, a row of zeros, and a head of zeros, whose scale has no length."""
    for rows in ([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0, 0.0]]):
        matrix = np.array(rows)
        drawn = LIGHT.pixels(matrix, float(matrix.max()), colours(), log=True)
        assert (drawn[matrix == 0] == 255).all()
        for ending in ("png", "html"):
            record_of(rows).save(tmp_path / f"a.{ending}", scale="log")
