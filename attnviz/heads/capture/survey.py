"""A corpus run through a model: batched by length, measured as it streams by, at constant memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import islice
from typing import Generic, TypeAlias, TypeVar

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Kind, Receipt
from attnviz.capture.batching import in_batches, join, shuffle, take_first
from attnviz.capture.observers import Batch, Observer, Sentence
from attnviz.capture.source import Source
from attnviz.errors import InputError, ModelError
from attnviz.heads import structure, survey, tally
from attnviz.heads.capture.divergences import divergences
from attnviz.heads.capture.links import FindLinks
from attnviz.heads.capture.measure import BatchMeasures, FindWeights, MeasureHeads
from attnviz.heads.measures import (
    CHANCE,
    MEASURES,
    SHUFFLED,
    UNTRAINED,
    Entry,
    Measure,
    measures_of,
    of_rows,
)
from attnviz.heads.settings import SurveySettings
from attnviz.heads.similarity import Divergences
from attnviz.heads.structure import LinkHits, Relations
from attnviz.heads.survey import BAD_LINES, About, Examples, Places, Sample, Survey
from attnviz.text.corpus import Annotation, BadLine, CorpusLine, annotation
from attnviz.text.display import check_text

TOKENS = 2048
"""Tokens in a batch, padding included: as many as keep the cores busy."""

SEEDS = 8
"""Models of random weights, each of another seed, whose best heads a role is held against."""

WINDOW = 512
"""So many lines are sorted by length before they are cut into batches."""

T = TypeVar("T")

Bad: TypeAlias = Sequence[tuple[int, str]]
"""Lines that could not be used: number and reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(Generic[T]):
    """How far a run over a corpus is.

    Attributes:
        found: what is known so far.
        n_lines: how many lines were read, bad ones too.
    """

    found: T
    n_lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering(Generic[T]):
    """What is found in lines, and how.

    Attributes:
        measured: what some lines say, in parts; it adds the lines that cannot be used to the bad ones.
        merged: two parts together.
        with_bad: the same with bad lines: the first of them, and how many there are.
    """

    measured: Callable[[Sequence[CorpusLine], list[BadLine]], Iterable[T]]
    merged: Callable[[T, T], T]
    with_bad: Callable[[T, Bad, int], T]


def gathered(
    lines: Iterable[CorpusLine | BadLine],
    gathering: Gathering[T],
    so_far: Progress[T] | None = None,
    tell: Callable[[Progress[T]], None] | None = None,
    corpus: str = "",
) -> T:
    """What all lines say.

    Args:
        lines: the corpus.
        gathering: what is found in them.
        so_far: where an earlier run stopped: so many lines are passed over.
        tell: told after each window.
        corpus: what the lines are, for the message.

    Raises:
        InputError: no sentence is left.
    """
    found, n_lines = (so_far.found, so_far.n_lines) if so_far else (None, 0)
    bad: list[BadLine] = []
    n_bad = 0
    rest = islice(lines, n_lines, None)
    while window := list(islice(rest, WINDOW)):
        bad += [line for line in window if isinstance(line, BadLine)]
        for one in gathering.measured([line for line in window if isinstance(line, CorpusLine)], bad):
            found = one if found is None else gathering.merged(found, one)
        n_lines += len(window)
        bad.sort(key=lambda line: line.number)
        if found is None:  # hours of lines that cannot be used take no more room than a few
            n_bad, bad = n_bad + len(bad[BAD_LINES:]), bad[:BAD_LINES]
        else:
            found = gathering.with_bad(found, [(line.number, line.reason) for line in bad], n_bad + len(bad))
            n_bad, bad = 0, []
            if tell is not None:
                tell(Progress(found=found, n_lines=n_lines))
    if found is None:
        first = f": line {bad[0].number}: {bad[0].reason}" if bad else ""
        start = f"{corpus}: " if corpus else ""
        raise InputError(f"{start}there is no sentence to measure heads on{first}")
    return found


def survey_corpus(
    lines: Iterable[CorpusLine | BadLine],
    source: Source,
    settings: SurveySettings | None = None,
    *,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
    so_far: Progress[Survey] | None = None,
    tell: Callable[[Progress[Survey]], None] | None = None,
    corpus: str = "",
) -> Survey:
    """Measure every head of a model on every sentence of a corpus, and take the controls.

    Args:
        lines: the corpus. Lines that cannot be used are counted and named, and so are sentences that the model cannot
            read.
        source: the model.
        settings: how.
        measures: what is measured.
        tokens: how many a batch may have, padding included.
        so_far: where an earlier run stopped: so many lines are passed over.
        tell: told after each window of lines.
        corpus: what the lines are, for messages.

    Raises:
        InputError: no sentence is left.
        ModelError: the model cannot be run, or its weights are not proved.
    """
    runner = Runner(source, settings or SurveySettings(), measures, tokens)
    gathering = Gathering(measured=runner.measured, merged=survey.merge, with_bad=with_bad)
    return runner.with_controls(gathered(lines, gathering, so_far, tell, corpus))


