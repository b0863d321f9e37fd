"""What each part of an encoder's layer does to the words' vectors: their length, their direction, their similarity."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, layer_norm

from attnviz.models.transformer import TransformerLayer
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories.common import numbers, open_model, signed, small, story, table, words_of
from attnviz.stories.record import Bars, Series, Story
from attnviz.text.phrase import Phrase, Texts, join_phrases

SENTENCE = "The animal didn't cross the street because it was too tired."
TEXTS = Texts(
    """
title | through {n} layers the mean cosine between words goes from {came:.2f} to {left:.2f}
    | 단어 사이의 평균 코사인: 층 {n}개를 지나기 전 {came:.2f}, 지난 뒤 {left:.2f}
receipt | verified: max difference {most} over {n} layers, between the steps and the layers' own output, and between the
    last and the whole model's
    | 검증됨: 층 {n}개에서 최대 차이 {most}, 단계별 계산과 층 자신의 출력 사이, 그리고 마지막 층과 모델 전체의 출력
    사이에서
introduction | “{SENTENCE}”, as toy reads it: each word is a vector of {d_model} numbers. A layer adds to it what
    attention brings from the other words, and then what a small network (feed-forward) makes of it; each sum is
    followed by a norm. Below are the means over the words: the length of the vectors, the cosine with what came into
    the layer (1: the same direction, 0: nothing in common), and the cosine between two different words.
    | “{SENTENCE}”, toy가 읽은 문장입니다. 단어마다 수 {d_model}개로 된 벡터가 있습니다. 층은 여기에 어텐션이 다른
    단어에서 가져온 것을 더하고, 다음으로 작은 신경망(피드포워드)이 만든 것을 더합니다. 더할 때마다 정규화가 뒤따릅니다.
    아래는 단어들의 평균으로, 벡터의 길이, 층에 들어온 벡터와의 코사인(1: 같은 방향, 0: 공통점 없음), 서로 다른 두 단어
    사이의 코사인입니다.
attention | What attention brings is {low:.2f} to {high:.2f} times as long as what came in, and its cosine with it is
    {kept} in layers 0 to {last}. The residual sum keeps the old vector in: with it the cosine is {summed}.
    | 어텐션이 가져온 벡터의 길이는 들어온 벡터의 {low:.2f}~{high:.2f}배이고, 둘의 코사인은 층 0부터 {last}까지 차례로
    {kept}입니다. 잔차 연결이 원래 벡터를 남겨 두므로, 더한 뒤의 코사인은 {summed}입니다.
norms | The sums are {shortest:.1f} to {longest:.1f} long. The norm takes each vector's mean away and makes it
    sqrt({d_model}) = {root:.2f} long, however long it was; then it multiplies each number by a learned factor and adds
    a learned shift, so that what goes out may have another length. In the last norm the vectors are {norms[0]:.2f} long
    before the factors, {norms[1]:.2f} after them, and {norms[2]:.2f} with the shift (means over the words).
    | 더한 벡터의 길이는 {shortest:.1f}~{longest:.1f}입니다. 정규화는 벡터에서 평균을 빼고, 길이가 얼마였든
    sqrt({d_model})에 맞춥니다({root:.2f}). 그런 다음 수마다 학습된 계수를 곱하고 학습된 값을 더하므로, 나가는 벡터의
    길이는 또 달라질 수 있습니다. 마지막 정규화에서 벡터의 길이는 계수를 곱하기 전 {norms[0]:.2f}, 곱한 뒤
    {norms[1]:.2f}, 값을 더한 뒤 {norms[2]:.2f}입니다(단어들의 평균).
similarity | The mean cosine between two different words is {shown[0]} where they come in; it {way}. In the end the
    words are {end} they were where they came in.
    | 서로 다른 두 단어 사이의 평균 코사인은 들어올 때 {shown[0]}입니다. {way}입니다. 결국 단어들은 들어올 때{end}.
table_columns | layer; step; length; cosine with what came in; cosine between words
    | 층; 단계; 길이; 들어온 벡터와의 코사인; 단어 사이의 코사인
stays | stays as it is in layer {number} (to {there}) | 층 {number}에서 그대로 {there}
rises | rises in layer {number} (to {there}) | 층 {number}에서 올라 {there}
falls | falls in layer {number} (to {there}) | 층 {number}에서 내려 {there}
as_alike | as alike as | 만큼 비슷합니다
more_alike | more alike than | 보다 더 비슷합니다
less_alike | less alike than | 보다 덜 비슷합니다
table | the vectors on their way, means over the words | 층을 지나는 벡터, 단어들의 평균
word | word | 단어
before | cosine between words: coming in | 단어 사이의 코사인: 들어올 때
after | cosine between words: after layer {last} | 단어 사이의 코사인: 층 {last} 뒤
lengths | length of the vectors at each step | 단계마다 벡터의 길이
layer | layer {number} | 층 {number}
length | mean length | 평균 길이
steps | came in; attention; + came in; norm; feed-forward; + normed; norm: out
    | 들어옴; 어텐션; + 들어온 것; 정규화; 피드포워드; + 정규화한 것; 정규화: 나감
