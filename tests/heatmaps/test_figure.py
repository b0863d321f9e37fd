"""Figures, by their artists and labels: what is written, what is coloured, and that nothing else is touched."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.attention import Attention, Note
from attnviz.errors import SelectionError
from attnviz.heatmaps.api import heatmap
from attnviz.heatmaps.figure import draw
from attnviz.render.figure.pattern import draw_on
from attnviz.render.figure.pen import Pen
from attnviz.render.palette import colours, ink, levels, pixels
from attnviz.render.sheet import AXES, Scale, Sheet, resolve
from attnviz.text.display import token_text
from tests.fixtures.pictures import expect_enlarged_whole

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.transforms import Bbox

Make = Callable[..., Attention]
Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]

STYLES = ["dark_background", "ggplot", "fivethirtyeight", "classic"]

STRANGE: dict[str, dict[str, Any]] = {
    "sizes": {
        "font.size": 40,
        "axes.titlesize": 50,
        "axes.labelsize": 50,
        "xtick.labelsize": 40,
        "axes.titlepad": 40,
    },
    "fonts": {
        "font.family": "serif",
        "font.weight": "bold",
        "font.style": "italic",
        "axes.labelweight": "bold",
    },
    "colours": {
        "text.color": "red",
        "axes.labelcolor": "red",
        "axes.facecolor": "black",
        "figure.facecolor": "red",
    },
    "TeX": {"text.usetex": True, "text.parse_math": True},
    "images": {"image.origin": "lower", "image.interpolation": "bicubic", "image.aspect": "auto"},
    "axes": {
        "axes.grid": True,
        "axes.spines.left": False,
        "axes.linewidth": 9,
        "axes.xmargin": 0.3,
        "axes.autolimit_mode": "round_numbers",
        "axes.axisbelow": False,
    },
    "ticks": {
        "xtick.minor.visible": True,
        "ytick.right": True,
        "ytick.labelright": True,
        "xtick.major.size": 30,
        "xaxis.labellocation": "left",
        "xtick.alignment": "left",
    },
    "lines": {"lines.marker": "o", "lines.linestyle": "--", "path.sketch": (1, 100, 2)},
    "tight layout": {"figure.autolayout": True},
    "constrained layout": {"figure.constrained_layout.use": True},
    "files": {
        "figure.dpi": 30,
        "savefig.dpi": 30,
        "savefig.bbox": "tight",
        "savefig.facecolor": "red",
        "savefig.transparent": True,
    },
}


def figure(*given: Any, **more: Any) -> Figure:
    """The figure of a picture."""
    return draw(*given, **more).figure


def drawn(sheet: Sheet, suffix: str = ".png") -> bytes:
    """A sheet as a file."""
    buffer = BytesIO()
    draw(sheet).write(buffer, suffix)
    return buffer.getvalue()


def words(shown: list[tuple[str, Bbox]]) -> str:
    """All that is written in a figure, from top to bottom, lines that were wrapped joined again."""
    return " ".join(text for text, _ in sorted(shown, key=lambda item: (-item[1].y1, item[1].x0)))


def images(made: Figure) -> tuple[list[AxesImage], list[AxesImage]]:
    """The panels, and the colour bar."""
    found = [image for axes in made.axes for image in axes.images]
    bars = [image for image in found if rgb(image).shape[:2] == (256, 1)]
    return [image for image in found if image not in bars], bars


def rgb(image: AxesImage) -> np.ndarray:
    """An image's red, green and blue."""
    return np.asarray(image.get_array())[..., :3]


def pattern_axes(made: Figure) -> Axes:
    """The axes of a single pattern: the only ones with ticks."""
    (axes,) = (axes for axes in made.axes if axes.axison)
    return axes


