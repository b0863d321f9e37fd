"""Calculations small enough to be done by hand, always with the same numbers."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from attnviz.attention import Note
from attnviz.errors import SelectionError
from attnviz.walkthroughs.calculation import Calculation, Terms, write_attention
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.selection import chosen_row

WORDS = ("I", "love", "you", "all")
D_MODEL, D_K = 20, 5


def example(name: str, *, query: str | int | None = None) -> Walkthrough:
    """The example of this name.

    Args:
        name: which one.
        query: the row that is followed, by its name or number; None walks all there are at once.

    Raises:
        SelectionError: there is no such example, or no such row.
    """
    if name not in EXAMPLES:
        raise SelectionError(f"there is no example {name!r}: there are {', '.join(EXAMPLES)}")
    return EXAMPLES[name](query)


def seq2seq(query: str | int | None = None) -> Walkthrough:
    """One step of a recurrent decoder with attention; the encoder's states are keys and values alike.

    Raises:
        SelectionError: another query than the only one.
    """
    calculation = Calculation()
    decoder = ("decoder",)
    if query is not None:
        chosen_row(decoder, len(decoder), query)
    states = Grid(
        values=np.array([[0.0, 1.0, 1.0], [5.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 5.0, 1.0]]),
        rows=tuple(f"encoder {i + 1}" for i in range(4)),
    )
    calculation.give("q", Grid(values=np.array([[10.0, 5.0, 10.0]]), rows=decoder))
    calculation.give("K", states)
    calculation.give("V", states)
    context = write_attention(calculation, Terms(score="dot"))
    calculation.step("concatenated", "concatenated", "concatenate", context, "q")
    return calculation.finish(
        Note("title_seq2seq"),
        query=0,
        notes=(Note("keys_are_values"), Note("goes_to_decoder")),
    )


def self_attention(query: str | int | None = None) -> Walkthrough:
    """Single-head self-attention of four tokens 20 wide, with queries, keys and values 5 wide.

    The numbers have one decimal, so that a person can type them again.

    Args:
        query: the token that is followed; None walks all at once.

    Raises:
        SelectionError: there is no such token.
    """
    chance = random.Random(0)  # noqa: S311 - numbers to calculate with; Python draws the same ones everywhere
    calculation = Calculation()
    calculation.give("X", Grid(values=_tenths(chance, len(WORDS), D_MODEL), rows=WORDS))
    row = None if query is None else chosen_row(WORDS, len(WORDS), query)
    queries, looking = "Q", "X"
    if row is not None:
        queries, looking = "q", calculation.step("row", "x", "row", "X", number=float(row), rows=(WORDS[row],))
    for step, x, made, weights in (
        ("query", looking, queries, "Wq"),
        ("keys", "X", "K", "Wk"),
        ("values", "X", "V", "Wv"),
    ):
        calculation.give(weights, Grid(values=_tenths(chance, D_MODEL, D_K)))
        calculation.step(step, made, "map", x, weights)
    write_attention(calculation, query=queries)
    return calculation.finish(
        Note.of("title_self_attention", n=len(WORDS), d_model=D_MODEL, d_k=D_K),
        query=row,
        notes=(Note.of("one_batch", weights="(1, 4, 4)", output="(1, 4, 5)"),) if row is None else (),
    )


def _tenths(chance: random.Random, n_rows: int, n_columns: int) -> np.ndarray:
    """Numbers from -1 to 1 with one decimal."""
    cells = [[(int(chance.random() * 21) - 10) / 10 for _ in range(n_columns)] for _ in range(n_rows)]
    return np.array(cells)


EXAMPLES: Mapping[str, Callable[[str | int | None], Walkthrough]] = MappingProxyType(
    {"seq2seq": seq2seq, "self-attention": self_attention}
)
"""Each example, and what makes it."""
