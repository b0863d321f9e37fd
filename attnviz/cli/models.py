"""``attnviz models``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from attnviz.cli import options as opt
from attnviz.cli.output import print_view
from attnviz.errors import InputError
from attnviz.models.registry import BOTTLENECK, HOME_BUILT, SEEDS, is_random, names, trained
from attnviz.render.names import outputs
from attnviz.text.display import visible

EXAMPLES = """attnviz models
attnviz models toy-ko
attnviz models --measure"""


def models(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="A home-built model: the words that it knows are listed.",
            show_default=False,
            autocompletion=opt.complete_models,
            rich_help_panel=opt.INPUT,
        ),
    ] = None,
    measure: Annotated[
        bool,
        opt.option(
            "--measure",
            help="Measure the home-built models again, on sentences they never saw.",
            panel=opt.INPUT,
        ),
    ] = False,
    quiet: opt.Quiet = False,
) -> None:
    """List the models that can be used, and how good they are; or the words that one knows."""
    if name is not None:
        _print_words(name)
        return
    from attnviz.capture.source import list_models

    entries = list_models((Path(), outputs()))
    local = [entry.name for entry in entries if entry.where == "here"]
    cached = [entry.name for entry in entries if entry.where == "cache"]
    typer.echo("Shipped with attnviz:\n")
    for name in names():
        if is_random(name):
            _print(f"{name}: {HOME_BUILT[name].about}")
            typer.echo("")
        else:
            _print_trained(name, measure=measure)
    _print_bottleneck()
    if local:
        typer.echo("Trained here:\n")
    else:
        _print("Trained here, in this folder and in outputs/: none")
        typer.echo("")
    for name in local:
        _print_trained(name, measure=measure)
    typer.echo(f"In the cache of pretrained models:{'' if cached else ' none'}")
    for name in cached:
        typer.echo(f"  {visible(name)}")


def _print(text: str, first: int = 0) -> None:
    """Print a text in lines as wide as the screen: the first after this many free cells, others after 4."""
    from attnviz.render.terminal.text import wrap

    print_view(lambda screen: wrap(text, screen, first=first, indent=4, most=screen.width))


def _print_words(name: str) -> None:
    """Print the words that a trained home-built model knows; particles begin with a dot."""
    from rich.text import Text

    from attnviz.models.language.vocabulary import PIECE, SPECIAL
    from attnviz.models.training.files import ENDING, load_home_built
    from attnviz.render.terminal.text import fold

    if name not in trained() and not name.endswith(ENDING):
        reason = "it is not one of the trained models that come with attnviz"
        if is_random(name):
            reason = "it reads any words"
        raise InputError(f"cannot list the words of {visible(name)}: {reason}")
    card, _ = load_home_built(name)
    for verb, vocabulary in (("reads", card.source), ("generates", card.target)):
        if vocabulary is not None:
            words = [
                visible(word.replace(PIECE, "·"))
                for word in vocabulary.words
                if word not in SPECIAL
            ]
            typer.echo(f"{visible(name)} {verb} {len(words):,} words:")
            for line in fold(Text(" ".join(words)), 80):
                typer.echo(line.plain)


def _print_trained(name: str, *, measure: bool) -> None:
    """Print what a trained home-built model learned, its size and its quality; `measure` computes it again."""
    from attnviz.models.training.files import load_home_built
    from attnviz.models.training.measure import quality, quality_lines

    card, model = load_home_built(name)
    recipe = card.plan.recipe
    n_weights = sum(parameter.numel() for parameter in model.parameters())
    _print(f"{visible(name)}: {card.plan.learns}")
    size = f"{n_weights:,} weights; {recipe.steps:,} batches of {recipe.batch}; seed {recipe.seed}"
    _print(size, 2)
    if measure:
        sys.stderr.write(f"measuring {visible(name)} ...\n")
    for line in quality_lines(quality(model) if measure else card.quality):
        _print(line, 2)
    typer.echo("")


def _print_bottleneck() -> None:
    """Print the names of the translators with and without attention."""
    names = " and ".join(f"bottleneck-{kind}-{SEEDS[0]} to -{SEEDS[-1]}" for kind in BOTTLENECK)
    _print(f"{names}: translators that differ in attention alone, for attnviz demo bottleneck")
    typer.echo("")