def look(artist: Artist) -> tuple[object, ...] | None:
    """How an artist looks, apart from its place; None for one that cannot be seen."""
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle
    from matplotlib.text import Text

    match artist:
        case Text():
            font = (
                artist.get_fontfamily(),
                artist.get_fontsize(),
                artist.get_fontweight(),
                artist.get_fontstyle(),
            )
            how = (
                artist.get_usetex(),
                artist.get_parse_math(),
                artist.get_color(),
                artist.get_rotation(),
            )
            return (artist.get_text(), *font, *how) if artist.get_text() else None
        case AxesImage():
            return artist.origin, artist.get_interpolation(), rgb(artist).tolist()
        case Line2D():
            return (
                artist.get_color(),
                artist.get_linewidth(),
                artist.get_linestyle(),
                artist.get_marker(),
            )
        case Rectangle():
            return artist.get_edgecolor(), artist.get_linewidth(), artist.get_fill()
        case Axes():
            return artist.get_xlim(), artist.get_ylim(), artist.axison
    return ()


def artists(made: Figure) -> list[tuple[str, ...]]:
    """What every visible artist of a figure looks like, and where it is."""
    made.draw_without_rendering()
    renderer = made.canvas.get_renderer()  # type: ignore[attr-defined]
    found: list[tuple[object, ...]] = [
        (made.get_size_inches().tolist(), made.dpi, made.get_facecolor())
    ]
    for axes in made.axes:
        inside: list[Artist] = [*axes.texts, *axes.images, *axes.lines, *axes.patches, axes]
        if axes.axison:
            ticks = [
                *axes.get_xticklabels(),
                *axes.get_yticklabels(),
                *axes.get_xgridlines(),
                *axes.get_ygridlines(),
            ]
            inside += [*ticks, axes.xaxis.label, axes.yaxis.label, *axes.spines.values()]
        for artist in inside:
            seen = look(artist)
            if artist.get_visible() and seen is not None:
                box = np.round(artist.get_window_extent(renderer).extents, 1).tolist()
                common = (
                    type(artist).__name__,
                    artist.zorder,
                    artist.get_alpha(),
                    artist.get_sketch_params(),
                )
                found.append((*common, *seen, box))
    return [tuple(map(str, entry)) for entry in found]


@pytest.fixture
def user_settings() -> Iterator[dict[str, Any]]:
    """Matplotlib's settings, to be changed at will: they are put back afterwards."""
    import matplotlib as mpl

    with mpl.rc_context():
        yield mpl.rcParams  # type: ignore[misc]  # a dictionary to all who use it


# What is said.


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (1, 5), (2, 3), (5, 1)])
@pytest.mark.parametrize("scale", ["shared", "panel", "unit"])
def test_every_figure_says_what_it_is(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int, scale: Scale
) -> None:
    """Sentence, model, kind, size, axes, scale, notes and receipt are all written."""
    record = fixed_record(
        n_layers=n_layers,
        n_heads=n_heads,
        notes=(
            Note.of("text", text="special tokens hidden"),
            Note.of("text", text="cut at 6 tokens"),
        ),
    )
    sheet = resolve(record, scale)
    text = words(texts_of(figure(sheet)))
    for part in (sheet.sentence, sheet.model, AXES[0], sheet.legend, *sheet.notes, sheet.proof):
        assert part in text, part
    assert sheet.size in text


def test_an_unverified_record_says_so(fixed_record: Make, texts_of: Texts) -> None:
    """A picture of a record without receipt says that nothing was verified."""
    assert "not verified" in words(texts_of(figure(resolve(fixed_record(receipt=None)))))


def test_one_pattern_names_its_axes_and_tokens(fixed_record: Make) -> None:
    """Rows are named after queries, columns after keys, in order, and each side says which it is."""
    sheet = resolve(
        fixed_record("나는 너를 사랑해", keys="I love you . </s>", layers=(3,), heads=(7,))
    )
    axes = pattern_axes(figure(sheet))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["나는", "너를", "사랑해"]
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "I",
        "love",
        "you",
        ".",
        "</s>",
    ]
    assert axes.get_xticks().tolist() == [0, 1, 2, 3, 4]
    assert axes.get_yticks().tolist() == [0, 1, 2]
    assert "key" in axes.get_xlabel()
    assert "query" in axes.get_ylabel()


def test_the_first_query_is_at_the_top(fixed_record: Make, texts_of: Texts) -> None:
    """Reading goes down and to the right, as in text."""
    shown = dict(texts_of(figure(resolve(fixed_record("one two", keys="three five seven")))))
    assert shown["one"].y0 > shown["two"].y1
    assert shown["three"].x1 < shown["five"].x1 < shown["seven"].x1
    assert shown["one"].x1 < shown["three"].x0
    assert shown["three"].y0 > shown["one"].y1


