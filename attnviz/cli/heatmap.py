"""``attnviz heatmap`` and ``attnviz page``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from attnviz.cli import options as opt
from attnviz.cli.output import (
    JSON,
    check_outputs,
    check_style,
    default_picture,
    is_typed,
    log_wrote,
    model_name,
    open_model,
    print_json,
    print_view,
    read_text,
    write,
)
from attnviz.errors import SettingsError
from attnviz.look import Look
from attnviz.render.names import DEFAULT, outputs, picture_path, slug
from attnviz.text.display import check_text, visible
from attnviz.text.messages import _

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from attnviz.attention import Attention
    from attnviz.capture.sources import Source
    from attnviz.heatmaps.difference import Difference
    from attnviz.render.terminal.screen import Screen

EXAMPLES = """attnviz heatmap "I love all you"
attnviz heatmap --toy "the animal is tired" --head 1.3 -o animal.svg
attnviz heatmap -m toy-random:n_heads=2,d_model=16 "나는 너를 사랑해"
attnviz heatmap --toy "it was too tired" --against "it was too wide"
attnviz heatmap -m toy-random --against toy-random:seed=1 "I love all you\""""

MeanLayer = Annotated[
    list[str] | None,
    opt.option(
        "--layer",
        metavar="N",
        help="Layers: 2, 0-3, -1 (the last), mean; repeatable.",
        panel=opt.SHOWN,
    ),
]
MeanHead = Annotated[
    list[str] | None,
    opt.option(
        "--head",
        metavar="L.H",
        help="Heads: 2.3; 3, 0-3 or mean of each layer; repeatable.",
        panel=opt.SHOWN,
    ),
]

PAGE_EXAMPLES = """attnviz page
attnviz page -m toy-ko --lang ko -o tour.html"""

RECORD_ENDINGS = "png, svg, pdf, html, csv, json, npz, safetensors, or - to print JSON"


