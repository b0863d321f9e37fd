"""Calculations small enough for pen and paper, and exercises with small integers and cells to fill in."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np

from attnviz.attention import Note
from attnviz.errors import SelectionError
from attnviz.walkthroughs.calculation import Calculation, Terms, find_row
from attnviz.walkthroughs.record import Grid, Walkthrough

WORDS = ("I", "love", "you", "all")
MIXING = np.array([[0.2, 0, 0], [0, 0.2, 0], [0, 0, 0.2], [0.05, 0, 0], [0, 0.05, 0], [0, 0, -0.1]])
"""Weights from context and state (six numbers) to three, so small that tanh does not round to 1."""
# Weights from these three numbers to one logit per word.
TO_WORDS = np.array([[0.0, 1, 3, 1], [1, 0, 0, 2], [2, 1, 0, -1]])
D_MODEL, D_K = 20, 5


def example(name: str, *, query: str | int | None = None) -> Walkthrough:
    """Return an example by its name, for one query or all. Raises SelectionError: the name or query is unknown."""
    if name not in EXAMPLES:
        raise SelectionError(f"there is no example {name!r}: there are {', '.join(EXAMPLES)}")
    return EXAMPLES[name](query)


# With to_word: state = tanh(Wc [context; q]), p = softmax(state Ww).
def seq2seq(query: str | int | None = None, *, to_word: bool = False) -> Walkthrough:
    """Return one step of a recurrent decoder, whose keys are its values; if `to_word`, up to the next word.

    Source: Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation", equations 5 and 6.
    """
    calculation = Calculation()
    decoder = ("decoder",)
    if query is not None:
        find_row([decoder], query)
    states = Grid(
        values=np.array([[0.0, 1.0, 1.0], [5.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 5.0, 1.0]]),
        rows=tuple(f"encoder {i + 1}" for i in range(4)),
    )
    calculation.give("q", Grid(values=np.array([[10.0, 5.0, 10.0]]), rows=decoder))
    calculation.give("K", states)
    calculation.give("V", states)
    context = calculation.write_attention(Terms(score="dot"))
    calculation.step("concatenated", "concatenated", "concatenate", context, "q")
    if not to_word:
        notes = (Note("keys_are_values"), Note("goes_to_decoder"))
        return calculation.finish(Note("title_seq2seq"), query=0, notes=notes)
    mixed = calculation.project("attentional", "mixed", "concatenated", {"Wc": Grid(values=MIXING)})
    state = calculation.step("tanh", "state", "tanh", mixed)
    calculation.project("logits", "logits", state, {"Ww": Grid(values=TO_WORDS, columns=WORDS)})
    calculation.step("next_word", "probabilities", "softmax", "logits")
    word = WORDS[int(calculation.grids["probabilities"].values.argmax())]
    notes = (Note("keys_are_values"), Note.of("next_chosen", word=word))
    return calculation.finish(Note("title_seq2seq_word"), query=0, notes=notes)


def self_attention(query: str | int | None = None) -> Walkthrough:
    """Return self-attention of four tokens with 20 numbers each; queries, keys and values have 5 numbers."""
    chance, calculation = random.Random(0), Calculation()
    row = None if query is None else find_row([(word,) for word in WORDS], query)
    x = Grid(values=_tenths(chance, len(WORDS), D_MODEL), rows=WORDS)
    queries = calculation.write_inputs(
        x, lambda letter: {f"W{letter}": Grid(values=_tenths(chance, D_MODEL, D_K))}, row, WORDS
    )
    calculation.write_attention(query=queries)
    title = Note.of("title_self_attention", n=len(WORDS), d_model=D_MODEL, d_k=D_K)
    batch = Note.of("one_batch", weights="(1, 4, 4)", output="(1, 4, 5)")
    return calculation.finish(title, query=row, notes=[batch] if row is None else [])


def _tenths(chance: random.Random, n_rows: int, n_columns: int) -> np.ndarray:
    """Draw numbers from -1 to 1 with one decimal [row, column]."""
    return np.array(
        [[(below(chance, 21) - 10) / 10 for _ in range(n_columns)] for _ in range(n_rows)]
    )


def below(chance: random.Random, n: int) -> int:
    """Return a random integer from 0 to n - 1.

    Python guarantees only the numbers of `random()` to stay the same in later versions, not those of `randrange`.
    """
    return int(chance.random() * n)


EXAMPLES: dict[str, Callable[[str | int | None], Walkthrough]] = {
    "seq2seq": seq2seq,
    "seq2seq-word": partial(seq2seq, to_word=True),
    "self-attention": self_attention,
}


WIDTH = 4  # of query and keys; its square root is the integer 2
N_KEYS, D_V = 3, 2
LARGEST = 6  # the largest score; exp of half of it is easy on a pocket calculator


def make(seed: int) -> Walkthrough:
    """Return an exercise with one query, whose scores are even, so that dividing by sqrt(4) gives integers."""
    chance = random.Random(seed)
    query, keys = _query_and_keys(chance)
    values = [[below(chance, 10) for _ in range(D_V)] for _ in range(N_KEYS)]
    calculation = Calculation()
    calculation.give("q", Grid(values=np.array([query], dtype=np.float64), rows=("query",)))
    names = tuple(f"key {i}" for i in range(N_KEYS))
    calculation.give("K", Grid(values=np.array(keys, dtype=np.float64), rows=names))
    calculation.give("V", Grid(values=np.array(values, dtype=np.float64), rows=names))
    calculation.write_attention()
    return calculation.finish(Note.of("title_exercise", seed=seed, n=N_KEYS), query=0)


def _query_and_keys(chance: random.Random) -> tuple[list[int], list[list[int]]]:
    """Return a query and keys whose dot products are even, at most `LARGEST`, and not all equal."""
    while True:  # about every second draw is accepted
        query = [below(chance, 3) for _ in range(WIDTH)]
        if sum(map(bool, query)) < WIDTH - 1:  # with many zeros the exercise is too easy
            continue
        keys: list[list[int]] = []
        while len(keys) < N_KEYS:
            key = [below(chance, 4) for _ in range(WIDTH)]
            score = sum(a * b for a, b in zip(query, key, strict=True))
            if score % 2 == 0 and 0 < score <= LARGEST and key not in keys:
                keys.append(key)
        if len({sum(a * b for a, b in zip(query, key, strict=True)) for key in keys}) > 1:
            return query, keys