def test_a_sheet_names_every_layer_head_and_token(fixed_record: Make, texts_of: Texts) -> None:
    """On a grid: each layer once, each head once, the queries once a line of panels, the keys once a column."""
    record = fixed_record(
        "one two", keys="three five seven", n_layers=2, n_heads=3, layers=(1, 4), heads=(0, 5, 11)
    )
    shown = [text for text, _ in texts_of(figure(resolve(record)))]
    for name in ("layer 1", "layer 4", "head 0", "head 5", "head 11"):
        assert shown.count(name) == 1
    assert [shown.count(name) for name in ("one", "two", "three", "five", "seven")] == [
        2,
        2,
        3,
        3,
        3,
    ]


def test_panels_stand_under_their_head_beside_their_layer(
    fixed_record: Make, texts_of: Texts
) -> None:
    """Each panel's place on the grid is that of its layer's name and of its head's."""
    sheet = resolve(fixed_record(n_layers=3, n_heads=4))
    made = figure(sheet)
    shown = dict(texts_of(made))
    panels, _ = images(made)
    for panel, image in zip(sheet.panels, panels, strict=True):
        box = image.get_window_extent()
        head, layer = shown[f"head {panel.head}"], shown[f"layer {panel.layer}"]
        assert box.x0 < (head.x0 + head.x1) / 2 < box.x1
        assert box.y0 < (layer.y0 + layer.y1) / 2 < box.y1


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 5), (5, 1)])
def test_panels_of_one_layer_or_head_have_their_names(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int
) -> None:
    """Where panels run on in lines, each says which it is."""
    sheet = resolve(fixed_record(n_layers=n_layers, n_heads=n_heads))
    text = words(texts_of(figure(sheet)))
    for panel in sheet.panels:
        assert sheet.name(panel) in text


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 5), (2, 3)])
def test_panels_on_their_own_scale_say_its_end(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int
) -> None:
    """With `panel`, the largest weight of each is written above it; the colour bar ends at "max"."""
    sheet = resolve(fixed_record(n_layers=n_layers, n_heads=n_heads), "panel")
    text = words(texts_of(figure(sheet)))
    found = sorted(re.findall(r"max (\d[\d.e-]*)", text.replace(sheet.proof, "")))
    assert found == sorted(f"{panel.top:.3g}" for panel in sheet.panels)


def test_a_cut_title_is_said_to_be_cut(fixed_record: Make, texts_of: Texts) -> None:
    """A very long sentence ends in an ellipsis; its tokens are all in the picture."""
    labels = [f"extraordinarily{i}" for i in range(40)]
    shown = [text for text, _ in texts_of(figure(resolve(fixed_record(labels))))]
    assert any(text.startswith("“") for text in shown)
    assert sum("…" in text for text in shown) == 1
    assert not any("… …" in text for text in shown)
    for label in labels:
        assert shown.count(label) == 2


