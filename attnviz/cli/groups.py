"""From groups of settings to a command: each field becomes an option, and what is typed becomes the groups again."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from attnviz.errors import SettingsError
from attnviz.render.names import PALETTES
from attnviz.settings import REQUIRED, Option


def groups_of(command: Callable[..., None]) -> dict[str, Any]:
    """The groups of settings that a command takes, by the names of its parameters."""
    hints = get_type_hints(command)
    return {name: hints[name] for name in inspect.signature(command).parameters}


def as_command(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer wants it: a parameter for each field of each of its groups.

    A setting that is refused becomes a misuse of the command line.

    Raises:
        TypeError: a parameter is no group, or two groups have a field of one name.
    """
    groups = groups_of(command)
    if strange := [name for name, group in groups.items() if not is_dataclass(group)]:
        raise TypeError(f"{command.__module__} takes {', '.join(strange)}, which is no group of settings")
    parameters: dict[str, inspect.Parameter] = {}
    for group in groups.values():
        hints = get_type_hints(group)
        for one in fields(group):
            if one.name in parameters:
                raise TypeError(f"two groups of {command.__module__} have a field {one.name!r}")
            parameters[one.name] = _parameter(one, hints[one.name], group)

    @functools.wraps(command)
    def run(**values: Any) -> None:  # noqa: ANN401 - whatever was typed
        try:
            made = {
                name: group(**{one.name: _value(values[one.name], one) for one in fields(group)})
                for name, group in groups.items()
            }
            command(**made)
        except SettingsError as error:
            raise typer.BadParameter(str(error)) from None

    del run.__wrapped__  # Typer would read the signature and the annotations of the command itself
    run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    return run


def _value(given: Any, one: Field[Any]) -> Any:  # noqa: ANN401 - whatever was typed
    """What a group holds of what was typed: of repeatable options a tuple."""
    if isinstance(one.default, tuple):
        return tuple(given or ())
    return given


def _parameter(one: Field[Any], hint: Any, group: type) -> inspect.Parameter:  # noqa: ANN401 - a type
    option: Option = one.metadata["option"]
    repeatable = get_origin(hint) is tuple
    kind = list[get_args(hint)[0]] | None if repeatable else hint  # type: ignore[misc]
    text = option.help.replace("{endings}", ", ".join(end.removeprefix(".") for end in getattr(group, "ENDINGS", ())))
    more: dict[str, Any] = {"help": text, "show_default": option.shows_default}
    if option.metavar:
        more["metavar"] = option.metavar
    if option.names:
        more["rich_help_panel"] = option.panel
    if option.least is not None or option.most is not None:
        more |= {"min": option.least, "max": option.most}
    if option.completes:
        more["autocompletion"] = _COMPLETERS[option.completes]
    described = typer.Option(*option.names, **more) if option.names else typer.Argument(**more)
    default = None if repeatable else inspect.Parameter.empty if one.default is REQUIRED else one.default
    return inspect.Parameter(
        one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, described]
    )


def _models(incomplete: str) -> list[str]:
    """Names to complete: the home-built models, and what is in the cache."""
    from huggingface_hub import constants

    from attnviz.models.registry import NAMES

    cached = Path(constants.HF_HUB_CACHE).glob("models--*")
    names = [*NAMES, *(folder.name.removeprefix("models--").replace("--", "/") for folder in cached)]
    return [name for name in names if name.startswith(incomplete)]


def _palettes(incomplete: str) -> list[str]:
    return [name for name in PALETTES if name.startswith(incomplete)]


def _stories(incomplete: str) -> list[str]:
    from attnviz.stories import DEMOS

    return [name for name in DEMOS if name.startswith(incomplete)]


_COMPLETERS = {"models": _models, "palettes": _palettes, "stories": _stories}
