"""What a picture of heads is for: a slide, a column of a paper; legible there, or said that it is not."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import attnviz
from attnviz.errors import AttnvizWarning, SettingsError
from attnviz.heads.settings import SurveySettings
from attnviz.render.figure.style import smallest_letters

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

    from attnviz.heads.record import HeadComparison
    from tests.fixtures.command_line import Result

    Texts = Callable[[Figure], list[tuple[str, Bbox]]]

pytestmark = pytest.mark.usefixtures("whole_corpora", "few_seeds")

SENTENCES = [
    "the boy sees a girl near the house .",
    "a girl sees two dogs .",
    "the old queen sees the boy .",
] * 8


@pytest.fixture(scope="module")
def comparison() -> HeadComparison:
    """The heads of the home-built encoder."""
    return attnviz.compare_heads(SENTENCES, model="toy", settings=SurveySettings(controls=8))


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize(
    ("page", "wide", "least"),
    [
        ({"style": "paper"}, 3.3, 6.0),
        ({"style": "paper", "width": "8cm"}, 8 / 2.54, 6.0),
        ({"style": "slides"}, 40 / 3, 10.0),
        ({"width": "84mm"}, 8.4 / 2.54, 4.5),
    ],
)
def test_the_sheet_is_legible_at_its_width(
    comparison: HeadComparison,
    texts_of: Texts,
    page: dict[str, Any],
    wide: float,
    least: float,
    *,
    lang: str,
) -> None:
    """It is as wide as wanted, no letters are too small, nothing leaves it, and nobody is warned."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", AttnvizWarning)
        figure = comparison.figure(lang=lang, **page)
    assert figure.get_size_inches()[0] == pytest.approx(wide)
    assert smallest_letters(figure) >= least - 0.05
    assert all(box.x0 >= -0.5 and box.x1 <= figure.bbox.width + 0.5 for _, box in texts_of(figure))
    shown = " ".join(text for text, _ in texts_of(figure))
    assert ("role" in shown) == (lang == "en")


@pytest.mark.parametrize(("lang", "name", "turned"), [("en", "layer", 90), ("ko", "층", 0)])
def test_hangul_does_not_lie_on_its_side(
    comparison: HeadComparison, lang: str, name: str, turned: float
) -> None:
    """A word that is turned in English stands upright in Korean."""
    (layer,) = (
        text for text in comparison.figure(lang=lang).axes[0].texts if text.get_text() == name
    )
    assert layer.get_rotation() == turned


@pytest.mark.parametrize("view", [{"head": (0, 1)}, {"width": "1.2in"}])
def test_what_cannot_be_read_at_its_width_is_said(
    comparison: HeadComparison, view: dict[str, Any]
) -> None:
    """With the width from which on it can be."""
    with pytest.warns(
        AttnvizWarning, match=r"the smallest letters are .* pt: they can be read from .*in on"
    ):
        comparison.figure(**({"style": "paper"} | view))
    with pytest.raises(SettingsError, match="no length"):
        comparison.figure(**(view | {"width": "3 furlongs"}))


def test_the_command_takes_what_python_takes(
    typed: Callable[..., Result], here: Path, environment: Callable[..., dict[str, str]]
) -> None:
    """The same picture; its name tells what it is for."""
    (here / "corpus.txt").write_text("\n".join(SENTENCES))
    measured = [
        sys.executable,
        "-m",
        "attnviz",
        "compare-heads",
        "-m",
        "toy-random",
        "--corpus",
        "corpus.txt",
    ]
    look = ("--style", "paper")
    files = ("-o", "sheet.png", "-o", "a.stats")
    result = subprocess.run(
        [*measured, *look, *files], check=True, capture_output=True, text=True, env=environment()
    )
    assert "the smallest letters are" not in result.stderr
    width = int.from_bytes((here / "sheet.png").read_bytes()[16:20], "big")
    assert width == pytest.approx(1980, abs=6)
    assert typed("compare-heads", "--load", "a.stats", *look).status == 0
    page = typed("head", "0.1", "--load", "a.stats", "--width", "5in", "-o", "head.png")
    assert page.status == 0, page.errors
    assert int.from_bytes((here / "head.png").read_bytes()[16:20], "big") == pytest.approx(
        750, abs=1
    )
