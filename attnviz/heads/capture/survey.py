"""A corpus run through a model, or through two: batched by length, measured as it streams by, at constant memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TypeAlias

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Token
from attnviz.capture.batching import in_batches, join
from attnviz.capture.observers import Batch, Sentence
from attnviz.capture.sources import Source, expect_kind
from attnviz.errors import InputError, ModelError
from attnviz.heads import survey, tally
from attnviz.heads.capture.divergences import divergence_between
from attnviz.heads.capture.measure import BatchMeasures
from attnviz.heads.capture.runner import TOKENS, BatchSummary, Runner
from attnviz.heads.changes.compare import check_alike, check_heads
from attnviz.heads.measures import MEASURES, Entry
from attnviz.heads.settings import SurveySettings
from attnviz.heads.survey import BAD_LINES, Survey
from attnviz.heads.tally import Tally
from attnviz.text.corpus import Annotation, BadLine, CorpusLine, annotation
from attnviz.text.display import check_text, clip, visible

WINDOW = 512  # so many lines are sorted by length before they are cut into batches
KEPT_BYTES = 64 * 2**20
"""Numbers of sentences kept until they are added up: one product for a whole window of a model of 72 heads."""
TOKENS_SHOWN = 6
"""Of a sentence that two models cut in two ways, so many tokens are named, from the last one that is the same on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Surveys:
    """What is kept of a model, or of two on the same sentences."""

    each: tuple[Survey, ...]  # of each model
    divergences: Tally | None = None  # of two: of each head's rows in the one and in the other, summed over sentences

    @property
    def before(self) -> Survey:
        """The survey of the first."""
        return self.each[0]

    @property
    def after(self) -> Survey:
        """That of the last."""
        return self.each[-1]

    def merge(self, other: Surveys) -> Surveys:
        """Both corpora together, as `attnviz.heads.survey.merge` puts them."""
        both = self.divergences and other.divergences and self.divergences.merge(other.divergences)
        return Surveys(each=tuple(map(survey.merge, self.each, other.each)), divergences=both)

    def with_bad(self, bad: Sequence[BadLine], n_bad: int) -> Surveys:
        """The same with so many lines that could not be used, of which these are the first."""
        named = [(line.number, line.reason) for line in bad]
        return replace(self, each=tuple(
            replace(one, n_bad=one.n_bad + n_bad, bad=(*one.bad, *named)[:BAD_LINES]) for one in self.each
        ))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run over a corpus is."""

    found: Surveys  # what is known so far
    n_lines: int  # how many lines were read, bad ones too


def survey_models(
    lines: Iterable[CorpusLine | BadLine], sources: Sequence[Source], settings: SurveySettings | None = None, *,
    measures: tuple[Entry, ...] = MEASURES, tokens: int = TOKENS, so_far: Progress | None = None,
    tell: Callable[[Progress], None] | None = None, corpus: str = "",
) -> Surveys:  # fmt: skip
    """Measure every head of a model, or of two, on every sentence of a corpus, and take the controls.

    What the first model says, where it says something, the second is made to say. Lines that cannot be used, or
    that a model cannot read, are counted and named. `tokens` has a batch at most, padding included; `so_far` is
    where an earlier run stopped, whose lines are passed over; `tell` is told after each window of lines; `corpus`
    is what messages call the lines. Raises InputError: no sentence is left; ModelError: a model cannot be run, its
    weights are not proved, or two cut a sentence into other tokens or have other kinds of attention; RecordError:
    two models have other numbers of layers or heads; SelectionError: the first of two has no such attention.
    """
    sides = _sides(sources, settings, measures, tokens)
    found, n_lines = (so_far.found, so_far.n_lines) if so_far else (None, 0)
    bad: list[BadLine] = []
    n_bad = 0
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
                tell(Progress(found=found, n_lines=n_lines))
    if found is None:
        first = f": line {bad[0].number}: {bad[0].reason}" if bad else ""
        start = f"{corpus}: " if corpus else ""
        raise InputError(f"{start}there is no sentence to measure heads on{first}")
    return replace(found, each=tuple(map(Runner.with_controls, sides, found.each)))


def _measure(sides: Sequence[Runner], lines: Sequence[CorpusLine], bad: list[BadLine]) -> Iterator[Surveys]:
    """What lines say, as much at a time as is added up at once; those that no model can read are added to the bad."""
    given: list[tuple[tuple[Batch, ...], Annotation | None]] = []
    for line in lines:
        try:
            given.append((_read_by(sides, line.text, f"line {line.number}, "), annotation(line)))
        except InputError as error:
            bad.append(BadLine(number=line.number, reason=str(error)))
    heap: list[_Batches] = []
    for together in in_batches({at: several[0] for at, (several, _) in enumerate(given)}, sides[0].tokens):
        read_by = zip(*(given[at][0] for at in together), strict=True)
        heap.append(_batches(sides, list(map(join, read_by)), [given[at][1] for at in together]))
        if sum(some.each[0].sums.nbytes for some in heap) > KEPT_BYTES:
            yield _together(sides, heap)
            heap = []
    if heap:
        yield _together(sides, heap)


Apart: TypeAlias = tuple[Float64[np.ndarray, "sentence layer head"], Float64[np.ndarray, "sentence 1 1"]]
"""The divergences of the sentences of a batch, summed over rows, and how many rows these are."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Batches:
    each: tuple[BatchSummary, ...]  # of each model
    apart: Apart | None  # of two


