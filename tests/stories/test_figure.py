"""The pictures of stories, by their artists: what is drawn is what the story holds, and every text can be read."""

from __future__ import annotations

import struct
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.render.figure.style import smallest_letters
from attnviz.render.palette import colours, diverging, levels
from attnviz.stories.record import Bars, Lines, Matrix, Panel, Series, Story
from tests.fixtures.pictures import expect_apart, expect_enlarged_whole, picture_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    Texts = Callable[[Figure], list[tuple[str, Bbox]]]

KOREAN = ("나는", "너희", "모두를", "사랑해")
WEIGHTS = np.array(
    [[1, np.nan, np.nan, np.nan], [0.25, 0.75, np.nan, np.nan], [0.2, 0.3, 0.5, np.nan], [0.25] * 4]
)
MASKED = Matrix("masked", WEIGHTS, KOREAN, ("I", "love", "all", "you"))
WAVES = Matrix(
    "waves",
    np.sin(np.arange(64)[:, None] / 10_000 ** (np.arange(200) / 200)),
    row_title="position",
    column_title="component",
    limits=(-1.0, 1.0),
    diverging=True,
)
LONG_NAMES = Matrix(
    "a title that is much wider than its panel, and takes more than one line",
    np.array([[-0.5, 0.001, 0.25], [0.5, -0.001, 12.0]]),
    ("a", "b"),
    ("c", "d", "internationalization"),
    limits=(-0.5, 0.5),
    diverging=True,
)
DOUBLING = Lines(
    "spread of the scores",
    [2.0**power for power in range(10)],
    "d_k",
    [
        Series("unscaled", [2.0**power for power in range(10)]),
        Series("divided by sqrt(d_k)", [1.0] * 10, [0.9] * 10, [1.1] * 10),
    ],
    "variance",
    doubling=True,
    y_doubling=True,
)
MANY = Lines(
    "many lines",
    [float(x) for x in range(40)],
    "step",
    [
        Series(f"사랑해 internationalization number {i}", np.sin(np.arange(40) / (i + 1)).tolist())
        for i in range(5)
    ],
    "a long name of what is measured here, wider than the panel is high",
    (-1.0, 1.0),
)
BARS = Bars(
    "weights",
    ("A History of Bread", "나는", "x"),
    [Series("exact", [0.125, 0.25, 0.625]), Series("soft", [0.25, 0.25, 0.5])],
    "weight",
)
PANELS: list[Panel] = [MASKED, WAVES, LONG_NAMES, DOUBLING, MANY, BARS]


def story(*panels: Panel, title: str = "the finding: 나는") -> Story:
    """Return a story with this picture."""
    return Story(name="made", title=title, parts=(), picture=panels, receipt="verified: by hand")


def axes_of(*panels: Panel, palette: str = "magma") -> list[Axes]:
    """Return the drawn panels; the axes over the whole figure are not among them."""
    made = picture_of(story(*panels), palette=palette).figure
    return [axes for axes in made.axes if axes.axison]


def seen(made: Figure, texts_of: Texts) -> list[tuple[str, Bbox]]:
    """Return the texts of a figure, without those of ticks beyond the ends of their axis."""
    made.draw_without_rendering()
    for axes in made.axes:
        for axis, ends in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            for tick in axis.get_major_ticks():
                if not min(ends) <= tick.get_loc() <= max(ends):
                    tick.label1.set_visible(False)
    return texts_of(made)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel.title.split(",")[0])
@pytest.mark.parametrize("n", [1, 3])
def test_texts_keep_clear(texts_of: Texts, panel: Panel, n: int) -> None:
    """No text lies on another or leaves the picture, with long and Korean names."""
    made = picture_of(story(*[panel] * n, title="a long title " * 12)).figure
    expect_apart(seen(made, texts_of), made)


@pytest.mark.parametrize("panels", [PANELS[:3], PANELS[3:]], ids=["matrices", "charts"])
def test_a_mixed_picture(texts_of: Texts, panels: list[Panel]) -> None:
    """Several kinds of panels: nothing overlaps, each has its title, and all of it grows in a style."""
    made = picture_of(story(*panels)).figure
    texts = seen(made, texts_of)
    expect_apart(texts, made)
    shown = " ".join(text.replace("\n", " ") for text, _box in texts)
    assert all(panel.title in shown for panel in panels)
    words = "Hatched cells" if MASKED in panels else "Bands are 95%"
    assert all(text in shown for text in ("the finding: 나는", "verified: by hand", words))
    expect_enlarged_whole(picture_of(story(*panels)).figure)


@pytest.mark.parametrize("main", [0, 1, 2])
def test_a_slide(texts_of: Texts, main: int) -> None:
    """A slide of 1,920 x 1,080 pixels with the main panel largest, at the left of the others."""
    made = picture_of(replace(story(MASKED, DOUBLING, BARS), main=main), style="slides")
    texts = seen(made.figure, texts_of)
    expect_apart(texts, made.figure)
    assert made.png()[16:24] == struct.pack(">II", 1920, 1080)
    assert smallest_letters(made.figure) >= 9  # points: 18 pixels
    boxes = [axes.get_position() for axes in made.figure.axes if axes.axison]
    first, *others = boxes
    assert all(first.x1 < box.x0 and first.height > box.height for box in others)


def test_a_column(texts_of: Texts) -> None:
    """In a paper, panels stand below one another."""
    made = picture_of(story(MASKED, DOUBLING, BARS), style="paper").figure
    expect_apart(seen(made, texts_of), made)
    bottoms = [axes.get_position().y0 for axes in made.axes if axes.axison]
    assert bottoms == sorted(bottoms, reverse=True)


