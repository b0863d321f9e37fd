"""Word order: without positions attention sees a bag of words, with them a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.capture.attend import attend_all
from attnviz.capture.source import open_source
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories.common import (
    ROWS,
    head_name,
    largest,
    numbers,
    open_model,
    percent,
    prose,
    small,
    square,
    words_of,
)
from attnviz.stories.record import Bars, Matrix, Series, Story, Table

SHORT = ("There is a prince", "Is there a prince")
LONG = (
    "Although I did not get 95 in last TOEFL, I could get in the Ph.D program.",
    "Although I did get 95 in last TOEFL, I could not get in the Ph.D program.",
)
SHOWN = 5
"""How many rows a table of the largest differences has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The same words in two orders."""

    words: tuple[str, ...]  # of the first sentence
    places: tuple[int, ...]  # where each of them stands in the second
    without: float  # the largest difference between a word's two vectors, positions off
    placeless: float  # the same computed so that rounding cannot depend on a word's place
    bare: tuple[float, ...]  # each word's difference without positions, as a share of its vector's length
    placed: tuple[float, ...]  # the same with positions
    largest: float  # the largest difference with positions


def same_words(first: Sequence[str], second: Sequence[str]) -> tuple[int, ...]:
    """Where each word of the first sentence stands in the second; a word that comes twice is paired in order."""
    left: dict[str, list[int]] = {}
    for place, word in enumerate(second):
        left.setdefault(word.lower(), []).append(place)
    return tuple(left[word.lower()].pop(0) for word in first)


def summed_once(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, None]:
    """Attention whose sums over the keys are rounded only once (`math.fsum`), whatever the order of the keys.

    It is for sentences without padding: the mask hides nothing.
    """
    del mask
    scores = (query[..., None, :] * key[..., None, :, :]).sum(dim=-1) / query.shape[-1] ** 0.5  # (B, H, Q, K)
    exponentials = (scores - scores.amax(dim=-1, keepdim=True)).exp()  # (B, H, Q, K)
    total = _fsum(exponentials)  # (B, H, Q)
    products = exponentials[..., None, :] * value.transpose(-2, -1)[..., None, :, :]  # (B, H, Q, d, K)
    return _fsum(products) / total[..., None], None  # (B, H, Q, d)


@contextmanager
def placeless(model: nn.Module) -> Iterator[None]:
    """Within it every projection is computed number by number: fast matrix products round by the place of a row."""

    def alone(module: nn.Module, given: tuple[Tensor], _: Tensor) -> Tensor:
        weight, bias = module.get_parameter("weight"), module.get_parameter("bias")
        return (given[0][..., None, :] * weight).sum(dim=-1) + bias  # (B, T, 1, in) x (out, in) -> (B, T, out)

    hooks = [part.register_forward_hook(alone) for part in model.modules() if isinstance(part, nn.Linear)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _fsum(x: Tensor) -> Tensor:
    """The sums over the last axis, each rounded once."""
    rows = x.flatten(end_dim=-2).tolist()
    return torch.tensor([math.fsum(row) for row in rows], dtype=x.dtype).reshape(x.shape[:-1])


def compare(model: LanguageEncoder, shown: Tensor, words: Sequence[str], places: Sequence[int]) -> Compared:
    """Read two sentences of the same words [2, tokens], with positions and without, in float64."""
    without, with_them = model(shown, positions=False).vectors, model(shown).vectors
    with placeless(model):
        once = model(shown, positions=False, attend=summed_once).vectors
    apart = [(x[0] - x[1, list(places)]).abs() for x in (without, once, with_them)]
    bare, placed = (
        tuple(((x[0] - x[1, list(places)]).norm(dim=-1) / x[0].norm(dim=-1)).tolist()) for x in (without, with_them)
    )
    return Compared(
        words=tuple(words),
        places=tuple(places),
        without=float(apart[0].max()),
        placeless=float(apart[1].max()),
        bare=bare,
        placed=placed,
        largest=float(apart[2].max()),
    )


def shares_moved(first: np.ndarray, second: np.ndarray, places: Sequence[int]) -> np.ndarray:
    """The share of each row's weight that lies on other words in the second sentence [layer, head, query]."""
    there = second[:, :, list(places)][..., list(places)]
    shares: np.ndarray = np.abs(first - there).sum(axis=-1) / 2
    return shares