def test_a_sentence_without_spaces_is_broken(
    fixed_record: Make, texts_of: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chinese, or a long address, fills the title's lines; where to break it is not tried letter by letter."""
    counted = []
    width = Pen.width

    def count(pen: Pen, text: str, size: float = 10.0) -> float:
        counted.append(text)
        return width(pen, text, size)

    monkeypatch.setattr(Pen, "width", count)
    shown = [
        text
        for text, _ in texts_of(
            figure(resolve(fixed_record("a b", text="나는너희모두를사랑해" * 500)))
        )
    ]
    assert sum("너희모두를사랑해" in text for text in shown) == 3
    assert len(counted) < 150


def test_thinned_labels_are_said(fixed_record: Make, texts_of: Texts) -> None:
    """Where there are more tokens than room for names, the picture says that only some are named."""
    shown = [
        text for text, _ in texts_of(figure(resolve(fixed_record([f"w{i}" for i in range(240)]))))
    ]
    named = [text for text in shown if re.fullmatch(r"w\d+", text)]
    assert len(named) < 480
    assert any("is named" in text for text in shown)


# What is coloured.


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (1, 5), (2, 3)])
@pytest.mark.parametrize("scale", ["shared", "panel", "unit"])
@pytest.mark.parametrize("palette", ["magma", "viridis_r"])
def test_colours_are_the_palettes(
    fixed_record: Make, n_layers: int, n_heads: int, scale: Scale, palette: str
) -> None:
    """Every cell has the palette's colour of its weight on its panel's scale; below 0.005 it is blank, or that of 0."""
    sheet = resolve(
        fixed_record("one two three", keys="a b c d e", n_layers=n_layers, n_heads=n_heads), scale
    )
    panels, _ = images(figure(sheet, palette))
    for panel, image in zip(sheet.panels, panels, strict=True):
        expected = colours(palette)[levels(panel.matrix, panel.top)]
        expected[panel.matrix < 0.005] = 255 if palette == "magma" else colours(palette)[0]
        np.testing.assert_array_equal(rgb(image), expected)
        assert image.origin == "upper"
        assert image.get_interpolation() == "none"


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 1), (2, 3)])
@pytest.mark.parametrize("scale", ["shared", "unit"])
def test_the_colour_bar_is_the_panels_scale(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int, scale: Scale
) -> None:
    """The bar runs through the whole palette, with round numbers from 0 up where they stand on the panels' scale."""
    sheet = resolve(fixed_record(n_layers=n_layers, n_heads=n_heads), scale)
    made = figure(sheet)
    shown = texts_of(made)
    (bar,) = images(made)[1]
    np.testing.assert_array_equal(rgb(bar)[:, 0], colours()[::-1])
    box = bar.get_window_extent()

    marks = [(text, place) for text, place in shown if 0 < place.x0 - box.x1 < 30]
    assert len(marks) in range(3, 7)
    assert all(re.fullmatch(r"0|1|0\.\d", text) for text, _ in marks)
    for text, place in marks:
        share = float(text) / sheet.panels[0].top
        assert (place.y0 + place.y1) / 2 == pytest.approx(box.y0 + share * box.height, abs=2.5)


@pytest.mark.parametrize("palette", ["magma", "gray_r"])
def test_numbers_in_cells_are_the_weights(fixed_record: Make, palette: str) -> None:
    """Each cell's number is its weight to two decimals, in the ink that can be read there; 0 leaves it blank."""
    record = fixed_record("All you need is love", causal=True)
    sheet = resolve(record)
    matrix = sheet.panels[0].matrix
    axes = pattern_axes(figure(sheet, palette))
    found = {
        (round(text.get_position()[1]), round(text.get_position()[0])): text for text in axes.texts
    }
    assert set(found) == {
        (row, column) for row in range(5) for column in range(5) if matrix[row, column] >= 0.005
    }
    white = ink(colours(palette))[levels(matrix, sheet.panels[0].top)]
    for (row, column), text in found.items():
        weight = float(matrix[row, column])
        assert abs(float(text.get_text()) - weight) <= 0.005 + 1e-6
        assert (text.get_color() == "white") == white[row, column]


@pytest.mark.parametrize("tokens", [1, 3, 7, 12, 16, 23, 40, 60])
def test_numbers_stand_only_where_they_fit(fixed_record: Make, tokens: int) -> None:
    """A number never reaches over the edge of its cell; where cells are too small there are none."""
    made = figure(resolve(fixed_record([f"w{i}" for i in range(tokens)])))
    axes = pattern_axes(made)
    made.draw_without_rendering()
    edge = axes.get_window_extent().width / tokens
    matrix = resolve(fixed_record([f"w{i}" for i in range(tokens)])).panels[0].matrix
    assert len(axes.texts) in {0, (matrix >= 0.005).sum()}
    assert bool(axes.texts) == (tokens < 30)
    for text in axes.texts:
        box = text.get_window_extent()
        assert box.width < edge
        assert box.height < edge


# Somebody's own axes.


@pytest.mark.parametrize("n_heads", [1, 3])
def test_all_grows_with_a_picture(fixed_record: Make, n_heads: int) -> None:
    """One pattern with its labels and numbers, and a sheet of several."""
    expect_enlarged_whole(figure(resolve(fixed_record("a b c d", n_heads=n_heads)), annot=True))


