"""A corpus run through a model, or two models: batched by length, measured in a stream, at constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, zip_longest

import numpy as np
import torch

from attnviz.attention import Kind, Receipt
from attnviz.capture.batching import first_sentence, in_batches, join, shuffle
from attnviz.capture.observers import Batch, Observer
from attnviz.capture.sources import Source, expect_kind
from attnviz.errors import InputError, ModelError
from attnviz.heads import relations, survey, tally
from attnviz.heads.capture.divergences import divergence_between, divergences
from attnviz.heads.capture.measure import BatchMeasures, FindLinks, FindWeights, MeasureHeads
from attnviz.heads.measures import (
    CHANCE,
    MEASURES,
    SHUFFLED,
    UNTRAINED,
    Entry,
    measures_of,
    of_rows,
)
from attnviz.heads.relations import LinkHits
from attnviz.heads.settings import SurveySettings
from attnviz.heads.survey import BAD_LINES, About, Against, Sample, Survey
from attnviz.text.corpus import Annotation, BadLine, CorpusLine
from attnviz.text.display import check_text, clip, visible

TOKENS = 2048  # tokens in a batch, padding included: as many as keep the cores busy
SEEDS = 8  # models of random weights, each of another seed, whose best heads a role is held against
WINDOW = 512  # so many lines are sorted by length before they are cut into batches


def survey_model(
    lines: Iterable[CorpusLine | BadLine],
    source: Source,
    settings: SurveySettings | None = None,
    *,
    against: Source | None = None,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
    so_far: Survey | None = None,
    n_lines: int = 0,
    tell: Callable[[Survey, int], object] | None = None,
    corpus: str = "",
) -> Survey:
    """Measure every head of a model on every sentence of a corpus, and take the controls.

    `against` is a second model, which is measured on the same sentences; what the first model generates, the second is
    made to say. Lines that cannot be used, or that a model cannot read, are counted and named. `tokens` has a batch at
    most, padding included; `so_far` is what an earlier run kept of the first `n_lines`, which are passed over; `tell`
    is told likewise after each window of lines; `corpus` is what messages call the lines. Raises InputError: no
    sentence is left; ModelError: a model cannot be run, its weights are not proved, or the two models do not read the
    same tokens, or have other numbers of layers or heads; SelectionError: the first of two has no such attention.
    """
    runners = _runners(source, against, settings, measures, tokens)
    found, bad, n_bad = so_far, list[BadLine](), 0
    rest = islice(lines, n_lines, None)
    while window := list(islice(rest, WINDOW)):
        bad += [line for line in window if isinstance(line, BadLine)]
        sentences = [line for line in window if isinstance(line, CorpusLine)]
        for one in _measure(runners, sentences, bad):
            found = one if found is None else survey.merge(found, one)
        n_lines += len(window)
        bad.sort(key=lambda line: line.number)
        if found is None:  # hours of lines that cannot be used take no more room than a few
            n_bad, bad = n_bad + len(bad[BAD_LINES:]), bad[:BAD_LINES]
        else:
            found = found.with_bad(bad, n_bad + len(bad))
            n_bad, bad = 0, []
            if tell is not None:
                tell(found, n_lines)
    if found is None:
        first = f": line {bad[0].number}: {bad[0].reason}" if bad else ""
        start = f"{corpus}: " if corpus else ""
        raise InputError(f"{start}there is no sentence to measure heads on{first}")
    found = runners[0].with_controls(found)
    if found.against is not None:
        second = runners[1].with_controls(found.against.survey)
        found = replace(found, against=replace(found.against, survey=second))
    return found


def _measure(
    runners: Sequence[Runner], lines: Sequence[CorpusLine], bad: list[BadLine]
) -> Iterator[Survey]:
    """Measure lines, a batch at a time; those that a model cannot read are added to the bad."""
    given: list[tuple[tuple[Batch, ...], Annotation | None]] = []
    for line in lines:
        try:
            given.append((_read_by(runners, line.text, f"line {line.number}, "), line.annotated))
        except InputError as error:
            bad.append(BadLine(number=line.number, reason=str(error)))
    for together in in_batches(
        {at: several[0] for at, (several, _) in enumerate(given)}, runners[0].tokens
    ):
        read_by = zip(*(given[at][0] for at in together), strict=True)
        yield _run(runners, list(map(join, read_by)), [given[at][1] for at in together])


def _run(
    runners: Sequence[Runner], batches: Sequence[Batch], annotated: Sequence[Annotation | None]
) -> Survey:
    """Measure a batch; with two models also how far apart their rows are."""
    measured, found = runners[0].run(batches[0], annotated)
    if len(runners) == 1:
        return found
    measured_second, second = runners[1].run(batches[1], annotated)
    shape, shape_second = found.heads.sums.shape[1:3], second.heads.sums.shape[1:3]
    if shape != shape_second:
        sizes = [f"{n_layers} x {n_heads}" for n_layers, n_heads in (shape, shape_second)]
        raise ModelError(
            "heads are compared one by one, and these models have other numbers of them (layers x heads): "
            f"{found.about.model} has {sizes[0]}, {second.about.model} {sizes[1]}"
        )
    rows, counted = measured.rows
    rows_second, counted_second = measured_second.rows
    if not torch.equal(counted, counted_second.to(counted.device)):
        raise ModelError(
            "these models let other tokens attend to others: their patterns are not of the same rows"
        )
    sums = divergence_between(rows, rows_second.to(rows.device), counted)
    n_rows = counted.sum(dim=1).double().cpu().numpy()[:, None, None]
    divergences = tally.tally_sentences(sums.reshape(-1, *shape), n_rows, _keys(batches[0]))
    return replace(found, against=Against(survey=second, divergences=divergences))


def _keys(batch: Batch) -> list[int]:
    return [tally.key_of(sentence.text, sentence.pair) for sentence in batch.sentences]


class Runner:
    """A model with what it takes to measure its heads, in batches of so many `tokens`: the only one, or one of two."""

    def __init__(
        self,
        source: Source,
        settings: SurveySettings,
        measures: tuple[Entry, ...] = MEASURES,
        tokens: int = TOKENS,
        *,
        of_two: bool = False,
    ) -> None:
        self.source, self.tokens = source, tokens
        self._settings, self._entries, self._of_two = settings, measures, of_two
        # of two, what generates: what it does, this is made to generate
        self.leader: Runner | None = None
        self._measures = of_rows(measures_of(measures))
        self._weights: FindWeights | None = None

    @cached_property
    def _digest(self) -> str:
        return self.source.digest()

    def with_controls(self, found: Survey) -> Survey:
        """Add the controls of its sample to a survey."""
        sample = found.sample
        if not sample.texts:  # none were wished for
            return found
        texts = {**sample.linked, **sample.texts}
        read = {key: self.encode(*given) for key, given in texts.items()}
        singles = {key: read[key] for key in sample.texts}
        mixed = {key: shuffle(single, key) for key, single in singles.items()}
        shuffled = {key: one for key, one in mixed.items() if one is not None}
        controls = dict(sample.controls)
        if len(shuffled) == len(singles):
            controls[SHUFFLED] = self._control(shuffled)
        controls[CHANCE] = self._control(singles, dealt=True)
        sample = replace(sample, controls=controls)
        try:
            random, hits = self._random_weights(sample, texts, read)
        except ModelError as error:
            return replace(found, sample=replace(sample, no_random=str(error)))
        controls[UNTRAINED] = random
        return replace(found, sample=replace(sample, found=hits))

    def _random_weights(
        self,
        sample: Sample,
        texts: Mapping[int, tuple[str, str | None]],
        read: Mapping[int, Batch],
    ) -> tuple[survey.PerSentence, dict[int, LinkHits]]:
        """Measure models of random weights on a sample: their measures, and the links that they find."""
        places = [one.role is not None for one in self._measures]
        sums, links, counts = [], [], np.zeros(0)
        for seed in range(SEEDS):
            other = Runner(self.source.untrained(seed), self._settings, self._entries, self.tokens)
            if self.source.generates:  # it reads what the trained model generates
                said = {key: single.sentences[0].target for key, single in read.items()}
                read = {key: other.encode(*given, target=said[key]) for key, given in texts.items()}
            measured, counts = other._control({key: read[key] for key in sample.texts})
            sums.append(np.ascontiguousarray(measured[..., places]))
            given = {key: (read[key], one) for key, one in sample.annotated.items()}
            links.append(other._links(given))
        hits = {
            key: replace(one, hits=np.concatenate([seed[key].hits for seed in links], axis=2))
            for key, one in links[0].items()
        }
        counted = np.ascontiguousarray(counts[..., places])
        return (np.concatenate(sums, axis=1), counted), hits

    def encode(self, text: str, pair: str | None = None, target: str | None = None) -> Batch:
        """Read one sentence as a batch; of two models that generate, both say what the first one does."""
        if target is None and self.leader is not None:
            target = self.leader.encode(text, pair).sentences[0].target
        settings = self._settings
        # What a model says that never ends has a word more than may be given: cut alike, both say the same.
        truncate = settings.truncate or target is not None
        read = self.source.encode(
            [text], [pair], truncate=truncate, kind=settings.kind, targets=[target]
        )
        said = read.sentences[0].target
        if self._of_two and target is None and said is not None:
            return self.encode(text, pair, said)
        return read

    def run(
        self, batch: Batch, annotated: Sequence[Annotation | None]
    ) -> tuple[BatchMeasures, Survey]:
        """Measure a batch: all that is measured, with the rows if they are kept, and what is kept of it."""
        settings, sentences = self._settings, batch.sentences
        # What is annotated are the words that are read: attention to or from those that are said is between others.
        between = [
            one if sentence.keys is None else None
            for one, sentence in zip(annotated, sentences, strict=True)
        ]
        find = FindLinks(between)
        measured, receipt = self._stream(batch, [find] if any(between) else [], keep_rows=True)
        keys = _keys(batch)
        sums, counts = measured.sums, measured.counts
        enough = np.array([one.enough_rows for one in self._measures], dtype=np.float64)
        linked: list[tuple[int, Annotation, LinkHits]] = []
        if any(between):
            triples = zip(keys, between, find.result(), strict=True)
            linked = [(key, said, one) for key, said, one in triples if said and one]
        n_said = len(list(filter(None, annotated)))
        related = None
        if n_said:
            hits = [(key, one) for key, _said, one in linked]
            related = relations.count_links(hits, *sums.shape[1:3])
            related = replace(related, n_other=n_said - len(linked))
        return measured, Survey(
            about=About(
                model=self.source.name,
                weights=self._digest,
                kind=batch.kind or self.source.kinds[0],
                sample=settings.controls,
            ),
            measures=tuple(one.name for one in self._measures),
            heads=tally.tally_sentences(sums, counts[:, :, None], keys),
            offsets=tally.tally_sentences(measured.fixed, measured.fixed_counts[:, None], keys),
            places=survey.places_of(measured.corner, measured.corner_seen, keys),
            examples=survey.examples_of(
                sums, counts, keys, [one.text for one in sentences], enough
            ),
            sample=self._sample(batch, keys, (sums, counts), linked),
            similarity=divergences(*measured.rows),
            relations=related,
            n_tokens=int(batch.real.sum()),
            n_cut=sum(sentence.is_cut for sentence in sentences),
            worst=receipt.differences,
            tolerance=receipt.tolerance,
            dtype=receipt.dtype,
        )

    def _sample(
        self,
        batch: Batch,
        keys: Sequence[int],
        measured: survey.PerSentence,
        linked: Sequence[tuple[int, Annotation, LinkHits]],
    ) -> Sample:
        """The sentences of the smallest keys, with what the heads do there that may be a role."""
        size = self._settings.controls
        every = {key: (one.text, one.pair) for key, one in zip(keys, batch.sentences, strict=True)}
        texts = dict(sorted(every.items())[:size])
        rows = [keys.index(key) for key in texts]
        places = [number for number, one in enumerate(self._measures) if one.role is not None]
        own = tuple(values[rows][..., places].astype(np.float32, order="C") for values in measured)
        annotated = relations.sample_links((key, said) for key, said, _ in linked) if size else {}
        hits = {key: one for key, said, one in linked if said == annotated.get(key)}
        return Sample(
            size=size,
            texts=texts,
            roles=tuple(self._measures[place].name for place in places),
            controls={survey.OWN: (own[0], own[1])},
            linked={key: every[key] for key in annotated},
            annotated=annotated,
            own={key: hits[key] for key in annotated},
        )

    def _stream(
        self,
        batch: Batch,
        others: Sequence[Observer] = (),
        *,
        keep_rows: bool = False,
        dealt: Sequence[int] | None = None,
    ) -> tuple[BatchMeasures, Receipt]:
        if self._weights is None:
            self._weights = FindWeights()
            self.source.stream(first_sentence(batch), [self._weights])
        observer = MeasureHeads(
            self._weights.handed,
            keep_rows=keep_rows,
            dealt=dealt,
            embeddings=self._weights.embeddings,
            measures=self._measures,
        )
        receipt = self.source.stream(batch, [observer, *others])
        return observer.result(), receipt

    def _control(self, singles: Mapping[int, Batch], *, dealt: bool = False) -> survey.PerSentence:
        parts: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for together in in_batches(singles, self.tokens):
            measured, _ = self._stream(
                join(together.values()), dealt=list(together) if dealt else None
            )
            parts |= zip(together, zip(measured.sums, measured.counts, strict=True), strict=True)
        sums, counts = (np.stack([parts[key][at] for key in singles]) for at in (0, 1))
        return sums, counts

    def _links(self, given: Mapping[int, tuple[Batch, Annotation]]) -> dict[int, LinkHits]:
        hits: dict[int, LinkHits | None] = {}
        for together in in_batches(
            {key: single for key, (single, _) in given.items()}, self.tokens
        ):
            find = FindLinks([given[key][1] for key in together])
            self.source.stream(join(together.values()), [find])
            hits |= zip(together, find.result(), strict=True)
        return {key: one for key in given if (one := hits[key]) is not None}


def check_readable(
    text: str, source: Source, settings: SurveySettings | None = None, against: Source | None = None
) -> None:
    """Make sure that a model can read a sentence, and two models the same tokens of it.

    Raises InputError: one cannot read it; ModelError: two models read other tokens, or have other kinds of attention;
    SelectionError: the first of two has no such attention.
    """
    _read_by(_runners(source, against, settings), text)


def _runners(
    source: Source,
    against: Source | None,
    settings: SurveySettings | None,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
) -> list[Runner]:
    settings = settings or SurveySettings()
    if against is None:
        return [Runner(source, settings, measures, tokens)]
    kind = expect_kind(source, settings.kind, None)
    _expect_both(source, against, kind)
    if len(source.kinds) > 1 or len(against.kinds) > 1:
        settings = replace(settings, kind=kind)
    first, second = (
        Runner(one, settings, measures, tokens, of_two=True) for one in (source, against)
    )
    second.leader = first if source.generates else None
    return [first, second]


def _expect_both(source: Source, against: Source, kind: Kind) -> None:
    if kind not in against.kinds:
        raise ModelError(
            f"{source.name} has {kind} attention to compare, and {against.name} has "
            f"{' and '.join(against.kinds)}: choose a kind that both have"
        )


def _read_by(runners: Sequence[Runner], text: str, where: str = "") -> tuple[Batch, ...]:
    """A sentence as each model reads it; `where` it is of many, such as "line 7, "."""
    check_text(text)
    first = runners[0].encode(text)
    if len(runners) == 1:
        return (first,)
    source, against = (runner.source for runner in runners)
    second = runners[1].encode(text, target=first.sentences[0].target)
    _expect_both(source, against, first.kind or source.kinds[0])
    pieces, pieces_second = (
        [(token.piece, token.special) for token in (*one.tokens, *(one.keys or ()))]
        for one in (first.sentences[0], second.sentences[0])
    )
    if pieces != pieces_second:
        counts = f"{len(pieces)} tokens to {source.name}, {len(pieces_second)} to {against.name}"
        here, there = next(
            pair
            for pair in zip_longest(pieces, pieces_second, fillvalue=("", False))
            if pair[0] != pair[1]
        )
        raise ModelError(
            f"these models do not read the same tokens: {where}“{clip(visible(text), 40)}” is {counts}, first "
            f"{clip(visible(here[0]), 20)!r} and {clip(visible(there[0]), 20)!r}"
        )
    return first, second
