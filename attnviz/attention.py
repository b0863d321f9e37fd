"""The record: the attention of one run of a model, and the proof that it is the model's own.

A record never changes. An operation on it, such as merging words or hiding special tokens, returns a new record whose
notes name the operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import product
from operator import index
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast, get_args

import numpy as np
from jaxtyping import Bool, Float32, Int, Int32

from attnviz.errors import RecordError, SelectionError
from attnviz.result import Result

if TYPE_CHECKING:
    from pandas import DataFrame


# Bidirectional self-attention, causal self-attention, or attention to the keys of another sequence.
Kind = Literal["encoder", "decoder", "cross"]
# Why the rows of a record may sum to less than 1; rounded ones may sum to slightly more, and those of a sigmoid, which
# are not normalised, to any number.
ShortRows = Literal["pooled", "truncated", "dropped", "sink", "rounded", "masked", "unnormalised"]
# The axes that a record can be averaged over.
MeanAxis = Literal["layers", "heads"]
# What chooses layers and heads: numbers, "mean", heads with their layer, such as "1.3" or (1, 3), or None for all.
LayerChoice: TypeAlias = int | str | None
HeadChoice: TypeAlias = int | str | tuple[int, int] | Iterable[int | str | tuple[int, int]] | None
# What `Attention.__getitem__` takes.
Place: TypeAlias = int | str | slice | tuple[int | slice, int | slice]
AXES = ("layer", "head", "query", "key")
Weights: TypeAlias = Float32[np.ndarray, "layer head query key"]
# The most bytes of weights that a page holds in full; above that it holds one byte per weight.
EXACT = 2**21
# The default limit on the bytes of weights that a record keeps; beyond it tokens are pooled.
MEMORY = 2**30
MOST_NAMED = 32  # heads that are named one by one
# How far a row sum may be from 1.
ROW_TOLERANCE = 1e-3
# The same for a model in bfloat16, whose rounding changes each weight by at most 1/512 of it.
BFLOAT16_TOLERANCE = 2e-3
# How far a row sum may be from 1 in a file whose numbers were rounded for human readers.
ROUNDED_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """One token, both as the model reads it and as a person reads it."""

    text: str  # the text to show, without word-piece marks and control characters
    piece: str  # the vocabulary's own spelling, such as ``##ing`` or ``Ġlove``
    # The id in the vocabulary; None for tokens without one (words made on the spot, merged words).
    id: int | None = None
    # The first and one-past-last character in the input; None for tokens that the tokenizer added.
    span: tuple[int, int] | None = None
    # The number of the token's word, counted over the whole input; None for special tokens.
    word: int | None = None
    special: bool = False  # added by the tokenizer, such as ``[CLS]``
    # 0 for the first sentence, 1 for the second sentence of a pair, 2 for generated text
    segment: int = 0


# The largest accepted difference for each number format of a model, three to ten times its rounding error; unknown
# formats have that of float32.
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.5e-2}
# `Receipt.native` if the weights are the very tensor that the model multiplied by its values.
SOFTMAX = "softmax"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof that the captured weights are what the model computed.

    In the same forward pass, for every layer, the captured weights times the values were compared with the output of
    the model's native implementation: every number of every row or, for a long text, random sums of each row (Freivalds
    1977, "Probabilistic machines can use less running time"). The weights themselves were compared with those that the
    implementation returned; one that returns none ran again with random values in place of the model's own, for all
    rows of a short text and a sample of rows of a long one.

    Raises:
        RecordError: a layer has no difference, a number is negative or not finite, a difference is above the tolerance,
            or the tolerance is above that of the number format.
    """

    # The native implementation, such as ``sdpa`` or ``eager``. With `SOFTMAX` there is nothing to compare: the weights
    # are the model's own tensor.
    native: str
    dtype: str  # the model's number format, such as ``float32``
    tolerance: float  # the largest accepted difference for this number format
    layers: tuple[int, ...]  # the layers that were compared
    # The largest difference in each of these layers: of an output, as a share of the row's weighted values; of weights,
    # in a row that sums to 1. In float32 and float64, differences of rows with scores above 16 are divided by a 16th of
    # these scores, because rounding errors grow with them.
    differences: tuple[float, ...]
    # The number of random sums compared per row; None if every number was compared. Each sum adds all numbers of a row
    # with random signs. A single wrong number changes every sum by its own error; several wrong numbers cancel out in
    # one sum with a probability of at most 1/2.
    sums: int | None = None
    # Whether the weights themselves were compared, or only their products with the values, which other weights may have
    # too.
    proves: Literal["weights", "output"] = "weights"
    # The number of rows of each layer in which the weights themselves were compared; None if in all.
    rows: int | None = None

    def __post_init__(self) -> None:
        n_layers, n_differences = len(self.layers), len(self.differences)
        if n_layers != n_differences or not n_layers:
            raise RecordError(
                f"a receipt needs one difference a layer: got {n_differences} for {count(n_layers, 'layer')}"
            )
        largest = TOLERANCE.get(self.dtype, TOLERANCE["float32"])
        if not 0 < self.tolerance <= largest:
            raise RecordError(
                f"the tolerance of a receipt for {self.dtype} is at most {largest}, not {self.tolerance}"
            )
        if not all(0 <= difference <= self.tolerance for difference in self.differences):
            raise RecordError(
                f"the differences of a receipt are from 0 to its tolerance, {self.tolerance}: got {self.differences}"
            )

    @property
    def max_difference(self) -> float:
        """The largest difference of all layers, as a share."""
        return max(self.differences)

    def select(self, layers: Sequence[int]) -> Receipt:
        """Return the receipt of these layers only. Raises RecordError: it lacks one of them."""
        by_layer = dict(zip(self.layers, self.differences, strict=True))
        if lacking := [layer for layer in layers if layer not in by_layer]:
            raise RecordError(
                f"the receipt is of the layers {self.layers}, and not of {', '.join(map(str, lacking))}"
            )
        differences = tuple(by_layer[layer] for layer in layers)
        return replace(self, layers=tuple(layers), differences=differences)

    def __str__(self) -> str:
        if self.native == SOFTMAX:
            return "✓ verified (the model's own softmax)"
        how = "equal to the model's own weights"
        if self.max_difference or self.proves == "output":
            difference = f"{self.max_difference:.0e}" if self.max_difference else "0"
            how = f"largest difference {difference}"
        if self.proves == "output":
            how = f"only the output; {how}"
        sums = f", in {self.sums} random sums of each row" if self.sums else ""
        rows = f", weights in {self.rows} rows of each layer" if self.rows else ""
        return f"✓ verified ({how}{sums}{rows})"