""",
    globals(),
)
STEPS = TEXTS.names("steps")  # what there is on the way through a layer, from first to last


class LayerStep(NamedTuple):
    """The words' vectors at one place in a layer; each number is a mean."""

    length: float
    kept: float  # the cosine of each vector with the one that came into the layer; 1 is the same direction
    alike: float  # the cosine of two different words' vectors


def parts(layer: TransformerLayer, x: torch.Tensor) -> list[torch.Tensor]:
    """The vectors [tokens, d_model] at each of the steps, computed one after another as the layer does."""
    attended, _ = layer.attention(x)
    summed = x + attended
    normed = layer.attention_norm(summed)
    fed = layer.feed_forward(normed)
    both = normed + fed
    return [
        part[0] for part in (x, attended, summed, normed, fed, both, layer.feed_forward_norm(both))
    ]


def through(norm: nn.LayerNorm, x: torch.Tensor) -> list[float]:
    """The mean length of vectors in a norm: before its learned factors, after them, and with its learned shift."""
    plain = layer_norm(x, norm.normalized_shape, eps=norm.eps)
    factored = plain * norm.weight
    return [float(part.norm(dim=-1).mean()) for part in (plain, factored, factored + norm.bias)]


def similarity(x: torch.Tensor) -> torch.Tensor:
    """The cosine of every two words' vectors [token, token]."""
    return cosine_similarity(x[:, None], x[None], dim=-1)


def measure(x: torch.Tensor, came: torch.Tensor) -> LayerStep:
    """What is measured of vectors [tokens, d_model] on their way."""
    alike, n = similarity(x), len(x)
    return LayerStep(
        length=float(x.norm(dim=-1).mean()),
        kept=float(cosine_similarity(x, came, dim=-1).mean()),
        alike=float((alike.sum() - alike.trace()) / (n * (n - 1))),
    )


@torch.inference_mode()
def tell() -> Story:
    """The demo: lengths and directions through every layer of the trained encoder."""
    card, model = open_model("toy", LanguageEncoder)
    words = tuple(words_of(SENTENCE))
    shown, steps, differences = numbers(card.source, [words]), list[list[LayerStep]](), []
    x = first = model.embedding(shown)
    layers = [layer for layer in model.encoder.layers if isinstance(layer, TransformerLayer)]
    for layer in layers:
        vectors = parts(layer, x)
        steps.append([measure(part, vectors[0]) for part in vectors])
        x = layer(x).states
        differences.append(float((vectors[-1] - x[0]).abs().max()))
    differences.append(float((model(shown).vectors - x).abs().max()))
    longer = [step[1].length / step[0].length for step in steps]
    sums = [step[place].length for step in steps for place in (2, 5)]
    kept, summed = (", ".join(f"{step[place].kept:.2f}" for step in steps) for place in (1, 2))
    say = TEXTS.filled(
        n=len(layers),
        last=len(layers) - 1,
        most=small(max(differences)),
        d_model=model.config.d_model,
        came=steps[0][0].alike,
        left=steps[-1][-1].alike,
        low=min(longer),
        high=max(longer),
        kept=kept,
        summed=summed,
        shortest=min(sums),
        longest=max(sums),
        root=model.config.d_model**0.5,
        norms=through(layers[-1].feed_forward_norm, vectors[-2]),
    )
    rows = [
        (number, name, *step)
        for number, layer_steps in enumerate(steps)
        for name, step in zip(STEPS, layer_steps, strict=True)
        if number == 0 or name != STEPS[0]  # what comes in is what went out of the layer before
    ]
    alike = _similarity_in_words([steps[0][0].alike, *(step[-1].alike for step in steps)])
    cosines = partial(signed, axes=(say("word"), say("word")), top=1.0, rows=words, columns=words)
    lengths: dict[str, list[float]] = {
        say("layer", number=i): [step.length for step in layer_steps]
        for i, layer_steps in enumerate(steps)
    }
    return story(
        say,
        ("introduction", "attention", table(say, "table", rows, digits=2), "norms", alike),
        (
            cosines(say("before"), similarity(first[0]).numpy()),
            cosines(say("after"), similarity(x[0]).numpy()),
            Bars(say("lengths"), STEPS, Series.each(lengths), say("length")),
        ),
    )


def _similarity_in_words(alike: list[float]) -> Phrase:
    """How the mean cosine between words goes on from layer to layer, as the table prints it."""

    def went(here: str, there: str, names: tuple[str, str, str]) -> str:
        return names[(float(there) > float(here)) - (float(there) < float(here))]

    shown = [f"{value:.2f}" for value in alike]
    steps = (
        TEXTS(went(here, there, ("stays", "rises", "falls")), number=number, there=there)
        for number, (here, there) in enumerate(pairwise(shown))
    )
    end = TEXTS(went(shown[0], shown[-1], ("as_alike", "more_alike", "less_alike")))
    return TEXTS("similarity", shown=shown, way=join_phrases(steps, ", "), end=end)
