"""Films of a walkthrough: a picture a step, all of one size."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from attnviz.analysis.walkthrough import attention_walk
from attnviz.errors import OutputError
from attnviz.views.walk_figure import stages
from attnviz.views.walk_film import DPI, film
from attnviz.walk import Grid, Walkthrough

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def walk(n: int) -> Walkthrough:
    """Numbers by hand, of so many keys."""
    keys = Grid(values=np.eye(n), rows=tuple(f"key {i}" for i in range(n)))
    return attention_walk(title="made by hand", query=Grid(values=np.ones((1, n))), keys=keys, values=keys)


def test_a_gif_has_a_picture_a_step(tmp_path: Path) -> None:
    """Of two calculations of five steps each ten pictures, of one size, each with more on it than the one before."""
    path = tmp_path / "walk.gif"
    film([walk(3), walk(5)], path, ".gif")
    with Image.open(path) as made:
        assert getattr(made, "n_frames", 1) == 10
        shown, ink = [], []
        for number in range(10):
            made.seek(number)
            shown.append(made.info["duration"])
            ink.append(int((np.asarray(made.convert("L")) < 128).sum()))
        assert shown == [2000, 2000, 2000, 2000, 5000] * 2
        assert ink[0] < ink[2] < ink[4]
        assert ink[5] < ink[7] < ink[9]


def test_only_the_steps_asked_for_are_in_the_film(tmp_path: Path) -> None:
    """Two steps, two pictures."""
    path = tmp_path / "walk.gif"
    film([walk(3)], path, ".gif", steps=["scores", "softmax"], language="ko")
    with Image.open(path) as made:
        assert getattr(made, "n_frames", 1) == 2


def test_each_picture_is_what_would_be_drawn_anew(tmp_path: Path) -> None:
    """What is drawn over the picture before it is, but for the choice of colours, the sheet drawn as a whole."""
    path = tmp_path / "walk.gif"
    film([walk(3)], path, ".gif")
    with Image.open(path) as made:
        for number, (sheet, _) in enumerate(stages(walk(3))):
            made.seek(number)
            sheet.set_dpi(DPI)
            sheet.canvas.draw()
            whole = np.asarray(sheet.canvas.buffer_rgba())[..., :3].astype(int)  # type: ignore[attr-defined]
            height, width = whole.shape[:2]
            off = np.abs(np.asarray(made.convert("RGB"))[:height, :width] - whole).max(axis=2)
            assert (off > 40).mean() < 1e-4, number


def test_without_ffmpeg_an_mp4_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear line, before anything is drawn."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("attnviz.views.walk_film.stages", pytest.fail)
    with pytest.raises(OutputError, match="needs the program ffmpeg"):
        film([walk(3)], tmp_path / "walk.mp4", ".mp4")


@pytest.fixture
def ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A program of this name that does what it is told, in place of the real one, which not every machine has."""

    def install(code: str) -> None:
        program = tmp_path / "bin" / "ffmpeg"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\nimport sys\n{code}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent))

    return install


def test_with_ffmpeg_it_is_given_every_picture(tmp_path: Path, ffmpeg: Callable[[str], None]) -> None:
    """Two a second, each as long as in a GIF, of the size that it is told; what it makes of them is the file."""
    ffmpeg(
        "data = sys.stdin.buffer.read()\n"
        "with open(sys.argv[-1], 'wb') as file: file.write(' '.join(sys.argv).encode() + b'\\n' + data)"
    )
    path = tmp_path / "walk.mp4"
    film([walk(3), walk(3)], path, ".mp4")
    arguments, pixels = path.read_bytes().split(b"\n", maxsplit=1)
    size = re.search(rb"-s (\d+)x(\d+)", arguments)
    assert size is not None
    assert b"yuv420p" in arguments
    shape = (-1, int(size[2]), int(size[1]), 4)
    pictures = np.frombuffer(pixels, np.uint8).reshape(shape)
    assert len(pictures) == 2 * (4 * 4 + 10)
    changes = [i for i in range(1, len(pictures)) if not np.array_equal(pictures[i - 1], pictures[i])]
    assert changes == [4, 8, 12, 16, 26, 30, 34, 38, 42]
    assert not any(side % 2 for side in shape[1:3])


def test_what_ffmpeg_cannot_write_is_said(tmp_path: Path, ffmpeg: Callable[[str], None]) -> None:
    """One line, no traceback."""
    ffmpeg("sys.stdin.buffer.read(); sys.exit('no encoder')")
    with pytest.raises(OutputError, match=r"ffmpeg cannot write an \.mp4 here"):
        film([walk(3)], tmp_path / "walk.mp4", ".mp4")
