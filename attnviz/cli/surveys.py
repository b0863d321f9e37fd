"""From what was typed to what each head does: the model run over sentences, with a checkpoint and a progress bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attnviz.cli import arguments
from attnviz.cli.asked import NOBODY_KNOWS, Asked
from attnviz.cli.notices import opened
from attnviz.cli.samples import samples
from attnviz.errors import InputError, RecordError
from attnviz.text.check import check_text
from attnviz.text.display import clip, visible

if TYPE_CHECKING:
    from attnviz.analysis.survey import Survey
    from attnviz.capture.source import Source
    from attnviz.capture.surveying import Progress, Wish
    from attnviz.comparison import Comparison
    from attnviz.corpus import BadLine, Line
    from attnviz.storage.corpus import Corpus, Fingerprint
    from attnviz.storage.surveys import Stats
    from attnviz.views.fonts import Typefaces


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
    from attnviz.analysis.comparing import compare

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
    from attnviz.storage import surveys

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
    from attnviz.storage.corpus import fingerprint, read_corpus

    path = asked.corpus if asked.treebank is None else asked.treebank
    text = None if asked.text is None else arguments.read_text(asked.text, None)
    if text is not None:
        check_text(text)
    kind: Literal["conllu"] | None = None if asked.treebank is None else "conllu"
    return Typed(
        text=text,
        corpus=None if path is None else read_corpus(path, field=asked.field, kind=kind),
        mark=None if path is None else fingerprint(path),
    )


def wish_of(asked: Asked) -> Wish:
    """How the sentences are to be measured."""
    from attnviz.capture.surveying import Wish

    return Wish(
        kind=asked.kind,
        specials=asked.specials,
        likeness=asked.likeness,
        controls=asked.controls,
        truncate=asked.truncate,
    )


def _measured(asked: Asked) -> tuple[Stats, Source | None]:
    """Run the model over its sentences, unless a checkpoint holds it all."""
    typed = typed_sentences(asked)
    if asked.checkpoint is not None and typed.corpus is not None and typed.mark is None:
        raise InputError(f"{typed.corpus.name} is a pipe, and --checkpoint is for a file: of a pipe {NOBODY_KNOWS}")
    told = _told(asked)
    before = None if asked.checkpoint is None else _before(asked.checkpoint, typed.mark, told)
    if before is not None and before.n_lines is None:
        return before, None
    if asked.checkpoint is not None:
        arguments.check_writable([asked.checkpoint])
    from attnviz.capture.surveying import Progress, survey_corpus
    from attnviz.storage import surveys

    with opened(asked.model, **asked.loading) as source:
        pass  # it is there: what is said while it loads is said
    if typed.text is not None:  # why it cannot be read is no fault of a line 1
        source.encode([typed.text], truncate=asked.truncate, kind=asked.kind)
    lines, name = sentences_of(typed, source)

    def stats_of(found: Survey, n_lines: int | None) -> Stats:
        return surveys.Stats(survey=found, corpora=(name,), n_lines=n_lines, fingerprint=typed.mark, options=told)

    with watched(typed.corpus) as tick:

        def keep(progress: Progress) -> None:
            asked.expect(*progress.survey.heads.sums.shape[1:3])
            tick(progress)
            if asked.checkpoint is not None:
                surveys.save(stats_of(progress.survey, progress.n_lines), asked.checkpoint)

        so_far = None if before is None else Progress(survey=before.survey, n_lines=before.n_lines or 0)
        found = survey_corpus(lines, source, wish_of(asked), so_far=so_far, tell=keep)
    stats = stats_of(found, None)
    if asked.checkpoint is not None:
        surveys.save(stats, asked.checkpoint)
    return stats, source


def _told(asked: Asked) -> dict[str, str]:
    """What must be the same for a run to go on."""
    sizes: Any = asked.loading["sizes"]
    loaded = {**asked.loading, "sizes": None, **{name: str(size) for name, size in sizes.items()}}
    return {
        "--model": asked.model or "the default",
        **{f"--{name.replace('_', '-')}": str(value) for name, value in loaded.items() if value},
        "--kind": asked.kind or "the usual",
        "--specials": asked.specials,
        "--truncate": str(asked.truncate),
        "--likeness": str(asked.likeness),
        "--controls": str(asked.controls),
        "--field": asked.field or "text",
    }


def _before(path: Path, mark: Fingerprint | None, told: Mapping[str, str]) -> Stats | None:
    """What an earlier run left; None where there was none.

    Raises:
        RecordError: it is of another corpus, or was measured otherwise.
    """
    from attnviz.storage import surveys

    if not path.exists():
        return None
    before = surveys.load(path)
    differing = [
        f"{name} is {told.get(name, 'not given')}, was {before.options.get(name, 'not given')}"
        for name in sorted({*told, *before.options})
        if told.get(name) != before.options.get(name)
    ]
    if before.fingerprint != mark:
        was = (
            "; ".join(before.corpora)
            if before.fingerprint is None
            else f"{before.fingerprint.name}, {before.fingerprint.size:,} bytes"
        )
        differing.insert(0, f"the corpus is another (it was {visible(was)})")
    if differing:
        raise RecordError(
            f"{visible(str(path))} is a checkpoint of another run: {clip('; '.join(differing), 300)}; remove it to "
            "begin anew"
        )
    return before


def sentences_of(typed: Typed, source: Source) -> tuple[Iterable[Line | BadLine], str]:
    """The sentences, and what they are in a few words."""
    from attnviz.corpus import Line

    if typed.text is not None:
        return [Line(number=1, text=typed.text)], f"“{clip(visible(typed.text), 60)}”"
    if typed.corpus is not None:
        return typed.corpus, typed.corpus.name
    return samples(source)


@contextmanager
def watched(corpus: Corpus | None) -> Iterator[Callable[[Progress], None]]:
    """How far a run is, on standard error, where a person is looking at more than a few sentences."""
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

        def tick(progress: Progress) -> None:
            n = progress.survey.n_sentences
            rate = f"{n:,} sentences, {n / max(time.monotonic() - began, 1e-9):,.0f} a second"
            bar.update(task, completed=corpus.read, rate=rate)

        yield tick


def write(path: Path, found: Found, draw: Callable[[BytesIO, str], Typefaces]) -> None:
    """Write one file, whole or not at all, by its ending, and say so.

    Args:
        path: the file.
        found: what tables and ``.stats`` hold.
        draw: what draws a picture into a file, by its ending.
    """
    from attnviz.storage import comparisons, surveys, write_whole

    suffix = path.suffix.lower()
    if suffix == surveys.SUFFIX:
        surveys.save(found.stats, path)
    elif suffix in comparisons.WRITERS:
        comparisons.save(found.comparison, path)
    else:
        from attnviz.views.fonts import advice

        drawn = BytesIO()  # Matplotlib has its own ways to fail on a full disk
        missing = draw(drawn, suffix).missing
        write_whole(path, lambda temporary: temporary.write_bytes(drawn.getvalue()))
        if missing:
            sys.stderr.write(f"attnviz: {advice(missing)}\n")
    sys.stderr.write(f"wrote {visible(str(path))}\n")
