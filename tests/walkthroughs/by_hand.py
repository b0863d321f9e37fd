"""Walkthroughs that the tests of files and checks share: between them, every operation there is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attnviz.attention import Note, Receipt
from attnviz.walkthroughs.calculation import Calculation, Terms, compute, largest_difference
from attnviz.walkthroughs.examples import example, make
from attnviz.walkthroughs.record import Grid, Walkthrough

if TYPE_CHECKING:
    from attnviz.walkthroughs.settings import Score

WORDS = ("나는", "love", "a|b_c", "<you>")

RECEIPT = Receipt(
    native="eager", dtype="float32", tolerance=1e-5, layers=(0, 1), differences=(2.5e-7, 0.0)
)


def note(words: str) -> Note:
    """A title or a note in the words of a person."""
    return Note.of("text", text=words)


def attention_walk(
    *, title: str, query: Grid, keys: Grid, values: Grid, **terms: Any
) -> Walkthrough:
    """The walkthrough of queries, keys and values that are given, with the fields of `Terms`."""
    c = Calculation()
    one = len(query.values) == 1
    name = c.give("q" if one else "Q", query)
    c.give("K", keys)
    c.give("V", values)
    c.write_attention(Terms(**terms), name)
    return c.finish(note(title), query=0 if one else None)


def largest_error(walk: Walkthrough) -> float:
    """The largest difference between a walkthrough's grids and the same computed again from the grids before them."""
    return max(
        (
            largest_difference(compute(step, walk.grids), walk.grids[step.result].values)
            for step in walk.steps
        ),
        default=0.0,
    )


def grid(
    *shape: int, seed: int = 3, rows: tuple[str, ...] = (), columns: tuple[str, ...] = ()
) -> Grid:
    """Random numbers, none of them 0."""
    values = np.random.default_rng([seed, *shape]).uniform(0.1, 1.5, shape)
    signs = np.random.default_rng([seed + 1, *shape]).choice([-1, 1], shape)
    return Grid(values=values * signs, rows=rows, columns=columns)


def layer() -> Walkthrough:
    """A whole layer of one head with a mask, a bias, a soft cap and a sink, as a model would have it."""
    c = Calculation()
    c.give("X", grid(4, 6, rows=WORDS))
    for seed, (step, made, letter) in enumerate(
        (("query", "Q", "q"), ("keys", "K", "k"), ("values", "V", "v"))
    ):
        c.give(f"W{letter}", grid(6, 3, seed=seed))
        c.give(f"b{letter}", grid(1, 3, seed=seed))
        c.step(step, made, "projection", "X", f"W{letter}", f"b{letter}")
    mask = Grid(values=np.tri(4), rows=WORDS, columns=WORDS)
    terms = Terms(softcap=5.0, bias=grid(4, 4, seed=8), mask=mask, sink=grid(1, 1))
    context = c.write_attention(terms, "Q")
    c.give("Wo", grid(3, 6, seed=9))
    c.step("output", "output", "projection", context, "Wo")
    c.step("residual", "residual", "add", "X", "output")
    c.give("gain", grid(1, 6, seed=10))
    c.give("shift", grid(1, 6, seed=11))
    c.step("norm", "norm", "norm", "residual", "gain", "shift", number=1e-12)
    c.step("relu", "relu", "relu", "norm")
    c.step("row", "x", "row", "norm", number=2.0, rows=WORDS[2:3])
    c.step("tanh", "bent", "tanh", "norm")
    for symbol in "xs":
        c.give(f"W{symbol}", grid(6, 18, seed=12))
        c.give(f"b{symbol}", grid(1, 18, seed=13))
    c.step("cell", "state", "gru", "residual", "bent", "Wx", "bx", "Ws", "bs")
    c.give("n_heads", Grid(values=np.array([[2.0]])))
    c.step("split_query", "part", "split", "norm", "n_heads", number=1.0)
    c.step("concatenated", "concatenated", "concatenate", "relu", "bent")
    return replace(
        c.finish(note("One layer, 한국어"), notes=[note("masked")]),
        model="toy",
        text="나는 love",
        kind="decoder",
        layer=1,
        head=0,
        own="concatenated",
        difference=1e-7,
        from_input=1e-6,
        receipt=RECEIPT,
    )


