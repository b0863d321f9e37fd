"""The sheet of a walkthrough, by its artists: all that is drawn is true, can be read, and lies where it belongs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.render.palette import colours, levels, luminance
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.figure.flow import LIT
from attnviz.walkthroughs.figure.sheet import draw
from attnviz.walkthroughs.hand import format_number
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.view import View
from tests.walkthroughs.by_hand import attend, attention_walk

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.transforms import Bbox

    from attnviz.render.figure.export import Picture
    from attnviz.walkthroughs.view import StepView

Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]
Sheets = Callable[..., tuple["Figure", list[tuple[str, "Bbox"]]]]

KOREAN = ("[CLS]", "나는", "너희", "모두를", "사랑해", "internationalization", "[SEP]")


def by_hand(*, mask: bool = False) -> Walkthrough:
    """A decoder's state and four states of an encoder, as in the book."""
    states = Grid(
        values=np.array([[0.0, 1, 1], [5, 0, 1], [1, 1, 0], [0, 5, 1]]), rows=("a", "b", "c", "d")
    )
    query = Grid(values=np.array([[10.0, 5.0, 10.0]]), rows=("decoder",))
    hidden = Grid(values=np.array([[1.0, 1.0, 0.0, 1.0]])) if mask else None
    return attention_walk(
        title="made by hand", query=query, keys=states, values=states, score="dot", mask=hidden
    )


def of_model(
    n: int = 7, d_model: int = 48, d: int = 8, *, one: bool = True, n_heads: int = 1
) -> Walkthrough:
    """Heads of a model from its input to its output, with numbers from a seed."""
    draw = np.random.default_rng(n * d)
    c = Calculation()
    tokens = (KOREAN * n)[:n]
    c.give("X", Grid(values=draw.normal(size=(n, d_model)), rows=tokens))
    x = c.give("x", Grid(values=c.grids["X"].values[[3]], rows=(tokens[3],))) if one else "X"
    contexts = []
    for suffix in [""] if n_heads == 1 else [f"_{head}" for head in range(n_heads)]:
        query = f"{'q' if one else 'Q'}{suffix}"
        for letter, name, step, of in (
            ("q", query, "query", x),
            ("k", f"K{suffix}", "keys", "X"),
            ("v", f"V{suffix}", "values", "X"),
        ):
            c.give(f"W{letter}{suffix}", Grid(values=draw.normal(size=(d_model, d)) / d_model**0.5))
            c.give(f"b{letter}{suffix}", Grid(values=draw.normal(size=(1, d))))
            c.step(step, name, "projection", of, f"W{letter}{suffix}", f"b{letter}{suffix}")
        allowed = np.tril(np.ones((n, n)))
        mask = Grid(values=allowed[[3]] if one else allowed)
        contexts.append(
            attend(c, query=query, keys=f"K{suffix}", values=f"V{suffix}", mask=mask, suffix=suffix)
        )
    c.step("concatenated", "concatenated", "concatenate", *contexts)
    c.give("Wo", Grid(values=draw.normal(size=(d * n_heads, d_model))))
    c.step("output", "output", "projection", "concatenated", "Wo")
    walk = c.finish("one head", query=3 if one else None)
    return replace(walk, model="a model", text="나는 너희 모두를 사랑해", layer=2, head=1)


def whole_layer() -> Walkthrough:
    """One head, and what follows it in a layer: a sum, a norm, a product cell by cell."""
    draw = np.random.default_rng(5)
    c = Calculation()
    for name, rows in (("X", 4), ("Q", 4), ("K", 4), ("V", 4), ("gain_1", 1), ("shift_1", 1)):
        c.give(name, Grid(values=draw.normal(size=(rows, 6)), rows=KOREAN[:4] if rows > 1 else ()))
    context = attend(c, query="Q", keys="K", values="V")
    c.step("residual", "residual", "add", context, "X")
    c.step("norm", "norm", "norm", "residual", "gain_1", "shift_1", number=1e-5)
    c.step("residual_2", "residual_2", "add", "norm", "residual")
    return c.finish("a layer")


