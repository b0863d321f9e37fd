"""The demo of pairs: it says what the model does, and its head is chosen on other sentences."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.models.language.grammar import load_grammar
from attnviz.models.language.splits import split_of
from attnviz.stories.common import words_of
from attnviz.stories.lessons import pairs
from attnviz.stories.record import Bars, Matrix, Story
from tests.stories.lessons import by_hand
from tests.stories.parts import tables, told

WORDS = words_of(pairs.SENTENCE)


@pytest.fixture(scope="module")
def patterns() -> np.ndarray:
    """The sentence's weights, by hand [layer, head, query, key]."""
    return by_hand.patterns("toy", WORDS)


def counted(split: str) -> np.ndarray:
    """How often each head's largest weight goes each way, and the same step elsewhere, by hand.

    Shares [way, there or elsewhere, layer, head].
    """
    steps = {pairs.VERB: -5, pairs.ADJECTIVE: -3, pairs.NOUN: -2}
    there: list[list[np.ndarray]] = [[] for _ in pairs.WAYS]
    elsewhere: list[list[np.ndarray]] = [[] for _ in pairs.WAYS]
    for sentence in pairs.sentences(split):  # type: ignore[arg-type]
        looked = by_hand.patterns("toy", sentence.words).argmax(axis=-1)
        n = len(sentence.words)
        for way, (looker, other) in enumerate(pairs.WAYS):
            step = steps[other] - steps[looker]
            for query in range(n):
                if query == n + steps[looker]:
                    there[way].append(looked[:, :, query] == n + steps[other])
                elif 0 <= query + step < n:
                    elsewhere[way].append(looked[:, :, query] == query + step)
    return np.array(
        [[np.mean(hits, axis=0) for hits in both] for both in zip(there, elsewhere, strict=True)]
    )


@pytest.fixture(scope="module")
def heads() -> list[tuple[int, int]]:
    """For each way the head whose lead over the same step elsewhere is largest on validation sentences."""
    found = []
    for there, elsewhere in counted("validation"):
        layer, head = np.unravel_index((there - elsewhere).argmax(), there.shape)
        found.append((int(layer), int(head)))
    return found


@pytest.fixture(scope="module")
def shares(heads: list[tuple[int, int]]) -> list[tuple[float, float]]:
    """What those heads do on test sentences: there and elsewhere, for each way."""
    return [
        (both[0][head], both[1][head]) for both, head in zip(counted("test"), heads, strict=True)
    ]


@pytest.mark.parametrize("split", ["validation", "test"])
def test_the_sentences_end_with_verb_article_adjective_noun(split: str) -> None:
    """Unseen ones of that split, as many as asked for."""
    words = load_grammar("english").words
    kinds = words["actions"] + words["moves"]
    verbs = {verb[form] for verb in kinds for form in ("many", "one", "past", "ing")}
    groups = ("people", "animals", "places", "rooms", "food", "things")
    nouns = {noun[form] for group in groups for noun in words[group] for form in ("one", "many")}
    numbers = {number["word"] for number in words["numbers"]}
    qualities = {quality["word"] for quality in words["qualities"]}
    found = pairs.sentences(split, 50)  # type: ignore[arg-type]
    assert len(found) == 50
    for sentence in found:
        verb, article, adjective, noun, stop = sentence.words[-5:]
        assert verb in verbs
        assert article in {"the", "a", "an", *numbers}
        assert adjective in qualities
        assert noun in nouns
        assert stop == "."
        assert split_of(sentence.words) == split


