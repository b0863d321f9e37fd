"""One word followed through one head of any model, or through a whole layer; and what follows a head's context.

That is the output projection, the rest of the layer, or a decoder's next word. Only the ten likeliest words are written
down; the others are one more logit, the log of the sum of their exponentials.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from attnviz.attention import Kind, Note, Receipt, Token, indices_of
from attnviz.capture.observers import Batch
from attnviz.capture.projections import Projection, ProjectionCollector, WordHead
from attnviz.capture.sources import Source
from attnviz.capture.sources.own import ModuleSource
from attnviz.errors import NoAttentionError, SelectionError
from attnviz.models.language.vocabulary import START
from attnviz.text.display import visible
from attnviz.walkthroughs.calculation import (
    SCORE_WEIGHTS,
    Calculation,
    find_row,
    largest_difference,
)
from attnviz.walkthroughs.capture.inputs import (
    LARGEST_PROJECTION,
    SCORE_SEED,
    HeadRun,
    HomeBuilt,
    Inputs,
    makers,
    numbers,
    write_projections,
)
from attnviz.walkthroughs.capture.parts import (
    FeedForwardCalls,
    LayerParts,
    Norm,
    SubLayer,
    parts_of,
)
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.settings import Score, WalkthroughSelection, WalkthroughText

CROSS = "_cross"  # what the names of cross attention's grids end in, where a layer has both
MOST = 10  # words that are shown, the likeliest


def follow(
    words: WalkthroughText,
    source: Source,
    choice: WalkthroughSelection,
    *,
    full: bool = False,
) -> Walkthrough:
    """Follow one word through one head of a model, from what its query, key and value are made of to its context.

    The model runs once, proved by its receipt. Query, keys and values are computed again from the head's own
    projections where these are found, and the context from them, in double precision; how far it is from the model's
    own is `difference`. Raises InputError: the text cannot be read by the model; SelectionError: a layer, head or query
    that is not there, several equal words, or another score or mask for a model that is not home-built; ModelError:
    query, key and value are not seen or not proved, or a whole layer is built otherwise.
    """
    score, (layer, chosen_head) = choice.score, choice.place
    if (score != "scaled" or choice.causal) and not isinstance(source, HomeBuilt):
        raise SelectionError(
            f"{source.name} has its own score and mask: another is for the home-built models alone"
        )

    def encoded(kind: Kind | None) -> Batch:
        return source.encode(
            [words.text], [words.pair], truncate=words.truncate, kind=kind, targets=[words.target]
        )

    batch = encoded(choice.kind)
    kind = batch.kind or source.kinds[0]
    causal = choice.causal and kind != "decoder"  # that is causal anyway
    if choice.whole_layer and (score != "scaled" or causal):
        raise SelectionError(
            "a whole layer is walked as the model computed it, with no other score and no other mask"
        )
    if causal and kind == "cross":
        raise SelectionError(
            "cross attention looks at another sentence: none of its words comes after the query"
        )
    tokens = batch.sentences[0].tokens
    one = find_query(tokens, choice.query, "decoder" if causal else kind)
    row = None if choice.walks_all and len(tokens) > 1 else one  # None stands for all at once
    keep = ProjectionCollector(layer)
    receipt = source.stream(batch, [keep])
    (head,) = indices_of([chosen_head], range(keep.layer.query.shape[1]), "head")
    run = HeadRun(source=source, batch=batch, keep=keep, kind=kind, head=head, row=None)
    if choice.whole_layer:
        other = None
        if kind != "encoder" and {"decoder", "cross"} <= set(source.kinds):
            other, receipt = _other_attention(run, encoded, receipt)
        return _write_layer(run, other, row, receipt, full=full)
    return _write_head(replace(run, row=row), score, receipt, causal=causal)


def _other_attention(
    run: HeadRun, encoded: Callable[[Kind], Batch], receipt: Receipt
) -> tuple[HeadRun, Receipt]:
    """The other attention of a decoder's layer, from a second run: a run shows one kind. The receipt is of both."""
    kind: Kind = "cross" if run.kind == "decoder" else "decoder"
    batch, keep = encoded(kind), ProjectionCollector(run.layer.number)
    second = run.source.stream(batch, [keep])
    if second.layers != receipt.layers:
        raise NoAttentionError(
            f"{run.source.name}: not every layer of its decoder looks both back and across, so none is walked whole"
        )
    larger = tuple(map(max, zip(receipt.differences, second.differences, strict=True)))
    return replace(run, batch=batch, keep=keep, kind=kind), replace(receipt, differences=larger)