@dataclass(frozen=True, slots=True)
class Note:
    """A note for the reader, as data; `attnviz.text.notes` holds the sentence in each language."""

    # The subject, such as ``input_truncated_tokens``, or ``text`` for a note whose sentence is one of its fields.
    code: str
    fields: tuple[tuple[str, str | int], ...] = ()  # the values to fill in, by name

    @classmethod
    def of(cls, code: str, **fields: str | int) -> Note:
        """Return a note with these fields."""
        return cls(code, tuple(fields.items()))


class ReadOnly:
    """Base of dataclasses with read-only arrays, compared by value.

    Copying or unpickling calls the constructor again, so every copy is checked too.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # the arrays may be too large to hash

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        names = [entry.name for entry in fields(self) if entry.compare]  # type: ignore[arg-type]  # a dataclass
        pairs = ((getattr(self, name), getattr(other, name)) for name in names)
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the constructor call that builds a copy, for `copy` and `pickle`."""
        names = [entry.name for entry in fields(self) if entry.name != "proved_weights"]  # type: ignore[arg-type]  # a dataclass
        arguments = {name: getattr(self, name) for name in names}
        return partial(type(self), **arguments), ()

    def _lock(self, **arrays: np.ndarray) -> None:
        """Set fields to arrays and make the arrays read-only."""
        for name, array in arrays.items():
            array.setflags(write=False)
            object.__setattr__(self, name, array)


GENERATED = 2  # the `Token.segment` of generated text
POOLED = "this record is pooled: it holds groups of tokens, and no token alone"
# The fields of a record that hold numbers, not labels.
NUMBERS = frozenset({"weights", "vectors", "exact", "proved_weights"})
# Statistics of a head that give its mean weight on one neighbour of the query, with the offset of that neighbour.
NEIGHBOURS = {"self": 0, "previous": -1, "next": 1}
# Entropy is in nats, the mean weights on the first token and the neighbours are shares, distance is in tokens.
STATISTICS = ("entropy", "first", *NEIGHBOURS, "distance")
MEAN_IN_DATA = "data files hold every head: save them without the mean, which attnviz.load(...).mean() gives in Python"
NO_RECEIPT = "not verified: this record came without a receipt"


class Heads(NamedTuple):
    """Heads chosen among those of an array, whose first two axes are layers and heads."""

    indices: list[int]  # counted layer by layer
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    chosen: tuple[tuple[int, int], ...]  # see `Attention`

    def of(self, array: np.ndarray) -> np.ndarray:
        """Return their part of the array, with the same axes."""
        rest = array.shape[2:]
        part = array.reshape(-1, *rest)[self.indices]
        return part.reshape(len(self.layers), len(self.heads), *rest)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QKV(ReadOnly):
    """Queries and keys as they enter softmax(query key^T * scaling), after rotary positions, and values; float32."""

    query: Float32[np.ndarray, "layer head query d_k"]
    key: Float32[np.ndarray, "layer head key d_k"]
    value: Float32[np.ndarray, "layer head key d_v"]
    scaling: tuple[float, ...]  # the factor of the dot products, one per head, layer by layer

    def __post_init__(self) -> None:
        self._lock(**{name: np.array(getattr(self, name)) for name in ("query", "key", "value")})

    def select(self, heads: Heads) -> QKV:
        """Return the arrays of some heads."""
        arrays = {name: heads.of(getattr(self, name)) for name in ("query", "key", "value")}
        return QKV(**arrays, scaling=tuple(self.scaling[index] for index in heads.indices))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenStatistics(ReadOnly):
    """The strongest links of each query, and statistics of each head, kept beside pooled weights."""

    query_tokens: tuple[Token, ...]
    key_tokens: tuple[Token, ...]
    # The available ones of `STATISTICS`, as means over queries, [layer][head].
    statistics: dict[str, tuple[tuple[float, ...], ...]]
    link_keys: Int32[np.ndarray, "layer head token link"]  # indices of keys, strongest link first
    # 0 if a row has fewer links than columns here.
    link_weights: Float32[np.ndarray, "layer head token link"]

    def __post_init__(self) -> None:
        self._lock(link_keys=np.array(self.link_keys), link_weights=np.array(self.link_weights))

    def select(self, heads: Heads) -> TokenStatistics:
        """Return the links and statistics of some heads."""
        statistics = {
            name: tuple(map(tuple, heads.of(np.array(values)).tolist()))
            for name, values in self.statistics.items()
        }
        keys, weights = heads.of(self.link_keys), heads.of(self.link_weights)
        return replace(self, statistics=statistics, link_keys=keys, link_weights=weights)


