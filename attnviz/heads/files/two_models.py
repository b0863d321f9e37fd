"""What was measured of two models in step, as a ``.stats`` file of its own: what a run of both goes on from.

It is written as a survey of one model is, and is taken for none: whoever looks for one is told that there are two.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from attnviz.heads.files.surveys import CLASSES, Stats, is_whole
from attnviz.heads.survey import Survey
from attnviz.heads.tally import Tally
from attnviz.storage import encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class BothStats:
    """The surveys of two models and how they came about.

    Attributes:
        before: of the first model; what it says of the run is said of both.
        after: the survey of the second.
        divergences: of each head's rows in the one and in the other, summed over sentences.
    """

    before: Stats
    after: Survey
    divergences: Tally


_CLASSES: encoding.Classes = {**CLASSES, "BothStats": BothStats}


def save(stats: BothStats, path: str | os.PathLike[str]) -> Path:
    """Write both surveys, whole or not at all.

    Returns:
        The path.

    Raises:
        OutputError: another ending than ``.stats``, or a file that cannot be written.
    """
    return encoding.write(stats, path, encoding.TWO, _CLASSES)


def load(path: str | os.PathLike[str]) -> BothStats:
    """Read what attnviz saved of two models.

    Raises:
        FileFormatError: the file cannot be read, or holds something else, such as one model; the message is one line.
    """
    return encoding.read(path, encoding.TWO, _CLASSES, BothStats, _fits)


def _fits(found: BothStats) -> bool:
    """Whether both models have the same heads, and were measured on as many sentences."""
    one, other, apart = found.before.survey, found.after, found.divergences
    return (
        is_whole(one)
        and is_whole(other)
        and one.heads.sums.shape == other.heads.sums.shape
        and apart.sums.shape == one.heads.sums.shape[:3]
        and one.n_sentences == other.n_sentences == apart.n_sentences
    )
