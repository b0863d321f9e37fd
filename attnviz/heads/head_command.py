"""``attnviz head``: all that is known of one head."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from attnviz import arguments, options
from attnviz.heads import options as head_options
from attnviz.heads import surveys
from attnviz.heads.asked import thresholds, understood
from attnviz.render.names import picture_path

_IS_HEAD = re.compile(r"(-?\d{1,4})\.(-?\d{1,4})", re.ASCII)

EXAMPLES = """Examples:

attnviz head 3.7

attnviz head 2.3 --toy

attnviz head -1.-1 --toy

attnviz head 3.7 --load week.stats"""

NumberOfHead = Annotated[
    str, typer.Argument(help="The head: its layer and its number, counted from 0.", metavar="LAYER.HEAD")
]


class Command(TyperCommand):
    """A command whose first argument may begin with a minus, as that of no option does: ``-1.-1``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read what was typed."""
        return super().parse_args(ctx, [f" {one}" if re.match(r"-\d", one) else one for one in args])


def command(
    head: NumberOfHead,
    text: head_options.Text = None,
    corpus: head_options.Corpus = None,
    treebank: head_options.Treebank = None,
    model: options.Model = None,
    toy: options.Toy = False,
    specials: head_options.Specials = "keep",
    threshold: head_options.Threshold = None,
    kind: options.Kind = None,
    background: options.Background = "auto",
    output: head_options.Output = None,
    field: head_options.Field = None,
    load: head_options.Load = None,
    truncate: head_options.Truncate = False,
    checkpoint: head_options.Checkpoint = None,
    controls: head_options.Controls = head_options.CONTROLS,
    max_offset: head_options.MaxOffset = head_options.MAX_OFFSET,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    seed: options.Seed = None,
    d_model: options.DModel = None,
    n_heads: options.NHeads = None,
    n_layers: options.NLayers = None,
) -> None:
    """Show one head: every measure with its interval and controls, and the sentences where it is strongest."""
    outputs = list(output or [])
    arguments.check_outputs(outputs, options.PICTURES + head_options.TABLES)
    layer, number = _named(head)
    asked = understood(
        text=text, corpus=corpus, field=field, treebank=treebank, load=load, model=model, toy=toy, kind=kind,
        specials=specials, truncate=truncate, likeness=True, controls=controls, checkpoint=checkpoint,
        max_offset=max_offset, thresholds=thresholds(threshold),
        loading={"device": device, "dtype": dtype, "revision": revision, "trust_remote_code": trust_remote_code},
        sizes=arguments.sizes(model, seed=seed, d_model=d_model, n_heads=n_heads, n_layers=n_layers),
        expect=partial(_expect, layer, number),
    )  # fmt: skip
    arguments.check_writable(outputs or [Path("outputs") / "x.png"])
    found = surveys.compared(asked)
    comparison = found.comparison
    profile = comparison.head(layer, number)
    from attnviz.heads.figure import page as heads_page_figure
    from attnviz.heads.terminal.page import draw_head
    from attnviz.render.terminal.screen import console_here, screen_of

    console = console_here()
    for line in draw_head(comparison, layer, number, screen_of(console, background, "magma")):
        console.print(line, soft_wrap=True)
    shown = text or Path(corpus or treebank or load or "samples").name
    named = picture_path("head", f"{profile.name} {shown}", comparison.model, pair=None, target=None)
    for path in outputs or [named]:
        surveys.write(
            path, found, lambda file, suffix: heads_page_figure.write(comparison, layer, number, file, suffix)
        )


def _expect(layer: int, number: int, n_layers: int, n_heads: int) -> None:
    """Find out, before a long corpus is read to its end, whether there is such a head.

    Raises:
        SelectionError: there is none.
    """
    from attnviz.attention import positions

    positions([layer], range(n_layers), "layer")
    positions([number], range(n_heads), "head")


def _named(typed: str) -> tuple[int, int]:
    """Read ``3.7``.

    Raises:
        BadParameter: it is something else.
    """
    match = _IS_HEAD.fullmatch(typed.strip())
    if match is None:
        raise typer.BadParameter(
            f"{typed.strip()!r} is no head: give its layer and its number, such as 3.7", param_hint="'LAYER.HEAD'"
        )
    return int(match[1]), int(match[2])
