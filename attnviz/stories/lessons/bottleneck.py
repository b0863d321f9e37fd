"""The bottleneck: recurrent translators with attention and without, on sentences that grow longer.

Source: Bahdanau et al. 2015, figure 2: https://arxiv.org/abs/1409.0473
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import NamedTuple, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.models import registry
from attnviz.models.language import splits
from attnviz.models.language.sentences import Pair
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.files import ModelCard
from attnviz.models.training.measure import hits
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.common import Estimate, open_model, percent, story, table
from attnviz.stories.record import Cell, Lines, Series, Story, Table
from attnviz.text.messages import Phrase, _, pgettext

SEEDS = len(registry.SEEDS)
WITH, WITHOUT = "with", "without"
CLAUSES = (1, 2, 3)  # in a test sentence: as many as in training
LENGTHS = (range(3, 6), range(6, 9), range(9, 12), range(12, 15), range(15, 18), range(18, 22))
"""Groups of lengths, in English words."""
N_SENTENCES = 40  # in each group
STUDENT = 4.302653
"""Standard errors on each side of the mean that hold 95 % of Student's t with 2 degrees of freedom, for 3 seeds."""
TITLE = _(
    "of sentences of {long} words {one} are translated faultlessly with attention, {other} without"
)
RECEIPT = _(
    "counted live: {seeds} models of each kind on {n_pairs} unseen test sentences, running free; "
    "no attention is shown, so there is none to verify"
)
MODELS = _(
    "A recurrent encoder reads an English sentence, a decoder generates it in Korean. Without "
    "attention the decoder gets the encoder's last state alone: {wide_other} numbers, whether the "
    "sentence has {short} words or {long}. With attention it can also look back, at each step, at "
    "the state after every word: {wide} numbers each. {seeds} models of each kind were {alike}, "
    "from {seeds} seeds; those with attention have {size:,} weights, those without "
    "{other_size:,}. The test sentences have {least} to {most_clauses} clauses, {seen} those of "
    "training."
)
LENGTHS_TABLE = _(
    "unseen test sentences by length, {n_sentences} each: means over {seeds} models of each kind"
)
WHY = _(
    "A state of a fixed size holds only so much of a sentence; attention lets the decoder fetch "
    "each part when it is needed."
)
FINDING = _(
    "Of the sentences of {short} words the models with attention translate {one_short} without a "
    "fault, those without {other_short}; of those of {long} words, {one_long} and {other_long}. "
    "From the shortest to the longest that is a change of {change:+.1f} points with attention and "
    "of {change_other:+.1f} points without. {why}"
)
INTERVAL = _(
    "With attention minus without, the share of faultless sentences differs by {shorter} on the "
    "shorter half of the lengths and by {longer} on the longer half: {verdict}. The 95 % "
    "intervals count both what other seeds would change (Student's t over {seeds} seeds) and what "
    "other sentences would (Wilson's interval); that of a difference is put together from the two "
    "(Newcombe's)."
)
EXAMPLE = _("the first of the longest sentences, by the first model of each kind")
BY_CHANCE = _("perhaps by chance")
CERTAIN = _("more than chance")
OPPOSITE = _("the other way round")


class LengthGroup(NamedTuple):
    """Accuracy of the models of one kind on sentences of similar length."""

    exact: Tensor  # whether each sentence is right as a whole, its end included [seed, sentence]
    words: Tensor  # the share of each one's words that are right at their place [seed, sentence]


Kinds: TypeAlias = Mapping[str, Sequence[tuple[ModelCard, RecurrentTranslator]]]
"""The models of each kind with their cards, one for each seed."""
Results: TypeAlias = Mapping[str, Sequence[LengthGroup]]


def open_kinds() -> Kinds:
    """The models with attention, and those without."""
    seeds = range(SEEDS)
    return {
        w: [open_model(f"bottleneck-{w}-{seed}", RecurrentTranslator) for seed in seeds]
        for w in (WITH, WITHOUT)
    }


