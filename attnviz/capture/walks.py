"""One word followed through one head of any model: the numbers from its run, the calculation from `analysis`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from attnviz.analysis.walkthrough import SCORE_MAPS, Calculation, Score, largest_difference
from attnviz.attention import Kind, Receipt, Token, positions
from attnviz.capture.inputs import HomeBuilt, Inputs, write_projections
from attnviz.capture.layers import rest_of, write_output, write_output_map, write_rest
from attnviz.capture.projections import KeepProjections
from attnviz.capture.queries import chosen_query
from attnviz.capture.source import Source
from attnviz.capture.walked import SCORE_SEED, Walked, numbers, terms_of
from attnviz.errors import SelectionError
from attnviz.text.check import check_text
from attnviz.walk import Walkthrough


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
    batch = source.encode([text], [wish.pair], truncate=wish.truncate, kind=wish.kind, targets=[wish.target])
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
    walks = []
    for row in rows:
        walked = Walked(source=source, batch=batch, keep=keep, kind=kind, head=head, row=row)
        walks.append(_written(walked, replace(wish, causal=causal), receipt))
    return walks


def _written(walked: Walked, wish: _Wish, receipt: Receipt) -> Walkthrough:
    """The walkthrough of one query, or of all."""
    score, causal = wish.score, wish.causal
    calculation = Calculation()
    own, difference, from_input = None, None, None
    if wish.whole_layer:
        notes, own, difference, from_input = _write_layer(calculation, walked)
    else:
        notes = write_projections(calculation, walked, Inputs(calculation, walked))
        context = terms_of(walked, score, causal=causal).attend(calculation, walked)
        if score != "scaled_dot" or causal:
            notes.append(_other_way(score, causal=causal))
        else:
            notes += write_output(calculation, walked)
            own, difference = "context", _difference_of(walked)
            is_made = any(step.result in walked.names for step in calculation.steps)
            from_input = largest_difference(calculation.grids[context].values, walked.context()) if is_made else None
    looking = "all words" if walked.row is None else f"the query “{walked.queries[walked.row]}”"
    where = "all heads" if wish.whole_layer else f"head {walked.head}"
    name, sentence, layer = walked.source.name, walked.batch.sentences[0], walked.layer.number
    return calculation.walk(
        f"{name}: layer {layer}, {where}, {looking}",
        model=name,
        text=sentence.text,
        kind="decoder" if causal else walked.kind,
        layer=layer,
        head=None if wish.whole_layer else walked.head,
        query=walked.row,
        own=own,
        difference=difference,
        from_input=from_input,
        receipt=receipt,
        notes=(*sentence.notes, *notes),
    )


def _difference_of(walked: Walked) -> float:
    """How far the context computed from the model's own query, keys and values is from the model's own context."""
    calculation = Calculation()
    walked.give_own(calculation)
    context = terms_of(walked).attend(calculation, walked)
    return largest_difference(calculation.grids[context].values, walked.context())


def _write_layer(calculation: Calculation, walked: Walked) -> tuple[list[str], str, float, float]:
    """Write down all heads and what follows them.

    Returns:
        Notes; the name of the layer's output; how far it is from the model's own where every head starts from its own
        query, keys and values, and where all starts from the layer's input.
    """
    query_map, output, rest, theirs = rest_of(walked)
    differences: list[float] = []
    heads = [replace(walked, head=head, suffix=f"_{head}") for head in range(walked.layer.query.shape[1])]
    notes: list[str] = []
    for from_input, c in ((False, Calculation()), (True, calculation)):
        inputs = Inputs(c, walked)
        contexts = []
        for head in heads:
            if from_input:
                notes += write_projections(c, head, inputs)
            else:
                head.give_own(c)
            contexts.append(terms_of(head).attend(c, head))
        x = inputs.write(numbers(query_map.given), of_query=True) or ""
        write_output_map(c, contexts, output)
        own = write_rest(c, rest, x)
        differences.append(largest_difference(c.grids[own].values, theirs))
    return list(dict.fromkeys(notes)), own, differences[0], differences[1]


def _other_way(score: Score, *, causal: bool) -> str:
    """What was done otherwise than the model does it."""
    changes = []
    if score != "scaled_dot":
        weights = f" with weights drawn from seed {SCORE_SEED}" if SCORE_MAPS[score] else ""
        changes.append(f"scores are {score}{weights}")
    if causal:
        changes.append("what comes after each word is hidden")
    return f"not the model's own way: {', and '.join(changes)}; it has no context of its own to compare with"
