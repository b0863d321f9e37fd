"""From context to word: the decoder's state, the logits of the likeliest words, their probabilities, the word chosen.

All words of a vocabulary would fill a file. The ten likeliest are written down one by one, and of the others what the
softmax must know of them: the log of the sum of their exponentials, which takes part as one more logit.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import nn

from attnviz.attention import Kind, Note
from attnviz.capture.projections import WordHead
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.capture.run import HeadRun, numbers
from attnviz.walkthroughs.record import Grid

MOST = 10
"""Words that are shown, the likeliest."""


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
    state = _write_cell(c, run) or c.give("state", Grid(values=own, rows=run.looking))
    logits = (c.grids[state].values @ weight.T + bias)[0]
    names = tuple(head.names(best))
    maps = {"Ww": Grid(values=weight[best].T, columns=names)}
    maps |= {} if head.bias is None else {"bw": Grid(values=bias[best][None], columns=names)}
    c.project("logits", "logits", state, maps)
    others, rest = np.delete(logits, best), []
    if len(others):
        total = others.max() + np.log(np.exp(others - others.max()).sum())
        rest = [c.give("others", Grid(values=np.array([[total]])))]
    c.step("next_word", "probabilities", "softmax", "logits", *rest)
    return [_chosen(run, c.grids["probabilities"].columns[0])]


def _chosen(run: HeadRun, word: str) -> Note:
    """The likeliest word, and what the next step reads: it, or what was given."""
    following = run.row if run.generates else (run.row or 0) + 1
    names = run.queries[following : following + 1] if following is not None else ()
    if not names or names[0] == word:
        return Note.of("next_chosen", word=word)
    return Note.of("next_given", word=word, given=names[0])


def _write_cell(calculation: Calculation, run: HeadRun) -> str | None:
    """Write down the step of a recurrent cell, where all that it reads is there; the name of its new state."""
    c = calculation
    cell = next((call.module for call in run.keep.before if isinstance(call.module, nn.RNNCellBase)), None)
    if not isinstance(cell, nn.GRUCell) or not {"x", "concatenated"} <= set(c.grids):
        return None
    given = []
    for symbol, read in (("x", "ih"), ("s", "hh")):
        weight = cell.get_parameter(f"weight_{read}")
        bias = cell.get_parameter(f"bias_{read}") if cell.bias else torch.zeros(len(weight))
        given.append(c.give(f"W{symbol}", Grid(values=numbers(weight.T))))
        given.append(c.give(f"b{symbol}", Grid(values=numbers(bias)[None])))
    return c.step("cell", "state", "gru", "concatenated", "x", *given, rows=run.looking)
