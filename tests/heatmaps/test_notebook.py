"""A record in a notebook shows itself: as a picture where there is room for one, and as a line of text."""

from __future__ import annotations

from collections.abc import Callable

from IPython.core.formatters import DisplayFormatter

from attnviz.attention import Attention

Make = Callable[..., Attention]


def shown(record: Attention) -> dict[str, bytes | str]:
    """The forms of a record that IPython shows, by media type."""
    data, _ = DisplayFormatter().format(record)  # type: ignore[no-untyped-call]
    assert isinstance(data, dict)
    return data


def test_a_record_is_a_picture_and_a_line(fixed_record: Make) -> None:
    """IPython gets a page (not of a long one), a PNG, and the record's repr for where no picture can be shown."""
    record = fixed_record("나는 너희 모두를 사랑해", n_layers=2, n_heads=3)
    data = shown(record)
    assert set(data) == {"text/html", "image/png", "text/plain"}
    assert str(data["text/html"]).startswith("<iframe sandbox=")
    assert set(shown(fixed_record("w " * 280, n_layers=1, n_heads=7))) == {
        "image/png",
        "text/plain",
    }
    assert data["image/png"][:8] == b"\x89PNG\r\n\x1a\n"
    assert data["text/plain"] == repr(record)
    assert "2 layers x 3 heads" in str(data["text/plain"])
    assert "verified" in str(data["text/plain"])
