"""A run killed in its middle, which the same command goes on with."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tests.fixtures.command_line import Result


def goes_on_after_kill_9(
    arguments: Sequence[str],
    typed: Callable[..., Result],
    environment: Mapping[str, str],
    n_lines: Callable[[Path], int | None],
) -> None:
    """Kill attnviz as soon as there is a checkpoint; the same command again ends as a run that was left alone.

    Args:
        arguments: of the command, without its checkpoint and outputs.
        typed: runs it in this process.
        environment: of one that is killed.
        n_lines: how many lines a checkpoint is of; None of one that is finished.
    """
    checkpoint = Path("c.stats")
    going_on = [*arguments, "--checkpoint", checkpoint.name]
    command = [sys.executable, "-m", "attnviz", *going_on, "-o", "never.json"]
    with subprocess.Popen(command, env=environment) as process:
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
    assert not Path("never.json").exists()
    resumed = typed(*going_on, "-o", "resumed.json", "-o", "resumed.csv")
    alone = typed(*arguments, "-o", "alone.json", "-o", "alone.csv")
    assert (resumed.status, resumed.output) == (0, alone.output)
    for ending in ("json", "csv"):
        assert Path(f"resumed.{ending}").read_bytes() == Path(f"alone.{ending}").read_bytes()
