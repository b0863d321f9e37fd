"""``attnviz walkthrough``: one word through one head, every number of the calculation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnviz import arguments, options
from attnviz.capture.notices import opened
from attnviz.walkthroughs.outputs import ENDINGS, FILMS, Shown, named, print_walk, steps_named, write_walk

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough

EXAMPLES = """Examples:

attnviz walkthrough --toy

attnviz walkthrough -m bert-base-uncased "She is eating a green apple" --query eating --layer 3 --head 5

attnviz walkthrough -m toy-seq2seq "I love all you" --query 1 --lang ko -o walk.html

attnviz walkthrough --example seq2seq

attnviz walkthrough --toy --interactive --jump 6

attnviz walkthrough -m toy-seq2seq "I love all you" -o walk.gif

attnviz walkthrough --input numbers.yaml --steps score,softmax,context -o homework.tex"""

Jump = Annotated[
    int | None,
    typer.Option(
        "--jump", min=1, help="Begin at step N.", metavar="N", show_default=False, rich_help_panel="What is shown"
    ),
]
Interactive = Annotated[
    bool,
    typer.Option(
        "--interactive", help="Step by step, with the keyboard; no file without -o.", rich_help_panel="What is shown"
    ),
]

TOY = "toy"

SENTENCE = "I love all you"
"""What is read where no sentence is given."""


PRECISION = {"seq2seq": 8}
"""Digits after the point of examples whose smallest weights need them."""

BY_HAND = {
    "precision", "lang", "steps", "palette", "background", "output", "json", "example", "numbers", "exercise",
    "solution", "seed", "jump", "interactive",
}  # fmt: skip
"""The parameters that a calculation without a model takes."""

ROWS = {"query", "all_queries"}
"""Those that it takes as well where it has several queries."""


def command(
    context: typer.Context,
    text: options.Text = None,
    model: options.Model = None,
    toy: options.Toy = False,
    layer: options.OneLayer = 0,
    head: options.OneHead = 0,
    query: options.Query = None,
    all_queries: options.AllQueries = False,
    whole_layer: options.WholeLayer = False,
    score: options.Score = "scaled",
    causal: options.Causal = False,
    steps: options.Steps = None,
    jump: Jump = None,
    interactive: Interactive = False,
    precision: options.Precision = 3,
    lang: options.Language = "en",
    palette: options.Palette = "magma",
    background: options.Background = "auto",
    output: options.WalkOutput = None,
    json: options.Json = False,
    example: options.Example = None,
    numbers: options.Numbers = None,
    exercise: options.Exercise = False,
    solution: options.Solution = False,
    file: options.File = None,
    pair: options.Pair = None,
    target: options.Target = None,
    kind: options.Kind = None,
    truncate: options.Truncate = False,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    seed: options.Seed = None,
    d_model: options.DModel = None,
    n_heads: options.NHeads = None,
    n_layers: options.NLayers = None,
) -> None:
    """Follow one word through one head: input, query, keys, values, scores, softmax, alignment, context.

    Every step shows its formula, its shapes and its numbers, and can be checked by hand. The last line says how far the
    context is from what the model itself computed. Without a sentence it is "I love all you".
    """
    outputs = list(output or [])
    arguments.check_outputs(outputs, ENDINGS)
    typed = {name for name in context.params if _is_typed(context, name)}
    _check_together(typed, wants_json=json or any(path.suffix.lower() == ".json" for path in outputs))
    if interactive:
        from attnviz.walkthroughs.keyboard import expect_terminal

        expect_terminal()
    _check_writable(outputs or ([] if json or interactive else [Path("outputs") / "x.png"]))
    if example is not None or numbers is not None or (exercise and typed <= BY_HAND):
        walks = [_by_hand(example, numbers, seed or 0, query)]
    else:
        film = any(path.suffix.lower() in FILMS for path in outputs)
        walks = _followed(
            SENTENCE if text is None and file is None else arguments.read_text(text, file),
            TOY if toy else model,
            {
                "device": device,
                "dtype": dtype,
                "revision": revision,
                "trust_remote_code": trust_remote_code,
                "sizes": arguments.sizes(
                    model, seed=None if exercise else seed, d_model=d_model, n_heads=n_heads, n_layers=n_layers
                ),
            },
            None
            if film and not {"query", "all_queries", "whole_layer"} & typed
            else {"query": query, "every": all_queries or (whole_layer and query is None), "whole_layer": whole_layer},
            layer=layer,
            head=head,
            pair=None if pair is None else arguments.read_text(pair, None, "the second sentence"),
            target=target,
            kind=kind,
            truncate=truncate,
            score="scaled_dot" if score == "scaled" else score,
            causal=causal,
        )
    walk = walks[0]
    blanks: frozenset[tuple[str, int, int]] = frozenset()
    if exercise and not solution:
        from attnviz.walkthroughs.exercise import blanks as chosen_blanks

        blanks = chosen_blanks(walk, seed or 0)
    if "precision" not in typed:
        precision = PRECISION.get(example or "", precision)
    shown = Shown(language=lang, precision=precision, steps=steps_named(walk, steps), blanks=blanks, palette=palette)
    if json:
        from attnviz.walkthroughs.files import to_json

        sys.stdout.write(to_json(walk) + "\n")
    elif interactive:
        from attnviz.walkthroughs.keyboard import browse

        browse(walk, shown, background, jump or 1)
    else:
        print_walk(walk, shown, background, jump or 1)
    if not outputs and not json and not interactive:
        otherwise: list[str] = [score] if score != "scaled" else []
        otherwise += [lang] if lang != "en" else []
        otherwise += ["-".join(shown.steps)] if shown.steps else []
        otherwise += [f"{'exercise' if blanks else 'solution'}-{seed or 0}"] if exercise else []
        called = f"example {example}" if example else numbers.stem if numbers else None
        outputs = [named(walk, otherwise, numbers=called, pair=pair, target=target)]
    for path in outputs:
        write_walk(walks, path, shown)


def _is_typed(context: typer.Context, name: str) -> bool:
    """Whether an option was given, and is not as it always is."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _check_together(typed: set[str], *, wants_json: bool) -> None:
    """Refuse options that say two things at once.

    Args:
        typed: the options given.
        wants_json: whether the walkthrough is to be written as JSON.

    Raises:
        BadParameter: such options.
    """
    names = {name: name.replace("_", "-") for name in typed} | {"numbers": "input"}
    for one, other in (
        ("example", "numbers"), ("query", "all_queries"), ("head", "whole_layer"),
        ("toy", "model"), ("toy", "revision"),
        ("toy", "trust_remote_code"), ("interactive", "json"), ("jump", "json"),
    ):  # fmt: skip
        if {one, other} <= typed:
            raise typer.BadParameter(f"give --{names[one]} or --{names[other]}, not both")
    for one in ("example", "numbers"):
        if one in typed and not typed <= BY_HAND | ROWS:
            raise typer.BadParameter(f"--{names[one]} needs no model: it takes no sentence, and no option of a model")
    if "solution" in typed and "exercise" not in typed:
        raise typer.BadParameter("--solution goes with --exercise: it fills in the blank cells")
    if "exercise" in typed and "solution" not in typed and wants_json:
        raise typer.BadParameter("JSON holds every number: an exercise with blank cells cannot be written so")
    if "seed" in typed and "exercise" not in typed and typed & {"example", "numbers"}:
        raise typer.BadParameter("--seed goes with --exercise, or with --model toy-random")


