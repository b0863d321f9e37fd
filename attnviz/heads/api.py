"""The Python side of the commands ``compare-heads``, ``head`` and ``merge``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from attnviz import errors
from attnviz.attention import parse_head
from attnviz.heads import words
from attnviz.heads.files import Stats, SurveyRun, load_stats, save_stats
from attnviz.heads.measures import MEASURES, Entry, measures_of
from attnviz.heads.roles import with_thresholds
from attnviz.heads.settings import (
    STATS,
    CorpusSettings,
    ModelSettings,
    Place,
    SurveySettings,
    check_saved,
)
from attnviz.heads.survey import Survey
from attnviz.models.registry import names
from attnviz.storage.corpora.corpus import Corpus, Fingerprint, fingerprint, read_corpus
from attnviz.storage.encoding import as_file_error, to_bytes
from attnviz.storage.files import check_writable
from attnviz.text.corpus import BadLine, CorpusLine
from attnviz.text.display import check_text, clip, visible
from attnviz.text.messages import expect_language

if TYPE_CHECKING:
    from attnviz.attention import Attention
    from attnviz.capture.sources import Source
    from attnviz.heads.record import HeadComparison
    from attnviz.render.figure.export import Picture
    from attnviz.render.figure.style import StyleName

ONE_MODEL = "roles are of the heads of one model on one sentence: give a sentence"  # why roles are not shown
TREEBANK = Path(__file__).parent.parent / "text" / "treebank.conllu"
"""The sentences that heads are compared on where none are given."""
OWN = 600  # of a trained home-built model: sentences of its own language
Examples: TypeAlias = Callable[
    ["HeadComparison", tuple[int, int] | None], "tuple[Mapping[str, Attention], str]"
]
"""Gives the patterns of examples by role, and why there are none."""
Model: TypeAlias = "str | Path | ModelSettings | Source | None"
"""A model by its name or folder, with how it is loaded, or open already; None is the default."""
Sentences: TypeAlias = str | os.PathLike[str] | Iterable[str] | CorpusSettings | None
"""One sentence, a file of them, several of them, or None for those that come with attnviz."""
Opening: TypeAlias = Callable[[ModelSettings], "Source"]  # opens a model


def open_model(model: ModelSettings) -> Source:
    """Load a model, with nobody looking on."""
    from attnviz.capture.source import open_source

    return open_source(**asdict(model))


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusProgress:
    """The progress of a run over sentences."""

    n_sentences: int  # that were measured, those of an earlier run too
    bytes_read: int = 0  # of the file of sentences
    n_bytes: int | None = None  # of the whole file; None where that is not known
    # layers of the model, and heads of each; None before the first sentences
    shape: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a comparison comes from."""

    stats: Stats  # what it was computed from
    model: ModelSettings  # how its model is loaded again
    source: Any = None  # the model; None where none was run


