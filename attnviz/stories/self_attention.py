"""Self-attention from the vectors to the output: one head, four heads side by side, and their projections as one.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2: https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.errors import ModelError
from attnviz.models.attention import MultiHeadAttention, SelfAttention, attention_scores, fuse
from attnviz.models.embedding import sinusoidal_positions
from attnviz.models.toy import word_vector
from attnviz.models.wholes import initialise
from attnviz.stories.common import prose, small, square
from attnviz.stories.record import Matrix, Story, Table

WORDS = ("I", "love", "you", "all")
D_MODEL, D_K, N_HEADS = 20, 5, 4
NOT_A_DIVISOR = 3
"""Heads among which the width cannot be shared out."""
SEED = 0
QUERY, KEY = 1, 3
"""The cell that is computed number by number: the row of "love", the column of "all"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneHead:
    """One head on four words, from the projections to the output."""

    query: Float[Tensor, "1 word d_k"]  # what each word looks for
    key: Float[Tensor, "1 word d_k"]  # what each word is compared by
    value: Float[Tensor, "1 word d_k"]  # what each word gives
    scores: Float[Tensor, "1 word word"]  # each query times each key, divided by sqrt(d_k)
    weights: Float[Tensor, "1 word word"]  # the softmax of each row of scores
    output: Float[Tensor, "1 word d_k"]  # the values, each times its weight, added up


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedProjection:
    """One projection in place of three."""

    weight: Float[Tensor, "three_d_model d_model"]  # the three weights, one below the other
    product: Float[Tensor, "1 word three_d_model"]  # query, key and value side by side, from one multiplication
    difference: float  # the largest difference from what the three projections give, each on its own


def vectors() -> Float[Tensor, "1 word d_model"]:
    """The words' vectors with their positions, a batch of one sentence."""
    words = torch.stack([word_vector(word, D_MODEL, SEED) for word in WORDS])
    return (words + sinusoidal_positions(len(WORDS), D_MODEL))[None]