class OfHeads(Result):
    """Base of results with a matrix for each head of each layer, which NumPy takes as an array."""

    __slots__ = ()
    weights: Any  # (layer, head, query, key)

    def __iter__(self) -> Iterator[Float32[np.ndarray, "head query key"]]:
        """Return the weights of each layer, in the order of `layers`."""
        return iter(self.weights)

    def __len__(self) -> int:
        """Return the number of layers."""
        return len(self.weights)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the weights, shape (layer, head, query, key), for ``np.asarray(result)``."""
        return np.array(self.weights, dtype=dtype, copy=copy)

    def _repr_html_(self) -> str | None:
        """Return the page of a small result in a frame, for notebooks; None for a large one."""
        return self.page()._repr_html_() if self.weights.nbytes <= EXACT else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Attention(ReadOnly, OfHeads):
    """The attention of one run of a model on one input.

    In the record of a long input a row and a column may each stand for a group of neighbouring tokens; `cell` is then
    above 1. A pooled weight is the sum over the group's keys and the mean over the group's queries.

    Raises:
        RecordError: the parts do not fit together.
    """

    DATA_ENDINGS = (".json", ".npz", ".safetensors")
    ENDINGS = (".png", ".svg", ".pdf", ".html", ".csv", *DATA_ENDINGS)

    weights: Weights  # after the softmax, read-only; rows are queries, columns are keys
    query_tokens: tuple[Token, ...]  # one per row
    key_tokens: tuple[Token, ...]  # one per column
    kind: Kind  # the kind of attention
    model: str  # the model's name
    text: str = ""  # the input, as typed
    pair: str | None = None  # the second sentence, if there is one
    # The text that the model generated or was forced to generate; None if it generates no text.
    target: str | None = None
    # Proof that the weights are the model's own, for exactly these layers; None for a file made by another program, and
    # for weights that were replaced.
    receipt: Receipt | None = None
    layers: tuple[int, ...] = ()  # the number of each layer in the model, counted from 0
    heads: tuple[int, ...] = ()  # the number of each head in the model, counted from 0
    # The layer and the head of each pattern where these are no grid, but any heads: they then have one row, as if of
    # one layer, and `layers` and `heads` only count it. Empty for a grid.
    chosen: tuple[tuple[int, int], ...] = ()
    short_rows: tuple[ShortRows, ...] = ()  # why rows may not sum to 1; empty if they do
    cell: int = 1  # the number of tokens per row and per column; above 1 if the record is pooled
    pooled_from: tuple[int, int] | None = None  # the query and key tokens of a pooled record
    # The numbers of the first query token and the first key token: above 0 in a part of a record, and in a generation,
    # whose rows begin at the end of the prompt.
    first: tuple[int, int] = (0, 0)
    hidden_keys: tuple[int, ...] = ()  # the numbers of the keys that were left out as sinks
    # The layers, or the heads, whose mean the weights are; empty if they are each head's own.
    averaged: dict[MeanAxis, tuple[int, ...]] = field(default_factory=dict)
    by_step: bool = False  # whether each row is the step of a generation that chose its token
    notes: tuple[Note, ...] = ()  # changes made to the input or the weights; every view shows them
    # The queries, keys and values behind the weights, if they are small; not saved to files.
    vectors: QKV | None = field(default=None, compare=False)
    # Links and statistics of single tokens, for a pooled record.
    exact: TokenStatistics | None = None
    # The weights that the receipt is about; None for those that the record is made with. A record with other weights,
    # such as `dataclasses.replace` makes, has no receipt.
    proved_weights: Weights | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights)
        if weights.ndim != len(AXES):
            axes = f"{len(AXES)} axes ({', '.join(AXES)})"
            raise RecordError(f"weights must have {axes}, but have {weights.ndim}: {weights.shape}")
        # An array of its own that nobody can write to, such as another record's, is not copied.
        is_fixed = weights.base is None and not weights.flags.writeable
        if not (is_fixed and weights.dtype == np.float32 and weights.flags.c_contiguous):
            weights = np.array(weights, dtype=np.float32, order="C")
        self._lock(weights=weights)
        object.__setattr__(self, "query_tokens", tuple(self.query_tokens))
        object.__setattr__(self, "key_tokens", tuple(self.key_tokens))
        object.__setattr__(self, "layers", tuple(self.layers) or tuple(range(weights.shape[0])))
        object.__setattr__(self, "heads", tuple(self.heads) or tuple(range(weights.shape[1])))
        is_replaced = self.proved_weights is not None and not (
            self.proved_weights is weights or np.array_equal(self.proved_weights, weights)
        )
        object.__setattr__(self, "proved_weights", weights)
        if is_replaced:
            object.__setattr__(self, "receipt", None)
        _check_labels(self)
        if self.exact is not None:
            _check_exact(self.exact, *weights.shape[:2])
        _check_rows(self)
        # The receipt of a mean over layers is that of all of them.
        if self.receipt is not None and "layers" not in self.averaged:
            layers = dict.fromkeys(layer for layer, _head in self.places)
            object.__setattr__(self, "receipt", self.receipt.select([*layers]))

    def __repr__(self) -> str:
        *_counts, n_queries, n_keys = self.weights.shape
        size = f"{self.extent}, {count(n_queries, 'query', 'queries')} x {count(n_keys, 'key')}"
        if self.cell > 1:
            size += f", each {self.cell} tokens"
        return f"<Attention of {self.model!r} ({self.kind}): {size}; {self.proof}>"

    @property
    def extent(self) -> str:
        """The layers and heads in words, such as ``2 layers x 3 heads`` or ``heads 0.1, 1.2``."""
        if self.chosen:
            return f"{'mean of ' if self.averaged else ''}heads {names_of(self.chosen)}"
        return " x ".join(
            f"mean of {len(self.averaged[axis])} {axis}"
            if axis in self.averaged
            else count(n, axis.removesuffix("s"))
            for axis, n in zip(get_args(MeanAxis), self.weights.shape[:2], strict=True)
        )

    @property
    def proof(self) -> str:
        """The receipt in words, as every view prints it."""
        return NO_RECEIPT if self.receipt is None else str(self.receipt)

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """The layer and the head of each pattern, layer by layer."""
        if self.chosen and not self.averaged:
            return self.chosen
        return tuple(product(self.layers, self.heads))

    def index_of(self, layer: int, head: int) -> tuple[int, int]:
        """Return the indices of a head in `weights`. Raises SelectionError: it is not in the record."""
        if self.chosen and not self.averaged:
            return 0, choose_heads(self.places, None, [(layer, head)]).indices[0]
        (row,) = indices_of([layer], self.layers, "layer")
        (column,) = indices_of([head], self.heads, "head")
        return row, column

    def __getitem__(self, place: Place) -> Float32[np.ndarray, "*axis query key"]:
        """Return the weights of layers and heads, as a read-only array.

        ``record[2, 3]`` or ``record["2.3"]`` is one head's matrix (query, key), and ``record[2]`` one layer (head,
        query, key). These are numbers in the model; negative ones count from the end. A slice counts by position among
        the layers or heads of the record: ``record[:2, 0]`` holds head 0 of its first two layers (layer, query, key).

        Raises SelectionError: a layer or head is not in the record.
        """
        if isinstance(place, (int, np.integer, slice)):
            place = place, slice(None)
        match place:
            case (slice(), _) | (_, slice()):
                layer, head = place
                if self.chosen and not (isinstance(layer, slice) and isinstance(head, slice)):
                    raise SelectionError(
                        f"name a head with its layer: this record holds heads {names_of(self.chosen)}"
                    )
                return self.weights[
                    _position(layer, self.layers, "layer"), _position(head, self.heads, "head")
                ]
        return self.pattern(*parse_head(place))

    def __hash__(self) -> int:  # type: ignore[override]  # other parts of a record have none
        # Equal records have an equal hash; that of all weights would take long.
        labels = self.model, self.kind, self.text, self.pair, self.target
        return hash((*labels, self.layers, self.heads, self.weights.shape))

    def to_frame(self) -> DataFrame:
        """Return the weights as a pandas frame: one row per layer, head, query and key, with both tokens."""
        from pandas import DataFrame, MultiIndex

        _, _, n_queries, n_keys = self.weights.shape
        numbers = (range(len(self.places)), range(n_queries), range(n_keys))
        index = MultiIndex.from_product(numbers, names=("head", "query", "key"))
        frame = DataFrame({"weight": self.weights.ravel()}, index=index).reset_index()
        layers, heads = np.array(self.places)[frame["head"]].T
        frame.insert(0, "layer", layers)
        frame["head"] = heads
        for axis, tokens in (("query", self.query_tokens), ("key", self.key_tokens)):
            texts = dict(enumerate(token.text for token in tokens))
            frame[f"{axis}_token"] = frame[axis].map(texts)
        return frame

    def pattern(
        self, layer: int | str, head: int | None = None
    ) -> Float32[np.ndarray, "query key"]:
        """Return one head's matrix, by its numbers in the model. Raises SelectionError: it is not in the record."""
        layer, head = parse_head(layer if head is None else (layer, head))
        return np.asarray(self.weights[self.index_of(layer, head)])

    def links(
        self, layer: int | str, head: int | None = None, n: int = 8
    ) -> list[tuple[int, int, float]]:
        """Return the strongest link to each of the n most attended keys, as (query, key, weight).

        Special tokens, and attention of a token to itself, are left out. A pooled record keeps only a few links per
        row, so it returns only links that are certain: those above every weight that was not kept. Raises
        SelectionError, as `pattern`.
        """
        layer, head = parse_head(layer if head is None else (layer, head))
        weights = np.array(self.pattern(layer, head))
        keys = np.broadcast_to(np.arange(weights.shape[1]), weights.shape)  # the key of each weight
        n_keys = len(self.key_tokens)
        lower_bound = 0.0
        if self.exact is not None:
            place = self.index_of(layer, head)
            weights = np.array(self.exact.link_weights[place])
            keys = self.exact.link_keys[place]
            n_keys = len(self.exact.key_tokens)
            # A weight that was not kept is at most as large as the last link of its row, and at most as large as the
            # rest of the row's weight.
            not_kept = np.minimum(weights.min(axis=1, initial=1), 1 - weights.sum(axis=1))
            lower_bound = max(0.0, float(not_kept.max()))
        weights[is_trivial_link(self, keys)] = 0
        best_weights = np.zeros(n_keys, dtype=np.float32)
        np.maximum.at(best_weights, keys, weights)
        links = []
        for key in np.argsort(-best_weights, kind="stable")[:n].tolist():
            if best_weights[key] > lower_bound:
                query = int(np.nonzero((keys == key) & (weights == best_weights[key]))[0][0])
                links.append((query, key, float(best_weights[key])))
        return links

    def derive(self, **changes: Any) -> Attention:
        """Return a record with other fields, whose weights follow from this record's: its receipt still holds."""
        return replace(self, proved_weights=None, **changes)

    @property
    def key_numbers(self) -> list[int]:
        """The number of each key token; sinks that are left out leave gaps."""
        first = self.first[1]
        all_numbers = range(first, first + len(self.key_tokens) + len(self.hidden_keys))
        return [number for number in all_numbers if number not in self.hidden_keys]

    def mean(self, *axes: MeanAxis) -> Attention:
        """Return the mean over heads, over layers, or over both: ``record.mean("heads")``; without axes, of all heads.

        Rows still sum to 1, and a note says what was averaged. The new record has one head, number 0, in the place of
        all heads (and one layer in the place of all layers); its receipt covers every layer that was averaged. The mean
        of a pooled record has no links of single tokens.

        Raises:
            SelectionError: there is no such axis, or there is only one layer or head.
        """
        weights, notes, averaged = self.weights, self.notes, dict(self.averaged)
        numbers: dict[MeanAxis, tuple[int, ...]] = {"layers": self.layers, "heads": self.heads}
        if not axes:
            axes = tuple(axis for axis, held in numbers.items() if len(held) > 1) or ("heads",)
        for axis in axes:
            if axis not in get_args(MeanAxis):
                raise SelectionError(
                    f"{axis!r} is neither 'layers' nor 'heads': the mean over both is mean('layers', 'heads')"
                )
            n = len(numbers[axis])
            if n == 1:
                noun = axis.removesuffix("s")
                raise SelectionError(f"there is no mean of a single {noun}: choose several {axis}")
            weights = weights.mean(
                axis=get_args(MeanAxis).index(axis), keepdims=True, dtype=np.float64
            )
            notes, averaged[axis] = (*notes, Note.of(f"mean_of_{axis}", n=n)), numbers[axis]
            numbers[axis] = (0,)
        if self.chosen:
            averaged["layers"] = tuple(dict.fromkeys(layer for layer, _head in self.chosen))
        return self.derive(
            weights=weights.astype(np.float32),
            notes=notes,
            averaged=averaged,
            vectors=None,
            exact=None,
            **numbers,
        )

    def part(self, rows: slice | None = None, keys: slice | None = None) -> Attention:
        """Return a record of these rows and columns only; its rows may sum to less than 1.

        Raises SelectionError: the part is empty, or the tokens of this record are pooled.
        """
        if rows is None and keys is None:
            return self
        if self.cell > 1:
            raise SelectionError(f"{POOLED}: run the model again, with rows and keys")
        if self.hidden_keys:
            raise SelectionError("take the part first, and leave out its sinks then")
        part_labels = cut(self.query_tokens, self.key_tokens, rows, keys)
        part_labels["notes"] = (*self.notes, *part_labels["notes"])
        query, key = part_labels["first"]
        part_labels["first"] = (self.first[0] + query, self.first[1] + key)
        part_labels["short_rows"] = tuple(
            dict.fromkeys((*self.short_rows, *part_labels["short_rows"]))
        )
        weights = self.weights[:, :, rows or slice(None), keys or slice(None)]
        return self.derive(weights=weights, vectors=None, **part_labels)

    def choose(
        self, layer: LayerChoice = None, head: HeadChoice = None
    ) -> tuple[Attention, Attention]:
        """Return the record, averaged if ``"mean"`` is chosen, and its part with the chosen layer and heads.

        The arguments are as for `attnviz.heatmap`.

        Raises SelectionError: there is no such layer or head, or the layer is named twice.
        """
        if isinstance(layer, str) and layer != "mean" and head is None:
            layer, head = None, layer
        named = list_heads(head)
        heads = [one for one in named if one != "mean"]
        has_layers = any(isinstance(one, (str, tuple)) for one in heads)
        if has_layers and layer is not None:
            raise SelectionError("give a layer, or a head with its layer, not both")
        if isinstance(layer, str) and layer != "mean":
            raise SelectionError(f"{layer!r} is no layer: give its number, such as 1")
        record = self.mean("layers") if layer == "mean" else self
        layers = None if layer in (None, "mean") else [cast("int", layer)]
        if len(heads) == len(named):
            return record, record.select(layers, None if head is None else heads)
        record = record.select(heads=heads or None)
        record = record.mean() if has_layers else record.mean("heads")
        return record, record.select(layers)

    def select(
        self, layers: int | Iterable[int] | None = None, heads: HeadChoice = None
    ) -> Attention:
        """Return a record of these layers and heads only; None keeps all, negative numbers count from the end.

        A head may be named with its layer, such as "1.3": heads of several layers that are no grid stand in one row,
        and the record names them in `chosen`. Raises SelectionError: a layer or head is not in the record.
        """
        if layers is None and heads is None:
            return self
        part = choose_heads(self.places, *normalize_selection(layers, heads))
        return self.derive(
            weights=part.of(self.weights),
            vectors=None if self.vectors is None else self.vectors.select(part),
            exact=None if self.exact is None else self.exact.select(part),
            layers=part.layers,
            heads=part.heads,
            chosen=self.chosen if self.averaged else part.chosen,
        )


