"""The words of walkthroughs, in English and in Korean: steps and grids, the phrases of every view, titles and notes."""

from __future__ import annotations

from collections.abc import Mapping

from attnviz.text.messages import Phrase
from attnviz.text.notes import NOTES as OF_RECORDS
from attnviz.text.notes import Templates
from attnviz.walkthroughs.operations import OPERATIONS, Text

_PROJECTIONS = {
    "q": (
        ("Query", "from input to query", "each query"),
        ("쿼리", "입력을 쿼리로 바꾸는", "쿼리마다"),
    ),
    "k": (("Key", "from input to key", "each key"), ("키", "입력을 키로 바꾸는", "키마다")),
    "v": (
        ("Value", "from input to value", "each value"),
        ("밸류", "입력을 밸류로 바꾸는", "밸류마다"),
    ),
    "o": (
        ("Output", "that mixes all contexts", "the output"),
        ("출력", "컨텍스트들을 섞는", "출력에"),
    ),
    "1": (
        ("Feed-forward", "to a longer row", "the longer row"),
        ("피드포워드", "더 긴 벡터로 바꾸는", "더 긴 벡터에"),
    ),
    "2": (
        ("Feed-forward", "back to the old width", "that row"),
        ("피드포워드", "원래 너비로 되돌리는", "그 벡터에"),
    ),
    "w": (
        ("Word", "from state to words", "each logit"),
        ("단어", "상태를 단어의 로짓으로 바꾸는", "로짓마다"),
    ),
    "x": (
        ("Cell", "of what the cell reads", "it"),
        ("셀 입력", "셀이 읽는 것을 바꾸는", "그 결과에"),
    ),
    "s": (
        ("Cell state", "of the state before", "it"),
        ("셀 상태", "이전 상태를 바꾸는", "그 결과에"),
    ),
    "c": (
        ("Attention", "from context and state to one vector", "it"),
        ("어텐션", "이어 붙인 것을 섞는", "그 결과에"),
    ),
    "g": (
        ("Gate", "that says how much passes", "the gate"),
        ("게이트", "얼마나 통과시킬지 정하는", "게이트에"),
    ),
}
"""By the letter behind W and b: what a projection is of, what it does, and what its bias is added to."""