def heatmap(
    context: typer.Context,
    text: opt.Text = None,
    file: opt.File = None,
    pair: opt.Pair = None,
    target: opt.Target = None,
    load: Annotated[
        Path | None,
        opt.option(metavar="FILE", help="Draw a saved record instead.", panel=opt.INPUT),
    ] = None,
    against: Annotated[
        str | None,
        opt.option(
            "--against",
            metavar="TEXT",
            help="A sentence or model: draw what differs, this minus that.",
            panel=opt.INPUT,
        ),
    ] = None,
    model: opt.Model = None,
    toy: opt.Toy = False,
    device: opt.Device = "auto",
    trust_remote_code: opt.TrustRemoteCode = False,
    layer: MeanLayer = None,
    head: MeanHead = None,
    kind: opt.Kind = None,
    words: Annotated[
        bool, opt.option("--words", help="Merge word pieces into words.", panel=opt.SHOWN)
    ] = False,
    hide_special: Annotated[
        bool, opt.option("--hide-special", help="Leave out [CLS] and the like.", panel=opt.SHOWN)
    ] = False,
    without_sinks: Annotated[
        bool,
        opt.option(
            "--without-sinks", help="Leave out tokens that swamp the rest.", panel=opt.SHOWN
        ),
    ] = False,
    rows: Annotated[
        str | None,
        opt.option(metavar="N-N", help="Only these queries, such as 0-100.", panel=opt.SHOWN),
    ] = None,
    keys: Annotated[
        str | None, opt.option(metavar="N-N", help="Only these keys.", panel=opt.SHOWN)
    ] = None,
    scale: Annotated[
        Literal["shared", "panel", "log"],
        opt.option(help="Range of the colours.", panel=opt.LOOK),
    ] = "shared",
    palette: opt.Palette = DEFAULT,
    lang: opt.Lang = "en",
    style: opt.Style = "sheet",
    theme: opt.Theme = "auto",
    output: Annotated[list[Path] | None, opt.output_option(RECORD_ENDINGS)] = None,
    quiet: opt.Quiet = False,
) -> None:
    """See what every head of a model attends to in a sentence.

    Prints the clearest link, what the other heads do with the same word, and its head;
    with --head, those heads. With --against, draws what differs: this minus the
    other sentence or model.
    """
    paths = output or []
    if against is not None:
        _refuse(
            context,
            ("load", "without_sinks", "rows", "keys", "palette"),
            "--against compares whole sentences, and cannot be combined with --load, --without-sinks, "
            "--rows, --keys or --palette",
        )
        if scale == "log":
            raise SettingsError("a change has a sign, and no logarithm: choose another", "scale")
    averaged = opt.parse_means(layer, head)
    layers, heads = opt.parse_heads(
        *([text for text in typed or () if text != "mean"] for typed in (layer, head))
    )
    name = model_name(model, toy)
    look = Look(palette=palette, scale=scale, style=style, theme=theme)
    opening: dict[str, Any] = {"device": device, "trust_remote_code": trust_remote_code}
    _check_files(context, paths, is_difference=against is not None, is_mean=averaged is not None)
    window = {"rows": opt.parse_slice(rows, "rows"), "keys": opt.parse_slice(keys, "keys")}

    def change(record: Attention) -> Attention:
        """Merge word pieces, leave out special tokens and sinks, and take means, as the user asked for it."""
        from attnviz.heatmaps import words as merging

        if words:
            record = merging.merge_words(record)
        if hide_special:
            record = merging.hide_special(record)
        if without_sinks:
            record = merging.hide_sinks(record)
        return record if averaged is None else record.mean(*averaged)

    def attend_to(sentence: str, source: Source) -> Attention:
        from attnviz.capture.attend import attend

        if averaged is not None and kind is None and len(source.kinds) > 1:
            kinds = ", ".join(source.kinds)
            raise SettingsError(
                f"a mean is of heads of one kind, and {source.name} has several: choose one with --kind ({kinds})"
            )
        keep: dict[str, Any] = {"layers": layers, "heads": heads, **window}
        return change(attend(sentence, source, pair=pair, target=target, kind=kind, **keep))

    if load is not None:
        from attnviz.results import load_record

        _refuse(
            context,
            (*SENTENCE_OPTIONS, "model", "toy", *opening),
            "--load draws a saved record: it takes no sentence and no model",
        )
        record = change(load_record(load).part(**window).select(layers, heads))
        target = record.target
    else:
        sentence = read_text(text, file)
        check_text(sentence)
        if pair is not None:
            pair = read_text(pair, None, "the second sentence")
            check_text(pair, "the second sentence")
        source = open_model(name, reads=sentence, **opening)
        record = attend_to(sentence, source)
    result: Attention | Difference = record
    shown, other, subtracted = result, None, ""
    if against is not None:
        from attnviz.capture.source import is_model
        from attnviz.heatmaps.difference import difference

        if is_model(against):
            words_for_it = _("This model minus the model {name}")
            subtracted = words_for_it.format(name=visible(against))
            other = attend_to(sentence, open_model(against, reads=sentence, **opening))
        else:
            words_for_it = _("This sentence minus the sentence “{text}”")
            subtracted = words_for_it.format(text=visible(against))
            check_text(against, "the sentence of --against")
            other = attend_to(against, source)
        shown = result = difference(record, other)
        if not (layer or head) and (changes := result.largest(1)):
            # A picture shows the head with the largest change; a page has all.
            shown = result.select([changes[0].layer], [changes[0].head])
    if JSON in paths:
        from attnviz.storage.record_files import to_json

        print_json(to_json(record))
    else:
        from attnviz.heatmaps import terminal
        from attnviz.heatmaps.difference import sheet_of
        from attnviz.render.terminal.text import wrap

        def view(screen: Screen) -> list[Text]:
            drawn = terminal.draw(
                sheet_of(result, look.scale),
                screen,
                full=head is not None,
                asks=load is None and source.can_be_cut,
            )
            return [*wrap(subtracted, screen, "dim"), *drawn]

        print_view(view, look.palette, look.theme)
    for path in paths:
        if path != JSON:
            write(result if path.suffix.lower() == ".html" else shown, path, look)
    if not paths:
        with default_picture():
            shows_all = not (layer or head)
            write(shown, _default_path(record, target, shows_all=shows_all, second=other), look)


