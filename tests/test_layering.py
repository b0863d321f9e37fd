"""The import rules of the design hold, and a breach of any of them is noticed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "attnviz"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the package in this folder against its contracts."""
    code = "from importlinter.cli import lint_imports_command as lint; lint(prog_name='lint-imports')"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache"],
        cwd=folder,
        env={"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package's modules with its contracts, to break them in."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(PACKAGE, tmp_path / "attnviz", ignore=lambda _, names: [n for n in names if "typefaces" in n])
    return tmp_path


def test_the_rules_hold() -> None:
    """Every contract is kept."""
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in result.stdout


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("errors.py", "import attnviz.attention", 0),
        ("text/words.py", "from attnviz.models import toy", 0),
        ("heatmaps/words.py", "from attnviz.heads import record", 0),
        ("render/sheet.py", "from attnviz import storage", 0),
        ("capture/source.py", "from attnviz.heads import survey", 0),
        ("walkthroughs/record.py", "from attnviz.stories import record", 0),
        ("attention.py", "import torch", 1),
        ("render/palette.py", "from transformers import AutoModel", 1),
        ("heads/record.py", "def late() -> None:\n    import torch", 1),
        ("models/checks.py", "import rich", 2),
        ("capture/sources/hub.py", "def late() -> None:\n    import matplotlib.pyplot", 2),
        ("walkthroughs/verify/__init__.py", "import numpy", 3),
        ("heads/measures.py", "import torch", 4),
        ("cli/train.py", "def late() -> None:\n    import torch", 4),
        ("walkthroughs/verify/saved.py", "from attnviz.text import display", 3),
    ],
)
def test_a_breach_is_noticed(copy: Path, module: str, line: str, contract: int) -> None:
    """One forbidden import, at the top or inside a function, breaks the contract that forbids it."""
    path = copy / "attnviz" / module
    path.write_text(f"{path.read_text()}\n\n{line}\n")
    result = lint(copy)
    assert result.returncode == 1
    assert f"{CONTRACTS[contract]['name']} BROKEN" in result.stdout
