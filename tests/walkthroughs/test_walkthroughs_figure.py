"""The sheet of a walkthrough, by its artists: all that is drawn is true, can be read, and lies where it belongs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.errors import SelectionError
from attnviz.render.palette import LEVELS, colours, levels
from attnviz.walkthroughs.calculation import Calculation
from attnviz.walkthroughs.figure.plan import MatrixPanel, plan
from attnviz.walkthroughs.figure.sheet import draw, stages
from attnviz.walkthroughs.hand import shown
from attnviz.walkthroughs.operations import MATRIX
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.wording import explain, shown_formula
from tests.walkthroughs.by_hand import attend, attention_walk

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.transforms import Bbox

Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]

KOREAN = ("[CLS]", "나는", "너희", "모두를", "사랑해", "internationalization", "[SEP]")


def by_hand(*, mask: bool = False) -> Walkthrough:
    """A decoder's state and four states of an encoder, as in the book."""
    states = Grid(values=np.array([[0.0, 1, 1], [5, 0, 1], [1, 1, 0], [0, 5, 1]]), rows=("a", "b", "c", "d"))
    query = Grid(values=np.array([[10.0, 5.0, 10.0]]), rows=("decoder",))
    hidden = Grid(values=np.array([[1.0, 1.0, 0.0, 1.0]])) if mask else None
    return attention_walk(title="made by hand", query=query, keys=states, values=states, score="dot", mask=hidden)


def of_model(n: int = 7, d_model: int = 48, d: int = 8, *, one: bool = True, n_heads: int = 1) -> Walkthrough:
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
            c.step(step, name, "map", of, f"W{letter}{suffix}", f"b{letter}{suffix}")
        allowed = np.tril(np.ones((n, n)))
        mask = Grid(values=allowed[[3]] if one else allowed)
        contexts.append(attend(c, query=query, keys=f"K{suffix}", values=f"V{suffix}", mask=mask, suffix=suffix))
    c.step("concatenated", "concatenated", "concatenate", *contexts)
    c.give("Wo", Grid(values=draw.normal(size=(d * n_heads, d_model))))
    c.step("output", "output", "map", "concatenated", "Wo")
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


def images(made: Figure) -> list[AxesImage]:
    """The matrices, in the order in which they were drawn."""
    return [image for axes in made.axes for image in axes.images]


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("name", WALKS)
def test_nothing_is_cut_and_nothing_lies_on_anything(name: str, language: str, texts_of: Texts) -> None:
    """No text leaves the sheet or touches another; no matrix lies on a text of another, or on another matrix."""
    made = draw(WALKS[name](), language=language).figure
    texts = texts_of(made)
    boxes = np.array([box.extents for _, box in texts])
    left, low, right, high = boxes.T
    outside = (left < -0.5) | (low < -0.5) | (right > made.bbox.width + 0.5) | (high > made.bbox.height + 0.5)
    assert not outside.any(), [texts[index][0] for index in np.flatnonzero(outside)]
    across = np.minimum.outer(right, right) - np.maximum.outer(left, left)
    down = np.minimum.outer(high, high) - np.maximum.outer(low, low)
    touching = np.argwhere(np.triu((across > 1) & (down > 1), 1))
    assert not len(touching), [(texts[i][0], texts[j][0]) for i, j in touching]
    axes = made.axes[0]
    cells = np.array(
        [np.ravel(axes.transData.transform(np.reshape(image.get_extent(), (2, 2)).T)) for image in images(made)]
    )
    x0, x1 = np.minimum(cells[:, 0], cells[:, 2]), np.maximum(cells[:, 0], cells[:, 2])
    y0, y1 = np.minimum(cells[:, 1], cells[:, 3]), np.maximum(cells[:, 1], cells[:, 3])
    for (text, _), (tl, tb, tr, tt) in zip(texts, boxes, strict=True):
        on = (np.minimum(tr, x1) - np.maximum(tl, x0) > 1) & (np.minimum(tt, y1) - np.maximum(tb, y0) > 1)
        inside = (tl > x0 - 1) & (tr < x1 + 1) & (tb > y0 - 1) & (tt < y1 + 1)
        assert not (on & ~inside).any(), text
    overlap_x = np.minimum.outer(x1, x1) - np.maximum.outer(x0, x0)
    overlap_y = np.minimum.outer(y1, y1) - np.maximum.outer(y0, y0)
    assert not np.triu((overlap_x > 1) & (overlap_y > 1), 1).any()


def test_every_number_of_a_small_calculation_is_printed(texts_of: Texts) -> None:
    """Each cell of each matrix of the book's example, in the digits asked for."""
    walk = by_hand()
    printed = [text for text, _ in texts_of(draw(walk, precision=8).figure)]
    expected = [shown(float(value), 8) for grid in walk.grids.values() for value in grid.values.ravel()]
    assert {"60", "2.86251858e-20", "6.94397194e-11"} <= set(expected)
    for number in set(expected):
        assert printed.count(number) == expected.count(number)


