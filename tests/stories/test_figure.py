"""The pictures of stories, by their artists: what is drawn is what the story holds, and every text can be read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from attnviz.render.palette import colours, diverging, levels
from attnviz.stories.figure import draw
from attnviz.stories.record import Bars, Lines, Matrix, Panel, Series, Story
from tests.fixtures.pictures import expect_apart, expect_enlarged_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]


def figure(shown: Story, palette: str = "magma") -> Figure:
    """The figure of a story's picture."""
    return draw(shown, palette=palette).figure


KOREAN = ("나는", "너희", "모두를", "사랑해")
WEIGHTS = np.array(
    [[1, np.nan, np.nan, np.nan], [0.25, 0.75, np.nan, np.nan], [0.2, 0.3, 0.5, np.nan], [0.25] * 4]
)
MASKED = Matrix(title="masked", values=WEIGHTS, rows=KOREAN, columns=("I", "love", "all", "you"))
WAVES = Matrix(
    title="waves",
    values=np.sin(np.arange(64)[:, None] / 10_000 ** (np.arange(200) / 200)),
    row_title="position",
    column_title="number",
    limits=(-1.0, 1.0),
    diverging=True,
)
DIFFERENCE = Matrix(
    title="difference",
    values=np.array([[-0.5, 0.001, 0.25], [0.5, -0.001, 12.0]]),
    rows=("a", "b"),
    columns=("c", "d", "internationalization"),
    limits=(-0.5, 0.5),
    diverging=True,
)
DOUBLING = Lines(
    title="how far scores spread",
    x=tuple(2.0**power for power in range(10)),
    x_title="d_k",
    series=(
        Series(name="as they are", values=tuple(2.0**power for power in range(10))),
        Series(name="divided by sqrt(d_k)", values=(1.0,) * 10, low=(0.9,) * 10, high=(1.1,) * 10),
    ),
    y_title="variance",
    doubling=True,
    y_doubling=True,
)
MANY = Lines(
    title="many lines with long names, and a title that takes more than one line of what is drawn here",
    x=tuple(map(float, range(40))),
    x_title="step",
    series=tuple(
        Series(
            name=f"사랑해 internationalization number {i}",
            values=tuple(np.sin(np.arange(40) / (i + 1)).tolist()),
        )
        for i in range(9)
    ),
    y_title="what is measured here has a long name that is wider than the panel is high, truly",
    y_limits=(-1.0, 1.0),
)
BARS = Bars(
    title="weights",
    labels=("A History of Bread", "나는", "x"),
    series=(
        Series(name="exact", values=(0.125, 0.25, 0.625)),
        Series(
            name="soft",
            values=(0.25, 0.25, 0.5),
            low=(0.125, 0.125, 0.25),
            high=(0.375, 0.375, 0.75),
        ),
    ),
    y_title="weight",
)
PANELS: dict[str, Panel] = {
    "masked": MASKED,
    "waves": WAVES,
    "difference": DIFFERENCE,
    "doubling": DOUBLING,
    "many": MANY,
    "bars": BARS,
}
LONG_BARS = replace(
    BARS,
    labels=tuple(f"internationalization {i}" for i in range(90)),
    series=(Series(name="s", values=(0.5,) * 90),),
)


NARROW = Matrix(
    title="a title that is much wider than its panel", values=np.zeros((3, 1)), rows=KOREAN[:3]
)


def story(*panels: Panel, title: str = "what is told here: 나는") -> Story:
    """A story with this picture."""
    return Story(name="made", title=title, parts=(), picture=panels, receipt="verified: by hand")


def drawn(made: Figure) -> list[Axes]:
    """The panels of a figure, in their order; the axes over the whole figure are not among them."""
    return [axes for axes in made.axes if axes.axison]