SENTENCE_OPTIONS = ("text", "file", "pair", "target", "kind")
"""Options about the sentence, which a saved record does not accept."""


def _check_files(
    context: typer.Context, paths: Sequence[Path], *, is_difference: bool, is_mean: bool
) -> None:
    """Refuse files and sizes that do not go together, before any work."""
    from attnviz.attention import MEAN_IN_DATA, Attention

    endings: tuple[str, ...] = Attention.ENDINGS
    if is_difference:
        from attnviz.heatmaps.difference import Difference

        endings = Difference.ENDINGS
    check_outputs(paths, endings, prints_json=not is_difference)
    check_style(context, paths or [outputs() / "heatmap.png"])
    for path in paths if is_mean else ():
        if path == JSON or path.suffix.lower() in {".csv", *Attention.DATA_ENDINGS}:
            raise SettingsError(f"{visible(str(path))}: {MEAN_IN_DATA}")


def _refuse(context: typer.Context, options: Sequence[str], message: str) -> None:
    """Raise a SettingsError with this message if one of these options was typed."""
    if is_typed(context, *options):
        raise SettingsError(message)


def _default_path(
    record: Attention, target: str | None, *, shows_all: bool, second: Attention | None
) -> Path:
    """Return a file in `outputs` named after the record, so that the same command writes the same file.

    Unless the picture `shows_all` heads, the name has the numbers of its layers and heads. That of a difference has
    the sentence or the model of the `second` record too.
    """
    from attnviz.attention import names_of

    parts: list[str] = []
    if record.kind != "encoder":
        parts.append(record.kind)
    if record.chosen:
        parts += ["heads", slug(names_of(record.chosen).replace(",", ""), 60)]
        parts += ["mean"] if record.averaged else []
    elif not shows_all:
        layers = "mean" if "layers" in record.averaged else _span(record.layers)
        heads = "mean" if "heads" in record.averaged else _span(record.heads)
        parts += [f"layer-{layers}", f"head-{heads}"]
    if second is not None:
        parts.append("against")
        if second.text != record.text:
            parts.append(slug(second.text, 40))
        if second.model != record.model:
            parts.append(slug(second.model, 30))
    subject = record.text or "record"
    return picture_path("heatmap", subject, record.model, parts, pair=record.pair, target=target)


def _span(numbers: tuple[int, ...]) -> str:
    """Return increasing numbers for a file name: ``3``, ``0-5`` or ``0+2+5``."""
    first, last = numbers[0], numbers[-1]
    if first == last:
        return str(first)
    if len(numbers) == last - first + 1:
        return f"{first}-{last}"
    return "+".join(map(str, numbers))


def page(
    model: Annotated[
        Literal["toy", "toy-ko"],
        typer.Option("--model", "-m", help="toy reads English, toy-ko Korean."),
    ] = "toy",
    palette: opt.Palette = DEFAULT,
    lang: opt.Lang = "en",
    theme: opt.Theme = "auto",
    output: Annotated[
        list[Path] | None, opt.output_option("html", "outputs/page-MODEL.html")
    ] = None,
    quiet: opt.Quiet = False,
) -> None:
    """Write a page in which you type a sentence and a small model attends to it.

    The model runs in the page itself, which needs no network. For a page of another
    sentence and model: attnviz heatmap "..." -o page.html.
    """
    paths = output or [outputs() / f"page-{model}.html"]
    check_outputs(paths, {".html"}, prints_json=False)
    from attnviz.heatmaps import html

    web_page = html.tour(model, Look(palette=palette, theme=theme))
    for path in paths:
        web_page.save(path)
        log_wrote(path)