def is_trivial_link(
    record: Attention, keys: Int[np.ndarray, "*head query link"]
) -> Bool[np.ndarray, "*head query link"]:
    """Return which links of each token to these keys involve a special token, or link the token to itself.

    `keys` holds indices of keys, such as `TokenStatistics.link_keys`.
    """
    labelled = record.exact or record
    special_queries = np.array([token.special for token in labelled.query_tokens])
    special_keys = np.array([token.special for token in labelled.key_tokens])
    is_special = special_queries[:, None] | special_keys[keys]
    if record.kind == "cross":
        return np.asarray(is_special)
    own_numbers = np.arange(len(special_queries))[:, None] + record.first[0]
    key_numbers = np.arange(len(special_keys)) + record.first[1]
    if record.exact is None:  # a record with links of single tokens has all its keys
        key_numbers = np.array(record.key_numbers)
    return np.asarray(is_special | (key_numbers[keys] == own_numbers))


def parse_head(place: object) -> tuple[int, int]:
    """Return the layer and the head named by ``(2, 3)``, ``"2.3"`` or ``"L2H3"``.

    Raises SelectionError: it names no head.
    """
    if isinstance(place, str):
        place = dotted(place)
    if isinstance(place, str) and (
        numbers := re.fullmatch(r"(-?\d{1,7})\.(-?\d{1,7})", place.strip(), re.ASCII)
    ):
        return int(numbers[1]), int(numbers[2])
    match place:
        case (layer, head) if all(isinstance(number, (int, np.integer)) for number in place):
            return int(layer), int(head)  # type: ignore[call-overload]  # the guard checked both types
    displayed = place.strip() if isinstance(place, str) else place
    if isinstance(place, str) and (pair := re.fullmatch(r"(\d{1,7}),\s*(\d{1,7})", place.strip())):
        raise SelectionError(f"{displayed!r} is no head: did you mean {pair[1]}.{pair[2]}?")
    raise SelectionError(f"{displayed!r} is no head: give its layer and its number, such as 1.2")


