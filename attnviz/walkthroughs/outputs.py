"""A walkthrough on the screen, in files, and what those files are called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnviz import options
from attnviz.errors import SelectionError
from attnviz.render.names import picture_path
from attnviz.text.display import visible

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough

FILMS = (".gif", ".mp4")

ENDINGS = (*options.PICTURES, *FILMS, ".json", *options.PAGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How a walkthrough is shown.

    Attributes:
        language: ``en`` or ``ko``.
        precision: digits after the point.
        steps: the names of the steps shown; None for all.
        blanks: the cells left to be filled in: grid, row, column.
        palette: the palette's name.
    """

    language: str
    precision: int
    steps: tuple[str, ...] | None
    blanks: frozenset[tuple[str, int, int]]
    palette: str


def steps_named(walk: Walkthrough, typed: str | None) -> tuple[str, ...] | None:
    """The names of the steps that a person means: a step, the beginning of its name, or what it makes.

    Raises:
        SelectionError: one that this calculation has not.
    """
    if typed is None:
        return None
    found = []
    for part in filter(None, (part.strip() for part in typed.split(","))):
        word = part.lower()
        exact = [step.name for step in walk.steps if word in {step.name, step.result.lower()}]
        meant = exact or [step.name for step in walk.steps if step.name.startswith(word)]
        if not meant:
            there = ", ".join(dict.fromkeys(step.name for step in walk.steps))
            raise SelectionError(f"there is no step '{visible(part)}': this calculation has {there}")
        found += meant
    if not found:
        raise SelectionError("no step is named: choose some, such as score,softmax,context")
    return tuple(dict.fromkeys(found))


def print_walk(walk: Walkthrough, shown: Shown, background: str, first: int = 1) -> None:
    """Print the calculation, from the step of this number on, as it suits the terminal."""
    from attnviz.render.terminal.screen import console_here, screen_of
    from attnviz.walkthroughs.terminal.steps import draw_walk

    console = console_here()
    screen = screen_of(console, background, shown.palette)
    for line in draw_walk(walk, screen, first=first, **_wish(shown)):
        console.print(line, soft_wrap=True)


def write_walk(walks: Sequence[Walkthrough], path: Path, shown: Shown) -> None:
    """Write one file, whole or not at all, and say so; of several calculations a film shows all, other files one."""
    from attnviz.storage import write_whole

    suffix, walk = path.suffix.lower(), walks[0]
    if suffix == ".json":
        from attnviz.walkthroughs.files import save

        save(walk, path)
    elif suffix in options.PAGES:
        page = _page(suffix)(walk, **_wish(shown)).encode()
        write_whole(path, page)
    else:
        from attnviz.render.fonts import advice

        drawn, missing = _film(walks, suffix, shown) if suffix in FILMS else _picture(walk, suffix, shown)
        write_whole(path, drawn)
        if missing:
            sys.stderr.write(f"attnviz: {advice(missing)}\n")
    sys.stderr.write(f"wrote {visible(str(path))}\n")


def _wish(shown: Shown) -> dict[str, Any]:
    """What every view of a walkthrough is told."""
    return {
        "language": shown.language, "precision": shown.precision, "steps": shown.steps, "blanks": shown.blanks,
    }  # fmt: skip


def _picture(walk: Walkthrough, suffix: str, shown: Shown) -> tuple[bytes, str]:
    """A picture's bytes, and the characters that no font has.

    It is drawn before anything is written, so that what goes wrong while drawing is not taken for a full disk.
    """
    from attnviz.walkthroughs.figure.sheet import draw

    drawn = BytesIO()
    typefaces = draw(walk, palette=shown.palette, **_wish(shown)).write(drawn, suffix)
    return drawn.getvalue(), typefaces.missing


def _film(walks: Sequence[Walkthrough], suffix: str, shown: Shown) -> tuple[bytes, str]:
    """Likewise of a film, for which ffmpeg needs a file."""
    from tempfile import TemporaryDirectory

    from attnviz.walkthroughs.figure.film import film

    with TemporaryDirectory(prefix="attnviz-") as folder:
        path = Path(folder) / f"film{suffix}"
        typefaces = film(walks, path, suffix, palette=shown.palette, **_wish(shown))
        return path.read_bytes(), typefaces.missing


def _page(suffix: str) -> Callable[..., str]:
    from attnviz.walkthroughs.html import html
    from attnviz.walkthroughs.latex import latex
    from attnviz.walkthroughs.markdown import csv, markdown

    return {".md": markdown, ".tex": latex, ".csv": csv, ".html": html}[suffix]


def named(
    walk: Walkthrough, otherwise: Sequence[str], *, numbers: str | None, pair: str | None, target: str | None
) -> Path:
    """A file in ``outputs/`` named after what it shows: the same command writes the same file again.

    Args:
        walk: what is written.
        otherwise: whatever else makes it another calculation, or another picture of it.
        numbers: where its numbers are from, if from no model: a file's name, or an example's.
        pair: what was typed beside the sentence: the second one.
        target: likewise, what the model was made to say.
    """
    from attnviz.walkthroughs.wording import title_line

    parts = []
    if walk.model:
        parts = [f"layer-{walk.layer}", "whole" if walk.head is None else f"head-{walk.head}"]
    if walk.model or numbers is not None:
        parts += [f"query-{'all' if walk.query is None else walk.query}"]
    parts += [walk.kind] if walk.kind is not None and walk.kind != "encoder" else []
    shown = walk.text or numbers or title_line(walk, "en")
    return picture_path("walkthrough", shown, walk.model, [*parts, *otherwise], pair=pair, target=target)
