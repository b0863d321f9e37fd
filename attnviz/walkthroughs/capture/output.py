"""The steps after a head's context: the output projection, a recurrent cell, and the next word.

Only the most likely words are written down; all other words are joined in one more logit, the log of the sum of their
exponentials.
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

MOST_WORDS, LEAST = 10, 0.01  # of the likely words that are shown, and their probability


def write_output(calculation: Calculation, run: HeadRun) -> list[Note]:
    """Write down the contexts of all heads and the output projection, if it is found; return notes."""
    output, layer = run.collector.projections()[3], run.layer
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
    """Write down the concatenated contexts and their output projection; return the name of the result.

    `is_written` is False to write down only the result, without the weights.
    """
    result = contexts[0]
    if len(contexts) > 1:
        result = calculation.step("concatenated", f"concatenated{suffix}", "concatenate", *contexts)
    names = ("output", f"output{suffix}", f"o{suffix}")
    return write_projection(calculation, names, result, output, is_written=is_written)


def write_projection(
    calculation: Calculation,
    names: tuple[str, str, str],
    x: str,
    projection: Projection,
    *,
    is_written: bool = True,
) -> str:
    """Write down a projection, or only its result if `is_written` is False; return the name of the result.

    `names` are the name of the step, the name of its result, and the letters after W and b.
    """
    step, result, letter = names
    weight, bias = numbers(projection.weight), projection.bias
    if is_written:
        weights = {f"W{letter}": Grid(values=weight)}
        if bias is not None:
            weights[f"b{letter}"] = row_grid(bias)
        return calculation.project(step, result, x, weights)
    x_grid = calculation.grids[x]
    values = x_grid.values @ weight
    if bias is not None:
        values = values + numbers(bias)
    return calculation.give(result, Grid(values=values, rows=x_grid.rows))


def row_grid(values: Tensor) -> Grid:
    """Return a vector as a grid of one row."""
    return Grid(values=np.atleast_2d(numbers(values)))


def _write_cell_input(calculation: Calculation, run: HeadRun) -> list[Note]:
    """Write down the input of a recurrent cell: the vector of the previous word and the context, concatenated."""
    beside = run.collector.beside()
    if beside is None:
        return []
    name = "Y" if run.row is None else "y"
    words_before = (START, *run.queries[:-1])
    rows = words_before if run.row is None else (words_before[run.row],)
    calculation.give(name, Grid(values=numbers(run.rows_of(beside)), rows=rows))
    calculation.step("concatenated", "concatenated", "concatenate", name, "context")
    return [Note.of("word_before", y=name)]


@runtime_checkable  # sources that predict words are recognized with isinstance
class Predicting(Protocol):
    """A source whose model predicts the next word."""

    def word_head(self, kind: Kind) -> WordHead | None:
        """Return the projection from states to words for this kind of attention; None if there is none."""


def write_words(calculation: Calculation, run: HeadRun) -> list[Note]:
    """Write down the steps from the context of one query to the next word, if the model predicts one; return notes."""
    head = run.source.word_head(run.kind) if isinstance(run.source, Predicting) else None
    states = None if head is None else run.collector.read_by(head)
    if head is None or states is None or run.row is None:
        return []
    weight, own_state = numbers(head.weight), numbers(states[run.row : run.row + 1])
    bias = np.zeros(len(weight)) if head.bias is None else numbers(head.bias)
    own_logits = (own_state @ weight.T + bias)[0]
    order = [word for word in np.argsort(-own_logits).tolist() if word not in head.never]
    total = np.exp(own_logits - own_logits.max()).sum()
    likely = np.exp(own_logits - own_logits.max()) / total >= LEAST
    best_words = [word for word in order[:MOST_WORDS] if likely[word]] or order[:1]
    state = _write_cell(calculation, run)
    if state is None:
        state = calculation.give("state", Grid(values=own_state, rows=run.query_names))
    names = tuple(head.names(best_words))
    weights = {"Ww": Grid(values=weight[best_words].T, columns=names)}
    if head.bias is not None:
        weights["bw"] = Grid(values=bias[best_words][None], columns=names)
    calculation.project("logits", "logits", state, weights)
    operands = ["logits"]
    logits = (calculation.grids[state].values @ weight.T + bias)[0]
    other_logits = np.delete(logits, best_words)
    if len(other_logits):  # log-sum-exp, shifted by the largest logit so that exp does not overflow
        total = other_logits.max() + np.log(np.exp(other_logits - other_logits.max()).sum())
        operands.append(calculation.give("others", Grid(values=np.array([[total]]))))
    calculation.step("next_word", "probabilities", "softmax", *operands)
    word = calculation.grids["probabilities"].columns[0]
    # The query of a model that translates has the name of the word it generates; otherwise the next word follows it.
    generates = run.batch.sentences[0].keys is not None
    next_row = run.row if generates else run.row + 1
    next_words = run.queries[next_row : next_row + 1]
    if not next_words or next_words[0] == word:
        return [Note.of("next_chosen", word=word)]
    return [Note.of("next_given", word=word, given=next_words[0])]


def _write_cell(calculation: Calculation, run: HeadRun) -> str | None:
    """Write down the step of a recurrent cell; return the name of the new state, None if an input is missing."""
    cell = next((call.module for call in run.collector.cells()), None)
    has_inputs = {"x", "concatenated"} <= set(calculation.grids)
    if not isinstance(cell, nn.GRUCell) or not has_inputs:
        return None
    weights = []
    for symbol, source in (("x", "ih"), ("s", "hh")):
        weight = cell.get_parameter(f"weight_{source}")
        bias = cell.get_parameter(f"bias_{source}") if cell.bias else torch.zeros(len(weight))
        weights.append(calculation.give(f"W{symbol}", Grid(values=numbers(weight.T))))
        weights.append(calculation.give(f"b{symbol}", row_grid(bias)))
    return calculation.step(
        "cell", "state", "gru", "concatenated", "x", *weights, rows=run.query_names
    )
