"""A run killed in its middle, which the same command goes on with."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


def goes_on_after_kill_9(
    arguments: Sequence[str], here: Path, environment: Mapping[str, str], n_lines: Callable[[Path], int | None]
) -> None:
    """Kill attnviz as soon as there is a checkpoint; the same command again ends as a run that was left alone.

    Args:
        arguments: of the command, without its checkpoint and outputs.
        here: the folder it is run in.
        environment: likewise.
        n_lines: how many lines a checkpoint is of; None of one that is finished.
    """
    command = [sys.executable, "-m", "attnviz", *arguments]

    def run(*more: str) -> str:
        return subprocess.run(
            [*command, *more], cwd=here, env=environment, capture_output=True, text=True, timeout=120, check=True
        ).stdout

    checkpoint = here / "c.stats"
    going_on = ["--checkpoint", checkpoint.name]
    with subprocess.Popen([*command, *going_on, "-o", "never.json"], cwd=here, env=environment) as process:
        deadline = time.monotonic() + 60
        while not checkpoint.exists():
            assert process.poll() is None, "it ended before it could be killed"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.kill()
        assert process.wait(30) == -signal.SIGKILL
    read = n_lines(checkpoint)
    assert read is not None, "it was not in the middle"
    assert read % 512 == 0
    assert not (here / "never.json").exists()
    resumed = run(*going_on, "-o", "resumed.json", "-o", "resumed.csv")
    assert resumed == run("-o", "alone.json", "-o", "alone.csv")
    for ending in ("json", "csv"):
        assert (here / f"resumed.{ending}").read_bytes() == (here / f"alone.{ending}").read_bytes()