def _write_head(run: HeadRun, score: Score, receipt: Receipt, *, causal: bool) -> Walkthrough:
    calculation, theirs = Calculation(), numbers(run.rows_of(run.layer.output[0, :, run.head]))
    own, difference, from_input = None, None, None
    notes = write_projections(calculation, run, Inputs(calculation, run))
    context = run.write_attention(calculation, score, causal=causal)
    if score != "scaled" or causal:
        notes.append(_other_way(score, causal=causal))
    else:
        notes += [*write_output(calculation, run), *write_words(calculation, run)]
        alone = Calculation()  # from the model's own query, keys and values
        run.give_own(alone)
        own, difference = (
            "context",
            largest_difference(alone.grids[run.write_attention(alone)].values, theirs),
        )
        is_made = any(step.result in run.names for step in calculation.steps)
        from_input = (
            largest_difference(calculation.grids[context].values, theirs) if is_made else None
        )
    of_head: dict[str, Any] = (
        {"head": run.head, "kind": "decoder"} if causal else {"head": run.head}
    )
    notes = [*run.batch.sentences[0].notes, *notes]
    return _finish(
        calculation,
        run,
        notes,
        own=own,
        difference=difference,
        from_input=from_input,
        receipt=receipt,
        **of_head,
    )


def _finish(
    calculation: Calculation, run: HeadRun, notes: Sequence[Note], **more: Any
) -> Walkthrough:
    """The walkthrough of a calculation, with whose it is."""
    notes = [*notes, *_shapes(run, more["receipt"])]
    return calculation.finish(
        _title(run, more.get("head")),
        query=run.row,
        notes=notes,
        model=run.source.name,
        text=run.batch.sentences[0].text,
        layer=run.layer.number,
        **{"kind": run.kind, **more},
    )


def _shapes(run: HeadRun, receipt: Receipt) -> list[Note]:
    """What the library's own model makes of the whole sentence, in shapes; of others nothing."""
    made = [call.made.shape[1:] for call in run.keep.last if call.made.shape[1] == len(run.queries)]
    if isinstance(run.source, HomeBuilt | ModuleSource) or run.source.generates or not made:
        return []
    _, heads, _, d = run.layer.query.shape
    shape = "({}, {})".format(*made[-1])
    return [Note.of("model_shapes", layers=len(receipt.layers), heads=heads, d=d, shape=shape)]


def _title(run: HeadRun, head: int | None) -> Note:
    fields: dict[str, str | int] = {"model": run.source.name, "layer": run.layer.number}
    fields |= {} if head is None else {"head": head}
    fields |= {} if run.row is None else {"query": run.queries[run.row]}
    return Note.of(
        f"title_{'layer' if head is None else 'head'}_{'all' if run.row is None else 'query'}",
        **fields,
    )


