"""Surveys as ``.stats`` files: what a checkpoint goes on from, what is merged, what is drawn again later."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from attnviz.heads import structure, survey, tally
from attnviz.heads.clusters import Divergences
from attnviz.storage import encoding
from attnviz.storage.corpora.corpus import Fingerprint
from attnviz.text.corpus import Annotation, Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A survey and how it came about.

    Attributes:
        survey: the survey.
        corpora: what was read, in a few words each.
        n_lines: how many lines of the corpus were read, for a run that goes on; None for one that is finished.
        fingerprint: of the corpus being read; None where it has none, as standard input has not.
        options: what else must be the same for a run to go on, by name.
    """

    survey: survey.Survey
    corpora: tuple[str, ...]
    n_lines: int | None = None
    fingerprint: Fingerprint | None = None
    options: Mapping[str, str]


CLASSES: encoding.Classes = {
    "Stats": Stats, "Fingerprint": Fingerprint, "Survey": survey.Survey, "Places": survey.Places,
    "Examples": survey.Examples, "Sample": survey.Sample, "Divergences": Divergences, "Tally": tally.Tally,
    "Relations": structure.Relations, "Found": structure.Found, "Annotated": Annotation, "Link": Link,
}  # fmt: skip
"""What may be in a file, by the names that files have for it."""


def save(stats: Stats, path: str | os.PathLike[str]) -> Path:
    """Write a survey, whole or not at all.

    Returns:
        The path.

    Raises:
        OutputError: another ending than ``.stats``, or a file that cannot be written.
    """
    return encoding.write(stats, path, encoding.ONE, CLASSES)


def load(path: str | os.PathLike[str]) -> Stats:
    """Read a survey that attnviz saved.

    Raises:
        FileFormatError: the file cannot be read, or holds no survey; the message is one line.
    """
    return encoding.read(path, encoding.ONE, CLASSES, Stats, lambda found: is_whole(found.survey))


def is_whole(found: survey.Survey) -> bool:
    """Whether the parts of a survey fit together."""
    n_layers, n_heads, n_measures = found.heads.sums.shape[1:]
    return (
        {"model", "weights", "kind", "special tokens", "sample", "fixed offsets"} <= found.about.keys()
        and n_measures == len(found.measures)
        and found.heads.counts.shape[1:] == (n_layers, 1, n_measures)
        and found.places.sums.shape[1:3] == found.examples.scores.shape[:2] == (n_layers, n_heads)
        and len(found.worst) == n_layers
    )
