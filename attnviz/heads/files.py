"""``.stats`` files: what was measured of a corpus, to go on from and to merge."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from attnviz.heads import survey
from attnviz.heads.relations import LinkHits, Relations
from attnviz.heads.settings import ModelSettings, SurveySettings
from attnviz.heads.similarity import Divergences
from attnviz.heads.survey import Survey
from attnviz.heads.tally import GROUPS, Tally
from attnviz.storage import encoding
from attnviz.storage.corpora.corpus import Fingerprint
from attnviz.text.corpus import Annotation, Link

DEFAULT = "the default"  # what messages call the model where none was named


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRun:
    """The model and settings of a run."""

    model: ModelSettings = field(default_factory=ModelSettings)  # the model, and how it was loaded
    settings: SurveySettings = field(default_factory=SurveySettings)  # how it was measured
    against: str | None = None  # the second model, if there is one

    def words(self) -> dict[str, str]:
        """All of it as messages tell it, by the names of settings; without what is not given."""
        given = {**asdict(self.model), **asdict(self.settings), "against": self.against}
        usual = {"model": DEFAULT, "kind": "the usual"}
        return {
            name: str(usual[name] if value is None else value)
            for name, value in given.items()
            if value is not None or name in usual
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A survey and how it came about."""

    survey: Survey  # the survey
    corpora: tuple[str, ...]  # what was read, in a few words each
    # of the corpus, read by a run that goes on; None for one that is finished
    n_lines: int | None = None
    # of the corpus; None where it has none, as standard input has not
    fingerprint: Fingerprint | None = None
    run: SurveyRun  # how it was measured, which must be the same for a run to go on


CLASSES = (
    Stats,
    SurveyRun,
    ModelSettings,
    SurveySettings,
    Fingerprint,
    Survey,
    survey.Against,
    survey.About,
    survey.Places,
    survey.Examples,
    survey.Sample,
    Divergences,
    Tally,
    Relations,
    LinkHits,
    Annotation,
    Link,
)
"""The classes whose values a file may hold."""


def save_stats(stats: Stats, path: str | os.PathLike[str]) -> Path:
    """Write a survey whole or not at all. Raises OutputError: another ending, or it cannot be written."""
    return encoding.write(stats, path)


def load_stats(path: str | os.PathLike[str]) -> Stats:
    """Read a survey that attnviz saved. Raises FileFormatError, in one line: it cannot be read, or holds no survey."""
    return encoding.read(path, CLASSES, Stats, lambda stats: is_whole(stats.survey))


def is_whole(found: Survey) -> bool:
    """Whether the parts of a survey fit together."""
    n_layers, n_heads, n_measures = found.heads.sums.shape[1:]
    return (
        _fits_against(found)
        and len(found.heads.sums) == GROUPS + 1
        and n_measures == len(found.measures)
        and found.heads.counts.shape[1:] == (n_layers, 1, n_measures)
        and found.places.sums.shape[1:3] == found.examples.scores.shape[:2] == (n_layers, n_heads)
        and len(found.worst) == n_layers
    )


def _fits_against(found: Survey) -> bool:
    """Whether the survey of a second model, if there is one, is of the same heads and sentences."""
    if found.against is None:
        return True
    second, divergences = found.against.survey, found.against.divergences
    return (
        second.against is None
        and is_whole(second)
        and second.heads.sums.shape == found.heads.sums.shape
        and divergences.sums.shape == found.heads.sums.shape[:3]
        and second.n_sentences == divergences.n_sentences == found.n_sentences
    )
