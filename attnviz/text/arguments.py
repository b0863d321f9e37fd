"""What a function, or a group of settings, is given: refused by its name where there is no such, or of another type.

What an argument may be is said once, by its annotation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, wraps
from inspect import Parameter, signature
from numbers import Real
from operator import index
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from attnviz.errors import SettingsError

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

OTHERWISE = {"palette": "cmap", "colormap": "cmap"}
"""What the command line or another library calls a setting of Python."""
SHORT = 60  # characters of a value that a message shows
EVERY = "**"  # stands for what a function that takes settings of any name takes
WORDS = {
    "bool": "True or False",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "PathLike": "a path",
    "Path": "a pathlib.Path",
    "slice": "a slice such as slice(0, 10)",
    "ndarray": "an array",
    "Callable": "a function",
    "Mapping": "a dictionary",
    "Attention": "a record, such as attend returns",
    "Result": "a result, such as attend returns",
    "Sequence": "a list",
    "Iterable": "a list",
    "Collection": "a list",
    "frozenset": "a list",
    "tuple": "a tuple",
    "Token": "a token",
}
"""Types, by name, as a message has them; what is not here has its name."""


def check_call(
    *groups: type, **more: type
) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """A function that refuses what it is given, before it does anything, by a `SettingsError` that names the argument.

    The fields of `groups` of settings are arguments, too, and what `more` names, with its type.
    """

    def decorate(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        @wraps(function)
        def call(*given: _Given.args, **named: _Given.kwargs) -> _Result:
            types = types_of(function, *groups) | more
            if EVERY not in types:
                check_settings(named, types, function.__name__)
            check_types({**dict(zip(types, given, strict=False)), **named}, types)
            return function(*given, **named)

        return call

    return decorate


def check_settings(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse a setting that is not among those known, by a `SettingsError`; `what` has them, such as "attend"."""
    known = [*known]
    for name in given:
        if name not in known:
            meant = OTHERWISE.get(name, name)
            raise SettingsError(f"{what} has no setting {name!r}{did_you_mean(meant, known)}")


def did_you_mean(typed: str, known: Iterable[str], shown: Iterable[str] | None = None) -> str:
    """The end of a message about a name that is not there: the nearest of those known, or else those to be shown.

    Such as ": did you mean heatmap?" or ": there are png, svg, pdf"; the size of letters does not matter.
    """
    import difflib

    names = {name.casefold(): name for name in reversed([*known])}
    meant = typed.strip().casefold()
    near = [meant] if meant in names else difflib.get_close_matches(meant, names, 1)
    if near:
        return f": did you mean {names[near[0]]}?"
    there = ", ".join(reversed(names.values()) if shown is None else shown)
    return f": there are {there}" if there else ""


def check_types(given: Mapping[str, object], types: Mapping[str, Any]) -> None:
    """Refuse an argument of another type than is wanted, by a `SettingsError`."""
    for name, value in given.items():
        wanted = types.get(name, Any)
        if not _fits(value, wanted):
            shown = repr(value)
            shown = shown if len(shown) <= SHORT and "\n" not in shown else type(value).__name__
            raise SettingsError(f"it must be {_words(wanted)}, not {shown}", name)


def bytes_of(memory: int | str) -> int:
    """A size of memory in bytes, which may be written as ``500MB`` or ``4GB``; a SettingsError, where it is no size."""
    typed = re.fullmatch(
        r"(\d{1,6}(?:\.\d{1,3})?) ?([KMGT])i?B?", str(memory).strip(), re.ASCII | re.IGNORECASE
    )
    if isinstance(memory, str) and typed is None:
        raise SettingsError(f"{memory!r} is no size such as 500MB or 4GB", "memory")
    return (
        int(memory)
        if typed is None
        else int(float(typed[1]) * 2 ** (10 * ("KMGT".index(typed[2].upper()) + 1)))
    )


@cache
def types_of(*takers: Callable[..., Any]) -> dict[str, Any]:
    """The type of each argument of a function, and of each field of groups of settings, by name, in their order."""
    types: dict[str, Any] = {}
    for taker in takers:
        hints = _hints(taker)
        for one in signature(taker).parameters.values():
            hint = hints.get(one.name, Any)
            if one.kind is not Parameter.VAR_KEYWORD:
                types[one.name] = hint
            elif get_origin(hint) is Unpack:
                types |= _hints(*get_args(hint))
            elif len(takers) == 1:
                types[EVERY] = Any
    return types


def _hints(taker: Callable[..., Any]) -> dict[str, Any]:
    """Its annotations; what stands in quotation marks in them, or is known to type checkers alone, may be anything."""
    names = vars(sys.modules[taker.__module__])
    unknown: dict[str, Any] = {name: Any for name, value in names.items() if isinstance(value, str)}
    while True:
        try:
            return get_type_hints(taker, localns=unknown, include_extras=True)
        except NameError as error:
            unknown[str(error.name)] = Any


def _fits(value: object, wanted: object) -> bool:
    """Whether a value is of a type."""
    origin, parts = _parts(wanted)
    is_flag = type(value).__name__ in {
        "bool",
        "bool_",
    }  # NumPy's too, which need not be loaded for it
    if origin is Annotated:
        found = _fits(value, parts[0])
    elif origin in {Union, UnionType}:
        found = any(_fits(value, part) for part in parts)
    elif origin is Literal:
        found = isinstance(value, tuple(map(type, parts)))
    elif origin is Any or not isinstance(origin, type):
        found = True
    elif is_flag or origin is bool:
        found = is_flag and origin in {bool, object}
    elif origin is int:
        found = _is_whole(value)
    elif origin is tuple and ... not in parts:
        found = (
            isinstance(value, tuple) and len(value) == len(parts) and all(map(_fits, value, parts))
        )
    else:
        kind: type = Real if origin is float else Iterable if origin is tuple else origin
        found = isinstance(value, kind) and _holds(value, origin, parts)
    return found


def _holds(value: Any, origin: type, parts: tuple[object, ...]) -> bool:
    """Whether what a value consists of is of its type; what can be gone through only once is left alone."""
    if not parts or not issubclass(origin, Iterable) or not isinstance(value, Collection):
        return True
    each = value.values() if isinstance(value, Mapping) and issubclass(origin, Mapping) else value
    of = parts[0] if origin is tuple else parts[-1]
    return not isinstance(value, str | bytes) and all(_fits(one, of) for one in each)


def _is_whole(value: Any) -> bool:
    try:
        index(value)
    except TypeError:
        return False
    return True


def _words(wanted: object) -> str:
    """A type in words, such as "a whole number or a list of texts"; one that is annotated has its own."""
    origin, parts = _parts(wanted)
    if origin is Annotated:
        return str(parts[1])
    if origin in {Union, UnionType}:
        return " or ".join(dict.fromkeys(_words(part) for part in parts if part is not NoneType))
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    words = WORDS.get(origin.__name__, f"of type {origin.__name__}")
    if words not in {"a list", "a tuple", "a dictionary"} or parts[-1:] in {(), (Any,)}:
        return words
    several = _words(parts[0] if origin is tuple else parts[-1]).removeprefix("a ").split(" or a ")
    return f"{words} of {' or '.join(re.sub('(?= of |$)', 's', one, count=1) for one in several)}"


def _parts(wanted: object) -> tuple[Any, tuple[Any, ...]]:
    return get_origin(wanted) or wanted, get_args(wanted)