def dotted(head: str) -> str:
    """Return the name of a head as ``2.3``, which papers also write ``L2H3``; other texts unchanged."""
    return re.sub(r"^\s*L(\d{1,7})\.?H(\d{1,7})\s*$", r"\1.\2", head, flags=re.IGNORECASE)


def normalize_selection(
    layers: int | Iterable[int] | None, heads: HeadChoice
) -> tuple[list[int] | None, list[int | tuple[int, int]] | None]:
    """Return layers and heads as lists; None stands for all, and a pair in the list of heads is a head of one layer.

    Heads of a single layer, such as "1.3", are that layer and their numbers. Raises SelectionError: a list is empty, a
    number is not whole, or the layers given are not those of the heads.
    """
    layer_numbers: list[int] | None = None
    if layers is not None:
        layers = [layers] if isinstance(layers, (int, np.integer)) else layers
        layer_numbers = [_whole_number(number, "layer") for number in layers]
    places: list[int | tuple[int, int]] | None = None
    if heads is not None:
        heads = [heads] if isinstance(heads, (int, np.integer, str)) else [*heads]
        places = [
            parse_head(head) if isinstance(head, (str, tuple)) else _whole_number(head, "head")
            for head in heads
        ]
        own = {place[0] for place in places if isinstance(place, tuple)}
        if own and layer_numbers is not None and own != set(layer_numbers):
            raise SelectionError(
                f"heads {heads!r} name their layers, which are not {layer_numbers}: give layers or heads"
            )
        numbers = [place[1] if isinstance(place, tuple) else place for place in places]
        if len(own) == 1 and (layer_numbers or all(isinstance(one, tuple) for one in places)):
            layer_numbers, places = [*own], [*numbers]
    for axis, chosen in (("layer", layer_numbers), ("head", places)):
        if chosen == []:
            raise SelectionError(f"choose at least one {axis}, by numbers such as [0, 2], not []")
    return layer_numbers, places


