"""``attnviz heatmap``: a sentence in, what every head does with it out."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz import commands
from attnviz.errors import InputError, SettingsError
from attnviz.heatmaps import settings
from attnviz.options import changed, name_parts
from attnviz.render.names import picture_path
from attnviz.settings import FigureSettings, ModelSettings
from attnviz.storage.formats import PAGE, RECORD
from attnviz.text.display import visible

if TYPE_CHECKING:
    from rich.text import Text

    from attnviz.attention import Attention
    from attnviz.render.terminal.screen import Screen

EXAMPLES = """attnviz heatmap "I love all you"
attnviz heatmap --toy "the animal didn't cross the street because it was too tired" --layer 1
attnviz heatmap -m toy-random "나는 너희 모두를 사랑해" --d-model 16 --n-heads 2
attnviz heatmap "She is eating a green apple" -m bert-base-uncased --words -o apple.svg
attnviz heatmap --toy --file sample_inputs/sentences.txt -o book.pdf
attnviz heatmap --toy "I love all you" -o page.html --open"""


PAGE_EXAMPLES = """attnviz page --open
attnviz page -m toy-ko --lang ko -o tour.html"""


def page_command(tour: settings.TourSettings, output: settings.TourOutput) -> None:
    """Write a page in which you type a sentence and a small model shows where it looks.

    The model that comes with attnviz runs in the page itself, which needs no network. For a page of your own sentence
    and model: attnviz heatmap "..." -o page.html.
    """
    paths = output.usual(tour.model)
    commands.check_writable(paths)
    from attnviz.heatmaps import html

    page = html.tour(tour.model, cmap=tour.palette, lang=tour.lang, roles=tour.roles)
    for path in paths:
        commands.write_content(path, page.html)


def command(
    text: settings.HeatmapText,
    model: ModelSettings,
    selection: settings.HeatmapSelection,
    appearance: settings.HeatmapAppearance,
    figure: FigureSettings,
    output: settings.HeatmapOutput,
) -> None:
    """See where every head of a model looks in a sentence.

    First all heads as thumbnails, then the one whose pattern differs most from the others', large; all of them as one
    sheet in outputs/. With --head 2.3: that head alone. Every picture says how it was verified. With --file, and a
    folder or a PDF to write (-o), each line of the file is drawn.
    """
    if appearance.roles is not None and not any(
        path.suffix.lower() == PAGE for path in output.output
    ):
        raise SettingsError("--roles puts signs on a page: name one, such as -o page.html")
    if output.json and selection.full:
        raise SettingsError("--json prints the record, --full the heads: give one of them")
    if (many := output.many(text)) is not None:
        _draw_lines(many, text, model, selection, appearance, figure)
        return
    commands.check_look(figure, output.planned())
    record = _record(text, model, selection, output)
    look = {**asdict(appearance), **asdict(figure), "cmap": appearance.palette}
    pages = {  # before anything is printed: roles that are another model's are refused at once
        path: RECORD.content(path, record, look)
        for path in output.output
        if path.suffix.lower() == PAGE
    }
    if output.json:
        from attnviz.storage.record_files import to_json

        commands.print_json(to_json(record))
    else:
        from attnviz.heatmaps import terminal
        from attnviz.render.sheet import resolve

        def view(screen: Screen) -> list[Text]:
            sheet = resolve(record, appearance.scale, screen.language(appearance.lang))
            return terminal.draw(sheet, screen, full=selection.full)

        commands.print_lines(view, appearance.background, appearance.palette)
    target = record.target if text.load else text.target
    more = [
        *name_parts(model, "dtype", "revision"),
        *name_parts(selection, "rows", "keys", "words", "hide_special"),
    ]
    more += [*name_parts(appearance), *name_parts(figure)]
    overview = not (selection.layer or selection.head)
    usual = () if output.json else (_usual_path(record, target, more, everything=overview),)
    for path in output.output or usual:
        commands.write_content(
            path, pages[path] if path in pages else RECORD.content(path, record, look)
        )


def _draw_lines(
    path: Path,
    text: settings.HeatmapText,
    model: ModelSettings,
    selection: settings.HeatmapSelection,
    appearance: settings.HeatmapAppearance,
    figure: FigureSettings,
) -> None:
    """Draw each line of a file; what fails is told at the end."""
    from rich.console import Console
    from rich.progress import Progress

    from attnviz.heatmaps.lines import heatmap_all

    alone = (
        *changed(text, "pair", "target"),
        *changed(selection, "words", "hide_special", "rows", "keys", "full"),
    )
    if alone:
        raise SettingsError(
            f"{' and '.join(alone)}: of one sentence; the lines of a file are drawn as they are"
        )
    layers, heads = selection.ranges
    choose = {
        "kind": selection.kind,
        "truncate": text.truncate,
        "layers": layers.one_by_one("layers") if layers else None,
        "heads": heads.one_by_one("heads") if heads else None,
    }
    lines = commands.read_text(None, text.file).splitlines()
    commands.check_writable([path if path.suffix else path / "x.png"])
    sentences = [line for line in lines if line.strip()]
    source = commands.open_model(model, *sentences[:1])
    n = len(sentences)
    with Progress(
        console=Console(stderr=True), transient=True, disable=not commands.is_watched()
    ) as bar:
        task = bar.add_task("drawing lines", total=n)
        failures = heatmap_all(
            lines,
            path,
            source,
            choose=choose,
            cmap=appearance.palette,
            scale=appearance.scale,
            lang=appearance.lang,
            on_done=lambda done: bar.update(task, completed=done),
            **asdict(figure),
        )
    commands.tell(
        f"wrote {visible(str(path))}{'' if path.suffix else '/'}: {n - len(failures)} of {n} lines"
    )
    for failure in failures:
        sys.stderr.write(f"attnviz: {failure}\n")
    if failures:
        raise InputError(f"{len(failures)} of {n} lines could not be drawn")


def _record(
    text: settings.HeatmapText,
    model: ModelSettings,
    selection: settings.HeatmapSelection,
    output: settings.HeatmapOutput,
) -> Attention:
    """The record to show: loaded, or of a run of the model; with the layers, heads and tokens that were chosen."""
    if text.load is None:
        from attnviz.text.display import check_text

        sentence = commands.read_text(text.text, text.file)
        pair = (
            None
            if text.pair is None
            else commands.read_text(text.pair, None, "the second sentence")
        )
        check_text(sentence)
        if pair is not None:
            check_text(pair, "the second sentence")
        commands.check_writable(output.planned())
        from attnviz.capture.attend import attend

        record = attend(
            sentence,
            commands.open_model(model, sentence),
            pair=pair,
            target=text.target,
            truncate=text.truncate,
            memory=selection.memory,
            **selection.arguments,
            **selection.window,
        )
    else:
        given = text.text is not None or selection.kind is not None
        if given or changed(text, "file", "pair", "target") or changed(model, "model", "toy"):
            raise SettingsError("--load draws a saved record: it takes no sentence and no model")
        if changed(text, "truncate") or changed(model):
            raise SettingsError(
                "--load draws a saved record: no model is run, so it takes no option of one"
            )
        commands.check_writable(output.planned())
        record = RECORD.load(text.load).part(**selection.window)
    held = zip(selection.ranges, (record.layers, record.heads), strict=True)
    record = record.select(*(chosen.among(there) if chosen else None for chosen, there in held))
    if selection.words or selection.hide_special:
        from attnviz.heatmaps.words import hide_special, merge_words

        record = merge_words(record) if selection.words else record
        record = hide_special(record) if selection.hide_special else record
    return record


def _usual_path(
    record: Attention, target: str | None, more: list[str], *, everything: bool
) -> Path:
    """A file in `outputs` named after what it shows, and how: the same command writes the same file again."""
    parts: list[str] = [record.kind] if record.kind != "encoder" else []
    if not everything:
        parts += [f"layer-{_span(record.layers)}", f"head-{_span(record.heads)}"]
    shown = record.text or "record"
    return picture_path(
        "heatmap", shown, record.model, [*parts, *more], pair=record.pair, target=target
    )


def _span(numbers: tuple[int, ...]) -> str:
    """Numbers for a file name: ``3``, ``0-5``, ``0+2+5``."""
    first, last = numbers[0], numbers[-1]
    if first == last:
        return str(first)
    return f"{first}-{last}" if len(numbers) == last - first + 1 else "+".join(map(str, numbers))