def seen(made: Figure, texts_of: Texts) -> list[tuple[str, Bbox]]:
    """The texts of a figure, without those of ticks that lie beyond the ends of their axis."""
    made.draw_without_rendering()
    for axes in drawn(made):
        for axis, ends in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            for tick in axis.get_major_ticks():
                if not min(ends) <= tick.get_loc() <= max(ends):
                    tick.label1.set_visible(False)
    return texts_of(made)


def assert_clear(made: Figure, texts_of: Texts) -> None:
    """No two texts share more than a pixel, none leaves the picture, and none but a panel's own lies on it."""
    expect_apart(seen(made, texts_of), made)
    panels = [axes.get_window_extent().extents for axes in drawn(made)]
    for one, first in enumerate(panels):
        for second in panels[one + 1 :]:
            assert min(first[2], second[2]) <= max(first[0], second[0]) or min(
                first[3], second[3]
            ) <= max(first[1], second[1])


@pytest.mark.parametrize(
    "panel", [*PANELS.values(), LONG_BARS, NARROW], ids=[*PANELS, "long bars", "narrow"]
)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_texts_keep_clear(texts_of: Texts, panel: Panel, n: int) -> None:
    """One panel and several, of each kind, with long and Korean names."""
    assert_clear(figure(story(*[panel] * n)), texts_of)


def test_a_mixed_sheet_keeps_clear(texts_of: Texts) -> None:
    """All kinds of panels on one sheet, under a title of several lines; each has its title, once."""
    made = figure(story(*PANELS.values(), title="what is told here goes on and on " * 12))
    assert_clear(made, texts_of)
    titles = [axes.get_title(loc="left").replace("\n", " ") for axes in drawn(made)]
    assert titles == [panel.title for panel in PANELS.values()]


def test_all_panels_grow_with_their_picture() -> None:
    """Legends with their samples, titles, numbers at bars, ends of intervals."""
    expect_enlarged_whole(figure(story(*PANELS.values())))


@pytest.mark.parametrize(("style", "n_across"), [("paper", 1), ("slides", 3)])
def test_panels_stand_as_their_style_has_room(
    texts_of: Texts, style: Literal["paper", "slides"], n_across: int
) -> None:
    """Below one another in a column of a paper, beside one another on a slide: as large as they can be."""
    # which tells of letters that are too small
    made = draw(story(MASKED, DOUBLING, BARS), style=style).figure
    assert_clear(made, texts_of)
    places = [axes.get_position() for axes in drawn(made)][:3]
    assert len({round(place.y1, 3) for place in places}) == 4 - n_across
    assert len({round(place.x0, 3) for place in places}) == n_across


@pytest.mark.parametrize("n", [5, 40, 41, 300])
@pytest.mark.parametrize("label", ["w", "internationalization", "모두를사랑해요"])
def test_labels_of_a_matrix_keep_clear(texts_of: Texts, n: int, label: str) -> None:
    """Few and many rows and columns: labels are whole, turned or thinned, and do not touch."""
    names = tuple(f"{label}{i}" for i in range(n))
    made = figure(
        story(Matrix(title="m", values=np.full((n, n), 1 / n), rows=names, columns=names))
    )
    assert_clear(made, texts_of)
    (axes,) = drawn(made)
    for axis, ticks in ((axes.xaxis, axes.get_xticks()), (axes.yaxis, axes.get_yticks())):
        assert [text.get_text() for text in axis.get_ticklabels()] == [
            names[int(place)] for place in ticks
        ]
        assert len(ticks) > min(n, 20) / 2


def test_it_says_what_it_is(texts_of: Texts) -> None:
    """Title, receipt, what rows and columns are, what hatched means, what bands are: where they apply."""
    shown = " ".join(text for text, _ in seen(figure(story(MASKED, WAVES, BARS)), texts_of))
    for part in (
        "what is told here: 나는",
        "verified: by hand",
        "rows: query, columns: key",
        "rows: position, columns: number",
        "hatched: masked",
    ):
        assert part in shown
    for panels, said in (
        ((BARS,), "whiskers"),
        ((DOUBLING,), "bands"),
        ((BARS, DOUBLING), "bands and whiskers"),
    ):
        below = [text for text, _ in seen(figure(story(*panels)), texts_of)]
        assert f"{said}: the interval of each value" in below
    shown = " ".join(text for text, _ in seen(figure(story(MANY)), texts_of))
    for part in ("rows:", "hatched", "bands"):
        assert part not in shown


