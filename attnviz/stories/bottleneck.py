"""The bottleneck: recurrent translators with attention and without, on sentences that grow longer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Literal, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from attnviz.errors import FileFormatError
from attnviz.heads.tally import wilson
from attnviz.models import registry
from attnviz.models.language import splits
from attnviz.models.language.korean import Pair
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.files import ModelCard
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.common import Estimate, open_model, percent, prose
from attnviz.stories.record import Cell, Lines, Series, Story, Table

SEEDS = len(registry.SEEDS)
WITH, WITHOUT = "with", "without"
CLAUSES = (1, 2, 3)
"""In a test sentence: as many as in training."""
LENGTHS = (range(3, 6), range(6, 9), range(9, 12), range(12, 15), range(15, 18), range(18, 22))
"""Groups of lengths, in English words."""
N_SENTENCES = 40
"""In each group."""
STUDENT = 4.302653
"""Standard errors on each side of the mean that hold 95 % of Student's t with 2 degrees of freedom, for 3 seeds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthGroup:
    """How the models of one kind do on sentences of like length."""

    exact: Float[Tensor, "seed sentence"]  # whether each sentence is right as a whole, its end included
    words: Float[Tensor, "seed sentence"]  # the share of each one's words that are right at their place


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The models of one kind, one for each seed, and the card of the first."""

    card: ModelCard
    models: tuple[RecurrentTranslator, ...]

    @property
    def n_weights(self) -> int:
        """How many numbers one of them learned."""
        return sum(parameter.numel() for parameter in self.models[0].parameters())


Kinds: TypeAlias = Mapping[str, Trained]
Results: TypeAlias = Mapping[str, Sequence[LengthGroup]]


def open_kind(kind: str) -> Trained:
    """The models with attention, or those without.

    Raises:
        FileFormatError: one of them is not there, or its file holds another kind of model.
    """
    cards, models = [], []
    for seed in range(SEEDS):
        card, model = open_model(f"bottleneck-{kind}-{seed}", RecurrentTranslator)
        if (model.attention is None) != (kind == WITHOUT):
            raise FileFormatError(f"{card.name} must be a recurrent model {kind} attention")
        cards.append(card)
        models.append(model)
    return Trained(card=cards[0], models=tuple(models))


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


@torch.inference_mode()
def right(model: RecurrentTranslator, source: Tensor, target: Tensor) -> Bool[Tensor, "sentence step"]:
    """Which words of the target the model generates at their place, running free; the end counts as a word."""
    generated = model.translate(source, max_length=target.shape[1]).words  # what comes later is wrong anyway
    generated = torch.nn.functional.pad(generated, (0, target.shape[1] - generated.shape[1]))
    return (generated == target) & (target != 0)


def measure_group(kind: Trained, pairs: Sequence[Pair]) -> LengthGroup:
    """How each seed's model does on each sentence."""
    end = kind.card.plan.config.end
    source, target = encode_pairs(pairs, end)
    here = target != 0
    words = here & (target != end)
    hits = torch.stack([right(model, source, target) for model in kind.models])  # (3, B, T)
    return LengthGroup(
        exact=(hits == here).all(dim=-1).double(),
        words=(hits & words).sum(dim=-1).double() / words.sum(dim=-1),
    )


