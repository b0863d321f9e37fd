"""The words of walkthroughs: titles and explanations of steps and grids, and the titles and notes of calculations."""

from __future__ import annotations

from typing import NamedTuple

from attnviz.text.messages import Phrase, _, pgettext
from attnviz.text.notes import NOTES as OF_RECORDS
from attnviz.text.notes import Templates


class Text(NamedTuple):
    """The words for a step or a grid."""

    title: Phrase
    sentence: Phrase
    column: Phrase | None = None  # the title of the column with its numbers


BY_KEY = ("scores", "scaled", "softcap", "bias", "mask", "softmax", "alignment")
"""Steps that compute a number or a vector for each key of a query."""

BEFORE = (
    *("input", "input_norm", "row", "query", "keys", "values"),
    *("split_query", "split_keys", "split_values"),
)
"""Steps that compute the input of attention."""

WEIGHTS = Text(_("Weights {name}"), _("Weights of the projection in the next step."))
BIAS = Text(_("Bias {name}"), _("A bias, added to each row."))

TEXTS: dict[str, Text] = {
    # given grids
    "X": Text(_("Input X"), _("One vector per token; the calculation starts here.")),
    "x": Text(_("Input of the query x"), _("The vector of the query's token.")),
    "E": Text(_("Token embeddings E"), _("One row per token: which word it is.")),
    "P": Text(_("Positions P"), _("One row per token: its position in the sentence.")),
    "S": Text(_("Segments S"), _("One row per token: which of two sentences it belongs to.")),
    "q": Text(_("Query q"), _("What one token is looking for, as a vector.")),
    "Q": Text(_("Queries Q"), _("What each token is looking for, one row per token.")),
    "K": Text(_("Keys K"), _("One row per token; queries are compared with these.")),
    "V": Text(_("Values V"), _("One row per token: what it contributes when attended to.")),
    "W": Text(_("Score weights W"), _("Weights applied to the query in the score.")),
    "U": Text(_("Score weights U"), _("Weights applied to the keys in the score.")),
    "v": Text(_("Score vector v"), _("Turns each compared pair into one number, the score.")),
    "B": Text(
        _("Position bias B"), _("One number per query and key, depending on their distance.")
    ),
    "sink": Text(_("Sink"), _("An extra score that absorbs part of the attention.")),
    "gain": Text(_("Gain"), _("Multiplies each number of a normalized row.")),
    "shift": Text(_("Shift"), _("Is added to each number of a normalized row.")),
    "y": Text(_("Word vector y"), _("The vector of the previously generated word.")),
    "Y": Text(_("Word vectors Y"), _("At each step, the vector of the previously generated word.")),
    "M": Text(_("Other sentence M"), _("One vector per word of the sentence attended to.")),
    "weights": Text(
        _("Attention weights"), _("How much each value counts: from 0 to 1, summing to 1.")
    ),
    "n_heads": Text(
        _("Number of heads n_heads"), _("Each head gets an equal share of the columns.")
    ),
    "state": Text(_("Decoder's state"), _("The model's final vector at the query's position.")),
    "others": Text(
        _("All other words"),
        _("The log-sum-exp of their logits: together they count like one word with this logit."),
    ),
    "contexts": Text(
        _("Context vectors of the other heads"), _("The results of the other heads for the query.")
    ),
    "hidden": Text(_("Hidden layer"), _("The result of the first feed-forward projection.")),
    "narrowed": Text(_("Feed-forward result"), _("The result of the second projection.")),
    # steps before attention
    "input": Text(_("Input"), _("Token embedding plus position.")),
    "input_norm": Text(_("Normalized input"), _("Layer normalization, before attention.")),
    "row": Text(_("The query's row"), _("The row of the query's token.")),
    "query": Text(_("Query"), _("The input is projected to the query.")),
    "keys": Text(_("Keys"), _("The input is projected to keys.")),
    "values": Text(_("Values"), _("The input is projected to values.")),
    "split_query": Text(_("Queries per head"), _("Each head gets its own columns of the queries.")),
    "split_keys": Text(_("Keys per head"), _("Each head gets its own columns of the keys.")),
    "split_values": Text(_("Values per head"), _("Each head gets its own columns of the values.")),
    # attention
    "scores": Text(
        _("Attention scores"),
        _("The query is compared with each key: the better the match, the higher the score."),
        pgettext("column", "score"),
    ),
    "scaled": Text(
        _("Scaled scores"),
        _("Scaling keeps the scores of long vectors small, so that softmax stays soft."),
        _("scaled"),
    ),
    "softcap": Text(_("Soft cap"), _("No score can exceed the cap."), _("capped")),
    "bias": Text(
        _("Position bias"), _("A bias for the distance of query and key is added."), _("with bias")
    ),
    "mask": Text(
        _("Mask"),
        _("A score that the query may not see becomes minus infinity: its weight will be 0."),
        pgettext("column", "masked"),
    ),
    "softmax": Text(
        _("Softmax: the attention distribution"),
        _("Softmax turns the scores into weights from 0 to 1 that sum to 1."),
        _("weight"),
    ),
    "alignment": Text(
        _("Alignment vectors"),
        _("Each value times its weight: what each key contributes."),
        _("alignment"),
    ),
    "context": Text(
        _("Context vector"), _("The weighted sum of the values: the head's result for the query.")
    ),
    # after attention
    "concatenated": Text(_("Concatenation"), _("The vectors are joined into one longer row.")),
    "output": Text(_("Output"), _("The output weights mix the results of all heads.")),
    "cell": Text(
        _("Recurrent cell"), _("Computes the new state from its input and the old state.")
    ),
    "attentional": Text(
        _("Attention and state, mixed"), _("Context and state are projected to one vector.")
    ),
    "logits": Text(_("Fully connected layer"), _("Projects the state to one logit per word.")),
    "next_word": Text(
        _("Softmax over words"), _("Softmax turns logits into the probability of each next word.")
    ),
    "residual": Text(_("Residual connection"), _("The input is added back.")),
    "residual_cross": Text(
        _("Residual connection, cross attention"), _("The input of cross attention is added back.")
    ),
    "residual_2": Text(
        _("Residual connection, feed-forward"), _("The input of the network is added back.")
    ),
    "feed_forward_1": Text(
        _("Feed-forward, first projection"), _("Each token is projected to a longer row.")
    ),
    "feed_forward_2": Text(
        _("Feed-forward, second projection"), _("The longer row is projected back to d_model.")
    ),
    "norm": Text(
        _("Layer normalization"), _("Each row gets mean 0 and variance 1, then gain and shift.")
    ),
    "norm_out": Text(_("Last layer normalization"), _("Its result is the layer's output.")),
    "relu": Text(_("ReLU"), _("Negative numbers become 0.")),
    "tanh": Text(_("tanh"), _("Each number is squeezed to between -1 and 1.")),
}


