"""The words of walkthroughs: titles and explanations of steps and grids, and the titles and notes of calculations."""

from __future__ import annotations

from typing import NamedTuple

from attnviz.text.messages import N_, NC_, Message
from attnviz.text.notes import NOTES as OF_RECORDS
from attnviz.text.notes import Templates


class Text(NamedTuple):
    """The words for a step or a grid."""

    title: Message
    sentence: Message
    column: Message | None = None  # the title of the column with its numbers


BY_KEY = ("scores", "scaled", "softcap", "bias", "mask", "softmax", "alignment")
"""Steps that compute a number or a vector for each key of a query."""

BEFORE = (
    *("input", "input_norm", "row", "query", "keys", "values"),
    *("split_query", "split_keys", "split_values"),
)
"""Steps that compute the input of attention."""

WEIGHTS = Text(N_("Weights {name}"), N_("Weights of the projection in the next step."))
BIAS = Text(N_("Bias {name}"), N_("A bias, added to each row."))

TEXTS: dict[str, Text] = {
    # given grids
    "X": Text(N_("Input X"), N_("One vector per token; the calculation starts here.")),
    "x": Text(N_("Input of the query x"), N_("The vector of the query's token.")),
    "E": Text(N_("Token embeddings E"), N_("One row per token: which word it is.")),
    "P": Text(N_("Positions P"), N_("One row per token: its position in the sentence.")),
    "S": Text(N_("Segments S"), N_("One row per token: which of two sentences it belongs to.")),
    "q": Text(N_("Query q"), N_("What one token is looking for, as a vector.")),
    "Q": Text(N_("Queries Q"), N_("What each token is looking for, one row per token.")),
    "K": Text(N_("Keys K"), N_("One row per token; queries are compared with these.")),
    "V": Text(N_("Values V"), N_("One row per token: what it contributes when attended to.")),
    "W": Text(N_("Score weights W"), N_("Weights applied to the query in the score.")),
    "U": Text(N_("Score weights U"), N_("Weights applied to the keys in the score.")),
    "v": Text(N_("Score vector v"), N_("Turns each compared pair into one number, the score.")),
    "B": Text(
        N_("Position bias B"), N_("One number per query and key, depending on their distance.")
    ),
    "sink": Text(N_("Sink"), N_("An extra score that absorbs part of the attention.")),
    "gain": Text(N_("Gain"), N_("Multiplies each number of a normalized row.")),
    "shift": Text(N_("Shift"), N_("Is added to each number of a normalized row.")),
    "y": Text(N_("Word vector y"), N_("The vector of the previously generated word.")),
    "Y": Text(
        N_("Word vectors Y"), N_("At each step, the vector of the previously generated word.")
    ),
    "M": Text(N_("Other sentence M"), N_("One vector per word of the sentence attended to.")),
    "weights": Text(
        N_("Attention weights"), N_("How much each value counts: from 0 to 1, summing to 1.")
    ),
    "n_heads": Text(
        N_("Number of heads n_heads"), N_("Each head gets an equal share of the columns.")
    ),
    "state": Text(N_("Decoder's state"), N_("The model's final vector at the query's position.")),
    "others": Text(
        N_("All other words"),
        N_("The log-sum-exp of their logits: together they count like one word with this logit."),
    ),
    "contexts": Text(
        N_("Context vectors of the other heads"),
        N_("The results of the other heads for the query."),
    ),
    "hidden": Text(N_("Hidden layer"), N_("The result of the first feed-forward projection.")),
    "narrowed": Text(N_("Feed-forward result"), N_("The result of the second projection.")),
    # steps before attention
    "input": Text(N_("Input"), N_("Token embedding plus position.")),
    "input_norm": Text(N_("Normalized input"), N_("Layer normalization, before attention.")),
    "row": Text(N_("The query's row"), N_("The row of the query's token.")),
    "query": Text(N_("Query"), N_("The input is projected to the query.")),
    "keys": Text(N_("Keys"), N_("The input is projected to keys.")),
    "values": Text(N_("Values"), N_("The input is projected to values.")),
    "split_query": Text(
        N_("Queries per head"), N_("Each head gets its own columns of the queries.")
    ),
    "split_keys": Text(N_("Keys per head"), N_("Each head gets its own columns of the keys.")),
    "split_values": Text(
        N_("Values per head"), N_("Each head gets its own columns of the values.")
    ),
    # attention
    "scores": Text(
        N_("Attention scores"),
        N_("The query is compared with each key: the better the match, the higher the score."),
        NC_("column", "score"),
    ),
    "scaled": Text(
        N_("Scaled scores"),
        N_("Scaling keeps the scores of long vectors small, so that softmax stays soft."),
        N_("scaled"),
    ),
    "softcap": Text(N_("Soft cap"), N_("No score can exceed the cap."), N_("capped")),
    "bias": Text(
        N_("Position bias"),
        N_("A bias for the distance of query and key is added."),
        N_("with bias"),
    ),
    "mask": Text(
        N_("Mask"),
        N_("A score that the query may not see becomes minus infinity: its weight will be 0."),
        NC_("column", "masked"),
    ),
    "softmax": Text(
        N_("Softmax: the attention distribution"),
        N_("Softmax turns the scores into weights from 0 to 1 that sum to 1."),
        N_("weight"),
    ),
    "alignment": Text(
        N_("Alignment vectors"),
        N_("Each value times its weight: what each key contributes."),
        N_("alignment"),
    ),
    "context": Text(
        N_("Context vector"), N_("The weighted sum of the values: the head's result for the query.")
    ),
    # after attention
    "concatenated": Text(N_("Concatenation"), N_("The vectors are joined into one longer row.")),
    "output": Text(N_("Output"), N_("The output weights mix the results of all heads.")),
    "cell": Text(
        N_("Recurrent cell"), N_("Computes the new state from its input and the old state.")
    ),
    "attentional": Text(
        N_("Attention and state, mixed"), N_("Context and state are projected to one vector.")
    ),
    "logits": Text(N_("Fully connected layer"), N_("Projects the state to one logit per word.")),
    "next_word": Text(
        N_("Softmax over words"), N_("Softmax turns logits into the probability of each next word.")
    ),
    "residual": Text(N_("Residual connection"), N_("The input is added back.")),
    "residual_cross": Text(
        N_("Residual connection, cross attention"),
        N_("The input of cross attention is added back."),
    ),
    "residual_2": Text(
        N_("Residual connection, feed-forward"), N_("The input of the network is added back.")
    ),
    "feed_forward_1": Text(
        N_("Feed-forward, first projection"), N_("Each token is projected to a longer row.")
    ),
    "feed_forward_2": Text(
        N_("Feed-forward, second projection"), N_("The longer row is projected back to d_model.")
    ),
    "norm": Text(
        N_("Layer normalization"), N_("Each row gets mean 0 and variance 1, then gain and shift.")
    ),
    "norm_out": Text(N_("Last layer normalization"), N_("Its result is the layer's output.")),
    "relu": Text(N_("ReLU"), N_("Negative numbers become 0.")),
    "tanh": Text(N_("tanh"), N_("Each number is squeezed to between -1 and 1.")),
}


