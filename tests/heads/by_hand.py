"""A transformer of attention alone whose weights are set by hand, so that what each head does is known beforehand.

The residual stream of a token: which word it is, which place it has, whether it is a separator or a punctuation mark, a
constant, and an empty part, into which the head of layer 0 that looks at the previous token writes which word that was.
The induction head of layer 1 reads it there (Olsson et al. 2022).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attnviz.attention import Kind, Receipt, Token
from attnviz.capture.batching import batch_of_one
from attnviz.capture.observers import Batch, Observer, Sentence
from attnviz.capture.projections import show_calls
from attnviz.capture.sources import Source
from attnviz.capture.stream import ForwardPass, Layer, Scoring

WORDS = ("[CLS]", "[SEP]", ".", *(f"w{number}" for number in range(21)))
PLACES = 48
N = len(WORDS)
AT_PLACE, AT_SEP, AT_POINT, AT_ONE, AT_BEFORE = (
    N,
    N + PLACES,
    N + PLACES + 1,
    N + PLACES + 2,
    N + PLACES + 3,
)
WIDTH = AT_BEFORE + N
SHARP = 200.0
"""How large the scores are: the softmax puts all of its weight on the largest."""


def at_offset(offset: int) -> tuple[Tensor, Tensor]:
    """A query asks for the place so far from its own."""
    query, key = torch.zeros(WIDTH, PLACES), torch.zeros(WIDTH, PLACES)
    for place in range(PLACES):
        key[AT_PLACE + place, place] = 1
        if 0 <= place + offset < PLACES:
            query[AT_PLACE + place, place + offset] = SHARP
    return query, key


def to_flag(flag: int) -> tuple[Tensor, Tensor]:
    """Every query asks for keys with this flag."""
    query, key = torch.zeros(WIDTH, PLACES), torch.zeros(WIDTH, PLACES)
    query[AT_ONE, 0], key[flag, 0] = SHARP, 1
    return query, key


def nowhere() -> tuple[Tensor, Tensor]:
    """All scores are 0: a uniform head."""
    return torch.zeros(WIDTH, PLACES), torch.zeros(WIDTH, PLACES)


def to_earlier(words: int) -> tuple[Tensor, Tensor]:
    """A query asks for keys that have its own word at `words`, but only at earlier places; the later the better."""
    query, key = torch.zeros(WIDTH, N + PLACES), torch.zeros(WIDTH, N + PLACES)
    for word in range(N):
        query[word, word], key[words + word, word] = 2 * SHARP, 1
    for place in range(PLACES):
        key[AT_PLACE + place, N + place] = 1
        for later in range(place, PLACES):  # not oneself, and nothing that is to come
            query[AT_PLACE + place, N + later] = -SHARP
    return query, key


LAYERS: tuple[dict[str, tuple[Tensor, Tensor]], ...] = (
    {
        "previous": at_offset(-1),
        "next": at_offset(1),
        "self": at_offset(0),
        "separator": to_flag(AT_SEP),
        "broad": nowhere(),
        "offset_-3": at_offset(-3),
    },
    {
        "induction": to_earlier(AT_BEFORE),
        "same_word": to_earlier(0),
        "first": to_flag(AT_PLACE),
        "punctuation": to_flag(AT_POINT),
        "offset_+2": at_offset(2),
        "previous": at_offset(-1),
    },
)
"""For each head what it does, and the maps that make its queries and keys."""


class ByHand(Source):
    """The model as a source. A random one has maps of the same sizes, drawn from a seed."""

    def __init__(self, seed: int | None = None) -> None:
        self.name = "by hand" if seed is None else f"random {seed}"
        self.has_sinks, self.generates = False, False
        self.kinds: tuple[Kind, ...] = ("encoder",)
        self._outputs = torch.nn.ModuleList(
            torch.nn.Linear(len(heads) * WIDTH, WIDTH, bias=False) for heads in LAYERS
        )
        self._maps = [
            [torch.cat([_wide(one) for one in maps], dim=1) for maps in heads.values()]
            for heads in LAYERS
        ]
        with torch.no_grad():
            for output in self._outputs:
                output.get_parameter("weight").zero_()
            for word in range(N):  # the first head of layer 0 hands the word over to the empty part
                self._outputs[0].get_parameter("weight")[AT_BEFORE + word, word] = 1
            if seed is not None:
                drawn = torch.Generator().manual_seed(seed)
                self._maps = [
                    [torch.randn(m.shape, generator=drawn) * 0.3 for m in heads]
                    for heads in self._maps
                ]
                for output in self._outputs:
                    weight = output.get_parameter("weight")
                    weight.copy_(torch.randn(weight.shape, generator=drawn) * 0.02)

    def _read(self, text: str, pair: str | None, target: str | None, kind: Kind | None) -> Batch:
        """Words between [CLS] and [SEP]."""
        del pair, target, kind
        place, tokens = 0, [Token(text="[CLS]", piece="[CLS]", id=0, special=True)]
        for number, word in enumerate(text.split()):
            span = place, place + len(word)
            tokens.append(
                Token(text=word, piece=word, id=WORDS.index(word), span=span, word=number)
            )
            place += len(word) + 1
        tokens.append(Token(text="[SEP]", piece="[SEP]", id=1, special=True))
        ids = torch.tensor([[token.id for token in tokens]])
        return batch_of_one(Sentence(text=text, pair=None, tokens=tuple(tokens)), {"words": ids})

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run both layers."""
        run = ForwardPass(batch=batch, observers=observers, native="by hand")
        mask = batch.real[:, None, None]
        with torch.inference_mode(), show_calls(self._outputs, observers):
            x = _stream_of(batch.inputs["words"])
            for number, maps in enumerate(self._maps):
                made = [torch.matmul(x, one).chunk(2, dim=-1) for one in maps]
                query, key = (torch.stack(both, dim=1) for both in zip(*made, strict=True))
                value = x[:, None].expand(-1, len(maps), -1, -1)
                weights = torch.softmax((query @ key.mT).masked_fill(~mask, -torch.inf), dim=-1)
                context = (weights @ value).transpose(1, 2)  # (B, Q, H, d)
                scoring = Scoring(mask=mask, scaling=1.0)
                run.add_layer(
                    Layer(query=query, key=key, value=value, output=context, scoring=scoring)
                )
                x = x + self._outputs[number](context.flatten(2))
        return run.receipt(self.name)

    def digest(self) -> str:
        """By its name: no other model has it."""
        return self.name

    def untrained(self, seed: int = 0) -> ByHand:
        """Random weights."""
        return ByHand(seed + 1000)


def _wide(one: Tensor) -> Tensor:
    """All heads as wide."""
    return torch.nn.functional.pad(one, (0, N + PLACES - one.shape[1]))


def _stream_of(ids: Tensor) -> Tensor:
    x = torch.zeros(*ids.shape, WIDTH)
    x[..., :N] = torch.nn.functional.one_hot(ids, N)
    x[..., AT_PLACE : AT_PLACE + ids.shape[1]] = torch.eye(ids.shape[1])
    x[..., AT_SEP] = (ids == WORDS.index("[SEP]")).float()
    x[..., AT_POINT] = (ids == WORDS.index(".")).float()
    x[..., AT_ONE] = 1
    return x
