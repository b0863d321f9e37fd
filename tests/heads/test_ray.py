"""``--ray``: blocks of lines on the workers of a Ray cluster give the numbers of one process."""

from __future__ import annotations

import os
import pickle
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pandas.testing import assert_frame_equal

import attnviz
from attnviz.errors import ModelError, SettingsError
from attnviz.heads import ray as cluster
from attnviz.heads.measures import MEASURES
from attnviz.heads.ray import Job, Worker
from attnviz.heads.settings import ModelSettings, SurveySettings
from attnviz.text.corpus import BadLine, CorpusLine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


SAMPLE = Path(__file__).parents[2] / "sample_inputs" / "nanogpt.py"
KILLED_ONCE = '''
import os, signal
from pathlib import Path

def killed_once():
    """The model; the first worker that runs it a fifth time is killed as by kill -9."""
    torch.manual_seed(0)
    model, folder, n_runs = GPT(), Path(__file__).parent, 0
    is_worker = (folder / "driver").read_text() != str(os.getpid())

    def count(*_):
        nonlocal n_runs
        n_runs += 1
        if is_worker and n_runs == 5 and not (folder / "killed").exists():
            (folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    model.register_forward_pre_hook(count)
    return model, Letters()
'''


@pytest.fixture
def ray_here() -> Iterator[None]:
    """Ray on this machine."""
    with cluster.connect("local"):
        assert sys.stdout is sys.stderr  # Ray prints there that a worker was lost
        yield


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray's own
@pytest.mark.usefixtures("ray_here")
@pytest.mark.filterwarnings("ignore:running the code")
def test_a_killed_worker(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its block is measured again: the numbers are those of one run, also of two models and of bad lines."""
    monkeypatch.setattr(cluster, "SENTENCES", 8)
    shutil.copy(SAMPLE, here / "gpt.py")
    with (here / "gpt.py").open("a") as file:
        file.write(KILLED_ONCE)
    words = [one + two + three for one in "abcd" for two in "abcd" for three in "abcd"]
    (here / "driver").write_text(str(os.getpid()))
    (here / "corpus.txt").write_bytes(b"\xff\n" + "\n".join(words).encode() + b"\n\0\n")
    arguments: dict[str, Any] = {
        "sentences": here / "corpus.txt",
        "model": "gpt.py:killed_once",
        "against": "gpt.py:killed_once",
        "settings": SurveySettings(controls=2),
    }
    shared = attnviz.compare_heads(**arguments, ray="local")
    assert (here / "killed").exists()
    assert (shared.n_sentences, shared.n_bad) == (len(words), 2)
    alone = attnviz.compare_heads(**arguments)
    assert shared.bad == alone.bad
    assert_frame_equal(shared.to_frame(full=True), alone.to_frame(full=True), rtol=0, atol=1e-6)


@pytest.mark.parametrize(("n_lines", "n_blocks"), [(1, 8), (300, 2), (5000, 16)])
def test_blocks_are_the_lines(n_lines: int, n_blocks: int) -> None:
    """In their order, each line in one block; no block but the last has few sentences."""
    lines: list[CorpusLine | BadLine] = [
        CorpusLine(number=n, text="I") if n % 5 else BadLine(number=n, reason="")
        for n in range(1, n_lines + 1)
    ]
    blocks = cluster._blocks(lines, n_blocks)
    assert [line for block in blocks for line in block] == lines
    assert len(blocks) <= n_blocks + 1
    for block in blocks[:-1]:
        assert sum(isinstance(line, CorpusLine) for line in block) >= cluster.SENTENCES


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"digests": ("another",)}, "has other weights"),
        ({"models": (ModelSettings(model="gone.safetensors"),)}, "gone.safetensors"),
    ],
)
def test_another_machine_with_other_files(here: Path, job: dict[str, object], words: str) -> None:
    """A worker refuses to measure another model, and its error names the machine."""
    own: dict[str, object] = {
        "models": (ModelSettings(model="toy-random"),),
        "digests": ("",),
        "settings": SurveySettings(),
        "measures": MEASURES,
        "folder": str(here),
    }
    worker = Worker(Job(**(own | job)))  # type: ignore[arg-type]
    lines = pickle.dumps([CorpusLine(number=1, text="I love you")])
    error = pickle.loads(worker({"lines": [lines]})["result"][0])
    assert isinstance(error, ModelError)
    assert words in str(error)
    assert socket.gethostname() in str(error)


def test_no_cluster(refused: Callable[..., tuple[int, str]], corpus: Path) -> None:
    """An address at which nothing answers is refused in one line."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # nothing listens there
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        run = ("compare-heads", "-m", "toy-random", "--corpus", corpus.name, "--ray", address)
        status, said = refused(*run)
    assert (status, f"no Ray at {address}" in said) == (2, True), said


def test_without_ray(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to install it."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingsError, match="pip install"):
        attnviz.compare_heads(corpus, "toy-random", ray="local")


def test_a_model_in_memory(corpus: Path) -> None:
    """It cannot be opened elsewhere."""
    from attnviz.capture.source import open_source

    with pytest.raises(SettingsError, match="name or folder"):
        attnviz.compare_heads(corpus, open_source("toy-random"), ray="local")