def own_axes(size: tuple[float, float] = (6, 6)) -> Axes:
    """Axes of a figure that somebody made."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(size)
    FigureCanvasAgg(made)
    return made.add_axes((0.2, 0.05, 0.7, 0.7))


def test_ax_is_drawn_on(fixed_record: Make) -> None:
    """The axes given are drawn on and returned; the figure gets no others, and its other axes stay empty."""
    axes = own_axes()
    figure_given = axes.figure
    other = figure_given.add_axes((0.95, 0.0, 0.05, 0.05))
    record = fixed_record(n_layers=2, n_heads=3)
    assert heatmap(record, layer=1, head=-1, ax=axes) is axes
    assert figure_given.axes == [axes, other]
    assert not other.images
    assert not other.texts
    expected = pixels(record.pattern(1, 2), float(record.weights.max()), colours())
    np.testing.assert_array_equal(rgb(axes.images[0]), expected)
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        token.text for token in record.query_tokens
    ]


def test_ax_says_what_it_is(fixed_record: Make) -> None:
    """Above somebody's axes stand layer and head, and no more; the image keeps model, scale and receipt."""
    axes = heatmap(fixed_record(n_layers=2, n_heads=3), layer=1, head=2, ax=own_axes())
    assert axes.get_title() == "head 1.2"
    assert not axes.get_title(loc="left")
    for part in ("made by hand", "0 to ", "verified: max difference"):
        assert part in str(axes.images[0].get_label())
    assert "key" in axes.get_xlabel()
    assert "query" in axes.get_ylabel()


@pytest.mark.parametrize("tokens", [1, 5, 11, 40])
def test_ax_texts_do_not_overlap(fixed_record: Make, texts_of: Texts, tokens: int) -> None:
    """On axes of a usual size, title, names and numbers keep clear of each other."""
    axes = own_axes((8, 8))
    heatmap(fixed_record([f"word{i}" for i in range(tokens)]), ax=axes)
    shown = texts_of(axes.figure)  # type: ignore[arg-type]
    for index, (text, box) in enumerate(shown):
        for other, place in shown[index + 1 :]:
            across = min(box.x1, place.x1) - max(box.x0, place.x0)
            down = min(box.y1, place.y1) - max(box.y0, place.y0)
            assert min(across, down) <= 1, (text, other)


@pytest.mark.parametrize(
    ("title", "shown"), [("auto", "head 0.0"), ("my $x$ {}", "my $x$ {}"), (None, "")]
)
def test_ax_has_the_title_wanted(fixed_record: Make, title: str | None, shown: str) -> None:
    """Layer and head, a title of the user's own, or none."""
    axes = own_axes()
    draw_on(axes, resolve(fixed_record()), title=title)
    assert axes.get_title() == shown


@pytest.mark.parametrize(
    ("annot", "tokens", "n"), [(None, 4, 1), (None, 80, 0), (False, 4, 0), (True, 80, 1)]
)
def test_ax_has_the_numbers_wanted(
    fixed_record: Make, annot: bool | None, tokens: int, n: int
) -> None:
    """Numbers where they can be read, everywhere, or nowhere."""
    axes = own_axes()
    sheet = resolve(fixed_record([f"w{i}" for i in range(tokens)]))
    draw_on(axes, sheet, annot=annot)
    assert len(axes.texts) == n * (sheet.panels[0].matrix >= 0.005).sum()


def test_ax_gives_room_to_a_colour_bar(fixed_record: Make, texts_of: Texts) -> None:
    """The bar stands at the right of the axes and ends at the largest weight; nothing overlaps."""
    axes = own_axes((5, 4))
    sheet = resolve(fixed_record())
    draw_on(axes, sheet, cbar=True)
    made = axes.get_figure(root=True)
    assert made is not None
    (bar,) = (other for other in made.axes if other is not axes)
    np.testing.assert_allclose(bar.get_ylim(), (0.0, sheet.panels[0].top), rtol=1e-6)
    shown = texts_of(made)
    assert min(box.x0 for text, box in shown if text == "0.0") > axes.get_window_extent().x1
    made.draw_without_rendering()
    assert bar.get_window_extent().x0 > axes.get_window_extent().x1


