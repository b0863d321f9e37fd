"""Texts in two languages: English that carries the same in Korean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

T = TypeVar("T")
LANGUAGES = ("en", "ko")


class Phrase(str):
    """A text in English, which is the string itself, and in Korean; what is written over several lines is one line."""

    __slots__ = ("ko",)
    ko: str  # the text in Korean

    def __new__(cls, english: str, korean: str) -> Phrase:  # noqa: PYI034 - the tests' type checker knows no Self
        """Put the two together."""
        phrase = super().__new__(cls, " ".join(english.split()))
        phrase.ko = " ".join(korean.split())
        return phrase

    def __reduce__(self) -> tuple[type[Phrase], tuple[str, str]]:
        """What a copy is made of."""
        return Phrase, (str(self), self.ko)


def joined(phrases: Iterable[Phrase], between: str = " ", korean: str | None = None) -> Phrase:
    """Phrases one after the other, with this between them, or in Korean with something else."""
    shown = list(phrases)
    return Phrase(between.join(shown), (between if korean is None else korean).join(one.ko for one in shown))


def korean(value: T) -> T:
    """A value with all phrases in it in Korean: a text, a tuple or list of texts, a dataclass; others as they are."""
    translated: Any = value
    if isinstance(value, Phrase):
        translated = value.ko
    elif isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        translated = type(value)(map(korean, value))
    elif is_dataclass(value) and not isinstance(value, type):
        translated = replace(value, **{one.name: korean(getattr(value, one.name)) for one in fields(value)})
    return translated  # type: ignore[no-any-return]  # of the type that came in