def _write_layer(
    run: HeadRun, other: HeadRun | None, row: int | None, receipt: Receipt, *, full: bool
) -> Walkthrough:
    """The walkthrough of one query, or of all, through a whole layer; of a large one the projections only in full."""
    run = replace(run, row=row)
    first, cross = run, None
    if other is not None:
        other = replace(other, row=row)
        first, cross = (run, other) if run.kind == "decoder" else (other, run)
        cross = replace(cross, suffix=CROSS)
    parts: LayerParts = parts_of(run.source.name, first.keep, None if cross is None else cross.keep)
    theirs = numbers(run.rows_of(parts.made))
    n_numbers = sum(found.weight.numel() for found in _projections_of(parts, first.keep, cross))
    is_whole = full or n_numbers <= LARGEST_PROJECTION
    differences: list[float] = []
    # from each head's own query, keys and values; from the input
    for projected in (False, True)[: 1 + is_whole]:
        calculation = Calculation()
        writer = LayerWriter(calculation, first, cross, from_input=projected, is_whole=is_whole)
        own = writer.write(parts)
        differences.append(largest_difference(calculation.grids[own].values, theirs))
    sentence = run.batch.sentences[0]
    of_text = (
        *sentence.notes,
        *(() if other is None else (*other.batch.sentences[0].notes, Note("looks_twice"))),
    )
    left_out = () if is_whole else (Note.of("layer_left_out", n=f"{n_numbers:,}"),)
    notes = [*dict.fromkeys([*of_text, *writer.notes, *left_out])]
    difference, from_input = (*differences, None)[:2]
    return _finish(
        calculation,
        run,
        notes,
        own=own,
        difference=difference,
        from_input=from_input,
        receipt=receipt,
    )


def _projections_of(
    parts: LayerParts, keep: ProjectionCollector, cross: HeadRun | None
) -> list[Projection]:
    kept = [keep] if cross is None else [keep, cross.keep]
    found = [None if made is None else made.projection for each in kept for made in makers(each)]
    for part in parts.parts:
        work = part.work
        found += (
            [work.widen, work.narrow, work.gate] if isinstance(work, FeedForwardCalls) else [work]
        )
    return [one for one in found if one is not None]


def _other_way(score: Score, *, causal: bool) -> Note:
    if score == "scaled":
        return Note("made_causal")
    drawn = {"seed": SCORE_SEED} if SCORE_WEIGHTS[score] else {}
    return Note.of(f"other_score{'_drawn' * bool(drawn)}{'_causal' * causal}", score=score, **drawn)


