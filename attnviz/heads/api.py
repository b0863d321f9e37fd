"""Heads compared from Python: what the commands ``compare-heads``, ``head`` and ``merge`` do, each as one function."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from attnviz import errors
from attnviz.heads import runs
from attnviz.heads.files import CLASSES, Stats, SurveyRun, load_stats, save_stats
from attnviz.heads.measures import MEASURES, Entry, measures_of, rules_of
from attnviz.heads.roles import with_thresholds
from attnviz.heads.settings import STATS, CorpusSettings, SurveySettings, check_saved
from attnviz.models.registry import names
from attnviz.settings import ModelSettings, PageSettings, Place, place_of
from attnviz.storage.encoding import ONE, in_one_line, to_bytes
from attnviz.storage.files import check_writable
from attnviz.text.arguments import check_call
from attnviz.text.display import clip, visible

if TYPE_CHECKING:
    from attnviz.attention import Attention
    from attnviz.capture.sources import Source
    from attnviz.heads.changes.record import Changes
    from attnviz.heads.record import HeadComparison
    from attnviz.heads.survey import Survey
    from attnviz.render.figure.export import Picture

VIEWS = ("sheet", "clustermap", "scatter")  # the pictures of all heads
ONE_MODEL = "roles are of the heads of one model on one sentence: give a sentence"  # why roles are not shown
Examples: TypeAlias = Callable[["HeadComparison", tuple[int, int] | None], "tuple[Mapping[str, Attention], str]"]
"""Gives the patterns of examples by role, and why there are none."""
Model: TypeAlias = "str | Path | ModelSettings | Source | None"
"""A model by its name or folder, with how it is loaded, or open already; None is the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a comparison comes from."""

    stats: Stats  # what it was computed from
    model: ModelSettings  # how its model is loaded again
    source: Any = None  # the model; None where none was run


@check_call()
def compare_heads(
    sentences: runs.Sentences = None, model: Model = None, tokenizer: object = None, *,
    settings: SurveySettings | None = None, thresholds: Mapping[str, float] | None = None,
    measures: Sequence[Entry] | None = None, checkpoint: str | os.PathLike[str] | None = None,
    roles: bool | str | os.PathLike[str] | HeadComparison = False,
    progress: Callable[[runs.CorpusProgress], object] | None = None, opening: runs.Opening = runs.open_model,
) -> HeadComparison:  # fmt: skip
    """What each head of a model does, how sure that is, and which heads are alike.

    Args:
        sentences: one sentence; a file with a line each, a treebank (``.conllu``), JSON lines, or what was measured
            before (``.stats``); several sentences; None takes those that come with attnviz.
        model: the model: its name or folder, `ModelSettings`, an open source, or a model in memory.
        tokenizer: of a model in memory, its own.
        settings: how it is measured.
        thresholds: of roles, by name, that are other than usual.
        measures: what is measured, `attnviz.heads.measures.MEASURES` if None; another measure is one more entry.
        checkpoint: of a file of sentences: a ``.stats`` file that is written as it goes, and gone on from.
        roles: of one sentence, also the roles of the heads, as `HeadComparison.roles_on`: True measures them on the
            sentences that come with attnviz; or what was measured of this model, or its ``.stats`` file.
        progress: called after each window of lines.
        opening: opens the model; by default as `open_source` does.

    Its `estimates` have the shape (layer, head, measure); shares are between 0 and 1, entropy is in nats, distance in
    tokens. Raises SettingsError: settings that do not go together, or a sentence that is the name of a file;
    InputError: no sentence is left, or the file cannot be read; ModelError: the model cannot be used, or its weights
    are not proved; SelectionError: no such attention, a threshold of no role, or roles of another model; RecordError:
    the checkpoint is of another run, or a ``.stats`` file, or that of the model, cannot be used; OutputError: the
    checkpoint cannot be written.
    """
    from attnviz.heads.compare import compare

    entries, given = MEASURES if measures is None else tuple(measures), runs.input_of(sentences)
    with_thresholds(rules_of(measures_of(entries, (settings or SurveySettings()).max_offset)), thresholds or {})
    roles = _saved_roles(given.place.roles or roles, given, thresholds=thresholds, measures=entries)
    run = SurveyRun(model=_settings_of(model), settings=settings or SurveySettings(), sentence_field=given.place.field)
    if (loaded := given.place.saved) is not None:
        check_saved(run.model, run.settings, checkpoint)
        stats, source = runs.load_finished(loaded), None
    else:
        stats, _, (source,) = runs.measure(
            given, [_opener(model, tokenizer, opening)], run, checkpoint=checkpoint, measures=entries,
            progress=progress,
        )  # fmt: skip
    with in_one_line(loaded) if loaded else nullcontext():
        comparison = compare(stats.survey, corpus="; ".join(stats.corpora), thresholds=thresholds, entries=entries)
    many = _roles_on(roles, comparison, source, run, thresholds=thresholds, measures=entries, progress=progress)
    origin = Origin(stats=stats, model=run.model, source=source)
    return replace(comparison, origin=origin, attention=_only_sentence(comparison, origin), roles_on=many)


def _saved_roles(
    roles: bool | str | os.PathLike[str] | HeadComparison,  # noqa: FBT001
    given: runs.Input,
    **how: Any,
) -> bool | HeadComparison:
    """What was measured on many sentences, read; or whether it is to be measured."""
    from attnviz.heads.record import HeadComparison

    if not isinstance(roles, bool | str | os.PathLike | HeadComparison):
        raise errors.SettingsError(f"it must be True, a comparison of heads or its .stats file, not {roles!r}", "roles")
    if roles and (given.lines is None or len(given.lines) != 1):
        raise errors.SettingsError(ONE_MODEL)
    if isinstance(roles, bool | HeadComparison):
        return roles
    return compare_heads(CorpusSettings(load=Path(roles)), **how)


def _roles_on(
    roles: bool | HeadComparison, comparison: HeadComparison, source: Source | None, run: SurveyRun, **how: Any  # noqa: FBT001
) -> HeadComparison | None:  # fmt: skip
    """What was measured on many sentences, refused where it is another model's; or measured now."""
    if isinstance(roles, bool):
        alone = replace(run.settings, similarity=False)
        return compare_heads(model=source, settings=alone, **how) if roles else None
    roles.signs.among(comparison.model, comparison.kind, range(comparison.n_layers), range(comparison.n_heads))
    return roles


