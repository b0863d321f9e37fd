"""A comparison of the real model's heads, from its sentences to every view of it."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz import attend
from attnviz.capture.source import open_source
from attnviz.heads.capture.survey import survey_model
from attnviz.heads.compare import compare
from attnviz.heads.figure import page as heads_page_figure
from attnviz.heads.figure import sheet
from attnviz.heads.figure.sheet import card_of
from attnviz.heads.selection import strongest
from attnviz.heads.settings import SurveySettings
from attnviz.heads.tables import to_csv
from attnviz.heads.terminal.table import draw_head, draw_table
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


def test_the_views_agree(real: HeadComparison) -> None:
    """All 72 heads in the table and in the file; the head of the previous token is named in all of them."""
    lines = [line.plain for line in draw_table(real, PLAIN)]
    for head in real.heads:
        shown = head.roles[0].rule.short if head.roles else "no clear role"
        assert any(line.startswith(f"{head.name} ") and shown in line for line in lines)
    row = next(line for line in lines if line.startswith("0.2 "))
    assert "○ previous · too few to say" in row
    assert f"{real.estimate('previous', 0, 2)[0]:.2f}" in row
    found = [
        row
        for row in csv.DictReader(StringIO(to_csv(real)))
        if (row["layer"], row["head"]) == ("0", "2")
    ]
    assert [(one["role"], one["established"]) for one in found] == [("previous", "False")]
    assert float(found[0]["previous"]) == real.estimate("previous", 0, 2)[0]
    assert lines[-1].startswith("verified: ")
    assert [line.plain for line in draw_head(real, 0, 2, PLAIN)][3].startswith("○ previous 1.00")


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
    pattern = card_of(card, patterns[card.role.name], "en").sheet
    assert pattern is not None
    assert card.example is not None
    before = np.diagonal(pattern.panels[0].matrix, -1)
    assert float(before.mean()) == pytest.approx(card.example.score, abs=1e-6)
    drawn = sheet.draw(real, patterns=patterns).figure
    shown = [text for text, _ in texts_of(drawn)]
    assert f"“{card.example.text}”" in " ".join(shown)
    for figure in (drawn, heads_page_figure.draw(real, 0, 2).figure):
        for text, box in texts_of(figure):
            assert box.x0 >= -0.5, text
            assert box.y0 >= -0.5, text
            assert box.x1 <= figure.bbox.width + 0.5, text
            assert box.y1 <= figure.bbox.height + 0.5, text
