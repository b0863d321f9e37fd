"""``attnviz train``: weights that are made again, training that is interrupted, and what is refused."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
import torch

from attnviz.models.training import files, measure, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from attnviz.models.training.tasks import Task
    from tests.fixtures.command_line import Result

STEPS = 30


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """What the command sets for its own process is set back."""
    handler, threads = signal.getsignal(signal.SIGINT), torch.get_num_threads()
    # who starts tests in the background ignores Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(mode=False)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ["train", "no-such"],
            "there is no model 'no-such' to train: there are toy, toy-decoder, toy-ko, toy-seq2seq",
        ),
        (["train"], "Missing argument 'NAME'"),
        (
            ["train", "toy", "--steps", "-5"],
            "'--steps': Input should be greater than or equal to 1",
        ),
        (["train", "toy", "--steps", "0"], "'--steps': Input should be greater than or equal to 1"),
        (["train", "toy", "--steps", "many"], "'--steps': Input should be a valid integer"),
        (["train", "toy", "--seed", "-1"], "'--seed': Input should be greater than or equal to 0"),
        (["train", "toy", "-o", "weights.pt"], "weights are written as .safetensors"),
        (["train", "toy", "-o", "weights"], "weights are written as .safetensors"),
    ],
)
def test_misused(refused: Callable[..., tuple[int, str]], arguments: list[str], told: str) -> None:
    """Status 2 and one line, before anything is trained or written."""
    status, line = refused(*arguments)
    assert status == 2
    assert told in line


def test_cannot_be_written(refused: Callable[..., tuple[int, str]], here: Path) -> None:
    """A file where the folder should be, a folder where the file should be: status 1 before the first step."""
    (here / "file").write_text("no folder")
    (here / "folder.safetensors").mkdir()
    for path in ("file/a.safetensors", "folder.safetensors", "/proc/a.safetensors"):
        status, line = refused("train", "toy", "-o", path)
        assert status == 1
        assert path.split("/")[0] in line


def test_trains(typed: Callable[..., Result], here: Path) -> None:
    """Three steps to a whole file: quality on standard output, the rest on standard error; nothing else stays."""
    result = typed("train", "toy-decoder", "--steps", "3", "--seed", "2", "-o", "new/x.safetensors")
    assert result.status == 0, result.errors
    assert result.errors.endswith("wrote new/x.safetensors\n")
    assert [path.name for path in (here / "new").iterdir()] == ["x.safetensors"]
    card, _ = files.load(here / "new" / "x.safetensors")
    assert (card.name, card.plan.recipe.steps, card.plan.recipe.seed) == ("toy-decoder", 3, 2)
    assert result.output == "".join(f"{line}\n" for line in measure.quality_lines(card.quality))
    assert result.output.startswith("nats a word: ")


def test_a_full_disk(typed: Callable[..., Result], here: Path) -> None:
    """What does not fit is one line, and no half of a file stays."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        result = typed("train", "toy-decoder", "--steps", "1", "-o", "x.safetensors")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.status == 1
    assert (
        result.errors.splitlines()[-1]
        == "attnviz: x.unfinished.safetensors cannot be written: File too large"
    )
    assert list(here.iterdir()) == []


@pytest.fixture
def kept(here: Path, typed: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A training of 3 steps that was stopped before the first."""
    train = run.take_steps

    def stopped(task: Task, **more: object) -> files.State:
        return train(task, **more | {"stop": lambda: True})  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(run, "take_steps", stopped)
        assert typed("train", "toy-decoder", "--steps", "3", "-o", "x.safetensors").status == 130
    assert [path.name for path in here.iterdir()] == ["x.unfinished.safetensors"]
    return here / "x.unfinished.safetensors"


def test_going_on_with_something_else(refused: Callable[..., tuple[int, str]], kept: Path) -> None:
    """An unfinished training of another seed, length or model is kept, and the command says so; so a damaged one."""
    for other in (
        ["toy-decoder", "--steps", "3", "--seed", "1"],
        ["toy-decoder", "--steps", "4"],
        ["toy", "--steps", "3"],
    ):
        status, line = refused("train", *other, "-o", "x.safetensors")
        assert status == 1
        assert "x.unfinished.safetensors is of another training" in line
        assert "remove it to begin anew" in line
    kept.write_bytes(kept.read_bytes()[:-9])
    status, line = refused("train", "toy-decoder", "--steps", "3", "-o", "x.safetensors")
    assert status == 1
    assert "x.unfinished.safetensors holds no training to go on with" in line


def test_ctrl_c_while_it_is_measured(
    typed: Callable[..., Result], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training that has ended is not lost: the same command only measures again."""
    arguments = ("train", "toy-decoder", "--steps", "2", "-o", "x.safetensors")

    def interrupted(*_: object, **__: object) -> dict[str, float]:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
        raise AssertionError

    with monkeypatch.context() as patch:
        patch.setattr(measure, "quality", interrupted)
        assert typed(*arguments).status == 130
    assert [path.name for path in here.iterdir()] == ["x.unfinished.safetensors"]
    result = typed(*arguments)
    assert result.status == 0
    assert result.errors.startswith("going on from step 2\n")
    assert [path.name for path in here.iterdir()] == ["x.safetensors"]


def test_ctrl_c_in_the_middle(
    typed: Callable[..., Result], here: Path, environment: Callable[..., dict[str, str]]
) -> None:
    """Status 130 and where it stopped; the same command goes on, and ends with the file of an unbroken training."""
    arguments = ["train", "toy-decoder", "--steps", str(STEPS), "-o", "x.safetensors"]
    terminal, stream = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "attnviz", *arguments],
        cwd=here,
        env=environment(TERM="xterm", COLUMNS="120"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stream,
    ) as process:
        os.close(stream)
        said, pressed = b"", False
        while more := read(terminal):
            said += more
            if b"loss" in said and not pressed:
                pressed = True
                process.send_signal(signal.SIGINT)
        status = process.wait(30)
        assert process.stdout is not None
        assert process.stdout.read() == b""
    os.close(terminal)
    assert status == 130
    assert (
        b"kept in x.unfinished.safetensors: the same command goes on\r\nattnviz: interrupted\r\n"
        in said
    )
    assert b"Traceback" not in said
    assert [path.name for path in here.iterdir()] == ["x.unfinished.safetensors"]

    result = typed(*arguments)
    assert result.status == 0
    step = int(result.errors.split("\n")[0].removeprefix("going on from step "))
    assert 0 < step < STEPS
    assert f"stopped after step {step}," in said.decode()
    assert [path.name for path in here.iterdir()] == ["x.safetensors"]
    assert typed(*arguments[:-1], "whole.safetensors").status == 0
    whole, broken = (files.load(here / name) for name in ("whole.safetensors", "x.safetensors"))
    assert whole[0] == broken[0]
    for name, tensor in whole[1].state_dict().items():
        assert torch.equal(tensor, broken[1].state_dict()[name])


def read(terminal: int) -> bytes:
    """What is written to a terminal next; nothing when nobody writes any more."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
