"""The words of walkthroughs, in English and in Korean: steps and grids, the phrases of every view, titles and notes."""

from __future__ import annotations

from attnviz.text.notes import NOTES as OF_RECORDS
from attnviz.text.notes import Templates
from attnviz.walkthroughs.operations import OPERATIONS, Text

LANGUAGES = ("en", "ko")

TEXTS: dict[str, Text] = {
    "X": Text(
        ("Input X", "One row of numbers for each token: what this calculation begins with."),
        ("입력 X", "토큰마다 숫자 한 줄: 이 계산이 시작되는 곳입니다."),
    ),
    "x": Text(
        ("Input of the query x", "The row of the input that belongs to the query's token."),
        ("쿼리의 입력 x", "입력 가운데 쿼리 토큰에 해당하는 한 줄입니다."),
    ),
    "N": Text(
        ("Normalised input N", "One row of numbers for each token, normalised: what attention reads."),
        ("정규화한 입력 N", "토큰마다 정규화한 숫자 한 줄: 어텐션이 읽는 입력입니다."),
    ),
    "n": Text(
        ("Normalised input of the query n", "The row of the normalised input that belongs to the query's token."),
        ("쿼리의 정규화한 입력 n", "정규화한 입력 가운데 쿼리 토큰에 해당하는 한 줄입니다."),
    ),
    "E": Text(
        ("Token embeddings E", "One row for each token: which word it is."),
        ("토큰 임베딩 E", "토큰마다 한 줄: 어떤 단어인지 나타냅니다."),
    ),
    "P": Text(
        ("Positions P", "One row for each token: where in the sentence it stands."),
        ("위치 인코딩 P", "토큰마다 한 줄: 문장에서 몇 번째인지 나타냅니다."),
    ),
    "Wq": Text(
        ("Query weights Wq", "The projection from input to query."),
        ("쿼리 가중치 Wq", "입력을 쿼리로 바꾸는 행렬입니다."),
    ),
    "Wk": Text(
        ("Key weights Wk", "The projection from input to key."), ("키 가중치 Wk", "입력을 키로 바꾸는 행렬입니다.")
    ),
    "Wv": Text(
        ("Value weights Wv", "The projection from input to value."),
        ("밸류 가중치 Wv", "입력을 밸류로 바꾸는 행렬입니다."),
    ),
    "Wo": Text(
        ("Output weights Wo", "The projection that mixes the contexts of all heads."),
        ("출력 가중치 Wo", "모든 헤드의 컨텍스트를 섞는 행렬입니다."),
    ),
    "bq": Text(("Query bias bq", "Added to each query."), ("쿼리 편향 bq", "쿼리마다 더합니다.")),
    "bk": Text(("Key bias bk", "Added to each key."), ("키 편향 bk", "키마다 더합니다.")),
    "bv": Text(("Value bias bv", "Added to each value."), ("밸류 편향 bv", "밸류마다 더합니다.")),
    "bo": Text(("Output bias bo", "Added to the output."), ("출력 편향 bo", "출력에 더합니다.")),
    "q": Text(
        ("Query q", "What one token looks for, as a row of numbers."),
        ("쿼리 q", "한 토큰이 무엇을 찾는지를 나타내는 벡터입니다."),
    ),
    "Q": Text(
        ("Queries Q", "What each token looks for: one row for each."),
        ("쿼리 Q", "각 토큰이 무엇을 찾는지: 토큰마다 한 줄입니다."),
    ),
    "K": Text(
        ("Keys K", "What queries are compared with: one row for each token."),
        ("키 K", "각 토큰이 무엇으로 찾아지는지: 토큰마다 한 줄입니다."),
    ),
    "V": Text(
        ("Values V", "What each token contributes when it is attended to: one row for each."),
        ("밸류 V", "주목받았을 때 각 토큰이 넘겨주는 내용: 토큰마다 한 줄입니다."),
    ),
    "W": Text(
        ("Score weights W", "A projection, part of how a query is compared with a key."),
        ("스코어 가중치 W", "쿼리와 키를 비교할 때 쓰는 행렬입니다."),
    ),
    "U": Text(
        ("Score weights U", "A projection, part of how a key is compared with a query."),
        ("스코어 가중치 U", "키를 쿼리와 비교할 때 쓰는 행렬입니다."),
    ),
    "v": Text(
        ("Score vector v", "What turns a compared pair into one number, the score."),
        ("스코어 벡터 v", "비교한 결과를 스코어 하나로 바꾸는 벡터입니다."),
    ),
    "B": Text(
        ("Position bias B", "A number for each query and key, by how far apart they stand."),
        ("위치 편향 B", "쿼리와 키의 거리에 따라 정해지는 값입니다."),
    ),
    "sink": Text(
        ("Sink", "A score for looking at nothing: it takes its share of the attention."),
        ("싱크(sink)", "아무것도 보지 않는 자리의 스코어: 어텐션의 일부를 가져갑니다."),
    ),
    "S": Text(
        ("Segments S", "One row for each token: which of two sentences it belongs to."),
        ("세그먼트 S", "토큰마다 한 줄: 두 문장 가운데 어느 쪽인지 나타냅니다."),
    ),
    "gain": Text(
        ("Gain", "By how much each number of a normalised row is stretched."),
        ("게인", "정규화한 줄의 각 수에 곱해 늘이는 값입니다."),
    ),
    "shift": Text(
        ("Shift", "What is added to each number of a normalised row."),
        ("시프트", "정규화한 줄의 각 수에 더하는 값입니다."),
    ),
    "W1": Text(
        ("Feed-forward weights W1", "The projection to the longer row."),
        ("피드포워드 가중치 W1", "더 긴 벡터로 바꾸는 행렬입니다."),
    ),
    "W2": Text(
        ("Feed-forward weights W2", "The projection back to the layer's width."),
        ("피드포워드 가중치 W2", "층의 너비로 되돌리는 행렬입니다."),
    ),
    "Wg": Text(
        ("Gate weights Wg", "The projection that sets how much of each number of the longer row passes."),
        ("게이트 가중치 Wg", "더 긴 벡터의 각 수를 얼마나 통과시킬지 정하는 행렬입니다."),
    ),
    "bg": Text(("Gate bias bg", "Added to the gate."), ("게이트 편향 bg", "게이트에 더합니다.")),
    "b1": Text(("Feed-forward bias b1", "Added to the longer row."), ("피드포워드 편향 b1", "더 긴 벡터에 더합니다.")),
    "b2": Text(
        ("Feed-forward bias b2", "Added to the row projected back."), ("피드포워드 편향 b2", "되돌린 벡터에 더합니다.")
    ),
    "y": Text(
        ("Word vector y", "The vector of the word generated before."),
        ("단어 벡터 y", "바로 앞에서 생성한 단어의 벡터입니다."),
    ),
    "Y": Text(
        ("Word vectors Y", "At each step the vector of the word generated before."),
        ("단어 벡터 Y", "단계마다 바로 앞에서 생성한 단어의 벡터입니다."),
    ),
    "M": Text(
        ("Other sentence M", "One row of numbers for each word that can be looked at."),
        ("다른 문장 M", "볼 수 있는 단어마다 숫자 한 줄입니다."),
    ),
    "contexts": Text(
        ("Context vectors of the other heads", "What the same query gets from each of them."),
        ("다른 헤드들의 컨텍스트 벡터", "같은 쿼리가 각 헤드에서 얻는 결과입니다."),
    ),
    "input": Text(
        ("Input", "Each token's embedding plus its position is what the layer reads."),
        ("입력", "토큰 임베딩에 위치 인코딩을 더한 것이 이 층의 입력입니다."),
        role="before",
    ),
    "input_norm": Text(
        (
            "Normalised input",
            "Each row is brought to mean 0 and variance 1, then stretched and moved: what attention reads.",
        ),
        ("정규화한 입력", "각 줄을 평균 0, 분산 1로 맞춘 뒤, 게인을 곱하고 시프트를 더합니다. 어텐션의 입력입니다."),
        role="before",
    ),
    "input_rms_norm": Text(
        (
            "Normalised input (RMS)",
            "Each row is brought to one size, the mean of its squares 1, then stretched: what attention reads.",
        ),
        ("정규화한 입력 (RMS)", "각 줄의 크기를 같게 맞춘 뒤(제곱의 평균이 1), 게인을 곱합니다. 어텐션의 입력입니다."),
    ),
    "query": Text(
        ("Query", "The input is projected to a query."),
        ("쿼리", "입력을, 그 토큰이 무엇을 찾는지 나타내는 쿼리로 바꿉니다."),
        role="before",
    ),
    "keys": Text(
        ("Keys", "Each input is projected to a key."),
        ("키", "각 입력을, 그 토큰이 무엇으로 찾아지는지 나타내는 키로 바꿉니다."),
        role="before",
    ),
    "values": Text(
        ("Values", "Each input is projected to a value."),
        ("밸류", "각 입력을, 그 토큰이 넘겨줄 내용인 밸류로 바꿉니다."),
        role="before",
    ),
    "scores": Text(
        ("Attention scores", "The query is compared with each key: the better they fit, the larger the score."),
        ("어텐션 스코어", "쿼리를 각 키와 비교합니다. 서로 잘 맞을수록 어텐션 스코어가 커집니다."),
        short=("score", "스코어"),
        role="by key",
    ),
    "scaled": Text(
        ("Scaled scores", "Long vectors give large scores; this brings them back, so that the softmax stays soft."),
        (
            "스케일된 어텐션 스코어",
            "벡터가 길수록 스코어가 커지므로, 소프트맥스가 한쪽으로 쏠리지 않도록 크기를 줄입니다.",
        ),
        short=("scaled", "스케일"),
        role="by key",
    ),
    "bias": Text(
        ("Position bias", "A number for how far apart query and key stand is added to each score."),
        ("위치 편향", "쿼리와 키가 서로 얼마나 떨어져 있는지에 따른 값을 각 스코어에 더합니다."),
        short=("with bias", "편향 더함"),
        role="by key",
    ),
    "alignment": Text(
        ("Alignment vectors", "Each value is multiplied by its weight: what each key contributes."),
        ("정렬(alignment) 벡터", "각 밸류에 가중치를 곱합니다. 각 키가 얼마나 보태는지를 나타냅니다."),
        short=("alignment", "정렬 벡터"),
        role="by key",
    ),
    "context": Text(
        ("Context vector", "What all keys contribute is added up: this is the head's result for the query."),
        ("컨텍스트 벡터", "모든 키의 정렬 벡터를 더합니다. 이것이 쿼리가 얻는 결과입니다."),
    ),
    "concatenated": Text(
        ("Concatenation", "The vectors are put side by side into one longer row."),
        ("이어 붙이기(concatenation)", "벡터들을 나란히 이어 붙여 더 긴 벡터 하나로 만듭니다."),
    ),
    "output": Text(
        ("Output", "The output weights mix what the heads found into one vector."),
        ("출력", "출력 가중치로 여러 헤드가 찾은 것을 하나의 벡터로 섞습니다."),
    ),
    "residual": Text(
        ("Residual connection", "The input itself is added again, so that nothing of it is lost."),
        ("잔차 연결", "원래 입력을 다시 더해, 입력의 내용이 사라지지 않게 합니다."),
    ),
    "feed_forward_1": Text(
        ("Feed-forward, first projection", "Each token by itself is projected to a longer row."),
        ("피드포워드, 첫째 변환", "토큰마다 따로 더 긴 벡터로 바꿉니다."),
    ),
    "feed_forward_gate": Text(
        ("Feed-forward, gate", "A second projection to a row as long: it sets how much of each number passes."),
        ("피드포워드, 게이트", "같은 길이의 벡터를 하나 더 만듭니다. 각 수를 얼마나 통과시킬지 정하게 됩니다."),
    ),
    "gated": Text(
        ("Gate opened", "Number by number the longer row is multiplied by its gate."),
        ("게이트 통과", "더 긴 벡터의 각 수에 그 게이트의 값을 곱합니다."),
    ),
    "feed_forward_2": Text(
        ("Feed-forward, second projection", "The longer row is projected back to the layer's width."),
        ("피드포워드, 둘째 변환", "길어진 벡터를 다시 층의 너비로 되돌립니다."),
    ),
    "residual_2": Text(
        ("Residual connection around the feed-forward part", "What went into the feed-forward part is added again."),
        ("피드포워드의 잔차 연결", "피드포워드에 들어간 값을 다시 더합니다."),
    ),
    "residual_cross": Text(
        ("Residual connection around cross attention", "What was known before looking across is added again."),
        ("교차 어텐션의 잔차 연결", "다른 문장을 보기 전의 값을 다시 더합니다."),
    ),
    "residual_out": Text(
        (
            "Last residual connection",
            "What was there before the feed-forward part is added again: the layer's own output.",
        ),
        ("마지막 잔차 연결", "피드포워드 이전의 값을 다시 더합니다. 이것이 이 층의 출력입니다."),
    ),
    "norm_out": Text(
        ("Last layer normalisation", "Again mean 0 and variance 1, gain and shift: the layer's own output."),
        ("마지막 층 정규화", "다시 평균 0, 분산 1로 맞추고 게인과 시프트를 적용합니다. 이것이 이 층의 출력입니다."),
    ),
    "rms_norm_out": Text(
        ("Last root mean square normalisation", "Again one size for each row, and a gain: the layer's own output."),
        ("마지막 RMS 정규화", "다시 각 줄의 크기를 같게 맞추고 게인으로 늘입니다. 이것이 이 층의 출력입니다."),
    ),
}
"""Grids that are given, and steps; a step that has the name of its operation is explained by that."""


