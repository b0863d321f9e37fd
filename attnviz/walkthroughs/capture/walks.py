"""One word followed through one head of any model, or through a whole layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from attnviz.attention import Kind, Note, Receipt, Token, indices_of
from attnviz.capture.attend import attend_batch
from attnviz.capture.observers import Batch
from attnviz.capture.projections import ProjectionCollector
from attnviz.capture.sources import Source
from attnviz.capture.sources.own import ModuleSource
from attnviz.errors import SelectionError
from attnviz.text.display import clip, visible
from attnviz.walkthroughs.calculation import (
    SCORE_WEIGHTS,
    Calculation,
    find_row,
    largest_difference,
)
from attnviz.walkthroughs.capture.inputs import (
    HomeBuilt,
    Inputs,
    write_projections,
)
from attnviz.walkthroughs.capture.layers import LayerWriter, count_weights, layer_calls
from attnviz.walkthroughs.capture.output import write_output, write_words
from attnviz.walkthroughs.capture.run import SCORE_SEED, HeadRun, numbers
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.settings import Score

if TYPE_CHECKING:
    from attnviz.heatmaps.finding import Finder

# The suffix of the names of cross attention's grids, in a layer that also has self-attention.
CROSS = "_cross"
LARGEST_LAYER = 2**21  # weights of a layer that are written down even if not `full`
MOST_TOKENS = 60  # most characters of the tokens in the note on the model's shapes


def follow(
    text: str,
    source: Source,
    *,
    layer: int | None = None,
    head: int | None = None,
    query: str | None = None,
    all_queries: bool = False,
    whole_layer: bool = False,
    kind: Kind | None = None,
    score: Score = "scaled",
    pair: str | None = None,
    target: str | None = None,
    full: bool = False,
    find_link: Finder | None = None,
) -> Walkthrough:
    """Follow one word, or all words, through one head or a whole layer of a model; see `attnviz.walkthrough`.

    `find_link` chooses what is not given of the query, the layer and the head. The model runs once and gets a
    receipt (twice for a decoder layer with two kinds of attention, and once more for `find_link`). Query, keys and
    values are recomputed from the projections of the head if these are found, and the context from them, in double
    precision.

    Raises:
        InputError: the model cannot read the text.
        SelectionError: the layer, head or query does not exist, several words are equal, or another score is chosen
            for a model that is not home-built.
        ModelError: query, key and value are not found or not verified, or the layer has no output projection.
    """

    def encode(kind: Kind | None) -> Batch:
        return source.encode([text], [pair], kind=kind, targets=[target])

    batch = encode(kind)
    followed_kind = batch.kind or source.kinds[0]
    _check_score(source, score, whole_layer=whole_layer)
    tokens = batch.sentences[0].tokens
    query_row = find_query(tokens, query, followed_kind)
    walks_all = all_queries or (whole_layer and query is None)
    if find_link is not None or (head is not None and layer is None):
        (record,) = attend_batch(batch, source, layers=layer, heads=head)
        link = find_link(record, None if query is None else query_row) if find_link else None
        if link is not None:
            layer, head, query_row = link.layer, link.head, link.query
        elif find_link is None and len(record.layers) > 1:
            raise SelectionError(f"head {head} is that of every layer: give one, such as 0.{head}")
    layer, head = layer or 0, head or 0
    collector = ProjectionCollector(layer)
    receipt = source.stream(batch, [collector])
    (head,) = indices_of([head], range(collector.layer.query.shape[1]), "head")
    row = None if walks_all and len(tokens) > 1 else query_row
    run = HeadRun(
        source=source, batch=batch, collector=collector, kind=followed_kind, head=head, row=row
    )
    if not whole_layer:
        return _write_head(run, score, receipt)
    other_run = None
    attends_twice = followed_kind != "encoder" and {"decoder", "cross"} <= set(source.kinds)
    if attends_twice and isinstance(source, HomeBuilt):
        other_run, receipt = _other_attention(run, encode, receipt)
    return _write_layer(run, other_run, receipt, full=full)


def _check_score(source: Source, score: Score, *, whole_layer: bool) -> None:
    """Raise SelectionError if the score cannot be changed."""
    if score == "scaled":
        return
    if not isinstance(source, HomeBuilt):
        raise SelectionError(
            f"{source.name} has its own score: another is for the home-built models alone"
        )
    if whole_layer:
        raise SelectionError(
            "a whole layer is followed as the model computed it: no other score can be chosen"
        )


def _write_head(run: HeadRun, score: Score, receipt: Receipt) -> Walkthrough:
    """Return the walkthrough of one head, compared with the model's own context unless the score is another one."""
    calculation = Calculation()
    notes = list(run.batch.sentences[0].notes)
    notes += write_projections(calculation, run, Inputs(calculation, run))
    context = run.write_attention(calculation, score)
    if score != "scaled":
        notes.append(Note.of("other_score", score=score))
        if SCORE_WEIGHTS[score]:
            notes.append(Note.of("score_drawn", seed=SCORE_SEED))
        return _finish(calculation, run, notes, receipt=receipt, head=run.head)
    notes += [*write_output(calculation, run), *write_words(calculation, run)]
    own_context = numbers(run.rows_of(run.layer.output[0, :, run.head]))
    # `difference` compares the context that follows from the model's own query, keys and values with the model's;
    # `from_input` compares the context that is shown, if it is calculated from the input.
    own_calculation = Calculation()
    run.give_own(own_calculation)
    recomputed = own_calculation.grids[run.write_attention(own_calculation)].values
    from_input = None
    # A given grid has no step, so a step means that query, keys or values were computed from the input.
    if any(step.result in run.names for step in calculation.steps):
        from_input = largest_difference(calculation.grids[context].values, own_context)
    return _finish(
        calculation,
        run,
        notes,
        receipt=receipt,
        head=run.head,
        own="context",
        difference=largest_difference(recomputed, own_context),
        from_input=from_input,
    )


