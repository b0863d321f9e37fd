"""What follows a head's context: the output projection and the rest of the layer, or a decoder's next word.

Only the ten likeliest words are written down; the others are one more logit, the log of the sum of their exponentials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.attention import Kind, Note
from attnviz.capture.projections import Projection, WordHead
from attnviz.models.language.vocabulary import START
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.capture.inputs import LARGEST_PROJECTION, Inputs, write_projections
from attnviz.walkthroughs.capture.parts import FeedForwardCalls, LayerParts, Norm, SubLayer
from attnviz.walkthroughs.capture.run import HeadRun, numbers
from attnviz.walkthroughs.record import Grid

CROSS = "_cross"  # what the names of cross attention's grids end in, where a layer has both
MOST = 10  # words that are shown, the likeliest


def write_output(calculation: Calculation, run: HeadRun) -> list[Note]:
    """Write down the contexts of all heads side by side, and the output projection if found; notes come back."""
    output, layer = run.keep.projections()[3], run.layer
    if output is None:
        return _write_step(calculation, run)
    if output.weight.numel() > LARGEST_PROJECTION:
        return [Note.of("output_left_out", shape=" x ".join(map(str, output.weight.shape)))]
    contexts = []
    for head in range(layer.output.shape[2]):
        theirs = Grid(values=numbers(run.rows_of(layer.output[0, :, head])), rows=run.query_names)
        contexts.append("context" if head == run.head else calculation.give(f"context_{head}", theirs))
    _write_output_projection(calculation, contexts, output)
    return []


def _write_step(calculation: Calculation, run: HeadRun) -> list[Note]:
    beside = run.keep.beside()
    if beside is None:
        return []
    y = "Y" if run.row is None else "y"
    before = (START, *run.queries[:-1])
    rows = before if run.row is None else (before[run.row],)
    calculation.give(y, Grid(values=numbers(run.rows_of(beside)), rows=rows))
    calculation.step("concatenated", "concatenated", "concatenate", y, "context")
    return [Note.of("word_before", y=y)]


@dataclass(slots=True)
class LayerWriter:
    """A layer while it is written down."""

    c: Calculation  # where to
    run: HeadRun  # its self-attention
    cross: HeadRun | None  # its cross attention, where it has one
    from_input: bool = field(kw_only=True)  # whether query, keys and values are made by their projections, or given
    is_whole: bool = field(default=True, kw_only=True)  # as `from_input`, of the other projections
    notes: list[Note] = field(default_factory=list)  # what a reader should know
    n_norms: int = 0  # so far
    n_sums: int = 0  # residual ones, so far

    def write(self, parts: LayerParts) -> str:
        """All parts in turn; the name of the layer's output."""
        inputs = Inputs(self.c, self.run)
        first, *_, last = parts.parts
        if first.before is not None and self.from_input:
            every = inputs.write(numbers(parts.x), of_query=False) or ""
            inputs.know(numbers(first.read), self.norm(every, first.before, is_first=True), "n")
        elif first.before is not None:
            self.n_norms += 1  # it is in what the heads were given
        if not self.from_input:
            inputs.write(numbers(parts.x), of_query=True)
        made = self.attention(first, self.run, inputs)
        stream = inputs.write(numbers(parts.x), of_query=True) or ""
        for part in parts.parts:
            if part is not first:
                read = stream if part.before is None else self.norm(stream, part.before)
                work = part.work
                made = self.network(work, read) if isinstance(work, FeedForwardCalls) else self.across(part, read)
            if part.inside is not None:
                made = self.norm(made, part.inside)
            step = "residual" if part is first else "residual_cross" if part is not last else "residual_2"
            if part is last and part.after is None:
                step = "residual_out"
            self.n_sums += 1
            stream = self.c.step(step, _number("residual", self.n_sums), "add", made, stream)
            if part.after is not None:
                stream = self.norm(stream, part.after, is_last=part is last)
        return stream

    def across(self, part: SubLayer, read: str) -> str:
        """Cross attention, of which the queries walked are the rows of a grid that is there."""
        assert self.cross is not None  # noqa: S101 - there is a third part
        inputs = Inputs(self.c, self.cross)
        query = self.cross.keep.projections()[0]
        if query is not None:
            inputs.know(numbers(query.given), read, read)
        return self.attention(part, self.cross, inputs)

    def attention(self, part: SubLayer, run: HeadRun, inputs: Inputs) -> str:
        """All heads, and what the output projection makes of their contexts."""
        contexts = []
        for head in range(run.layer.query.shape[1]):
            one = replace(run, head=head, suffix=f"{run.suffix}_{head}")
            if self.from_input:
                self.notes += write_projections(self.c, one, inputs)
            else:
                one.give_own(self.c)
            contexts.append(one.write_attention(self.c))
        assert isinstance(part.work, Projection)  # noqa: S101 - attention's is the output projection
        return _write_output_projection(self.c, contexts, part.work, run.suffix, is_given=not self.is_whole)

    def network(self, network: FeedForwardCalls, read: str) -> str:
        """The feed-forward network."""
        c, gate = self.c, network.gate
        write = partial(_write_projection, c, is_given=not self.is_whole)
        if gate is None:
            hidden = write(("feed_forward_1", "hidden", "1"), read, network.widen)
            active = c.step(network.activation, "active", network.activation, hidden)
        else:
            opened = write(("feed_forward_gate", "gate", "g"), read, gate)
            active = c.step(network.activation, "active", network.activation, opened)
            hidden = write(("feed_forward_1", "hidden", "1"), read, network.widen)
            active = c.step("gated", "gated", "product", active, hidden)
        return write(("feed_forward_2", "narrowed", "2"), active, network.narrow)

    def norm(self, x: str, norm: Norm, *, is_first: bool = False, is_last: bool = False) -> str:
        """A norm; norms are counted, as their gains and shifts are."""
        self.n_norms += 1
        c, n = self.c, self.n_norms
        given = [c.give(f"gain_{n}", _row(norm.gain))]
        if norm.operation == "norm":
            given.append(c.give(f"shift_{n}", _row(norm.shift)))
        step = f"input_{norm.operation}" if is_first else f"{norm.operation}_out" if is_last else norm.operation
        return c.step(step, "N" if is_first else _number("norm", n), norm.operation, x, *given, number=norm.epsilon)


