"""The demo of alignment: its weights, its paths and its error rates, worked out anew."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from attnviz.models.language import splits
from attnviz.stories.lessons import alignment
from attnviz.stories.lessons.alignment import LONG, RECURRENT, SHORT, TARGETS, TRANSFORMER
from attnviz.stories.record import Matrix, Story
from tests.stories.lessons import models
from tests.stories.parts import panels, tables, told

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attnviz.models.language.sentences import Pair


def recurrent(english: Sequence[str], korean: Sequence[str]) -> np.ndarray:
    """Return the weights of the recurrent model, in numpy [step, word]."""
    return models.translate(RECURRENT, english, korean).weights


@torch.inference_mode()
def transformer(english: Sequence[str], korean: Sequence[str]) -> np.ndarray:
    """Return the weights of the Transformer's head for alignment [step, word]."""
    card, model = models.opened(TRANSFORMER)
    assert card.target is not None
    words = torch.tensor([[*card.target.encode(korean), model.config.end]])
    cross = model(torch.tensor([card.source.encode(english)]), words).weights.cross
    layer, head = (int(card.quality[f"alignment {which}"]) for which in ("layer", "head"))
    found: np.ndarray = cross[layer][0, head].numpy()
    return found


def error_rate(weights: Callable[..., np.ndarray], pairs: Sequence[Pair]) -> float:
    """Return the rate of Och and Ney 2003, from the largest weight of each Korean word."""
    made = sure = hits = 0
    for pair in pairs:
        tops = weights(pair.english, pair.korean).argmax(axis=-1)
        links = {(step, int(tops[step])) for step in range(len(pair.korean))}
        made += len(links)
        sure += len(pair.sure)
        hits += len(links & set(pair.sure)) + len(links & set(pair.possible))
    return 1 - hits / (made + sure)


def test_panels(story: Story) -> None:
    """The weights of both models: a row a step, a column an English word."""
    shown = zip((SHORT, LONG, LONG), (recurrent, recurrent, transformer), strict=True)
    for panel, (sentence, weights) in zip(panels(story, Matrix), shown, strict=True):
        english, korean = sentence.split(), TARGETS[sentence].split()
        assert list(panel.rows) == [*korean, "<end>"]
        assert list(panel.columns) == english
        assert panel.values == pytest.approx(weights(english, korean), abs=1e-4)


def test_the_alignment_crosses(story: Story) -> None:
    """It goes back to the left as often as is said; a model that went straight on would fail."""
    weights = recurrent(LONG.split(), TARGETS[LONG].split())
    path = weights[:-1].argmax(axis=1).tolist()
    backward = sum(there < here for here, there in pairwise(path))
    assert backward >= 1
    assert f"attends to words {', '.join(map(str, path))} (counted from 0)" in told(story)
    assert f"{backward} of {len(path) - 1} moves go back to the left" in told(story)
    assert f"{weights.shape[0]} x {weights.shape[1]} for" in told(story)


def test_error_rates(story: Story) -> None:
    """Of both models and of the diagonal, on the same unseen pairs."""

    def diagonal(english: Sequence[str], korean: Sequence[str]) -> np.ndarray:
        return np.eye(len(english))[np.arange(len(korean)) * len(english) // len(korean)]

    pairs = list(islice(splits.pairs("test"), alignment.N_PAIRS))
    rates = [error_rate(weights, pairs) for weights in (recurrent, transformer, diagonal)]
    assert [row[1] for row in tables(story)[1].rows] == pytest.approx(rates, abs=2e-3)
    assert max(rates[:2]) < rates[2] / 2
    assert f"error {rates[0]:.3f}, along the diagonal {rates[2]:.3f}" in story.title
    assert story.receipt.count("✓ verified (") == 2


def test_the_picture_says_what_went_wrong(story: Story) -> None:
    """Nothing in the plain sentence; in the harder one, the words whose largest weight is on another word."""
    short, long, other_long = (str(panel.title) for panel in story.picture)
    assert "Each word attends to the one it translates" in short
    assert "너무 → it, 넓었기 → it" in long
    assert "길이 → wide, 넓었기 → it" in other_long
