"""Pairs of words: which attend to each other much, which little, and in which head."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

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
from attnviz.stories.record import Bars, Series, Story, StoryView, Table
from attnviz.text.messages import _

SENTENCE = "She is eating a green apple"
WORDS = common.words_of(SENTENCE)
VERB, ADJECTIVE, NOUN = "eating", "green", "apple"
PAIRS = ((VERB, NOUN), (ADJECTIVE, NOUN), (VERB, ADJECTIVE))  # the third should attend little
WAYS = tuple(way for pair in PAIRS for way in (pair, pair[::-1]))  # query and key
NAMES = [f"{word}→{other}" for word, other in WAYS]
# distance of each word from the end of "... eating a green apple."
FROM_END = {VERB: 5, ADJECTIVE: 3, NOUN: 2}
N_SENTENCES = 200  # to choose heads on, and as many others to test them on


class Rate(NamedTuple):
    """How often the largest weight of a head goes from a query word to a key word."""

    there: float
    elsewhere: float  # equally far from the other words of the same sentences


def sentences(split: Split, n: int = N_SENTENCES) -> list[GoldSentence]:
    """Return unseen sentences that end like "... eating a green apple."."""
    adjectives = {adjective["word"] for adjective in load_grammar("english").words["qualities"]}
    actions = splits.sentences(split, kind="action")
    return list(islice((one for one in actions if one.words[-3] in adjectives), n))


def rates(tops: Tensor, found: Sequence[GoldSentence]) -> tuple[Tensor, Tensor]:
    """Return how often each head's largest weight goes each way, there and elsewhere [way, layer, head].

    `tops` are the keys with the largest weight [sentence, layer, head, query].
    """
    rows, queries = torch.arange(len(found)), torch.arange(tops.shape[-1])
    n = torch.tensor([len(one.words) for one in found])
    there, elsewhere = [], []
    for word, other in WAYS:
        place = n - FROM_END[word]
        target = queries + FROM_END[word] - FROM_END[other]
        hits = tops == target  # (B, L, H, T)
        there.append(hits[rows, :, :, place].float().mean(dim=0))
        inside = (queries < n[:, None]) & (target >= 0) & (target < n[:, None])
        others = inside & (queries != place[:, None])  # (B, T)
        elsewhere.append((hits & others[:, None, None]).sum(dim=(0, 3)) / others.sum())
    return torch.stack(there), torch.stack(elsewhere)


def choose(tops_of: common.TopKeys, n: int) -> tuple[list[Head], list[Rate]]:
    """Return for each way the head that goes it most often, beyond elsewhere, and its rates on test sentences."""
    validation, test = sentences("validation", n), sentences("test", n)
    there, elsewhere = rates(tops_of(validation), validation)
    heads = [divmod(int(lead.argmax()), lead.shape[1]) for lead in there - elsewhere]
    there, elsewhere = rates(tops_of(test), test)
    return heads, [
        Rate(float(there[way][head]), float(elsewhere[way][head])) for way, head in enumerate(heads)
    ]


def better_ways(found: Sequence[Rate]) -> list[int]:
    """Return for each pair the index of the way that leads more over the same distance elsewhere."""
    leads = [rate.there - rate.elsewhere for rate in found]
    return [max((2 * pair, 2 * pair + 1), key=leads.__getitem__) for pair in range(len(PAIRS))]


@torch.inference_mode()
def build_story(model: Model = None) -> Story:
    """Count the three pairs in heads chosen on other sentences."""
    source = common.open_own(model or TOY)
    (record,) = common.read_words(source, [SENTENCE])
    name = common.short_name(source)
    tops_of, random_tops_of, n = common.top_keys(source, N_SENTENCES)
    heads, found = choose(tops_of, n)
    random = [rate.there for rate in choose(random_tops_of, n)[1]]
    weights = record.weights
    best = better_ways(found)
    shares = [common.percent(found[way].there) for way in best]

    rows, views = [], []
    for way, (word, other) in enumerate(WAYS):
        layer, head = heads[way]
        query, key = WORDS.index(word), WORDS.index(other)
        weight = float(weights[layer, head, query, key])
        low = common.Estimate.of_share(found[way].there, n).low
        is_clear = low > max(found[way].elsewhere, common.Estimate.of_share(random[way], n).high)
        rows.append(
            (
                NAMES[way],
                f"{layer}.{head}",
                common.percent(found[way].there),
                common.percent(found[way].elsewhere),
                common.percent(random[way]),
                _("yes") if is_clear else _("no"),
                weight,
            )
        )
        if way in best:
            text = _("In {head}, “{word}” gives {weight:.2f} of its weight to “{other}”.").format(
                head=common.head_name(heads[way]), word=word, other=other, weight=weight
            )
            views.append(
                StoryView(text=text, sentence=SENTENCE, head=heads[way], query=query, key=key)
            )
    views.append(StoryView(text=_("All heads at once."), sentence=SENTENCE))

    mean = weights.mean(axis=(0, 1))
    pair_means = [
        (mean[WORDS.index(a), WORDS.index(b)] + mean[WORDS.index(b), WORDS.index(a)]) / 2
        for a, b in PAIRS
    ]
    shown = dict.fromkeys(heads[way] for way in best[:2])
    top = float(max(weights[head].max() for head in shown))
    return Story(
        title=_(
            "Heads of {name} link eating and apple in {first} of sentences, green and apple in "
            "{second}, eating and green in {third}"
        ).format(name=name, first=shares[0], second=shares[1], third=shares[2]),
        receipt=common.receipt_of(record),
        parts=[
            _(
                "In “{sentence}” we expect eating and apple to attend to each other much (what is "
                "eaten?), green and apple too (what is green?), eating and green little. Does {name} "
                "do so? Equal attention to all words would give each 1/{n} = {even:.3f}."
            ).format(sentence=SENTENCE, name=name, n=len(WORDS), even=1 / len(WORDS)),
            _(
                "For each way, a head was chosen on {n} unseen sentences that end with a verb, an "
                "article, an adjective and a noun. A head may always attend to the next word, so the "
                "table also shows how often its largest weight goes the same distance from other "
                "words. “Random weights” is the best head of an untrained model."
            ).format(n=n),
            Table(
                _("How often the largest weight goes there, on {n} other unseen sentences").format(
                    n=n
                ),
                [
                    _("way"),
                    _("layer.head"),
                    _("goes there"),
                    _("elsewhere"),
                    _("random weights"),
                    _("clearly more"),
                    _("weight here"),
                ],
                rows,
            ),
            _(
                "“Clearly more” means more than elsewhere and more than with random weights, beyond "
                "what chance explains (95% intervals). Averaged over all heads, the three pairs get a "
                "weight of {first:.3f}, {second:.3f} and {third:.3f}."
            ).format(first=pair_means[0], second=pair_means[1], third=pair_means[2]),
            *common.notes_of([record]),
        ],
        picture=[
            *(
                common.weights_panel(common.head_title(name, head), weights[head], WORDS, top)
                for head in shown
            ),
            Bars(
                _("How often the largest weight goes there"),
                NAMES,
                [
                    Series(name, [rate.there for rate in found]),
                    Series(_("elsewhere"), [rate.elsewhere for rate in found]),
                    Series(_("random weights"), random),
                ],
                _("share of unseen sentences"),
            ),
        ],
        views=views,
        records=() if source.name == TOY else [record],
    )
