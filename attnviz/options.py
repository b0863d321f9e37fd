"""How a setting is described: its default, its names, its help; and what those tell that are not as usual."""

from __future__ import annotations

import math
import os
from dataclasses import MISSING, Field, dataclass, field, fields
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, dataclass_transform, get_args, get_origin

from attnviz.errors import SelectionError, SettingsError
from attnviz.render.names import PALETTES, slug
from attnviz.text.arguments import check_types, types_of

_Group = TypeVar("_Group")

INPUT, MODEL, SHOWN, LOOK, FILES = "Input", "Model", "What is shown", "Appearance", "Files"
SIZES, RARE = "Sizes of toy-random", "Rarely used"
PANELS = (INPUT, MODEL, SHOWN, LOOK, FILES, SIZES, RARE)  # the headings of help, in their order


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """How a field of a group is given on the command line."""

    names: tuple[
        str, ...
    ]  # such as ``--model`` and ``-m``; none for the argument that stands without a name
    help: str  # one sentence; ``{endings}`` stands for the endings of the files that the group can write
    metavar: str = ""  # what help shows for the value; empty for the usual word
    panel: str = ""  # under which heading help has it
    shows_default: bool = True  # whether help tells the default by itself
    least: int | None = None  # the smallest number
    most: int | None = None  # the largest number
    variable: str = ""  # of the environment, which says what is usual on the command line
    completes: Literal["", "models", "palettes", "stories"] = ""  # what the shell completes


REQUIRED: Any = MISSING  # the default of a field that must be given


def option(*names: str, default: object = None, **more: Any) -> Any:
    """A field of a group: its default, and how it is given on the command line (see `Option`).

    With ``default=REQUIRED`` it must be given.
    """
    more.setdefault("shows_default", default not in (None, (), "", REQUIRED))
    return field(default=default, metadata={"option": Option(names=names, **more)})


@dataclass_transform(kw_only_default=True, frozen_default=True)
def group(cls: type[_Group]) -> type[_Group]:
    """A group of settings: a frozen dataclass whose values are checked wherever it is made.

    A value that its `Option` or its type does not allow is a `SettingsError`, then comes the group's own
    ``__post_init__``.
    """
    combined = cls.__dict__.get("__post_init__")

    def check(self: _Group) -> None:
        _check(self)
        if combined is not None:
            combined(self)

    if combined is not None or not hasattr(cls, "__post_init__"):
        cls.__post_init__ = check  # type: ignore[attr-defined]
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


def _check(settings: object) -> None:
    """Refuse a value of another type, that is none of its choices, no palette, or outside its range."""
    types = types_of(type(settings))  # type: ignore[arg-type]  # likewise
    options: dict[str, Option] = {one.name: one.metadata["option"] for one in fields(settings)}  # type: ignore[arg-type]  # every group is a dataclass
    given = {name: getattr(settings, name) for name in options}
    check_types(given, types)
    for name, option in options.items():
        value, choices = given[name], _choices(types[name])
        if choices and value not in choices:
            named = ", ".join(map(repr, filter(None, choices)))
            raise SettingsError(f"{value!r} is not one of {named}", name)
        if option.completes == "palettes":
            check_palette(value)
        if value is None or (option.least is None and option.most is None):
            continue
        least, most = (
            math.inf * way if end is None else end
            for end, way in ((option.least, -1), (option.most, 1))
        )
        if not least <= value <= most:  # so that what is not a number is refused too
            allowed = f"at least {least}" if option.most is None else f"from {least} to {most}"
            raise SettingsError(f"it must be {allowed}, not {value}", name)


def _choices(hint: object) -> tuple[object, ...]:
    """What a field may be, one of these; none where it takes any value of its type."""
    parts = get_args(hint) if get_origin(hint) in {UnionType, Union} else (hint,)
    named = [
        get_args(part) or (None,)
        for part in parts
        if part is NoneType or get_origin(part) is Literal
    ]
    return tuple(value for part in named for value in part) if len(named) == len(parts) else ()


def changed(settings: object, *names: str) -> tuple[str, ...]:
    """The options, as they are typed, of those fields (of all, where none is named) that are not as usual here.

    Usual is the default, or what a variable of the environment says.
    """
    found = []
    for one in fields(settings):  # type: ignore[arg-type]  # every group is a dataclass
        usual = one.default, os.environ.get(one.metadata["option"].variable, one.default)
        if (not names or one.name in names) and getattr(settings, one.name) not in usual:
            found.append(_long_name(one))
    return tuple(found)


def name_parts(settings: object, *names: str) -> list[str]:
    """What a file's name tells of settings that make another picture, such as ``palette-viridis``.

    Of the fields named; where none is, of all but the terminal's background.
    """
    parts = []
    for one in fields(settings):  # type: ignore[arg-type]  # every group is a dataclass
        value, name = getattr(settings, one.name), _long_name(one).lstrip("-")
        if value != one.default and (one.name in names or (not names and one.name != "background")):
            text = slug("+".join(map(str, value)) if isinstance(value, tuple) else str(value), 20)
            parts.append(
                name if value is True else f"no-{name}" if value is False else f"{name}-{text}"
            )
    return parts


def _long_name(one: Field[Any]) -> str:
    names: tuple[str, ...] = one.metadata["option"].names
    return names[0].partition("/")[0] if names else "a sentence"


def check_palette(name: str) -> None:
    """Refuse a palette that is not there, by a `SettingsError`."""
    if name.removesuffix("_r") in PALETTES:
        return  # those that are listed need not be loaded to be known
    from attnviz.render.palette import colours

    try:
        colours(name)
    except SelectionError as error:
        raise SettingsError(str(error), "palette") from None
