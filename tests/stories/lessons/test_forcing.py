"""The demo of forcing: the recurrent model in numpy, after the right words and after its own."""

from __future__ import annotations

from functools import cache
from itertools import islice

import pytest
import torch

from attnviz.models.language import splits
from attnviz.stories.lessons import forcing
from attnviz.stories.lessons.forcing import MODEL, WRONG
from attnviz.stories.record import Lines, Matrix, Story
from tests.stories.lessons import by_hand_recurrent
from tests.stories.parts import tables, told

ENGLISH, FORCED = forcing.SENTENCE.split(), forcing.FORCED.split()
END = "<end>"


@cache
def translations() -> list[tuple[list[str], list[str], list[str]]]:
    """The right words of each unseen sentence with its end, what is generated forced, and what free."""
    found = []
    for pair in islice(splits.pairs("test", clauses=forcing.N_CLAUSES), forcing.N_PAIRS):
        right = [*pair.korean, END]
        forced = by_hand_recurrent.translate(MODEL, pair.english, pair.korean).words
        free = by_hand_recurrent.translate(MODEL, pair.english, most=len(right)).words
        found.append((right, list(forced), [*free, *[""] * (len(right) - len(free))]))
    return found


def accuracy(which: int) -> float:
    """Return the share of words that are right at their place: 1 forced, 2 free."""
    hits = [
        own == word for one in translations() for word, own in zip(one[0], one[which], strict=True)
    ]
    return sum(hits) / len(hits)


def first_errors(which: int) -> list[int]:
    """Return the first error of each sentence."""
    return [
        [own == word for word, own in zip(one[0], one[which], strict=True)].index(False)
        for one in translations()
    ]


def test_the_wrong_word(story: Story) -> None:
    """One word differs from what the model generates; every chance in the table, in numpy."""
    vocabulary = by_hand_recurrent.vocabularies(MODEL)[1]
    free = by_hand_recurrent.translate(MODEL, ENGLISH)
    forced = by_hand_recurrent.translate(MODEL, ENGLISH, FORCED)
    differs = [own != word for own, word in zip(free.words, [*FORCED, END], strict=True)]
    assert differs.index(True) == WRONG
    assert sum(differs) == 1
    for step, (row, given) in enumerate(zip(tables(story)[0].rows, [*FORCED, END], strict=True)):
        assert (row[0], row[1], row[3], row[5]) == (
            step,
            free.words[step],
            given,
            forced.words[step],
        )
        assert row[2] == pytest.approx(free.chances[step].max(), abs=1e-4)
        assert row[4] == pytest.approx(forced.chances[step, vocabulary.index(given)], abs=1e-4)
        assert row[6] == pytest.approx(forced.chances[step].max(), abs=1e-4)
    after_own, after_forced = free.words[WRONG + 1], forced.words[WRONG + 1]
    assert after_own != after_forced
    assert f"After its own word it expects {after_own}" in told(story)
    assert f"after the forced one {after_forced}" in told(story)


def test_patterns(story: Story) -> None:
    """Both weights, in numpy; the wrong word changes them two rows later."""
    free, forced = story.picture[:2]
    assert isinstance(free, Matrix)
    assert isinstance(forced, Matrix)
    for panel, given in ((free, None), (forced, FORCED)):
        expected = by_hand_recurrent.translate(MODEL, ENGLISH, given).weights
        assert panel.values == pytest.approx(expected, abs=1e-4)
    later = WRONG + 2
    assert free.values[:later] == pytest.approx(forced.values[:later], abs=1e-6)
    assert abs(free.values[later] - forced.values[later]).max() > 1e-3
    assert f"The patterns differ from step {later} on" in told(story)


def test_longer_sentences(story: Story) -> None:
    """Longer than in training; the shares of right words, and that the first error is the same both ways."""
    most = max(pair.english.count("and") for pair in islice(splits.pairs("train"), 1000)) + 1
    assert most == forcing.N_CLAUSES - 1
    forced, free = (f"{100 * accuracy(which):.1f}%" for which in (1, 2))
    assert f"{forced} of the words are right with teacher forcing, {free} running" in told(story)
    assert first_errors(1) == first_errors(2)


def test_after_the_first_error(story: Story) -> None:
    """Step by step; at the last step forcing is better beyond both intervals."""
    lines = story.picture[2]
    assert isinstance(lines, Lines)
    for i, (steps, n, *shares) in enumerate(tables(story)[1].rows):
        assert steps == lines.x[i] == i + 1
        for which, share, series in zip((1, 2), shares, lines.series, strict=True):
            places = zip(translations(), first_errors(which), strict=True)
            hits = [
                one[0][at + i + 1] == one[which][at + i + 1]
                for one, at in places
                if at + i + 1 < len(one[0])
            ]
            assert n == len(hits)
            assert share == f"{100 * sum(hits) / n:.1f}%"
            assert series.values[i] == pytest.approx(sum(hits) / n)
            assert series.low[i] <= series.values[i] <= series.high[i]
    forced, free = lines.series
    assert forced.low[-1] > free.high[-1]
    assert f"{forced.values[-1]:.1%} of the words are right with teacher forcing" in story.title


def test_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word left out makes all that follow wrong at their place; padding counts nowhere."""
    monkeypatch.setattr(forcing, "N_AFTER", 3)
    target = torch.tensor([[5, 6, 7, 8, 3], [5, 6, 3, 0, 0]])
    free = torch.tensor([[5, 7, 8, 3, 0], [5, 6, 3, 0, 0]])
    both = forcing.Translations(target=target, forced=target, free=free)
    assert both.accuracy(both.forced) == 1
    assert both.accuracy(both.free) == pytest.approx(4 / 8)
    after = both.after_error()
    assert [(one.steps, one.n) for one in after] == [(1, 1), (2, 1), (3, 1)]
    assert all((one.forced.mean, one.free.mean) == (1, 0) for one in after)
