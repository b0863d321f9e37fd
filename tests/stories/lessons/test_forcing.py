"""The demo of forcing: the recurrent model in numpy, after the right words and after its own."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

import pytest
import torch

from attnviz.capture.attend import attend
from attnviz.heads.tally import wilson
from attnviz.models.language import splits
from attnviz.models.training import files
from attnviz.stories.lessons import forcing
from attnviz.stories.record import Lines, Matrix, Story
from tests.stories.lessons import by_hand_recurrent
from tests.stories.parts import tables, told

if TYPE_CHECKING:
    from attnviz.models.language.sentences import Pair

RECURRENT = "toy-seq2seq"
ENGLISH, FORCED = forcing.SENTENCE.split(), forcing.FORCED.split()
END = "<end>"


@cache
def pairs() -> list[Pair]:
    """The sentences of the measure."""
    return list(islice(splits.pairs("test", clauses=forcing.CLAUSES), forcing.N_PAIRS))


@cache
def said() -> list[tuple[list[str], list[str], list[str]]]:
    """For each of them the right words with their end, what is said forced, and what is said free."""
    found = []
    most = 2 * max(len(pair.korean) + 1 for pair in pairs())
    for pair in pairs():
        right = [*pair.korean, END]
        forced = by_hand_recurrent.say(RECURRENT, pair.english, pair.korean).words
        free = by_hand_recurrent.say(RECURRENT, pair.english, most=most).words
        found.append((right, list(forced), [*free, *("" for _ in right[len(free) :])]))
    return found


def accuracy(which: int) -> float:
    """The share of the right words that are said at their place: 1 forced, 2 free."""
    hits = [own == word for one in said() for word, own in zip(one[0], one[which], strict=False)]
    return sum(hits) / len(hits)


def in_order(which: int) -> float:
    """The share of the right words in the longest row that both have in common, by the textbook."""
    common = 0
    for one in said():
        row = [0] * (len(one[which]) + 1)
        for word in one[0]:
            before = row[:]
            for j, own in enumerate(one[which]):
                row[j + 1] = before[j] + 1 if own == word else max(before[j + 1], row[j])
        common += row[-1]
    return common / sum(len(one[0]) for one in said())


def firsts(which: int) -> list[int | None]:
    """Each sentence's first error."""
    return [
        next(
            (
                step
                for step, (word, own) in enumerate(zip(one[0], one[which], strict=False))
                if word != own
            ),
            None,
        )
        for one in said()
    ]


def after(which: int, steps: int) -> tuple[int, int]:
    """How many words are right so many steps after the first error, and of how many."""
    places = [
        (one, first + steps)
        for one, first in zip(said(), firsts(which), strict=True)
        if first is not None
    ]
    hits = [one[0][place] == one[which][place] for one, place in places if place < len(one[0])]
    return sum(hits), len(hits)


def percent(share: float) -> str:
    """As the demo says it."""
    return f"{100 * share:.1f} %"


def test_one_wrong_word_is_forced(story: Story) -> None:
    """The target is what the model says by itself but for one word, which it finds unlikely."""
    free = by_hand_recurrent.say(RECURRENT, ENGLISH).words
    assert free[-1] == END
    (place,) = [at for at, (own, made) in enumerate(zip(free, FORCED, strict=False)) if own != made]
    assert len(free) == len(FORCED) + 1
    rows = tables(story)[0].rows
    assert rows[place][1] == free[place]
    assert rows[place][3] == FORCED[place]
    chance = rows[place][4]
    assert isinstance(chance, float)
    assert chance < 0.5


def test_what_is_expected_after_the_wrong_word(story: Story) -> None:
    """Every chance in the table, in numpy; the words of the sentence below it."""
    _, says = by_hand_recurrent.vocabularies(RECURRENT)
    free, forced = (by_hand_recurrent.say(RECURRENT, ENGLISH, given) for given in (None, FORCED))
    for step, (row, given) in enumerate(zip(tables(story)[0].rows, [*FORCED, END], strict=True)):
        assert row[:2] == (step, free.words[step])
        assert row[2] == pytest.approx(free.chances[step].max(), abs=1e-4)
        assert (row[3], row[5]) == (given, forced.words[step])
        assert row[4] == pytest.approx(forced.chances[step, says.index(given)], abs=1e-4)
        assert row[6] == pytest.approx(forced.chances[step].max(), abs=1e-4)
    place = next(
        at for at, (own, made) in enumerate(zip(free.words, FORCED, strict=False)) if own != made
    )
    after_own, after_made = free.words[place + 1], forced.words[place + 1]
    assert f"After its own {free.words[place]} it expects {after_own}" in told(story)
    assert f"after {FORCED[place]} it expects {after_made}" in told(story)
    depends = "What it generates next depends on the word it was given" in told(story)
    assert depends == (after_own != after_made)