def grid_around(
    layers: list[int] | None, heads: list[int | tuple[int, int]] | None
) -> tuple[list[int] | None, list[int] | None]:
    """Return layers and heads, all for None, among which are those that `normalize_selection` returned."""
    if heads is None:
        return layers, None
    pairs = [head for head in heads if isinstance(head, tuple)]
    if layers is None and len(pairs) == len(heads):
        layers = sorted({layer for layer, _head in pairs})
    return layers, sorted({head[1] if isinstance(head, tuple) else head for head in heads})


def choose_heads(
    places: Sequence[tuple[int, int]],
    layers: Sequence[int] | None,
    heads: Sequence[int | tuple[int, int]] | None,
) -> Heads:
    """Return the heads of those at these places that are chosen as `normalize_selection` returns it, each once.

    They keep their order. Raises SelectionError: there is no such layer or head.
    """
    held_layers, held_heads = ([*dict.fromkeys(axis)] for axis in zip(*places, strict=True))
    rows = indices_of(held_layers if layers is None else layers, held_layers, "layer")
    held, wanted = {*places}, set()
    for head in held_heads if heads is None else heads:
        layer, number = head if isinstance(head, tuple) else (None, head)
        own_rows = rows if layer is None else indices_of([layer], held_layers, "layer")
        (column,) = indices_of([number], held_heads, "head")
        found = {(held_layers[row], held_heads[column]) for row in own_rows} & held
        if not found and heads is not None:
            missing = names_of([(held_layers[row], number) for row in own_rows])
            raise SelectionError(
                f"there is no head {missing}: this record holds heads {names_of(places)}"
            )
        wanted |= found
    indices = [index for index, place in enumerate(places) if place in wanted]
    kept = [places[index] for index in indices]
    kept_layers, kept_heads = (tuple(dict.fromkeys(axis)) for axis in zip(*kept, strict=True))
    if kept == [*product(kept_layers, kept_heads)]:
        return Heads(indices, kept_layers, kept_heads, ())
    return Heads(indices, (0,), tuple(range(len(kept))), tuple(kept))


