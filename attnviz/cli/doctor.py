"""``attnviz doctor``: a report on each layer of a model's attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from attnviz.cli import options as opt
from attnviz.cli.output import loading, print_view
from attnviz.text.display import rounding

if TYPE_CHECKING:
    from rich.text import Text

    from attnviz.capture.doctor import Diagnosis
    from attnviz.render.terminal.screen import Screen

EXAMPLES = """attnviz doctor toy-transformer
attnviz doctor bert-base-uncased
attnviz doctor ./folder --random"""

# The title of each column: the field of a report on a layer, and its meaning, which is printed below the table.
COLUMNS = {
    "layer": ("number", ""),
    "kind": ("kind", ""),
    "heads": ("heads", ""),
    "keys": ("key_heads", "heads that have keys of their own"),
    "mask": ("mask", ""),
    "window": ("window", "keys that a query sees at most"),
    "output": ("output", "largest difference of weights times values from the model's own output"),
    "eager": ("eager", "of the weights from output_attentions=True"),
}


def doctor(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="As for --model of other commands.",
            show_default=False,
            autocompletion=opt.complete_models,
            rich_help_panel=opt.INPUT,
        ),
    ],
    random: Annotated[
        bool,
        opt.option(
            "--random",
            help="Draw the weights at random: the model's configuration is enough.",
            panel=opt.MODEL,
        ),
    ] = False,
    seed: Annotated[
        int,
        opt.option(
            metavar="N", min=0, help="Of the tokens and of random weights.", panel=opt.MODEL
        ),
    ] = 0,
    device: opt.Device = "auto",
    trust_remote_code: opt.TrustRemoteCode = False,
    quiet: opt.Quiet = False,
) -> None:
    """Check that attnviz reads a model correctly, layer by layer, with the numbers that prove it.

    A pretrained model runs its fused attention on two inputs of tokens drawn at random,
    one padded. Weights times values are compared with its own output, and weights with
    those of output_attentions=True.
    """
    from attnviz.capture.doctor import doctor as examine

    with loading(model) as notify:
        diagnosis = examine(
            model,
            random=random,
            seed=seed,
            device=device,
            trust_remote_code=trust_remote_code,
            notify=notify,
        )
    print_view(lambda screen: _draw_diagnosis(diagnosis, screen))
    if diagnosis.refusal:
        raise typer.Exit(1)


def _draw_diagnosis(diagnosis: Diagnosis, screen: Screen) -> Iterator[Text]:
    """Yield the verdict, the table of layers without empty columns, and the meaning of the columns."""
    from rich.text import Text

    from attnviz.render.columns import Column
    from attnviz.render.terminal.table import folded_table
    from attnviz.render.terminal.text import wrap

    yield from wrap(diagnosis.verdict, screen)
    yield Text()
    columns, meanings = [], []
    for title, (field, meaning) in COLUMNS.items():
        cells = [_cell(getattr(layer, field)) for layer in diagnosis.layers]
        if any(cells):
            columns.append(Column(title, cells, right=title not in {"kind", "mask"}))
            meanings += [f"{title}: {meaning}"] if meaning else []
    yield from folded_table(columns, screen)
    yield Text()
    yield from wrap("; ".join(meanings), screen, "dim")


def _cell(value: str | float | None) -> str:
    return rounding(value) if isinstance(value, float) else str("" if value is None else value)
