"""The mask: one sentence read in both directions, and from left to right only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.attention import attention_scores, causal_mask, scaled_dot_product_attention
from attnviz.models.training.measure import Head
from attnviz.models.wholes import LanguageDecoder, LanguageEncoder
from attnviz.stories import common
from attnviz.stories.common import (
    ROWS,
    head_name,
    largest,
    numbers,
    open_model,
    receipt_of,
    small,
    square,
    words_of,
)
from attnviz.stories.record import Bars, Series, Story, StoryView, Table
from attnviz.text.phrase import Phrase, Texts

SENTENCE = "She is eating a green apple"
OTHER = "She is eating a green cake"  # the same but for its last word
ROW = 2  # the word whose row the table follows: it has words before it and after it
TEXTS = Texts(
    """
title | of a row's weight {ways.a_row:.2f} is on later words in toy; {causal.a_row:.2f} in toy-decoder, masked
    | 한 행의 가중치 가운데 뒤 단어로 가는 몫: toy {ways.a_row:.2f}, 마스크를 쓰는 toy-decoder {causal.a_row:.2f}
introduction | “{SENTENCE}”, read by two models. toy is an encoder, as BERT is: every word looks at every word.
    toy-decoder is a decoder, as GPT is: it learned to predict the next word, so it must not see it. The mask sees to
    that: before the softmax, every score on a later word becomes minus infinity, and exp(-inf) is 0.
    | “{SENTENCE}”, 이 문장을 두 모델이 읽습니다. toy는 BERT와 같은 인코더여서 모든 단어가 모든 단어를 봅니다.
    toy-decoder는 GPT와 같은 디코더로, 다음 단어를 예측하도록 배웠으므로 다음 단어를 미리 보면 안 됩니다. 이것을 막는
    것이 마스크입니다. 소프트맥스를 하기 전에 뒤 단어의 스코어를 모두 음의 무한대로 바꾸는데, exp(-inf)는 0입니다.
picture | The picture shows, of toy, the head that looks ahead most ({ahead}), of toy-decoder, the one that looks back
    most ({back}); empty cells are masked. {rows}
    | 그림은 toy에서 뒤 단어를 가장 많이 보는 {ahead}, toy-decoder에서 앞 단어를 가장 많이 보는 {back}의 패턴입니다.
    빈칸은 마스크로 가려진 자리입니다. {rows}
steps_title | toy-decoder, {name}: the row of “{word}”, step by step | toy-decoder, {name}: “{word}”의 행을 단계마다
by_hand | Without the mask {lost:.3f} of the weight of “{word}” would lie on later words. Computed by hand as here, the
    row is the model's own (largest difference {apart}).
    | 마스크가 없다면 “{word}”의 가중치 가운데 {lost:.3f}만큼이 뒤 단어로 갑니다. 이렇게 손으로 계산한 행은 모델 자신의
    행과 같습니다(최대 차이 {apart}).
changes_table | weight on later words over all heads and rows, and the largest change before the last word when “{last}”
    becomes “{other}”
    | 모든 헤드와 행에서 뒤 단어로 가는 가중치, 그리고 마지막 단어를 “{last}”에서 “{other}”로 바꿀 때 그 앞 단어들의
    가장 큰 변화
changes_table_columns | model; weight ahead, sum; weight ahead, mean of a row; largest change of a weight; largest
    change of an output
    | 모델; 뒤로 가는 가중치, 합; 뒤로 가는 가중치, 행 평균; 가중치의 최대 변화; 출력의 최대 변화
ahead | In toy-decoder the weight on later words is {none} over all {heads} heads of all layers; in toy a row puts
    {ways.a_row:.3f} there on average. So when the last word changes, what toy-decoder made of the words before {text},
    while in toy one of their weights changes by {moved:.3f}. (The outputs are toy's vectors and toy-decoder's scores
    for each next word.)
    | toy-decoder에서 뒤 단어로 가는 가중치는 모든 층의 헤드 {heads}개를 합해 {none}입니다. toy에서는 한 행이 평균
    {ways.a_row:.3f}만큼을 뒤로 보냅니다. 그래서 마지막 단어가 바뀌어도 toy-decoder가 그 앞의 단어들에서 계산한 것은
    {text}. toy에서는 앞 단어의 가중치가 크게는 {moved:.3f}만큼 바뀝니다. (출력이란 toy에서는 단어의 벡터,
    toy-decoder에서는 다음 단어마다의 스코어입니다.)
bars | largest change of a word's weights, “{last}” exchanged
    | “{last}” 자리의 단어를 바꿀 때 단어마다 가중치의 최대 변화
steps | score; masked; exp(masked - largest); weight: exp / sum; without the mask
    | 스코어; 마스크; exp(마스크 - 최댓값); 가중치: exp / 합; 마스크가 없다면
step | step | 단계
none | exactly 0 | 정확히 0
changes | changes by at most {still} | 많아야 {still}만큼 바뀝니다
stays | does not change at all | 전혀 바뀌지 않습니다
receipt | toy {seen}; toy-decoder {masked} | toy {seen}; toy-decoder {masked}
both_ways | toy, {ahead}: both ways | toy, {ahead}: 양방향
left_to_right | toy-decoder, {back}: left to right | toy-decoder, {back}: 왼쪽에서 오른쪽으로
view_ahead | In toy, {ahead}, “{word}” puts {over:.2f} of its weight on later words.
    | toy의 {ahead}: “{word}”의 가중치 가운데 뒤 단어로 가는 몫은 {over:.2f}입니다.
