"""The words of walkthroughs: steps and grids, the phrases of every view, titles and notes."""

from __future__ import annotations

from attnviz.text.messages import _, pgettext
from attnviz.text.notes import NOTES as OF_RECORDS
from attnviz.text.notes import Templates
from attnviz.walkthroughs.operations import OPERATIONS, Text

# by the letter behind W and b: what a projection is of, what it does, and what its bias is added to
_PROJECTIONS = {
    "q": (_("Query"), _("from input to query"), _("each query")),
    "k": (_("Key"), _("from input to key"), _("each key")),
    "v": (_("Value"), _("from input to value"), _("each value")),
    "o": (_("Output"), _("that mixes all contexts"), _("the output")),
    "1": (_("Feed-forward"), _("to a longer row"), _("the longer row")),
    "2": (_("Feed-forward"), _("back to the old width"), _("that row")),
    "w": (_("Word"), _("from state to words"), _("each logit")),
    "x": (_("Cell"), _("of what the cell reads"), _("it")),
    "s": (_("Cell state"), _("of the state before"), _("it")),
    "c": (_("Attention"), _("from context and state to one vector"), _("it")),
    "g": (_("Gate"), _("that says how much passes"), _("the gate")),
}


# grids that are given, and steps; a step that has the name of its operation is explained by that
TEXTS: dict[str, Text] = {
    "X": Text(_("Input X"), _("A row of numbers for each token: here this calculation begins.")),
    "x": Text(_("Input of the query x"), _("The row of the query's token.")),
    "N": Text(
        _("Normalised input N"), _("A normalised row for each token: attention reads these.")
    ),
    "n": Text(_("Normalised input of the query n"), _("The normalised row of the query's token.")),
    "E": Text(_("Token embeddings E"), _("A row for each token: which word it is.")),
    "P": Text(_("Positions P"), _("A row for each token: where in the sentence it stands.")),
    "S": Text(_("Segments S"), _("A row for each token: which of two sentences it is in.")),
    "q": Text(_("Query q"), _("What one token looks for, as a row of numbers.")),
    "Q": Text(_("Queries Q"), _("What each token looks for, a row for each.")),
    "K": Text(_("Keys K"), _("What queries are compared with, a row for each token.")),
    "V": Text(_("Values V"), _("What each token gives when it is attended to, a row for each.")),
    "W": Text(_("Score weights W"), _("A projection used to compare a query with a key.")),
    "U": Text(_("Score weights U"), _("A projection used to compare a key with a query.")),
    "v": Text(_("Score vector v"), _("It turns a compared pair into one number, the score.")),
    "B": Text(
        _("Position bias B"), _("A number for each query and key, by how far apart they stand.")
    ),
    "sink": Text(
        _("Sink"), _("A score for looking at nothing: it takes a share of the attention.")
    ),
    "gain": Text(_("Gain"), _("Each number of a normalised row is multiplied by it.")),
    "shift": Text(_("Shift"), _("It is added to each number of a normalised row.")),
    "y": Text(_("Word vector y"), _("The vector of the word generated before.")),
    "Y": Text(_("Word vectors Y"), _("At each step the vector of the word generated before.")),
    "M": Text(_("Other sentence M"), _("A row of numbers for each word that can be looked at.")),
    "weights": Text(
        _("Attention weights"), _("How much each value counts, from 0 to 1; together 1.")
    ),
    "n_heads": Text(
        _("Number of heads n_heads"), _("Each head gets an equal part of the columns.")
    ),
    "angles": Text(
        _("Angles"),
        _("For each position and pair of numbers, in radians: position times a frequency."),
    ),
    "angle": Text(
        _("The query's angles"), _("Of all angles, the row of the query's position."), role="before"
    ),
    "gain_q": Text(
        _("Gain of the queries"), _("Each number of a normalised query is multiplied by it.")
    ),
    "gain_k": Text(
        _("Gain of the keys"), _("Each number of a normalised key is multiplied by it.")
    ),
    "shift_q": Text(
        _("Shift of the queries"), _("It is added to each number of a normalised query.")
    ),
    "shift_k": Text(_("Shift of the keys"), _("It is added to each number of a normalised key.")),
    "head_norm": Text(
        _("Normalised by head"),
        _("Each row of this head is normalised before it is compared."),
        role="before",
    ),
    "rotation_scale": Text(
        _("Rotary scaling"),
        _("Models stretched to long texts make all numbers larger by one factor."),
        role="before",
    ),
    "rotation": Text(
        _("Rotary position"),
        _("Each pair of numbers is turned by the angle of its position."),
        role="before",
    ),
    "split_query": Text(
        _("Queries by head"), _("Each head gets its own columns of the query."), role="before"
    ),
    "split_keys": Text(
        _("Keys by head"), _("Each head gets its own columns of the keys."), role="before"
    ),
    "split_values": Text(
        _("Values by head"), _("Each head gets its own columns of the values."), role="before"
    ),
    "state": Text(
        _("Decoder's state"), _("What the model ends in at the query, behind all heads and layers.")
    ),
    "others": Text(
        _("All other words"),
        _("Log of the sum of their exp(logit): together like one word with this logit."),
    ),
    "cell": Text(
        _("Recurrent cell"), _("From what was concatenated and the state before to the new state.")
    ),
    "attentional": Text(
        _("Attention and state, mixed"), _("Context and state, side by side, become one vector.")
    ),
    "tanh": Text(_("tanh"), _("Each number is bent to between -1 and 1.")),
    "logits": Text(
        _("Fully connected layer"),
        _("The state is projected to words: a number, the logit, for each."),
    ),
    "next_word": Text(
        _("Softmax over words"),
        _("Logits become probabilities: how likely each word is the next one."),
    ),
    "contexts": Text(
        _("Context vectors of the other heads"), _("What the same query gets from each of them.")
    ),
    **{
        f"W{letter}": Text(
            _("{name} weights W{letter}").format(name=name, letter=letter),
            _("The projection {does}.").format(does=does),
        )
        for letter, (name, does, _bias) in _PROJECTIONS.items()
    },
    **{
        f"b{letter}": Text(
            _("{name} bias b{letter}").format(name=name, letter=letter),
            _("Added to {to}.").format(to=to),
        )
        for letter, (name, _does, to) in _PROJECTIONS.items()
    },
    "input": Text(
        _("Input"), _("Token embedding plus position: the layer reads their sum."), role="before"
    ),
    "input_norm": Text(
        _("Normalised input"),
        _("Each row gets mean 0, variance 1, gain and shift: attention reads it."),
        role="before",
    ),
    "input_rms_norm": Text(
        _("Normalised input (RMS)"),
        _("Each row gets mean square 1, then a gain: attention reads it."),
    ),
    "query": Text(_("Query"), _("The input is projected to a query."), role="before"),
    "keys": Text(_("Keys"), _("Each input is projected to a key."), role="before"),
    "values": Text(_("Values"), _("Each input is projected to a value."), role="before"),
    "scores": Text(
        _("Attention scores"),
        _("The query is compared with each key: a better fit, a larger score."),
        short=pgettext("column", "score"),
        role="by key",
    ),
    "scaled": Text(
        _("Scaled scores"),
        _("Long vectors give large scores; made smaller, they keep the softmax soft."),
        short=_("scaled"),
        role="by key",
    ),
    "bias": Text(
        _("Position bias"),
        _("Each score gets a number for how far apart query and key stand."),
        short=_("with bias"),
        role="by key",
    ),
    "row": Text(
        _("The query's row"), _("Of the input, the row of the query's token."), role="before"
    ),
    "softcap": Text(
        _("Soft cap"),
        _("Scores are bent so that none passes the cap."),
        short=_("capped"),
        role="by key",
    ),
    "mask": Text(
        _("Mask"),
        _("Where the query may not look the score is minus infinity: the softmax makes it 0."),
        short=pgettext("column", "masked"),
        role="by key",
    ),
    "softmax": Text(
        _("Softmax: the attention distribution"),
        _("The scores become weights from 0 to 1 that sum to 1."),
        short=_("weight"),
        role="by key",
    ),
    "alignment": Text(
        _("Alignment vectors"),
        _("Each value times its weight: what each key contributes."),
        short=_("alignment"),
        role="by key",
    ),
    "context": Text(
        _("Context vector"), _("The sum of the alignment vectors: the head's result for the query.")
    ),
    "concatenated": Text(
        _("Concatenation"), _("The vectors are put side by side into one longer row.")
    ),
    "output": Text(_("Output"), _("The output weights mix what the heads found into one vector.")),
    "residual": Text(
        _("Residual connection"), _("The input is added again, so that nothing of it is lost.")
    ),
    "feed_forward_1": Text(
        _("Feed-forward, first projection"), _("Each token by itself is projected to a longer row.")
    ),
    "feed_forward_gate": Text(
        _("Feed-forward, gate"), _("A second row as long says how much of each number passes.")
    ),
    "gated": Text(_("Gate opened"), _("Each number of the longer row times its gate.")),
    "feed_forward_2": Text(
        _("Feed-forward, second projection"),
        _("The longer row is projected back to the old width."),
    ),
    "hidden": Text(
        _("Feed-forward, longer row"), _("What the first projection makes of each token.")
    ),
    "gate": Text(
        _("Gate of the feed-forward network"),
        _("How much of each number of the longer row passes."),
    ),
    "narrowed": Text(
        _("Feed-forward, back to the old width"),
        _("What the second projection makes of the longer row."),
    ),
    "residual_2": Text(
        _("Residual connection, feed-forward"), _("What went into it is added again.")
    ),
    "residual_cross": Text(
        _("Residual connection, cross attention"), _("What cross attention read is added.")
    ),
    "residual_out": Text(
        _("Last residual connection"), _("What the last part read is added: the layer's output.")
    ),
    "norm": Text(
        _("Layer normalisation"), _("Each row gets mean 0 and variance 1, then a gain and a shift.")
    ),
    "rms_norm": Text(
        _("Root mean square normalisation"), _("Each row gets mean square 1, then a gain.")
    ),
    "relu": Text(_("ReLU"), _("What is negative becomes 0.")),
    "gelu": Text(_("GELU"), _("What is negative is bent towards 0, smoothly.")),
    "gelu_tanh": Text(
        _("GELU, by tanh"), _("The same as GELU, with tanh in place of the normal distribution.")
    ),
    "silu": Text(_("SiLU"), _("What is negative is bent towards 0 by the logistic function.")),
    "norm_out": Text(
        _("Last layer normalisation"),
        _("Again mean 0, variance 1, gain, shift: the layer's output."),
    ),
    "rms_norm_out": Text(
        _("Last normalisation (RMS)"), _("Again mean square 1, and a gain: the layer's output.")
    ),
}
"""Grids that are given, and steps; a step that has the name of its operation is explained by that."""


