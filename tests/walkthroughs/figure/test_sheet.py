"""The sheet of a walkthrough, by its artists: all that is drawn is true, can be read, and lies where it belongs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from io import BytesIO
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from attnviz.render.palette import colours, levels, luminance
from attnviz.walkthroughs.examples import example, make
from attnviz.walkthroughs.hand import format_number
from attnviz.walkthroughs.homework import read
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.view import View
from tests.fixtures.pictures import picture_of
from tests.walkthroughs.by_hand import attention_walk, of_model, one_decoder_step
from tests.walkthroughs.figure.layout import WALKS, expect_apart, images

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from matplotlib.patches import Patch
    from matplotlib.text import Annotation
    from matplotlib.transforms import Bbox

    from attnviz.walkthroughs.view import StepView
    from tests.fixtures.command_line import Result

Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]
Typed = Callable[..., "Result"]
Sheets = Callable[..., tuple["Figure", list[tuple[str, "Bbox"]]]]


@pytest.fixture(scope="module")
def sheets(texts_of: Texts) -> Sheets:
    """One of these walkthroughs drawn, and its texts: once for all tests that only look at it."""

    @cache
    def sheet(name: str, language: str = "en") -> tuple[Figure, list[tuple[str, Bbox]]]:
        made = picture_of(WALKS[name](), lang=language).figure
        return made, texts_of(made)

    return sheet


def followed_frames(made: Figure) -> list[Patch]:
    """The frames around the followed row, which are thicker than any other."""
    return [patch for patch in made.axes[0].patches if patch.get_linewidth() > 1.5]


def arrows(made: Figure) -> list[Annotation]:
    """The arrows of a drawing."""
    from matplotlib.text import Annotation

    return [text for text in made.axes[0].texts if isinstance(text, Annotation)]


def plan(walk: Walkthrough) -> list[StepView]:
    """The steps of a walkthrough as they are drawn."""
    return View(walk=walk).cards()


@pytest.mark.parametrize(
    ("name", "language"),
    [*zip(WALKS, cycle(("en", "ko")), strict=False), ("toy", "ko"), ("three heads", "en")],
)
def test_nothing_is_cut_and_nothing_lies_on_anything(
    name: str, language: str, sheets: Sheets
) -> None:
    """No text leaves the sheet or touches another; no matrix lies on a text of another, or on another matrix."""
    made, texts = sheets(name, language)
    expect_apart(made, texts)


def test_every_number_of_a_small_calculation_is_printed(texts_of: Texts) -> None:
    """Each cell of each matrix of the book's example, in the digits asked for."""
    walk = one_decoder_step()
    printed = [text for text, _ in texts_of(picture_of(walk, precision=8).figure)]
    expected = [
        format_number(float(value), 8)
        for grid in walk.grids.values()
        for value in grid.values.ravel()
    ]
    assert {"60", "2.86251858e-20", "6.94397194e-11"} <= set(expected)
    for number in set(expected) - {"1", "4"}:  # which number steps, too
        assert printed.count(number) == expected.count(number)


def test_cells_have_the_colour_of_their_number() -> None:
    """Red above 0 and blue below, 0 white as the page, nothing where a key is masked; a palette for weights alone."""
    walk = attention_walk(
        title="made",
        query=Grid(values=np.array([[1.0], [0.5]])),
        keys=Grid(values=np.array([[2.0], [-4.0], [0.0]])),
        values=Grid(values=np.array([[1.0], [2.0], [4.0]])),
        score="dot",
        mask=Grid(values=np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])),
    )
    _, keys, _, masked, weights, *_ = images(picture_of(walk, palette="viridis").figure)
    red, blue, none = np.asarray(keys.get_array())[:, 0, :3].astype(int)
    assert red[0] > red[2] + 60
    assert blue[2] > blue[0] + 60
    assert none.tolist() == [255, 255, 255]
    assert (np.asarray(masked.get_array())[0, :, 3] > 0).tolist() == [True, True, False]
    made = walk.grids["weights"].values
    assert np.array_equal(
        np.asarray(weights.get_array())[..., :3], colours("viridis")[levels(made, made.max())]
    )


def test_a_blank_cell_is_a_line_to_write_on(texts_of: Texts) -> None:
    """Its number is not there, and neither its colour, nor a bar, a frame or the heading gives it away."""
    walk = one_decoder_step()
    blanks = frozenset({("scores", 0, 1), ("weights", 0, 0), ("context", 0, 1)})
    made = picture_of(walk, blanks=blanks).figure
    printed = [text for text, _ in texts_of(made)]
    assert printed.count("____") == 3
    assert "60" not in printed
    assert printed[0] == "made by hand"
    drawn = np.asarray(images(made)[2].get_array())[:, 0, 3] > 0
    assert drawn.tolist() == [True, False, True, True]
    assert not [patch for patch in made.axes[0].patches if patch.get_fill()], "no bar"
    assert not followed_frames(made)


