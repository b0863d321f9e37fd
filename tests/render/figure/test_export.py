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


@pytest.mark.parametrize("suffix", OPTIONS)
def test_a_file_does_not_hold_when_it_was_made(fixed_record: Make, suffix: str) -> None:
    """A picture is the same file, whenever it is written."""
    picture = draw(resolve(fixed_record("a b")))
    first, second = BytesIO(), BytesIO()
    picture.write(first, suffix)
    picture.write(second, suffix)
    assert first.getvalue() == second.getvalue()
