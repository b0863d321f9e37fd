"""The record: the attention of one run of a model, and the proof that it is the model's own.

It never changes: what is computed from it (words merged, specials hidden) is a new record, whose notes say so.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
from jaxtyping import Bool, Float32, Int, Int32

from attnviz.errors import RecordError, SelectionError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from attnviz.pages import WebPage
    from attnviz.render.figure.style import StyleName
    from attnviz.render.palette import Palette
    from attnviz.render.sheet import Scale

# bidirectional self-attention, causal, or on keys of another sequence
Kind = Literal["encoder", "decoder", "cross"]
# Why the rows of a record may sum to less (or, rounded, slightly more) than 1.
ShortRows = Literal["pooled", "truncated", "dropped", "sink", "rounded"]
AXES = ("layer", "head", "query", "key")
Weights: TypeAlias = Float32[np.ndarray, "layer head query key"]
EXACT = 2**21  # bytes of weights that a page has in full; of more it has a byte for each weight
MEMORY = 2**30  # bytes of weights that a record keeps where nothing else is said; more are pooled
ROW_TOLERANCE = 1e-3  # how far from 1 a row may sum: what float16 loses over 512 keys
# how far from 1 a row may sum in a file whose numbers were rounded for reading
ROUNDED_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token as the model read it and as a person reads it."""

    text: str  # what to show: no word-piece marks, no control characters
    piece: str  # the vocabulary's own spelling, such as ``##ing`` or ``Ġlove``
    # its number in the vocabulary; None where there is none (home-built words, merged words)
    id: int | None = None
    # first and one-past-last character in the input; None for added tokens
    span: tuple[int, int] | None = None
    # the number of the word it belongs to, counted over the whole input; None for specials
    word: int | None = None
    special: bool = False  # added by the tokenizer, such as ``[CLS]``
    # 0 for the first sentence, 1 for the second of a pair, 2 for what the model generates
    segment: int = 0


SOFTMAX = "softmax"  # native, where the weights are the very tensor that the model multiplied by its values


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that the captured weights are what the model computed.

    In the same forward pass, for every layer, the captured weights times the values were compared with the
    output of the model's native implementation: every number of every row, or, of a long text, random sums of each row
    (Freivalds 1977, "Probabilistic machines can use less running time"). Raises RecordError: a layer has no
    difference, or a number is negative or not finite.
    """

    native: str  # the native implementation, such as ``sdpa`` or ``eager``; of `SOFTMAX` there is nothing to compare
    dtype: str  # the model's number format, such as ``float32``
    tolerance: float  # the largest difference accepted, relative to a layer's largest output (or sum) above 1
    layers: tuple[int, ...]  # the layers that were compared
    # the largest absolute one in each of them, in the units of the layer's output
    differences: tuple[float, ...]
    # How many random sums of each row were compared, each of all its numbers with random signs: a wrong number changes
    # each by its own size, several cancel out in one with a chance of a half at most. None: every number was compared.
    sums: int | None = None

    def __post_init__(self) -> None:
        n_layers, n_differences = len(self.layers), len(self.differences)
        if n_layers != n_differences or not n_layers:
            raise RecordError(
                f"a receipt needs one difference a layer: got {n_differences} for {n_layers} layers"
            )
        if not all(0 <= number < np.inf for number in (*self.differences, self.tolerance)):
            got = f"got {self.differences}, tolerance {self.tolerance}"
            raise RecordError(f"a receipt's numbers must be finite and not negative: {got}")

    @property
    def max_difference(self) -> float:
        """The largest difference of all layers, in the units of their outputs."""
        return max(self.differences)

    def __str__(self) -> str:
        layers = _count(len(self.layers), "layer")
        if self.native == SOFTMAX:
            return f"verified: the model's own softmax in {layers}"
        difference = f"{self.max_difference:.1e}" if self.max_difference else "0"
        sums = f", in {self.sums} random sums of each row" if self.sums else ""
        return f"verified: max difference {difference} over {layers}{sums}"


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a reader should know, as data: `attnviz.text.notes` has the sentence, in each language."""

    code: str  # what was done, such as ``input_truncated_tokens``; ``text`` for a note whose sentence is a field
    fields: tuple[tuple[str, str | int], ...] = ()  # what differs from case to case, by name

    @classmethod
    def of(cls, code: str, **fields: str | int) -> Note:
        """Return a note with these fields."""
        return cls(code, tuple(fields.items()))


