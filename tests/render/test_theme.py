"""Light and dark pictures and pages: all of it can be seen and read, and a page has the colours of its pictures."""

from __future__ import annotations

import json
import re
from io import BytesIO
from typing import TYPE_CHECKING, Literal

import numpy as np
import pytest

from attnviz.errors import AttnvizWarning, SettingsError
from attnviz.heads.measures import GROUPS
from attnviz.heatmaps.api import heatmap
from attnviz.render.html import SHARED
from attnviz.render.palette import contrast, hexed
from attnviz.render.theme import DARK, LIGHT, Theme, theme_of
from attnviz.stories.record import Bars, Lines, Matrix, Series, Story
from tests.fixtures.browser import barriers
from tests.fixtures.pictures import picture_of, text_contrasts
from tests.heads.comparisons_by_hand import made
from tests.walkthroughs.by_hand import one_decoder_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure
    from playwright.sync_api import Page

    from attnviz.attention import Attention

Name = Literal["light", "dark"]
BY_NAME: dict[Name, Theme] = {"light": LIGHT, "dark": DARK}
STORY = Story(
    name="made",
    title="The finding",
    parts=("A sentence.",),
    picture=[
        Matrix("masked", np.array([[1.0, np.nan], [0.4, 0.6]]), ("나는", "love"), ("I", "you")),
        Matrix("signed", np.linspace(-1, 1, 21)[None], limits=(-1.0, 1.0), diverging=True),
        Lines(
            "lines",
            [0.0, 1.0],
            "step",
            [Series(f"line {i}", [i, 9 - i], [i - 0.5, 8], [i + 0.5, 10]) for i in range(8)],
            "share",
        ),
        Bars("bars", ("one", "two"), [Series("a", [0.5, 0.25]), Series("b", [1.0, 0.75])], "y"),
    ],
    receipt="verified: by hand",
)


def pictures(fixed_record: Callable[..., Attention], theme: Name) -> dict[str, Figure]:
    """One picture of each kind."""
    record = fixed_record("All you need is love", n_layers=2, n_heads=3, causal=True)
    head = record.select([0], [1])
    walk = one_decoder_step(mask=True)
    sentence = made(attention=fixed_record("I love all you", n_layers=2, n_heads=3))
    every_role = made(4, 4, all_roles=True)
    drawn = {
        "all heads": picture_of(record, theme=theme),
        "one head": picture_of(head, theme=theme),
        "heads in a column": picture_of(record, theme=theme, style="paper"),
        "a palette that begins far from the paper": picture_of(head, theme=theme, palette="crest"),
        "exercise": picture_of(walk, blanks=walk.blanks(), theme=theme),
        "roles": picture_of(every_role, theme=theme),
        "heads on a sentence": picture_of(sentence, theme=theme),
        "page of a head": picture_of(every_role, ["1.1"], theme=theme),
        "story": picture_of(STORY, theme=theme),
    }
    return {kind: picture.figure for kind, picture in drawn.items()}


@pytest.mark.filterwarnings("ignore:.* the smallest letters")
@pytest.mark.parametrize("theme", BY_NAME)
def test_every_text_can_be_read(fixed_record: Callable[..., Attention], theme: Name) -> None:
    """Each text of each kind of picture has a contrast of 4.5 to 1 with what lies below it (WCAG 2.2, AA)."""
    for kind, figure in pictures(fixed_record, theme).items():
        contrasts = text_contrasts(figure)
        faint = {text: round(found, 2) for text, found in contrasts.items() if found < 4.5}
        assert not faint, kind


@pytest.mark.parametrize("theme", BY_NAME.values(), ids=lambda theme: theme.name)
def test_marks_can_be_seen(theme: Theme) -> None:
    """Lines, bars and rings have a contrast of 3 to 1 with the paper (WCAG 2.2, 1.4.11), and no two are the same."""
    marks = [*theme.series, theme.accent, theme.quiet]
    assert min(contrast(colour, theme.paper) for colour in marks) >= 3
    assert len(set(theme.series)) == len(theme.series)
    roles = [theme.readable(colour) for _name, colour in GROUPS.values()]
    assert min(contrast(colour, theme.paper) for colour in roles) >= 4.5


@pytest.mark.parametrize("theme", BY_NAME)
def test_cells_of_weight_0_are_paper(fixed_record: Callable[..., Attention], theme: Name) -> None:
    """Blank cells and the space around the picture have one colour, the paper; strong cells stand out from it."""
    from matplotlib.colors import to_hex

    weights = np.array([[[[1.0, 0.0], [0.5, 0.5]]]], dtype=np.float32)
    record = fixed_record("I love", weights=weights)
    for palette in ("teal", "magma", "viridis"):
        picture = picture_of(record, theme=theme, palette=palette)
        assert to_hex(picture.figure.get_facecolor()) == BY_NAME[theme].paper
        pixels = np.asarray(picture.figure.axes[0].images[0].get_array())
        cells = [[hexed(cell[:3]) for cell in row] for row in pixels]
        assert cells[0][1] == BY_NAME[theme].paper
        assert contrast(cells[0][0], BY_NAME[theme].paper) > 10


