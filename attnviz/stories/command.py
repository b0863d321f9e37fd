"""``attnviz demo``: short stories about attention, each with its numbers and its picture."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from attnviz.commands import check_writable, print_json, print_lines, write, write_picture
from attnviz.errors import SettingsError
from attnviz.render.names import PICTURES, outputs
from attnviz.settings import (
    FILES,
    Background,
    OutputSettings,
    PageSettings,
    background_option,
    check_palette,
    name_parts,
    option,
    palette_option,
)
from attnviz.stories import DEMOS
from attnviz.text.names import did_you_mean

EXAMPLES = """Examples:

attnviz demo

attnviz demo positions

attnviz demo alignment -o alignment.svg -o alignment.json"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorySettings:
    """Which story, and how it is shown."""

    name: str | None = option(help="Which one; without it they are listed.", completes="stories")
    palette: str = palette_option()
    background: Background = background_option()

    def __post_init__(self) -> None:
        if self.name is not None and self.name not in DEMOS:
            raise SettingsError(f"there is no demo {self.name!r}{did_you_mean(self.name, DEMOS)}")
        check_palette(self.palette)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryOutput(OutputSettings):
    """The files: pictures, and the story's numbers."""

    ENDINGS: ClassVar[tuple[str, ...]] = (*PICTURES, ".json")

    output: tuple[Path, ...] = option(
        "--output", "-o", default=(),
        help="A file to write, by its ending: {endings}; repeatable [default: outputs/demo-NAME.png].",
        metavar="FILE", panel=FILES,
    )  # fmt: skip
    json: bool = option(
        "--json", default=False, help="Print the story with its numbers as JSON, and no picture.", panel=FILES
    )


def command(story: StorySettings, page: PageSettings, output: StoryOutput) -> None:
    """Tell a short story about attention, with its numbers.

    All numbers are computed when you ask, by the formulas and models that come with attnviz.
    """
    if story.name is None:
        if output.output or output.json:
            raise SettingsError(f"give the name of a demo: {', '.join(DEMOS)}")
        from attnviz.stories import terminal

        print_lines(partial(terminal.draw_list, DEMOS), story.background, story.palette)
        sys.stdout.write("\nTell one: attnviz demo NAME\n")
        return
    usual = (
        ()
        if output.json
        else (outputs() / f"{'-'.join(['demo', story.name, *name_parts(story, 'palette'), *name_parts(page)])}.png",)
    )
    paths = output.output or usual
    check_writable(paths)
    from attnviz.stories import tell
    from attnviz.stories.record import to_json

    shown = tell(story.name)
    if output.json:
        print_json(to_json(shown))
    else:
        from attnviz.stories import terminal

        print_lines(partial(terminal.draw, shown), story.background, story.palette)
    for path in paths:
        if path.suffix.lower() == ".json":
            from attnviz.storage import write_whole

            write(path, partial(write_whole, path, to_json(shown) + "\n"))
        else:
            from attnviz.stories.figure.sheet import draw

            write_picture(path, draw(shown, story.palette).fitted(page.look))
