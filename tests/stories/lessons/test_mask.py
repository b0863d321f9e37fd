"""The demo of the mask: no weight on the future, and nothing of the past changes with it."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.stories.common import words_of
from attnviz.stories.lessons import mask
from attnviz.stories.record import Bars, Matrix, Story
from tests.stories.lessons import models
from tests.stories.parts import panels, tables, told

WORDS, OTHER = words_of(mask.SENTENCE), words_of(mask.OTHER)
QUERY, KEY = np.indices((len(WORDS), len(WORDS)))


def strongest_head(patterns: np.ndarray, where: np.ndarray) -> tuple[int, int]:
    """Return the head that puts most weight on some cells."""
    sums = (patterns * where).sum(axis=(2, 3))
    layer, head = np.unravel_index(sums.argmax(), sums.shape)
    return int(layer), int(head)


def projected(layer: int, head: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the queries and keys of a head of the decoder [word, d]."""
    attention, found = models.opened("toy-decoder")[1].decoder.layers[layer].attention, {}
    hooks = [
        getattr(attention, name).register_forward_hook(
            lambda _module, _given, made, name=name: found.update({name: made[0]})
        )
        for name in ("query_projection", "key_projection")
    ]
    models.read("toy-decoder", WORDS)
    for hook in hooks:
        hook.remove()
    n_heads = models.opened("toy-decoder")[1].config.n_heads
    query, key = (np.split(made.double().numpy(), n_heads, axis=1) for made in found.values())
    return query[head], key[head]


def test_later_words(story: Story) -> None:
    """The decoder puts exactly nothing on them; the encoder does."""
    encoder, decoder = tables(story)[1].rows
    assert list(decoder[1:]) == ["0", "0", "0"]
    future = models.patterns("toy", WORDS) * (KEY > QUERY)
    assert float(encoder[1]) == pytest.approx(future.sum(), abs=1e-3)
    mean = future[:, :, :-1].sum(axis=-1).mean()
    assert float(encoder[2]) == pytest.approx(mean, abs=6e-4)
    assert f"toy spends {mean:.0%} of its attention on them" in story.title


def test_the_last_word_changes(story: Story) -> None:
    """The weights of the words before it change in the encoder and not in the decoder."""
    assert WORDS[:-1] == OTHER[:-1]
    (bars,) = panels(story, Bars)
    difference = np.abs(models.patterns("toy", WORDS) - models.patterns("toy", OTHER))
    changes = difference.max(axis=(0, 1, 3))[:-1]
    assert bars.series[0].values == pytest.approx(changes, abs=1e-5)
    assert min(changes) > 1e-4
    assert list(bars.series[1].values) == [0.0] * len(changes)
    assert f"change by up to {max(changes):.3f}" in told(story)


def test_the_row_step_by_step(story: Story) -> None:
    """Scores, minus infinity, exponentials and weights of the head that attends most to earlier words."""
    patterns = models.patterns("toy-decoder", WORDS)
    layer, head = strongest_head(patterns, KEY < QUERY)
    table = tables(story)[0]
    assert f"layer {layer}, head {head}" in table.title
    query, key = projected(layer, head)
    scores = key @ query[mask.ROW] / query.shape[1] ** 0.5
    masked = np.where(KEY[mask.ROW] > mask.ROW, -np.inf, scores)
    exponentials = np.exp(masked - masked.max())
    assert exponentials / exponentials.sum() == pytest.approx(patterns[layer, head, mask.ROW])
    unmasked = np.exp(scores) / np.exp(scores).sum()
    steps = (scores, masked, exponentials, exponentials / exponentials.sum(), unmasked)
    for row, values in zip(table.rows, steps, strict=True):
        assert list(row[1:]) == pytest.approx(list(values), abs=1e-4)
    share = unmasked[mask.ROW + 1 :].sum()
    assert f"Without the mask, {share:.3f} of the weight of “{WORDS[mask.ROW]}”" in told(story)


def test_panels(story: Story) -> None:
    """The encoder's weights, and the decoder's with every later word masked and no other."""
    for panel, name, where in zip(
        panels(story, Matrix), ("toy", "toy-decoder"), (KEY > QUERY, KEY < QUERY), strict=True
    ):
        patterns = models.patterns(name, WORDS)
        head = strongest_head(patterns, where)
        assert panel.title == f"{name}, layer {head[0]}, head {head[1]}"
        hidden = np.isnan(panel.values)
        assert np.array_equal(hidden, (KEY > QUERY) & (name == "toy-decoder"))
        assert panel.values[~hidden] == pytest.approx(patterns[head][~hidden], abs=1e-5)
    assert story.receipt.count("✓ verified (") == 2
