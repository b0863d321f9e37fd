"""Every kind of file that attnviz reads, changed at random: what is not read is refused in one line of our own."""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
import warnings
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

import attnviz
from attnviz.capture.attend import attend
from attnviz.capture.source import open_source
from attnviz.errors import AttnvizError
from attnviz.heads.settings import SurveySettings
from attnviz.models.config import LanguageConfig
from attnviz.models.training.files import load_home_built, new_model
from attnviz.models.training.files import save as save_home_built
from attnviz.storage.corpora.corpus import read_corpus
from attnviz.walkthroughs.homework import read as read_homework
from tests.fixtures import mutations
from tests.fixtures.zoo import make_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

N = 150
"""How many changed files of each kind."""

MOST = 3 * 2**30
"""Bytes that reading them may take beyond what was taken before."""

SENTENCES = ("I love you", "There is a prince")

CONLLU = """# text = She eats .
1\tShe\tshe\tPRON\t_\t_\t2\tnsubj\t_\t_
2\teats\teat\tVERB\t_\t_\t0\troot\t_\t_
3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_

# text = I am
1-2\tI'm\t_\t_\t_\t_\t_\t_\t_\t_
1\tI\tI\tPRON\t_\t_\t2\tnsubj\t_\tEntity=(e1)
2\tam\tbe\tVERB\t_\t_\t0\troot\t_\t_

"""


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small file of each kind, and a model's folder."""
    import transformers

    folder = tmp_path_factory.mktemp("originals")
    record = attend(SENTENCES[0], "toy-random")
    for ending in ("npz", "json", "safetensors"):
        record.save(folder / f"record.{ending}")
    small = "toy-random:d_model=4,n_heads=2,n_layers=1"
    attnviz.compare_heads(SENTENCES, model=small, settings=SurveySettings(controls=1)).save(
        folder / "heads.json"
    )
    tiny = open_source(small)
    attnviz.walkthrough("I love you", model=tiny).save(folder / "walk.json")
    card, _ = load_home_built("toy")
    config = LanguageConfig(
        n_words=len(card.source.words), d_model=4, n_heads=2, n_layers=1, d_ff=4
    )
    plan = replace(card.plan, config=config)
    save_home_built(folder / "home-built.safetensors", replace(card, plan=plan), new_model(plan))
    (folder / "corpus.conllu").write_text(CONLLU * 3, encoding="utf-8")
    (folder / "corpus.txt").write_text("\n".join(SENTENCES * 9), encoding="utf-8")
    samples = Path(__file__).parents[2] / "sample_inputs"
    for ending in ("json", "yaml"):
        shutil.copy(samples / f"homework.{ending}", folder)
    with torch.random.fork_rng(devices=[]):
        tokenizer = make_tokenizer("gpt2", "")
        sizes: dict[str, Any] = {
            "n_embd": 12,
            "n_head": 3,
            "n_layer": 1,
            "n_positions": 31,
            "vocab_size": len(tokenizer),
        }
        transformers.GPT2Model(transformers.GPT2Config(**sizes)).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    return folder


def _lines(path: Path) -> None:
    for _ in islice(read_corpus(path), 1_000):
        pass


def _signed_again(path: Path) -> None:
    """Read a comparison whose digest is that of what it holds now."""
    try:
        content = json.loads(path.read_bytes())
        del content["digest"]
        text = json.dumps(content, sort_keys=True)
    except (ValueError, TypeError, KeyError, RecursionError):
        attnviz.load(path)
        return
    content["digest"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(content), encoding="utf-8")
    attnviz.load(path)


def _folder(path: Path) -> None:
    attend("I love all you", str(path.parent), device="cpu")


KINDS: dict[str, tuple[Callable[..., bytes], Callable[[Path], object], int]] = {
    "record.npz": (mutations.change_archive, attnviz.load, N),
    "record.json": (mutations.change_text, attnviz.load, N),
    "record.safetensors": (mutations.change_safetensors, attnviz.load, N),
    "heads.json": (mutations.change_text, _signed_again, N),
    "walk.json": (
        mutations.change_text,
        lambda path: (attnviz.verify(path), attnviz.load(path)),
        N,
    ),
    "home-built.safetensors": (
        mutations.change_safetensors,
        lambda path: load_home_built(str(path)),
        N,
    ),
    "corpus.conllu": (mutations.change_lines, _lines, N),
    "corpus.txt": (mutations.change_bytes, _lines, N),
    "homework.json": (mutations.change_text, read_homework, N),
    "homework.yaml": (mutations.change_lines, read_homework, N),
    "model/config.json": (mutations.change_text, _folder, 60),
    "model/tokenizer_config.json": (mutations.change_text, _folder, 40),
    "model/tokenizer.json": (mutations.change_text, _folder, 40),
    "model/model.safetensors": (mutations.change_safetensors, _folder, 60),
}
"""How each kind of file is changed and read, and how often; a model's folder is one kind."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("as_installed")
def test_read_or_refused(originals: Path, tmp_path: Path, kind: str) -> None:
    """Whatever was changed, the file is read, or refused by an error of ours in one line; memory stays bounded."""
    change, read, n = KINDS[kind]
    data = (originals / kind).read_bytes()
    folder = tmp_path / Path(kind).parent
    if kind.startswith("model/"):
        shutil.copytree(originals / "model", folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused: list[str] = []
    for changed in mutations.mutations(change, data, n, seed=0):
        (tmp_path / kind).write_bytes(changed)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read(tmp_path / kind)
        except AttnvizError as error:
            refused.append(str(error))
    assert all(map(str.isprintable, refused))
    assert refused or kind.startswith("corpus"), "nothing was changed"
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST
