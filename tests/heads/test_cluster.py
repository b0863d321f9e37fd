"""``--ray``: the shards of a corpus on the workers of a Ray cluster."""

from __future__ import annotations

import json
import pickle
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.errors import ModelError, SettingsError
from attnviz.heads import cluster
from attnviz.heads.cluster import Job, ShardWorker
from attnviz.heads.measures import MEASURES
from attnviz.heads.settings import ModelSettings, SurveySettings
from attnviz.storage.corpora.corpus import fingerprint
from tests.heads.test_shards import numbers, same

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

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


def test_a_killed_worker(
    attnviz: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Its shard is measured again: the numbers are those of one run, and nothing else is on standard output."""
    shutil.copy(SAMPLE, tmp_path / "gpt.py")
    with (tmp_path / "gpt.py").open("a") as file:
        file.write(KILLED_ONCE)
    letters = "abcdefgh"
    words = [one + two + three for one in letters for two in letters for three in letters]
    (tmp_path / "corpus.txt").write_text("".join(f"{word} q{word}\n" for word in words))
    model, corpus = ("-m", "gpt.py:killed_once"), ("--corpus", "corpus.txt")
    run = ["compare-heads", *model, *corpus, "--controls", "2", "-o", "-"]
    shared = attnviz(*run, "--ray", "local", timeout=600)  # Ray is slow to start on a busy machine
    assert shared.returncode == 0, shared.stderr
    assert (tmp_path / "killed").exists()
    one, found = json.loads(attnviz(*run).stdout), json.loads(shared.stdout)
    del one["proof"], found["proof"]
    assert found["n_sentences"] == 512
    assert same(found, one)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray's own
def test_any_number_of_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one sentence a shard, the numbers are those of one process."""
    monkeypatch.setattr(cluster, "SENTENCES", 1)
    monkeypatch.setattr(cluster, "SHARDS", 64)
    settings = SurveySettings(controls=2)
    with cluster.connect("local"):
        for n_shards in (1, 2, 8, 64):
            corpus = tmp_path / f"{n_shards}.txt"
            corpus.write_text("".join(f"{n} cats see {n % 7} dogs\n" for n in range(n_shards)))
            one = attnviz.compare_heads(corpus, "toy-random", settings=settings)
            shared = attnviz.compare_heads(corpus, "toy-random", settings=settings, ray="local")
            assert same(numbers(shared), numbers(one)), n_shards


@pytest.mark.parametrize(
    ("job", "words"),
    [
        ({"digests": ("another",)}, "has other weights"),
        ({"fingerprint": None}, "corpus.txt is another file"),
        ({"path": "gone.txt", "fingerprint": None}, "gone.txt cannot be read"),
        ({"models": (ModelSettings(model="gone.safetensors"),)}, "gone.safetensors"),
    ],
)
def test_another_machine_with_other_files(
    corpus: Path, here: Path, job: dict[str, object], words: str
) -> None:
    """A worker refuses to measure another model or corpus, and its error names the machine."""
    own: dict[str, object] = {
        "path": corpus.name,
        "kind": None,
        "fingerprint": fingerprint(corpus),
        "models": (ModelSettings(model="toy-random"),),
        "digests": ("",),
        "settings": SurveySettings(),
        "measures": MEASURES,
        "folder": str(here),
    }
    worker = ShardWorker(Job(**(own | job)))  # type: ignore[arg-type]
    error = pickle.loads(worker({"number": [1], "total": [1]})["result"][0])
    assert isinstance(error, ModelError)
    assert words in str(error)
    assert socket.gethostname() in str(error)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["I love you"], "give the file"),
        ([], "give the file"),
        (["--corpus", "-"], "give the file"),
        (["--corpus", "corpus.txt", "--checkpoint", "a.stats"], "omit shard and checkpoint"),
        (["--corpus", "corpus.txt", "--shard", "1/2"], "omit shard and checkpoint"),
    ],
)
def test_usage(
    refused: Callable[..., tuple[int, str]], corpus: Path, arguments: list[str], words: str
) -> None:
    """A mistake on the command line is found before Ray is started."""
    assert corpus.exists()
    run = ("compare-heads", "-m", "toy-random", *arguments, "--ray", "local", "-o", "a.stats")
    status, said = refused(*run)
    assert (status, words in said) == (2, True), said


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
