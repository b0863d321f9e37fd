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
from attnviz.capture.attend import attend
from attnviz.errors import SelectionError
from attnviz.heatmaps.api import heatmap
from attnviz.heatmaps.figure import draw, draw_on
from attnviz.look import Look
from attnviz.render.palette import colours, levels, text_colours
from attnviz.render.picture import style_of
from attnviz.render.sheet import AXES, Scale, Sheet, resolve
from attnviz.render.theme import LIGHT
from attnviz.text.display import token_text
from attnviz.text.messages import _, language
from tests.fixtures.pictures import expect_apart, picture_of, tiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

Make = Callable[..., Attention]
Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]


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


def names(made: Figure) -> tuple[list[str], list[str]]:
    """The names along a single pattern: of its queries, and of its keys."""
    axes = made.axes[0]
    queries, keys = axes.get_yticklabels(), axes.get_xticklabels()
    return [label.get_text() for label in queries], [label.get_text() for label in keys]


@pytest.fixture
def user_settings() -> Iterator[dict[str, Any]]:
    """Matplotlib's settings, to be changed at will: they are put back afterwards."""
    import matplotlib as mpl

    with mpl.rc_context():
        yield mpl.rcParams  # type: ignore[misc]  # a dictionary to all who use it


# What is said.


def rings(made: Figure) -> list[Bbox]:
    """The places of the rings round panels, in pixels."""
    from matplotlib.colors import to_rgba

    return [
        patch.get_window_extent()
        for axes in made.axes
        for patch in axes.findobj(lambda artist: hasattr(artist, "get_edgecolor"))
        if np.array_equal(patch.get_edgecolor(), to_rgba(LIGHT.accent))  # type: ignore[attr-defined]
    ]


@pytest.mark.parametrize("style", ["sheet", "slides"])
def test_a_sheet_names_the_clearest_link_and_rings_its_head(texts_of: Texts, style: Any) -> None:
    """The finding stands above the sentence; the ring is round one panel only, that of the head it names."""
    made = picture_of(attend("I love all you", "toy"), style=style).figure
    shown = words(texts_of(made))
    finding = "“you” attends most to “I”: 65% (layer 0, head 4)"
    assert finding in shown
    assert shown.index(finding) < shown.index("“I love all you”")
    (ring,) = rings(made)
    whole = made.axes[0].get_window_extent()
    across = ((ring.x0 + ring.x1) / 2 - whole.x0) / whole.width
    down = (whole.y1 - (ring.y0 + ring.y1) / 2) / whole.height
    assert (int(3 * down), int(6 * across)) == (0, 4)


def test_a_ring_needs_its_sentence(fixed_record: Make) -> None:
    """Without the finding nothing would say what it means: a paper, one head, a mean."""
    record = fixed_record(n_layers=2, n_heads=3)
    assert not rings(picture_of(record, style="paper").figure)
    assert not rings(picture_of(record.select([1], [2])).figure)
    assert not rings(picture_of(record.mean("heads")).figure)


@pytest.mark.parametrize(
    ("n_layers", "n_heads", "scale"),
    [(1, 1, "shared"), (1, 5, "panel"), (2, 3, "panel"), (5, 1, "shared")],
)
def test_every_figure_says_what_it_is(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int, scale: Scale
) -> None:
    """Sentence, model, kind, size, axes, scale, notes and receipt are all written."""
    notes = tuple(Note.of("text", text=text) for text in ("tokens hidden", "cut at 6 tokens"))
    record = fixed_record(n_layers=n_layers, n_heads=n_heads, notes=notes)
    sheet = resolve(record, scale)
    text = words(texts_of(figure(sheet)))
    for part in (sheet.sentence, sheet.model, _(AXES), sheet.legend, *sheet.notes, sheet.proof):
        assert part in text, part
    assert sheet.size in text


def test_masked_cells_are_hatched(fixed_record: Make) -> None:
    """In each panel of a causal model, the cells above the diagonal: the hatch leaves out what a query sees."""
    from matplotlib.patches import Polygon

    drawn = figure(resolve(fixed_record("one two three", causal=True, n_heads=2)))
    hatched = [patch for patch in drawn.findobj(Polygon) if patch.get_hatch()]
    assert len(hatched) == 2
    plain_figure = figure(resolve(fixed_record("one two three", n_heads=2)))
    assert not any(patch.get_hatch() for patch in plain_figure.findobj(Polygon))


def test_an_unverified_record_says_so(fixed_record: Make, texts_of: Texts) -> None:
    """A picture of a record without receipt says that nothing was verified."""
    assert "not verified" in words(texts_of(figure(resolve(fixed_record(receipt=None)))))


