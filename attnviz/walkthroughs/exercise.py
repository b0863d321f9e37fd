"""Exercises: small integers that come out well, and cells left blank for a student to fill in."""

from __future__ import annotations

import random

import numpy as np

from attnviz.attention import Note
from attnviz.errors import SelectionError
from attnviz.walkthroughs.calculation import Calculation, write_attention
from attnviz.walkthroughs.record import Grid, Walkthrough

Cell = tuple[str, int, int]
"""A grid's name, a row and a column."""

D_K = 4
"""The width of query and keys: its root is 2."""

LARGEST = 6
"""The largest score: halved, a power of e that fits a pocket calculator's window."""

MOST_KEYS = 12


def make(seed: int, *, n_keys: int = 3, d_v: int = 2) -> Walkthrough:
    """An exercise with one query: the same for the same seed, everywhere.

    Scores are even and not all the same, so that divided by sqrt(4) they are small integers.

    Args:
        seed: which exercise.
        n_keys: how many keys the query looks at.
        d_v: how wide the values are.

    Raises:
        SelectionError: sizes that are no exercise.
    """
    if not 2 <= n_keys <= MOST_KEYS or not 1 <= d_v <= MOST_KEYS:
        raise SelectionError(
            f"an exercise has 2 to {MOST_KEYS} keys and values 1 to {MOST_KEYS} wide, not {n_keys} and {d_v}"
        )
    chance = random.Random(seed)  # noqa: S311 - an exercise is no secret; Python draws the same one everywhere
    query, keys = _query_and_keys(chance, n_keys)
    values = [[_below(chance, 10) for _ in range(d_v)] for _ in range(n_keys)]
    calculation = Calculation()
    calculation.give("q", Grid(values=np.array([query], dtype=np.float64), rows=("query",)))
    names = tuple(f"key {i}" for i in range(n_keys))
    calculation.give("K", Grid(values=np.array(keys, dtype=np.float64), rows=names))
    calculation.give("V", Grid(values=np.array(values, dtype=np.float64), rows=names))
    write_attention(calculation)
    return calculation.finish(
        Note.of("title_exercise", seed=seed, n=n_keys),
        query=0,
        notes=(Note.of("drawn_from_seed", seed=seed),),
    )


def blanks(walk: Walkthrough, seed: int, *, share: float = 0.5) -> frozenset[Cell]:
    """The computed cells that a student is to fill in: of each step at least one, the same for the same seed.

    Args:
        walk: the calculation.
        seed: which choice of cells.
        share: about how much of each step is left blank.

    Raises:
        SelectionError: a share that is none.
    """
    if not 0 < share <= 1:
        raise SelectionError(f"the share of blank cells is above 0 and at most 1, not {share:g}")
    chance = random.Random(seed)  # noqa: S311 - as above
    chosen = set()
    for step in walk.steps:
        n_rows, n_columns = walk.grids[step.result].values.shape
        cells = [(step.result, row, column) for row in range(n_rows) for column in range(n_columns)]
        wanted = max(1, round(share * len(cells)))
        for taken in range(wanted):  # the first so many of a shuffled list
            other = taken + _below(chance, len(cells) - taken)
            cells[taken], cells[other] = cells[other], cells[taken]
        chosen.update(cells[:wanted])
    return frozenset(chosen)


def _query_and_keys(chance: random.Random, n_keys: int) -> tuple[list[int], list[list[int]]]:
    """A query and keys whose dot products are even, at most `LARGEST`, and not all the same."""
    while True:  # about one draw in two will do
        query = [_below(chance, 3) for _ in range(D_K)]
        if sum(map(bool, query)) < D_K - 1:  # too many zeros teach nothing
            continue
        keys: list[list[int]] = []
        while len(keys) < n_keys:
            key = [_below(chance, 4) for _ in range(D_K)]
            score = sum(a * b for a, b in zip(query, key, strict=True))
            if score % 2 == 0 and 0 < score <= LARGEST and key not in keys:
                keys.append(key)
        if len({sum(a * b for a, b in zip(query, key, strict=True)) for key in keys}) > 1:
            return query, keys


def _below(chance: random.Random, n: int) -> int:
    """A whole number from 0 to n - 1; of Python's random numbers only these are promised to stay the same."""
    return int(chance.random() * n)
