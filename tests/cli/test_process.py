"""The command as a process: its streams, its exit status, signals, and files whole or not at all."""

from __future__ import annotations

import fcntl
import os
import resource
import shlex
import signal
import subprocess
import sys
import termios
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnviz.models.registry import names
from attnviz.results import load_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.conftest import Run
    from tests.fixtures.command_line import Result

ATTNVIZ = f"{shlex.quote(sys.executable)} -m attnviz"


@pytest.fixture
def shell(
    here: Path, environment: Callable[..., dict[str, str]]
) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Run a line of bash in the folder of the command; its status is that of the first command of a pipe."""

    def run(line: str, **more: str) -> subprocess.CompletedProcess[bytes]:
        script = f'{line.replace("attnviz ", ATTNVIZ + " ")}; exit "${{PIPESTATUS[0]}}"'
        return subprocess.run(
            ["bash", "-c", script],
            cwd=here,
            env=environment(**more),
            capture_output=True,
            timeout=60,
            check=False,
        )

    return run


# -------------------------------------------------------------------------------------------------- streams


def test_head_of_a_pipe(
    shell: Callable[..., subprocess.CompletedProcess[bytes]], here: Path, saved: Path
) -> None:
    """Whoever reads one line gets it, and the picture's file is written all the same."""
    result = shell(f"attnviz heatmap --load {saved.name} -o a.png | head -1")
    assert (result.returncode, result.stderr) == (0, b"wrote a.png\n")
    assert result.stdout.decode().startswith("“you” attends most to “I”: 69%")
    assert (here / "a.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("arguments", ["heatmap --load saved.npz -o a.json", "-h"])
@pytest.mark.usefixtures("saved")
def test_nobody_reads(
    shell: Callable[..., subprocess.CompletedProcess[bytes]], here: Path, arguments: str
) -> None:
    """A pipe that is closed before anything is written is no error, on either stream."""
    result = shell(f"(sleep 0.2; exec attnviz {arguments}) | true")
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr in {b"", b"wrote a.json\n"}
    assert (here / "a.json").exists() == ("a.json" in arguments)
    result = shell(f"(sleep 0.2; exec attnviz {arguments}) 2>&1 | true")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"")


def test_streams_that_are_full_or_closed(
    shell: Callable[..., subprocess.CompletedProcess[bytes]], here: Path, saved: Path
) -> None:
    """A full disk behind standard output is one line; streams that are not there are no error."""
    full = b"attnviz: the output cannot be written: No space left on device\n"
    for arguments in (f"heatmap --load {saved.name} -o a.json", "--version"):
        result = shell(f"attnviz {arguments} > /dev/full")
        assert (result.returncode, result.stdout, result.stderr) == (1, b"", full)
    result = shell(f"attnviz heatmap --load {saved.name} -o a.json >&-")
    assert (result.returncode, result.stdout, result.stderr) == (0, b"", b"wrote a.json\n")
    result = shell(f"attnviz heatmap --load {saved.name} -o b.json <&- 2>&-")
    assert (result.returncode, result.stderr) == (0, b"")
    assert load_record(here / "b.json") == load_record(saved)


def test_a_home_that_cannot_be_written(
    shell: Callable[..., subprocess.CompletedProcess[bytes]], here: Path
) -> None:
    """As in a container: the picture is drawn, and no library gives advice on where to keep its fonts."""
    (here / "home").touch()
    result = shell(
        "attnviz heatmap -m toy-random I -o a.png", HOME=str(here / "home"), MPLCONFIGDIR=""
    )
    assert (result.returncode, result.stderr) == (0, b"wrote a.png\n")


def test_bytes_that_are_no_text(
    shell: Callable[..., subprocess.CompletedProcess[bytes]], here: Path
) -> None:
    """An argument and a file name in another encoding than UTF-8: the text is refused, the name is used as it is."""
    result = shell("attnviz heatmap -m toy-random $'caf\\xe9'")
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr == b"attnviz: the text is not UTF-8: byte 4 is 0xe9\n"
    name = os.fsdecode(b"caf\xe9.npz")
    (here / name).write_bytes(b"nothing")
    result = shell("attnviz heatmap --load $'caf\\xe9.npz'")
    assert (result.returncode, result.stdout, result.stderr.count(b"\n")) == (1, b"", 1)
    assert result.stderr.startswith(rb"attnviz: caf\udce9.npz: ")


