"""Two models run over the same lines in step: the survey of each, and how far their patterns are apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Token
from attnviz.capture.observers import Batch, Sentence, expect_kind
from attnviz.capture.source import Source
from attnviz.errors import ModelError
from attnviz.heads import survey, tally
from attnviz.heads.capture.divergences import divergence_between
from attnviz.heads.capture.measure import BatchMeasures
from attnviz.heads.capture.survey import (
    TOKENS,
    Bad,
    BatchSummary,
    Progress,
    Runner,
    gathered,
    in_heaps,
    ran_over,
    with_bad,
)
from attnviz.heads.changes.compare import check_alike, check_heads
from attnviz.heads.measures import MEASURES, Entry
from attnviz.heads.settings import SurveySettings
from attnviz.heads.survey import Survey
from attnviz.heads.tally import Tally
from attnviz.text.corpus import BadLine, CorpusLine
from attnviz.text.display import check_text, clip, visible

TOKENS_SHOWN = 6
"""Of a sentence that two models cut in two ways, so many tokens are named, from the last one that is the same on."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PairSurvey:
    """What is kept of two models on the same sentences."""

    before: Survey  # the survey of the first
    after: Survey  # that of the second
    divergences: Tally  # of each head's rows in the one and in the other, summed over sentences


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

    Raises:
        InputError: no sentence is left.
        ModelError: a model cannot be run, its weights are not proved, the models cut a sentence into other tokens, or
            they have other kinds of attention.
        RecordError: the models have other numbers of layers or heads.
        SelectionError: the first model has no such attention.
    """
    settings = settings or SurveySettings()
    one, other = _sides(before, after, settings, measures, tokens)
    found = gathered(lines, partial(_measured, one, other), _merged, _with_bad, so_far=so_far, tell=tell, corpus=corpus)
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
    """Both models, with the attention that both have."""
    kind = expect_kind(before, settings.kind, None)
    if kind not in after.kinds:
        raise ModelError(
            f"{before.name} has {kind} attention to compare, and {after.name} has {' and '.join(after.kinds)}: "
            "--kind chooses one that both have"
        )
    settings = replace(settings, kind=kind)
    one, other = (_Side(source, settings, measures, tokens, keep_rows=True) for source in (before, after))
    other.leader = one if before.generates else None
    return one, other


def _read_by(one: _Side, other: _Side, text: str, where: str) -> tuple[Batch, Batch]:
    """A sentence as both models read it; `where` it is of many, such as "line 7, "."""
    check_text(text)
    first = one.encode(text)
    second = other.encode(text, target=first.sentences[0].target)
    _check_tokens(where, first.sentences[0], second.sentences[0], one.source.name, other.source.name)
    return first, second


def _measured(one: _Side, other: _Side, lines: Sequence[CorpusLine], bad: list[BadLine]) -> Iterator[PairSurvey]:
    """What each batch that the lines make says of both models."""

    def parts() -> Iterator[_Parts]:
        ran = ran_over([one, other], lines, bad, lambda line: _read_by(one, other, line.text, f"line {line.number}, "))
        for (here, before), (there, after) in ran:
            names = one.source.name, other.source.name
            check_heads(before.measured.sums.shape[1:3], after.measured.sums.shape[1:3], names)
            apart = _apart(before.measured, after.measured)
            yield _Parts(before=one.part(here, before), after=other.part(there, after), apart=apart)

    for some in in_heaps(parts(), lambda part: part.before.sums.nbytes):
        yield _pair_survey(one, other, some)


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
    """The divergences of the sentences of a batch, summed over rows, and how many rows these are."""
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
    """Make sure that both models read the very same pieces: only then is a row of one the row of the other."""
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
