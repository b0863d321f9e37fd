"""Why attention: the gradient that comes back to a word fades along a recurrent chain, and not along attention.

Source: Bengio et al. 1994, "Learning Long-Term Dependencies with Gradient Descent is Difficult":
https://doi.org/10.1109/72.279181
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.models.language import splits
from attnviz.models.language.sentences import Pair
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.common import CERTAIN, Estimate, open_model, percent, story, table
from attnviz.stories.record import Cell, Lines, Series, Story
from attnviz.text.phrase import Texts

MODEL, WITHOUT = "toy-seq2seq", "bottleneck-without-0"
LENGTH = 14  # words of each English sentence
N_SENTENCES, PROBES = 16, 4
SEED = 0
SHOWN = (0, 1, 2, 4, 6, 8, 10, 12, 13)  # distances that the table has, of those of the picture
TEXTS = Texts(
    """
title | {far} words back: {chained} of the last word's gradient along the chain, {attended} along attention
    | {far}단어 앞까지 오는 기울기: 마지막 단어의 {chained}(사슬), {attended}(어텐션)
chain | Along the chain the first of {LENGTH} words gets {chained} of what the last one gets: every step multiplies by
    what the gates let through. So a model learns little from what stood far back. Attention reaches every word in one
    step, whatever its distance: {attended}.
    | 사슬을 따라가면 단어 {LENGTH}개 가운데 첫 단어가 받는 기울기는 마지막 단어의 {chained}입니다. 걸음마다 게이트가
    통과시키는 만큼이 곱해지기 때문입니다. 그래서 멀리 있던 것에서는 배우는 것이 적습니다. 어텐션은 거리와 상관없이 어느
    단어에나 한 걸음에 닿습니다: {attended}.
receipt | gradients by torch's own differentiation, on {n_pairs} unseen sentences of {LENGTH} words; norms from {PROBES}
    random vectors each, seed {SEED}; intervals hold 95 %
    | torch의 미분으로 구한 기울기, 학습에 쓰지 않은 {LENGTH}단어 문장 {n_pairs}개; 길이는 무작위 벡터 {PROBES}개씩으로
    어림함, 시드 {SEED}; 구간은 95 % 신뢰구간
introduction | A network learns by gradients: how much would its result change if a word's vector changed a little? In a
    recurrent encoder a word's trace must pass through every later step. {MODEL} has both ways: the encoder's last
    state, at the end of the chain, and the context that attention brings at the step that looks at the word most. The
    table has the length of d result / d word, as a share of what it is for the last word.
    | 신경망은 기울기로 배웁니다. 단어 벡터가 조금 바뀌면 결과가 얼마나 바뀌는가? 순환 인코더에서 한 단어의 흔적은 그
    뒤의 모든 단계를 지나야 합니다. {MODEL} 모델에는 두 길이 다 있습니다. 사슬 끝에 있는 인코더의 마지막 상태와, 그
    단어를 가장 많이 보는 단계에서 어텐션이 가져오는 컨텍스트입니다. 표는 d 결과 / d 단어의 길이를 마지막 단어에 대한
    비율로 나타낸 것입니다.
table | share of the last word's gradient, by how many words back (95 % interval)
    | 몇 단어 앞인지에 따른, 마지막 단어의 기울기에 대한 비율 (95 % 신뢰구간)
cost | {MODEL} needs no memory in its chain, and its gates began closed to the past. A model without attention must
    carry the sentence in its last state; trained for that, the chain keeps {alone}. What that costs in translations of
    long sentences is told by `attnviz demo bottleneck`.
    | {MODEL} 모델의 사슬은 기억할 필요가 없고, 게이트도 과거에 닫힌 채로 학습을 시작했습니다. 어텐션이 없는 모델은
    마지막 상태에 문장을 모두 담아야 하고, 그렇게 학습한 사슬은 {alone}를 지킵니다. 그래도 긴 문장의 번역이 얼마나
    나빠지는지는 `attnviz demo bottleneck`에 있습니다.
ways | {MODEL}, along attention; {MODEL}, along the chain; without attention, along the chain
    | {MODEL}, 어텐션을 따라; {MODEL}, 사슬을 따라; 어텐션 없는 모델, 사슬을 따라