def words_of(name: str) -> Text | None:
    """The words of a step or a grid: its own, or those of the operation of this name."""
    return TEXTS.get(name) or (OPERATIONS[name].text if name in OPERATIONS else None)


def _of_role(role: str) -> tuple[str, ...]:
    return tuple(name for name in (*OPERATIONS, *TEXTS) if (text := words_of(name)) is not None and text.role == role)


BY_KEY = _of_role("by key")
"""Steps that make a number or a vector for each key of a query."""
BEFORE = _of_role("before")
"""Steps that make what attention works on."""

PHRASES = {
    "en": {
        "finds": "“{query}” looks most at {key}: {weight}",
        "finds one": "“{query}” can look at {key} only: {weight}",
        "itself": "itself",
        "finds all": "“{query}” looks at all keys alike: {weight} each",
        "layer": "layer {n}",
        "head": "head {n}",
        "counted": "{where} (counted from 0)",
        "query is": "query: {name}",
        "row": "row {n}",
        "number": "number {n}",
        "key": "key",
        "value": "value",
        "context sum": "context = sum of the alignment vectors",
        "lengths": "vectors have {n} numbers: … stands for those left out",
        "masked": "masked",
        "masked keys": "what is masked gets a score of -∞: its weight is 0",
        "sum": "sum",
        "other keys": "{n} more keys, with smaller weights; together {total}",
        "more rows": "... {n} more rows",
        "by key": "Key by key:",
        "rest": "{rest} of the attention is for looking at nothing",
        "signed": "numbers below 0, and above",
        "weights": "weights, from 0 to 1",
        "colours": "red is above 0 and blue below, in each matrix by itself",
        "lit": "; the framed row has the largest weight; from the weights on, a line is as thick as its weight",
        "left out": "; … stands for numbers left out: -o FILE.md or FILE.json writes all",
        "products": "matrices side by side, as in q K^T, are multiplied",
        "cells": "; ⊙ multiplies cell by cell",
        "ascii": "Korean needs a terminal that knows Unicode: this is English",
        "same": "recomputed {own} is exactly the model's own",
        "near": "recomputed {own} is {difference} from the model's own",
        "from input": " ({difference} from the input on)",
        "more": "more: --full (every step), {options}-o FILE.html, --interactive",
        "model": "no number of this model's own to compare with",
        "hand": "no model to compare with",
        "step": "step {n} of {total}",
        "lines": "lines {first}-{last} of {n}, more: ↑ ↓",
        "keys": "next →, back ←, first Home, last End, quit q",
        "short step": "step {n} of {total}",
        "short lines": "lines {first}-{last} of {n} ↑ ↓",
        "short keys": "next →, back ←, quit q",
        "shorter step": "step {n}/{total}",
        "shorter lines": "{first}-{last} of {n} ↑ ↓",
        "shorter keys": "next →, back ←, quit q",
        "shortest step": "{n}/{total}",
        "shortest lines": "↑ ↓",
        "shortest keys": "→ ← q",
    },
    "ko": {
        "finds": "“{query}”: 가장 많이 보는 단어는 {key} ({weight})",
        "finds one": "“{query}”: 볼 수 있는 단어는 {key}뿐 ({weight})",
        "itself": "자기 자신",
        "finds all": "“{query}”: 모든 키를 똑같이 봄 (각각 {weight})",
        "layer": "층 {n}",
        "head": "헤드 {n}",
        "counted": "{where} (0부터 셈)",
        "query is": "쿼리: {name}",
        "row": "{n}행",
        "number": "{n}번 수",
        "key": "키",
        "value": "밸류",
        "context sum": "컨텍스트 = 정렬 벡터의 합",
        "lengths": "벡터의 수는 {n}개: …는 생략한 수",
        "masked": "가림",
        "masked keys": "가린 키의 스코어는 -∞이므로 가중치가 0",
        "sum": "합",
        "other keys": "가중치가 더 작은 키 {n}개 더 있음, 합하면 {total}",
        "more rows": "... {n}줄 더 있음",
        "by key": "키마다 보기:",
        "rest": "아무것도 보지 않는 몫: {rest}",
        "signed": "0보다 작은 수와 큰 수",
        "weights": "0에서 1까지의 가중치",
        "colours": "빨강은 0보다 크고 파랑은 0보다 작음 (행렬마다 따로)",
        "lit": "; 테두리를 두른 줄의 가중치가 가장 큼; 가중치 뒤의 선은 가중치만큼 굵음",
        "left out": "; …은 생략한 수: -o FILE.md나 FILE.json에 모두 있음",
        "products": "q K^T처럼 나란히 쓴 행렬은 행렬곱",
        "cells": "; ⊙는 칸마다 곱하기",
        "same": "다시 계산한 {own}: 모델 자신의 값과 정확히 같음",
        "near": "다시 계산한 {own}: 모델 자신의 값과의 차이 {difference}",
        "from input": " (입력부터는 {difference})",
        "more": "더 보기: --full (모든 단계), {options}-o FILE.html, --interactive",
        "model": "이 모델에서 비교할 값이 없음",
        "hand": "직접 넣은 수: 비교할 모델이 없음",
        "step": "단계 {n}/{total}",
        "lines": "{n}줄 중 {first}-{last}, 더 보기 ↑ ↓",
        "keys": "다음 →, 이전 ←, 처음 Home, 끝 End, 나가기 q",
        "short step": "단계 {n}/{total}",
        "short lines": "{n}줄 중 {first}-{last} ↑ ↓",
        "short keys": "다음 →, 이전 ←, 나가기 q",
        "shorter step": "{n}/{total}",
        "shorter lines": "{first}-{last}/{n} ↑ ↓",
        "shorter keys": "다음 →, 이전 ←, q",
        "shortest step": "{n}/{total}",
        "shortest lines": "↑ ↓",
        "shortest keys": "→ ← q",
        "verified": "검증됨: 층 {n}개에서 최대 차이 {difference}",
    },
}
"""What views say beside these, by language."""