def test_one_pattern_names_its_axes_and_tokens(fixed_record: Make) -> None:
    """Rows are named after queries, columns after keys, in order, and each side says which it is."""
    sheet = resolve(
        fixed_record("나는 너를 사랑해", keys="I love you . </s>", layers=(3,), heads=(7,))
    )
    made = figure(sheet)
    assert names(made) == (["나는", "너를", "사랑해"], ["I", "love", "you", ".", "</s>"])
    assert "key" in made.axes[0].get_xlabel()
    assert "query" in made.axes[0].get_ylabel()


def test_the_first_query_is_at_the_top(fixed_record: Make, texts_of: Texts) -> None:
    """Reading goes down and to the right, as in text."""
    shown = dict(texts_of(figure(resolve(fixed_record("one two", keys="three five seven")))))
    assert shown["one"].y0 > shown["two"].y1
    assert shown["three"].x1 < shown["five"].x1 < shown["seven"].x1
    assert shown["one"].x1 < shown["three"].x0
    assert shown["three"].y0 > shown["one"].y1


def test_a_sheet_names_every_layer_head_and_token(fixed_record: Make, texts_of: Texts) -> None:
    """On a grid: each layer and each head once, the queries once a line of panels, the keys once a column."""
    record = fixed_record(
        "one two", keys="three five seven", n_layers=2, n_heads=3, layers=(1, 4), heads=(6, 5, 11)
    )
    shown = [text for text, _ in texts_of(figure(resolve(record)))]
    for name in ("layer", "1", "4", "head", "6", "5", "11"):
        assert shown.count(name) == 1
    assert [shown.count(name) for name in ("one", "two")] == [2, 2]
    assert [shown.count(name) for name in ("three", "five", "seven")] == [3, 3, 3]


@pytest.mark.parametrize(("n_layers", "n_heads"), [(1, 5), (2, 3)])
def test_panels_on_their_own_scale_say_its_end(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int
) -> None:
    """With `panel`, the largest weight of each is written above it; the colour bar ends at "max"."""
    sheet = resolve(fixed_record(n_layers=n_layers, n_heads=n_heads), "panel")
    text = words(texts_of(figure(sheet)))
    found = sorted(re.findall(r"max (\d[\d.e-]*)", text.replace(sheet.proof, "")))
    assert found == sorted(f"{panel.matrix.max():.3g}" for panel in sheet.panels)


def test_thinned_labels_are_said(fixed_record: Make, texts_of: Texts) -> None:
    """Where there are more tokens than room for names, the picture says that only some are named."""
    record = fixed_record([f"w{i}" for i in range(240)])
    shown = [text for text, _ in texts_of(figure(resolve(record)))]
    named = [text for text in shown if re.fullmatch(r"w\d+", text)]
    assert len(named) < 480
    assert any("is named" in text for text in shown)


# What is coloured.


@pytest.mark.parametrize(
    ("n_layers", "n_heads", "scale", "palette"),
    [
        (1, 1, "panel", "magma"),
        (1, 5, "panel", "viridis_r"),
        (2, 3, "shared", "magma"),
        (2, 3, "panel", "viridis_r"),
    ],
)
def test_colours_are_the_palettes(
    fixed_record: Make, n_layers: int, n_heads: int, scale: Scale, palette: str
) -> None:
    """Every cell has the palette's colour of its weight on its panel's scale; below 0.005 it is blank, or that of 0."""
    sheet = resolve(
        fixed_record("one two three", keys="a b c d e", n_layers=n_layers, n_heads=n_heads), scale
    )
    made = figure(sheet, palette)
    for panel, cells in zip(sheet.panels, tiles(made), strict=False):
        expected = colours(palette)[levels(panel.matrix, panel.top)]
        expected[panel.matrix < 0.005] = 255 if palette == "magma" else colours(palette)[0]
        np.testing.assert_array_equal(cells, expected)
    image = made.axes[0].images[0]
    assert (image.origin, image.get_interpolation()) == ("upper", "none")


@pytest.mark.parametrize(("n_layers", "n_heads", "scale"), [(1, 1, "shared"), (2, 3, "shared")])
def test_the_colour_bar_is_the_panels_scale(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int, scale: Scale
) -> None:
    """The bar runs through the whole palette, with round numbers from 0 up where they stand on the panels' scale."""
    sheet = resolve(fixed_record(n_layers=n_layers, n_heads=n_heads), scale)
    made = figure(sheet)
    shown = texts_of(made)
    box = made.axes[1].get_window_extent()
    marks = [(text, place) for text, place in shown if 0 < place.x0 - box.x1 < 30]
    assert len(marks) in range(3, 7)
    for text, place in marks:
        share = float(text) / sheet.panels[0].top
        assert (place.y0 + place.y1) / 2 == pytest.approx(box.y0 + share * box.height, abs=2.5)


