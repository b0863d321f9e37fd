"""A corpus run through a model, or through two: batched by length, measured as it streams by, at constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

import numpy as np

from attnviz.attention import Kind, Receipt, Token
from attnviz.capture.batching import in_batches, join, shuffle, take_first
from attnviz.capture.observers import Batch, Observer, Sentence
from attnviz.capture.sources import Source, expect_kind
from attnviz.errors import InputError, ModelError
from attnviz.heads import relations, survey, tally
from attnviz.heads.capture.divergences import divergence_between, divergences
from attnviz.heads.capture.measure import BatchMeasures, FindLinks, FindWeights, MeasureHeads
from attnviz.heads.changes.compare import check_alike
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
from attnviz.heads.survey import BAD_LINES, About, Sample, Survey, Surveys
from attnviz.text.corpus import Annotation, BadLine, CorpusLine
from attnviz.text.display import check_text, clip, visible

TOKENS = 2048  # tokens in a batch, padding included: as many as keep the cores busy
SEEDS = 8  # models of random weights, each of another seed, whose best heads a role is held against
WINDOW = 512  # so many lines are sorted by length before they are cut into batches
TOKENS_SHOWN = 6
"""Of a sentence that two models cut in two ways, so many tokens are named, from the last one that is the same on."""


def survey_models(
    lines: Iterable[CorpusLine | BadLine],
    sources: Sequence[Source],
    settings: SurveySettings | None = None,
    *,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
    so_far: Surveys | None = None,
    n_lines: int = 0,
    tell: Callable[[Surveys, int], object] | None = None,
    corpus: str = "",
) -> Surveys:
    """Measure every head of a model, or of two, on every sentence of a corpus, and take the controls.

    What the first model says, where it says something, the second is made to say. Lines that cannot be used, or
    that a model cannot read, are counted and named. `tokens` has a batch at most, padding included; `so_far` is
    what an earlier run kept of the first `n_lines`, which are passed over; `tell` is told likewise after each window
    of lines; `corpus` is what messages call the lines. Raises InputError: no sentence is left; ModelError: a model
    cannot be run, its weights are not proved, or two cut a sentence into other tokens or have other kinds of
    attention; RecordError: two models have other numbers of layers or heads; SelectionError: the first of two has no
    such attention.
    """
    sides = _sides(sources, settings, measures, tokens)
    found, bad, n_bad = so_far, list[BadLine](), 0
    rest = islice(lines, n_lines, None)
    while window := list(islice(rest, WINDOW)):
        bad += [line for line in window if isinstance(line, BadLine)]
        for one in _measure(sides, [line for line in window if isinstance(line, CorpusLine)], bad):
            found = one if found is None else found.merge(one)
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
    return replace(found, each=tuple(map(Runner.with_controls, sides, found.each)))


def _measure(
    sides: Sequence[Runner], lines: Sequence[CorpusLine], bad: list[BadLine]
) -> Iterator[Surveys]:
    """What lines say, a batch at a time; those that no model can read are added to the bad."""
    given: list[tuple[tuple[Batch, ...], Annotation | None]] = []
    for line in lines:
        try:
            given.append((_read_by(sides, line.text, f"line {line.number}, "), line.annotated))
        except InputError as error:
            bad.append(BadLine(number=line.number, reason=str(error)))
    for together in in_batches(
        {at: several[0] for at, (several, _) in enumerate(given)}, sides[0].tokens
    ):
        read_by = zip(*(given[at][0] for at in together), strict=True)
        yield _run(sides, list(map(join, read_by)), [given[at][1] for at in together])


def _run(
    sides: Sequence[Runner], batches: Sequence[Batch], annotated: Sequence[Annotation | None]
) -> Surveys:
    """What a batch says that each model runs on; and of two models, how far apart their rows are."""
    ran = [side.run(batch, annotated) for side, batch in zip(sides, batches, strict=True)]
    each = tuple(found for _, found in ran)
    if len(sides) == 1:
        return Surveys(each=each)
    check_alike(*each)
    (rows, counted), (rows_after, counted_after) = (
        measured.rows for measured, _ in ran if measured.rows
    )
    if not bool((counted == counted_after.to(counted.device)).all()):
        raise ModelError(
            "these models let other tokens look at others: their patterns are not of the same rows"
        )
    sums = divergence_between(rows, rows_after.to(rows.device), counted)
    n_rows = counted.sum(dim=1).double().cpu().numpy()[:, None, None]
    shape = each[0].heads.sums.shape[1:3]
    return Surveys(
        each=each,
        divergences=tally.tally_sentences(sums.reshape(-1, *shape), n_rows, _keys(batches[0])),
    )


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
        self.leader: Runner | None = (
            None  # of two, what generates: what it does, this is made to generate
        )
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
        mixed = {
            key: one for key, single in singles.items() if (one := shuffle(single, key)) is not None
        }
        if len(mixed) == len(singles):
            controls[SHUFFLED] = self._control(mixed)
        controls[CHANCE] = self._control(singles, dealt=True)
        places = [one.role is not None for one in self._measures]
        sums, links, counts = [], [], np.zeros(0)
        for seed in range(SEEDS):
            try:
                source = self.source.untrained(seed)
            except ModelError as error:
                return replace(
                    found, sample=replace(sample, controls=controls, no_random=str(error))
                )
            other = Runner(source, self._settings, self._entries, self.tokens)
            if self.source.generates:  # it reads what the trained model generates
                said = {key: single.sentences[0].target for key, single in read.items()}
                read = {key: other.encode(*given, target=said[key]) for key, given in texts.items()}
            measured, counts = other._control({key: read[key] for key in sample.texts})
            sums.append(np.ascontiguousarray(measured[..., places]))
            links.append(
                other._links({key: (read[key], one) for key, one in sample.annotated.items()})
            )
        controls[UNTRAINED] = (
            np.concatenate(sums, axis=1),
            np.ascontiguousarray(counts[..., places]),
        )
        hits = {
            key: replace(one, hits=np.concatenate([seed[key].hits for seed in links], axis=2))
            for key, one in links[0].items()
        }
        return replace(found, sample=replace(sample, controls=controls, found=hits))

    def encode(self, text: str, pair: str | None = None, target: str | None = None) -> Batch:
        """A batch of one sentence; what the leader of two models generates, or else this one, is what both must say."""
        if target is None and self.leader is not None:
            target = self.leader.encode(text, pair).sentences[0].target
        settings = self._settings
        # What a model says that never ends has a word more than may be given: cut alike, both say the same.
        truncate = settings.truncate or target is not None
        read = self.source.encode(
            [text], [pair], truncate=truncate, kind=settings.kind, targets=[target]
        )
        said = read.sentences[0].target
        return (
            read
            if not self._of_two or target is not None or said is None
            else self.encode(text, pair, said)
        )

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
        links = (
            [FindLinks(between, settings.specials)]
            if any(one is not None for one in between)
            else []
        )
        measured, receipt = self._stream(
            batch, links, keep_rows=self._of_two or settings.similarity
        )
        keys = _keys(batch)
        sums, counts = measured.sums, measured.counts
        enough = np.array([one.enough_rows for one in self._measures], dtype=np.float64)
        linked = [
            (key, said, one)
            for find in links
            for key, said, one in zip(keys, between, find.result(), strict=True)
            if said is not None and one is not None
        ]
        n_said = sum(one is not None for one in annotated)
        related = (
            relations.count_links([(key, one) for key, _, one in linked], *sums.shape[1:3])
            if n_said
            else None
        )
        return measured, Survey(
            about=About(
                model=self.source.name,
                weights=self._digest,
                kind=batch.kind or self.source.kinds[0],
                specials=settings.specials,
                sample=settings.controls,
                max_offset=settings.max_offset,
            ),
            measures=tuple(one.name for one in self._measures),
            heads=tally.tally_sentences(sums, counts[:, :, None], keys),
            offsets=tally.tally_sentences(measured.fixed, measured.fixed_counts[:, None], keys),
            places=survey.places_of(measured.corner, measured.corner_seen, keys),
            examples=survey.examples_of(
                sums, counts, keys, [one.text for one in sentences], enough
            ),
            sample=self._sample(batch, keys, (sums, counts), linked),
            similarity=divergences(*measured.rows)
            if settings.similarity and measured.rows
            else None,
            relations=related and replace(related, n_other=n_said - len(linked)),
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
            self.source.stream(take_first(batch), [self._weights])
        observer = MeasureHeads(
            self._settings.specials,
            self._weights.handed,
            keep_rows=keep_rows,
            dealt=dealt,
            embeddings=self._weights.embeddings,
            measures=self._measures,
            max_offset=self._settings.max_offset,
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
            find = FindLinks([given[key][1] for key in together], self._settings.specials)
            self.source.stream(join(together.values()), [find])
            hits |= zip(together, find.result(), strict=True)
        return {key: one for key in given if (one := hits[key]) is not None}


def check_readable(
    text: str, sources: Sequence[Source], settings: SurveySettings | None = None
) -> None:
    """Make sure that a model can read a sentence, and two the same tokens of it.

    Raises InputError: one cannot read it; ModelError: two cut it into other tokens, or have other kinds of attention;
    SelectionError: the first of two has no such attention.
    """
    _read_by(_sides(sources, settings), text)


def _sides(
    sources: Sequence[Source],
    settings: SurveySettings | None,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
) -> list[Runner]:
    settings = settings or SurveySettings()
    if len(sources) == 1:
        return [Runner(sources[0], settings, measures, tokens)]
    before, after = sources
    kind = expect_kind(before, settings.kind, None)
    _expect_both(before, after, kind)
    if len(before.kinds) + len(after.kinds) > len(
        sources
    ):  # a model of one's own has one, known when it has read
        settings = replace(settings, kind=kind)
    one, other = (Runner(source, settings, measures, tokens, of_two=True) for source in sources)
    other.leader = one if before.generates else None
    return [one, other]


def _expect_both(before: Source, after: Source, kind: Kind) -> None:
    if kind not in after.kinds:
        raise ModelError(
            f"{before.name} has {kind} attention to compare, and {after.name} has {' and '.join(after.kinds)}: "
            "choose a kind that both have"
        )


def _read_by(sides: Sequence[Runner], text: str, where: str = "") -> tuple[Batch, ...]:
    """A sentence as each model reads it; `where` it is of many, such as "line 7, "."""
    check_text(text)
    first = sides[0].encode(text)
    others = [side.encode(text, target=first.sentences[0].target) for side in sides[1:]]
    for side, other in zip(sides[1:], others, strict=True):
        _expect_both(sides[0].source, side.source, first.kind or sides[0].source.kinds[0])
        _check_tokens(
            where, first.sentences[0], other.sentences[0], sides[0].source.name, side.source.name
        )
    return first, *others


def _check_tokens(
    where: str, before: Sentence, after: Sentence, name: str, name_after: str
) -> None:
    """Make sure that both models read the very same pieces: only then is a row of one the row of the other."""
    for one, other in ((before.tokens, after.tokens), (before.keys or (), after.keys or ())):
        pieces = [[(token.piece, token.special) for token in tokens] for tokens in (one, other)]
        if pieces[0] == pieces[1]:
            continue
        same = next(
            (at for at, pair in enumerate(zip(*pieces, strict=False)) if pair[0] != pair[1]), None
        )
        start = max(0, (min(len(one), len(other)) if same is None else same) - 1)
        raise ModelError(
            f"these models cut {'sentences' if where else 'this sentence'} into other tokens: {where}"
            f"“{clip(visible(before.text), 40)}”{',' * bool(where)} is {_list_tokens(one, start)} to {name} and "
            f"{_list_tokens(other, start)} to {name_after}; only models of one tokenizer are compared head by head"
        )


def _list_tokens(tokens: Sequence[Token], start: int) -> str:
    shown = " ".join(
        clip(visible(token.piece), 20) for token in tokens[start : start + TOKENS_SHOWN]
    )
    more = len(tokens) > start + TOKENS_SHOWN
    return f"{'… ' if start else ''}{shown}{' …' if more else ''} ({len(tokens)} tokens)"
