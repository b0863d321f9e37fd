"""Films of a walkthrough: a picture a step, all of one size."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from attnviz.capture.source import open_source
from attnviz.errors import OutputError
from attnviz.render.figure.export import usual_settings
from attnviz.render.figure.film import DPI
from attnviz.walkthroughs.figure.film import draw_step, film, reel_of
from attnviz.walkthroughs.figure.flow import PALE
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.wording import shown_formula
from tests.programs import output, program
from tests.walkthroughs.by_hand import attention_walk
from tests.walkthroughs.head_walks import once
from tests.walkthroughs.head_walks import walk as home_walk

if TYPE_CHECKING:
    from pathlib import Path


def walk(n: int) -> Walkthrough:
    """Numbers by hand, of so many keys."""
    keys = Grid(values=np.eye(n), rows=tuple(f"key {i}" for i in range(n)))
    return attention_walk(
        title="made by hand", query=Grid(values=np.ones((1, n))), keys=keys, values=keys
    )


WALKS = [walk(3), walk(5)]


@pytest.fixture(scope="module")
def gif(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The film of two calculations of five steps each."""
    path = tmp_path_factory.mktemp("film") / "walk.gif"
    film(WALKS)(path)
    return path


def test_a_gif_has_a_picture_a_step(gif: Path) -> None:
    """Of two calculations of five steps each ten pictures, of one size, each with its time; none is like another."""
    with Image.open(gif) as made:
        assert getattr(made, "n_frames", 1) == 10
        shown, seen = [], set()
        for number in range(10):
            made.seek(number)
            shown.append(made.info["duration"])
            seen.add(made.convert("L").tobytes())
        assert shown == [2000, 2000, 2000, 2000, 5000] * 2
        assert len(seen) == 10


def test_only_the_steps_asked_for_are_in_the_film(tmp_path: Path) -> None:
    """Two steps, two pictures."""
    path = tmp_path / "walk.gif"
    film(walk(3), steps=["scores", "softmax"], lang="ko")(path)
    with Image.open(path) as made:
        assert getattr(made, "n_frames", 1) == 2


def test_each_picture_is_what_is_drawn(gif: Path) -> None:
    """But for the choice of colours, each picture of a GIF is the step that was drawn, all of one size."""
    with usual_settings(), Image.open(gif) as made:
        reels = [reel_of(one) for one in WALKS]
        size = max(reel.width for reel in reels), max(reel.height for reel in reels)
        for number, card in enumerate(reels[0].it.cards):
            figure = draw_step(reels[0], card, size).pen.figure
            figure.set_dpi(DPI)
            figure.canvas.draw()
            whole = np.asarray(figure.canvas.buffer_rgba())[..., :3].astype(int)  # type: ignore[attr-defined]
            made.seek(number)
            off = np.abs(np.asarray(made.convert("RGB")) - whole).max(axis=2)
            assert (off > 40).mean() < 1e-3, number


@pytest.mark.parametrize("n", [4, 12, 40])
def test_each_picture_has_one_step_in_letters_that_can_be_read(n: int) -> None:
    """Which step of how many, its formula, at least 14 pixels in a picture 1,200 wide; the steps before are pale."""
    with usual_settings():
        reel = reel_of(walk(n))
        for number, card in enumerate(reel.it.cards, start=1):
            page = draw_step(reel, card, (reel.width, reel.height))
            texts = page.ax.texts
            written = [text.get_text() for text in texts]
            assert written[0] == f"step {number} of {len(reel.it.cards)}"
            assert shown_formula(card.formula) in written
            assert card.sentence in " ".join(written)
            assert (
                min(float(text.get_fontsize()) for text in texts) / 72 / page.size[0] * 1200 >= 14
            )
            veils = [patch for patch in page.ax.patches if patch.get_alpha() == PALE]
            columns = {"q", "K", "scores", "scaled", "weights", "V"} - {
                matrix.name for _, matrix in card.parts
            }
            made = {
                matrix.name
                for earlier in reel.it.cards[: number - 1]
                for _, matrix in earlier.parts
            } - {"q"}
            assert len(veils) == len(made & columns)


