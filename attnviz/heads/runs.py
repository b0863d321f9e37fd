"""A run over sentences: what is given is read, a checkpoint is gone on with, how far it is is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from attnviz.errors import RecordError, SettingsError
from attnviz.heads import wording
from attnviz.heads.files import PairStats, Stats, SurveyRun, load_pair, load_stats, save_pair, save_stats
from attnviz.heads.measures import Entry, among
from attnviz.heads.settings import STATS, CorpusSettings, SurveySettings
from attnviz.settings import ModelSettings
from attnviz.storage.corpora.corpus import Corpus, Fingerprint, fingerprint, read_corpus
from attnviz.storage.files import check_writable
from attnviz.text.corpus import BadLine, CorpusLine
from attnviz.text.display import check_text, clip, visible

if TYPE_CHECKING:
    from attnviz.capture.sources import Source
    from attnviz.heads.capture.survey import Progress, Surveys
    from attnviz.heads.survey import Survey

TREEBANK = Path(__file__).parent.parent / "text" / "treebank.conllu"
"""The sentences that heads are compared on where none are given."""
OWN = 600  # of a trained home-built model: sentences of its own language
Sentences: TypeAlias = str | os.PathLike[str] | Iterable[str] | CorpusSettings | None
"""One sentence, a file of them, several of them, or None for those that come with attnviz."""
Opening: TypeAlias = "Callable[[ModelSettings], Source]"  # opens a model


def open_model(model: ModelSettings) -> Source:
    """Load a model, with nobody looking on."""
    from attnviz.capture.source import open_source

    return open_source(**model.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusProgress:
    """How far a run over sentences is."""

    n_sentences: int  # that were measured, those of an earlier run too
    bytes_read: int = 0  # of the file of sentences
    n_bytes: int | None = None  # of the whole file; None where that is not known
    shape: tuple[int, int] | None = None  # layers of the model, and heads of each; None before the first sentences


class Input(NamedTuple):
    """Where the sentences are, in one form."""

    place: CorpusSettings  # a sentence, a file, or what was measured; empty of the usual sentences
    lines: tuple[str, ...] | None  # one sentence, or several; None of a file


def input_of(sentences: Sentences) -> Input:
    """What is given, in one form. Raises SettingsError: a sentence that is the name of a file; InputError: no text."""
    if isinstance(sentences, str):
        sentences = CorpusSettings(text=sentences)
    elif isinstance(sentences, os.PathLike):
        path = Path(sentences)
        is_saved = path.name.lower().endswith(STATS)
        sentences = CorpusSettings(load=path) if is_saved else CorpusSettings(corpus=str(path))
    elif sentences is None:
        sentences = CorpusSettings()
    elif not isinstance(sentences, CorpusSettings):
        return Input(CorpusSettings(), tuple(sentences))
    if sentences.text is None:
        return Input(sentences, None)
    check_text(sentences.text)
    return Input(sentences, (sentences.text,))


def load_finished(path: Path) -> Stats:
    """What a run measured and saved. Raises RecordError: the file holds none, or a run that was broken off."""
    stats = load_stats(path)
    if stats.n_lines is not None:
        raise RecordError(f"{visible(str(path))} is a checkpoint of a run that was broken off: run it again to go on")
    return stats


def check_checkpoint(checkpoint: Path | None, given: str | None) -> None:
    """Refuse a checkpoint that nobody can go on with. Raises SettingsError: no file to read again, or its ending."""
    if checkpoint is None:
        return
    if given is None:
        raise SettingsError("a checkpoint is for a file of sentences")
    path = Path(given)
    if str(path) == "-" or (path.exists() and not (path.is_file() or path.is_dir())):
        name = "standard input" if str(path) == "-" else f"{visible(str(path))}, a pipe,"
        raise SettingsError(
            f"a checkpoint is for a file: of {name} nobody can tell whether it is the same when a run goes on"
        )
    if checkpoint.suffix.lower() != STATS:
        raise SettingsError(f"{visible(str(checkpoint))}: a checkpoint ends in .stats")


def measure(
    given: Input, opened: Sequence[Callable[[], Source]], run: SurveyRun, *,
    checkpoint: str | os.PathLike[str] | None, measures: tuple[Entry, ...],
    progress: Callable[[CorpusProgress], object] | None,
) -> tuple[Stats, Surveys, list[Source]]:  # fmt: skip
    """Run a model, or two, over the sentences, unless a checkpoint holds it all: the stats of the first, and of all."""
    checkpoint, path = None if checkpoint is None else Path(checkpoint), given.place.path
    check_checkpoint(checkpoint, path)
    # The sentences are read as far as can be before a model is loaded for nothing.
    kind: Literal["conllu"] | None = None if given.place.treebank is None else "conllu"
    corpus = None if path is None else read_corpus(path, field=given.place.field, kind=kind)
    mark = None if path is None else fingerprint(path)
    left = None if checkpoint is None else _left_by(checkpoint, mark, run, is_pair=len(opened) > 1)
    from attnviz.heads.capture.survey import Progress, check_readable, survey_models

    sources = [open_one() for open_one in opened]
    so_far: Progress | None = None
    if left is not None:
        first, found = _parts_of(left)
        for one, source in zip(found.each, sources, strict=True):
            _check_weights(one, source, checkpoint)
        if first.n_lines is None:
            return first, found, sources
        so_far = Progress(found=found, n_lines=first.n_lines)
        measures = among(measures, first.survey.measures)
    if given.lines is not None and len(given.lines) == 1:  # why it cannot be read is no fault of a line 1
        check_readable(given.lines[0], sources, run.settings)
    lines, name = (corpus, corpus.name) if corpus is not None else _lines_of(given.lines, sources[0])
    tell = _teller(corpus, progress, 0 if so_far is None else so_far.found.before.n_sentences)

    def saved(found: Surveys, n_lines: int | None) -> Stats:
        stats = Stats(survey=found.before, corpora=(name,), n_lines=n_lines, fingerprint=mark, run=run)
        if checkpoint is not None:
            _save(stats, found, checkpoint)
        return stats

    def keep(so_far: Progress) -> None:
        tell(so_far.found.before)
        saved(so_far.found, so_far.n_lines)

    found = survey_models(lines, sources, run.settings, measures=measures, so_far=so_far, tell=keep, corpus=name)
    return saved(found, None), found, sources


def _parts_of(left: Stats | PairStats) -> tuple[Stats, Surveys]:
    from attnviz.heads.capture.survey import Surveys

    if isinstance(left, Stats):
        return left, Surveys(each=(left.survey,))
    return left.before, Surveys(each=(left.before.survey, left.after), divergences=left.divergences)


def _save(stats: Stats, found: Surveys, checkpoint: Path) -> None:
    if found.divergences is None:
        save_stats(stats, checkpoint)
    else:
        save_pair(PairStats(before=stats, after=found.after, divergences=found.divergences), checkpoint)


def _left_by(checkpoint: Path, mark: Fingerprint | None, run: SurveyRun, *, is_pair: bool) -> Stats | PairStats | None:
    """What an earlier run left, if it is of this run; refused before a model is loaded for nothing."""
    left = (load_pair if is_pair else load_stats)(checkpoint) if checkpoint.exists() else None
    if left is not None:
        _check_same_run(checkpoint, left if isinstance(left, Stats) else left.before, mark, run)
    check_writable(checkpoint)
    return left


def _teller(
    corpus: Corpus | None, progress: Callable[[CorpusProgress], object] | None, n_before: int
) -> Callable[[Survey], None]:
    def tell(n_sentences: int, shape: tuple[int, int] | None) -> None:
        if progress is not None:
            progress(
                CorpusProgress(
                    n_sentences=n_sentences, bytes_read=0 if corpus is None else corpus.read,
                    n_bytes=None if corpus is None else corpus.size, shape=shape,
                )
            )  # fmt: skip

    tell(n_before, None)
    return lambda found: tell(found.n_sentences, found.heads.sums.shape[1:3])


def _lines_of(texts: Sequence[str] | None, source: Source) -> tuple[Iterable[CorpusLine | BadLine], str]:
    if texts is not None:
        lines = [CorpusLine(number=number, text=text) for number, text in enumerate(texts, 1)]
        return lines, f"“{clip(visible(texts[0]), 60)}”" if len(lines) == 1 else f"{len(lines):,} sentences"
    if hasattr(source, "language"):
        from attnviz.models.language.splits import corpus_lines, source_lines

        language = source.language
        return source_lines(OWN) if language is None else corpus_lines(OWN, language=language), wording.OWN
    return read_corpus(TREEBANK), wording.SAMPLES


def _check_same_run(path: Path, before: Stats, mark: Fingerprint | None, run: SurveyRun) -> None:
    now, then = run.words(), before.run.words()
    names = [name for name in sorted({*now, *then}) if now.get(name) != then.get(name)]
    differing = [f"{name} is {now.get(name, 'not given')}, was {then.get(name, 'not given')}" for name in names]
    if before.fingerprint != mark:
        known = before.fingerprint
        was = "; ".join(before.corpora) if known is None else f"{known.name}, {known.size:,} bytes"
        differing.insert(0, f"the corpus is another (it was {visible(was)})")
    if differing:
        raise RecordError(
            f"{visible(str(path))} is a checkpoint of another run: {clip('; '.join(differing), 300)}; remove it to "
            "begin anew"
        )


def _check_weights(before: Survey, source: Source, checkpoint: Path | None) -> None:
    """Make sure that a checkpoint is of this very model, and not of another that had its name."""
    if before.about.weights != source.digest():
        raise RecordError(
            f"{visible(str(checkpoint))} is a checkpoint of another run: {visible(source.name)} had other weights; "
            "remove it to begin anew"
        )


def check_same_settings(settings: SurveySettings, other: Stats, path: str) -> None:
    """Make sure, before hours of a run, that both are measured alike. Raises RecordError: they are not."""
    about = other.survey.about
    words = about.words()
    wanted = {"special tokens": settings.specials, "fixed offsets": f"up to {settings.max_offset}"}
    differing = [f"{what}: {words[what]}, not {value}" for what, value in wanted.items() if words[what] != value]
    if differing:
        raise RecordError(f"{visible(path)} was measured otherwise: {'; '.join(differing)}")
