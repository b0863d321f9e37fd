"""``attnviz train``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnviz.cli import options as opt
from attnviz.cli.output import check_outputs, log_status, shows_progress
from attnviz.models.registry import trained, training_plan
from attnviz.render.names import outputs
from attnviz.text.display import visible

EXAMPLES = """attnviz train toy
attnviz train toy-seq2seq --seed 1 --steps 500 -o second.safetensors"""


def train(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help=f"One of {', '.join(trained())}.",
            show_default=False,
            rich_help_panel=opt.INPUT,
        ),
    ],
    seed: Annotated[
        int | None,
        opt.option(metavar="N", min=0, help="Of the first weights and sentences.", panel=opt.INPUT),
    ] = None,
    steps: Annotated[
        int | None, opt.option(metavar="N", min=1, help="Batches to learn from.", panel=opt.INPUT)
    ] = None,
    output: Annotated[
        Path | None,
        opt.option(
            "--output",
            "-o",
            metavar="FILE",
            help="The weights [default: outputs/NAME.safetensors].",
            panel=opt.FILES,
        ),
    ] = None,
    quiet: opt.Quiet = False,
) -> None:
    """Train a home-built model again, from its recipe.

    It takes minutes, and the same seed gives the same weights. They are written to one
    safetensors file, with how good they are on unseen sentences.
    """
    plan = training_plan(name, seed=seed, steps=steps)
    path = output or outputs() / f"{name}.safetensors"
    check_outputs([path], (".safetensors",), prints_json=False)
    from rich.console import Console
    from rich.progress import Progress

    from attnviz.models.training.measure import quality_lines
    from attnviz.models.training.run import train as train_again

    with Progress(console=Console(stderr=True), disable=not shows_progress()) as bar:
        task = bar.add_task(name, total=plan.recipe.steps)

        def tick(step: int, loss: float) -> None:
            bar.update(task, completed=step + 1, description=f"{name}: loss {loss:.3f}")

        card = train_again(name, path, seed=seed, steps=steps, progress=tick)
    for line in quality_lines(card.quality):
        typer.echo(line)
    log_status(f"wrote {visible(str(path))}")
