"""Pairs of words: which look at each other much, which little, and in which head."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np
import torch

from attnviz.capture.attend import attend
from attnviz.models.language import splits
from attnviz.models.language.english import English
from attnviz.models.language.lexicon import COLOURS_AND_SIZES
from attnviz.models.language.splits import Split
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.training import measure
from attnviz.models.training.measure import Head
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories.common import ROWS, head_name, numbers, open_model, percent, prose, square, words_of
from attnviz.stories.record import Bars, Matrix, Series, Story, Table

SENTENCE = "She is eating a green apple"
VERB, ADJECTIVE, NOUN = "eating", "green", "apple"
PAIRS = ((VERB, NOUN), (ADJECTIVE, NOUN), (VERB, ADJECTIVE))
"""The first two should look at each other much, the third little."""
CONTROL = "-".join(PAIRS[-1])
WAYS = tuple(way for pair in PAIRS for way in (pair, pair[::-1]))
"""Each pair both ways: who looks, and at what."""
FROM_END = {VERB: 5, ADJECTIVE: 3, NOUN: 2}
"""How far from its end such a word stands in "... eating a green apple."."""

SENTENCES = 200
"""How many unseen sentences heads are chosen on, and as many others that they are tried on."""


Rates: TypeAlias = Sequence[tuple[float, float]]
"""For each way, how often the largest weight goes it, and how often it goes as far from other words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """How often each head's largest weight goes each of the ways [way, layer, head]."""

    rate: torch.Tensor  # from the word that looks at the other
    elsewhere: torch.Tensor  # from the other words of the same sentences, equally many words on

    @property
    def heads(self) -> list[Head]:
        """For each way the head that goes it most often, beyond how often it goes as far from other words."""
        leads = self.rate - self.elsewhere
        layers_and_heads = (divmod(int(lead.argmax()), lead.shape[1]) for lead in leads)
        return [(layer, head) for layer, head in layers_and_heads]

    def of(self, heads: Sequence[Head]) -> Rates:
        """The rate and that from elsewhere, for each way in its head."""
        return [(float(r[head]), float(e[head])) for r, e, head in zip(self.rate, self.elsewhere, heads, strict=True)]


def sentences(split: Split, n: int = SENTENCES) -> list[English]:
    """Unseen sentences that end as "... eating a green apple." does: verb, article, adjective, noun, full stop."""
    adjectives = {adjective.english for adjective in COLOURS_AND_SIZES}
    found = (s for s in splits.sentences(split, kind="action") if s.words[-3] in adjectives)
    return list(islice(found, n))


def looks(model: LanguageEncoder, vocabulary: Vocabulary, found: Sequence[English]) -> Looks:
    """Where every head looks most in sentences such as those of `sentences`."""
    reading = model(numbers(vocabulary, [s.words for s in found]))
    looked = torch.stack([w.argmax(dim=-1) for w in reading.weights if w is not None], dim=1)  # (B, L, H, T)
    rows, places = torch.arange(len(found)), torch.arange(looked.shape[-1])
    n = torch.tensor([len(s.words) for s in found])
    rates, elsewhere = [], []
    for looker, other in WAYS:
        here, there = n - FROM_END[looker], places + FROM_END[looker] - FROM_END[other]
        hits = looked == there  # (B, L, H, T)
        beside = (places < n[:, None]) & (there >= 0) & (there < n[:, None]) & (places != here[:, None])  # (B, T)
        rates.append(hits[rows, :, :, here].float().mean(dim=0))
        elsewhere.append((hits & beside[:, None, None]).sum(dim=(0, 3)) / beside.sum())
    return Looks(rate=torch.stack(rates), elsewhere=torch.stack(elsewhere))


@torch.inference_mode()
def tell() -> Story:
    """The demo: three pairs of one sentence, over all heads and in the heads that other sentences choose."""
    record = attend(SENTENCE, "toy")
    card, model = open_model("toy", LanguageEncoder)
    validation, test = sentences("validation"), sentences("test")
    heads = looks(model, card.source, validation).heads
    tried = looks(model, card.source, test).of(heads)
    new = measure.untrained(model.config)
    beside = looks(new, card.source, test).of(looks(new, card.source, validation).heads)
    words = words_of(SENTENCE)
    return Story(
        name="pairs",
        title=f"mean weights: {_listed(record.weights.mean(axis=(0, 1)), words)}; alike would be {1 / len(words):.3f}",
        parts=(
            prose(f"""In “{SENTENCE}” one expects eating and apple to look at each other much (one eats an apple), green
            and apple too (the apple is green), eating and green little. Does toy do so? It learned to name hidden words
            and what “it” stands for, not what to look at. If it looked everywhere alike, each weight would be
            1/{len(words)} = {1 / len(words):.3f}."""),
            _pairs(record.weights, words),
            _means(record.weights.mean(axis=(0, 1)), words),
            prose(f"""What the heads do differs, and a mean hides it. So for each way a head is chosen, on
            {len(validation)} unseen sentences that end with verb, article, adjective and noun: the one whose largest
            weight goes that way most often, beyond how often it goes the same step from other words, since a head may
            only look at the next word, whatever it is. The same is done with a model of the same sizes and random
            weights."""),
            _tried(record.weights, words, heads, tried, beside),
            *_verdict(tried, [there for there, _ in beside]),
        ),
        picture=_picture(record.weights, words, heads, tried, beside),
        receipt=record.proof,
    )


def between(weights: np.ndarray, words: Sequence[str], pair: tuple[str, str]) -> tuple[float, float]:
    """The weight of the first word's row on the second, and of the second's on the first, of one pattern."""
    first, second = (words.index(word) for word in pair)
    return float(weights[first, second]), float(weights[second, first])


