"""The mask: one sentence read in both directions, and from left to right only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from attnviz.attention import Attention
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.attention import attention_scores, causal_mask, scaled_dot_product_attention
from attnviz.models.training.measure import Head
from attnviz.models.wholes import LanguageDecoder, LanguageEncoder
from attnviz.stories.common import ROWS, head_name, largest, numbers, open_model, prose, small, square, words_of
from attnviz.stories.record import Bars, Matrix, Series, Story, Table

SENTENCE = "She is eating a green apple"
OTHER = "She is eating a green cake"
"""The same but for its last word."""
ROW = 2
"""The word whose row the table follows: it has words before it and after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A sentence as one model reads it, and how that changes with its last word."""

    record: Attention
    ahead: Float64[np.ndarray, "layer head query"]  # the weight that each row puts on later words
    changes: tuple[float, ...]  # for each word but the last, the largest change of its rows, in any layer and head
    outputs: float  # the largest change of what the model computes at those words

    @property
    def future(self) -> float:
        """The sum of all weights on later words, over all layers, heads and rows."""
        return float(self.ahead.sum())

    @property
    def a_row(self) -> float:
        """The same as a mean over the rows that have later words."""
        return float(self.ahead[:, :, :-1].mean())


def read(name: str, outputs: Sequence[Tensor]) -> Read:
    """Read both sentences with a model; its outputs [tokens, ...] for each were computed beside it.

    Each sentence is read alone: in one batch their words would stand in other rows, where rounding may differ.
    """
    source = open_source(name)
    first, second = (attend(text, source) for text in (SENTENCE, OTHER))
    return Read(
        record=first,
        ahead=np.triu(first.weights, k=1).sum(axis=-1, dtype=np.float64),
        changes=tuple(np.abs(first.weights - second.weights).max(axis=(0, 1, 3))[:-1].tolist()),
        outputs=float((outputs[0][:-1] - outputs[1][:-1]).abs().max()),
    )


def scores_of(model: LanguageDecoder, shown: Tensor, head: Head) -> Tensor:
    """One head's scores before mask and softmax [query, key]."""
    kept: list[Tensor] = []

    def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        kept.append(attention_scores(query, key))
        return scaled_dot_product_attention(query, key, value, mask)

    model(shown, attend=attend)
    return kept[head[0]][0, head[1]]


@torch.inference_mode()
def tell() -> Story:
    """The demo: the trained encoder beside the trained decoder."""
    words = words_of(SENTENCE)
    card, both = open_model("toy", LanguageEncoder)
    one, other = (numbers(card.source, [words_of(text)]) for text in (SENTENCE, OTHER))
    ways = read("toy", [both(shown).vectors[0] for shown in (one, other)])
    card, onward = open_model("toy-decoder", LanguageDecoder)
    one, other = (numbers(card.source, [words_of(text)]) for text in (SENTENCE, OTHER))
    causal = read("toy-decoder", [onward(shown)[0][0] for shown in (one, other)])
    forward = largest(ways.ahead)
    backward = largest(np.tril(causal.record.weights, k=-1).sum(axis=-1, dtype=np.float64))
    scores = scores_of(onward, one, backward)
    return Story(
        name="mask",
        title=f"of a row's weight {ways.a_row:.2f} is on later words in toy; {causal.a_row:.2f} in toy-decoder, masked",
        parts=(
            prose(f"""“{SENTENCE}”, read by two models. toy is an encoder, as BERT is: every word looks at every word.
            toy-decoder is a decoder, as GPT is: it learned to predict the next word, so it must not see it. The mask
            sees to that: before the softmax, every score on a later word becomes minus infinity, and exp(-inf) is
            0."""),
            *_steps(scores, causal.record.pattern(*backward), words, backward),
            *_tell(ways, causal),
            prose(f"""The picture shows, of toy, the head that looks ahead most ({head_name(forward)}), of toy-decoder,
            the one that looks back most ({head_name(backward)}); empty cells are masked. {ROWS}"""),
        ),
        picture=_picture(ways, causal, forward, backward),
        receipt=f"toy {ways.record.proof}; toy-decoder {causal.record.proof}",
    )


def _steps(scores: Tensor, pattern: np.ndarray, words: list[str], head: Head) -> tuple[Table, str]:
    """One row, from its scores to its weights, computed by hand."""
    masked = scores.masked_fill(~causal_mask(len(words)), -torch.inf)[ROW]
    exponentials = (masked - masked.max()).exp()
    weights = exponentials / exponentials.sum()
    steps = (
        ("score", scores[ROW]),
        ("masked", masked),
        ("exp(masked - largest)", exponentials),
        ("weight: exp / sum", weights),
        ("without the mask", scores[ROW].softmax(dim=-1)),
    )
    apart = float(np.abs(weights.numpy() - pattern[ROW]).max())
    lost = float(steps[-1][1][ROW + 1 :].sum())
    return (
        Table(
            title=f"toy-decoder, {head_name(head)}: the row of “{words[ROW]}”, step by step",
            columns=("step", *words),
            rows=tuple((name, *row.tolist()) for name, row in steps),
        ),
        prose(f"""Without the mask {lost:.3f} of the weight of “{words[ROW]}” would lie on later words. Computed by hand
        as here, the row is the model's own (largest difference {small(apart)})."""),
    )


def _tell(ways: Read, causal: Read) -> tuple[Table, str]:
    last, other = words_of(SENTENCE)[-1], words_of(OTHER)[-1]
    table = Table(
        title="weight on later words over all heads and rows, and the largest change before the last word when "
        f"“{last}” becomes “{other}”",
        columns=(
            *("model", "weight ahead, sum", "weight ahead, mean of a row"),
            *("largest change of a weight", "largest change of an output"),
        ),
        rows=tuple(
            (
                name,
                *(f"{weight:.3f}" if weight else "0" for weight in (model.future, model.a_row)),
                *(small(change) for change in (max(model.changes), model.outputs)),
            )
            for name, model in (("toy", ways), ("toy-decoder", causal))
        ),
    )
    heads = math.prod(causal.record.weights.shape[:2])
    none = "exactly 0" if causal.future == 0 else small(causal.future)
    still = max(*causal.changes, causal.outputs)
    text = "does not change at all" if still == 0 else f"changes by at most {small(still)}"
    return (
        table,
        prose(f"""In toy-decoder the weight on later words is {none} over all {heads} heads of all layers; in toy a row
        puts {ways.a_row:.3f} there on average. So when the last word changes, what toy-decoder made of the words before
        {text}, while in toy one of their weights changes by {max(ways.changes):.3f}. (The outputs are toy's vectors and
        toy-decoder's scores for each next word.)"""),
    )


def _picture(ways: Read, causal: Read, forward: Head, backward: Head) -> tuple[Bars | Matrix, ...]:
    labels = tuple(token.text for token in ways.record.query_tokens)
    masked = np.where(np.tri(len(labels), dtype=bool), causal.record.pattern(*backward), np.nan)
    return (
        square(f"toy, {head_name(forward)}: both ways", ways.record.pattern(*forward), labels),
        square(f"toy-decoder, {head_name(backward)}: left to right", masked, labels),
        Bars(
            title=f"largest change of a word's weights, “{labels[-1]}” exchanged",
            labels=labels[:-1],
            series=(Series(name="toy", values=ways.changes), Series(name="toy-decoder", values=causal.changes)),
            y_title="change of a weight",
        ),
    )