@pytest.mark.parametrize("palette", ["magma", "gray_r"])
def test_numbers_in_cells_are_the_weights(fixed_record: Make, palette: str) -> None:
    """Each cell's number is its weight to two decimals, in the ink that can be read there; 0 leaves it blank."""
    record = fixed_record("All you need is love", causal=True)
    sheet = resolve(record)
    matrix = sheet.panels[0].matrix
    axes = figure(sheet, palette).axes[0]
    found = {
        (round(text.get_position()[1]), round(text.get_position()[0])): text for text in axes.texts
    }
    assert set(found) == {
        (row, column) for row in range(5) for column in range(5) if matrix[row, column] >= 0.005
    }
    inks = text_colours(colours(palette))[levels(matrix, sheet.panels[0].top)]
    for (row, column), text in found.items():
        weight = float(matrix[row, column])
        assert abs(float(text.get_text()) - weight) <= 0.005 + 1e-6
        assert text.get_color() == inks[row, column]


# Somebody's own axes.


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
    expected = LIGHT.pixels(record.pattern(1, 2), float(record.weights.max()), colours())
    np.testing.assert_array_equal(tiles(axes.figure)[0], expected)
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        token.text for token in record.query_tokens
    ]


def test_ax_says_what_it_is(fixed_record: Make) -> None:
    """Above somebody's axes stand layer and head, and no more; the image keeps model, scale and receipt."""
    axes = heatmap(fixed_record(n_layers=2, n_heads=3), layer=1, head=2, ax=own_axes())
    assert axes.get_title() == "head 1.2"
    assert not axes.get_title(loc="left")
    for part in ("made by hand", "0 to ", "✓ verified ("):
        assert part in str(axes.images[0].get_label())
    assert "key" in axes.get_xlabel()
    assert "query" in axes.get_ylabel()


@pytest.mark.parametrize(
    ("annot", "tokens", "n"), [(None, 4, 1), (None, 80, 0), (False, 4, 0), (True, 80, 1)]
)
def test_ax_has_the_numbers_wanted(
    fixed_record: Make, annot: bool | None, tokens: int, n: int
) -> None:
    """Numbers where they can be read, everywhere, or nowhere."""
    axes = own_axes()
    sheet = resolve(fixed_record([f"w{i}" for i in range(tokens)]))
    draw_on(axes, sheet, "teal", title=None, cbar=False, annot=annot)
    assert len(axes.texts) == n * (sheet.panels[0].matrix >= 0.005).sum()


def test_ax_holds_one_pattern(fixed_record: Make) -> None:
    """Axes for more than one pattern are refused, and the error says what to give."""
    with pytest.raises(SelectionError, match="layer 0, 3 heads: give layer and head"):
        heatmap(fixed_record(n_layers=2, n_heads=3), layer=0, ax=own_axes())
    with pytest.raises(SelectionError, match="ax must be the axes of a Matplotlib figure, not 'x'"):
        heatmap(fixed_record(), layer=0, head=0, ax="x")  # type: ignore[arg-type]  # no axes


def test_without_ax_a_figure_is_made(fixed_record: Make) -> None:
    """A new figure for one pattern returns the pattern's axes; for a sheet, the sheet's."""
    record = fixed_record(n_layers=2, n_heads=3)
    one = heatmap(record, layer=1, head=0)
    assert [label.get_text() for label in one.get_xticklabels()] == [
        token.text for token in record.key_tokens
    ]
    sheet = heatmap(record, layer=1)
    assert len(tiles(sheet.figure)) == 3


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
    for n_heads, suffix in ((1, ".png"), (3, ".svg"), (1, ".pdf")):
        drawn(resolve(fixed_record("나는 모두를 사랑해", n_heads=n_heads)), suffix)
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
token = (Token(text="a", piece="a"),)
one = np.ones((1, 1, 1, 1), np.float32)
Attention(weights=one, query_tokens=token, key_tokens=token, kind="encoder", model="m")._repr_png_()
print([name for name in ("matplotlib.pyplot", "seaborn", "torch", "rich") if name in sys.modules])
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("style", "n_heads"),
    [("dark_background", 1), ("ggplot", 2), ("fivethirtyeight", 1), ("classic", 2)],
)
def test_a_style_changes_nothing(
    fixed_record: Make, user_settings: dict[str, Any], style: str, n_heads: int
) -> None:
    """Whatever style a notebook uses, the file is the same."""
    import matplotlib.style

    sheet = resolve(fixed_record("one two three", n_layers=n_heads, n_heads=n_heads))
    expected = drawn(sheet)
    assert user_settings  # put back afterwards
    matplotlib.style.use(style)
    assert drawn(sheet) == expected


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


