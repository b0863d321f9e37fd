"""The demo of pairs: its heads are chosen on other sentences, and counted by hand."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from attnviz.stories.lessons import pairs
from attnviz.stories.lessons.pairs import WAYS, WORDS
from attnviz.stories.record import Bars, Story
from attnviz.text.display import percent
from tests.stories.lessons import models
from tests.stories.parts import panels, tables, told

PATTERNS = models.patterns("toy", WORDS)


@cache
def count(split: str) -> np.ndarray:
    """Return how often each head's largest weight goes each way [way, there or elsewhere, layer, head]."""
    places = {"eating": -5, "green": -3, "apple": -2}
    hits: list[tuple[list[np.ndarray], list[np.ndarray]]] = [([], []) for _way in WAYS]
    for sentence in pairs.sentences(split):  # type: ignore[arg-type]
        tops = models.patterns("toy", sentence.words).argmax(axis=-1)
        n = len(sentence.words)
        for (word, other), (there, elsewhere) in zip(WAYS, hits, strict=True):
            step = places[other] - places[word]
            for query in range(n):
                if query == n + places[word]:
                    there.append(tops[:, :, query] == query + step)
                elif 0 <= query + step < n:
                    elsewhere.append(tops[:, :, query] == query + step)
    return np.array([[np.mean(one, axis=0) for one in both] for both in hits])


@pytest.fixture(scope="module")
def heads() -> list[tuple[int, int]]:
    """For each way the head whose lead is largest on validation sentences."""
    found = []
    for there, elsewhere in count("validation"):
        layer, head = np.unravel_index((there - elsewhere).argmax(), there.shape)
        found.append((int(layer), int(head)))
    return found


def test_table_and_bars(story: Story, heads: list[tuple[int, int]]) -> None:
    """Heads that validation sentences choose, counted on test sentences, and their weight here."""
    (bars,) = panels(story, Bars)
    for i, (row, (word, other), head) in enumerate(
        zip(tables(story)[0].rows, WAYS, heads, strict=True)
    ):
        there, elsewhere = (both[head] for both in count("test")[i])
        shares = f"{100 * there:.1f}%", f"{100 * elsewhere:.1f}%"
        assert row[:4] == (f"{word}→{other}", f"{head[0]}.{head[1]}", *shares)
        assert [series.values[i] for series in bars.series[:2]] == pytest.approx([there, elsewhere])
        assert row[4] == f"{100 * bars.series[2].values[i]:.1f}%"
        weight = PATTERNS[(*head, WORDS.index(word), WORDS.index(other))]
        assert row[6] == pytest.approx(weight, abs=1e-5)


def test_findings(story: Story) -> None:
    """Verb and object, adjective and noun are linked; verb and adjective are not."""
    rows = tables(story)[0].rows
    shares = [[float(str(cell).rstrip("%")) for cell in row[2:5]] for row in rows]
    best = [max((i, i + 1), key=lambda way: shares[way][0] - shares[way][1]) for i in (0, 2, 4)]
    for way in best[:2]:
        assert shares[way][0] > 20 + max(shares[way][1:])
        assert rows[way][5] == "yes"
    assert [rows[way][5] for way in (4, 5)] == ["no", "no"]
    for way in best[:2]:
        assert f"in {rows[way][2]}" in story.title
    mean = PATTERNS.mean(axis=(0, 1))
    for word, other in pairs.PAIRS:
        i, j = WORDS.index(word), WORDS.index(other)
        assert f"{(mean[i, j] + mean[j, i]) / 2:.3f}" in told(story)


def test_the_title_says_where_the_claim_fails(story: Story, heads: list[tuple[int, int]]) -> None:
    """In the sentence of the story itself, "eating" attends most to "a"."""
    rows = tables(story)[0].rows
    for row, (word, _other), head in zip(rows, WAYS, heads, strict=True):
        weights = PATTERNS[head][WORDS.index(word)]
        assert row[7] == f"{WORDS[weights.argmax()]} {percent(weights.max())}"
    assert str(rows[0][7]).startswith("a ")
    assert f"→{rows[0][7]}" in story.title
