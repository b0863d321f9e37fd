"""A comparison of the real model's heads, from its sentences to every view of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz import attend
from attnviz.capture.source import open_source
from attnviz.heads import figure
from attnviz.heads.capture.survey import survey_model
from attnviz.heads.compare import compare
from attnviz.heads.selection import strongest
from attnviz.heads.settings import SurveySettings
from attnviz.render.terminal.screen import Screen
from attnviz.text.corpus import CorpusLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    from attnviz.heads.record import HeadComparison

pytestmark = pytest.mark.usefixtures("few_seeds")

SENTENCES = (
    "The animal didn't cross the street because it was too tired.",
    "She is eating a green apple.",
    "나는 너희 모두를 사랑해",
    "Although I did not get 95 in last TOEFL, I could get in the Ph.D program.",
    "There is a prince.",
    "The old king wrote the princess a long letter, and she wrote the king a longer letter.",
)
PLAIN = Screen(width=200, colour=False)


@pytest.fixture(scope="module")
def real(real_model: str) -> HeadComparison:
    """What the real model's heads do on a few sentences."""
    lines = [CorpusLine(number=index + 1, text=text) for index, text in enumerate(SENTENCES)]
    return compare(
        survey_model(lines, open_source(real_model), SurveySettings()), corpus="six sentences"
    )


def test_the_strongest_sentences_are_drawn(
    real: HeadComparison, real_model: str, texts_of: Callable[[Figure], list[tuple[str, Bbox]]]
) -> None:
    """The head's pattern on the sentence where it is strongest shows what the score says."""
    cards = strongest(real)
    patterns = {
        card.role.name: attend(card.example.text, model=real_model)
        for card in cards
        if card.example is not None
    }
    assert patterns
    card = next(card for card in cards if card.role.name == "previous")
    assert card.example is not None
    before = np.diagonal(patterns[card.role.name].pattern(*card.head.place), -1)
    assert float(before.mean()) == pytest.approx(card.example.score, abs=1e-6)
    drawn = figure.draw(real, patterns=patterns).figure
    shown = [text for text, _ in texts_of(drawn)]
    assert f"“{card.example.text}”" in " ".join(shown)
