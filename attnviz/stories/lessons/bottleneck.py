"""The bottleneck: recurrent translators with and without attention, on short and long sentences.

Source: Bahdanau et al. 2015, figure 2: https://arxiv.org/abs/1409.0473
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.models import registry
from attnviz.models.language import splits
from attnviz.models.language.sentences import Pair
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.measure import hits
from attnviz.stories.common import Estimate, open_model, percent
from attnviz.stories.record import Lines, Series, Story, Table
from attnviz.text.messages import _

N_SEEDS = len(registry.SEEDS)
WITH, WITHOUT = "with", "without"
LENGTHS = [range(3, 6), range(6, 9), range(9, 12), range(12, 15), range(15, 18), range(18, 22)]
N_SENTENCES = 40  # sentences per group of lengths
# The 97.5% quantile of Student's t with 2 degrees of freedom, for the 95% interval of a mean over 3 seeds.
STUDENT = 4.302653


Kinds: TypeAlias = Mapping[str, Sequence[RecurrentTranslator]]
"""The models of each kind, one per seed."""


def open_kinds() -> Kinds:
    """Open the models with and without attention."""
    return {
        kind: [
            open_model(f"bottleneck-{kind}-{seed}", RecurrentTranslator)[1]
            for seed in range(N_SEEDS)
        ]
        for kind in (WITH, WITHOUT)
    }


def unseen_pairs() -> list[list[Pair]]:
    """Return `N_SENTENCES` test pairs per group of lengths, with 1 to 3 clauses as in training."""
    groups: list[list[Pair]] = [[] for _lengths in LENGTHS]
    streams = cycle([splits.pairs("test", clauses=clauses) for clauses in (1, 2, 3)])
    while min(map(len, groups)) < N_SENTENCES:
        pair = next(next(streams))
        for group, lengths in zip(groups, LENGTHS, strict=True):
            if len(pair.english) in lengths and len(group) < N_SENTENCES:
                group.append(pair)
    return groups


def share(values: Float[Tensor, "seed sentence"]) -> Estimate:
    """Return the mean over seeds and sentences, with a 95% interval for other seeds and other sentences.

    The uncertainty of the seeds uses Student's t, since there are only few. All seeds read the same sentences, so
    Wilson's interval for the sentences is added (as a root of squares). The interaction of seed and sentence is part of
    both, so the interval is too wide rather than too narrow.
    """
    by_seed = values.mean(dim=1)
    of_seeds = STUDENT * float(by_seed.std()) / math.sqrt(len(by_seed))
    mean, low, high = Estimate.of_share(float(values.mean()), values.shape[1])
    return Estimate(
        mean,
        max(0.0, mean - math.hypot(of_seeds, mean - low)),
        min(1.0, mean + math.hypot(of_seeds, high - mean)),
    )


def build_story() -> Story:
    """Measure six models on six groups of sentence lengths."""
    groups, kinds = unseen_pairs(), open_kinds()
    spans = [
        _("{first} to {last}").format(first=lengths[0], last=lengths[-1]) for lengths in LENGTHS
    ]
    estimates = {
        kind: [
            share(torch.stack([hits(model, pairs).exact.double() for model in models]))
            for pairs in groups
        ]
        for kind, models in kinds.items()
    }
    model, other_model = kinds[WITH][0], kinds[WITHOUT][0]
    return Story(
        title=_(
            "With attention, {share} of the sentences of {span} words are translated "
            "without a fault; without it, {other}"
        ).format(
            span=spans[-1],
            share=percent(estimates[WITH][-1].mean),
            other=percent(estimates[WITHOUT][-1].mean),
        ),
        receipt=_(
            "Measured live: {n_seeds} models of each kind on {n} unseen test sentences, running free. "
            "No attention is shown, so there is none to verify."
        ).format(n_seeds=N_SEEDS, n=sum(map(len, groups))),
        parts=[
            _(
                "A recurrent encoder reads an English sentence, a decoder generates it in Korean. "
                "Without attention, the decoder gets only the encoder's last state: {size_other} "
                "numbers, however long the sentence. With attention, it can also look back at the "
                "state after every word ({size} numbers each). {n_seeds} models of each kind were "
                "trained alike; they have {weights:,} weights with attention and {weights_other:,} "
                "without."
            ).format(
                size_other=other_model.config.d_hidden,
                size=model.config.d_hidden,
                n_seeds=N_SEEDS,
                weights=sum(parameter.numel() for parameter in model.parameters()),
                weights_other=sum(parameter.numel() for parameter in other_model.parameters()),
            ),
            Table(
                _(
                    "Share of faultless translations, {n} sentences each: means of {n_seeds} models"
                ).format(n=N_SENTENCES, n_seeds=N_SEEDS),
                [_("English words"), _("with attention"), _("without attention")],
                [
                    (span, with_attention.shown(), without_attention.shown())
                    for span, with_attention, without_attention in zip(
                        spans, estimates[WITH], estimates[WITHOUT], strict=True
                    )
                ],
            ),
            _(
                "A state of a fixed size holds only so much of a sentence; attention lets the decoder "
                "fetch each part when it is needed. The 95% intervals allow for other seeds and other "
                "sentences."
            ),
        ],
        picture=[
            Lines(
                _("Sentences translated without a fault"),
                [(lengths[0] + lengths[-1]) / 2 for lengths in LENGTHS],
                _("English words in the sentence (middle of each group)"),
                [
                    Series.of(_("with attention"), estimates[WITH]),
                    Series.of(_("without attention"), estimates[WITHOUT]),
                ],
                _("share of sentences"),
                (0.0, 1.0),
            )
        ],
    )
