"""Surveys as ``.stats`` files: what is read is what was written, and nothing else is read."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
import zlib
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.capture.source import open_source
from attnviz.errors import FileFormatError
from attnviz.heads.capture.survey import survey_model
from attnviz.heads.files import Stats, SurveyRun
from attnviz.heads.files import load_stats as load
from attnviz.heads.files import save_stats as save
from attnviz.heads.settings import ModelSettings, SurveySettings
from attnviz.models.language.splits import corpus_lines
from attnviz.storage.corpora.corpus import Fingerprint

if TYPE_CHECKING:
    from collections.abc import Mapping


@pytest.fixture(scope="module")
def stats() -> Stats:
    """Of sentences with coreference, the controls taken, all pairs of heads compared."""
    found = survey_model(corpus_lines(20), open_source("toy"), SurveySettings(controls=8))
    return Stats(
        survey=replace(found, bad=((3, "“\x1b\ud800” is no sentence"),), n_bad=7),
        corpora=("하나.txt", "two\n.txt"),
        n_lines=512,
        fingerprint=Fingerprint(name="하나.txt", size=3, sha256="0" * 64),
        run=SurveyRun(model=ModelSettings(model="toy")),
    )


def same(one: object, other: object) -> bool:
    """Whether both hold the same, arrays to the last bit and of the same type."""
    if isinstance(one, np.ndarray):
        assert isinstance(other, np.ndarray)
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.tobytes() == other.tobytes()
        )
    if is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)
        )
    if isinstance(one, dict):
        assert isinstance(other, dict)
        return list(one) == list(other) and all(
            same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, tuple):
        assert isinstance(other, tuple)
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def test_what_is_read_is_what_was_written(stats: Stats, tmp_path: Path) -> None:
    """Every number to the last bit, every text, in the same order; NaN and infinity too."""
    path = save(stats, tmp_path / "a.stats")
    found = load(path)
    assert same(found, stats)
    assert not same(found, replace(stats, n_lines=None)), "this would not see a difference"
    assert save(found, tmp_path / "b.stats").read_bytes() == path.read_bytes()
    assert same(
        load(save(replace(stats, n_lines=None, fingerprint=None), path)).survey, stats.survey
    )


SURVEY = ("fields", "survey", "fields")
CHANGES: dict[str, tuple[tuple[str, ...], object]] = {
    "no survey": (("fields", "survey"), None),
    "another class": (("fields", "survey", "class"), "Likeness"),
    "text for a number": (("fields", "n_lines"), "512"),
    "no such array": ((*SURVEY, "heads", "fields", "sums"), {"array": "none"}),
    "another array": ((*SURVEY, "heads", "fields", "sums"), {"array": "3"}),
    "another measure": ((*SURVEY, "measures"), {"tuple": ["self"]}),
    "about nothing": ((*SURVEY, "about"), {"class": "About", "fields": {}}),
    "text for keys": ((*SURVEY, "examples", "fields", "texts"), {"mapping": [["a", "b"]]}),
    "a number for text": (("fields", "corpora"), {"tuple": [7]}),
    "no layer": ((*SURVEY, "worst"), {"tuple": []}),
}
"""What is changed in a file, and to what."""


@pytest.mark.parametrize("name", [*CHANGES])
def test_what_was_changed_is_refused(stats: Stats, tmp_path: Path, name: str) -> None:
    """A file whose parts do not fit together is refused as it is read, not where they are used."""
    from safetensors import safe_open
    from safetensors.numpy import load_file
    from safetensors.numpy import save as serialised

    path = save(stats, tmp_path / "a.stats")
    arrays: Mapping[str, Any] = load_file(path)
    with safe_open(path, framework="numpy") as file:
        described = json.loads(file.metadata()["attnviz"])
    path.write_bytes(serialised(dict(arrays), {"attnviz": json.dumps(described)}))
    assert same(load(path), stats)
    (*way, last), value = CHANGES[name]
    there = described["stats"]
    for step in way:
        there = there[step]
    there[last] = value
    path.write_bytes(serialised(dict(arrays), {"attnviz": json.dumps(described)}))
    with pytest.raises(FileFormatError, match="was changed after attnviz wrote it"):
        load(path)
    described["digest"] = digest(described["stats"], arrays)
    path.write_bytes(serialised(dict(arrays), {"attnviz": json.dumps(described)}))
    with pytest.raises(FileFormatError, match=r"is damaged, or was not written by attnviz$"):
        load(path)


def digest(content: object, arrays: Mapping[str, Any]) -> str:
    """The digest of a file: SHA-256 of its content as JSON with sorted keys, then of each array."""
    found = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        found.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()


@pytest.mark.parametrize("padding", [0, 10**6])
def test_a_small_file_does_not_fill_the_memory(tmp_path: Path, padding: int) -> None:
    """An array that is named often, or that seems larger than its compressed numbers are, is not unpacked again."""
    from safetensors.numpy import save as serialised

    n_bytes = 2**24
    compressed = zlib.compress(b"".join(bytes(199) + os.urandom(1) for _ in range(n_bytes // 200)))
    if padding:
        compressed = zlib.compress(bytes(n_bytes)) + bytes(padding)
    arrays = {"0": np.frombuffer(compressed, np.uint8)}
    array = {
        "array": "0",
        "deflated": {"dtype": "|u1", "shape": [len(zlib.decompress(compressed))]},
    }
    content = {"tuple": [array] * 20}
    described = {"format": "attnviz stats", "version": 2, "stats": content}
    described["digest"] = digest(content, arrays)
    path = tmp_path / "a.stats"
    path.write_bytes(serialised(arrays, {"attnviz": json.dumps(described)}))
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="is damaged"):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < 4 * n_bytes
    finally:
        tracemalloc.stop()


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    """At once: nobody waits for a writer."""
    os.mkfifo(tmp_path / "a.stats")
    with pytest.raises(FileFormatError, match="it is not a regular file"):
        load(tmp_path / "a.stats")


def test_an_edited_number_is_refused(stats: Stats, tmp_path: Path) -> None:
    """A count that was changed gives no head a role."""
    path = save(stats, tmp_path / "a.stats")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match="was changed after attnviz wrote it"):
        load(path)