@pytest.mark.filterwarnings("ignore:in the palette cividis_r")
@pytest.mark.parametrize("palette", ["magma", "cividis_r"])
def test_cells_have_their_colours(palette: str) -> None:
    """Each has the palette's colour of its value; a masked one none, so that the hatches show through."""
    (axes,) = axes_of(MASKED, palette=palette)
    shown = np.asarray(axes.images[0].get_array())
    masked = np.isnan(WEIGHTS)
    assert (shown[..., 3] == np.where(masked, 0, 255)).all()
    expected = colours(palette)[levels(WEIGHTS[~masked], 1.0)]
    np.testing.assert_array_equal(shown[~masked, :3], expected)
    assert axes.patch.get_hatch()


def test_diverging_colours() -> None:
    """Zero is white, and both sides differ, whatever the palette."""
    values = np.array([[-0.5, -0.25, 0.0, 0.25, 0.5, 12.0]])
    matrix = Matrix("m", values, limits=(-0.5, 0.5), diverging=True)
    shown = np.asarray(axes_of(matrix, palette="viridis")[0].images[0].get_array())[0, :, :3]
    np.testing.assert_array_equal(shown, diverging()[[0, 64, 128, 191, 255, 255]])
    assert shown[2].tolist() == [255, 255, 255]


def test_numbers_stand_in_their_cells(texts_of: Texts) -> None:
    """Two decimals, none where masked, no minus before zero; where they do not fit there is a colour bar."""
    found = {text.get_position(): text.get_text() for text in axes_of(LONG_NAMES)[0].texts}
    numbers = ["-0.50", "0.00", "0.25", "0.50", "0.00", "12.00"]
    assert [found[column, row] for row in (0, 1) for column in (0, 1, 2)] == numbers
    assert len(axes_of(MASKED)[0].texts) == 10
    whole = Matrix("m", np.array([[0, 2], [1, 3]]), limits=(0.0, 3.0))
    assert {text.get_text() for text in axes_of(whole)[0].texts} == {"0", "1", "2", "3"}
    assert not axes_of(WAVES)[0].texts
    texts = [text for text, _box in seen(picture_of(story(WAVES)).figure, texts_of)]
    assert {"-1", "-0.5", "0.5", "1"} <= set(texts)


def test_labels_of_a_matrix() -> None:
    """Each row and column is named, upright where its name is wider than a cell."""
    (axes,) = axes_of(LONG_NAMES)
    names = [label.get_text() for label in axes.get_xticklabels()]
    assert names == list(LONG_NAMES.columns)
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {90.0}
    assert {label.get_rotation() for label in axes_of(MASKED)[0].get_xticklabels()} == {0.0}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("key", "query")


def test_lines() -> None:
    """Each line has its numbers, colour, dashes and marker; the band is its interval."""
    (axes,) = axes_of(DOUBLING)
    lines, samples = axes.lines[:2], axes.lines[2:]
    for line, series in zip(lines, DOUBLING.series, strict=True):
        assert np.asarray(line.get_xdata()).tolist() == DOUBLING.x
        assert np.asarray(line.get_ydata()).tolist() == series.values
    for looks in (
        {line.get_color() for line in lines},
        {line.get_marker() for line in lines},
        {line.get_linestyle() for line in lines},
    ):
        assert len(looks) == 2
    (band,) = axes.collections
    assert set(np.asarray(band.get_paths()[0].vertices)[:, 1].tolist()) == {0.9, 1.1}
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("dₖ", "variance")
    assert [text.get_text() for text in axes.texts] == ["unscaled", "divided by √dₖ"]
    # Each name has a sample of its line, at the height where the line ends.
    for sample, line in zip(samples, lines, strict=True):
        assert sample.get_color() == line.get_color()
        end = axes.transData.transform((1, np.asarray(line.get_ydata())[-1]))[1]
        place = axes.transAxes.transform((1, np.asarray(sample.get_ydata())[0]))[1]
        assert place == pytest.approx(end, abs=1)
    (single,) = axes_of(replace(DOUBLING, series=DOUBLING.series[:1]))
    assert not single.texts
    assert axes_of(MANY)[0].get_ylim() == (-1.0, 1.0)


def test_bars() -> None:
    """Lengths, numbers above them, labels below; bars of one label stand side by side."""
    (axes,) = axes_of(BARS)
    first, second = (list(container) for container in axes.containers)
    for bars, series in zip((first, second), BARS.series, strict=True):
        assert [bar.get_height() for bar in bars] == series.values
    for one, other in zip(first, second, strict=True):
        assert one.get_x() + one.get_width() <= other.get_x() + 1e-9
    numbers = sorted(text.get_text() for text in axes.texts)
    assert numbers == ["0.12", "0.25", "0.25", "0.25", "0.50", "0.62"]
    assert [label.get_text().split() for label in axes.get_xticklabels()] == [
        label.split() for label in BARS.labels
    ]


def test_files() -> None:
    """The same each time, whatever style the user has set."""
    import matplotlib as mpl

    made = story(MASKED, DOUBLING, BARS)
    first, second = BytesIO(), BytesIO()
    assert picture_of(made).write(first, ".svg").missing == ""
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black", "text.color": "red"}):
        before = dict(mpl.rcParams)
        picture_of(made).write(second, ".svg")
        assert dict(mpl.rcParams) == before
    assert first.getvalue() == second.getvalue()