def spans(numbers: Sequence[int]) -> str:
    """Return ascending numbers in words, such as ``0–5`` or ``0, 2``."""
    if len(numbers) > 1 and list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}–{numbers[-1]}"
    return ", ".join(map(str, numbers))


def names_of(places: Sequence[tuple[int, int]]) -> str:
    """Return the names of heads, such as ``0.1, 1.2``; only the first of very many."""
    names = ", ".join(f"{layer}.{head}" for layer, head in places[:MOST_NAMED])
    return names if len(places) <= MOST_NAMED else f"{names}, … ({len(places):,})"


def list_heads(head: HeadChoice) -> list[int | str | tuple[int, int]]:
    """Return the heads of a choice one by one; a pair of numbers is a head with its layer."""
    is_pair = isinstance(head, tuple) and all(isinstance(one, (int, np.integer)) for one in head)
    if is_pair or isinstance(head, str) or not isinstance(head, Iterable):
        return [] if head is None else [head]  # type: ignore[list-item]  # a tuple is a pair here
    return [*head]


def _whole_number(value: Any, what: str) -> int:
    """Return the number of a layer or a head. Raises SelectionError: it is not a whole number."""
    try:
        return index(value)
    except TypeError:
        raise SelectionError(f"a {what} is a whole number, not {value!r}") from None


def indices_of(wanted: Iterable[int], held: Sequence[int], what: str) -> list[int]:
    """Return the indices in `held` of the wanted layers or heads, in ascending order without duplicates.

    Negative numbers count from the end. `what` is "layer" or "head", for the message. Raises SelectionError: a number
    is not in `held`.
    """
    indices = set()
    for number in wanted:
        actual = held[number] if -len(held) <= number < 0 else number
        if actual not in held:
            available = _available(held, what)
            raise SelectionError(f"there is no {what} {number}: {available} (counted from 0)")
        indices.add(held.index(actual))
    return sorted(indices)


