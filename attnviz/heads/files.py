"""``.stats`` files: the measurements of a corpus, which can be continued and merged."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TypeAlias

from attnviz.errors import RecordError
from attnviz.heads import survey
from attnviz.heads.relations import LinkHits, Relations
from attnviz.heads.settings import ModelSettings, SurveySettings
from attnviz.heads.similarity import Divergences
from attnviz.heads.survey import Survey
from attnviz.heads.tally import GROUPS, Tally
from attnviz.storage import encoding
from attnviz.storage.corpora.corpus import Fingerprint
from attnviz.text.corpus import Annotation, Link
from attnviz.text.display import visible

DEFAULT = "the default"  # the name in messages of a model that was not named
Shard: TypeAlias = tuple[int, int]
"""A part of a corpus: its number, from 1, and the number of parts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRun:
    """The model and settings of a run."""

    model: ModelSettings = field(default_factory=ModelSettings)  # the model, and how it was loaded
    settings: SurveySettings = field(default_factory=SurveySettings)  # how it was measured
    against: str | None = None  # the second model, if there is one

    def words(self) -> dict[str, str]:
        """Return the settings in words for messages, by name; settings that are not given are left out."""
        options = {**asdict(self.model), **asdict(self.settings), "against": self.against}
        defaults = {"model": DEFAULT, "kind": "the usual"}
        return {
            name: str(defaults[name] if value is None else value)
            for name, value in options.items()
            if value is not None or name in defaults
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A survey, its corpus and its settings."""

    survey: Survey  # the survey
    corpora: tuple[str, ...]  # short descriptions of the corpora
    # number of lines read so far, if the file is a checkpoint; None for a finished run
    n_lines: int | None = None
    # the fingerprint of the corpus file; None if there is no file, as for standard input
    fingerprint: Fingerprint | None = None
    run: SurveyRun  # the settings, which must be the same to continue a run
    shard: Shard | None = None  # the part of the corpus that was measured; None for all of it

    def __repr__(self) -> str:
        return f"<Stats of {self.survey.about.model!r}: {self.corpus}, {self.survey.n_sentences:,} sentences>"

    @property
    def corpus(self) -> str:
        """A short description of the sentences, such as ``big.txt (3/64)`` for a shard."""
        shard = "" if self.shard is None else f" ({shard_name(self.shard)})"
        return "; ".join(self.corpora) + shard


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
    """Write a survey to a file; a failed write leaves no partial file.

    Raises OutputError: another ending, or the file cannot be written.
    """
    return encoding.write(stats, path)


def load_stats(path: str | os.PathLike[str]) -> Stats:
    """Read a survey that attnviz saved.

    Raises FileFormatError: the file cannot be read, or holds no survey.
    """
    return encoding.read(path, CLASSES, Stats, lambda stats: is_whole(stats.survey))


def load_finished(path: Path) -> Stats:
    """Read the measurements of a finished run.

    Raises FileFormatError: the file cannot be read, or holds no survey; RecordError: it is a checkpoint.
    """
    stats = load_stats(path)
    if stats.n_lines is not None:
        raise RecordError(
            f"{visible(str(path))} is a checkpoint of a run that did not finish: run it again to continue"
        )
    return stats


def shard_name(shard: Shard) -> str:
    """Return the name of a shard, as it is typed: ``3/64``."""
    number, total = shard
    return f"{number}/{total}"


def differences(earlier: Stats, run: SurveyRun, corpus: Fingerprint | None) -> list[str]:
    """Return how a run over a corpus differs from an earlier one, each difference in words."""
    settings, old_settings = run.words(), earlier.run.words()
    differing = [
        f"{name} is {settings.get(name, 'not given')}, was {old_settings.get(name, 'not given')}"
        for name in sorted({*settings, *old_settings})
        if settings.get(name) != old_settings.get(name)
    ]
    if earlier.fingerprint != corpus:
        old_corpus = "; ".join(earlier.corpora)
        if earlier.fingerprint is not None:
            old_corpus = f"{earlier.fingerprint.name}, {earlier.fingerprint.size:,} bytes"
        differing.insert(0, f"the corpus is another (it was {visible(old_corpus)})")
    return differing


def is_whole(measured: Survey) -> bool:
    """Return whether the parts of a survey fit together."""
    n_layers, n_heads, n_measures = measured.heads.sums.shape[1:]
    return (
        _fits_against(measured)
        and len(measured.heads.sums) == GROUPS + 1
        and n_measures == len(measured.measures)
        and measured.heads.counts.shape[1:] == (n_layers, 1, n_measures)
        and measured.places.sums.shape[1:3]
        == measured.examples.scores.shape[:2]
        == (n_layers, n_heads)
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
