"""A run over sentences: what is given is read, a checkpoint is gone on with, how far it is is told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from attnviz.errors import RecordError, SettingsError
from attnviz.heads import wording
from attnviz.heads.files import PairStats, Stats, SurveyRun, load_pair, load_stats, save_pair, save_stats
from attnviz.heads.measures import Entry, among
from attnviz.heads.settings import STATS, CorpusSettings, SurveySettings
from attnviz.settings import ModelSettings
from attnviz.storage.corpora.corpus import Corpus, Fingerprint, fingerprint, read_corpus
from attnviz.storage.files import check_writable
from attnviz.text.corpus import BadLine, CorpusLine
from attnviz.text.display import check_sentence, check_text, clip, visible

if TYPE_CHECKING:
    from attnviz.capture.source import Source
    from attnviz.heads.capture.survey import Progress, Surveys
    from attnviz.heads.survey import Survey

TREEBANK = Path(__file__).parent.parent / "text" / "treebank.conllu"
"""The sentences that heads are compared on where none are given."""
OWN = 600  # of a trained home-built model: sentences of its own language
Sentences: TypeAlias = "str | os.PathLike[str] | Iterable[str] | CorpusSettings | None"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """Where the sentences are, read as far as can be before a model is loaded for nothing."""

    lines: tuple[str, ...] | None = None  # one sentence, or several; None of a file
    corpus: Corpus | None = None  # a file of them
    mark: Fingerprint | None = None  # what that file is


def input_of(sentences: Sentences) -> Input:
    """The sentences that are given, or the file of them. Raises InputError: they cannot be read."""
    if isinstance(sentences, CorpusSettings):
        if sentences.text is None:
            if sentences.path is None:
                return Input()
            kind: Literal["conllu"] | None = None if sentences.treebank is None else "conllu"
            return Input(
                corpus=read_corpus(sentences.path, field=sentences.field, kind=kind), mark=fingerprint(sentences.path)
            )
        sentences = sentences.text
    if isinstance(sentences, str):
        check_sentence(sentences)
        check_text(sentences)
        return Input(lines=(sentences,))
    if isinstance(sentences, os.PathLike):
        return Input(corpus=read_corpus(sentences), mark=fingerprint(sentences))
    return Input() if sentences is None else Input(lines=tuple(sentences))


def saved_in(sentences: Sentences) -> Path | None:
    """The ``.stats`` file that holds what was measured, if it is one."""
    if isinstance(sentences, CorpusSettings):
        return sentences.saved
    if isinstance(sentences, os.PathLike) and str(sentences).lower().endswith(STATS):
        return Path(sentences)
    return None


def roles_in(sentences: Sentences) -> Path | None:
    """The ``.stats`` file that tells the roles of the heads that read a sentence, if one is given beside it."""
    return sentences.roles if isinstance(sentences, CorpusSettings) else None


def is_one(sentences: Sentences) -> bool:
    """Whether it is one sentence, and no file."""
    if isinstance(sentences, CorpusSettings):
        return sentences.text is not None
    return isinstance(sentences, str) or (isinstance(sentences, Sequence) and len(sentences) == 1)


def field_of(sentences: Sentences) -> str | None:
    """Where the objects of JSON lines hold their sentence; None where it is not set."""
    return sentences.field if isinstance(sentences, CorpusSettings) else None


def load_finished(path: Path) -> Stats:
    """What a run measured and saved. Raises RecordError: the file holds none, or a run that was broken off."""
    stats = load_stats(path)
    if stats.n_lines is not None:
        raise RecordError(f"{visible(str(path))} is a checkpoint of a run that was broken off: run it again to go on")
    return stats


def check_checkpoint(checkpoint: Path, sentences: Sentences) -> None:
    """Refuse a checkpoint that nobody can go on with. Raises SettingsError: no file to read again, or its ending."""
    path_of = sentences.path if isinstance(sentences, CorpusSettings) else None
    given = sentences if isinstance(sentences, os.PathLike) else path_of
    if given is None:
        raise SettingsError("a checkpoint is for a file of sentences (--corpus, --conllu)")
    path = Path(given)
    if str(path) == "-" or (path.exists() and not (path.is_file() or path.is_dir())):
        name = "standard input" if str(path) == "-" else f"{visible(str(path))}, a pipe,"
        raise SettingsError(
            f"--checkpoint is for a file: of {name} nobody can tell whether it is the same when a run goes on"
        )
    if checkpoint.suffix.lower() != STATS:
        raise SettingsError(f"{visible(str(checkpoint))}: a checkpoint ends in .stats")


def measure(
    sentences: Sentences, opened: Sequence[Callable[[], Source]], run: SurveyRun, *,
    checkpoint: str | os.PathLike[str] | None, measures: tuple[Entry, ...],
    progress: Callable[[CorpusProgress], object] | None,
) -> tuple[Stats, Surveys, list[Source]]:  # fmt: skip
    """Run a model, or two, over the sentences, unless a checkpoint holds it all: the stats of the first, and of all."""
    checkpoint = None if checkpoint is None else Path(checkpoint)
    if checkpoint is not None:
        check_checkpoint(checkpoint, sentences)
    given = input_of(sentences)
    left = None if checkpoint is None else _left_by(checkpoint, given, run, is_pair=len(opened) > 1)
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
    lines, name = _lines_of(given, sources[0])
    tell = _teller(given, progress, 0 if so_far is None else so_far.found.before.n_sentences)

    def saved(found: Surveys, n_lines: int | None) -> Stats:
        stats = Stats(survey=found.before, corpora=(name,), n_lines=n_lines, fingerprint=given.mark, run=run)
        if checkpoint is not None and found.divergences is None:
            save_stats(stats, checkpoint)
        elif checkpoint is not None and found.divergences is not None:
            save_pair(PairStats(before=stats, after=found.after, divergences=found.divergences), checkpoint)
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


def _left_by(checkpoint: Path, given: Input, run: SurveyRun, *, is_pair: bool) -> Stats | PairStats | None:
    """What an earlier run left, if it is of this run; refused before a model is loaded for nothing."""
    left = (load_pair if is_pair else load_stats)(checkpoint) if checkpoint.exists() else None
    if left is not None:
        _check_same_run(checkpoint, left if isinstance(left, Stats) else left.before, given.mark, run)
    check_writable(checkpoint)
    return left


def _teller(
    given: Input, progress: Callable[[CorpusProgress], object] | None, n_before: int
) -> Callable[[Survey], None]:
    corpus = given.corpus

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


def _lines_of(given: Input, source: Source) -> tuple[Iterable[CorpusLine | BadLine], str]:
    if given.corpus is not None:
        return given.corpus, given.corpus.name
    if given.lines is not None:
        lines = [CorpusLine(number=number, text=text) for number, text in enumerate(given.lines, 1)]
        return lines, f"“{clip(visible(given.lines[0]), 60)}”" if len(lines) == 1 else f"{len(lines):,} sentences"
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
