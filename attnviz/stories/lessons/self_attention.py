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
from attnviz.text.phrase import Phrase, Texts

WORDS = ("I", "love", "you", "all")
D_MODEL, D_K, N_HEADS = 20, 5, 4
NOT_A_DIVISOR = 3  # heads among which the width cannot be shared out
SEED = 0
QUERY, KEY = (
    1,
    3,
)  # the cell that is computed number by number: the row of "love", the column of "all"
TEXTS = Texts(
    """
title | “{word}” looks most at “{most}” ({weight:.2f}); {N_HEADS} heads at once and one by one differ by {heads}
    | “{word}”: 가장 많이 보는 단어는 “{most}” ({weight:.2f}); 헤드 {N_HEADS}개를 한꺼번에 또는 하나씩, 차이 {heads}
weights | the weights: the softmax of each row of scores; each row sums to 1
    | 가중치: 스코어의 행마다 소프트맥스, 행의 합은 1
output | the output: in each row the four values, each times its weight, added up
    | 출력: 행마다 네 밸류에 가중치를 곱해 더한 것
receipt | verified: max difference {proved} between weights times values and the head's own output, {heads} between four
    heads side by side and one after another, {three} between one projection and three
    | 검증됨: 최대 차이 {proved}(가중치 x 밸류와 헤드 자신의 출력), {heads}(헤드 넷을 나란히 계산한 것과 하나씩 계산한
    것), {three}(투영 하나와 셋)
one_head | Four words, “{words}”: each is a vector of {D_MODEL} numbers, and its position is added to it. One head
    projects every vector three times, to a query, a key and a value of {D_K} numbers each. The query of a word is
    compared with the key of every word, itself included: that is why it is called self-attention. Softmax(Q K^T /
    sqrt({D_K})) gives {n} x {n} weights, and the weights mix the values: what comes out has the shape {shape}. The
    projections are random here, always the same ones; a trained model has learned them.
    | 네 단어 “{words}”: 단어마다 수 {D_MODEL}개로 된 벡터가 있고, 여기에 위치를 더합니다. 헤드 하나는 모든 벡터를 세 번
    투영해 수 {D_K}개짜리 쿼리, 키, 밸류를 만듭니다. 한 단어의 쿼리를 자기 자신을 포함한 모든 단어의 키와 비교하므로
    셀프 어텐션이라고 부릅니다. Softmax(Q K^T / sqrt({D_K}))가 가중치 {n} x {n}개를 만들고, 이 가중치로 밸류를 섞습니다.
    나오는 것의 모양은 {shape}입니다. 여기서 투영 행렬은 무작위이지만 늘 같은 것이고, 학습된 모델은 이것을 배워서
    얻습니다.
shapes | what there is on the way, and its shape: sentences, words, numbers | 계산 과정의 값과 모양: 문장, 단어, 수
one_cell | The score of “{word}” for “{other}” is the query of the one times the key of the other, divided by
    sqrt({D_K}): {score}. Its weight is exp({cell:.3f}) divided by the sum of the exponentials of its row: {weight}.
    | “{word}”의 “{other}”에 대한 스코어는 앞 단어의 쿼리와 뒤 단어의 키를 곱해 sqrt({D_K})로 나눈 값입니다: {score}.
    가중치는 exp({cell:.3f})를 그 행의 지수 함수 값의 합으로 나눈 것입니다: {weight}.
four_heads | One head finds one pattern. {n} heads share the {D_MODEL} numbers, {D_MODEL} / {n} = {d_k} each, and look
    side by side: the weights have the shape {shape}. What the heads give is put in a row, {n} x {d_k} = {D_MODEL}
    numbers a word, and one more projection, W^O, mixes it: {mixed}. The same heads computed one after another give the
    same, {same}. The width must be shared out evenly; with {NOT_A_DIVISOR} heads the model refuses: “{refused}”.
    | 헤드 하나는 패턴 하나를 찾습니다. 헤드 {n}개가 수 {D_MODEL}개를 {D_MODEL} / {n} = {d_k}개씩 나누어 맡아 나란히
    봅니다. 가중치의 모양은 {shape}입니다. 헤드들의 결과를 한 줄로 이으면 단어마다 {n} x {d_k} = {D_MODEL}개의 수가
    되고, 투영 W^O가 이것을 섞습니다: {mixed}. 같은 헤드를 하나씩 계산해도 결과는 같습니다({same}). 너비는 고르게
    나뉘어야 합니다. 헤드가 {NOT_A_DIVISOR}개면 모델이 거절합니다: “{refused}”.
one_projection | Queries, keys and values are three projections of the same vectors, {n_in} x {n_part} each. Put side by
    side they are one projection, {n_in} x {n_out}, and one multiplication gives all three: {shape}. Split into three it
    is what the separate ones give, {exact}. That is how GPT-2 stores them: one large multiplication is faster than
    three small ones.
    | 쿼리, 키, 밸류는 같은 벡터를 세 번 투영한 것이고, 투영 행렬은 각각 {n_in} x {n_part}입니다. 셋을 나란히 붙이면
    {n_in} x {n_out} 행렬 하나가 되어 곱셈 한 번으로 셋을 모두 얻습니다: {shape}. 이것을 셋으로 나누면 따로 계산한 것과
    같습니다({exact}). GPT-2가 이렇게 저장합니다. 큰 곱셈 한 번이 작은 곱셈 세 번보다 빠르기 때문입니다.
number_by_number | “{word}” in head 0, number by number: columns of the one product, and each projection alone
    | 헤드 0의 “{word}”, 수 하나하나: 곱 하나에서 잘라 낸 열과 따로 계산한 투영
scores | the scores: each row is a query, each column a key | 스코어: 행은 쿼리, 열은 키
shapes_columns | step; formula; shape | 단계; 식; 모양
steps | vectors; queries; keys; values; scores; weights; output | 벡터; 쿼리; 키; 밸류; 스코어; 가중치; 출력
formulas | X = words + positions; Q = X W^Q + b^Q; K = X W^K + b^K; V = X W^V + b^V; S = Q K^T / sqrt({D_K}); A =
    softmax(S), row by row; A V
    | X = 단어 + 위치; Q = X W^Q + b^Q; K = X W^K + b^K; V = X W^V + b^V; S = Q K^T / sqrt({D_K}); A = softmax(S),
    행마다; A V
a_word | word | 단어
to_the_last_bit | to the last bit | 마지막 비트까지 똑같음
exactly | exactly, to the last bit | 마지막 비트까지 똑같음
rounded | but for rounding (largest difference {apart}) | 반올림 말고는 차이 없음, 최대 {apart}
parts | query; key; value | 쿼리; 키; 밸류
ways | of the one product; alone | 곱 하나에서; 따로
what | {what}, {how} | {what}, {how}
columns | {first} to {last} | {first}~{last}
number_columns | what; columns | 무엇; 열
view | One head: “{word}” looks most at “{at}” ({weight:.2f}).
    | 헤드 하나: “{word}”이(가) 가장 많이 보는 단어는 “{at}” ({weight:.2f})입니다.
view_all | {N_HEADS} heads side by side on the same words. | 같은 단어를 나란히 보는 헤드 {N_HEADS}개.
one_pattern | one head: weights | 헤드 하나: 가중치
head_pattern | head {i} of {N_HEADS}: weights | 헤드 {N_HEADS}개 중 {i}번: 가중치
""",
    globals(),
)


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
    """What one head computes, with all that lies between its vectors and its output."""
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
    """What is said to values that it cannot compute with."""
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
    row, n, n_out = head.weights[0, QUERY], weights.shape[1], together.shape[-1]
    say = TEXTS.filled(
        word=WORDS[QUERY],
        other=WORDS[KEY],
        most=WORDS[int(row.argmax())],
        weight=float(row.max()),
        proved=proved,
        heads=heads,
        three=three,
        words=" ".join(WORDS),
        n=len(WORDS),
        shape=_shape(head.output),
    )
    four_heads = say(
        "four_heads",
        n=n,
        d_k=D_MODEL // n,
        shape=_shape(weights),
        mixed=_shape(output),
        same=_sameness(difference, "to_the_last_bit"),
        refused=refusal(MultiHeadAttention, D_MODEL, NOT_A_DIVISOR),
    )
    one_projection = say(
        "one_projection",
        n_in=x.shape[-1],
        n_out=n_out,
        n_part=n_out // 3,
        shape=_shape(together),
        exact=_sameness(other, "exactly"),
    )
    steps = zip(say.names("steps"), say.names("formulas"), map(_shape, (x, *head)), strict=True)
    tables = (
        Table(
            say(title),
            (say("a_word"), *columns),
            tuple((w, *r) for w, r in zip(WORDS, rows.tolist(), strict=True)),
        )
        for title, columns, rows in (
            ("scores", WORDS, head.scores[0]),
            ("weights", WORDS, head.weights[0]),
            ("output", number_names(D_K), head.output[0]),
        )
    )
    scores, *others = tables
    records = alone.attention(WORDS), side_by_side.attention(WORDS)
    panels = say("one_pattern"), *(say("head_pattern", i=i) for i in range(N_HEADS))
    return story(
        say,
        (
            "one_head",
            table(say, "shapes", steps),
            scores,
            _one_cell(say, head),
            *others,
            four_heads,
            one_projection,
            _number_by_number(say, together, separate),
        ),
        (
            square(*one, WORDS)
            for one in zip(panels, torch.cat([head.weights, weights[0]]).numpy(), strict=True)
        ),
        views=(
            row_view(say, records[0], (0, 0), QUERY, 0),
            StoryView(text=say("view_all"), record=1),
        ),
        records=records,
    )


