"""A corpus measured with its controls, as `attnviz.compare_heads` does before it computes roles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from attnviz.heads.capture.survey import TOKENS, Surveyor
from attnviz.heads.measures import MEASURES, Measure
from attnviz.heads.settings import SurveySettings
from attnviz.heads.survey import Part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attnviz.capture.sources import Source
    from attnviz.heads.survey import Survey
    from attnviz.text.corpus import BadLine, CorpusLine


def survey_model(
    lines: Iterable[CorpusLine | BadLine],
    source: Source,
    settings: SurveySettings | None = None,
    *,
    against: Source | None = None,
    tokens: int = TOKENS,
) -> Survey:
    """Measure a model, or two, and their controls."""
    sources = [source] if against is None else [source, against]
    surveyor = Surveyor(sources, settings or SurveySettings(), tokens=tokens)
    return surveyor.add_controls(surveyor.measure_all(lines).whole())


def survey_parts(
    parts: Iterable[Iterable[CorpusLine | BadLine]],
    source: Source,
    settings: SurveySettings,
    *,
    against: Source | None = None,
) -> Survey:
    """Measure the parts of a corpus one after another, each with a reader of its own, and then their controls."""
    sources, whole = [source] if against is None else [source, against], Part()
    for part in parts:
        whole = whole.merge(Surveyor(sources, settings).measure_all(part))
    return Surveyor(sources, settings).add_controls(whole.whole())


def with_thresholds(threshold: float) -> tuple[Measure, ...]:
    """Return the usual measures, with this threshold for every role."""
    return tuple(
        item if item.role is None else replace(item, role=replace(item.role, threshold=threshold))
        for item in MEASURES
    )
