"""Padding: sentences of one batch made equally long, masked; and what goes wrong without the mask."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attnviz.attention import Attention, Token
from attnviz.capture.attend import attend_all
from attnviz.capture.source import open_source
from attnviz.capture.sources.modules import watch
from attnviz.models.attention import scaled_dot_product_attention
from attnviz.models.config import WordsConfig
from attnviz.models.language import splits
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.wholes import LanguageEncoder, Reading
from attnviz.stories import common
from attnviz.stories.common import numbers, percent, receipt_of, small, words_of
from attnviz.stories.record import Bars, Matrix, Series, Story, StoryView
from attnviz.text.phrase import Texts

SHORT = "The animal didn't cross the street because it was too tired."
LONG = "Although I did not get 95 in last TOEFL, I could get in the Ph.D program."
PAD = "[PAD]"
N_SENTENCES = 300  # test sentences among which those with a word to be named are taken
TEXTS = Texts(
    """
title | without the mask {share} of a row's weight is on padding, and words change by {changes} of their length
    | 마스크가 없으면 한 행의 가중치 가운데 {share}가 패딩으로 가고, 단어는 길이의 {changes}만큼 바뀜
receipt | the masked batch: {proof}; without the mask: {proof_without}
    | 마스크를 쓴 배치: {proof}; 마스크 없음: {proof_without}
introduction | A batch is one table of numbers, so its sentences must be equally long: behind the shorter one stands
    padding, words that are none. Here “{SHORT}” ({n} words) is read beside a sentence of {longest} words, with
    {n_padding} words of padding. The padding mask makes every score on them minus infinity, so that their weight is 0.
    Then the sentence is read as if alone. Without the mask padding takes part like any word.
    | 배치는 수로 된 표 하나이므로 문장의 길이가 같아야 합니다. 그래서 짧은 문장 뒤에는 단어가 아닌 단어, 패딩을
    채웁니다. 여기서는 “{SHORT}”(단어 {n}개)를 단어 {longest}개짜리 문장과 함께 읽으므로 패딩이 {n_padding}개입니다.
    패딩 마스크는 패딩에 대한 스코어를 모두 음의 무한대로 바꾸어 가중치를 0으로 만듭니다. 그러면 혼자 읽을 때와 똑같이
    읽습니다. 마스크가 없으면 패딩도 단어처럼 끼어듭니다.
compared | the sentence in the batch, beside the same sentence alone | 배치 안의 문장을 혼자 읽은 문장과 비교
compared_columns | batch; weight on padding, mean of a row; most in a row; change of a word, mean; largest
    | 배치; 패딩으로 가는 가중치, 행 평균; 가장 큰 행; 단어의 변화, 평균; 최대
change | Change is the difference of a word's last vector from the one it has alone, as a share of its length: with the
    mask at most {still}, rounding. Nothing warns of a forgotten mask: rows still sum to 1. Most goes to padding in
    {name}, {most} of a row, which the picture shows. {rows}
    | 변화는 단어의 마지막 벡터가 혼자 읽을 때와 얼마나 다른지를 길이에 대한 비율로 나타낸 것입니다. 마스크가 있으면
    많아야 {still}, 반올림 차이입니다. 마스크를 잊어도 경고는 없습니다. 행의 합은 여전히 1입니다. 패딩을 가장 많이 보는
    것은 {name}(한 행의 {most})이고, 그림에 있습니다. {rows}
counted | What the model answers suffers too. In {n} unseen sentences one word is hidden that the grammar decides, and
    all are read in one batch, padded to the longest: toy names the word right in {right} with the mask, and in {wrong}
    without it.
    | 모델의 답도 나빠집니다. 학습에 쓰지 않은 문장 {n}개에서 문법이 정해 주는 단어를 하나씩 가리고, 가장 긴 문장에
    맞추어 패딩한 배치 하나로 읽힙니다. toy가 그 단어를 맞히는 비율은 마스크가 있으면 {right}, 없으면 {wrong}입니다.
view_masked | With the mask, {name}: “{word}” gives the padding nothing.
    | 마스크가 있을 때 {name}: “{word}”이(가) 패딩에 주는 가중치는 없습니다.
view_forgotten | Without it “{word}” gives the padding {over:.2f} of its weight.
    | 마스크가 없으면 “{word}”이(가) 패딩에 주는 가중치는 {over:.2f}입니다.
view_all | All heads, the mask forgotten: which of them look at the padding?
    | 마스크를 잊었을 때의 모든 헤드: 패딩을 보는 것은?