def test_cells_have_the_colour_of_their_number() -> None:
    """The palette from 0 up; red and blue round 0 where there are numbers below; nothing where a key is masked."""
    walk = attention_walk(
        title="made",
        query=Grid(values=np.array([[1.0]])),
        keys=Grid(values=np.array([[2.0], [-4.0], [0.5]])),
        values=Grid(values=np.array([[1.0], [2.0], [4.0]])),
        score="dot",
        mask=Grid(values=np.array([[1.0, 1.0, 0.0]])),
    )
    made = draw(walk, palette="viridis").figure
    drawn = {panel.title: image for panel, image in zip(_panels(walk), images(made), strict=True)}
    pixels = np.asarray(drawn["Values V"].get_array())[:, 0, :3]
    assert np.array_equal(pixels, colours("viridis")[levels(np.array([1.0, 2.0, 4.0]), 4.0)])
    keys = np.asarray(drawn["Keys K"].get_array())[:, 0].astype(int)
    assert keys[0, 0] > keys[0, 2], "above 0 is red"
    assert keys[1, 2] > keys[1, 0], "below 0 is blue"
    masked = np.asarray(drawn["Masked"].get_array())[:, 0, 3]
    assert masked.tolist() == [255, 255, 0]
    assert LEVELS == 256


def _panels(walk: Walkthrough) -> list[MatrixPanel]:
    """The panels of a sheet in the order in which they are drawn."""
    bands = plan(walk, language="en", steps=None, blanks=frozenset())
    return [panel for band in bands for unit in band for panel in unit.panels]


def test_what_stands_at_one_height_belongs_to_one_key() -> None:
    """Key, score, weight, value and alignment vector of a key are on one line, as wide as their numbers need."""
    made = draw(by_hand()).figure
    extents = [image.get_extent() for image in images(made)]
    tall = [
        extent for extent, image in zip(extents, images(made), strict=True) if len(np.asarray(image.get_array())) == 4
    ]
    assert len(tall) == 5
    assert len({(round(bottom, 6), round(top, 6)) for _, _, bottom, top in tall}) == 1
    lefts = [left for left, *_ in tall]
    assert lefts == sorted(lefts), "left to right, in the order of the calculation"


def test_a_blank_cell_is_a_line_to_write_on(texts_of: Texts) -> None:
    """Its number is not there, and its colour does not give it away."""
    walk = by_hand()
    made = draw(walk, blanks=frozenset({("scores", 0, 1), ("context", 0, 1)})).figure
    printed = [text for text, _ in texts_of(made)]
    assert printed.count("____") == 2
    assert "60" not in printed
    scores = images(made)[2]
    assert np.asarray(scores.get_array())[:, 0, 3].tolist() == [255, 0, 255, 255]


def test_the_sheet_says_what_it_shows(texts_of: Texts) -> None:
    """The whole formula, the sentence, layer, head, query, and how it was checked."""
    printed = " ".join(text for text, _ in texts_of(draw(of_model()).figure))
    for part in (
        "one head",
        "a model · “나는 너희 모두를 사랑해” · layer 2, head 1 (counted from 0) · query: 모두를 (row 3)",
        "context = softmax(mask(q Kᵀ / √8)) V",
        "no number of this model's own to compare with",
        "(7, 48)",
    ):
        assert part in printed
    assert "어텐션" not in printed
    korean = [text for text, _ in texts_of(draw(of_model(), language="ko").figure)]
    assert {"쿼리 q", "가중치", "정렬 벡터", "컨텍스트 벡터"} <= set(korean)


def test_formulas_are_written_as_on_a_blackboard() -> None:
    """Signs, where the terminal has words."""
    assert shown_formula("scaled = q K^T / sqrt(64) * B") == "scaled = q Kᵀ / √64 ⊙ B"
    assert shown_formula("scaled = scores * -0.5") == "scaled = scores · -0.5"


def test_a_film_s_picture_shows_no_more_than_its_step(texts_of: Texts) -> None:
    """As far as the softmax: the same sheet, without values, alignment and context, and with the step's own words."""
    counts, beginnings, sizes = [], [], set()
    for pen, (begin, end) in stages(by_hand()):
        made = pen.figure
        counts.append(len(images(made)))
        sizes.add(tuple(made.get_size_inches()))
        (words,) = [(text, box) for text, box in texts_of(made) if re.match(r"\d\. ", text)]
        beginnings.append(words[0][:12])
        height = made.get_figheight() * made.dpi
        assert begin * made.dpi <= height - words[1].y1 < height - words[1].y0 <= end * made.dpi
    assert counts == [3, 4, 6, 7]
    assert beginnings == ["1. Attention", "2. Softmax: ", "3. Alignment", "4. Context v"]
    assert len(sizes) == 1
    assert len(images(draw(by_hand()).figure)) == 7


