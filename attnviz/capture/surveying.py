"""A corpus run through a model: batched by length, measured as it streams by, at constant memory."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice

import numpy as np
from jaxtyping import Float, Float64
from torch import Tensor

from attnviz.analysis import structure, survey, tally
from attnviz.analysis.heads import Specials, names
from attnviz.analysis.roles import CHANCE, SHUFFLED, UNTRAINED
from attnviz.analysis.similarity import divergences
from attnviz.analysis.similarity_groups import Divergences
from attnviz.analysis.structure import Found, Relations
from attnviz.analysis.survey import Examples, Places, Sample, Survey
from attnviz.attention import Kind, Receipt
from attnviz.capture.batching import alone, in_batches, joined, shuffled
from attnviz.capture.linking import FindLinks
from attnviz.capture.measuring import FindOutputMaps, Measured, MeasureHeads
from attnviz.capture.observers import Batch, Observer, Sentence
from attnviz.capture.source import Source
from attnviz.comparison import MAX_OFFSET
from attnviz.corpus import Annotated, BadLine, Line, annotation
from attnviz.errors import InputError
from attnviz.text.check import check_text

WINDOW = 512
"""So many lines are sorted by length before they are cut into batches."""

TOKENS = 2048
"""Tokens in a batch, padding included: as many as keep the cores busy."""

KEPT_BYTES = 64 * 2**20
"""Numbers of sentences kept until they are added up: one product for a whole window of a model of 72 heads."""

CONTROLS = 200
"""Sentences that controls are taken of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a corpus is to be surveyed.

    Attributes:
        kind: which attention, where the model has several; None is the usual one.
        specials: whether special tokens take part.
        likeness: whether all pairs of heads are compared.
        controls: how many sentences controls are taken of.
        tokens: how many a batch may have.
        truncate: whether a sentence that is too long is cut, and not left out as a bad line.
        max_offset: fixed offsets are measured from so many tokens back to so many ahead.
    """

    kind: Kind | None = None
    specials: Specials = "keep"
    likeness: bool = True
    controls: int = CONTROLS
    tokens: int = TOKENS
    truncate: bool = False
    max_offset: int = MAX_OFFSET


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a survey is.

    Attributes:
        survey: what is known so far.
        n_lines: how many lines were read, bad ones too.
    """

    survey: Survey
    n_lines: int


def survey_corpus(
    lines: Iterable[Line | BadLine],
    source: Source,
    wish: Wish | None = None,
    *,
    so_far: Progress | None = None,
    tell: Callable[[Progress], None] | None = None,
) -> Survey:
    """Measure every head of a model on every sentence of a corpus, and take the controls.

    Args:
        lines: the corpus. Lines that cannot be used are counted and named, and so are sentences that the model cannot
            read.
        source: the model.
        wish: how.
        so_far: where an earlier run stopped: so many lines are passed over.
        tell: told after each window of lines.

    Raises:
        InputError: no sentence is left.
        ModelError: the model cannot be run, or its weights are not proved.
    """
    wish = wish or Wish()
    runner = Runner(source, wish)
    found, n_lines = (so_far.survey, so_far.n_lines) if so_far else (None, 0)
    bad: list[BadLine] = []
    n_bad = 0
    rest = islice(lines, n_lines, None)
    while window := list(islice(rest, WINDOW)):
        bad += [line for line in window if isinstance(line, BadLine)]
        for one in runner.measured([line for line in window if isinstance(line, Line)], bad):
            found = one if found is None else survey.merge(found, one)
        n_lines += len(window)
        bad.sort(key=lambda line: line.number)
        if found is None:  # hours of lines that cannot be used take no more room than a few
            n_bad, bad = n_bad + len(bad[survey.BAD_LINES :]), bad[: survey.BAD_LINES]
        else:
            found = _with_bad(found, bad, n_bad + len(bad))
            n_bad, bad = 0, []
            if tell is not None:
                tell(Progress(survey=found, n_lines=n_lines))
    if found is None:
        first = f": line {bad[0].number}: {bad[0].reason}" if bad else ""
        raise InputError(f"there is no sentence to measure heads on{first}")
    return runner.with_controls(found)