class ReadOnly:
    """A dataclass with read-only arrays, compared by value; copies, pickled ones too, are built and checked anew."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # it may be too large to hash

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        compared = [one.name for one in fields(self) if one.compare]  # type: ignore[arg-type]  # a dataclass
        pairs = ((getattr(self, name), getattr(other, name)) for name in compared)
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the call that builds a copy."""
        held = {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]  # a dataclass
        return partial(type(self), **held), ()

    def _lock(self, **arrays: np.ndarray) -> None:
        """Set fields to arrays that nobody can write into."""
        for name, array in arrays.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)


GENERATED = 2  # the segment of what a model generates
POOLED = "this record is pooled: it holds groups of tokens, and no token alone"
NUMBERS = frozenset({"weights", "vectors", "exact"})  # the fields of a record that are no labels
# The statistics of a head that are its share on one token.
NEIGHBOURS = {"self": 0, "previous": -1, "next": 1}
STATISTICS = ("entropy", "first", *NEIGHBOURS, "distance")  # in nats, as shares, in tokens
NO_RECEIPT = "not verified: this record came without a receipt"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QKV(ReadOnly):
    """Queries and keys as softmax(query key^T * scaling) takes them, after positions, and values; all float32."""

    query: Float32[np.ndarray, "layer head query d_k"]
    key: Float32[np.ndarray, "layer head key d_k"]
    value: Float32[np.ndarray, "layer head key d_v"]
    scaling: tuple[float, ...]  # of each layer

    def __post_init__(self) -> None:
        self._lock(**{name: np.array(getattr(self, name)) for name in ("query", "key", "value")})

    def select(self, layers: Sequence[int], heads: Sequence[int]) -> QKV:
        """Return the arrays of some layers and heads, by their places here."""
        chosen = {
            name: getattr(self, name)[np.ix_(layers, heads)] for name in ("query", "key", "value")
        }
        return QKV(**chosen, scaling=tuple(self.scaling[layer] for layer in layers))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenStatistics(ReadOnly):
    """The strongest links of each query, and statistics of each head, kept beside pooled weights."""

    query_tokens: tuple[Token, ...]
    key_tokens: tuple[Token, ...]
    # each of `STATISTICS` that there is, a mean over queries: of each layer, of each head
    statistics: dict[str, tuple[tuple[float, ...], ...]]
    link_keys: Int32[np.ndarray, "layer head token link"]  # numbers of keys, from the strongest
    link_weights: Float32[np.ndarray, "layer head token link"]  # 0 where no key is left

    def __post_init__(self) -> None:
        self._lock(link_keys=np.array(self.link_keys), link_weights=np.array(self.link_weights))

    def select(self, layers: Sequence[int], heads: Sequence[int]) -> TokenStatistics:
        """Return those of some layers and heads, by their places here."""
        chosen = np.ix_(layers, heads)
        statistics = {
            name: tuple(tuple(values[layer][head] for head in heads) for layer in layers)
            for name, values in self.statistics.items()
        }
        keys, weights = self.link_keys[chosen], self.link_weights[chosen]
        return replace(self, statistics=statistics, link_keys=keys, link_weights=weights)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Attention(ReadOnly):
    """The attention of one run of a model on one input.

    Of a long input the tokens may be groups of tokens (`cell` is then above 1): to a group the sum over its keys, from
    it the mean over its queries. Raises RecordError: the parts do not fit together.
    """

    ENDINGS = (".png", ".svg", ".pdf", ".html", ".json", ".npz", ".safetensors")

    weights: Weights  # after the softmax; read-only. Rows are queries, columns are keys
    query_tokens: tuple[Token, ...]  # one for each row
    key_tokens: tuple[Token, ...]  # one for each column
    kind: Kind  # which attention it is
    model: str  # the model's name
    text: str = ""  # the input, as typed
    pair: str | None = None  # the second sentence, where there was one
    # what the model generated, or was made to generate, where it generates text
    target: str | None = None
    # proof that the weights are the model's own; None for a file made elsewhere
    receipt: Receipt | None = None
    layers: tuple[int, ...] = ()  # the number, in the model, of each layer held; counted from 0
    heads: tuple[int, ...] = ()  # the number, in the model, of each head held; counted from 0
    short_rows: tuple[ShortRows, ...] = ()  # why rows may not sum to 1; empty where they do
    notes: tuple[Note, ...] = ()  # what was done to the input or the weights; every view shows them
    # What the weights were computed from, where that is small; files do not hold it.
    vectors: QKV | None = field(default=None, compare=False)
    exact: TokenStatistics | None = None  # of a pooled record what is known of each token

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights)
        if weights.ndim != len(AXES):
            axes = f"{len(AXES)} axes ({', '.join(AXES)})"
            raise RecordError(f"weights must have {axes}, but have {weights.ndim}: {weights.shape}")
        weights = np.array(weights, dtype=np.float32, order="C")
        self._lock(weights=weights)
        object.__setattr__(self, "query_tokens", tuple(self.query_tokens))
        object.__setattr__(self, "key_tokens", tuple(self.key_tokens))
        object.__setattr__(self, "layers", tuple(self.layers) or tuple(range(weights.shape[0])))
        object.__setattr__(self, "heads", tuple(self.heads) or tuple(range(weights.shape[1])))
        _check_labels(self)
        if self.exact is not None:
            _check_exact(self.exact, *weights.shape[:2])
        _check_rows(self)

    def __repr__(self) -> str:
        n_layers, n_heads, n_queries, n_keys = self.weights.shape
        return (
            f"<Attention of {self.model!r} ({self.kind}): {_count(n_layers, 'layer')} x {_count(n_heads, 'head')}, "
            f"{n_queries} queries x {n_keys} keys{f', each {self.cell} tokens' * (self.cell > 1)}; {self.proof}>"
        )

    @property
    def proof(self) -> str:
        """The receipt in words, as every view prints it."""
        return NO_RECEIPT if self.receipt is None else str(self.receipt)

    def __getitem__(self, place: tuple[int, int] | str) -> Float32[np.ndarray, "query key"]:
        """One head's matrix: ``record[2, 3]`` or ``record["2.3"]``, as `pattern`."""
        return self.pattern(*parse_head(place))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        palette: Palette | None = None,
        scale: Scale = "shared",
        lang: str = "en",
        roles: Any = None,
        title: str | None = "auto",
        style: StyleName = "sheet",
        width: str | None = None,
        dpi: int | None = None,
    ) -> Path:
        """Write the record to a file, by its ending.

        ``.safetensors``, ``.npz`` and ``.json`` lose nothing and can be loaded again; ``.png``, ``.svg`` and ``.pdf``
        are pictures, as `figure` draws them; ``.html`` is a page, as `page` makes it.

        Raises:
            OutputError: another ending, or a file that cannot be written.
            SelectionError: no such palette, scale or language.
            SettingsError: a style or a width that no picture has.
        """
        from attnviz.storage import record_files
        from attnviz.storage.files import check_ending, write_whole

        path = Path(path)
        ending = check_ending(path, self.ENDINGS, "a record is")
        content: str | bytes | Callable[[Path], object]
        if ending == ".json":
            content = record_files.to_json(self)
        elif ending == ".npz":
            content = record_files.npz(self)
        elif ending == ".safetensors":
            content = record_files.safetensors(self)
        elif ending == ".html":
            content = self.page(lang=lang, palette=palette, scale=scale, roles=roles).html
        else:
            from attnviz.heatmaps.figure import draw_record

            content = draw_record(
                self,
                palette=palette,
                scale=scale,
                lang=lang,
                title=title,
                style=style,
                width=width,
                dpi=dpi,
            ).fill
        return write_whole(path, content)

    def figure(
        self,
        *,
        palette: Palette | None = None,
        scale: Scale = "shared",
        lang: str = "en",
        title: str | None = "auto",
        style: StyleName = "sheet",
        width: str | None = None,
        dpi: int | None = None,
    ) -> Figure:
        """Draw the record as a Matplotlib figure, as `attnviz.heatmap` does."""
        from attnviz.heatmaps.figure import draw_record

        picture = draw_record(
            self,
            palette=palette,
            scale=scale,
            lang=lang,
            title=title,
            style=style,
            width=width,
            dpi=dpi,
        )
        return picture.figure

    def page(
        self,
        lang: str = "en",
        *,
        palette: Palette | None = None,
        scale: Scale = "shared",
        roles: Any = None,
    ) -> WebPage:
        """Make a page to explore, as `attnviz.page` does."""
        from attnviz.heatmaps.html import page

        return page(self, lang=lang, palette=palette, scale=scale, roles=roles)

    def to_frame(self) -> DataFrame:
        """The weights as a pandas frame: a row for each layer, head, query and key, with both tokens."""
        from pandas import DataFrame, MultiIndex

        sizes = (
            self.layers,
            self.heads,
            range(len(self.query_tokens)),
            range(len(self.key_tokens)),
        )
        frame = DataFrame(
            {"weight": self.weights.ravel()}, index=MultiIndex.from_product(sizes, names=AXES)
        )
        frame = frame.reset_index()
        for axis, tokens in (("query", self.query_tokens), ("key", self.key_tokens)):
            frame[f"{axis}_token"] = frame[axis].map(
                dict(enumerate(token.text for token in tokens))
            )
        return frame

    def _repr_html_(self) -> str | None:
        """Return a short record as a page in a frame, for notebooks."""
        return self.page()._repr_html_() if self.weights.nbytes <= EXACT else None

    def _repr_png_(self) -> bytes:
        """Return the picture that `attnviz.heatmap` draws, for notebooks where nothing can be explored."""
        from attnviz.heatmaps.figure import draw_record

        return draw_record(self).png()

    def pattern(
        self, layer: int | str, head: int | None = None
    ) -> Float32[np.ndarray, "query key"]:
        """Return one head's matrix, by its numbers in the model. Raises SelectionError: it is not held."""
        layer, head = parse_head(layer if head is None else (layer, head))
        (row,), (column,) = (
            indices_of([layer], self.layers, "layer"),
            indices_of([head], self.heads, "head"),
        )
        return np.asarray(self.weights[row, column])

    def links(
        self, layer: int | str, head: int | None = None, n: int = 8
    ) -> list[tuple[int, int, float]]:
        """Return the strongest link to each of the n most attended keys, as (query, key, weight).

        Special tokens, and attention of a token to itself, are left out. A pooled record has only links that are
        certain: one not larger than the smallest that was kept of some row may not be among the largest. Raises
        SelectionError, as `pattern`.
        """
        layer, head = parse_head(layer if head is None else (layer, head))
        weights, least = np.array(self.pattern(layer, head)), 0.0
        keys = np.broadcast_to(np.arange(weights.shape[1]), weights.shape)
        n_keys = len(self.key_tokens)
        if self.exact is not None:
            at = self.layers.index(layer), self.heads.index(head)
            weights, keys = np.array(self.exact.link_weights[at]), self.exact.link_keys[at]
            n_keys = len(self.exact.key_tokens)
            # A weight that was not kept is no larger than the last link of its row, nor than all that is left.
            not_kept = np.minimum(weights.min(axis=1, initial=1), 1 - weights.sum(axis=1))
            least = max(0.0, float(not_kept.max()))
        weights[is_trivial_link(self, keys)] = 0
        best = np.zeros(n_keys, dtype=np.float32)
        np.maximum.at(best, keys, weights)
        links = []
        for key in np.argsort(-best, kind="stable")[:n].tolist():
            if best[key] > least:
                query = int(np.nonzero((keys == key) & (weights == best[key]))[0][0])
                links.append((query, key, float(best[key])))
        return links

    @property
    def cell(self) -> int:
        """The number of tokens that share a row and a column; 1 where each has its own."""
        return next(
            (int(dict(note.fields)["cell"]) for note in self.notes if note.code == "pooled"), 1
        )

    @property
    def first(self) -> tuple[int, int]:
        """The numbers of the first query token and the first key token; above 0 in a part of a record."""
        part = dict(next((note.fields for note in self.notes if note.code == "part"), ()))
        return int(part.get("query_first", 0)), int(part.get("key_first", 0))

    def part(self, rows: slice | None = None, keys: slice | None = None) -> Attention:
        """Return a record of these rows and columns only; rows may then sum to less than 1.

        Raises SelectionError: there are none, or tokens are pooled.
        """
        if rows is None and keys is None:
            return self
        if self.cell > 1:
            raise SelectionError(f"{POOLED}: run the model again, with rows and keys")
        labels = cut(self.query_tokens, self.key_tokens, rows, keys)
        labels["notes"] = (*self.notes, *labels["notes"])
        labels["short_rows"] = tuple(dict.fromkeys((*self.short_rows, *labels["short_rows"])))
        weights = self.weights[:, :, rows or slice(None), keys or slice(None)]
        return replace(self, weights=weights, vectors=None, **labels)

    def select(
        self, layers: Iterable[int] | None = None, heads: Iterable[int | str] | None = None
    ) -> Attention:
        """Return a record of these layers and heads only; None keeps all, negative numbers count back.

        A head may be named with its layer, such as "1.3". Raises SelectionError: one is not held.
        """
        if layers is None and heads is None:
            return self
        layers, heads = normalize_selection(layers, heads)
        rows = indices_of(self.layers if layers is None else layers, self.layers, "layer")
        columns = indices_of(self.heads if heads is None else heads, self.heads, "head")
        return replace(
            self,
            weights=self.weights[np.ix_(rows, columns)],
            vectors=None if self.vectors is None else self.vectors.select(rows, columns),
            exact=None if self.exact is None else self.exact.select(rows, columns),
            layers=tuple(self.layers[row] for row in rows),
            heads=tuple(self.heads[column] for column in columns),
        )