def test_a_film_s_picture_shows_what_its_step_makes(texts_of: Texts) -> None:
    """Query, keys and values are seen with the step that makes them, the scores not before theirs."""
    made = ("Query q", "Keys K", "Values V", "Score")
    seen = []
    for pen, _ in stages(of_model()):
        said = {text for text, _ in texts_of(pen.figure)}
        seen.append([name for name in made if name in said])
    assert seen[:4] == [list(made[:1]), list(made[:2]), list(made[:3]), list(made)]


def test_only_the_steps_asked_for_are_drawn() -> None:
    """Their operands and what they make; a step that is not there is refused."""
    assert len(images(draw(by_hand(), steps=["softmax"]).figure)) == 2
    assert len(images(draw(by_hand(), steps=["scores"]).figure)) == 3
    with pytest.raises(SelectionError, match="there is no step"):
        draw(by_hand(), steps=["norm"])
    with pytest.raises(SelectionError, match="no palette"):
        draw(by_hand(), palette="jets")


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_files_are_what_they_are_called_and_always_the_same(suffix: str) -> None:
    """Twice the same bytes, with every character drawn, Korean included."""
    buffers = [BytesIO(), BytesIO()]
    fonts = [draw(of_model(), language="ko").write(buffer, suffix) for buffer in buffers]
    assert fonts[0].missing == ""
    first, second = (buffer.getvalue() for buffer in buffers)
    assert first == second
    assert {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}[suffix] == first[: 5 if suffix == ".svg" else 4]
    if suffix == ".png":
        from matplotlib.image import imread

        height, width, _ = imread(BytesIO(first)).shape
        assert max(height, width) <= 4000


def _signs(walk: Walkthrough, *, opening: bool = False) -> list[tuple[str, str]]:
    """What stands before each matrix in the middle of a unit, and the matrix."""
    bands = plan(walk, language="en", steps=None, blanks=frozenset())
    return [(unit.opening if opening else unit.symbol, unit.main.title) for band in bands for unit in band]


def test_a_sign_stands_between_any_two_matrices() -> None:
    """Which is multiplied, added, made of which; what stands elsewhere is named."""
    assert _signs(whole_layer()) == [
        ("", "Queries Q"), (MATRIX, "Keys K"), ("→", "Score"), ("→", "Scaled"), ("→", "Weight"), (MATRIX, "Values V"),
        ("→", "Context vector"), ("+", "Input X"), ("→", "Residual connection"), ("→ ⊙", "Gain 1"), ("+", "Shift 1"),
        ("→", "Layer normalisation"), ("+ residual →", explain("residual_2").title),
    ]  # fmt: skip
    toy = {title: sign for sign, title in _signs(of_model())}
    assert [toy[f"{name} weights W{name[0].lower()}"] for name in ("Query", "Key", "Value")] == [
        MATRIX,
        MATRIX,
        f"X {MATRIX}",
    ], "the input is drawn once, and named where it is read again"
    assert (toy["Values V"], toy["Alignment"], toy["Output weights Wo"]) == ("⊙", "→", MATRIX)
    at_the_left = {title: sign for sign, title in _signs(whole_layer(), opening=True)}
    assert at_the_left["Gain 1"] == "residual → ⊙", "at the beginning of a line nothing is left to be guessed"


def test_the_same_sign_never_stands_for_two_products(texts_of: Texts) -> None:
    """A cross between matrices, a circle cell by cell; no dot; said once below."""
    texts = [text for text, _ in texts_of(draw(of_model()).figure)]
    assert {MATRIX, "⊙", "alignment = weightsᵀ ⊙ V"} <= set(texts)
    assert not [text for text in texts if "·" in text and "“" not in text]
    told = f"{MATRIX} between matrices is the matrix product, as in q Kᵀ"
    assert texts.count(f"{told}; ⊙ multiplies cell by cell") == 1
    assert told in [text for text, _ in texts_of(draw(of_model(one=False)).figure)]


def test_what_is_drawn_upright_says_so() -> None:
    """Its shape is that of the formula, and the picture is the other way round; keys are used across."""
    panels = {panel.title: panel for panel in _panels(by_hand())}
    assert panels["Score"].lines == ("scores = q Kᵀ", "(1, 4), drawn upright")
    assert panels["Score"].values.shape == (4, 1)
    assert panels["Values V"].lines == ("(4, 3)",)
    keys = {panel.title: panel for panel in _panels(of_model(one=False))}["Keys K"]
    assert keys.lines[-1] == "(7, 8), used as Kᵀ"