def test_a_screen_of_ascii(
    shell: Callable[..., subprocess.CompletedProcess[bytes]], here: Path, saved: Path
) -> None:
    """Where only ASCII can be shown, shades are ASCII, and other characters their numbers."""
    load_record(saved).save(here / "나.json")
    result = shell("attnviz heatmap --load 나.json -o 너.json", PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert result.stdout.isascii()
    assert b"[ .:*#] Rows attend to columns" in result.stdout
    assert result.stderr == b"wrote \\ub108.json\n"


def test_a_screen_of_korean_windows(
    shell: Callable[..., subprocess.CompletedProcess[bytes]],
) -> None:
    """Output redirected in code page 949 keeps Korean."""
    result = shell("attnviz walkthrough -m toy-ko --lang ko -o 너.json", PYTHONIOENCODING="cp949")
    assert result.returncode == 0
    shown = result.stdout.decode("cp949")
    assert "쿼리" in shown
    assert "\\u" not in shown
    assert result.stderr.decode("cp949") == "wrote 너.json\n"


# ------------------------------------------------------------------------------------------------ exit status


def test_statuses_of_a_process(attnviz: Run, tmp_path: Path) -> None:
    """0, 1 for what went wrong, 2 for usage; a picture on standard output, all else on standard error."""
    good = attnviz("heatmap", "-m", "toy-random", "I love all you")
    assert good.returncode == 0
    assert "\ntoy-random (seed 0) · " in good.stdout
    assert good.stderr == "wrote outputs/heatmap-i-love-all-you-toy-random.png\n"
    assert (tmp_path / "outputs" / "heatmap-i-love-all-you-toy-random.png").is_file()
    wrong = attnviz("heatmap", "")
    assert (wrong.returncode, wrong.stdout, wrong.stderr) == (1, "", "attnviz: the text is empty\n")
    misused = attnviz("heatmap", "I", "--scale", "logs")
    assert (misused.returncode, misused.stdout, misused.stderr.count("\n")) == (2, "", 1)


# -------------------------------------------------------------------------------------------------- Ctrl-C


def interrupt(
    when: Callable[[subprocess.Popen[str]], bool],
    arguments: list[str],
    here: Path,
    environment: dict[str, str],
    number: int = signal.SIGINT,
) -> tuple[int, str, str]:
    """Start the command, type half of a sentence, press Ctrl-C as soon as it is time, and return what came of it."""
    with subprocess.Popen(
        [sys.executable, "-m", "attnviz", *arguments],
        cwd=here,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write("I love")
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not when(process):
            assert process.poll() is None, "the command ended before Ctrl-C"
            assert time.monotonic() < deadline
            time.sleep(0.005)
        process.send_signal(number)
        process.wait(30)
        assert process.stdout is not None
        assert process.stderr is not None
        return process.returncode, process.stdout.read(), process.stderr.read()


def maps(process: subprocess.Popen[str], library: str) -> bool:
    """Whether a process has loaded a library by now."""
    return library in Path(f"/proc/{process.pid}/maps").read_text()


def waits(process: subprocess.Popen[str]) -> bool:
    """Whether a process has read all that was typed, and waits for more."""
    unread = bytearray(4)
    fcntl.ioctl(process.stdin, termios.FIONREAD, unread)  # type: ignore[arg-type]
    return not any(unread)


@pytest.mark.parametrize("library", ["_C.cpython", "_backend_agg"])
def test_ctrl_c_while_libraries_load(
    here: Path, environment: Callable[..., dict[str, str]], library: str
) -> None:
    """Status 130, one word, no file and no traceback, although some libraries turn Ctrl-C into an error of theirs."""
    when = partial(maps, library=library)
    status, _, errors = interrupt(
        when, ["heatmap", "-m", "toy-random", "I love you " * 15], here, environment()
    )
    assert (status, errors) == (130, "attnviz: interrupted\n")
    assert [path for path in here.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("module", ["attnviz.cli.help", "the first that is not Python's own"])
def test_ctrl_c_while_the_command_itself_loads(module: str) -> None:
    """Status 130, and nothing is printed."""
    code = """
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *_):
        is_own = name in {"attnviz", "attnviz.__main__"} or name in sys.stdlib_module_names
        if name == sys.argv[1] or (not is_own and not sys.argv[1].startswith("attnviz")):
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from attnviz.__main__ import main
main()
"""
    result = subprocess.run([sys.executable, "-c", code, module], capture_output=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (130, b"", b"")


def test_ctrl_c_at_the_keyboard(here: Path, environment: Callable[..., dict[str, str]]) -> None:
    """Ctrl-C while the command waits for a sentence on standard input."""
    came = interrupt(waits, ["heatmap", "-m", "toy-random", "-"], here, environment())
    assert came == (130, "", "attnviz: interrupted\n")


@pytest.mark.parametrize(
    ("number", "says"),
    [(signal.SIGINT, "attnviz: interrupted\n"), (signal.SIGTERM, ""), (signal.SIGHUP, "")],
)
def test_told_to_end_while_a_file_is_written(
    here: Path, environment: Callable[..., dict[str, str]], number: int, says: str
) -> None:
    """Ctrl-C, or time is up, or the window is closed: half of a file is taken away, and the old file stays."""
    (here / "lines.txt").write_text("I love all you\n" * 60)
    (here / "a.pdf").write_text("old")
    model = "toy-random:n_layers=8,n_heads=8,d_model=64"
    came = interrupt(
        lambda _: any(here.glob(".attnviz-*")),
        ["heatmap", "-m", model, "--file", "lines.txt", "-o", "a.pdf"],
        here,
        environment(),
        number,
    )
    assert (came[0], came[2]) == (128 + number, says)
    assert sorted(path.name for path in here.iterdir()) == ["a.pdf", "lines.txt"]
    assert (here / "a.pdf").read_text() == "old"


# ---------------------------------------------------------------------------------------------- a full disk


@pytest.fixture
def small_disk() -> Iterator[Callable[[], None]]:
    """From when it is called, no file may grow beyond 500 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("suffix", [".png", ".json", ".safetensors"])
def test_a_full_disk(
    typed: Callable[..., Result],
    here: Path,
    saved: Path,
    small_disk: Callable[[], None],
    suffix: str,
) -> None:
    """A full disk gives one line; the old file stays whole, and no half of the new one is left."""
    path = here / f"a{suffix}"
    path.write_bytes(b"old")
    small_disk()
    result = typed("heatmap", "--load", saved.name, "-o", path.name)
    assert (result.status, result.errors) == (
        1,
        f"attnviz: {path.name} cannot be written: File too large\n",
    )
    assert sorted(found.name for found in here.iterdir()) == sorted([path.name, saved.name])
    assert path.read_bytes() == b"old"


# ------------------------------------------------------------------------------------------------ completion


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("attnviz heat", {"heatmap"}),
        ("attnviz heatmap --palette ma", {"magma", "mako"}),
        ("attnviz heatmap --model ", {*names(), "some/body"}),
    ],
)
def test_completion(
    attnviz: Run,
    environment: Callable[..., dict[str, str]],
    tmp_path: Path,
    words: str,
    offered: set[str],
) -> None:
    """A shell is offered commands, options and their values, cached models among them."""
    (tmp_path / "cache" / "models--some--body").mkdir(parents=True)
    variables = environment(
        _ATTNVIZ_COMPLETE="complete_bash",
        COMP_WORDS=words,
        COMP_CWORD=str(len(words.split(" ")) - 1),
        HF_HUB_CACHE=str(tmp_path / "cache"),
    )
    result = attnviz(env=variables)
    assert (result.returncode, result.stderr) == (0, "")
    assert set(result.stdout.split()) == offered
