"""Figures of heatmaps: what a person reads and sees on them, their sizes, and that nothing else is touched."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from attnviz.attention import Attention, Note
from attnviz.capture.attend import attend
from attnviz.errors import AttnvizWarning, SettingsError
from attnviz.heatmaps import figure as figures
from attnviz.heatmaps.api import heatmap
from attnviz.look import Look, Scale
from attnviz.render.palette import colours, levels, text_colours
from attnviz.render.sheet import AXES, Sheet, resolve
from attnviz.render.theme import LIGHT
from attnviz.text.display import percent, token_text
from attnviz.text.messages import _
from tests.fixtures.pictures import all_texts, expect_apart, picture_of, tiles
from tests.programs import output, printed

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    from attnviz.render.picture import Picture

Make = Callable[..., Attention]
Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]
SENTENCE = "[CLS] The animal didn ' t cross the street because it was too tired . [SEP]"
KOREAN = "나 ·는 오늘 아침에 밥 ·을 먹었다"


def draw(sheet: Sheet, *, annot: bool | None = None, cbar: bool = True, **look: Any) -> Picture:
    """The picture of a sheet."""
    return figures.draw(sheet, Look(**look), annot=annot, cbar=cbar)


def drawn(sheet: Sheet, suffix: str = ".png") -> bytes:
    """A sheet as a file."""
    buffer = BytesIO()
    draw(sheet).write(buffer, suffix)
    return buffer.getvalue()


def words(shown: list[tuple[str, Bbox]]) -> str:
    """All that is written in a figure, from top to bottom, lines that were wrapped joined again."""
    return " ".join(
        text for text, _box in sorted(shown, key=lambda item: (-item[1].y1, item[1].x0))
    )


def names(figure: Any) -> tuple[list[str], list[str]]:
    """The names along a single pattern: of its queries, and of its keys."""
    axes = figure.axes[0]
    queries, keys = axes.get_yticklabels(), axes.get_xticklabels()
    return [label.get_text() for label in queries], [label.get_text() for label in keys]


def sizes(figure: Figure) -> list[float]:
    """The sizes of all letters, in points."""
    from matplotlib.text import Text

    texts = [artist for artist in figure.findobj(Text) if isinstance(artist, Text)]
    return [float(text.get_fontsize()) for text in texts if text.get_text().strip()]


def rings(figure: Figure) -> list[Bbox]:
    """The places of the rings round panels, in pixels."""
    from matplotlib.colors import to_rgba

    return [
        patch.get_window_extent()
        for patch in figure.findobj(lambda artist: hasattr(artist, "get_edgecolor"))
        if np.array_equal(patch.get_edgecolor(), to_rgba(LIGHT.accent))  # type: ignore[attr-defined]
    ]


def own_axes() -> Axes:
    """Axes of a figure that somebody made."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    return FigureCanvasAgg(Figure((6, 6))).figure.add_axes((0.2, 0.05, 0.7, 0.7))


# What is said.


def test_a_sheet_names_the_clearest_link_and_rings_its_head(texts_of: Texts) -> None:
    """The finding stands above the sentence; the ring is round one panel only, that of the head it names."""
    figure = picture_of(attend("I love all you", "toy")).figure
    shown = words(texts_of(figure))
    finding = "“you” attends most to “I”: 65% (layer 0, head 4)"
    assert finding in shown
    assert shown.index(finding) < shown.index("“I love all you”")
    (ring,) = rings(figure)
    whole = figure.axes[0].get_window_extent()
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
    ("n_layers", "n_heads", "scale"), [(1, 1, "shared"), (1, 5, "panel"), (2, 3, "panel")]
)
def test_every_figure_says_what_it_is(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int, scale: Scale
) -> None:
    """Sentence, model, kind, size, axes, scale, notes and receipt are written, and the end of each panel's scale."""
    notes = tuple(Note.of("text", text=text) for text in ("tokens hidden", "cut at 6 tokens"))
    record = fixed_record(n_layers=n_layers, n_heads=n_heads, notes=notes)
    sheet = resolve(record, scale)
    text = words(texts_of(draw(sheet).figure))
    parts = (
        sheet.sentence,
        sheet.model,
        sheet.size,
        _(AXES),
        sheet.legend,
        *sheet.notes,
        sheet.proof,
    )
    for part in parts:
        assert part in text, part
    if scale == "panel":
        ends = re.findall(r"max ([\d.]+%)", text)
        assert sorted(ends) == sorted(percent(panel.matrix.max()) for panel in sheet.panels)
    unverified = draw(resolve(fixed_record(receipt=None))).figure
    assert "not verified" in words(texts_of(unverified))


