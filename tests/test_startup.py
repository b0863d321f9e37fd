"""Start-up: the libraries that a command loads, and those that it must not."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from attnviz.cli import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from attnviz.attention import Attention

RUN = """
import json, sys
from attnviz.cli import _run
status = 0
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["attnviz", *arguments]
    status = status or _run()
{more}
sys.stderr.write(json.dumps([status, sorted(name.partition(".")[0] for name in sys.modules)]))
"""


@pytest.fixture
def loaded(tmp_path: Path, environment: Callable[..., dict[str, str]]) -> Callable[..., set[str]]:
    """The libraries that a command has loaded when it ends, and others in the same process before it."""

    def run(*arguments: str, after: Sequence[list[str]] = (), more: str = "") -> set[str]:
        result = subprocess.run(
            [sys.executable, "-c", RUN.format(more=more), json.dumps([*after, arguments])],
            cwd=tmp_path,
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        status, names = json.loads(result.stderr.splitlines()[-1])
        assert status == 0
        return set(names)

    return run


def test_import() -> None:
    """`import attnviz` loads nothing but Python's own."""
    code = (
        "import sys; before = set(sys.modules); import attnviz; print(*set(sys.modules) - before)"
    )
    new = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {name.partition(".")[0] for name in new} - set(sys.stdlib_module_names) == {"attnviz"}


def test_help(loaded: Callable[..., set[str]]) -> None:
    """Help needs no numbers, no model and no picture."""
    names = loaded("--version", after=[["--help"], *([name, "--help"] for name in COMMANDS)])
    assert "typer" in names
    assert not names & {
        "numpy",
        "torch",
        "transformers",
        "huggingface_hub",
        "matplotlib",
        "seaborn",
        "rich",
        "msgspec",
    }


def test_toy(loaded: Callable[..., set[str]]) -> None:
    """The home-built model needs no library of pretrained ones, and its picture no seaborn."""
    names = loaded("heatmap", "--toy", "I love all you")
    assert {"torch", "matplotlib", "rich"} <= names
    assert not names & {
        "transformers",
        "seaborn",
        "huggingface_hub",
        "tokenizers",
        "scipy",
        "pandas",
        "IPython",
    }


def test_by_hand(loaded: Callable[..., set[str]]) -> None:
    """A calculation by hand, and checking one again, need no model library."""
    names = loaded("walkthrough", "--example", "seq2seq", "-o", "walk.json")
    assert "numpy" in names
    assert not names & {"torch", "transformers", "matplotlib", "seaborn"}
    assert not loaded("verify", "walk.json") & {"torch", "transformers", "matplotlib", "rich"}


def test_list_of_demos(loaded: Callable[..., set[str]]) -> None:
    """To list what there is, nothing is computed."""
    assert not loaded("demo") & {"torch", "transformers", "matplotlib", "seaborn"}


def test_load(
    loaded: Callable[..., set[str]], make_record: Callable[..., Attention], tmp_path: Path
) -> None:
    """A saved record is drawn without any model library, and written as a record without Matplotlib."""
    make_record().save(tmp_path / "a.npz")
    names = loaded("heatmap", "--load", "a.npz")
    assert "matplotlib" in names
    assert not names & {"torch", "transformers", "huggingface_hub", "seaborn"}
    names = loaded("heatmap", "--load", "a.npz", "-o", "b.json")
    assert not names & {"torch", "transformers", "huggingface_hub", "seaborn", "matplotlib"}


def test_heads(loaded: Callable[..., set[str]]) -> None:
    """A saved comparison is shown without any model library; the home-built model needs its own."""
    names = loaded("compare-heads", "-m", "toy-random", "I love you", "-o", "a.json", "-o", "a.csv")
    assert "torch" in names
    assert not names & {"transformers", "seaborn", "huggingface_hub", "matplotlib", "pandas"}
    names = loaded("compare-heads", "--load", "a.json", "-o", "a.png")
    assert "matplotlib" in names
    assert not names & {"torch", "transformers", "huggingface_hub", "seaborn", "pandas"}
    names = loaded("compare-heads", "--load", "a.json", "--head", "0.0", "-o", "b.csv")
    assert not names & {"torch", "transformers", "huggingface_hub", "seaborn", "matplotlib"}


def test_these_tests_can_fail(loaded: Callable[..., set[str]]) -> None:
    """A library that is loaded on purpose is seen."""
    assert "seaborn" not in loaded("--version")
    assert {"numpy", "huggingface_hub"} <= loaded(
        "--version", more="import numpy, huggingface_hub.utils"
    )
