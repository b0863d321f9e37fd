"""Walkthroughs from Python: ``attnviz.walkthrough``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from typing_extensions import Unpack

from attnviz.attention import Kind, parse_head
from attnviz.capture.source import Model, Opening, as_source, check_keywords
from attnviz.errors import SettingsError
from attnviz.text.display import check_sentence, check_text
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.settings import Example, Score

if TYPE_CHECKING:
    from attnviz.capture.sources import Source

SENTENCE = "I love all you"  # the default sentence


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
    layer: int | None = None,
    head: int | str | None = None,
    query: str | int | None = None,
    all_queries: bool = False,
    whole_layer: bool = False,
    kind: Kind | None = None,
    score: Score = "scaled",
    full: bool = False,
    **loading: Unpack[Opening],
) -> Walkthrough:
    """Follow one word through one head of a model, or a calculation by hand, with every number.

    Args:
        text: the sentence; None is "I love all you", or an example in the language of the model. A text that is too
            long for the model is cut, with a note; with a target it is refused.
        model: as for `attnviz.attend`.
        tokenizer: as for `attnviz.attend`.
        example: a calculation by hand instead of a model: ``seq2seq``, ``seq2seq-word`` or ``self-attention``.
        numbers: a JSON or YAML file with your own numbers, instead of a model.
        exercise: the seed of an exercise with small integers, instead of a model; ``walk.blanks()`` are the cells
            that a learner fills in.
        pair: a second sentence, for models that read two sentences.
        target: the translation that a model is made to generate (teacher forcing).
        layer: its number, counted from 0, negative from the end.
        head: its number, counted like the layer; or layer and head, ``"2.3"``.
        query: a word or its number. Without it, the walkthrough follows the link that `attnviz.heatmap` names, and with
            it the clearest link of this word, among the heads that are chosen: a head without its layer is that of
            every layer. If there is none, the first layer and head, and the first word (the last one for a decoder).
        all_queries: whether to follow all words at once.
        whole_layer: whether to follow all heads, and then the rest of the layer.
        kind: the kind of attention, if the model has several.
        score: the score function; only home-built models allow another one than ``scaled``.
        full: whether to keep the projections of a large layer, which makes a file of about 160 MB.
        loading: options for loading the model: ``device``, ``dtype``, ``revision``, ``trust_remote_code``.

    Returns:
        The calculation, with the methods `save`, `figure`, `page` and `to_frame`.

    Raises:
        SettingsError: two arguments exclude each other.
        InputError: the model cannot read the text.
        FileFormatError: a file of numbers or weights cannot be read, or its contents do not fit together.
        SelectionError: the layer, head or query does not exist.
        ModelError: the model cannot be used, or its numbers cannot be verified.
    """
    check_keywords(walkthrough, loading, Opening.__optional_keys__)
    if query is not None and all_queries:
        raise SettingsError("give one query or all, not both")
    if [example, numbers, exercise].count(None) < 2:
        raise SettingsError("give one of example, numbers and exercise")
    query_name = None if query is None else str(query)
    if [example, numbers, exercise].count(None) < 3:
        of_model = (text, model, tokenizer, pair, target, layer, head, kind, score != "scaled")
        if any(value not in (None, False) for value in of_model) or whole_layer or loading:
            raise SettingsError(
                "a calculation by hand needs no model: it takes no sentence and no settings of a model"
            )
        return _calculate(example, numbers, exercise, query_name)
    if score not in get_args(Score):
        scores = ", ".join(map(repr, get_args(Score)))
        raise SettingsError(f"{score!r} is not one of {scores}", "score")
    if head is not None and whole_layer:
        raise SettingsError("give one head or the whole layer, not both")
    layer, head = _place(layer, head)
    _check_texts(text, pair, target)
    source: Source = as_source(model, tokenizer, reads=text or "", head="words", **loading)
    text = text or getattr(source, "example", "") or SENTENCE
    from attnviz.heatmaps.finding import find
    from attnviz.walkthroughs.capture.walks import follow

    chooses_link = all_queries or whole_layer or (query is not None and head is not None)
    return follow(
        text,
        source,
        layer=layer,
        head=head,
        query=query_name,
        all_queries=all_queries,
        whole_layer=whole_layer,
        kind=kind,
        score=score,
        pair=pair,
        target=target,
        full=full,
        find_link=None if chooses_link else find,
    )


def _place(layer: int | None, head: int | str | None) -> tuple[int | None, int | None]:
    """Return layer and head; the head may be text such as "2.3", which names both."""
    if isinstance(head, str) and not head.strip().removeprefix("-").isdecimal():
        layer_of_head, head = parse_head(head)
        if layer not in (None, layer_of_head):
            raise SettingsError(
                f"layer {layer} and head {layer_of_head}.{head} contradict each other"
            )
        layer = layer_of_head
    return layer, None if head is None else int(head)


def _check_texts(text: str | None, pair: str | None, target: str | None) -> None:
    for name, value in (("the text", text), ("the second sentence", pair), ("the target", target)):
        if value is not None:
            check_text(value, name)
    check_sentence(text)


def _calculate(
    example: Example | None,
    numbers: str | os.PathLike[str] | None,
    exercise: int | None,
    query: str | None,
) -> Walkthrough:
    """Return the example, the user's own numbers or the exercise, none of which needs a model."""
    if numbers is not None:
        from attnviz.walkthroughs.homework import read

        return read(Path(numbers), query=query)
    from attnviz.walkthroughs import examples

    if example is not None:
        return examples.example(example, query=query)
    return examples.make(exercise or 0)
