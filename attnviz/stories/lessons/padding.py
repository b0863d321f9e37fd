"""Padding: sentences of a batch are made equally long, which goes wrong without the mask."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from attnviz.attention import Attention, Token
from attnviz.capture.attend import attend_all
from attnviz.capture.source import open_source
from attnviz.capture.sources.modules import watch
from attnviz.models.attention import scaled_dot_product_attention
from attnviz.models.language_models import LanguageEncoder, Reading
from attnviz.stories import common
from attnviz.stories.record import Bars, Matrix, Series, Story, StoryView, Table
from attnviz.text.display import percent
from attnviz.text.messages import _

SHORT = "The animal didn't cross the street because it was too tired."
LONG = "Although I did not get 95 in last TOEFL, I could get in the Ph.D program."
PAD = "[PAD]"


def unmasked(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Compute attention, and ignore the mask."""
    del mask
    return scaled_dot_product_attention(query, key, value)


def read_batch(model: LanguageEncoder, batch: Tensor, *, masked: bool) -> tuple[Reading, Attention]:
    """Read a batch; return the reading, and the record of the first sentence including its padding."""
    with watch(model) as watched:
        reading = model(batch) if masked else model(batch, attend=unmasked)
    words = common.words_of(SHORT)
    padding = [Token(text=PAD, piece=PAD, special=True)] * (batch.shape[1] - len(words))
    record = watched.attention([*words, *padding])
    return reading, replace(record, model="toy" if masked else "toy without the mask", text=SHORT)


@torch.inference_mode()
def build_story() -> Story:
    """Read a sentence by itself, in a batch with a longer one, and in the same batch without the mask."""
    card, model = common.open_model("toy", LanguageEncoder)
    words = common.words_of(SHORT)
    n = len(words)
    batch = common.encode(card.source, [words, common.words_of(LONG)])
    vectors_alone = model(batch[:1, :n]).vectors[0]
    records, on_padding, changes = [], [], []
    for masked in (True, False):
        reading, record = read_batch(model, batch, masked=masked)
        records.append(record)
        on_padding.append(record.weights[:, :, :n, n:].sum(axis=-1))
        change = (reading.vectors[0, :n] - vectors_alone).norm(dim=-1) / vectors_alone.norm(dim=-1)
        changes.append(change.tolist())
    head = common.largest(on_padding[1])
    query = int(on_padding[1][head].argmax())
    n_padding = batch.shape[1] - n
    ways = [_("With the mask"), _("Without the mask")]
    patterns = [record.pattern(*head)[:n].copy() for record in records]
    top = float(max(pattern.max() for pattern in patterns))
    patterns[0][:, n:] = np.nan  # drawn as masked
    row = StoryView(
        text=_("With the mask, “{word}” gives the padding nothing.").format(word=words[query]),
        head=head,
        query=query,
    )
    return Story(
        title=_(
            "Without the mask, {share} of the attention goes to padding, and the words' vectors "
            "change by {change} of their length"
        ).format(
            share=common.percent(on_padding[1].mean()), change=common.percent(np.mean(changes[1]))
        ),
        receipt=_("With the mask: {proof}. Without: {proof_without}.").format(
            proof=common.receipt_of(attend_all([SHORT, LONG], open_source("toy"))[0]),
            proof_without=common.receipt_of(records[1]),
        ),
        parts=[
            _(
                "The sentences of a batch must be equally long, so the shorter ones are filled up "
                "with padding. Here “{short}” ({n} words) is followed by {n_padding} padding tokens, "
                "because the other sentence has {longest} words. The padding mask sets every score on "
                "them to minus infinity, so their weight is 0, and the sentence is read as if it were "
                "alone. Without the mask, padding takes part like any word."
            ).format(short=SHORT, n=n, n_padding=n_padding, longest=batch.shape[1]),
            Table(
                _("The sentence in the batch, compared with the same sentence alone"),
                [
                    _("batch"),
                    _("attention to padding, mean"),
                    _("largest in a row"),
                    _("change of a vector, mean"),
                    _("largest"),
                ],
                [
                    (
                        way,
                        common.percent(weight.mean()),
                        common.percent(weight.max()),
                        common.small(np.mean(change)),
                        common.small(max(change)),
                    )
                    for way, weight, change in zip(ways, on_padding, changes, strict=True)
                ],
            ),
            _(
                "The change is that of a word's last vector, as a share of its length; with the mask "
                "it is rounding. Nothing warns you of a forgotten mask, because rows still sum to 1. "
                "The picture shows the head that attends to padding most: {head}, {share} of a row."
            ).format(head=common.head_name(head), share=common.percent(on_padding[1][head].mean())),
        ],
        main=1,
        picture=[
            *(
                Matrix(way, pattern, words, [*words, *[PAD] * n_padding], limits=(0.0, top))
                for way, pattern in zip(ways, patterns, strict=True)
            ),
            Bars(
                _("How far each vector is from that of the sentence alone"),
                words,
                [Series(way, change) for way, change in zip(ways, changes, strict=True)],
                _("share of the vector's length"),
            ),
        ],
        views=[
            row,
            replace(
                row,
                text=_("Without it, “{word}” gives the padding {weight} of its weight.").format(
                    word=words[query], weight=percent(on_padding[1][head][query])
                ),
                record=1,
            ),
        ],
        records=records,
    )
