"""Teacher forcing and free running: a decoder that reads the right words, or the words it generated itself.

Source: Williams and Zipser 1989, "A Learning Algorithm for Continually Running Fully Recurrent Neural Networks".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnviz.attention import Attention
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.language import splits
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.measure import Translator
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories import common
from attnviz.stories.record import Bars, Series, Story, Table
from attnviz.text.messages import _

MODEL = "toy-seq2seq"
SENTENCE = "She is eating a green apple"
FORCED = "그녀는 초록색 사과를 먹는다 있다"  # "eats" instead of "eating"; all else unchanged
WRONG = 3  # the decoding step with the wrong word
N_PAIRS = 120
N_CLAUSES = 4  # clauses of a test sentence; training sentences have at most 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Translations:
    """Words that a model generates for the same sentences, with teacher forcing and running free.

    The end of a sentence counts as a word; zeros follow it.
    """

    target: Int[Tensor, "sentence step"]  # the right words
    forced: Int[Tensor, "sentence step"]  # generated after reading the right words
    free: Int[Tensor, "sentence step"]  # generated after reading the model's own words

    @property
    def inside(self) -> Bool[Tensor, "sentence step"]:
        """True for each step that has a word, False after the end of a sentence."""
        return self.target != 0

    def accuracy(self, words: Int[Tensor, "sentence step"]) -> float:
        """Return the share of words that equal the target at the same step."""
        return float((words == self.target)[self.inside].double().mean())

    def in_order(self, words: Int[Tensor, "sentence step"]) -> list[int]:
        """Return for each sentence how many words of the target were generated in the right order.

        A word that is left out or added costs one word; at their place, all words after it would be wrong.
        """
        return [
            longest_common_subsequence(target[inside].tolist(), own[own != 0].tolist())
            for target, own, inside in zip(self.target, words, self.inside, strict=True)
        ]


def longest_common_subsequence(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the longest sequence that both contain in order, perhaps with gaps."""
    # Lengths for the items of `first` so far and the first 0, 1, 2 ... items of `second`.
    lengths = [0] * (len(second) + 1)
    for item in first:
        before = lengths
        lengths = [0]
        for j, other in enumerate(second):
            longer = before[j] + 1 if item == other else max(lengths[j], before[j + 1])
            lengths.append(longer)
    return lengths[-1]


@torch.inference_mode()
def translate_both(model: Translator, source: Tensor, target: Tensor) -> Translations:
    """Translate each sentence twice, reading the right words and reading the model's own words."""
    n_steps = target.shape[1]
    free = model.translate(source, max_length=n_steps).words
    free = torch.nn.functional.pad(free, (0, n_steps - free.shape[1]))
    forced = model(source, target).words
    return Translations(target=target, forced=forced.masked_fill(target == 0, 0), free=free)


class Prediction(NamedTuple):
    """One decoding step of a sentence."""

    word: str  # generated, or forced on the model
    chance: float  # its probability
    expected: str  # the most probable word
    expected_chance: float


@torch.inference_mode()
def read_steps(model: Translator, vocabulary: Vocabulary, record: Attention) -> list[Prediction]:
    """Return each word of a translation with its probability, and the most probable word there."""
    source = torch.tensor([[token.id or 0 for token in record.key_tokens]])
    target = torch.tensor([[token.id or 0 for token in record.query_tokens]])
    chances = model(source, target).logits[0].softmax(dim=-1)
    return [
        Prediction(
            token.text,
            float(chance[token.id or 0]),
            vocabulary.words[int(chance.argmax())],
            float(chance.max()),
        )
        for token, chance in zip(record.query_tokens, chances, strict=True)
    ]


