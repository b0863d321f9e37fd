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
from attnviz.text.phrase import Texts

SQUARE = (
    "I",
    "love",
    "you",
    "all",
    "!",
)  # as many words as a key has numbers: here Q K can be computed too
TEXTS = Texts(
    """
title | q·k of “{word}” and “{other}”: {score:.3f} from K, {same:.3f} from K transposed
    | “{word}”와 “{other}”의 q·k: K에서 {score:.3f}, 전치한 K에서 {same:.3f}
receipt | one head with random weights (seed 0); the {pairs} dot products from rows and from columns differ by {apart},
    from the product of matrices by {off}
    | 무작위 가중치(시드 0)의 헤드 하나; 내적 {pairs}개의 차이: 행과 열 {apart}, 행렬의 곱과 {off}
introduction | K has {n} rows, a key of {D_K} numbers for each word. Its transpose K^T has {n} columns: the same keys,
    written downward. No number is changed, none is added up. It is turned because of how a product of matrices is laid
    out: it takes a row of the left one and a column of the right one. With K^T on the right, the row is a query and the
    column a key.
    | K에는 행이 {n}개 있고, 행마다 한 단어의 키(수 {D_K}개)가 있습니다. 전치한 K^T에는 열이 {n}개 있습니다. 같은 키를
    세로로 적은 것으로, 바뀌거나 더해지는 수는 없습니다. 돌려놓는 까닭은 행렬의 곱이 왼쪽 행렬의 행과 오른쪽 행렬의 열을
    곱하도록 정해져 있기 때문입니다. 오른쪽에 K^T를 두면 행은 쿼리, 열은 키가 됩니다.
product | The query of “{word}” times either: {terms} = {score:.3f}. The meaning of a key is what it does in this sum,
    and the sum is the same.
    | “{word}”의 쿼리에 어느 쪽을 곱해도 {terms} = {score:.3f}입니다. 키의 뜻은 이 합에서 하는 일이고, 합은 같습니다.
all | So it is for all {pairs} pairs of words: read from rows and from columns, the dot products differ by {apart}. One
    product Q K^T computes them at once (largest difference {off}, rounding).
    | 단어 쌍 {pairs}개 모두 그렇습니다. 행에서 읽은 내적과 열에서 읽은 내적의 차이는 {apart}입니다. Q K^T는 이것을 곱
    한 번으로 모두 계산합니다(최대 차이 {off}, 반올림).
without_table | “{square}”, the row of “{word}”: with K^T, and with K | “{square}”, “{word}”의 행: K^T로, 그리고 K로
without | Without the transpose the sizes do not fit, and torch refuses: “{refused}”. But take as many words as a key
    has numbers, {n_square}, and Q K is computed without a complaint:
    | 전치하지 않으면 크기가 맞지 않아 torch가 거절합니다: “{refused}”. 그러나 단어 수가 키의 수 개수와
    같으면({n_square}) Q K도 아무 말 없이 계산됩니다.
mixed | These numbers are no scores. Number {place} of Q K adds up number {place} of all keys, each times another number
    of the query: it mixes the words, and compares no query with a key. So check shapes with sizes that differ.
    | 이 수들은 스코어가 아닙니다. Q K의 {place}번째 수는 모든 키의 {place}번째 수에 쿼리의 서로 다른 수를 곱해 더한
    것입니다. 단어들을 섞을 뿐, 쿼리를 키와 비교하지 않습니다. 그래서 모양은 서로 다른 크기로 확인해야 합니다.
axes | word; number | 단어; 수
pair | query; key | 쿼리; 키
laid_out | the same key, read from both | 두 행렬에서 읽은 같은 키
layouts | K, row of “{other}”; K^T, column of “{other}” | K, “{other}”의 행; K^T, “{other}”의 열
where | where | 어디
products | product | 곱
column | column {i} | {i}번째 열
panels | K: a row for each word; K transposed: a column for each word; Q K^T: every q·k; the weights
    | K: 단어마다 행; 전치한 K: 단어마다 열; Q K^T: 모든 q·k; 가중치
""",
    globals(),
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
    say = TEXTS.filled(
        n=len(WORDS),
        pairs=product.numel(),
        n_square=len(SQUARE),
        word=WORDS[QUERY],
        other=WORDS[KEY],
        score=float(by_rows[QUERY, KEY]),
        same=float(by_columns[QUERY, KEY]),
        apart=small(float((by_rows - by_columns).abs().max())),
        off=small(float((by_rows - product).abs().max())),
        terms=written_out(query[QUERY], key[KEY]),
        refused=refusal(torch.matmul, query, key),
        square=" ".join(SQUARE),
        place=SQUARE.index(WORDS[KEY]),
    )
    numbers, axes, titles = number_names(D_K), say.names("axes"), say.names("panels")
    layouts = zip(say.names("layouts"), (key[KEY], key.T[:, KEY]), strict=True)
    laid_out = Table(
        say("laid_out"),
        (say("where"), *numbers),
        tuple((name, *row.tolist()) for name, row in layouts),
    )
    columns = (say("column", i=i) for i in range(len(SQUARE)))
    ways = (("Q K^T", *right[QUERY].tolist()), ("Q K", *wrong[QUERY].tolist()))
    without = Table(say("without_table"), (say("products"), *columns), ways)
    picture = (
        signed(titles[0], key.numpy(), axes, rows=WORDS, columns=numbers),
        signed(titles[1], key.T.numpy(), axes[::-1], rows=numbers, columns=WORDS),
        signed(titles[2], product.numpy(), say.names("pair"), rows=WORDS, columns=WORDS),
        square(titles[3], head.weights[0].numpy(), WORDS),
    )
    return story(
        say, ("introduction", laid_out, "product", "all", "without", without, "mixed"), picture
    )
