"""Pairs of words: which look at each other much, which little, and in which head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from attnviz.capture.source import Model
from attnviz.models.language import splits
from attnviz.models.language.grammar import load_grammar
from attnviz.models.language.sentences import GoldSentence
from attnviz.models.language.splits import Split
from attnviz.models.registry import TOY
from attnviz.models.training.measure import Head
from attnviz.stories import common
from attnviz.stories.common import Estimate, Look, head_name, percent, square, words_of
from attnviz.stories.record import Bars, Cell, Panel, Series, Story, StoryView, Table
from attnviz.text.messages import Phrase, _, join_phrases

SENTENCE = "She is eating a green apple"
WORDS = words_of(SENTENCE)
VERB, ADJECTIVE, NOUN = "eating", "green", "apple"
PAIRS = ((VERB, NOUN), (ADJECTIVE, NOUN), (VERB, ADJECTIVE))
"""The first two should look at each other much, the third little."""
NAMES = tuple(map("-".join, PAIRS))
CONTROL = NAMES[-1]
# each pair both ways: who looks, and at what
WAYS = tuple(way for pair in PAIRS for way in (pair, pair[::-1]))
FROM_END = {
    VERB: 5,
    ADJECTIVE: 3,
    NOUN: 2,
}  # how far from its end such a word stands in "... eating a green apple."
# how many unseen sentences heads are chosen on, and as many others that they are tried on
SENTENCES = 200


Rates: TypeAlias = Sequence[tuple[float, float]]
"""For each way, how often the largest weight goes it, and how often it goes as far from other words."""
TRAINED = _("It learned to name hidden words and what “it” stands for, not what to look at.")
INTRODUCTION = _(
    "In “{sentence}” one expects eating and apple to look at each other much (one eats an apple), "
    "green and apple too (the apple is green), eating and green little. Does {name} do so? "
    "{trained} If it looked everywhere alike, each weight would be 1/{n} = {even:.3f}."
)
HEADS = _(
    "Heads do different things, so each pair asks the head that links such words. For each way a "
    "head is chosen, on {n_validation} unseen sentences that end with verb, article, adjective "
    "and noun: the one whose largest weight goes that way most often, beyond how often it goes "
    "the same step from other words, since a head may only look at the next word, whatever it is. "
    "The same is done with a model of the same sizes and random weights."
)
SHOWN = _(
    "Clearly more often than the same step elsewhere and than random weights (95 % intervals): "
    "{yes}. Not clearly: {no}."
)
ONE_WAY = _(
    "{name} reads from left to right: a word never looks at a later one, so three of the six ways "
    "are closed."
)
BETWEEN = _("attention between the pairs: mean over all heads, and the most in any head")
MEANS = _(
    "Over all heads and both ways: {listed}; if it looked everywhere alike, each would be "
    "{even:.3f}. As expected: {yes}. Not as expected: {no}."
)
TRIED = _(
    "how often the largest weight goes there, on {n_others} other unseen sentences; random "
    "weights: in a head of their own, found likewise"
)
VERDICT = _(
    "{agreed} So it is in this model; `attnviz demo pairs -m MODEL` tells it of another. {rows}"
)
VIEW = _("In head {head}, “{one}” gives {weight:.2f} of its weight to “{other}”.")
DISAGREE = _("The yardsticks do not agree on which pair leads.")
ONE_LEADS = _("By both {leads} leads; the order of the other two depends on the yardstick.")
AGREE = _("Both yardsticks give this order.")


def sentences(split: Split, n: int = SENTENCES) -> list[GoldSentence]:
    """Unseen sentences that end as "... eating a green apple." does: verb, article, adjective, noun, full stop."""
    adjectives = {adjective["word"] for adjective in load_grammar("english").words["qualities"]}
    return list(
        islice((s for s in splits.sentences(split, kind="action") if s.words[-3] in adjectives), n)
    )


def looks(looked: Tensor, found: Sequence[GoldSentence]) -> tuple[Tensor, Tensor]:
    """How often every head goes each way [way, layer, head] in sentences such as those of `sentences`.

    From the word that looks at the other; and from the other words of the same sentences, equally many words on.
    """
    rows, places = torch.arange(len(found)), torch.arange(looked.shape[-1])
    n = torch.tensor([len(s.words) for s in found])
    rates, elsewhere = [], []
    for looker, other in WAYS:
        here, there = n - FROM_END[looker], places + FROM_END[looker] - FROM_END[other]
        hits = looked == there  # (B, L, H, T)
        others = (
            (places < n[:, None]) & (there >= 0) & (there < n[:, None]) & (places != here[:, None])
        )  # (B, T)
        rates.append(hits[rows, :, :, here].float().mean(dim=0))
        elsewhere.append((hits & others[:, None, None]).sum(dim=(0, 3)) / others.sum())
    return torch.stack(rates), torch.stack(elsewhere)


def choose(look: Look, n: int) -> tuple[list[Head], Rates]:
    """For each way the head that goes it most often beyond the same step elsewhere; and how often in test sentences."""
    (rate, elsewhere), rates = (
        looks(look(s), s) for s in (sentences("validation", n), sentences("test", n))
    )
    heads = [divmod(int(lead.argmax()), lead.shape[1]) for lead in rate - elsewhere]
    return heads, [
        (float(r[head]), float(e[head])) for r, e, head in zip(*rates, heads, strict=True)
    ]


@torch.inference_mode()
def tell(model: Model = None) -> Story:
    """The demo: three pairs of one sentence, over all heads and in the heads that other sentences choose."""
    source = common.open_own(model or TOY)
    (record,), name, is_toy = (
        common.read_words(source, [SENTENCE]),
        common.name_of(source),
        source.name == TOY,
    )
    *ways, n = common.looks_of(source, SENTENCES)
    (heads, rates), (_heads, of_random) = (choose(look, n) for look in ways)
    weights = record.weights
    shares = (percent(rates[way][0]) for way in better_ways(rates))
    listed = ", ".join(f"{pair} {share}" for pair, share in zip(NAMES, shares, strict=True))
    trained = TRAINED if is_toy else ""
    rows: Iterator[tuple[Cell, ...]] = (
        (
            _way(way),
            "{}.{}".format(*head),
            *map(percent, (*mine, random)),
            between(weights[head], way)[0],
        )
        for way, head, mine, (random, _elsewhere) in zip(WAYS, heads, rates, of_random, strict=True)
    )
    parts: list[Phrase | Table] = [
        INTRODUCTION.format(
            sentence=SENTENCE, name=name, trained=trained, n=len(WORDS), even=1 / len(WORDS)
        ),
        HEADS.format(n_validation=n),
        common.table(
            TRIED.format(n_others=n),
            (
                _("way"),
                _("layer.head"),
                _("goes there"),
                _("same step elsewhere"),
                _("random weights"),
                _("weight here"),
            ),
            rows,
        ),
        _clear_pairs(rates, of_random, n),
        *([ONE_WAY.format(name=name)] if record.kind == "decoder" else []),
        *_verdict(rates, [there for there, _elsewhere in of_random]),
        _pairs(weights),
        _means(weights.mean(axis=(0, 1))),
        *common.notes_of([record]),
    ]
    picture = _picture(name, weights, heads, rates, of_random)
    return common.story(
        title=_("{shown_who}: {listed}").format(
            shown_who=(
                _("how often the head of each pair links such words")
                if is_toy
                else _("{name}, how often a head links them").format(name=name)
            ),
            listed=listed,
        ),
        receipt=common.receipt_of(record),
        parts=parts,
        picture=picture,
        views=_views(weights, heads, rates),
        records=() if is_toy else (record,),
    )


def _views(weights: np.ndarray, heads: Sequence[Head], rates: Rates) -> Iterator[StoryView]:
    """Each pair in the head that links it best; then all heads."""
    for way in better_ways(rates):
        (one, other), head = WAYS[way], heads[way]
        weight = between(weights[head], WAYS[way])[0]
        text = VIEW.format(head="{}.{}".format(*head), one=one, weight=weight, other=other)
        yield StoryView(
            text=text, sentence=SENTENCE, head=head, query=WORDS.index(one), key=WORDS.index(other)
        )
    yield StoryView(text=_("All heads at once."), sentence=SENTENCE)


def _clear_pairs(rates: Rates, of_random: Rates, n: int) -> Phrase:
    """Which pairs are linked beyond what both yardsticks explain, with room for chance."""
    clear, rest = list[str](), list[str]()
    for pair, way in zip(NAMES, better_ways(rates), strict=True):
        (there, elsewhere), (chance, _elsewhere) = rates[way], of_random[way]
        beyond = Estimate.of_share(there, n).low > max(elsewhere, Estimate.of_share(chance, n).high)
        (clear if beyond else rest).append(pair)
    yes, no = (", ".join(names) or _("none") for names in (clear, rest))
    return SHOWN.format(yes=yes, no=no)


def better_ways(rates: Rates) -> list[int]:
    """For each pair the number of the way that leads more over the same step elsewhere."""
    leads = [there - elsewhere for there, elsewhere in rates]
    return [max((2 * pair, 2 * pair + 1), key=leads.__getitem__) for pair in range(len(PAIRS))]


def between(weights: np.ndarray, pair: tuple[str, str]) -> tuple[float, float]:
    """The weight of the first word's row on the second, and of the second's on the first, of one pattern."""
    first, second = map(WORDS.index, pair)
    return float(weights[first, second]), float(weights[second, first])


def _pairs(weights: np.ndarray) -> Table:
    rows = []
    for name, pair in zip(NAMES, PAIRS, strict=True):
        first, second = map(WORDS.index, pair)
        both = np.stack([weights[:, :, first, second], weights[:, :, second, first]])
        layer, head = (int(i) for i in np.unravel_index(both.max(axis=0).argmax(), both.shape[1:]))
        way = _way(pair[:: -1 if both[0, layer, head] < both[1, layer, head] else 1])
        where = _("{layer}.{head}: {way}").format(layer=layer, head=head, way=way)
        rows.append((name, *between(weights.mean(axis=(0, 1)), pair), float(both.max()), where))
    return common.table(
        BETWEEN,
        (_("pair"), _("first at second"), _("second at first"), _("most"), _("in layer.head")),
        rows,
        shade=(0.0, 1.0),
    )


def _means(mean: np.ndarray) -> Phrase:
    named = {name: sum(between(mean, pair)) / 2 for name, pair in zip(NAMES, PAIRS, strict=True)}
    order = sorted(named, key=lambda name: -named[name])
    even, expected, unexpected = 1 / len(WORDS), list[Phrase](), list[Phrase]()
    for name, value in named.items():
        if value == even:
            stands = _("{pair} is just that")
        elif value > even:
            stands = _("{pair} is above that")
        else:
            stands = _("{pair} is below that")
        stands = stands.format(pair=name)
        (expected if (value > even) == (name != CONTROL) else unexpected).append(stands)
    above = [name for name in order if name != CONTROL and named[name] <= named[CONTROL]]
    if above:
        unexpected.append(
            _("{control} is not below {names}").format(control=CONTROL, names=_and(above))
        )
    else:
        expected.append(_("{control} is the lowest").format(control=CONTROL))
    yes, no = (join_phrases(found or [_("nothing")], "; ") for found in (expected, unexpected))
    listed = ", ".join(f"{name} {named[name]:.3f}" for name in order)
    return MEANS.format(listed=listed, even=even, yes=yes, no=no)


def _way(way: tuple[str, ...]) -> Phrase:
    return join_phrases(way, " at ", " → ")


def _and(names: Sequence[str]) -> Phrase:
    return join_phrases(names, " and ", ", ")


def _verdict(rates: Rates, random: Sequence[float]) -> tuple[Phrase, ...]:
    """Which pair leads, by each of two yardsticks: the same step elsewhere, and a model of random weights."""
    by_chance = [(there, chance) for (there, _elsewhere), chance in zip(rates, random, strict=True)]
    orders, found = [], []
    for what, ways in zip(
        (_("over the same step elsewhere"), _("over the best head of random weights")),
        (rates, by_chance),
        strict=True,
    ):
        better = (
            max(both, key=lambda shares: shares[0] - shares[1])
            for both in zip(ways[::2], ways[1::2], strict=True)
        )
        leads = dict(zip(NAMES, better, strict=True))
        order = sorted(leads, key=lambda name: leads[name][1] - leads[name][0])
        shares = ((name, *map(percent, leads[name])) for name in order)
        listed = join_phrases(
            (
                _("{pair} ({there} against {elsewhere})").format(pair=p, there=there, elsewhere=e)
                for p, there, e in shares
            ),
            ", ",
        )
        above = order[order.index(CONTROL) + 1 :]
        end = (
            _("not as expected: {control} is not below {names}").format(
                control=CONTROL, names=_and(above)
            )
            if above
            else _("{control} is the last, as expected").format(control=CONTROL)
        )
        found.append(
            _("By their better way and its lead {what}: {listed}; {end}.").format(
                what=what, listed=listed, end=end
            )
        )
        orders.append(order)
    one, other = orders
    if one == other:
        agreed = AGREE
    elif one[0] == other[0]:
        agreed = ONE_LEADS.format(leads=one[0])
    else:
        agreed = DISAGREE
    return join_phrases(found), VERDICT.format(agreed=agreed, rows=common.ROWS)


def _picture(
    name: str, weights: np.ndarray, heads: Sequence[Head], rates: Rates, of_random: Rates
) -> Iterator[Panel]:
    """The heads that link the first two pairs, the mean over all, and how often each way is gone."""
    linked: dict[Head, list[Phrase]] = {}
    for way in better_ways(rates)[:-1]:
        linked.setdefault(heads[way], []).append(_way(WAYS[way]))
    top = float(max(weights[head].max() for head in linked))
    for head, ways in linked.items():
        yield square(
            join_phrases([head_name(head), join_phrases(ways, ", ")], ": "),
            weights[head],
            WORDS,
            top,
        )
    yield square(_("mean over all heads"), weights.mean(axis=(0, 1)), WORDS, top)
    there, elsewhere = zip(*rates, strict=True)
    random = [share for share, _elsewhere in of_random]
    series = Series.each(
        {
            name: there,
            _("{name}, same step elsewhere").format(name=name): elsewhere,
            _("random weights"): random,
        }
    )
    yield Bars(
        _("how often the largest weight goes there"),
        tuple(map(_way, WAYS)),
        series,
        _("share of unseen sentences"),
    )
