"""From a sentence and a model to the record of its attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from attnviz.attention import MEMORY, Attention, Kind, Note, Token, cut
from attnviz.capture.source import Loading, Model, Source, as_source
from attnviz.errors import InputError
from attnviz.text.display import check_text

if TYPE_CHECKING:
    from attnviz.capture.observers import Batch


def attend(
    text: str, model: Model = None, tokenizer: object = None, *, pair: str | None = None, target: str | None = None,
    kind: Kind | None = None, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None,
    rows: slice | None = None, keys: slice | None = None, truncate: bool = False, memory: int = MEMORY,
    **loading: Unpack[Loading],
) -> Attention:  # fmt: skip
    """Run a model on a sentence and return its attention, proved to be the model's own.

    Args:
        text: the sentence.
        model: a home-built model (such as ``toy``), a name on the hub, a folder, a Hugging Face model that is in
            memory, or a source that is already open; None is DistilBERT, or where that cannot be had (with a warning)
            ``toy``, for Korean ``toy-ko``. A model in memory may have any head (classification, question answering,
            masked or causal words, sequence to sequence), and stays as it was found.
        tokenizer: of a model in memory, its own.
        pair: a second sentence, for models that read two.
        target: what a model that translates is made to generate (teacher forcing); None lets it run free.
        kind: which attention to show, where the model has several; None is the usual one.
        layers: the layers to keep, counted from 0, negative from the end; None keeps all.
        heads: the heads to keep, likewise.
        rows: the query tokens to keep, such as ``slice(1000, 1200)``; None keeps all.
        keys: the key tokens to keep, likewise.
        truncate: cut the text where the model's positions end, with a note in the record, instead of refusing it.
        memory: bytes of weights that are kept at most. Where they would be more, tokens that follow one another go
            together: to a group the sum over its keys, from it the mean over its queries, with a note in the record.
        loading: ``device``, ``dtype``, ``revision`` and ``trust_remote_code``, as for `open_source`.

    Returns:
        The record: `weights` of shape (layer, head, query, key), float32.

    Raises:
        InputError: the text is empty, or longer than the model takes, or the memory is too small for anything.
        SelectionError: a layer, head, row, key or kind of attention that is not there, or a target for a model that
            generates nothing.
        ModelError: the model cannot be used, its weights are not proved, or the tokenizer is not its own.
        SettingsError: a tokenizer for a model that has its own, or ways to load one that is loaded.
    """
    _check_texts([text], [pair], [target])  # before a model is loaded for nothing
    (record,) = attend_all(
        [text], as_source(model, tokenizer, reads=text, **loading), pairs=[pair], targets=[target], kind=kind,
        layers=layers, heads=heads, rows=rows, keys=keys, truncate=truncate, memory=memory,
    )  # fmt: skip
    return record


def attend_all(
    texts: Sequence[str], source: Source, *, pairs: Sequence[str | None] | None = None,
    targets: Sequence[str | None] | None = None, kind: Kind | None = None, layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None, rows: slice | None = None, keys: slice | None = None,
    truncate: bool = False, memory: int = MEMORY,
) -> list[Attention]:  # fmt: skip
    """Run a model on sentences as one batch, and return a record for each; padding changes no number.

    The receipt of each record is that of the whole batch. Arguments and errors are those of `attend`.
    """
    _check_texts(texts, pairs or [], targets or [])
    batch = source.encode(texts, pairs, truncate=truncate, kind=kind, targets=targets)
    return attend_batch(batch, source, layers=layers, heads=heads, rows=rows, keys=keys, memory=memory)


def attend_batch(
    batch: Batch, source: Source, *, layers: Sequence[int] | None = None, heads: Sequence[int] | None = None,
    rows: slice | None = None, keys: slice | None = None, memory: int = MEMORY,
) -> list[Attention]:  # fmt: skip
    """The same of sentences that are encoded already."""
    from attnviz.capture.observers import KeepWeights
    from attnviz.capture.stream import KeepVectors

    labels = [cut(one.tokens, one.tokens if one.keys is None else one.keys, rows, keys) for one in batch.sentences]
    keep = KeepWeights(_from_start(layers), _from_start(heads), rows=rows, keys=keys, memory=memory)
    vectors = KeepVectors(keep)
    receipt = source.stream(batch, [keep, vectors])
    is_part = rows is not None or keys is not None  # which may show no key ahead of its query
    records = []
    for index, (sentence, label) in enumerate(zip(batch.sentences, labels, strict=True)):
        weights, (queries, columns) = keep.weights(index), (label["query_tokens"], label["key_tokens"])
        size = {"cell": keep.cell, "wide": keep.cell, "n_queries": len(queries), "n_keys": len(columns)}
        pooled = [Note.of("pooled", **size)] if keep.cell > 1 else []
        record = Attention(
            weights=weights, query_tokens=_grouped(queries, keep.cell), key_tokens=_grouped(columns, keep.cell),
            kind=batch.kind or source.kinds[0] if is_part else keep.kind(weights), model=source.name,
            text=sentence.text, pair=sentence.pair, target=sentence.target, receipt=receipt,
            layers=keep.layers, heads=keep.heads,
            short_rows=(*(("sink",) if source.has_sinks else ()), *label["short_rows"]),
            notes=(*sentence.notes, *([Note("sinks")] if source.has_sinks else []), *label["notes"], *pooled),
            vectors=vectors.of(index), exact=keep.exact(index, queries, columns),
        )  # fmt: skip
        records.append(record.select(layers, heads))
    return records


def _grouped(tokens: tuple[Token, ...], size: int) -> tuple[Token, ...]:
    """So many tokens at a time as one, which is named by the first and the last of them."""
    groups = [tokens[first : first + size] for first in range(0, len(tokens), size)]
    return tuple(
        first if not rest else Token(text=f"{first.text}…{rest[-1].text}", piece="", segment=first.segment)
        for first, *rest in groups
    )


def _check_texts(texts: Sequence[str], pairs: Sequence[str | None], targets: Sequence[str | None] = ()) -> None:
    if not texts:
        raise InputError("there is no text: expected at least one")
    for what, some in (("the text", texts), ("the second sentence", pairs), ("the target", targets)):
        for text in some:
            if text is not None:
                check_text(text, what)


def _from_start(numbers: Sequence[int] | None) -> Sequence[int] | None:
    """What can be chosen while rows stream by; numbers from the end must wait until the end is known."""
    return numbers if numbers and all(number >= 0 for number in numbers) else None
