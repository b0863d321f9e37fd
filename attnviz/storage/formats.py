"""Formats of files: what each result can be written as, by its ending; a format is one entry here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from attnviz.errors import FileFormatError, RecordError
from attnviz.storage.files import check_ending, listed, write_whole
from attnviz.text.arguments import check_call, check_settings, check_types, types_of
from attnviz.text.display import visible
from attnviz.text.phrase import expect_language

PICTURES = (".png", ".svg", ".pdf")
PAGE = ".html"

Content = str | bytes | Callable[[Path], str | None]
"""Of a file: its text, its bytes, or what fills it and returns the characters in it that no font has."""


@dataclass(frozen=True, slots=True)
class Format:
    """What makes a file of a result.

    A function is named as ``module:function``, and is imported when it is needed: a result knows nothing of what draws
    and writes it.
    """

    make: (
        str | Callable[..., Any]
    )  # of the result, and of how it is shown, the content or what has a `content`
    look: tuple[str, ...] = ()  # what can be said of how it is shown: the names of its arguments
    group: str = ""  # of `attnviz.settings`: its fields are arguments, too
    read: str | Callable[[Path], Any] = ""  # of a file at a path the result again

    @property
    def names(self) -> tuple[str, ...]:
        """All that can be said of how the result is shown."""
        if not self.group:
            return self.look
        group: Any = imported(f"attnviz.settings:{self.group}")
        return (*self.look, *(field.name for field in fields(group)))


class Formats(dict[str, Format]):
    """The formats of one kind of result, by ending."""

    def __init__(self, what: str, formats: Iterable[tuple[Iterable[str], Format]]) -> None:
        """Take formats, each with its endings; `what` is such as "a record is"."""
        super().__init__((ending, one) for endings, one in formats for ending in endings)
        self.what = what

    @property
    def read(self) -> list[str]:
        """The endings that it is read from again."""
        return [ending for ending, one in self.items() if one.read]

    def make(self, ending: str, result: object, **look: Any) -> Any:
        """What makes a file of this ending makes: a picture, a page.

        Raises SelectionError: no such language; SettingsError: another setting.
        """
        make = imported(self[ending].make)
        check_types(look, types_of(make))
        if look.get("lang") is not None:
            expect_language(look["lang"])
        check_settings(look, self[ending].names, f"{self.what.rpartition(' ')[0]} as {ending}")
        return make(result, **look)

    def content(self, path: Path, result: object, look: Mapping[str, Any]) -> Content:
        """What the file at this path is to hold; of the `look` it takes what can be said of such a file.

        Raises OutputError: another ending; RecordError: a text holds half a character.
        """
        ending = check_ending(path, self, self.what)
        made = self.make(
            ending, result, **{name: look[name] for name in self[ending].names if name in look}
        )
        # a picture fills a file, a page is its HTML, all else is the content itself
        content: Content = getattr(made, "fill", getattr(made, "html", made))
        if not isinstance(content, str):
            return content
        try:
            return content.encode() if content.endswith("\n") else f"{content}\n".encode()
        except UnicodeEncodeError as error:
            raise RecordError(f"{visible(path.name)} cannot be written: {error}") from None

    @check_call()
    def save(self, path: str | os.PathLike[str], result: object, **look: Any) -> Path:
        """Write a result, whole or not at all.

        Raises as `content`; SettingsError: of such a file that cannot be said; OutputError: it cannot be written.
        """
        path = Path(path)
        ending = check_ending(path, self, self.what)
        check_settings(look, self[ending].names, f"{self.what.rpartition(' ')[0]} as {ending}")
        return write_whole(path, self.content(path, result, look))

    @check_call()
    def load(self, path: str | os.PathLike[str]) -> Any:
        """The result in a file. Raises FileFormatError: nothing is read from such a file, or it cannot be read."""
        path = Path(path)
        if (ending := path.suffix.lower()) not in self.read:
            other = ", which attnviz compare-heads reads" * (ending in COMPARISON.read)
            raise FileFormatError(
                visible(f"{path}: {self.what} read from {listed(self.read)}, not {ending!r}{other}")
            )
        return imported(self[ending].read)(path)


def imported(function: str | Callable[..., Any]) -> Callable[..., Any]:
    """A function, or what is named as ``module:function``."""
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(import_module(module), name)
    return found


_HEADS_PICTURE = (
    PICTURES,
    Format("attnviz.heads.api:draw", ("head", "examples", "lang"), "PageSettings"),
)
COMPARISON = Formats(
    "a comparison is",
    [
        _HEADS_PICTURE,
        ([".csv"], Format("attnviz.heads.tables:to_csv")),
        ([".json"], Format("attnviz.heads.tables:to_json")),
        ([PAGE], Format("attnviz.heads.html:page", ("lang",))),
        ([".stats"], Format("attnviz.heads.api:stats", read="attnviz.heads.api:compare_heads")),
    ],
)
