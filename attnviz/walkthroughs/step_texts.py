"""What is said of each step and grid: its formula, and a title and a sentence in English and in Korean."""

from __future__ import annotations

TEXTS: dict[str, tuple[str, tuple[str, str], tuple[str, str]]] = {
    "X": (
        "",
        ("Input X", "One row of numbers for each token: what this calculation begins with."),
        ("입력 X", "토큰마다 숫자 한 줄: 이 계산이 시작되는 곳입니다."),
    ),
    "x": (
        "",
        ("Input of the query x", "The row of the input that belongs to the query's token."),
        ("쿼리의 입력 x", "입력 가운데 쿼리 토큰에 해당하는 한 줄입니다."),
    ),
    "N": (
        "",
        ("Normalised input N", "One row of numbers for each token, normalised: what attention reads."),
        ("정규화한 입력 N", "토큰마다 정규화한 숫자 한 줄: 어텐션이 읽는 입력입니다."),
    ),
    "n": (
        "",
        ("Normalised input of the query n", "The row of the normalised input that belongs to the query's token."),
        ("쿼리의 정규화한 입력 n", "정규화한 입력 가운데 쿼리 토큰에 해당하는 한 줄입니다."),
    ),
    "E": (
        "",
        ("Token embeddings E", "One row for each token: which word it is."),
        ("토큰 임베딩 E", "토큰마다 한 줄: 어떤 단어인지 나타냅니다."),
    ),
    "P": (
        "",
        ("Positions P", "One row for each token: where in the sentence it stands."),
        ("위치 인코딩 P", "토큰마다 한 줄: 문장에서 몇 번째인지 나타냅니다."),
    ),
    "Wq": (
        "",
        ("Query weights Wq", "The map from an input to its query."),
        ("쿼리 가중치 Wq", "입력을 쿼리로 바꾸는 행렬입니다."),
    ),
    "Wk": (
        "",
        ("Key weights Wk", "The map from an input to its key."),
        ("키 가중치 Wk", "입력을 키로 바꾸는 행렬입니다."),
    ),
    "Wv": (
        "",
        ("Value weights Wv", "The map from an input to its value."),
        ("밸류 가중치 Wv", "입력을 밸류로 바꾸는 행렬입니다."),
    ),
    "Wo": (
        "",
        ("Output weights Wo", "The map that mixes the contexts of all heads."),
        ("출력 가중치 Wo", "모든 헤드의 컨텍스트를 섞는 행렬입니다."),
    ),
    "bq": ("", ("Query bias bq", "Added to each query."), ("쿼리 편향 bq", "쿼리마다 더합니다.")),
    "bk": ("", ("Key bias bk", "Added to each key."), ("키 편향 bk", "키마다 더합니다.")),
    "bv": ("", ("Value bias bv", "Added to each value."), ("밸류 편향 bv", "밸류마다 더합니다.")),
    "bo": ("", ("Output bias bo", "Added to the output."), ("출력 편향 bo", "출력에 더합니다.")),
    "q": (
        "",
        ("Query q", "What one token looks for, as a row of numbers."),
        ("쿼리 q", "한 토큰이 무엇을 찾는지를 나타내는 벡터입니다."),
    ),
    "Q": (
        "",
        ("Queries Q", "What each token looks for: one row for each."),
        ("쿼리 Q", "각 토큰이 무엇을 찾는지: 토큰마다 한 줄입니다."),
    ),
    "K": (
        "",
        ("Keys K", "What each token can be found by: one row for each."),
        ("키 K", "각 토큰이 무엇으로 찾아지는지: 토큰마다 한 줄입니다."),
    ),
    "V": (
        "",
        ("Values V", "What each token hands on when it is looked at: one row for each."),
        ("밸류 V", "주목받았을 때 각 토큰이 넘겨주는 내용: 토큰마다 한 줄입니다."),
    ),
    "W": (
        "",
        ("Score weights W", "A map, part of how a query is compared with a key."),
        ("스코어 가중치 W", "쿼리와 키를 비교할 때 쓰는 행렬입니다."),
    ),
    "U": (
        "",
        ("Score weights U", "A map, part of how a key is compared with a query."),
        ("스코어 가중치 U", "키를 쿼리와 비교할 때 쓰는 행렬입니다."),
    ),
    "v": (
        "",
        ("Score vector v", "What turns a compared pair into one number, the score."),
        ("스코어 벡터 v", "비교한 결과를 스코어 하나로 바꾸는 벡터입니다."),
    ),
    "B": (
        "",
        ("Position bias B", "A number for each query and key, by how far apart they stand."),
        ("위치 편향 B", "쿼리와 키의 거리에 따라 정해지는 값입니다."),
    ),
    "sink": (
        "",
        ("Sink", "A score for looking at nothing: it takes its share of the attention."),
        ("싱크(sink)", "아무것도 보지 않는 자리의 스코어: 어텐션의 일부를 가져갑니다."),
    ),
    "S": (
        "",
        ("Segments S", "One row for each token: which of two sentences it belongs to."),
        ("세그먼트 S", "토큰마다 한 줄: 두 문장 가운데 어느 쪽인지 나타냅니다."),
    ),
    "gain": (
        "",
        ("Gain", "By how much each number of a normalised row is stretched."),
        ("게인", "정규화한 줄의 각 수에 곱해 늘이는 값입니다."),
    ),
    "shift": (
        "",
        ("Shift", "What is added to each number of a normalised row."),
        ("시프트", "정규화한 줄의 각 수에 더하는 값입니다."),
    ),
    "W1": (
        "",
        ("Feed-forward weights W1", "The map to the longer row."),
        ("피드포워드 가중치 W1", "더 긴 벡터로 바꾸는 행렬입니다."),
    ),
    "W2": (
        "",
        ("Feed-forward weights W2", "The map back to the layer's width."),
        ("피드포워드 가중치 W2", "층의 너비로 되돌리는 행렬입니다."),
    ),
    "Wg": (
        "",
        ("Gate weights Wg", "The map that says how far each number of the longer row is let through."),
        ("게이트 가중치 Wg", "더 긴 벡터의 각 수를 얼마나 통과시킬지 정하는 행렬입니다."),
    ),
    "bg": (
        "",
        ("Gate bias bg", "Added to the gate."),
        ("게이트 편향 bg", "게이트에 더합니다."),
    ),
    "b1": (
        "",
        ("Feed-forward bias b1", "Added to the longer row."),
        ("피드포워드 편향 b1", "더 긴 벡터에 더합니다."),
    ),
    "b2": (
        "",
        ("Feed-forward bias b2", "Added to the row mapped back."),
        ("피드포워드 편향 b2", "되돌린 벡터에 더합니다."),
    ),
    "y": (
        "",
        ("Word vector y", "The vector of the word that was said before."),
        ("단어 벡터 y", "바로 앞에서 말한 단어의 벡터입니다."),
    ),
    "Y": (
        "",
        ("Word vectors Y", "At each step the vector of the word that was said before."),
        ("단어 벡터 Y", "단계마다 바로 앞에서 말한 단어의 벡터입니다."),
    ),
    "M": (
        "",
        ("Other sentence M", "One row of numbers for each word that can be looked at."),
        ("다른 문장 M", "볼 수 있는 단어마다 숫자 한 줄입니다."),
    ),
    "contexts": (
        "",
        ("Context vectors of the other heads", "What the same query takes home from each of them."),
        ("다른 헤드들의 컨텍스트 벡터", "같은 쿼리가 각 헤드에서 얻는 결과입니다."),
    ),
    "input": (
        "X = E + P",
        ("Input", "Each token's embedding plus its position is what the layer reads."),
        ("입력", "토큰 임베딩에 위치 인코딩을 더한 것이 이 층의 입력입니다."),
    ),
    "input_norm": (
        "X = (E + P - mean) / sqrt(variance + epsilon) * gain + shift",
        (
            "Normalised input",
            "Each row is brought to mean 0 and variance 1, then stretched and moved: what attention reads.",
        ),
        ("정규화한 입력", "각 줄을 평균 0, 분산 1로 맞춘 뒤, 게인을 곱하고 시프트를 더합니다. 어텐션의 입력입니다."),
    ),
    "input_rms_norm": (
        "N = X / sqrt(mean square + epsilon) * gain",
        (
            "Normalised input (RMS)",
            "Each row is brought to one size, the mean of its squares 1, then stretched: what attention reads.",
        ),
        ("정규화한 입력 (RMS)", "각 줄의 크기를 같게 맞춘 뒤(제곱의 평균이 1), 게인을 곱합니다. 어텐션의 입력입니다."),
    ),
    "row": (
        "x = row of X",
        ("The query's row", "Of the whole input the row that belongs to the query's token."),
        ("쿼리의 행", "전체 입력에서 쿼리 토큰에 해당하는 행 하나를 꺼냅니다."),
    ),
    "query": (
        "q = x Wq + bq",
        ("Query", "The input is mapped to what the token looks for."),
        ("쿼리", "입력을, 그 토큰이 무엇을 찾는지 나타내는 쿼리로 바꿉니다."),
    ),
    "keys": (
        "K = X Wk + bk",
        ("Keys", "Each input is mapped to what its token can be found by."),
        ("키", "각 입력을, 그 토큰이 무엇으로 찾아지는지 나타내는 키로 바꿉니다."),
    ),
    "values": (
        "V = X Wv + bv",
        ("Values", "Each input is mapped to what its token hands on."),
        ("밸류", "각 입력을, 그 토큰이 넘겨줄 내용인 밸류로 바꿉니다."),
    ),
    "scores": (
        "scores = q K^T",
        ("Attention scores", "The query is compared with each key: the better they fit, the larger the score."),
        ("어텐션 스코어", "쿼리를 각 키와 비교합니다. 서로 잘 맞을수록 어텐션 스코어가 커집니다."),
    ),
    "scaled": (
        "scaled = scores / sqrt(d_k)",
        ("Scaled scores", "Long vectors give large scores; this brings them back, so that the softmax stays soft."),
        (
            "스케일된 어텐션 스코어",
            "벡터가 길수록 스코어가 커지므로, 소프트맥스가 한쪽으로 쏠리지 않도록 크기를 줄입니다.",
        ),
    ),
    "bias": (
        "biased = scaled + bias",
        ("Position bias", "A number for how far apart query and key stand is added to each score."),
        ("위치 편향", "쿼리와 키가 서로 얼마나 떨어져 있는지에 따른 값을 각 스코어에 더합니다."),
    ),
    "softcap": (
        "capped = c tanh(scaled / c)",
        ("Soft cap", "Scores are bent so that none passes the cap."),
        ("소프트 캡", "어떤 스코어도 상한을 넘지 않도록 부드럽게 눌러 줍니다."),
    ),
    "mask": (
        "masked = scores, -∞ where the mask is 0",
        ("Mask", "What the query may not look at gets minus infinity, which the softmax turns into 0."),
        ("마스크", "쿼리가 보면 안 되는 자리는 -∞가 되고, 소프트맥스를 거치면 0이 됩니다."),
    ),
    "softmax": (
        "weights = exp(scores) / sum of exp(scores)",
        (
            "Softmax: the attention distribution",
            "The scores become weights between 0 and 1 that sum to 1: how the query's attention is shared out.",
        ),
        (
            "소프트맥스: 어텐션 분포",
            "스코어가 0과 1 사이의, 합이 1인 어텐션 가중치가 됩니다. 쿼리의 주의가 어떻게 나뉘는지 보여 줍니다.",
        ),
    ),
    "alignment": (
        "alignment = weight * value, for each key",
        ("Alignment vectors", "Each value is multiplied by its weight: what each key contributes."),
        ("정렬(alignment) 벡터", "각 밸류에 가중치를 곱합니다. 각 키가 얼마나 보태는지를 나타냅니다."),
    ),
    "context": (
        "context = sum of the alignment vectors",
        ("Context vector", "What all keys contribute is added up: this is what the query takes home."),
        ("컨텍스트 벡터", "모든 키의 정렬 벡터를 더합니다. 이것이 쿼리가 얻는 결과입니다."),
    ),
    "concatenated": (
        "concatenated = [head 0; head 1; ...]",
        ("Concatenation", "The vectors are put side by side into one longer row."),
        ("이어 붙이기(concatenation)", "벡터들을 나란히 이어 붙여 더 긴 벡터 하나로 만듭니다."),
    ),
    "output": (
        "output = concatenated Wo + bo",
        ("Output", "The output weights mix what the heads found into one vector."),
        ("출력", "출력 가중치로 여러 헤드가 찾은 것을 하나의 벡터로 섞습니다."),
    ),
    "residual": (
        "residual = X + output",
        ("Residual connection", "The input itself is added again, so that nothing of it is lost."),
        ("잔차 연결", "원래 입력을 다시 더해, 입력의 내용이 사라지지 않게 합니다."),
    ),
    "norm": (
        "norm = (residual - mean) / sqrt(variance + epsilon) * gain + shift",
        (
            "Layer normalisation",
            "Each row is brought to mean 0 and variance 1, then stretched by the gain and moved by the shift.",
        ),
        ("층 정규화", "각 줄을 평균 0, 분산 1로 맞춘 뒤, 게인으로 늘이고 시프트만큼 옮깁니다."),
    ),
    "rms_norm": (
        "norm = residual / sqrt(mean square + epsilon) * gain",
        (
            "Root mean square normalisation",
            "Each row is brought to one size, the mean of its squares 1, then stretched by the gain.",
        ),
        ("RMS 정규화", "각 줄의 크기를 같게 맞춘 뒤(제곱의 평균이 1), 게인으로 늘입니다."),
    ),
    "feed_forward_1": (
        "h = norm W1 + b1",
        ("Feed-forward, first map", "Each token by itself is mapped to a longer row."),
        ("피드포워드, 첫째 변환", "토큰마다 따로 더 긴 벡터로 바꿉니다."),
    ),
    "feed_forward_gate": (
        "gate = norm Wg + bg",
        ("Feed-forward, gate", "A second map to a row as long: it will say how far each number is let through."),
        ("피드포워드, 게이트", "같은 길이의 벡터를 하나 더 만듭니다. 각 수를 얼마나 통과시킬지 정하게 됩니다."),
    ),
    "relu": (
        "relu(h) = max(0, h)",
        ("ReLU", "What is negative becomes 0."),
        ("ReLU", "음수는 0이 됩니다."),
    ),
    "gelu": (
        "gelu(h) = h Φ(h)",
        ("GELU", "What is negative is bent towards 0, smoothly."),
        ("GELU", "음수를 0 쪽으로 부드럽게 눌러 줍니다."),
    ),
    "gelu_tanh": (
        "gelu(h) = h / 2 * (1 + tanh(sqrt(2 / pi) (h + 0.044715 h^3)))",
        ("GELU, by tanh", "What is negative is bent towards 0, smoothly; tanh stands in for the normal distribution."),
        ("GELU (tanh 근사)", "음수를 0 쪽으로 부드럽게 누릅니다. 정규 분포 함수를 tanh로 근사합니다."),
    ),
    "silu": (
        "silu(h) = h / (1 + exp(-h))",
        ("SiLU", "What is negative is bent towards 0, smoothly, by the logistic function."),
        ("SiLU", "로지스틱 함수로 음수를 0 쪽으로 부드럽게 눌러 줍니다."),
    ),
    "gated": (
        "gated = active * hidden",
        ("Gate opened", "Number by number the longer row is multiplied by its gate."),
        ("게이트 통과", "더 긴 벡터의 각 수에 그 게이트의 값을 곱합니다."),
    ),
    "feed_forward_2": (
        "f = h W2 + b2",
        ("Feed-forward, second map", "The longer row is mapped back to the layer's width."),
        ("피드포워드, 둘째 변환", "길어진 벡터를 다시 층의 너비로 되돌립니다."),
    ),
    "residual_2": (
        "residual_2 = norm + f",
        ("Residual connection around the feed-forward part", "What went into the feed-forward part is added again."),
        ("피드포워드의 잔차 연결", "피드포워드에 들어간 값을 다시 더합니다."),
    ),
    "residual_cross": (
        "residual_2 = output_cross + norm",
        ("Residual connection around cross attention", "What was known before looking across is added again."),
        ("교차 어텐션의 잔차 연결", "다른 문장을 보기 전의 값을 다시 더합니다."),
    ),
    "residual_out": (
        "residual_2 = narrowed + residual",
        (
            "Last residual connection",
            "What was there before the feed-forward part is added again: the layer's own output.",
        ),
        ("마지막 잔차 연결", "피드포워드 이전의 값을 다시 더합니다. 이것이 이 층의 출력입니다."),
    ),
    "norm_out": (
        "norm_2 = (residual_2 - mean) / sqrt(variance + epsilon) * gain + shift",
        ("Last layer normalisation", "Again mean 0 and variance 1, gain and shift: the layer's own output."),
        ("마지막 층 정규화", "다시 평균 0, 분산 1로 맞추고 게인과 시프트를 적용합니다. 이것이 이 층의 출력입니다."),
    ),
    "rms_norm_out": (
        "norm_2 = residual_2 / sqrt(mean square + epsilon) * gain",
        ("Last root mean square normalisation", "Again one size for each row, and a gain: the layer's own output."),
        ("마지막 RMS 정규화", "다시 각 줄의 크기를 같게 맞추고 게인으로 늘입니다. 이것이 이 층의 출력입니다."),
    ),
}  # fmt: skip
