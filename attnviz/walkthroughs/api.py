"""Walkthroughs from Python: ``attnviz.walkthrough``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, get_args

from attnviz.attention import Kind, parse_head
from attnviz.capture.source import Model, Opening, as_source
from attnviz.errors import SettingsError
from attnviz.text.display import check_sentence, check_text
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.settings import (
    Example,
    Score,
    WalkthroughSelection,
    WalkthroughText,
)

if TYPE_CHECKING:
    from attnviz.capture.sources import Source

SENTENCE = "I love all you"  # read where no sentence is given


class Choices(TypedDict, total=False):
    """Which part of the model is followed."""

    layer: int  # counted from 0, negative from the end; 0
    head: int | str  # likewise; or "2.3", which names both
    query: str | int | None  # a word or its number; the first, of a decoder the last
    all_queries: bool  # follow all words at once
    whole_layer: bool  # follow all heads, then the rest of the layer
    kind: Kind | None  # which attention, where the model has several
    score: Score  # how a query and a key make a score
    causal: bool  # hide the words after each word


class ModelChoices(Choices, Opening, total=False):
    """The same, and how the model is loaded."""


def walkthrough(
    text: str | None = None,
    model: Model = None,
    tokenizer: object = None,
    *,
    example: Example | None = None,
    numbers: str | os.PathLike[str] | None = None,
    exercise: int | None = None,
    pair: str | None = None,
    target: str | None = None,
    truncate: bool = False,
    full: bool = False,
    **choices: Unpack[ModelChoices],
) -> Walkthrough:
    """Follow one word through one head of a model, or a calculation by hand: every number of it.

    Args:
        text: the sentence; None is "I love all you", or one that the model knows if it reads no English.
        model: as for `attnviz.attend`.
        tokenizer: as for `attnviz.attend`.
        example: in place of a model a calculation by hand: ``seq2seq``, ``seq2seq-word`` or ``self-attention``.
        numbers: in place of a model a file of one's own numbers, JSON or YAML.
        exercise: in place of a model an exercise of small integers, by its seed; ``walk.blanks(seed)`` are the cells
            that a learner fills in.
        pair: a second sentence, for models that read two.
        target: what a model that translates is made to generate (teacher forcing).
        truncate: whether a text that is too long for the model is cut.
        full: whether the projections of a large whole layer are kept, too, which makes a file of 160 MB.
        choices: ``layer``, ``head``, ``query``, ``all_queries``, ``whole_layer``, ``kind``, ``score``, ``causal`` (see
            `Choices`), and how the model is loaded: ``device``, ``dtype``, ``revision``, ``trust_remote_code``.

    Returns:
        The calculation, which has `save`, `figure`, `page` and `to_frame`.

    Raises:
        SettingsError: arguments that exclude one another.
        InputError: the text cannot be read by the model.
        FileFormatError: a file of numbers or weights cannot be read, or does not fit together.
        SelectionError: a layer, head or query that is not there.
        ModelError: the model cannot be used, or its numbers are not proved.
    """
    if [example, numbers, exercise].count(None) < 2:
        raise SettingsError("give one of example, numbers and exercise")
    if example is None and numbers is None and exercise is None:
        words = _read(text, pair, target, truncate)
        return _follow(words, model, tokenizer, choices, full=full)
    others = [text, model, tokenizer, pair, target, *({*choices} - {"query", "all_queries"})]
    if truncate or any(other is not None for other in others):
        raise SettingsError(
            "a calculation by hand needs no model: it takes no sentence and no settings of a model"
        )
    query = choices.get("query")
    if query is not None and choices.get("all_queries"):
        raise SettingsError("give one query or all, not both")
    query = None if query is None else str(query)
    if numbers is not None:
        from attnviz.walkthroughs.homework import read

        return read(Path(numbers), query=query)
    from attnviz.walkthroughs import examples

    if example is not None:
        return examples.example(example, query=query)
    return examples.make(exercise or 0)


def _read(
    text: str | None, pair: str | None, target: str | None, truncate: bool
) -> WalkthroughText:
    for one, what in (
        (text, "the text"),
        (pair, "the second sentence"),
        (target, "the target"),
    ):
        if one is not None:
            check_text(one, what)
    check_sentence(text)
    return WalkthroughText(text=text or "", pair=pair, target=target, truncate=truncate)


def _follow(
    words: WalkthroughText,
    model: Model,
    tokenizer: object,
    choices: ModelChoices,
    *,
    full: bool,
) -> Walkthrough:
    chosen: dict[str, Any] = dict(choices)
    loading = {name: chosen.pop(name) for name in Opening.__annotations__ if name in chosen}
    selection = _select(**chosen)
    source: Source = as_source(model, tokenizer, reads=words.text, generates=True, **loading)
    if not words.text:
        example: str = getattr(source, "example", "") or SENTENCE
        words = WalkthroughText(
            text=example, pair=words.pair, target=words.target, truncate=words.truncate
        )
    from attnviz.walkthroughs.capture.walks import follow

    return follow(words, source, selection, full=full)


def _select(
    layer: int | None = None,
    head: int | str | None = None,
    query: str | int | None = None,
    all_queries: bool = False,
    whole_layer: bool = False,
    kind: Kind | None = None,
    score: Score = "scaled",
    causal: bool = False,
) -> WalkthroughSelection:
    if query is not None and all_queries:
        raise SettingsError("give one query or all, not both")
    if score not in get_args(Score):
        known = ", ".join(map(repr, get_args(Score)))
        raise SettingsError(f"{score!r} is not one of {known}", "score")
    if head is not None and whole_layer:
        raise SettingsError("give one head or the whole layer, not both")
    if isinstance(head, str) and "." in head:
        layer_of_head, head = parse_head(head)
        if layer not in (None, layer_of_head):
            raise SettingsError(
                f"layer {layer} and head {layer_of_head}.{head} contradict each other"
            )
        layer = layer_of_head
    return WalkthroughSelection(
        layer=int(layer or 0),
        head=int(head or 0),
        query=None if query is None else str(query),
        all_queries=all_queries,
        whole_layer=whole_layer,
        kind=kind,
        score=score,
        causal=causal,
    )