def test_one_pattern_names_its_axes_and_tokens(fixed_record: Make, texts_of: Texts) -> None:
    """Rows are queries from top to bottom, columns keys from left to right, and each side says which it is."""
    record = fixed_record("나는 너를 사랑해", keys="I love you . </s>", layers=(3,), heads=(7,))
    figure = draw(resolve(record)).figure
    assert names(figure) == (["나는", "너를", "사랑해"], ["I", "love", "you", ".", "</s>"])
    assert "key" in figure.axes[0].get_xlabel()
    assert "query" in figure.axes[0].get_ylabel()
    shown = dict(texts_of(figure))
    assert shown["나는"].y0 > shown["너를"].y1
    assert shown["I"].x1 < shown["love"].x1 < shown["you"].x1
    assert shown["나는"].x1 < shown["I"].x0
    assert shown["I"].y0 > shown["나는"].y1


def test_a_sheet_names_every_layer_head_and_token(fixed_record: Make, texts_of: Texts) -> None:
    """On a grid: each layer and each head once, the queries once a line of panels, the keys once a column."""
    record = fixed_record(
        "one two", keys="three five seven", n_layers=2, n_heads=3, layers=(1, 4), heads=(6, 5, 11)
    )
    shown = [text for text, _box in texts_of(draw(resolve(record)).figure)]
    for name in ("layer", "1", "4", "head", "6", "5", "11"):
        assert shown.count(name) == 1
    assert [shown.count(name) for name in ("one", "two")] == [2, 2]
    assert [shown.count(name) for name in ("three", "five", "seven")] == [3, 3, 3]


def test_mathematics_and_tex_are_characters(fixed_record: Make) -> None:
    """Dollar signs, backslashes, carets and percent signs are drawn as they are, in a title too."""
    labels = ["$x^2$", r"\alpha", "$$", "100%", "a_b", r"\$", "{}"]
    notes = (Note.of("text", text="costs $5 to $9"),)
    record = fixed_record(labels, n_heads=3, notes=notes, model="a$b$c")
    figure = draw(resolve(record)).figure
    figure.canvas.draw()
    shown = all_texts(figure)
    assert set(labels) <= set(shown)
    for part in (r"“$x^2$ \alpha", "costs $5 to $9", "a$b$c"):
        assert part in " ".join(shown)
    title = r"a_b $x^2$ \alpha & % {}"
    for chosen in (title, None):
        shown = all_texts(heatmap(record, head="0.1", title=chosen).figure)
        assert (title in shown) == (chosen == title)
        assert not any(text.startswith("“") for text in shown)


# What is coloured.


@pytest.mark.parametrize(
    ("n_layers", "n_heads", "scale", "palette"),
    [(2, 3, "shared", "magma"), (2, 3, "panel", "crest")],
)
def test_colours_are_the_palettes(
    fixed_record: Make, n_layers: int, n_heads: int, scale: Scale, palette: str
) -> None:
    """Every cell has the palette's colour of its weight on its panel's scale; below 0.005 it is blank, or that of 0."""
    record = fixed_record("one two three", keys="a b c d e", n_layers=n_layers, n_heads=n_heads)
    sheet = resolve(record, scale)
    for panel, cells in zip(sheet.panels, tiles(draw(sheet, palette=palette).figure), strict=True):
        expected = colours(palette)[levels(panel.matrix, panel.top)]
        expected[panel.matrix < 0.005] = 255 if palette == "magma" else colours(palette)[0]
        np.testing.assert_array_equal(cells, expected)


@pytest.mark.parametrize("head", [None, "1.2"])
def test_a_logarithmic_scale(head: str | None) -> None:
    """The cells have the colours of the logarithm, and the colour bar has powers of ten."""
    record = attend("I love all you", "toy")
    figure = heatmap(record, head=head, scale="log").figure
    figure.canvas.draw()
    assert {"0.1%", "1%", "10%"} <= set(all_texts(figure))
    matrix = record[1, 2]
    top = float(matrix.max() if head else record.weights.max())
    wanted = LIGHT.pixels(matrix, top, colours(), log=True)
    assert any(np.array_equal(panel, wanted) for panel in tiles(figure))


