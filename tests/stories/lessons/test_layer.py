"""The demo of a layer: its steps as hooks on the modules see them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from attnviz.stories.common import words_of
from attnviz.stories.lessons import layer
from attnviz.stories.record import Story
from tests.stories.lessons import models
from tests.stories.parts import tables, told


def seen_steps() -> list[tuple[np.ndarray, ...]]:
    """Return what each part of each layer was given or returned, in the order of `layer.STEPS`."""
    _card, model = models.opened("toy")
    found = []
    for module in model.encoder.layers:
        seen: list[torch.Tensor] = []

        def keep(_: object, given: Any, made: Any, seen: list[torch.Tensor] = seen) -> None:
            seen.extend((given[0], made[0] if isinstance(made, tuple) else made))

        parts = (module.attention, module.attention_norm, module.feed_forward)
        hooks = [part.register_forward_hook(keep) for part in (*parts, module.feed_forward_norm)]
        models.read("toy", words_of(layer.SENTENCE))
        for hook in hooks:
            hook.remove()
        steps = [*seen[:4], *seen[5:]]  # the feed-forward network reads what the norm returned
        found.append(tuple(step[0].double().numpy() for step in steps))
    return found


STEPS = seen_steps()


def cosines(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the cosine of every row of x with every row of y."""
    found: np.ndarray = (x @ y.T) / np.outer(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1))
    return found


def between_words(x: np.ndarray) -> float:
    """Return the mean cosine of two different rows."""
    return float(cosines(x, x)[~np.eye(len(x), dtype=bool)].mean())


def test_table(story: Story) -> None:
    """Length, cosine with the input and cosine between words, at every step of every layer."""
    expected = [
        [np.linalg.norm(x, axis=1).mean(), cosines(x, steps[0]).diagonal().mean(), between_words(x)]
        for number, steps in enumerate(STEPS)
        for x in steps[number > 0 :]
    ]
    rows = tables(story)[0].rows
    assert np.array([row[2:] for row in rows], dtype=float) == pytest.approx(
        np.array(expected), abs=2e-5
    )


def test_sentences(story: Story) -> None:
    """How long attention's part is, what the sum keeps, and that words become more similar."""
    ratios = [
        np.linalg.norm(steps[1], axis=1).mean() / np.linalg.norm(steps[0], axis=1).mean()
        for steps in STEPS
    ]
    assert f"{min(ratios):.2f} to {max(ratios):.2f} times as long as the input" in told(story)
    kept = min(cosines(steps[2], steps[0]).diagonal().mean() for steps in STEPS)
    assert f"cosine is {kept:.2f} or more" in told(story)
    path = [between_words(STEPS[0][0]), *(between_words(steps[-1]) for steps in STEPS)]
    assert path == sorted(path)
    assert f"{path[0]:.2f} before the 3 layers, {path[-1]:.2f} after" in story.title