# Matrices.


@pytest.mark.parametrize("palette", ["magma", "cividis_r"])
def test_cells_have_their_colours(palette: str) -> None:
    """A cell has the palette's colour of its value; what is masked has none, so that the hatches show through."""
    axes = drawn(figure(story(MASKED), palette))[0]
    shown = np.asarray(axes.images[0].get_array())
    masked = np.isnan(WEIGHTS)
    assert (shown[..., 3] == np.where(masked, 0, 255)).all()
    np.testing.assert_array_equal(
        shown[~masked, :3], colours(palette)[levels(WEIGHTS[~masked], 1.0)]
    )
    assert axes.patch.get_hatch()
    assert not drawn(figure(story(WAVES)))[0].patch.get_hatch()


def test_diverging_colours() -> None:
    """Where zero is the middle, zero is pale, and both sides differ, whatever the palette chosen."""
    values = np.array([[-0.5, -0.25, 0.0, 0.25, 0.5, 12.0]])
    matrix = Matrix(title="m", values=values, limits=(-0.5, 0.5), diverging=True)
    shown = np.asarray(drawn(figure(story(matrix), "viridis"))[0].images[0].get_array())[0, :, :3]
    np.testing.assert_array_equal(shown, diverging()[[0, 64, 128, 191, 255, 255]])
    assert shown[2].tolist() == [255, 255, 255]


def test_numbers_stand_in_their_cells() -> None:
    """Two decimals, none where there is no number, no minus before nothing; whole numbers are printed whole."""
    axes = drawn(figure(story(DIFFERENCE)))[0]
    found = {text.get_position(): text.get_text() for text in axes.texts}
    assert found == {
        (0, 0): "-0.50",
        (1, 0): "0.00",
        (2, 0): "0.25",
        (0, 1): "0.50",
        (1, 1): "0.00",
        (2, 1): "12.00",
    }
    axes = drawn(figure(story(MASKED)))[0]
    assert len(axes.texts) == 10
    axes = drawn(
        figure(story(Matrix(title="m", values=np.array([[0, 2], [1, 3]]), limits=(0.0, 3.0))))
    )[0]
    assert {text.get_text() for text in axes.texts} == {"0", "1", "2", "3"}
    assert not drawn(figure(story(WAVES)))[0].texts


def test_numbers_fit_their_cells() -> None:
    """However wide the numbers, they stay within their cells, or are left out."""
    for n, printed in ((4, True), (12, True), (16, True), (36, False)):
        made = figure(story(Matrix(title="m", values=np.full((n, n), -0.5), limits=(-1.0, 1.0))))
        (axes,) = drawn(made)
        assert bool(axes.texts) == printed
        cell = axes.get_window_extent().width / n
        renderer = made.canvas.get_renderer()  # type: ignore[attr-defined]
        assert all(text.get_window_extent(renderer).width < cell for text in axes.texts)


def test_colour_bars(texts_of: Texts) -> None:
    """Each matrix has a bar with its limits at its right; neighbours with the same colours share one."""

    def bars(*panels: Panel) -> list[list[str]]:
        made = figure(story(*panels))
        (frame,) = (axes for axes in made.axes if not axes.axison)
        texts = seen(made, texts_of)
        found = []
        for image in frame.images:
            box = image.get_window_extent()
            beside = [
                (b.y0, t)
                for t, b in texts
                if 0 < b.x0 - box.x1 < 30 and box.y0 - 9 < b.y0 and b.y1 < box.y1 + 9
            ]
            found.append([text for _, text in sorted(beside)])
        return found

    weights = ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert bars(MASKED) == [weights]
    assert bars(MASKED, MASKED) == [weights]
    halves = ["-0.4", "-0.2", "0", "0.2", "0.4"]
    assert bars(MASKED, WAVES, DIFFERENCE) == [weights, ["-1", "-0.5", "0", "0.5", "1"], halves]
    assert bars(DOUBLING, BARS) == []


