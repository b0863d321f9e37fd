"""``attnviz demo``: short stories about attention, each with its numbers and its picture."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from attnviz.commands import check_look, check_writable, print_json, print_lines, write_result
from attnviz.errors import SelectionError, SettingsError
from attnviz.options import FILES, MODEL, group, name_parts, option
from attnviz.render.names import outputs
from attnviz.settings import (
    Background,
    OutputSettings,
    PageSettings,
    background_option,
    lang_option,
    palette_option,
)
from attnviz.storage.formats import STORY
from attnviz.stories import CHAPTERS, DEMOS, WITH_A_MODEL, check

if TYPE_CHECKING:
    from rich.text import Text

    from attnviz.render.terminal.screen import Screen

EXAMPLES = """attnviz demo
attnviz demo positions
attnviz demo reference -m distilbert-base-uncased
attnviz demo alignment -o alignment.svg -o alignment.json
attnviz demo library --lang ko"""


@group
class StorySettings:
    """Which story, and how it is shown."""

    name: str | None = option(help="Which one; without it they are listed.", completes="stories")
    model: str | None = option(
        "--model",
        "-m",
        completes="models",
        panel=MODEL,
        metavar="NAME",
        help=f"Tell {', '.join(WITH_A_MODEL)} with this model's numbers: any that heatmap takes.",
    )
    palette: str = palette_option()
    background: Background = background_option()
    lang: Literal["en", "ko"] = lang_option()

    def __post_init__(self) -> None:
        if self.name is not None:
            try:
                check(self.name, self.model)
            except SelectionError as error:
                raise SettingsError(str(error)) from None


@group
class StoryOutput(OutputSettings):
    """The files: pictures, and the story's numbers."""

    ENDINGS: ClassVar[Collection[str]] = STORY

    output: tuple[Path, ...] = option(
        "--output",
        "-o",
        default=(),
        help="A file to write, by its ending: {endings}; repeatable [default: outputs/demo-NAME.png].",
        metavar="FILE",
        panel=FILES,
    )
    json: bool = option(
        "--json",
        default=False,
        help="Print the story with its numbers as JSON, and no picture.",
        panel=FILES,
    )


def command(story: StorySettings, page: PageSettings, output: StoryOutput) -> None:
    """Tell a short story about attention, with its numbers.

    All numbers are computed when you ask, by the formulas and models that come with attnviz, or by a model of your own.
    """
    if story.name is None:
        if output.output or output.json or story.model:
            raise SettingsError(f"give the name of a demo: {', '.join(DEMOS)}")
        from attnviz.stories import terminal

        def listed(screen: Screen) -> Iterable[Text]:
            return terminal.draw_list(CHAPTERS, screen, screen.language(story.lang))

        print_lines(listed, story.background, story.palette)
        return
    parts = ["demo", story.name, *name_parts(story, "model", "palette", "lang"), *name_parts(page)]
    usual = () if output.json else (outputs() / f"{'-'.join(parts)}.png",)
    paths = output.output or usual
    check_look(page, paths)
    check_writable(paths)
    from attnviz.stories import tell
    from attnviz.stories.record import to_json

    english = tell(story.name, model=story.model)
    shown = english.translated(story.lang)
    if output.json:
        print_json(to_json(shown))
    else:
        from attnviz.stories import terminal

        def view(screen: Screen) -> Iterable[Text]:
            return terminal.draw(english.translated(screen.language(story.lang)), screen)

        print_lines(view, story.background, story.palette)
    for path in paths:
        write_result(STORY, shown, path, cmap=story.palette, **asdict(page))