def _of_model(where: tuple[str, str], looking: tuple[str, str]) -> tuple[str, str]:
    return f"{{model}}, {where[0]}: {looking[0]}", f"{{model}}, {where[1]}: {looking[1]}"


def _not_its_own(english: str, korean: str) -> tuple[str, str]:
    return (
        f"not the model's own way: {english}; it has no context of its own to compare with",
        f"모델 자신의 방식이 아님: {korean}; 비교할 컨텍스트가 모델에 없음",
    )


_HEAD = ("head {layer}.{head}", "헤드 {layer}.{head}")
_HEADS = ("layer {layer}, all heads", "층 {layer}, 모든 헤드")
_QUERY, _ALL = ("the query “{query}”", "쿼리 “{query}”"), ("all words", "모든 단어")
_SCORE, _DRAWN, _CAUSAL = (
    ("scores are {score}", "스코어는 {score}"),
    ("scores are {score} with weights drawn from seed {seed}", "스코어는 {score} (가중치는 시드 {seed}에서 뽑음)"),
    ("what comes after each word is hidden", "각 단어의 뒤는 가림"),
)
_NO_SINGLE_MAP = (
    "no single projection makes {names} (rotary positions, or a scaling, may come after it): ",
    ": 행렬 하나로 만들어지지 않음 (회전 위치 인코딩이나 스케일이 뒤따를 수 있음). 받은 값 그대로 씀",
)