def with_bad(found: Survey, bad: Bad, n_bad: int) -> Survey:
    """The same with lines that could not be used."""
    return replace(found, n_bad=found.n_bad + n_bad, bad=(*found.bad, *bad)[: survey.BAD_LINES])


class Runner:
    """A model with what is needed to measure its heads batch by batch."""

    def __init__(
        self, source: Source, settings: SurveySettings, measures: tuple[Entry, ...] = MEASURES, tokens: int = TOKENS
    ) -> None:
        self._source, self._settings, self._entries, self._tokens = source, settings, measures, tokens
        self._measures = of_rows(measures_of(measures, settings.max_offset))
        self._weights: FindWeights | None = None

    @cached_property
    def _digest(self) -> str:
        return self._source.digest()

    def measured(self, lines: Sequence[CorpusLine], bad: list[BadLine]) -> Iterator[Survey]:
        """Surveys of the lines; those that the model cannot read are added to the bad ones."""
        singles: list[Batch] = []
        annotated: dict[int, Annotation | None] = {}
        for line in lines:
            try:
                check_text(line.text)
                singles.append(self._encode(line.text))
                annotated[id(singles[-1])] = annotation(line)
            except InputError as error:
                bad.append(BadLine(number=line.number, reason=str(error)))
        parts: list[BatchSummary] = []
        for batches in in_batches(singles, self._tokens):
            batch = join(batches)
            said = [annotated[id(single)] for single in batches]
            parts.append(self._part(batch, self._run(batch, said, keep_rows=self._settings.similarity)))
            if is_much(parts):
                yield self._survey(parts)
                parts = []
        if parts:
            yield self._survey(parts)

    def with_controls(self, found: Survey) -> Survey:
        """The same survey with the controls of its sample."""
        sample = found.sample
        if not sample.texts:  # none were wished for
            return found
        texts = {**sample.linked, **sample.texts}
        read = {key: self._encode(*given) for key, given in texts.items()}
        singles = {key: read[key] for key in sample.texts}
        controls = dict(sample.controls)
        mixed = {key: shuffle(single, key) for key, single in singles.items()}
        if all(single is not None for single in mixed.values()):
            controls[SHUFFLED] = self._control({key: single for key, single in mixed.items() if single is not None})
        controls[CHANCE] = self._control(singles, dealt=True)
        places = [one.role is not None for one in self._measures]
        sums, links, counts = [], [], np.zeros(0)
        for seed in range(SEEDS):
            try:
                source = self._source.untrained(seed)
            except ModelError as error:
                return replace(found, sample=replace(sample, controls=controls, no_random=str(error)))
            other = Runner(source, self._settings, self._entries, self._tokens)
            if self._source.generates:  # it reads what the trained model generates
                said = {key: single.sentences[0].target for key, single in read.items()}
                read = {key: other._encode(*given, target=said[key]) for key, given in texts.items()}
            measured, counts = other._control({key: read[key] for key in sample.texts})
            sums.append(np.ascontiguousarray(measured[..., places]))
            links.append(other._links({key: (read[key], one) for key, one in sample.annotated.items()}))
        controls[UNTRAINED] = np.concatenate(sums, axis=1), np.ascontiguousarray(counts[..., places])
        hits = {
            key: replace(one, hits=np.concatenate([seed[key].hits for seed in links], axis=2))
            for key, one in links[0].items()
        }
        return replace(found, sample=replace(sample, controls=controls, found=hits))

    def _encode(self, text: str, pair: str | None = None, target: str | None = None) -> Batch:
        settings = self._settings
        # What a model says that never ends has a word more than it may be given.
        truncate = settings.truncate or target is not None
        return self._source.encode([text], [pair], truncate=truncate, kind=settings.kind, targets=[target])

    def _run(
        self,
        batch: Batch,
        annotated: Sequence[Annotation | None] = (),
        *,
        keep_rows: bool = False,
        dealt: Sequence[int] | None = None,
    ) -> BatchRun:
        if self._weights is None:
            self._weights = FindWeights()
            self._source.stream(take_first(batch), [self._weights])
        observer = MeasureHeads(
            self._settings.specials,
            self._weights.handed,
            keep_rows=keep_rows,
            dealt=dealt,
            embeddings=self._weights.embeddings,
            measures=self._measures,
            max_offset=self._settings.max_offset,
        )
        observers: list[Observer] = [observer]
        said = tuple(annotated) or (None,) * len(batch.sentences)
        # What is annotated are the words that are read: attention to or from those that are said is between others.
        between = [one if sentence.keys is None else None for one, sentence in zip(said, batch.sentences, strict=True)]
        links = FindLinks(between, self._settings.specials)
        if any(one is not None for one in between):
            observers.append(links)
        receipt = self._source.stream(batch, observers)
        found = links.found() if len(observers) > 1 else (None,) * len(said)
        return BatchRun(measured=observer.measured(), receipt=receipt, annotated=said, found=found)

    def _control(self, singles: Mapping[int, Batch], *, dealt: bool = False) -> survey.PerSentence:
        """The measures of these sentences, in the order of their keys."""
        keys = {id(single): key for key, single in singles.items()}
        parts: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for batches in in_batches(list(singles.values()), self._tokens):
            there = [keys[id(single)] for single in batches]
            ran = self._run(join(batches), dealt=there if dealt else None)
            measured = ran.measured.sums.cpu().numpy(), ran.measured.counts.cpu().numpy()
            parts |= dict(zip(there, zip(*measured, strict=True), strict=True))
        sums, counts = (np.stack([parts[key][at] for key in singles]).astype(np.float64) for at in (0, 1))
        return sums, counts

    def _links(self, given: Mapping[int, tuple[Batch, Annotation]]) -> dict[int, LinkHits]:
        """Which links of these sentences heads find."""
        keys = {id(single): key for key, (single, _) in given.items()}
        hits: dict[int, LinkHits | None] = {}
        for batches in in_batches([single for single, _ in given.values()], self._tokens):
            there = [keys[id(single)] for single in batches]
            find = FindLinks([given[key][1] for key in there], self._settings.specials)
            self._source.stream(join(batches), [find])
            hits |= dict(zip(there, find.found(), strict=True))
        return {key: one for key in given if (one := hits[key]) is not None}

    def _part(self, batch: Batch, ran: BatchRun) -> BatchSummary:
        return part_of(batch, ran, self._measures, batch.kind or self._source.kinds[0])

    def _survey(self, parts: Sequence[BatchSummary]) -> Survey:
        about = About(
            model=self._source.name, weights=self._digest, kind=parts[0].kind, specials=self._settings.specials,
            sample=self._settings.controls, max_offset=self._settings.max_offset,
        )  # fmt: skip
        return summed(parts, about, self._measures)


