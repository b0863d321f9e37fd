"""What a person sees while heads are measured: only on standard error, and only in a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

COMMAND = ["-m", "attnviz", "compare-heads", "I love all you", "--toy", "-o", "heads.json"]


def said(words: list[str], folder: Path, variables: dict[str, str]) -> tuple[str, str]:
    """Run attnviz with standard error in a terminal; return what is written to each."""
    controller, end = pty.openpty()
    chunks: list[bytes] = []

    def read() -> None:
        while not b"".join(chunks).endswith(b"#end#"):
            chunks.append(os.read(controller, 65536))

    reader = Thread(target=read, daemon=True)  # a terminal that nobody reads would stop the command
    reader.start()
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**variables, "TERM": "xterm"},
        stdout=subprocess.PIPE,
        stderr=end,
        text=True,
        timeout=300,
        check=True,
    )
    os.write(end, b"#end#")
    reader.join(60)
    os.close(controller)
    os.close(end)
    return done.stdout, b"".join(chunks).decode()


def test_each_stage_is_shown_and_erased(
    here: Path, environment: Callable[..., dict[str, str]]
) -> None:
    """In their order, and afterwards the line is empty again; the result is the same."""
    shown, written = said(COMMAND, here, environment())
    stages = ("starting", "loading toy", "measuring heads", "measuring controls", "computing")
    places = [written.find(stage) for stage in stages]
    assert min(places) >= 0
    assert places == sorted(places)
    assert "\x1b[2K" in written[places[-1] :]
    assert "Heads on one sentence" in shown
