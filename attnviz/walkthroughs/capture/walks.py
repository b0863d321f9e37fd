"""One word followed through one head of any model, or through a whole layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from attnviz.attention import Kind, Note, Receipt, Token, positions
from attnviz.capture.observers import Batch
from attnviz.capture.projections import KeepProjections, Projection
from attnviz.capture.sources import Source
from attnviz.capture.sources.own import ModuleSource
from attnviz.errors import NoAttentionError, SelectionError
from attnviz.text.display import visible
from attnviz.walkthroughs.calculation import SCORE_WEIGHTS, Calculation, find_row, largest_difference
from attnviz.walkthroughs.capture.inputs import LARGEST_PROJECTION, HomeBuilt, Inputs, makers, write_projections
from attnviz.walkthroughs.capture.layers import CROSS, LayerWriter, write_output, write_words
from attnviz.walkthroughs.capture.parts import FeedForwardCalls, LayerParts, parts_of
from attnviz.walkthroughs.capture.run import SCORE_SEED, HeadRun, numbers
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.settings import Score, WalkthroughSelection, WalkthroughText


def follow(
    words: WalkthroughText, source: Source, choice: WalkthroughSelection, *, each_step: bool = False, full: bool = False
) -> list[Walkthrough]:
    """Follow one word through one head of a model, from what its query, key and value are made of to its context.

    The model runs once, proved by its receipt. Query, keys and values are computed again from the head's own
    projections where these are found, and the context from them, in double precision; how far it is from the model's
    own is `difference`. Raises InputError: the text cannot be read by the model; SelectionError: a layer, head or query
    that is not there, several equal words, or another score or mask for a model that is not home-built; ModelError:
    query, key and value are not seen or not proved, or a whole layer is built otherwise.
    """
    sentence = words.text or ""
    score, (layer, chosen_head) = choice.score, choice.place
    if (score != "scaled" or choice.causal) and not isinstance(source, HomeBuilt):
        raise SelectionError(f"{source.name} has its own score and mask: another is for the home-built models alone")

    def encoded(kind: Kind | None) -> Batch:
        return source.encode([sentence], [words.pair], truncate=words.truncate, kind=kind, targets=[words.target])

    batch = encoded(choice.kind)
    kind = batch.kind or source.kinds[0]
    causal = choice.causal and kind != "decoder"  # that is causal anyway
    if choice.whole_layer and (score != "scaled" or causal):
        raise SelectionError("a whole layer is walked as the model computed it, with no other score and no other mask")
    if causal and kind == "cross":
        raise SelectionError("cross attention looks at another sentence: none of its words comes after the query")
    rows = _rows(batch.sentences[0].tokens, choice, "decoder" if causal else kind, each_step=each_step)
    keep = KeepProjections(layer)
    receipt = source.stream(batch, [keep])
    (head,) = positions([chosen_head], range(keep.layer.query.shape[1]), "head")
    run = HeadRun(source=source, batch=batch, keep=keep, kind=kind, head=head, row=None)
    if choice.whole_layer:
        other = None
        if kind != "encoder" and {"decoder", "cross"} <= set(source.kinds):
            other, receipt = _other_attention(run, encoded, receipt)
        return [_write_layer(run, other, row, receipt, full=full) for row in rows]
    return [_write_head(replace(run, row=row), score, receipt, causal=causal) for row in rows]


def _rows(
    tokens: Sequence[Token], choice: WalkthroughSelection, kind: Kind, *, each_step: bool
) -> Sequence[int | None]:
    """The queries that are followed; None stands for all of them at once."""
    one = find_query(tokens, choice.query, kind)
    if each_step and kind == "cross":
        return range(len(tokens))
    return [None if choice.walks_all and len(tokens) > 1 else one]


def _other_attention(run: HeadRun, encoded: Callable[[Kind], Batch], receipt: Receipt) -> tuple[HeadRun, Receipt]:
    """The other attention of a decoder's layer, from a second run: a run shows one kind. The receipt is of both."""
    kind: Kind = "cross" if run.kind == "decoder" else "decoder"
    batch, keep = encoded(kind), KeepProjections(run.layer.number)
    second = run.source.stream(batch, [keep])
    if second.layers != receipt.layers:
        raise NoAttentionError(
            f"{run.source.name}: not every layer of its decoder looks both back and across, so none is walked whole"
        )
    larger = tuple(map(max, zip(receipt.differences, second.differences, strict=True)))
    return replace(run, batch=batch, keep=keep, kind=kind), replace(receipt, differences=larger)


def _write_head(run: HeadRun, score: Score, receipt: Receipt, *, causal: bool) -> Walkthrough:
    calculation = Calculation()
    own, difference, from_input = None, None, None
    notes = write_projections(calculation, run, Inputs(calculation, run))
    context = run.write_attention(calculation, score, causal=causal)
    if score != "scaled" or causal:
        notes.append(_other_way(score, causal=causal))
    else:
        notes += [*write_output(calculation, run), *write_words(calculation, run)]
        alone = Calculation()  # from the model's own query, keys and values
        run.give_own(alone)
        own, difference = "context", largest_difference(alone.grids[run.write_attention(alone)].values, run.context())
        is_made = any(step.result in run.names for step in calculation.steps)
        from_input = largest_difference(calculation.grids[context].values, run.context()) if is_made else None
    of_head: dict[str, Any] = {"head": run.head, "kind": "decoder"} if causal else {"head": run.head}
    notes = [*run.batch.sentences[0].notes, *notes]
    return _finish(
        calculation, run, notes, own=own, difference=difference, from_input=from_input, receipt=receipt, **of_head
    )


def _finish(calculation: Calculation, run: HeadRun, notes: Sequence[Note], **more: Any) -> Walkthrough:
    """The walkthrough of a calculation, with whose it is."""
    notes = [*notes, *_shapes(run, more["receipt"])]
    walk = calculation.finish(_title(run, more.get("head")), query=run.row, notes=notes)
    of_run: dict[str, Any] = {"model": run.source.name, "kind": run.kind, "layer": run.layer.number}
    return replace(walk, text=run.batch.sentences[0].text, **(of_run | more))


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
    return Note.of(f"title_{'layer' if head is None else 'head'}_{'all' if run.row is None else 'query'}", **fields)


def _write_layer(run: HeadRun, other: HeadRun | None, row: int | None, receipt: Receipt, *, full: bool) -> Walkthrough:
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
    for projected in (False, True)[: 1 + is_whole]:  # from each head's own query, keys and values; from the input
        calculation = Calculation()
        writer = LayerWriter(calculation, first, cross, from_input=projected, is_whole=is_whole)
        own = writer.write(parts)
        differences.append(largest_difference(calculation.grids[own].values, theirs))
    sentence = run.batch.sentences[0]
    of_text = (*sentence.notes, *(() if other is None else (*other.batch.sentences[0].notes, Note("looks_twice"))))
    left_out = () if is_whole else (Note.of("layer_left_out", n=f"{n_numbers:,}"),)
    notes = [*dict.fromkeys([*of_text, *writer.notes, *left_out])]
    difference, from_input = (*differences, None)[:2]
    return _finish(calculation, run, notes, own=own, difference=difference, from_input=from_input, receipt=receipt)


def _projections_of(parts: LayerParts, keep: KeepProjections, cross: HeadRun | None) -> list[Projection]:
    kept = [keep] if cross is None else [keep, cross.keep]
    found = [None if made is None else made.projection for each in kept for made in makers(each)]
    for part in parts.parts:
        work = part.work
        found += [work.widen, work.narrow, work.gate] if isinstance(work, FeedForwardCalls) else [work]
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