def test_forced_on_its_own_words_it_runs_as_free() -> None:
    """The same weights, whether the words are its own or given."""
    free = attend(forcing.SENTENCE, RECURRENT)
    forced = attend(forcing.SENTENCE, RECURRENT, target=free.target)
    assert forced.weights == pytest.approx(free.weights, abs=1e-6)


def test_the_patterns(story: Story) -> None:
    """Both runs' weights, in numpy. A step looks before it reads, so the wrong word changes the second row below it."""
    free, forced = story.picture[:2]
    assert isinstance(free, Matrix)
    assert isinstance(forced, Matrix)
    assert free.values == pytest.approx(by_hand_recurrent.say(RECURRENT, ENGLISH).weights, abs=1e-4)
    assert forced.values == pytest.approx(
        by_hand_recurrent.say(RECURRENT, ENGLISH, FORCED).weights, abs=1e-4
    )
    assert free.rows[:-1] != forced.rows[:-1]
    assert forced.rows == (*FORCED, END)
    place = next(
        at for at, (own, made) in enumerate(zip(free.rows, forced.rows, strict=True)) if own != made
    )
    assert free.values[: place + 2] == pytest.approx(forced.values[: place + 2], abs=1e-6)
    assert abs(free.values[place + 2] - forced.values[place + 2]).max() > 1e-3
    assert (
        f"The wrong word is step {place}, yet the patterns are the same up to row {place + 1}"
        in told(story)
    )


def test_training_has_no_sentence_of_so_many_clauses() -> None:
    """A row of joined clauses has one "and" fewer than clauses."""
    most = max(pair.english.count("and") for pair in islice(splits.pairs("train"), 1000))
    assert most + 1 == forcing.CLAUSES - 1
    assert all(pair.english.count("and") + 1 == forcing.CLAUSES for pair in pairs())


def test_both_ways_on_longer_sentences(story: Story) -> None:
    """The shares of words, by place and in order, forced and free."""
    forced, free = accuracy(1), accuracy(2)
    assert forced > free
    text = told(story)
    assert f"On {forcing.N_PAIRS} unseen sentences of {forcing.CLAUSES} clauses" in text
    assert (
        f"{percent(forced)} of the words right after the right words, and {percent(free)} after its own"
        in text
    )
    ordered = in_order(1), in_order(2)
    assert (
        f"{percent(ordered[0])} of the words are generated forced and {percent(ordered[1])} free"
        in text
    )
    points = [100 * (ordered[0] - ordered[1]), 100 * (forced - free)]
    assert (
        f"{points[0]:.1f} points apart, where at their place they are {points[1]:.1f} apart" in text
    )


def test_the_first_error_is_the_same_both_ways(story: Story) -> None:
    """Until then both have read the same words."""
    assert firsts(1) == firsts(2)
    n = sum(first is not None for first in firsts(1))
    assert n >= 10
    assert f"{'All' if n == len(pairs()) else n} of the sentences have an error" in told(story)


def test_the_training_is_told_from_the_card(story: Story) -> None:
    """The share of words before that it was not shown; nothing of it where there was none."""
    recipe = files.load_card(files.FOLDER / f"{RECURRENT}.safetensors").plan.recipe
    assert recipe.forget > 0
    assert (
        f"but for {percent(recipe.forget)} of the words before, which were shown as unknown"
        in told(story)
    )
    assert "unknown" not in forcing._two_ways(replace(recipe, forget=0.0))


def test_an_error_goes_on_when_free(story: Story) -> None:
    """ForcedStep by step after it; at the last step forced is better beyond both intervals."""
    table, lines = tables(story)[1], story.picture[2]
    assert isinstance(lines, Lines)
    assert (
        [row[0] for row in table.rows]
        == [int(x) for x in lines.x]
        == list(range(1, forcing.AFTER + 1))
    )
    for place, (steps, n, *shares) in enumerate(table.rows):
        assert isinstance(steps, int)
        for which, share, series in zip((1, 2), shares, lines.series, strict=True):
            hits, among = after(which, steps)
            assert n == among
            assert share == percent(hits / among)
            assert series.values[place] == pytest.approx(hits / among)
            assert series.low[place] <= hits / among <= series.high[place]
    forced, free = lines.series
    assert forced.low[-1] > free.high[-1]
    assert "(exposure bias)" in told(story)
    assert f"{table.rows[-1][2]} of the words are right where the right word was put" in told(story)
    assert f"and {table.rows[-1][3]} where the model reads on from its own" in told(story)


