"""``attnviz train``: the home-built models, made again from their recipes."""

from __future__ import annotations

import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from attnviz.text.display import visible

EXAMPLES = """Examples:

attnviz train toy

attnviz train toy-seq2seq --seed 1 --steps 500 -o second.safetensors"""

NAMES = (
    *("toy", "toy-decoder", "toy-seq2seq", "toy-transformer"),
    *(f"bottleneck-{which}-{seed}" for which in ("with", "without") for seed in (0, 1, 2)),
)


def _name(name: str) -> str:
    if name not in NAMES:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(NAMES)}")
    return name


def command(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(NAMES)}.", callback=_name)],
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            min=0,
            help="Of the first weights and of the sentences [default: the recipe's].",
            show_default=False,
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option("--steps", min=1, help="Batches to learn from [default: the recipe's].", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The weights [default: outputs/NAME.safetensors].", show_default=False),
    ] = None,
) -> None:
    """Train a home-built model as the shipped one was: minutes, and the same weights from the same seed.

    Ctrl-C stops it after the step it is at; the same command then goes on from there. At the end the weights, with
    all that is known about them and how good they are on unseen sentences, are written to one safetensors file.
    """
    path = output or Path("outputs") / f"{name}.safetensors"
    if path.suffix.lower() != ".safetensors":
        raise typer.BadParameter("weights are written as .safetensors", param_hint="'--output' / '-o'")
    kept = path.with_name(f"{path.stem}.unfinished.safetensors")
    from attnviz.storage import check_writable, write_whole

    check_writable(path)
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from attnviz.models.language import vocabulary
    from attnviz.models.training import loop, shipped

    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # as fast for models this small, and sums are added in one order
    plan = shipped.plans()[name]
    own = plan.recipe
    plan = replace(plan, recipe=replace(own, seed=own.seed if seed is None else seed, steps=steps or own.steps))
    state = shipped.load_state(kept, name, plan) if kept.exists() else None
    if state is not None:
        sys.stderr.write(f"going on from step {state.step}\n")
    task = plan.task()
    pressed = threading.Event()
    interrupt = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        shown = bar.add_task(f"{name}: ...", total=plan.recipe.steps, completed=state.step if state else 0)
        state = loop.train(
            task,
            state=state,
            stop=pressed.is_set,
            progress=lambda step, loss: bar.update(shown, completed=step + 1, description=f"{name}: loss {loss:.3f}"),
        )
    reached = state
    write_whole(kept, lambda temporary: shipped.save_state(temporary, name, plan, reached))
    signal.signal(signal.SIGINT, interrupt)  # from here on nothing can be lost
    if state.step < plan.recipe.steps:
        sys.stderr.write(f"stopped after step {state.step}, kept in {visible(str(kept))}: the same command goes on\n")
        raise typer.Exit(130)
    translates = plan.kind in {"recurrent", "translation"}
    card = shipped.Card(
        name=name,
        plan=plan,
        source=vocabulary.source() if translates else vocabulary.english(),
        target=vocabulary.korean() if translates else None,
        quality=shipped.quality(task.model, clauses=plan.clauses),  # type: ignore[arg-type]  # a plan's model is one of those
    )
    write_whole(path, lambda temporary: shipped.save(temporary, card, task.model))
    kept.unlink(missing_ok=True)
    for line in shipped.told(card.quality):
        typer.echo(line)
    sys.stderr.write(f"wrote {visible(str(path))}\n")