def share(values: Float[Tensor, "seed sentence"]) -> Estimate:
    """The mean of shares over seeds and sentences, with an interval for other seeds and other sentences.

    The seeds are few, so theirs is Student's t. All seeds read the same sentences, so how far these can mislead is
    added to it: Wilson's interval, which is no point even where all are right. What seed and sentence do together is
    in both parts, so the interval is rather too wide than too narrow.
    """
    by_seed, n = values.mean(dim=1), values.shape[1]
    mean = float(values.mean())
    of_seeds = STUDENT * float(by_seed.std()) / math.sqrt(len(by_seed))
    low, high = wilson(mean, n)
    return Estimate(
        mean, max(0.0, mean - math.hypot(of_seeds, mean - low)), min(1.0, mean + math.hypot(of_seeds, high - mean))
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
    """How the models of each kind do on each group of sentences."""
    return {kind: [measure_group(models, pairs) for pairs in groups] for kind, models in kinds.items()}


def gaps(results: Results) -> tuple[Estimate, Estimate]:
    """With attention minus without: the share of faultless sentences, on the shorter and the longer lengths."""
    half = len(LENGTHS) // 2
    apart = []
    for part in (slice(None, half), slice(half, None)):
        one, other = (torch.cat([group.exact for group in results[kind][part]], dim=1) for kind in (WITH, WITHOUT))
        apart.append(difference(share(one), share(other)))
    return apart[0], apart[1]


def tell() -> Story:
    """The demo: six models, sentences of six groups of lengths, and what attention makes of the difference."""
    groups = unseen_pairs()
    kinds = {kind: open_kind(kind) for kind in (WITH, WITHOUT)}
    results = compare(kinds, groups)
    n_pairs = sum(map(len, groups))
    return Story(
        name="bottleneck",
        title="how translation falls with length, with attention and without",
        parts=(
            _models(kinds),
            _table(results),
            _finding(results),
            _interval(results),
            _example(kinds, groups[-1]),
        ),
        picture=(
            _lines("sentences without a fault", "exact", results),
            _lines("words right at their place", "words", results),
        ),
        receipt=prose(f"""counted live: {SEEDS} models of each kind on {n_pairs} unseen test sentences, running free; no
        attention is shown, so there is none to verify"""),
    )


def _models(kinds: Kinds) -> str:
    """What is compared, and how alike it was made."""
    one, other = kinds[WITH], kinds[WITHOUT]
    wide, wide_other = (kind.models[0].config.d_hidden for kind in (one, other))
    plans = [
        replace(kind.card.plan, config=one.card.plan.config, recipe=replace(kind.card.plan.recipe, seed=0))
        for kind in (one, other)
    ]
    alike = "trained alike, on the same sentences" if plans[0] == plans[1] else "not trained alike"
    seen = set(CLAUSES) <= set(plans[0].clauses)
    return prose(f"""A recurrent encoder reads an English sentence, a decoder generates it in Korean. Without attention
    the decoder gets the encoder's last state alone: {wide_other} numbers, whether the sentence has {LENGTHS[0][0]}
    words or {LENGTHS[-1][-1]}. With attention it can also look back, at each step, at the state after every word:
    {wide} numbers each. {SEEDS} models of each kind were {alike}, from {SEEDS} seeds; those with attention have
    {one.n_weights:,} weights, those without {other.n_weights:,}. The test sentences have {CLAUSES[0]} to {CLAUSES[-1]}
    clauses, {"as" if seen else "not as"} those of training.""")


def _table(results: Results) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for index, lengths in enumerate(LENGTHS):
        one, other = results[WITH][index], results[WITHOUT][index]
        exact: list[Cell] = []
        for mean, low, high in (share(one.exact), share(other.exact)):
            exact += [mean, f"{low:.2f} to {high:.2f}"]
        words = [share(kind.words).mean for kind in (one, other)]
        rows.append((f"{lengths[0]} to {lengths[-1]}", *exact, *words))
    return Table(
        title=f"unseen test sentences by length, {N_SENTENCES} each: means over {SEEDS} models of each kind",
        columns=(
            *("English words", "with: no fault", "95 %", "without: no fault", "95 %"),
            *("with: words right", "without: words right"),
        ),
        rows=tuple(rows),
    )


def _finding(results: Results) -> str:
    """Where each kind begins, and where it ends."""
    ends = [[share(results[kind][place].exact).mean for place in (0, -1)] for kind in (WITH, WITHOUT)]
    (one_short, one_long), (other_short, other_long) = ends
    short, long = (f"{lengths[0]} to {lengths[-1]} words" for lengths in (LENGTHS[0], LENGTHS[-1]))
    change, change_other = one_long - one_short, other_long - other_short
    why = """A state of a fixed size holds only so much of a sentence; attention lets the decoder fetch each part when
    it is needed."""
    return prose(f"""Of the sentences of {short} the models with attention translate {percent(one_short)} without a
    fault, those without {percent(other_short)}; of those of {long}, {percent(one_long)} and {percent(other_long)}. From
    the shortest to the longest that is a change of {100 * change:+.1f} points with attention and of
    {100 * change_other:+.1f} points without. {why if change_other < min(change, 0.0) else ""}""")


def _interval(results: Results) -> str:
    """The difference between the kinds on the shorter and the longer half of the lengths."""
    shorter, longer = gaps(results)
    verdict = (
        "more than chance" if longer.low > 0 else "the other way round" if longer.high < 0 else "perhaps by chance"
    )
    return prose(f"""With attention minus without, the share of faultless sentences differs by {shorter} on the shorter
    half of the lengths and by {longer} on the longer half: {verdict}. The 95 % intervals count both what other seeds
    would change (Student's t over {SEEDS} seeds) and what other sentences would (Wilson's interval); that of a
    difference is put together from the two (Newcombe's).""")


def _example(kinds: Kinds, pairs: Sequence[Pair]) -> Table:
    """What the first model of each kind makes of one long sentence."""
    rows = [("English", " ".join(pairs[0].english)), ("right", " ".join(pairs[0].korean))]
    for name, kind in kinds.items():
        vocabulary, end = kind.card.target or kind.card.source, kind.card.plan.config.end
        source, target = encode_pairs(pairs[:1], end)
        with torch.inference_mode():
            words = kind.models[0].translate(source, max_length=target.shape[1]).words[0].tolist()
        rows.append((f"{name} attention", " ".join(vocabulary.decode([word for word in words if word != end]))))
    title = "the first of the longest sentences, by the first model of each kind"
    return Table(title=title, columns=("", "sentence"), rows=tuple(rows))


def _lines(title: str, what: Literal["exact", "words"], results: Results) -> Lines:
    return Lines(
        title=f"{title} (bands: 95 %)",
        x=tuple((lengths[0] + lengths[-1]) / 2 for lengths in LENGTHS),
        x_title="English words in the sentence (middle of each group)",
        series=tuple(
            Series.of(f"{kind} attention", [share(getattr(group, what)) for group in results[kind]])
            for kind in (WITH, WITHOUT)
        ),
        y_title=title,
        y_limits=(0.0, 1.0),
    )