def of_recurrent_decoder() -> Walkthrough:
    """A decoder's step, whose word goes on with the context."""
    c = Calculation()
    states = Grid(values=np.arange(12.0).reshape(4, 3) / 7, rows=("a", "b", "c", "d"))
    c.give("q", Grid(values=np.array([[1.0, 0.5, 0.2]]), rows=("now",)))
    c.give("K", states)
    c.give("V", states)
    attend(c, query="q", keys="K", values="V")
    c.give("y", Grid(values=np.array([[1.0, 2.0]]), rows=("before",)))
    c.step("concatenated", "concatenated", "concatenate", "y", "context")
    return c.finish("a decoder", query=0)


WALKS: dict[str, Callable[[], Walkthrough]] = {
    "by hand": by_hand,
    "masked": lambda: by_hand(mask=True),
    "toy": of_model,
    "all queries": lambda: of_model(one=False),
    "as wide as BERT": lambda: of_model(12, 384, 64),
    "all queries of BERT": lambda: of_model(12, 384, 64, one=False),
    "three heads": lambda: of_model(5, one=False, n_heads=3),
    "a whole layer": whole_layer,
    "a recurrent decoder": of_recurrent_decoder,
    "many tokens": lambda: of_model(40, 24, 4),
}


@pytest.fixture(scope="module")
def sheets(texts_of: Texts) -> Sheets:
    """One of these walkthroughs drawn, and its texts: once for all tests that only look at it."""

    @cache
    def sheet(name: str, language: str = "en") -> tuple[Figure, list[tuple[str, Bbox]]]:
        made = draw(WALKS[name](), lang=language).figure
        return made, texts_of(made)

    return sheet


def images(made: Figure) -> list[AxesImage]:
    """The matrices, in the order in which they were drawn; weights of one query are bars, and not among them."""
    return [image for axes in made.axes for image in axes.images]


def plan(walk: Walkthrough) -> list[StepView]:
    """The steps of a walkthrough as they are drawn."""
    return View(walk=walk).cards()


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("name", WALKS)
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
    walk = by_hand()
    printed = [text for text, _ in texts_of(draw(walk, precision=8).figure)]
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
    _, keys, _, masked, weights, *_ = images(draw(walk, palette="viridis").figure)
    red, blue, none = np.asarray(keys.get_array())[:, 0, :3].astype(int)
    assert red[0] > red[2] + 60
    assert blue[2] > blue[0] + 60
    assert none.tolist() == [255, 255, 255]
    assert np.asarray(masked.get_array())[0, :, 3].tolist() == [255, 255, 0]
    made = walk.grids["weights"].values
    assert np.array_equal(
        np.asarray(weights.get_array())[..., :3], colours("viridis")[levels(made, made.max())]
    )


def test_each_number_can_be_read_on_its_cell() -> None:
    """Black or white, whichever has the greater contrast with the colour under it: 4.5 to 1 at least."""
    made = draw(of_model(12, 48, 8), palette="teal").figure
    axes, checked = made.axes[0], 0
    for image in images(made):
        left, right, bottom, top = image.get_extent()
        pixels = np.asarray(image.get_array())
        rows, columns = pixels.shape[:2]
        for text in axes.texts:
            x, y = text.get_position()
            if left < x < right and top < y < bottom:
                cell = pixels[
                    int((y - top) / (bottom - top) * rows),
                    int((x - left) / (right - left) * columns),
                ]
                paper = float(luminance(cell[:3])) if cell[3] else 1.0
                letters = {"white": 1.0, "black": 0.0}[str(text.get_color())]
                assert (max(paper, letters) + 0.05) / (min(paper, letters) + 0.05) >= 4.5, (
                    text.get_text()
                )
                checked += 1
    assert checked > 300