def _check_writable(outputs: list[Path]) -> None:
    """Find out before the model runs whether its files can be written."""
    arguments.check_writable(outputs)
    if any(path.suffix.lower() == ".mp4" for path in outputs):
        from attnviz.walkthroughs.figure.film import need_ffmpeg

        need_ffmpeg()


def _by_hand(example: str | None, numbers: Path | None, seed: int, query: str | None) -> Walkthrough:
    """A calculation that needs no model: an example, a person's own numbers, or an exercise, which has one query."""
    if example is not None:
        from attnviz.walkthroughs.examples import example as example_named

        return example_named(example, query=query)
    if numbers is not None:
        from attnviz.walkthroughs.homework import read

        return read(numbers, query=query)
    from attnviz.walkthroughs.exercise import make

    return make(seed)


def _followed(
    text: str,
    model: str | None,
    loading: dict[str, Any],
    queries: dict[str, Any] | None,
    **chosen: Any,
) -> list[Walkthrough]:
    """A word followed through a model; without `queries` each word that a decoder says.

    `loading` holds the arguments of `attnviz.capture.source.open_source`, `queries` and `chosen` those of
    `attnviz.walkthroughs.capture.walks.walk`.
    """
    from attnviz.text.display import check_text

    check_text(text)
    if chosen["pair"] is not None:
        check_text(chosen["pair"], "the second sentence")
    if chosen["target"] is not None:
        check_text(chosen["target"], "the target")
    from attnviz.walkthroughs.capture.walks import decoding_steps, walk

    with opened(model, **loading) as source:
        if queries is None:
            return decoding_steps(text, source, **chosen)
        return [walk(text, source, **chosen, **queries)]