def compare_heads(
    sentences: Sentences = None,
    model: Model = None,
    tokenizer: object = None,
    *,
    against: Model = None,
    settings: SurveySettings | None = None,
    thresholds: Mapping[str, float] | None = None,
    measures: Sequence[Entry] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    roles: bool | str | os.PathLike[str] | HeadComparison = False,
    progress: Callable[[CorpusProgress], object] | None = None,
    opening: Opening = open_model,
) -> HeadComparison:
    """Find out what each head of a model does, how sure that is, and which heads are alike.

    Args:
        sentences: one sentence; a file with a line each, a treebank (``.conllu``), or what was measured before
            (``.stats``); several sentences; None takes those that come with attnviz.
        model: the model: its name or folder, `ModelSettings`, an open source, or a model in memory.
        tokenizer: the tokenizer of a model in memory.
        against: a second model with the same tokenizer and the same numbers of layers and heads, measured on the same
            sentences. Each head then has its `change`, and `HeadComparison.against` is the comparison of that model.
        settings: how it is measured.
        thresholds: of roles, by name, where they are not the usual ones.
        measures: what is measured, `attnviz.heads.measures.MEASURES` if None.
        checkpoint: a ``.stats`` file that is written while a file of sentences is read, and continued from.
        roles: of one sentence, also the roles of the heads, as `HeadComparison.roles_on`: True measures them on the
            sentences that come with attnviz; or what was measured of this model, or its ``.stats`` file.
        progress: called after each window of lines.
        opening: opens a model; by default as `open_source` does.

    Returns:
        The comparison. Its `estimates` have the shape (layer, head, measure); shares are between 0 and 1, entropy is
        in nats, distance in tokens.

    Raises:
        SettingsError: settings that do not go together, or a sentence that is the name of a file.
        InputError: no sentence is left, or the file cannot be read.
        ModelError: a model cannot be used, its weights are not proved, or two models do not fit together.
        SelectionError: no such attention, a threshold of no role, or roles of another model.
        RecordError: the checkpoint is of another run, or a ``.stats`` file, or that of the model, cannot be used.
        OutputError: the checkpoint cannot be written.
    """
    from attnviz.heads.compare import compare

    settings = settings or SurveySettings()
    entries = MEASURES if measures is None else tuple(measures)
    place, lines = _input_of(sentences)
    with_thresholds(measures_of(entries), thresholds or {})
    roles = _saved_roles(place.roles or roles, lines, thresholds=thresholds, measures=entries)
    if against is not None:
        _check_against(place, roles)
    run = SurveyRun(
        model=_settings_of(model),
        settings=settings,
        against=None if against is None else _settings_of(against).model,
    )
    stats, source = _measure(
        place,
        lines,
        [model] if against is None else [model, against],
        run,
        tokenizer=tokenizer,
        opening=opening,
        checkpoint=checkpoint,
        measures=entries,
        progress=progress,
    )
    with as_file_error(place.saved) if place.saved else nullcontext():
        comparison = compare(
            stats.survey, corpus="; ".join(stats.corpora), thresholds=thresholds, entries=entries
        )
    many = _roles_on(
        roles, comparison, source, run, thresholds=thresholds, measures=entries, progress=progress
    )
    origin = Origin(stats=stats, model=run.model, source=source)
    return replace(
        comparison, origin=origin, attention=_only_sentence(comparison, origin), roles_on=many
    )


def _saved_roles(
    roles: bool | str | os.PathLike[str] | HeadComparison, lines: tuple[str, ...] | None, **how: Any
) -> bool | HeadComparison:
    """Read the roles measured on many sentences; or return whether they are to be measured."""
    if roles and (lines is None or len(lines) != 1):
        raise errors.SettingsError(ONE_MODEL)
    if isinstance(roles, str | os.PathLike):
        return compare_heads(CorpusSettings(load=Path(roles)), **how)
    return roles


def _roles_on(
    roles: bool | HeadComparison,
    comparison: HeadComparison,
    source: Source | None,
    run: SurveyRun,
    **how: Any,
) -> HeadComparison | None:
    """Return the roles on many sentences, measured now unless they were given; refuse those of another model."""
    if isinstance(roles, bool):
        return compare_heads(model=source, settings=run.settings, **how) if roles else None
    roles.signs.among(
        comparison.model, comparison.kind, range(comparison.n_layers), range(comparison.n_heads)
    )
    return roles


def merge_stats(parts: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]) -> Stats:
    """Merge ``.stats`` files of parts of a corpus into another, which `compare_heads` shows.

    Raises:
        RecordError: there is no part; one cannot be read, is a checkpoint, was measured otherwise than the first, or
            on the very sentences of another part.
        OutputError: the file cannot be written.
    """
    from attnviz.heads import survey

    check_writable(Path(output))
    whole: Stats | None = None
    read: dict[str, Survey] = {}
    for path in parts:
        part, name = _load_finished(Path(path)), visible(str(path))
        if whole is None:
            whole = part
        else:
            try:
                merged = survey.merge(whole.survey, part.survey)
            except errors.RecordError as error:
                raise errors.RecordError(f"{name}: {error}") from None
            corpora = (*whole.corpora, *part.corpora)
            whole = Stats(survey=merged, corpora=corpora, run=whole.run)
        for other, before in read.items():
            if survey.same_sentences(before, part.survey):
                raise errors.RecordError(
                    f"{name} has the very sentences of {other}: no part is counted twice"
                )
        read[name] = part.survey
    if whole is None:
        raise errors.RecordError("give the .stats files of the parts")
    save_stats(whole, output)
    return whole


