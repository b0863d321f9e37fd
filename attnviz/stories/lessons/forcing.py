"""Teacher forcing and free running: a decoder on the right words before, and on its own.

Source: Williams and Zipser 1989, "A Learning Algorithm for Continually Running Fully Recurrent Neural Networks".
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnviz.attention import Attention
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.models.language import splits
from attnviz.models.language.sentences import Pair
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.registry import Recipe
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.measure import Translator
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.common import (
    ROWS,
    Estimate,
    open_model,
    percent,
    receipt_of,
    row_view,
    steps_panel,
    story,
    table,
)
from attnviz.stories.lessons.alignment import RECURRENT
from attnviz.stories.record import Cell, Lines, Series, Story, Table
from attnviz.text.messages import Phrase, _, join_phrases, pgettext

SENTENCE = "She is eating a green apple"
FORCED = "그녀는 초록색 사과를 먹는다 있다"  # "eats" where "eating" is right; the word after it is left as it was
N_PAIRS = 120  # test pairs that both ways are measured on
CLAUSES = 4  # in each of them; the sentences of training have one fewer at most
AFTER = 6  # steps after the first error that are looked at
BEFORE = 2  # steps shown before the first error of a sentence
SEVERAL = 4  # an error of so many words one after another goes on; one of fewer does not
RECEIPT = _("free: {own}; forced: {right}; the shares are counted on {n} test sentences")
NO_ERROR = _("no error on {n} unseen sentences: {right} of the words right forced, {own} free")
ERRORS = _(
    "{steps} steps after an error {mended} of the words are right if errors are mended, "
    "{unmended} if not"
)
FORGOT = _(
    ", but for {share} of the words before, which were shown as unknown: so it had to look at the "
    "English sentence"
)
TWO_WAYS = _(
    "A decoder reads, at each step, the word before. While it is trained that is the right one, "
    "whatever it would have chosen itself (teacher forcing); in use there is no right one, and it "
    "reads its own (free running). {recurrent} was trained by teacher forcing{forgot}. Here it "
    "translates “{sentence}” freely, and once more with a wrong word forced on it: 먹는다 (eats) "
    "where 먹고 있다 (is eating) is right."
)
NO_DIFFERENCE = _(
    "The words forced on the model are those that it generates itself, so nothing differs."
)
ENGLISH_DECIDES = _(
    "Here the English sentence decides: the wrong word does not change what it generates next."
)
WORD_DECIDES = _(
    "What it generates next depends on the word it was given, not on the English sentence alone."
)
WHAT_FOLLOWS = _(
    "At step {place} {forced} is forced on it, to which it gives a chance of {forced_chance:.3f}; "
    "itself it would generate {expected} ({expected_chance:.3f}). Up to here both runs have read "
    "the same words and expect the same. After its own {own} it expects {after_own} "
    "({after_own_chance:.3f}); after {forced} it expects {after_forced} "
    "({after_forced_chance:.3f}). {verdict}"
)
LATE = _(
    "The wrong word is step {wrong}, yet the patterns are the same up to row {row}: a step looks "
    "with the state of the step before, and only then reads its word."
)
PATTERNS = _("{late} Both patterns are drawn by {command}, without and with {more}. {rows}")
ACCURACY = _(
    "On {n} unseen sentences of {clauses} clauses, one more than any it was trained on, it "
    "generates {right} of the words right after the right words, and {own} after its own."
)
GOES_ON = _("its own error goes on. In training it never read an error of its own (exposure bias).")
AFTER_ERROR = _(
    "{text} {which} of the sentences have an error; the first is at the same step both ways, for "
    "until then both have read the same. {steps} steps later {forced} of the words are right "
    "where the right word was put in the place of each wrong one, and {free} where the model "
    "reads on from its own: {verdict}"
)
AFTER_TEXT = _(
    "words right at their place after the first error, {n} sentences of {clauses} clauses"
)
MOVED = _(
    "A word that is left out moves all that follow, and at its place each of them then counts as "
    "wrong. Counted wherever they stand, as long as they are in the right order, {forced} of the "
    "words are generated forced and {free} free: {near} points apart, where at their place they "
    "are {far} apart. The right word before shows what may come next, and also how far the "
    "sentence has got."
)
FIRST_FOUND = _(
    "the first of them in which {several} words or more are wrong in a row when free, and fewer "
    "when forced"
)
VIEW = _("{way}, step {step}: before “{word}” it looks most at “{at}” ({weight:.2f}).")
WAYS = (_("free running"), _("forced"))


class After(NamedTuple):
    """Share of right words a number of steps after the first error."""

    steps: int
    n: int  # sentences that are so long
    forced: Estimate  # the share of them that has the right word there, forced
    free: Estimate  # the same, running free


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoWays:
    """Words that a model generates for the same sentences, forced and free.

    The end of a sentence counts as a word, and zeros follow it.
    """

    target: Int[Tensor, "sentence step"]  # the right words
    forced: Int[Tensor, "sentence step"]  # what it generates after the right words
    free: Int[Tensor, "sentence longer"]  # after its own, which may go on where the right words end

    @property
    def here(self) -> Bool[Tensor, "sentence step"]:
        """Where there is a word to be generated."""
        return self.target != 0

    @property
    def firsts(self) -> list[tuple[int, int]]:
        """The sentences with an error, and the step of the first: the same both ways, as it has read the same."""
        wrong = (self.free[:, : self.target.shape[1]] != self.target) & self.here
        return [(row, int(steps.nonzero()[0])) for row, steps in enumerate(wrong) if steps.any()]

    def goes_on(self, words: Int[Tensor, "sentence longer"], row: int, first: int) -> int:
        """Count the words that are wrong one after another, from a step on."""
        right = (words[row, first : self.target.shape[1]] == self.target[row, first:]) | ~self.here[
            row, first:
        ]
        return int(right.nonzero()[0]) if right.any() else len(right)

    def accuracy(self, words: Int[Tensor, "sentence longer"]) -> float:
        """The share of the right words that are generated, at their place."""
        return int((words[:, : self.target.shape[1]] == self.target)[self.here].sum()) / int(
            self.here.sum()
        )

    def in_order(self, words: Int[Tensor, "sentence longer"]) -> float:
        """The share of the right words generated in the right order, wherever they stand (longest common row)."""
        longest = torch.zeros(
            len(words), words.shape[1] + 1, dtype=torch.long
        )  # common words up to each one
        for word, here in zip(self.target.T, self.here.T, strict=True):
            same = (words == word[:, None]) & here[:, None]  # (B, S)
            longest[:, 1:] = (
                torch.where(same, longest[:, :-1] + 1, longest[:, 1:]).cummax(dim=1).values
            )
        return int(longest[:, -1].sum()) / int(self.here.sum())

    def after_error(self, most: int = AFTER) -> list[After]:
        """Step by step after the first error, as far as there are sentences that long."""
        found = []
        for steps in range(1, most + 1):
            places = [
                (row, first + steps)
                for row, first in self.firsts
                if first + steps < self.target.shape[1]
            ]
            places = [place for place in places if self.here[place]]
            if n := len(places):
                hits = (
                    sum(bool(words[at] == self.target[at]) for at in places)
                    for words in (self.forced, self.free)
                )
                found.append(After(steps, n, *(Estimate.of_share(hit / n, n) for hit in hits)))
        return found


@torch.inference_mode()
def translate_ways(model: Translator, source: Tensor, target: Tensor) -> TwoWays:
    """Translate each sentence twice: after the right words, and after its own, at most twice as many as are right."""
    n_steps = target.shape[1]
    free = model.translate(source, max_length=2 * n_steps).words
    free = torch.nn.functional.pad(free, (0, max(0, n_steps - free.shape[1])))
    return TwoWays(target=target, forced=model(source, target).words, free=free)


class ForcedStep(NamedTuple):
    """One step of a sentence."""

    word: str  # the word that the model generates, or that is forced on it
    chance: float  # how likely the model finds it
    expected: str  # the word that the model finds likeliest there
    expected_chance: float


@torch.inference_mode()
def read(model: Translator, vocabulary: Vocabulary, record: Attention) -> list[ForcedStep]:
    """Return the probability of each word and the most probable word at its step, free or forced."""
    source, target = (
        torch.tensor([[token.id or 0 for token in tokens]])
        for tokens in (record.key_tokens, record.query_tokens)
    )
    steps = zip(record.query_tokens, model(source, target).logits[0].softmax(dim=-1), strict=True)
    return [
        ForcedStep(
            token.text,
            float(chance[token.id or 0]),
            vocabulary.words[int(chance.argmax())],
            float(chance.max()),
        )
        for token, chance in steps
    ]


def tell() -> Story:
    """The demo: one sentence with a wrong word forced on it, and unseen sentences too long for the model."""
    card, model = open_model(RECURRENT, RecurrentTranslator)
    vocabulary = card.target or card.source
    source = open_source(RECURRENT)
    records = free, forced = attend(SENTENCE, source), attend(SENTENCE, source, target=FORCED)
    pairs = list(islice(splits.pairs("test", clauses=CLAUSES), N_PAIRS))
    both = translate_ways(model, *encode_pairs(pairs, model.config.end))
    steps = [read(model, vocabulary, record) for record in records]
    word = next(
        (
            place
            for place, (own, made) in enumerate(zip(*steps, strict=False))
            if own.word != made.word
        ),
        None,
    )
    rows = enumerate(zip(*(record.pattern(0, 0) for record in records), strict=False))
    row = next(
        (place for place, (own, made) in rows if not np.allclose(own, made, atol=1e-6)), None
    )
    own = receipt_of(free)
    right = receipt_of(forced)
    n = len(pairs)
    command = f'`attnviz heatmap "{SENTENCE}" --model {RECURRENT}`'
    more = f'`--target "{FORCED}"`'
    late = "" if word is None or row is None else LATE.format(wrong=word, row=row - 1)
    title, measures, lines = _measures(both)
    parts = (
        _two_ways(card.plan.recipe),
        _wrong_word(*steps),
        _what_follows(word, *steps),
        *measures,
        *_one_sentence(both, pairs, vocabulary),
        PATTERNS.format(late=late, command=command, more=more, rows=ROWS),
    )
    patterns = (steps_panel(way, record, (0, 0)) for way, record in zip(WAYS, records, strict=True))
    views = (  # the first word that differs, and the first row that does, both ways
        row_view(VIEW, record, (0, 0), step, number, way=way, step=step)
        for step in sorted({word or 0, word or 0 if row is None else row})
        for number, (way, record) in enumerate(zip(WAYS, records, strict=True))
    )
    return story(
        title=title,
        receipt=RECEIPT.format(own=own, right=right, n=n),
        parts=parts,
        picture=(*patterns, *lines),
        views=views,
        records=records,
    )


def _two_ways(recipe: Recipe) -> Phrase:
    forgot = FORGOT.format(share=percent(recipe.forget)) if recipe.forget else ""
    return TWO_WAYS.format(recurrent=RECURRENT, forgot=forgot, sentence=SENTENCE)


def _wrong_word(free: Sequence[ForcedStep], forced: Sequence[ForcedStep]) -> Table:
    """Both readings side by side, as far as the longer one goes."""
    rows = (
        (place, *(own[:2] if own else ("", "")), *(made or ("",) * 4))
        for place, (own, made) in enumerate(itertools.zip_longest(free, forced))
    )
    return table(
        _("“{sentence}”: free running, and with “{forced}” forced on it").format(
            sentence=SENTENCE, forced=FORCED
        ),
        (
            _("step"),
            _("free: generates"),
            _("probability"),
            _("forced: given"),
            _("probability"),
            _("expects itself"),
            _("probability"),
        ),
        rows,
    )


def _what_follows(
    place: int | None, free: Sequence[ForcedStep], forced: Sequence[ForcedStep]
) -> Phrase:
    if place is None or place + 1 >= min(len(free), len(forced)):
        return NO_DIFFERENCE
    own, made, after_own, after_made = (
        free[place],
        forced[place],
        free[place + 1],
        forced[place + 1],
    )
    verdict = ENGLISH_DECIDES if after_own.expected == after_made.expected else WORD_DECIDES
    return WHAT_FOLLOWS.format(
        place=place,
        forced=made.word,
        forced_chance=made.chance,
        expected=made.expected,
        expected_chance=made.expected_chance,
        own=own.word,
        after_own=after_own.expected,
        after_own_chance=after_own.expected_chance,
        after_forced=after_made.expected,
        after_forced_chance=after_made.expected_chance,
        verdict=verdict,
    )


def _measures(both: TwoWays) -> tuple[Phrase, tuple[Phrase | Table, ...], tuple[Lines, ...]]:
    """How often each way is right: in all, step by step after the first error, and wherever the words stand.

    Returns a title, the parts of the story, and lines with their intervals; none where there is no error.
    """
    n, after = len(both.target), both.after_error()
    placed, ordered = (
        [way(words) for words in (both.forced, both.free)] for way in (both.accuracy, both.in_order)
    )
    right, own = map(percent, placed)
    text = ACCURACY.format(n=n, clauses=CLAUSES, right=right, own=own)
    if not after:
        return (
            NO_ERROR.format(n=n, right=right, own=own),
            (join_phrases([text, _("There is nothing that could go on.")]),),
            (),
        )
    wrong, last = len(both.firsts), after[-1]
    mended, unmended = percent(last.forced.mean), percent(last.free.mean)
    text = AFTER_ERROR.format(
        text=text,
        which=(
            pgettext("sentences", "All")
            if wrong == n
            else pgettext("sentences", "{n}").format(n=wrong)
        ),
        steps=last.steps,
        forced=mended,
        free=unmended,
        verdict=(
            GOES_ON
            if last.forced.low > last.free.high
            else _("too small a difference to be told from chance.")
        ),
    )
    rows = ((a.steps, a.n, percent(a.forced.mean), percent(a.free.mean)) for a in after)
    series = (
        Series.of(WAYS[1], [a.forced for a in after]),
        Series.of(WAYS[0], [a.free for a in after]),
    )
    x = tuple(float(a.steps) for a in after)
    lines = Lines(
        _("after the first error, {clauses} clauses (bands: 95 %)").format(clauses=CLAUSES),
        x,
        _("steps after the first error"),
        series,
        _("words right at their place"),
        (0.0, 1.0),
    )
    forced, free = map(percent, ordered)
    near, far = (
        f"{100 * (one - other):.1f}" for one, other in (ordered, placed)
    )  # words at another place, words lost
    parts = (
        text,
        table(
            AFTER_TEXT.format(n=n, clauses=CLAUSES),
            (_("steps after it"), _("sentences"), _("forced: right"), _("free: right")),
            rows,
        ),
        MOVED.format(forced=forced, free=free, near=near, far=far),
    )
    return ERRORS.format(steps=last.steps, mended=mended, unmended=unmended), parts, (lines,)


def _one_sentence(
    both: TwoWays, pairs: Sequence[Pair], vocabulary: Vocabulary
) -> tuple[Table, ...]:
    """The words around the first error of the first sentence in which its own error goes on and a mended one does not.

    Where there is no such sentence, of the first with an error.
    """
    if not both.firsts:
        return ()
    lengths = [
        (both.goes_on(both.forced, *place), both.goes_on(both.free, *place))
        for place in both.firsts
    ]
    found = [
        place
        for place, (forced, free) in zip(both.firsts, lengths, strict=True)
        if forced < SEVERAL <= free
    ]
    row, first = (found or both.firsts)[0]
    names = ("-", *vocabulary.words[1:])  # after its end it generates nothing
    rows: list[tuple[Cell, ...]] = []
    for place in range(max(0, first - BEFORE), min(int(both.here[row].sum()), first + AFTER + 1)):
        right, *generated = (
            names[int(words[row, place])] for words in (both.target, both.forced, both.free)
        )
        rows.append(
            (
                place,
                right,
                *(
                    word if word == right else _("{word} (wrong)").format(word=word)
                    for word in generated
                ),
            )
        )
    what = FIRST_FOUND.format(several=SEVERAL) if found else _("the first of them with an error")
    english = " ".join(pairs[row].english)
    return (
        table(
            _("{what}, around its first error: “{english}”").format(what=what, english=english),
            (_("step"), pgettext("forcing", "right"), _("forced: generates"), _("free: generates")),
            rows,
        ),
    )