def test_a_picture_of_several_heads_tells_their_steps() -> None:
    """By the places that these have in the whole calculation, above and beside the title."""
    with usual_settings():
        reel = reel_of(
            home_walk("I love all you", once(open_source("toy")), whole_layer=True, every=True)
        )
        page = draw_step(reel, reel.it.cards[5], (reel.width, reel.height))
    written = [text.get_text() for text in page.ax.texts]
    assert written[0] == "step 6, 13, … 41 of 52"
    assert "6, 13, … 41" in written


def test_without_ffmpeg_an_mp4_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One clear line, before anything is drawn."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("attnviz.walkthroughs.figure.film.reel_of", pytest.fail)
    with pytest.raises(OutputError, match="needs the program ffmpeg"):
        film(walk(3))(tmp_path / "walk.mp4")


def test_an_mp4_has_every_picture_in_its_time(tmp_path: Path, gif: Path) -> None:
    """What ffmpeg made, ffmpeg reads: two pictures a second, each step as long as in a GIF and looking like there."""
    path = tmp_path / "%d walk.mp4"
    film(WALKS)(path)
    stream = "stream=codec_name,pix_fmt,width,height,r_frame_rate,duration"
    told = output("ffprobe", "-v", "error", "-show_entries", stream, "-of", "json", path)
    (about,) = json.loads(told)["streams"]
    width, height = about["width"], about["height"]
    assert width % 2 == height % 2 == 0
    assert (about["codec_name"], about["pix_fmt"], about["r_frame_rate"]) == (
        "h264",
        "yuv420p",
        "2/1",
    )
    assert float(about["duration"]) == 2 * (4 * 2 + 5)
    raw = tmp_path / "raw"
    output("ffmpeg", "-v", "error", "-i", f"file:{path}", "-f", "rawvideo", "-pix_fmt", "gray", raw)
    pictures = np.fromfile(raw, np.uint8).reshape(-1, height, width).astype(int)
    assert len(pictures) == 2 * 2 * (4 * 2 + 5)
    shown = [
        step
        for half in (0, 1)
        for step in (*np.repeat(range(4), 4), *[4] * 10)
        for step in [5 * half + step]
    ]
    with Image.open(gif) as made:
        assert made.size == (width, height)
        for picture, step in zip(pictures, shown, strict=True):
            made.seek(step)
            off = np.abs(picture - np.asarray(made.convert("L")).astype(int))
            assert (off > 64).mean() < 0.002


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys; sys.stdin.buffer.read(); sys.exit('no encoder\\n')", "no encoder"),
        ("import sys; sys.exit('ended early')", "ended early"),
        ("raise SystemExit(3)", "it does not say why"),
    ],
)
def test_what_ffmpeg_says_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, reason: str
) -> None:
    """One line with the reason, no traceback, whether it reads the pictures or not."""
    put_in_place_of_ffmpeg(f"#!{sys.executable}\n{code}\n", tmp_path, monkeypatch)
    with pytest.raises(
        OutputError, match=rf"ffmpeg cannot write an \.mp4 here \({reason}\): write a \.gif"
    ):
        film(walk(3), steps=["scores"])(tmp_path / "walk.mp4")


def test_an_ffmpeg_that_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of this name for another machine is no program here."""
    put_in_place_of_ffmpeg("\0", tmp_path, monkeypatch)
    with pytest.raises(OutputError, match=r"ffmpeg cannot be run here \(Exec format error\)"):
        film(walk(3), steps=["scores"])(tmp_path / "walk.mp4")


def test_the_real_ffmpeg_says_why(tmp_path: Path) -> None:
    """Such as a folder that is not there."""
    program("ffmpeg")
    with pytest.raises(
        OutputError, match=r"ffmpeg cannot write an \.mp4 here \(.*No such file or directory\)"
    ):
        film(walk(3), steps=["scores"])(tmp_path / "nowhere" / "walk.mp4")


def put_in_place_of_ffmpeg(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is found as ffmpeg, and as nothing else is."""
    there = folder / "bin" / "ffmpeg"
    there.parent.mkdir()
    there.write_text(text)
    there.chmod(0o755)
    monkeypatch.setenv("PATH", str(there.parent))
