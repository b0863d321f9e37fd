"""Walkthroughs from Python: ``attnviz.walkthrough``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, get_args

from attnviz.attention import Kind, parse_head
from attnviz.capture.source import Model, Opening, as_source
from attnviz.errors import SettingsError
from attnviz.text.display import check_sentence, check_text
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.settings import Example, Score

if TYPE_CHECKING:
    from attnviz.capture.sources import Source

SENTENCE = "I love all you"  # read where no sentence is given


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
    layer: int | None = None,
    head: int | str | None = None,
    query: str | int | None = None,
    all_queries: bool = False,
    whole_layer: bool = False,
    kind: Kind | None = None,
    score: Score = "scaled",
    causal: bool = False,
    full: bool = False,
    **loading: Unpack[Opening],
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
        target: the translation that a model is made to generate (teacher forcing).
        truncate: whether a text that is too long for the model is cut.
        layer: its number, counted from 0, negative from the end; None is the first.
        head: its number likewise; or a head with its layer, ``"2.3"``; None is the first.
        query: a word or its number; None is the first word, of a decoder the last.
        all_queries: whether all words are followed at once.
        whole_layer: whether all heads are followed, and then the rest of the layer.
        kind: which attention, where the model has several.
        score: how a query and a key make a score; another than ``scaled`` for home-built models only.
        causal: whether the words after each word are hidden; for home-built models only.
        full: whether the projections of a large whole layer are kept, too, which makes a file of 160 MB.
        loading: how the model is loaded: ``device``, ``dtype``, ``revision``, ``trust_remote_code``.

    Returns:
        The calculation, which has `save`, `figure`, `page` and `to_frame`.

    Raises:
        SettingsError: arguments that exclude one another.
        InputError: the text cannot be read by the model.
        FileFormatError: a file of numbers or weights cannot be read, or does not fit together.
        SelectionError: a layer, head or query that is not there.
        ModelError: the model cannot be used, or its numbers are not proved.
    """
    if query is not None and all_queries:
        raise SettingsError("give one query or all, not both")
    if [example, numbers, exercise].count(None) < 2:
        raise SettingsError("give one of example, numbers and exercise")
    wanted = None if query is None else str(query)
    if [example, numbers, exercise].count(None) < 3:
        of_model = (text, model, tokenizer, pair, target, layer, head, kind, score != "scaled")
        flags = (truncate, whole_layer, causal, loading)
        if any(value not in (None, False) for value in of_model) or any(flags):
            raise SettingsError(
                "a calculation by hand needs no model: it takes no sentence and no settings of a model"
            )
        return _calculate(example, numbers, exercise, wanted)
    if score not in get_args(Score):
        known = ", ".join(map(repr, get_args(Score)))
        raise SettingsError(f"{score!r} is not one of {known}", "score")
    if head is not None and whole_layer:
        raise SettingsError("give one head or the whole layer, not both")
    layer, head = _place(layer, head)
    _check_texts(text, pair, target)
    source: Source = as_source(model, tokenizer, reads=text or "", generates=True, **loading)
    text = text or getattr(source, "example", "") or SENTENCE
    from attnviz.walkthroughs.capture.walks import follow

    return follow(
        text,
        source,
        layer=layer,
        head=head,
        query=wanted,
        all_queries=all_queries,
        whole_layer=whole_layer,
        kind=kind,
        score=score,
        causal=causal,
        pair=pair,
        target=target,
        truncate=truncate,
        full=full,
    )


def _place(layer: int | None, head: int | str | None) -> tuple[int, int]:
    """Return the layer and the head, of which the head may name both."""
    if isinstance(head, str) and "." in head:
        layer_of_head, head = parse_head(head)
        if layer not in (None, layer_of_head):
            raise SettingsError(
                f"layer {layer} and head {layer_of_head}.{head} contradict each other"
            )
        layer = layer_of_head
    return int(layer or 0), int(head or 0)


def _check_texts(text: str | None, pair: str | None, target: str | None) -> None:
    for name, given in (("the text", text), ("the second sentence", pair), ("the target", target)):
        if given is not None:
            check_text(given, name)
    check_sentence(text)


def _calculate(
    example: Example | None,
    numbers: str | os.PathLike[str] | None,
    exercise: int | None,
    query: str | None,
) -> Walkthrough:
    """Return a calculation that needs no model."""
    if numbers is not None:
        from attnviz.walkthroughs.homework import read

        return read(Path(numbers), query=query)
    from attnviz.walkthroughs import examples

    if example is not None:
        return examples.example(example, query=query)
    return examples.make(exercise or 0)
