"""What each part of an encoder's layer does to the words' vectors: their length, their direction, their similarity."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, layer_norm

from attnviz.models.transformer import TransformerLayer
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories.common import numbers, open_model, small, words_of
from attnviz.stories.record import Bars, Matrix, Series, Story, Table
from attnviz.text.phrase import Phrase, joined

SENTENCE = "The animal didn't cross the street because it was too tired."
STEPS = (
    Phrase("came in", "들어옴"), Phrase("attention", "어텐션"), Phrase("+ came in", "+ 들어온 것"),
    Phrase("norm", "정규화"),
    Phrase("feed-forward", "피드포워드"), Phrase("+ normed", "+ 정규화한 것"), Phrase("norm: out", "정규화: 나감"),
)  # fmt: skip
"""What there is on the way through a layer, from first to last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerStep:
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
    return [part[0] for part in (x, attended, summed, normed, fed, both, layer.feed_forward_norm(both))]


def through(norm: nn.LayerNorm, x: torch.Tensor) -> tuple[float, float, float]:
    """The mean length of vectors in a norm: before its learned factors, after them, and with its learned shift."""
    plain = layer_norm(x, norm.normalized_shape, eps=norm.eps)
    factored = plain * norm.weight
    before, after, out = (float(part.norm(dim=-1).mean()) for part in (plain, factored, factored + norm.bias))
    return before, after, out


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
    words = words_of(SENTENCE)
    shown = numbers(card.source, [words])
    x = first = model.embedding(shown)
    steps, differences = [], []
    layers = [layer for layer in model.encoder.layers if isinstance(layer, TransformerLayer)]
    for layer in layers:
        vectors = parts(layer, x)
        steps.append([measure(part, vectors[0]) for part in vectors])
        x = layer(x).states
        differences.append(float((vectors[-1] - x[0]).abs().max()))
    differences.append(float((model(shown).vectors - x).abs().max()))
    last = through(layers[-1].feed_forward_norm, vectors[-2])
    came, left, n, most = steps[0][0].alike, steps[-1][-1].alike, len(layers), small(max(differences))
    return Story(
        name="layer",
        title=Phrase(
            f"through {n} layers the mean cosine between words goes from {came:.2f} to {left:.2f}",
            f"단어 사이의 평균 코사인: 층 {n}개를 지나기 전 {came:.2f}, 지난 뒤 {left:.2f}",
        ),
        parts=(*_tell(steps, model.config.d_model), _table(steps), *_summed_up(steps, model.config.d_model, last)),
        picture=_picture(steps, words, similarity(first[0]), similarity(x[0])),
        receipt=Phrase(
            f"""verified: max difference {most} over {n} layers, between the steps and the layers' own output, and
            between the last and the whole model's""",
            f"""검증됨: 층 {n}개에서 최대 차이 {most}, 단계별 계산과 층 자신의 출력 사이, 그리고 마지막 층과 모델
            전체의 출력 사이에서""",
        ),
    )


def _tell(steps: list[list[LayerStep]], d_model: int) -> tuple[Phrase, ...]:
    low, high = (pick(step[1].length / step[0].length for step in steps) for pick in (min, max))
    kept, summed = (", ".join(f"{step[place].kept:.2f}" for step in steps) for place in (1, 2))
    return (
        Phrase(
            f"""“{SENTENCE}”, as toy reads it: each word is a vector of {d_model} numbers. A layer adds to it what
            attention brings from the other words, and then what a small network (feed-forward) makes of it; each
            sum is followed by a norm. Below are the means over the words: the length of the vectors, the cosine
            with what came into the layer (1: the same direction, 0: nothing in common), and the cosine between two
            different words.""",
            f"""“{SENTENCE}”, toy가 읽은 문장입니다. 단어마다 수 {d_model}개로 된 벡터가 있습니다. 층은 여기에
            어텐션이 다른 단어에서 가져온 것을 더하고, 다음으로 작은 신경망(피드포워드)이 만든 것을 더합니다. 더할
            때마다 정규화가 뒤따릅니다. 아래는 단어들의 평균으로, 벡터의 길이, 층에 들어온 벡터와의 코사인(1: 같은
            방향, 0: 공통점 없음), 서로 다른 두 단어 사이의 코사인입니다.""",
        ),
        Phrase(
            f"""What attention brings is {low:.2f} to {high:.2f} times as long as what came in, and its cosine with
            it is {kept} in layers 0 to {len(steps) - 1}. The residual sum keeps the old vector in: with it the
            cosine is {summed}.""",
            f"""어텐션이 가져온 벡터의 길이는 들어온 벡터의 {low:.2f}~{high:.2f}배이고, 둘의 코사인은 층 0부터
            {len(steps) - 1}까지 차례로 {kept}입니다. 잔차 연결이 원래 벡터를 남겨 두므로, 더한 뒤의 코사인은
            {summed}입니다.""",
        ),
    )


