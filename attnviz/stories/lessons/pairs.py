"""Pairs of words: which attend to each other a lot, which hardly, and in which heads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from attnviz.capture.attend import attend_all
from attnviz.models.language import splits
from attnviz.models.language.grammar import load_grammar
from attnviz.models.language.sentences import GoldSentence
from attnviz.models.language.splits import Split
from attnviz.models.registry import TOY
from attnviz.models.training.measure import Head
from attnviz.stories import common
from attnviz.stories.record import Bars, Series, Story, StoryView, Table
from attnviz.text.display import percent
from attnviz.text.messages import _

SENTENCE = "She is eating a green apple"
WORDS = common.words_of(SENTENCE)
VERB, ADJECTIVE, NOUN = "eating", "green", "apple"
# The words of the third pair should hardly attend to each other.
PAIRS = ((VERB, NOUN), (ADJECTIVE, NOUN), (VERB, ADJECTIVE))
# Each pair in both directions, as query and key.
WAYS = tuple(way for pair in PAIRS for way in (pair, pair[::-1]))
NAMES = [f"{word}→{other}" for word, other in WAYS]
# The distance of each word from the end of "... eating a green apple.".
FROM_END = {VERB: 5, ADJECTIVE: 3, NOUN: 2}
N_SENTENCES = 200  # for choosing heads, and as many others for testing them


class Rate(NamedTuple):
    """How often the largest weight of a head goes from a query word to a key word."""

    there: float  # share of sentences
    elsewhere: float  # share of the other words whose largest weight goes the same distance


def sentences(split: Split, n: int = N_SENTENCES) -> list[GoldSentence]:
    """Return unseen sentences that end like "... eating a green apple."."""
    adjectives = {adjective["word"] for adjective in load_grammar("english").words["qualities"]}
    actions = splits.sentences(split, kind="action")
    return list(islice((sentence for sentence in actions if sentence.words[-3] in adjectives), n))


def rates(tops: Tensor, gold_sentences: Sequence[GoldSentence]) -> tuple[Tensor, Tensor]:
    """Return how often each head's largest weight goes from query to key, and the same distance elsewhere.

    `tops` are the keys with the largest weight [sentence, layer, head, query]. Both results are [way, layer, head].
    """
    rows, queries = torch.arange(len(gold_sentences)), torch.arange(tops.shape[-1])
    n = torch.tensor([len(sentence.words) for sentence in gold_sentences])
    to_key, elsewhere = [], []
    for query_word, key_word in WAYS:
        place = n - FROM_END[query_word]
        target = queries + FROM_END[query_word] - FROM_END[key_word]
        hits = tops == target  # (B, L, H, T)
        to_key.append(hits[rows, :, :, place].float().mean(dim=0))
        # Queries inside the sentence whose key at the same distance is inside it, too (B, T).
        inside = (queries < n[:, None]) & (target >= 0) & (target < n[:, None])
        is_other = inside & (queries != place[:, None])  # (B, T)
        elsewhere.append((hits & is_other[:, None, None]).sum(dim=(0, 3)) / is_other.sum())
    return torch.stack(to_key), torch.stack(elsewhere)


def choose(tops_of: common.TopKeys, n: int) -> tuple[list[Head], list[Rate]]:
    """Choose a head for each way on validation sentences; return the heads and their rates on test sentences.

    The chosen head has the largest rate from query to key minus the rate at the same distance elsewhere.
    """
    validation, test = sentences("validation", n), sentences("test", n)
    to_key, elsewhere = rates(tops_of(validation), validation)
    heads = [divmod(int(lead.argmax()), lead.shape[1]) for lead in to_key - elsewhere]
    to_key, elsewhere = rates(tops_of(test), test)
    return heads, [
        Rate(float(to_key[way][head]), float(elsewhere[way][head]))
        for way, head in enumerate(heads)
    ]


def better_ways(rates_of_ways: Sequence[Rate]) -> list[int]:
    """Return for each pair the index of its better way: the one with the larger lead over elsewhere."""
    leads = [rate.there - rate.elsewhere for rate in rates_of_ways]
    return [max((2 * pair, 2 * pair + 1), key=leads.__getitem__) for pair in range(len(PAIRS))]


@torch.inference_mode()
def build_story() -> Story:
    """Measure how often the words of three pairs attend to each other, in heads chosen on other sentences."""
    (record,) = attend_all([SENTENCE], TOY)
    tops_of, random_tops_of = common.top_keys()
    n = N_SENTENCES
    heads, test_rates = choose(tops_of, n)
    random_rates = [rate.there for rate in choose(random_tops_of, n)[1]]
    weights = record.weights
    best_ways = better_ways(test_rates)
    shares = [common.percent(test_rates[way].there) for way in best_ways]

    rows, views, here = [], [], []
    for way, (word, other) in enumerate(WAYS):
        layer, head = heads[way]
        query, key = WORDS.index(word), WORDS.index(other)
        weight = float(weights[layer, head, query, key])
        top = int(weights[layer, head, query].argmax())
        here.append(f"{WORDS[top]} {percent(weights[layer, head, query, top])}")
        low = common.Estimate.of_share(test_rates[way].there, n).low
        is_clear = low > max(
            test_rates[way].elsewhere, common.Estimate.of_share(random_rates[way], n).high
        )
        rows.append(
            (
                NAMES[way],
                f"{layer}.{head}",
                common.percent(test_rates[way].there),
                common.percent(test_rates[way].elsewhere),
                common.percent(random_rates[way]),
                _("yes") if is_clear else _("no"),
                weight,
                here[-1],
            )
        )
        if way in best_ways:
            text = _("In {head}, “{word}” gives {weight} of its weight to “{other}”.").format(
                head=common.head_name(heads[way]), word=word, other=other, weight=percent(weight)
            )
            views.append(
                StoryView(text=text, sentence=SENTENCE, head=heads[way], query=query, key=key)
            )
    views.append(StoryView(text=_("All heads at once."), sentence=SENTENCE))

    mean = weights.mean(axis=(0, 1))
    pair_means = []
    for word, other in PAIRS:
        i, j = WORDS.index(word), WORDS.index(other)
        pair_means.append((mean[i, j] + mean[j, i]) / 2)
    shown_heads = dict.fromkeys(heads[way] for way in best_ways[:2])
    largest = float(max(weights[head].max() for head in shown_heads))
    return Story(
        title=_(
            "A head of {name} links {second} in {second_share} of sentences (here "
            "→{second_here}), another {first} in {first_share} (here →{first_here})"
        ).format(
            name=TOY,
            first=NAMES[best_ways[0]],
            first_share=shares[0],
            first_here=here[best_ways[0]],
            second=NAMES[best_ways[1]],
            second_share=shares[1],
            second_here=here[best_ways[1]],
        ),
        receipt=common.receipt_of(record),
        parts=[
            _(
                "In “{sentence}” we expect eating and apple to attend to each other much (what is "
                "eaten?), green and apple too (what is green?), eating and green little. Does {name} "
                "do so? Equal attention to all words would give each 1/{n} = {even:.3f}."
            ).format(sentence=SENTENCE, name=TOY, n=len(WORDS), even=1 / len(WORDS)),
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
                    _("top here"),
                ],
                rows,
            ),
            _(
                "“Clearly more” means more than elsewhere and more than with random weights, beyond "
                "what chance explains (95% intervals). “Here” is the sentence above, and “top here” "
                "the word with the largest weight: a head that links two words in many sentences may "
                "prefer another word in this one. Averaged over all heads, the three pairs get a "
                "weight of {first:.3f}, {second:.3f} and {third:.3f}."
            ).format(first=pair_means[0], second=pair_means[1], third=pair_means[2]),
        ],
        main=-1,
        picture=[
            *(
                common.weights_panel(common.head_title(TOY, head), weights[head], WORDS, largest)
                for head in shown_heads
            ),
            Bars(
                _("How often the largest weight goes there"),
                NAMES,
                [
                    Series(TOY, [rate.there for rate in test_rates]),
                    Series(_("elsewhere"), [rate.elsewhere for rate in test_rates]),
                    Series(_("random weights"), random_rates),
                ],
                _("share of unseen sentences"),
            ),
        ],
        views=views,
    )
