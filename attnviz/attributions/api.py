"""Attributions from Python: ``attnviz.attribute``."""

from __future__ import annotations

from collections.abc import Callable

from typing_extensions import Unpack

from attnviz.attention import parse_head
from attnviz.attributions.record import Attribution
from attnviz.capture.source import Model, Opening, as_source, check_keywords
from attnviz.errors import InputError, SettingsError
from attnviz.text.display import check_sentence, check_text


def attribute(
    text: str,
    model: Model = None,
    tokenizer: object = None,
    *,
    target: str | None = None,
    word: str | None = None,
    label: str | None = None,
    head: str | tuple[int, int] | None = None,
    without_heads: bool = False,
    judged: int = 5,
    seed: int = 0,
    on_runs: Callable[[int], None] | None = None,
    **loading: Unpack[Opening],
) -> Attribution:
    """Find out what an output of a model does without the attention to each token.

    A cut takes out what edges of attention carry, weight times value, from the context vectors of each layer; the other
    weights stay as they are. How much a cut changes the output is compared with cuts of other edges of the same rows
    and the same total weight.

    Args:
        text: the text.
        model: a model of the attention interface of transformers, or a home-built one, as for `attnviz.attend`.
        tokenizer: the tokenizer of a model in memory.
        target: a word of the text, or its number, whose last vector is the output; ``sentence`` for the mean of all;
            ``next`` for the word that comes next; ``class`` for the class of a classifier. A mask in the text, such as
            ``[MASK]``, is a hidden word, which the model predicts. None is the usual output of the model.
        word: the word whose probability is the output: as the next word, as the hidden one, or in the text that a
            translator writes.
        label: the class whose probability is the output.
        head: the head whose weights are shown, such as ``"2.4"``; None shows the mean of all.
        without_heads: whether to measure the output without each head at all, too.
        judged: the number of tokens with the largest cuts that get a verdict; so do up to three with the largest
            weights, and two that change most where they are cut everywhere. Of a long text it is three in all.
        seed: of the control cuts, which are drawn at random.
        on_runs: is called with the number of variants of the text that have run so far.
        loading: ``device``, ``dtype``, ``revision`` and ``trust_remote_code``, as for `attend`.

    Returns:
        The attribution: numbers of shape (token,), and changes of heads of shape (layer, head).

    Raises:
        InputError: the text has one token, or the word is there twice.
        ModelError: nothing can be taken out of this model, or it predicts no words, or no classes.
        SelectionError: there is no such word, class or head.
        SettingsError: two of target, word and label are given.
        AttnvizError: the model cannot be opened, as for `attend`.
    """
    check_keywords(attribute, loading, Opening.__optional_keys__)
    check_text(text, "the text")
    check_sentence(text)
    if sum(output is not None for output in (target, word, label)) > 1:
        raise SettingsError("give one output: a target, or the word or the class that is predicted")
    for output in (target, word, label):
        if output is not None and not output.strip():
            raise InputError("the word or class that is the output is empty")
    if judged < 0:
        raise SettingsError("judged is a number of tokens: at least 0")
    place = None if head is None else parse_head(head)
    source = as_source(model, tokenizer, reads=text, head="saved", **loading)
    from attnviz.attributions.build import build

    return build(
        source,
        text,
        of=target,
        word=word,
        label=label,
        head=place,
        without_heads=without_heads,
        judged=judged,
        seed=seed,
        report=on_runs,
    )
