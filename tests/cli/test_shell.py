"""What all commands share: how much they say, colours in a pipe, defaults from the environment, files replaced."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from attnviz.storage.formats import RECORD

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result

SHOW = ("--load", "saved.npz", "-o", "a.json")


@pytest.mark.parametrize("arguments", [("-q", "heatmap", *SHOW), ("heatmap", *SHOW, "--quiet")])
def test_quiet(typed: Callable[..., Result], saved: Path, arguments: tuple[str, ...]) -> None:
    """Before the command's name or after it: no word about files, and the same output."""
    assert saved.exists()
    result, usual = typed(*arguments), typed("heatmap", *SHOW)
    assert (result.status, result.errors) == (0, "")
    assert usual.errors == "wrote a.json\n"
    assert result.output == usual.output


def test_verbose(typed: Callable[..., Result], here: Path) -> None:
    """Where the model comes from, and how long each part took."""
    lines = typed("heatmap", "--toy", "I love you", "-v", "-o", "a.json").errors.splitlines()
    parts = [line.partition(" s  ")[2] for line in lines if " s  " in line]
    assert parts == ["model toy, from attnviz itself", "computed", "printed", "a.json"]
    assert all(float(line.split()[0]) >= 0 for line in lines if " s  " in line)
    assert (here / "a.json").exists()


def test_verbose_of_a_folder(typed: Callable[..., Result], tiny_bert: str) -> None:
    """Of a model in a folder the folder."""
    assert (
        f", from {tiny_bert}\n"
        in typed("heatmap", "-m", tiny_bert, "I", "-v", "-o", "a.json").errors
    )


def test_quiet_and_verbose(refused: Callable[..., tuple[int, str]]) -> None:
    """Both at once make no sense, wherever each stands."""
    line = "attnviz heatmap: give quiet or verbose, not both (see attnviz heatmap --help)"
    assert refused("heatmap", "--toy", "I", "-q", "-v") == (2, line)
    assert refused("-q", "heatmap", "--toy", "I", "-v") == (2, line)