def test_the_word_before_is_drawn_beside_the_context() -> None:
    """What is put side by side is seen, or at least named; of many heads' contexts only the result is."""
    signs = {title: sign for sign, title in _signs(of_recurrent_decoder())}
    assert signs["Word vector y"] == ""
    assert signs["Concatenation"] == "; context →"
    assert {title: sign for sign, title in _signs(of_model(5, one=False, n_heads=3))}["Concatenation"] == (
        "context_0; context_1; context_2 →"
    )


def test_one_far_number_does_not_leave_a_wide_matrix_pale(texts_of: Texts) -> None:
    """The colours are for nearly all numbers, the panel says how far they go and how far the numbers."""
    values = np.random.default_rng(3).normal(size=(4, 768)).round(1)
    values[:, 7] = 40
    c = Calculation()
    c.give("X", Grid(values=values, rows=KOREAN[:4]))
    c.step("relu", "active", "relu", "X")
    made = draw(c.finish("wide")).figure
    drawn = np.asarray(images(made)[0].get_array())[..., :3].astype(int)
    coloured = np.abs(drawn[..., 0] - drawn[..., 2]) > 60
    assert coloured.mean() > 0.5, "red or blue, and not grey"
    texts = [text for text, _ in texts_of(made)]
    (limits,) = {
        match[0] for text in texts for match in [re.match(r"colours to ±(\d\.\d), farthest 40", text)] if match
    }
    assert 1 < float(limits[len("colours to ±") :].split(",")[0]) < 5
    assert drawn.shape[1] < 768
    assert any(re.fullmatch(r"1 x \d cells a point", text) for text in texts)
    told = " ".join(texts)
    assert "the last colour is for all numbers farther from 0; cells that share a point show the number" in told
    assert "cells that share" not in " ".join(text for text, _ in texts_of(draw(by_hand()).figure))


def test_numbers_below_0_colour_a_matrix_that_shows_none_of_them() -> None:
    """Where cells share points and the farthest are all above 0, 0 is still the middle of the colours, as it says."""
    values = np.ones((3, 768))
    values[:, 1::2] = -0.5
    c = Calculation()
    c.give("P", Grid(values=values, rows=KOREAN[:3]))
    c.step("relu", "active", "relu", "P")
    drawn = np.asarray(images(draw(c.finish("positions")).figure)[0].get_array())[..., :3].astype(int)
    assert (drawn[..., 0] > drawn[..., 2] + 60).all(), "red, the colour of numbers above 0"


def test_a_matrix_with_printed_numbers_has_colours_for_all() -> None:
    """There the farthest number has the last colour, and nothing needs to be said."""
    panels = _panels(by_hand())
    assert not [line for panel in panels for line in panel.lines if "colours" in line]


def test_many_heads_stand_side_by_side() -> None:
    """A sheet of many heads is no strip, and each head is in one line, named at its own left."""
    made = draw(of_model(3, 24, 8, one=False, n_heads=12)).figure
    width, height = made.get_size_inches()
    assert height < 1.5 * width
    tops = [image.get_extent()[3] for image in images(made)]
    in_a_line = [tops.count(top) for top in dict.fromkeys(tops)]
    panels = 9
    assert in_a_line.count(2 * panels) == 6, "each head whole, and two heads in a line"


def test_what_follows_a_second_attention_stands_behind_it() -> None:
    """A decoder's layer: its own heads, a norm, the heads that look across, and what is made of these."""
    draw = np.random.default_rng(8)
    c = Calculation()
    for name in ("Q_0", "K_0", "V_0", "Q_1", "K_1", "V_1", "M", "Wk_cross_0"):
        c.give(name, Grid(values=draw.normal(size=(3, 3))))
    c.give("gain_1", Grid(values=np.ones((1, 3))))
    own = [attend(c, query=f"Q_{head}", keys=f"K_{head}", values=f"V_{head}", suffix=f"_{head}") for head in (0, 1)]
    c.step("concatenated", "concatenated", "concatenate", *own)
    c.step("rms_norm", "norm", "rms_norm", "V_0", "gain_1", number=1e-6)
    c.step("keys", "K_cross_0", "map", "M", "Wk_cross_0")
    across = attend(c, query="norm", keys="K_cross_0", values="M", suffix="_cross_0")
    c.step("silu", "active", "silu", across)
    c.step("gated", "gated", "product", "active", "norm")
    bands = plan(c.finish("a decoder"), language="en", steps=None, blanks=frozenset())
    titles = [[unit.main.title for unit in band] for band in bands]
    assert [band[0].is_head for band in bands] == [True, True, False, True, False]
    assert "Other sentence M" in titles[2]
    gain = next(unit for unit in bands[2] if unit.main.title.startswith("Gain"))
    assert (gain.symbol, gain.opening) == ("V_0 → ⊙", "V_0 → ⊙")
    assert [unit.symbol for unit in bands[4]] == ["→", "⊙ norm →"]