def test_cells_are_square_or_as_wide_as_their_names() -> None:
    """A few cells are square; the names of columns make them wider while that keeps them level."""
    for columns, level in (
        ((), True),
        (("I", "love", "all", "you"), True),
        (("internationalization",) * 4, True),
        (("internationalization",) * 20, False),
    ):
        n = len(columns) or 4
        axes = drawn(figure(story(Matrix(title="m", values=np.zeros((n, n)), columns=columns))))[0]
        turned = {label.get_rotation() for label in axes.get_xticklabels()}
        assert turned == {0.0 if level else 90.0}
        box = axes.get_window_extent()
        assert (box.width > 1.2 * box.height) == (level and "internationalization" in columns)


# Lines and bars.


def test_lines_are_the_series() -> None:
    """Each line has its numbers, a colour and a marker of its own; the band is its interval."""
    axes = drawn(figure(story(DOUBLING)))[0]
    for line, one in zip(axes.lines, DOUBLING.series, strict=True):
        assert tuple(np.asarray(line.get_xdata()).tolist()) == DOUBLING.x
        assert tuple(np.asarray(line.get_ydata()).tolist()) == one.values
    assert (
        len({line.get_color() for line in axes.lines})
        == len({line.get_marker() for line in axes.lines})
        == 2
    )
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    assert set(np.asarray(corners)[:, 1].tolist()) == {0.9, 1.1}
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        f"{2**power}" for power in range(9, -1, -1)
    ]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("d_k", "variance")


def test_lines_are_named_in_their_order() -> None:
    """The first of the series is the first of the legend, wherever it ends; one line that the axis names has none."""
    rising = Series(name="rising", values=(0.0, 0.5, 1.0))
    falling = Series(name="falling", values=(1.0, 0.5, 0.0))
    lines = Lines(
        title="t",
        x=(0.0, 1.0, 2.0),
        x_title="x",
        series=(rising, falling),
        y_title="y",
        y_limits=(0.0, 1.0),
    )
    for series in (lines.series, lines.series[::-1]):
        axes = drawn(figure(story(replace(lines, series=series))))[0]
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == [one.name for one in series]
    assert axes.get_ylim() == (0.0, 1.0)
    assert axes.get_xscale() == "linear"
    one = replace(lines, series=(replace(rising, name="y"),))
    assert drawn(figure(story(one)))[0].get_legend() is None


def test_a_line_on_another_lets_it_be_seen() -> None:
    """Of two equal lines the later is dashed with hollow marks; one that differs is not."""
    one = Series(name="one", values=(0.0, 0.5, 1.0))
    series = (one, replace(one, name="two"), replace(one, name="three", values=(1.0, 0.5, 0.0)))
    lines = Lines(title="t", x=(0.0, 1.0, 2.0), x_title="x", series=series, y_title="y")
    below, above, apart = drawn(figure(story(lines)))[0].lines
    assert below.get_linestyle() == apart.get_linestyle() == "-"
    assert above.get_linestyle() == "--"
    assert above.get_markerfacecolor() == "none" != below.get_markerfacecolor()


def test_a_bar_of_nothing_says_so() -> None:
    """Where numbers have no room above the bars, those that cannot be seen have their 0."""
    series = (Series(name="a", values=(0.0, 1e-16) * 9), Series(name="b", values=(0.5,) * 18))
    bars = Bars(title="t", labels=("word",) * 18, series=series, y_title="y")
    texts = [text.get_text() for text in drawn(figure(story(bars)))[0].texts]
    assert [text for text in texts if text] == ["0"] * 18


