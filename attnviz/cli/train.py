"""``attnviz train``: the home-built models, made again from their recipes."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import typer

from attnviz.commands import is_watched, tell
from attnviz.errors import SettingsError
from attnviz.models.registry import trained
from attnviz.options import FILES, REQUIRED, group, option
from attnviz.render.names import outputs
from attnviz.text.arguments import did_you_mean
from attnviz.text.display import visible

EXAMPLES = """attnviz train toy
attnviz train toy-seq2seq --seed 1 --steps 500 -o second.safetensors"""


@group
class TrainingSettings:
    """Which model is trained, and how."""

    name: str = option(default=REQUIRED, help=f"One of {', '.join(trained())}.")
    seed: int | None = option(
        "--seed", least=0, help="Of the first weights and of the sentences [default: the recipe's]."
    )
    steps: int | None = option(
        "--steps", least=1, help="Batches to learn from [default: the recipe's]."
    )
    output: Path | None = option(
        "--output", "-o", help="The weights [default: outputs/NAME.safetensors].", panel=FILES
    )

    def __post_init__(self) -> None:
        if self.name not in trained():
            raise SettingsError(
                f"there is no model {self.name!r} to train{did_you_mean(self.name, trained())}"
            )
        if self.path.suffix.lower() != ".safetensors":
            raise SettingsError("weights are written as .safetensors", "output")

    @property
    def path(self) -> Path:
        """Where the weights are written."""
        return self.output or outputs() / f"{self.name}.safetensors"


def command(training: TrainingSettings) -> None:
    """Train a home-built model again, from its recipe.

    It takes minutes, and the same seed gives the same weights.
    Ctrl-C stops it after the step it is at; the same command then goes on from there. At the end the weights, with
    all that is known about them and how good they are on unseen sentences, are written to one safetensors file.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from attnviz.models.training.files import State
    from attnviz.models.training.measure import quality_lines
    from attnviz.models.training.run import train, unfinished
    from attnviz.storage.files import write_whole

    name, path = training.name, training.path
    pressed = threading.Event()
    interrupt = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    bar = Progress(*columns, console=Console(stderr=True), disable=not is_watched())
    shown = bar.add_task(f"{name}: ...")

    def begin(first: int, total: int) -> None:
        if first:
            sys.stderr.write(f"going on from step {first}\n")
        bar.update(shown, total=total, completed=first)
        bar.start()

    def end() -> None:
        if bar.live.is_started:
            bar.stop()

    def write(target: Path, make: Callable[[Path], object]) -> object:
        end()
        written = write_whole(target, make)
        signal.signal(signal.SIGINT, interrupt)  # from here on nothing can be lost
        return written

    try:
        ended = train(
            name,
            path,
            seed=training.seed,
            steps=training.steps,
            begin=begin,
            stop=pressed.is_set,
            write=write,
            progress=lambda step, loss: bar.update(
                shown, completed=step + 1, description=f"{name}: loss {loss:.3f}"
            ),
        )
    finally:
        end()
        signal.signal(signal.SIGINT, interrupt)
    if isinstance(ended, State):
        kept = visible(str(unfinished(path)))
        sys.stderr.write(
            f"stopped after step {ended.step}, kept in {kept}: the same command goes on\n"
        )
        raise typer.Exit(130)
    for line in quality_lines(ended.quality):
        typer.echo(line)
    tell(f"wrote {visible(str(path))}")
