"""The causal mask: a sentence read in both directions, and from left to right only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnviz.attention import Attention
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.attention import attention_scores, causal_mask, scaled_dot_product_attention
from attnviz.models.language_models import LanguageDecoder
from attnviz.models.training.measure import Head
from attnviz.stories import common
from attnviz.stories.record import Bars, Series, Story, StoryView, Table
from attnviz.text.display import percent
from attnviz.text.messages import _

SENTENCE = "She is eating a green apple"
OTHER = "She is eating a green cake"  # differs only in the last word
ROW = 2  # the index of the word whose row is computed by hand


class TwoReadings(NamedTuple):
    """How a model reads the two sentences."""

    record: Attention  # of the first sentence
    ahead: np.ndarray  # the sum of its weights on later words [layer, head, query]
    # for each word except the last one, the largest change of a weight when the last word changes
    changes: list[float]


def read(name: str) -> TwoReadings:
    """Read the two sentences with a home-built model."""
    source = open_source(name)
    # Each sentence is read separately, since in a batch rounding could differ between them.
    record, other_record = (attend(text, source) for text in (SENTENCE, OTHER))
    ahead = np.triu(record.weights, k=1).sum(axis=-1, dtype=np.float64)
    changes = np.abs(record.weights - other_record.weights).max(axis=(0, 1, 3))
    return TwoReadings(record, ahead, changes[:-1].tolist())


def scores_of(model: LanguageDecoder, ids: Tensor, head: Head) -> Tensor:
    """Return the scores of a head before mask and softmax [query, key]."""
    scores: list[Tensor] = []

    def attend(
        query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Compute attention as usual, and keep the scores of each layer."""
        scores.append(attention_scores(query, key))
        return scaled_dot_product_attention(query, key, value, mask)

    model(ids, attend=attend)
    return scores[head[0]][0, head[1]]


@torch.inference_mode()
def build_story() -> Story:
    """Compare the attention of the trained encoder with that of the trained decoder."""
    words = common.words_of(SENTENCE)
    readings = {name: read(name) for name in ("toy", "toy-decoder")}
    toy, toy_ahead, toy_changes = readings["toy"]
    toy_decoder, decoder_ahead, _changes = readings["toy-decoder"]
    card, decoder = common.open_model("toy-decoder", LanguageDecoder)
    ahead_head = common.largest(toy_ahead)
    weights = toy_decoder.weights
    back_head = common.largest(np.tril(weights, k=-1).sum(axis=-1, dtype=np.float64))
    pattern = weights[back_head]
    scores = scores_of(decoder, common.encode(card.source, [words]), back_head)
    masked = scores.masked_fill(~causal_mask(len(words)), -torch.inf)[ROW]
    # Subtracting the largest score first does not change the weights, and exp cannot overflow.
    exponentials = (masked - masked.max()).exp()
    by_hand = exponentials / exponentials.sum()
    unmasked = scores[ROW].softmax(dim=-1)
    steps = {
        _("score"): scores[ROW],
        _("masked"): masked,
        _("exp(masked - largest)"): exponentials,
        _("weight: exp / sum"): by_hand,
        _("without the mask"): unmasked,
    }
    return Story(
        title=_(
            "With a causal mask no word sees later ones: toy spends {ahead:.0%} of "
            "its attention on them, the masked toy-decoder {none:.0%}"
        ).format(ahead=toy_ahead[..., :-1].mean(), none=decoder_ahead[..., :-1].mean()),
        receipt=_("toy {proof}; toy-decoder {decoder_proof}").format(
            proof=common.receipt_of(toy), decoder_proof=common.receipt_of(toy_decoder)
        ),
        parts=[
            _(
                "Two models read “{sentence}”. toy is an encoder, like BERT: every word attends to "
                "every word. toy-decoder is a decoder, like GPT: it learned to predict the next word, "
                "so it must not see it. This is what the causal mask is for: before the softmax it "
                "sets the score of every later word to minus infinity, and exp(-inf) is 0."
            ).format(sentence=SENTENCE),
            Table(
                _("toy-decoder, {head}: the row of “{word}”, step by step").format(
                    head=common.head_name(back_head), word=words[ROW]
                ),
                [_("step"), *words],
                [(step, *row.tolist()) for step, row in steps.items()],
            ),
            _(
                "Without the mask, {share:.3f} of the weight of “{word}” would go to later words. "
                "The row computed by hand matches the model's own to {difference}."
            ).format(
                share=float(unmasked[ROW + 1 :].sum()),
                word=words[ROW],
                difference=common.small(np.abs(by_hand.numpy() - pattern[ROW]).max()),
            ),
            Table(
                _("Attention to later words, and changes when “{last}” becomes “{other}”").format(
                    last=words[-1], other=common.words_of(OTHER)[-1]
                ),
                [
                    _("model"),
                    _("weight on later words, sum"),
                    _("mean of a row"),
                    _("largest change of a weight"),
                ],
                [
                    (
                        name,
                        common.small(reading.ahead.sum()),
                        common.small(reading.ahead[..., :-1].mean()),
                        common.small(max(reading.changes)),
                    )
                    for name, reading in readings.items()
                ],
            ),
            _(
                "So when the last word changes, nothing changes before it in toy-decoder, while in toy "
                "weights of the words before it change by up to {change:.3f}. The picture shows the "
                "head of toy that attends most to later words, and the head of toy-decoder that "
                "attends most to earlier words."
            ).format(change=max(toy_changes)),
        ],
        main=1,
        picture=[
            common.weights_panel(
                common.head_title("toy", ahead_head), toy.pattern(*ahead_head), words
            ),
            common.weights_panel(
                common.head_title("toy-decoder", back_head),
                np.where(np.tri(len(words), dtype=bool), pattern, np.nan),
                words,
            ),
            Bars(
                _("Largest change of a weight when the last word changes"),
                words[:-1],
                [Series(name, reading.changes) for name, reading in readings.items()],
                _("change of a weight"),
            ),
        ],
        views=[
            StoryView(
                text=_(
                    "In toy, {head}, “{word}” gives {weight} of its weight to later words."
                ).format(
                    head=common.head_name(ahead_head),
                    word=words[ROW],
                    weight=percent(toy_ahead[ahead_head][ROW]),
                ),
                head=ahead_head,
                query=ROW,
            ),
            StoryView(
                text=_(
                    "In toy-decoder, {head}, the row of “{word}” ends at “{word}”; later words are "
                    "masked."
                ).format(head=common.head_name(back_head), word=words[ROW]),
                record=1,
                head=back_head,
                query=ROW,
            ),
        ],
        records=[toy, toy_decoder],
    )