def written_out(query: Tensor, key: Tensor) -> str:
    """The products of two vectors as a sum."""
    return " + ".join(
        f"({q:.3f} x {k:.3f})" for q, k in zip(query.tolist(), key.tolist(), strict=True)
    )


def _one_cell(say: Texts, head: OneHead) -> Phrase:
    query, key, row = head.query[0, QUERY], head.key[0, KEY], head.scores[0, QUERY]
    score = f"({written_out(query, key)}) / {D_K**0.5:.3f} = {sum((query * key).tolist()) / D_K**0.5:.3f}"
    total = float(row.exp().sum())
    weight = f"{row[KEY].exp():.3f} / {total:.3f} = {row[KEY].exp() / total:.3f}"
    return say("one_cell", score=score, cell=float(row[KEY]), weight=weight)


def _sameness(difference: float, exactly: str) -> Phrase:
    return TEXTS("rounded", apart=small(difference)) if difference else TEXTS(exactly)


def _number_by_number(say: Texts, together: Tensor, separate: Tensor) -> Table:
    """The query, key and value of one word in head 0: cut out of the one product, and computed alone."""
    n, rows = together.shape[-1] // 3, list[tuple[str | float, ...]]()
    for number, what in enumerate(say.names("parts")):
        for how, vector in zip(say.names("ways"), (together, separate), strict=True):
            first, last = number * n, number * n + D_K - 1
            numbers = vector[0, QUERY, first : last + 1].tolist()
            rows.append(
                (say("what", what=what, how=how), say("columns", first=first, last=last), *numbers)
            )
    return Table(
        say("number_by_number"),
        (*say.names("number_columns"), *number_names(D_K)),
        tuple(rows),
        digits=4,
    )


def _shape(tensor: Tensor) -> str:
    return f"({', '.join(map(str, tensor.shape))})"
