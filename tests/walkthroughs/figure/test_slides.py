"""A walkthrough on slides: of one size, with letters that can be read from the last row, and no step lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.errors import AttnvizWarning
from attnviz.walkthroughs.examples import example, make
from attnviz.walkthroughs.figure.sheet import draw
from attnviz.walkthroughs.figure.slides import draw_slides
from attnviz.walkthroughs.homework import read
from attnviz.walkthroughs.record import Grid
from attnviz.walkthroughs.settings import Example
from attnviz.walkthroughs.view import View
from tests.walkthroughs.by_hand import attention_walk, of_model
from tests.walkthroughs.figure.layout import WALKS, expect_apart

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    from tests.fixtures.command_line import Result

Texts = Callable[["Figure"], list[tuple[str, "Bbox"]]]
Typed = Callable[..., "Result"]


def least_letters(figure: Figure) -> float:
    """The size of the smallest letters, in points."""
    from matplotlib.text import Text

    texts = [text for text in figure.findobj(Text) if text.get_text().strip()]
    return min(float(text.get_fontsize()) for text in texts if text.get_visible())


@pytest.mark.parametrize("name", WALKS)
def test_slides_have_one_size_and_letters_that_can_be_read(name: str, texts_of: Texts) -> None:
    """Letters have 9 points or more; nothing is cut or lies on anything; each slide has the finding and the receipt."""
    view = View(walk=WALKS[name]())
    slides = draw_slides(view)
    for number, slide in enumerate(slides, start=1):
        assert tuple(slide.figure.get_size_inches()) == pytest.approx((40 / 3, 7.5))
        assert least_letters(slide.figure) >= 8.99
        texts = texts_of(slide.figure)
        expect_apart(slide.figure, texts)
        words = [text for text, _ in texts]
        assert view.heading[0] in words
        assert (f"{number} / {len(slides)}" in words) == (len(slides) > 1)
        assert view.receipt in " ".join(words)


@pytest.mark.parametrize("name", WALKS)
def test_every_step_is_on_a_slide(name: str, texts_of: Texts) -> None:
    """The steps of the sheet are on the slides, in the same order."""
    view = View(walk=WALKS[name]())
    titles = {card.title for card in view.cards()} | {"Input and projections", "Softmax"}
    on_sheet, on_slides = (
        [text for figure in figures for text, _ in texts_of(figure) if text in titles]
        for figures in ([draw(view).figure], [slide.figure for slide in draw_slides(view)])
    )
    assert len(on_sheet) > 2
    # A step of several heads can be continued on the next slide, under the same title.
    assert list(dict.fromkeys(on_slides)) == list(dict.fromkeys(on_sheet))


def test_keys_without_room_are_left_out(texts_of: Texts) -> None:
    """A slide shows the first keys, the last ones and the one with the largest weight, with dots between them."""
    names = tuple(f"key {number}" for number in range(60))
    keys = Grid(values=np.array([[float(number == 30)] for number in range(60)]), rows=names)
    walk = attention_walk(
        title="made by hand",
        query=Grid(values=np.array([[9.0]]), rows=("query",)),
        keys=keys,
        values=keys,
        score="dot",
    )
    texts = [text for text, _ in texts_of(draw_slides(View(walk=walk))[0].figure)]
    start = texts.index("key 0")
    rows = texts[start : texts.index("key 59") + 1]
    assert rows[1] == "key 1"
    assert rows[-4:] == ["key 30", "⋮", "key 58", "key 59"]
    assert rows[-5] == "⋮"


@pytest.mark.parametrize("name", ["seq2seq", "self-attention"])
def test_an_example_is_one_slide(name: Example) -> None:
    """The calculations of the course fit, with their notes."""
    assert len(draw_slides(View(walk=example(name)))) == 1


def test_a_short_calculation_has_larger_letters() -> None:
    """A slide is filled, instead of having all letters as small as they may be."""
    (slide,) = draw_slides(View(walk=read("sample_inputs/mixing.yaml")))
    assert least_letters(slide.figure) > 11


def test_an_exercise_is_one_slide() -> None:
    """A table in letters of at least 9 points, with all its boxes."""
    walk = make(7)
    (slide,) = draw_slides(View(walk=walk, blanks=walk.blanks()))
    assert tuple(slide.figure.get_size_inches()) == pytest.approx((40 / 3, 7.5))
    assert least_letters(slide.figure) >= 9
    assert len(slide.figure.axes[0].patches) == len(walk.blanks())


def test_a_matrix_that_is_too_wide_makes_a_warning() -> None:
    """Numbers with 17 digits need smaller letters; the warning names the way out."""
    view = View(walk=of_model(12, one=False), precision=17)
    with pytest.warns(AttnvizWarning, match="--style sheet"):
        slides = draw_slides(view)
    for slide in slides:
        assert tuple(slide.figure.get_size_inches()) == pytest.approx((40 / 3, 7.5))


def test_slides_are_numbered_files_or_pages(typed: Typed, here: Path) -> None:
    """PNG and SVG files have numbers, a PDF has pages; each "wrote" line names a file; Python writes the same."""
    from PIL import Image

    import attnviz

    command = ["walkthrough", "--toy", "--style", "slides"]
    result = typed(*command, "-o", "walk.png", "-o", "walk.svg", "-o", "walk.pdf")
    names = ["walk-1.png", "walk-2.png", "walk-1.svg", "walk-2.svg", "walk.pdf"]
    assert result.errors.splitlines() == [f"wrote {name}" for name in names]
    assert sorted(names) == sorted(path.name for path in here.iterdir())
    for name in names[:2]:
        with Image.open(here / name) as image:
            assert image.size == (1920, 1080)
    assert (here / "walk.pdf").read_bytes().count(b"/Type /Page ") == 2
    walk = attnviz.walkthrough(model="toy")
    assert walk.save(here / "again.png", style="slides") == here / "again-1.png"
    for number in (1, 2):
        again, typed_file = here / f"again-{number}.png", here / f"walk-{number}.png"
        assert again.read_bytes() == typed_file.read_bytes()


def test_one_slide_has_the_name_that_was_typed(typed: Typed, here: Path) -> None:
    """Without a number."""
    result = typed("walkthrough", "--example", "seq2seq", "--style", "slides", "-o", "walk.png")
    assert result.errors == "wrote walk.png\n"
    assert (here / "walk.png").is_file()