def _summed_up(steps: list[list[LayerStep]], d_model: int, last: tuple[float, float, float]) -> tuple[Phrase, ...]:
    summed = [step[place].length for step in steps for place in (2, 5)]
    low, high, root = min(summed), max(summed), d_model**0.5
    return (
        Phrase(
            f"""The sums are {low:.1f} to {high:.1f} long. The norm takes each vector's mean away and makes it
            sqrt({d_model}) = {root:.2f} long, however long it was; then it multiplies each number by a learned
            factor and adds a learned shift, so that what goes out may have another length. In the last norm the
            vectors are {last[0]:.2f} long before the factors, {last[1]:.2f} after them, and {last[2]:.2f} with the
            shift (means over the words).""",
            f"""더한 벡터의 길이는 {low:.1f}~{high:.1f}입니다. 정규화는 벡터에서 평균을 빼고, 길이가 얼마였든
            sqrt({d_model})에 맞춥니다({root:.2f}). 그런 다음 수마다 학습된 계수를 곱하고 학습된 값을 더하므로,
            나가는 벡터의 길이는 또 달라질 수 있습니다. 마지막 정규화에서 벡터의 길이는 계수를 곱하기 전
            {last[0]:.2f}, 곱한 뒤 {last[1]:.2f}, 값을 더한 뒤 {last[2]:.2f}입니다(단어들의 평균).""",
        ),
        _similarity_in_words([steps[0][0].alike, *(step[-1].alike for step in steps)]),
    )


def _similarity_in_words(alike: list[float]) -> Phrase:
    """How the mean cosine between words goes on from layer to layer, as the table prints it."""
    shown = [f"{value:.2f}" for value in alike]
    steps = []
    for number, (here, there) in enumerate(pairwise(shown)):
        went = Phrase("stays as it is", "그대로")
        if here != there:
            went = Phrase("rises", "올라") if float(there) > float(here) else Phrase("falls", "내려")
        steps.append(Phrase(f"{went} in layer {number} (to {there})", f"층 {number}에서 {went.ko} {there}"))
    way = joined(steps, ", ")
    first, last = float(shown[0]), float(shown[-1])
    end = Phrase("as alike as", "만큼 비슷합니다")
    if last > first:
        end = Phrase("more alike than", "보다 더 비슷합니다")
    elif last < first:
        end = Phrase("less alike than", "보다 덜 비슷합니다")
    return Phrase(
        f"""The mean cosine between two different words is {shown[0]} where they come in; it {way}.
        In the end the words are {end} they were where they came in.""",
        f"""서로 다른 두 단어 사이의 평균 코사인은 들어올 때 {shown[0]}입니다. {way.ko}입니다. 결국
        단어들은 들어올 때{end.ko}.""",
    )


def _table(steps: list[list[LayerStep]]) -> Table:
    return Table(
        title=Phrase("the vectors on their way, means over the words", "층을 지나는 벡터, 단어들의 평균"),
        columns=(
            Phrase("layer", "층"), Phrase("step", "단계"), Phrase("length", "길이"),
            Phrase("cosine with what came in", "들어온 벡터와의 코사인"),
            Phrase("cosine between words", "단어 사이의 코사인"),
        ),
        rows=tuple(
            (number, name, step.length, step.kept, step.alike)
            for number, layer in enumerate(steps)
            for name, step in zip(STEPS, layer, strict=True)
            if number == 0 or name != STEPS[0]  # what comes in is what went out of the layer before
        ),
        digits=2,
    )  # fmt: skip


def _picture(
    steps: list[list[LayerStep]], words: list[str], before: torch.Tensor, after: torch.Tensor
) -> tuple[Bars | Matrix, ...]:
    def cosines(title: Phrase, values: torch.Tensor) -> Matrix:
        labels, word = tuple(words), Phrase("word", "단어")
        return Matrix(title, values.numpy(), labels, labels, word, word, limits=(-1.0, 1.0), diverging=True)

    last = len(steps) - 1
    lengths = Bars(
        title=Phrase("length of the vectors at each step", "단계마다 벡터의 길이"),
        labels=STEPS,
        series=tuple(
            Series(name=Phrase(f"layer {number}", f"층 {number}"), values=tuple(step.length for step in layer))
            for number, layer in enumerate(steps)
        ),
        y_title=Phrase("mean length", "평균 길이"),
    )
    return (
        cosines(Phrase("cosine between words: coming in", "단어 사이의 코사인: 들어올 때"), before),
        cosines(Phrase(f"cosine between words: after layer {last}", f"단어 사이의 코사인: 층 {last} 뒤"), after),
        lengths,
    )
