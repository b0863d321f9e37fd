"""What differs on Windows, tried on any system: quotation marks, names of devices, drives."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from attnviz.errors import OutputError, UnknownModelError
from attnviz.storage.files import check_writable
from attnviz.text.systems import quoted

SENTENCES = ("I love all you", "it's 5 $", 'say "no"', "a\\", "`a`!b", 'a\\"b')


@pytest.mark.parametrize("sentence", SENTENCES)
def test_quotation_marks(sentence: str) -> None:
    """A shell reads one word, the sentence."""
    assert shlex.split(quoted(sentence)) == [sentence]


@pytest.mark.parametrize(
    ("sentence", "typed"),
    [
        *zip(
            SENTENCES,
            ('"I love all you"', "'it''s 5 $'", r'"say \"no\""', '"a\\\\"', "'`a`!b'", r'"a\\\"b"'),
            strict=True,
        )
    ],
)
def test_quotation_marks_on_windows(
    monkeypatch: pytest.MonkeyPatch, sentence: str, typed: str
) -> None:
    """Double ones, which cmd and PowerShell know; single ones where PowerShell would replace a name."""
    monkeypatch.setattr(sys, "platform", "win32")
    assert quoted(sentence) == typed


@pytest.mark.parametrize("name", ["NUL.png", "con.json", "Aux", "COM1.tar.gz"])
def test_a_device_is_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """Windows would write into the device; other systems know no such names, nor does Windows longer ones."""
    check_writable(tmp_path / name)
    monkeypatch.setattr(sys, "platform", "win32")
    check_writable(tmp_path / f"my{name}")
    with pytest.raises(OutputError, match="device"):
        check_writable(tmp_path / name)


def test_a_drive_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says so."""
    for question in ("exists", "is_dir"):
        monkeypatch.setattr(Path, question, lambda _: False)
    with pytest.raises(OutputError, match="is not a folder"):
        check_writable("/a/b.png")


@pytest.mark.parametrize("folder", [r"C:\models\bert", r"models\bert"])
def test_a_folder_of_windows(folder: str) -> None:
    """The letter of a drive is no name of a model with sizes, and the hub is not asked for a folder."""
    from attnviz import open_source

    with pytest.raises(UnknownModelError, match="there is no folder"):
        open_source(folder)