def _pairs(weights: np.ndarray, words: Sequence[str]) -> Table:
    mean = weights.mean(axis=(0, 1))
    rows = []
    for pair in PAIRS:
        first, second = (words.index(word) for word in pair)
        largest = np.maximum(weights[:, :, first, second], weights[:, :, second, first])
        layer, head = (int(i) for i in np.unravel_index(largest.argmax(), largest.shape))
        forth = weights[layer, head, first, second] >= weights[layer, head, second, first]
        way = " at ".join(pair if forth else pair[::-1])
        rows.append(("-".join(pair), *between(mean, words, pair), float(largest.max()), f"{layer}.{head}: {way}"))
    return Table(
        title="attention between the pairs: mean over all heads, and the most in any head",
        columns=("pair", "first at second", "second at first", "most", "in layer.head"),
        rows=tuple(rows),
        shade=(0.0, 1.0),
    )


def _listed(mean: np.ndarray, words: Sequence[str]) -> str:
    return ", ".join(f"{'-'.join(pair)} {sum(between(mean, words, pair)) / 2:.3f}" for pair in PAIRS)


def _means(mean: np.ndarray, words: Sequence[str]) -> str:
    means = [sum(between(mean, words, pair)) / 2 for pair in PAIRS]
    named = {"-".join(pair): value for pair, value in zip(PAIRS, means, strict=True)}
    order = sorted(named, key=lambda name: -named[name])
    even = 1 / len(words)
    expected, unexpected = list[str](), list[str]()
    for number, (name, value) in enumerate(named.items()):
        stands = f"{name} is {'above' if value > even else 'below' if value < even else 'just'} that"
        (expected if (value > even) == (number < len(PAIRS) - 1) else unexpected).append(stands)
    above = " and ".join(name for name in order if name != CONTROL and named[name] <= named[CONTROL])
    lowest = f"{CONTROL} is not below {above}" if above else f"{CONTROL} is the lowest"
    (unexpected if above else expected).append(lowest)
    return prose(f"""Over all heads and both ways: {", ".join(f"{name} {named[name]:.3f}" for name in order)}; if it
    looked everywhere alike, each would be {even:.3f}. As expected: {"; ".join(expected) or "nothing"}. Not as expected:
    {"; ".join(unexpected) or "nothing"}.""")


def _tried(weights: np.ndarray, words: Sequence[str], heads: Sequence[Head], tried: Rates, beside: Rates) -> Table:
    return Table(
        title=f"how often the largest weight goes there, on {SENTENCES} other unseen sentences; random weights: in a "
        "head of their own, found likewise",
        columns=("way", "layer.head", "goes there", "same step elsewhere", "random weights", "weight here"),
        rows=tuple(
            (
                " at ".join(way),
                "{}.{}".format(*head),
                *(percent(share) for share in (*shares, untrained_shares[0])),
                between(weights[head], words, way)[0],
            )
            for way, head, shares, untrained_shares in zip(WAYS, heads, tried, beside, strict=True)
        ),
    )


def _verdict(tried: Rates, random: Sequence[float]) -> tuple[str, ...]:
    """Which pair leads, by each of two yardsticks: the same step elsewhere, and a model of random weights."""
    by_chance = [(there, chance) for (there, _), chance in zip(tried, random, strict=True)]
    yardsticks = {"over the same step elsewhere": tried, "over the best head of random weights": by_chance}
    orders, text = [], []
    for what, ways in yardsticks.items():
        leads = {
            "-".join(pair): max(ways[2 * number : 2 * number + 2], key=lambda shares: shares[0] - shares[1])
            for number, pair in enumerate(PAIRS)
        }
        order = sorted(leads, key=lambda name: leads[name][1] - leads[name][0])
        listed = ", ".join(f"{name} ({percent(leads[name][0])} against {percent(leads[name][1])})" for name in order)
        above = " and ".join(order[order.index(CONTROL) + 1 :])
        end = f"not as expected: {CONTROL} is not below {above}" if above else f"{CONTROL} is the last, as expected"
        text.append(f"By their better way and its lead {what}: {listed}; {end}.")
        orders.append(order)
    one, other = orders
    agreed = "Both yardsticks give this order."
    if one[0] != other[0]:
        agreed = "The yardsticks do not agree on which pair leads."
    elif one != other:
        agreed = f"By both {one[0]} leads; the order of the other two depends on the yardstick."
    return (
        " ".join(text),
        prose(f"""{agreed} So it is in this small model; attnviz heatmap “{SENTENCE}” -m distilbert-base-uncased shows a
        large one. {ROWS}"""),
    )


def _picture(
    weights: np.ndarray, words: Sequence[str], heads: Sequence[Head], tried: Rates, beside: Rates
) -> tuple[Bars | Matrix, ...]:
    leads = [there - elsewhere for there, elsewhere in tried]
    most = leads.index(max(leads))
    shares = {
        "toy": (there for there, _ in tried),
        "toy, same step elsewhere": (elsewhere for _, elsewhere in tried),
        "random weights": (there for there, _ in beside),
    }
    return (
        square("mean over all heads", weights.mean(axis=(0, 1)), words),
        square(f"{head_name(heads[most])}: {' at '.join(WAYS[most])}", weights[heads[most]], words),
        Bars(
            title="how often the largest weight goes there",
            labels=tuple(" at ".join(way) for way in WAYS),
            series=tuple(Series(name=name, values=tuple(values)) for name, values in shares.items()),
            y_title="share of unseen sentences",
        ),
    )
