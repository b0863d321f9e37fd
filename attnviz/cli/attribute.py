"""``attnviz attribute``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from attnviz.cli import options as opt
from attnviz.cli.output import (
    JSON,
    check_outputs,
    check_style,
    default_picture,
    model_name,
    open_model,
    print_json,
    print_view,
    read_text,
    shows_progress,
    write,
)
from attnviz.errors import SettingsError
from attnviz.look import Look
from attnviz.render.names import DEFAULT, outputs, picture_path

EXAMPLES = """attnviz attribute --toy "The dog barked because it was hungry" --for it
attnviz attribute -m toy-decoder "She is eating a green"
attnviz attribute "She is eating a green apple" --for apple -o matters.png"""


def attribute(
    context: typer.Context,
    text: opt.Text = None,
    file: opt.File = None,
    target: Annotated[
        str | None,
        opt.option(
            "--for",
            panel=opt.INPUT,
            metavar="WORD|N",
            help="The output: a word of the text, sentence, next or class.",
        ),
    ] = None,
    word: Annotated[
        str | None,
        opt.option(
            "--for-word", panel=opt.INPUT, metavar="WORD", help="The output: this predicted word."
        ),
    ] = None,
    label: Annotated[
        str | None,
        opt.option("--for-class", panel=opt.INPUT, metavar="CLASS", help="The output: this class."),
    ] = None,
    model: opt.Model = None,
    toy: opt.Toy = False,
    device: opt.Device = "auto",
    trust_remote_code: opt.TrustRemoteCode = False,
    head: Annotated[
        list[str] | None,
        opt.option(panel=opt.SHOWN, metavar="L.H", help="The weights of one head, such as 1.3."),
    ] = None,
    heads: Annotated[
        bool, opt.option("--heads", panel=opt.SHOWN, help="The output without each head at all.")
    ] = False,
    palette: opt.Palette = DEFAULT,
    lang: opt.Lang = "en",
    style: opt.Style = "sheet",
    theme: opt.Theme = "auto",
    output: Annotated[
        list[Path] | None, opt.output_option("png, svg, pdf, html, json, csv, or - to print JSON")
    ] = None,
    quiet: opt.Quiet = False,
) -> None:
    """See what a model does without the attention to each token.

    What the attention carries from a token is taken out, and the output of the model is
    compared with that of other cuts of the same weight.
    """
    if sum(output is not None for output in (target, word, label)) > 1:
        raise SettingsError("give one output: --for, --for-word or --for-class")
    paths, place = output or [], opt.one_head(head)
    from attnviz.attributions.record import Attribution

    check_outputs(paths, Attribution.ENDINGS)
    check_style(context, paths or [outputs() / "attribute.png"])
    sentence = read_text(text, file)
    source = open_model(
        model_name(model, toy),
        device=device,
        trust_remote_code=trust_remote_code,
        reads=sentence,
        head="saved",
    )
    from attnviz.attributions.api import attribute as find
    from attnviz.attributions.terminal import draw

    with _counted() as report:
        found = find(
            sentence,
            source,
            target=target,
            word=word,
            label=label,
            head=place,
            without_heads=heads,
            on_runs=report,
        )
    if JSON in paths:
        from attnviz.attributions.files import to_json

        print_json(to_json(found))
    else:
        print_view(lambda screen: draw(found, screen), theme=theme)
    look = Look(palette=palette, style=style, theme=theme)
    for path in paths:
        if path != JSON:
            write(found, path, look)
    if not output:
        with default_picture():
            name = f"{found.output.kind} {found.output.text}".strip()
            path = picture_path(
                "attribute", found.text, f"{found.model} {name}", pair=None, target=None
            )
            write(found, path, look)


@contextmanager
def _counted() -> Iterator[Callable[[int], None] | None]:
    """Show how many variants have run, if standard error is a terminal."""
    if not shows_progress():
        yield None
        return
    from rich.console import Console

    with Console(stderr=True).status("cutting ...") as status:
        yield lambda n: status.update(f"cutting ... {n:,} variants of the text")
