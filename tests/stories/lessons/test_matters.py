"""The demo of what matters: the changes of the circuit follow from its logits, those of toy from its weights."""

from __future__ import annotations

import math

import pytest
import torch

from attnviz.models.circuit import RIGHT, WEAK, Circuit
from attnviz.stories.common import words_of
from attnviz.stories.lessons import matters
from attnviz.stories.record import Story
from attnviz.text.display import percent
from tests.stories.lessons import models
from tests.stories.parts import tables, told

CIRCUIT = Circuit()
LOGITS = CIRCUIT(CIRCUIT.embed())[0, -1].double()


def change(kind: str, amount: float, n_weak: int = len(WEAK)) -> float:
    """Return the divergence if a word's logit loses so much, and weak heads do not add their noise from one token."""
    after = LOGITS - n_weak / len(CIRCUIT.order) * CIRCUIT.noise
    after[CIRCUIT.order.index(kind)] -= amount
    before, after = LOGITS.log_softmax(-1), after.log_softmax(-1)
    return float(torch.sum(before.exp() * (before - after)))


def test_circuit(story: Story) -> None:
    """Each cut takes a known number from the logit of one word; the verdicts are those that are known."""
    rows = {str(row[0]): row for row in tables(story)[0].rows}
    of_backup = change("backup", 4 * math.tanh(6))
    cuts = {
        "copied": (change("copied", 2.5), change("copied", 2.5)),
        "relayed": (change("relayed", 0), change("relayed", 2.5)),
        "backup": (of_backup, of_backup),
        **{kind: (change(kind, 0),) * 2 for kind in ("decoy", "constant", "sink", "cancelling")},
    }
    assert set(rows) == set(cuts) == set(RIGHT)
    for kind, changes in cuts.items():
        assert rows[kind][3:5] == pytest.approx(changes, rel=1e-3, abs=1e-6)
    of_one = {"copied": 2.5, "cancelling": -2.5, "backup": 4 * (math.tanh(6) - math.tanh(3))}
    for kind, amount in of_one.items():
        assert rows[kind][2] == pytest.approx(change(kind, amount, 0), rel=1e-2, abs=1e-6)
    assert rows["relayed"][-1] == "used through other words"
    assert str(rows["cancelling"][-1]).endswith("heads cancel")


def test_toy(story: Story) -> None:
    """The mean weights of “it”, and which kinds of tokens its words are like."""
    words = words_of(matters.SENTENCE)
    weights = models.patterns("toy", words)[:, :, words.index("it")].mean(axis=(0, 1))
    for word, weight, *_ in tables(story)[2].rows:
        assert weight == percent(float(weights[words.index(str(word))]))
    assert "“animal” is like “copied”, “street” is like “decoy”" in told(story)