@pytest.mark.parametrize(
    ("options", "variables", "colour"),
    [
        ((), {}, False),
        (("--color", "always"), {}, True),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        (("--color", "auto"), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_in_a_pipe(
    typed: Callable[..., Result],
    saved: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    variables: dict[str, str],
    *,
    colour: bool,
) -> None:
    """The option decides, then the environment; a pipe that nobody speaks for has no colour."""
    assert saved.exists()
    typed("--version")  # which clears the environment
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in typed("heatmap", *SHOW, *options).output) == colour


def test_no_pager_in_a_pipe(
    typed: Callable[..., Result], saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe gets all of it, whatever the pager and however long."""
    assert saved.exists()
    monkeypatch.setenv("PAGER", "false")
    monkeypatch.setenv("LINES", "5")
    assert "verified" in typed("heatmap", *SHOW).output


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
    result = typed("walkthrough", "I love you", "--seed", "3")
    assert result.status == 0
    assert "toy-random" in result.output
    assert "질의" in result.output or "쿼리" in result.output
    (picture,) = (here / "my" / "pictures").iterdir()
    assert f"my/pictures/{picture.name}" in result.errors
    assert "toy-random" not in typed("walkthrough", "--toy", "I love you", "-o", "a.json").output
    assert typed("heatmap", "I love you", "-m", "toy", "-o", "a.npz").status == 0
    assert RECORD.load(here / "a.npz").model == "toy"
    assert not (here / "outputs").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("heatmap", *SHOW),
        ("walkthrough", "--example", "seq2seq", "-o", "a.md"),
        ("walkthrough", "--exercise"),
    ],
)
def test_a_usual_model_is_in_nobodys_way(
    typed: Callable[..., Result],
    saved: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    """What needs no model is not refused because the environment names one."""
    assert saved.exists()
    monkeypatch.setenv("ATTNVIZ_MODEL", "toy-random")
    assert typed(*arguments).status == 0


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("ATTNVIZ_PALETTE", "magmaa", "there is no palette 'magmaa'"),
        ("ATTNVIZ_LANG", "xx", "'xx' is not one of 'en', 'ko'"),
        ("ATTNVIZ_MODEL", "toy-randmo", "there is no home-built model 'toy-randmo'"),
        ("ATTNVIZ_OUTPUTS", "saved.npz/x", "saved.npz"),
        (
            "ATTNVIZ_OUTPUTS",
            "saved.npz",
            "ATTNVIZ_OUTPUTS names a folder for pictures, and saved.npz is a file",
        ),
        (
            "ATTNVIZ_OUTPUTS",
            "A.PNG",
            "ATTNVIZ_OUTPUTS names a folder for pictures, and A.PNG is a file, or looks like",
        ),
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


def test_help_tells_of_the_environment(typed: Callable[..., Result]) -> None:
    """Help says which variables there are."""
    shown = typed("walkthrough", "--help").output
    for name in ("MODEL", "LANG", "PALETTE", "OUTPUTS"):
        assert f"ATTNVIZ_{name}" in shown


# ------------------------------------------------------------------------------------------------------- files


def test_replaced(typed: Callable[..., Result], saved: Path) -> None:
    """A file that held something else is said to be replaced; the same picture again is not."""
    assert saved.exists()
    show = ("heatmap", "--load", "saved.npz", "-o", "a.svg")
    assert typed(*show).errors == "wrote a.svg\n"
    assert typed(*show).errors == "wrote a.svg\n"
    assert typed(*show, "--palette", "viridis").errors == "replaced a.svg\n"


@pytest.mark.parametrize(
    ("usual", "others"),
    [
        (
            ("heatmap", "I love you"),
            [
                ("--palette", "viridis"),
                ("--scale", "panel"),
                ("--words",),
                ("--dtype", "float64"),
                ("--head", "1.2"),
            ],
        ),
        (
            ("walkthrough", "I love you"),
            [("--precision", "5"), ("--causal",), ("--palette", "gray"), ("--lang", "ko")],
        ),
        (
            ("compare-heads", "I love you"),
            [("--specials", "exclude"), ("--threshold", "previous=0.4")],
        ),
    ],
)
def test_another_picture_is_another_file(
    typed: Callable[..., Result], here: Path, usual: tuple[str, ...], others: list[tuple[str, ...]]
) -> None:
    """Options that make another picture are part of the name that nobody chose."""
    for more in ((), *others):
        result = typed(*usual, "-m", "toy-random", *more)
        assert (result.status, "replaced" in result.errors) == (0, False)
    assert len([*(here / "outputs").iterdir()]) == 1 + len(others)
    assert (
        len(typed("heatmap", "I", "-m", "toy-random", "--palette", "viridis_r").errors.splitlines())
        == 1
    )


def test_open(
    typed: Callable[..., Result], saved: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--open shows what was written by the program of the system for it; where there is none, that is said."""
    assert saved.exists()
    program = here / "xdg-open"
    program.write_text(f'#!/bin/sh\necho "$1" > {here}/shown\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{here}:{os.environ['PATH']}")
    assert typed("heatmap", *SHOW, "-o", "a.svg", "--open").status == 0
    for _ in range(100):
        if (here / "shown").exists() and (here / "shown").read_text():
            break
        time.sleep(0.05)
    assert (here / "shown").read_text() == "a.svg\n"
    program.unlink()
    monkeypatch.setenv("PATH", str(here))
    assert typed("heatmap", *SHOW, "-o", "a.svg", "--open").errors.endswith(
        "no program here opens a.svg\n"
    )


def test_a_character_that_no_font_has(typed: Callable[..., Result], here: Path) -> None:
    """The picture is written all the same, with a hint what to install; --strict makes it an error."""
    show = ("heatmap", "-m", "toy-random", "I \N{KHMER LETTER KA} you")
    result = typed(*show, "-o", "a.svg")
    assert (result.status, (here / "a.svg").exists()) == (0, True)
    assert "no installed font has \N{KHMER LETTER KA}: " in result.errors
    result = typed(*show, "-o", "b.svg", "--strict")
    assert (result.status, (here / "b.svg").exists()) == (1, False)
    said = "attnviz: no installed font has \N{KHMER LETTER KA}: b.svg is not written; on Debian or Ubuntu install "
    assert result.errors.startswith(said)
