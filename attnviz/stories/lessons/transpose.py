"""K transposed: the same vectors, laid out so that one product gives every q · k."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attnviz.stories.common import numbered, small, square
from attnviz.stories.lessons.self_attention import D_K, KEY, QUERY, WORDS, models, one_head, vectors
from attnviz.stories.record import Matrix, Story, Table
from attnviz.text.phrase import Phrase

SQUARE = ("I", "love", "you", "all", "!")
"""As many words as a key has numbers: here Q K can be computed too."""
AXES = Phrase("word", "단어"), Phrase("number", "수")
PAIR = Phrase("query", "쿼리"), Phrase("key", "키")


def read_both_ways(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Every q · k [query, key]: with the rows of K, with the columns of its transpose, and as one product."""
    turned = key.T.contiguous()  # written anew, number by number
    by_rows = torch.stack([torch.stack([(q * key[j]).sum() for j in range(len(key))]) for q in query])
    by_columns = torch.stack([torch.stack([(q * turned[:, j]).sum() for j in range(len(key))]) for q in query])
    return by_rows, by_columns, query @ turned


def refusal(query: Tensor, key: Tensor) -> str:
    """What torch says to Q K without the transpose."""
    try:
        query @ key
    except RuntimeError as error:
        return str(error)
    raise AssertionError("Q K of unequal sizes")


@torch.inference_mode()
def tell() -> Story:
    """The demo: one dot product read from K and from its transpose, then all of them; and Q K, which is none."""
    head = one_head(models()[0], vectors())
    query, key = head.query[0], head.key[0]
    by_rows, by_columns, product = read_both_ways(query, key)
    apart = float((by_rows - by_columns).abs().max())
    off = float((by_rows - product).abs().max())
    (score, same), n = (float(one[QUERY, KEY]) for one in (by_rows, by_columns)), len(WORDS)
    other = one_head(models()[0], vectors(SQUARE))
    wrong, right = other.query[0] @ other.key[0], other.query[0] @ other.key[0].T
    return Story(
        name="transpose",
        title=Phrase(
            f"q · k of “{WORDS[QUERY]}” and “{WORDS[KEY]}”: {score:.3f} from K, {same:.3f} from K transposed",
            f"“{WORDS[QUERY]}”와 “{WORDS[KEY]}”의 q · k: K에서 {score:.3f}, 전치한 K에서 {same:.3f}",
        ),
        parts=(
            _introduction(n),
            _laid_out(key),
            _one_product(query[QUERY], key, score),
            _all_of_them(by_rows, apart, off),
            *_without(refusal(query, key), wrong, right),
        ),
        picture=(
            _numbers(Phrase("K: a row for each word", "K: 단어마다 행"), key, WORDS, numbered(D_K), AXES),
            _numbers(
                Phrase("K transposed: a column for each word", "전치한 K: 단어마다 열"),
                key.T,
                numbered(D_K),
                WORDS,
                AXES[::-1],
            ),
            _numbers(Phrase("Q K^T: every q · k", "Q K^T: 모든 q · k"), product, WORDS, WORDS, PAIR),
            square(Phrase("the weights", "가중치"), head.weights[0].numpy(), WORDS),
        ),
        receipt=Phrase(
            f"""one head with random weights (seed 0); the {n * n} dot products from rows and from columns differ by
            {small(apart)}, from the product of matrices by {small(off)}""",
            f"""무작위 가중치(시드 0)의 헤드 하나; 내적 {n * n}개의 차이: 행과 열 {small(apart)}, 행렬의 곱과
            {small(off)}""",
        ),
    )


def _introduction(n: int) -> Phrase:
    return Phrase(
        f"""K has {n} rows, a key of {D_K} numbers for each word. Its transpose K^T has {n} columns: the same keys,
        written downward. No number is changed, none is added up. It is turned because of how a product of matrices is
        laid out: it takes a row of the left one and a column of the right one. With K^T on the right, the row is a
        query and the column a key.""",
        f"""K에는 행이 {n}개 있고, 행마다 한 단어의 키(수 {D_K}개)가 있습니다. 전치한 K^T에는 열이 {n}개 있습니다.
        같은 키를 세로로 적은 것으로, 바뀌거나 더해지는 수는 없습니다. 돌려놓는 까닭은 행렬의 곱이 왼쪽 행렬의 행과
        오른쪽 행렬의 열을 곱하도록 정해져 있기 때문입니다. 오른쪽에 K^T를 두면 행은 쿼리, 열은 키가 됩니다.""",
    )