def test_files_have_the_paper_of_the_theme(fixed_record: Callable[..., Attention]) -> None:
    """A dark picture is dark in every format."""
    from matplotlib.image import imread

    picture = picture_of(fixed_record(), theme="dark")
    pixel = imread(BytesIO(picture.png()))[2, 2, :3]
    assert hexed((pixel * 255).round().astype(np.uint8)) == DARK.paper
    svg, dark, light = BytesIO(), BytesIO(), BytesIO()
    picture.write(svg, ".svg")
    assert f"fill: {DARK.paper}".encode() in svg.getvalue()
    picture.write(dark, ".pdf")
    picture_of(fixed_record()).write(light, ".pdf")
    assert light.getvalue() != dark.getvalue()


def test_axes_follow_the_figure_of_the_user(fixed_record: Callable[..., Attention]) -> None:
    """On somebody's own figure blank cells, texts and colours follow its background, whatever that is."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    weights = np.array([[[[1.0, 0.0], [0.5, 0.5]]]], dtype=np.float32)
    record = fixed_record("I love", weights=weights)
    for background in ("#000000", "#302040", "#ffffff"):
        figure = Figure((4, 4), facecolor=background)
        FigureCanvasAgg(figure)
        axes = heatmap(record, layer=0, head=0, ax=figure.add_subplot())
        assert min(text_contrasts(figure).values()) >= 4.5
        assert hexed(np.asarray(axes.images[0].get_array())[0, 1, :3]) == background
    with pytest.raises(SettingsError, match="an ax has its size and its background"):
        heatmap(record, layer=0, head=0, ax=axes, theme="dark")


@pytest.mark.parametrize(
    ("palette", "theme", "other"),
    [
        ("Greys_r", "light", "Greys"),
        ("teal_r", "dark", "teal"),
        ("seismic", "dark", "teal"),
        (["#000000", "#0a0a0a"], "dark", "teal"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*gets lighter and darker by turns")
def test_a_palette_that_is_blind(palette: str | list[str], theme: Name, other: str) -> None:
    """One line names the contrast that was measured and a palette that works."""
    with pytest.warns(
        AttnvizWarning, match=rf"^in the palette .* \(contrast 1\.\d\): use {other}$"
    ):
        theme_of(theme, palette)
    theme_of(theme, other)  # a warning would fail


def test_no_palette_of_the_command_line_is_blind() -> None:
    """The palettes that help names can be seen on both themes; so can the colours of signed numbers."""
    from attnviz.render.names import PALETTES

    for theme in BY_NAME:
        for palette in PALETTES:
            theme_of(theme, palette)
    for colours in BY_NAME.values():
        ends = colours.diverging()[[0, -1]]
        assert min(contrast(hexed(end), colours.paper) for end in ends) >= 3


def test_an_unknown_theme(fixed_record: Callable[..., Attention]) -> None:
    """It is refused with the names of the themes, before a file is written."""
    with pytest.raises(SettingsError, match="'pink' is not one of 'auto', 'light', 'dark'"):
        fixed_record().figure(theme="pink")
    for result in (fixed_record(), one_decoder_step(), made(), STORY):
        with pytest.raises(SettingsError, match="'pink' is not one of"):
            result.page(theme="pink")


# Pages.


def background(shown: Page) -> str:
    """The colour of the paper of a page."""
    numbers = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    return hexed(np.array(re.findall(r"\d+", numbers), dtype=np.uint8))


@pytest.mark.parametrize("theme", BY_NAME)
def test_a_page_keeps_its_theme(
    fixed_record: Callable[..., Attention], show_page: Callable[..., Page], theme: Name
) -> None:
    """Whatever the reader's system prefers, the page has the paper of its pictures, and all of it can be read."""
    make = fixed_record("I love all you", n_heads=2, causal=True).page
    if theme == "light":
        make = one_decoder_step(mask=True).page
    other: Name = "dark" if theme == "light" else "light"
    shown = show_page(make(theme=theme).html, color_scheme=other)
    assert background(shown) == BY_NAME[theme].paper
    assert barriers(shown) == []
    shown = show_page(make().html, color_scheme=other)
    assert background(shown) == BY_NAME[other].paper


def test_a_dark_page_is_printed_on_white_paper(
    fixed_record: Callable[..., Attention], show_page: Callable[..., Page]
) -> None:
    """On paper its text and its matrix are those of a light page, without a surface of ink; then it is dark again."""
    html = fixed_record("I love all you", n_heads=2).page(theme="dark").html
    shown = show_page(html, "head=0.1")

    def brightness() -> float:
        from matplotlib.image import imread

        return float(imread(BytesIO(shown.screenshot()))[..., :3].mean())

    assert brightness() < 0.2
    shown.emulate_media(media="print")
    assert brightness() > 0.8
    shown.emulate_media(media="screen")
    assert brightness() < 0.2


def test_lines_of_a_page_have_the_colours_of_a_picture() -> None:
    """The series of charts are the same in scripts and in pictures, on both themes."""
    script = "\n".join(path.read_text("utf-8") for path in SHARED)
    for name, theme in {"SEVERAL": LIGHT, "LIGHTER": DARK}.items():
        (listed,) = re.findall(rf"const {name} = (\[.*?\]);", script)
        colours = json.loads(listed)
        assert colours == list(theme.series[: len(colours)])