def is_trivial_link(
    record: Attention, keys: Int[np.ndarray, "*head query link"]
) -> Bool[np.ndarray, "*head query link"]:
    """Return which links of each token to these keys involve a special token, or the token itself."""
    of = record.exact or record
    queries, special = (
        np.array([token.special for token in side]) for side in (of.query_tokens, of.key_tokens)
    )
    itself = np.arange(len(queries))[:, None] + record.first[0] - record.first[1]
    return np.asarray(
        queries[:, None] | special[keys] | ((keys == itself) & (record.kind != "cross"))
    )


def parse_head(place: object) -> tuple[int, int]:
    """Return a layer and a head from ``(2, 3)`` or ``"2.3"``. Raises SelectionError: it is neither."""
    if isinstance(place, str) and (
        typed := re.fullmatch(r"(-?\d{1,7})\.(-?\d{1,7})", place.strip(), re.ASCII)
    ):
        return int(typed[1]), int(typed[2])
    match place:
        case (layer, head) if all(isinstance(one, (int, np.integer)) for one in place):
            return int(layer), int(head)  # type: ignore[call-overload]  # as just seen
    shown = place.strip() if isinstance(place, str) else place
    raise SelectionError(f"{shown!r} is no head: give its layer and its number, such as 1.2")


def normalize_selection(
    layers: Iterable[int] | None, heads: Iterable[int | str] | None
) -> tuple[list[int] | None, list[int] | None]:
    """Return layers and heads as lists of numbers; None chooses all, a head such as "1.3" its layer too.

    Raises SelectionError: there are none, or heads are of several layers.
    """
    chosen = None if layers is None else [index(one) for one in layers]
    places = [
        parse_head(one) if isinstance(one, str) else (None, index(one))
        for one in (() if heads is None else heads)
    ]
    named = [*{layer for layer, _ in places if layer is not None}]
    if len(named) > 1 or (named and chosen not in (None, named)):
        where = "" if chosen is None else f" in layers {chosen}"
        raise SelectionError(
            f"heads {heads!r}{where} are not of one layer: give layers and heads apart"
        )
    for what, some in (("layer", chosen), ("head", None if heads is None else places)):
        if some == []:
            raise SelectionError(f"choose at least one {what}, by numbers such as [0, 2], not []")
    return named or chosen, None if heads is None else [head for _, head in places]


