"""Measurement of a corpus with one model or two: batched by length, streamed, in constant memory."""

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

TOKENS = 2048  # tokens per batch, padding included: enough to keep all cores busy
SEEDS = 8  # number of models with random weights, whose best heads are a control of each role
WINDOW = 512  # number of lines that are sorted by length before they are cut into batches


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
    """Measure every head of a model on every sentence of a corpus, and measure the controls.

    Lines that cannot be used, or that a model cannot read, are counted, and the first of them are kept.

    Args:
        lines: the sentences.
        source: the model.
        settings: the settings of the measurement.
        against: a second model, which is measured on the same sentences. If the models generate text, it is given the
            text that the first model generates.
        measures: the measures.
        tokens: the largest number of tokens per batch, padding included.
        so_far: the survey of an earlier run over the first `n_lines` lines.
        n_lines: the number of lines to skip.
        tell: called with the survey and the number of lines read, after each window of lines.
        corpus: the name of the lines in messages.

    Raises:
        InputError: no sentence is left.
        ModelError: a model cannot be run, its weights are not proved, or the two models read different tokens or have
            different numbers of layers or heads.
        SelectionError: the first of two models has no such attention.
    """
    runners = _runners(source, against, settings, measures, tokens)
    corpus_survey, bad, n_bad = so_far, list[BadLine](), 0
    remaining = islice(lines, n_lines, None)
    while window := list(islice(remaining, WINDOW)):
        bad += [line for line in window if isinstance(line, BadLine)]
        sentences = [line for line in window if isinstance(line, CorpusLine)]
        for batch_survey in _measure(runners, sentences, bad):
            corpus_survey = (
                batch_survey if corpus_survey is None else survey.merge(corpus_survey, batch_survey)
            )
        n_lines += len(window)
        bad.sort(key=lambda line: line.number)
        # Without any sentence yet, keep only the first bad lines, so that hours of them fit in memory.
        if corpus_survey is None:
            n_bad, bad = n_bad + len(bad[BAD_LINES:]), bad[:BAD_LINES]
        else:
            corpus_survey = corpus_survey.with_bad(bad, n_bad + len(bad))
            n_bad, bad = 0, []
            if tell is not None:
                tell(corpus_survey, n_lines)
    if corpus_survey is None:
        first_reason = f": line {bad[0].number}: {bad[0].reason}" if bad else ""
        start = f"{corpus}: " if corpus else ""
        raise InputError(f"{start}there is no sentence to measure heads on{first_reason}")
    corpus_survey = runners[0].with_controls(corpus_survey)
    if corpus_survey.against is not None:
        second_survey = runners[1].with_controls(corpus_survey.against.survey)
        corpus_survey = replace(
            corpus_survey, against=replace(corpus_survey.against, survey=second_survey)
        )
    return corpus_survey


def _measure(
    runners: Sequence[Runner], lines: Sequence[CorpusLine], bad: list[BadLine]
) -> Iterator[Survey]:
    """Measure lines batch by batch; lines that a model cannot read are added to `bad`."""
    encoded: list[tuple[tuple[Batch, ...], Annotation | None]] = []
    for line in lines:
        try:
            encoded.append((_read_by(runners, line.text, f"line {line.number}, "), line.annotated))
        except InputError as error:
            bad.append(BadLine(number=line.number, reason=str(error)))
    for batch_rows in in_batches(
        {row: batches[0] for row, (batches, _) in enumerate(encoded)}, runners[0].tokens
    ):
        read_by = zip(*(encoded[row][0] for row in batch_rows), strict=True)
        yield _run(runners, list(map(join, read_by)), [encoded[row][1] for row in batch_rows])


