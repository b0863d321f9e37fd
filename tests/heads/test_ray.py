"""``--ray``: blocks of lines on the workers of a Ray cluster give the numbers of one process."""

from __future__ import annotations

import json
import pickle
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import attnviz
from attnviz.errors import InputError, ModelError, SettingsError
from attnviz.heads import ray as cluster
from attnviz.heads.files import to_json
from attnviz.heads.measures import MEASURES
from attnviz.heads.ray import Job, Worker
from attnviz.heads.settings import ModelSettings, SurveySettings
from attnviz.text.corpus import CorpusLine
from tests.fixtures.command_line import sentences

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from attnviz.heads.record import HeadComparison

SAMPLE = Path(__file__).parents[2] / "sample_inputs" / "nanogpt.py"
KILLED_ONCE = '''
import os, signal
from pathlib import Path

def killed_once():
    """The model; the first worker that runs it a fifth time is killed as by kill -9."""
    torch.manual_seed(0)
    model, folder, n_runs = GPT(), Path(__file__).parent, 0
    is_worker = (folder / "opened").exists()  # the command opens the model before its workers
    (folder / "opened").touch()

    def count(*_):
        nonlocal n_runs
        n_runs += 1
        if is_worker and n_runs == 5 and not (folder / "killed").exists():
            (folder / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    model.register_forward_pre_hook(count)
    return model, Letters()
'''


def expect_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Two comparisons in JSON have the same texts, and the same numbers within 1e-6."""
    one, other = (flat(found) for found in (one, other))
    assert one.keys() == other.keys()
    for place, value in one.items():
        if isinstance(value, float) and not place.startswith("differences"):
            assert value == pytest.approx(other[place], abs=1e-6), place
        elif not place.startswith(("digest", "differences")):
            assert value == other[place], place


def flat(value: Any, place: str = "") -> dict[str, Any]:
    """Return every text and number of a JSON value by its place, such as ``heads/0/layer``."""
    if not isinstance(value, dict | list):
        return {place: value}
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    flats = [flat(entry, f"{place}/{name}".removeprefix("/")) for name, entry in entries]
    return {place: value for part in flats for place, value in part.items()}


def numbers(comparison: HeadComparison) -> dict[str, Any]:
    """Return everything that a comparison holds."""
    content: dict[str, Any] = json.loads(to_json(comparison))
    return content


def test_a_killed_worker(
    attnviz: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Its block is measured again: the numbers are those of one run, and nothing else is on standard output."""
    shutil.copy(SAMPLE, tmp_path / "gpt.py")
    with (tmp_path / "gpt.py").open("a") as file:
        file.write(KILLED_ONCE)
    letters = "abcdefgh"
    words = [one + two + three for one in letters for two in letters for three in letters]
    (tmp_path / "corpus.txt").write_text("".join(f"{word} q{word}\n" for word in words))
    run = ["compare-heads", "-m", "gpt.py:killed_once", "--corpus", "corpus.txt", "-o", "-"]
    shared = attnviz(*run, "--ray", "local", timeout=600)  # Ray is slow to start on a busy machine
    assert shared.returncode == 0, shared.stderr
    assert (tmp_path / "killed").exists()
    found = json.loads(shared.stdout)
    assert found["n_sentences"] == 512
    expect_same(found, json.loads(attnviz(*run).stdout))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray's own
def test_any_number_of_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one sentence a block, the numbers are those of one process; lines that cannot be used are counted."""
    monkeypatch.setattr(cluster, "SENTENCES", 1)
    monkeypatch.setattr(cluster, "BLOCKS", 64)
    settings = SurveySettings(controls=2)
    corpus = tmp_path / "corpus.txt"
    with cluster.connect("local"):
        for n_blocks in (1, 2, 8, 64):
            corpus.write_text("".join(f"{n} cats see {n % 7} dogs\n" for n in range(n_blocks)))
            one = attnviz.compare_heads(corpus, "toy-random", settings=settings)
            shared = attnviz.compare_heads(corpus, "toy-random", settings=settings, ray="local")
            expect_same(numbers(shared), numbers(one))
        # The toy knows none of the words of the first line and of the last, each a block of its own.
        corpus.write_bytes(b"\xff\nxyzzy\n\0\n" + "\n".join(sentences(12)).encode() + b"\nplugh\n")
        one = attnviz.compare_heads(corpus, "toy", against="toy", settings=settings)
        shared = attnviz.compare_heads(corpus, "toy", against="toy", settings=settings, ray="local")
        assert (shared.n_sentences, shared.n_bad) == (12, 4)
        expect_same(numbers(shared), numbers(one))
        corpus.write_text("xyzzy\nplugh\n")
        with pytest.raises(InputError, match=r"corpus\.txt: there is no sentence .*: line 1"):
            attnviz.compare_heads(corpus, "toy", ray="local")


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
