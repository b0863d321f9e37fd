"""``attnviz compare-heads`` and ``attnviz head``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from attnviz.cli import options as opt
from attnviz.cli.output import (
    JSON,
    check_look,
    check_outputs,
    default_picture,
    is_typed,
    model_name,
    print_json,
    print_view,
    read_text,
    shows_progress,
    write,
)
from attnviz.errors import SelectionError, SettingsError
from attnviz.heads.settings import (
    CONTROLS,
    DIVERGENCE,
    CorpusSettings,
    ModelSettings,
    SurveySettings,
)
from attnviz.render.names import outputs, picture_path
from attnviz.text.display import check_text, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.text import Text

    from attnviz.attention import Attention
    from attnviz.capture.sources import Source
    from attnviz.heads.api import CorpusProgress
    from attnviz.heads.record import HeadComparison
    from attnviz.render.terminal.screen import Screen

EXAMPLES = """attnviz compare-heads --toy
attnviz compare-heads "I love all you" --toy --roles
attnviz compare-heads --corpus sample_inputs/english.txt -o english.stats
attnviz compare-heads --load english.stats --layer 1
attnviz compare-heads "I love all" -m toy-random:seed=1 --against toy-random
attnviz compare-heads --toy --conllu sample_inputs/treebank.conllu"""

HEAD_EXAMPLES = """attnviz head 1.5 --toy
attnviz head 1.5 --load english.stats --full"""

ENDINGS = "png, svg, pdf, html, csv, json, stats, or - to print JSON"

Sentence = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT",
        help="One sentence; - reads standard input [default: sentences shipped].",
        show_default=False,
        rich_help_panel=opt.INPUT,
    ),
]
Corpus = Annotated[
    str | None,
    opt.option("--corpus", metavar="FILE", help="Sentences, one a line; or -.", panel=opt.INPUT),
]
Treebank = Annotated[
    str | None,
    opt.option(
        "--conllu", metavar="FILE", help="A treebank: relations between words.", panel=opt.INPUT
    ),
]
Load = Annotated[
    Path | None,
    opt.option("--load", metavar="FILE", help="Show what a .stats file holds.", panel=opt.INPUT),
]
Threshold = Annotated[
    list[str] | None,
    opt.option(
        "--threshold",
        metavar="ROLE=X",
        help="The score that makes a role: previous=0.4.",
        panel=opt.SHOWN,
    ),
]
Controls = Annotated[
    int,
    opt.option(
        "--controls",
        metavar="N",
        min=0,
        help="Number of sentences for the controls.",
        panel=opt.SHOWN,
    ),
]


def compare_heads(
    context: typer.Context,
    text: Sentence = None,
    corpus: Corpus = None,
    treebank: Treebank = None,
    load: Load = None,
    against: Annotated[
        str | None,
        opt.option(metavar="MODEL", help="A second model to compare with.", panel=opt.INPUT),
    ] = None,
    truncate: opt.Truncate = False,
    model: opt.Model = None,
    toy: opt.Toy = False,
    device: opt.Device = "auto",
    dtype: opt.Dtype = "auto",
    trust_remote_code: opt.TrustRemoteCode = False,
    layer: opt.Layer = None,
    head: opt.Head = None,
    kind: opt.Kind = None,
    table: Annotated[
        bool, opt.option("--table", help="A table of all heads.", panel=opt.SHOWN)
    ] = False,
    sort: Annotated[
        str, opt.option(metavar="NAME", help="By head, role, score or a measure.", panel=opt.SHOWN)
    ] = "head",
    role: Annotated[
        list[str] | None,
        opt.option(metavar="NAME", help="Only heads of this role; repeatable.", panel=opt.SHOWN),
    ] = None,
    roles: Annotated[
        bool, opt.option("--roles", help="Roles of heads on the sentence given.", panel=opt.SHOWN)
    ] = False,
    threshold: Threshold = None,
    controls: Controls = CONTROLS,
    lang: opt.Lang = "en",
    style: opt.Style = "sheet",
    theme: opt.Theme = "auto",
    width: opt.Width = None,
    output: Annotated[list[Path] | None, opt.output_option(ENDINGS)] = None,
    quiet: opt.Quiet = False,
) -> None:
    """Find out what each head does, with confidence intervals.

    Every measure has a 95% interval and controls: the best
    head of models with random weights, the best fixed offset. A role is established
    if its whole interval reaches the role's threshold and lies above every control that
    could explain it away.
    """
    paths = output or []
    layers, heads = opt.parse_heads(layer, head)
    is_table = table or is_typed(context, "sort", "role", "layer", "head")
    shows_roles = roles or (text is not None and load is not None)
    _check_view(paths, is_table=is_table, shows_roles=shows_roles, has_second=against is not None)
    _check_order(sort, role, has_second=against is not None or load is not None)
    thresholds = _parse_thresholds(threshold)
    places = CorpusSettings(text=_read(text), corpus=corpus, treebank=treebank, load=load)
    _check_files(context, paths, style, width)

    def choose(n_layers: int, n_heads: int) -> tuple[list[int], list[int]]:
        return _indices(layers, n_layers, "layer"), _indices(heads, n_heads, "head")

    comparison = _measure(
        places,
        choose,
        model=_model_settings(model, toy, device, dtype, trust_remote_code),
        against=None if against is None else _model_settings(against, False, device, dtype),
        settings=SurveySettings(kind=kind, truncate=truncate, controls=controls),
        thresholds=thresholds,
        roles=roles,
    )
    if JSON in paths:
        from attnviz.heads.export import to_json

        print_json(to_json(comparison))
    else:
        chosen_layers, chosen_heads = choose(comparison.n_layers, comparison.n_heads)
        options: dict[str, Any] = {"sort": sort, "role": role or ()}
        options |= {"layers": chosen_layers, "heads": chosen_heads}
        print_view(partial(_view, comparison, lang, options if is_table else None), theme=theme)
    look: dict[str, Any] = {"lang": lang, "style": style, "theme": theme, "width": width}
    look["examples"] = cache(_examples)  # computed once for all pictures
    for path in paths:
        if path != JSON:
            write(comparison, path, **look)
    if not output:
        with default_picture():
            write(comparison, _default_path(comparison, places), **look)


def _view(
    comparison: HeadComparison, lang: opt.Lang, table: dict[str, Any] | None, screen: Screen
) -> Sequence[Text]:
    """Return the lines of the table with these options, or of the overview if `table` is None."""
    from attnviz.heads.terminal import draw_overview, draw_table

    language = screen.language(lang)
    if table is None:
        return draw_overview(comparison, screen, language)
    return draw_table(comparison, screen, language=language, **table)


def _default_path(comparison: HeadComparison, places: CorpusSettings) -> Path:
    """Return a file in `outputs` named after the sentences and the models; the same command writes the same file."""
    name = comparison.model
    if comparison.against is not None:
        name = f"{name} against {comparison.against.model}"
    return picture_path("compare-heads", places.shown, name, pair=None, target=None)


def _examples(
    comparison: HeadComparison, head: tuple[int, int] | None = None
) -> tuple[dict[tuple[str, str], Attention], str]:
    """Return `example_patterns`: the attention on examples, and why there is none, which is printed too."""
    from attnviz.heads.api import example_patterns

    patterns, reason = example_patterns(comparison, head)
    if reason:
        sys.stderr.write(f"attnviz: the picture shows no patterns of examples: {reason}\n")
    return patterns, reason


def head(
    context: typer.Context,
    head: Annotated[
        str,
        typer.Argument(
            metavar="LAYER.HEAD",
            help="The head, counted from 0.",
            show_default=False,
            rich_help_panel=opt.INPUT,
        ),
    ],
    text: Sentence = None,
    corpus: Corpus = None,
    treebank: Treebank = None,
    load: Load = None,
    truncate: opt.Truncate = False,
    model: opt.Model = None,
    toy: opt.Toy = False,
    device: opt.Device = "auto",
    dtype: opt.Dtype = "auto",
    trust_remote_code: opt.TrustRemoteCode = False,
    kind: opt.Kind = None,
    full: Annotated[
        bool, opt.option("--full", help="All measures, controls and sentences.", panel=opt.SHOWN)
    ] = False,
    threshold: Threshold = None,
    controls: Controls = CONTROLS,
    lang: opt.Lang = "en",
    style: opt.Style = "sheet",
    theme: opt.Theme = "auto",
    width: opt.Width = None,
    output: Annotated[
        list[Path] | None, opt.output_option("png, svg, pdf, html, csv, json, stats")
    ] = None,
    quiet: opt.Quiet = False,
) -> None:
    """Show one head: what it does, how sure that is, and an example.

    With --full every measure, with its interval, its controls and the sentences where it
    is largest.
    """
    if text is not None and load is not None:
        raise SettingsError("give one of a sentence and --load: they say where the sentences are")
    from attnviz.attention import parse_head

    try:
        place = parse_head(head)
    except SelectionError as error:
        raise SettingsError(str(error), "head") from None
    thresholds = _parse_thresholds(threshold)
    places = CorpusSettings(text=_read(text), corpus=corpus, treebank=treebank, load=load)
    paths = output or []
    _check_files(context, paths, style, width, prints_json=False)
    from attnviz.heads.terminal import draw_head

    def expect(n_layers: int, n_heads: int) -> None:
        _indices([place[0]], n_layers, "layer")
        _indices([place[1]], n_heads, "head")

    comparison = _measure(
        places,
        expect,
        model=_model_settings(model, toy, device, dtype, trust_remote_code),
        settings=SurveySettings(kind=kind, truncate=truncate, controls=controls),
        thresholds=thresholds,
    )
    profile = comparison.head(place)
    print_view(
        lambda screen: draw_head(
            comparison, *place, screen, full=full, language=screen.language(lang)
        ),
        theme=theme,
    )
    look: dict[str, Any] = {"lang": lang, "style": style, "theme": theme, "width": width}
    for path in paths:
        write(comparison, path, head=place, **look)
    if not output:
        shown = f"{profile.name} {places.shown}"
        with default_picture():
            path = picture_path("head", shown, comparison.model, pair=None, target=None)
            write(comparison, path, head=place, **look)


def _read(text: str | None) -> str | None:
    """Read and check the sentence, before the slow loading of a model."""
    if text is None:
        return None
    sentence = read_text(text)
    check_text(sentence, "standard input" if text == "-" else "the text")
    return sentence


def _check_files(
    context: typer.Context,
    paths: list[Path],
    style: Any,
    width: str | None,
    *,
    prints_json: bool = True,
) -> None:
    """Refuse files and options of pictures that cannot be used, before any work; see `check_outputs`."""
    from attnviz.heads.record import HeadComparison

    check_outputs(paths, HeadComparison.ENDINGS, prints_json=prints_json)
    check_look(context, paths or [outputs() / "heads.png"], style, width)


def _model_settings(
    model: str | None, toy: bool, device: Any, dtype: Any, trust_remote_code: bool = False
) -> ModelSettings:
    """Return the settings of a model from the values of its options."""
    return ModelSettings(
        model=model_name(model, toy),
        device=device,
        dtype=dtype,
        trust_remote_code=trust_remote_code,
    )


def _measure(
    places: CorpusSettings, expect: Callable[[int, int], object], **options: Any
) -> HeadComparison:
    """Measure heads, and show the progress on standard error if that is a terminal.

    `expect` checks the numbers of layers and heads once they are known; `options` are further arguments of
    `attnviz.compare_heads`.
    """
    with _progress_bar(expect) as (progress, opening):
        # Imported after the first message, because it takes a second.
        from attnviz.heads.api import compare_heads as measure

        return measure(places, progress=progress, opening=opening, **options)


def _check_view(paths: list[Path], *, is_table: bool, shows_roles: bool, has_second: bool) -> None:
    """Refuse views that exclude each other."""
    if is_table and JSON in paths:
        raise SettingsError("-o - prints all heads: omit the options of the table")
    if shows_roles and (JSON in paths or has_second):
        raise SettingsError("the roles of heads on a sentence are a table of one model")


def _check_order(sort: str, roles: list[str] | None, *, has_second: bool) -> None:
    """Refuse an unknown order or role now, not after hours of measuring a corpus."""
    if sort == DIVERGENCE and not has_second:
        raise SettingsError("there is no second model to sort by: add --against", "sort")
    if sort == "head" and not roles:
        return
    from attnviz.heads.measures import measures_of
    from attnviz.heads.selection import ORDERS, find_measure, find_roles

    measures, option = measures_of(), "sort"
    try:
        if sort not in ORDERS:
            find_measure(sort, measures)
        option = "role"
        for role in roles or ():
            find_roles(role, measures)
    except SelectionError as error:
        raise SettingsError(str(error), option) from None


def _parse_thresholds(typed: list[str] | None) -> dict[str, float]:
    """Parse thresholds such as ``previous=0.4``.

    Raises SettingsError: there is no such role, or the threshold is invalid.
    """
    if not typed:
        return {}
    from attnviz.heads.measures import measures_of
    from attnviz.heads.roles import with_thresholds

    thresholds: dict[str, float] = {}
    for text in typed:
        name, _, value = text.partition("=")
        name = name.strip()
        if name in thresholds:
            raise SettingsError(f"{name!r} is given two thresholds", "threshold")
        try:
            thresholds[name] = float(value)
        except ValueError:
            raise SettingsError(
                f"{text!r} is not ROLE=X, such as previous=0.4", "threshold"
            ) from None
    try:
        with_thresholds(measures_of(), thresholds)
    except SelectionError as error:
        raise SettingsError(str(error), "threshold") from None
    return thresholds


def _indices(chosen: list[int] | None, n: int, what: str) -> list[int]:
    """Return the chosen indices, counted from 0; an empty list stands for all.

    Raises SelectionError: an index is out of range.
    """
    from attnviz.attention import indices_of

    return [] if chosen is None else indices_of(chosen, range(n), what)


Report: TypeAlias = "Callable[[CorpusProgress], None]"
Opening: TypeAlias = "Callable[[ModelSettings], Source]"


@contextmanager
def _progress_bar(expect: Callable[[int, int], object]) -> Iterator[tuple[Report, Opening]]:
    """Show what is done now and for how long, if standard error is a terminal.

    Yield a function that takes the progress of a run, and one that opens its model.
    """
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    console, is_hidden = Console(stderr=True), not shows_progress()
    with Progress(*columns, console=console, transient=True, disable=is_hidden) as bar:
        task = bar.add_task("starting", total=None)

        def tick(progress: CorpusProgress) -> None:
            if progress.shape is not None:
                expect(*progress.shape)
            sentences = f"{progress.n_sentences:,} sentences"
            descriptions = {
                "sentences": f"measuring heads: {sentences}"
                if progress.n_sentences
                else "measuring heads",
                "controls": f"measuring controls ({sentences} read)",
                "roles": "computing intervals and roles",
            }
            bar.update(
                task,
                description=descriptions[progress.stage],
                refresh=True,
            )

        def notify(line: str) -> None:
            sys.stderr.write(f"attnviz: {line}\n")  # appears above the bar

        def opening(settings: ModelSettings) -> Source:
            name = settings.model or "distilbert-base-uncased"
            bar.update(task, description=escape(f"loading {visible(name)}"), refresh=True)
            from attnviz.capture.source import open_source

            return open_source(**asdict(settings), notify=notify)

        yield tick, opening