@torch.inference_mode()
def tell() -> Story:
    """The demo: two pairs of sentences, each of the same words, with positions and without."""
    card, model = open_model("toy", LanguageEncoder)
    model = model.double()  # so that rounding is far below what is to be seen
    found = []
    for pair in (SHORT, LONG):
        words = [words_of(sentence) for sentence in pair]
        found.append(compare(model, numbers(card.source, words), words[0], same_words(*words)))
    long = found[1]
    records = attend_all(LONG, open_source("toy"))
    first, second = (record.weights for record in records)
    shares = shares_moved(first, second, long.places)
    return Story(
        name="word-order",
        title="without positions attention cannot tell the order of words; with them it can",
        parts=(
            prose(f"""Attention compares every word with every other, and nothing in softmax(QK^T / sqrt(d_k)) V says
            which came first. Only the positions, added to the words' vectors, can tell. So toy reads the same words in
            two orders, with its positions and without. The short pair is “{SHORT[0]}” and “{SHORT[1]}”; the long pair
            is “{LONG[0]}” and “{LONG[1]}”"""),
            _differences(found),
            _exactness(found),
            _what_positions_do(long),
            _rows_moved(long.words, shares, first, second),
            _most_moved(shares),
        ),
        picture=_picture(long, shares, first, second),
        receipt=prose(f"""the patterns: {records[0].proof}; the vectors: the model called directly in float64, with
        positions and without, for which there is no receipt"""),
    )


def _differences(found: Sequence[Compared]) -> Table:
    return Table(
        title="largest difference between a word's vectors in the first and the second sentence of a pair",
        columns=("sentences", "positions off", "off, no rounding by place", "positions on"),
        rows=tuple(
            (f"{pair} pair: first / second sentence", *map(small, (c.without, c.placeless, c.largest)))
            for pair, c in zip(("short", "long"), found, strict=True)
        ),
    )


def _exactness(found: Sequence[Compared]) -> str:
    without, once = max(c.without for c in found), max(c.placeless for c in found)
    left = f"{small(once)} is left." if once else "the difference is exactly 0: the model sees a bag of words."
    return prose(f"""Without positions each word has the same vector in both orders, to within {small(without)}: the
    same numbers, added in another order and rounded on the way (float64 holds about 16 digits). Computed so that
    rounding cannot depend on a word's place (each projection number by number, each sum over the words rounded only
    once), {left}""")


def _what_positions_do(long: Compared) -> str:
    order = sorted(range(len(long.words)), key=lambda place: -long.placed[place])
    most, least = order[0], order[-1]
    stay = [place for place, there in enumerate(long.places) if place == there]
    go = [place for place, there in enumerate(long.places) if place != there]
    mean = [sum(long.placed[place] for place in places) / len(places) for places in (go, stay)]
    return prose(f"""The sentences of the long pair mean the opposite with the same {len(long.words)} words. The bars
    show how far each word's vector moves between them, as a share of its length. With positions on,
    “{long.words[most]}” (word {most}) moves most, by {percent(long.placed[most])}, and “{long.words[least]}” (word
    {least}) least, by {percent(long.placed[least])}. The {len(go)} words that stand at another place move by
    {percent(mean[0])} on average; the {len(stay)} that stay where they are, by {percent(mean[1])}, only because of what
    stands around them.""")


def _rows_moved(words: Sequence[str], shares: np.ndarray, first: np.ndarray, second: np.ndarray) -> Table:
    others = words_of(LONG[1])
    there = same_words(words, others)
    rows = []
    for place in np.argsort(-shares, axis=None, kind="stable")[:SHOWN]:
        layer, head, query = (int(i) for i in np.unravel_index(place, shares.shape))
        keys = int(first[layer, head, query].argmax()), int(second[layer, head, there[query]].argmax())
        at = (f"{words[keys[0]]} ({keys[0]})", f"{others[keys[1]]} ({keys[1]})")
        rows.append((f"{layer}.{head}", f"{words[query]} ({query})", percent(float(shares[layer, head, query])), *at))
    return Table(
        title="the attention rows that differ most, with positions (places count from 0)",
        columns=("layer.head", "word (place)", "weight moved", "looks most at", "in the second sentence, at"),
        rows=tuple(rows),
    )


def _most_moved(shares: np.ndarray) -> str:
    head = largest(shares)
    return prose(f"""On average {percent(float(shares.mean()))} of a row's weight moves to other words; most in
    {head_name(head)}, {percent(float(shares[head].mean()))}, which the picture shows in both sentences. {ROWS}""")


def _picture(long: Compared, shares: np.ndarray, first: np.ndarray, second: np.ndarray) -> tuple[Bars | Matrix, ...]:
    head = largest(shares)
    ways = zip(("first (did not get)", "second (could not get)"), (first[head], second[head]), LONG, strict=True)
    top = float(max(first[head].max(), second[head].max()))
    return (
        *(square(f"{head_name(head)}: {what}", pattern, words_of(text), top) for what, pattern, text in ways),
        Bars(
            title="how far each word's vector moves between the two sentences",
            labels=long.words,
            series=(Series(name="positions off", values=long.bare), Series(name="positions on", values=long.placed)),
            y_title="share of the vector's length",
        ),
    )
