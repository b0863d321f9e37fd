"""A model from the hub: downloaded, taken from the cache, broken off in the middle; seen from the command line."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

from attnviz.storage.record_files import load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.capture.sources.conftest import Hub
    from tests.conftest import Run

DEFAULT = "distilbert-base-uncased"
SOMEBODY = "somebody/distilbert"


def partial_files(folder: Path) -> list[Path]:
    """What an unfinished download would leave."""
    return [path for path in folder.rglob("*") if "incomplete" in path.name or path.name.startswith("tmp_")]


def test_first_download_then_cache(heatmap: Run, hub: Hub, tmp_path: Path) -> None:
    """The default model is downloaded once; after that the hub is not asked for anything, even where it is gone."""
    first = heatmap("I love all you", "-o", "first.npz")
    assert (first.returncode, first.stderr) == (0, "wrote first.npz\n")
    assert first.stdout.splitlines()[1] == f"{DEFAULT} · bidirectional self-attention"
    assert first.stdout.splitlines()[2].startswith("3 layers x 2 heads, layers down; ")
    assert "GET" in " ".join(hub.asked)
    hub.asked.clear()

    second = heatmap("I love all you", "-m", DEFAULT, "-o", "second.npz")
    assert (second.returncode, second.stderr, second.stdout) == (0, "wrote second.npz\n", first.stdout)
    assert hub.asked == []

    hub.close()
    third = heatmap("I love all you", "-o", "third.npz", HF_HUB_OFFLINE="1")
    assert (third.returncode, third.stderr, third.stdout) == (0, "wrote third.npz\n", first.stdout)
    record = load(tmp_path / "first.npz")
    assert record == load(tmp_path / "second.npz") == load(tmp_path / "third.npz")
    assert [token.text for token in record.query_tokens] == ["[CLS]", "i", "love", "all", "you", "[SEP]"]


def test_cache_variables_are_honoured(heatmap: Run, hub: Hub, tmp_path: Path) -> None:
    """What is downloaded lies where ``HF_HUB_CACHE`` says, with the token of the environment shown to the hub."""
    name = "hf_somebody"
    result = heatmap("I", "-m", SOMEBODY, "-o", "a.npz", HF_HUB_CACHE=str(tmp_path / "here"), HF_TOKEN=name)
    assert (result.returncode, result.stderr) == (0, "wrote a.npz\n")
    assert (tmp_path / "here" / "models--somebody--distilbert").is_dir()
    assert f"Bearer {name}" in hub.tokens


def test_download_shows_its_progress(online: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    """Where a person looks, the library's progress bar shows the weights come in, and nothing else of the library's."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 24, 100, 0, 0))
    command = [sys.executable, "-m", "attnviz", "heatmap", "I", "-m", SOMEBODY, "-o", "a.npz"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=online(TERM="xterm"), stdout=subprocess.DEVNULL, stderr=terminal
    ) as process:
        os.close(terminal)
        shown = b""
        while chunk := read(controller):
            shown += chunk
    os.close(controller)
    text = shown.decode()
    assert process.returncode == 0, text
    assert "model.safetensors: 100%" in text
    assert "unauthenticated" not in text
    assert "Loading weights" not in text
    assert text.endswith("wrote a.npz\r\n")


def read(controller: int) -> bytes:
    """What a terminal shows next; nothing once all who write to it have gone."""
    try:
        return os.read(controller, 4096)
    except OSError:
        return b""


def test_broken_off_in_the_middle(refused: Callable[..., str], heatmap: Run, hub: Hub, tmp_path: Path) -> None:
    """A download that breaks off is one line and leaves no half of a file; the next one works."""
    hub.broken = True
    line = refused("I love all you", "-m", SOMEBODY)
    assert line.startswith(f"{SOMEBODY} cannot be downloaded: peer closed connection without sending complete message")
    assert partial_files(tmp_path) == []
    hub.broken = False
    result = heatmap("I love all you", "-m", SOMEBODY, "-o", "a.npz")
    assert (result.returncode, result.stderr) == (0, "wrote a.npz\n")


def test_ctrl_c_while_downloading(hub: Hub, online: Callable[..., dict[str, str]], tmp_path: Path) -> None:
    """Ctrl-C in the middle of the weights ends the command at once and leaves no half of a file."""
    hub.stalled = True
    command = [sys.executable, "-m", "attnviz", "heatmap", "I", "-m", SOMEBODY]
    with subprocess.Popen(
        command, cwd=tmp_path, env=online(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert hub.half_way.wait(60)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)
    assert (process.returncode, output, errors) == (130, "", "attnviz: interrupted\n")
    assert partial_files(tmp_path) == []