# Every size.


def assert_clear(sheet: Sheet, texts_of: Texts) -> None:
    """No two texts of a figure share more than a pixel, and none is outside."""
    figure = draw(sheet).figure
    expect_apart(texts_of(figure), figure)


@pytest.mark.parametrize(
    ("n_layers", "n_heads", "tokens"),
    [
        *((1, 1, 1), (1, 1, 23), (1, 1, 60), (1, 12, 7), (2, 4, 1), (2, 4, 60), (6, 1, 3)),
        *((6, 1, 23), (6, 12, 3), (6, 12, 23)),
    ],
)
def test_texts_keep_clear(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int, tokens: int
) -> None:
    """Few and many panels, of few and many tokens."""
    record = fixed_record([f"word{i}" for i in range(tokens)], n_layers=n_layers, n_heads=n_heads)
    assert_clear(resolve(record), texts_of)


def test_a_long_sheet_keeps_clear(fixed_record: Make, texts_of: Texts) -> None:
    """Six layers and twelve heads of 100 long tokens: labels are thinned, the sentence is cut, all keep clear."""
    record = fixed_record([f"internationalization{i}" for i in range(100)], n_layers=6, n_heads=12)
    assert_clear(resolve(record), texts_of)


SENTENCE = "The animal didn't cross the street because it was too tired ."
KOREAN = "나 ·는 오늘 아침에 밥 ·을 먹었다"


@pytest.mark.filterwarnings("ignore::attnviz.errors.AttnvizWarning")
@pytest.mark.parametrize(
    ("size", "labels", "is_numbered"),
    [
        ({"figsize": (5, 3)}, SENTENCE, False),
        ({"figsize": (6, 4)}, SENTENCE, True),
        ({"figsize": (10, 10)}, SENTENCE, True),
        ({"figsize": (4, 3)}, KOREAN, True),
        ({"figsize": (10, 2.5)}, KOREAN, False),
        ({"figsize": (10, 2.5)}, "a b c d e f", True),  # narrow names, level until cells shrink
        ({"figsize": (2.8, 4)}, SENTENCE, False),
        ({"style": "paper", "figsize": (2.5, 2.5)}, SENTENCE, False),
    ],
)
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_a_small_pattern_keeps_clear(
    fixed_record: Make,
    texts_of: Texts,
    size: dict[str, Any],
    labels: str,
    is_numbered: bool,
    lang: str,
) -> None:
    """Names of axes are as long as there is room, and weights are written where they can be read."""
    with language(lang):
        picture = draw(resolve(fixed_record(labels)), style=style_of(Look(**size)))
    texts = texts_of(picture.figure)
    expect_apart(texts, picture.figure)
    shown = [text for text, _ in texts]
    names = ("key", "query") if lang == "en" else ("키", "쿼리")
    assert all(any(text.startswith(name) for text in shown) for name in names)
    assert any(text.startswith(".") and text[1:].isdigit() for text in shown) == is_numbered


# The files.


def test_png_holds_its_receipt(fixed_record: Make) -> None:
    """The receipt, the sentence and how to read the picture travel inside the PNG."""
    from PIL import Image

    sheet = resolve(fixed_record())
    with Image.open(BytesIO(drawn(sheet))) as image:
        about = image.info
    assert about["Title"] == sheet.model
    for part in (sheet.proof, sheet.sentence, _(AXES), sheet.legend):
        assert part in about["Description"]


def test_svg_holds_its_receipt(fixed_record: Make) -> None:
    """They travel inside the SVG."""
    sheet = resolve(fixed_record())
    about = " ".join(element.text or "" for element in ET.fromstring(drawn(sheet, ".svg")).iter())
    for part in (sheet.model, sheet.proof, sheet.sentence, _(AXES), sheet.legend):
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
    for part in (sheet.proof, sheet.sentence, _(AXES), sheet.legend):
        assert part in about


@pytest.mark.parametrize(("suffix", "n_heads"), [(".png", 3), (".svg", 1), (".pdf", 3)])
def test_the_same_record_is_the_same_file(fixed_record: Make, suffix: str, n_heads: int) -> None:
    """Two equal records make the same file, byte for byte: no date, no random names."""
    first, second = (
        drawn(resolve(fixed_record("나는 사랑해", n_heads=n_heads)), suffix) for _ in range(2)
    )
    assert first == second


raw_text = st.text(st.characters(exclude_categories=[]), min_size=1, max_size=12)


# no machine has a font for every character
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@given(pieces=st.lists(raw_text, min_size=1, max_size=5), n_heads=st.sampled_from([1, 2]))
@settings(max_examples=12)
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