rows | with the mask; without | 마스크 있음; 마스크 없음
ways | with the mask; without the mask | 마스크 있음; 마스크 없음
way | {name}: {way} | {name}: {way}
bars | how far each word is from what it is alone | 혼자 읽을 때와 단어가 다른 정도
length | share of the vector's length | 벡터 길이에 대한 비율
""",
    globals(),
)


def unmasked(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Attention that forgets the mask."""
    del mask
    return scaled_dot_product_attention(query, key, value)


def seen_in(model: LanguageEncoder, both: Tensor, **more: Any) -> tuple[Reading, Attention]:
    """A batch read by the model, and the record of its first sentence with the padding after it."""
    with watch(model) as seen:
        reading = model(both, **more)
    words = words_of(SHORT)
    padding = [Token(text=PAD, piece=PAD, special=True)] * (both.shape[1] - len(words))
    record = seen.attention([*words, *padding])
    return reading, replace(record, model="toy without the mask" if more else "toy", text=SHORT)


def hidden_words(vocabulary: Vocabulary, config: WordsConfig) -> tuple[Tensor, Tensor, Tensor]:
    """Test sentences, each with a word hidden that the grammar decides [sentence, word]; its place; which it is."""
    found = [one for one in islice(splits.sentences("test"), N_SENTENCES) if one.decided]
    ids, places = (
        numbers(vocabulary, [one.words for one in found]),
        torch.tensor([min(one.decided) for one in found]),
    )
    hidden = ids[torch.arange(len(found)), places]
    return ids.scatter(1, places[:, None], config.mask), places, hidden


@torch.inference_mode()
def accuracy(
    model: LanguageEncoder, hidden: tuple[Tensor, Tensor, Tensor], *, masked: bool
) -> float:
    """The share of hidden words that the model names right, all sentences in one batch."""
    ids, places, words = hidden
    reading = model(ids) if masked else model(ids, attend=unmasked)
    return float(
        (reading.logits.argmax(dim=-1)[torch.arange(len(ids)), places] == words).float().mean()
    )


@torch.inference_mode()
def tell() -> Story:
    """The demo: one sentence alone, in a batch with a longer one, and in the same batch with the mask forgotten."""
    card, model = common.open_model("toy", LanguageEncoder)
    words = words_of(SHORT)
    both, n = numbers(card.source, [words, words_of(LONG)]), len(words)
    alone = model(both[:1, :n]).vectors[0]
    (right, whole), (wrong, without) = seen_in(model, both), seen_in(model, both, attend=unmasked)
    masked, forgotten = (record.weights[:, :, :n] for record in (whole, without))
    on_padding = [weights[..., n:].sum(axis=-1) for weights in (masked, forgotten)]
    changes = [
        ((one.vectors[0, :n] - alone).norm(dim=-1) / alone.norm(dim=-1)).tolist()
        for one in (right, wrong)
    ]
    head, hidden = common.largest(on_padding[1]), hidden_words(card.source, model.config)
    over = on_padding[1][head]
    place = int(over.argmax())
    say = TEXTS.filled(
        share=percent(on_padding[1].mean()),
        changes=percent(np.mean(changes[1])),
        rows=common.ROWS,
        still=small(max(changes[0])),
        name=common.head_name(head),
        most=percent(over.mean()),
        longest=both.shape[1],
        n_padding=both.shape[1] - n,
        word=words[place],
        over=over[place],
        right=percent(accuracy(model, hidden, masked=True)),
        wrong=percent(accuracy(model, hidden, masked=False)),
        proof=receipt_of(attend_all([SHORT, LONG], open_source("toy"))[0]),
        proof_without=receipt_of(without),
    )
    rows = (
        (way, percent(weights.mean()), percent(weights.max()), small(np.mean(c)), small(max(c)))
        for way, weights, c in zip(say.names("rows"), on_padding, changes, strict=True)
    )
    hatched, ways = masked[head].copy(), say.names("ways")
    hatched[:, n:] = np.nan
    columns, top = (
        (*words, *[PAD] * (both.shape[1] - n)),
        float(max(masked[head].max(), forgotten[head].max())),
    )
    panels = (
        Matrix(say("way", way=way), values, tuple(words), columns, limits=(0.0, top))
        for way, values in zip(ways, (hatched, forgotten[head]), strict=True)
    )
    series = Series.each(dict(zip(ways, changes, strict=True)))
    row = StoryView(text=say("view_masked"), head=head, query=place)
    return common.story(
        say,
        (
            say("introduction", n=n),
            common.table(say, "compared", rows),
            "change",
            say("counted", n=len(hidden[0])),
        ),
        (*panels, Bars(say("bars"), tuple(words), series, say("length"))),
        views=(
            row,
            replace(row, text=say("view_forgotten"), record=1),
            StoryView(text=say("view_all"), record=1),
        ),
        records=(whole, without),
    )
