"""Measurement of a corpus with one model or two: batched by length, streamed, in constant memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice, zip_longest

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
from attnviz.heads.measures import MEASURES, Measure, measures_of
from attnviz.heads.relations import LinkedSentence, LinkHits
from attnviz.heads.settings import SurveySettings
from attnviz.heads.survey import Against, Controls, Part, SampledSentence, Survey
from attnviz.text.corpus import Annotation, BadLine, CorpusLine
from attnviz.text.display import check_text, clip, visible

TOKENS = 2048  # tokens per batch, padding included: enough to keep all cores busy
SEEDS = 8  # number of models with random weights, whose best heads are a control of each role
WINDOW = 512  # number of lines that are sorted by length before they are cut into batches


class Surveyor:
    """Measures every head of a model, or of two models on the same sentences.

    Args:
        sources: the model, or two models. If they generate text, the second is given the text that the first generates.
        settings: the settings of the measurement.
        measures: the measures.
        tokens: the largest number of tokens per batch, padding included.

    Raises:
        ModelError: the second model has no attention of this kind.
        SelectionError: the first of two models has no such attention.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        settings: SurveySettings,
        measures: tuple[Measure, ...] = MEASURES,
        tokens: int = TOKENS,
    ) -> None:
        source, *others = sources
        if others:
            kind = expect_kind(source, settings.kind, None)
            _expect_both(source, others[0], kind)
            if len(source.kinds) > 1 or len(others[0].kinds) > 1:
                settings = replace(settings, kind=kind)
        self._first, *second = (
            Runner(one, settings, measures, tokens, of_two=bool(others)) for one in sources
        )
        self._second = second[0] if second else None

    def measure(self, lines: Iterable[CorpusLine | BadLine]) -> Iterator[Part]:
        """Measure every head on every sentence of a corpus, or of a part of it; yield what is measured so far.

        Lines that cannot be used, or that a model cannot read, are counted, and the first of them are kept.

        Raises ModelError: a model cannot be run, its weights are not proved, or the two models read different tokens
        or have different numbers of layers or heads.
        """
        so_far = Part()
        remaining = iter(lines)
        while window := list(islice(remaining, WINDOW)):
            bad = [line for line in window if isinstance(line, BadLine)]
            sentences = [line for line in window if isinstance(line, CorpusLine)]
            for batch_survey in self._measure_window(sentences, bad):
                so_far = so_far.merge(Part(survey=batch_survey))
            bad.sort(key=lambda line: line.number)
            so_far = so_far.merge(Part(bad=tuple(bad), n_bad=len(bad)))
            yield so_far

    def measure_all(self, lines: Iterable[CorpusLine | BadLine]) -> Part:
        """Measure all lines, as `measure` does."""
        last = deque(self.measure(lines), maxlen=1)
        return last[0] if last else Part()

    def add_controls(self, measured: Survey) -> Survey:
        """Return a survey with its controls, measured on its sample of sentences.

        Raises ModelError: a model cannot be run, or its weights are not proved.
        """
        if not measured.sample:  # the settings ask for no controls
            return measured
        texts = {key: sentence.text for key, sentence in measured.linked.items()}
        texts |= {key: sentence.text for key, sentence in measured.sample.items()}
        self._first.source.prepare(list(texts.values()))
        encoded = {key: self.encode(text) for key, text in texts.items()}
        singles = {key: batches[0] for key, batches in encoded.items()}
        measured = self._first.add_controls(measured, singles)
        if self._second is None or measured.against is None:
            return measured
        singles = {key: batches[1] for key, batches in encoded.items()}
        second = self._second.add_controls(measured.against.survey, singles)
        return replace(measured, against=replace(measured.against, survey=second))

    def _measure_window(self, lines: Sequence[CorpusLine], bad: list[BadLine]) -> Iterator[Survey]:
        """Yield the surveys of lines, batch by batch; lines that a model cannot read are added to `bad`."""
        encoded: list[tuple[Batch, ...]] = []  # each sentence, as each model reads it
        annotated: list[Annotation | None] = []
        self._first.source.prepare([line.text for line in lines])
        for line in lines:
            try:
                encoded.append(self.encode(line.text, f"line {line.number}, "))
            except InputError as error:
                bad.append(BadLine(number=line.number, reason=str(error)))
            else:
                annotated.append(line.annotated)
        by_first_model = {number: batches[0] for number, batches in enumerate(encoded)}
        for numbers in in_batches(by_first_model, self._first.tokens):
            singles_by_model = zip(*(encoded[number] for number in numbers), strict=True)
            batches = list(map(join, singles_by_model))
            yield self._survey_batch(batches, [annotated[number] for number in numbers])

    def _survey_batch(
        self, batches: Sequence[Batch], annotated: Sequence[Annotation | None]
    ) -> Survey:
        """Measure a batch, which each model has encoded; with two models, also the divergence between their rows."""
        rows, batch_survey = self._first.run(batches[0], annotated)
        if self._second is None:
            return batch_survey
        second_rows, second_survey = self._second.run(batches[1], annotated)
        shape, second_shape = (one.heads.sums.shape[1:3] for one in (batch_survey, second_survey))
        if shape != second_shape:
            sizes = [f"{n_layers} x {n_heads}" for n_layers, n_heads in (shape, second_shape)]
            raise ModelError(
                "heads are compared one by one, so both models need the same numbers of layers and heads: "
                f"{batch_survey.model} has {sizes[0]}, {second_survey.model} has {sizes[1]}"
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
        divergences = tally.tally_sentences(sums.reshape(-1, *shape), n_rows, _keys_of(batches[0]))
        against = Against(survey=second_survey, divergences=divergences)
        return replace(batch_survey, against=against)

    def encode(self, text: str, where: str = "") -> tuple[Batch, ...]:
        """Encode a sentence with each model; `where` is its place in a file for messages, such as "line 7, ".

        Raises InputError: a model cannot read it; ModelError: two models read different tokens.
        """
        check_text(text)
        batch = self._first.encode(text)
        if self._second is None:
            return (batch,)
        source, against = self._first.source, self._second.source
        target = batch.sentences[0].target
        if target is not None:  # both models are given the text that the first generates
            batch = self._first.encode(text, target)
        second_batch = self._second.encode(text, target)
        _expect_both(source, against, batch.kind or source.kinds[0])
        pieces, second_pieces = (
            [(token.piece, token.special) for token in (*sentence.tokens, *(sentence.keys or ()))]
            for sentence in (batch.sentences[0], second_batch.sentences[0])
        )
        if pieces != second_pieces:
            (piece, _), (second_piece, _) = next(
                pair
                for pair in zip_longest(pieces, second_pieces, fillvalue=("", False))
                if pair[0] != pair[1]
            )
            raise ModelError(
                f"these models do not read the same tokens: {where}“{clip(visible(text), 40)}” is "
                f"{len(pieces)} tokens to {source.name}, {len(second_pieces)} to {against.name}, first "
                f"{clip(visible(piece), 20)!r} and {clip(visible(second_piece), 20)!r}"
            )
        return batch, second_batch


def _expect_both(source: Source, against: Source, kind: Kind) -> None:
    """Raise ModelError if the second model has no attention of this kind."""
    if kind not in against.kinds:
        raise ModelError(
            f"{source.name} has {kind} attention to compare, and {against.name} has "
            f"{' and '.join(against.kinds)}: choose a kind that both have"
        )


def _keys_of(batch: Batch) -> list[int]:
    """Return the hash of each sentence of a batch."""
    return [tally.key_of(sentence.text) for sentence in batch.sentences]


class Runner:
    """One model and everything needed to measure its heads; `of_two` if it is one of two models."""

    def __init__(
        self,
        source: Source,
        settings: SurveySettings,
        entries: tuple[Measure, ...],
        tokens: int,
        *,
        of_two: bool = False,
    ) -> None:
        # A batch holds at least one sentence, however small its limit is.
        self.source, self.tokens = source, tokens if source.takes_padding else 1
        self._settings, self._entries, self._of_two = settings, entries, of_two
        self._measures = measures_of(entries)
        self._has_role = np.array([measure.role is not None for measure in self._measures])
        self._finder: EmbeddingFinder | None = None  # None before the first batch

    @cached_property
    def _digest(self) -> str:
        return self.source.digest()

    def encode(self, text: str, target: str | None = None) -> Batch:
        """Encode one sentence as a batch, with the text that the model generates if it is known."""
        return self.source.encode([text], kind=self._settings.kind, targets=[target])

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
        keys, sums, counts = _keys_of(batch), measured.sums, measured.counts
        linked: list[tuple[int, LinkedSentence]] = []
        if others:
            found = zip(keys, sentences, usable, find.result(), strict=True)
            linked = [
                (key, LinkedSentence(sentence.text, item, hits))
                for key, sentence, item, hits in found
                if item is not None
            ]
        link_counts = None
        if any(annotated):
            links = [(key, sentence.found) for key, sentence in linked]
            link_counts = relations.count_links(links, *sums.shape[1:3])
            n_annotated = sum(item is not None for item in annotated)
            link_counts = replace(link_counts, n_other=n_annotated - len(linked))
        size = self._settings.controls

        def sampled(row: int) -> SampledSentence:
            single = sums[row].astype(np.float32), counts[row].astype(np.float32)
            return SampledSentence(sentences[row].text, *single)

        return measured.rows, Survey(
            model=self.source.name,
            weights=self._digest,
            kind=batch.kind or self.source.kinds[0],
            heads=tally.tally_sentences(sums, counts[:, :, None], keys),
            offsets=tally.tally_sentences(measured.fixed, measured.fixed_counts[:, None], keys),
            sample_size=size,
            sample={key: sampled(keys.index(key)) for key in sorted(set(keys))[:size]},
            linked=relations.sample_links(linked) if size else {},
            relations=link_counts,
            n_tokens=int(batch.real.sum()),
            n_cut=sum(sentence.is_cut for sentence in sentences),
            worst=receipt.differences,
            proves=receipt.proves,
        )

    def add_controls(self, measured: Survey, encoded: Mapping[int, Batch]) -> Survey:
        """Return the survey of this model with the controls, measured on its sample as the model reads it."""
        singles = {key: encoded[key] for key in measured.sample}
        controls = Controls(chance=self._measure_singles(singles, permute_keys=True))
        try:
            untrained, found = self._measure_untrained(measured, encoded)
            controls = replace(controls, untrained=untrained, found=found)
        except ModelError as error:
            controls = replace(controls, no_random=str(error))
        return replace(measured, controls=controls)

    def _measure_untrained(
        self, measured: Survey, encoded: Mapping[int, Batch]
    ) -> tuple[survey.PerSentence, dict[int, LinkHits]]:
        """Measure models with random weights on a sample; return their measures and the links that they find.

        `encoded` has the sentences of the sample as the trained model reads them.
        """
        annotated = {key: sentence.annotation for key, sentence in measured.linked.items()}
        read = [single.sentences[0] for single in encoded.values()]
        sums_of_seeds, hits_of_seeds, counts = [], [], np.zeros(0)
        for seed in range(SEEDS):
            untrained = self.source.untrained(seed)
            runner = Runner(untrained, self._settings, self._entries, self.tokens)
            if self.source.generates:  # give it the text that the trained model generates
                again = [runner.encode(sentence.text, sentence.target) for sentence in read]
                encoded = dict(zip(encoded, again, strict=True))
            singles = {key: encoded[key] for key in measured.sample}
            sums, counts = runner._measure_singles(singles)
            sums_of_seeds.append(np.ascontiguousarray(sums[..., self._has_role]))
            hits_of_seeds.append(runner._find_links(encoded, annotated))
        # The layers of all seeds, one after another.
        hits = {
            key: replace(
                item, hits=np.concatenate([seed[key].hits for seed in hits_of_seeds], axis=2)
            )
            for key, item in hits_of_seeds[0].items()
        }
        counts = np.ascontiguousarray(counts[..., self._has_role])  # equal for all seeds
        return (np.concatenate(sums_of_seeds, axis=1), counts), hits

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
            hits |= zip(batch, find.result(), strict=True)
        return {key: hits[key] for key in annotated}
