"""Teacher forcing and free running: a decoder on the right words before, and on its own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from attnviz.attention import Attention
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.heads.tally import wilson
from attnviz.models.language import splits
from attnviz.models.language.korean import Pair
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.registry import Recipe
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.measure import Translator
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.alignment import RECURRENT
from attnviz.stories.common import ROWS, open_model, percent, prose, steps_panel
from attnviz.stories.record import Cell, Lines, Series, Story, Table

SENTENCE = "She is eating a green apple"
FORCED = "그녀는 초록색 사과를 먹는다 있다"
"""It has "eats" where it should have "eating"; the word after it is left as it was."""
N_PAIRS = 120
"""Test pairs that both ways are measured on."""
CLAUSES = 4
"""In each of them; the sentences of training have one fewer at most."""
AFTER = 6
"""Steps after the first error that are looked at."""
BEFORE = 2
"""Steps shown before the first error of a sentence."""
SEVERAL = 4
"""An error of so many words one after another goes on; one of fewer does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """What is right so many steps after the first error."""

    steps: int
    n: int  # sentences that are so long
    forced: int  # how many of them have the right word there, forced
    free: int  # the same, running free


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoWays:
    """What a model generates for the same sentences forced and free; the end counts as a word, zeros follow it."""

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
        """How many words of a sentence are wrong one after another, from a step on."""
        right = (words[row, first : self.target.shape[1]] == self.target[row, first:]) | ~self.here[row, first:]
        return int(right.nonzero()[0]) if right.any() else len(right)

    def accuracy(self, words: Int[Tensor, "sentence longer"]) -> float:
        """The share of the right words that are generated, at their place."""
        return int((words[:, : self.target.shape[1]] == self.target)[self.here].sum()) / int(self.here.sum())

    def in_order(self, words: Int[Tensor, "sentence longer"]) -> float:
        """The share of the right words generated in the right order, wherever they stand (longest common row)."""
        longest = torch.zeros(len(words), words.shape[1] + 1, dtype=torch.long)  # common words up to each one
        for word, here in zip(self.target.T, self.here.T, strict=True):
            same = (words == word[:, None]) & here[:, None]  # (B, S)
            longest[:, 1:] = torch.where(same, longest[:, :-1] + 1, longest[:, 1:]).cummax(dim=1).values
        return int(longest[:, -1].sum()) / int(self.here.sum())

    def after_error(self, most: int) -> tuple[After, ...]:
        """Step by step after the first error, as far as there are sentences that long."""
        found = []
        for steps in range(1, most + 1):
            places = [(row, first + steps) for row, first in self.firsts if first + steps < self.target.shape[1]]
            places = [place for place in places if self.here[place]]
            forced, free = (sum(bool(w[p] == self.target[p]) for p in places) for w in (self.forced, self.free))
            if places:
                found.append(After(steps=steps, n=len(places), forced=forced, free=free))
        return tuple(found)


@torch.inference_mode()
def translate_ways(model: Translator, source: Tensor, target: Tensor) -> TwoWays:
    """Translate each sentence twice: after the right words, and after its own, at most twice as many as are right."""
    n_steps = target.shape[1]
    free = model.translate(source, max_length=2 * n_steps).words
    free = torch.nn.functional.pad(free, (0, max(0, n_steps - free.shape[1])))
    return TwoWays(target=target, forced=model(source, target).words, free=free)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedStep:
    """One step of a sentence."""

    word: str  # the word that the model generates, or that is forced on it
    chance: float  # how likely the model finds it
    expected: str  # the word that the model finds likeliest there
    expected_chance: float


@torch.inference_mode()
def read(model: Translator, vocabulary: Vocabulary, record: Attention) -> tuple[ForcedStep, ...]:
    """What the model expects at each step of what it generated, or of what was forced on it."""
    source, target = (
        torch.tensor([[token.id or 0 for token in tokens]]) for tokens in (record.key_tokens, record.query_tokens)
    )
    chances = model(source, target).logits[0].softmax(dim=-1)
    return tuple(
        ForcedStep(
            word=token.text,
            chance=float(chance[token.id or 0]),
            expected=vocabulary.words[int(chance.argmax())],
            expected_chance=float(chance.max()),
        )
        for token, chance in zip(record.query_tokens, chances, strict=True)
    )


