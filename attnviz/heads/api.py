"""The Python side of the command ``compare-heads``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attnviz import errors
from attnviz.heads import files, words
from attnviz.heads import ray as cluster
from attnviz.heads.measures import MEASURES, Measure
from attnviz.heads.record import HeadComparison
from attnviz.heads.settings import ModelSettings, SurveySettings, check_saved
from attnviz.heads.survey import Part
from attnviz.storage.corpora.corpus import Corpus, read_corpus
from attnviz.text.corpus import BadLine, CorpusLine
from attnviz.text.display import check_sentence, check_text, clip, visible

if TYPE_CHECKING:
    from attnviz.capture.sources import Source

SAVED = {".json", ".stats"}  # the endings of comparisons; the second is refused with the reason
TREEBANK = Path(__file__).parent.parent / "text" / "treebank.conllu"
"""The default sentences to compare heads on."""
OWN = 600  # number of sentences for a trained home-built model, in its own language
Model: TypeAlias = "str | Path | ModelSettings | Source | None"
"""A model: its name or folder, its settings, or an open model; None is the default."""
Sentences: TypeAlias = str | os.PathLike[str] | Iterable[str] | Corpus | None
"""One sentence, a file of sentences, several sentences, a corpus, or None for those that come with attnviz."""
Opening: TypeAlias = Callable[[ModelSettings], "Source"]  # opens a model


def open_model(model: ModelSettings) -> Source:
    """Load a model without any message on the screen."""
    from attnviz.capture.source import open_source

    return open_source(**asdict(model))


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusProgress:
    """The progress of a run over sentences."""

    n_sentences: int  # number of sentences measured
    # number of layers and of heads per layer; None before the first sentences
    shape: tuple[int, int] | None = None
    # what is done now: reading the sentences, measuring the controls on some of them, or computing the roles
    stage: Literal["sentences", "controls", "roles"] = "sentences"


def compare_heads(
    sentences: Sentences = None,
    model: Model = None,
    tokenizer: object = None,
    *,
    against: Model = None,
    settings: SurveySettings | None = None,
    measures: Sequence[Measure] | None = None,
    ray: str | None = None,
    roles: bool | str | os.PathLike[str] | HeadComparison = False,
    progress: Callable[[CorpusProgress], object] | None = None,
    opening: Opening = open_model,
) -> HeadComparison:
    """Find out what each head of a model does, and how sure that is.

    Args:
        sentences: one sentence; a file with one sentence per line, a treebank (``.conllu``) or earlier measurements
            (``.json``); several sentences; None takes those that come with attnviz.
        model: the model: its name or folder, `ModelSettings`, an open source, or a model in memory.
        tokenizer: the tokenizer of a model in memory.
        against: a second model with the same tokenizer and the same numbers of layers and heads, measured on the same
            sentences. Each head then has its `change`, and `HeadComparison.against` is the comparison of that model.
        settings: the settings of the measurement.
        measures: the measures, `attnviz.heads.measures.MEASURES` if None.
        ray: the address of a Ray cluster, whose workers share the sentences: ``"local"`` starts Ray on this machine,
            ``"auto"`` finds the cluster that it belongs to, ``"HOST:PORT"`` names one.
        roles: for one sentence, whether to give the roles of the heads too, as `HeadComparison.roles_on`. True measures
            them on the sentences that come with attnviz; or give a comparison of this model, or its ``.json`` file.
        progress: called after each window of lines, and before the controls and the roles.
        opening: opens a model; by default as `open_source` does.

    Returns:
        The comparison. Its `estimates` have the shape (layer, head, measure); shares are between 0 and 1, entropy is
        in nats, distance in tokens.

    Raises:
        SettingsError: settings that do not go together, a sentence that is the name of a file, or no Ray.
        InputError: no sentence is left, or the file cannot be read.
        ModelError: a model cannot be used, its weights are not proved, or two models do not fit together.
        SelectionError: no such attention, or roles of another model.
        RecordError: a ``.json`` file, or that of the model, cannot be used.
    """
    from attnviz.heads.compare import compare

    entries = MEASURES if measures is None else tuple(measures)
    settings, report = settings or SurveySettings(), progress or (lambda _progress: None)
    if isinstance(sentences, os.PathLike) and Path(sentences).suffix.lower() in SAVED:
        beside = {"the second model": against is not None, "roles, or give a sentence": bool(roles)}
        check_saved(_settings_of(model), settings, beside)
        return files.load(sentences)
    # The sentences are checked before the slow loading of a model.
    texts, corpus = _input_of(sentences)
    is_one_sentence = texts is not None and len(texts) == 1 and against is None
    if roles and not is_one_sentence:
        raise errors.SettingsError(
            "roles are of the heads of one model on one sentence: give a sentence"
        )
    if isinstance(roles, str | os.PathLike):
        roles = files.load(roles)
    models = [model] if against is None else [model, against]
    if ray is not None and not all(map(_can_be_sent, models)):
        raise errors.SettingsError("workers open the model: give its name or folder", "ray")
    openers = [_opener(item, tokenizer, opening) for item in models]
    from attnviz.heads.capture.survey import Surveyor

    with nullcontext() if ray is None else cluster.connect(ray):
        sources = [open_one() for open_one in openers]
        source = sources[0]
        surveyor = Surveyor(sources, settings, entries)
        if texts is not None and len(texts) == 1:  # so that an error does not mention "line 1"
            surveyor.encode(texts[0])
        lines, name = _lines_of(texts, source) if corpus is None else (corpus, corpus.name)
        report(CorpusProgress(n_sentences=0))
        if ray is None:
            parts = surveyor.measure(lines)
        else:
            job = cluster.Job(
                models=tuple(map(_settings_of, models)),
                digests=tuple(one.digest() for one in sources),
                settings=settings,
                measures=entries,
                folder=os.getcwd(),
            )
            parts = cluster.measure_blocks(lines, job)
        part = Part()
        for part in parts:
            if part.survey is not None:
                shape = part.survey.heads.sums.shape[1:3]
                report(CorpusProgress(n_sentences=part.survey.n_sentences, shape=shape))
    survey = part.whole(name)
    report(CorpusProgress(n_sentences=survey.n_sentences, stage="controls"))
    survey = surveyor.add_controls(survey)
    report(CorpusProgress(n_sentences=survey.n_sentences, stage="roles"))
    comparison = compare(survey, corpus=name, entries=entries)
    record = None
    if is_one_sentence and texts is not None:
        from attnviz.capture.attend import attend

        record = attend(texts[0], source, kind=comparison.kind)
    if roles is True:
        roles = compare_heads(model=source, settings=settings, measures=measures, progress=progress)
    if isinstance(roles, HeadComparison):
        _check_same_model(roles, comparison)
    comparison = replace(comparison, attention=record, roles_on=roles or None)
    return comparison if survey.n_sentences == 1 else _with_patterns(comparison, source)


def _can_be_sent(model: Model) -> bool:
    """Return whether a worker on another machine can open a model."""
    return model is None or isinstance(model, (str, os.PathLike, ModelSettings))


def _check_same_model(roles: HeadComparison, comparison: HeadComparison) -> None:
    """Raise SelectionError if the roles are those of another model."""
    for what in ("model", "kind", "n_layers", "n_heads"):
        of_roles, own = getattr(roles, what), getattr(comparison, what)
        if of_roles != own:
            raise errors.SelectionError(
                f"these roles are of {visible(roles.model)} ({what}: {of_roles}, not {own})"
            )


def _with_patterns(comparison: HeadComparison, source: Source) -> HeadComparison:
    """Return the comparison with the attention on the examples of its pictures, which then need no model."""
    from attnviz.capture.attend import attend
    from attnviz.heads.selection import clearest_card, strongest

    cards = strongest(comparison)
    cards += [clearest_card(head, comparison) for head in comparison.heads if head.roles]
    patterns = {
        card.key: attend(
            card.example.text,
            source,
            kind=comparison.kind,
            layers=[card.head.layer],
            heads=[card.head.head],
        )
        for card in {card.key: card for card in cards}.values()
        if card.example is not None
    }
    return replace(comparison, patterns=patterns)


def _settings_of(model: Any) -> ModelSettings:
    """Return the settings of a model; those of a model in memory are only looked at to refuse it."""
    if isinstance(model, ModelSettings):
        return model
    return ModelSettings(model=None if model is None else str(model))


def _opener(model: Any, tokenizer: object, opening: Opening) -> Callable[[], Source]:
    """Return a function that opens a model, or wraps one that is in memory."""
    if _can_be_sent(model):
        if tokenizer is not None:
            raise errors.SettingsError(
                "a tokenizer goes with a model that is in memory: this one has its own"
            )
        return lambda: opening(_settings_of(model))
    from attnviz.capture.source import as_source

    return lambda: as_source(model, tokenizer)


def _input_of(sentences: Sentences) -> tuple[tuple[str, ...] | None, Corpus | None]:
    """Return the sentences that are given, or their file; neither for the default sentences."""
    if isinstance(sentences, str):
        check_sentence(sentences)
        check_text(sentences)
        return (sentences,), None
    if isinstance(sentences, os.PathLike):
        return None, read_corpus(sentences)
    if isinstance(sentences, Corpus):
        return None, sentences
    return None if sentences is None else tuple(sentences), None


def _lines_of(
    texts: Sequence[str] | None, source: Source
) -> tuple[Iterable[CorpusLine | BadLine], str]:
    """Return the given sentences, or the default sentences of a model, and their name."""
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