NOTES: Templates = {
    **OF_RECORDS,
    "title_head_query": _("{model}, head {layer}.{head}: the query “{query}”"),
    "title_head_all": _("{model}, head {layer}.{head}: all words"),
    "title_layer_query": _("{model}, layer {layer}, all heads: the query “{query}”"),
    "title_layer_all": _("{model}, layer {layer}, all heads: all words"),
    "title_seq2seq": _("Attention by hand: a decoder state and four encoder states"),
    "title_seq2seq_word": _("From context to word by hand: the context next to the decoder state"),
    "title_self_attention": _("Self-attention by hand: {n} tokens, d_model {d_model}, d_k {d_k}"),
    "title_exercise": _("Exercise {seed}: one query and {n} keys"),
    "title_mixed": _("Values mixed with given weights"),
    "title_typed": _("Attention computed from your own numbers"),
    "keys_are_values": _("The encoder states serve as both keys and values"),
    "goes_to_decoder": _("The concatenated vector goes to the decoder"),
    "one_batch": _("As a batch of one sentence: weights {weights}, output {output}"),
    "weights_given": _("The weights are given: no query is compared with a key"),
    "no_values": _("No values are given: the calculation ends at the weights"),
    "word_before": _("{y} is the vector of the previous word; the cell reads [{y}; context]"),
    "next_chosen": _("The most likely next word is “{word}”; the next step reads it"),
    "next_given": _(
        "The most likely next word is “{word}”; the next step reads the given “{given}”"
    ),
    "taken_as_given": _(
        "Taken from the model as they enter the scores: {names} (after rotary positions, a norm or "
        "another change)"
    ),
    "looks_twice": _(
        "The layer attends twice: to the words generated so far, then to the other sentence (grids "
        "named cross)"
    ),
    "ends_at_output": _(
        "Ends at the output projection: what follows in a layer is shown of home-built models alone"
    ),
    "layer_left_out": _(
        "The projections ({n} numbers) are left out and their results taken as given; --full "
        "keeps them"
    ),
    "model_shapes": _(
        "{tokens}: last_hidden_state {shape}; {layers} layers of {heads} heads, each {d} wide"
    ),
    "output_left_out": _("The output projection ({shape} numbers) is left out"),
    "other_score": _(
        "The scores are computed as {score}, not as in the model: there is no context of its own "
        "to compare with"
    ),
    "score_drawn": _("The weights of the score are random, drawn from seed {seed}"),
}
"""Titles and notes by their codes, including those of attention records."""
