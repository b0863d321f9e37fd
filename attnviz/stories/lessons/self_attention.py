"""Self-attention from the vectors to the output: one head, four heads side by side, and their projections as one.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2: https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.capture.sources.modules import watch
from attnviz.errors import ModelError
from attnviz.models.attention import MultiHeadAttention, SelfAttention, attention_scores, fuse
from attnviz.models.embedding import sinusoidal_positions
from attnviz.models.wholes import initialise, word_vector
from attnviz.stories.common import number_names, row_view, small, square, story, table
from attnviz.stories.record import Story, StoryView, Table
from attnviz.text.messages import Phrase, _

WORDS = ("I", "love", "you", "all")
D_MODEL, D_K, N_HEADS = 20, 5, 4
NOT_A_DIVISOR = 3  # heads among which the width cannot be shared out
SEED = 0
QUERY, KEY = (
    1,
    3,
)  # the cell that is computed number by number: the row of "love", the column of "all"
TITLE = _(
    "“{word}” looks most at “{most}” ({weight:.2f}); {n_heads} heads at once and one by one "
    "differ by {heads}"
)
RECEIPT = _(
    "verified: max difference {proved} between weights times values and the head's own output, "
    "{heads} between four heads side by side and one after another, {three} between one "
    "projection and three"
)
ONE_HEAD = _(
    "Four words, “{words}”: each is a vector of {d_model} numbers, and its position is added to "
    "it. One head projects every vector three times, to a query, a key and a value of {d_k} "
    "numbers each. The query of a word is compared with the key of every word, itself included: "
    "that is why it is called self-attention. Softmax(Q K^T / sqrt({d_k})) gives {n} x {n} "
    "weights, and the weights mix the values: what comes out has the shape {shape}. The "
    "projections are random here, always the same ones; a trained model has learned them."
)
SHAPES = _("what there is on the way, and its shape: sentences, words, numbers")
ONE_CELL = _(
    "The score of “{word}” for “{other}” is the query of the one times the key of the other, "
    "divided by sqrt({d_k}): {score}. Its weight is exp({cell:.3f}) divided by the sum of the "
    "exponentials of its row: {weight}."
)
FOUR_HEADS = _(
    "One head finds one pattern. {n} heads share the {d_model} numbers, {d_model} / {n} = {d_k} "
    "each, and look side by side: the weights have the shape {shape}. What the heads give is put "
    "in a row, {n} x {d_k} = {d_model} numbers a word, and one more projection, W^O, mixes it: "
    "{mixed}. The same heads computed one after another give the same, {same}. The width must be "
    "shared out evenly; with {not_a_divisor} heads the model refuses: “{refused}”."
)
ONE_PROJECTION = _(
    "Queries, keys and values are three projections of the same vectors, {n_in} x {n_part} each. "
    "Put side by side they are one projection, {n_in} x {n_out}, and one multiplication gives all "
    "three: {shape}. Split into three it is what the separate ones give, {exact}. That is how "
    "GPT-2 stores them: one large multiplication is faster than three small ones."
)
NUMBER_BY_NUMBER = _(
    "“{word}” in head 0, number by number: columns of the one product, and each projection alone"
)
VIEW = _("One head: “{word}” looks most at “{at}” ({weight:.2f}).")
WEIGHTS = _("the weights: the softmax of each row of scores; each row sums to 1")
OUTPUT = _("the output: in each row the four values, each times its weight, added up")
SCORES = _("the scores: each row is a query, each column a key")


class OneHead(NamedTuple):
    """One head on four words, from the projections to the output."""

    query: Tensor  # what each word looks for [1, word, d_k]
    key: Tensor  # what each word is compared by, likewise
    value: Tensor  # what each word gives, likewise
    scores: Tensor  # each query times each key, divided by sqrt(d_k) [1, word, word]
    weights: Tensor  # the softmax of each row of scores
    output: Tensor  # the values, each times its weight, added up [1, word, d_k]


def vectors(shown: Sequence[str] = WORDS) -> Float[Tensor, "1 word d_model"]:
    """The words' vectors with their positions, a batch of one sentence."""
    words = torch.stack([word_vector(word, D_MODEL, SEED) for word in shown])
    return (words + sinusoidal_positions(len(shown), D_MODEL))[None]


