"""The demo of forcing: the recurrent model, after the right words and after its own."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import islice

import pytest

from attnviz.models.language import splits
from attnviz.stories.lessons import forcing
from attnviz.stories.lessons.forcing import MODEL, WRONG
from attnviz.stories.record import Bars, Matrix, Story
from tests.stories.lessons import models
from tests.stories.parts import panels, tables, told

ENGLISH, FORCED = forcing.SENTENCE.split(), forcing.FORCED.split()
END = "<end>"


@cache
def translations() -> list[tuple[list[str], list[str], list[str]]]:
    """The right words of each unseen sentence with its end, what is generated forced, and what free."""
    found = []
    pairs = list(islice(splits.pairs("test", clauses=forcing.N_CLAUSES), forcing.N_PAIRS))
    most = max(len(pair.korean) for pair in pairs) + 1
    for pair in pairs:
        right = [*pair.korean, END]
        forced = models.translate(MODEL, pair.english, pair.korean).words
        free = models.translate(MODEL, pair.english, most=most).words
        found.append((right, list(forced), [*free, *[""] * (len(right) - len(free))]))
    return found


def accuracy(which: int) -> float:
    """Return the share of words that are right at their place: 1 forced, 2 free."""
    hits = [
        own == word for one in translations() for word, own in zip(one[0], one[which], strict=False)
    ]
    return sum(hits) / len(hits)


def in_order(which: int) -> list[int]:
    """Return how many words of each sentence are right and in order: 1 forced, 2 free."""
    counts = []
    for one in translations():
        blocks = Counter[tuple[int, int]]()
        for i, word in enumerate(one[0]):
            for j, own in enumerate(one[which]):
                here = blocks[i - 1, j - 1] + (word == own)
                blocks[i, j] = max(here, blocks[i - 1, j], blocks[i, j - 1])
        counts.append(max(blocks.values()))
    return counts


def test_the_wrong_word(story: Story) -> None:
    """One word differs from what the model generates; every chance in the table."""
    target = models.opened(MODEL)[0].target
    assert target is not None
    free = models.translate(MODEL, ENGLISH)
    forced = models.translate(MODEL, ENGLISH, FORCED)
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
        assert row[4] == pytest.approx(forced.chances[step, target.words.index(given)], abs=1e-4)
        assert row[6] == pytest.approx(forced.chances[step].max(), abs=1e-4)
    after_own, after_forced = free.words[WRONG + 1], forced.words[WRONG + 1]
    assert after_own != after_forced
    assert f"After its own word it expects {after_own}" in told(story)
    assert f"after the forced one {after_forced}" in told(story)


def test_patterns(story: Story) -> None:
    """Both weights; the wrong word changes them two rows later."""
    free, forced = panels(story, Matrix)
    for panel, given in ((free, None), (forced, FORCED)):
        expected = models.translate(MODEL, ENGLISH, given).weights
        assert panel.values == pytest.approx(expected, abs=1e-4)
    later = WRONG + 2
    assert free.values[:later] == pytest.approx(forced.values[:later], abs=1e-6)
    assert abs(free.values[later] - forced.values[later]).max() > 1e-3
    assert f"The patterns differ from step {later} on" in told(story)


def test_longer_sentences(story: Story) -> None:
    """Longer than in training; the shares of words that are right at their place, and in order."""
    most = max(pair.english.count("and") for pair in islice(splits.pairs("train"), 1000)) + 1
    assert most == forcing.N_CLAUSES - 1
    n_words = sum(len(one[0]) for one in translations())
    rows = tables(story)[1].rows
    (bars,) = panels(story, Bars)
    for column, which in ((1, 1), (2, 2)):
        at_place, ordered = accuracy(which), sum(in_order(which)) / n_words
        assert [row[column] for row in rows] == [f"{at_place:.1%}", f"{ordered:.1%}"]
        assert bars.series[which - 1].values == pytest.approx([at_place, ordered])
        assert at_place <= ordered
        assert f"{ordered:.1%}" in story.title
