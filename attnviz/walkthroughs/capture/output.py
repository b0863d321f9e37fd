"""The steps after a head's context: the output projection, a recurrent cell, and the next word.

Only the likeliest words are written down; the others are one more logit, the log of the sum of their exponentials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.attention import Kind, Note
from attnviz.capture.projections import Projection, WordHead
from attnviz.models.language.vocabulary import START
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.capture.inputs import LARGEST_PROJECTION
from attnviz.walkthroughs.capture.run import HeadRun, numbers
from attnviz.walkthroughs.record import Grid

MOST_WORDS = 10  # the likeliest words, which are shown


def write_output(calculation: Calculation, run: HeadRun) -> list[Note]:
    """Write down the contexts of all heads, and the output projection where it is found; return notes."""
    output, layer = run.keep.projections()[3], run.layer
    if output is None:
        return _write_cell_input(calculation, run)
    if output.weight.numel() > LARGEST_PROJECTION:
        return [Note.of("output_left_out", shape=" x ".join(map(str, output.weight.shape)))]
    contexts = []
    for head in range(layer.output.shape[2]):
        name = "context"
        if head != run.head:
            context = numbers(run.rows_of(layer.output[0, :, head]))
            grid = Grid(values=context, rows=run.query_names)
            name = calculation.give(f"context_{head}", grid)
        contexts.append(name)
    write_output_projection(calculation, contexts, output)
    return []


def write_output_projection(
    calculation: Calculation,
    contexts: Sequence[str],
    output: Projection,
    suffix: str = "",
    *,
    is_written: bool = True,
) -> str:
    """Write down the contexts side by side and their output projection; return the name of its result."""
    joined = contexts[0]
    if len(contexts) > 1:
        joined = calculation.step("concatenated", f"concatenated{suffix}", "concatenate", *contexts)
    names = ("output", f"output{suffix}", f"o{suffix}")
    return write_projection(calculation, names, joined, output, is_written=is_written)


def write_projection(
    calculation: Calculation,
    names: tuple[str, str, str],
    x: str,
    projection: Projection,
    *,
    is_written: bool = True,
) -> str:
    """Write down a projection, or its result alone.

    The names are those of the step, of its result, and what follows W and b.
    """
    step, result, letter = names
    weight, bias = numbers(projection.weight), projection.bias
    if is_written:
        weights = {f"W{letter}": Grid(values=weight)}
        if bias is not None:
            weights[f"b{letter}"] = row_grid(bias)
        return calculation.project(step, result, x, weights)
    read = calculation.grids[x]
    made = read.values @ weight
    if bias is not None:
        made = made + numbers(bias)
    return calculation.give(result, Grid(values=made, rows=read.rows))


def row_grid(values: Tensor) -> Grid:
    """Return a vector as a grid of one row."""
    return Grid(values=np.atleast_2d(numbers(values)))


def _write_cell_input(calculation: Calculation, run: HeadRun) -> list[Note]:
    """Write down what a recurrent cell reads: the word before, beside the context."""
    beside = run.keep.beside()
    if beside is None:
        return []
    name = "Y" if run.row is None else "y"
    words_before = (START, *run.queries[:-1])
    rows = words_before if run.row is None else (words_before[run.row],)
    calculation.give(name, Grid(values=numbers(run.rows_of(beside)), rows=rows))
    calculation.step("concatenated", "concatenated", "concatenate", name, "context")
    return [Note.of("word_before", y=name)]


@runtime_checkable  # it is how they are told apart
class Predicting(Protocol):
    """A source whose model predicts words."""

    def word_head(self, kind: Kind) -> WordHead | None:
        """Return what makes words of the states that this kind of attention serves; None where nothing does."""


def write_words(calculation: Calculation, run: HeadRun) -> list[Note]:
    """Write down the steps from the context of one query to the next word, where the model predicts one."""
    head = run.source.word_head(run.kind) if isinstance(run.source, Predicting) else None
    states = None if head is None else run.keep.read_by(head)
    if head is None or states is None or run.row is None:
        return []
    weight, own_state = numbers(head.weight), numbers(states[run.row : run.row + 1])
    bias = np.zeros(len(weight)) if head.bias is None else numbers(head.bias)
    order = np.argsort(-(own_state @ weight.T + bias)[0]).tolist()
    likeliest = [word for word in order if word not in head.never][:MOST_WORDS]
    state = _write_cell(calculation, run)
    if state is None:
        state = calculation.give("state", Grid(values=own_state, rows=run.query_names))
    names = tuple(head.names(likeliest))
    weights = {"Ww": Grid(values=weight[likeliest].T, columns=names)}
    if head.bias is not None:
        weights["bw"] = Grid(values=bias[likeliest][None], columns=names)
    calculation.project("logits", "logits", state, weights)
    operands = ["logits"]
    logits = (calculation.grids[state].values @ weight.T + bias)[0]
    others = np.delete(logits, likeliest)
    if len(others):
        total = others.max() + np.log(np.exp(others - others.max()).sum())
        operands.append(calculation.give("others", Grid(values=np.array([[total]]))))
    calculation.step("next_word", "probabilities", "softmax", *operands)
    word = calculation.grids["probabilities"].columns[0]
    # A query that generates its word is named by it; one that was read is followed by the next.
    generates = run.batch.sentences[0].keys is not None
    following = run.row if generates else run.row + 1
    next_words = run.queries[following : following + 1]
    if not next_words or next_words[0] == word:
        return [Note.of("next_chosen", word=word)]
    return [Note.of("next_given", word=word, given=next_words[0])]


def _write_cell(calculation: Calculation, run: HeadRun) -> str | None:
    """Write down the step of a recurrent cell, where all that it reads is there; return its new state."""
    cell = next((call.module for call in run.keep.cells()), None)
    has_inputs = {"x", "concatenated"} <= set(calculation.grids)
    if not isinstance(cell, nn.GRUCell) or not has_inputs:
        return None
    weights = []
    for symbol, read in (("x", "ih"), ("s", "hh")):
        weight = cell.get_parameter(f"weight_{read}")
        bias = cell.get_parameter(f"bias_{read}") if cell.bias else torch.zeros(len(weight))
        weights.append(calculation.give(f"W{symbol}", Grid(values=numbers(weight.T))))
        weights.append(calculation.give(f"b{symbol}", row_grid(bias)))
    return calculation.step(
        "cell", "state", "gru", "concatenated", "x", *weights, rows=run.query_names
    )