def unseen_pairs(n: int = N_SENTENCES) -> list[list[Pair]]:
    """So many test pairs of each group of lengths."""
    found: list[list[Pair]] = [[] for _ in LENGTHS]
    streams = cycle([splits.pairs("test", clauses=clauses) for clauses in CLAUSES])
    while min(map(len, found)) < n:
        pair = next(next(streams))
        for group, lengths in zip(found, LENGTHS, strict=True):
            if len(pair.english) in lengths and len(group) < n:
                group.append(pair)
    return found


def measure_group(models: Sequence[RecurrentTranslator], pairs: Sequence[Pair]) -> LengthGroup:
    """Return each seed's accuracy on each sentence."""
    right, (here, *_), (inner, *_) = map(
        torch.stack, zip(*(hits(model, pairs) for model in models), strict=True)
    )
    return LengthGroup(
        (right == here).all(dim=-1).double(),
        (right & inner).sum(dim=-1).double() / inner.sum(dim=-1),
    )


def share(values: Float[Tensor, "seed sentence"]) -> Estimate:
    """The mean of shares over seeds and sentences, with an interval for other seeds and other sentences.

    The seeds are few, so theirs is Student's t. All seeds read the same sentences, so how far these can mislead is
    added to it: Wilson's interval, which is no point even where all are right. What seed and sentence do together is
    in both parts, so the interval is rather too wide than too narrow.
    """
    by_seed, n = values.mean(dim=1), values.shape[1]
    of_seeds = STUDENT * float(by_seed.std()) / math.sqrt(len(by_seed))
    mean, low, high = Estimate.of_share(float(values.mean()), n)
    return Estimate(
        mean,
        max(0.0, mean - math.hypot(of_seeds, mean - low)),
        min(1.0, mean + math.hypot(of_seeds, high - mean)),
    )


def difference(one: Estimate, other: Estimate) -> Estimate:
    """One share minus another, its interval put together from theirs.

    Source: Newcombe 1998, "Interval Estimation for the Difference between Independent Proportions", method 10.
    """
    apart = one.mean - other.mean
    return Estimate(
        apart,
        apart - math.hypot(one.mean - one.low, other.high - other.mean),
        apart + math.hypot(one.high - one.mean, other.mean - other.low),
    )


def compare(kinds: Kinds, groups: Sequence[Sequence[Pair]]) -> Results:
    """Return the accuracy of each kind of model on each group of sentences."""
    return {
        kind: [measure_group([m for _, m in ones], pairs) for pairs in groups]
        for kind, ones in kinds.items()
    }


def gaps(results: Results) -> tuple[Estimate, Estimate]:
    """With attention minus without: the share of faultless sentences, on the shorter and the longer lengths."""
    half = len(LENGTHS) // 2
    shorter, longer = (
        difference(
            *(
                share(torch.cat([group.exact for group in results[kind][part]], dim=1))
                for kind in (WITH, WITHOUT)
            )
        )
        for part in (slice(half), slice(half, None))
    )
    return shorter, longer


def tell() -> Story:
    """The demo: six models, sentences of six groups of lengths, and what attention makes of the difference."""
    groups, kinds = unseen_pairs(), open_kinds()
    results = compare(kinds, groups)
    one, other = (percent(share(results[kind][-1].exact).mean) for kind in (WITH, WITHOUT))
    long = _span(LENGTHS[-1])
    n_pairs = sum(map(len, groups))
    middles, lengths = (
        tuple((lengths[0] + lengths[-1]) / 2 for lengths in LENGTHS),
        _("English words in the sentence (middle of each group)"),
    )
    picture = (
        Lines(
            _("{title} (bands: 95 %)").format(title=title),
            middles,
            lengths,
            tuple(
                Series.of(name, [share(group[what]) for group in results[kind]])
                for kind, name in zip(
                    kinds, (_("with attention"), _("without attention")), strict=True
                )
            ),
            title,
            (0.0, 1.0),
        )
        for what, title in enumerate(
            (_("sentences without a fault"), _("words right at their place"))
        )
    )
    parts = (
        _models(kinds),
        _table(results),
        _finding(results),
        _interval(results),
        _example(kinds, groups[-1][0]),
    )
    return story(
        title=TITLE.format(long=long, one=one, other=other),
        receipt=RECEIPT.format(seeds=SEEDS, n_pairs=n_pairs),
        parts=parts,
        picture=picture,
    )