def _position(wanted: int | slice, held: Sequence[int], what: str) -> int | slice:
    """Return the index in `held` of a layer or head; a slice is one of indices already.

    Raises SelectionError: it is not in `held`.
    """
    if isinstance(wanted, slice):
        return wanted
    (position,) = indices_of([_whole_number(wanted, what)], held, what)
    return position


def _available(held: Sequence[int], what: str) -> str:
    """Return in words which layers or heads there are, such as ``this model has heads 0 to 11``."""
    is_run = list(held) == list(range(held[0], held[0] + len(held)))
    owner = "this model has" if is_run and held[0] == 0 else "this record holds"
    if len(held) == 1:
        return f"{owner} {what} {held[0]} only"
    numbers = f"{held[0]} to {held[-1]}" if is_run else ", ".join(map(str, held))
    return f"{owner} {what}s {numbers}"


def cut(
    queries: Sequence[Token], keys: Sequence[Token], rows: slice | None, columns: slice | None
) -> dict[str, Any]:
    """Return the fields that differ in a part of a record, by name: tokens, their first numbers, short rows, a note.

    `queries` and `keys` are the tokens of the record, `rows` and `columns` those of the part; None keeps all. Raises
    SelectionError: the part is empty.
    """
    labels: dict[str, Any] = {"notes": (), "short_rows": ()}
    note_fields: dict[str, int] = {}
    for name, tokens, window in (("query", queries, rows), ("key", keys, columns)):
        indices = range(*(window or slice(None)).indices(len(tokens)))
        if not indices:
            raise SelectionError(
                f"there is no {name} token there: there are {len(tokens):,}, counted from 0"
            )
        labels[f"{name}_tokens"] = tuple(tokens[indices.start : indices.stop])
        note_fields |= {
            f"{name}_first": indices.start,
            f"{name}_last": indices.stop - 1,
            f"{name}_all": len(tokens),
        }
    if rows is not None or columns is not None:
        labels["notes"] = (Note.of("part", **note_fields),)
        labels["short_rows"] = ("truncated",) if len(labels["key_tokens"]) < len(keys) else ()
    labels["first"] = (note_fields["query_first"], note_fields["key_first"])
    return labels


def count(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, such as ``1 head`` or ``12 heads``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def _check_labels(record: Attention) -> None:
    """Raise RecordError if the labels of the axes do not fit the weights, or an entry is unknown."""
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
    places = record.places
    if len({*places}) != record.weights[..., 0, 0].size or min(map(min, places)) < 0:
        raise RecordError(f"each pattern has its layer and its head, from 0: got {places}")
    if record.kind not in get_args(Kind):
        raise RecordError(f"kind must be one of {', '.join(get_args(Kind))}, not {record.kind!r}")
    if record.cell < 1 or min(record.first) < 0:
        raise RecordError(
            f"a cell has at least 1 token, and numbers begin at 0: got {record.cell} and {record.first}"
        )
    for reason in record.short_rows:
        if reason not in get_args(ShortRows):
            raise RecordError(
                f"rows may be short for {', '.join(get_args(ShortRows))}, not {reason!r}"
            )


def _check_exact(exact: TokenStatistics, layers: int, heads: int) -> None:
    """Raise RecordError if links or statistics do not fit these numbers of layers and heads."""
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
    """Raise RecordError if a weight is negative or not finite, or a row does not sum to 1 though it should.

    A row that may be short sums to at most 1.
    """
    weights = record.weights
    with np.errstate(invalid="ignore"):  # infinities of both signs give NaN, which is refused below
        sums = weights.sum(axis=-1, dtype=np.float64)
    # A NaN or an infinity makes the sum of its row NaN or infinite, so checking the sums saves a second pass.
    if not np.isfinite(sums).all():
        raise RecordError(
            f"weights must be finite: {_where(record, ~np.isfinite(sums))} holds NaN or infinity"
        )
    if weights.min() < 0:
        has_negative = np.asarray((weights < 0).any(axis=-1))
        raise RecordError(
            f"weights must not be negative: {_where(record, has_negative)} holds {weights.min():g}"
        )
    tolerance = ROW_TOLERANCE
    if "rounded" in record.short_rows:
        tolerance = ROUNDED_TOLERANCE
    elif record.receipt is not None and record.receipt.dtype == "bfloat16":
        tolerance = BFLOAT16_TOLERANCE
    may_be_short = bool(set(record.short_rows) - {"rounded"})
    if "unnormalised" in record.short_rows:
        sums = weights.max(axis=-1)
    is_wrong = np.asarray(sums > 1 + tolerance if may_be_short else np.abs(sums - 1) > tolerance)
    if is_wrong.any():
        total = sums[tuple(np.argwhere(is_wrong)[0])]
        raise RecordError(f"each row must sum to 1: {_where(record, is_wrong)} sums to {total:.6g}")


def _where(record: Attention, rows: np.ndarray) -> str:
    """Return the place of the first row marked True, in words; `rows` is a boolean array [layer, head, query]."""
    layer, head, query = np.argwhere(rows)[0]
    return f"layer {record.layers[layer]}, head {record.heads[head]}, row {query}"
