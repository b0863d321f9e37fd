"""Generation from Python: ``attnviz.generate``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from typing_extensions import Unpack

from attnviz.attention import Attention, HeadChoice, normalize_selection
from attnviz.capture.source import Model, Opening, as_source, check_keywords
from attnviz.errors import InputError
from attnviz.generations.settings import DEFAULT_MODEL, Sampling
from attnviz.text.display import check_sentence, check_text

if TYPE_CHECKING:
    from attnviz.generations.record import Step


def generate(
    prompt: str,
    model: Model = None,
    tokenizer: object = None,
    *,
    max_new_tokens: int = 40,
    chat: bool = False,
    layers: int | Iterable[int] | None = None,
    heads: HeadChoice = None,
    on_step: Callable[[Step], None] | None = None,
    sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int = 0,
    **loading: Unpack[Opening],
) -> Attention:
    """Continue or translate a text, and return the row of attention that chose each generated token.

    Each row of weights is verified when it is computed. Models with a key-value cache read each token once; others read
    the whole text again at each step. Ctrl-C, or a ``KeyboardInterrupt`` from `on_step`, stops the generation: the text
    so far is kept, with a note.

    Args:
        prompt: the text to continue, or the sentence to translate.
        model: a decoder or a model that translates, as for `attnviz.attend`; None is ``toy-decoder``.
        tokenizer: the tokenizer of a model in memory.
        max_new_tokens: the largest number of tokens; there are fewer if the model has no more positions.
        chat: whether to put the prompt into the model's chat template, as a message of the user.
        layers: the layers to keep, counted from 0, negative from the end; None keeps all.
        heads: the heads to keep, counted like layers; or with their layers, such as ``["0.1", "1.3"]``; None keeps all.
        on_step: is called with each new token and its row.
        sample: whether to draw each token by its probability; otherwise it is the most likely one.
        temperature: below 1, likely tokens come more often; this and the three below go with `sample`.
        top_k: draw among this many of the most likely tokens.
        top_p: draw among the most likely tokens that together have this probability.
        seed: the same seed gives the same text.
        loading: ``device``, ``dtype``, ``revision`` and ``trust_remote_code``, as for `attend`.

    Returns:
        The record: `weights` of shape (layer, head, generated token, key). For a decoder, of kind ``decoder``, the keys
        are the prompt and the generated tokens before the last; for a model that translates, of kind ``cross``, they
        are the tokens of the sentence.

    Raises:
        InputError: the prompt is empty or leaves no position, no token may be generated, or there is no chat template.
        ModelError: the model cannot generate, or its weights cannot be verified.
        SelectionError: a layer or head does not exist.
        SettingsError: the sampling is impossible, or the prompt is the name of a file.
        AttnvizError: the model cannot be opened, as for `attend`.
    """
    check_keywords(generate, loading, Opening.__optional_keys__)
    check_text(prompt, "the prompt")
    check_sentence(prompt)
    layers, heads = normalize_selection(layers, heads)
    if max_new_tokens < 1:
        raise InputError(
            f"at least 1 token must be generated, not {max_new_tokens} (max_new_tokens)"
        )
    sampling = Sampling(sample=sample, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    model = DEFAULT_MODEL if model is None else model
    source = as_source(model, tokenizer, reads=prompt, head="words", **loading)
    from attnviz.capture.sources.decoding import cannot_generate
    from attnviz.generations.capture import follow

    begin = getattr(source, "decoding", None)
    if begin is None:
        raise cannot_generate(source.name)
    with begin(prompt, chat=chat, most=max_new_tokens) as decoding:
        return follow(
            decoding,
            most=max_new_tokens,
            sampling=sampling,
            layers=layers,
            heads=heads,
            on_step=on_step,
        )