def _run(
    runners: Sequence[Runner], batches: Sequence[Batch], annotated: Sequence[Annotation | None]
) -> Survey:
    """Measure a batch; with two models, also the divergence between their rows."""
    measured, batch_survey = runners[0].run(batches[0], annotated)
    if len(runners) == 1:
        return batch_survey
    measured_second, second_survey = runners[1].run(batches[1], annotated)
    shape, shape_second = batch_survey.heads.sums.shape[1:3], second_survey.heads.sums.shape[1:3]
    if shape != shape_second:
        sizes = [f"{n_layers} x {n_heads}" for n_layers, n_heads in (shape, shape_second)]
        raise ModelError(
            "heads are compared one by one, and these models have other numbers of them (layers x heads): "
            f"{batch_survey.about.model} has {sizes[0]}, {second_survey.about.model} {sizes[1]}"
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
    return replace(batch_survey, against=Against(survey=second_survey, divergences=divergences))


def _keys(batch: Batch) -> list[int]:
    return [tally.key_of(sentence.text, sentence.pair) for sentence in batch.sentences]


class Runner:
    """A model and everything needed to measure its heads, in batches of at most `tokens` tokens.

    `of_two` says whether it is one of two models that are compared.
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
        self.source, self.tokens = source, tokens
        self._settings, self._entries, self._of_two = settings, measures, of_two
        # The first of two models, if they generate text: this model is given the text that the leader generates.
        self.leader: Runner | None = None
        self._measures = of_rows(measures_of(measures))
        self._weights: FindWeights | None = None

    @cached_property
    def _digest(self) -> str:
        return self.source.digest()

    def with_controls(self, found: Survey) -> Survey:
        """Return a survey with the controls, measured on its sample."""
        sample = found.sample
        if not sample.texts:  # the settings ask for no controls
            return found
        texts = {**sample.linked, **sample.texts}
        encoded = {key: self.encode(*text_pair) for key, text_pair in texts.items()}
        singles = {key: encoded[key] for key in sample.texts}
        shuffled_or_none = {key: shuffle(single, key) for key, single in singles.items()}
        shuffled = {key: batch for key, batch in shuffled_or_none.items() if batch is not None}
        controls = dict(sample.controls)
        if len(shuffled) == len(singles):
            controls[SHUFFLED] = self._control(shuffled)
        controls[CHANCE] = self._control(singles, dealt=True)
        sample = replace(sample, controls=controls)
        try:
            random, hits = self._random_weights(sample, texts, encoded)
        except ModelError as error:
            return replace(found, sample=replace(sample, no_random=str(error)))
        controls[UNTRAINED] = random
        return replace(found, sample=replace(sample, found=hits))

    def _random_weights(
        self,
        sample: Sample,
        texts: Mapping[int, tuple[str, str | None]],
        encoded: Mapping[int, Batch],
    ) -> tuple[survey.PerSentence, dict[int, LinkHits]]:
        """Measure models with random weights on a sample; return their measures and the links that they find."""
        has_role = [measure.role is not None for measure in self._measures]
        sums, links, counts = [], [], np.zeros(0)
        for seed in range(SEEDS):
            random_runner = Runner(
                self.source.untrained(seed), self._settings, self._entries, self.tokens
            )
            if self.source.generates:  # give it the text that the trained model generates
                targets = {key: single.sentences[0].target for key, single in encoded.items()}
                encoded = {
                    key: random_runner.encode(*text_pair, target=targets[key])
                    for key, text_pair in texts.items()
                }
            measured, counts = random_runner._control({key: encoded[key] for key in sample.texts})
            sums.append(np.ascontiguousarray(measured[..., has_role]))
            annotated = {
                key: (encoded[key], annotation) for key, annotation in sample.annotated.items()
            }
            links.append(random_runner._links(annotated))
        hits = {
            key: replace(link_hits, hits=np.concatenate([seed[key].hits for seed in links], axis=2))
            for key, link_hits in links[0].items()
        }
        counted = np.ascontiguousarray(counts[..., has_role])
        return (np.concatenate(sums, axis=1), counted), hits

    def encode(self, text: str, pair: str | None = None, target: str | None = None) -> Batch:
        """Encode one sentence as a batch; if two models generate text, both get the text of the first model."""
        if target is None and self.leader is not None:
            target = self.leader.encode(text, pair).sentences[0].target
        settings = self._settings
        # A generated text without an end is one word longer than the limit; truncating it makes both texts equal.
        truncate = settings.truncate or target is not None
        batch = self.source.encode(
            [text], [pair], truncate=truncate, kind=settings.kind, targets=[target]
        )
        generated = batch.sentences[0].target
        if self._of_two and target is None and generated is not None:
            return self.encode(text, pair, generated)
        return batch

    def run(
        self, batch: Batch, annotated: Sequence[Annotation | None]
    ) -> tuple[BatchMeasures, Survey]:
        """Measure a batch; return all its measures with the rows of attention, and its survey.

        `annotated` has the links between words of each sentence, or None.
        """
        settings, sentences = self._settings, batch.sentences
        # Annotations are about the words of the input. In a sentence with separate keys (cross attention), one side of
        # the attention is generated text, so its annotation is not used.
        usable = [
            item if sentence.keys is None else None
            for item, sentence in zip(annotated, sentences, strict=True)
        ]
        find = FindLinks(usable)
        measured, receipt = self._stream(batch, [find] if any(usable) else [], keep_rows=True)
        keys = _keys(batch)
        sums, counts = measured.sums, measured.counts
        enough = np.array([item.enough_rows for item in self._measures], dtype=np.float64)
        linked: list[tuple[int, Annotation, LinkHits]] = []
        if any(usable):
            triples = zip(keys, usable, find.result(), strict=True)
            linked = [
                (key, annotation, item) for key, annotation, item in triples if annotation and item
            ]
        n_annotated = len(list(filter(None, annotated)))
        related = None
        if n_annotated:
            hits = [(key, item) for key, _annotation, item in linked]
            related = relations.count_links(hits, *sums.shape[1:3])
            related = replace(related, n_other=n_annotated - len(linked))
        return measured, Survey(
            about=About(
                model=self.source.name,
                weights=self._digest,
                kind=batch.kind or self.source.kinds[0],
                sample=settings.controls,
            ),
            measures=tuple(item.name for item in self._measures),
            heads=tally.tally_sentences(sums, counts[:, :, None], keys),
            offsets=tally.tally_sentences(measured.fixed, measured.fixed_counts[:, None], keys),
            places=survey.places_of(measured.corner, measured.corner_seen, keys),
            examples=survey.examples_of(
                sums, counts, keys, [item.text for item in sentences], enough
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
        """Return the sentences with the smallest keys, with the measures there that may give a role."""
        size = self._settings.controls
        text_of_key = {
            key: (item.text, item.pair) for key, item in zip(keys, batch.sentences, strict=True)
        }
        texts = dict(sorted(text_of_key.items())[:size])
        rows = [keys.index(key) for key in texts]
        places = [number for number, item in enumerate(self._measures) if item.role is not None]
        own_values = tuple(
            values[rows][..., places].astype(np.float32, order="C") for values in measured
        )
        annotated = (
            relations.sample_links((key, annotation) for key, annotation, _ in linked)
            if size
            else {}
        )
        hits = {key: item for key, annotation, item in linked if annotation == annotated.get(key)}
        return Sample(
            size=size,
            texts=texts,
            roles=tuple(self._measures[place].name for place in places),
            controls={survey.OWN: (own_values[0], own_values[1])},
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
        dealt: Sequence[int] | None = None,
    ) -> tuple[BatchMeasures, Receipt]:
        """Run the model on a batch; return its measures and the receipt.

        `others` are further observers; `keep_rows` and `dealt` are those of `MeasureHeads`.
        """
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
        """Measure single sentences in batches; `dealt` assigns their weights to random keys."""
        parts: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for batch_keys in in_batches(singles, self.tokens):
            measured, _ = self._stream(
                join(batch_keys.values()), dealt=list(batch_keys) if dealt else None
            )
            parts |= zip(batch_keys, zip(measured.sums, measured.counts, strict=True), strict=True)
        sums, counts = (np.stack([parts[key][part] for key in singles]) for part in (0, 1))
        return sums, counts

    def _links(self, sentences: Mapping[int, tuple[Batch, Annotation]]) -> dict[int, LinkHits]:
        """Return the links that the heads find in annotated sentences, by the key of the sentence."""
        hits: dict[int, LinkHits | None] = {}
        for batch_keys in in_batches(
            {key: single for key, (single, _) in sentences.items()}, self.tokens
        ):
            find = FindLinks([sentences[key][1] for key in batch_keys])
            self.source.stream(join(batch_keys.values()), [find])
            hits |= zip(batch_keys, find.result(), strict=True)
        return {key: found_links for key in sentences if (found_links := hits[key]) is not None}


def check_readable(
    text: str, source: Source, settings: SurveySettings | None = None, against: Source | None = None
) -> None:
    """Make sure that a model can read a sentence, and two models the same tokens of it.

    Raises InputError: a model cannot read it; ModelError: two models read different tokens, or have different kinds of
    attention; SelectionError: the first of two models has no such attention.
    """
    _read_by(_runners(source, against, settings), text)


def _runners(
    source: Source,
    against: Source | None,
    settings: SurveySettings | None,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
) -> list[Runner]:
    """Return a runner per model; the kind of attention is fixed if two models could differ in it."""
    settings = settings or SurveySettings()
    if against is None:
        return [Runner(source, settings, measures, tokens)]
    kind = expect_kind(source, settings.kind, None)
    _expect_both(source, against, kind)
    if len(source.kinds) > 1 or len(against.kinds) > 1:
        settings = replace(settings, kind=kind)
    first, second = (
        Runner(model, settings, measures, tokens, of_two=True) for model in (source, against)
    )
    second.leader = first if source.generates else None
    return [first, second]


def _expect_both(source: Source, against: Source, kind: Kind) -> None:
    """Raise ModelError if the second model has no attention of this kind."""
    if kind not in against.kinds:
        raise ModelError(
            f"{source.name} has {kind} attention to compare, and {against.name} has "
            f"{' and '.join(against.kinds)}: choose a kind that both have"
        )


def _read_by(runners: Sequence[Runner], text: str, where: str = "") -> tuple[Batch, ...]:
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
