"""What the tests of the README and docs need: caches of models, and a folder in which commands run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.fixtures.pages import GALLERY, ROOT, Clone, commands_of, sessions_of, short


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of `run` on the commands, sessions and Python of the pages that a module names."""
    if "line" in metafunc.fixturenames:
        metafunc.parametrize("line", commands_of(metafunc.module.SHOWN), ids=short)
    if "session" in metafunc.fixturenames:
        metafunc.parametrize(("page", "session"), sessions_of(metafunc.module.SHOWN), ids=short)
    if "python_page" in metafunc.fixturenames:
        pages = [page for page in metafunc.module.SHOWN if page.fences("python")]
        metafunc.parametrize("python_page", pages, ids=str)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, real_model: str) -> Path:
    """A cache that holds the real model under the name that it has on the hub."""
    home = tmp_path_factory.mktemp("hub")
    repository = home / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2"
    commit = "0" * 40
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    (repository / "snapshots" / commit).mkdir(parents=True)
    for file in Path(real_model).iterdir():
        if file.is_file():
            (repository / "snapshots" / commit / file.name).symlink_to(file)
    return home


@pytest.fixture(scope="module")
def other_hub(tmp_path_factory: pytest.TempPathFactory, hub: Path) -> Path:
    """A cache that holds DistilBERT too, a layer of it with random weights; on most pages it is not there."""
    from transformers import AutoTokenizer, DistilBertConfig, DistilBertModel

    home = tmp_path_factory.mktemp("other_hub")
    repository, commit = home / "hub" / "models--distilbert-base-uncased", "0" * 40
    tokenizer = AutoTokenizer.from_pretrained(next((hub / "hub").glob("*/snapshots/*")))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        DistilBertModel(DistilBertConfig(n_layers=1)).save_pretrained(
            repository / "snapshots" / commit
        )
    tokenizer.save_pretrained(repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    return home


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clone]:
    """The folder in which the commands of a test file run."""
    folder = tmp_path_factory.mktemp("clone")
    shutil.copytree(ROOT / "sample_inputs", folder / "sample_inputs")
    (folder / GALLERY).mkdir(parents=True)
    made = Clone(folder, {}, {})
    yield made
    for one in made.ready.values():
        one.close()


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    """Whether what can be made by a program is written anew."""
    return bool(request.config.getoption("--rewrite-golden"))
