"""The demo of reference: the head looks from "it" at the animal that was tired and the street that was wide."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.models.language import splits
from attnviz.stories.common import words_of
from attnviz.stories.lessons import reference
from attnviz.stories.record import Bars, Matrix, Story
from tests.stories.lessons import by_hand
from tests.stories.parts import tables, told

if TYPE_CHECKING:
    from attnviz.models.language.sentences import GoldSentence, Reference

TIRED, WIDE = words_of(reference.TIRED), words_of(reference.WIDE)
IT = TIRED.index("it")


@pytest.fixture(scope="module")
def head() -> tuple[int, int]:
    """The head that the model's card names."""
    _, card = by_hand.open_model("toy")
    quality = card["quality"]
    assert isinstance(quality, dict)
    return int(quality["reference layer"]), int(quality["reference head"])


@pytest.fixture(scope="module")
def test_sentences() -> list[GoldSentence]:
    """Unseen sentences."""
    return list(islice(splits.sentences("test", kind="reference"), reference.SENTENCES))


def refers(sentence: GoldSentence) -> Reference:
    """What its pronoun stands for."""
    assert sentence.reference is not None
    return sentence.reference


def test_the_title_says_what_was_found(story: Story, head: tuple[int, int]) -> None:
    """The noun with the largest weight in each sentence, and the weight."""
    tired, wide = (by_hand.patterns("toy", words)[(*head, IT)].max() for words in (TIRED, WIDE))
    assert story.title == f"“it” looks at animal ({tired:.2f}); with wide at street ({wide:.2f})"


def test_it_is_the_animal_that_was_tired_and_the_street_that_was_wide(
    story: Story, head: tuple[int, int]
) -> None:
    """The head's largest weight from "it" is on the right noun in both, and the model names it in both."""
    for words, noun in ((TIRED, "animal"), (WIDE, "street")):
        row = by_hand.patterns("toy", words)[(*head, IT)]
        assert words[row.argmax()] == noun
        _, card = by_hand.open_model("toy")
        vocabulary = card["source"]
        assert isinstance(vocabulary, list)
        assert vocabulary[by_hand.logits("toy", words, "referent_projection")[IT].argmax()] == noun
        said = f"ith “{words[-2]}” its row puts the largest weight, {row.max():.2f}, on “{noun}”"
        assert f"{said}, and the model names the {noun} for “it”" in told(story)


def test_the_row_in_both_sentences(story: Story, head: tuple[int, int]) -> None:
    """As table, as bars and as a row of the patterns."""
    table = tables(story)[0]
    *panels, bars = story.picture
    assert isinstance(bars, Bars)
    for number, words in enumerate((TIRED, WIDE)):
        pattern = by_hand.patterns("toy", words)[head]
        assert [row[number + 1] for row in table.rows] == pytest.approx(pattern[IT], abs=1e-5)
        assert bars.series[number].name == words[-2]
        assert bars.series[number].values == pytest.approx(pattern[IT], abs=1e-5)
        panel = panels[number]
        assert isinstance(panel, Matrix)
        assert panel.rows == panel.columns == tuple(words)
        assert panel.values == pytest.approx(pattern, abs=1e-5)
    assert [row[0] for row in table.rows] == [*TIRED[:-2], "tired / wide", "."]


def test_how_often_the_head_is_right(
    story: Story, head: tuple[int, int], test_sentences: list[GoldSentence]
) -> None:
    """Counted sentence by sentence, as they are and with the last word turned."""
    living, dead = splits.endings("english")
    right, both, named = [], [], []
    _, card = by_hand.open_model("toy")
    vocabulary = card["source"]
    assert isinstance(vocabulary, list)
    for number, sentence in enumerate(test_sentences):
        at = refers(sentence)
        words = list(sentence.words)
        named.append(
            vocabulary[by_hand.logits("toy", words, "referent_projection")[at.pronoun].argmax()]
            == words[at.noun]
        )
        right.append(by_hand.patterns("toy", words)[(*head, at.pronoun)].argmax() == at.noun)
        others = dead if words[-2] in living else living
        words[-2] = others[number % len(others)]
        both.append(
            right[-1] and by_hand.patterns("toy", words)[(*head, at.pronoun)].argmax() == at.other
        )
    shares = [f"{100 * np.mean(found):.1f} %" for found in (right, both, named)]
    table = tables(story)[1]
    assert table.rows[0] == (f"toy {head[0]}.{head[1]}", *shares[:2])
    assert (
        f"names the right noun in {shares[2]} of them; this head alone looks at it in {shares[0]}"
        in told(story)
    )
    assert f"this head is in {shares[1]}" in told(story)
    assert np.mean(right) > 0.75
    assert np.mean(both) > 0.5


def test_what_stands_beside_it(story: Story, test_sentences: list[GoldSentence]) -> None:
    """A fixed place is right about half the time and never both times; the model before training less often."""
    table = tables(story)[1]
    offset, first, coin = table.rows[2:]
    assert coin == ("a coin: either noun", "50.0 %", "25.0 %")
    validation = list(islice(splits.sentences("validation", kind="reference"), reference.SENTENCES))
    distances = [refers(sentence).pronoun - refers(sentence).noun for sentence in validation]
    most = max(set(distances), key=distances.count)
    right = np.mean(
        [refers(sentence).pronoun - refers(sentence).noun == most for sentence in test_sentences]
    )
    assert offset == (f"always {most} words before “it”", f"{100 * right:.1f} %", "0.0 %")
    right = np.mean([refers(sentence).noun < refers(sentence).other for sentence in test_sentences])
    assert first == ("always the first noun", f"{100 * right:.1f} %", "0.0 %")
    shares = [float(str(row[1]).split()[0]) for row in table.rows]
    assert shares[0] > max(shares[1:])


def test_the_shares_are_those_of_the_card(story: Story) -> None:
    """The head's, that of random weights and that of the fixed offset: one definition, as many sentences."""
    _, card = by_hand.open_model("toy")
    quality = card["quality"]
    assert isinstance(quality, dict)
    table = tables(story)[1]
    assert f"on {reference.SENTENCES} unseen test sentences" in table.title
    for row, name in zip(
        table.rows,
        ("reference head", "best head of random weights", "best fixed offset"),
        strict=False,
    ):
        assert row[1] == f"{100 * quality[f'{name} looks right']:.1f} %"


def test_the_receipt(story: Story) -> None:
    """The rows shown are proved to be the model's own."""
    assert story.receipt.startswith("verified: max difference")