def _span(lengths: range) -> Phrase:
    return _("{first} to {last}").format(first=lengths[0], last=lengths[-1])


def _models(kinds: Kinds) -> Phrase:
    (card, model), (other_card, other) = kinds[WITH][0], kinds[WITHOUT][0]
    cards, models = (card, other_card), (model, other)
    wide, wide_other = (model.config.d_hidden for model in models)
    sizes = [sum(parameter.numel() for parameter in model.parameters()) for model in models]
    config = cards[0].plan.config
    plans = [
        replace(card.plan, config=config, recipe=replace(card.plan.recipe, seed=0))
        for card in cards
    ]
    return MODELS.format(
        wide_other=wide_other,
        short=LENGTHS[0][0],
        long=LENGTHS[-1][-1],
        wide=wide,
        seeds=SEEDS,
        alike=(
            _("trained alike, on the same sentences")
            if plans[0] == plans[1]
            else _("not trained alike")
        ),
        size=sizes[0],
        other_size=sizes[1],
        least=CLAUSES[0],
        most_clauses=CLAUSES[-1],
        seen=(_("as") if set(CLAUSES) <= set(plans[0].clauses) else _("not as")),
    )


def _table(results: Results) -> Table:
    rows = []
    for lengths, *pair in zip(LENGTHS, results[WITH], results[WITHOUT], strict=True):
        row: list[Cell] = [_span(lengths)]
        for exact in (share(group.exact) for group in pair):
            row += [exact.mean, _("{low:.2f} to {high:.2f}").format(low=exact.low, high=exact.high)]
        rows.append((*row, *(share(group.words).mean for group in pair)))
    return table(
        LENGTHS_TABLE.format(n_sentences=N_SENTENCES, seeds=SEEDS),
        (
            _("English words"),
            _("with: no fault"),
            _("95 %"),
            _("without: no fault"),
            _("95 %"),
            _("with: words right"),
            _("without: words right"),
        ),
        rows,
    )


def _finding(results: Results) -> Phrase:
    ends = [
        [share(results[kind][place].exact).mean for place in (0, -1)] for kind in (WITH, WITHOUT)
    ]
    change, change_other = (long - short for short, long in ends)
    (one_short, one_long), (other_short, other_long) = (map(percent, shares) for shares in ends)
    return FINDING.format(
        short=_span(LENGTHS[0]),
        one_short=one_short,
        other_short=other_short,
        long=_span(LENGTHS[-1]),
        one_long=one_long,
        other_long=other_long,
        change=100 * change,
        change_other=100 * change_other,
        why=WHY if change_other < min(change, 0.0) else "",
    )


def _interval(results: Results) -> Phrase:
    """The difference between the kinds on the shorter and the longer half of the lengths."""
    shorter, longer = gaps(results)
    if longer.low > 0:
        verdict = CERTAIN
    elif longer.high < 0:
        verdict = OPPOSITE
    else:
        verdict = BY_CHANCE
    return INTERVAL.format(
        shorter=shorter.shown(), longer=longer.shown(), verdict=verdict, seeds=SEEDS
    )


def _example(kinds: Kinds, pair: Pair) -> Table:
    rows = [
        (_("English"), " ".join(pair.english)),
        (pgettext("bottleneck", "right"), " ".join(pair.korean)),
    ]
    names = (_("with attention"), _("without attention"))
    for name, models in zip(names, kinds.values(), strict=True):
        card, model = models[0]
        vocabulary, end = card.target or card.source, card.plan.config.end
        source, target = encode_pairs([pair], end)
        words = model.translate(source, max_length=target.shape[1]).words[0].tolist()
        rows.append((name, " ".join(vocabulary.decode([word for word in words if word != end]))))
    return Table(EXAMPLE, ("", _("sentence")), tuple(rows))