def models() -> tuple[SelfAttention, MultiHeadAttention]:
    """One head, and four heads side by side, with random weights that are always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        one, four = SelfAttention(D_MODEL, D_K), MultiHeadAttention(D_MODEL, N_HEADS)
        initialise(one)
        initialise(four)
    return one, four


def one_head(model: SelfAttention, x: Float[Tensor, "1 word d_model"]) -> OneHead:
    """What one head computes, with all that lies between its vectors and its output."""
    query, key, value = model.query_projection(x), model.key_projection(x), model.value_projection(x)
    output, weights = model(x)
    return OneHead(
        query=query, key=key, value=value, scores=attention_scores(query, key), weights=weights, output=output
    )


@torch.no_grad()
def apart(model: MultiHeadAttention, x: Float[Tensor, "1 word d_model"]) -> float:
    """The largest difference between four heads side by side and the same four one after another."""
    output, weights = model(x)
    contexts, differences = [], []
    for head in range(N_HEADS):
        one, rows = SelfAttention(D_MODEL, model.d_k), slice(head * model.d_k, (head + 1) * model.d_k)
        for name in ("query_projection", "key_projection", "value_projection"):
            alone, all_heads = one.get_submodule(name), model.get_submodule(name)
            alone.load_state_dict({part: tensor[rows] for part, tensor in all_heads.state_dict().items()})
        context, pattern = one(x)
        contexts.append(context)
        differences.append((pattern - weights[:, head]).abs().max())
    differences.append((model.output_projection(torch.cat(contexts, dim=-1)) - output).abs().max())
    return float(max(differences))


@torch.no_grad()
def fused(model: MultiHeadAttention, x: Float[Tensor, "1 word d_model"]) -> FusedProjection:
    """The projections of all heads as one, and how far what it gives is from what the three give."""
    projections = (model.query_projection, model.key_projection, model.value_projection)
    together = fuse(*projections)
    product = together(x)
    separate = torch.cat([projection(x) for projection in projections], dim=-1)
    return FusedProjection(weight=together.weight, product=product, difference=float((product - separate).abs().max()))


def refusal() -> str:
    """What the model says to a number of heads that does not divide its width."""
    try:
        MultiHeadAttention(D_MODEL, NOT_A_DIVISOR)
    except ModelError as error:
        return str(error)
    raise AssertionError(f"{NOT_A_DIVISOR} heads share {D_MODEL} numbers")


@torch.inference_mode()
def tell() -> Story:
    """The demo: one head on four words, four heads, and the three projections as one."""
    x, (one, four) = vectors(), models()
    head, (output, weights) = one_head(one, x), four(x)
    together, difference = fused(four, x), apart(four, x)
    proved = float((head.weights @ head.value - head.output).abs().max())
    return Story(
        name="self-attention",
        title="self-attention number by number: one head, four heads, and three projections as one",
        parts=(
            _one_head_in_words(head),
            _shapes(x, head),
            _rows("the scores: each row is a query, each column a key", WORDS, head.scores[0]),
            _one_cell(head),
            _rows("the weights: the softmax of each row of scores; each row sums to 1", WORDS, head.weights[0]),
            _rows(
                "the output: in each row the four values, each times its weight, added up",
                tuple(f"number {i}" for i in range(D_K)),
                head.output[0],
            ),
            _four_heads(weights, output, difference),
            _one_projection(together),
        ),
        picture=_picture(head, weights),
        receipt=f"verified: max difference {small(proved)} between weights times values and the head's own output, "
        f"{small(difference)} between four heads side by side and one after another, {small(together.difference)} "
        "between one projection and three",
    )


def _one_head_in_words(head: OneHead) -> str:
    n = len(WORDS)
    return prose(f"""Four words, “{" ".join(WORDS)}”: each is a vector of {D_MODEL} numbers, and its position is added
    to it. One head projects every vector three times, to a query, a key and a value of {D_K} numbers each. The query of
    a word is compared with the key of every word, itself included: that is why it is called self-attention. Softmax(Q
    K^T / sqrt({D_K})) gives {n} x {n} weights, and the weights mix the values: what comes out has the shape
    {_shape(head.output)}. The projections are random here, always the same ones; a trained model has learned them.""")


def _shapes(x: Tensor, head: OneHead) -> Table:
    return Table(
        title="what there is on the way, and its shape: sentences, words, numbers",
        columns=("step", "formula", "shape"),
        rows=(
            ("vectors", "X = words + positions", _shape(x)),
            ("queries", "Q = X W^Q + b^Q", _shape(head.query)),
            ("keys", "K = X W^K + b^K", _shape(head.key)),
            ("values", "V = X W^V + b^V", _shape(head.value)),
            ("scores", f"S = Q K^T / sqrt({D_K})", _shape(head.scores)),
            ("weights", "A = softmax(S), row by row", _shape(head.weights)),
            ("output", "A V", _shape(head.output)),
        ),
    )


def _rows(title: str, columns: tuple[str, ...], values: Tensor) -> Table:
    """A row for each word."""
    rows = tuple((word, *row) for word, row in zip(WORDS, values.tolist(), strict=True))
    return Table(title, ("word", *columns), rows)


def _one_cell(head: OneHead) -> str:
    query, key = head.query[0, QUERY], head.key[0, KEY]
    products = (query * key).tolist()
    terms = " + ".join(f"({q:.3f} x {k:.3f})" for q, k in zip(query.tolist(), key.tolist(), strict=True))
    row = head.scores[0, QUERY]
    total = float(row.exp().sum())
    return prose(f"""The score of “{WORDS[QUERY]}” for “{WORDS[KEY]}” is the query of the one times the key of the
    other, divided by sqrt({D_K}): ({terms}) / {D_K**0.5:.3f} = {sum(products) / D_K**0.5:.3f}. Its weight is
    exp({row[KEY]:.3f}) divided by the sum of the exponentials of its row: {row[KEY].exp():.3f} / {total:.3f} =
    {row[KEY].exp() / total:.3f}.""")


def _four_heads(weights: Tensor, output: Tensor, difference: float) -> str:
    n_heads, d_k = weights.shape[1], D_MODEL // weights.shape[1]
    same = "to the last bit" if not difference else f"but for rounding (largest difference {small(difference)})"
    return prose(f"""One head finds one pattern. {n_heads} heads share the {D_MODEL} numbers, {D_MODEL} / {n_heads} =
    {d_k} each, and look side by side: the weights have the shape {_shape(weights)}. What the heads give is put in a
    row, {n_heads} x {d_k} = {D_MODEL} numbers a word, and one more projection, W^O, mixes it: {_shape(output)}. The
    same heads computed one after another give the same, {same}. The width must be shared out evenly; with
    {NOT_A_DIVISOR} heads the model refuses: “{refusal()}”.""")


def _one_projection(together: FusedProjection) -> str:
    n_out, n_in = together.weight.shape
    exact = "exactly, to the last bit"
    if together.difference:
        exact = f"but for rounding (largest difference {small(together.difference)})"
    return prose(f"""Queries, keys and values are three projections of the same vectors, {n_in} x {n_out // 3} each. Put
    side by side they are one projection, {n_in} x {n_out}, and one multiplication gives all three:
    {_shape(together.product)}. Split into three it is what the separate ones give, {exact}. That is how GPT-2 stores
    them: one large multiplication is faster than three small ones.""")


def _shape(tensor: Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))})"


def _picture(head: OneHead, weights: Tensor) -> tuple[Matrix, ...]:
    names = ("one head", *(f"head {i} of {N_HEADS}" for i in range(N_HEADS)))
    return tuple(
        square(f"{name}: weights", pattern.numpy(), WORDS)
        for name, pattern in zip(names, torch.cat([head.weights, weights[0]]), strict=True)
    )
