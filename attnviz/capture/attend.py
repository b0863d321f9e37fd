"""Run a model on sentences and return records of its attention."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, cast

from typing_extensions import Unpack

from attnviz.attention import (
    MEMORY,
    Attention,
    HeadChoice,
    Kind,
    Note,
    Token,
    cut,
    grid_around,
    normalize_selection,
)
from attnviz.capture.source import Model, Opening, as_source, check_keywords
from attnviz.capture.sources import Source
from attnviz.errors import InputError, SettingsError
from attnviz.text.display import check_list, check_sentence, check_text

if TYPE_CHECKING:
    from attnviz.capture.observers import Batch


class Keeping(TypedDict, total=False):
    """The part of a model's attention that a record keeps (see `attend`)."""

    layers: int | Iterable[int] | None
    heads: HeadChoice
    rows: slice | None
    keys: slice | None
    memory: int | str
    vectors: bool


class Attending(Keeping, Opening, total=False):
    """Keywords of `attend`: what the record keeps, and how the model is loaded."""


def attend(
    text: str | Sequence[str] | Any,
    model: Model = None,
    tokenizer: object = None,
    *,
    pair: str | None = None,
    target: str | None = None,
    kind: Kind | None = None,
    **more: Unpack[Attending],
) -> Attention:
    """Run a model on a sentence and return its attention, verified to be the model's own.

    A text that is longer than the model's positions is cut, with a note in the record; one with a target is refused.

    Args:
        text: the sentence; for a Hugging Face model also its words, as a list, or what the tokenizer returned for one
            text: its output, or the token ids. Padding is left out, and a text too long is refused. In ids without a
            mask, padding is the tokenizer's ``pad_token_id`` at either end, unless it has another meaning too.
        model: a home-built model (such as ``toy``), a name on the hub, a folder, a Hugging Face model or torch module
            in memory, which is left unchanged, or a source that is already open; None is DistilBERT or, if it cannot
            be downloaded, ``toy`` (for Korean text ``toy-ko``), with a warning.
        tokenizer: the tokenizer of a model in memory.
        pair: a second sentence, for models that read two.
        target: the text that a translation model is made to generate (teacher forcing); None lets it run free.
        kind: the kind of attention to show, if the model has several; None is the usual one.
        more: the keywords below.
        layers: the layers to keep, such as ``[0, 2]`` or ``1``, counted from 0, negative from the end; None keeps all.
        heads: the heads to keep, counted in the same way, or with their layers, such as ``["0.1", "1.3"]``; None keeps
            all.
        rows: the query tokens to keep, such as ``slice(1000, 1200)``; None keeps all.
        keys: the key tokens to keep, as a slice; None keeps all.
        memory: the limit on the weights that are kept, in bytes or such as ``"4GB"``. Above it, neighbouring tokens are
            pooled (sum over the keys of a group, mean over its queries), with a note in the record.
        vectors: whether the record keeps the queries, keys and values of any size that fits in the memory beside the
            weights; False keeps them if they take at most 96 KB.
        device, dtype, revision, trust_remote_code, notify: how the model is loaded, as for `open_source`.

    Returns:
        The record: `weights` of shape (layer, head, query, key), float32.

    Raises:
        InputError: the text is empty, or with a target longer than the model takes; the memory is too small even for
            pooled weights, or for the vectors; or there is no such device, number format or size.
        SelectionError: there is no such layer, head, row, key or kind of attention, or a target is given for a model
            that generates no text.
        ModelError: the model cannot be used, its weights are not verified, or the tokenizer belongs to another model.
        FileFormatError: the file of a home-built model is damaged.
        SettingsError: the text is the name of a file, the memory is no size, a tokenizer is given for a model that has
            its own, or loading options are given for a model that is already loaded.
    """
    check_keywords(attend, more, Attending.__optional_keys__)
    if isinstance(text, str):
        (record,) = attend_all(
            [text], model, tokenizer, pairs=[pair], targets=[target], kind=kind, **more
        )
        return record
    if pair is not None:
        raise SettingsError("a pair goes with a text, not with words or token ids")
    keeping, loading = _divide(more)
    source = as_source(model, tokenizer, **loading)
    batch = source.encode_prepared(text, kind=kind, target=target)
    (record,) = attend_batch(batch, source, **keeping)
    return record


def _divide(more: Attending) -> tuple[Keeping, Opening]:
    """Return the keywords about the record, and those about loading."""
    keeping = {name: value for name, value in more.items() if name in Keeping.__optional_keys__}
    loading = {name: value for name, value in more.items() if name not in keeping}
    return cast("Keeping", keeping), cast("Opening", loading)


