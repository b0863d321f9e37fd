"""A corpus measured with its controls, as `attnviz.compare_heads` does before it computes roles."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from attnviz.heads.capture.survey import TOKENS, add_controls, measure_lines
from attnviz.heads.measures import MEASURES, AtOffsets, Entry, Measure
from attnviz.heads.settings import SurveySettings

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
    settings = settings or SurveySettings()
    sources = [source] if against is None else [source, against]
    measured = measure_lines(lines, sources, settings, tokens=tokens)
    return add_controls(measured, sources, settings, tokens=tokens)


def with_thresholds(threshold: float) -> tuple[Entry, ...]:
    """Return the usual measures, with this threshold for every role."""

    def changed(measure: Measure) -> Measure:
        role = measure.role
        return (
            measure if role is None else replace(measure, role=replace(role, threshold=threshold))
        )

    def family(entry: AtOffsets) -> AtOffsets:
        return replace(entry, at=lambda offset: changed(entry.at(offset)))

    return tuple(changed(item) if isinstance(item, Measure) else family(item) for item in MEASURES)