@pytest.mark.parametrize("n_heads", [1, 3])
def test_the_colour_bar_is_the_panels_scale(
    fixed_record: Make, texts_of: Texts, n_heads: int
) -> None:
    """A few round percents from 0 up stand beside the bar, each where it is on the panels' scale."""
    sheet = resolve(fixed_record(n_heads=n_heads))
    figure = draw(sheet).figure
    shown = texts_of(figure)
    box = figure.axes[1].get_window_extent()
    marks = [(text, place) for text, place in shown if 0 < place.x0 - box.x1 < 30]
    assert len(marks) in range(3, 7)
    for text, place in marks:
        share = float(text.removesuffix("%")) / 100 / sheet.panels[0].top
        assert (place.y0 + place.y1) / 2 == pytest.approx(box.y0 + share * box.height, abs=2.5)


@pytest.mark.parametrize("palette", ["magma", "crest"])
def test_numbers_in_cells_are_the_weights(fixed_record: Make, palette: str) -> None:
    """Each cell's number is its weight in percent, in the ink that can be read there; 0 leaves it blank."""
    sheet = resolve(fixed_record("All you need is love", causal=True))
    matrix = sheet.panels[0].matrix
    axes = draw(sheet, palette=palette).figure.axes[0]
    found = {
        (round(text.get_position()[1]), round(text.get_position()[0])): text for text in axes.texts
    }
    assert set(found) == set(zip(*np.nonzero(matrix >= 0.005), strict=True))
    inks = text_colours(colours(palette))[levels(matrix, sheet.panels[0].top)]
    for (row, column), text in found.items():
        assert abs(float(text.get_text()) - 100 * float(matrix[row, column])) <= 0.5 + 1e-4
        assert text.get_color() == inks[row, column]


def test_masked_cells_are_hatched(fixed_record: Make) -> None:
    """Above the diagonal of a causal model lie lines of the hatch, below it and in other models none."""
    pixels = []
    for causal in (True, False):
        record = fixed_record("one two three", causal=causal)
        picture = draw(resolve(record), cbar=False, annot=False)
        with Image.open(BytesIO(picture.png())) as image:
            whole = np.asarray(image.convert("RGB"))
        axes = picture.figure.axes[0].get_position()
        rows, columns = whole.shape[:2]
        cells = whole[
            int((1 - axes.y1) * rows) : int((1 - axes.y0) * rows),
            int(axes.x0 * columns) : int(axes.x1 * columns),
        ]
        n, m = cells.shape[0] // 3, cells.shape[1] // 3
        corners = cells[4 : n - 4, 2 * m + 4 : -4], cells[2 * n + 4 : -4, 4 : m - 4]
        pixels.append([len(np.unique(corner.reshape(-1, 3), axis=0)) for corner in corners])
    assert pixels[0][0] > 1
    assert [pixels[0][1], *pixels[1]] == [1, 1, 1]


# The user's own axes.


def test_ax_is_drawn_on(fixed_record: Make) -> None:
    """The axes given are drawn on and returned: short names in sight, the receipt in the label; others stay empty."""
    axes = own_axes()
    other = axes.figure.add_axes((0.95, 0.0, 0.05, 0.05))
    record = fixed_record(n_layers=2, n_heads=3)
    assert heatmap(record, layer=1, head=-1, ax=axes) is axes
    assert axes.figure.axes == [axes, other]
    assert not other.images
    expected = LIGHT.pixels(record.pattern(1, 2), float(record.weights.max()), colours())
    np.testing.assert_array_equal(tiles(axes.figure)[0], expected)
    assert names(axes.figure)[0] == [token.text for token in record.query_tokens]
    assert axes.get_title() == "head 1.2"
    assert "key" in axes.get_xlabel()
    for part in ("made by hand", "0 to ", "✓ verified ("):
        assert part in str(axes.images[0].get_label())


