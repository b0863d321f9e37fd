"""Messages in English and Korean.

English stands in the code, as `_("{n} heads").format(n=12)`; Korean in `locale/ko/LC_MESSAGES/attnviz.po`, which
`docs/contributing.md` says how to update. A message carries both, since a page shows one and turns to the other.
"""

from __future__ import annotations

import gettext
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from attnviz.errors import SelectionError

T = TypeVar("T")
LANGUAGES = ("en", "ko")
LOCALE = Path(__file__).parent.parent / "locale"


class Phrase(str):
    """A text in English that carries its Korean translation."""

    __slots__ = ("ko",)
    ko: str

    def __new__(cls, english: str, korean: str) -> Phrase:
        """Make a phrase from both languages."""
        phrase = super().__new__(cls, english)
        phrase.ko = korean
        return phrase

    def __reduce__(self) -> tuple[type[Phrase], tuple[str, str]]:
        """Copy and pickle with both languages; `str` would lose the Korean."""
        return Phrase, (str(self), self.ko)

    def format(self, *_: object, **values: object) -> Phrase:
        """Fill the placeholders; a value that is a phrase is inserted in the language of each text."""
        in_korean = {name: korean(value) for name, value in values.items()}
        texts = [self.format_map(values), self.ko.format_map(in_korean)]
        if "" in values.values():  # an empty value leaves no gap between two sentences
            texts = [" ".join(text.split()) for text in texts]
        return Phrase(*texts)


@cache
def _catalogue() -> gettext.NullTranslations:
    return gettext.translation("attnviz", LOCALE, ["ko"])


def _(message: str) -> Phrase:
    """Return a message with its translation."""
    return Phrase(message, _catalogue().gettext(message))


def pgettext(context: str, message: str) -> Phrase:
    """Return a message whose translation depends on the context."""
    return Phrase(message, _catalogue().pgettext(context, message))


def ngettext(singular: str, plural: str, n: int) -> Phrase:
    """Return the singular if n is 1, otherwise the plural, with its translation."""
    translated = _catalogue().ngettext(singular, plural, n)
    return Phrase(singular if n == 1 else plural, translated)


def join_phrases(texts: Iterable[str], between: str = " ") -> Phrase:
    """Join texts by a separator, in both languages."""
    shown = list(texts)
    return Phrase(between.join(shown), between.join(map(korean, shown)))


def korean(value: T) -> T:
    """Return a value with all phrases in it in Korean: a text, a tuple or list of texts, a dataclass."""
    translated: Any = value
    if isinstance(value, Phrase):
        translated = value.ko
    elif isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        translated = type(value)(map(korean, value))
    elif is_dataclass(value) and not isinstance(value, type):
        translated = replace(
            value, **{field.name: korean(getattr(value, field.name)) for field in fields(value)}
        )
    return translated  # type: ignore[no-any-return]  # of the type that came in


def in_language(text: str, language: str) -> str:
    """Return a text in one of `LANGUAGES`."""
    return korean(text) if language == "ko" else str(text)


def both(text: str) -> tuple[str, str]:
    """Return a text in English and in Korean, as a page has it."""
    return str(text), str(korean(text))


def expect_language(language: str) -> None:
    """Check the language. Raises SelectionError: it is unknown."""
    if not isinstance(language, str) or language not in LANGUAGES:
        raise SelectionError(
            f"there is no language {language!r}: choose one of {', '.join(LANGUAGES)}"
        )
