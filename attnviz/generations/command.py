"""``attnviz generate``: a text goes on, each new token with what it attends to."""

from __future__ import annotations

from dataclasses import asdict

from attnviz.commands import check_writable, console_here, open_model, read_text, took, write_result
from attnviz.generations import settings
from attnviz.options import name_parts
from attnviz.render.names import picture_path
from attnviz.storage.formats import RECORD
from attnviz.text.display import check_text

EXAMPLES = """attnviz generate "I love"
attnviz generate "She is eating a green apple" -m toy-seq2seq --lang ko
attnviz generate "The big animal" --sample --temperature 1.5 --seed 3 -o record.npz
attnviz generate "The big animal" -o film.gif
attnviz generate "Why is the sky blue?" -m Qwen/Qwen3-0.6B --chat"""


def command(
    prompt: settings.Prompt,
    sampling: settings.Sampling,
    model: settings.GeneratingModel,
    selection: settings.GenerationSelection,
    appearance: settings.GenerationAppearance,
    output: settings.GenerationOutput,
) -> None:
    """See a text go on, each new token with what it attends to.

    The text so far is shaded by the newest token's row of attention, the mean over layers and heads, or one head's.
    Ctrl-C or q stops it: what there is, is kept. All rows together are written as a picture, a film or a record.
    """
    if appearance.interactive:
        from attnviz.render.terminal.keyboard import expect_terminal

        expect_terminal("leave it out")
    text = read_text(prompt.text, prompt.file)
    check_text(text, "the prompt")
    check_writable(output.planned())
    from attnviz.generations.api import generate
    from attnviz.generations.terminal import Live

    source = open_model(model, text, generates=True)
    layers, heads = selection.numbers
    with Live(appearance, console_here) as live:
        record = generate(
            text,
            source,
            max_new_tokens=prompt.max_new_tokens,
            chat=prompt.chat,
            on_step=live.show,
            layers=layers,
            heads=heads,
            **asdict(sampling),
        )
        live.look_back()
    took("generated")
    live.end(record)
    more = [
        *name_parts(selection),
        *name_parts(appearance, "palette", "lang"),
        *name_parts(sampling),
    ]
    more += name_parts(prompt, "chat", "max_new_tokens")
    usual = picture_path("generate", text, record.model, more, pair=None, target=None)
    for path in output.output or (usual,):
        write_result(RECORD, record, path, cmap=appearance.palette, lang=appearance.lang)