def words_of(name: str) -> Text | None:
    """Return the words of a step or a grid: its own, or those of the operation of this name."""
    return TEXTS.get(name) or (OPERATIONS[name].text if name in OPERATIONS else None)


def _of_role(role: str) -> tuple[str, ...]:
    return tuple(
        name
        for name in (*OPERATIONS, *TEXTS)
        if (text := words_of(name)) is not None and text.role == role
    )


BY_KEY = _of_role("by key")  # steps that make a number or a vector for each key of a query
BEFORE = _of_role("before")  # steps that make what attention works on

PHRASES: Templates = {
    "finds": _("“{query}” looks most at {key}: {weight}"),
    "finds one": _("“{query}” can look at {key} only: {weight}"),
    "itself": _("itself"),
    "finds all": _("“{query}” looks at all keys alike: {weight} each"),
    "layer": _("layer {n}"),
    "head": _("head {n}"),
    "counted": _("{where} (counted from 0)"),
    "query is": _("query: {name}"),
    "row": _("row {n}"),
    "number": _("number {n}"),
    "key": _("key"),
    "and then": _("and then? the likeliest next words"),
    "probability": _("probability"),
    "other words": _("all other words together {total}"),
    "value": pgettext("phrase", "value"),
    "context sum": _("context = sum of the alignment vectors"),
    "lengths": _("vectors have {n} numbers: … stands for those left out"),
    "masked": pgettext("phrase", "masked"),
    "masked keys": _("what is masked gets a score of -∞: its weight is 0"),
    "sum": _("sum"),
    "other keys": _("{n} more keys, with smaller weights; together {total}"),
    "more rows": _("... {n} more rows"),
    "by key": _("Key by key:"),
    "rest": _("{rest} of the attention is for looking at nothing"),
    "signed": _("numbers below 0, and above"),
    "weights": _("weights, from 0 to 1"),
    "colours": _("red is above 0 and blue below, in each matrix by itself"),
    "lit": _("; the framed row has the largest weight; lines are as thick as the weight"),
    "left out": _("; … stands for numbers left out: all are in -o FILE.md or FILE.json"),
    "left out, blanks": _("; … stands for numbers left out: all but the blanks are in -o FILE.md"),
    "products": _("matrices side by side, as in q K^T, are multiplied"),
    "cells": _("; ⊙ multiplies cell by cell"),
    "no korean": _("Korean needs a terminal that can show it: this is English"),
    "same": _("recomputed {own} is exactly the model's own"),
    "near": _("recomputed {own} is {difference} from the model's own"),
    "from input": _(" ({difference} from the input on)"),
    "more": _("more: --full (every step), {options}-o FILE.html, --interactive"),
    "model": _("no number of this model's own to compare with"),
    "hand": _("no model to compare with"),
    "given": _("given: no step makes it"),
    "to fill in": _("numbers of this step are left for you to work out"),
    "more middle": _("{n} numbers in each row: those in the middle are left out"),
    "of head": _(", head {number}"),
    "across": _(", cross attention"),
}


