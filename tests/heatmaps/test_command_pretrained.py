"""``attnviz heatmap`` with a pretrained model in a folder, and with what is none."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.results import load_record

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result


def test_too_long_for_the_model(typed: Callable[..., Result], here: Path, tiny_bert: str) -> None:
    """What is too long is cut, and the picture says so, with both numbers, in every format."""
    sentence = " ".join(["apple"] * 20)
    result = typed("heatmap", sentence, "-m", tiny_bert, "-o", "cut.svg", "-o", "cut.json")
    assert result.status == 0
    note = "Input truncated: 16 of 22 tokens"
    assert note in result.output
    saved_note = '{"code": "input_truncated_tokens", "fields": [["kept", 16], ["total", 22]]}'
    assert saved_note in (here / "cut.json").read_text()
    assert note.replace(" ", "") in (here / "cut.svg").read_text().replace(" ", "")


def test_what_no_model_is(
    refused: Callable[..., tuple[int, str]], here: Path, tmp_path: Path, tiny_bert: str
) -> None:
    """A folder that is not there, holds no model, other formats than safetensors, or half of the weights."""
    folder = tmp_path / "model"
    arguments = ["heatmap", "I", "-m", str(folder)]
    assert refused(*arguments) == (1, f"attnviz: there is no folder {folder}")
    folder.mkdir()
    no_config = f"attnviz: the folder {folder} holds no model: it has no config.json"
    assert refused(*arguments) == (1, no_config)
    (folder / "config.json").write_text("{}")
    status, line = refused(*arguments)
    assert status == 1
    no_weights = "has no model.safetensors: attnviz reads safetensors only"
    assert line.startswith(f"attnviz: the folder {folder} {no_weights}")
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        (folder / name).write_bytes(Path(tiny_bert, name).read_bytes())
    weights = Path(tiny_bert, "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[:1000])
    for config in ("{}", "not JSON", Path(tiny_bert, "config.json").read_text()):
        (folder / "config.json").write_text(config)
        status, line = refused(*arguments)
        assert status == 1
        assert " cannot be loaded: " in line
    assert here.is_dir()


def test_a_model_with_no_attention(
    refused: Callable[..., tuple[int, str]], tmp_path: Path, tiny_bert: str
) -> None:
    """A model that mixes its tokens in another way is refused, and why is said."""
    from transformers import FNetConfig, FNetModel

    folder = tmp_path / "fnet"
    FNetModel(
        FNetConfig(vocab_size=30522, hidden_size=6, num_hidden_layers=1, intermediate_size=5)
    ).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes(Path(tiny_bert, name).read_bytes())
    status, line = refused("heatmap", "I", "-m", str(folder))
    assert status == 1
    assert "fnet" in line
    assert "attention" in line


def test_words(typed: Callable[..., Result], here: Path, tiny_bert: str) -> None:
    """Word pieces are merged and special tokens hidden, and the picture says so."""
    options = ("--words", "--hide-special", "-o", "words.json")
    result = typed("heatmap", "unbelievably green", "-m", tiny_bert, *options)
    names = [token.text for token in load_record(here / "words.json").query_tokens]
    assert names == ["unbelievably", "green"]
    said = " ".join(result.output.split())
    assert "Word pieces merged into words (sum over keys, mean over queries)" in said
    assert "Special tokens hidden ([CLS] [SEP]); rows are not renormalised" in said


def test_pair(typed: Callable[..., Result], here: Path, tiny_bert: str) -> None:
    """A second sentence is read, shown beside the first, and its tokens are marked as of the second."""
    result = typed("heatmap", "an apple", "--pair", "a pear", "-m", tiny_bert, "-o", "a.json")
    assert result.status == 0
    assert " + a pear" in re.sub("[░▒▓█]", "", result.output)
    tokens = load_record(here / "a.json").query_tokens
    words = [(token.text, token.segment) for token in tokens if not token.special]
    assert words == [("an", 0), ("apple", 0), ("a", 1), ("pear", 1)]
