"""The arithmetic of a walkthrough: every operation longer than one line, as a plain function of grids of numbers.

Rows are queries, keys or tokens; all numbers are in double precision. In comments on shapes, Q, K and T are
the numbers of queries, keys and tokens, d is the width of a head and A the hidden width of ``additive``.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from attnviz.errors import RecordError

Numbers = Float64[np.ndarray, "row column"]


# v . tanh(W q + U k)
def additive(
    queries: Float64[np.ndarray, "query d_q"],
    keys: Float64[np.ndarray, "key d_k"],
    w: Float64[np.ndarray, "d_a d_q"],
    u: Float64[np.ndarray, "d_a d_k"],
    v: Float64[np.ndarray, "1 d_a"],
) -> Float64[np.ndarray, "query key"]:
    """Return the scores of a small network on the sum of projected query and key: [query, key].

    Source: Bahdanau et al. 2015, appendix A.1.2.
    """
    projected_queries, projected_keys = queries @ w.T, keys @ u.T  # (Q, A), (K, A)
    hidden = np.tanh(projected_queries[:, None] + projected_keys[None])  # (Q, K, A)
    return np.asarray(hidden @ v[0])  # (Q, K, A) x (A) -> (Q, K)


# exp(s_i) / sum_j exp(s_j)
def softmax(
    scores: Float64[np.ndarray, "query key"], sink: Float64[np.ndarray, "1 1"] | None = None
) -> Float64[np.ndarray, "query key"]:
    """Return each row as a distribution; the weight of a `sink`, one more score in each row, is left out.

    Raises RecordError: all keys of a row are masked.
    """
    n_queries, n_keys = scores.shape
    if sink is not None:
        scores = np.hstack([scores, np.broadcast_to(sink, (n_queries, 1))])  # (Q, K + 1)
    largest = scores.max(axis=1, keepdims=True)
    if np.isneginf(largest).any():
        row = int(np.argwhere(np.isneginf(largest))[0, 0])
        raise RecordError(f"all keys are masked: the query of row {row} has nothing to look at")
    powers = np.exp(scores - largest)  # the largest power is 1, so that none overflows
    return np.asarray(powers[:, :n_keys] / powers.sum(axis=1, keepdims=True))


# y = (x - mean[x]) / sqrt(Var[x] + epsilon) * gain + shift, as in the paper
def norm(
    x: Numbers,
    gain: Float64[np.ndarray, "1 column"],
    shift: Float64[np.ndarray, "1 column"],
    epsilon: float,
) -> Numbers:
    """Return each row scaled to mean 0 and variance 1, times the gain, plus the shift: Ba et al. 2016, equation 4."""
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred**2).mean(axis=1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + epsilon) * gain + shift)


# r = S(x W_r + s U_r), z = S(x W_z + s U_z), n = tanh(x W_n + r * (s U_n)), s' = (1 - z) * n + z * s
def gru(*operands: np.ndarray) -> Float64[np.ndarray, "row d"]:
    """Return the new state [row, d] of a gated recurrent unit; the operands are those of `gates`.

    Source: Cho et al. 2014, "Learning Phrase Representations", section 2.3, in the form of PyTorch's GRUCell.
    """
    share, candidate = gates(*operands)
    return np.asarray((1 - share) * candidate + share * operands[1])


def gates(*operands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the share of the old state that a gated recurrent unit keeps, and the candidate state, each [row, d].

    The operands are the input [row, d_in], the old state [row, d], the weights [d_in, 3 d] and bias [1, 3 d] of the
    input, and the weights [d, 3 d] and bias [1, 3 d] of the state.
    """
    x, state, w_x, b_x, w_s, b_s = operands
    r_x, z_x, n_x = np.split(x @ w_x + b_x, 3, axis=1)
    r_s, z_s, n_s = np.split(state @ w_s + b_s, 3, axis=1)
    reset = (1 + np.tanh((r_x + r_s) / 2)) / 2  # the logistic function
    keep = (1 + np.tanh((z_x + z_s) / 2)) / 2
    return keep, np.tanh(n_x + reset * n_s)


def split(
    x: Numbers, n_parts: Float64[np.ndarray, "1 1"], number: float
) -> Float64[np.ndarray, "row part"]:
    """Return one of `n_parts` equal parts of the columns; its `number` counts from 0.

    Raises RecordError: there is no such part.
    """
    n = n_parts.item()
    if n < 1 or x.shape[1] % n or number not in range(int(n)):
        raise RecordError(f"there is no part {number:g} of {x.shape[1]} columns divided by {n:g}")
    return np.hsplit(x, int(n))[int(number)]  # (T, h d) -> (T, d)


def row(x: Numbers, number: float) -> Float64[np.ndarray, "1 column"]:
    """Return one row; its `number` counts from 0. Raises RecordError: there is no such row."""
    if number not in range(len(x)):
        raise RecordError(f"there is no row {number:g}: there are {len(x)}, counted from 0")
    return np.asarray(x[int(number)][None])  # (T, m) -> (1, m)