def test_the_sheet_says_what_it_shows(sheets: Sheets) -> None:
    """First what was found; the whole formula, the sentence, the steps, and how it was checked."""
    texts = [text for text, _ in sheets("toy")[1]]
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
    korean = [text for text, _ in sheets("toy", "ko")[1]]
    assert {"어텐션 스코어", "컨텍스트 벡터"} <= set(korean)


def test_numbers_stand_out_from_red_and_blue(sheets: Sheets) -> None:
    """On the strongest colour of a signed matrix, black numbers have a contrast of at least 4.5 to 1."""
    made, _ = sheets("toy")
    for image in images(made):
        pixels = np.asarray(image.get_array(), dtype=float) / 255
        on_paper = pixels[..., :3] * pixels[..., 3:] + 1 - pixels[..., 3:]
        darkest = luminance(np.round(on_paper * 255).astype(np.uint8)).min()
        assert (darkest + 0.05) / (luminance(np.full(3, 0x11, dtype=np.uint8)) + 0.05) >= 4.5


def test_projections_of_small_matrices_are_drawn(sheets: Sheets, texts_of: Texts) -> None:
    """Of a model they are boxes and arrows; of homework, whose matrices are small, all numbers are there."""
    assert len(arrows(sheets("toy")[0])) == 4  # X to x, x to q, X to K, X to V
    walk = read("sample_inputs/two_heads.yaml")
    made = picture_of(walk).figure
    titles = {text.partition(" (")[0] for text, _ in texts_of(made)}
    assert {"X", "Wq", "Wk", "Wv", "Q_0", "V_1"} <= titles
    assert arrows(made) == []


def test_an_exercise_is_a_sheet_to_fill_in(texts_of: Texts) -> None:
    """A line for every blank, with a line for the name; the solution fills it in."""
    walk = make(7)
    blank, solved = (
        [text for text, _ in texts_of(picture_of(walk, blanks=blanks).figure)]
        for blanks in (walk.blanks(), frozenset())
    )
    assert any(text.startswith("Name: ____") for text in blank)
    assert blank.count("____") == len(walk.blanks())
    assert {f"{value:.3f}" for value in walk.grids["weights"].values[0]} <= set(solved)


def test_nearly_zero_is_not_written_with_twenty_decimals(texts_of: Texts) -> None:
    """The matrices have "≈ 0" instead; the digits stand once below."""
    texts = [text for text, _ in texts_of(picture_of(example("seq2seq")).figure)]
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


@pytest.mark.parametrize("name", WALKS)
def test_a_slide_has_the_steps_of_attention(name: str, texts_of: Texts) -> None:
    """It has one size, and nothing is cut or lies on anything; the finding and the receipt are there."""
    view = View(walk=WALKS[name]())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that letters are small
        slide = picture_of(view.walk, style="slides").figure
    assert tuple(slide.get_size_inches()) == pytest.approx((40 / 3, 7.5))
    texts = texts_of(slide)
    expect_apart(slide, texts)
    words = [text for text, _ in texts]
    assert view.heading[0] in words
    assert {"Softmax", "Softmax: the attention distribution"} & set(words)
    assert "Context vector" in words
    assert "Input and projections" not in words
    assert view.receipt in " ".join(words)
    keys = view.walk.grids[view.walk.distributions()[0]].columns
    assert {keys[0], keys[-1]} <= set(words)


def test_the_file_of_a_slide(typed: Typed, here: Path) -> None:
    """1,920 x 1,080 pixels."""
    command = ("walkthrough", "--style", "slides", "-o", "slide.png")
    for source in (("--toy",), ("--exercise", "7")):
        assert typed(*command, *source).errors == "wrote slide.png\n"
        with Image.open(here / "slide.png") as image:
            assert image.size == (1920, 1080)


def test_one_row_is_framed(sheets: Sheets) -> None:
    """The key with the largest weight, in each matrix with a row for each key; bars are as long as weights."""
    made, texts = sheets("toy")
    weights = of_model().grids["weights"]
    frames = followed_frames(made)
    assert len(frames) == 7  # K, scores, scaled, masked, weights, V, alignment
    first = frames[0].get_window_extent()
    inside = [text for text, box in texts if first.y0 < (box.y0 + box.y1) / 2 < first.y1]
    assert weights.columns[weights.values.argmax()] in inside
    filled = [patch for patch in made.axes[0].patches if patch.get_fill()]
    bars = [patch.get_window_extent().width for patch in filled]
    shares = [bar / max(bars) for bar in bars if bar > 0]
    expected = [share for share in weights.values[0] if share]
    assert shares == pytest.approx([share / max(expected) for share in expected], abs=1e-3)