def _laid_out(key: Tensor) -> Table:
    rows: list[tuple[str | float, ...]] = [
        (Phrase(f"K, row of “{WORDS[KEY]}”", f"K, “{WORDS[KEY]}”의 행"), *key[KEY].tolist()),
        (Phrase(f"K^T, column of “{WORDS[KEY]}”", f"K^T, “{WORDS[KEY]}”의 열"), *key.T[:, KEY].tolist()),
    ]
    return Table(
        title=Phrase("the same key, read from both", "두 행렬에서 읽은 같은 키"),
        columns=(Phrase("where", "어디"), *numbered(D_K)),
        rows=tuple(rows),
    )


def _one_product(query: Tensor, key: Tensor, score: float) -> Phrase:
    terms = " + ".join(f"({q:.3f} x {k:.3f})" for q, k in zip(query.tolist(), key[KEY].tolist(), strict=True))
    return Phrase(
        f"""The query of “{WORDS[QUERY]}” times either: {terms} = {score:.3f}. The meaning of a key is what it does
        in this sum, and the sum is the same.""",
        f"""“{WORDS[QUERY]}”의 쿼리에 어느 쪽을 곱해도 {terms} = {score:.3f}입니다. 키의 뜻은 이 합에서 하는 일이고,
        합은 같습니다.""",
    )


def _all_of_them(by_rows: Tensor, apart: float, off: float) -> Phrase:
    n = by_rows.numel()
    return Phrase(
        f"""So it is for all {n} pairs of words: read from rows and from columns, the dot products differ by
        {small(apart)}. One product Q K^T computes them at once (largest difference {small(off)}, rounding).""",
        f"""단어 쌍 {n}개 모두 그렇습니다. 행에서 읽은 내적과 열에서 읽은 내적의 차이는 {small(apart)}입니다. Q
        K^T는 이것을 곱 한 번으로 모두 계산합니다(최대 차이 {small(off)}, 반올림).""",
    )


def _without(refused: str, wrong: Tensor, right: Tensor) -> tuple[Phrase, Table, Phrase]:
    n = len(SQUARE)
    place = SQUARE.index(WORDS[KEY])
    table = Table(
        title=Phrase(
            f"“{' '.join(SQUARE)}”, the row of “{SQUARE[QUERY]}”: with K^T, and with K",
            f"“{' '.join(SQUARE)}”, “{SQUARE[QUERY]}”의 행: K^T로, 그리고 K로",
        ),
        columns=(Phrase("product", "곱"), *(Phrase(f"column {i}", f"{i}번째 열") for i in range(n))),
        rows=(("Q K^T", *right[QUERY].tolist()), ("Q K", *wrong[QUERY].tolist())),
    )
    return (
        Phrase(
            f"""Without the transpose the sizes do not fit, and torch refuses: “{refused}”. But take as many words
            as a key has numbers, {n}, and Q K is computed without a complaint:""",
            f"""전치하지 않으면 크기가 맞지 않아 torch가 거절합니다: “{refused}”. 그러나 단어 수가 키의 수 개수와
            같으면({n}) Q K도 아무 말 없이 계산됩니다.""",
        ),
        table,
        Phrase(
            f"""These numbers are no scores. Number {place} of Q K adds up number {place} of all keys, each times
            another number of the query: it mixes the words, and compares no query with a key. So check shapes with
            sizes that differ.""",
            f"""이 수들은 스코어가 아닙니다. Q K의 {place}번째 수는 모든 키의 {place}번째 수에 쿼리의 서로 다른 수를
            곱해 더한 것입니다. 단어들을 섞을 뿐, 쿼리를 키와 비교하지 않습니다. 그래서 모양은 서로 다른 크기로
            확인해야 합니다.""",
        ),
    )


def _numbers(
    title: Phrase, values: Tensor, rows: Sequence[str], columns: Sequence[str], axes: tuple[Phrase, Phrase]
) -> Matrix:
    top = float(values.abs().max())
    return Matrix(title, values.numpy(), tuple(rows), tuple(columns), *axes, limits=(-top, top), diverging=True)