@pytest.mark.parametrize(("annot", "tokens", "n"), [(None, 4, 1), (None, 80, 0), (True, 80, 1)])
def test_ax_has_the_numbers_wanted(
    fixed_record: Make, annot: bool | None, tokens: int, n: int
) -> None:
    """Numbers where they can be read, or everywhere."""
    record = fixed_record([f"w{i}" for i in range(tokens)])
    axes = heatmap(record, ax=own_axes(), annot=annot)
    assert len(axes.texts) == n * (record.weights >= 0.005).sum()


# What is left alone.


def test_nothing_global_changes(fixed_record: Make) -> None:
    """Settings and fonts are what they were; and whatever style a notebook uses, the file is the same."""
    import matplotlib as mpl
    import matplotlib.style
    from matplotlib.font_manager import fontManager

    sheets = [resolve(fixed_record("나는 사랑해", n_heads=n_heads)) for n_heads in (1, 3)]
    before = dict(mpl.rcParams), dict(fontManager.defaultFont), dict(fontManager.defaultFamily)
    expected = [drawn(sheet) for sheet in sheets]
    heatmap(fixed_record(), ax=own_axes())
    after = dict(mpl.rcParams), dict(fontManager.defaultFont), dict(fontManager.defaultFamily)
    assert after == before
    for style in ("dark_background", "classic"):
        with mpl.rc_context():
            matplotlib.style.use(style)
            assert [drawn(sheet) for sheet in sheets] == expected


# Every size.


@pytest.mark.parametrize(
    ("n_layers", "n_heads", "tokens"),
    [(1, 1, 60), (1, 12, 7), (6, 1, 3), (6, 12, 100)],
)
def test_texts_keep_clear(
    fixed_record: Make, texts_of: Texts, n_layers: int, n_heads: int, tokens: int
) -> None:
    """Few and many panels, of few and many long tokens; where only some are named, the picture says so."""
    labels = [f"internationalization{i}" for i in range(tokens)]
    figure = draw(resolve(fixed_record(labels, n_layers=n_layers, n_heads=n_heads))).figure
    shown = texts_of(figure)
    expect_apart(shown, figure)
    assert any("token is named" in text for text, _box in shown) == (n_heads * tokens >= 100)


@pytest.mark.filterwarnings("ignore::attnviz.errors.AttnvizWarning")
@pytest.mark.parametrize(
    ("size", "labels", "is_numbered"),
    [
        ({"figsize": (10, 10)}, SENTENCE, True),
        ({"figsize": (10, 2.5)}, KOREAN, False),
        ({"figsize": (10, 2.5)}, "a b c d e f", True),  # narrow names, level until cells shrink
        ({"style": "paper", "figsize": (2.5, 2.5)}, SENTENCE, False),
    ],
)
def test_a_small_pattern_keeps_clear(
    fixed_record: Make,
    texts_of: Texts,
    size: dict[str, Any],
    labels: str,
    is_numbered: bool,
) -> None:
    """Names of axes are as long as there is room, and weights are written where they can be read."""
    figure = draw(resolve(fixed_record(labels)), **size).figure
    texts = texts_of(figure)
    expect_apart(texts, figure)
    shown = [text for text, _box in texts]
    for name in ("key", "query"):
        assert any(text.startswith(name) for text in shown)
    assert any(text.isdigit() for text in shown) == is_numbered


def test_a_slide(make_record: Make) -> None:
    """1,920 x 1,080 dots, letters of 9 points at least, the sentence above and the receipt below."""
    picture = picture_of(make_record(SENTENCE).select([1], [2]), style="slides")
    with Image.open(BytesIO(picture.png())) as image:
        assert image.size == (1920, 1080)
    assert min(sizes(picture.figure)) >= 9
    assert names(picture.figure)[0] == SENTENCE.split()
    shown = " ".join(all_texts(picture.figure))
    assert "✓ verified (" in shown
    assert "The animal" in shown


def test_a_column_of_a_paper(make_record: Make, tmp_path: Path) -> None:
    """In the PDF, as a printer gets it: 3.3 inches, TrueType alone, every token named, no title and no caption."""
    record = make_record("[CLS] 나는 너희 모두를 love [SEP]").select([0], [0])
    figure = picture_of(record, style="paper").figure
    assert names(figure)[0] == ["[CLS]", "나는", "너희", "모두를", "love", "[SEP]"]
    assert min(sizes(figure)) >= 4.5
    shown = " ".join(all_texts(figure))
    assert "verified" not in shown
    assert record.model not in shown
    record.save(tmp_path / "a.pdf", style="paper")
    fonts = output("pdffonts", tmp_path / "a.pdf")
    assert "Type 3" not in fonts
    assert fonts.count("TrueType") == 2
    assert "모두를" in printed(tmp_path / "a.pdf")
    page = output("pdftotext", "-bbox", tmp_path / "a.pdf", "-")
    assert float(re.findall(r'<page width="([\d.]+)', page)[0]) == pytest.approx(3.3 * 72, abs=0.1)


