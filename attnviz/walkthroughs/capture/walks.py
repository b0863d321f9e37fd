"""One word followed through one head of any model, or through a whole layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from attnviz.attention import Kind, Note, Receipt, Token, indices_of
from attnviz.capture.observers import Batch
from attnviz.capture.projections import ProjectionCollector
from attnviz.capture.sources import Source
from attnviz.capture.sources.own import ModuleSource
from attnviz.errors import NoAttentionError, SelectionError
from attnviz.text.display import visible
from attnviz.walkthroughs.calculation import (
    SCORE_WEIGHTS,
    Calculation,
    find_row,
    largest_difference,
)
from attnviz.walkthroughs.capture.inputs import (
    LARGEST_PROJECTION,
    HomeBuilt,
    Inputs,
    write_projections,
)
from attnviz.walkthroughs.capture.layers import LayerWriter, projections_of
from attnviz.walkthroughs.capture.output import write_output, write_words
from attnviz.walkthroughs.capture.parts import parts_of
from attnviz.walkthroughs.capture.run import SCORE_SEED, HeadRun, numbers
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.settings import Score

CROSS = "_cross"  # what the names of cross attention's grids end in, where a layer has both


def follow(
    text: str,
    source: Source,
    *,
    layer: int = 0,
    head: int = 0,
    query: str | None = None,
    all_queries: bool = False,
    whole_layer: bool = False,
    kind: Kind | None = None,
    score: Score = "scaled",
    causal: bool = False,
    pair: str | None = None,
    target: str | None = None,
    truncate: bool = False,
    full: bool = False,
) -> Walkthrough:
    """Follow one word, or all, through one head of a model or through a whole layer; see `attnviz.walkthrough`.

    The model runs once, with its receipt. Query, keys and values are computed again from the head's own projections
    where these are found, and the context from them, in double precision. Raises InputError: the text cannot be read by
    the model; SelectionError: a layer, head or query that is not there, several equal words, or another score or mask
    for a model that is not home-built; ModelError: query, key and value are not seen or not proved, or a whole layer is
    built otherwise.
    """

    def encode(kind: Kind | None) -> Batch:
        return source.encode([text], [pair], truncate=truncate, kind=kind, targets=[target])

    batch = encode(kind)
    followed = batch.kind or source.kinds[0]
    causal = causal and followed != "decoder"  # a decoder is causal anyway
    _check_changes(source, followed, score, causal=causal, whole_layer=whole_layer)
    tokens = batch.sentences[0].tokens
    found = find_query(tokens, query, "decoder" if causal else followed)
    walks_all = all_queries or (whole_layer and query is None)
    keep = ProjectionCollector(layer)
    receipt = source.stream(batch, [keep])
    (head,) = indices_of([head], range(keep.layer.query.shape[1]), "head")
    row = None if walks_all and len(tokens) > 1 else found
    run = HeadRun(source=source, batch=batch, keep=keep, kind=followed, head=head, row=row)
    if not whole_layer:
        return _write_head(run, score, receipt, causal=causal)
    other = None
    if followed != "encoder" and {"decoder", "cross"} <= set(source.kinds):
        other, receipt = _other_attention(run, encode, receipt)
    return _write_layer(run, other, receipt, full=full)


def _check_changes(
    source: Source, kind: Kind, score: Score, *, causal: bool, whole_layer: bool
) -> None:
    """Refuse another score or mask where it makes no sense."""
    if (score != "scaled" or causal) and not isinstance(source, HomeBuilt):
        raise SelectionError(
            f"{source.name} has its own score and mask: another is for the home-built models alone"
        )
    if whole_layer and (score != "scaled" or causal):
        raise SelectionError(
            "a whole layer is followed as the model computed it: no other score or mask can be chosen"
        )
    if causal and kind == "cross":
        raise SelectionError(
            "cross attention attends to another sentence: none of its words comes after the query"
        )


def _write_head(run: HeadRun, score: Score, receipt: Receipt, *, causal: bool) -> Walkthrough:
    calculation = Calculation()
    notes = list(run.batch.sentences[0].notes)
    notes += write_projections(calculation, run, Inputs(calculation, run))
    context = run.write_attention(calculation, score, causal=causal)
    kind: Kind = "decoder" if causal else run.kind
    if score != "scaled" or causal:
        if score != "scaled":
            notes.append(Note.of("other_score", score=score))
        if SCORE_WEIGHTS[score]:
            notes.append(Note.of("score_drawn", seed=SCORE_SEED))
        if causal:
            notes.append(Note("made_causal"))
        return _finish(calculation, run, notes, receipt=receipt, head=run.head, kind=kind)
    notes += [*write_output(calculation, run), *write_words(calculation, run)]
    own_context = numbers(run.rows_of(run.layer.output[0, :, run.head]))
    from_own = Calculation()  # from the model's own query, key and value
    run.give_own(from_own)
    recomputed = from_own.grids[run.write_attention(from_own)].values
    from_input = None
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
    run: HeadRun, other: HeadRun | None, receipt: Receipt, *, full: bool
) -> Walkthrough:
    """Return the walkthrough of a whole layer; of a large one the projections only if `full`."""
    notes = list(run.batch.sentences[0].notes)
    first, cross = run, None
    if other is not None:
        notes += [*other.batch.sentences[0].notes, Note("looks_twice")]
        first, cross = (run, other) if run.kind == "decoder" else (other, run)
        cross = replace(cross, suffix=CROSS)
    parts = parts_of(run.source.name, first.keep, None if cross is None else cross.keep)
    own_output = numbers(run.rows_of(parts.made))
    n_numbers = sum(projection.weight.numel() for projection in projections_of(parts, first, cross))
    is_whole = full or n_numbers <= LARGEST_PROJECTION
    # Once from the model's own queries, keys and values, and once from the input, where this is written down.
    differences: list[float] = []
    for from_input in (False, True) if is_whole else (False,):
        calculation = Calculation()
        writer = LayerWriter(
            calculation, first, cross, from_input=from_input, has_projections=is_whole
        )
        own = writer.write(parts)
        differences.append(largest_difference(calculation.grids[own].values, own_output))
    notes += writer.notes
    if not is_whole:
        notes.append(Note.of("layer_left_out", n=f"{n_numbers:,}"))
    return _finish(
        calculation,
        run,
        list(dict.fromkeys(notes)),
        receipt=receipt,
        own=own,
        difference=differences[0],
        from_input=differences[1] if is_whole else None,
    )


def _other_attention(
    run: HeadRun, encode: Callable[[Kind], Batch], receipt: Receipt
) -> tuple[HeadRun, Receipt]:
    """Return the other attention of a decoder's layer, from a second run, and a receipt of both runs."""
    kind: Kind = "cross" if run.kind == "decoder" else "decoder"
    batch, keep = encode(kind), ProjectionCollector(run.layer.number)
    second = run.source.stream(batch, [keep])
    if second.layers != receipt.layers:
        raise NoAttentionError(
            f"{run.source.name}: not every layer of its decoder attends both back and across: follow one head"
        )
    larger = tuple(map(max, zip(receipt.differences, second.differences, strict=True)))
    return replace(run, batch=batch, keep=keep, kind=kind), replace(receipt, differences=larger)


