"""Texts that no model can read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.errors import InputError
from attnviz.text.check import check_text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the text is empty"),
        (" ", "the text is empty (only spaces)"),
        ("\u00a0\u3000\r\n\t", "the text is empty (only spaces)"),
        ("\ud800", r"the text is not valid Unicode: character 1 is a lone surrogate (\ud800)"),
        ("나는 \udcff", r"the text is not valid Unicode: character 4 is a lone surrogate (\udcff)"),
    ],
)
def test_refused(text: str, said: str) -> None:
    """Each refusal says in one line what is wrong, and where."""
    with pytest.raises(InputError, match=f"^{re.escape(said)}$"):
        check_text(text)


def test_what_it_is_called() -> None:
    """Whose text it is can be said."""
    with pytest.raises(InputError, match=r"^the second sentence is empty$"):
        check_text("", "the second sentence")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip))
def test_all_else_passes(text: str) -> None:
    """Any other text is for the model to read; it can be encoded."""
    check_text(text)
    assert text.encode()
