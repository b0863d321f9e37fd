"""Two models run over the same lines in step: the survey of each, and how far their patterns are apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Token
from attnviz.capture.batching import in_batches, join
from attnviz.capture.observers import Batch, Sentence, expect_kind
from attnviz.capture.source import Source
from attnviz.errors import InputError, ModelError
from attnviz.heads import survey, tally
from attnviz.heads.capture.divergences import divergence_between
from attnviz.heads.capture.measure import BatchMeasures
from attnviz.heads.capture.survey import (
    TOKENS,
    Bad,
    BatchRun,
    BatchSummary,
    Gathering,
    Progress,
    Runner,
    gathered,
    is_much,
    with_bad,
)
from attnviz.heads.changes.compare import check_alike, check_heads
from attnviz.heads.measures import MEASURES, Entry
from attnviz.heads.settings import SurveySettings
from attnviz.heads.survey import Survey
from attnviz.heads.tally import Tally
from attnviz.text.corpus import Annotation, BadLine, CorpusLine, annotation
from attnviz.text.display import check_text, clip, visible

TOKENS_SHOWN = 6
"""Of a sentence that two models cut in two ways, so many tokens are named, from the last one that is the same on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairSurvey:
    """What is kept of two models on the same sentences.

    Attributes:
        before: the survey of the first.
        after: that of the second.
        divergences: of each head's rows in the one and in the other, summed over sentences.
    """

    before: Survey
    after: Survey
    divergences: Tally


class _Side(Runner):
    """One of the models.

    Args:
        source: the model.
        settings: how it is surveyed.
        measures: what is measured.
        tokens: how many a batch may have.
        leader: the first model, where this is the second: what that says, this is made to say.
    """

    def __init__(
        self,
        source: Source,
        settings: SurveySettings,
        measures: tuple[Entry, ...] = MEASURES,
        tokens: int = TOKENS,
        leader: _Side | None = None,
    ) -> None:
        super().__init__(source, settings, measures, tokens)
        self.source = source
        self._leader = leader
        self._similarity = settings.similarity

    def read(self, text: str, pair: str | None = None, target: str | None = None) -> Batch:
        """A batch of one sentence."""
        return self._encode(text, pair, target)

    def _encode(self, text: str, pair: str | None = None, target: str | None = None) -> Batch:
        if target is None and self._leader is not None:
            target = self._leader.read(text, pair).sentences[0].target
        if target is None:
            free = super()._encode(text, pair)
            target = free.sentences[0].target
            if target is None:
                return free
        # What a model says that never ends has a word more than may be given: cut alike, both say the same.
        return self.source.encode([text], [pair], truncate=True, kind=self._settings.kind, targets=[target])

    def run(self, batch: Batch, annotated: Sequence[Annotation | None]) -> BatchRun:
        """Measure a batch, its rows kept."""
        return self._run(batch, annotated, keep_rows=True)

    def part(self, batch: Batch, ran: BatchRun) -> BatchSummary:
        """What is kept of a batch."""
        if not self._similarity:
            ran = replace(ran, measured=replace(ran.measured, rows=None, rows_counted=None))
        return self._part(batch, ran)

    def survey(self, parts: Sequence[BatchSummary]) -> Survey:
        """What some batches say."""
        return self._survey(parts)