def _finish(
    calculation: Calculation,
    run: HeadRun,
    notes: Sequence[Note],
    *,
    receipt: Receipt,
    head: int | None = None,
    kind: Kind | None = None,
    own: str | None = None,
    difference: float | None = None,
    from_input: float | None = None,
) -> Walkthrough:
    """Return the walkthrough of a calculation, with the model and the place that it is from."""
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
        kind=kind or run.kind,
        own=own,
        difference=difference,
        from_input=from_input,
    )


def _shapes(run: HeadRun, receipt: Receipt) -> list[Note]:
    """Return a note on the shapes of a library model's whole output."""
    if isinstance(run.source, HomeBuilt | ModuleSource) or run.source.generates:
        return []
    n_queries = len(run.queries)
    shapes = [
        tuple(call.made.shape[1:]) for call in run.keep.last if call.made.shape[1] == n_queries
    ]
    if not shapes:
        return []
    _, heads, _, d = run.layer.query.shape
    layers = len(receipt.layers)
    return [Note.of("model_shapes", layers=layers, heads=heads, d=d, shape=str(shapes[-1]))]


def find_query(tokens: Sequence[Token], wanted: str | int | None, kind: Kind = "encoder") -> int:
    """Return the number of the token that a person means, as `find_row` understands it.

    None is the first that the tokenizer did not add, of a decoder the last. Raises SelectionError: none, or several.
    """
    if wanted is None:
        words = [number for number, token in enumerate(tokens) if not token.special] or [0]
        return words[-1] if kind == "decoder" else words[0]
    pieces: dict[tuple[int, int | None], list[str]] = {}
    for token in tokens:
        pieces.setdefault((token.segment, token.word), []).append(token.text.removeprefix("·"))
    # A word in pieces is named by each of them: "walkthrough" is walk and ·through.
    spelled = []
    for token in tokens:
        text = token.text
        word = text if token.word is None else "".join(pieces[token.segment, token.word])
        # What is read as unknown, as in "quokka→[UNK]", is named as it was typed.
        typed = text.partition("→")[0] or text
        spelled.append((text, text.removeprefix("·"), typed, visible(token.piece), word))
    return find_row(spelled, wanted)
