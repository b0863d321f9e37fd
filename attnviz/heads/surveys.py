"""From what was typed to what each head does: the model run over sentences, with a checkpoint and a progress bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from attnviz import arguments
from attnviz.capture.notices import opened
from attnviz.errors import InputError, RecordError
from attnviz.heads.asked import Asked, check_can_go_on, check_same_run, told
from attnviz.heads.samples import samples
from attnviz.text.display import check_text, clip, visible

if TYPE_CHECKING:
    from attnviz.capture.source import Source
    from attnviz.heads.capture.surveying import Wish
    from attnviz.heads.capture.windows import Progress
    from attnviz.heads.files.surveys import Stats
    from attnviz.heads.record import Comparison
    from attnviz.heads.survey import Survey
    from attnviz.render.fonts import Typefaces
    from attnviz.storage.corpora.corpus import Corpus, Fingerprint
    from attnviz.text.corpus import BadLine, CorpusLine


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was found.

    Attributes:
        comparison: what each head does.
        stats: what it was read off.
        source: the model; None where none was run.
    """

    comparison: Comparison
    stats: Stats
    source: Source | None


def compared(asked: Asked) -> Found:
    """What each head does.

    Raises:
        AttnvizError: there is no sentence, no model, or a file that cannot be used.
    """
    from attnviz.heads.compare import compare

    source = None
    if asked.load is not None:
        stats = finished(asked.load)
    else:
        stats, source = _measured(asked)
    comparison = compare(stats.survey, corpus="; ".join(stats.corpora), thresholds=asked.thresholds)
    return Found(comparison=comparison, stats=stats, source=source)


def finished(path: Path) -> Stats:
    """What was measured and saved by a run that came to its end.

    Raises:
        RecordError: it holds none, or a run that was broken off.
    """
    from attnviz.heads.files import surveys

    stats = surveys.load(path)
    if stats.n_lines is not None:
        raise RecordError(f"{visible(str(path))} is a checkpoint of a run that was broken off: run it again to go on")
    return stats


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """Where the sentences are, read as far as can be before a model is loaded for nothing.

    Attributes:
        text: one sentence.
        corpus: a file of them.
        mark: what that file is.
    """

    text: str | None
    corpus: Corpus | None
    mark: Fingerprint | None


def typed_sentences(asked: Asked) -> Typed:
    """The sentences that were typed, or the file of them.

    Raises:
        InputError: they cannot be read.
    """
    from attnviz.storage.corpora.corpus import fingerprint, read_corpus

    path = asked.corpus if asked.treebank is None else asked.treebank
    text = None if asked.text is None else arguments.read_text(asked.text, None)
    if text is not None:
        check_text(text, "standard input" if asked.text == "-" else "the text")
    kind: Literal["conllu"] | None = None if asked.treebank is None else "conllu"
    return Typed(
        text=text,
        corpus=None if path is None else read_corpus(path, field=asked.field, kind=kind),
        mark=None if path is None else fingerprint(path),
    )


def wish_of(asked: Asked) -> Wish:
    """How the sentences are to be measured."""
    from attnviz.heads.capture.surveying import Wish

    return Wish(
        kind=asked.kind,
        specials=asked.specials,
        likeness=asked.likeness,
        controls=asked.controls,
        max_offset=asked.max_offset,
        truncate=asked.truncate,
    )