NOTES: Templates = {
    **OF_RECORDS,
    "title_head_query": N_("{model}, head {layer}.{head}: the query “{query}”"),
    "title_head_all": N_("{model}, head {layer}.{head}: all words"),
    "title_layer_query": N_("{model}, layer {layer}, all heads: the query “{query}”"),
    "title_layer_all": N_("{model}, layer {layer}, all heads: all words"),
    "title_seq2seq": N_("Attention by hand: a decoder state and four encoder states"),
    "title_seq2seq_word": N_("From context to word by hand: the context next to the decoder state"),
    "title_self_attention": N_("Self-attention by hand: {n} tokens, d_model {d_model}, d_k {d_k}"),
    "title_exercise": N_("Exercise {seed}: one query and {n} keys"),
    "title_mixed": N_("Values mixed with given weights"),
    "title_typed": N_("Attention computed from your own numbers"),
    "keys_are_values": N_("The encoder states serve as both keys and values"),
    "goes_to_decoder": N_("The concatenated vector goes to the decoder"),
    "one_batch": N_("As a batch of one sentence: weights {weights}, output {output}"),
    "weights_given": N_("The weights are given: no query is compared with a key"),
    "no_values": N_("No values are given: the calculation ends at the weights"),
    "word_before": N_("{y} is the vector of the previous word; the cell reads [{y}; context]"),
    "next_chosen": N_("The most likely next word is “{word}”; the next step reads it"),
    "next_given": N_(
        "The most likely next word is “{word}”; the next step reads the given “{given}”"
    ),
    "taken_as_given": N_(
        "Taken from the model as they enter the scores: {names} (after rotary positions, a norm or "
        "another change)"
    ),
    "looks_twice": N_(
        "The layer attends twice: to the words generated so far, then to the other sentence (grids "
        "named cross)"
    ),
    "ends_at_output": N_(
        "Ends at the output projection: what follows in a layer is shown of home-built models alone"
    ),
    "layer_left_out": N_(
        "The projections ({n} numbers) are left out and their results taken as given; --full "
        "keeps them"
    ),
    "model_shapes": N_(
        "{tokens}: last_hidden_state {shape}; {layers} x {heads} heads (layers x heads), each {d} wide"
    ),
    "output_left_out": N_("The output projection ({shape} numbers) is left out"),
    "other_score": N_(
        "The scores are computed as {score}, not as in the model: there is no context of its own "
        "to compare with"
    ),
    "score_drawn": N_("The weights of the score are random, drawn from seed {seed}"),
}
"""Titles and notes by their codes, including those of attention records."""
