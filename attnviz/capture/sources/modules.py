"""The attention of any torch module, captured while the caller's own code runs the module."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, final

import numpy as np
from jaxtyping import Float, Float32
from torch import Tensor, nn

from attnviz.attention import (
    Attention,
    Kind,
    Note,
    Receipt,
    ShortRows,
    Token,
    count,
    indices_of,
)
from attnviz.capture.sources.arrangement import parse_axes
from attnviz.capture.sources.calls import ModuleCalls
from attnviz.capture.sources.loading import refuse_script
from attnviz.capture.sources.seen import Beginning, Part, SeenLayer, continues, number_in
from attnviz.capture.sources.traced import what_is_no_weight
from attnviz.capture.sources.tracing import (
    AttentionTracer,
    Computation,
    trace_attention,
)
from attnviz.capture.stream import (
    Layer,
)
from attnviz.errors import (
    InputError,
    ModelError,
    NoAttentionError,
    RecordError,
    SelectionError,
    SettingsError,
)

# The most bytes of weights that are kept of a run, and that a record may have.
KEEP_AT_MOST = 4 * 2**30


@final
class Watched:
    """A context manager that watches a module, and then holds the attention of its last run; see `watch`.

    Raises ModelError: `module` is no torch module, or the block is already open.
    """

    def __init__(self, module: nn.Module, *, axes: str | Mapping[str, str] | None = None) -> None:
        if not hasattr(module, "named_modules"):
            raise ModelError(f"watch takes a torch.nn.Module, not {type(module).__name__}")
        refuse_script(module)
        # The axes of weights by the path of the module that computes them; "" stands for the whole module.
        self._axes = dict(axes) if isinstance(axes, Mapping) else {"": axes} if axes else {}
        _check_axes(self._axes, module)
        self._layers: list[tuple[SeenLayer, Beginning]] = []
        # Weights whose axes are not clear: the path of their module, and their shape.
        self._unclear: list[str] = []
        # What was multiplied by values as weights are, but is none: the path of the module, and why.
        self._no_weights: list[str] = []
        self._module, self._tracer = module, AttentionTracer(self)
        self._calls = ModuleCalls(module, self._begin)
        self._open: ExitStack | None = None

    def __enter__(self) -> Watched:
        if self._open is not None:
            raise ModelError("this block is open already: call attnviz.watch again for another one")
        with ExitStack() as stack:
            stack.enter_context(self._calls.followed())
            stack.enter_context(trace_attention(self._tracer))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        stack, self._open = self._open, None
        self._tracer.forget()
        if stack is not None:
            stack.close()

    def attention(
        self,
        tokens: Sequence[str | Token] | None = None,
        key_tokens: Sequence[str | Token] | None = None,
        *,
        kind: Kind | None = None,
        layers: Sequence[int] | None = None,
        index: int = 0,
    ) -> Attention:
        """Return the record of one input of the last run.

        Args:
            tokens: a label for each query; further queries are padding and are left out: those before the labelled ones
                if padding is masked on the left, else those after them. None numbers the queries.
            key_tokens: a label for each key; None if they are the queries' labels.
            kind: the kind of attention, if the module has several.
            layers: indices in the list `Watched.layers`, counted from 0; None takes all layers of the kind.
            index: the index of the input in the batch.

        Returns:
            The record: `weights` of shape (layer, head, query, key), float32; its layers are numbered as in `layers`.

        Raises:
            NoAttentionError: no attention was seen.
            NotVerifiedError: the weights of a layer are not what the module computed.
            SelectionError: there are several kinds or shapes, or no such layer or input.
            RecordError: the tokens do not fit the weights.
            InputError: the weights take more memory than is kept.
            SettingsError: an argument of another type.
        """
        all_layers = self.layers
        chosen = self._chosen(all_layers, kind, layers)
        layers_shown = {number: all_layers[number] for number in chosen}
        first = all_layers[chosen[0]]
        n_inputs = first.shape[0]
        if len({layer.shape for layer in layers_shown.values()}) > 1:
            raise SelectionError(f"the layers have different shapes: choose layers= from\n{self}")
        if not -n_inputs <= index < n_inputs:
            raise SelectionError(
                f"there is no input {index}: the batch had {n_inputs} (counted from 0)"
            )
        _, _, n_queries, n_keys = first.shape_of(index % n_inputs)
        queries = keys = _tokens(tokens, n_queries, "queries")
        if key_tokens is not None or n_queries != n_keys:
            if key_tokens is None and tokens is not None and first.kind != "cross":
                raise RecordError(
                    f"there are {n_queries} queries and {n_keys} keys: name the keys too (key_tokens)"
                )
            keys = _tokens(key_tokens, n_keys, "keys")
        weights, receipt = _verified_weights(layers_shown, index % n_inputs)
        weights = _without_padding(weights, len(queries), len(keys))
        sums = weights.sum(axis=-1)
        n_masked = int((sums == 0).sum())
        numbers = _numbers(all_layers, chosen)
        return Attention(
            weights=weights,
            query_tokens=queries,
            key_tokens=keys,
            kind=first.kind,
            layers=numbers,
            model=type(self._module).__name__,
            receipt=replace(receipt, layers=numbers),
            text="" if tokens is None else " ".join(token.text for token in queries),
            short_rows=_short_rows(layers_shown.values(), n_masked),
            notes=_notes(layers_shown.values(), sums, len(self._unclear)),
        )

    def __str__(self) -> str:
        lines = [
            f"{number}: {layer.path or type(self._module).__name__}, {layer.kind}, {count(layer.shape[1], 'head')}, "
            f"{count(layer.shape[2], 'query', 'queries')} x {count(layer.shape[3], 'key')}"
            for number, layer in enumerate(self.layers)
        ]
        lines += [
            f"left out, because its axes are not clear: {weights}" for weights in self._unclear
        ]
        return "\n".join(lines)

    @property
    def axes(self) -> str | None:
        """The names that the user gives to the axes of weights in the module that is running, or None."""
        path = self._calls.running.path
        # Of several modules that contain the running one, the innermost counts.
        for outer in sorted(self._axes, key=len, reverse=True):
            if path is not None and (not outer or f"{path}.".startswith(f"{outer}.")):
                return self._axes[outer]
        return None

    @property
    def layers(self) -> list[SeenLayer]:
        """The layers of the last run, in the order in which they ran."""
        return [layer for layer, _ in self._layers]

    def record_weights(
        self, weights: Float[Tensor, "batch head query key"], computation: Computation
    ) -> None:
        """Keep weights that the module computed itself, as long as all of them stay within `KEEP_AT_MOST`."""
        held = [part.held for layer in self.layers for part in layer.parts]
        size = weights.nbytes + sum(part.nbytes for part in held if isinstance(part, Tensor))
        kept_weights = None
        if size <= KEEP_AT_MOST:
            # The softmax of a row that may attend to no key is not a number; the fused function leaves such rows empty.
            sees_nothing = weights.isnan().all(dim=-1, keepdim=True)
            kept_weights = weights.masked_fill(sees_nothing, 0.0)
        self._keep(weights.shape, kept_weights, computation)

    def record_call(self, layer: Layer, computation: Computation) -> None:
        """Keep the inputs and the output of the fused function, from which the weights can be computed later.

        If the module overwrites the inputs afterwards, the weights no longer match the output and are refused.
        """
        kept_layer = replace(layer, output=layer.output.clone())
        shape = (*layer.query.shape[:3], layer.key.shape[2])
        self._keep(shape, kept_layer, computation)

    def record_unclear(self, shape: Sequence[int]) -> None:
        """Remember that there are weights whose axes are not clear."""
        if (path := self._calls.running.path) is not None:
            self._unclear.append(f"{path or type(self._module).__name__} {tuple(shape)}")

    def record_no_weights(self, numbers: Tensor) -> None:
        """Remember numbers that are multiplied by values as weights are, and are none."""
        if (path := self._calls.running.path) is not None:
            name = path or type(self._module).__name__
            self._no_weights.append(f"{name} {what_is_no_weight(numbers)}")

    def _keep(
        self, shape: Sequence[int], held: Layer | Tensor | None, computation: Computation
    ) -> None:
        """Add a computation of the module that is running, unless that module is outside the watched one."""
        running = self._calls.running
        if running.path is None:
            return
        cross = shape[2] != shape[3] if computation.cross is None else computation.cross
        first, end = computation.inputs or (0, 0)
        part = Part(
            held=held,
            shape=tuple(shape),
            first=first if end - first == shape[0] else 0,
            first_query=computation.first_query,
            dropped=computation.dropped,
            normalised=computation.normalised,
        )
        # The values are only needed to recognise heads in a loop.
        values = computation.values if shape[1] == 1 else None
        now = Beginning(running, computation.keys, computation.n_behind, values)
        for layer, begun in self._layers:
            if continues(layer, begun, part, now, cross=cross):
                layer.add(part, running.path)
                return
        layer = SeenLayer(path=running.path, cross=cross, parts=[part])
        self._layers.append((layer, now))

    def _chosen(
        self, seen: Sequence[SeenLayer], kind: Kind | None, layers: Sequence[int] | None
    ) -> tuple[int, ...]:
        """Return the indices of the chosen layers or, if `layers` is None, of all layers of the kind.

        Raises NoAttentionError: no attention was seen; SelectionError: no such layer or kind, or several kinds.
        """
        name = type(self._module).__name__
        if not seen and self._unclear:
            raise NoAttentionError(
                f"it is not clear what the axes of the weights in {name} are: {', '.join(self._unclear)}; name them, "
                "as in attnviz.watch(module, axes='(batch head) query key')"
            )
        if not seen and self._no_weights:
            raise NoAttentionError(f"no attention was seen in {name}: {self._no_weights[0]}")
        if not seen:
            raise NoAttentionError(
                f"no attention was seen in {name}: run it inside `with attnviz.watch(module):`, in the same thread; "
                "seen are scaled_dot_product_attention, flex_attention, torch's own layers, and a softmax that is "
                "multiplied by values, outside torch.func.vmap; if its rows or columns are outputs of a linear layer, "
                "name them, as in attnviz.watch(module, axes='batch query key')"
            )
        if layers is not None:
            return tuple(indices_of(layers, range(len(seen)), "layer"))
        kinds = list(dict.fromkeys(layer.kind for layer in seen))
        if kind is None and len(kinds) > 1:
            raise SelectionError(
                f"this module has {', '.join(kinds)} attention: choose kind={kinds[-1]!r} or another"
            )
        numbers = tuple(
            number for number, layer in enumerate(seen) if layer.kind == (kind or kinds[0])
        )
        if not numbers:
            raise SelectionError(f"this module has no {kind} attention: it has {', '.join(kinds)}")
        return numbers

    def _begin(self, *inputs: Any, is_run: bool, is_inside: bool) -> None:
        """Follow the inputs of a part; discard the last run if another one starts with them."""
        if is_run:
            self._layers, self._unclear, self._no_weights = [], [], []
            self._tracer.forget()
        # The inputs of a run may be in an object of any class, or the caller may call its parts one after the other.
        if not is_inside or not self._tracer.has_inputs:
            self._tracer.begin(*inputs)


def watch(module: nn.Module, *, axes: str | Mapping[str, str] | None = None) -> Watched:
    """Watch a torch module and keep the attention of its last run inside the block.

    ::

        with attnviz.watch(model) as seen:
            model(x)
        record = seen.attention(tokens=["I", "love", "you"])

    The module's results do not change, and it is left unchanged. The block captures calls of
    `scaled_dot_product_attention` and `flex_attention`, torch's own layers, and softmax results that are multiplied by
    values, in the thread that opened it.

    Args:
        module: any module. Compiled parts run uncompiled inside the block.
        axes: the axes of the weights before they are multiplied by values, such as "(batch head) query key" where the
            heads of all sentences are folded into one axis. A dictionary gives them by the path of the submodule that
            computes them, such as {"encoder.attention": "query key"}. None lets attnviz follow them from the module's
            inputs.

    Raises:
        ModelError: `module` is no torch module.
        SettingsError: `axes` does not name axes of weights, names no submodule, or does not fit the weights that are
            computed.
    """
    return Watched(module, axes=axes)


def _check_axes(axes: Mapping[str, str], module: nn.Module) -> None:
    """Raise SettingsError unless all are axes of weights, and their keys are paths of submodules."""
    paths = {path for path, _ in module.named_modules()}
    for path, names in axes.items():
        parse_axes(names)
        if path not in paths:
            raise SettingsError(
                f"{type(module).__name__} has no submodule {path!r}: print(module) lists their names",
                "axes",
            )


def _short_rows(layers: Iterable[SeenLayer], n_masked: int) -> tuple[ShortRows, ...]:
    """Return why rows of a record may not sum to 1; `n_masked` of them see no key."""
    is_softmax = all(part.normalised for layer in layers for part in layer.parts)
    reasons: dict[ShortRows, bool] = {"masked": n_masked > 0, "unnormalised": not is_softmax}
    return tuple(reason for reason, holds in reasons.items() if holds)


def _notes(
    layers: Iterable[SeenLayer], sums: Float32[np.ndarray, "layer head row"], n_unclear: int
) -> tuple[Note, ...]:
    """Return the notes of a record with these sums of rows; `n_unclear` layers of the run are left out."""
    parts = [part for layer in layers for part in layer.parts]
    notes = []
    if any(part.dropped for part in parts):
        notes.append(Note("dropout"))
    if n_masked := int((sums == 0).sum()):
        notes.append(Note.of("rows_masked", n=n_masked))
    if not all(part.normalised for part in parts):
        notes.append(Note.of("no_softmax", least=f"{sums.min():.3g}", most=f"{sums.max():.3g}"))
    if n_unclear:
        notes.append(Note.of("layers_unclear", n=n_unclear))
    return tuple(notes)


def _numbers(seen: Sequence[SeenLayer], chosen: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of the chosen layers: the model's own, or their places among the layers of their kind."""
    numbers = [number_in(seen[index].path) for index in chosen]
    own = [number for number in numbers if number is not None]
    if len({*own}) == len(chosen):
        return tuple(own)
    places = [
        [index for index, layer in enumerate(seen) if layer.kind == seen[chosen[0]].kind].index(i)
        if seen[i].kind == seen[chosen[0]].kind
        else i
        for i in chosen
    ]
    return tuple(places) if len({*places}) == len(places) else tuple(chosen)