@check_call()
def compare_models(
    before: Model, after: Model, sentences: runs.Sentences = None, *, tokenizer: object = None,
    settings: SurveySettings | None = None, thresholds: Mapping[str, float] | None = None,
    measures: Sequence[Entry] | None = None, checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[runs.CorpusProgress], object] | None = None, opening: runs.Opening = runs.open_model,
) -> Changes:  # fmt: skip
    """What the heads of two models of one architecture and one tokenizer do otherwise.

    Of a ``.stats`` file as the second model roles and measures are compared, and no patterns. Whatever else is given is
    as for `compare_heads`; a tokenizer, and what opens a model, is that of both. Of each head there is how far its
    pattern is from the other model's (the mean Jensen-Shannon divergence of its rows, in nats, 0 to ln 2), and the
    differences of its measures and roles, after less before. Raises SettingsError: settings that do not go together;
    InputError: no sentence is left, or the file cannot be read; ModelError: a model cannot be used, or they cut a
    sentence into other tokens; RecordError: they have other numbers of layers or heads, or were measured otherwise;
    SelectionError and OutputError, as `compare_heads`.
    """
    from attnviz.heads.changes.compare import changes

    settings, entries = settings or SurveySettings(), MEASURES if measures is None else tuple(measures)
    given = runs.input_of(sentences)
    with_thresholds(rules_of(measures_of(entries, settings.max_offset)), thresholds or {})
    if given.place.roles is not None:
        raise errors.SettingsError(ONE_MODEL)
    if isinstance(after, (str, os.PathLike)) and str(after).lower().endswith(STATS):
        other = runs.load_finished(Path(after))
        if given.place.saved is None:
            runs.check_same_settings(settings, other, str(after))
        found = compare_heads(
            given.place if given.lines is None else given.lines, before, tokenizer, settings=settings,
            thresholds=thresholds, measures=entries, checkpoint=checkpoint, progress=progress, opening=opening,
        )  # fmt: skip
        stats: Stats = found.origin.stats  # type: ignore[attr-defined]  # it was measured here
        return changes(
            stats.survey, other.survey, corpus="; ".join(stats.corpora), corpus_after="; ".join(other.corpora),
            thresholds=thresholds, entries=entries,
        )  # fmt: skip
    if given.place.saved is not None:
        raise errors.SettingsError("what was measured before is compared with another .stats file alone")
    run = SurveyRun(
        model=_settings_of(before), settings=settings, sentence_field=given.place.field,
        against=_settings_of(after).name,
    )  # fmt: skip
    opened = [_opener(model, tokenizer, opening) for model in (before, after)]
    stats, pair, _ = runs.measure(given, opened, run, checkpoint=checkpoint, measures=entries, progress=progress)
    return changes(
        pair.before, pair.after, pair.divergences, corpus="; ".join(stats.corpora), thresholds=thresholds,
        entries=entries,
    )  # fmt: skip