def attend_all(
    texts: Sequence[str],
    model: Model = None,
    tokenizer: object = None,
    *,
    pairs: Sequence[str | None] | None = None,
    targets: Sequence[str | None] | None = None,
    kind: Kind | None = None,
    **more: Unpack[Attending],
) -> list[Attention]:
    """Run a model on sentences as one batch, and return one record per sentence; padding changes no number.

    All records share the receipt of the whole batch. `pairs` and `targets` have one entry per sentence; all other
    arguments, and the errors, are as for `attend`.
    """
    check_keywords(attend_all, more, Attending.__optional_keys__)
    # Loading a model is slow, so every argument that can be checked without it is checked first.
    _check_texts(texts, pairs or [], targets or [])
    keeping, loading = _divide(more)
    layers, heads = normalize_selection(keeping.get("layers"), keeping.get("heads"))
    keeping = {**keeping, "layers": layers, "heads": heads}
    parse_bytes(keeping.get("memory", MEMORY))
    source = as_source(model, tokenizer, reads=texts[0], **loading)
    batch = source.encode(texts, pairs, kind=kind, targets=targets)
    return attend_batch(batch, source, **keeping)


def attend_batch(
    batch: Batch,
    source: Source,
    *,
    layers: int | Iterable[int] | None = None,
    heads: HeadChoice = None,
    rows: slice | None = None,
    keys: slice | None = None,
    memory: int | str = MEMORY,
    vectors: bool = False,
) -> list[Attention]:
    """Return the records of sentences that are encoded already; see `attend`."""
    from attnviz.capture.stream import RecordCollector

    layers, heads = normalize_selection(layers, heads)
    if vectors and (rows is not None or keys is not None):
        raise SettingsError("vectors are of whole sentences: give no rows or keys with them")
    labels = []
    for sentence in batch.sentences:
        key_tokens = sentence.tokens if sentence.keys is None else sentence.keys
        labels.append(cut(sentence.tokens, key_tokens, rows, keys))
    # A negative number counts from the end, which is unknown before the model runs: all are kept, the record selects.
    kept = [
        None if numbers is None or min(numbers, default=0) < 0 else numbers
        for numbers in grid_around(layers, heads)
    ]
    collector = RecordCollector(
        *kept, rows=rows, keys=keys, memory=parse_bytes(memory), vectors=vectors
    )
    receipt = source.stream(batch, [collector])
    cell = collector.cell  # the number of neighbouring tokens per row and per column
    records = []
    for index, (sentence, label) in enumerate(zip(batch.sentences, labels, strict=True)):
        weights = collector.weights(index)
        query_tokens, key_tokens = label["query_tokens"], label["key_tokens"]
        kind = batch.kind
        if kind is None:
            # A part of the weights may contain no key later than its query, so that it cannot show the kind.
            is_whole = rows is None and keys is None
            kind = collector.kind(weights) if is_whole else source.kinds[0]
        notes = list(sentence.notes)
        short_rows = list(label["short_rows"])
        if source.has_sinks:
            notes.append(Note("sinks"))
            short_rows.insert(0, "sink")
        if source.n_left_out:
            notes.append(Note.of("layers_left_out", n=source.n_left_out))
        notes += label["notes"]
        n_queries, n_keys = len(query_tokens), len(key_tokens)
        if cell > 1:
            counts = {"n_queries": n_queries, "n_keys": n_keys}
            notes.append(Note.of("pooled", cell=cell, wide=cell, **counts))
        record = Attention(
            weights=weights,
            query_tokens=_group_tokens(query_tokens, cell),
            key_tokens=_group_tokens(key_tokens, cell),
            kind=kind,
            model=source.name,
            text=sentence.text,
            pair=sentence.pair,
            target=sentence.target,
            receipt=receipt,
            layers=collector.layers,
            heads=collector.heads,
            short_rows=tuple(short_rows),
            cell=cell,
            pooled_from=(n_queries, n_keys) if cell > 1 else None,
            first=label["first"],
            by_step=sentence.target is not None and kind != "encoder",
            notes=tuple(notes),
            vectors=collector.vectors(index),
            exact=collector.exact(index, query_tokens, key_tokens),
        )
        records.append(record.select(layers, heads))
    return records


def parse_bytes(memory: int | str) -> int:
    """Return a size of memory in bytes; strings such as ``500MB`` or ``4GB`` count in powers of 1024.

    Raises:
        SettingsError: the string is not a size.
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


def _group_tokens(tokens: tuple[Token, ...], size: int) -> tuple[Token, ...]:
    """Return each group of `size` neighbouring tokens as one token, named by its first and its last token."""
    groups = [tokens[start : start + size] for start in range(0, len(tokens), size)]
    return tuple(
        group[0]
        if len(group) == 1
        else Token(text=f"{group[0].text}…{group[-1].text}", piece="", segment=group[0].segment)
        for group in groups
    )


def _check_texts(
    texts: Sequence[str], pairs: Sequence[str | None], targets: Sequence[str | None]
) -> None:
    """Raise InputError or SettingsError for a text that no model could read, or for unequal counts."""
    labels = ("the text", "the second sentence", "the target")
    for label, strings in zip(labels, (texts, pairs, targets), strict=True):
        check_list(strings)
        if not texts:
            raise InputError("there is no text: expected at least one")
        if strings and len(strings) != len(texts):
            raise InputError(f"{label} is given {len(strings)} times, for {len(texts)} texts")
        for text in strings:
            if text is not None or strings is texts:
                check_text(text, label)
                check_sentence(text)