def build_story() -> Story:
    """Force a wrong word in one sentence, and compare both ways on sentences longer than those of training."""
    card, model = common.open_model(MODEL, RecurrentTranslator)
    vocabulary = card.target or card.source
    source = open_source(MODEL)
    records = [attend(SENTENCE, source), attend(SENTENCE, source, target=FORCED)]
    free, forced = (read_steps(model, vocabulary, record) for record in records)
    pairs = list(islice(splits.pairs("test", clauses=N_CLAUSES), N_PAIRS))
    translations = translate_both(model, *encode_pairs(pairs, model.config.end))
    n_words = int(translations.inside.sum())
    ways = (translations.forced, translations.free)
    at_place = [translations.accuracy(words) for words in ways]
    in_order = [sum(translations.in_order(words)) / n_words for words in ways]
    labels = [_("at their place"), _("in order")]
    return Story(
        title=_(
            "Running free, a wrong word misleads the next ones: {free} of the words "
            "are right and in order, {forced} with teacher forcing"
        ).format(forced=common.percent(in_order[0]), free=common.percent(in_order[1])),
        receipt=_("Free: {free}. Forced: {forced}. Shares measured on {n} test sentences.").format(
            free=common.receipt_of(records[0]), forced=common.receipt_of(records[1]), n=len(pairs)
        ),
        parts=[
            _(
                "At each step a decoder reads the word before. In training that is the right word, "
                "whatever the model would have chosen (teacher forcing). In use there is no right "
                "word, so it reads its own (free running). {model} was trained by teacher forcing, "
                "with {share} of the words before hidden. Here it translates “{sentence}” freely, and "
                "again with a wrong word forced on it: 먹는다 (eats) instead of 먹고 (있다) (is eating)."
            ).format(model=MODEL, share=common.percent(card.plan.recipe.forget), sentence=SENTENCE),
            Table(
                _("“{sentence}”, running free and with “{forced}” forced").format(
                    sentence=SENTENCE, forced=FORCED
                ),
                [
                    _("step"),
                    _("free: generated"),
                    _("chance"),
                    _("forced: given"),
                    _("chance"),
                    _("expected instead"),
                    _("chance"),
                ],
                [
                    (step, free_step.word, free_step.chance, *forced_step)
                    for step, (free_step, forced_step) in enumerate(zip(free, forced, strict=True))
                ],
            ),
            _(
                "At step {step}, {forced} is forced on the model, which expects {expected}. After its "
                "own word it expects {after_own} ({after_own_chance:.3f}), after the forced one "
                "{after_forced} ({after_forced_chance:.3f}): what it generates depends on the word it "
                "was given, not on the English sentence alone. The patterns differ from step {later} on, "
                "because a step attends before it reads the word before."
            ).format(
                step=WRONG,
                later=WRONG + 2,
                forced=forced[WRONG].word,
                expected=forced[WRONG].expected,
                after_own=free[WRONG + 1].expected,
                after_own_chance=free[WRONG + 1].expected_chance,
                after_forced=forced[WRONG + 1].expected,
                after_forced_chance=forced[WRONG + 1].expected_chance,
            ),
            Table(
                _("Words that are right, {n} sentences").format(n=len(pairs)),
                ["", _("teacher forcing"), _("free running")],
                [
                    (label, *map(common.percent, shares))
                    for label, shares in zip(labels, (at_place, in_order), strict=True)
                ],
            ),
            _(
                "These are {n} unseen sentences of {clauses} clauses, one more than in training. Free "
                "running, a word that the model leaves out or adds moves all that follow, and at "
                "their place they are all wrong; teacher forcing puts the right words back in their "
                "places. The fair count is therefore in order (the longest common subsequence). In "
                "training the model never read an error of its own (exposure bias)."
            ).format(n=len(pairs), clauses=N_CLAUSES),
        ],
        main=2,
        picture=[
            common.translation_panel(_("Free running"), records[0], (0, 0)),
            common.translation_panel(_("A wrong word forced"), records[1], (0, 0)),
            Bars(
                _("Words that are right"),
                labels,
                [
                    Series(_("teacher forcing"), [at_place[0], in_order[0]]),
                    Series(_("free running"), [at_place[1], in_order[1]]),
                ],
                _("share of words"),
            ),
        ],
        views=[
            common.row_view(record, (0, 0), step, number)
            for step in (WRONG, WRONG + 2)
            for number, record in enumerate(records)
        ],
        records=records,
    )
