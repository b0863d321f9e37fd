"""Transposing K: the same keys, arranged so that one matrix product gives all scores."""

from __future__ import annotations

import torch

from attnviz.stories.common import signed_panel, small
from attnviz.stories.lessons.self_attention import (
    COMPONENTS,
    D_K,
    KEY,
    QUERY,
    WORDS,
    embed,
    random_models,
    refusal_of,
    spell_dot_product,
)
from attnviz.stories.record import Story, Table
from attnviz.text.messages import _


@torch.inference_mode()
def build_story() -> Story:
    """Compute all q·k from the rows of K, from the columns of its transpose, and as one matrix product."""
    head, x = random_models()[0], embed(WORDS)[0]
    query, key = head.query_projection(x), head.key_projection(x)
    transposed = key.T.contiguous()
    from_rows = torch.stack([torch.stack([(q * k).sum() for k in key]) for q in query])
    from_columns = torch.stack([torch.stack([(q * k).sum() for k in transposed.T]) for q in query])
    product = query @ transposed
    difference = small((from_rows - from_columns).abs().max())
    rounding = small((from_rows - product).abs().max())

    word, other = WORDS[QUERY], WORDS[KEY]
    return Story(
        title=_(
            "Transposing K changes no score: q·k of “{word}” and “{other}” is "
            "{score:.3f} from K and {same:.3f} from K^T"
        ).format(
            word=word,
            other=other,
            score=float(from_rows[QUERY, KEY]),
            same=float(from_columns[QUERY, KEY]),
        ),
        receipt=_(
            "One head with random weights. The {n} dot products from rows and from columns differ "
            "by {difference}, those of the matrix product by {rounding}."
        ).format(n=product.numel(), difference=difference, rounding=rounding),
        parts=[
            _(
                "K has {n} rows: for each word, a key of {d_k} numbers. Its transpose K^T holds the "
                "same keys as columns, and no number changes. The transpose is needed because a "
                "matrix product multiplies rows of the left matrix by columns of the right one: "
                "in Q K^T, each row is a query and each column a key."
            ).format(n=len(WORDS), d_k=D_K),
            Table(
                _("The key of “{other}” in both").format(other=other),
                [_("where"), *map(_, COMPONENTS)],
                [
                    (_("row of K"), *key[KEY].tolist()),
                    (_("column of K^T"), *transposed[:, KEY].tolist()),
                ],
            ),
            _(
                "The query of “{word}” times either of them: {terms} = {score:.3f}. A key means what "
                "it does in this sum, and the sum is the same. One product, Q K^T, gives the sums for "
                "all {n} pairs of words."
            ).format(
                word=word,
                terms=spell_dot_product(query[QUERY], key[KEY]),
                score=float(from_rows[QUERY, KEY]),
                n=product.numel(),
            ),
            _(
                "Without the transpose the shapes do not match, and torch refuses: “{error}”. It would "
                "not refuse if there were as many words as numbers in a key. Then Q K would give "
                "numbers that are not scores, since they mix the keys of all words. So test code with "
                "sizes that differ."
            ).format(error=refusal_of(torch.matmul, query, key)),
        ],
        main=2,
        picture=[
            signed_panel(
                _("K: a row for each word"),
                key.numpy(),
                (_("word"), _("component")),
                WORDS,
                [*map(_, COMPONENTS)],
            ),
            signed_panel(
                _("K^T: a column for each word"),
                transposed.numpy(),
                (_("component"), _("word")),
                [*map(_, COMPONENTS)],
                WORDS,
            ),
            signed_panel(
                _("Q K^T: every q·k"), product.numpy(), (_("query"), _("key")), WORDS, WORDS
            ),
        ],
    )
