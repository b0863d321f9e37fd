"""``attnviz walkthrough`` and ``attnviz verify``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnviz.cli import options as opt
from attnviz.cli.output import (
    JSON,
    check_outputs,
    check_style,
    default_picture,
    is_typed,
    loading,
    model_name,
    print_json,
    print_view,
    read_pipe,
    read_text,
    write,
)
from attnviz.errors import SettingsError
from attnviz.look import Look
from attnviz.render.names import DEFAULT, outputs, picture_path
from attnviz.text.display import clip, rounding, visible
from attnviz.walkthroughs.settings import Example as ExampleName
from attnviz.walkthroughs.settings import Score

if TYPE_CHECKING:
    from attnviz.walkthroughs.record import Walkthrough

EXAMPLES = """attnviz walkthrough --toy
attnviz walkthrough -m bert-base-uncased "A green apple" --head 3.5
attnviz walkthrough -m toy-seq2seq "I love you" --lang ko -o walk.html
attnviz walkthrough --example seq2seq
attnviz walkthrough --input sample_inputs/homework.yaml -o homework.md"""

VERIFY_EXAMPLES = """attnviz walkthrough --toy -o walk.json
attnviz verify walk.json"""

OF_MODEL = (
    *("model", "toy", "device", "trust_remote_code"),
    *("text", "pair", "target", "head", "whole_layer", "kind", "score"),
)
"""Options that a calculation by hand does not accept."""

MOST_NAMES = 120  # characters of a list of names
WALKTHROUGH_ENDINGS = "png, svg, pdf, html, md, csv, json, or - to print JSON"


def walkthrough(
    context: typer.Context,
    text: opt.Text = None,
    pair: opt.Pair = None,
    target: opt.Target = None,
    example: Annotated[
        ExampleName | None,
        opt.option(panel=opt.INPUT, metavar="NAME", help="seq2seq, seq2seq-word, self-attention."),
    ] = None,
    numbers: Annotated[
        Path | None,
        opt.option(
            "--input", panel=opt.INPUT, metavar="FILE", help="Your own numbers: json, yaml."
        ),
    ] = None,
    exercise: Annotated[
        int | None,
        opt.option(panel=opt.INPUT, metavar="SEED", min=0, help="Leave cells blank to fill in."),
    ] = None,
    solution: Annotated[
        bool, opt.option("--solution", panel=opt.INPUT, help="With --exercise: fill them in.")
    ] = False,
    model: opt.Model = None,
    toy: opt.Toy = False,
    device: opt.Device = "auto",
    trust_remote_code: opt.TrustRemoteCode = False,
    head: Annotated[
        list[str] | None,
        opt.option(panel=opt.SHOWN, metavar="L.H", help="One head, such as 1.3; 3: of any layer."),
    ] = None,
    whole_layer: Annotated[
        int | None,
        opt.option(panel=opt.SHOWN, metavar="N", help="All heads of this layer, to its output."),
    ] = None,
    query: Annotated[
        str | None,
        opt.option(
            panel=opt.SHOWN,
            metavar="WORD|N",
            help="The query [default: that of the link that heatmap names].",
        ),
    ] = None,
    all_queries: Annotated[
        bool, opt.option("--all-queries", panel=opt.SHOWN, help="All words at once.")
    ] = False,
    kind: opt.Kind = None,
    score: Annotated[
        Score, opt.option(panel=opt.SHOWN, help="How queries and keys make scores.")
    ] = "scaled",
    full: Annotated[
        bool, opt.option("--full", panel=opt.SHOWN, help="Every step, with one cell worked out.")
    ] = False,
    interactive: Annotated[
        bool, opt.option("--interactive", panel=opt.SHOWN, help="Step by step: next, back, quit.")
    ] = False,
    precision: Annotated[
        int | None,
        opt.option(panel=opt.LOOK, min=0, max=17, metavar="N", help="Digits after the point."),
    ] = None,
    lang: opt.Lang = "en",
    palette: opt.Palette = DEFAULT,
    style: opt.Style = "sheet",
    theme: opt.Theme = "auto",
    output: Annotated[list[Path] | None, opt.output_option(WALKTHROUGH_ENDINGS)] = None,
    quiet: opt.Quiet = False,
) -> None:
    """Follow one word through one head, number by number.

    For each key its score, its weight and what it contributes, on one screen; with
    --full every step. Checked against what the model itself computed.
    """
    name = model_name(model, toy)
    paths = output or []
    _check(context, paths, style)
    from attnviz.walkthroughs.api import walkthrough as calculate

    follow: dict[str, Any] = {"query": query or None, "all_queries": all_queries, "full": full}
    has_numbers = [example, numbers, exercise].count(None) < 3
    if has_numbers and not is_typed(context, *OF_MODEL):  # a calculation by hand
        follow |= {"example": example, "numbers": numbers}
        if example is None and numbers is None:
            follow["exercise"] = exercise
        walk = calculate(**follow)
    else:
        follow |= {
            "text": read_pipe() if text is None else read_text(text),
            "model": name,
            "device": device,
            "trust_remote_code": trust_remote_code,
            "pair": None if pair is None else read_text(pair, None, "the second sentence"),
            "target": target,
            "head": opt.one_head(head),
            "layer": whole_layer,
            "whole_layer": whole_layer is not None,
            "kind": kind,
            "score": score,
        }
        with loading(name) as notify:
            walk = calculate(notify=notify, **follow)
    blanks = walk.blanks() if exercise is not None and not solution else frozenset()
    look = Look(palette=palette, style=style, theme=theme)
    view: dict[str, Any] = {"precision": precision, "blanks": blanks}
    if JSON in paths:
        from attnviz.walkthroughs.files import to_json

        print_json(to_json(walk, blanks=blanks))
    elif interactive:
        from attnviz.walkthroughs.terminal.interactive import browse

        browse(walk.view(look, **view), palette, theme)
    else:
        from attnviz.walkthroughs.terminal.steps import draw_overview, draw_walk

        draw = draw_walk if full else draw_overview
        print_view(partial(draw, walk.view(look, **view)), palette, theme)
    for path in paths:
        if path != JSON:
            write(walk, path, look, **view)
    if not output and not interactive:
        with default_picture():
            write(walk, _default_path(walk, context.params), look, **view)


def _check(context: typer.Context, paths: Sequence[Path], style: opt.Style) -> None:
    """Refuse options that do not go together, before a model is loaded."""
    from attnviz.walkthroughs.record import Walkthrough

    options = context.params
    if options["solution"] and options["exercise"] is None:
        raise SettingsError("--solution fills in the blank cells of an --exercise")
    if options["interactive"] and JSON in paths:
        raise SettingsError("give --interactive or -o -, not both")
    if options["interactive"] and not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise SettingsError("--interactive needs a terminal; without one, leave it out")
    has_json = any(path == JSON or path.suffix.lower() == ".json" for path in paths)
    if options["exercise"] is not None and not options["solution"] and has_json:
        raise SettingsError(
            "JSON holds every number: an exercise with blank cells cannot be written so"
        )
    check_outputs(paths, Walkthrough.ENDINGS)
    draws_default = not paths and not options["interactive"]
    check_style(context, [outputs() / "walkthrough.png"] if draws_default else paths)
    if (options["example"] or options["numbers"]) and is_typed(context, *OF_MODEL):
        raise SettingsError(
            "a calculation by hand needs no model: it takes no sentence and no option of a model"
        )


def _default_path(walk: Walkthrough, options: dict[str, Any]) -> Path:
    """Return a file in `outputs` named after the options, so that the same command writes the same file."""
    source = f"example {options['example']}" if options["example"] else None
    if options["numbers"] is not None:
        source = options["numbers"].stem
    parts = []
    if walk.model:
        parts.append(f"layer-{walk.layer}")
        parts.append("whole" if walk.head is None else f"head-{walk.head}")
    if walk.model or source is not None:
        parts.append(f"query-{'all' if walk.query is None else walk.query}")
    if walk.kind not in (None, "encoder"):
        parts.append(str(walk.kind))
    if options["exercise"] is not None:
        parts.append(f"{'solution' if options['solution'] else 'exercise'}-{options['exercise']}")
    subject = walk.text or source or walk.view(Look()).title
    return picture_path("walkthrough", subject, walk.model, parts, pair=None, target=None)


def verify(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A walkthrough saved with -o FILE.json.")
    ],
    quiet: opt.Quiet = False,
) -> None:
    """Compute a saved walkthrough again, and name what is wrong.

    Every step is computed from the numbers in the file.
    """
    from attnviz.attention import count
    from attnviz.errors import RecordError
    from attnviz.walkthroughs.verify import TOLERANCE
    from attnviz.walkthroughs.verify import verify as compute_again

    verdict = compute_again(file)
    if verdict.fault:
        raise RecordError(f"{visible(str(file))}: {verdict.fault}")
    walk = verdict.walk
    names = [f"{number}. {step.name}" for number, step in enumerate(walk.steps, start=1)]
    results = [f"{step.result} {walk.grids[step.result].values.shape}" for step in walk.steps]
    name_width, result_width = (max(map(len, texts)) for texts in (names, results))
    for name, result, difference in zip(names, results, verdict.differences, strict=True):
        line = f"{name.ljust(name_width)}  {result.ljust(result_width)}"
        typer.echo(f"{line}  largest difference {rounding(difference)}")
    inputs = walk.inputs()
    if inputs:
        typer.echo(f"given, so not computed: {clip(', '.join(inputs), MOST_NAMES)}")
    used_names = {name for step in walk.steps for name in step.operands}
    unused_names = tuple(name for name in inputs if name not in used_names)
    if unused_names:
        typer.echo(
            f"not used by any step, so not checked: {clip(', '.join(unused_names), MOST_NAMES)}"
        )
    if walk.model and walk.receipt is None:
        typer.echo("this file has no receipt: its given numbers may not be those of a model")
    elif walk.own is not None and walk.difference is not None:
        distance = rounding(walk.difference)
        typer.echo(f"difference from the model's own {walk.own}, by its receipt: {distance}")
    counts = f"{count(len(walk.steps), 'step')}, {count(verdict.cells, 'cell')}"
    largest = rounding(max(verdict.differences))
    typer.echo(
        f"verified: {counts}, largest difference {largest}"
        f" (at most {TOLERANCE:.0e} of what a cell is made of)"
    )
