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
from attnviz.text.messages import Phrase, _

SENTENCE = "She is eating a green apple"
OTHER = "She is eating a green cake"  # the same but for its last word
ROW = 2  # the word whose row the table follows: it has words before it and after it
TITLE = _(
    "of a row's weight {both_ways:.2f} is on later words in toy; {causal:.2f} in toy-decoder, "
    "masked"
)
INTRODUCTION = _(
    "“{sentence}”, read by two models. toy is an encoder, as BERT is: every word looks at every "
    "word. toy-decoder is a decoder, as GPT is: it learned to predict the next word, so it must "
    "not see it. The mask sees to that: before the softmax, every score on a later word becomes "
    "minus infinity, and exp(-inf) is 0."
)
PICTURE = _(
    "The picture shows, of toy, the head that looks ahead most ({ahead}), of toy-decoder, the one "
    "that looks back most ({back}); empty cells are masked. {rows}"
)
BY_HAND = _(
    "Without the mask {lost:.3f} of the weight of “{word}” would lie on later words. Computed by "
    "hand as here, the row is the model's own (largest difference {apart})."
)
CHANGES_TABLE = _(
    "weight on later words over all heads and rows, and the largest change before the last word "
    "when “{last}” becomes “{other}”"
)
AHEAD = _(
    "In toy-decoder the weight on later words is {none} over all {heads} heads of all layers; in "
    "toy a row puts {both_ways:.3f} there on average. So when the last word changes, what "
    "toy-decoder made of the words before {text}, while in toy one of their weights changes by "
    "{moved:.3f}. (The outputs are toy's vectors and toy-decoder's scores for each next word.)"
)
VIEW_AHEAD = _("In toy, {ahead}, “{word}” puts {over:.2f} of its weight on later words.")
VIEW_BACK = _(
    "In toy-decoder, {back}, the row of “{word}” ends at “{word}”: what comes later is masked."
)
VIEW_STEP = _("How the row of “{word}” is computed: the softmax over the words that it may see.")


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
    ahead, back = head_name(forward), head_name(backward)
    seen = receipt_of(ways.record)
    masked = receipt_of(causal.record)
    heads = math.prod(causal.record.weights.shape[:2])
    moved = max(ways.changes)
    none = small(causal.future) if causal.future else _("exactly 0")
    text = (
        _("changes by at most {still}").format(still=small(still))
        if still
        else _("does not change at all")
    )
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
    steps = _steps(scores_of(onward, one, backward), backward, pattern, words)
    view_ahead = StoryView(
        text=VIEW_AHEAD.format(ahead=ahead, word=words[ROW], over=ways.ahead[forward][ROW]),
        head=forward,
        query=ROW,
    )
    view_back = replace(
        view_ahead, text=VIEW_BACK.format(back=back, word=words[ROW]), record=1, head=backward
    )
    view_step = replace(
        view_back,
        text=VIEW_STEP.format(word=words[ROW]),
        key=int(pattern[ROW].argmax()),
        step="softmax",
    )
    return common.story(
        title=TITLE.format(both_ways=ways.a_row, causal=causal.a_row),
        receipt=_("toy {seen}; toy-decoder {masked}").format(seen=seen, masked=masked),
        parts=(
            INTRODUCTION.format(sentence=SENTENCE),
            *steps,
            common.table(
                CHANGES_TABLE.format(last=words[-1], other=others[-1]),
                (
                    _("model"),
                    _("weight ahead, sum"),
                    _("weight ahead, mean of a row"),
                    _("largest change of a weight"),
                    _("largest change of an output"),
                ),
                rows,
            ),
            AHEAD.format(none=none, heads=heads, both_ways=ways.a_row, text=text, moved=moved),
            PICTURE.format(ahead=ahead, back=back, rows=ROWS),
        ),
        picture=(
            square(
                _("toy, {ahead}: both ways").format(ahead=ahead),
                ways.record.pattern(*forward),
                words,
            ),
            square(
                _("toy-decoder, {back}: left to right").format(back=back),
                np.where(np.tri(len(words), dtype=bool), pattern, np.nan),
                words,
            ),
            Bars(
                _("largest change of a word's weights, “{last}” exchanged").format(last=words[-1]),
                tuple(words[:-1]),
                changes,
                _("change of a weight"),
            ),
        ),
        views=(
            view_ahead,
            view_back,
            view_step,
            StoryView(
                text=_("All heads of toy-decoder: nothing stands above any diagonal."), record=1
            ),
        ),
        records=(ways.record, causal.record),
    )


def _steps(
    scores: Tensor, head: Head, pattern: np.ndarray, words: list[str]
) -> tuple[Table, Phrase]:
    """One row, from its scores to its weights, computed by hand."""
    masked = scores.masked_fill(~causal_mask(len(words)), -torch.inf)[ROW]
    exponentials = (masked - masked.max()).exp()
    weights, bare = exponentials / exponentials.sum(), scores[ROW].softmax(dim=-1)
    numbers = zip(
        (
            _("score"),
            _("masked"),
            _("exp(masked - largest)"),
            _("weight: exp / sum"),
            _("without the mask"),
        ),
        (scores[ROW], masked, exponentials, weights, bare),
        strict=True,
    )
    table = Table(
        _("toy-decoder, {name}: the row of “{word}”, step by step").format(
            name=head_name(head), word=words[ROW]
        ),
        (_("step"), *words),
        tuple((step, *row.tolist()) for step, row in numbers),
    )
    apart = small(float(np.abs(weights.numpy() - pattern[ROW]).max()))
    return table, BY_HAND.format(lost=float(bare[ROW + 1 :].sum()), word=words[ROW], apart=apart)