@check_call()
def merge_stats(parts: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]) -> Stats:
    """Put together what was measured on parts of a corpus, and save it; `compare_heads` of that file shows it.

    The parts and what is written are ``.stats`` files. Raises RecordError: there is none, a part cannot be read, is
    a checkpoint, was measured otherwise than the first, or on the very sentences of another part; OutputError: the
    file cannot be written.
    """
    from attnviz.heads import survey

    check_writable(Path(output))
    whole: Stats | None = None
    read: dict[str, Survey] = {}
    for path in parts:
        stats = load_stats(path)
        name = visible(str(path))
        if stats.n_lines is not None:
            raise errors.RecordError(f"{name} is a checkpoint of a run that was broken off: let it end first")
        if whole is None:
            whole, read[name] = stats, stats.survey
            continue
        try:
            together = survey.merge(whole.survey, stats.survey)
        except errors.RecordError as error:
            raise errors.RecordError(f"{name}: {error}") from None
        twice = next((other for other, one in read.items() if survey.same_sentences(one, stats.survey)), None)
        if twice is not None:
            raise errors.RecordError(f"{name} has the very sentences of {twice}: no part is counted twice")
        read[name] = stats.survey
        whole = Stats(survey=together, corpora=(*whole.corpora, *stats.corpora), run=whole.run)
    if whole is None:
        raise errors.RecordError("give the .stats files of the parts")
    save_stats(whole, output)
    return whole


def example_patterns(
    comparison: HeadComparison, head: tuple[int, int] | None = None
) -> tuple[dict[str, Attention], str]:
    """By role the pattern of the sentence where a head has it most clearly, of one head where it has its role.

    None, and why, where the model is not at hand: it is opened again where that needs no download, and proved to be
    the one that was measured.
    """
    from attnviz.heads.selection import own_card, strongest

    every = strongest(comparison) if head is None else own_card(comparison.head(*head), comparison)
    cards = [card for card in every if card.example is not None]
    origin = comparison.origin
    if not cards or not isinstance(origin, Origin):
        return {}, ""
    try:
        source = origin.source or _again(origin)
        from attnviz.capture.attend import attend

        return {
            card.role.name: attend(
                "" if card.example is None else card.example.text, source, kind=comparison.kind,
                truncate=True,  # where nothing was cut, nothing is
                layers=[card.head.layer], heads=[card.head.head],
            )
            for card in cards
        }, ""  # fmt: skip
    except errors.AttnvizError as error:
        return {}, clip(str(error), 300)


def stats(shown: HeadComparison) -> bytes:
    """What was measured, as a ``.stats`` file holds it. Raises OutputError: it was not measured here."""
    if not isinstance(shown.origin, Origin):
        raise errors.OutputError(f"this comparison was not measured here: there is no {STATS} of it")
    return to_bytes(shown.origin.stats, ONE, CLASSES)