def _batches(sides: Sequence[Runner], batches: Sequence[Batch], annotated: Sequence[Annotation | None]) -> _Batches:
    ran = [side.run(batch, annotated) for side, batch in zip(sides, batches, strict=True)]
    apart = None
    if len(sides) > 1:
        before, after = (one.measured for one in ran)
        check_heads(before.sums.shape[1:3], after.sums.shape[1:3], (sides[0].source.name, sides[1].source.name))
        apart = _apart(before, after)
    return _Batches(each=tuple(map(Runner.part, sides, batches, ran)), apart=apart)


def _together(sides: Sequence[Runner], heap: Sequence[_Batches]) -> Surveys:
    each = tuple(map(Runner.survey, sides, zip(*(one.each for one in heap), strict=True)))
    if len(sides) == 1:
        return Surveys(each=each)
    check_alike(*each)
    sums, counts = (np.concatenate(some) for some in zip(*(one.apart for one in heap if one.apart), strict=True))
    keys = [key for one in heap for key in one.each[0].keys]
    return Surveys(each=each, divergences=tally.tally_sentences(sums, counts, keys))


def _apart(before: BatchMeasures, after: BatchMeasures) -> Apart:
    if before.rows is None or after.rows is None or before.rows_counted is None or after.rows_counted is None:
        raise ModelError("the rows of these models were not kept")
    if not bool((before.rows_counted == after.rows_counted.to(before.rows_counted.device)).all()):
        raise ModelError("these models let other tokens look at others: their patterns are not of the same rows")
    rows_after = after.rows.to(before.rows.device)
    sums = divergence_between(before.rows, rows_after, before.rows_counted).reshape(-1, *before.sums.shape[1:3])
    return sums, before.rows_counted.sum(dim=1).double().cpu().numpy()[:, None, None]


class _Side(Runner):
    """One of the models; what the leader generates, where this is the second model, this is made to generate."""

    leader: _Side | None = None

    def encode(self, text: str, pair: str | None = None, target: str | None = None) -> Batch:
        """A batch of one sentence."""
        if target is None and self.leader is not None:
            target = self.leader.encode(text, pair).sentences[0].target
        if target is None:
            free = super().encode(text, pair)
            target = free.sentences[0].target
            if target is None:
                return free
        # What a model says that never ends has a word more than may be given: cut alike, both say the same.
        return super().encode(text, pair, target)


def check_readable(text: str, sources: Sequence[Source], settings: SurveySettings | None = None) -> None:
    """Make sure that a model can read a sentence, and two the same tokens of it.

    Raises InputError: one cannot read it; ModelError: two cut it into other tokens, or have other kinds of attention;
    SelectionError: the first of two has no such attention.
    """
    _read_by(_sides(sources, settings), text)


def _sides(
    sources: Sequence[Source], settings: SurveySettings | None, measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
) -> list[Runner]:  # fmt: skip
    settings = settings or SurveySettings()
    if len(sources) == 1:
        return [Runner(sources[0], settings, measures, tokens)]
    before, after = sources
    kind = expect_kind(before, settings.kind, None)
    if kind not in after.kinds:
        raise ModelError(
            f"{before.name} has {kind} attention to compare, and {after.name} has {' and '.join(after.kinds)}: "
            "choose a kind that both have"
        )
    settings = replace(settings, kind=kind)
    one, other = (_Side(source, settings, measures, tokens, keep_rows=True) for source in sources)
    other.leader = one if before.generates else None
    return [one, other]


def _read_by(sides: Sequence[Runner], text: str, where: str = "") -> tuple[Batch, ...]:
    """A sentence as each model reads it; `where` it is of many, such as "line 7, "."""
    check_text(text)
    first = sides[0].encode(text)
    others = [side.encode(text, target=first.sentences[0].target) for side in sides[1:]]
    for side, other in zip(sides[1:], others, strict=True):
        _check_tokens(where, first.sentences[0], other.sentences[0], sides[0].source.name, side.source.name)
    return first, *others


def _check_tokens(where: str, before: Sentence, after: Sentence, name: str, name_after: str) -> None:
    """Make sure that both models read the very same pieces: only then is a row of one the row of the other."""
    for one, other in ((before.tokens, after.tokens), (before.keys or (), after.keys or ())):
        pieces = [[(token.piece, token.special) for token in tokens] for tokens in (one, other)]
        if pieces[0] == pieces[1]:
            continue
        same = next((at for at, pair in enumerate(zip(*pieces, strict=False)) if pair[0] != pair[1]), None)
        start = max(0, (min(len(one), len(other)) if same is None else same) - 1)
        raise ModelError(
            f"these models cut {'sentences' if where else 'this sentence'} into other tokens: {where}"
            f"“{clip(visible(before.text), 40)}”{',' * bool(where)} is {_list_tokens(one, start)} to {name} and "
            f"{_list_tokens(other, start)} to {name_after}; only models of one tokenizer are compared head by head"
        )


def _list_tokens(tokens: Sequence[Token], start: int) -> str:
    shown = " ".join(clip(visible(token.piece), 20) for token in tokens[start : start + TOKENS_SHOWN])
    more = len(tokens) > start + TOKENS_SHOWN
    return f"{'… ' if start else ''}{shown}{' …' if more else ''} ({len(tokens)} tokens)"