KEPT_BYTES = 64 * 2**20
"""Numbers of sentences kept until they are added up: one product for a whole window of a model of 72 heads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRun:
    """What one batch gave.

    Attributes:
        measured: of its heads.
        receipt: the proof.
        annotated: the words of each sentence that belong together; None where nothing says so.
        found: what heads find of that; None where attention is between other words.
    """

    measured: BatchMeasures
    receipt: Receipt
    annotated: tuple[Annotation | None, ...]
    found: tuple[LinkHits | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchSummary:
    """What is kept of one batch until it is added up with others: numbers of each sentence, and sums of what is large.

    Attributes:
        sentences: of the batch.
        keys: of these, as `tally.key_of` makes them.
        kind: of attention.
        n_tokens: tokens read, special ones too.
        sums: of each measure.
        counts: how many rows were counted.
        fixed: likewise of heads made up, each of which looks at one fixed offset.
        fixed_counts: how many rows were counted.
        places: for how far a pattern is position alone.
        examples: the strongest sentences.
        similarity: of all pairs of heads, where it is wished for.
        receipt: the proof.
        annotated: the words of each sentence that belong together.
        found: what heads find of that.
    """

    sentences: tuple[Sentence, ...]
    keys: tuple[int, ...]
    kind: Kind
    n_tokens: int
    sums: Float64[np.ndarray, "sentence layer head measure"]
    counts: Float64[np.ndarray, "sentence layer measure"]
    fixed: Float64[np.ndarray, "sentence offset share"]
    fixed_counts: Float64[np.ndarray, "sentence share"]
    places: Places
    examples: Examples
    similarity: Divergences | None
    receipt: Receipt
    annotated: tuple[Annotation | None, ...]
    found: tuple[LinkHits | None, ...]


def part_of(batch: Batch, ran: BatchRun, measures: Sequence[Measure], kind: Kind) -> BatchSummary:
    """What is kept of one batch.

    Args:
        batch: its sentences.
        ran: what was measured of them.
        measures: that were taken.
        kind: of attention.
    """
    measured = ran.measured
    keys = tuple(tally.key_of(sentence.text, sentence.pair) for sentence in batch.sentences)
    sums, counts = measured.sums.cpu().numpy(), measured.counts.cpu().numpy()
    similarity = None
    if measured.rows is not None and measured.rows_counted is not None:
        similarity = divergences(measured.rows, measured.rows_counted)
    enough = np.array([one.enough_rows for one in measures], dtype=np.float64)
    return BatchSummary(
        sentences=batch.sentences,
        keys=keys,
        kind=kind,
        n_tokens=int(batch.real.sum()),
        sums=sums,
        counts=counts,
        fixed=measured.fixed.cpu().numpy(),
        fixed_counts=measured.fixed_counts.cpu().numpy(),
        places=survey.places_of(measured.corner.cpu().numpy(), measured.corner_seen.cpu().numpy(), keys),
        examples=survey.examples_of(sums, counts, keys, [sentence.text for sentence in batch.sentences], enough),
        similarity=similarity,
        receipt=ran.receipt,
        annotated=ran.annotated,
        found=ran.found,
    )


def summed(parts: Sequence[BatchSummary], about: About, measures: Sequence[Measure]) -> Survey:
    """What some batches say together.

    Args:
        parts: of them.
        about: what makes two surveys ones of the same kind.
        measures: that were taken.
    """
    keys = [key for part in parts for key in part.keys]
    sums, counts = (np.concatenate([getattr(part, name) for part in parts]) for name in ("sums", "counts"))
    fixed, fixed_counts = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("fixed", "fixed_counts")
    )
    alike = [part.similarity for part in parts if part.similarity is not None]
    return Survey(
        about=about,
        measures=tuple(one.name for one in measures),
        heads=tally.tallied(sums, counts[:, :, None], keys),
        offsets=tally.tallied(fixed, fixed_counts[:, None], keys),
        places=reduce(operator.add, (part.places for part in parts)),
        examples=reduce(survey.merge_examples, (part.examples for part in parts)),
        sample=_sample(parts, about.sample, (sums, counts), measures),
        similarity=reduce(operator.add, alike) if alike else None,
        relations=_relations(parts),
        n_tokens=sum(part.n_tokens for part in parts),
        n_cut=sum(sentence.is_cut for part in parts for sentence in part.sentences),
        worst=tuple(map(max, zip(*(part.receipt.differences for part in parts), strict=True))),
        tolerance=max(part.receipt.tolerance for part in parts),
        dtype=parts[0].receipt.dtype,
    )


def _sample(
    parts: Sequence[BatchSummary], size: int, measured: survey.PerSentence, measures: Sequence[Measure]
) -> Sample:
    """The sentences of the smallest keys, with what the heads do there that may be a role."""
    given = ((sentence.text, sentence.pair) for part in parts for sentence in part.sentences)
    keys = [key for part in parts for key in part.keys]
    at = {key: row for row, key in enumerate(keys)}
    every = dict(zip(keys, given, strict=True))
    texts = dict(sorted(every.items())[:size])
    rows = [at[key] for key in texts]
    places = [number for number, one in enumerate(measures) if one.role is not None]
    own = tuple(values[rows][..., places].astype(np.float32, order="C") for values in measured)
    annotated = structure.drawn(_annotated(parts)) if size else {}
    hits = {
        key: one
        for part in parts
        for key, said, one in zip(part.keys, part.annotated, part.found, strict=True)
        if one is not None and said == annotated.get(key)
    }
    return Sample(
        size=size,
        texts=texts,
        roles=tuple(measures[place].name for place in places),
        controls={survey.OWN: (own[0], own[1])},
        linked={key: every[key] for key in annotated},
        annotated=annotated,
        own={key: hits[key] for key in annotated},
    )


def is_much(parts: Sequence[BatchSummary]) -> bool:
    """Whether what is kept of these batches is so much that it is added up now."""
    return sum(part.sums.nbytes for part in parts) > KEPT_BYTES


def _annotated(parts: Sequence[BatchSummary]) -> dict[int, Annotation]:
    """The words that belong together of all sentences; of one that comes in two ways, always the same."""
    kept: dict[int, Annotation] = {}
    for part in parts:
        for key, annotated, found in zip(part.keys, part.annotated, part.found, strict=True):
            if annotated is not None and found is not None:
                kept[key] = min(kept.get(key, annotated), annotated, key=repr)
    return kept


def _relations(parts: Sequence[BatchSummary]) -> Relations | None:
    """What heads find of the words that belong together; None where no sentence says which do."""
    n_said = sum(annotated is not None for part in parts for annotated in part.annotated)
    if not n_said:
        return None
    pairs = [(key, one) for part in parts for key, one in zip(part.keys, part.found, strict=True)]
    found = [(key, one) for key, one in pairs if one is not None]
    return replace(structure.tallied(found, *parts[0].sums.shape[1:3]), n_other=n_said - len(found))