def test_means_and_strongest_heads(story: Story, patterns: np.ndarray) -> None:
    """Each pair both ways over all heads, and the largest weight of any."""
    for row, (first, second) in zip(tables(story)[-1].rows, pairs.PAIRS, strict=True):
        i, j = WORDS.index(first), WORDS.index(second)
        assert row[0] == f"{first}-{second}"
        assert row[1] == pytest.approx(patterns[:, :, i, j].mean(), abs=1e-5)
        assert row[2] == pytest.approx(patterns[:, :, j, i].mean(), abs=1e-5)
        largest = max(patterns[:, :, i, j].max(), patterns[:, :, j, i].max())
        assert row[3] == pytest.approx(largest, abs=1e-5)
        where, way = str(row[4]).split(": ")
        layer, which = map(int, where.split("."))
        looker, looked = (WORDS.index(word) for word in way.split(" at "))
        assert patterns[layer, which, looker, looked] == pytest.approx(largest, abs=1e-5)


def test_the_sentence_on_the_means_says_what_they_are(story: Story, patterns: np.ndarray) -> None:
    """As expected only where it is so."""
    mean = patterns.mean(axis=(0, 1))
    both = {}
    for first, second in pairs.PAIRS:
        i, j = WORDS.index(first), WORDS.index(second)
        both[f"{first}-{second}"] = (mean[i, j] + mean[j, i]) / 2
        said = f"{first}-{second} {both[f'{first}-{second}']:.3f}"
        assert said in told(story)
    text = told(story)
    assert f"if it looked everywhere alike, each would be {1 / len(WORDS):.3f}" in text
    for name, value in both.items():
        assert f"{name} is {'above' if value > 1 / len(WORDS) else 'below'} that" in text
    lowest = min(both, key=lambda name: both[name])
    assert ("eating-green is the lowest" in text) == (lowest == "eating-green")


def test_sentences_on_made_up_means() -> None:
    """What is said to be as expected and what is not follows the means."""
    mean = np.full((6, 6), 0.1)
    eating, green, apple = (WORDS.index(word) for word in (pairs.VERB, pairs.ADJECTIVE, pairs.NOUN))
    mean[eating, green] = 0.05
    text = pairs._means(mean)
    assert "As expected: eating-green is below that; eating-green is the lowest." in text
    assert "Not as expected: eating-apple is below that; green-apple is below that." in text
    mean[eating, green], mean[green, apple] = 0.3, 0.9
    text = pairs._means(mean)
    assert "As expected: green-apple is above that." in text
    assert "eating-green is above that; eating-green is not below eating-apple." in text
    mean[eating, green], mean[eating, apple] = 0.05, 0.9
    assert pairs._means(mean).endswith("Not as expected: nothing.")


def test_heads_and_shares(
    story: Story,
    patterns: np.ndarray,
    heads: list[tuple[int, int]],
    shares: list[tuple[float, float]],
) -> None:
    """The table: heads that validation sentences choose, counted on test sentences, and their weight here."""
    table = tables(story)[0]
    for row, way, head, (there, elsewhere) in zip(
        table.rows, pairs.WAYS, heads, shares, strict=True
    ):
        looker, looked = (WORDS.index(word) for word in way)
        assert row[:4] == (
            f"{way[0]} at {way[1]}",
            f"{head[0]}.{head[1]}",
            f"{100 * there:.1f} %",
            f"{100 * elsewhere:.1f} %",
        )
        assert row[5] == pytest.approx(patterns[(*head, looker, looked)], abs=1e-5)


@pytest.mark.parametrize("pair", pairs.PAIRS[:2])
def test_heads_have_learned_to_link_the_verb_to_its_object_and_the_adjective_to_its_noun(
    story: Story, shares: list[tuple[float, float]], pair: tuple[str, str]
) -> None:
    """Not the word some steps on as such, nor because of how the model is built."""
    way = pairs.better_ways(shares)[pairs.PAIRS.index(pair)]
    there, elsewhere = shares[way]
    row = tables(story)[0].rows[way]
    assert there > 0.4
    assert there - elsewhere > 0.25
    assert there > 0.2 + float(str(row[4]).split()[0]) / 100
    assert f"{'-'.join(pair)} {100 * there:.1f} %" in story.title


