"""What was probably meant by a name that is not there."""

from __future__ import annotations

import pytest

from attnviz.text.names import did_you_mean


@pytest.mark.parametrize(
    ("typed", "end"),
    [
        ("heatmpa", ": did you mean heatmap?"),
        (" HEAD", ": did you mean head?"),
        ("x", ": there are head, heatmap, X-ray"),
        ("", ": there are head, heatmap, X-ray"),
        ("x-ray", ": did you mean X-ray?"),
    ],
)
def test_did_you_mean(typed: str, end: str) -> None:
    """The nearest name, whatever the size of its letters; all of them where none is near."""
    assert did_you_mean(typed, ["head", "heatmap", "X-ray"]) == end


def test_only_some_are_listed() -> None:
    """Of many names those are listed that tell most."""
    assert did_you_mean("x", ["offset_-1", "offset_1", "self"], ["offset", "self"]) == ": there are offset, self"
