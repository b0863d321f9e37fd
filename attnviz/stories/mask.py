"""The mask: one sentence read in both directions, and from left to right only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from attnviz.attention import Attention
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.attention import attention_scores, causal_mask, scaled_dot_product_attention
from attnviz.models.training.measure import Head
from attnviz.models.wholes import LanguageDecoder, LanguageEncoder
from attnviz.stories.common import ROWS, head_name, numbers, open_model, small, words_of
from attnviz.stories.record import Bars, Matrix, Series, Story, Table

SENTENCE = "She is eating a green apple"
OTHER = "She is eating a green cake"
"""The same but for its last word."""
ROW = 2
"""The word whose row the table follows: it has words before it and after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A sentence as one model reads it, and how that changes with its last word.

    Attributes:
        record: its attention.
        future: the sum of all weights on later words, over all layers, heads and rows.
        a_row: the same as a mean over the rows that have later words.
        changes: for each word but the last, the largest change of its rows, in any layer and head.
        outputs: the largest change of what the model computes at those words (see `tell`).
    """

    record: Attention
    future: float
    a_row: float
    changes: tuple[float, ...]
    outputs: float


def future_of(weights: np.ndarray) -> np.ndarray:
    """The weight that each row puts on later words [layer, head, query]."""
    sums: np.ndarray = np.triu(weights, k=1).sum(axis=-1, dtype=np.float64)
    return sums


def read(name: str, outputs: Sequence[torch.Tensor]) -> Read:
    """Read both sentences with a model; its outputs [tokens, ...] for each were computed beside it.

    Each sentence is read alone: in one batch their words would stand in other rows, where rounding may differ.
    """
    source = open_source(name)
    first, second = (attend(text, source) for text in (SENTENCE, OTHER))
    ahead = future_of(first.weights)
    apart = np.abs(first.weights - second.weights).max(axis=(0, 1, 3))
    return Read(
        record=first,
        future=float(ahead.sum()),
        a_row=float(ahead[:, :, :-1].mean()),
        changes=tuple(float(change) for change in apart[:-1]),
        outputs=float((outputs[0][:-1] - outputs[1][:-1]).abs().max()),
    )


def scores_of(model: LanguageDecoder, shown: torch.Tensor, head: Head) -> torch.Tensor:
    """One head's scores before mask and softmax [query, key]."""
    kept: list[torch.Tensor] = []

    def attend(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor]:
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
    forward, backward = _busiest(future_of(ways.record.weights)), _busiest(_past_of(causal.record.weights))
    scores = scores_of(onward, one, backward)
    return Story(
        name="mask",
        title="the same sentence read both ways, and from left to right only",
        parts=(
            (
                f"“{SENTENCE}”, read by two models. toy is an encoder, as BERT is: every word looks at every word. "
                "toy-decoder is a decoder, as GPT is: it learned to predict the next word, so it must not see it. "
                "The mask sees to that: before the softmax, every score on a later word becomes minus infinity, and "
                "exp(-inf) is 0."
            ),
            *_steps(scores, causal.record.pattern(*backward), words, backward),
            *_tell(ways, causal),
            (
                f"The picture shows, of toy, the head that looks ahead most ({head_name(forward)}), of toy-decoder, "
                f"the one that looks back most ({head_name(backward)}); empty cells are masked. {ROWS}"
            ),
        ),
        picture=_picture(ways, causal, forward, backward),
        receipt=f"toy {ways.record.proof}; toy-decoder {causal.record.proof}",
    )


def _past_of(weights: np.ndarray) -> np.ndarray:
    """The weight that each row puts on earlier words [layer, head, query]."""
    sums: np.ndarray = np.tril(weights, k=-1).sum(axis=-1, dtype=np.float64)
    return sums


def _busiest(sums: np.ndarray) -> Head:
    """The head with the largest mean over its rows [layer, head, query]."""
    layer, head = np.unravel_index(sums.mean(axis=-1).argmax(), sums.shape[:2])
    return int(layer), int(head)


def _steps(scores: torch.Tensor, pattern: np.ndarray, words: list[str], head: Head) -> tuple[Table, str]:
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
    lost = float(scores[ROW].softmax(dim=-1)[ROW + 1 :].sum())
    return (
        Table(
            title=f"toy-decoder, {head_name(head)}: the row of “{words[ROW]}”, step by step",
            columns=("step", *words),
            rows=tuple((name, *row.tolist()) for name, row in steps),
        ),
        (
            f"Without the mask {lost:.3f} of the weight of “{words[ROW]}” would lie on later words. Computed by hand "
            f"as here, the row is the model's own (largest difference {small(apart)})."
        ),
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
    heads = causal.record.weights.shape[0] * causal.record.weights.shape[1]
    none = "exactly 0" if causal.future == 0 else small(causal.future)
    still = max(*causal.changes, causal.outputs)
    text = "does not change at all" if still == 0 else f"changes by at most {small(still)}"
    return (
        table,
        (
            f"In toy-decoder the weight on later words is {none} over all {heads} heads of all layers; in toy a row "
            f"puts {ways.a_row:.3f} there on average. So when the last word changes, what toy-decoder made of the "
            f"words before {text}, while in toy one of their weights changes by {max(ways.changes):.3f}. (The outputs "
            "are toy's vectors and toy-decoder's scores for each next word.)"
        ),
    )


def _picture(ways: Read, causal: Read, forward: Head, backward: Head) -> tuple[Bars | Matrix, ...]:
    labels = tuple(token.text for token in ways.record.query_tokens)
    masked = np.where(np.tri(len(labels), dtype=bool), causal.record.pattern(*backward), np.nan)
    return (
        Matrix(
            title=f"toy, {head_name(forward)}: both ways",
            values=ways.record.pattern(*forward),
            rows=labels,
            columns=labels,
        ),
        Matrix(title=f"toy-decoder, {head_name(backward)}: left to right", values=masked, rows=labels, columns=labels),
        Bars(
            title=f"largest change of a word's weights, “{labels[-1]}” exchanged",
            labels=labels[:-1],
            series=(Series(name="toy", values=ways.changes), Series(name="toy-decoder", values=causal.changes)),
            y_title="change of a weight",
        ),
    )
