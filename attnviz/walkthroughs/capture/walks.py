"""One word followed through one head of any model: the numbers from its run, the calculation from `analysis`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from attnviz.attention import Kind, Receipt, Token, positions
from attnviz.capture.observers import Batch
from attnviz.capture.projections import KeepProjections
from attnviz.capture.source import Source
from attnviz.errors import NoAttentionError, SelectionError
from attnviz.text.display import check_text
from attnviz.text.notes import sentence as in_words
from attnviz.walkthroughs.calculation import SCORE_MAPS, Calculation, Score, largest_difference
from attnviz.walkthroughs.capture.inputs import HomeBuilt, Inputs, write_projections
from attnviz.walkthroughs.capture.layers import CROSS, write_layer, write_output
from attnviz.walkthroughs.capture.parts import Parts, parts_of
from attnviz.walkthroughs.capture.queries import chosen_query
from attnviz.walkthroughs.capture.run import SCORE_SEED, Walked, numbers, terms_of
from attnviz.walkthroughs.record import Walkthrough

BOTH = "the layer looks twice: back at what was said, then across at the other sentence, in the grids named cross"


def walk(
    text: str,
    source: Source,
    *,
    layer: int = 0,
    head: int = 0,
    query: str | int | None = None,
    every: bool = False,
    whole_layer: bool = False,
    pair: str | None = None,
    target: str | None = None,
    kind: Kind | None = None,
    truncate: bool = False,
    score: Score = "scaled_dot",
    causal: bool = False,
) -> Walkthrough:
    """Follow one word through one head of a model, from what its query, key and value are made of to its context.

    The model runs once, and what it computed is proved by its receipt. Query, keys and values are then computed again
    from the head's own maps where these are found, and the context from them, all in double precision; how far it is
    from the model's own is the walkthrough's `difference`.

    Args:
        text: the sentence.
        source: the model.
        layer: the layer, counted from 0; negative from the end.
        head: the head, likewise; of a whole layer none is chosen.
        query: the word that looks, or its number, counted likewise; None is the first word.
        every: all words at once, in place of one.
        whole_layer: all heads, and what follows them: the output map, residual sums, norms, the feed-forward network.
            Of a decoder that looks across, both its attentions, whichever kind is asked for.
        pair: a second sentence, for models that read two.
        target: what a model that translates is made to say.
        kind: which attention, where the model has several.
        truncate: cut a text that is too long.
        score: another way to score than the model's own, for home-built models; it has no context to compare with.
        causal: hide what comes after each word, for home-built models; likewise.

    Raises:
        InputError: the text cannot be read by the model.
        SelectionError: a layer, head or query that is not there, several equal words, or another score or mask for a
            model that is not home-built.
        ModelError: the model shows no query, key and value, they are not proved, or its layers are built otherwise
            than a whole layer that can be walked.
    """

    def chosen(tokens: Sequence[Token], _: Kind) -> list[int | None]:
        return [None if every and len(tokens) > 1 else chosen_query(tokens, None if every else query)]

    wish = _Wish(
        layer=layer, head=head, whole_layer=whole_layer, pair=pair, target=target, kind=kind, truncate=truncate,
        score=score, causal=causal,
    )  # fmt: skip
    return _followed(text, source, wish, chosen)[0]


def decoding_steps(
    text: str,
    source: Source,
    *,
    layer: int = 0,
    head: int = 0,
    pair: str | None = None,
    target: str | None = None,
    kind: Kind | None = None,
    truncate: bool = False,
    score: Score = "scaled_dot",
    causal: bool = False,
) -> list[Walkthrough]:
    """What a decoder does step by step as it looks at another sentence: a walkthrough for each word that it says.

    Of attention within one sentence only its first word is followed. The model runs once. The arguments, and what is
    raised, are those of `walk`.
    """

    def all_of_a_decoder(tokens: Sequence[Token], kind: Kind) -> list[int | None]:
        return [*range(len(tokens))] if kind == "cross" else [chosen_query(tokens, None)]

    wish = _Wish(
        layer=layer, head=head, whole_layer=False, pair=pair, target=target, kind=kind, truncate=truncate,
        score=score, causal=causal,
    )  # fmt: skip
    return _followed(text, source, wish, all_of_a_decoder)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """What is to be followed: the arguments of `walk`."""

    layer: int
    head: int
    whole_layer: bool
    pair: str | None
    target: str | None
    kind: Kind | None
    truncate: bool
    score: Score
    causal: bool


def _followed(
    text: str, source: Source, wish: _Wish, choose: Callable[[Sequence[Token], Kind], list[int | None]]
) -> list[Walkthrough]:
    """Run the model once, and follow each of the queries chosen; None stands for all of them at once."""
    check_text(text)
    score = wish.score
    if (score != "scaled_dot" or wish.causal) and not isinstance(source, HomeBuilt):
        raise SelectionError(f"{source.name} has its own score and mask: another is for the home-built models alone")

    def encoded(kind: Kind | None) -> Batch:
        return source.encode([text], [wish.pair], truncate=wish.truncate, kind=kind, targets=[wish.target])

    batch = encoded(wish.kind)
    kind = batch.kind or source.kinds[0]
    causal = wish.causal and kind != "decoder"  # that is causal anyway
    if wish.whole_layer and (score != "scaled_dot" or causal):
        raise SelectionError("a whole layer is walked as the model computed it, with no other score and no other mask")
    if causal and kind == "cross":
        raise SelectionError("cross attention looks at another sentence: none of its words comes after the query")
    rows = choose(batch.sentences[0].tokens, kind)
    keep = KeepProjections(wish.layer)
    receipt = source.stream(batch, [keep])
    (head,) = positions([wish.head], range(keep.layer.query.shape[1]), "head")
    walked = Walked(source=source, batch=batch, keep=keep, kind=kind, head=head, row=None)
    if wish.whole_layer:
        other = None
        if kind != "encoder" and {"decoder", "cross"} <= set(source.kinds):
            other, receipt = _other_attention(walked, encoded, receipt)
        return [_written_whole(walked, other, row, receipt) for row in rows]
    return [_written(replace(walked, row=row), replace(wish, causal=causal), receipt) for row in rows]


def _other_attention(walked: Walked, encoded: Callable[[Kind], Batch], receipt: Receipt) -> tuple[Walked, Receipt]:
    """The other attention of a decoder's layer, from a second run: a run shows one kind. The receipt is of both."""
    kind: Kind = "cross" if walked.kind == "decoder" else "decoder"
    batch, keep = encoded(kind), KeepProjections(walked.layer.number)
    second = walked.source.stream(batch, [keep])
    if second.layers != receipt.layers:
        raise NoAttentionError(
            f"{walked.source.name}: not every layer of its decoder looks both back and across, so none is walked whole"
        )
    larger = tuple(map(max, zip(receipt.differences, second.differences, strict=True)))
    return replace(walked, batch=batch, keep=keep, kind=kind), replace(receipt, differences=larger)


