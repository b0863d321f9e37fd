"""The demo of word order: a bag of words without positions, a sentence with them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from attnviz.models.attention import scaled_dot_product_attention
from attnviz.stories.common import words_of
from attnviz.stories.lessons import word_order
from attnviz.stories.record import Bars, Matrix, Story
from tests.stories.lessons import by_hand
from tests.stories.parts import tables, told


def places(first: list[str], second: list[str]) -> list[int]:
    """Where each word stands in the other sentence: the first "get" is the first "get" there."""
    found = []
    for place, word in enumerate(first):
        before = [other.lower() for other in first[:place]].count(word.lower())
        there = [at for at, other in enumerate(second) if other.lower() == word.lower()]
        found.append(there[before])
    return found


def vectors(pair: tuple[str, str], *, positions: bool) -> tuple[np.ndarray, np.ndarray]:
    """The last vectors of a pair's words, by hand, the second's in the order of the first."""
    words = [words_of(sentence) for sentence in pair]
    first, second = (by_hand.read("toy", w, positions=positions)[-1].steps[-1] for w in words)
    return first, second[places(*words)]


def moved(pair: tuple[str, str] = word_order.LONG) -> np.ndarray:
    """How much of each row's weight lies on other words in the second sentence, by hand [layer, head, query]."""
    words = [words_of(sentence) for sentence in pair]
    first, second = (by_hand.patterns("toy", w) for w in words)
    there = places(*words)
    shares = np.zeros(first.shape[:3])
    for layer, head, query in np.ndindex(*shares.shape):
        row = [second[layer, head, there[query], there[key]] for key in range(len(there))]
        shares[layer, head, query] = sum(
            max(a - b, 0) for a, b in zip(first[layer, head, query], row, strict=True)
        )
    return shares


@pytest.mark.parametrize("pair", [word_order.SHORT, word_order.LONG])
def test_the_pairs_are_the_same_words(pair: tuple[str, str]) -> None:
    """One bag of words, two orders; and each word is found again."""
    first, second = (words_of(sentence) for sentence in pair)
    assert [w.lower() for w in first] != [w.lower() for w in second]
    assert sorted(w.lower() for w in first) == sorted(w.lower() for w in second)
    assert list(word_order.same_words(first, second)) == places(first, second)


def test_without_positions_the_vectors_are_exactly_the_same(story: Story) -> None:
    """Rounding apart, and to the last bit where rounding does not depend on the place."""
    table = tables(story)[0]
    for row in table.rows:
        assert float(row[1]) < 1e-12
        assert row[2] == "0"
    assert "the difference is exactly 0" in told(story)
    for pair in (word_order.SHORT, word_order.LONG):
        first, second = vectors(pair, positions=False)
        assert np.abs(first - second).max() < 1e-12


def test_with_positions_they_are_not(story: Story) -> None:
    """The table's differences are those of the formulas."""
    for row, pair in zip(tables(story)[0].rows, (word_order.SHORT, word_order.LONG), strict=True):
        first, second = vectors(pair, positions=True)
        difference = np.abs(first - second).max()
        assert difference > 0.1
        assert float(row[3]) == pytest.approx(difference, abs=6e-4)


def test_the_bars_are_each_words_difference(story: Story) -> None:
    """Positions off and on, as a share of the vector's length; the sentences name the largest and the smallest."""
    bars = story.picture[-1]
    assert isinstance(bars, Bars)
    assert bars.labels == tuple(words_of(word_order.LONG[0]))
    assert max(bars.series[0].values) < 1e-12
    first, second = vectors(word_order.LONG, positions=True)
    shares = np.linalg.norm(first - second, axis=1) / np.linalg.norm(first, axis=1)
    assert bars.series[1].values == pytest.approx(shares, abs=1e-6)
    most, least = int(shares.argmax()), int(shares.argmin())
    assert f"“{bars.labels[most]}” (word {most}) moves most, by {100 * shares[most]:.1f} %" in told(
        story
    )
    assert f"“{bars.labels[least]}” (word {least}) least, by {100 * shares[least]:.1f} %" in told(
        story
    )
    there = np.array(places(*(words_of(sentence) for sentence in word_order.LONG)))
    go = there != np.arange(len(there))
    assert (
        f"The {go.sum()} words that stand at another place move by {100 * shares[go].mean():.1f} %"
        in told(story)
    )
    assert (
        f"the {(~go).sum()} that stay where they are, by {100 * shares[~go].mean():.1f} %"
        in told(story)
    )