def _with_bad(found: Survey, bad: Sequence[BadLine], n_bad: int) -> Survey:
    named = [(line.number, line.reason) for line in bad]
    return replace(found, n_bad=found.n_bad + n_bad, bad=(*found.bad, *named)[: survey.BAD_LINES])


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one batch gave.

    Attributes:
        measured: of its heads.
        receipt: the proof.
        annotated: the words of each sentence that belong together; None where nothing says so.
        found: what heads find of that; None where attention is between other words.
    """

    measured: Measured
    receipt: Receipt
    annotated: tuple[Annotated | None, ...]
    found: tuple[Found | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
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
        likeness: of all pairs of heads, where it is wished for.
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
    likeness: Divergences | None
    receipt: Receipt
    annotated: tuple[Annotated | None, ...]
    found: tuple[Found | None, ...]


class Runner:
    """A model with what is needed to measure its heads batch by batch."""

    def __init__(self, source: Source, wish: Wish) -> None:
        self._source, self._wish, self._names = source, wish, names(wish.max_offset)
        self._digest = source.digest()
        self._handed: Mapping[int, Float[Tensor, "head d_v small"]] | None = None

    def measured(self, lines: Sequence[Line], bad: list[BadLine]) -> Iterator[Survey]:
        """Surveys of the lines; those that the model cannot read are added to the bad ones."""
        singles: list[Batch] = []
        annotated: dict[int, Annotated | None] = {}
        for line in lines:
            try:
                check_text(line.text)
                singles.append(self._encode(line.text))
                annotated[id(singles[-1])] = annotation(line)
            except InputError as error:
                bad.append(BadLine(number=line.number, reason=str(error)))
        parts: list[Part] = []
        for batches in in_batches(singles, self._wish.tokens):
            batch = joined(batches)
            said = [annotated[id(single)] for single in batches]
            parts.append(self._part(batch, self._run(batch, said, keep_rows=self._wish.likeness)))
            if is_much(parts):
                yield self._survey(parts)
                parts = []
        if parts:
            yield self._survey(parts)

    def with_controls(self, found: Survey) -> Survey:
        """The same survey with the controls of its sample."""
        texts = found.sample.texts
        if not texts:  # none were wished for
            return found
        singles = {key: self._encode(text, pair) for key, (text, pair) in texts.items()}
        other = Runner(self._source.untrained(), self._wish)
        controls = {}
        mixed = {key: shuffled(single, key) for key, single in singles.items()}
        if all(single is not None for single in mixed.values()):
            controls[SHUFFLED], _ = self._control({key: single for key, single in mixed.items() if single is not None})
        controls[CHANCE], own = self._control(singles, found.sample.annotated, dealt=True)
        said = {key: single.sentences[0].target for key, single in singles.items()}
        again = {key: other._encode(*given, target=said[key]) for key, given in texts.items()}
        controls[UNTRAINED], links = other._control(again, found.sample.annotated)
        return replace(found, sample=replace(found.sample, controls=controls, found=links, own=own))

    def _encode(self, text: str, pair: str | None = None, target: str | None = None) -> Batch:
        wish = self._wish
        # What a model says that never ends has a word more than it may be given.
        truncate = wish.truncate or target is not None
        return self._source.encode([text], [pair], truncate=truncate, kind=wish.kind, targets=[target])

    def _run(
        self,
        batch: Batch,
        annotated: Sequence[Annotated | None] = (),
        *,
        keep_rows: bool = False,
        dealt: Sequence[int] | None = None,
    ) -> Ran:
        if self._handed is None:
            find = FindOutputMaps()
            self._source.stream(alone(batch), [find])
            self._handed = find.handed
        observer = MeasureHeads(
            self._wish.specials, self._handed, keep_rows=keep_rows, dealt=dealt, max_offset=self._wish.max_offset
        )
        observers: list[Observer] = [observer]
        said = tuple(annotated) or (None,) * len(batch.sentences)
        # What is annotated are the words that are read: attention to or from those that are said is between others.
        between = [one if sentence.keys is None else None for one, sentence in zip(said, batch.sentences, strict=True)]
        links = FindLinks(between, self._wish.specials)
        if any(one is not None for one in between):
            observers.append(links)
        receipt = self._source.stream(batch, observers)
        found = links.found() if len(observers) > 1 else (None,) * len(said)
        return Ran(measured=observer.measured(), receipt=receipt, annotated=said, found=found)

    def _control(
        self, singles: Mapping[int, Batch], annotated: Mapping[int, Annotated] | None = None, *, dealt: bool = False
    ) -> tuple[survey.PerSentence, dict[int, Found]]:
        """The measures of these sentences, in the order of their keys, and which of their links heads find."""
        keys = {id(single): key for key, single in singles.items()}
        parts: dict[int, tuple[np.ndarray, np.ndarray, Found | None]] = {}
        for batches in in_batches(list(singles.values()), self._wish.tokens):
            there = [keys[id(single)] for single in batches]
            said = [(annotated or {}).get(key) for key in there]
            ran = self._run(joined(batches), said, dealt=there if dealt else None)
            measured = (ran.measured.sums.cpu().numpy(), ran.measured.counts.cpu().numpy(), ran.found)
            parts |= dict(zip(there, zip(*measured, strict=True), strict=True))
        sums, counts = np.stack([parts[key][0] for key in singles]), np.stack([parts[key][1] for key in singles])
        found = {key: one for key in singles if (one := parts[key][2]) is not None}
        return (sums, counts), found

    def _part(self, batch: Batch, ran: Ran) -> Part:
        """What is kept of one batch."""
        measured = ran.measured
        keys = tuple(tally.key_of(sentence.text, sentence.pair) for sentence in batch.sentences)
        sums, counts = measured.sums.cpu().numpy(), measured.counts.cpu().numpy()
        likeness = None
        if measured.rows is not None and measured.rows_counted is not None:
            likeness = divergences(measured.rows, measured.rows_counted)
        few = np.array(["same_word" in name or "induction" in name for name in self._names])
        enough = np.where(few, 1.0, survey.ENOUGH_ROWS)
        return Part(
            sentences=batch.sentences,
            keys=keys,
            kind=batch.kind or self._source.kinds[0],
            n_tokens=int(batch.real.sum()),
            sums=sums,
            counts=counts,
            fixed=measured.fixed.cpu().numpy(),
            fixed_counts=measured.fixed_counts.cpu().numpy(),
            places=survey.places_of(measured.corner.cpu().numpy(), measured.corner_seen.cpu().numpy(), keys),
            examples=survey.examples_of(sums, counts, keys, [sentence.text for sentence in batch.sentences], enough),
            likeness=likeness,
            receipt=ran.receipt,
            annotated=ran.annotated,
            found=ran.found,
        )

    def _survey(self, parts: Sequence[Part]) -> Survey:
        """What some batches say together."""
        keys = [key for part in parts for key in part.keys]
        given = ((sentence.text, sentence.pair) for part in parts for sentence in part.sentences)
        texts = dict(sorted(dict(zip(keys, given, strict=True)).items())[: self._wish.controls])
        alike = [part.likeness for part in parts if part.likeness is not None]
        return Survey(
            about={
                "model": self._source.name,
                "weights": self._digest,
                "kind": parts[0].kind,
                "special tokens": self._wish.specials,
                "sample": str(self._wish.controls),
                "fixed offsets": f"up to {self._wish.max_offset}",
            },
            measures=self._names,
            heads=tally.tallied(
                np.concatenate([part.sums for part in parts]),
                np.concatenate([part.counts for part in parts])[:, :, None],
                keys,
            ),
            offsets=tally.tallied(
                np.concatenate([part.fixed for part in parts]),
                np.concatenate([part.fixed_counts for part in parts])[:, None],
                keys,
            ),
            places=reduce(operator.add, (part.places for part in parts)),
            examples=reduce(survey.merge_examples, (part.examples for part in parts)),
            sample=Sample(size=self._wish.controls, texts=texts, annotated=_kept(parts, texts)),
            likeness=reduce(operator.add, alike) if alike else None,
            relations=_relations(parts),
            n_tokens=sum(part.n_tokens for part in parts),
            n_cut=sum(sentence.is_cut for part in parts for sentence in part.sentences),
            worst=tuple(map(max, zip(*(part.receipt.differences for part in parts), strict=True))),
            tolerance=max(part.receipt.tolerance for part in parts),
            dtype=parts[0].receipt.dtype,
        )


def is_much(parts: Sequence[Part]) -> bool:
    """Whether what is kept of these batches is so much that it is added up now."""
    return sum(part.sums.nbytes for part in parts) > KEPT_BYTES


def _kept(parts: Sequence[Part], texts: Mapping[int, object]) -> dict[int, Annotated]:
    """The words that belong together of these sentences; of one that comes in two ways, always the same."""
    kept: dict[int, Annotated] = {}
    for part in parts:
        for key, annotated, found in zip(part.keys, part.annotated, part.found, strict=True):
            if key in texts and annotated is not None and found is not None:
                kept[key] = min(kept.get(key, annotated), annotated, key=repr)
    return dict(sorted(kept.items()))


def _relations(parts: Sequence[Part]) -> Relations | None:
    """What heads find of the words that belong together; None where no sentence says which do."""
    n_said = sum(annotated is not None for part in parts for annotated in part.annotated)
    if not n_said:
        return None
    pairs = [(key, one) for part in parts for key, one in zip(part.keys, part.found, strict=True)]
    found = [(key, one) for key, one in pairs if one is not None]
    return replace(structure.tallied(found, *parts[0].sums.shape[1:3]), n_other=n_said - len(found))