def test_no_head_links_the_verb_to_the_adjective(
    story: Story, shares: list[tuple[float, float]]
) -> None:
    """Neither way, by either yardstick; the title says how seldom."""
    for way in (4, 5):
        there, elsewhere = shares[way]
        assert there - elsewhere < 0.1
        assert there < float(str(tables(story)[0].rows[way][4]).split()[0]) / 100
    assert story.title.endswith(
        f"eating-green {100 * shares[pairs.better_ways(shares)[2]][0]:.1f} %"
    )


def test_the_verdict_follows_the_shares(story: Story, shares: list[tuple[float, float]]) -> None:
    """Each pair with its better way, by its lead over either yardstick; as expected only where the third is last."""
    random = [float(str(row[4]).split()[0]) / 100 for row in tables(story)[0].rows]
    for what, yardstick in (
        ("same step elsewhere", [elsewhere for _, elsewhere in shares]),
        ("best head of random weights", random),
    ):
        leads = {}
        for number, pair in enumerate(pairs.PAIRS):
            both = [(shares[way][0], yardstick[way]) for way in (2 * number, 2 * number + 1)]
            leads["-".join(pair)] = max(both, key=lambda found: found[0] - found[1])
        order = sorted(leads, key=lambda name: leads[name][1] - leads[name][0])
        listed = [
            f"{name} ({100 * leads[name][0]:.1f} % against {100 * leads[name][1]:.1f} %)"
            for name in order
        ]
        end = (
            "eating-green is the last, as expected"
            if order[-1] == "eating-green"
            else "not as expected: eating-green"
        )
        assert f"its lead over the {what}: {', '.join(listed)}; {end}" in told(story)


@pytest.mark.parametrize(
    ("random", "said"),
    [
        ([0.1, 0.1, 0.0, 0.0, 0.25, 0.25], "Both yardsticks give this order."),
        (
            [0.9, 0.9, 0.0, 0.0, 0.1, 0.1],
            "By both green-apple leads; the order of the other two depends",
        ),
        ([0.0, 0.0, 0.9, 0.9, 0.3, 0.3], "The yardsticks do not agree on which pair leads."),
    ],
)
def test_the_verdict_says_whether_the_yardsticks_agree(random: list[float], said: str) -> None:
    """What is said of made-up shares follows both."""
    middle, high, low = (0.5, 0.3), (0.9, 0.2), (0.3, 0.25)
    first, second = pairs._verdict([middle, middle, high, high, low, low], random)
    assert (
        "green-apple (90.0 % against 20.0 %), eating-apple (50.0 % against 30.0 %), eating-green"
        in first
    )
    assert second.startswith(said)


def test_the_picture(
    story: Story,
    patterns: np.ndarray,
    heads: list[tuple[int, int]],
    shares: list[tuple[float, float]],
) -> None:
    """The heads of the first two pairs, the mean over all, and how often each way is gone."""
    *single, mean, bars = story.picture
    ways = pairs.better_ways(shares)[:2]
    for panel, way in zip(single, ways, strict=True):
        assert (
            panel.title == f"head {heads[way][0]}.{heads[way][1]}: {' at '.join(pairs.WAYS[way])}"
        )
    chosen = [patterns[heads[way]] for way in ways]
    for panel, matrix in zip((*single, mean), (*chosen, patterns.mean(axis=(0, 1))), strict=True):
        assert isinstance(panel, Matrix)
        assert panel.rows == panel.columns == tuple(WORDS)
        assert panel.values == pytest.approx(matrix, abs=1e-5)
    assert isinstance(bars, Bars)
    assert bars.labels == tuple(f"{looker} at {looked}" for looker, looked in pairs.WAYS)
    for series, values in zip(bars.series, zip(*shares, strict=True), strict=False):
        assert series.values == pytest.approx(values, abs=1e-6)
    assert [f"{100 * value:.1f} %" for value in bars.series[2].values] == [
        row[4] for row in tables(story)[0].rows
    ]
    assert story.receipt.startswith("verified")
