"""The commands: help with options under headings, one list of all commands, and no input that is written over."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

import attnviz
from attnviz.cli.options import FILES, PANELS
from attnviz.cli.output import refuse_own_inputs
from attnviz.text.suggest import suggest

MAIN_COMMANDS = 7  # the commands that most people need
REMOVED = {
    "head": "attnviz compare-heads --head 2.3 shows what one head does",
    "merge": "attnviz compare-heads --corpus FILE --ray ADDRESS measures a large corpus",
    "--shard": "--ray ADDRESS shares a large corpus among processes",
    "--checkpoint": "--ray ADDRESS shares a large corpus among processes",
    "--sort": "--table shows all heads, -o FILE.csv sorts anywhere",
    "--role": "--table shows the role of each head",
    "--threshold": "-o FILE.json has every score, to be judged by another threshold",
    "--controls": "compare_heads(..., settings=SurveySettings(controls=N)) in Python",
    "--roles": "attnviz compare-heads shows the roles of heads",
    "--against-model": "--against NAME takes a sentence or a model",
    "--title": "-o FILE.svg has a title that can be edited; heatmap(title=) in Python",
    "--width": "--style paper fits a column, --style slides a slide; figsize= in Python",
    "--dtype": "in Python, open the model in another number format and give it to attend()",
    "--causal": "attnviz demo mask shows a causal mask beside none",
    "--truncate": "a text that is too long is cut, and the first line says so",
}
"""Commands and options that went, each with what to use instead; read after a command line was refused."""


class Command(TyperCommand):
    """A command whose help has its options under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options with their descriptions, heading by heading."""
        rows: dict[str, list[tuple[str, str]]] = {panel: [] for panel in PANELS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            name, description = record
            if parameter.param_type_name == "argument":
                name = re.sub(r" <\w+>$", "", name)
            rows[getattr(parameter, "rich_help_panel", None) or FILES].append((name, description))
        for panel, records in rows.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records, col_max=26)

    def invoke(self, ctx: Any) -> Any:
        """Run the command, unless it would write over a file that it reads."""
        refuse_own_inputs(ctx.params)
        return super().invoke(ctx)


class CommandGroup(TyperGroup):
    """The main command: it lists all commands with full summaries, and suggests a name for a mistyped one."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, then the options."""
        commands = [
            (name, (command.help or "").split("\n")[0]) for name, command in self.commands.items()
        ]
        for title, listed in (
            ("Commands", commands[:MAIN_COMMANDS]),
            ("More", commands[MAIN_COMMANDS:]),
        ):
            with formatter.section(title):
                formatter.write_dl(listed)
        records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        with formatter.section("Options"):
            formatter.write_dl([record for record in records if record is not None])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that was typed; a sentence alone is drawn by ``heatmap``."""
        name, *others = args
        if name == "help" and others and others[0] in self.commands:
            args = [others[0], "--help"]
        elif name == "help":
            typer.echo(ctx.get_help())
            raise typer.Exit
        elif name == "version":
            typer.echo(versions())
            raise typer.Exit
        elif is_sentence(name):
            args = ["heatmap", *args]
        elif name not in self.commands and not name.startswith("-"):
            advice = f": {REMOVED[name]}" if name in REMOVED else suggest(name, self.commands)
            words = list(takewhile(lambda word: not word.startswith("-"), args))
            if len(words) > 1 and name not in REMOVED and "did you mean" not in advice:
                advice = (
                    f'; put the sentence in quotation marks: attnviz heatmap "{" ".join(words)}"'
                )
            ctx.fail(f"there is no command {name!r}{advice}")
        return super().resolve_command(ctx, args)


def versions() -> str:
    """Return the versions of attnviz, of Python, of the main libraries and of the system, in two lines."""
    import platform
    from importlib.metadata import version

    libraries = ("torch", "transformers", "numpy", "matplotlib")
    others = ", ".join(f"{name} {version(name)}" for name in libraries)
    python = f"Python {platform.python_version()}"
    return f"attnviz {attnviz.__version__}\n{python}, {others}, {platform.platform()}"


def is_sentence(typed: str) -> bool:
    """Return whether the first argument is a sentence and no command: it has a space, or letters beyond ASCII."""
    return not typed.startswith("-") and (" " in typed.strip() or not typed.isascii())
