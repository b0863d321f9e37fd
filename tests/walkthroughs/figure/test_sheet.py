"""The sheet of a walkthrough, by its artists: all that is drawn is true, can be read, and lies where it belongs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from io import BytesIO
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.render.palette import colours, levels
from attnviz.walkthroughs.figure.sheet import draw
from attnviz.walkthroughs.hand import format_number
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.view import View
from tests.walkthroughs.by_hand import attention_walk, of_model, one_decoder_step

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.transforms import Bbox

    from attnviz.walkthroughs.view import StepView

Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]
Sheets = Callable[..., tuple["Figure", list[tuple[str, "Bbox"]]]]

WALKS: dict[str, Callable[[], Walkthrough]] = {
    "by hand": one_decoder_step,
    "masked": lambda: one_decoder_step(mask=True),
    "toy": of_model,
    "all queries": lambda: of_model(one=False),
    "as wide as BERT": lambda: of_model(12, 384, 64),
    "three heads": lambda: of_model(5, one=False, n_heads=3),
    "many tokens": lambda: of_model(40, 24, 4),
}


@pytest.fixture(scope="module")
def sheets(texts_of: Texts) -> Sheets:
    """One of these walkthroughs drawn, and its texts: once for all tests that only look at it."""

    @cache
    def sheet(name: str, language: str = "en") -> tuple[Figure, list[tuple[str, Bbox]]]:
        made = draw(View(walk=WALKS[name](), lang=language)).figure
        return made, texts_of(made)

    return sheet


def images(made: Figure) -> list[AxesImage]:
    """The matrices, in the order in which they were drawn; weights of one query are bars, and not among them."""
    return [image for axes in made.axes for image in axes.images]


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
    boxes = np.array([box.extents for _, box in texts])
    left, low, right, high = boxes.T
    outside = (
        (left < -0.5)
        | (low < -0.5)
        | (right > made.bbox.width + 0.5)
        | (high > made.bbox.height + 0.5)
    )
    assert not outside.any(), [texts[index][0] for index in np.flatnonzero(outside)]
    across = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    down = np.minimum.outer(high, high) - np.maximum.outer(low, low)
    touching = np.argwhere(np.triu((across > 1) & (down > 1), 1))
    assert not len(touching), [(texts[i][0], texts[j][0]) for i, j in touching]
    axes = made.axes[0]
    cells = np.array(
        [
            np.ravel(axes.transData.transform(np.reshape(image.get_extent(), (2, 2)).T))
            for image in images(made)
        ]
    )
    x0, x1 = np.minimum(cells[:, 0], cells[:, 2]), np.maximum(cells[:, 0], cells[:, 2])
    y0, y1 = np.minimum(cells[:, 1], cells[:, 3]), np.maximum(cells[:, 1], cells[:, 3])
    for (text, _), (tl, tb, tr, tt) in zip(texts, boxes, strict=True):
        on = (np.minimum(tr, x1) - np.maximum(tl, x0) > 1) & (
            np.minimum(tt, y1) - np.maximum(tb, y0) > 1
        )
        inside = (tl > x0 - 1) & (tr < x1 + 1) & (tb > y0 - 1) & (tt < y1 + 1)
        assert not (on & ~inside).any(), text
    overlap_x = np.minimum.outer(x1, x1) - np.maximum.outer(x0, x0)
    overlap_y = np.minimum.outer(y1, y1) - np.maximum.outer(y0, y0)
    assert not np.triu((overlap_x > 1) & (overlap_y > 1), 1).any()


def test_every_number_of_a_small_calculation_is_printed(texts_of: Texts) -> None:
    """Each cell of each matrix of the book's example, in the digits asked for."""
    walk = one_decoder_step()
    printed = [text for text, _ in texts_of(draw(View(walk=walk, precision=8)).figure)]
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
    _, keys, _, masked, weights, *_ = images(draw(View(walk=walk), palette="viridis").figure)
    red, blue, none = np.asarray(keys.get_array())[:, 0, :3].astype(int)
    assert red[0] > red[2] + 60
    assert blue[2] > blue[0] + 60
    assert none.tolist() == [255, 255, 255]
    assert np.asarray(masked.get_array())[0, :, 3].tolist() == [255, 255, 0]
    made = walk.grids["weights"].values
    assert np.array_equal(
        np.asarray(weights.get_array())[..., :3], colours("viridis")[levels(made, made.max())]
    )


def test_a_blank_cell_is_a_line_to_write_on(texts_of: Texts) -> None:
    """Its number is not there, and neither its colour, nor a bar, a frame or the heading gives it away."""
    walk = one_decoder_step()
    blanks = frozenset({("scores", 0, 1), ("weights", 0, 0), ("context", 0, 1)})
    made = draw(View(walk=walk, blanks=blanks)).figure
    printed = [text for text, _ in texts_of(made)]
    assert printed.count("____") == 3
    assert "60" not in printed
    assert printed[0] == "made by hand"
    assert np.asarray(images(made)[2].get_array())[:, 0, 3].tolist() == [255, 0, 255, 255]
    assert not [patch for patch in made.axes[0].patches if patch.get_fill()], "no bar"
    assert not [patch for patch in made.axes[0].patches if patch.get_linewidth() > 1], "no frame"


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
        "(1, 48) (48, 8) + (1, 8)",
        "Attention scores scores = q Kᵀ (1, 7) = (1, 8) (8, 7)",
        "alignment = weightsᵀ ⊙ V",
        "⊙ multiplies cell by cell",
    ):
        assert part in printed
    assert "어텐션" not in printed
    korean = [text for text, _ in sheets("toy", "ko")[1]]
    assert {"어텐션 스코어", "컨텍스트 벡터"} <= set(korean)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_are_always_the_same(suffix: str) -> None:
    """Twice the same bytes, with every character drawn, Korean included."""
    written = []
    for _ in range(2):
        buffer = BytesIO()
        fonts = draw(View(walk=of_model(), lang="ko")).write(buffer, suffix)
        assert fonts.missing == ""
        written.append(buffer.getvalue())
    assert written[0] == written[1]
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert written[0].startswith(begins[suffix])


def test_one_row_is_framed(sheets: Sheets) -> None:
    """The key with the largest weight, in each matrix with a row for each key; bars are as long as weights."""
    made, texts = sheets("toy")
    weights = of_model().grids["weights"]
    frames = [patch for patch in made.axes[0].patches if patch.get_linewidth() == 1.4]
    assert len(frames) == 7  # K, scores, scaled, masked, weights, V, alignment
    first = frames[0].get_window_extent()
    inside = [text for text, box in texts if first.y0 < (box.y0 + box.y1) / 2 < first.y1]
    assert weights.columns[weights.values.argmax()] in inside
    filled = [patch for patch in made.axes[0].patches if patch.get_fill()]
    bars = [patch.get_window_extent().width for patch in filled]
    shares = [bar / max(bars) for bar in bars if bar > 0]
    expected = [share for share in weights.values[0] if share]
    assert shares == pytest.approx([share / max(expected) for share in expected], abs=1e-3)
