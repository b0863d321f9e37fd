"""``attnviz demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnviz.cli import options as opt
from attnviz.cli.output import (
    JSON,
    check_outputs,
    check_style,
    default_picture,
    is_typed,
    print_json,
    print_view,
    write,
)
from attnviz.errors import SelectionError, SettingsError
from attnviz.look import Look
from attnviz.render.names import DEFAULT, outputs
from attnviz.stories import CHAPTERS, DEMOS, check

EXAMPLES = """attnviz demo
attnviz demo positions
attnviz demo library --lang ko -o library.html"""


def complete_demos(incomplete: str) -> list[str]:
    """Return the demos whose names begin with the typed text."""
    return [name for name in DEMOS if name.startswith(incomplete)]


def demo(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Which story; without it they are listed.",
            show_default=False,
            autocompletion=complete_demos,
            rich_help_panel=opt.INPUT,
        ),
    ] = None,
    palette: opt.Palette = DEFAULT,
    lang: opt.Lang = "en",
    style: opt.Style = "sheet",
    theme: opt.Theme = "auto",
    output: Annotated[
        list[Path] | None,
        opt.output_option("png, svg, pdf, html, json, or - to print JSON", "outputs/demo-NAME.png"),
    ] = None,
    quiet: opt.Quiet = False,
) -> None:
    """Tell a short story about attention, with its numbers.

    All numbers are computed live, by the models that ship with attnviz.
    """
    if name is None:
        if output or is_typed(context, "style"):
            raise SettingsError(f"give the name of a demo: {', '.join(DEMOS)}")
        from attnviz.stories import terminal

        print_view(lambda screen: terminal.draw_list(CHAPTERS, screen), palette, theme)
        return
    try:
        check(name)
    except SelectionError as error:
        raise SettingsError(str(error)) from None
    from attnviz.stories.record import Story, to_json

    picture = outputs() / f"demo-{name}.png"
    paths = output or [picture]
    check_outputs(output or [], Story.ENDINGS)
    check_style(context, paths)
    from attnviz.stories import tell, told

    story = tell(name)
    if JSON in paths:
        print_json(to_json(story))
    else:
        from attnviz.stories import terminal

        print_view(
            lambda screen: terminal.draw(told(story, screen.fallback), screen), palette, theme
        )
    look = Look(palette=palette, style=style, theme=theme)
    for path in output or []:
        if path != JSON:
            write(story, path, look)
    if not output:
        with default_picture():
            write(story, picture, look)