def test_the_rows_that_differ_most(story: Story) -> None:
    """The table's rows are the largest of all, in order, and look where they are said to look."""
    table, shares = tables(story)[1], moved()
    words = [words_of(sentence) for sentence in word_order.LONG]
    first, second = (by_hand.patterns("toy", w) for w in words)
    largest = sorted(shares.flatten(), reverse=True)
    assert len(table.rows) == word_order.SHOWN
    for row, expected in zip(table.rows, largest, strict=False):
        layer, head = map(int, str(row[0]).split("."))
        query = int(str(row[1]).split("(")[1].rstrip(")"))
        assert shares[layer, head, query] == pytest.approx(expected, abs=1e-5)
        assert row[2] == f"{100 * expected:.1f} %"
        looked = int(first[layer, head, query].argmax())
        there = int(second[layer, head, places(*words)[query]].argmax())
        assert row[3] == f"{words[0][looked]} ({looked})"
        assert row[4] == f"{words[1][there]} ({there})"


def test_the_head_shown_is_the_one_that_moves_most_elsewhere(story: Story) -> None:
    """It is chosen on other pairs; its patterns are the model's, of both sentences, on one scale."""
    others = word_order.other_pairs()
    means = [moved(pair).mean(axis=-1) for pair in zip(others[::2], others[1::2], strict=True)]
    layer, head = np.unravel_index(np.mean(means, axis=0).argmax(), means[0].shape)
    by_head = moved().mean(axis=-1)
    assert f"On average {100 * by_head.mean():.1f} % of a row's weight" in told(story)
    assert (
        f"shows head {layer}.{head} in both sentences, here {100 * by_head[layer, head]:.1f} %"
        in told(story)
    )
    assert f"in {len(means)} other such pairs its rows moved most" in told(story)
    for panel, sentence in zip(story.picture[:-1], word_order.LONG, strict=True):
        assert isinstance(panel, Matrix)
        assert f"head {layer}.{head}" in panel.title
        assert panel.rows == panel.columns == tuple(words_of(sentence))
        assert panel.values == pytest.approx(
            by_hand.patterns("toy", words_of(sentence))[layer, head], abs=1e-5
        )
        assert panel.limits[1] >= panel.values.max()


def test_sums_placeless_are_attention_whatever_the_order() -> None:
    """The same context as the formula's; and to the bit the same for every order of the keys."""
    generator = torch.Generator().manual_seed(5)
    query, key, value = torch.randn(3, 1, 2, 5, 4, generator=generator, dtype=torch.float64)
    context, _ = word_order.summed_once(query, key, value, None)
    expected, _ = scaled_dot_product_attention(query, key, value)
    assert torch.allclose(context, expected, rtol=0, atol=1e-14)
    for order in itertools.permutations(range(5)):
        again, _ = word_order.summed_once(
            query, key[:, :, list(order)], value[:, :, list(order)], None
        )
        assert torch.equal(again, context)


def test_maps_number_by_number_are_the_same_maps() -> None:
    """Within it the same but for rounding, and to the bit the same at every place; after it as before."""
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(48, 31), nn.ReLU(), nn.Linear(31, 7)).double()
    x = torch.randn(1, 18, 48, dtype=torch.float64)
    order = torch.randperm(18)
    with torch.inference_mode():
        expected = model(x)
        with word_order.placeless(model):
            found, again = model(x), model(x[:, order])
        assert torch.allclose(found, expected, rtol=0, atol=1e-13)
        assert torch.equal(found[:, order], again)
        assert torch.equal(model(x), expected)
    assert not any(part._forward_hooks for part in model.modules())


def test_what_is_left_of_rounding_is_told_as_it_is() -> None:
    """Exactly 0 is only said where it is 0."""
    text = word_order._exactness(3e-15, 2e-16)
    assert "2.0e-16 is left" in text
    assert "exactly 0" not in text