def example_patterns(
    comparison: HeadComparison, head: tuple[int, int] | None = None
) -> tuple[dict[str, Attention], str]:
    """Return by role the attention on its example; none, and why, where the model is not at hand.

    A model is opened again where that needs no download, and proved to be the one that was measured.
    """
    from attnviz.heads.selection import own_card, strongest

    every = strongest(comparison) if head is None else own_card(comparison.head(*head), comparison)
    cards = [(card, card.example.text) for card in every if card.example is not None]
    origin = comparison.origin
    if not cards or not isinstance(origin, Origin):
        return {}, ""
    try:
        source = origin.source or reopen_model(origin)
        from attnviz.capture.attend import attend

        return {
            card.role.name: attend(
                text,
                source,
                kind=comparison.kind,
                layers=[card.head.layer],
                heads=[card.head.head],
                truncate=True,  # where nothing was cut, nothing is
            )
            for card, text in cards
        }, ""
    except errors.AttnvizError as error:
        return {}, clip(str(error), 300)


def stats(shown: HeadComparison) -> bytes:
    """Return what was measured, as a ``.stats`` file holds it; or OutputError: it was not measured here."""
    if not isinstance(shown.origin, Origin):
        raise errors.OutputError(
            f"this comparison was not measured here: there is no {STATS} of it"
        )
    return to_bytes(shown.origin.stats)


def draw(
    shown: HeadComparison,
    head: Place | None = None,
    *,
    examples: Examples | None = example_patterns,
    lang: str = "en",
    style: StyleName = "sheet",
    width: str | None = None,
    dpi: int | None = None,
) -> Picture:
    """Draw a comparison, or one of its heads, as `HeadComparison.figure` does.

    `examples` gives the patterns of examples, and why there are none; None draws none.
    """
    from attnviz.heads import figure
    from attnviz.render.figure.style import style_of

    expect_language(lang)
    look = style_of(style, width, dpi)
    place = None if head is None else parse_head(head)
    patterns, unseen = ({}, "") if examples is None else examples(shown, place)
    if place is not None:
        picture = figure.draw_head(shown, *place, patterns=patterns, language=lang)
    else:
        picture = figure.draw(shown, patterns=patterns, unseen=unseen, language=lang, style=look)
    return picture.fitted(look)


def _only_sentence(comparison: HeadComparison, origin: Origin) -> Attention | None:
    texts = list(origin.stats.survey.sample.texts.values())
    if (
        origin.source is None
        or comparison.against is not None
        or comparison.n_sentences != 1
        or len(texts) != 1
        or texts[0][1] is not None
    ):
        return None
    from attnviz.capture.attend import attend

    return attend(texts[0][0], origin.source, kind=comparison.kind, truncate=True)


def reopen_model(origin: Origin) -> Source:
    """The model that was measured, opened as it was then without a download; its own code runs only if allowed now."""
    then, now, about = origin.stats.run.model, origin.model, origin.stats.survey.about
    name = then.model or about.model
    called = clip(visible(name), 100)
    if not _is_here(name):
        raise errors.UnreachableModelError(
            f"{called} is not here, and no model is downloaded for a picture"
        )
    if then.trust_remote_code and not now.trust_remote_code:
        raise errors.ModelError(
            f"{called} comes with code of its own, which runs only with trust_remote_code"
        )
    source = open_model(
        replace(then, model=name, device=now.device, trust_remote_code=now.trust_remote_code)
    )
    if source.digest() != about.weights:
        raise errors.ModelError(
            f"{visible(source.name)} is another model than was measured: its weights differ"
        )
    return source


def _is_here(name: str) -> bool:
    """Whether a model can be opened without asking the hub for it."""
    if name.partition(":")[0] in names() or name.endswith(".safetensors"):
        return True
    from attnviz.capture.sources.hub import is_cached

    name, _, revision = name.partition("@")

    try:
        return (bool(name) and Path(name).expanduser().is_dir()) or is_cached(
            name, revision or None
        )
    except (OSError, RuntimeError, ValueError):  # what names neither a folder nor a model
        return False