def test_what_cannot_be_read_is_told(make_record: Make) -> None:
    """Tokens without room for their names: one warning; a page too small for the words around them: an error."""
    record = make_record(SENTENCE).select([0], [0])
    with pytest.warns(AttnvizWarning, match=r"not every token can be named in letters of 4.5 pt"):
        heatmap(record, style="paper", figsize=(2, 2))
    with pytest.raises(
        SettingsError,
        match=r"1 x 1in is too small for head 0.0 of 16 tokens .*: make it larger, or show fewer",
    ):
        heatmap(record, figsize=(1, 1))


# The files.


def test_files_hold_their_receipt(fixed_record: Make, tmp_path: Path) -> None:
    """The receipt, the sentence and how to read the picture travel inside the file; words of an SVG are text."""
    record = fixed_record("나는 너희 love")
    sheet = resolve(record)
    parts = (sheet.proof, sheet.sentence, _(AXES), sheet.legend)
    with Image.open(BytesIO(drawn(sheet))) as image:
        assert image.info["Title"] == sheet.model
        assert all(part in image.info["Description"] for part in parts)
    svg = drawn(sheet, ".svg")
    texts = [element.text or "" for element in ET.fromstring(svg).iter()]
    assert all(part in " ".join(texts) for part in (*parts, sheet.model))
    assert {"나는", "너희", "love", "“나는 너희 love”"} <= set(texts)
    assert b"sans-serif" in svg
    assert b"Malgun Gothic" in svg
    (tmp_path / "a.pdf").write_bytes(drawn(sheet, ".pdf"))
    about = output("pdfinfo", tmp_path / "a.pdf")
    assert all(part in about for part in parts)


@pytest.mark.parametrize(("suffix", "n_heads"), [(".png", 3), (".svg", 1), (".pdf", 3)])
def test_the_same_record_is_the_same_file(fixed_record: Make, suffix: str, n_heads: int) -> None:
    """Two equal records make the same file, byte for byte: no date, no random names."""
    sheets = (resolve(fixed_record("나는 사랑해", n_heads=n_heads)) for _ in range(2))
    first, second = (drawn(sheet, suffix) for sheet in sheets)
    assert first == second


raw_text = st.text(st.characters(exclude_categories=[]), min_size=1, max_size=12)


@pytest.mark.parametrize("character", "\0\x01\x1b\x7f\x85\ud800\ufdd0\ufffe\uffff\u2028")
def test_a_title_that_no_svg_may_contain(make_record: Make, character: str, tmp_path: Path) -> None:
    """It is spelled out; a line break is a space, as always."""
    axes = heatmap(make_record(), head="0.1", title=f"first {character}\nsecond")
    for ending in ("svg", "png", "pdf"):
        axes.figure.savefig(tmp_path / f"a.{ending}")  # type: ignore[union-attr]
    ET.parse(tmp_path / "a.svg")
    spelled = character.encode("unicode_escape").decode()
    shown = " ".join(all_texts(axes.figure))
    assert f"first {spelled} second" in shown


# no machine has a font for every character
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
@given(pieces=st.lists(raw_text, min_size=1, max_size=5), n_heads=st.sampled_from([1, 2]))
@settings(max_examples=8)
def test_any_sentence_draws(fixed_record: Make, pieces: list[str], n_heads: int) -> None:
    """Any Unicode at all becomes a picture, as PNG and as a well-formed SVG."""
    labels = [token_text(piece, typed=piece) for piece in pieces]
    texts = {"text": "".join(pieces), "pair": pieces[0], "model": pieces[-1]}
    sheet = resolve(fixed_record(labels, n_heads=n_heads, **texts))
    if n_heads == 1:
        assert drawn(sheet).startswith(b"\x89PNG")
    else:
        ET.fromstring(drawn(sheet, ".svg"))