view_back | In toy-decoder, {back}, the row of “{word}” ends at “{word}”: what comes later is masked.
    | toy-decoder의 {back}: “{word}”의 행은 “{word}”에서 끝납니다. 그 뒤는 마스크로 가려져 있습니다.
view_step | How the row of “{word}” is computed: the softmax over the words that it may see.
    | “{word}”의 행을 계산하는 과정: 볼 수 있는 단어들에 대한 소프트맥스.
view_all | All heads of toy-decoder: nothing stands above any diagonal.
    | toy-decoder의 모든 헤드: 대각선 위에는 아무것도 없습니다.
change | change of a weight | 가중치의 변화
""",
    globals(),
)


class Read:
    """A sentence as one model reads it, and how that changes with its last word.

    Each sentence is read alone: in one batch their words would stand in other rows, where rounding may differ. The
    model's outputs [tokens, ...] for each are computed beside it.
    """

    def __init__(self, name: str, outputs: Sequence[Tensor]) -> None:
        source = open_source(name)
        self.record, other = (attend(text, source) for text in (SENTENCE, OTHER))
        first, second = self.record.weights, other.weights
        # The weight that each row puts on later words; all of it; and its mean over the rows that have later words.
        self.ahead: Float64[np.ndarray, "layer head query"] = np.triu(first, k=1).sum(
            axis=-1, dtype=np.float64
        )
        self.future, self.a_row = float(self.ahead.sum()), float(self.ahead[:, :, :-1].mean())
        # For each word but the last, the largest change of its rows, in any layer and head; then of the outputs there.
        self.changes: list[float] = np.abs(first - second).max(axis=(0, 1, 3))[:-1].tolist()
        self.outputs = float((outputs[0][:-1] - outputs[1][:-1]).abs().max())


def scores_of(model: LanguageDecoder, ids: Tensor, head: Head) -> Tensor:
    """One head's scores before mask and softmax [query, key]."""
    kept: list[Tensor] = []

    def attend(
        query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        kept.append(attention_scores(query, key))
        return scaled_dot_product_attention(query, key, value, mask)

    model(ids, attend=attend)
    return kept[head[0]][0, head[1]]


@torch.inference_mode()
def tell() -> Story:
    """The demo: the trained encoder beside the trained decoder."""
    words, others = words_of(SENTENCE), words_of(OTHER)
    card, both = open_model("toy", LanguageEncoder)
    ways = Read("toy", [both(numbers(card.source, [text])).vectors[0] for text in (words, others)])
    card, onward = open_model("toy-decoder", LanguageDecoder)
    one, other = (numbers(card.source, [text]) for text in (words, others))
    causal = Read("toy-decoder", [onward(ids)[0][0] for ids in (one, other)])
    forward = largest(ways.ahead)
    backward = largest(np.tril(causal.record.weights, k=-1).sum(axis=-1, dtype=np.float64))
    pattern = causal.record.pattern(*backward)
    still = max(*causal.changes, causal.outputs)
    say = TEXTS.filled(
        ways=ways,
        causal=causal,
        ahead=head_name(forward),
        back=head_name(backward),
        name=head_name(backward),
        seen=receipt_of(ways.record),
        masked=receipt_of(causal.record),
        word=words[ROW],
        last=words[-1],
        other=others[-1],
        heads=math.prod(causal.record.weights.shape[:2]),
        moved=max(ways.changes),
        over=ways.ahead[forward][ROW],
        rows=ROWS,
        still=small(still),
    )
    none = small(causal.future) if causal.future else say("none")
    say = say.filled(none=none, text=say("changes" if still else "stays"))
    models = {"toy": ways, "toy-decoder": causal}
    rows = (
        (
            name,
            *(f"{weight:.3f}" if weight else "0" for weight in (model.future, model.a_row)),
            *(small(change) for change in (max(model.changes), model.outputs)),
        )
        for name, model in models.items()
    )
    changes = Series.each({name: model.changes for name, model in models.items()})
    steps = _steps(say, scores_of(onward, one, backward), pattern, words)
    ahead = StoryView(text=say("view_ahead"), head=forward, query=ROW)
    back = replace(ahead, text=say("view_back"), record=1, head=backward)
    step = replace(back, text=say("view_step"), key=int(pattern[ROW].argmax()), step="softmax")
    return common.story(
        say,
        ("introduction", *steps, common.table(say, "changes_table", rows), "ahead", "picture"),
        (
            square(say("both_ways"), ways.record.pattern(*forward), words),
            square(
                say("left_to_right"),
                np.where(np.tri(len(words), dtype=bool), pattern, np.nan),
                words,
            ),
            Bars(say("bars"), tuple(words[:-1]), changes, say("change")),
        ),
        views=(ahead, back, step, StoryView(text=say("view_all"), record=1)),
        records=(ways.record, causal.record),
    )


def _steps(
    say: Texts, scores: Tensor, pattern: np.ndarray, words: list[str]
) -> tuple[Table, Phrase]:
    """One row, from its scores to its weights, computed by hand."""
    masked = scores.masked_fill(~causal_mask(len(words)), -torch.inf)[ROW]
    exponentials = (masked - masked.max()).exp()
    weights, bare = exponentials / exponentials.sum(), scores[ROW].softmax(dim=-1)
    numbers = zip(
        say.names("steps"), (scores[ROW], masked, exponentials, weights, bare), strict=True
    )
    table = Table(
        say("steps_title"),
        (say("step"), *words),
        tuple((step, *row.tolist()) for step, row in numbers),
    )
    apart = small(float(np.abs(weights.numpy() - pattern[ROW]).max()))
    return table, say("by_hand", lost=float(bare[ROW + 1 :].sum()), apart=apart)