def score_walk(score: Score, **weights: Grid) -> Walkthrough:
    """One query and three keys, scored by a projection (general) or a small network (additive)."""
    return attention_walk(
        title=score,
        query=grid(1, 3, rows=("q",)),
        keys=grid(3, 2, rows=WORDS[:3]),
        values=grid(3, 4, rows=WORDS[:3]),
        score=score,
        weights=weights,
    )


def walks() -> dict[str, Walkthrough]:
    """All of them, by name."""
    return {
        "seq2seq": example("seq2seq"),
        "self-attention": example("self-attention"),
        # whose query holds no 0: a key's number that only meets 0 may be anything
        "exercise": make(5),
        "layer": layer(),
        "general": score_walk("general", W=grid(3, 2, seed=4)),
        "additive": score_walk(
            "additive", W=grid(5, 3, seed=4), U=grid(5, 2, seed=5), v=grid(1, 5, seed=6)
        ),
    }


TOKENS = ("[CLS]", "나는", "너희", "모두를", "사랑해", "internationalization", "[SEP]")


def one_decoder_step(*, mask: bool = False) -> Walkthrough:
    """A decoder's state and four states of an encoder, as in the book."""
    states = Grid(
        values=np.array([[0.0, 1, 1], [5, 0, 1], [1, 1, 0], [0, 5, 1]]),
        rows=("first", "second", "third", "fourth"),
    )
    query = Grid(values=np.array([[10.0, 5.0, 10.0]]), rows=("decoder",))
    hidden = Grid(values=np.array([[1.0, 1.0, 0.0, 1.0]])) if mask else None
    return attention_walk(
        title="made by hand", query=query, keys=states, values=states, score="dot", mask=hidden
    )


def of_model(
    n: int = 7, d_model: int = 48, d: int = 8, *, one: bool = True, n_heads: int = 1
) -> Walkthrough:
    """Masked heads of a model from its input to its output, with numbers from a seed."""
    draw = np.random.default_rng(n * d)
    c = Calculation()
    tokens = (TOKENS * n)[:n]
    c.give("X", Grid(values=draw.normal(size=(n, d_model)), rows=tokens))
    x, allowed, contexts = "X", np.tril(np.ones((n, n))), []
    if one:
        x, allowed = c.step("row", "x", "row", "X", number=3.0, rows=tokens[3:4]), allowed[[3]]
    for suffix in [""] if n_heads == 1 else [f"_{head}" for head in range(n_heads)]:
        query = f"{'q' if one else 'Q'}{suffix}"
        for letter, name, step, given in (
            ("q", query, "query", x),
            ("k", f"K{suffix}", "keys", "X"),
            ("v", f"V{suffix}", "values", "X"),
        ):
            weights = Grid(values=draw.normal(size=(d_model, d)) / d_model**0.5)
            bias = Grid(values=draw.normal(size=(1, d)))
            symbols = {f"W{letter}{suffix}": weights, f"b{letter}{suffix}": bias}
            c.project(step, name, given, symbols)
        terms = Terms(mask=Grid(values=allowed))
        contexts.append(c.write_attention(terms, query, f"K{suffix}", f"V{suffix}", suffix))
    c.step("concatenated", "concatenated", "concatenate", *contexts)
    output = Grid(values=draw.normal(size=(d * n_heads, d_model)))
    c.project("output", "output", "concatenated", {"Wo": output})
    return replace(
        c.finish(note("one head"), query=3 if one else None, notes=[note("a note")]),
        model="a model",
        text="나는 너희 모두를 사랑해",
        kind="encoder",
        layer=2,
        head=1,
        own=contexts[0],
        difference=1.2e-8,
        from_input=3.4e-8,
        receipt=RECEIPT,
    )
