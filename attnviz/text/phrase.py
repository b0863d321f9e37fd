"""Texts in two languages: English that carries the same in Korean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from attnviz.errors import SelectionError

T = TypeVar("T")
LANGUAGES = ("en", "ko")


def expect_language(language: str) -> None:
    """Refuse a language that is not there. Raises SelectionError: it is none of `LANGUAGES`."""
    if not isinstance(language, str) or language not in LANGUAGES:
        raise SelectionError(
            f"there is no language {language!r}: choose one of {', '.join(LANGUAGES)}"
        )


class Phrase(str):
    """A text in English, which is the string itself, and in Korean; what is written over several lines is one line."""

    __slots__ = ("ko",)
    ko: str  # the text in Korean

    def __new__(cls, english: str, korean: str) -> Phrase:
        """Put the two together."""
        phrase = super().__new__(cls, " ".join(english.split()))
        phrase.ko = " ".join(korean.split())
        return phrase

    def __reduce__(self) -> tuple[type[Phrase], tuple[str, str]]:
        """What a copy is made of."""
        return Phrase, (str(self), self.ko)


def entries(table: str) -> Iterator[list[str]]:
    """The entries of a table of texts: each begins a line and goes on in lines further in, its parts between bars.

    White space is one space; a part that begins or ends with one stands in quotes. A line of ``#`` says what follows.
    """
    for entry in re.split(r"\n(?! )", table.strip()):
        if not entry.startswith("# "):
            yield [
                part.strip().removeprefix('"').removesuffix('"')
                for part in " ".join(entry.split()).split(" | ")
            ]


class Texts:
    """Phrases by name: a table of a name, English and Korean, each with places for values and for other phrases."""

    def __init__(
        self, table: str | Mapping[str, tuple[str, str]], constants: Mapping[str, object]
    ) -> None:
        """Take the texts of a module, whose constants may stand in any of them."""
        read = (
            table
            if isinstance(table, Mapping)
            else {name: (en, ko) for name, en, ko in entries(table)}
        )
        self.templates: Mapping[str, tuple[str, str]] = read
        self._constants = constants

    def filled(self, **values: object) -> Texts:
        """The same texts with these values in their places."""
        return Texts(self.templates, {**self._constants, **values})

    def __call__(self, name: str, /, **values: object) -> Phrase:
        """The text of this name with these in its places; a value that has a `ko` is shown as that in Korean.

        A phrase in place of a name is its own text.
        """
        if isinstance(name, Phrase):
            return name
        places = {**self._constants, **values}
        in_korean = {place: getattr(value, "ko", value) for place, value in places.items()}
        english, korean = self.templates[name]
        return Phrase(english.format_map(places), korean.format_map(in_korean))

    def names(self, name: str, /, **values: object) -> tuple[Phrase, ...]:
        """The same of a text that lists names between semicolons."""
        listed = self(name, **values)
        return tuple(
            Phrase(*pair) for pair in zip(listed.split("; "), listed.ko.split("; "), strict=True)
        )


def join_phrases(
    phrases: Iterable[Phrase], between: str = " ", korean: str | None = None
) -> Phrase:
    """Phrases one after the other, with this between them, or in Korean with something else."""
    shown = list(phrases)
    return Phrase(
        between.join(shown), (between if korean is None else korean).join(one.ko for one in shown)
    )


def korean(value: T) -> T:
    """A value with all phrases in it in Korean: a text, a tuple or list of texts, a dataclass; others as they are."""
    translated: Any = value
    if isinstance(value, Phrase):
        translated = value.ko
    elif isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        translated = type(value)(map(korean, value))
    elif is_dataclass(value) and not isinstance(value, type):
        translated = replace(
            value, **{one.name: korean(getattr(value, one.name)) for one in fields(value)}
        )
    return translated  # type: ignore[no-any-return]  # of the type that came in