def _write_layer(
    run: HeadRun, other_run: HeadRun | None, receipt: Receipt, *, full: bool
) -> Walkthrough:
    """Return the walkthrough of a whole layer; the weights of a large layer are included only if `full`."""
    notes = list(run.batch.sentences[0].notes)
    first, cross = run, None
    if other_run is not None:
        notes += [*other_run.batch.sentences[0].notes, Note("looks_twice")]
        first, cross = (run, other_run) if run.kind == "decoder" else (other_run, run)
        cross = replace(cross, suffix=CROSS)
    calls = layer_calls(first, cross)
    n_numbers = count_weights(calls, first, cross)
    is_complete = full or n_numbers <= LARGEST_LAYER
    *_, last_call = calls.values()
    own_output = numbers(run.rows_of(last_call.made[0]))
    # Written once from the model's own queries, keys and values, and once from the input if it is written down.
    differences: list[float] = []
    for from_input in (False, True) if is_complete else (False,):
        calculation = Calculation()
        writer = LayerWriter(calculation, from_input=from_input, has_projections=is_complete)
        output_name = writer.write(calls, first, cross)
        differences.append(largest_difference(calculation.grids[output_name].values, own_output))
    notes += writer.notes
    if not isinstance(run.source, HomeBuilt):
        notes.append(Note("ends_at_output"))
    if not is_complete:
        notes.append(Note.of("layer_left_out", n=f"{n_numbers:,}"))
    return _finish(
        calculation,
        run,
        list(dict.fromkeys(notes)),
        receipt=receipt,
        own=output_name,
        difference=differences[0],
        from_input=differences[1] if is_complete else None,
    )


def _other_attention(
    run: HeadRun, encode: Callable[[Kind], Batch], receipt: Receipt
) -> tuple[HeadRun, Receipt]:
    """Run the model again for the other attention of a decoder layer; return that run and a receipt of both runs."""
    kind: Kind = "cross" if run.kind == "decoder" else "decoder"
    batch, collector = encode(kind), ProjectionCollector(run.layer.number)
    other_receipt = run.source.stream(batch, [collector])
    maxima = tuple(map(max, zip(receipt.differences, other_receipt.differences, strict=True)))
    weaker = other_receipt if other_receipt.proves == "output" else receipt
    both = replace(weaker, differences=maxima)
    return replace(run, batch=batch, collector=collector, kind=kind), both


def _finish(
    calculation: Calculation,
    run: HeadRun,
    notes: Sequence[Note],
    *,
    receipt: Receipt,
    head: int | None = None,
    **compared: Any,
) -> Walkthrough:
    """Return the finished walkthrough of a calculation, with the model, layer, head and sentence.

    `compared` are the fields of `Walkthrough` about the model's own numbers.
    """
    fields: dict[str, str | int] = {"model": run.source.name, "layer": run.layer.number}
    if head is not None:
        fields["head"] = head
    if run.row is not None:
        fields["query"] = run.queries[run.row]
    part = "layer" if head is None else "head"
    queries = "all" if run.row is None else "query"
    return calculation.finish(
        Note.of(f"title_{part}_{queries}", **fields),
        query=run.row,
        notes=[*notes, *_shapes(run, receipt)],
        model=run.source.name,
        text=run.batch.sentences[0].text,
        layer=run.layer.number,
        head=head,
        receipt=receipt,
        kind=run.kind,
        **compared,
    )


def _shapes(run: HeadRun, receipt: Receipt) -> list[Note]:
    """Return a note on the tokens and the output's shape of a library model, or of one with an input like BERT's."""
    is_like_bert = getattr(run.source, "has_special_tokens", False)
    is_own = isinstance(run.source, HomeBuilt | ModuleSource) and not is_like_bert
    if is_own or run.source.generates:
        return []
    n_queries = len(run.queries)
    shapes = [
        tuple(call.made.shape[1:]) for call in run.collector.last if call.made.shape[1] == n_queries
    ]
    if not shapes:
        return []
    _, heads, _, d = run.layer.query.shape
    layers = len(receipt.layers)
    tokens = clip(" ".join(run.queries), MOST_TOKENS)
    shape = str(shapes[-1])
    return [Note.of("model_shapes", tokens=tokens, layers=layers, heads=heads, d=d, shape=shape)]


def find_query(tokens: Sequence[Token], wanted: str | int | None, kind: Kind = "encoder") -> int:
    """Return the index of the token that the user means; see `find_row`.

    None is the first token that is not special (the last one for a decoder). Raises SelectionError: no token matches,
    or several do.
    """
    if wanted is None:
        words = [number for number, token in enumerate(tokens) if not token.special] or [0]
        return words[-1] if kind == "decoder" else words[0]
    pieces: dict[tuple[int, int | None], list[str]] = {}
    for token in tokens:
        pieces.setdefault((token.segment, token.word), []).append(token.text.removeprefix("·"))
    # A token in a word of several pieces matches its piece or the word: walk and ·through match "walkthrough".
    spellings = []
    for token in tokens:
        text = token.text
        word = text if token.word is None else "".join(pieces[token.segment, token.word])
        # An unknown word, such as "quokka→[UNK]", also matches as it was typed.
        typed = text.partition("→")[0] or text
        spellings.append((text, text.removeprefix("·"), typed, visible(token.piece), word))
    return find_row(spellings, wanted)