def draw(
    shown: HeadComparison | Changes, head: Place | None = None, *, examples: Examples | None = example_patterns,
    view: str = "sheet", lang: str = "en", **page: Any,
) -> Picture:  # fmt: skip
    """The picture of a comparison, of one of its heads (``(1, 2)`` or ``"1.2"``), or of what changed.

    `examples` gives the patterns of examples, and why there are none; None draws none. The `view` of all heads is
    ``sheet``, ``clustermap`` (all pairs) or ``scatter`` (heads as points); `page` has the fields of `PageSettings`.
    Raises SelectionError: there is no such head, no such view, or heads were not compared with one another;
    SettingsError: a width that no picture has.
    """
    from attnviz.heads.record import HeadComparison

    style = PageSettings(**page).look
    if not isinstance(shown, HeadComparison):
        from attnviz.heads.changes import figure

        return figure.draw(shown, language=lang, style=style).fitted(style)
    if view not in VIEWS:
        raise errors.SelectionError(f"there is no view {view!r}: there are {', '.join(VIEWS)}")
    if head is None and view != "sheet":
        from attnviz.heads.figure.similarity import draw_clusters, draw_points

        return (draw_points if view == "scatter" else draw_clusters)(shown, lang).fitted(style)
    from attnviz.heads.figure import page as pages
    from attnviz.heads.figure import sheet

    place = None if head is None else place_of(head)
    patterns, unseen = ({}, "") if examples is None else examples(shown, place)
    if place is not None:
        return pages.draw(shown, *place, patterns=patterns, language=lang).fitted(style)
    return sheet.draw(shown, patterns=patterns, unseen=unseen, language=lang, style=style).fitted(style)


def _only_sentence(comparison: HeadComparison, origin: Origin) -> Attention | None:
    texts = list(origin.stats.survey.sample.texts.values())
    if origin.source is None or comparison.n_sentences != 1 or len(texts) != 1 or texts[0][1] is not None:
        return None
    from attnviz.capture.attend import attend

    return attend(texts[0][0], origin.source, kind=comparison.kind, truncate=True)


def _again(origin: Origin) -> Source:
    """The model that was measured, opened as it was then without a download; its own code runs only if allowed now."""
    then, now, about = origin.stats.run.model, origin.model, origin.stats.survey.about
    name = then.name or about.model
    called = clip(visible(name), 100)
    if not _is_here(name, then.revision):
        raise errors.UnreachableModelError(f"{called} is not here, and no model is downloaded for a picture")
    if then.trust_remote_code and not now.trust_remote_code:
        raise errors.ModelError(f"{called} comes with code of its own, which runs only with trust_remote_code")
    source = runs.open_model(
        replace(then, model=name, toy=False, device=now.device, trust_remote_code=now.trust_remote_code)
    )
    if source.digest() != about.weights:
        raise errors.ModelError(f"{visible(source.name)} is another model than was measured: its weights differ")
    return source


def _is_here(name: str, revision: str | None) -> bool:
    """Whether a model can be opened without asking the hub for it."""
    if name in names() or name.endswith(".safetensors"):
        return True
    from attnviz.capture.sources.hub import is_cached

    try:
        return (bool(name) and Path(name).expanduser().is_dir()) or is_cached(name, revision)
    except (OSError, RuntimeError, ValueError):  # what names neither a folder nor a model
        return False


def _settings_of(model: Any) -> ModelSettings:
    """How a model is loaded; of one that is open or in memory, its name alone."""
    if isinstance(model, ModelSettings):
        return model
    named = model if isinstance(model, (str, os.PathLike)) else getattr(model, "name", None)
    named = named or getattr(getattr(model, "config", None), "name_or_path", None)
    return ModelSettings(model=str(named) if named else None)


def _opener(model: Any, tokenizer: object, opening: runs.Opening) -> Callable[[], Source]:
    """What opens a model, or makes a source of one that is open or in memory."""
    if model is None or isinstance(model, (str, os.PathLike, ModelSettings)):
        if tokenizer is not None:
            raise errors.SettingsError("a tokenizer goes with a model that is in memory: this one has its own")
        return lambda: opening(_settings_of(model))
    from attnviz.capture.source import as_source

    return lambda: as_source(model, tokenizer)