def survey_pair(
    lines: Iterable[CorpusLine | BadLine],
    before: Source,
    after: Source,
    settings: SurveySettings | None = None,
    *,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
    so_far: Progress[PairSurvey] | None = None,
    tell: Callable[[Progress[PairSurvey]], None] | None = None,
    corpus: str = "",
) -> PairSurvey:
    """Measure every head of two models on every sentence of a corpus, and take the controls of both.

    What the first model says, where it says something, the second is made to say.

    Args:
        lines: the corpus. Lines that cannot be used are counted and named, and so are sentences that one of the models
            cannot read.
        before: the first model.
        after: the second.
        settings: how.
        measures: what is measured.
        tokens: how many a batch may have, padding included.
        so_far: where an earlier run stopped: so many lines are passed over.
        tell: told after each window of lines.
        corpus: what the lines are, for messages.

    Raises:
        InputError: no sentence is left.
        ModelError: a model cannot be run, its weights are not proved, the models cut a sentence into other tokens, or
            they have other kinds of attention.
        RecordError: the models have other numbers of layers or heads.
        SelectionError: the first model has no such attention.
    """
    settings = settings or SurveySettings()
    one, other = _sides(before, after, settings, measures, tokens)
    gathering = Gathering(measured=partial(_measure_side, one, other, tokens), merged=_merged, with_bad=_with_bad)
    found = gathered(lines, gathering, so_far, tell, corpus)
    return replace(found, before=one.with_controls(found.before), after=other.with_controls(found.after))


def check_sentence(text: str, before: Source, after: Source, settings: SurveySettings | None = None) -> None:
    """Make sure that both models can read a sentence, and read the same tokens.

    Raises:
        InputError: one cannot read it.
        ModelError: they cut it into other tokens, or have other kinds of attention.
        SelectionError: the first model has no such attention.
    """
    _read_by(*_sides(before, after, settings or SurveySettings()), text, "")


def _sides(
    before: Source,
    after: Source,
    settings: SurveySettings,
    measures: tuple[Entry, ...] = MEASURES,
    tokens: int = TOKENS,
) -> tuple[_Side, _Side]:
    """Both models, with the attention that both have.

    Raises:
        ModelError: they have other kinds.
        SelectionError: the first has none of the kind that is wished for.
    """
    kind = expect_kind(before, settings.kind, None)
    if kind not in after.kinds:
        raise ModelError(
            f"{before.name} has {kind} attention to compare, and {after.name} has {' and '.join(after.kinds)}: "
            "--kind chooses one that both have"
        )
    settings = replace(settings, kind=kind)
    one = _Side(before, settings, measures, tokens)
    return one, _Side(after, settings, measures, tokens, leader=one if before.generates else None)


def _read_by(one: _Side, other: _Side, text: str, where: str) -> tuple[Batch, Batch]:
    """A sentence as both models read it.

    Args:
        one: the first.
        other: the second.
        text: the sentence.
        where: which one it is of many, such as "line 7, "; empty where there are no others.

    Raises:
        InputError: one of them cannot.
        ModelError: they cut it into other tokens.
    """
    check_text(text)
    first = one.read(text)
    second = other.read(text, target=first.sentences[0].target)
    _check_tokens(where, first.sentences[0], second.sentences[0], one.source.name, other.source.name)
    return first, second


