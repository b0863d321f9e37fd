"""One word followed through one head of any model: the numbers from its run, the calculation from `analysis`."""

from __future__ import annotations

from dataclasses import replace

from attnviz.analysis.walkthrough import SCORE_MAPS, Calculation, Score, largest_difference
from attnviz.attention import Kind, positions
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
    check_text(text)
    if (score != "scaled_dot" or causal) and not isinstance(source, HomeBuilt):
        raise SelectionError(f"{source.name} has its own score and mask: another is for the home-built models alone")
    batch = source.encode([text], [pair], truncate=truncate, kind=kind, targets=[target])
    kind = batch.kind or source.kinds[0]
    causal = causal and kind != "decoder"  # that is causal anyway
    other = score != "scaled_dot" or causal
    if other and whole_layer:
        raise SelectionError("a whole layer is walked as the model computed it, with no other score and no other mask")
    if causal and kind == "cross":
        raise SelectionError("cross attention looks at another sentence: none of its words comes after the query")
    tokens = batch.sentences[0].tokens
    row = None if every and len(tokens) > 1 else chosen_query(tokens, None if every else query)
    keep = KeepProjections(layer)
    receipt = source.stream(batch, [keep])
    seen = keep.layer
    (head,) = positions([head], range(seen.query.shape[1]), "head")
    walked = Walked(source=source, batch=batch, keep=keep, kind=kind, head=head, row=row)
    calculation = Calculation()
    own, difference, from_input = None, None, None
    if whole_layer:
        notes, own, difference, from_input = _write_layer(calculation, walked)
    else:
        notes = write_projections(calculation, walked, Inputs(calculation, walked))
        terms = terms_of(walked, score, causal=causal)
        context = terms.attend(calculation, walked)
        if other:
            notes.append(_other_way(score, causal=causal))
        else:
            notes += write_output(calculation, walked)
            own, difference = "context", _difference_of(walked)
            is_made = any(step.result in walked.names for step in calculation.steps)
            from_input = largest_difference(calculation.grids[context].values, walked.context()) if is_made else None
    looking = "all words" if row is None else f"the query “{walked.queries[row]}”"
    where = "all heads" if whole_layer else f"head {head}"
    return calculation.walk(
        f"{source.name}: layer {seen.number}, {where}, {looking}",
        model=source.name,
        text=batch.sentences[0].text,
        kind="decoder" if causal else kind,
        layer=seen.number,
        head=None if whole_layer else head,
        query=row,
        own=own,
        difference=difference,
        from_input=from_input,
        receipt=receipt,
        notes=(*batch.sentences[0].notes, *notes),
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