TEXTS: dict[str, Text] = {
    "X": Text(
        ("Input X", "A row of numbers for each token: here this calculation begins."),
        ("입력 X", "토큰마다 숫자 한 줄: 계산은 여기서 시작됩니다."),
    ),
    "x": Text(
        ("Input of the query x", "The row of the query's token."),
        ("쿼리의 입력 x", "입력 가운데 쿼리 토큰의 한 줄입니다."),
    ),
    "N": Text(
        ("Normalised input N", "A normalised row for each token: attention reads these."),
        ("정규화한 입력 N", "토큰마다 정규화한 숫자 한 줄: 어텐션이 읽는 입력입니다."),
    ),
    "n": Text(
        ("Normalised input of the query n", "The normalised row of the query's token."),
        ("쿼리의 정규화한 입력 n", "정규화한 입력 가운데 쿼리 토큰의 한 줄입니다."),
    ),
    "E": Text(
        ("Token embeddings E", "A row for each token: which word it is."),
        ("토큰 임베딩 E", "토큰마다 한 줄: 어떤 단어인지 나타냅니다."),
    ),
    "P": Text(
        ("Positions P", "A row for each token: where in the sentence it stands."),
        ("위치 인코딩 P", "토큰마다 한 줄: 문장에서 몇 번째인지 나타냅니다."),
    ),
    "S": Text(
        ("Segments S", "A row for each token: which of two sentences it is in."),
        ("세그먼트 S", "토큰마다 한 줄: 두 문장 가운데 어느 쪽인지 나타냅니다."),
    ),
    "q": Text(
        ("Query q", "What one token looks for, as a row of numbers."),
        ("쿼리 q", "한 토큰이 무엇을 찾는지 나타내는 벡터입니다."),
    ),
    "Q": Text(
        ("Queries Q", "What each token looks for, a row for each."),
        ("쿼리 Q", "각 토큰이 무엇을 찾는지: 토큰마다 한 줄입니다."),
    ),
    "K": Text(
        ("Keys K", "What queries are compared with, a row for each token."),
        ("키 K", "쿼리와 비교되는 벡터: 토큰마다 한 줄입니다."),
    ),
    "V": Text(
        ("Values V", "What each token gives when it is attended to, a row for each."),
        ("밸류 V", "주목받았을 때 각 토큰이 넘겨주는 내용: 토큰마다 한 줄입니다."),
    ),
    "W": Text(
        ("Score weights W", "A projection used to compare a query with a key."),
        ("스코어 가중치 W", "쿼리와 키를 비교할 때 쓰는 행렬입니다."),
    ),
    "U": Text(
        ("Score weights U", "A projection used to compare a key with a query."),
        ("스코어 가중치 U", "키를 쿼리와 비교할 때 쓰는 행렬입니다."),
    ),
    "v": Text(
        ("Score vector v", "It turns a compared pair into one number, the score."),
        ("스코어 벡터 v", "비교한 결과를 스코어 하나로 바꾸는 벡터입니다."),
    ),
    "B": Text(
        ("Position bias B", "A number for each query and key, by how far apart they stand."),
        ("위치 편향 B", "쿼리와 키의 거리에 따라 정해지는 값입니다."),
    ),
    "sink": Text(
        ("Sink", "A score for looking at nothing: it takes a share of the attention."),
        ("싱크(sink)", "아무것도 보지 않는 자리의 스코어: 어텐션의 일부를 가져갑니다."),
    ),
    "gain": Text(
        ("Gain", "Each number of a normalised row is multiplied by it."),
        ("게인", "정규화한 줄의 각 수에 곱하는 값입니다."),
    ),
    "shift": Text(
        ("Shift", "It is added to each number of a normalised row."),
        ("시프트", "정규화한 줄의 각 수에 더하는 값입니다."),
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
        ("Other sentence M", "A row of numbers for each word that can be looked at."),
        ("다른 문장 M", "볼 수 있는 단어마다 숫자 한 줄입니다."),
    ),
    "weights": Text(
        ("Attention weights", "How much each value counts, from 0 to 1; together 1."),
        ("어텐션 가중치", "각 밸류를 얼마나 섞을지 나타냅니다. 0에서 1까지의 수이고 합은 1입니다."),
    ),
    "n_heads": Text(
        ("Number of heads n_heads", "Each head gets an equal part of the columns."),
        ("헤드의 수 n_heads", "열을 헤드의 수만큼 똑같이 나눕니다."),
    ),
    "angles": Text(
        (
            "Angles",
            "For each position and pair of numbers, in radians: position times a frequency.",
        ),
        ("각도", "위치마다, 수의 쌍마다 하나(라디안): 위치에 진동수를 곱한 값입니다."),
    ),
    "angle": Text(
        ("The query's angles", "Of all angles, the row of the query's position."),
        ("쿼리의 각도", "전체 각도에서 쿼리의 위치에 해당하는 행 하나를 꺼냅니다."),
        role="before",
    ),
    "gain_q": Text(
        ("Gain of the queries", "Each number of a normalised query is multiplied by it."),
        ("쿼리의 게인", "정규화한 쿼리의 각 수에 곱하는 값입니다."),
    ),
    "gain_k": Text(
        ("Gain of the keys", "Each number of a normalised key is multiplied by it."),
        ("키의 게인", "정규화한 키의 각 수에 곱하는 값입니다."),
    ),
    "shift_q": Text(
        ("Shift of the queries", "It is added to each number of a normalised query."),
        ("쿼리의 시프트", "정규화한 쿼리의 각 수에 더하는 값입니다."),
    ),
    "shift_k": Text(
        ("Shift of the keys", "It is added to each number of a normalised key."),
        ("키의 시프트", "정규화한 키의 각 수에 더하는 값입니다."),
    ),
    "head_norm": Text(
        ("Normalised by head", "Each row of this head is normalised before it is compared."),
        ("헤드별 정규화", "비교하기 전에 이 헤드의 각 줄을 정규화합니다."),
        role="before",
    ),
    "rotation_scale": Text(
        ("Rotary scaling", "Models stretched to long texts make all numbers larger by one factor."),
        ("회전 스케일", "긴 글에 맞춰 늘린 모델은 모든 수에 같은 값을 곱합니다."),
        role="before",
    ),
    "rotation": Text(
        ("Rotary position", "Each pair of numbers is turned by the angle of its position."),
        ("회전 위치 인코딩", "수를 둘씩 묶어, 그 위치의 각도만큼 회전합니다."),
        role="before",
    ),
    "split_query": Text(
        ("Queries by head", "Each head gets its own columns of the query."),
        ("쿼리를 헤드로 나누기", "헤드마다 쿼리의 열을 나누어 가집니다."),
        role="before",
    ),
    "split_keys": Text(
        ("Keys by head", "Each head gets its own columns of the keys."),
        ("키를 헤드로 나누기", "헤드마다 키의 열을 나누어 가집니다."),
        role="before",
    ),
    "split_values": Text(
        ("Values by head", "Each head gets its own columns of the values."),
        ("밸류를 헤드로 나누기", "헤드마다 밸류의 열을 나누어 가집니다."),
        role="before",
    ),
    "state": Text(
        ("Decoder's state", "What the model ends in at the query, behind all heads and layers."),
        ("디코더의 상태", "모든 헤드와 층을 지나 쿼리의 자리에서 얻는 마지막 벡터입니다."),
    ),
    "others": Text(
        (
            "All other words",
            "Log of the sum of their exp(logit): together like one word with this logit.",
        ),
        (
            "나머지 모든 단어",
            "exp(로짓)을 모두 더한 값의 로그: 합쳐서 로짓이 이 값인 단어 하나와 같습니다.",
        ),
    ),
    "cell": Text(
        ("Recurrent cell", "From what was concatenated and the state before to the new state."),
        ("순환 셀(recurrent cell)", "이어 붙인 벡터와 이전 상태로 새 상태를 만듭니다."),
    ),
    "attentional": Text(
        ("Attention and state, mixed", "Context and state, side by side, become one vector."),
        ("컨텍스트와 상태 섞기", "나란히 이어 붙인 컨텍스트와 상태를 벡터 하나로 만듭니다."),
    ),
    "tanh": Text(
        ("tanh", "Each number is bent to between -1 and 1."),
        ("tanh", "각 수를 -1과 1 사이로 눌러 줍니다."),
    ),
    "logits": Text(
        (
            "Fully connected layer",
            "The state is projected to words: a number, the logit, for each.",
        ),
        ("완전 연결 층", "상태를 단어마다 수 하나, 곧 로짓으로 바꿉니다."),
    ),
    "next_word": Text(
        (
            "Softmax over words",
            "Logits become probabilities: how likely each word is the next one.",
        ),
        ("단어에 대한 소프트맥스", "로짓이 확률이 됩니다. 각 단어가 다음 단어일 가능성입니다."),
    ),
    "contexts": Text(
        ("Context vectors of the other heads", "What the same query gets from each of them."),
        ("다른 헤드들의 컨텍스트 벡터", "같은 쿼리가 각 헤드에서 얻는 결과입니다."),
    ),
    **{
        f"W{letter}": Text(
            (f"{en} weights W{letter}", f"The projection {does}."),
            (f"{ko} 가중치 W{letter}", f"{does_ko} 행렬입니다."),
        )
        for letter, ((en, does, _), (ko, does_ko, _)) in _PROJECTIONS.items()
    },
    **{
        f"b{letter}": Text(
            (f"{en} bias b{letter}", f"Added to {to}."),
            (f"{ko} 편향 b{letter}", f"{to_ko} 더합니다."),
        )
        for letter, ((en, _, to), (ko, _, to_ko)) in _PROJECTIONS.items()
    },
    "input": Text(
        ("Input", "Token embedding plus position: the layer reads their sum."),
        ("입력", "토큰 임베딩에 위치 인코딩을 더한 것이 이 층의 입력입니다."),
        role="before",
    ),
    "input_norm": Text(
        (
            "Normalised input",
            "Each row gets mean 0, variance 1, gain and shift: attention reads it.",
        ),
        (
            "정규화한 입력",
            "각 줄을 평균 0, 분산 1로 맞춘 뒤 게인을 곱하고 시프트를 더합니다. 어텐션의 입력입니다.",
        ),
        role="before",
    ),
    "input_rms_norm": Text(
        ("Normalised input (RMS)", "Each row gets mean square 1, then a gain: attention reads it."),
        (
            "정규화한 입력 (RMS)",
            "각 줄을 제곱의 평균이 1이 되게 맞춘 뒤 게인을 곱합니다. 어텐션의 입력입니다.",
        ),
    ),
    "query": Text(
        ("Query", "The input is projected to a query."),
        ("쿼리", "입력을, 그 토큰이 무엇을 찾는지 나타내는 쿼리로 바꿉니다."),
        role="before",
    ),
    "keys": Text(
        ("Keys", "Each input is projected to a key."),
        ("키", "각 입력을, 쿼리와 비교될 키로 바꿉니다."),
        role="before",
    ),
    "values": Text(
        ("Values", "Each input is projected to a value."),
        ("밸류", "각 입력을, 그 토큰이 넘겨줄 내용인 밸류로 바꿉니다."),
        role="before",
    ),
    "scores": Text(
        ("Attention scores", "The query is compared with each key: a better fit, a larger score."),
        ("어텐션 스코어", "쿼리를 각 키와 비교합니다. 서로 잘 맞을수록 어텐션 스코어가 커집니다."),
        short=("score", "스코어"),
        role="by key",
    ),
    "scaled": Text(
        (
            "Scaled scores",
            "Long vectors give large scores; made smaller, they keep the softmax soft.",
        ),
        (
            "스케일된 어텐션 스코어",
            "벡터가 길수록 스코어가 커집니다. 소프트맥스가 한쪽으로 쏠리지 않도록 줄입니다.",
        ),
        short=("scaled", "스케일"),
        role="by key",
    ),
    "bias": Text(
        ("Position bias", "Each score gets a number for how far apart query and key stand."),
        ("위치 편향", "쿼리와 키의 거리에 따른 값을 각 스코어에 더합니다."),
        short=("with bias", "편향 더함"),
        role="by key",
    ),
    "row": Text(
        ("The query's row", "Of the input, the row of the query's token."),
        ("쿼리의 행", "전체 입력에서 쿼리 토큰에 해당하는 행 하나를 꺼냅니다."),
        role="before",
    ),
    "softcap": Text(
        ("Soft cap", "Scores are bent so that none passes the cap."),
        ("소프트 캡", "어떤 스코어도 상한을 넘지 않도록 부드럽게 눌러 줍니다."),
        short=("capped", "소프트 캡"),
        role="by key",
    ),
    "mask": Text(
        (
            "Mask",
            "Where the query may not look the score is minus infinity: the softmax makes it 0.",
        ),
        ("마스크", "쿼리가 보면 안 되는 자리는 -∞가 되고, 소프트맥스를 거치면 0이 됩니다."),
        short=("masked", "마스크"),
        role="by key",
    ),
    "softmax": Text(
        (
            "Softmax: the attention distribution",
            "The scores become weights from 0 to 1 that sum to 1.",
        ),
        ("소프트맥스: 어텐션 분포", "스코어가 0과 1 사이의, 합이 1인 어텐션 가중치가 됩니다."),
        short=("weight", "가중치"),
        role="by key",
    ),
    "alignment": Text(
        ("Alignment vectors", "Each value times its weight: what each key contributes."),
        (
            "정렬(alignment) 벡터",
            "각 밸류에 가중치를 곱합니다. 각 키가 얼마나 보태는지 나타냅니다.",
        ),
        short=("alignment", "정렬 벡터"),
        role="by key",
    ),
    "context": Text(
        ("Context vector", "The sum of the alignment vectors: the head's result for the query."),
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
        ("Residual connection", "The input is added again, so that nothing of it is lost."),
        ("잔차 연결", "원래 입력을 다시 더해, 입력의 내용이 사라지지 않게 합니다."),
    ),
    "feed_forward_1": Text(
        ("Feed-forward, first projection", "Each token by itself is projected to a longer row."),
        ("피드포워드, 첫째 행렬", "토큰마다 따로 더 긴 벡터로 바꿉니다."),
    ),
    "feed_forward_gate": Text(
        ("Feed-forward, gate", "A second row as long says how much of each number passes."),
        (
            "피드포워드, 게이트",
            "같은 길이의 벡터를 하나 더 만들어 각 수를 얼마나 통과시킬지 정합니다.",
        ),
    ),
    "gated": Text(
        ("Gate opened", "Each number of the longer row times its gate."),
        ("게이트 통과", "더 긴 벡터의 각 수에 그 게이트의 값을 곱합니다."),
    ),
    "feed_forward_2": Text(
        ("Feed-forward, second projection", "The longer row is projected back to the old width."),
        ("피드포워드, 둘째 행렬", "길어진 벡터를 다시 층의 너비로 되돌립니다."),
    ),
    "hidden": Text(
        ("Feed-forward, longer row", "What the first projection makes of each token."),
        ("피드포워드의 더 긴 벡터", "첫째 행렬이 토큰마다 만드는 벡터입니다."),
    ),
    "gate": Text(
        ("Gate of the feed-forward network", "How much of each number of the longer row passes."),
        ("피드포워드의 게이트", "더 긴 벡터의 각 수를 얼마나 통과시킬지 나타냅니다."),
    ),
    "narrowed": Text(
        (
            "Feed-forward, back to the old width",
            "What the second projection makes of the longer row.",
        ),
        ("피드포워드의 결과", "둘째 행렬이 원래 너비로 되돌린 벡터입니다."),
    ),
    "residual_2": Text(
        ("Residual connection, feed-forward", "What went into it is added again."),
        ("피드포워드의 잔차 연결", "피드포워드에 들어간 값을 다시 더합니다."),
    ),
    "residual_cross": Text(
        ("Residual connection, cross attention", "What cross attention read is added."),
        ("교차 어텐션의 잔차 연결", "다른 문장을 보기 전의 값을 다시 더합니다."),
    ),
    "residual_out": Text(
        ("Last residual connection", "What the last part read is added: the layer's output."),
        ("마지막 잔차 연결", "피드포워드 이전의 값을 다시 더합니다. 이것이 이 층의 출력입니다."),
    ),
    "norm": Text(
        ("Layer normalisation", "Each row gets mean 0 and variance 1, then a gain and a shift."),
        ("층 정규화", "각 줄을 평균 0, 분산 1로 맞춘 뒤 게인을 곱하고 시프트를 더합니다."),
    ),
    "rms_norm": Text(
        ("Root mean square normalisation", "Each row gets mean square 1, then a gain."),
        ("RMS 정규화", "각 줄을 제곱의 평균이 1이 되게 맞춘 뒤 게인을 곱합니다."),
    ),
    "relu": Text(("ReLU", "What is negative becomes 0."), ("ReLU", "음수는 0이 됩니다.")),
    "gelu": Text(
        ("GELU", "What is negative is bent towards 0, smoothly."),
        ("GELU", "음수를 0 쪽으로 부드럽게 눌러 줍니다."),
    ),
    "gelu_tanh": Text(
        ("GELU, by tanh", "The same as GELU, with tanh in place of the normal distribution."),
        ("GELU (tanh 근사)", "GELU의 정규 분포 함수를 tanh로 근사합니다."),
    ),
    "silu": Text(
        ("SiLU", "What is negative is bent towards 0 by the logistic function."),
        ("SiLU", "로지스틱 함수로 음수를 0 쪽으로 부드럽게 눌러 줍니다."),
    ),
    "norm_out": Text(
        ("Last layer normalisation", "Again mean 0, variance 1, gain, shift: the layer's output."),
        (
            "마지막 층 정규화",
            "다시 평균 0, 분산 1로 맞추고 게인과 시프트를 적용합니다. 이것이 이 층의 출력입니다.",
        ),
    ),
    "rms_norm_out": Text(
        ("Last normalisation (RMS)", "Again mean square 1, and a gain: the layer's output."),
        (
            "마지막 RMS 정규화",
            "다시 제곱의 평균을 1로 맞추고 게인을 곱합니다. 이것이 이 층의 출력입니다.",
        ),
    ),
}
"""Grids that are given, and steps; a step that has the name of its operation is explained by that."""


