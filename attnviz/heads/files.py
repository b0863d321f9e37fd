"""``.stats`` files: the measurements of a corpus."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from attnviz.heads import survey
from attnviz.heads.relations import LinkHits, Relations
from attnviz.heads.settings import ModelSettings, SurveySettings
from attnviz.heads.survey import Survey
from attnviz.heads.tally import GROUPS, Tally
from attnviz.storage import encoding
from attnviz.text.corpus import Annotation, Link


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRun:
    """The model and settings of a run."""

    model: ModelSettings = field(default_factory=ModelSettings)  # the model, and how it was loaded
    settings: SurveySettings = field(default_factory=SurveySettings)  # how it was measured
    against: str | None = None  # the second model, if there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A survey, its corpus and its settings."""

    survey: Survey  # the survey
    corpus: str  # a short description of the corpus
    run: SurveyRun  # the model and settings

    def __repr__(self) -> str:
        return f"<Stats of {self.survey.about.model!r}: {self.corpus}, {self.survey.n_sentences:,} sentences>"


CLASSES = (
    Stats,
    SurveyRun,
    ModelSettings,
    SurveySettings,
    Survey,
    survey.Against,
    survey.About,
    survey.Examples,
    survey.Sample,
    Tally,
    Relations,
    LinkHits,
    Annotation,
    Link,
)
"""The classes whose values a file may hold."""


def save_stats(stats: Stats, path: str | os.PathLike[str]) -> Path:
    """Write a survey to a file; a failed write leaves no partial file.

    Raises OutputError: another ending, or the file cannot be written.
    """
    return encoding.write(stats, path)


def load_stats(path: str | os.PathLike[str]) -> Stats:
    """Read a survey that attnviz saved.

    Raises FileFormatError: the file cannot be read, or holds no survey.
    """
    return encoding.read(path, CLASSES, Stats, lambda stats: is_whole(stats.survey))


def is_whole(measured: Survey) -> bool:
    """Return whether the parts of a survey fit together."""
    n_layers, n_heads, n_measures = measured.heads.sums.shape[1:]
    return (
        _fits_against(measured)
        and len(measured.heads.sums) == GROUPS + 1
        and n_measures == len(measured.measures)
        and measured.heads.counts.shape[1:] == (n_layers, 1, n_measures)
        and measured.examples.scores.shape[:2] == (n_layers, n_heads)
        and len(measured.worst) == n_layers
    )


def _fits_against(measured: Survey) -> bool:
    """Return whether the survey of a second model, if any, has the same heads and sentences."""
    if measured.against is None:
        return True
    second_survey, divergences = measured.against.survey, measured.against.divergences
    return (
        second_survey.against is None
        and is_whole(second_survey)
        and second_survey.heads.sums.shape == measured.heads.sums.shape
        and divergences.sums.shape == measured.heads.sums.shape[:3]
        and second_survey.n_sentences == divergences.n_sentences == measured.n_sentences
    )