def test_ax_in_a_subfigure(fixed_record: Make) -> None:
    """Axes of a subfigure are drawn on like any others."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure((8, 4))
    FigureCanvasAgg(made)
    left, right = made.subfigures(1, 2)  # type: ignore[misc]  # an array, where there are several
    axes = right.add_subplot()
    assert heatmap(fixed_record(), ax=axes) is axes
    assert not left.axes


def test_ax_on_a_dark_figure(fixed_record: Make) -> None:
    """On somebody's dark figure the words round the picture are light."""
    axes = own_axes()
    axes.figure.set_facecolor("black")
    heatmap(fixed_record(), ax=axes)
    assert axes.get_xticklabels()[0].get_color() == "white"


def test_ax_holds_one_pattern(fixed_record: Make) -> None:
    """Axes for more than one pattern are refused, and the error says what to give."""
    with pytest.raises(SelectionError, match="layer 0, 3 heads: give layer and head"):
        heatmap(fixed_record(n_layers=2, n_heads=3), layer=0, ax=own_axes())


def test_without_ax_a_figure_is_made(fixed_record: Make) -> None:
    """A new figure for one pattern returns the pattern's axes; for a sheet, the sheet's."""
    record = fixed_record(n_layers=2, n_heads=3)
    one = heatmap(record, layer=1, head=0)
    assert [label.get_text() for label in one.get_xticklabels()] == [
        token.text for token in record.key_tokens
    ]
    sheet = heatmap(record, layer=1)
    assert len(images(sheet.figure)[0]) == 3  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "says"), [({"layer": 2}, "no layer 2"), ({"head": 9}, "no head 9")]
)
def test_what_is_not_there_is_refused(fixed_record: Make, wrong: dict[str, int], says: str) -> None:
    """A layer or head that the record does not hold is an error that says what it holds."""
    with pytest.raises(SelectionError, match=says):
        heatmap(fixed_record(n_layers=2, n_heads=3), **wrong)  # type: ignore[arg-type]


def test_an_unknown_palette_is_refused(fixed_record: Make) -> None:
    """So is a palette that does not exist."""
    with pytest.raises(SelectionError, match="no palette 'jets'"):
        heatmap(fixed_record(), palette="jets")


@pytest.mark.parametrize("n_heads", [1, 2])
def test_a_figure_without_title_or_colour_bar(
    fixed_record: Make, texts_of: Texts, n_heads: int
) -> None:
    """Both can be left out, so that the figure is smaller; the notes and the receipt stay."""
    sheet = resolve(fixed_record(n_layers=n_heads, n_heads=n_heads))
    whole, bare = figure(sheet), figure(sheet, title=None, cbar=False)
    assert not images(bare)[1]
    assert (bare.get_size_inches() <= whole.get_size_inches()).all()
    assert bare.get_figheight() < whole.get_figheight()
    text = words(texts_of(bare))
    assert sheet.sentence not in text
    assert sheet.model not in text
    assert sheet.proof in text
    assert "My own title" in words(texts_of(figure(sheet, title="My own title")))


@pytest.mark.parametrize(("annot", "n"), [(None, 0), (False, 0), (True, 1)])
def test_a_sheet_has_the_numbers_wanted(fixed_record: Make, annot: bool | None, n: int) -> None:
    """In the panels of a grid numbers stand only if they are asked for; then they can be read and fit."""
    record = fixed_record(n_layers=2, n_heads=2)
    made = figure(resolve(record), annot=annot)
    numbers = [
        text
        for text in made.axes[0].texts
        if re.fullmatch(r"\.\d\d|1", text.get_text()) and text.zorder == 4
    ]
    assert len(numbers) == n * (record.weights >= 0.005).sum()
    panel = images(made)[0][0].get_window_extent()
    assert all(float(text.get_fontsize()) >= 4.5 for text in numbers)
    assert all(text.get_window_extent().width < panel.width / 6 for text in numbers)


# What is left alone.


