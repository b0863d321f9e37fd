"""The command line called in this process, which is fast, as far as a process of its own does not matter."""

from __future__ import annotations

import io
import shutil
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jaxtyping
import pytest

from attnviz.cli import _run
from attnviz.models.language import splits

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.attention import Attention


@dataclass(frozen=True)
class Result:
    """What a command came to."""

    status: int
    output: str
    errors: str


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty folder that a command is run in; the home folder and its cache are elsewhere."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def typed(here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run ``attnviz`` with these arguments, in a window of 80 columns, without colour, unless told otherwise."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "TERM", "COLORFGBG"):
        monkeypatch.delenv(name, raising=False)
    # The shape checks of the tests would speak before the command does.
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    assert here.is_dir()

    def run(*arguments: str, stdin: bytes | None = None, columns: int = 80) -> Result:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "argv", ["attnviz", *arguments])
        monkeypatch.setattr(sys, "stdin", None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as main() does
            status = _run()
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    return run


@pytest.fixture
def refused(typed: Callable[..., Result], here: Path) -> Callable[..., tuple[int, str]]:
    """Run a command that must fail, see that it says why in one line and leaves nothing; its status and the line."""

    def run(*arguments: str, stdin: bytes | None = None) -> tuple[int, str]:
        before = files(here)
        result = typed(*arguments, stdin=stdin)
        assert result.output == ""
        assert result.errors.endswith("\n")
        assert result.errors.count("\n") == 1
        assert "\x1b" not in result.errors
        assert files(here) == before
        return result.status, result.errors.rstrip("\n")

    return run


def files(folder: Path) -> dict[Path, bytes]:
    """All files below a folder, and what is in them."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def saved(here: Path, make_record: Callable[..., Attention]) -> Path:
    """A record's file, in the folder that a command is run in."""
    return make_record().save(here / "saved.npz")


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory, real_model: str) -> str:
    """The folder of a random BERT with the real one's words: 2 layers of 3 heads, and only 16 positions."""
    import torch
    from transformers import BertConfig, BertModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = BertConfig(
            hidden_size=15,
            num_hidden_layers=2,
            num_attention_heads=3,
            intermediate_size=7,
            max_position_embeddings=16,
            initializer_range=1.0,
        )
        BertModel(config).save_pretrained(folder)
    for name in ("tokenizer.json", "vocab.txt"):
        shutil.copy(Path(real_model) / name, folder)
    (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    return str(folder)


def sentences(n: int) -> list[str]:
    """So many sentences that the trained models know, each another."""
    drawn: dict[str, None] = {}
    made = splits.sentences("test")
    while len(drawn) < n:
        drawn[" ".join(next(made).words)] = None
    return list(drawn)


@pytest.fixture
def corpus(here: Path) -> Path:
    """A sentence a line: 24 of them."""
    path = here / "corpus.txt"
    path.write_text("\n".join(sentences(24)) + "\n")
    return path
