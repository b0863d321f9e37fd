"""Self-attention from the vectors to the output: one head, four heads in parallel, and one fused projection.

Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2: https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.capture.sources.modules import watch
from attnviz.errors import ModelError
from attnviz.models.attention import MultiHeadAttention, SelfAttention, attention_scores, fuse
from attnviz.models.embedding import sinusoidal_positions
from attnviz.models.language_models import initialise, word_vector
from attnviz.stories.common import row_view, small, weights_panel
from attnviz.stories.record import Story, StoryView, Table
from attnviz.text.messages import N_, _

WORDS = ("I", "love", "you", "all")
D_MODEL, D_K, N_HEADS = 20, 5, 4
SEED = 0
COMPONENTS = [N_("component {i}").format(i=i) for i in range(D_K)]
QUERY, KEY = 1, 3  # the cell that is computed by hand: row "love", column "all"


def embed(words: Sequence[str]) -> Float[Tensor, "1 word d_model"]:
    """Return the vectors of the words with positions added, as a batch of one sentence."""
    vectors = torch.stack([word_vector(word, D_MODEL, SEED) for word in words])
    return (vectors + sinusoidal_positions(len(words), D_MODEL))[None]


def random_models() -> tuple[SelfAttention, MultiHeadAttention]:
    """Return a model with one head and one with four heads, with random weights from a fixed seed."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        single_head, four_heads = SelfAttention(D_MODEL, D_K), MultiHeadAttention(D_MODEL, N_HEADS)
        initialise(single_head)
        initialise(four_heads)
    return single_head, four_heads


@torch.no_grad()
def project(
    model: MultiHeadAttention, x: Float[Tensor, "1 word d_model"]
) -> tuple[Float[Tensor, "1 word three_d_model"], Float[Tensor, "1 word three_d_model"]]:
    """Return query, key and value concatenated, computed by one fused projection and by three projections."""
    projections = (model.query_projection, model.key_projection, model.value_projection)
    return fuse(*projections)(x), torch.cat([projection(x) for projection in projections], dim=-1)


def refusal_of(compute: Callable[..., object], *arguments: object) -> str:
    """Return the error message of a call that must fail."""
    try:
        compute(*arguments)
    except (ModelError, RuntimeError) as error:
        return str(error)
    raise AssertionError(f"no error for {arguments}")


def spell_dot_product(query: Float[Tensor, " d_k"], key: Float[Tensor, " d_k"]) -> str:
    """Return the text of a dot product as a sum of products."""
    pairs = zip(query.tolist(), key.tolist(), strict=True)
    return " + ".join(f"({q:.3f} x {k:.3f})" for q, k in pairs)


