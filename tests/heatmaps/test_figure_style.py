"""Pictures for slides and papers: as wide as is wanted, letters that can be read, or a word that they cannot."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from attnviz import heatmap
from attnviz.errors import AttnvizWarning, SettingsError
from attnviz.look import Look
from attnviz.render.figure.style import style_of
from tests.fixtures.pictures import picture_of
from tests.programs import output, printed

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from attnviz.attention import Attention

Make = Callable[..., "Attention"]
SIXTEEN = "[CLS] The animal didn ' t cross the street because it was too tired . [SEP]"


def texts(figure: Figure) -> list[Any]:
    """All that is written on a figure."""
    from matplotlib.text import Text

    return [text for text in figure.findobj(Text) if text.get_text().strip()]


def sizes(figure: Figure) -> list[float]:
    """Of all letters, in points."""
    return [float(text.get_fontsize()) for text in texts(figure)]


def named(figure: Figure) -> list[str]:
    """The names along the rows."""
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def test_a_paper_figure_of_one_head(make_record: Make) -> None:
    """As wide as the column, every token named, letters of 6 points at least, no title and no caption."""
    record = make_record(SIXTEEN).select([1], [2])
    made = picture_of(record, style="paper").figure
    assert made.get_size_inches()[0] == pytest.approx(3.3, abs=0.005)
    assert min(sizes(made)) >= 6
    assert named(made) == SIXTEEN.split()
    words = " ".join(text.get_text() for text in texts(made))
    assert "verified" not in words
    assert record.model not in words


def test_labels_on_the_page_measured(make_record: Make, tmp_path: Path) -> None:
    """In the PDF of a 3.3 inch figure, as a printer gets it: that width, TrueType alone, letters of 6 points."""
    make_record("[CLS] 나는 너희 모두를 love [SEP]").select([0], [0]).save(
        tmp_path / "a.pdf", style="paper"
    )
    fonts = output("pdffonts", tmp_path / "a.pdf")
    assert "Type 3" not in fonts
    assert fonts.count("TrueType") == 2
    assert "NanumGothicCoding" in fonts
    assert "모두를" in printed(tmp_path / "a.pdf")
    page = output("pdftotext", "-bbox", tmp_path / "a.pdf", "-")
    assert float(re.findall(r'<page width="([\d.]+)', page)[0]) == pytest.approx(3.3 * 72, abs=0.1)
    upright = re.findall(
        r'xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)">love', page
    )
    for x0, y0, x1, y1 in upright:
        assert min(float(x1) - float(x0), float(y1) - float(y0)) >= 6


def test_the_words_of_an_svg_are_text(make_record: Make) -> None:
    """Every token can be searched, and fonts to fall back on are named."""
    buffer = BytesIO()
    picture_of(make_record("나는 너희 love").select([0], [0])).write(buffer, ".svg")
    tree = ET.fromstring(buffer.getvalue())
    words = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"나는", "너희", "love", "“나는 너희 love”"} <= set(words)
    assert b"sans-serif" in buffer.getvalue()
    assert b"Malgun Gothic" in buffer.getvalue()


def test_a_slide(make_record: Make) -> None:
    """1,920 x 1,080 dots, letters of 10 points at least, the sentence above and the receipt below."""
    picture = picture_of(make_record(SIXTEEN).select([1], [2]), style="slides")
    buffer = BytesIO()
    picture.write(buffer, ".png")
    image = Image.open(buffer)
    assert image.width == 1920
    assert image.height <= 1081
    assert min(sizes(picture.figure)) >= 9  # points: 18 pixels
    assert named(picture.figure) == SIXTEEN.split()
    words = " ".join(text.get_text() for text in texts(picture.figure))
    assert "✓ verified (" in words
    assert "The animal" in words


@pytest.mark.parametrize("title", [r"a_b $x^2$ \alpha & % {}", None, "auto"])
def test_titles(make_record: Make, title: str | None) -> None:
    """A title is shown as it is typed; None and auto have a meaning."""
    axes = heatmap(make_record().select([0], [0]), title=title, dpi=100)
    figure = axes.get_figure(root=True)
    assert figure is not None
    words = [text.get_text() for text in texts(figure)]
    assert ("“I love you”" in words) == (title == "auto")
    assert (title in words) == (title not in {None, "auto"})
    assert not any(text.get_parse_math() for text in texts(figure))


def test_what_cannot_be_read_is_told(make_record: Make) -> None:
    """Tokens without room for their names: made, with one warning that names the width that they need."""
    with pytest.warns(AttnvizWarning, match=r"not every token can be named in letters of 6 pt"):
        heatmap(make_record(SIXTEEN).select([0], [0]), style="paper", figsize=(2, 2))


@pytest.mark.parametrize("layers", [1, 3])
def test_pictures_in_korean(make_record: Make, layers: int) -> None:
    """Captions, axes and names of heads are Korean; the sentence, its tokens and the model stay as they are."""
    record = make_record(n_layers=layers, n_heads=3)
    words = " ".join(text.get_text() for text in texts(record.figure(lang="ko")))
    for part in (
        "행은 쿼리, 열은 키",
        "가중치 0~",
        "양방향 셀프 어텐션",
        "층 3개 x 헤드 3개" if layers > 1 else "헤드 0.2",
    ):
        assert part in words
    if layers > 1:
        (last,) = (text for text in texts(record.figure(lang="ko")) if text.get_text() == "층\n2")
        assert last.get_rotation() == 0
    one = " ".join(text.get_text() for text in texts(record.select([0], [1]).figure(lang="ko")))
    assert "키 (보는 대상)" in one
    assert "쿼리 (보는 쪽)" in one


@pytest.mark.parametrize(
    ("look", "message"),
    [
        ({"figsize": (0.1, 3)}, "figsize is between 0.5 and 100 inches"),
        ({"figsize": (90, 9), "dpi": 2400}, "a picture of more than 30,000 dots across"),
        ({"style": "poster"}, "'poster' is not one of 'sheet', 'slides', 'paper'"),
    ],
)
def test_sizes_that_make_no_picture(look: dict[str, Any], message: str) -> None:
    """Refused in one line, before any work."""
    with pytest.raises(SettingsError, match=re.escape(message)) as error:
        style_of(Look(**look))
    assert "\n" not in str(error.value)


def dots(path: Path) -> tuple[int, int]:
    """Width and height of a picture in a file."""
    with Image.open(path) as image:
        return image.size


@pytest.mark.parametrize("command", [("walkthrough", "--example", "seq2seq"), ("demo", "library")])
def test_other_pictures_for_a_slide(
    typed: Callable[..., Any], here: Path, command: tuple[str, ...]
) -> None:
    """They are made as large as a slide is, and what has too small letters there is told."""
    result = typed(*command, "--style", "slides", "-o", "slide.png")
    assert result.status == 0, result.errors
    wide, high = dots(here / "slide.png")
    assert wide == pytest.approx(1920, abs=1) or high == pytest.approx(1080, abs=1)
    assert wide <= 1921
    assert high <= 1081
