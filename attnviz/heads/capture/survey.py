"""Measurement of a corpus with one model or two: batched by length, streamed, in constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, zip_longest
from typing import NamedTuple

import numpy as np
import torch

from attnviz.attention import Kind, Receipt
from attnviz.capture.batching import first_sentence, in_batches, join
from attnviz.capture.observers import Batch, Observer
from attnviz.capture.sources import Source, expect_kind
from attnviz.errors import InputError, ModelError
from attnviz.heads import relations, survey, tally
from attnviz.heads.capture.divergences import divergence_between
from attnviz.heads.capture.measure import (
    BatchMeasures,
    EmbeddingFinder,
    KeptRows,
    LinkFinder,
    MeasureCollector,
)
from attnviz.heads.measures import (
    CHANCE,
    MEASURES,
    UNTRAINED,
    Entry,
    measures_of,
)
from attnviz.heads.relations import LinkHits
from attnviz.heads.settings import SurveySettings
from attnviz.heads.survey import About, Against, Part, Sample, Survey
from attnviz.text.corpus import Annotation, BadLine, CorpusLine
from attnviz.text.display import check_text, clip, visible

TOKENS = 2048  # tokens per batch, padding included: enough to keep all cores busy
SEEDS = 8  # number of models with random weights, whose best heads are a control of each role
WINDOW = 512  # number of lines that are sorted by length before they are cut into batches


def measure_lines(
    lines: Iterable[CorpusLine | BadLine],
    sources: Sequence[Source],
    settings: SurveySettings,
    *,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
    on_window: Callable[[Survey], object] | None = None,
    corpus: str = "",
) -> Survey:
    """Measure every head of a model, or of two, on every sentence of a corpus.

    Lines that cannot be used, or that a model cannot read, are counted, and the first of them are kept.

    Args:
        lines: the sentences.
        sources: the model, or two models that are measured on the same sentences. If they generate text, the second
            is given the text that the first generates.
        settings: the settings of the measurement.
        measures: the measures.
        tokens: the largest number of tokens per batch, padding included.
        on_window: called with the survey after each window of lines.
        corpus: the name of the lines in messages.

    Raises:
        InputError: no sentence is left.
        ModelError: a model cannot be run, its weights are not proved, or the two models read different tokens or have
            different numbers of layers or heads.
        SelectionError: the first of two models has no such attention.
    """
    part = measure_part(
        lines, sources, settings, measures=measures, tokens=tokens, on_window=on_window
    )
    return expect_sentences(part, corpus)


def measure_part(
    lines: Iterable[CorpusLine | BadLine],
    sources: Sequence[Source],
    settings: SurveySettings,
    *,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
    on_window: Callable[[Survey], object] | None = None,
) -> Part:
    """Measure a part of a corpus, of which no line may be usable; else it does what `measure_lines` does."""
    runners = _runners(sources, settings, measures, tokens)
    part = Part()
    remaining = iter(lines)
    while window := list(islice(remaining, WINDOW)):
        bad = [line for line in window if isinstance(line, BadLine)]
        sentences = [line for line in window if isinstance(line, CorpusLine)]
        for batch_survey in _measure(runners, sentences, bad):
            part = part.merge(Part(survey=batch_survey))
        bad.sort(key=lambda line: line.number)
        part = part.merge(Part(bad=tuple(bad), n_bad=len(bad)))
        if on_window is not None and part.survey is not None:
            on_window(part.survey)
    return part


def expect_sentences(part: Part, corpus: str) -> Survey:
    """Return the survey of a corpus. Raises InputError: none of its lines is a sentence that can be used."""
    if part.survey is None:
        first_reason = f": line {part.bad[0].number}: {part.bad[0].reason}" if part.bad else ""
        start = f"{corpus}: " if corpus else ""
        raise InputError(f"{start}there is no sentence to measure heads on{first_reason}")
    return part.survey


def add_controls(
    measured: Survey,
    sources: Sequence[Source],
    settings: SurveySettings,
    *,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
) -> Survey:
    """Return a survey with its controls, measured on its sample of sentences.

    Raises ModelError: a model cannot be run, or its weights are not proved.
    """
    runners = _runners(sources, settings, measures, tokens)
    with_controls = runners[0].with_controls(measured)
    if with_controls.against is None:
        return with_controls
    second = runners[1].with_controls(with_controls.against.survey)
    return replace(with_controls, against=replace(with_controls.against, survey=second))


def _measure(
    runners: Sequence[Runner], lines: Sequence[CorpusLine], bad: list[BadLine]
) -> Iterator[Survey]:
    """Yield the surveys of lines, batch by batch; lines that a model cannot read are added to `bad`."""
    encoded: list[tuple[Batch, ...]] = []  # each sentence, as each model reads it
    annotated: list[Annotation | None] = []
    runners[0].source.prepare([line.text for line in lines])
    for line in lines:
        try:
            encoded.append(_encode(runners, line.text, f"line {line.number}, "))
        except InputError as error:
            bad.append(BadLine(number=line.number, reason=str(error)))
        else:
            annotated.append(line.annotated)
    by_first_model = {number: batches[0] for number, batches in enumerate(encoded)}
    for numbers in in_batches(by_first_model, runners[0].tokens):
        singles_by_model = zip(*(encoded[number] for number in numbers), strict=True)
        batches = list(map(join, singles_by_model))
        yield _survey_batch(runners, batches, [annotated[number] for number in numbers])


def _survey_batch(
    runners: Sequence[Runner], batches: Sequence[Batch], annotated: Sequence[Annotation | None]
) -> Survey:
    """Measure a batch, which each model has encoded; with two models, also the divergence between their rows."""
    rows, batch_survey = runners[0].run(batches[0], annotated)
    if len(runners) == 1:
        return batch_survey
    second_rows, second_survey = runners[1].run(batches[1], annotated)
    shape, shape_second = batch_survey.heads.sums.shape[1:3], second_survey.heads.sums.shape[1:3]
    if shape != shape_second:
        sizes = [f"{n_layers} x {n_heads}" for n_layers, n_heads in (shape, shape_second)]
        raise ModelError(
            "heads are compared one by one, so both models need the same numbers of layers and heads: "
            f"{batch_survey.about.model} has {sizes[0]}, {second_survey.about.model} has {sizes[1]}"
        )
    assert rows is not None  # both models keep their rows
    assert second_rows is not None
    device = rows.weights.device
    if not torch.equal(rows.counted, second_rows.counted.to(device)):
        raise ModelError(
            "these models let other tokens attend to others: their patterns are not of the same rows"
        )
    sums = divergence_between(rows.weights, second_rows.weights.to(device), rows.counted)
    n_rows = rows.counted.sum(dim=1).double().cpu().numpy()[:, None, None]
    divergences = tally.tally_sentences(sums.reshape(-1, *shape), n_rows, _keys(batches[0]))
    return replace(batch_survey, against=Against(survey=second_survey, divergences=divergences))


def _keys(batch: Batch) -> list[int]:
    """Return the hash of each sentence of a batch."""
    return [tally.key_of(sentence.text, sentence.pair) for sentence in batch.sentences]


class AnnotatedSentence(NamedTuple):
    """A sentence of a batch with the links between its words, and the heads that find them."""

    key: int  # the hash of the sentence
    annotation: Annotation
    hits: LinkHits


def _annotated_sentences(
    keys: Sequence[int],
    annotated: Sequence[Annotation | None],
    hits: Sequence[LinkHits | None],
) -> list[AnnotatedSentence]:
    """Return the sentences of a batch that have an annotation."""
    linked = []
    for key, annotation, sentence_hits in zip(keys, annotated, hits, strict=True):
        if annotation is not None and sentence_hits is not None:
            linked.append(AnnotatedSentence(key, annotation, sentence_hits))
    return linked


class Runner:
    """A model and everything needed to measure its heads.

    Args:
        source: the model.
        settings: the settings of the measurement.
        measures: the measures.
        tokens: the largest number of tokens per batch.
        of_two: whether it is one of two models that are compared.
    """

    def __init__(
        self,
        source: Source,
        settings: SurveySettings,
        measures: tuple[Entry, ...] = MEASURES,
        tokens: int = TOKENS,
        *,
        of_two: bool = False,
    ) -> None:
        # A batch holds at least one sentence, however small its limit is.
        self.source, self.tokens = source, tokens if source.takes_padding else 1
        self._settings, self._entries, self._of_two = settings, measures, of_two
        # The first of two models, if they generate text: this model is given the text that the leader generates.
        self.leader: Runner | None = None
        self._measures = measures_of(measures)
        self._finder: EmbeddingFinder | None = None  # None before the first batch

    @cached_property
    def _digest(self) -> str:
        return self.source.digest()

    def with_controls(self, trained: Survey) -> Survey:
        """Return the survey of this model with the controls, measured on its sample."""
        sample = trained.sample
        if not sample.texts:  # the settings ask for no controls
            return trained
        texts = {**sample.linked, **sample.texts}
        first = self.leader or self
        first.source.prepare([text for text, _pair in texts.values()])
        encoded = {key: self.encode(*text_pair) for key, text_pair in texts.items()}
        singles = {key: encoded[key] for key in sample.texts}
        controls = dict(sample.controls)
        controls[CHANCE] = self._measure_singles(singles, permute_keys=True)
        sample = replace(sample, controls=controls)
        try:
            controls[UNTRAINED], hits = self._measure_untrained(sample, texts, encoded)
        except ModelError as error:
            return replace(trained, sample=replace(sample, no_random=str(error)))
        return replace(trained, sample=replace(sample, found=hits))

    def _measure_untrained(
        self,
        sample: Sample,
        texts: Mapping[int, tuple[str, str | None]],
        encoded: Mapping[int, Batch],
    ) -> tuple[survey.PerSentence, dict[int, LinkHits]]:
        """Measure models with random weights on a sample; return their measures and the links that they find.

        `texts` are the sentences of the sample with their pairs, and `encoded` the same sentences as the trained model
        reads them.
        """
        has_role = [measure.role is not None for measure in self._measures]
        targets = {key: single.sentences[0].target for key, single in encoded.items()}
        sums_of_seeds, hits_of_seeds, counts = [], [], np.zeros(0)
        for seed in range(SEEDS):
            untrained = self.source.untrained(seed)
            runner = Runner(untrained, self._settings, self._entries, self.tokens)
            if self.source.generates:  # give it the text that the trained model generates
                encoded = {
                    key: runner.encode(*text_pair, target=targets[key])
                    for key, text_pair in texts.items()
                }
            sums, counts = runner._measure_singles({key: encoded[key] for key in sample.texts})
            sums_of_seeds.append(np.ascontiguousarray(sums[..., has_role]))
            hits_of_seeds.append(runner._find_links(encoded, sample.annotated))
        # The layers of all seeds, one after another.
        hits = {
            key: replace(
                item, hits=np.concatenate([seed[key].hits for seed in hits_of_seeds], axis=2)
            )
            for key, item in hits_of_seeds[0].items()
        }
        counts = np.ascontiguousarray(counts[..., has_role])  # equal for all seeds
        return (np.concatenate(sums_of_seeds, axis=1), counts), hits

    def encode(self, text: str, pair: str | None = None, target: str | None = None) -> Batch:
        """Encode one sentence as a batch; if two models generate text, both get the text of the first model."""
        if target is None and self.leader is not None:
            target = self.leader.encode(text, pair).sentences[0].target
        kind = self._settings.kind
        batch = self.source.encode([text], [pair], kind=kind, targets=[target])
        generated = batch.sentences[0].target
        if self._of_two and target is None and generated is not None:
            return self.encode(text, pair, generated)
        return batch

    def run(
        self, batch: Batch, annotated: Sequence[Annotation | None]
    ) -> tuple[KeptRows | None, Survey]:
        """Measure a batch; return its rows of attention, if two models are compared, and its survey.

        `annotated` has the links between words of each sentence, or None.
        """
        sentences = batch.sentences
        # Annotations are about the words of the input. In a sentence with separate keys (cross attention), one side of
        # the attention is generated text, so its annotation is not used.
        usable = [
            item if sentence.keys is None else None
            for item, sentence in zip(annotated, sentences, strict=True)
        ]
        find = LinkFinder(usable)
        others = [find] if any(usable) else []
        measured, receipt = self._stream(batch, others, keep_rows=self._of_two)
        keys, sums, counts = _keys(batch), measured.sums, measured.counts
        linked = _annotated_sentences(keys, usable, find.result()) if any(usable) else []
        link_counts = None
        if any(annotated):
            hits = [(item.key, item.hits) for item in linked]
            link_counts = relations.count_links(hits, *sums.shape[1:3])
            n_annotated = sum(item is not None for item in annotated)
            link_counts = replace(link_counts, n_other=n_annotated - len(linked))
        enough = np.array([item.enough_rows for item in self._measures], dtype=np.float64)
        return measured.rows, Survey(
            about=About(
                model=self.source.name,
                weights=self._digest,
                kind=batch.kind or self.source.kinds[0],
                sample=self._settings.controls,
            ),
            measures=tuple(item.name for item in self._measures),
            heads=tally.tally_sentences(sums, counts[:, :, None], keys),
            offsets=tally.tally_sentences(measured.fixed, measured.fixed_counts[:, None], keys),
            examples=survey.examples_of(
                sums, counts, keys, [item.text for item in sentences], enough
            ),
            sample=self._sample(batch, keys, (sums, counts), linked),
            relations=link_counts,
            n_tokens=int(batch.real.sum()),
            n_cut=sum(sentence.is_cut for sentence in sentences),
            worst=receipt.differences,
            proves=receipt.proves,
        )

    def _sample(
        self,
        batch: Batch,
        keys: Sequence[int],
        measured: survey.PerSentence,
        linked: Sequence[AnnotatedSentence],
    ) -> Sample:
        """Return the sample of a batch: sentences with the smallest keys, and their measures that may give a role."""
        size = self._settings.controls
        text_of_key = {
            key: (item.text, item.pair) for key, item in zip(keys, batch.sentences, strict=True)
        }
        texts = dict(sorted(text_of_key.items())[:size])
        rows = [keys.index(key) for key in texts]
        columns = [column for column, item in enumerate(self._measures) if item.role is not None]
        sums, counts = (
            values[rows][..., columns].astype(np.float32, order="C") for values in measured
        )
        annotated: dict[int, Annotation] = {}
        if size:
            annotated = relations.sample_links((item.key, item.annotation) for item in linked)
        hits = {
            item.key: item.hits for item in linked if item.annotation == annotated.get(item.key)
        }
        return Sample(
            size=size,
            texts=texts,
            roles=tuple(self._measures[column].name for column in columns),
            controls={survey.OWN: (sums, counts)},
            linked={key: text_of_key[key] for key in annotated},
            annotated=annotated,
            own={key: hits[key] for key in annotated},
        )

    def _stream(
        self,
        batch: Batch,
        others: Sequence[Observer] = (),
        *,
        keep_rows: bool = False,
        key_seeds: Sequence[int] | None = None,
    ) -> tuple[BatchMeasures, Receipt]:
        """Run the model on a batch; return its measures and the receipt.

        `others` are further observers; `keep_rows` and `key_seeds` are those of `MeasureCollector`.
        """
        if self._finder is None:
            self._finder = EmbeddingFinder()
            self.source.stream(first_sentence(batch), [self._finder])
        observer = MeasureCollector(
            keep_rows=keep_rows,
            key_seeds=key_seeds,
            embeddings=self._finder.embeddings,
            measures=self._measures,
        )
        receipt = self.source.stream(batch, [observer, *others])
        return observer.result(), receipt

    def _measure_singles(
        self, singles: Mapping[int, Batch], *, permute_keys: bool = False
    ) -> survey.PerSentence:
        """Measure single sentences, in batches; `permute_keys` assigns the weights of each to random keys."""
        sums: dict[int, np.ndarray] = {}
        counts: dict[int, np.ndarray] = {}
        for batch in in_batches(singles, self.tokens):
            key_seeds = list(batch) if permute_keys else None
            measured, _receipt = self._stream(join(batch.values()), key_seeds=key_seeds)
            sums |= zip(batch, measured.sums, strict=True)
            counts |= zip(batch, measured.counts, strict=True)
        return np.stack([sums[key] for key in singles]), np.stack([counts[key] for key in singles])

    def _find_links(
        self, encoded: Mapping[int, Batch], annotated: Mapping[int, Annotation]
    ) -> dict[int, LinkHits]:
        """Return the links that the heads find in annotated sentences, by the key of the sentence."""
        hits: dict[int, LinkHits] = {}
        for batch in in_batches({key: encoded[key] for key in annotated}, self.tokens):
            find = LinkFinder([annotated[key] for key in batch])
            self.source.stream(join(batch.values()), [find])
            for key, hits_of_sentence in zip(batch, find.result(), strict=True):
                if hits_of_sentence is not None:
                    hits[key] = hits_of_sentence
        return {key: hits[key] for key in annotated if key in hits}


def check_readable(text: str, sources: Sequence[Source], settings: SurveySettings) -> None:
    """Make sure that a model can read a sentence, and two models the same tokens of it.

    Raises InputError: a model cannot read it; ModelError: two models read different tokens, or have different kinds of
    attention; SelectionError: the first of two models has no such attention.
    """
    _encode(_runners(sources, settings), text)


def _runners(
    sources: Sequence[Source],
    settings: SurveySettings,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
) -> list[Runner]:
    """Return a runner per model; the kind of attention is fixed if two models could differ in it."""
    if len(sources) == 1:
        return [Runner(sources[0], settings, measures, tokens)]
    source, against = sources
    kind = expect_kind(source, settings.kind, None)
    _expect_both(source, against, kind)
    if len(source.kinds) > 1 or len(against.kinds) > 1:
        settings = replace(settings, kind=kind)
    first = Runner(source, settings, measures, tokens, of_two=True)
    second = Runner(against, settings, measures, tokens, of_two=True)
    second.leader = first if source.generates else None
    return [first, second]


def _expect_both(source: Source, against: Source, kind: Kind) -> None:
    """Raise ModelError if the second model has no attention of this kind."""
    if kind not in against.kinds:
        raise ModelError(
            f"{source.name} has {kind} attention to compare, and {against.name} has "
            f"{' and '.join(against.kinds)}: choose a kind that both have"
        )


def _encode(runners: Sequence[Runner], text: str, where: str = "") -> tuple[Batch, ...]:
    """Encode a sentence with each model; `where` is its place in a file for messages, such as "line 7, "."""
    check_text(text)
    first = runners[0].encode(text)
    if len(runners) == 1:
        return (first,)
    source, against = (runner.source for runner in runners)
    second = runners[1].encode(text, target=first.sentences[0].target)
    _expect_both(source, against, first.kind or source.kinds[0])
    pieces, pieces_second = (
        [(token.piece, token.special) for token in (*sentence.tokens, *(sentence.keys or ()))]
        for sentence in (first.sentences[0], second.sentences[0])
    )
    if pieces != pieces_second:
        counts = f"{len(pieces)} tokens to {source.name}, {len(pieces_second)} to {against.name}"
        piece, piece_second = next(
            pair
            for pair in zip_longest(pieces, pieces_second, fillvalue=("", False))
            if pair[0] != pair[1]
        )
        raise ModelError(
            f"these models do not read the same tokens: {where}“{clip(visible(text), 40)}” is {counts}, first "
            f"{clip(visible(piece[0]), 20)!r} and {clip(visible(piece_second[0]), 20)!r}"
        )
    return first, second
