"""A corpus run through a model: batched by length, measured as it streams by, at constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float
from torch import Tensor

from attnviz.attention import Kind
from attnviz.capture.batching import alone, in_batches, joined, shuffled
from attnviz.capture.observers import Batch, Observer
from attnviz.capture.source import Source
from attnviz.errors import InputError
from attnviz.heads import survey
from attnviz.heads.capture.linking import FindLinks
from attnviz.heads.capture.measuring import FindOutputMaps, MeasureHeads
from attnviz.heads.capture.summing import Part, Ran, is_much, part_of, summed
from attnviz.heads.capture.windows import Bad, Gathering, Progress, gathered
from attnviz.heads.measures import Specials, names
from attnviz.heads.record import MAX_OFFSET
from attnviz.heads.roles import CHANCE, SHUFFLED, UNTRAINED
from attnviz.heads.structure import Found
from attnviz.heads.survey import Survey
from attnviz.text.corpus import Annotation, BadLine, CorpusLine, annotation
from attnviz.text.display import check_text

TOKENS = 2048
"""Tokens in a batch, padding included: as many as keep the cores busy."""

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


def survey_corpus(
    lines: Iterable[CorpusLine | BadLine],
    source: Source,
    wish: Wish | None = None,
    *,
    so_far: Progress[Survey] | None = None,
    tell: Callable[[Progress[Survey]], None] | None = None,
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
    gathering = Gathering(measured=runner.measured, merged=survey.merge, with_bad=with_bad)
    return runner.with_controls(gathered(lines, gathering, so_far, tell))


def with_bad(found: Survey, bad: Bad, n_bad: int) -> Survey:
    """The same with lines that could not be used."""
    return replace(found, n_bad=found.n_bad + n_bad, bad=(*found.bad, *bad)[: survey.BAD_LINES])


class Runner:
    """A model with what is needed to measure its heads batch by batch."""

    def __init__(self, source: Source, wish: Wish) -> None:
        self._source, self._wish, self._names = source, wish, names(wish.max_offset)
        self._handed: Mapping[int, Float[Tensor, "head d_v small"]] | None = None

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
        annotated: Sequence[Annotation | None] = (),
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
        self, singles: Mapping[int, Batch], annotated: Mapping[int, Annotation] | None = None, *, dealt: bool = False
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
        return part_of(batch, ran, self._names, batch.kind or self._source.kinds[0])

    def _survey(self, parts: Sequence[Part]) -> Survey:
        about = {
            "model": self._source.name,
            "weights": self._digest,
            "kind": parts[0].kind,
            "special tokens": self._wish.specials,
            "sample": str(self._wish.controls),
            "fixed offsets": f"up to {self._wish.max_offset}",
        }
        return summed(parts, about, self._names, self._wish.controls)