def _measured(asked: Asked) -> tuple[Stats, Source]:
    """Run the model over its sentences, unless a checkpoint holds it all."""
    typed = typed_sentences(asked)
    check_can_go_on(asked.checkpoint, typed.corpus, typed.mark)
    options = told(asked)
    from attnviz.heads.capture.surveying import survey_corpus
    from attnviz.heads.capture.windows import Progress
    from attnviz.heads.files import surveys

    before: Stats | None = None
    if asked.checkpoint is not None:
        if asked.checkpoint.exists():
            before = surveys.load(asked.checkpoint)
            check_same_run(asked.checkpoint, before, typed.mark, options)
        arguments.check_writable([asked.checkpoint])

    with opened(asked.model, **asked.loading) as source:
        pass  # it is there: what is said while it loads is said
    if before is not None:
        check_weights(before.survey, source, asked.checkpoint)
        if before.n_lines is None:
            return before, source
    if typed.text is not None:  # why it cannot be read is no fault of a line 1
        source.encode([typed.text], truncate=asked.truncate, kind=asked.kind)
    lines, name = sentences_of(typed, source)

    def stats_of(found: Survey, n_lines: int | None) -> Stats:
        return surveys.Stats(survey=found, corpora=(name,), n_lines=n_lines, fingerprint=typed.mark, options=options)

    with watched(typed.corpus, 0 if before is None else before.survey.n_sentences) as tick:

        def keep(progress: Progress[Survey]) -> None:
            asked.expect(*progress.found.heads.sums.shape[1:3])
            tick(progress.found.n_sentences)
            if asked.checkpoint is not None:
                surveys.save(stats_of(progress.found, progress.n_lines), asked.checkpoint)

        so_far = None if before is None else Progress(found=before.survey, n_lines=before.n_lines or 0)
        with named(name):
            found = survey_corpus(lines, source, wish_of(asked), so_far=so_far, tell=keep)
    stats = stats_of(found, None)
    if asked.checkpoint is not None:
        surveys.save(stats, asked.checkpoint)
    return stats, source


def check_weights(before: Survey, source: Source, checkpoint: Path | None) -> None:
    """Make sure that a checkpoint is of this very model, and not of another that had its name.

    Raises:
        RecordError: its weights were others.
    """
    if before.about["weights"] != source.digest():
        raise RecordError(
            f"{visible(str(checkpoint))} is a checkpoint of another run: {visible(source.name)} had other weights; "
            "remove it to begin anew"
        )


def sentences_of(typed: Typed, source: Source) -> tuple[Iterable[CorpusLine | BadLine], str]:
    """The sentences, and what they are in a few words."""
    from attnviz.text.corpus import CorpusLine

    if typed.text is not None:
        return [CorpusLine(number=1, text=typed.text)], f"“{clip(visible(typed.text), 60)}”"
    if typed.corpus is not None:
        return typed.corpus, typed.corpus.name
    return samples(source)


@contextmanager
def named(name: str) -> Iterator[None]:
    """Say of which sentences it is that none can be used; what cannot be read at all is named where it is read."""
    try:
        yield
    except InputError as error:
        if str(error).startswith(f"{name} "):
            raise
        raise InputError(f"{name}: {error}") from None


@contextmanager
def watched(corpus: Corpus | None, n_before: int = 0) -> Iterator[Callable[[int], None]]:
    """How far a run is, on standard error, where a person is looking at more than a few sentences.

    Args:
        corpus: what is read; None where that is a few sentences.
        n_before: sentences that an earlier run measured.
    """
    if corpus is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        *((BarColumn(), TimeRemainingColumn()) if corpus.size else ()),
        TimeElapsedColumn(),
        TextColumn("{task.fields[rate]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("measuring heads", total=corpus.size, rate="")
        began = time.monotonic()

        def tick(n: int) -> None:
            rate = f"{n:,} sentences, {(n - n_before) / max(time.monotonic() - began, 1e-9):,.0f} a second"
            bar.update(task, completed=corpus.read, rate=rate)

        yield tick


def write(path: Path, found: Found, draw: Callable[[BytesIO, str], Typefaces]) -> None:
    """Write one file, whole or not at all, by its ending, and say so.

    Args:
        path: the file.
        found: what tables and ``.stats`` hold.
        draw: what draws a picture into a file, by its ending.
    """
    from attnviz.heads.files import comparisons, surveys
    from attnviz.storage import encoding, write_whole

    suffix = path.suffix.lower()
    if suffix == encoding.SUFFIX:
        surveys.save(found.stats, path)
    elif suffix in comparisons.WRITERS:
        comparisons.save(found.comparison, path)
    else:
        from attnviz.render.fonts import advice

        drawn = BytesIO()  # Matplotlib has its own ways to fail on a full disk
        missing = draw(drawn, suffix).missing
        write_whole(path, drawn.getvalue())
        if missing:
            sys.stderr.write(f"attnviz: {advice(missing)}\n")
    sys.stderr.write(f"wrote {visible(str(path))}\n")
