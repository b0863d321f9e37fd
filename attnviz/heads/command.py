"""``attnviz compare-heads``, ``head`` and ``merge``: settings in, one call of the API, what came of it printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz import commands
from attnviz.errors import SettingsError
from attnviz.heads.settings import (
    DIVERGENCE,
    ComparisonOutput,
    CorpusSettings,
    HeadOutput,
    HeadSettings,
    MergeSettings,
    SurveySettings,
    TableSettings,
    ViewSettings,
)
from attnviz.options import changed, name_parts
from attnviz.render.names import picture_path
from attnviz.settings import ModelSettings, PageSettings
from attnviz.storage.formats import COMPARISON
from attnviz.text.display import visible

if TYPE_CHECKING:
    from rich.text import Text

    from attnviz.attention import Attention
    from attnviz.heads.api import CorpusProgress
    from attnviz.heads.record import HeadComparison
    from attnviz.render.terminal.screen import Screen

EXAMPLES = """attnviz compare-heads --toy
attnviz compare-heads --toy --sort role
attnviz compare-heads "I love all you" --toy --roles
attnviz compare-heads --corpus sample_inputs/english.txt --toy -o english.stats -o heads.png
attnviz compare-heads --load english.stats --layer 1
attnviz compare-heads "I love all" -m toy-random --seed 1 --against toy-random
attnviz compare-heads --conllu sample_inputs/treebank.conllu --toy"""

HEAD_EXAMPLES = """attnviz head 1.5 --toy
attnviz head -1.-1 --toy --full
attnviz compare-heads --corpus sample_inputs/english.txt --toy -o english.stats
attnviz head 1.5 --load english.stats"""

MERGE_EXAMPLES = """attnviz compare-heads --corpus sample_inputs/english.txt --toy -o english.stats
attnviz compare-heads --conllu sample_inputs/treebank.conllu --toy -o treebank.stats
attnviz merge english.stats treebank.stats -o all.stats"""


def command(
    text: CorpusSettings,
    model: ModelSettings,
    table: TableSettings,
    survey: SurveySettings,
    page: PageSettings,
    output: ComparisonOutput,
) -> None:
    """Say what each head of a model does, and how sure that is.

    Every measure has a 95 % interval, and controls: the same head on shuffled tokens, the best head of models with
    random weights, the best fixed offset. A role is established if its interval lies above every control that could
    explain it away.
    """
    table.check()
    _check_output(text, table, output)
    commands.check_look(page, output.planned())
    commands.check_writable(output.planned())
    from attnviz.heads.api import compare_heads, example_patterns

    with _progress_bar(text, partial(_chosen_places, table)) as progress:
        comparison = compare_heads(
            _sentences(text),
            model=model,
            against=_second_model(model, table.against),
            settings=survey,
            thresholds=table.thresholds,
            checkpoint=output.checkpoint,
            roles=table.roles,
            progress=progress,
            opening=commands.open_model,
        )
    if output.json:
        from attnviz.heads.tables import to_json

        commands.print_json(to_json(comparison))
    else:
        _print_heads(comparison, table)
    names = [comparison.model] + ([comparison.against.model] if comparison.against else [])
    usual = _usual_path(
        "compare-heads", text.shown, " against ".join(names), model, survey, table, page
    )

    @cache
    def examples(shown: HeadComparison, head: None = None) -> tuple[dict[str, Attention], str]:
        patterns, unseen = example_patterns(shown, head)
        if unseen:
            sys.stderr.write(f"attnviz: the picture shows no patterns of examples: {unseen}\n")
        return patterns, unseen

    look = {"lang": table.lang, **asdict(page)}
    for path in output.output or (() if output.json else (usual,)):
        commands.write_result(COMPARISON, comparison, path, examples=examples, **look)


def _second_model(model: ModelSettings, name: str | None) -> ModelSettings | None:
    """Return how the second model is loaded: as the first, under its own name."""
    if name is None:
        return None
    return replace(
        model,
        model=name,
        toy=False,
        revision=None,
        seed=None,
        d_model=None,
        n_heads=None,
        n_layers=None,
    )


def _print_heads(comparison: HeadComparison, table: TableSettings) -> None:
    from attnviz.heads.terminal import overview
    from attnviz.heads.terminal import table as tables

    layers, heads = _chosen_places(table, comparison.n_layers, comparison.n_heads)
    is_chosen = bool(changed(table, "sort", "role", "layer", "head"))

    def view(screen: Screen, lang: str) -> list[Text]:
        if table.table and not is_chosen and comparison.attention is not None:
            return overview.draw_sentence(comparison, comparison.attention, screen, lang, full=True)
        if not (table.table or is_chosen):
            return overview.draw_overview(comparison, screen, lang)
        return tables.draw_table(
            comparison,
            screen,
            sort=table.sort,
            role=table.role,
            layers=layers,
            heads=heads,
            language=lang,
        )

    _print(view, table)


def _print(draw: Callable[[Screen, str], Iterable[Text]], view: ViewSettings) -> None:
    commands.print_lines(lambda screen: draw(screen, screen.language(view.lang)), view.background)


def head_command(
    head: HeadSettings,
    text: CorpusSettings,
    model: ModelSettings,
    survey: SurveySettings,
    page: PageSettings,
    output: HeadOutput,
) -> None:
    """Show one head: what it does, how sure that is, and an example.

    With --full every measure is shown, with its interval, its controls and the sentences where it is largest.
    """
    if text.roles is not None:
        raise SettingsError("give one of a sentence and --load: they say where the sentences are")
    commands.check_look(page, output.planned())
    commands.check_writable(output.planned())
    layer, number = head.numbers
    from attnviz.attention import positions
    from attnviz.heads.api import compare_heads

    def expect(n_layers: int, n_heads: int) -> None:
        positions([layer], range(n_layers), "layer")
        positions([number], range(n_heads), "head")

    with _progress_bar(text, expect) as progress:
        comparison = compare_heads(
            _sentences(text),
            model=model,
            settings=survey,
            thresholds=head.thresholds,
            checkpoint=output.checkpoint,
            progress=progress,
            opening=commands.open_model,
        )
    profile = comparison.head(layer, number)
    from attnviz.heads.terminal.table import draw_head

    _print(
        lambda screen, lang: draw_head(
            comparison, layer, number, screen, full=head.full, language=lang
        ),
        head,
    )
    usual = _usual_path(
        "head", f"{profile.name} {text.shown}", comparison.model, model, survey, head, page
    )

    for path in output.output or (usual,):
        commands.write_result(
            COMPARISON, comparison, path, head=(layer, number), lang=head.lang, **asdict(page)
        )


def merge_command(merge: MergeSettings) -> None:
    """Put together what was measured on parts of a corpus.

    Each part is a .stats file that compare-heads wrote, on this machine or another. The result is the same as one run
    over all parts, up to rounding; a sentence in two parts counts twice. attnviz compare-heads --load FILE shows it.
    """
    from attnviz.heads.api import merge_stats
    from attnviz.heads.wording import say

    survey = merge_stats(merge.parts, merge.output).survey
    counts = {"n_sentences": survey.n_sentences, "n_tokens": survey.n_tokens}
    commands.tell(say("merged", merge.lang, path=visible(str(merge.output)), **counts))


def _sentences(text: CorpusSettings) -> CorpusSettings:
    """Where the sentences are; a sentence is read and looked at before a model is loaded for nothing."""
    if text.text is None:
        return text
    from attnviz.text.display import check_text

    sentence = commands.read_text(text.text)
    check_text(sentence, "standard input" if text.text == "-" else "the text")
    return replace(text, text=sentence)


def _check_output(text: CorpusSettings, table: TableSettings, output: ComparisonOutput) -> None:
    if (table.roles or text.roles is not None) and (output.json or table.against is not None):
        other = "--json" if output.json else "--against"
        raise SettingsError(
            f"the roles of a model's heads on a sentence are a table: they do not go with {other}"
        )
    chosen = changed(table, "table", "sort", "role", "layer", "head")
    if chosen and output.json:
        verb = "is" if len(chosen) == 1 else "are"
        raise SettingsError(
            f"{' and '.join(chosen)} {verb} of the table of heads; --json has all heads"
        )
    if table.sort == DIVERGENCE and table.against is None and text.load is None:
        raise SettingsError("there is no second model to be sorted by: add --against", "sort")


def _chosen_places(
    table: TableSettings, n_layers: int, n_heads: int
) -> tuple[list[int], list[int]]:
    """The numbers of the layers and heads chosen, empty for all; refused before the rest of a corpus is measured."""
    from attnviz.attention import positions

    (layers, heads), there = table.places, (range(n_layers), range(n_heads))
    return (
        positions(layers.among(there[0]), there[0], "layer") if layers else [],
        positions(heads.among(there[1]), there[1], "head") if heads else [],
    )


@contextmanager
def _progress_bar(
    text: CorpusSettings, expect: Callable[[int, int], object] = lambda _layers, _heads: None
) -> Iterator[Callable[[CorpusProgress], None]]:
    """How far a run is, on standard error, where a person is looking at more than a few sentences."""

    def look(progress: CorpusProgress) -> None:
        if progress.shape is not None:
            expect(*progress.shape)

    if text.path is None or not commands.is_watched():
        yield look
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring heads", total=None)

        def tick(progress: CorpusProgress) -> None:
            look(progress)
            description = f"measuring heads: {progress.n_sentences:,} sentences"
            bar.update(
                task,
                description=description,
                completed=progress.bytes_read,
                total=progress.n_bytes,
            )

        yield tick


def _usual_path(
    command: str,
    shown: str,
    name: str,
    model: ModelSettings,
    survey: SurveySettings,
    view: ViewSettings,
    page: PageSettings,
) -> Path:
    more = [
        *name_parts(model, "dtype", "revision"),
        *name_parts(survey),
        *name_parts(view, "threshold"),
    ]
    more += [*([view.lang] if view.lang != "en" else []), *name_parts(page)]
    return picture_path(command, shown, name, more, pair=None, target=None)
