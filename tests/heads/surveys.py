"""One model, or two, measured on some sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attnviz.heads.capture.survey import survey_models

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attnviz.capture.sources import Source
    from attnviz.heads.settings import SurveySettings
    from attnviz.heads.survey import Survey, Surveys
    from attnviz.text.corpus import BadLine, CorpusLine


def survey_corpus(
    lines: Iterable[CorpusLine | BadLine],
    source: Source,
    settings: SurveySettings | None = None,
    **how: Any,
) -> Survey:
    """What every head of one does."""
    return survey_models(lines, [source], settings, **how).before


def survey_pair(
    lines: Iterable[CorpusLine | BadLine],
    before: Source,
    after: Source,
    settings: SurveySettings | None = None,
    **how: Any,
) -> Surveys:
    """What every head of both does."""
    return survey_models(lines, [before, after], settings, **how)