def _settings_of(model: Any) -> ModelSettings:
    """Return how a model is loaded; of one that is open or in memory, its name alone."""
    if isinstance(model, ModelSettings):
        return model
    named = model if isinstance(model, (str, os.PathLike)) else getattr(model, "name", None)
    named = named or getattr(getattr(model, "config", None), "name_or_path", None)
    return ModelSettings(model=str(named) if named else None)


def _opener(model: Any, tokenizer: object, opening: Opening) -> Callable[[], Source]:
    """Return a function that opens a model, or wraps one that is in memory."""
    if model is None or isinstance(model, (str, os.PathLike, ModelSettings)):
        if tokenizer is not None:
            raise errors.SettingsError(
                "a tokenizer goes with a model that is in memory: this one has its own"
            )
        return lambda: opening(_settings_of(model))
    from attnviz.capture.source import as_source

    return lambda: as_source(model, tokenizer)


def _input_of(sentences: Sentences) -> tuple[CorpusSettings, tuple[str, ...] | None]:
    """Where the sentences are (empty settings of the usual ones); and one sentence, or several, None of a file."""
    if isinstance(sentences, str):
        sentences = CorpusSettings(text=sentences)
    elif isinstance(sentences, os.PathLike):
        path = Path(sentences)
        is_saved = path.name.lower().endswith(STATS)
        sentences = CorpusSettings(load=path) if is_saved else CorpusSettings(corpus=str(path))
    elif sentences is None:
        sentences = CorpusSettings()
    elif not isinstance(sentences, CorpusSettings):
        return CorpusSettings(), tuple(sentences)
    if sentences.text is None:
        return sentences, None
    check_text(sentences.text)
    return sentences, (sentences.text,)


def _check_against(place: CorpusSettings, roles: object) -> None:
    """Refuse a second model that cannot be measured on the sentences of the first."""
    if roles:
        raise errors.SettingsError(ONE_MODEL)
    if place.saved is not None:
        raise errors.SettingsError(
            "a saved file is shown as it was measured: omit the second model"
        )


def _load_finished(path: Path) -> Stats:
    """Load the measurements of a finished run; refuse a checkpoint."""
    stats = load_stats(path)
    if stats.n_lines is not None:
        raise errors.RecordError(
            f"{visible(str(path))} is a checkpoint of a run that did not finish: run it again to continue"
        )
    return stats


def _check_checkpoint(checkpoint: Path, path: str | None) -> None:
    """Refuse a checkpoint that nobody can continue from."""
    # Of standard input and of a pipe nobody can tell whether it is the same.
    if path is None or path == "-" or (Path(path).exists() and Path(path).is_fifo()):
        raise errors.SettingsError("a checkpoint needs a file of sentences")
    if checkpoint.suffix.lower() != STATS:
        raise errors.SettingsError(f"{visible(str(checkpoint))}: a checkpoint ends in .stats")


def _measure(
    place: CorpusSettings,
    texts: tuple[str, ...] | None,
    models: Sequence[Model],
    run: SurveyRun,
    *,
    tokenizer: object,
    opening: Opening,
    checkpoint: str | os.PathLike[str] | None,
    measures: tuple[Entry, ...],
    progress: Callable[[CorpusProgress], object] | None,
) -> tuple[Stats, Source | None]:
    """Run a model, or two, over the sentences, unless a file holds what was measured.

    The model is None where none was run.
    """
    if place.saved is not None:
        check_saved(run.model, run.settings, checkpoint)
        return _load_finished(place.saved), None
    opened = [_opener(one, tokenizer, opening) for one in models]
    checkpoint = None if checkpoint is None else Path(checkpoint)
    # The sentences are read as far as can be before a model is loaded for nothing.
    corpus, mark, left = _read_corpus(place, checkpoint, run)
    from attnviz.heads.capture.survey import check_readable, survey_model

    source, *others = [open_one() for open_one in opened]
    second = others[0] if others else None
    so_far = None if left is None else left.survey
    n_lines = 0
    if left is not None:
        _check_weights(left.survey, source, checkpoint)
        if left.survey.against is not None and second is not None:
            _check_weights(left.survey.against.survey, second, checkpoint)
        if left.n_lines is None:
            return left, source
        n_lines = left.n_lines
    if texts is not None and len(texts) == 1:  # why it cannot be read is no fault of a line 1
        check_readable(texts[0], source, run.settings, second)
    lines, name = (corpus, corpus.name) if corpus is not None else _lines_of(texts, source)

    def tell(n_sentences: int, shape: tuple[int, int] | None = None) -> None:
        if progress is not None:
            n_read, n_bytes = (0, None) if corpus is None else (corpus.read, corpus.size)
            progress(
                CorpusProgress(
                    n_sentences=n_sentences, bytes_read=n_read, n_bytes=n_bytes, shape=shape
                )
            )

    def keep(found: Survey, n_lines: int | None) -> Stats:
        if n_lines is not None:
            tell(found.n_sentences, found.heads.sums.shape[1:3])
        stats = Stats(survey=found, corpora=(name,), n_lines=n_lines, fingerprint=mark, run=run)
        if checkpoint is not None:
            save_stats(stats, checkpoint)
        return stats

    tell(0 if so_far is None else so_far.n_sentences)
    found = survey_model(
        lines,
        source,
        run.settings,
        against=second,
        measures=measures,
        so_far=so_far,
        n_lines=n_lines,
        tell=keep,
        corpus=name,
    )
    return keep(found, None), source