@torch.inference_mode()
def build_story() -> Story:
    """Run one head on four words, then four heads, then a fused projection."""
    x = embed(WORDS)
    head, multi_head = random_models()
    query, key, value = head.query_projection(x), head.key_projection(x), head.value_projection(x)
    scores = attention_scores(query, key)
    with watch(head) as head_watch:
        context, weights = head(x)
    with watch(multi_head) as multi_head_watch:
        output, head_weights = multi_head(x)
    records = head_watch.attention(WORDS), multi_head_watch.attention(WORDS)
    fused, separate = project(multi_head, x)
    output_difference = small((weights @ value - context).abs().max())
    fused_difference = small((fused - separate).abs().max())

    row, score_row = weights[0, QUERY], scores[0, QUERY]
    return Story(
        title=_(
            N_("“{word}” attends most to “{most}” ({weight:.2f})").format(
                word=WORDS[QUERY], most=WORDS[int(row.argmax())], weight=float(row.max())
            )
        ),
        receipt=_(
            "verified: max difference {proved} between weights times values and the head's own "
            "output, {fused} between one projection and three"
        ).format(proved=output_difference, fused=fused_difference),
        parts=[
            _(
                "Each of the four words “{words}” is a vector of {d_model} numbers, with its position "
                "added. One head projects every vector to a query, a key and a value of {d_k} numbers "
                "each, and compares the query of each word with the key of every word, its own "
                "included. softmax(Q K^T / sqrt({d_k})) gives the weights, which mix the values. The "
                "projections are random here; a trained model has learned them."
            ).format(words=" ".join(WORDS), d_model=D_MODEL, d_k=D_K),
            Table(
                _("Each step and its shape (sentences, words, numbers)"),
                [_("step"), _("formula"), _("shape")],
                [
                    (_("vectors"), _("X = words + positions"), _shape(x)),
                    (_("queries"), "Q = X W^Q + b^Q", _shape(query)),
                    (_("keys"), "K = X W^K + b^K", _shape(key)),
                    (_("values"), "V = X W^V + b^V", _shape(value)),
                    (_("scores"), f"S = Q K^T / sqrt({D_K})", _shape(scores)),
                    (_("weights"), "A = softmax(S)", _shape(weights)),
                    (_("output"), "A V", _shape(context)),
                ],
            ),
            _word_table(_("Scores: each row is a query, each column a key"), WORDS, scores[0]),
            _(
                "The score of “{word}” for “{other}” is query times key, divided by sqrt({d_k}): "
                "({terms}) / {root:.3f} = {score:.3f}. Its weight is exp({score:.3f}) divided by the "
                "sum of the exponentials of its row: {numerator:.3f} / {total:.3f} = {weight:.3f}."
            ).format(
                word=WORDS[QUERY],
                other=WORDS[KEY],
                d_k=D_K,
                terms=spell_dot_product(query[0, QUERY], key[0, KEY]),
                root=D_K**0.5,
                score=float(score_row[KEY]),
                numerator=float(score_row[KEY].exp()),
                total=float(score_row.exp().sum()),
                weight=float(row[KEY]),
            ),
            _word_table(_("Weights: the softmax of each row"), WORDS, weights[0]),
            _word_table(
                _("Output: the sum of the values, each times its weight"),
                [*map(_, COMPONENTS)],
                context[0],
            ),
            _(
                "Multi-head attention: {n} heads share the {d_model} numbers, {d_k} each, and work "
                "side by side, so the weights have the shape {shape}. Their outputs are concatenated, "
                "and one more projection, W^O, mixes them: {mixed}. The number of heads must divide "
                "the width; with 3 heads the model refuses: “{error}”."
            ).format(
                n=N_HEADS,
                d_model=D_MODEL,
                d_k=D_MODEL // N_HEADS,
                shape=_shape(head_weights),
                mixed=_shape(output),
                error=refusal_of(MultiHeadAttention, D_MODEL, 3),
            ),
            _(
                "Query, key and value projections can be fused into one of {d_model} x {width}, as in "
                "GPT-2: one large product is faster than three small ones. Its result {shape}, split "
                "into three, equals what the separate projections give (largest difference "
                "{difference})."
            ).format(
                d_model=D_MODEL,
                width=fused.shape[-1],
                shape=_shape(fused),
                difference=fused_difference,
            ),
        ],
        picture=[
            weights_panel(_("One head"), weights[0].numpy(), WORDS),
            *(
                weights_panel(
                    _("Head {i} of {n_heads}").format(i=i, n_heads=N_HEADS),
                    head_weights[0, i].numpy(),
                    WORDS,
                )
                for i in range(N_HEADS)
            ),
        ],
        views=[
            row_view(records[0], (0, 0), QUERY),
            StoryView(
                text=_("{n_heads} heads side by side on the same words.").format(n_heads=N_HEADS),
                record=1,
            ),
        ],
        records=records,
    )


def _word_table(title: str, columns: Sequence[str], rows: Float[Tensor, "word column"]) -> Table:
    """Return a table with a row for each word."""
    named = [(word, *row) for word, row in zip(WORDS, rows.tolist(), strict=True)]
    return Table(title, [_("word"), *columns], named)


def _shape(tensor: Tensor) -> str:
    """Return the shape of a tensor as text, such as (1, 4, 20)."""
    return f"({', '.join(map(str, tensor.shape))})"