def test_one_sentence_around_its_first_error(story: Story) -> None:
    """The first whose error goes on when free and not when forced; the words are right up to it, and wrong there."""
    table = tables(story)[2]

    def wrong(which: int, at: int, first: int) -> int:
        hits = [own == word for word, own in zip(said()[at][0], said()[at][which], strict=False)][
            first:
        ]
        return hits.index(True) if True in hits else len(hits)

    row = next(
        at
        for at, first in enumerate(firsts(2))
        if first is not None and wrong(1, at, first) < forcing.SEVERAL <= wrong(2, at, first)
    )
    assert (
        f"in which {forcing.SEVERAL} words or more are wrong in a row when free, and fewer when forced"
        in table.title
    )
    first = firsts(2)[row]
    assert first is not None
    right, forced, free = said()[row]
    assert " ".join(pairs()[row].english) in table.title
    begin = max(0, first - forcing.BEFORE)
    assert [line[0] for line in table.rows] == list(range(begin, begin + len(table.rows)))
    assert first in range(begin, begin + len(table.rows))
    for place, word, *others in table.rows:
        assert isinstance(place, int)
        assert word == right[place]
        for other, own in zip(others, (forced[place], free[place]), strict=True):
            assert other == (own if own == word else f"{own or '-'} (wrong)")


@pytest.mark.parametrize(
    ("hits", "n", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0)],
)
def test_wilson(hits: int, n: int, low: float, high: float) -> None:
    """Known intervals: Newcombe 1998, and by symmetry."""
    assert wilson(hits / n, n) == pytest.approx((low, high), abs=1e-4)


def test_common_rows_of_words() -> None:
    """A word left out costs itself by order, and all that follow by place; padding counts nowhere."""
    target = torch.tensor([[5, 6, 7, 8, 3], [5, 6, 3, 0, 0]])
    free = torch.tensor([[5, 7, 8, 3, 0], [5, 6, 3, 0, 0]])
    both = forcing.TwoWays(target=target, forced=target, free=free)
    assert both.accuracy(both.forced) == both.in_order(both.forced) == 1
    assert both.accuracy(both.free) == pytest.approx(4 / 8)
    assert both.in_order(both.free) == pytest.approx(7 / 8)
    assert both.firsts == [(0, 1)]
    after = [(a.steps, a.n, a.forced.mean, a.free.mean) for a in both.after_error(9)]
    assert after == [(1, 1, 1, 0), (2, 1, 1, 0), (3, 1, 1, 0)]


def test_how_long_an_error_goes_on() -> None:
    """Up to the next right word, or the end; where none goes on, the example says only that there is an error."""
    target = torch.tensor([[5, 6, 7, 8, 3], [5, 6, 3, 0, 0]])
    free = torch.tensor([[5, 9, 9, 8, 3], [5, 9, 9, 9, 0]])
    both = forcing.TwoWays(target=target, forced=target, free=free)
    assert [both.goes_on(both.free, *place) for place in both.firsts] == [2, 2]
    assert [both.goes_on(both.forced, *place) for place in both.firsts] == [0, 0]
    vocabulary = files.load_card(files.FOLDER / f"{RECURRENT}.safetensors").source
    (table,) = forcing._one_sentence(both, pairs()[:2], vocabulary)
    assert table.title.startswith("the first of them with an error, around its first error")


def test_a_model_without_errors_says_so() -> None:
    """Nothing is claimed of errors that are not there."""
    target = torch.tensor([[5, 6, 3]])
    both = forcing.TwoWays(target=target, forced=target, free=target)
    _, (text,), lines = forcing._measures(both)
    assert isinstance(text, str)
    assert "There is nothing that could go on." in text
    assert lines == ()


def test_the_models_file_is_the_one_told(story: Story) -> None:
    """The receipt proves both runs, and the model is the one that ships."""
    assert story.receipt.count("verified: max difference") == 2
    assert files.load_card(files.FOLDER / f"{RECURRENT}.safetensors").name in told(story)