def indices_of(wanted: Iterable[int], held: Sequence[int], what: str) -> list[int]:
    """Return the places of the wanted layers or heads among those held, in their order, each once.

    Raises SelectionError: one is not there.
    """
    found = set()
    for number in wanted:
        actual = number if number >= 0 else held[number] if -number <= len(held) else None
        if actual not in held:
            there = f"{held[0]} to {held[-1]}" if _is_run(held) else ", ".join(map(str, held))
            only = f"{what} {held[0]} only" if len(held) == 1 else f"{what}s {there}"
            whose = "this model has" if _is_run(held) and held[0] == 0 else "this record holds"
            raise SelectionError(f"there is no {what} {number}: {whose} {only} (counted from 0)")
        found.add(held.index(actual))
    return sorted(found)


def cut(
    queries: Sequence[Token], keys: Sequence[Token], rows: slice | None, columns: slice | None
) -> dict[str, Any]:
    """Return the labels of a part of a record: its tokens, why its rows may be short, and a note.

    Raises SelectionError: the part is empty.
    """
    labels: dict[str, Any] = {"notes": (), "short_rows": ()}
    fields: dict[str, int] = {}
    for name, tokens, chosen in (("query", queries, rows), ("key", keys, columns)):
        held = range(*(chosen or slice(None)).indices(len(tokens)))
        if not held:
            raise SelectionError(
                f"there is no {name} token there: there are {len(tokens):,}, counted from 0"
            )
        labels[f"{name}_tokens"] = tuple(tokens[held.start : held.stop])
        fields |= {
            f"{name}_first": held.start,
            f"{name}_last": held.stop - 1,
            f"{name}_all": len(tokens),
        }
    if rows is not None or columns is not None:
        labels["notes"] = (Note.of("part", **fields),)
        labels["short_rows"] = ("truncated",) if len(labels["key_tokens"]) < len(keys) else ()
    return labels


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _is_run(numbers: Sequence[int]) -> bool:
    return list(numbers) == list(range(numbers[0], numbers[0] + len(numbers)))


