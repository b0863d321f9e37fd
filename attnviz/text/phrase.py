"""Texts in two languages: English that carries the same in Korean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from attnviz.text.messages import LANGUAGES, Phrase, expect_language, join_phrases, korean

__all__ = ["LANGUAGES", "Phrase", "Texts", "entries", "expect_language", "join_phrases", "korean"]


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
