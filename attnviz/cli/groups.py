"""From groups of settings to a command: each field becomes an option, and what is typed becomes the groups again.

Every command takes `ShellSettings` beside its own groups: how it speaks, which it need not know itself.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import Field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from attnviz import commands
from attnviz.errors import SettingsError
from attnviz.options import INPUT, PANELS, RARE, REQUIRED, SIZES, Option
from attnviz.render.names import PALETTES
from attnviz.settings import FileSettings, ShellSettings
from attnviz.text.arguments import did_you_mean


def groups_of(command: Callable[..., None]) -> dict[str, Any]:
    """The groups of settings that a command takes, by the names of its parameters; and what all commands take."""
    hints = get_type_hints(command)
    return {name: hints[name] for name in inspect.signature(command).parameters} | {
        _SHELL: ShellSettings
    }


_SHELL = "shell"
_METAVARS: dict[object, str] = {
    str: "TEXT",
    Path: "FILE",
    int: "N",
}  # what help shows for a value, by its type


def as_command(command: Callable[..., None], *, takes_shell: bool = True) -> Callable[..., None]:
    """The command as Typer wants it: a parameter for each field of each of its groups.

    A setting that is refused becomes a misuse of the command line. Raises TypeError: a parameter is no group, or two
    groups have a field of one name.
    """
    groups = (
        groups_of(command) if takes_shell else {"settings": get_type_hints(command)["settings"]}
    )
    if strange := [name for name, group in groups.items() if not is_dataclass(group)]:
        raise TypeError(
            f"{command.__module__} takes {', '.join(strange)}, which is no group of settings"
        )
    parameters: dict[str, inspect.Parameter] = {}
    repeatable = {
        one.name
        for group in groups.values()
        for one in fields(group)
        if isinstance(one.default, tuple)
    }
    for group in groups.values():
        hints = get_type_hints(group)
        for one in fields(group):
            if one.name in parameters:
                raise TypeError(f"two groups of {command.__module__} have a field {one.name!r}")
            parameters[one.name] = _parameter(one, hints[one.name], group)

    @functools.wraps(command)
    def run(context: Any, **values: Any) -> None:
        try:
            typed = {
                name: tuple(given or ()) if name in repeatable else given
                for name, given in values.items()
            }
            made = {
                name: group(**{one.name: typed[one.name] for one in fields(group)})
                for name, group in groups.items()
            }
            if not takes_shell:
                command(context, **made)
                return
            files = next(
                (group for group in made.values() if isinstance(group, FileSettings)), None
            )
            with commands.session(_together(made.pop(_SHELL), context), files):
                command(**made)
        except SettingsError as error:
            named = next((one for one in context.command.params if one.name == error.setting), None)
            raise typer.BadParameter(
                error.reason if named else str(error), context, named
            ) from None

    del run.__wrapped__  # Typer would read the signature and the annotations of the command itself
    parameters["context"] = inspect.Parameter(
        "context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
    )
    run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    return run


def _together(typed: ShellSettings, context: Any) -> ShellSettings:
    """What was typed after the command's name, and before it."""
    given = {one.name: getattr(typed, one.name) for one in fields(typed)}
    after = {one.name: given[one.name] for one in fields(typed) if given[one.name] != one.default}
    return replace(context.find_root().obj or ShellSettings(), **after)


def _parameter(one: Field[Any], hint: Any, group: type) -> inspect.Parameter:
    option: Option = one.metadata["option"]
    repeatable = get_origin(hint) is tuple
    kind = list[get_args(hint)[0]] | None if repeatable else hint  # type: ignore[misc]
    usual = _METAVARS.get((get_args(kind) or (kind,))[0])
    endings = ", ".join(end.removeprefix(".") for end in getattr(group, "ENDINGS", ()))
    more: dict[str, Any] = {
        "help": option.help.replace("{endings}", endings),
        "show_default": option.shows_default,
        "metavar": option.metavar or (usual if option.names else one.name.upper()),
        "rich_help_panel": option.panel or INPUT,
        "envvar": option.variable or None,
        "show_envvar": bool(option.variable),
        "autocompletion": _COMPLETERS.get(option.completes),
    }
    described = typer.Option(*option.names, **more) if option.names else typer.Argument(**more)
    default = (
        None if repeatable else inspect.Parameter.empty if one.default is REQUIRED else one.default
    )
    return inspect.Parameter(
        one.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, described],
    )


def panels(command: Any, context: Any) -> dict[str, list[tuple[str, str]]]:
    """The options of a command as help shows them, by their headings, in order."""
    rows: dict[str, list[tuple[str, str]]] = {name: [] for name in PANELS}
    for parameter in command.get_params(context):
        if (record := parameter.get_help_record(context)) is not None:
            name = (
                re.sub(r" <\w+>$", "", record[0])
                if parameter.param_type_name == "argument"
                else record[0]
            )
            rows[getattr(parameter, "rich_help_panel", None) or RARE].append((name, record[1]))
    return {name: records for name, records in rows.items() if records}


class Command(TyperCommand):
    """A command whose help has its options under headings; ``-h`` leaves out those that are rarely used."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed."""
        ctx.meta[_BRIEF] = "-h" in args
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options."""
        for name, records in panels(self, ctx).items():
            if not (ctx.meta.get(_BRIEF) and name in {SIZES, RARE}):
                with formatter.section(name):
                    formatter.write_dl(records)
        if ctx.meta.get(_BRIEF):
            with formatter.section("More options"):
                formatter.write_text(f"{ctx.command_path} --help")


_BRIEF = "attnviz.brief"  # whether the help that is asked for is the short one


class CommandGroup(TyperGroup):
    """The command with all commands: none of their summaries is cut, and one that is mistyped is guessed at."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, then the options."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (one.help or "").partition("\n")[0]) for name, one in self.commands.items()]
            )
        with formatter.section("Options, of all commands"):
            formatter.write_dl(panels(self, ctx)[RARE])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that was typed."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


def _models(incomplete: str) -> list[str]:
    from attnviz.capture.sources.hub import cached_models
    from attnviz.models.registry import names

    return [name for name in (*names(), *cached_models()) if name.startswith(incomplete)]


def _stories(incomplete: str) -> list[str]:
    from attnviz.stories import DEMOS

    return [name for name in DEMOS if name.startswith(incomplete)]


_COMPLETERS: dict[str, Callable[[str], list[str]]] = {
    "models": _models,
    "stories": _stories,
    "palettes": lambda incomplete: [name for name in PALETTES if name.startswith(incomplete)],
}
