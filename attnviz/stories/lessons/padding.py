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
from attnviz.text.messages import _, pgettext

SHORT = "The animal didn't cross the street because it was too tired."
LONG = "Although I did not get 95 in last TOEFL, I could get in the Ph.D program."
PAD = "[PAD]"
N_SENTENCES = 300  # test sentences among which those with a word to be named are taken
TITLE = _(
    "without the mask {share} of a row's weight is on padding, and words change by {changes} of "
    "their length"
)
INTRODUCTION = _(
    "A batch is one table of numbers, so its sentences must be equally long: behind the shorter "
    "one stands padding, words that are none. Here “{short}” ({n} words) is read beside a "
    "sentence of {longest} words, with {n_padding} words of padding. The padding mask makes every "
    "score on them minus infinity, so that their weight is 0. Then the sentence is read as if "
    "alone. Without the mask padding takes part like any word."
)
CHANGE = _(
    "Change is the difference of a word's last vector from the one it has alone, as a share of "
    "its length: with the mask at most {still}, rounding. Nothing warns of a forgotten mask: rows "
    "still sum to 1. Most goes to padding in {name}, {most} of a row, which the picture shows. "
    "{rows}"
)
COUNTED = _(
    "What the model answers suffers too. In {n} unseen sentences one word is hidden that the "
    "grammar decides, and all are read in one batch, padded to the longest: toy names the word "
    "right in {right} with the mask, and in {wrong} without it."
)
VIEW_FORGOTTEN = _("Without it “{word}” gives the padding {over:.2f} of its weight.")
VIEW_ALL = _("All heads, the mask forgotten: which of them look at the padding?")


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
    share = percent(on_padding[1].mean())
    still = small(max(changes[0]))
    name = common.head_name(head)
    most = percent(over.mean())
    n_padding = both.shape[1] - n
    proof = receipt_of(attend_all([SHORT, LONG], open_source("toy"))[0])
    proof_without = receipt_of(without)
    rows = (
        (way, percent(weights.mean()), percent(weights.max()), small(np.mean(c)), small(max(c)))
        for way, weights, c in zip(
            (_("with the mask"), _("without")), on_padding, changes, strict=True
        )
    )
    hatched, ways = (
        masked[head].copy(),
        (_("with the mask"), pgettext("padding", "without the mask")),
    )
    hatched[:, n:] = np.nan
    columns, top = (
        (*words, *[PAD] * (both.shape[1] - n)),
        float(max(masked[head].max(), forgotten[head].max())),
    )
    panels = (
        Matrix(
            _("{name}: {way}").format(name=name, way=way),
            values,
            tuple(words),
            columns,
            limits=(0.0, top),
        )
        for way, values in zip(ways, (hatched, forgotten[head]), strict=True)
    )
    series = Series.each(dict(zip(ways, changes, strict=True)))
    row = StoryView(
        text=_("With the mask, {name}: “{word}” gives the padding nothing.").format(
            name=name, word=words[place]
        ),
        head=head,
        query=place,
    )
    return common.story(
        title=TITLE.format(share=share, changes=percent(np.mean(changes[1]))),
        receipt=_("the masked batch: {proof}; without the mask: {proof_without}").format(
            proof=proof, proof_without=proof_without
        ),
        parts=(
            INTRODUCTION.format(short=SHORT, n=n, longest=both.shape[1], n_padding=n_padding),
            common.table(
                _("the sentence in the batch, beside the same sentence alone"),
                (
                    _("batch"),
                    _("weight on padding, mean of a row"),
                    _("most in a row"),
                    _("change of a word, mean"),
                    _("largest"),
                ),
                rows,
            ),
            CHANGE.format(still=still, name=name, most=most, rows=common.ROWS),
            COUNTED.format(
                n=len(hidden[0]),
                right=percent(accuracy(model, hidden, masked=True)),
                wrong=percent(accuracy(model, hidden, masked=False)),
            ),
        ),
        picture=(
            *panels,
            Bars(
                _("how far each word is from what it is alone"),
                tuple(words),
                series,
                _("share of the vector's length"),
            ),
        ),
        views=(
            row,
            replace(row, text=VIEW_FORGOTTEN.format(word=words[place], over=over[place]), record=1),
            StoryView(text=VIEW_ALL, record=1),
        ),
        records=(whole, without),
    )
