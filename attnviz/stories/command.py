"""``attnviz demo``: short told stories about attention, each with its numbers and its picture."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnviz import arguments, options
from attnviz.stories import DEMOS
from attnviz.text.display import visible

if TYPE_CHECKING:
    from attnviz.stories.record import Story

EXAMPLES = """Examples:

attnviz demo

attnviz demo positions

attnviz demo alignment -o alignment.svg -o alignment.json"""

ENDINGS = (*options.PICTURES, ".json")


def _demo(name: str | None) -> str | None:
    if name is not None and name not in DEMOS:
        raise typer.BadParameter(f"there is no demo {name!r}: there are {', '.join(DEMOS)}")
    return name


def command(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Which one; without it they are listed.",
            autocompletion=lambda incomplete: [name for name in DEMOS if name.startswith(incomplete)],
            callback=_demo,
            show_default=False,
        ),
    ] = None,
    palette: options.Palette = "magma",
    background: options.Background = "auto",
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output", "-o",
            help="A file to write, by its ending: png, svg, pdf, json; repeatable [default: outputs/demo-NAME.png].",
            metavar="FILE", show_default=False, rich_help_panel="Files",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the story with its numbers as JSON, and no picture.")
    ] = False,
) -> None:  # fmt: skip
    """Tell a short story about attention, with its numbers, in the terminal and as a picture.

    All numbers are computed when you ask, by the formulas and models that come with attnviz.
    """
    outputs = list(output or [])
    arguments.check_outputs(outputs, ENDINGS)
    if name is None:
        if outputs or json:
            raise typer.BadParameter(f"give the name of a demo: {', '.join(DEMOS)}")
        _list(background, palette)
        return
    if not outputs and not json:
        outputs = [Path("outputs") / f"demo-{name}.png"]
    arguments.check_writable(outputs)
    from attnviz.stories import tell

    story = tell(name)
    if json:
        from attnviz.stories.record import to_json

        sys.stdout.write(to_json(story) + "\n")
    else:
        from attnviz.render.terminal.console import console_here, screen_of
        from attnviz.stories.terminal import told

        console = console_here()
        for line in told(story, screen_of(console, background, palette)):
            console.print(line, soft_wrap=True)
    for path in outputs:
        _write(story, path, palette)


def _list(background: str, palette: str) -> None:
    from attnviz.render.terminal.console import console_here, screen_of
    from attnviz.stories.terminal import listed

    console = console_here()
    for line in listed(DEMOS, screen_of(console, background, palette)):
        console.print(line, soft_wrap=True)
    typer.echo("\nTell one: attnviz demo NAME")


def _write(story: Story, path: Path, palette: str) -> None:
    """Write one file, whole or not at all, and say so."""
    from attnviz.storage import write_whole

    suffix = path.suffix.lower()
    if suffix == ".json":
        from attnviz.stories.record import to_json

        write_whole(path, lambda temporary: temporary.write_text(to_json(story) + "\n", encoding="utf-8"))
    else:
        from attnviz.render.fonts import advice
        from attnviz.stories.figure.sheet import draw

        drawn = BytesIO()  # so that what goes wrong while drawing is not taken for a full disk
        missing = draw(story, palette).write(drawn, suffix).missing
        write_whole(path, lambda temporary: temporary.write_bytes(drawn.getvalue()))
        if missing:
            sys.stderr.write(f"attnviz: {advice(missing)}\n")
    sys.stderr.write(f"wrote {visible(str(path))}\n")
