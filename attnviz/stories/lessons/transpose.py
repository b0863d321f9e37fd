"""K transposed: the same vectors, laid out so that one product gives every q·k."""

from __future__ import annotations

import torch
from torch import Tensor

from attnviz.stories.common import number_names, signed, small, square, story
from attnviz.stories.lessons.self_attention import (
    D_K,
    KEY,
    QUERY,
    WORDS,
    models,
    one_head,
    refusal,
    vectors,
    written_out,
)
from attnviz.stories.record import Story, Table
from attnviz.text.messages import _

SQUARE = (
    "I",
    "love",
    "you",
    "all",
    "!",
)  # as many words as a key has numbers: here Q K can be computed too
TITLE = _("q·k of “{word}” and “{other}”: {score:.3f} from K, {same:.3f} from K transposed")
RECEIPT = _(
    "one head with random weights (seed 0); the {pairs} dot products from rows and from columns "
    "differ by {apart}, from the product of matrices by {off}"
)
INTRODUCTION = _(
    "K has {n} rows, a key of {d_k} numbers for each word. Its transpose K^T has {n} columns: the "
    "same keys, written downward. No number is changed, none is added up. It is turned because of "
    "how a product of matrices is laid out: it takes a row of the left one and a column of the "
    "right one. With K^T on the right, the row is a query and the column a key."
)
PRODUCT = _(
    "The query of “{word}” times either: {terms} = {score:.3f}. The meaning of a key is what it "
    "does in this sum, and the sum is the same."
)
ALL = _(
    "So it is for all {pairs} pairs of words: read from rows and from columns, the dot products "
    "differ by {apart}. One product Q K^T computes them at once (largest difference {off}, "
    "rounding)."
)
WITHOUT = _(
    "Without the transpose the sizes do not fit, and torch refuses: “{refused}”. But take as many "
    "words as a key has numbers, {n_square}, and Q K is computed without a complaint:"
)
MIXED = _(
    "These numbers are no scores. Number {place} of Q K adds up number {place} of all keys, each "
    "times another number of the query: it mixes the words, and compares no query with a key. So "
    "check shapes with sizes that differ."
)


def read_both_ways(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Every q·k [query, key]: with the rows of K, with the columns of its transpose, and as one product."""
    turned = key.T.contiguous()  # written anew, number by number
    by_rows = torch.stack([torch.stack([(q * row).sum() for row in key]) for q in query])
    by_columns = torch.stack(
        [torch.stack([(q * column).sum() for column in turned.T]) for q in query]
    )
    return by_rows, by_columns, query @ turned


@torch.inference_mode()
def tell() -> Story:
    """The demo: one dot product read from K and from its transpose, then all of them; and Q K, which is none."""
    head, of_square = (one_head(models()[0], vectors(words)) for words in (WORDS, SQUARE))
    query, key = head.query[0], head.key[0]
    by_rows, by_columns, product = read_both_ways(query, key)
    wrong, right = of_square.query[0] @ of_square.key[0], of_square.query[0] @ of_square.key[0].T
    n = len(WORDS)
    pairs = product.numel()
    n_square = len(SQUARE)
    score = float(by_rows[QUERY, KEY])
    same = float(by_columns[QUERY, KEY])
    apart = small(float((by_rows - by_columns).abs().max()))
    off = small(float((by_rows - product).abs().max()))
    terms = written_out(query[QUERY], key[KEY])
    refused = refusal(torch.matmul, query, key)
    square_words = " ".join(SQUARE)
    place = SQUARE.index(WORDS[KEY])
    numbers, axes, titles = (
        number_names(D_K),
        (_("word"), _("number")),
        (
            _("K: a row for each word"),
            _("K transposed: a column for each word"),
            _("Q K^T: every q·k"),
            _("the weights"),
        ),
    )
    layouts = zip(
        (
            _("K, row of “{other}”").format(other=WORDS[KEY]),
            _("K^T, column of “{other}”").format(other=WORDS[KEY]),
        ),
        (key[KEY], key.T[:, KEY]),
        strict=True,
    )
    laid_out = Table(
        _("the same key, read from both"),
        (_("where"), *numbers),
        tuple((name, *row.tolist()) for name, row in layouts),
    )
    columns = (_("column {i}").format(i=i) for i in range(len(SQUARE)))
    ways = (("Q K^T", *right[QUERY].tolist()), ("Q K", *wrong[QUERY].tolist()))
    without = Table(
        _("“{square}”, the row of “{word}”: with K^T, and with K").format(
            square=square_words, word=WORDS[QUERY]
        ),
        (_("product"), *columns),
        ways,
    )
    picture = (
        signed(titles[0], key.numpy(), axes, rows=WORDS, columns=numbers),
        signed(titles[1], key.T.numpy(), axes[::-1], rows=numbers, columns=WORDS),
        signed(titles[2], product.numpy(), (_("query"), _("key")), rows=WORDS, columns=WORDS),
        square(titles[3], head.weights[0].numpy(), WORDS),
    )
    return story(
        title=TITLE.format(word=WORDS[QUERY], other=WORDS[KEY], score=score, same=same),
        receipt=RECEIPT.format(pairs=pairs, apart=apart, off=off),
        parts=(
            INTRODUCTION.format(n=n, d_k=D_K),
            laid_out,
            PRODUCT.format(word=WORDS[QUERY], terms=terms, score=score),
            ALL.format(pairs=pairs, apart=apart, off=off),
            WITHOUT.format(refused=refused, n_square=n_square),
            without,
            MIXED.format(place=place),
        ),
        picture=picture,
    )