NOTES: Templates = {
    **OF_RECORDS,
    "title_head_query": _of_model(_HEAD, _QUERY),
    "title_head_all": _of_model(_HEAD, _ALL),
    "title_layer_query": _of_model(_HEADS, _QUERY),
    "title_layer_all": _of_model(_HEADS, _ALL),
    "title_seq2seq": (
        "Attention by hand: a decoder's state and four states of the encoder",
        "손으로 계산하는 어텐션: 디코더의 상태 하나와 인코더의 상태 넷",
    ),
    "title_self_attention": (
        "Self-attention by hand: {n} tokens, {d_model} wide, to queries, keys and values {d_k} wide",
        "손으로 계산하는 셀프 어텐션: 너비 {d_model}인 토큰 {n}개에서 너비 {d_k}인 쿼리, 키, 밸류로",
    ),
    "title_exercise": ("Exercise {seed}: one query and {n} keys", "연습 문제 {seed}: 쿼리 하나와 키 {n}개"),
    "title_typed": ("Attention, from numbers typed by hand", "직접 넣은 수로 계산하는 어텐션"),
    "keys_are_values": ("the encoder's states are keys and values alike", "인코더의 상태가 키이면서 동시에 밸류임"),
    "goes_to_decoder": ("what was concatenated goes to the decoder", "이어 붙인 벡터는 디코더로 들어감"),
    "one_batch": (
        "a batch of one sentence: weights of shape {weights}, output of shape {output}",
        "문장 하나로 된 배치: 가중치의 모양 {weights}, 출력의 모양 {output}",
    ),
    "drawn_from_seed": ("small whole numbers, drawn from seed {seed}", "시드 {seed}에서 뽑은 작은 정수"),
    "no_values": (
        "no values are given: the calculation ends at the weights",
        "밸류가 주어지지 않음: 계산은 가중치에서 끝남",
    ),
    "word_before": (
        "{y} is the vector of the word generated before; with the context beside it, it goes to the decoder",
        "{y}: 바로 앞에서 생성한 단어의 벡터. 컨텍스트와 나란히 디코더로 들어감",
    ),
    "taken_as_given": (
        _NO_SINGLE_MAP[0] + "it is taken as attention was given it",
        "{names}" + _NO_SINGLE_MAP[1],
    ),
    "all_taken_as_given": (
        _NO_SINGLE_MAP[0].replace("{names}", "{names} and {last}") + "they are taken as attention was given them",
        "{names}, {last}" + _NO_SINGLE_MAP[1],
    ),
    "looks_twice": (
        "the layer looks twice: back at what was generated, then across at the other sentence, in grids named cross",
        "이 층은 두 번 봄: 먼저 앞에서 생성한 것을, 그다음 다른 문장을 봄 (이름에 cross가 붙은 표)",
    ),
    "output_left_out": ("the output projection, {shape} numbers, is left out", "출력 행렬(수 {shape}개)은 생략함"),
    "other_score": _not_its_own(*_SCORE),
    "other_score_drawn": _not_its_own(*_DRAWN),
    "other_score_causal": _not_its_own(f"{_SCORE[0]}, and {_CAUSAL[0]}", f"{_SCORE[1]}, {_CAUSAL[1]}"),
    "other_score_drawn_causal": _not_its_own(f"{_DRAWN[0]}, and {_CAUSAL[0]}", f"{_DRAWN[1]}, {_CAUSAL[1]}"),
    "made_causal": _not_its_own(*_CAUSAL),
}
"""Titles and notes by their codes; those of records are among them."""
