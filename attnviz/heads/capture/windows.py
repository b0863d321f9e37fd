"""A corpus taken some lines at a time: what each window says is put together, and bad lines are counted and named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeAlias, TypeVar

from attnviz.errors import InputError
from attnviz.heads.survey import BAD_LINES
from attnviz.text.corpus import BadLine, CorpusLine

WINDOW = 512
"""So many lines are sorted by length before they are cut into batches."""

T = TypeVar("T")

Bad: TypeAlias = Sequence[tuple[int, str]]
"""Lines that could not be used: number and reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress(Generic[T]):
    """How far a run over a corpus is.

    Attributes:
        found: what is known so far.
        n_lines: how many lines were read, bad ones too.
    """

    found: T
    n_lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering(Generic[T]):
    """What is found in lines, and how.

    Attributes:
        measured: what some lines say, in parts; it adds the lines that cannot be used to the bad ones.
        merged: two parts together.
        with_bad: the same with bad lines: the first of them, and how many there are.
    """

    measured: Callable[[Sequence[CorpusLine], list[BadLine]], Iterable[T]]
    merged: Callable[[T, T], T]
    with_bad: Callable[[T, Bad, int], T]


def gathered(
    lines: Iterable[CorpusLine | BadLine],
    gathering: Gathering[T],
    so_far: Progress[T] | None = None,
    tell: Callable[[Progress[T]], None] | None = None,
) -> T:
    """What all lines say.

    Args:
        lines: the corpus.
        gathering: what is found in them.
        so_far: where an earlier run stopped: so many lines are passed over.
        tell: told after each window.

    Raises:
        InputError: no sentence is left.
    """
    found, n_lines = (so_far.found, so_far.n_lines) if so_far else (None, 0)
    bad: list[BadLine] = []
    n_bad = 0
    rest = islice(lines, n_lines, None)
    while window := list(islice(rest, WINDOW)):
        bad += [line for line in window if isinstance(line, BadLine)]
        for one in gathering.measured([line for line in window if isinstance(line, CorpusLine)], bad):
            found = one if found is None else gathering.merged(found, one)
        n_lines += len(window)
        bad.sort(key=lambda line: line.number)
        if found is None:  # hours of lines that cannot be used take no more room than a few
            n_bad, bad = n_bad + len(bad[BAD_LINES:]), bad[:BAD_LINES]
        else:
            found = gathering.with_bad(found, [(line.number, line.reason) for line in bad], n_bad + len(bad))
            n_bad, bad = 0, []
            if tell is not None:
                tell(Progress(found=found, n_lines=n_lines))
    if found is None:
        first = f": line {bad[0].number}: {bad[0].reason}" if bad else ""
        raise InputError(f"there is no sentence to measure heads on{first}")
    return found
