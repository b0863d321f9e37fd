"""How a setting is described: its default, its names, its help; and what those tell that are not as usual."""

from __future__ import annotations

import os
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, Literal

from attnviz.render.names import slug

INPUT, MODEL, SHOWN, LOOK, FILES = "Input", "Model", "What is shown", "Appearance", "Files"
SIZES, RARE = "Sizes of toy-random", "Rarely used"
PANELS = (INPUT, MODEL, SHOWN, LOOK, FILES, SIZES, RARE)
"""The headings of help, in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """How a field of a group is given on the command line."""

    names: tuple[str, ...]  # such as ``--model`` and ``-m``; none for the argument that stands without a name
    help: str  # one sentence; ``{endings}`` stands for the endings of the files that the group can write
    metavar: str = ""  # what help shows for the value; empty for the usual word
    panel: str = ""  # under which heading help has it
    shows_default: bool = True  # whether help tells the default by itself
    least: int | None = None  # the smallest number
    most: int | None = None  # the largest number
    variable: str = ""  # of the environment, which says what is usual on the command line
    completes: Literal["", "models", "palettes", "stories"] = ""  # what the shell completes


REQUIRED: Any = MISSING
"""The default of a field that must be given."""


def option(*names: str, default: object = None, **more: Any) -> Any:  # noqa: ANN401 - a field of any type
    """A field of a group: its default, and how it is given on the command line (see `Option`).

    With ``default=REQUIRED`` it must be given.
    """
    more.setdefault("shows_default", default not in (None, (), "", REQUIRED))
    return field(default=default, metadata={"option": Option(names=names, **more)})


def changed(settings: object, *names: str) -> tuple[str, ...]:
    """The options, as they are typed, of those fields (of all, where none is named) that are not as usual here.

    Usual is the default, or what a variable of the environment says.
    """

    def usual(one: Field[Any]) -> tuple[object, ...]:
        variable = one.metadata["option"].variable
        return one.default, *([os.environ[variable]] if variable in os.environ else [])

    return tuple(
        _long_name(one)
        for one in fields(settings)  # type: ignore[arg-type]  # every group is a dataclass
        if (not names or one.name in names) and getattr(settings, one.name) not in usual(one)
    )


def name_parts(settings: object, *names: str) -> list[str]:
    """What a file's name tells of settings that make another picture, such as ``palette-viridis``.

    Of the fields named; where none is, of all but the terminal's background.
    """
    parts = []
    for one in fields(settings):  # type: ignore[arg-type]  # every group is a dataclass
        value, name = getattr(settings, one.name), _long_name(one).lstrip("-")
        if value != one.default and (one.name in names or (not names and one.name != "background")):
            text = slug("+".join(map(str, value)) if isinstance(value, tuple) else str(value), 20)
            parts.append(name if value is True else f"no-{name}" if value is False else f"{name}-{text}")
    return parts


def _long_name(one: Field[Any]) -> str:
    names: tuple[str, ...] = one.metadata["option"].names
    return names[0].partition("/")[0] if names else "a sentence"
