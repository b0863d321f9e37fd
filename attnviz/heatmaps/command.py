"""``attnviz heatmap``: a sentence in, what every head does with it out."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from attnviz import arguments, options
from attnviz.capture.notices import opened
from attnviz.render.names import picture_path
from attnviz.text.display import visible

if TYPE_CHECKING:
    from attnviz.attention import Attention

EXAMPLES = """Examples:

attnviz heatmap "I love all you"

attnviz heatmap --toy "the animal didn't cross the street because it was too tired" --layer 1

attnviz heatmap -m toy-random "나는 너희 모두를 사랑해" --d-model 16 --n-heads 2

attnviz heatmap "She is eating a green apple" -m bert-base-uncased --words -o apple.svg"""


def command(
    text: options.Text = None,
    model: options.Model = None,
    toy: options.Toy = False,
    layer: options.Layer = None,
    head: options.Head = None,
    words: options.Words = False,
    hide_special: options.HideSpecial = False,
    scale: options.Scale = "shared",
    palette: options.Palette = "magma",
    background: options.Background = "auto",
    output: options.Output = None,
    json: options.Json = False,
    file: options.File = None,
    pair: options.Pair = None,
    target: options.Target = None,
    kind: options.Kind = None,
    truncate: options.Truncate = False,
    load: options.Load = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "auto",
    revision: options.Revision = None,
    trust_remote_code: options.TrustRemoteCode = False,
    seed: options.Seed = None,
    d_model: options.DModel = None,
    n_heads: options.NHeads = None,
    n_layers: options.NLayers = None,
) -> None:
    """Show what every head of a model does with a sentence, in the terminal and as a picture.

    Without --layer and --head: all heads of all layers as thumbnails and as one sheet in outputs/, and every head of
    the first layer in full. With both: that head's pattern, large. Every picture says how it was verified.
    """
    outputs = list(output or [])
    arguments.check_outputs(outputs, options.PICTURES + options.RECORDS)
    layers, heads = arguments.chosen(layer, "--layer"), arguments.chosen(head, "--head")
    if toy and model is not None:
        raise typer.BadParameter("give --toy or --model, not both")
    if toy and (revision is not None or trust_remote_code):
        raise typer.BadParameter("--toy comes with attnviz: it has no --revision and no code to trust")
    sizes = arguments.sizes(model, seed=seed, d_model=d_model, n_heads=n_heads, n_layers=n_layers)
    to_write = outputs or ([] if json else [Path("outputs") / "x.png"])
    if load is not None:
        if any(given is not None for given in (text, file, pair, target, kind, model)) or toy:
            raise typer.BadParameter("--load draws a saved record: it takes no sentence and no model")
        if truncate or revision or trust_remote_code or (device, dtype) != ("auto", "auto"):
            raise typer.BadParameter("--load draws a saved record: no model is run, so it takes no option of one")
        from attnviz.storage import load as load_record

        arguments.check_writable(to_write)
        record = load_record(load)
    else:
        from attnviz.text.check import check_text

        sentence = arguments.read_text(text, file)
        second = None if pair is None else arguments.read_text(pair, None, "the second sentence")
        check_text(sentence)
        if second is not None:
            check_text(second, "the second sentence")
        arguments.check_writable(to_write)
        from attnviz.capture.source import TOY, attend

        with opened(
            TOY if toy else model,
            device=device,
            dtype=dtype,
            revision=revision,
            trust_remote_code=trust_remote_code,
            sizes=sizes,
        ) as source:
            record = attend(
                sentence,
                source,
                pair=second,
                target=target,
                kind=kind,
                layers=layers.known() if layers else None,
                heads=heads.known() if heads else None,
                truncate=truncate,
            )
    record = record.select(
        layers.among(record.layers) if layers else None, heads.among(record.heads) if heads else None
    )
    if words or hide_special:
        from attnviz.heatmaps import words as merge

        record = merge.merge_words(record) if words else record
        record = merge.hide_special(record) if hide_special else record
    if not outputs and not json:
        outputs = [_named(record, record.target if load else target, everything=layers is None and heads is None)]
    _show(record, scale, palette, background, json=json, overview=layers is None and heads is None)
    for path in outputs:
        _write(record, path, scale, palette)


def _show(
    record: Attention, scale: options.Scale, palette: str, background: str, *, json: bool, overview: bool
) -> None:
    """Print the record: as JSON, or as a picture that suits the terminal."""
    if json:
        from attnviz.storage import to_json

        sys.stdout.write(to_json(record) + "\n")
        return
    from attnviz.heatmaps.terminal import picture
    from attnviz.render.sheet import resolve
    from attnviz.render.terminal.console import console_here, screen_of

    console = console_here()
    for line in picture(resolve(record, scale), screen_of(console, background, palette), overview=overview):
        console.print(line, soft_wrap=True)


def _write(record: Attention, path: Path, scale: options.Scale, palette: str) -> None:
    """Write one file, whole or not at all, and say so."""
    from attnviz.storage import write_whole

    suffix = path.suffix.lower()
    if suffix in options.RECORDS:
        record.save(path)
    else:
        from attnviz.heatmaps.figure import write
        from attnviz.render.fonts import advice
        from attnviz.render.sheet import resolve

        drawn = BytesIO()  # Matplotlib has its own ways to fail on a full disk
        missing = write(resolve(record, scale), drawn, suffix, palette).missing
        write_whole(path, lambda temporary: temporary.write_bytes(drawn.getvalue()))
        if missing:
            sys.stderr.write(f"attnviz: {advice(missing)}\n")
    sys.stderr.write(f"wrote {visible(str(path))}\n")


def _named(record: Attention, target: str | None, *, everything: bool) -> Path:
    """A file in ``outputs/`` named after what it shows: the same command writes the same file again."""
    parts: list[str] = [record.kind] if record.kind != "encoder" else []
    if not everything:
        parts += [f"layer-{_span(record.layers)}", f"head-{_span(record.heads)}"]
    return picture_path("heatmap", record.text or "record", record.model, parts, pair=record.pair, target=target)


def _span(numbers: tuple[int, ...]) -> str:
    """Numbers for a file name: ``3``, ``0-5``, ``0+2+5``."""
    first, last = numbers[0], numbers[-1]
    if first == last:
        return str(first)
    return f"{first}-{last}" if len(numbers) == last - first + 1 else "+".join(map(str, numbers))
