"""Walkthroughs from Python: what ``attnviz walkthrough`` calls."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from attnviz.capture.source import Loading, Model, as_source
from attnviz.errors import SettingsError
from attnviz.settings import Kind
from attnviz.text.arguments import check_call
from attnviz.text.display import check_text
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.settings import (
    Score,
    WalkthroughModel,
    WalkthroughSelection,
    WalkthroughText,
    needs_model,
)

if TYPE_CHECKING:
    from attnviz.capture.sources import Source

__all__ = ["SENTENCE", "calculate", "decoding_steps", "walkthrough"]
SENTENCE = "I love all you"  # what is read where no sentence is given


class Choices(Loading, total=False):
    """Which part of the model is followed, and how it is loaded; what is left out has its default."""

    layer: int | str | None  # its number, counted from 0, negative from the end; 0
    head: int | str | None  # likewise; 0. Or "2.3", which names both
    query: (
        str | int | None
    )  # the word that looks, or its number; the first word, of a decoder the last
    all_queries: bool  # all words at once, in place of one
    whole_layer: bool  # all heads, and what follows them
    full: bool  # of a whole layer that is large, its projections too, which make a file of 160 MB
    kind: Kind | None  # which attention, where the model has several
    score: Score  # how a query and a key make a score
    causal: bool  # hide what comes after each word


@check_call()
def walkthrough(
    text: str | None = None,
    model: Model = None,
    tokenizer: object = None,
    *,
    example: Literal["seq2seq", "seq2seq-word", "self-attention"] | None = None,
    numbers: str | os.PathLike[str] | None = None,
    exercise: int | None = None,
    pair: str | None = None,
    target: str | None = None,
    truncate: bool = False,
    **choices: Unpack[Choices],
) -> Walkthrough:
    """Follow one word through one head of a model, or a calculation by hand: every number of it.

    It has `save`, `figure` and `to_frame`. Raises SettingsError: settings that do not go together; InputError: the text
    cannot be read by the model; FileFormatError: a file of numbers or weights cannot be read or does not fit together;
    SelectionError: a layer, head or query that is not there; ModelError: the model cannot be used, or is not proved.

    Args:
        text: the sentence; None is "I love all you", or for a model that reads no English one that it knows.
        model: as for `attnviz.attend`.
        tokenizer: likewise.
        example: in place of a model a calculation by hand: ``seq2seq``, ``seq2seq-word`` or ``self-attention``.
        numbers: in place of a model a file of one's own numbers, JSON or YAML.
        exercise: in place of a model an exercise of small integers, by its seed; its cells that are left blank are
            ``walk.blanks(seed)``.
        pair: a second sentence, for models that read two.
        target: what a model that translates is made to generate (teacher forcing).
        truncate: cut a text that is too long for the model.
        choices: ``layer``, ``head``, ``query``, ``all_queries``, ``whole_layer``, ``full``, ``kind``, ``score``,
            ``causal``, and how the model is loaded: ``device``, ``dtype``, ``revision``, ``trust_remote_code`` (see
            `Choices`).
    """
    words = WalkthroughText(
        text=text,
        pair=pair,
        target=target,
        truncate=truncate,
        example=example,
        numbers=None if numbers is None else Path(numbers),
        exercise=exercise is not None,
    )
    if exercise is not None and (text is not None or model is not None or {*choices} - {"full"}):
        raise SettingsError(
            "an exercise is made of small integers: it takes no sentence and no model"
        )
    return _calculate(words, model, tokenizer, choices, seed=exercise)[0]


@check_call()
def decoding_steps(
    text: str | None = None,
    model: Model = None,
    tokenizer: object = None,
    *,
    pair: str | None = None,
    target: str | None = None,
    truncate: bool = False,
    **choices: Unpack[Choices],
) -> list[Walkthrough]:
    """What a decoder does step by step as it looks at another sentence: a walkthrough for each word it generates.

    Of attention within one sentence only one word is followed; all else, what it raises too, is as of `walkthrough`.
    """
    words = WalkthroughText(text=text, pair=pair, target=target, truncate=truncate)
    return _calculate(words, model, tokenizer, choices, each_step=True)


def _calculate(
    text: WalkthroughText,
    model: Model,
    tokenizer: object,
    choices: Choices,
    *,
    seed: int | None = None,
    each_step: bool = False,
) -> list[Walkthrough]:
    """From the arguments of Python to groups of settings, and to the calculations."""
    chosen: dict[str, Any] = dict(choices)
    full = chosen.pop("full", False)
    loading = {name: chosen.pop(name) for name in Loading.__annotations__ if name in chosen}
    chosen |= {
        name: str(chosen[name])
        for name in ("layer", "head", "query")
        if chosen.get(name) is not None
    }
    selection, opening = WalkthroughSelection(**chosen), None
    is_named = model is None or isinstance(model, str | os.PathLike)
    name = None if model is None else str(model) if is_named else "a model in memory"
    if needs_model(
        text, WalkthroughModel(model=name, seed=seed, **loading if is_named else {}), selection
    ):

        def opening(reads: str) -> Source:
            return as_source(model, tokenizer, reads=reads, generates=True, **loading)

    return calculate(text, selection, opening, seed=seed or 0, each_step=each_step, full=full)


def calculate(
    text: WalkthroughText,
    selection: WalkthroughSelection,
    opening: Callable[[str], Source] | None,
    *,
    seed: int = 0,
    each_step: bool = False,
    full: bool = False,
) -> list[Walkthrough]:
    """The calculations that groups of settings describe: one, or with `each_step` one for each step of a decoder.

    `opening` opens the model that is to read a text, and is None where numbers need none; the seed is that of an
    exercise; `full` keeps the projections of a large layer, too. Raises what `walkthrough` does.
    """
    if opening is None:
        return [_by_hand(text, seed, selection.query)]
    for one, what in (
        (text.text, "the text"),
        (text.pair, "the second sentence"),
        (text.target, "the target"),
    ):
        if one is not None:
            check_text(one, what)
    source = opening(text.text or "")
    if text.text is None:
        text = replace(text, text=getattr(source, "example", "") or SENTENCE)
    from attnviz.walkthroughs.capture.walks import follow

    chooses_query = selection.query is not None or selection.all_queries or selection.whole_layer
    return follow(text, source, selection, each_step=each_step and not chooses_query, full=full)


def _by_hand(text: WalkthroughText, seed: int, query: str | None) -> Walkthrough:
    """A calculation that needs no model: an example, a person's own numbers, or an exercise, which has one query."""
    if text.numbers is not None:
        from attnviz.walkthroughs.homework import read

        return read(text.numbers, query=query)
    from attnviz.walkthroughs.examples import example, make

    return make(seed) if text.example is None else example(text.example, query=query)
