"""The sheet of a walkthrough: the numbers and words that it has, what a blank hides, and its files."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING

import pytest
from PIL import Image

from attnviz.walkthroughs.examples import example, make
from attnviz.walkthroughs.hand import format_number
from attnviz.walkthroughs.homework import read
from attnviz.walkthroughs.record import Walkthrough
from attnviz.walkthroughs.view import View
from tests.fixtures.pictures import picture_of
from tests.walkthroughs.by_hand import of_model, one_decoder_step

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    from tests.fixtures.command_line import Result

Words = Callable[..., list[str]]


@pytest.fixture
def words(texts_of: Callable[[Figure], list[tuple[str, Bbox]]]) -> Words:
    """The texts of a drawn walkthrough."""

    def draw(walk: Walkthrough, **look: Any) -> list[str]:
        return [text for text, _ in texts_of(picture_of(walk, **look).figure)]

    return draw


def test_every_number_of_a_small_calculation_is_printed(words: Words) -> None:
    """Each cell of each matrix of the book's example, in the digits asked for."""
    walk = one_decoder_step()
    printed = words(walk, precision=8)
    expected = [
        format_number(float(value), 8)
        for grid in walk.grids.values()
        for value in grid.values.ravel()
    ]
    assert {"60", "2.86251858e-20", "6.94397194e-11"} <= set(expected)
    for number in set(expected) - {"1", "4"}:  # which number steps, too
        assert printed.count(number) == expected.count(number)


def test_a_blank_cell_is_a_line_to_write_on(words: Words) -> None:
    """Its number is not there, nor a finding that gives it away; the solution of an exercise fills all in."""
    blanks = frozenset({("scores", 0, 1), ("weights", 0, 0), ("context", 0, 1)})
    printed = words(one_decoder_step(), blanks=blanks)
    assert printed.count("____") == 3
    assert "60" not in printed
    assert printed[0] == "made by hand"
    walk = make(7)
    blank, solved = words(walk, blanks=walk.blanks()), words(walk)
    assert any(text.startswith("Name: ____") for text in blank)
    assert blank.count("____") == len(walk.blanks())
    assert {f"{value:.3f}" for value in walk.grids["weights"].values[0]} <= set(solved)


def test_the_sheet_says_what_it_shows(words: Words) -> None:
    """First what was found; the whole formula, the sentence, the steps, and how it was checked."""
    texts = words(of_model())
    weights = of_model().grids["weights"]
    key = weights.columns[weights.values[0].argmax()]
    assert texts[0] == f"“모두를” attends most to “{key}” ({weights.values.max():.2f})"
    printed = " ".join(texts)
    for part in (
        "one head · “나는 너희 모두를 사랑해”",
        "context = softmax(mask(q Kᵀ / √8)) V",
        "The recomputed context matches the model's to 1.2e-08",
        "1–4 Input and projections",
        "q (1, 8) x Wq + bq K (7, 8) X Wk + bk V (7, 8) X Wv + bv",
        "5 Attention scores q (1, 8)",
        "scores = q Kᵀ",
        "alignment = weightsᵀ ⊙ V   (7, 8)",
        "⊙ multiplies cell by cell",
    ):
        assert part in printed
    assert "어텐션" not in printed
    assert {"어텐션 스코어", "컨텍스트 벡터"} <= set(words(of_model(), lang="ko"))


def test_projections_of_small_matrices_are_drawn(words: Words) -> None:
    """Of homework, whose matrices are small, all are there."""
    titles = {text.partition(" (")[0] for text in words(read("sample_inputs/two_heads.yaml"))}
    assert {"X", "Wq", "Wk", "Wv", "Q_0", "V_1"} <= titles


def test_nearly_zero_is_not_written_with_twenty_decimals(words: Words) -> None:
    """The matrices have "≈ 0" instead; the digits stand once below."""
    texts = words(example("seq2seq"))
    assert texts[0] == "Score 60 takes all the attention"
    assert texts.count("≈ 0") == 3 + 6 + 1 + 1  # weights, alignment, context, concatenated
    assert sum("2.86251858e-20" in text for text in texts) == 1


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_are_always_the_same(suffix: str) -> None:
    """Twice the same bytes, with every character drawn, Korean included."""
    written = []
    for _ in range(2):
        buffer = BytesIO()
        fonts = picture_of(of_model(), lang="ko").write(buffer, suffix)
        assert fonts.missing == ""
        written.append(buffer.getvalue())
    assert written[0] == written[1]
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert written[0].startswith(begins[suffix])


@pytest.mark.filterwarnings("ignore:on a slide the smallest letters")
@pytest.mark.parametrize("one", [True, False])
def test_a_slide_has_the_steps_of_attention(words: Words, *, one: bool) -> None:
    """The finding, the weights, the context and the receipt, without the projections."""
    walk = of_model(one=one)
    view, texts = View(walk=walk), words(walk, style="slides")
    assert view.heading[0] in texts
    assert {"Softmax", "Softmax: the attention distribution"} & set(texts)
    assert "Context vector" in texts
    assert "Input and projections" not in texts
    assert view.receipt in " ".join(texts)


def test_the_file_of_a_slide(typed: Callable[..., Result], here: Path) -> None:
    """1,920 x 1,080 pixels."""
    command = ("walkthrough", "--toy", "--style", "slides", "-o", "slide.png")
    assert typed(*command).errors == "wrote slide.png\n"
    with Image.open(here / "slide.png") as image:
        assert image.size == (1920, 1080)
