"""A model run on batches of sentences: what is measured of each, what many say together, and the controls."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Receipt
from attnviz.capture.batching import in_batches, join, shuffle, take_first
from attnviz.capture.observers import Batch, Observer
from attnviz.capture.sources import Source
from attnviz.errors import ModelError
from attnviz.heads import relations, survey, tally
from attnviz.heads.capture.divergences import divergences
from attnviz.heads.capture.links import FindLinks
from attnviz.heads.capture.measure import BatchMeasures, FindWeights, MeasureHeads
from attnviz.heads.measures import CHANCE, MEASURES, SHUFFLED, UNTRAINED, Entry, Measure, measures_of, of_rows
from attnviz.heads.relations import LinkHits, Relations
from attnviz.heads.settings import SurveySettings
from attnviz.heads.similarity import Divergences
from attnviz.heads.survey import About, Examples, Places, Sample, Survey
from attnviz.text.corpus import Annotation

TOKENS = 2048  # tokens in a batch, padding included: as many as keep the cores busy
SEEDS = 8  # models of random weights, each of another seed, whose best heads a role is held against


class Runner:
    """A model with what it takes to measure its heads, in batches of so many `tokens`; `keep_rows` keeps their rows."""

    def __init__(
        self, source: Source, settings: SurveySettings, measures: tuple[Entry, ...] = MEASURES, tokens: int = TOKENS,
        *, keep_rows: bool = False,
    ) -> None:  # fmt: skip
        self.source, self.tokens = source, tokens
        self._settings, self._entries, self._keep_rows = settings, measures, keep_rows or settings.similarity
        self._measures = of_rows(measures_of(measures, settings.max_offset))
        self._weights: FindWeights | None = None

    @cached_property
    def _digest(self) -> str:
        return self.source.digest()

    def with_controls(self, found: Survey) -> Survey:
        """The same survey with the controls of its sample."""
        sample = found.sample
        if not sample.texts:  # none were wished for
            return found
        texts = {**sample.linked, **sample.texts}
        read = {key: self.encode(*given) for key, given in texts.items()}
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
                source = self.source.untrained(seed)
            except ModelError as error:
                return replace(found, sample=replace(sample, controls=controls, no_random=str(error)))
            other = Runner(source, self._settings, self._entries, self.tokens)
            if self.source.generates:  # it reads what the trained model generates
                said = {key: single.sentences[0].target for key, single in read.items()}
                read = {key: other.encode(*given, target=said[key]) for key, given in texts.items()}
            measured, counts = other._control({key: read[key] for key in sample.texts})
            sums.append(np.ascontiguousarray(measured[..., places]))
            links.append(other._links({key: (read[key], one) for key, one in sample.annotated.items()}))
        controls[UNTRAINED] = np.concatenate(sums, axis=1), np.ascontiguousarray(counts[..., places])
        hits = {
            key: replace(one, hits=np.concatenate([seed[key].hits for seed in links], axis=2))
            for key, one in links[0].items()
        }
        return replace(found, sample=replace(sample, controls=controls, found=hits))

    def encode(self, text: str, pair: str | None = None, target: str | None = None) -> Batch:
        """A batch of one sentence."""
        settings = self._settings
        # What a model says that never ends has a word more than it may be given.
        truncate = settings.truncate or target is not None
        return self.source.encode([text], [pair], truncate=truncate, kind=settings.kind, targets=[target])

    def run(
        self, batch: Batch, annotated: Sequence[Annotation | None] = (), *, control: bool = False,
        dealt: Sequence[int] | None = None,
    ) -> BatchRun:  # fmt: skip
        """Measure a batch; of a control no rows are kept."""
        if self._weights is None:
            self._weights = FindWeights()
            self.source.stream(take_first(batch), [self._weights])
        observer = MeasureHeads(
            self._settings.specials, self._weights.handed, keep_rows=self._keep_rows and not control, dealt=dealt,
            embeddings=self._weights.embeddings, measures=self._measures, max_offset=self._settings.max_offset,
        )  # fmt: skip
        observers: list[Observer] = [observer]
        said = tuple(annotated) or (None,) * len(batch.sentences)
        # What is annotated are the words that are read: attention to or from those that are said is between others.
        between = [one if sentence.keys is None else None for one, sentence in zip(said, batch.sentences, strict=True)]
        links = FindLinks(between, self._settings.specials)
        if any(one is not None for one in between):
            observers.append(links)
        receipt = self.source.stream(batch, observers)
        found = links.result() if len(observers) > 1 else (None,) * len(said)
        return BatchRun(measured=observer.result(), receipt=receipt, annotated=said, found=found)

    def _control(self, singles: Mapping[int, Batch], *, dealt: bool = False) -> survey.PerSentence:
        parts: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for together in in_batches(singles, self.tokens):
            ran = self.run(join(together.values()), control=True, dealt=list(together) if dealt else None)
            measured = ran.measured.sums.cpu().numpy(), ran.measured.counts.cpu().numpy()
            parts |= zip(together, zip(*measured, strict=True), strict=True)
        sums, counts = (np.stack([parts[key][at] for key in singles]).astype(np.float64) for at in (0, 1))
        return sums, counts

    def _links(self, given: Mapping[int, tuple[Batch, Annotation]]) -> dict[int, LinkHits]:
        hits: dict[int, LinkHits | None] = {}
        for together in in_batches({key: single for key, (single, _) in given.items()}, self.tokens):
            find = FindLinks([given[key][1] for key in together], self._settings.specials)
            self.source.stream(join(together.values()), [find])
            hits |= zip(together, find.result(), strict=True)
        return {key: one for key in given if (one := hits[key]) is not None}

    def part(self, batch: Batch, ran: BatchRun) -> BatchSummary:
        """What is kept of a batch."""
        measured, texts = ran.measured, [sentence.text for sentence in batch.sentences]
        keys = tuple(tally.key_of(sentence.text, sentence.pair) for sentence in batch.sentences)
        sums, counts, fixed, fixed_counts, corner, seen = (
            getattr(measured, name).cpu().numpy()
            for name in ("sums", "counts", "fixed", "fixed_counts", "corner", "corner_seen")
        )
        similarity = None
        if self._settings.similarity and measured.rows is not None and measured.rows_counted is not None:
            similarity = divergences(measured.rows, measured.rows_counted)
        enough = np.array([one.enough_rows for one in self._measures], dtype=np.float64)
        return BatchSummary(
            batch=batch, keys=keys, sums=sums, counts=counts, fixed=fixed, fixed_counts=fixed_counts,
            places=survey.places_of(corner, seen, keys), similarity=similarity,
            examples=survey.examples_of(sums, counts, keys, texts, enough),
            receipt=ran.receipt, annotated=ran.annotated, found=ran.found,
        )  # fmt: skip

    def survey(self, parts: Sequence[BatchSummary]) -> Survey:
        """What some batches say together."""
        settings, batches = self._settings, [part.batch for part in parts]
        about = About(
            model=self.source.name, weights=self._digest, kind=batches[0].kind or self.source.kinds[0],
            specials=settings.specials, sample=settings.controls, max_offset=settings.max_offset,
        )  # fmt: skip
        keys = [key for part in parts for key in part.keys]
        sums, counts, fixed, fixed_counts = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("sums", "counts", "fixed", "fixed_counts")
        )
        alike = [part.similarity for part in parts if part.similarity is not None]
        return Survey(
            about=about, measures=tuple(one.name for one in self._measures),
            heads=tally.tally_sentences(sums, counts[:, :, None], keys),
            offsets=tally.tally_sentences(fixed, fixed_counts[:, None], keys),
            places=reduce(operator.add, (part.places for part in parts)),
            examples=reduce(survey.merge_examples, (part.examples for part in parts)),
            sample=_sample(parts, about.sample, (sums, counts), self._measures),
            similarity=reduce(operator.add, alike) if alike else None, relations=_relations(parts),
            n_tokens=sum(int(batch.real.sum()) for batch in batches),
            n_cut=sum(sentence.is_cut for batch in batches for sentence in batch.sentences),
            worst=tuple(map(max, zip(*(part.receipt.differences for part in parts), strict=True))),
            tolerance=max(part.receipt.tolerance for part in parts), dtype=parts[0].receipt.dtype,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRun:
    """What one batch gave."""

    measured: BatchMeasures  # of its heads
    receipt: Receipt  # the proof
    annotated: tuple[Annotation | None, ...]  # the words of each sentence that belong together; None of unknown ones
    found: tuple[LinkHits | None, ...]  # what heads find of that; None where attention is between other words


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BatchSummary:
    """What is kept of one batch until it is added up with others: numbers of each sentence, sums of what is large."""

    batch: Batch  # its sentences
    keys: tuple[int, ...]  # of these, as `tally.key_of` makes them
    sums: Float64[np.ndarray, "sentence layer head measure"]  # of each measure
    counts: Float64[np.ndarray, "sentence layer measure"]  # how many rows were counted
    fixed: Float64[np.ndarray, "sentence offset share"]  # likewise of heads made up, each looking at one fixed offset
    fixed_counts: Float64[np.ndarray, "sentence share"]  # how many rows were counted
    places: Places  # for how far a pattern is position alone
    examples: Examples  # the strongest sentences
    similarity: Divergences | None  # of all pairs of heads, where it is wished for
    receipt: Receipt  # the proof
    annotated: tuple[Annotation | None, ...]  # the words of each sentence that belong together
    found: tuple[LinkHits | None, ...]  # what heads find of that


def _sample(
    parts: Sequence[BatchSummary], size: int, measured: survey.PerSentence, measures: Sequence[Measure]
) -> Sample:
    """The sentences of the smallest keys, with what the heads do there that may be a role."""
    given = ((sentence.text, sentence.pair) for part in parts for sentence in part.batch.sentences)
    keys = [key for part in parts for key in part.keys]
    at = {key: row for row, key in enumerate(keys)}
    every = dict(zip(keys, given, strict=True))
    texts = dict(sorted(every.items())[:size])
    rows = [at[key] for key in texts]
    places = [number for number, one in enumerate(measures) if one.role is not None]
    own = tuple(values[rows][..., places].astype(np.float32, order="C") for values in measured)
    linked = [
        (key, said, one)
        for part in parts
        for key, said, one in zip(part.keys, part.annotated, part.found, strict=True)
        if said is not None and one is not None
    ]
    annotated = relations.sample_links((key, said) for key, said, _ in linked) if size else {}
    hits = {key: one for key, said, one in linked if said == annotated.get(key)}
    return Sample(
        size=size, texts=texts, roles=tuple(measures[place].name for place in places),
        controls={survey.OWN: (own[0], own[1])}, linked={key: every[key] for key in annotated}, annotated=annotated,
        own={key: hits[key] for key in annotated},
    )  # fmt: skip


def _relations(parts: Sequence[BatchSummary]) -> Relations | None:
    n_said = sum(annotated is not None for part in parts for annotated in part.annotated)
    if not n_said:
        return None
    pairs = [(key, one) for part in parts for key, one in zip(part.keys, part.found, strict=True)]
    found = [(key, one) for key, one in pairs if one is not None]
    return replace(relations.count_links(found, *parts[0].sums.shape[1:3]), n_other=n_said - len(found))