NOTES: Templates = {
    **OF_RECORDS,
    "title_head_query": _("{model}, head {layer}.{head}: the query “{query}”"),
    "title_head_all": _("{model}, head {layer}.{head}: all words"),
    "title_layer_query": _("{model}, layer {layer}, all heads: the query “{query}”"),
    "title_layer_all": _("{model}, layer {layer}, all heads: all words"),
    "title_seq2seq": _("Attention by hand: a decoder's state and four states of the encoder"),
    "title_seq2seq_word": _("From context to word by hand: the context beside the decoder's state"),
    "title_self_attention": _(
        "Self-attention by hand: {n} tokens, {d_model} wide, to queries, keys and values {d_k} wide"
    ),
    "title_exercise": _("Exercise {seed}: one query and {n} keys"),
    "title_mixed": _("Values mixed with given weights"),
    "title_typed": _("Attention, from numbers typed by hand"),
    "keys_are_values": _("the encoder's states are keys and values alike"),
    "goes_to_decoder": _("what was concatenated goes to the decoder"),
    "one_batch": _("a batch of one sentence: weights of shape {weights}, output of shape {output}"),
    "drawn_from_seed": _("small whole numbers, drawn from seed {seed}"),
    "weights_given": _("weights are given: no query is compared with a key"),
    "no_values": _("no values are given: the calculation ends at the weights"),
    "word_before": _("{y}: vector of the word before; the cell reads [{y}; context]"),
    "next_chosen": _("the likeliest next word is “{word}”: the next step reads it"),
    "next_given": _(
        "the likeliest next word is “{word}”, but the next step reads “{given}”, which is given"
    ),
    "rotated": _(
        "q and k are turned by their positions before they are compared: step rotation shows it"
    ),
    "taken_as_given": _(
        "{names} is given: no single projection makes it (a norm or a scaling may follow)"
    ),
    "all_taken_as_given": _(
        "{names} and {last} are given: no single projection makes them (a norm or a scaling may "
        "follow)"
    ),
    "looks_twice": _(
        "the layer looks twice: back at what was generated, then across at the other sentence "
        "(grids named cross)"
    ),
    "layer_left_out": _(
        "the projections, {n} numbers, are left out, and what they made is given: the full view "
        "has them"
    ),
    "model_shapes": _(
        "the model: {layers} layers of {heads} heads, each {d} wide, side by side; "
        "last_hidden_state {shape}"
    ),
    "output_left_out": _("the output projection, {shape} numbers, is left out"),
    "other_score": _(
        "not the model's own way: scores are {score}; it has no context of its own to compare with"
    ),
    "other_score_drawn": _(
        "not the model's own way: scores are {score} with weights drawn from seed {seed}; it has "
        "no context of its own to compare with"
    ),
    "other_score_causal": _(
        "not the model's own way: scores are {score}, and what comes after each word is hidden; it "
        "has no context of its own to compare with"
    ),
    "other_score_drawn_causal": _(
        "not the model's own way: scores are {score} with weights drawn from seed {seed}, and what "
        "comes after each word is hidden; it has no context of its own to compare with"
    ),
    "made_causal": _(
        "not the model's own way: what comes after each word is hidden; it has no context of its "
        "own to compare with"
    ),
}
"""Titles and notes by their codes; those of records are among them."""