def _verified_weights(
    layers: Mapping[int, SeenLayer], index: int
) -> tuple[Float32[np.ndarray, "layer head query key"], Receipt]:
    """Return the weights of input `index` of the batch in layers of one shape, and their receipt.

    Raises NotVerifiedError: the weights of a layer are not what the module computed; InputError: they take more memory
    than is kept.
    """
    _check_memory(list(layers.values()))
    found = {number: layer.verified(index, number) for number, layer in layers.items()}
    weights = [part for part, _ in found.values()]
    if len({part.shape for part in weights}) > 1:
        raise SelectionError(f"input {index} has other steps in each layer: choose one of layers=")
    receipts = [receipt for _, of_layer in found.values() for receipt in of_layer]
    receipt = replace(
        max(receipts, key=lambda receipt: receipt.tolerance),
        native=" and ".join(sorted({receipt.native for receipt in receipts})),
        layers=tuple(found),
        differences=tuple(
            max(difference for receipt in of_layer for difference in receipt.differences)
            for _, of_layer in found.values()
        ),
        proves="weights" if all(r.proves == "weights" for r in receipts) else "output",
        rows=min((r.rows for r in receipts if r.rows is not None), default=None),
    )
    return np.stack(weights), receipt


def _without_padding(
    weights: Float32[np.ndarray, "layer head query key"], n_queries: int, n_keys: int
) -> Float32[np.ndarray, "layer head row column"]:
    """Return the weights of so many queries and keys, without the others, which are padding on the left or right.

    It is on the left if all of the last queries attend, and none of them to the first keys. Raises RecordError: the
    others may be tokens too, such as the virtual ones of prompt tuning.
    """
    n_more_queries, n_more_keys = weights.shape[2] - n_queries, weights.shape[3] - n_keys
    last = weights[:, :, n_more_queries:]
    is_left = last.any(axis=-1).all() and not last[..., :n_more_keys].any()
    first_key = n_more_keys if is_left else 0
    # In causal attention, no query attends to later keys, so these need not be padding unless no row at all sees them.
    if n_more_queries > 0 and not is_left and n_more_queries == n_more_keys:
        is_causal = not np.triu(weights[:, :, :n_queries, :n_keys], 1).any()
        if is_causal and weights[..., n_keys:].any():
            raise RecordError(
                f"there are {n_queries} tokens for {weights.shape[2]} queries, and nothing shows that the others are "
                "padding: name all, also those that are virtual tokens"
            )
    # In cross-attention, the padding of the keys says nothing about the queries.
    first_query = n_more_queries if is_left and n_more_queries == n_more_keys else 0
    return weights[:, :, first_query : first_query + n_queries, first_key : first_key + n_keys]


def _check_memory(layers: Sequence[SeenLayer]) -> None:
    """Raise InputError if the weights of these layers take more memory than is kept."""
    size = 4 * len(layers) * math.prod(layers[0].shape[1:])
    parts = [part for layer in layers for part in layer.parts]
    if size > KEEP_AT_MOST or any(part.held is None for part in parts):
        raise InputError(
            f"the weights of {len(layers)} layers take {size / 2**30:.1f} GiB an input, more than attnviz "
            f"keeps ({KEEP_AT_MOST / 2**30:.0f} GiB for all of a run): choose fewer layers=, or give the module less"
        )


def _tokens(tokens: Sequence[str | Token] | None, n: int, axis: str) -> tuple[Token, ...]:
    """Return labels as tokens; if there are none, the numbers of all `n` queries or keys (`axis`, for the message)."""
    labels = [str(number) for number in range(n)] if tokens is None else list(tokens)
    if not 0 < len(labels) <= n:
        raise RecordError(f"there are {len(labels)} tokens for {n} {axis}")
    return tuple(
        Token(text=label, piece=label) if isinstance(label, str) else label for label in labels
    )
