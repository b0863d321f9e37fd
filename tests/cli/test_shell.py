"""Common behaviour of commands: messages, colours in a pipe, defaults from the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.errors import AttnvizWarning

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result

SHOW = ("--load", "saved.npz", "-o", "a.json")


@pytest.mark.parametrize("arguments", [("heatmap", "-q", *SHOW), ("heatmap", *SHOW, "--quiet")])
def test_quiet(typed: Callable[..., Result], saved: Path, arguments: tuple[str, ...]) -> None:
    """No word about files, and the same output."""
    assert saved.exists()
    result, usual = typed(*arguments), typed("heatmap", *SHOW)
    assert (result.status, result.errors) == (0, "")
    assert usual.errors == "wrote a.json\n"
    assert result.output == usual.output


# ------------------------------------------------------------------------------------------------- environment


def test_defaults_from_the_environment(
    typed: Callable[..., Result], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Model, language, palette and folder are those of the environment, unless an option says otherwise."""
    for name, value in {
        "MODEL": "toy-random",
        "LANG": "ko",
        "PALETTE": "viridis",
        "OUTPUTS": "my/pictures",
    }.items():
        monkeypatch.setenv(f"ATTNVIZ_{name}", value)
    result = typed("walkthrough", "I love you")
    assert result.status == 0
    assert "toy-random" in result.output
    assert "질의" in result.output or "쿼리" in result.output
    (picture,) = (here / "my" / "pictures").iterdir()
    assert f"my/pictures/{picture.name}" in result.errors
    assert "toy-random" not in typed("walkthrough", "--toy", "I love you", "-o", "a.json").output
    assert typed("heatmap", "I love you", "-m", "toy", "-o", "a.npz").status == 0
    assert attnviz.load(here / "a.npz").model == "toy"
    assert not (here / "outputs").exists()


@pytest.mark.parametrize(
    "command",
    [
        ("heatmap", "I love you", "-m", "toy-random"),
        ("generate", "I love", "--max-new-tokens", "2"),
        ("walkthrough", "--example", "self-attention"),
        ("compare-heads", "I love you", "-m", "toy-random"),
        ("demo", "transpose"),
    ],
    ids=lambda command: command[0],
)
def test_light_and_dark(
    typed: Callable[..., Result],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    """A theme of the environment or of the option holds for picture, page and terminal; pictures are light without."""
    from matplotlib.image import imread

    def draw(*options: str) -> tuple[float, str]:
        """The brightness of the picture's corner, and the output."""
        result = typed(*command, *options, "-o", "a.png", "-o", "a.html")
        assert result.status == 0
        return float(imread(here / "a.png")[2, 2, :3].mean()), result.output

    monkeypatch.setenv("FORCE_COLOR", "1")
    brightness, light = draw("--theme", "light")
    assert brightness == 1
    monkeypatch.setenv("ATTNVIZ_THEME", "dark")
    brightness, dark = draw()
    assert brightness < 0.1
    assert '<meta name="color-scheme" content="dark">' in (here / "a.html").read_text("utf-8")
    if command[0] == "heatmap":
        assert draw("--theme", "light") == (1, light)
        assert draw("--theme", "auto")[0] == 1
    if command[0] in {"heatmap", "walkthrough"}:  # the others print no cells in colours of weights
        assert dark != light


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ATTNVIZ_PALETTE", "magmaa", "there is no palette 'magmaa'"),
        ("ATTNVIZ_THEME", "pink", "'pink' is not one of 'auto', 'light', 'dark'"),
        ("ATTNVIZ_LANG", "xx", "'xx' is not one of 'en', 'ko'"),
        ("ATTNVIZ_MODEL", "toy-randmo", "there is no home-built model 'toy-randmo'"),
        ("ATTNVIZ_OUTPUTS", "saved.npz", "a folder for pictures, and saved.npz is a file"),
    ],
)
def test_an_environment_that_makes_no_sense(
    refused: Callable[..., tuple[int, str]],
    saved: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    name: str,
    value: str,
    reason: str,
) -> None:
    """It is refused in one line, as an option would be."""
    assert saved.exists()
    monkeypatch.setenv(name, value)
    status, line = refused(
        "walkthrough", "I love you", *(() if name == "ATTNVIZ_MODEL" else ("-m", "toy-random"))
    )
    assert status
    assert reason in line


# ------------------------------------------------------------------------------------------------------- files


def test_a_character_that_no_font_has(typed: Callable[..., Result], here: Path) -> None:
    """The picture is written all the same, with a hint what to install."""
    with pytest.warns(AttnvizWarning, match="no installed font has \N{KHMER LETTER KA}: "):
        attnviz.attend("I \N{KHMER LETTER KA} you", model="toy-random").save(here / "b.svg")
    result = typed("heatmap", "-m", "toy-random", "I \N{KHMER LETTER KA} you", "-o", "a.svg")
    assert (result.status, (here / "a.svg").exists()) == (0, True)
