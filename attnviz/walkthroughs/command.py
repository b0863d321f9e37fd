"""``attnviz walkthrough``: one word through one head, every number; ``attnviz verify``: the same computed again."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from attnviz import commands
from attnviz.errors import SettingsError
from attnviz.options import name_parts
from attnviz.render.names import picture_path
from attnviz.settings import PageSettings
from attnviz.storage.formats import FILMS, WALKTHROUGH
from attnviz.text.display import visible
from attnviz.walkthroughs.settings import (
    VerifySettings,
    WalkthroughAppearance,
    WalkthroughModel,
    WalkthroughOutput,
    WalkthroughSelection,
    WalkthroughText,
    check_blanks,
    needs_model,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from attnviz.walkthroughs.record import Walkthrough

EXAMPLES = """attnviz walkthrough --toy
attnviz walkthrough -m bert-base-uncased "She is eating a green apple" --query eating --head 3.5
attnviz walkthrough -m toy-seq2seq "I love all you" --query 1 --lang ko -o walk.html
attnviz walkthrough --example seq2seq
attnviz walkthrough --toy --interactive --jump 6
attnviz walkthrough -m toy-seq2seq "I love all you" -o walk.gif
attnviz walkthrough --input sample_inputs/homework.yaml --steps score,softmax,context -o homework.tex"""

VERIFY_EXAMPLES = """attnviz walkthrough --toy -o walk.json
attnviz verify walk.json"""

MOST_LISTED = 12  # names of grids that ``verify`` lists one by one


def command(
    text: WalkthroughText,
    model: WalkthroughModel,
    selection: WalkthroughSelection,
    appearance: WalkthroughAppearance,
    page: PageSettings,
    output: WalkthroughOutput,
) -> None:
    """Follow one word through one head, number by number.

    For each key its score, its weight and what it contributes, on one screen; with --full every step, with its formula,
    its shapes and one cell worked out. The receipt says how far the context is from what the model itself computed.
    Without a sentence it is "I love all you", or for toy-ko a Korean one.
    """
    for name in ("interactive", "jump", "full"):
        if getattr(appearance, name) and output.json:
            raise SettingsError(f"give --{name} or --json, not both")
    check_blanks(output.suffixes, has_blanks=text.exercise and not text.solution)
    loading = model.loading(exercise=text.exercise) if needs_model(text, model, selection) else None
    if appearance.interactive:
        from attnviz.render.terminal.keyboard import expect_terminal

        expect_terminal("--jump N begins at a step")
    planned = output.planned(writes_picture=not appearance.interactive)
    commands.check_look(page, planned)
    commands.check_writable(planned)
    from attnviz.walkthroughs.api import calculate

    opening = None if loading is None else partial(commands.open_model, loading, generates=True)
    film = any(suffix in FILMS for suffix in output.suffixes)
    walks = calculate(
        text if opening is None else _read(text),
        selection,
        opening,
        seed=model.seed or 0,
        each_step=film,
        full=appearance.full,
    )
    walk, view = walks[0], _view(walks[0], text, model, appearance)
    first = appearance.jump or 1
    if output.json:
        from attnviz.walkthroughs.files import to_json

        commands.print_json(to_json(walk))
    elif appearance.interactive:
        _browse(walk, view, appearance, first)
    else:
        from attnviz.walkthroughs.terminal.steps import draw_overview, draw_walk

        every = appearance.full or appearance.steps is not None or appearance.jump is not None
        draw = (
            partial(draw_walk, walk, first=first, **view)
            if every
            else partial(draw_overview, walk, **view)
        )
        commands.print_lines(draw, appearance.background, appearance.palette)
    usual = (
        ()
        if output.json or appearance.interactive
        else (_usual_path(walk, text, model, selection, appearance, page),)
    )
    for path in output.output or usual:
        shown = walks if path.suffix.lower() in FILMS else walk
        commands.write_result(
            WALKTHROUGH, shown, path, cmap=appearance.palette, **asdict(page), **view
        )


def _browse(
    walk: Walkthrough, view: dict[str, Any], appearance: WalkthroughAppearance, first: int
) -> None:
    """Show one step after another as the keys say. Raises SelectionError: there is no step to begin at."""
    from attnviz.render.terminal.keyboard import browse, whole_screen
    from attnviz.render.terminal.screen import screen_of
    from attnviz.walkthroughs.terminal.steps import draw_keys, draw_step
    from attnviz.walkthroughs.view import find_steps

    numbers = [number for number, _ in find_steps(walk, view["steps"])]
    place = numbers.index(find_steps(walk, view["steps"], first)[0][0])
    palette = appearance.palette
    background = (
        "dark"
        if screen_of(commands.console_here(), appearance.background, palette).dark
        else "light"
    )

    def draw(page: int, console: Console) -> list[Text]:
        return draw_step(walk, screen_of(console, background, palette), numbers[page], **view)

    def below(page: int, lines: tuple[int, int, int], console: Console) -> str:
        return draw_keys(
            walk, numbers[page], lines, screen_of(console, background, palette), view["lang"]
        )

    with whole_screen() as keys:
        browse(keys, draw, below, len(numbers), console=commands.console_here, first=place)


def _read(text: WalkthroughText) -> WalkthroughText:
    given = text.text is not None or text.file is not None
    return replace(
        text,
        text=commands.read_text(text.text, text.file) if given else None,
        file=None,
        pair=None
        if text.pair is None
        else commands.read_text(text.pair, None, "the second sentence"),
    )


def _view(
    walk: Walkthrough,
    text: WalkthroughText,
    model: WalkthroughModel,
    appearance: WalkthroughAppearance,
) -> dict[str, Any]:
    """What every view of the calculation is told, as `attnviz.walkthroughs.view.ViewOptions` has it."""
    from attnviz.walkthroughs.view import step_names

    return {
        "lang": appearance.lang,
        "precision": appearance.precision,
        "steps": None if appearance.steps is None else step_names(walk, appearance.steps),
        "blanks": walk.blanks(model.seed or 0)
        if text.exercise and not text.solution
        else frozenset(),
    }


def _usual_path(
    walk: Walkthrough,
    text: WalkthroughText,
    model: WalkthroughModel,
    selection: WalkthroughSelection,
    appearance: WalkthroughAppearance,
    page: PageSettings,
) -> Path:
    """A file in ``outputs/`` named after what it shows: the same command writes the same file again."""
    from attnviz.walkthroughs.view import View, step_names

    numbers = (
        f"example {text.example}" if text.example else text.numbers.stem if text.numbers else None
    )
    parts = []
    if walk.model:
        parts = [f"layer-{walk.layer}", "whole" if walk.head is None else f"head-{walk.head}"]
    if walk.model or numbers is not None:
        parts += [f"query-{'all' if walk.query is None else walk.query}"]
    parts += [walk.kind] if walk.kind is not None and walk.kind != "encoder" else []
    parts += [selection.score] if selection.score != "scaled" else []
    parts += [*name_parts(model, "dtype", "revision"), *name_parts(selection, "causal")]
    parts += [
        *name_parts(appearance, "precision", "palette"),
        *([appearance.lang] if appearance.lang != "en" else []),
    ]
    parts += name_parts(page)
    parts += ["-".join(step_names(walk, appearance.steps))] if appearance.steps is not None else []
    parts += (
        [f"{'solution' if text.solution else 'exercise'}-{model.seed or 0}"]
        if text.exercise
        else []
    )
    shown = walk.text or numbers or View(walk=walk).title
    return picture_path("walkthrough", shown, walk.model, parts, pair=text.pair, target=text.target)


def verify_command(settings: VerifySettings) -> None:
    """Compute a saved walkthrough again, and name what is wrong.

    Every step is computed from the numbers in the file, in plain Python: neither torch nor numpy takes part.
    """
    from attnviz.errors import RecordError
    from attnviz.walkthroughs.verify import TOLERANCE, Verdict
    from attnviz.walkthroughs.verify import verify as compute_again

    verdict: Verdict = compute_again(settings.file)
    if verdict.fault:
        raise RecordError(f"{visible(str(settings.file))}: {verdict.fault}")
    names = [f"{i}. {step.step}" for i, step in enumerate(verdict.checked, start=1)]
    made = [f"{step.grid} ({step.shape[0]}, {step.shape[1]})" for step in verdict.checked]
    wide = [max(map(len, texts), default=0) for texts in (names, made)]
    for name, grid, step in zip(names, made, verdict.checked, strict=True):
        typer.echo(
            f"{name.ljust(wide[0])}  {grid.ljust(wide[1])}  largest difference {_difference(step.largest)}"
        )
    if verdict.inputs:
        typer.echo(f"given, so not computed: {_join_names(verdict.inputs)}")
    if verdict.unused:
        typer.echo(
            f"nothing is made from {_join_names(verdict.unused)}: nothing here tells whether that is right"
        )
    if verdict.own is not None and verdict.difference is not None:
        typer.echo(
            f"from the model's own {verdict.own}, says the file: {_difference(verdict.difference)}"
        )
    steps, cells = len(verdict.checked), verdict.cells
    typer.echo(
        f"verified: {steps} step{'' if steps == 1 else 's'}, {cells:,} cell{'' if cells == 1 else 's'}, largest "
        f"difference {_difference(verdict.largest)} (at most {TOLERANCE:.0e} of what a cell is made of)"
    )


def _join_names(names: tuple[str, ...]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:MOST_LISTED])} and {more} more"


def _difference(difference: float) -> str:
    return f"{difference:.1e}" if difference else "0"