def _read_corpus(
    place: CorpusSettings, checkpoint: Path | None, run: SurveyRun
) -> tuple[Corpus | None, Fingerprint | None, Stats | None]:
    """Open a file of sentences; return it with its fingerprint and the checkpoint of an earlier run."""
    path, corpus, mark = place.path, None, None
    if checkpoint is not None:
        _check_checkpoint(checkpoint, path)
    if path is not None:
        corpus = read_corpus(path, kind=None if place.treebank is None else "conllu")
        mark = fingerprint(path)
    return corpus, mark, None if checkpoint is None else _left_by(checkpoint, mark, run)


def _left_by(checkpoint: Path, mark: Fingerprint | None, run: SurveyRun) -> Stats | None:
    """Load the checkpoint of an earlier run; refuse that of another run before a model is loaded for nothing."""
    left = None
    if checkpoint.exists():
        left = load_stats(checkpoint)
        _check_same_run(checkpoint, left, mark, run)
    check_writable(checkpoint)
    return left


def _lines_of(
    texts: Sequence[str] | None, source: Source
) -> tuple[Iterable[CorpusLine | BadLine], str]:
    """Return sentences that are given, or the usual ones of a model, and what they are called."""
    if texts is not None:
        lines = [CorpusLine(number=number, text=text) for number, text in enumerate(texts, 1)]
        name = f"“{clip(visible(texts[0]), 60)}”" if len(lines) == 1 else "sentences"
        return lines, name
    if not hasattr(source, "language"):
        return read_corpus(TREEBANK), words.SAMPLES
    from attnviz.models.language.splits import corpus_lines, source_lines

    if source.language is None:
        return source_lines(OWN), words.OWN
    return corpus_lines(OWN, language=source.language), words.OWN


def _check_same_run(path: Path, before: Stats, mark: Fingerprint | None, run: SurveyRun) -> None:
    now, then = run.words(), before.run.words()
    names = [name for name in sorted({*now, *then}) if now.get(name) != then.get(name)]
    differing = [
        f"{name} is {now.get(name, 'not given')}, was {then.get(name, 'not given')}"
        for name in names
    ]
    if before.fingerprint != mark:
        known = before.fingerprint
        was = "; ".join(before.corpora) if known is None else f"{known.name}, {known.size:,} bytes"
        differing.insert(0, f"the corpus is another (it was {visible(was)})")
    if differing:
        raise _another_run(path, clip("; ".join(differing), 300))


def _check_weights(found: Survey, source: Source, checkpoint: Path | None) -> None:
    """Make sure that a checkpoint is of this very model, and not of another that had its name."""
    if found.about.weights != source.digest():
        raise _another_run(checkpoint, f"{visible(source.name)} had other weights")


def _another_run(checkpoint: object, why: str) -> errors.RecordError:
    return errors.RecordError(
        f"{visible(str(checkpoint))} is a checkpoint of another run: {why}; remove it to begin anew"
    )