def test_nothing_global_changes(fixed_record: Make) -> None:
    """Settings, pyplot's figures and the font manager's choices are what they were."""
    import matplotlib as mpl
    from matplotlib import pyplot as plt
    from matplotlib.font_manager import fontManager

    opened = plt.figure()
    before = dict(mpl.rcParams), plt.get_fignums(), plt.gcf()
    fonts = (
        dict(fontManager.defaultFont),
        dict(fontManager.defaultFamily),
        list(fontManager.ttflist),
    )
    for n_heads in (1, 3):
        sheet = resolve(fixed_record("나는 모두를 사랑해", n_heads=n_heads))
        for suffix in (".png", ".svg", ".pdf"):
            drawn(sheet, suffix)
    heatmap(fixed_record(), ax=own_axes())
    assert (dict(mpl.rcParams), plt.get_fignums(), plt.gcf()) == before
    assert (dict(fontManager.defaultFont), dict(fontManager.defaultFamily)) == fonts[:2]
    assert fontManager.ttflist[: len(fonts[2])] == fonts[2]
    plt.close(opened)


def test_pyplot_is_not_even_imported() -> None:
    """Drawing needs neither pyplot nor seaborn."""
    code = """
import sys
import numpy as np
from attnviz.attention import Attention, Token
from attnviz.heatmaps.figure import draw_record
token = (Token(text="a", piece="a"),)
one = np.ones((1, 1, 1, 1), np.float32)
draw_record(Attention(weights=one, query_tokens=token, key_tokens=token, kind="encoder", model="m")).png()
print([name for name in ("matplotlib.pyplot", "seaborn", "torch", "rich") if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def usual(fixed_record: Make) -> dict[int, tuple[Sheet, list[tuple[str, ...]], bytes]]:
    """Two sheets, of one panel and of four, with their artists and files as Matplotlib draws them out of the box."""
    sheets = {n: resolve(fixed_record("one two three", n_layers=n, n_heads=n)) for n in (1, 2)}
    return {n: (sheet, artists(figure(sheet)), drawn(sheet)) for n, sheet in sheets.items()}


Usual = dict[int, tuple[Sheet, list[tuple[str, ...]], bytes]]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("n_heads", [1, 2])
def test_a_style_changes_nothing(
    usual: Usual, user_settings: dict[str, Any], style: str, n_heads: int
) -> None:
    """Whatever style a notebook uses, the artists are the same, and so is the file."""
    import matplotlib as mpl
    import matplotlib.style

    sheet, expected, file = usual[n_heads]
    assert user_settings  # put back afterwards
    matplotlib.style.use(style)
    made = figure(sheet)
    assert drawn(sheet) == file
    mpl.rcdefaults()  # to measure texts alike
    assert artists(made) == expected


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("n_heads", [1, 2])
def test_strange_settings_change_nothing(
    usual: Usual, user_settings: dict[str, Any], strange: str, n_heads: int
) -> None:
    """Whatever single settings a notebook has changed, the artists are the same, and so is the file."""
    import matplotlib as mpl

    sheet, expected, file = usual[n_heads]
    user_settings.update(STRANGE[strange])
    made = figure(sheet)
    assert drawn(sheet) == file
    mpl.rcdefaults()  # to measure texts alike
    assert artists(made) == expected


def test_strange_settings_do_not_turn_somebodys_axes_over(
    fixed_record: Make, user_settings: dict[str, Any]
) -> None:
    """On axes of the user's own, too, the first query is at the top, and dollars are no mathematics."""
    user_settings["image.origin"] = "lower"
    axes = heatmap(fixed_record(["$a$", "b"]), ax=own_axes())
    assert axes.images[0].origin == "upper"
    low, high = axes.get_ylim()
    assert low > high


@pytest.mark.parametrize("n_heads", [1, 3])
def test_mathematics_and_tex_are_characters(
    fixed_record: Make, texts_of: Texts, n_heads: int
) -> None:
    """Dollar signs, backslashes, carets and percent signs are drawn as they are."""
    labels = ["$x^2$", r"\alpha", "$$", "100%", "a_b", r"\$", "{}"]
    made = figure(
        resolve(
            fixed_record(
                labels,
                n_heads=n_heads,
                notes=(Note.of("text", text="costs $5 to $9"),),
                model="a$b$c",
            )
        )
    )
    shown = [text for text, _ in texts_of(made)]
    for label in labels:
        assert label in shown
    joined = " ".join(shown)
    for part in (r"“$x^2$ \alpha", "costs $5 to $9", "a$b$c"):
        assert part in joined
    from matplotlib.text import Text

    for text in made.findobj(Text):
        assert isinstance(text, Text)
        assert not text.get_text() or not (text.get_parse_math() or text.get_usetex())