def find_query(tokens: Sequence[Token], wanted: str | int | None, kind: Kind = "encoder") -> int:
    """The number of the token that a person means, as `find_row` understands it.

    None is the first that the tokenizer did not add, of a decoder the last. Raises SelectionError: none, or several.
    """
    if wanted is None:
        words = [number for number, token in enumerate(tokens) if not token.special] or [0]
        return words[-1 if kind == "decoder" else 0]
    pieces: dict[tuple[int, int], list[str]] = {}
    for token in tokens:
        if token.word is not None:
            pieces.setdefault((token.segment, token.word), []).append(token.text.removeprefix("·"))
    # A word in pieces is named by each of them: "walkthrough" is walk and ·through.
    spelled = []
    for token in tokens:
        text = token.text
        parts = [text] if token.word is None else pieces[token.segment, token.word]
        # What is read as unknown, as in "quokka→[UNK]", is named as it was typed.
        typed = text.partition("→")[0] or text
        spelled.append((text, text.removeprefix("·"), typed, visible(token.piece), "".join(parts)))
    return find_row(spelled, wanted)


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
        contexts.append(
            "context" if head == run.head else calculation.give(f"context_{head}", theirs)
        )
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
    # whether query, keys and values are made by their projections, or given
    from_input: bool = field(kw_only=True)
    is_whole: bool = field(default=True, kw_only=True)  # as `from_input`, of the other projections
    notes: list[Note] = field(default_factory=list)  # what a reader should know
    n_norms: int = 0  # so far

    def write(self, parts: LayerParts) -> str:
        """All parts in turn; the name of the layer's output."""
        inputs, x = Inputs(self.c, self.run), numbers(parts.x)
        first, *_, last = parts.parts
        if not self.from_input:
            self.n_norms += first.before is not None  # it is in what the heads were given
            inputs.write(x, of_query=True)
        elif first.before is not None:
            every = inputs.write(x, of_query=False) or ""
            inputs.know(numbers(first.read), self.norm(every, first.before, is_first=True), "n")
        made = self.attention(first, self.run, inputs)
        stream = inputs.write(x, of_query=True) or ""
        for n, part in enumerate(parts.parts, start=1):
            if part is not first:
                read = stream if part.before is None else self.norm(stream, part.before)
                work = part.work
                made = (
                    self.network(work, read)
                    if isinstance(work, FeedForwardCalls)
                    else self.across(part, read)
                )
            if part.inside is not None:
                made = self.norm(made, part.inside)
            step = (
                "residual"
                if part is first
                else "residual_cross"
                if part is not last
                else "residual_2"
            )
            if part is last and part.after is None:
                step = "residual_out"
            stream = self.c.step(step, _number("residual", n), "add", made, stream)
            if part.after is not None:
                stream = self.norm(stream, part.after, is_last=part is last)
        return stream

    def across(self, part: SubLayer, read: str) -> str:
        """Cross attention, of which the queries walked are the rows of a grid that is there."""
        assert self.cross is not None
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
        assert isinstance(part.work, Projection)
        return _write_output_projection(
            self.c, contexts, part.work, run.suffix, is_given=not self.is_whole
        )

    def network(self, network: FeedForwardCalls, read: str) -> str:
        """The feed-forward network."""
        c, gate = self.c, network.gate
        write = partial(_write_projection, c, is_given=not self.is_whole)
        widened = ("feed_forward_1", "hidden", "1")
        names = widened if gate is None else ("feed_forward_gate", "gate", "g")
        active = c.step(
            network.activation,
            "active",
            network.activation,
            write(names, read, gate or network.widen),
        )
        if gate is not None:
            hidden = write(widened, read, network.widen)
            active = c.step("gated", "gated", "product", active, hidden)
        return write(("feed_forward_2", "narrowed", "2"), active, network.narrow)

    def norm(self, x: str, norm: Norm, *, is_first: bool = False, is_last: bool = False) -> str:
        """A norm; norms are counted, as their gains and shifts are."""
        self.n_norms += 1
        c, n = self.c, self.n_norms
        given = [c.give(f"gain_{n}", _row(norm.gain))]
        if norm.operation == "norm":
            given.append(c.give(f"shift_{n}", _row(norm.shift)))
        step = (
            f"input_{norm.operation}"
            if is_first
            else f"{norm.operation}_out"
            if is_last
            else norm.operation
        )
        return c.step(
            step,
            "N" if is_first else _number("norm", n),
            norm.operation,
            x,
            *given,
            number=norm.epsilon,
        )


def _write_output_projection(
    c: Calculation,
    contexts: Sequence[str],
    output: Projection,
    suffix: str = "",
    *,
    is_given: bool = False,
) -> str:
    """Write down contexts side by side and what the output projection makes of them; the name of that comes back."""
    together = contexts[0]
    if len(contexts) > 1:
        together = c.step("concatenated", f"concatenated{suffix}", "concatenate", *contexts)
    return _write_projection(
        c, ("output", f"output{suffix}", f"o{suffix}"), together, output, is_given=is_given
    )


def _write_projection(
    c: Calculation,
    names: tuple[str, str, str],
    x: str,
    found: Projection,
    *,
    is_given: bool = False,
) -> str:
    """Write down a projection, or what it makes alone; the names are the step's, its result's, what follows W and b."""
    step, result, letter = names
    if is_given:
        read = c.grids[x]
        made = read.values @ numbers(found.weight) + (
            0.0 if found.bias is None else numbers(found.bias)
        )
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
    ranked = [
        number
        for number in np.argsort(-(own @ weight.T + bias)[0]).tolist()
        if number not in head.never
    ]
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
    # A query that generates its word is named by it; one that was read is followed by the next.
    following = (run.row or 0) + (run.batch.sentences[0].keys is None)
    names = run.queries[following : following + 1]
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