def words_of(name: str) -> Text | None:
    """Return the words of a step or a grid: its own, or those of the operation of this name."""
    return TEXTS.get(name) or (OPERATIONS[name].text if name in OPERATIONS else None)


def _of_role(role: str) -> tuple[str, ...]:
    return tuple(
        name
        for name in (*OPERATIONS, *TEXTS)
        if (text := words_of(name)) is not None and text.role == role
    )


BY_KEY = _of_role("by key")  # steps that make a number or a vector for each key of a query
BEFORE = _of_role("before")  # steps that make what attention works on

PHRASES: Mapping[str, tuple[str, str]] = {
    "finds": (
        "“{query}” looks most at {key}: {weight}",
        "“{query}”: 가장 많이 보는 단어는 {key} ({weight})",
    ),
    "finds one": (
        "“{query}” can look at {key} only: {weight}",
        "“{query}”: 볼 수 있는 단어는 {key}뿐 ({weight})",
    ),
    "itself": ("itself", "자기 자신"),
    "finds all": (
        "“{query}” looks at all keys alike: {weight} each",
        "“{query}”: 모든 키를 똑같이 봄 (각각 {weight})",
    ),
    "layer": ("layer {n}", "층 {n}"),
    "head": ("head {n}", "헤드 {n}"),
    "counted": ("{where} (counted from 0)", "{where} (0부터 셈)"),
    "query is": ("query: {name}", "쿼리: {name}"),
    "row": ("row {n}", "{n}행"),
    "number": ("number {n}", "{n}번 수"),
    "key": ("key", "키"),
    "and then": ("and then? the likeliest next words", "다음 단어는? 가장 가능성이 큰 단어들"),
    "probability": ("probability", "확률"),
    "other words": ("all other words together {total}", "나머지 모든 단어의 합 {total}"),
    "value": ("value", "밸류"),
    "context sum": ("context = sum of the alignment vectors", "컨텍스트 = 정렬 벡터의 합"),
    "lengths": (
        "vectors have {n} numbers: … stands for those left out",
        "벡터마다 수가 {n}개: …는 생략한 수",
    ),
    "masked": ("masked", "가림"),
    "masked keys": (
        "what is masked gets a score of -∞: its weight is 0",
        "가린 키의 스코어는 -∞이므로 가중치가 0",
    ),
    "sum": ("sum", "합"),
    "other keys": (
        "{n} more keys, with smaller weights; together {total}",
        "가중치가 더 작은 키 {n}개 더 있음, 합하면 {total}",
    ),
    "more rows": ("... {n} more rows", "... {n}줄 더 있음"),
    "by key": ("Key by key:", "키마다 보기:"),
    "rest": ("{rest} of the attention is for looking at nothing", "아무것도 보지 않는 몫: {rest}"),
    "signed": ("numbers below 0, and above", "0보다 작은 수와 큰 수"),
    "weights": ("weights, from 0 to 1", "0에서 1까지의 가중치"),
    "colours": (
        "red is above 0 and blue below, in each matrix by itself",
        "빨강은 0보다 크고 파랑은 0보다 작음 (행렬마다 따로)",
    ),
    "lit": (
        "; the framed row has the largest weight; lines are as thick as the weight",
        "; 테두리를 두른 줄의 가중치가 가장 큼; 선은 가중치만큼 굵음",
    ),
    "left out": (
        "; … stands for numbers left out: all are in -o FILE.md or FILE.json",
        "; …은 생략한 수: -o FILE.md나 FILE.json에 모두 있음",
    ),
    "left out, blanks": (
        "; … stands for numbers left out: all but the blanks are in -o FILE.md",
        "; …은 생략한 수: 빈칸 말고는 -o FILE.md에 모두 있음",
    ),
    "products": (
        "matrices side by side, as in q K^T, are multiplied",
        "q K^T처럼 나란히 쓴 행렬은 행렬곱",
    ),
    "cells": ("; ⊙ multiplies cell by cell", "; ⊙는 칸마다 곱하기"),
    "no korean": ("Korean needs a terminal that can show it: this is English", ""),
    "same": (
        "recomputed {own} is exactly the model's own",
        "다시 계산한 {own}: 모델 자신의 값과 정확히 같음",
    ),
    "near": (
        "recomputed {own} is {difference} from the model's own",
        "다시 계산한 {own}: 모델 자신의 값과의 차이 {difference}",
    ),
    "from input": (" ({difference} from the input on)", " (입력부터는 {difference})"),
    "more": (
        "more: --full (every step), {options}-o FILE.html, --interactive",
        "더 보기: --full (모든 단계), {options}-o FILE.html, --interactive",
    ),
    "model": ("no number of this model's own to compare with", "이 모델에서 비교할 값이 없음"),
    "hand": ("no model to compare with", "직접 넣은 수: 비교할 모델이 없음"),
    "given": ("given: no step makes it", "주어진 수: 만드는 단계가 없음"),
    "to fill in": (
        "numbers of this step are left for you to work out",
        "이 단계에는 직접 계산할 빈칸이 있음",
    ),
    "more middle": (
        "{n} numbers in each row: those in the middle are left out",
        "한 줄에 수 {n}개: 가운데는 생략했습니다",
    ),
    "of head": (", head {number}", ", 헤드 {number}"),
    "across": (", cross attention", ", 교차 어텐션"),
}


