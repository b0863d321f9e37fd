"""The pictures of stories: what is drawn is what the story holds, and every text can be read."""

from __future__ import annotations

import struct
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.render.palette import colours, levels
from attnviz.stories.record import Bars, Lines, Matrix, Panel, Series, Story
from tests.fixtures.pictures import expect_apart, picture_of, text_contrasts

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


def axes_of(panel: Panel, **options: Any) -> Axes:
    """Return the axes of a panel that is drawn alone."""
    axes: Axes = picture_of(story(panel), **options).figure.axes[0]
    return axes


def seen(made: Figure, texts_of: Texts) -> list[tuple[str, Bbox]]:
    """Return the texts of a figure, without those of ticks beyond the ends of their axis."""
    made.draw_without_rendering()
    for axes in made.axes:
        for axis, ends in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            for tick in axis.get_major_ticks():
                if not min(ends) <= tick.get_loc() <= max(ends):
                    tick.label1.set_visible(False)
    return texts_of(made)


@pytest.mark.parametrize(
    ("style", "theme"), [("sheet", "light"), ("slides", "dark"), ("paper", "light")]
)
@pytest.mark.parametrize("panels", [PANELS[:3], PANELS[3:]], ids=["matrices", "charts"])
def test_a_mixed_picture(texts_of: Texts, panels: list[Panel], style: str, theme: str) -> None:
    """In each style nothing overlaps, all texts can be read, and each panel has its title."""
    made = picture_of(story(*panels), style=style, theme=theme).figure
    texts = seen(made, texts_of)
    expect_apart(texts, made)
    assert min(text_contrasts(made).values()) >= 4.5
    shown = " ".join(text.replace("\n", " ") for text, _box in texts)
    assert all(panel.title in shown for panel in panels)
    words = "Hatched cells" if MASKED in panels else "Bands are 95%"
    around = ("the finding: 나는", "verified: by hand", words)
    assert [text in shown for text in around] == [style != "paper"] * 3


def test_a_slide() -> None:
    """A slide of 1,920 x 1,080 pixels has the main panel largest, at the left of the others."""
    from matplotlib.text import Text

    made = picture_of(replace(story(MASKED, DOUBLING, BARS), main=1), style="slides")
    assert made.png()[16:24] == struct.pack(">II", 1920, 1080)
    assert min(text.get_fontsize() for text in made.figure.findobj(Text)) >= 9  # points: 18 pixels
    first, *others = [axes.bbox for axes in made.figure.axes]
    areas = [box.width * box.height for box in (first, *others)]
    assert areas[0] == max(areas)
    assert all(first.x1 < box.x0 for box in others)


def test_a_column() -> None:
    """In a column of a paper, 3.3 inches wide, panels stand below one another; a fixed size is kept."""
    made = picture_of(story(MASKED, DOUBLING, BARS), style="paper")
    assert struct.unpack(">I", made.png()[16:20]) == (1980,)
    bottoms = [axes.bbox.y0 for axes in made.figure.axes]
    assert bottoms == sorted(bottoms, reverse=True)
    small = picture_of(story(MASKED, DOUBLING), figsize=(3, 4), dpi=100)
    assert small.png()[16:24] == struct.pack(">II", 300, 400)


@pytest.mark.filterwarnings("ignore:in the palette cividis_r")
@pytest.mark.parametrize("palette", ["magma", "cividis_r"])
def test_cells_have_their_colours(palette: str) -> None:
    """Each has the palette's colour of its value; a masked one none, so that the hatches show through."""
    axes = axes_of(MASKED, palette=palette)
    shown = axes.images[0].to_rgba(np.ma.asarray(axes.images[0].get_array()), bytes=True)
    masked = np.isnan(WEIGHTS)
    assert (shown[..., 3] == np.where(masked, 0, 255)).all()
    expected = colours(palette)[levels(WEIGHTS[~masked], 1.0)].astype(int)
    assert abs(shown[~masked, :3] - expected).max() <= 3  # of 255
    assert axes.patch.get_hatch()


def test_numbers_stand_in_their_cells(texts_of: Texts) -> None:
    """Two decimals, none where masked, no minus before zero; where they do not fit there is a colour bar."""
    found = {text.get_position(): text.get_text() for text in axes_of(LONG_NAMES).texts}
    numbers = ["-0.50", "0.00", "0.25", "0.50", "0.00", "12.00"]
    assert [found[column, row] for row in (0, 1) for column in (0, 1, 2)] == numbers
    assert len(axes_of(MASKED).texts) == 10
    whole = Matrix("m", np.array([[0, 2], [1, 3]]), limits=(0.0, 3.0))
    assert {text.get_text() for text in axes_of(whole).texts} == {"0", "1", "2", "3"}
    shown = {text.replace("−", "-") for text, _ in seen(picture_of(story(WAVES)).figure, texts_of)}
    assert {"-1.00", "0.50", "1.00"} <= shown


def test_lines() -> None:
    """Each line has its numbers, its name, and a colour, dashes and a marker of its own; the band is its interval."""
    axes = axes_of(DOUBLING)
    for line, series in zip(axes.lines, DOUBLING.series, strict=True):
        assert np.asarray(line.get_xdata()).tolist() == DOUBLING.x
        assert np.asarray(line.get_ydata()).tolist() == series.values
    looks = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axes.lines]
    assert all(len(set(kind)) == 2 for kind in zip(*looks, strict=True))
    (band,) = axes.collections
    assert set(np.asarray(band.get_paths()[0].vertices)[:, 1].tolist()) == {0.9, 1.1}
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("dₖ", "variance")
    legend = axes.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["unscaled", "divided by √dₖ"]
    assert axes_of(replace(DOUBLING, series=DOUBLING.series[:1])).get_legend() is None
    assert axes_of(MANY).get_ylim() == (-1.0, 1.0)


def test_bars() -> None:
    """Lengths, numbers above them, labels below; bars of one label stand side by side."""
    axes = axes_of(BARS)
    first, second = (list(container) for container in axes.containers)
    for bars, series in zip((first, second), BARS.series, strict=True):
        assert [bar.get_height() for bar in bars] == series.values
    for one, other in zip(first, second, strict=True):
        assert one.get_x() + one.get_width() <= other.get_x() + 1e-9
    numbers = sorted(text.get_text() for text in axes.texts)
    assert numbers == ["0.12", "0.25", "0.25", "0.25", "0.50", "0.62"]
    labels = [label.get_text().split() for label in axes.get_xticklabels()]
    assert labels == [label.split() for label in BARS.labels]


def test_files() -> None:
    """The same each time, whatever style the user has set."""
    import matplotlib as mpl

    made = story(MASKED, DOUBLING, BARS)
    first, second = BytesIO(), BytesIO()
    picture_of(made).write(first, ".svg")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "black", "text.color": "red"}):
        before = dict(mpl.rcParams)
        picture_of(made).write(second, ".svg")
        assert dict(mpl.rcParams) == before
    assert first.getvalue() == second.getvalue()