def _write_output_projection(
    c: Calculation, contexts: Sequence[str], output: Projection, suffix: str = "", *, is_given: bool = False
) -> str:
    """Write down contexts side by side and what the output projection makes of them; the name of that comes back."""
    together = contexts[0]
    if len(contexts) > 1:
        together = c.step("concatenated", f"concatenated{suffix}", "concatenate", *contexts)
    return _write_projection(c, ("output", f"output{suffix}", f"o{suffix}"), together, output, is_given=is_given)


def _write_projection(
    c: Calculation, names: tuple[str, str, str], x: str, found: Projection, *, is_given: bool = False
) -> str:
    """Write down a projection, or what it makes alone; the names are the step's, its result's, what follows W and b."""
    step, result, letter = names
    if is_given:
        read = c.grids[x]
        made = read.values @ numbers(found.weight) + (0.0 if found.bias is None else numbers(found.bias))
        return c.give(result, Grid(values=made, rows=read.rows))
    bias = {} if found.bias is None else {f"b{letter}": _row(found.bias)}
    return c.project(step, result, x, {f"W{letter}": Grid(values=numbers(found.weight))} | bias)


def _row(values: Tensor) -> Grid:
    return Grid(values=np.atleast_2d(numbers(values)))


def _number(name: str, n: int) -> str:
    """The first has no number, the others have."""
    return name if n == 1 else f"{name}_{n}"


@runtime_checkable  # it is how they are told apart
class Predicting(Protocol):
    """A source whose model predicts words."""

    def word_head(self, kind: Kind) -> WordHead | None:
        """What makes words of the states that this kind of attention serves; None where nothing does."""


def write_words(calculation: Calculation, run: HeadRun) -> list[Note]:
    """Write down what follows the context of one query, up to the next word, where the model predicts one."""
    head = run.source.word_head(run.kind) if isinstance(run.source, Predicting) else None
    states = None if head is None else run.keep.read_by(head)
    if head is None or states is None or run.row is None:
        return []
    c, weight, own = calculation, numbers(head.weight), numbers(states[run.row : run.row + 1])
    bias = np.zeros(len(weight)) if head.bias is None else numbers(head.bias)
    ranked = [number for number in np.argsort(-(own @ weight.T + bias)[0]).tolist() if number not in head.never]
    best = ranked[:MOST]
    state = _write_cell(c, run) or c.give("state", Grid(values=own, rows=run.query_names))
    logits = (c.grids[state].values @ weight.T + bias)[0]
    names = tuple(head.names(best))
    weights = {"Ww": Grid(values=weight[best].T, columns=names)}
    weights |= {} if head.bias is None else {"bw": Grid(values=bias[best][None], columns=names)}
    c.project("logits", "logits", state, weights)
    others, rest = np.delete(logits, best), []
    if len(others):
        total = others.max() + np.log(np.exp(others - others.max()).sum())
        rest = [c.give("others", Grid(values=np.array([[total]])))]
    c.step("next_word", "probabilities", "softmax", "logits", *rest)
    return [_note_word(run, c.grids["probabilities"].columns[0])]


def _note_word(run: HeadRun, word: str) -> Note:
    """The likeliest word, and what the next step reads: it, or what was given."""
    following = run.row if run.generates else (run.row or 0) + 1
    names = run.queries[following : following + 1] if following is not None else ()
    if not names or names[0] == word:
        return Note.of("next_chosen", word=word)
    return Note.of("next_given", word=word, given=names[0])


def _write_cell(calculation: Calculation, run: HeadRun) -> str | None:
    """Write down the step of a recurrent cell, where all that it reads is there; the name of its new state."""
    c = calculation
    cell = next((call.module for call in run.keep.cells()), None)
    if not isinstance(cell, nn.GRUCell) or not {"x", "concatenated"} <= set(c.grids):
        return None
    given = []
    for symbol, read in (("x", "ih"), ("s", "hh")):
        weight = cell.get_parameter(f"weight_{read}")
        bias = cell.get_parameter(f"bias_{read}") if cell.bias else torch.zeros(len(weight))
        given.append(c.give(f"W{symbol}", Grid(values=numbers(weight.T))))
        given.append(c.give(f"b{symbol}", Grid(values=numbers(bias)[None])))
    return c.step("cell", "state", "gru", "concatenated", "x", *given, rows=run.query_names)
