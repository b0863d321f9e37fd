"""A model whose attention is set by hand, so that what each head does is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attnviz.attention import Kind, Receipt, Token
from attnviz.capture.batching import batch_of_one
from attnviz.capture.observers import Batch, Observer, Sentence
from attnviz.capture.sources import Source
from attnviz.capture.stream import ForwardPass, Layer, Scoring

WORDS = ("[CLS]", "[SEP]", ".", *(f"w{number}" for number in range(21)))
PLACES = 48
SHARP = 200.0
"""How large the scores are: the softmax puts all of its weight on the largest."""
Target = Callable[
    [list[int], int], int
]  # the place that a head looks at, from the words of a sentence and its place


def at_offset(offset: int) -> Target:
    """The place so far from its own."""
    return lambda _words, place: place + offset


def earlier(words: list[int], place: int) -> int:
    """The last earlier place of the same word; nowhere for a first one."""
    return max((n for n in range(place) if words[n] == words[place]), default=-2)


LAYERS: tuple[dict[str, Target], ...] = (
    {
        "previous": at_offset(-1),
        "next": at_offset(1),
        "self": at_offset(0),
        "separator": lambda words, _place: len(words) - 1,
        "broad": lambda _words, _place: -1,
        "offset_-3": at_offset(-3),
    },
    {
        "induction": lambda words, place: earlier(words, place) + 1,
        "same_word": earlier,
        "first": lambda _words, _place: 0,
        "punctuation": lambda words, _place: words.index(WORDS.index(".")),
        "offset_+2": at_offset(2),
        "previous": at_offset(-1),
    },
)
"""What each head does. A head that looks at no place of the sentence attends to all alike."""


class ByHand(Source):
    """The model as a source. A random one has scores drawn from a seed, for each pair of a word and a place."""

    def __init__(self, seed: int | None = None) -> None:
        self.name = "by hand" if seed is None else f"random {seed}"
        self.has_sinks, self.generates = False, False
        self.kinds: tuple[Kind, ...] = ("encoder",)
        self._drawn: Tensor | None = None
        if seed is not None:
            generator = torch.Generator().manual_seed(seed)
            shape = len(LAYERS), len(LAYERS[0]), len(WORDS), PLACES
            self._drawn = torch.randn(shape, generator=generator)

    def _read(self, text: str, pair: str | None, target: str | None, kind: Kind | None) -> Batch:
        """Words between [CLS] and [SEP]."""
        del pair, target, kind
        tokens = [
            Token(text=word, piece=word, id=WORDS.index(word), special=word.startswith("["))
            for word in ("[CLS]", *text.split(), "[SEP]")
        ]
        ids = torch.tensor([[token.id for token in tokens]])
        return batch_of_one(Sentence(text=text, pair=None, tokens=tuple(tokens)), {"words": ids})

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run both layers: the keys are the places, so that the queries are the scores."""
        run = ForwardPass(batch=batch, observers=observers, native="by hand")
        mask = batch.real[:, None, None]
        for number in range(len(LAYERS)):
            query = self._scores(number, batch.inputs["words"], batch.real.sum(dim=1))
            key = torch.eye(query.shape[3]).expand_as(query)
            weights = torch.softmax(query.masked_fill(~mask, -torch.inf), dim=-1)
            context = (weights @ key).transpose(1, 2)  # (B, Q, H, d)
            scoring = Scoring(mask=mask, scaling=1.0)
            run.add_layer(Layer(query=query, key=key, value=key, output=context, scoring=scoring))
        return run.receipt(self.name)

    def _scores(self, number: int, ids: Tensor, lengths: Tensor) -> Tensor:
        """The scores of a layer: (batch, head, place, place)."""
        if self._drawn is not None:
            return self._drawn[number][:, ids, : ids.shape[1]].transpose(0, 1)
        targets = []
        for row, length in zip(ids.tolist(), lengths.tolist(), strict=True):
            words = row[:length]
            for target in LAYERS[number].values():
                places = [target(words, place) for place in range(length)]
                targets.append([*places, *[-1] * (len(row) - length)])
        looked_at = torch.tensor(targets).reshape(len(ids), -1, ids.shape[1], 1)
        return SHARP * (looked_at == torch.arange(ids.shape[1]))

    def digest(self) -> str:
        """By its name: no other model has it."""
        return self.name

    def untrained(self, seed: int = 0) -> ByHand:
        """Random scores."""
        return ByHand(seed)
