"""Pictures as files: an ending is one entry of a table."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest

from attnviz.attention import Attention
from attnviz.heatmaps.figure import draw
from attnviz.render.figure.export import OPTIONS
from attnviz.render.sheet import resolve

Make = Callable[..., Attention]


def test_an_ending_is_one_entry(fixed_record: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A format that is added from outside is written, with what its entry says of the file."""
    monkeypatch.setitem(OPTIONS, ".eps", {"metadata": {"Creator": "attnviz, from outside"}})
    buffer = BytesIO()
    draw(resolve(fixed_record("a b"))).write(buffer, ".eps")
    assert buffer.getvalue().startswith(b"%!PS-Adobe")
    assert b"%%Creator: attnviz, from outside" in buffer.getvalue()


@pytest.mark.parametrize("suffix", OPTIONS)
def test_a_file_does_not_hold_when_it_was_made(fixed_record: Make, suffix: str) -> None:
    """The same picture is the same file, whenever it is written."""
    picture = draw(resolve(fixed_record("a b")))
    first, second = BytesIO(), BytesIO()
    picture.write(first, suffix)
    picture.write(second, suffix)
    assert first.getvalue() == second.getvalue()
