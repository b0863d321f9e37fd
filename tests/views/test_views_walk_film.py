"""Films of a walkthrough: a picture a step, all of one size."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from attnviz.analysis.walkthrough import attention_walk
from attnviz.errors import OutputError
from attnviz.views.walk_film import film
from attnviz.walk import Grid, Walkthrough

if TYPE_CHECKING:
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


def test_without_ffmpeg_an_mp4_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear line, before anything is drawn."""
    monkeypatch.setattr("matplotlib.animation.FFMpegWriter.isAvailable", classmethod(lambda _: False))
    with pytest.raises(OutputError, match="needs the program ffmpeg"):
        film([walk(3)], tmp_path / "walk.mp4", ".mp4")


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_with_ffmpeg_an_mp4_is_written(tmp_path: Path) -> None:
    """A file that begins as such files do."""
    path = tmp_path / "walk.mp4"
    film([walk(3)], path, ".mp4")
    assert path.read_bytes()[4:8] == b"ftyp"