def models() -> tuple[SelfAttention, MultiHeadAttention]:
    """One head, and four heads side by side, with random weights that are always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        one, four = SelfAttention(D_MODEL, D_K), MultiHeadAttention(D_MODEL, N_HEADS)
        initialise(one)
        initialise(four)
    return one, four


def one_head(model: SelfAttention, x: Float[Tensor, "1 word d_model"]) -> OneHead:
    """Compute one head, and keep every step between its vectors and its output."""
    query, key, value = (
        model.query_projection(x),
        model.key_projection(x),
        model.value_projection(x),
    )
    output, weights = model(x)
    return OneHead(query, key, value, attention_scores(query, key), weights, output)


@torch.no_grad()
def apart(model: MultiHeadAttention, x: Float[Tensor, "1 word d_model"]) -> float:
    """The largest difference between four heads side by side and the same four one after another."""
    output, weights = model(x)
    contexts, differences = [], []
    for head in range(N_HEADS):
        one, rows = (
            SelfAttention(D_MODEL, model.d_k),
            slice(head * model.d_k, (head + 1) * model.d_k),
        )
        for name in ("query_projection", "key_projection", "value_projection"):
            alone, all_heads = one.get_submodule(name), model.get_submodule(name)
            alone.load_state_dict(
                {part: tensor[rows] for part, tensor in all_heads.state_dict().items()}
            )
        context, pattern = one(x)
        contexts.append(context)
        differences.append((pattern - weights[:, head]).abs().max())
    differences.append((model.output_projection(torch.cat(contexts, dim=-1)) - output).abs().max())
    return float(max(differences))


@torch.no_grad()
def fused(
    model: MultiHeadAttention, x: Float[Tensor, "1 word d_model"]
) -> tuple[Float[Tensor, "1 word three_d_model"], Float[Tensor, "1 word three_d_model"]]:
    """Query, key and value side by side: from the projections of all heads as one, and from the three."""
    projections = (model.query_projection, model.key_projection, model.value_projection)
    return fuse(*projections)(x), torch.cat([one(x) for one in projections], dim=-1)


def refusal(compute: Callable[..., object], *given: object) -> str:
    """Return the message of the error for values that it cannot compute with."""
    try:
        compute(*given)
    except (ModelError, RuntimeError) as error:
        return str(error)
    raise AssertionError(f"computed of {given}")


@torch.inference_mode()
def tell() -> Story:
    """The demo: one head on four words, four heads, and the three projections as one."""
    x, (one, four) = vectors(), models()
    with watch(one) as alone:
        head = one_head(one, x)
    with watch(four) as side_by_side:
        output, weights = four(x)
    (together, separate), difference = fused(four, x), apart(four, x)
    own, other = (
        float((head.weights @ head.value - head.output).abs().max()),
        float((together - separate).abs().max()),
    )
    proved, heads, three = map(small, (own, difference, other))
    row, n_out = head.weights[0, QUERY], together.shape[-1]
    most = WORDS[int(row.argmax())]
    weight = float(row.max())
    words = " ".join(WORDS)
    shape = _shape(head.output)
    four_heads = FOUR_HEADS.format(
        n=N_HEADS,
        d_model=D_MODEL,
        d_k=D_MODEL // N_HEADS,
        shape=_shape(weights),
        mixed=_shape(output),
        same=_sameness(difference, _("to the last bit")),
        not_a_divisor=NOT_A_DIVISOR,
        refused=refusal(MultiHeadAttention, D_MODEL, NOT_A_DIVISOR),
    )
    one_projection = ONE_PROJECTION.format(
        n_in=x.shape[-1],
        n_part=n_out // 3,
        n_out=n_out,
        shape=_shape(together),
        exact=_sameness(other, _("exactly, to the last bit")),
    )
    steps = zip(
        (
            _("vectors"),
            _("queries"),
            _("keys"),
            _("values"),
            _("scores"),
            _("weights"),
            _("output"),
        ),
        (
            _("X = words + positions"),
            _("Q = X W^Q + b^Q"),
            _("K = X W^K + b^K"),
            _("V = X W^V + b^V"),
            _("S = Q K^T / sqrt({d_k})").format(d_k=D_K),
            _("A = softmax(S), row by row"),
            _("A V"),
        ),
        map(_shape, (x, *head)),
        strict=True,
    )
    tables = (
        Table(
            title,
            (_("word"), *columns),
            tuple((w, *r) for w, r in zip(WORDS, rows.tolist(), strict=True)),
        )
        for title, columns, rows in (
            (SCORES, WORDS, head.scores[0]),
            (WEIGHTS, WORDS, head.weights[0]),
            (OUTPUT, number_names(D_K), head.output[0]),
        )
    )
    scores, *others = tables
    records = alone.attention(WORDS), side_by_side.attention(WORDS)
    panels = (
        _("one head: weights"),
        *(_("head {i} of {n_heads}: weights").format(i=i, n_heads=N_HEADS) for i in range(N_HEADS)),
    )
    return story(
        title=TITLE.format(
            word=WORDS[QUERY], most=most, weight=weight, n_heads=N_HEADS, heads=heads
        ),
        receipt=RECEIPT.format(proved=proved, heads=heads, three=three),
        parts=(
            ONE_HEAD.format(words=words, d_model=D_MODEL, d_k=D_K, n=len(WORDS), shape=shape),
            table(SHAPES, (_("step"), _("formula"), _("shape")), steps),
            scores,
            _one_cell(head),
            *others,
            four_heads,
            one_projection,
            _number_by_number(together, separate),
        ),
        picture=(
            square(*one, WORDS)
            for one in zip(panels, torch.cat([head.weights, weights[0]]).numpy(), strict=True)
        ),
        views=(
            row_view(VIEW, records[0], (0, 0), QUERY, 0),
            StoryView(
                text=_("{n_heads} heads side by side on the same words.").format(n_heads=N_HEADS),
                record=1,
            ),
        ),
        records=records,
    )


def written_out(query: Tensor, key: Tensor) -> str:
    """The products of two vectors as a sum."""
    return " + ".join(
        f"({q:.3f} x {k:.3f})" for q, k in zip(query.tolist(), key.tolist(), strict=True)
    )


def _one_cell(head: OneHead) -> Phrase:
    query, key, row = head.query[0, QUERY], head.key[0, KEY], head.scores[0, QUERY]
    score = f"({written_out(query, key)}) / {D_K**0.5:.3f} = {sum((query * key).tolist()) / D_K**0.5:.3f}"
    total = float(row.exp().sum())
    weight = f"{row[KEY].exp():.3f} / {total:.3f} = {row[KEY].exp() / total:.3f}"
    return ONE_CELL.format(
        word=WORDS[QUERY],
        other=WORDS[KEY],
        d_k=D_K,
        score=score,
        cell=float(row[KEY]),
        weight=weight,
    )


def _sameness(difference: float, exactly: Phrase) -> Phrase:
    return (
        _("but for rounding (largest difference {apart})").format(apart=small(difference))
        if difference
        else exactly
    )


def _number_by_number(together: Tensor, separate: Tensor) -> Table:
    """The query, key and value of one word in head 0: cut out of the one product, and computed alone."""
    n, rows = together.shape[-1] // 3, list[tuple[str | float, ...]]()
    for number, what in enumerate((_("query"), _("key"), _("value"))):
        for how, vector in zip(
            (_("of the one product"), _("alone")), (together, separate), strict=True
        ):
            first, last = number * n, number * n + D_K - 1
            numbers = vector[0, QUERY, first : last + 1].tolist()
            rows.append(
                (
                    _("{what}, {how}").format(what=what, how=how),
                    _("{first} to {last}").format(first=first, last=last),
                    *numbers,
                )
            )
    return Table(
        NUMBER_BY_NUMBER.format(word=WORDS[QUERY]),
        (_("what"), _("columns"), *number_names(D_K)),
        tuple(rows),
        digits=4,
    )


def _shape(tensor: Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))})"