def _check_labels(record: Attention) -> None:
    for axis, size in zip(
        ("layers", "heads", "query_tokens", "key_tokens"), record.weights.shape, strict=True
    ):
        if len(getattr(record, axis)) != size:
            raise RecordError(
                f"weights have {size} {axis}, but {len(getattr(record, axis))} are named"
            )
        if size == 0:
            raise RecordError(f"a record needs at least one of each: there are no {axis}")
    for axis in ("layers", "heads"):
        numbers: tuple[int, ...] = getattr(record, axis)
        if len(set(numbers)) != len(numbers) or min(numbers) < 0:
            raise RecordError(f"{axis} are numbers from 0, each once: got {numbers}")
    if record.kind not in get_args(Kind):
        raise RecordError(f"kind must be one of {', '.join(get_args(Kind))}, not {record.kind!r}")
    for reason in record.short_rows:
        if reason not in get_args(ShortRows):
            raise RecordError(
                f"rows may be short for {', '.join(get_args(ShortRows))}, not {reason!r}"
            )


def _check_exact(exact: TokenStatistics, layers: int, heads: int) -> None:
    shape = layers, heads, len(exact.query_tokens)
    if exact.link_keys.shape[:-1] != shape or exact.link_weights.shape != exact.link_keys.shape:
        raise RecordError(
            f"links must be of (layer, head, token) {shape}, not {exact.link_keys.shape[:-1]}"
        )
    if exact.link_keys.size and not 0 <= exact.link_keys.min() <= exact.link_keys.max() < len(
        exact.key_tokens
    ):
        raise RecordError(f"links must be to the keys 0 to {len(exact.key_tokens) - 1}")
    if any(np.shape(values) != (layers, heads) for values in exact.statistics.values()):
        raise RecordError(f"statistics must be of {layers} layers and {heads} heads")