def _measure_side(
    one: _Side, other: _Side, tokens: int, lines: Sequence[CorpusLine], bad: list[BadLine]
) -> Iterator[PairSurvey]:
    """What each batch that the lines make says of both models."""
    singles: list[Batch] = []
    partners: dict[int, Batch] = {}
    annotated: dict[int, Annotation | None] = {}
    for line in lines:
        try:
            first, second = _read_by(one, other, line.text, f"line {line.number}, ")
        except InputError as error:
            bad.append(BadLine(number=line.number, reason=str(error)))
            continue
        singles.append(first)
        partners[id(first)] = second
        annotated[id(first)] = annotation(line)
    parts: list[_Parts] = []
    for batches in in_batches(singles, tokens):
        said = [annotated[id(single)] for single in batches]
        here, there = join(batches), join([partners[id(single)] for single in batches])
        ran, ran_after = one.run(here, said), other.run(there, said)
        names = one.source.name, other.source.name
        check_heads(ran.measured.sums.shape[1:3], ran_after.measured.sums.shape[1:3], names)
        parts.append(
            _Parts(
                before=one.part(here, ran),
                after=other.part(there, ran_after),
                apart=_apart(ran.measured, ran_after.measured),
            )
        )
        if is_much([part.before for part in parts]):
            yield _pair_survey(one, other, parts)
            parts = []
    if parts:
        yield _pair_survey(one, other, parts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Parts:
    """What is kept of one batch of both models: of each, and the divergences of each sentence, with its rows."""

    before: BatchSummary
    after: BatchSummary
    apart: tuple[Float64[np.ndarray, "sentence layer head"], Float64[np.ndarray, "sentence 1 1"]]


def _pair_survey(one: _Side, other: _Side, parts: Sequence[_Parts]) -> PairSurvey:
    """What some batches say of both models."""
    before, after = one.survey([part.before for part in parts]), other.survey([part.after for part in parts])
    check_alike(before, after)
    sums, counts = (np.concatenate(some) for some in zip(*(part.apart for part in parts), strict=True))
    keys = [key for part in parts for key in part.before.keys]
    return PairSurvey(before=before, after=after, divergences=tally.tallied(sums, counts, keys))


def _apart(
    before: BatchMeasures, after: BatchMeasures
) -> tuple[Float64[np.ndarray, "sentence layer head"], Float64[np.ndarray, "sentence 1 1"]]:
    """The divergences of the sentences of a batch, summed over rows, and how many rows these are.

    Raises:
        ModelError: the models let other rows see.
    """
    if before.rows is None or after.rows is None or before.rows_counted is None or after.rows_counted is None:
        raise ModelError("the rows of these models were not kept")
    if not bool((before.rows_counted == after.rows_counted.to(before.rows_counted.device)).all()):
        raise ModelError("these models let other tokens look at others: their patterns are not of the same rows")
    rows_after = after.rows.to(before.rows.device)
    sums = divergence_between(before.rows, rows_after, before.rows_counted).reshape(-1, *before.sums.shape[1:3])
    return sums, before.rows_counted.sum(dim=1).double().cpu().numpy()[:, None, None]


def _merged(one: PairSurvey, other: PairSurvey) -> PairSurvey:
    return PairSurvey(
        before=survey.merge(one.before, other.before),
        after=survey.merge(one.after, other.after),
        divergences=one.divergences.merged(other.divergences),
    )


def _with_bad(found: PairSurvey, bad: Bad, n_bad: int) -> PairSurvey:
    """The same with lines that could not be used, which neither model has measured."""
    before, after = (with_bad(one, bad, n_bad) for one in (found.before, found.after))
    return replace(found, before=before, after=after)


def _check_tokens(where: str, before: Sentence, after: Sentence, name: str, name_after: str) -> None:
    """Make sure that both models read the very same pieces: only then is a row of one the row of the other.

    Raises:
        ModelError: they do not.
    """
    for one, other in ((before.tokens, after.tokens), (before.keys or (), after.keys or ())):
        pieces = [[(token.piece, token.special) for token in tokens] for tokens in (one, other)]
        if pieces[0] == pieces[1]:
            continue
        same = next((at for at, pair in enumerate(zip(*pieces, strict=False)) if pair[0] != pair[1]), None)
        start = max(0, (min(len(one), len(other)) if same is None else same) - 1)
        raise ModelError(
            f"these models cut {'sentences' if where else 'this sentence'} into other tokens: {where}"
            f"“{clip(visible(before.text), 40)}”{',' * bool(where)} is {_listed(one, start)} to {name} and "
            f"{_listed(other, start)} to {name_after}; only models of one tokenizer are compared head by head"
        )


def _listed(tokens: Sequence[Token], start: int) -> str:
    """Some tokens as the vocabulary spells them."""
    shown = " ".join(clip(visible(token.piece), 20) for token in tokens[start : start + TOKENS_SHOWN])
    more = len(tokens) > start + TOKENS_SHOWN
    return f"{'… ' if start else ''}{shown}{' …' if more else ''} ({len(tokens)} tokens)"