def _written(walked: Walked, wish: _Wish, receipt: Receipt) -> Walkthrough:
    """The walkthrough of one query, or of all, through one head."""
    score, causal = wish.score, wish.causal
    calculation = Calculation()
    own, difference, from_input = None, None, None
    notes = write_projections(calculation, walked, Inputs(calculation, walked))
    context = terms_of(walked, score, causal=causal).attend(calculation, walked)
    if score != "scaled_dot" or causal:
        notes.append(_other_way(score, causal=causal))
    else:
        notes += write_output(calculation, walked)
        own, difference = "context", _difference_of(walked)
        is_made = any(step.result in walked.names for step in calculation.steps)
        from_input = largest_difference(calculation.grids[context].values, walked.context()) if is_made else None
    return calculation.walk(
        _title(walked, f"head {walked.head}"),
        model=walked.source.name,
        text=walked.batch.sentences[0].text,
        kind="decoder" if causal else walked.kind,
        layer=walked.layer.number,
        head=walked.head,
        query=walked.row,
        own=own,
        difference=difference,
        from_input=from_input,
        receipt=receipt,
        notes=(*map(in_words, walked.batch.sentences[0].notes), *notes),
    )


def _title(walked: Walked, where: str) -> str:
    looking = "all words" if walked.row is None else f"the query “{walked.queries[walked.row]}”"
    return f"{walked.source.name}: layer {walked.layer.number}, {where}, {looking}"


def _difference_of(walked: Walked) -> float:
    """How far the context computed from the model's own query, keys and values is from the model's own context."""
    calculation = Calculation()
    walked.give_own(calculation)
    context = terms_of(walked).attend(calculation, walked)
    return largest_difference(calculation.grids[context].values, walked.context())


def _written_whole(walked: Walked, other: Walked | None, row: int | None, receipt: Receipt) -> Walkthrough:
    """The walkthrough of one query, or of all, through a whole layer.

    How far its output is from the model's own is measured where every head starts from its own query, keys and values,
    and where all starts from the layer's input.
    """
    walked = replace(walked, row=row)
    first, cross = walked, None
    if other is not None:
        other = replace(other, row=row)
        first, cross = (walked, other) if walked.kind == "decoder" else (other, walked)
        cross = replace(cross, suffix=CROSS)
    parts: Parts = parts_of(walked.source.name, first.keep, None if cross is None else cross.keep)
    theirs = numbers(walked.rows_of(parts.made))
    differences = []
    for from_input in (False, True):
        calculation = Calculation()
        own, notes = write_layer(calculation, parts, first, cross, from_input=from_input)
        differences.append(largest_difference(calculation.grids[own].values, theirs))
    sentence = walked.batch.sentences[0]
    told = (*sentence.notes, *(() if other is None else other.batch.sentences[0].notes))
    said = [*map(in_words, told), *(() if other is None else (BOTH,))]
    return calculation.walk(
        _title(walked, "all heads"),
        model=walked.source.name,
        text=sentence.text,
        kind=walked.kind,
        layer=walked.layer.number,
        query=row,
        own=own,
        difference=differences[0],
        from_input=differences[1],
        receipt=receipt,
        notes=tuple(dict.fromkeys([*said, *notes])),
    )


def _other_way(score: Score, *, causal: bool) -> str:
    """What was done otherwise than the model does it."""
    changes = []
    if score != "scaled_dot":
        weights = f" with weights drawn from seed {SCORE_SEED}" if SCORE_MAPS[score] else ""
        changes.append(f"scores are {score}{weights}")
    if causal:
        changes.append("what comes after each word is hidden")
    return f"not the model's own way: {', and '.join(changes)}; it has no context of its own to compare with"