def test_what_stands_at_one_height_belongs_to_one_key(sheets: Sheets) -> None:
    """Key, score, value and alignment vector of a key are on one line, left to right as they are computed."""
    made, _ = sheets("by hand")
    extents = [
        image.get_extent() for image in images(made) if len(np.asarray(image.get_array())) == 4
    ]
    assert len(extents) == 4
    assert len({(round(bottom, 6), round(top, 6)) for _, _, bottom, top in extents}) == 1
    assert extents == sorted(extents)


def test_one_row_is_followed(sheets: Sheets) -> None:
    """The key with the largest weight has a band behind it from its name to the sum; lines are as thick as weights."""
    made, texts = sheets("toy")
    axes, walk = made.axes[0], of_model()
    weights = walk.grids["weights"].values[0]
    amber = tuple(int(LIT[i : i + 2], 16) / 255 for i in (1, 3, 5))
    bands = [patch for patch in axes.patches if patch.get_facecolor()[:3] == amber]
    query, key = (box.get_window_extent() for box in bands)
    inside = [text for text, box in texts if key.y0 < (box.y0 + box.y1) / 2 < key.y1]
    assert walk.grids["weights"].columns[weights.argmax()] in inside
    assert query.y0 > key.y1, "the query stands above the keys"
    lines = [line.get_linewidth() for line in axes.lines if line.get_zorder() == 2]
    assert max(lines) == pytest.approx(0.15 + 6 * weights.max(), abs=1e-3)


def test_a_blank_cell_is_a_line_to_write_on(texts_of: Texts) -> None:
    """Its number is not there, and neither its colour, nor a line, a bar or the heading gives it away."""
    walk = by_hand()
    made = draw(
        walk, blanks=frozenset({("scores", 0, 1), ("weights", 0, 0), ("context", 0, 1)})
    ).figure
    printed = [text for text, _ in texts_of(made)]
    assert printed.count("____") == 3
    assert "60" not in printed
    assert printed[0] == "made by hand"
    assert np.asarray(images(made)[2].get_array())[:, 0, 3].tolist() == [255, 0, 255, 255]
    assert not [patch for patch in made.axes[0].patches if patch.get_fill()], "neither bar nor band"
    assert {line.get_linewidth() for line in made.axes[0].lines} <= {0.6, 0.7}


def test_the_sheet_says_what_it_shows(sheets: Sheets) -> None:
    """First what was found; the whole formula, the sentence, the steps, and how it was checked."""
    texts = [text for text, _ in sheets("toy")[1]]
    weights = of_model().grids["weights"]
    key = weights.columns[weights.values[0].argmax()]
    assert texts[0] == f"“모두를” looks most at “{key}”: {weights.values.max():.2f}"
    printed = " ".join(texts)
    for part in (
        "one head · “나는 너희 모두를 사랑해”",
        "context = softmax(mask(q Kᵀ / √8)) V",
        "no number of this model's own to compare with",
        "(1, 48) (48, 8) + (1, 8)",
        "Attention scores scores = q Kᵀ The query is compared with each key",
        "alignment = weightsᵀ ⊙ V",
        "⊙ multiplies cell by cell",
    ):
        assert part in printed
    assert "어텐션" not in printed
    korean = [text for text, _ in sheets("toy", "ko")[1]]
    assert {"어텐션 스코어", "컨텍스트 벡터"} <= set(korean)


@pytest.fixture(scope="module")
def twice() -> list[Picture]:
    """The same calculation drawn twice."""
    return [draw(of_model(), lang="ko") for _ in range(2)]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_are_what_they_are_called_and_always_the_same(
    suffix: str, twice: list[Picture]
) -> None:
    """Twice the same bytes, with every character drawn, Korean included."""
    buffers = [BytesIO(), BytesIO()]
    fonts = [picture.write(buffer, suffix) for picture, buffer in zip(twice, buffers, strict=True)]
    assert fonts[0].missing == ""
    first, second = (buffer.getvalue() for buffer in buffers)
    assert first == second
    assert {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix] == first[
        : 5 if suffix == ".svg" else 4
    ]
    if suffix == ".png":
        from matplotlib.image import imread

        height, width, _ = imread(BytesIO(first)).shape
        assert max(height, width) <= 4000
