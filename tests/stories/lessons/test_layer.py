"""The demo of a layer's parts says what the layer's formulas give."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from attnviz.stories.common import words_of
from attnviz.stories.lessons import layer
from attnviz.stories.record import Bars, Matrix, Story
from tests.stories.lessons import by_hand
from tests.stories.parts import tables


@pytest.fixture(scope="module")
def steps() -> list[tuple[np.ndarray, ...]]:
    """The vectors at each step of each layer, by hand."""
    return [found.steps for found in by_hand.read("toy", words_of(layer.SENTENCE))]


def cosine(x: np.ndarray, y: np.ndarray) -> float:
    """The cosine of two vectors."""
    return float(x @ y / np.sqrt((x @ x) * (y @ y)))


def alike(x: np.ndarray) -> float:
    """The mean cosine of two different rows."""
    return float(
        np.mean([cosine(x[i], x[j]) for i in range(len(x)) for j in range(len(x)) if i != j])
    )


def test_the_table_is_what_the_formulas_give(
    story: Story, steps: list[tuple[np.ndarray, ...]]
) -> None:
    """Length, cosine with what came in, cosine between words: of every step of every layer."""
    (table,) = tables(story)
    expected = [
        (
            number,
            name,
            np.sqrt((x**2).sum(axis=1)).mean(),
            np.mean([cosine(new, old) for new, old in zip(x, found[0], strict=True)]),
            alike(x),
        )
        for number, found in enumerate(steps)
        for name, x in zip(layer.STEPS, found, strict=True)
        if number == 0 or name != "came in"
    ]
    assert len(table.rows) == len(expected) == 6 * len(steps) + 1
    for row, wanted in zip(table.rows, expected, strict=True):
        assert row[:2] == wanted[:2]
        assert row[2:] == pytest.approx(wanted[2:], abs=2e-5)


def test_the_norm_makes_all_vectors_equally_long(
    steps: list[tuple[np.ndarray, ...]], story: Story
) -> None:
    """What the story says of it: length sqrt(d_model) before the learned factors and shift."""
    weights, _ = by_hand.open_model("toy")
    last = f"encoder.layers.{len(steps) - 1}.feed_forward_norm"
    before = (steps[-1][-1] - weights[f"{last}.bias"]) / weights[f"{last}.weight"]
    width = before.shape[1]
    assert np.linalg.norm(before, axis=1) == pytest.approx(width**0.5, rel=1e-4)
    told = " ".join(part for part in story.parts if isinstance(part, str))
    assert f"sqrt({width}) = {width**0.5:.2f}" in told
    parts = before, before * weights[f"{last}.weight"], steps[-1][-1]
    lengths = [f"{np.linalg.norm(part, axis=1).mean():.2f}" for part in parts]
    assert (
        f"are {lengths[0]} long before the factors, {lengths[1]} after them, and {lengths[2]} with the shift"
        in told
    )


def test_the_sentences_hold_the_figures(story: Story, steps: list[tuple[np.ndarray, ...]]) -> None:
    """How long attention's part is, which way it points, and whether words become alike."""
    told = " ".join(part for part in story.parts if isinstance(part, str))
    lengths = [[np.linalg.norm(x, axis=1).mean() for x in found] for found in steps]
    shares = [length[1] / length[0] for length in lengths]
    assert f"{min(shares):.2f} to {max(shares):.2f} times as long" in told
    for place in (1, 2):
        kept = [
            np.mean([cosine(*both) for both in zip(found[place], found[0], strict=True)])
            for found in steps
        ]
        assert f"{', '.join(f'{value:.2f}' for value in kept)}" in told
    cosines = [f"{alike(x):.2f}" for x in (steps[0][0], *(found[-1] for found in steps))]
    assert f"different words is {cosines[0]} where they come in" in told
    for number, (here, there) in enumerate(pairwise(cosines)):
        moves = (
            "rises"
            if float(there) > float(here)
            else "falls"
            if float(there) < float(here)
            else "stays as it is"
        )
        assert f"{moves} in layer {number} (to {there})" in told


@pytest.mark.parametrize(
    ("alike", "said"),
    [
        (
            [0.2, 0.3, 0.1],
            "rises in layer 0 (to 0.30), falls in layer 1 (to 0.10). In the end the words are less",
        ),
        (
            [0.2, 0.201, 0.4],
            "stays as it is in layer 0 (to 0.20), rises in layer 1 (to 0.40). In the end the words",
        ),
        ([0.2, 0.201, 0.4], "In the end the words are more alike than"),
        ([0.2, 0.1, 0.2], "the words are as alike as they were"),
    ],
)
def test_the_similarity_is_told_layer_by_layer(alike: list[float], said: str) -> None:
    """Each layer by what it does, and the end by itself."""
    assert said in layer._similarity_in_words(alike)


def test_the_picture(story: Story, steps: list[tuple[np.ndarray, ...]]) -> None:
    """Lengths through the steps, and the words' cosines before and after."""
    before, after, bars = story.picture
    assert isinstance(bars, Bars)
    assert bars.labels == layer.STEPS
    for series, found in zip(bars.series, steps, strict=True):
        assert series.values == pytest.approx(
            [np.linalg.norm(x, axis=1).mean() for x in found], abs=2e-5
        )
    for panel, x in ((before, steps[0][0]), (after, steps[-1][-1])):
        assert isinstance(panel, Matrix)
        assert panel.rows == panel.columns == tuple(words_of(layer.SENTENCE))
        unit = x / np.linalg.norm(x, axis=1, keepdims=True)
        assert panel.values == pytest.approx(unit @ unit.T, abs=2e-5)


def test_the_receipt_measures_the_layers_themselves(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps end where the model does, to the bit; a part computed otherwise is seen in the receipt."""
    assert story.receipt.startswith("verified: max difference 0 over 3 layers")
    parts = layer.parts
    monkeypatch.setattr(layer, "parts", lambda *given: [part + 0.5 for part in parts(*given)])
    assert layer.tell().receipt.startswith("verified: max difference 0.500 over")