def _check_rows(record: Attention) -> None:
    weights = record.weights
    with np.errstate(invalid="ignore"):  # infinities of both signs: refused in a moment
        sums = weights.sum(axis=-1, dtype=np.float64)
    # A NaN or an infinity anywhere makes its row's sum one too, so the sums show it without a second pass.
    if not np.isfinite(sums).all():
        raise RecordError(
            f"weights must be finite: {_where(record, ~np.isfinite(sums))} holds NaN or infinity"
        )
    if weights.min() < 0:
        negative = np.asarray((weights < 0).any(axis=-1))
        raise RecordError(
            f"weights must not be negative: {_where(record, negative)} holds {weights.min():g}"
        )
    slack = ROUNDED_TOLERANCE if "rounded" in record.short_rows else ROW_TOLERANCE
    may_be_short = bool(set(record.short_rows) - {"rounded"})
    wrong = np.asarray(np.abs(sums - 1) > slack if not may_be_short else sums > 1 + slack)
    if wrong.any():
        total = sums[tuple(np.argwhere(wrong)[0])]
        raise RecordError(f"each row must sum to 1: {_where(record, wrong)} sums to {total:.6g}")


def _where(record: Attention, rows: np.ndarray) -> str:
    layer, head, query = np.argwhere(rows)[0]
    return f"layer {record.layers[layer]}, head {record.heads[head]}, row {query}"
