"""``attnviz models``: which models there are, and how good the home-built ones are."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from attnviz.models.registry import BOTTLENECK, HOME_BUILT, NAMES, SEEDS
from attnviz.settings import option
from attnviz.text.display import visible

EXAMPLES = """Examples:

attnviz models

attnviz models --measure"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsSettings:
    """What is told of the models.

    Attributes:
        measure: whether the home-built ones are measured again.
    """

    measure: bool = option(
        "--measure", default=False, help="Measure the home-built models again, on sentences they never saw."
    )


def command(models: ModelsSettings) -> None:
    """List the models that can be used, and how good they are."""
    from attnviz.models.training.files import load_home_built
    from attnviz.models.training.measure import quality, quality_lines

    typer.echo("Come with attnviz:\n")
    for name in NAMES:
        about = HOME_BUILT[name]
        if about.recipe is None:
            typer.echo(f"{name}: {about.about}\n")
            continue
        card, model = load_home_built(name)
        recipe = card.plan.recipe
        n_weights = sum(parameter.numel() for parameter in model.parameters())
        typer.echo(f"{name}: {card.plan.learns}")
        typer.echo(f"  {n_weights:,} weights; {recipe.steps:,} batches of {recipe.batch}; seed {recipe.seed}")
        if models.measure:
            sys.stderr.write(f"measuring {name} ...\n")
        for line in quality_lines(quality(model) if models.measure else card.quality):
            typer.echo(f"  {line}")
        typer.echo("")
    _tell_bottleneck(measure=models.measure)
    cached = _cached()
    typer.echo("In the cache of pretrained models:" if cached else "In the cache of pretrained models: none")
    for name in cached:
        typer.echo(f"  {visible(name)}")


def _tell_bottleneck(*, measure: bool) -> None:
    """The translators that differ in attention alone, and how far they are apart."""
    names = " and ".join(f"bottleneck-{which}-{SEEDS[0]} to -{SEEDS[-1]}" for which, *_ in BOTTLENECK)
    typer.echo(f"{names}: translators that differ in attention alone, for attnviz demo bottleneck")
    if measure:
        from attnviz.stories import bottleneck

        sys.stderr.write("measuring the bottleneck models ...\n")
        kinds = {kind: bottleneck.open_kind(kind) for kind in (bottleneck.WITH, bottleneck.WITHOUT)}
        shorter, longer = bottleneck.gaps(bottleneck.compare(kinds, bottleneck.unseen_pairs()))
        typer.echo("  sentences without a fault, with attention minus without, and the 95 % interval:")
        typer.echo(f"  shorter half of the lengths: {shorter}; longer half: {longer}")
    typer.echo("")


def _cached() -> list[str]:
    """The names of the pretrained models that the cache holds whole."""
    from huggingface_hub import constants

    from attnviz.capture.sources.hub import is_cached

    folders = Path(constants.HF_HUB_CACHE).glob("models--*")
    names = sorted(folder.name.removeprefix("models--").replace("--", "/") for folder in folders)
    return [name for name in names if is_cached(name)]