# The files.


def test_png_holds_its_receipt(fixed_record: Make) -> None:
    """The receipt, the sentence and how to read the picture travel inside the PNG."""
    from PIL import Image

    sheet = resolve(fixed_record())
    with Image.open(BytesIO(drawn(sheet))) as image:
        about = image.info
    assert about["Title"] == sheet.model
    for part in (sheet.proof, sheet.sentence, AXES[0], sheet.legend):
        assert part in about["Description"]


def test_svg_holds_its_receipt(fixed_record: Make) -> None:
    """They travel inside the SVG."""
    sheet = resolve(fixed_record())
    about = " ".join(element.text or "" for element in ET.fromstring(drawn(sheet, ".svg")).iter())
    for part in (sheet.model, sheet.proof, sheet.sentence, AXES[0], sheet.legend):
        assert part in about


def test_pdf_holds_its_receipt(fixed_record: Make) -> None:
    """They travel inside the PDF."""
    sheet = resolve(fixed_record())
    subject = re.search(rb"/Subject \((.*?)(?<!\\)\)", drawn(sheet, ".pdf"), re.DOTALL)
    assert subject is not None
    raw = re.sub(rb"\\(\d{3})", lambda match: bytes([int(match[1], 8)]), subject[1])
    raw = raw.replace(rb"\n", b"\n").replace(rb"\r", b"\r")
    raw = re.sub(rb"\\([()\\])", rb"\1", raw)
    about = (
        raw.decode("utf-16")
        if raw.startswith((b"\xfe\xff", b"\xff\xfe"))
        else raw.decode("latin-1")
    )
    for part in (sheet.proof, sheet.sentence, AXES[0], sheet.legend):
        assert part in about


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
@pytest.mark.parametrize("n_heads", [1, 3])
def test_the_same_record_is_the_same_file(fixed_record: Make, suffix: str, n_heads: int) -> None:
    """Two equal records make the same file, byte for byte: no date, no random names."""
    first, second = (
        drawn(resolve(fixed_record("나는 사랑해", n_heads=n_heads)), suffix) for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_file_is_written_where_it_is_told(
    fixed_record: Make, tmp_path: Path, suffix: str
) -> None:
    """A path is written to as a file is, in the format named, whatever the path ends in."""
    path = tmp_path / "picture.tmp"
    draw(resolve(fixed_record())).write(path, suffix)
    start = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}[suffix]
    assert path.read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [path]


def test_a_wide_sheet_stays_within_its_pixels(fixed_record: Make) -> None:
    """A PNG of very many heads has no side of more than 5000 pixels."""
    from PIL import Image

    with Image.open(BytesIO(drawn(resolve(fixed_record(n_layers=12, n_heads=20))))) as image:
        assert max(image.size) <= 5000


def test_a_head_that_gives_nothing_is_drawn(fixed_record: Make, texts_of: Texts) -> None:
    """A record whose rows are all 0, as after hiding what a head looked at, has the lowest colour everywhere."""
    record = fixed_record(
        "a b c", weights=np.zeros((1, 1, 3, 3), np.float32), short_rows=("dropped",)
    )
    made = figure(resolve(record))
    assert (rgb(images(made)[0][0]) == colours()[0]).all()
    assert texts_of(made)


raw_text = st.text(st.characters(exclude_categories=[]), min_size=1, max_size=12)


# no machine has a font for every character
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@given(pieces=st.lists(raw_text, min_size=1, max_size=5), n_heads=st.sampled_from([1, 2]))
@settings(max_examples=25)
def test_any_sentence_draws(fixed_record: Make, pieces: list[str], n_heads: int) -> None:
    """Any Unicode at all becomes a picture, as PNG and as a well-formed SVG."""
    labels = [token_text(piece, typed=piece) for piece in pieces]
    sheet = resolve(
        fixed_record(
            labels, n_heads=n_heads, text="".join(pieces), pair=pieces[0], model=pieces[-1]
        )
    )
    if n_heads == 1:
        assert drawn(sheet).startswith(b"\x89PNG")
    else:
        ET.fromstring(drawn(sheet, ".svg"))
