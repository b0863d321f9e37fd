"""``attnviz compare-heads``: sentences in, what each head of a model does out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from attnviz import arguments, options
from attnviz.heads import options as head_options
from attnviz.heads import reopened, surveys
from attnviz.heads.asked import thresholds, understood
from attnviz.heads.changes import command as two
from attnviz.render.names import picture_path

if TYPE_CHECKING:
    from attnviz.attention import Attention
    from attnviz.heads.record import Comparison
    from attnviz.render.fonts import Typefaces

EXAMPLES = """Examples:

attnviz compare-heads

attnviz compare-heads --toy --sort role

attnviz compare-heads --corpus sentences.txt -m bert-base-uncased -o heads.png -o heads.csv

attnviz compare-heads -m ./before --against ./after --fail-above 0.1

attnviz compare-heads --conllu sample_inputs/treebank.conllu"""


def command(
    text: head_options.Text = None,
    corpus: head_options.Corpus = None,
    treebank: head_options.Treebank = None,
    model: options.Model = None,
    toy: options.Toy = False,
    sort: head_options.Sort = "head",
    role: head_options.Role = None,
    layer: options.Layer = None,
    specials: head_options.Specials = "keep",
    threshold: head_options.Threshold = None,
    likeness: head_options.Likeness = True,
    kind: options.Kind = None,
    background: options.Background = "auto",
    output: head_options.Output = None,
    clustermap: head_options.Clustermap = None,
    json: head_options.Json = False,
    field: head_options.Field = None,
    load: head_options.Load = None,
    against: head_options.Against = None,
    fail_above: head_options.FailAbove = None,
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
    """Say what each head of a model is for, how sure that is, and which heads are alike.

    Every measure comes with its 95 % interval and with controls: the same head on shuffled tokens, the best head of
    random weights, the best fixed offset. A role that a control has too which could rule it out is not established.
    """
    outputs = list(output or [])
    arguments.check_outputs(outputs, options.PICTURES + head_options.TABLES)
    head_options.check_chosen(sort, role or (), max_offset)
    layers = arguments.chosen(layer, "--layer")
    asked = understood(
        text=text, corpus=corpus, field=field, treebank=treebank, load=load, model=model, toy=toy, kind=kind,
        specials=specials, truncate=truncate, likeness=likeness, controls=controls, checkpoint=checkpoint,
        max_offset=max_offset, thresholds=thresholds(threshold),
        expect=partial(_expect, layers),
        loading={"device": device, "dtype": dtype, "revision": revision, "trust_remote_code": trust_remote_code},
        sizes=arguments.sizes(model, seed=seed, d_model=d_model, n_heads=n_heads, n_layers=n_layers),
    )  # fmt: skip
    from_the_table = {"--sort": sort != "head", "--role": bool(role), "--layer": layers is not None}
    _check_table([name for name, given in from_the_table.items() if given], json=json, against=against)
    if against is not None:
        two.check(asked, against, fail_above, outputs)
    elif fail_above is not None:
        raise typer.BadParameter("--fail-above is for --against: there is no other model")
    if clustermap is not None:
        _check_clustermap(clustermap, likeness=likeness, against=against)
    to_write = [*(outputs or ([] if json else [Path("outputs") / "x.png"])), *filter(None, [clustermap])]
    arguments.check_different(to_write)
    arguments.check_writable(to_write)
    if against is not None:
        two.show(asked, against, fail_above=fail_above, outputs=outputs, background=background, json=json)
        return
    found = surveys.compared(asked)
    comparison = found.comparison
    if json:
        from attnviz.heads.files.comparisons import to_json

        sys.stdout.write(to_json(comparison) + "\n")
    else:
        _show(comparison, sort, role or (), layers, background)
    shown = text or Path(corpus or treebank or load or "samples").name
    picture = picture_path("compare-heads", shown, comparison.model, pair=None, target=None)
    examples = cache(partial(reopened.examples, found, asked))
    for path in outputs or ([] if json else [picture]):
        surveys.write(path, found, partial(_draw, found, examples))
    if clustermap is not None:
        from attnviz.heads.figure import similarity as clusters

        surveys.write(clustermap, found, lambda file, suffix: clusters.write(comparison, file, suffix))


def _check_table(chosen: Sequence[str], *, json: bool, against: str | None) -> None:
    """Refuse options that choose from a table that is not printed.

    Raises:
        BadParameter: there are such options, and no such table.
    """
    if chosen and (json or against is not None):
        what = "--json has all heads" if json else "--against has another: all heads, the largest change first"
        choose = "chooses" if len(chosen) == 1 else "choose"
        raise typer.BadParameter(f"{' and '.join(chosen)} {choose} from the table of heads of one model; {what}")


def _check_clustermap(path: Path, *, likeness: bool, against: str | None) -> None:
    """Refuse a picture of all pairs of heads that are not compared, or that cannot be drawn here.

    Raises:
        BadParameter: there are no such pairs, or the file has another ending.
        OutputError: what draws it is not installed.
    """
    if against is not None or not likeness:
        raise typer.BadParameter(
            "--clustermap is of all pairs of heads of one model: not with --against, --no-likeness"
        )
    arguments.check_outputs([path], options.PICTURES)
    from attnviz.heads.figure import similarity as clusters

    clusters.check_installed()


def _expect(layers: arguments.Chosen | None, n_layers: int, _: int) -> None:
    """Refuse layers that are not there, before the rest of a corpus is measured."""
    from attnviz.attention import positions

    if layers is not None:
        positions(layers.among(range(n_layers)), range(n_layers), "layer")


def _draw(
    found: surveys.Found, examples: Callable[[], tuple[Mapping[str, Attention], str]], file: BytesIO, suffix: str
) -> Typefaces:
    """Draw the sheet, with the patterns of the sentences where each role is clearest if the model is at hand."""
    from attnviz.heads.figure import sheet as heads_figure

    patterns, unseen = examples()
    return heads_figure.write(found.comparison, file, suffix, patterns=patterns, unseen=unseen)


def _show(
    comparison: Comparison, sort: str, role: Sequence[str], layers: arguments.Chosen | None, background: str
) -> None:
    """Print the table of heads, and what follows from it."""
    from attnviz.heads.terminal.table import draw_heads
    from attnviz.render.terminal.screen import console_here, screen_of

    console = console_here()
    chosen = layers.among(range(comparison.n_layers)) if layers else ()
    for line in draw_heads(comparison, screen_of(console, background, "magma"), sort=sort, role=role, layers=chosen):
        console.print(line, soft_wrap=True)