def _not_its_own(english: str, korean: str) -> tuple[str, str]:
    return (
        f"not the model's own way: {english}; it has no context of its own to compare with",
        f"모델 자신의 방식이 아님: {korean}; 비교할 컨텍스트가 모델에 없음",
    )


_SCORE, _DRAWN, _CAUSAL = (
    ("scores are {score}", "스코어는 {score}"),
    (
        "scores are {score} with weights drawn from seed {seed}",
        "스코어는 {score} (가중치는 시드 {seed}에서 뽑음)",
    ),
    ("what comes after each word is hidden", "각 단어의 뒤는 가림"),
)

_TITLES = {
    "title_head_query": (
        "{model}, head {layer}.{head}: the query “{query}”",
        "{model}, 헤드 {layer}.{head}: 쿼리 “{query}”",
    ),
    "title_head_all": (
        "{model}, head {layer}.{head}: all words",
        "{model}, 헤드 {layer}.{head}: 모든 단어",
    ),
    "title_layer_query": (
        "{model}, layer {layer}, all heads: the query “{query}”",
        "{model}, 층 {layer}, 모든 헤드: 쿼리 “{query}”",
    ),
    "title_layer_all": (
        "{model}, layer {layer}, all heads: all words",
        "{model}, 층 {layer}, 모든 헤드: 모든 단어",
    ),
    "title_seq2seq": (
        "Attention by hand: a decoder's state and four states of the encoder",
        "손으로 계산하는 어텐션: 디코더의 상태 하나와 인코더의 상태 넷",
    ),
    "title_seq2seq_word": (
        "From context to word by hand: the context beside the decoder's state",
        "컨텍스트에서 단어까지 손으로: 컨텍스트를 디코더의 상태와 이어 붙임",
    ),
    "title_self_attention": (
        "Self-attention by hand: {n} tokens, {d_model} wide, to queries, keys and values {d_k} wide",
        "손으로 계산하는 셀프 어텐션: 너비 {d_model}인 토큰 {n}개에서 너비 {d_k}인 쿼리, 키, 밸류로",
    ),
    "title_exercise": (
        "Exercise {seed}: one query and {n} keys",
        "연습 문제 {seed}: 쿼리 하나와 키 {n}개",
    ),
    "title_mixed": ("Values mixed with given weights", "주어진 가중치로 밸류 섞기"),
    "title_typed": ("Attention, from numbers typed by hand", "직접 넣은 수로 계산하는 어텐션"),
    "keys_are_values": (
        "the encoder's states are keys and values alike",
        "인코더의 상태가 키이면서 동시에 밸류임",
    ),
    "goes_to_decoder": (
        "what was concatenated goes to the decoder",
        "이어 붙인 벡터는 디코더로 들어감",
    ),
    "one_batch": (
        "a batch of one sentence: weights of shape {weights}, output of shape {output}",
        "문장 하나로 된 배치: 가중치의 모양 {weights}, 출력의 모양 {output}",
    ),
    "drawn_from_seed": (
        "small whole numbers, drawn from seed {seed}",
        "시드 {seed}에서 뽑은 작은 정수",
    ),
    "weights_given": (
        "weights are given: no query is compared with a key",
        "가중치가 주어짐: 쿼리를 키와 비교하지 않음",
    ),
    "no_values": (
        "no values are given: the calculation ends at the weights",
        "밸류가 주어지지 않음: 계산은 가중치에서 끝남",
    ),
    "word_before": (
        "{y}: vector of the word before; the cell reads [{y}; context]",
        "{y}: 바로 앞에서 생성한 단어의 벡터. 셀은 [{y}; context]를 읽음",
    ),
    "next_chosen": (
        "the likeliest next word is “{word}”: the next step reads it",
        "가장 가능성이 큰 다음 단어는 “{word}”: 다음 단계가 이 단어를 읽음",
    ),
    "next_given": (
        "the likeliest next word is “{word}”, but the next step reads “{given}”, which is given",
        "가장 가능성이 큰 다음 단어는 “{word}”, 그러나 다음 단계가 읽는 것은 주어진 단어 “{given}”",
    ),
    "rotated": (
        "q and k are turned by their positions before they are compared: step rotation shows it",
        "q와 k는 비교하기 전에 위치의 각도만큼 회전함: rotation 단계에서 볼 수 있음",
    ),
    "taken_as_given": (
        "{names} is given: no single projection makes it (a norm or a scaling may follow)",
        "{names}: 모델의 값을 그대로 씀. 행렬 하나로는 만들 수 없음 (정규화나 스케일이 뒤따를 수 있음)",
    ),
    "all_taken_as_given": (
        "{names} and {last} are given: no single projection makes them (a norm or a scaling may follow)",
        "{names}, {last}: 모델의 값을 그대로 씀. 행렬 하나로는 만들 수 없음 (정규화나 스케일이 뒤따를 수 있음)",
    ),
    "looks_twice": (
        "the layer looks twice: back at what was generated, then across at the other sentence (grids named cross)",
        "이 층은 두 번 봄: 먼저 앞에서 생성한 것을, 그다음 다른 문장을 봄 (이름에 cross가 붙은 표)",
    ),
    "layer_left_out": (
        "the projections, {n} numbers, are left out, and what they made is given: the full view has them",
        "행렬(수 {n}개)은 생략하고 그 결과를 그대로 씀: 전체 보기(full)에 모두 있음",
    ),
    "model_shapes": (
        "the model: {layers} layers of {heads} heads, each {d} wide, side by side; last_hidden_state {shape}",
        "모델 전체: 층 {layers}개, 층마다 너비 {d}인 헤드 {heads}개를 이어 붙임; last_hidden_state {shape}",
    ),
    "output_left_out": (
        "the output projection, {shape} numbers, is left out",
        "출력 행렬(수 {shape}개)은 생략함",
    ),
    "other_score": _not_its_own(*_SCORE),
    "other_score_drawn": _not_its_own(*_DRAWN),
    "other_score_causal": _not_its_own(
        f"{_SCORE[0]}, and {_CAUSAL[0]}", f"{_SCORE[1]}, {_CAUSAL[1]}"
    ),
    "other_score_drawn_causal": _not_its_own(
        f"{_DRAWN[0]}, and {_CAUSAL[0]}", f"{_DRAWN[1]}, {_CAUSAL[1]}"
    ),
    "made_causal": _not_its_own(*_CAUSAL),
}
NOTES: Templates = {**OF_RECORDS, **{code: Phrase(*texts) for code, texts in _TITLES.items()}}
"""Titles and notes by their codes; those of records are among them."""
