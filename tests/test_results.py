"""``attnviz.save`` and ``attnviz.load``: results of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.errors import FileFormatError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.attention import Attention


def test_a_record(make_record: Callable[..., Attention], tmp_path: Path) -> None:
    """A record comes back as it was."""
    record = make_record()
    assert attnviz.load(attnviz.save(record, tmp_path / "a.json")) == record


def test_a_comparison(tmp_path: Path) -> None:
    """What was measured of heads comes back with the same numbers."""
    compared = attnviz.compare_heads(["I love you", "You love me"], model="toy-random")
    again = attnviz.load(attnviz.save(compared, tmp_path / "a.stats"))
    assert isinstance(again, attnviz.HeadComparison)
    assert again.to_frame().equals(compared.to_frame())


@pytest.mark.parametrize("text", ["", "[1, 2]", "{}", '{"format": "attnviz walkthrough"}', "[" * 100_000])
def test_what_is_none_of_them(text: str, tmp_path: Path) -> None:
    """A file that holds something else is refused in one line."""
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(FileFormatError) as error:
        attnviz.load(path)
    assert "\n" not in str(error.value)
