"""The demo of reference: a head attends from "it" to the animal that was tired and the street that was wide."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from attnviz.models.language import splits
from attnviz.models.training import files
from attnviz.stories.common import words_of
from attnviz.stories.lessons import reference
from attnviz.stories.record import Bars, Matrix, Story
from attnviz.text.display import percent
from tests.stories.lessons import models
from tests.stories.parts import panels, tables, told

SENTENCES = [words_of(reference.TIRED), words_of(reference.WIDE)]
QUALITY = files.load_card(files.FOLDER / "toy.safetensors").quality
HEAD = int(QUALITY["reference layer"]), int(QUALITY["reference head"])
PATTERNS = [models.patterns("toy", words)[HEAD] for words in SENTENCES]


def test_title(story: Story) -> None:
    """The noun with the largest weight in each sentence, and the weight."""
    rows = [pattern[reference.IT] for pattern in PATTERNS]
    assert [w[row.argmax()] for w, row in zip(SENTENCES, rows, strict=True)] == ["animal", "street"]
    assert f"attends to animal ({percent(rows[0].max())}) if it was tired" in story.title
    assert f"to street ({percent(rows[1].max())}) if it was wide" in story.title
    assert story.title.endswith(f": toy, layer {HEAD[0]}, head {HEAD[1]}")
    assert story.receipt.startswith("✓ verified (")


def test_the_row_in_both_sentences(story: Story) -> None:
    """As table, as bars and as a row of the patterns."""
    table = tables(story)[0]
    (bars,) = panels(story, Bars)
    for i, (words, pattern, panel) in enumerate(
        zip(SENTENCES, PATTERNS, panels(story, Matrix), strict=True)
    ):
        row = pytest.approx(pattern[reference.IT], abs=1e-5)
        assert [cells[i + 1] for cells in table.rows] == row
        assert bars.series[i].values == row
        assert panel.columns == words
        assert panel.values == pytest.approx(pattern, abs=1e-5)
    assert [row[0] for row in table.rows] == [*SENTENCES[0][:-2], "tired / wide", "."]


def test_resolutions(story: Story) -> None:
    """Counted sentence by sentence, as they are and with the last word turned; then the baselines."""
    n = reference.N_SENTENCES
    living, dead = splits.endings("english")
    found = []
    for number, one in enumerate(islice(splits.sentences("test", kind="reference"), n)):
        at, words = one.reference, list(one.words)
        assert at is not None
        here = models.patterns("toy", words)[(*HEAD, at.pronoun)].argmax() == at.noun
        others = dead if words[-2] in living else living
        words[-2] = others[number % len(others)]
        there = models.patterns("toy", words)[(*HEAD, at.pronoun)].argmax() == at.other
        found.append((here, here and there, at.noun < at.other))
    right, both, first = np.mean(found, axis=0)
    rows = tables(story)[1].rows
    assert rows[0] == (f"toy {HEAD[0]}.{HEAD[1]}", f"{100 * right:.1f}%", f"{100 * both:.1f}%")
    assert rows[3] == ("always the first noun", f"{100 * first:.1f}%", "0.0%")
    assert rows[4] == ("a coin: either noun", "50.0%", "25.0%")
    assert f"This head is in {100 * both:.1f}%" in told(story)
    assert both > 0.5


def test_other_constructions(story: Story) -> None:
    """Counted sentence by sentence: fewer are right than in the grammar that toy was trained on."""
    found = [
        [
            models.patterns("toy", list(one.words))[(*HEAD, one.reference.pronoun)].argmax()
            == one.reference.noun
            for one in part
            if one.reference is not None
        ]
        for part in reference.other_constructions()
    ]
    right, both = np.mean(found), np.mean(np.all(found, axis=0))
    assert np.size(found) == 84
    assert both < right < 0.95
    assert f"right in {100 * right:.1f}%, and also when turned in {100 * both:.1f}%" in told(story)
    vocabulary = files.load_card(files.FOLDER / "toy.safetensors").source.words
    seen = {" ".join(one.words) for one in islice(splits.sentences("test", kind="reference"), 500)}
    for part in reference.other_constructions():
        for one in part:
            assert set(one.words) <= set(vocabulary)
            assert " ".join(one.words) not in seen