def test_panels_of_one_row_are_level() -> None:
    """Titles begin at one height, and charts are as tall as the tallest matrix beside them."""
    tall = Matrix(title="tall", values=np.eye(12), rows=("word",) * 12, columns=("word",) * 12)
    made = figure(story(MASKED, tall, BARS, DOUBLING))
    made.draw_without_rendering()
    panels = drawn(made)
    tops = [axes._left_title.get_window_extent().y1 for axes in panels]  # type: ignore[attr-defined]
    assert max(tops) - min(tops) < 2
    masked, matrix, *charts = (axes.get_window_extent().height for axes in panels)
    assert masked < matrix
    assert charts == pytest.approx([matrix] * 2)


def test_more_lines_than_colours_differ() -> None:
    """Nine lines: no two share both colour and style."""
    axes = drawn(figure(story(MANY)))[0]
    assert len({(line.get_color(), line.get_linestyle()) for line in axes.lines}) == 9


def test_bars_are_the_series() -> None:
    """Lengths, whiskers, numbers above, labels below in lines; bars of one label stand side by side."""
    from matplotlib.container import BarContainer

    axes = drawn(figure(story(BARS)))[0]
    first, second = (
        container for container in axes.containers if isinstance(container, BarContainer)
    )
    for container, one in zip((first, second), BARS.series, strict=True):
        assert tuple(bar.get_height() for bar in container.patches) == one.values
    for one_bar, other in zip(first.patches, second.patches, strict=True):
        assert one_bar.get_x() + one_bar.get_width() <= other.get_x() + 1e-9
    assert first.errorbar is None
    assert second.errorbar is not None
    (whiskers,) = second.errorbar.lines[2]
    ends = [np.asarray(segment)[:, 1].tolist() for segment in whiskers.get_segments()]
    assert ends == [
        list(pair) for pair in zip(BARS.series[1].low, BARS.series[1].high, strict=True)
    ]
    assert sorted(text.get_text() for text in axes.texts) == [
        "0.12",
        "0.25",
        "0.25",
        "0.25",
        "0.50",
        "0.62",
    ]
    assert [label.get_text().split() for label in axes.get_xticklabels()] == [
        label.split() for label in BARS.labels
    ]
    assert axes.get_ylabel() == "weight"
    assert axes.get_ylim()[0] == 0


# Files.


def test_files() -> None:
    """PNG, SVG and PDF, the same each time; PNG is no larger than screens can show, and says what it is."""
    from PIL import Image

    made = story(MASKED, BARS)
    for suffix, begins in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        first, second = BytesIO(), BytesIO()
        draw(made).write(first, suffix)
        typefaces = draw(made).write(second, suffix)
        assert first.getvalue().startswith(begins)
        assert first.getvalue() == second.getvalue()
        assert typefaces.missing == ""
        if suffix == ".png":
            with Image.open(first) as image:
                assert image.text["Title"] == made.title  # type: ignore[attr-defined]
                assert image.text["Description"] == made.receipt  # type: ignore[attr-defined]
                assert max(image.size) <= 4000
    unknown = draw(story(MASKED, title="\U000f0000")).write(BytesIO(), ".png")
    assert unknown.missing == "\U000f0000"


def test_settings_of_the_user_do_not_matter() -> None:
    """A style that a notebook has set changes nothing, and is there afterwards as before."""
    import matplotlib as mpl

    usual, styled = BytesIO(), BytesIO()
    draw(story(MASKED, DOUBLING, BARS)).write(usual, ".png")
    with mpl.rc_context(
        {"font.size": 30, "axes.facecolor": "black", "text.color": "red", "figure.autolayout": True}
    ):
        before = dict(mpl.rcParams)
        draw(story(MASKED, DOUBLING, BARS)).write(styled, ".png")
        assert dict(mpl.rcParams) == before
    assert usual.getvalue() == styled.getvalue()
