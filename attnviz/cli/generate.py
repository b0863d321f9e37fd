"""``attnviz generate``."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from attnviz.cli import options as opt
from attnviz.cli.output import (
    check_outputs,
    check_style,
    default_picture,
    model_name,
    open_model,
    read_text,
    write,
)
from attnviz.generations.settings import DEFAULT_MODEL, Sampling
from attnviz.look import Look
from attnviz.render.names import DEFAULT, outputs, picture_path
from attnviz.text.display import check_text
from attnviz.text.messages import language

EXAMPLES = """attnviz generate "I love"
attnviz generate -m toy-transformer "I love all you" -o love.html
attnviz generate -m gpt2 "The cat" --sample --temperature 0.8 --seed 3"""


_option = partial(opt.option, panel=opt.INPUT)


def generate(
    context: typer.Context,
    text: opt.Text = None,
    file: opt.File = None,
    max_new_tokens: Annotated[int, _option(min=1, metavar="N", help="The most tokens.")] = 40,
    chat: Annotated[bool, _option("--chat", help="Use the model's chat template.")] = False,
    sample: Annotated[
        bool, _option("--sample", help="Draw each token by its probability.")
    ] = False,
    temperature: Annotated[
        float, _option(metavar="T", help="With --sample: below 1, likely tokens come more often.")
    ] = 1.0,
    top_k: Annotated[
        int | None, _option(metavar="K", help="With --sample: choose among the K likeliest.")
    ] = None,
    top_p: Annotated[
        float | None,
        _option(metavar="P", help="With --sample: among the likeliest of probability P."),
    ] = None,
    seed: Annotated[
        int, _option(metavar="N", help="With --sample: the same seed gives the same text.")
    ] = 0,
    model: opt.Model = None,
    toy: opt.Toy = False,
    device: opt.Device = "auto",
    trust_remote_code: opt.TrustRemoteCode = False,
    layer: opt.Layer = None,
    head: opt.Head = None,
    palette: opt.Palette = DEFAULT,
    lang: opt.Lang = "en",
    style: opt.Style = "sheet",
    theme: opt.Theme = "auto",
    output: Annotated[
        list[Path] | None, opt.output_option("png, svg, pdf, html, csv, json, npz, safetensors")
    ] = None,
    quiet: opt.Quiet = False,
) -> None:
    """Generate text and see what each new token attends to.

    A decoder continues a text, a translator translates it. Press Ctrl-C to stop; the
    text so far is kept.
    """
    layers, heads = opt.parse_heads(layer, head)
    # Impossible settings are refused here, before any work.
    sampling = Sampling(sample=sample, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    name = "toy-decoder" if toy else model_name(model, toy) or DEFAULT_MODEL
    from attnviz.attention import Attention

    paths = output or [outputs() / "generate.png"]
    check_outputs(output or [], Attention.ENDINGS, prints_json=False)
    check_style(context, paths)
    prompt = read_text(text, file)
    check_text(prompt, "the prompt")
    source = open_model(
        name,
        device=device,
        trust_remote_code=trust_remote_code,
        reads=prompt,
        head="words",
    )
    from attnviz.generations.api import generate as generate_text
    from attnviz.generations.terminal import StepLog
    from attnviz.render.terminal.screen import console_here, screen_of

    console = console_here()
    screen = screen_of(console, palette, theme)
    log = StepLog(console, screen)
    with language(screen.fallback):
        record = generate_text(
            prompt,
            source,
            max_new_tokens=max_new_tokens,
            chat=chat,
            layers=layers,
            heads=heads,
            on_step=log.show,
            **asdict(sampling),
        )
        log.end(record)
    look = Look(palette=palette, style=style, theme=theme)
    for path in output or []:
        write(record, path, look)
    if not output:
        with default_picture():
            path = picture_path("generate", record.text, record.model, pair=None, target=None)
            write(record, path, look)
