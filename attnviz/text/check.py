"""What no model can read."""

from __future__ import annotations

from attnviz.errors import InputError


def check_text(text: str, what: str = "the text") -> None:
    """Refuse a text that no model can read.

    Raises:
        InputError: it is empty, only spaces, or holds half a character.
    """
    if not text.strip():
        raise InputError(f"{what} is empty" + (" (only spaces)" if text else ""))
    for index, character in enumerate(text):
        if "\ud800" <= character <= "\udfff":
            raise InputError(
                f"{what} is not valid Unicode: character {index + 1} is a lone surrogate (\\u{ord(character):04x})"
            )