def tell() -> Story:
    """The demo: one sentence with a wrong word forced on it, and unseen sentences too long for the model."""
    card, model = open_model(RECURRENT, RecurrentTranslator)
    says = card.target or card.source
    source = open_source(RECURRENT)
    free, forced = attend(SENTENCE, source), attend(SENTENCE, source, target=FORCED)
    pairs = list(islice(splits.pairs("test", clauses=CLAUSES), N_PAIRS))
    both = translate_ways(model, *encode_pairs(pairs, model.config.end))
    steps = [read(model, says, record) for record in (free, forced)]
    return Story(
        name="forcing",
        title="teacher forcing and free running: a decoder on the right words before, and on its own",
        parts=(
            _two_ways(card.plan.recipe),
            _wrong_word(*steps),
            _what_follows(*steps),
            *_tell_measures(both),
            *_one_sentence(both, pairs, says),
            _patterns(free, forced),
        ),
        picture=(
            steps_panel("free running", free, (0, 0)),
            steps_panel("forced", forced, (0, 0)),
            *_lines(both),
        ),
        receipt=f"free: {free.proof}; forced: {forced.proof}; the shares are counted on {len(pairs)} test sentences",
    )


def _two_ways(recipe: Recipe) -> str:
    """What the two ways are, and how the model was trained."""
    forgot = ""
    if recipe.forget:
        forgot = f""", but for {percent(recipe.forget)} of the words before, which were shown as unknown: so it had to
        look at the English sentence"""
    return prose(f"""A decoder reads, at each step, the word before. While it is trained that is the right one, whatever
    it would have chosen itself (teacher forcing); in use there is no right one, and it reads its own (free running).
    {RECURRENT} was trained by teacher forcing{forgot}. Here it translates “{SENTENCE}” freely, and once more with a
    wrong word forced on it: 먹는다 (eats) where 먹고 있다 (is eating) is right.""")


def _wrong_word(free: Sequence[ForcedStep], forced: Sequence[ForcedStep]) -> Table:
    """Both readings side by side, as far as the longer one goes."""
    rows = []
    for place, (own, made) in enumerate(itertools.zip_longest(free, forced)):
        left: tuple[Cell, ...] = (own.word, own.chance) if own else ("", "")
        right: tuple[Cell, ...] = (made.word, made.chance, made.expected, made.expected_chance) if made else ("",) * 4
        rows.append((place, *left, *right))
    return Table(
        title=f"“{SENTENCE}”: free running, and with “{FORCED}” forced on it",
        columns=("step", "free: generates", "chance", "forced: given", "chance", "expects itself", "chance"),
        rows=tuple(rows),
    )


def _what_follows(free: Sequence[ForcedStep], forced: Sequence[ForcedStep]) -> str:
    """What the model makes of the wrong word: at that step and at the next."""
    wrong = [place for place, (own, made) in enumerate(zip(free, forced, strict=False)) if own.word != made.word]
    if not wrong or wrong[0] + 1 >= min(len(free), len(forced)):
        return "The words forced on the model are those that it generates itself, so nothing differs."
    place = wrong[0]
    own, made, after_own, after_made = free[place], forced[place], free[place + 1], forced[place + 1]
    verdict = "Here the English sentence decides: the wrong word does not change what it generates next."
    if after_own.expected != after_made.expected:
        verdict = "What it generates next depends on the word it was given, not on the English sentence alone."
    return prose(f"""At step {place} {made.word} is forced on it, to which it gives a chance of {made.chance:.3f};
    itself it would generate {made.expected} ({made.expected_chance:.3f}). Up to here both runs have read the same words
    and expect the same. After its own {own.word} it expects {after_own.expected} ({after_own.expected_chance:.3f});
    after {made.word} it expects {after_made.expected} ({after_made.expected_chance:.3f}). {verdict}""")


def _patterns(free: Attention, forced: Attention) -> str:
    """From which row on the two patterns differ, and how to draw them."""
    n = min(len(free.query_tokens), len(forced.query_tokens))
    same = [np.allclose(free.pattern(0, 0)[row], forced.pattern(0, 0)[row], atol=1e-6) for row in range(n)]
    parts = [own.piece != made.piece for own, made in zip(free.query_tokens, forced.query_tokens, strict=False)]
    late = ""
    if True in parts and False in same:
        late = f"""The wrong word is step {parts.index(True)}, yet the patterns are the same up to row
        {same.index(False) - 1}: a step looks with the state of the step before, and only then reads its word."""
    return prose(f"""{late} Both patterns are drawn by `attnviz heatmap "{SENTENCE}" --model {RECURRENT}`, without and
    with `--target "{FORCED}"`. {ROWS}""")


