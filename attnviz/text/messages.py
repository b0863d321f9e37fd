"""Messages in English and Korean, looked up where they are shown, in the language of `language`.

English stands in the code, as `_("{n} heads").format(n=12)`; Korean in `locale/ko/LC_MESSAGES/attnviz.po`, which
`docs/contributing.md` says how to update. A constant of a module is marked by `N_("...")` and looked up later by `_`,
because a module is read once, before anybody chose a language.
"""

from __future__ import annotations

import gettext
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NoReturn

from attnviz.errors import SelectionError
from attnviz.text.display import with_particles

LANGUAGES = ("en", "ko")
LOCALE = Path(__file__).parent.parent / "locale"

_current: ContextVar[str] = ContextVar("language", default="en")


@dataclass(frozen=True, slots=True)
class Message:
    """A text that is marked but not looked up yet."""

    english: str
    context: str = ""
    # what stands in its placeholders; messages among them are looked up with it
    values: Mapping[str, object] = field(default_factory=dict, hash=False)

    def format(self, **values: object) -> Message:
        """Return the message with the values that its placeholders will have."""
        return Message(self.english, self.context, values)

    def __str__(self) -> NoReturn:
        raise TypeError(f"look up {self.english!r} with _(...) before it is shown")

    def __format__(self, spec: str) -> NoReturn:
        self.__str__()


def N_(message: str) -> Message:  # noqa: N802 - the name that gettext's tools know
    """Mark a text that is looked up later."""
    return Message(message)


def NC_(context: str, message: str) -> Message:  # noqa: N802 - as `N_`
    """Mark a text whose translation depends on the context."""
    return Message(message, context)


def _(message: str | Message) -> str:
    """Return a text in the current language."""
    if isinstance(message, str):
        return _catalogue(_current.get()).gettext(message)
    found = pgettext(message.context, message.english) if message.context else _(message.english)
    values = {
        name: _(value) if isinstance(value, Message) else value
        for name, value in message.values.items()
    }
    return with_particles(found.format(**values)) if values else found


def pgettext(context: str, message: str) -> str:
    """Return a text whose translation depends on the context, in the current language."""
    return _catalogue(_current.get()).pgettext(context, message)


def ngettext(singular: str, plural: str, n: int) -> str:
    """Return the singular if n is 1, otherwise the plural, in the current language."""
    return _catalogue(_current.get()).ngettext(singular, plural, n)


@cache
def _catalogue(code: str) -> gettext.NullTranslations:
    if code == "en":
        return gettext.NullTranslations()
    return gettext.translation("attnviz", LOCALE, [code])


def current_language() -> str:
    """Return the language in which texts are looked up."""
    return _current.get()


@contextmanager
def language(code: str | None) -> Iterator[None]:
    """Look texts up in a language, one of `LANGUAGES`; None leaves it as it is.

    Raises SelectionError: the language is unknown.
    """
    if code is None:
        yield
        return
    if not isinstance(code, str) or code not in LANGUAGES:
        raise SelectionError(f"there is no language {code!r}: choose one of {', '.join(LANGUAGES)}")
    token = _current.set(code)
    try:
        yield
    finally:
        _current.reset(token)
