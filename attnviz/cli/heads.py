"""``attnviz compare-heads``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from attnviz.cli import options as opt
from attnviz.cli.output import (
    JSON,
    check_outputs,
    check_style,
    default_picture,
    is_typed,
    model_name,
    print_json,
    print_view,
    read_text,
    shows_progress,
    write,
)
from attnviz.errors import SettingsError
from attnviz.heads.settings import ModelSettings, SurveySettings
from attnviz.look import Look
from attnviz.render.names import outputs, picture_path
from attnviz.text.display import check_text, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.text import Text

    from attnviz.capture.sources import Source
    from attnviz.heads.api import CorpusProgress, Sentences
    from attnviz.heads.record import HeadComparison
    from attnviz.render.terminal.screen import Screen

EXAMPLES = """attnviz compare-heads --toy
attnviz compare-heads "I love all you" --toy --roles
attnviz compare-heads --corpus sample_inputs/english.txt -o english.json
attnviz compare-heads --load english.json --head 1.5
attnviz compare-heads --corpus big.txt --ray local -o big.json
attnviz compare-heads "I love all" -m toy-random:seed=1 --against toy-random
attnviz compare-heads --toy --conllu sample_inputs/treebank.conllu"""

MOST_CARDS = 2  # heads shown as cards; more are rows of the table
ENDINGS = "png, svg, pdf, html, csv, json, or - to print JSON"

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
    opt.option("--load", metavar="FILE", help="Show a saved comparison (.json).", panel=opt.INPUT),
]


def compare_heads(
    context: typer.Context,
    text: Sentence = None,
    corpus: Corpus = None,
    treebank: Treebank = None,
    load: Load = None,
    ray: Annotated[
        str | None,
        opt.option(
            metavar="ADDRESS",
            help="Share the sentences among the workers of a Ray cluster, or local.",
            panel=opt.INPUT,
        ),
    ] = None,
    against: Annotated[
        str | None,
        opt.option(metavar="MODEL", help="A second model to compare with.", panel=opt.INPUT),
    ] = None,
    model: opt.Model = None,
    toy: opt.Toy = False,
    device: opt.Device = "auto",
    trust_remote_code: opt.TrustRemoteCode = False,
    layer: opt.Layer = None,
    head: opt.Head = None,
    kind: opt.Kind = None,
    table: Annotated[
        bool, opt.option("--table", help="A table of all heads.", panel=opt.SHOWN)
    ] = False,
    roles: Annotated[
        bool, opt.option("--roles", help="Roles of heads on the sentence given.", panel=opt.SHOWN)
    ] = False,
    lang: opt.Lang = "en",
    style: opt.Style = "sheet",
    theme: opt.Theme = "auto",
    output: Annotated[list[Path] | None, opt.output_option(ENDINGS)] = None,
    quiet: opt.Quiet = False,
) -> None:
    """Find out what each head does, with confidence intervals.

    Every measure has a 95% interval and controls: the head's own weights on keys at random,
    the best head of models with random weights, the best fixed offset. A role is established
    if its whole interval reaches the role's threshold and lies above every control that
    could explain it away.

    With --head 2.3 one head is shown: what it does, how sure that is, an example, and its
    measures; with two such heads, both side by side.
    """
    paths = output or []
    selections = [opt.parse_heads(layer, [one]) for one in head or ()]
    if not selections and layer is not None:
        selections = [opt.parse_heads(layer, None)]
    is_table = table or bool(selections)
    if is_table and JSON in paths:
        raise SettingsError("-o - prints all heads: omit --table, --layer and --head")
    shows_roles = roles or (text is not None and load is not None)
    if shows_roles and (JSON in paths or against is not None):
        raise SettingsError("the roles of heads on a sentence are a table of one model")
    from attnviz.heads.record import HeadComparison

    check_outputs(paths, HeadComparison.ENDINGS)
    check_style(context, paths or [outputs() / "heads.png"])
    sentences = _sentences(text, corpus, treebank, load)
    # A saved comparison needs no model: that of ATTNVIZ_MODEL is for other commands.
    is_saved = load is not None and text is None and not is_typed(context, "model")
    model_settings = ModelSettings(
        model=model_name(None if is_saved else model, toy),
        device=device,
        trust_remote_code=trust_remote_code,
    )

    with _progress_bar(lambda *shape: _places(selections, *shape)) as (progress, opening):
        # Imported after the first message, because it takes a second.
        from attnviz.heads.api import compare_heads as measure

        comparison = measure(
            sentences,
            model_settings,
            against=None if against is None else ModelSettings(model=against, device=device),
            settings=SurveySettings(kind=kind),
            ray=ray,
            roles=load if shows_roles and load is not None else roles,
            progress=progress,
            opening=opening,
        )
    chosen = _places(selections, comparison.n_layers, comparison.n_heads)
    cards = chosen if head and not table and len(chosen) <= MOST_CARDS else []
    if JSON in paths:
        from attnviz.heads.files import to_json

        print_json(to_json(comparison))
    else:

        def view(screen: Screen) -> Sequence[Text]:
            from attnviz.heads.terminal import draw_heads, draw_overview, draw_table

            if cards:
                return draw_heads(comparison, cards, screen)
            if is_table:
                return draw_table(comparison, screen, chosen or None)
            return draw_overview(comparison, screen)

        print_view(view, theme=theme)
    look = Look(style=style, theme=theme)
    own: dict[str, Any] = {"heads": cards}
    for path in paths:
        if path != JSON:
            write(comparison, path, look, **own)
    if not output:
        file = Path(corpus or treebank or load or "samples").name
        shown = sentences if isinstance(sentences, str) else file
        with default_picture():
            write(comparison, _default_path(comparison, shown, cards), look, **own)


def _default_path(
    comparison: HeadComparison, sentences: str, heads: Sequence[tuple[int, int]]
) -> Path:
    """Return a file in `outputs` named after the sentences and the models; the same command writes the same file."""
    name = comparison.model
    if comparison.against is not None:
        name = f"{name} against {comparison.against.model}"
    shown = " ".join([*(f"{layer}.{head}" for layer, head in heads), sentences])
    return picture_path("compare-heads", shown, name, pair=None, target=None)


def _sentences(
    text: str | None, corpus: str | None, treebank: str | None, load: Path | None
) -> Sentences:
    """Return the sentence, the corpus or the saved comparison, before the slow loading of a model.

    Raises SettingsError: several are given, or an empty file name.
    """
    places = {
        "a sentence": text,
        "a corpus": corpus,
        "a treebank": treebank,
        "a saved comparison": load if text is None else None,
    }
    given = [name for name, value in places.items() if value is not None]
    if len(given) > 1:
        raise SettingsError(f"give one of {' and '.join(given)}: they say where the sentences are")
    if "" in {corpus, treebank}:
        raise SettingsError("the name of the file of sentences is empty")
    if text is not None:
        sentence = read_text(text)
        check_text(sentence, "standard input" if text == "-" else "the text")
        return sentence
    path = corpus if treebank is None else treebank
    if path is None:
        if load is not None and load.suffix.lower() not in {".json", ".stats"}:
            raise SettingsError(f"{visible(str(load))}: a saved comparison ends in .json", "load")
        return load
    from attnviz.storage.corpora.corpus import read_corpus

    return read_corpus(path, kind=None if treebank is None else "conllu")


def _places(
    selections: Iterable[tuple[list[int] | None, list[int | tuple[int, int]] | None]],
    n_layers: int,
    n_heads: int,
) -> list[tuple[int, int]]:
    """Return the layer and number of each selected head, in the order in which they were typed.

    Raises SelectionError: there is no such layer or head.
    """
    from attnviz.attention import choose_heads

    held = [*product(range(n_layers), range(n_heads))]
    chosen = [held[i] for selection in selections for i in choose_heads(held, *selection).indices]
    return list(dict.fromkeys(chosen))


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