def _tell_measures(both: TwoWays) -> tuple[str | Table, ...]:
    """How often each way is right: in all, step by step after the first error, and wherever the words stand."""
    n, after = len(both.target), both.after_error(AFTER)
    text = f"""On {n} unseen sentences of {CLAUSES} clauses, one more than any it was trained on, it generates
    {percent(both.accuracy(both.forced))} of the words right after the right words, and
    {percent(both.accuracy(both.free))} after its own."""
    if not after:
        return (prose(f"{text} There is nothing that could go on."),)
    wrong, last = len(both.firsts), after[-1]
    verdict = "too small a difference to be told from chance."
    if wilson(last.forced / last.n, last.n)[0] > wilson(last.free / last.n, last.n)[1]:
        verdict = "its own error goes on. In training it never read an error of its own (exposure bias)."
    text = prose(f"""{text} {"All" if wrong == n else wrong} of the sentences have an error; the first is at the same
    step both ways, for until then both have read the same. {last.steps} steps later {percent(last.forced / last.n)} of
    the words are right where the right word was put in the place of each wrong one, and {percent(last.free / last.n)}
    where the model reads on from its own: {verdict}""")
    rows = tuple((a.steps, a.n, percent(a.forced / a.n), percent(a.free / a.n)) for a in after)
    title = f"words right at their place after the first error, {n} sentences of {CLAUSES} clauses"
    columns = ("steps after it", "sentences", "forced: right", "free: right")
    return text, Table(title, columns, rows), _moved(both)


def _moved(both: TwoWays) -> str:
    """How much of the difference is words at another place, not words lost."""
    ordered = [both.in_order(words) for words in (both.forced, both.free)]
    placed = [both.accuracy(words) for words in (both.forced, both.free)]
    return prose(f"""A word that is left out moves all that follow, and at its place each of them then counts as wrong.
    Counted wherever they stand, as long as they are in the right order, {percent(ordered[0])} of the words are
    generated forced and {percent(ordered[1])} free: {100 * (ordered[0] - ordered[1]):.1f} points apart, where at their
    place they are {100 * (placed[0] - placed[1]):.1f} apart. The right word before shows what may come next, and also
    how far the sentence has got.""")


def _one_sentence(both: TwoWays, pairs: Sequence[Pair], vocabulary: Vocabulary) -> tuple[Table, ...]:
    """The words around the first error of the first sentence in which its own error goes on and a mended one does not.

    Where there is no such sentence, of the first with an error.
    """
    if not both.firsts:
        return ()
    lengths = [(both.goes_on(both.forced, *place), both.goes_on(both.free, *place)) for place in both.firsts]
    found = [place for place, (forced, free) in zip(both.firsts, lengths, strict=True) if forced < SEVERAL <= free]
    row, first = found[0] if found else both.firsts[0]
    what = "the first of them with an error"
    if found:
        what = f"the first of them in which {SEVERAL} words or more are wrong in a row when free, and fewer when forced"
    names = ("-", *vocabulary.words[1:])  # after its end it generates nothing
    rows: list[tuple[Cell, ...]] = []
    for place in range(max(0, first - BEFORE), min(int(both.here[row].sum()), first + AFTER + 1)):
        right, *generated = (names[int(words[row, place])] for words in (both.target, both.forced, both.free))
        rows.append((place, right, *(word if word == right else f"{word} (wrong)" for word in generated)))
    title = f"{what}, around its first error: “{' '.join(pairs[row].english)}”"
    return (Table(title=title, columns=("step", "right", "forced: generates", "free: generates"), rows=tuple(rows)),)


def _lines(both: TwoWays) -> tuple[Lines, ...]:
    """Both ways, step by step after the first error, with their intervals."""
    after = both.after_error(AFTER)
    if not after:
        return ()
    shares = {"forced": [a.forced / a.n for a in after], "free running": [a.free / a.n for a in after]}
    return (
        Lines(
            title=f"after the first error, {CLAUSES} clauses (bands: 95 %)",
            x=tuple(float(a.steps) for a in after),
            x_title="steps after the first error",
            series=tuple(
                Series.of(name, [(share, *wilson(share, a.n)) for share, a in zip(found, after, strict=True)])
                for name, found in shares.items()
            ),
            y_title="words right at their place",
            y_limits=(0.0, 1.0),
        ),
    )
