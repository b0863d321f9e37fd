"""From a sentence and a model to the record of its attention."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

from attnviz.attention import MEMORY, Attention, Kind, Note, Token, cut, normalize_selection
from attnviz.capture.source import Model, Opening, as_source
from attnviz.capture.sources import Source
from attnviz.errors import InputError, SettingsError
from attnviz.text.display import check_sentence, check_text

if TYPE_CHECKING:
    from attnviz.capture.observers import Batch


class Selection(TypedDict, total=False):
    """Which part of the weights is kept (see `attend`)."""

    layers: Iterable[int] | None
    heads: Iterable[int | str] | None
    rows: slice | None
    keys: slice | None
    memory: int | str


class Attending(Selection, Opening, total=False):
    """What is kept, and how the model is found and loaded."""


def attend(
    text: str,
    model: Model = None,
    tokenizer: object = None,
    *,
    pair: str | None = None,
    target: str | None = None,
    kind: Kind | None = None,
    truncate: bool = False,
    **settings: Unpack[Attending],
) -> Attention:
    """Run a model on a sentence and return its attention, proved to be the model's own.

    Args:
        text: the sentence.
        model: a home-built model (such as ``toy``), a name on the hub, a folder, a Hugging Face model in memory, of any
            head, which stays as it was found, or a source that is already open; None is DistilBERT, or where that
            cannot be had (with a warning) ``toy``, for Korean ``toy-ko``.
        tokenizer: of a model in memory, its own.
        pair: a second sentence, for models that read two.
        target: what a model that translates is made to generate (teacher forcing); None lets it run free.
        kind: which attention to show, where the model has several; None is the usual one.
        truncate: cut the text where the model's positions end, with a note in the record, instead of refusing it.
        settings: what is kept: ``layers`` and ``heads``, such as ``[0, 2]``, counted from 0, negative from the end, or
            heads with their layer, such as ``["1.3"]``; ``rows`` and ``keys``, the query and key tokens, such as
            ``slice(1000, 1200)``; at most ``memory`` of weights, in bytes or such as ``"4GB"``. Where they would be
            more, tokens that follow one another go together: to a group the sum over its keys, from it the mean over
            its queries, with a note in the record. And how the model is loaded: ``device``, ``dtype``, ``revision``,
            and ``trust_remote_code``, as for `open_source`.

    Returns:
        The record: `weights` of shape (layer, head, query, key), float32.

    Raises:
        InputError: the text is empty, or longer than the model takes; the memory is too small for anything; or there is
            no such device, number format or size.
        SelectionError: a layer, head, row, key or kind of attention that is not there, or a target for a model that
            generates nothing.
        ModelError: the model cannot be used, its weights are not proved, or the tokenizer is not its own.
        FileFormatError: the file of a home-built model is damaged.
        SettingsError: no such setting, a text that is the name of a file, a tokenizer for a model that has its own, or
            ways to load one that is loaded.
    """
    _check_texts([text], [pair], [target])  # before a model is loaded for nothing
    kept, loading = _split(settings)
    source = as_source(model, tokenizer, reads=text, **loading)
    batch = source.encode([text], [pair], truncate=truncate, kind=kind, targets=[target])
    (record,) = attend_batch(batch, source, **kept)
    return record


def _split(settings: Attending) -> tuple[Selection, Opening]:
    """What is kept, which is checked, and how the model is loaded."""
    kept: dict[str, Any] = {
        name: settings[name]  # type: ignore[literal-required]
        for name in Selection.__annotations__
        if name in settings
    }
    kept["layers"], kept["heads"] = normalize_selection(kept.get("layers"), kept.get("heads"))
    parse_bytes(kept.get("memory", MEMORY))
    loading = {name: value for name, value in settings.items() if name not in kept}
    return cast("Selection", kept), cast("Opening", loading)


def attend_all(
    texts: Sequence[str],
    model: Model,
    *,
    pairs: Sequence[str | None] | None = None,
    targets: Sequence[str | None] | None = None,
    kind: Kind | None = None,
    truncate: bool = False,
    **settings: Unpack[Attending],
) -> list[Attention]:
    """Run a model on sentences as one batch, and return a record for each; padding changes no number.

    The receipt of each record is that of the whole batch.

    Args:
        texts: the sentences.
        model: as for `attend`, or a source that is already open.
        pairs: the second sentence of each; None where there is none.
        targets: likewise what is generated.
        kind: as for `attend`, as are the following.
        truncate: cut texts where the model's positions end.
        settings: as for `attend`.

    Returns:
        A record for each sentence: `weights` of shape (layer, head, query, key), float32.

    Raises:
        AttnvizError: as `attend` does.
    """
    _check_texts(texts, pairs or [], targets or [])
    kept, loading = _split(settings)
    source = as_source(model, reads=texts[0], **loading)
    batch = source.encode(texts, pairs, truncate=truncate, kind=kind, targets=targets)
    return attend_batch(batch, source, **kept)


def attend_batch(
    batch: Batch,
    source: Source,
    *,
    layers: Iterable[int] | None = None,
    heads: Iterable[int | str] | None = None,
    rows: slice | None = None,
    keys: slice | None = None,
    memory: int | str = MEMORY,
) -> list[Attention]:
    """The same of sentences that are encoded already."""
    from attnviz.capture.stream import RecordCollector

    layers, heads = normalize_selection(layers, heads)
    labels = [
        cut(one.tokens, one.tokens if one.keys is None else one.keys, rows, keys)
        for one in batch.sentences
    ]
    keep = RecordCollector(
        _from_start(layers), _from_start(heads), rows=rows, keys=keys, memory=parse_bytes(memory)
    )
    receipt = source.stream(batch, [keep])
    is_part = rows is not None or keys is not None  # which may show no key ahead of its query
    records = []
    for index, (sentence, label) in enumerate(zip(batch.sentences, labels, strict=True)):
        weights, (queries, columns) = (
            keep.weights(index),
            (label["query_tokens"], label["key_tokens"]),
        )
        size = {
            "cell": keep.cell,
            "wide": keep.cell,
            "n_queries": len(queries),
            "n_keys": len(columns),
        }
        pooled = [Note.of("pooled", **size)] if keep.cell > 1 else []
        record = Attention(
            weights=weights,
            query_tokens=_grouped(queries, keep.cell),
            key_tokens=_grouped(columns, keep.cell),
            kind=batch.kind or (source.kinds[0] if is_part else keep.kind(weights)),
            model=source.name,
            text=sentence.text,
            pair=sentence.pair,
            target=sentence.target,
            receipt=receipt,
            layers=keep.layers,
            heads=keep.heads,
            short_rows=(*(("sink",) if source.has_sinks else ()), *label["short_rows"]),
            notes=(
                *sentence.notes,
                *([Note("sinks")] if source.has_sinks else []),
                *label["notes"],
                *pooled,
            ),
            vectors=keep.vectors(index),
            exact=keep.exact(index, queries, columns),
        )
        records.append(record.select(layers, heads))
    return records


def parse_bytes(memory: int | str) -> int:
    """Return a size of memory in bytes, which may be written as ``500MB`` or ``4GB``.

    Raises:
        SettingsError: it is no size.
    """
    if isinstance(memory, int):
        return memory
    match = re.fullmatch(
        r"(\d{1,6}(?:\.\d{1,3})?) ?([KMGT])i?B?", memory.strip(), re.ASCII | re.IGNORECASE
    )
    if match is None:
        raise SettingsError(f"{memory!r} is no size such as 500MB or 4GB", "memory")
    exponent = 10 * (1 + "KMGT".index(match[2].upper()))
    return int(float(match[1]) * 2**exponent)


def _grouped(tokens: tuple[Token, ...], size: int) -> tuple[Token, ...]:
    """So many tokens at a time as one, which is named by the first and the last of them."""
    groups = [tokens[first : first + size] for first in range(0, len(tokens), size)]
    return tuple(
        first
        if not rest
        else Token(text=f"{first.text}…{rest[-1].text}", piece="", segment=first.segment)
        for first, *rest in groups
    )


def _check_texts(
    texts: Sequence[str], pairs: Sequence[str | None], targets: Sequence[str | None]
) -> None:
    if not texts:
        raise InputError("there is no text: expected at least one")
    for what, some in (
        ("the text", texts),
        ("the second sentence", pairs),
        ("the target", targets),
    ):
        if some and len(some) != len(texts):
            raise InputError(f"{what} is given {len(some)} times, for {len(texts)} texts")
        for text in some:
            if text is not None or some is texts:
                check_text(text, what)
                check_sentence(text)


def _from_start(numbers: Sequence[int] | None) -> Sequence[int] | None:
    """What can be chosen while rows stream by; numbers from the end must wait until the end is known."""
    return numbers if numbers and all(number >= 0 for number in numbers) else None