picture | the gradient that reaches a word, by its distance | 거리에 따라 단어에 닿는 기울기
words_back | words back from the end of the sentence | 문장 끝에서 몇 단어 앞인가
share | share of the last word's gradient | 마지막 단어의 기울기에 대한 비율
back | words back | 몇 단어 앞
interval | {estimate} | {estimate}
""",
    globals(),
)


def sentences(n: int = N_SENTENCES) -> list[Pair]:
    """Unseen test pairs of one length."""
    return list(
        islice((pair for pair in splits.pairs("test", clauses=2) if len(pair.english) == LENGTH), n)
    )


def jacobian_norms(
    y: Float[Tensor, "sentence d"], x: Float[Tensor, "sentence word e"], random: torch.Generator
) -> Tensor:
    """The Frobenius norm of d y / d x for each word [sentence, word].

    Random vectors v of variance 1 estimate it: the mean of |v^T J|^2 is |J|^2 (Hutchinson 1990).
    """
    squares = torch.zeros(x.shape[:2])
    for _ in range(PROBES):
        (gradient,) = torch.autograd.grad(
            y, x, torch.randn(y.shape, generator=random), retain_graph=True
        )
        squares += gradient.square().sum(dim=-1)
    return (squares / PROBES).sqrt()


def reach(model: RecurrentTranslator, pairs: Sequence[Pair]) -> tuple[Tensor, Tensor | None]:
    """Read sentences of one length, generate the right translations, and go back to each word's vector.

    Returns norms of Jacobians by that vector [sentence, distance from the end]: along the chain, of the encoder's last
    state; along attention, of the context of the step that looks at the word most, None without attention.
    """
    random, kept = torch.Generator().manual_seed(SEED), list[Tensor]()
    source, target = encode_pairs(pairs, model.config.end)

    def keep(_: object, __: object, out: Tensor) -> Tensor:
        kept.append(out.detach().requires_grad_())
        return kept[-1]

    hook = model.source_embedding.register_forward_hook(keep)
    with torch.enable_grad():
        encoded = model.encode(source)
        hook.remove()
        (x,) = kept
        chain = jacobian_norms(encoded.last[0], x, random).flip(-1)
        if model.attention is None or encoded.key is None or encoded.value is None:
            return chain, None
        state, word, weights, norms = (
            encoded.last,
            torch.full_like(source[:, 0], model.config.start),
            [],
            [],
        )
        for right in target.T:
            context, looks = model.attention(state[0], encoded.key, encoded.value, encoded.mask)
            weights.append((looks * (right[:, None] != 0)).detach() if looks is not None else chain)
            norms.append(jacobian_norms(context, x, random))
            _, state, _ = model.step(word, state, encoded)
            word = right
    most = torch.stack(weights).argmax(dim=0)  # [sentence, word]
    return chain, torch.stack(norms).gather(0, most[None])[0].flip(-1)


def means(norms: Float[Tensor, "sentence distance"]) -> list[Estimate]:
    """At each distance the mean over sentences, as a share of that at the last word, with its 95 % interval."""
    shares = norms.double() / norms[:, 0].double().mean()
    error = CERTAIN * shares.std(dim=0) / len(shares) ** 0.5
    ends = zip(shares.mean(dim=0).tolist(), error.tolist(), strict=True)
    return [Estimate(m, max(m - e, 1e-4), m + e) for m, e in ends]


def tell() -> Story:
    """The demo: three ways back to a word, by its distance from the end of the sentence."""
    pairs = sentences()
    (chain, attention), (plain, _) = (
        reach(open_model(name, RecurrentTranslator)[1], pairs) for name in (MODEL, WITHOUT)
    )
    ways = zip(TEXTS.names("ways"), (attention, chain, plain), strict=True)
    found = {way: means(norms) for way, norms in ways if norms is not None}
    attended, chained, alone = (percent(estimates[-1].mean) for estimates in found.values())
    say = TEXTS.filled(
        far=LENGTH - 1, attended=attended, chained=chained, alone=alone, n_pairs=len(pairs)
    )
    rows: list[tuple[Cell, ...]] = [
        (back, *(say("interval", estimate=one[back]) for one in found.values())) for back in SHOWN
    ]
    series = tuple(Series.of(way, estimates) for way, estimates in found.items())
    x, words_back = tuple(map(float, range(LENGTH))), say("words_back")
    lines = Lines(say("picture"), x, words_back, series, say("share"), y_doubling=True)
    return story(
        say,
        ("introduction", table(say, "table", rows, (say("back"), *found)), "chain", "cost"),
        [lines],
    )
