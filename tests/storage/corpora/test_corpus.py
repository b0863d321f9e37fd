"""Corpora: sentences come out in order, bad lines are named, a file that cannot be read is one clear line."""

from __future__ import annotations

import gzip
import io
import lzma
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from attnviz.errors import InputError
from attnviz.storage.corpora import conllu
from attnviz.storage.corpora.corpus import LONGEST, read_corpus
from attnviz.text.corpus import BadLine, CorpusLine

SENTENCE = (
    "1\tBirds\tbird\tNOUN\t_\tNumber=Plur\t2\tnsubj\t_\t_\n"
    "2\tsing\tsing\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No\n"
    "3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_\n\n"
)


def write(folder: Path, content: bytes | str, name: str = "corpus.txt") -> Path:
    """A file that holds this."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def brief(text: str) -> str:
    """The text, or how long it is: pytest would compare a million characters for minutes."""
    return text if len(text) < 1_000 else f"{len(text)} characters"


def told(path: Path, **more: str) -> list[tuple[int, str]]:
    """Each line's number, with its sentence, or with what is wrong after a "!"; of a long one only how long it is."""
    return [
        (line.number, f"!{line.reason}" if isinstance(line, BadLine) else brief(line.text))
        for line in read_corpus(path, **more)  # type: ignore[arg-type]
    ]


def test_a_device_is_no_corpus() -> None:
    """It may have no end; pipes, as of ``<(command)``, are read."""
    with pytest.raises(InputError, match="/dev/zero is a device"):
        read_corpus("/dev/zero")


def test_sentences_in_order(tmp_path: Path) -> None:
    """Numbered as an editor numbers them; empty lines are none; spaces and line ends of any kind are not theirs."""
    text = "\ufeffI love all you\r\n\n   \n\t나는 너희 모두를 사랑해  \nno end"
    path = write(tmp_path, text.encode())
    assert told(path) == [(1, "I love all you"), (4, "나는 너희 모두를 사랑해"), (5, "no end")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"caf\xe9", "not UTF-8: byte 4 is 0xe9"),
        (b"\xed\xa0\x80 half", "not UTF-8: byte 1 is 0xed"),
        (b"a\x00b", "a NUL (\\0) at character 2"),
        (b"\x1b\x07", "nothing in it can be seen: \\x1b\\x07"),
        ("\u200b\u200e".encode(), "nothing in it can be seen: \\u200b\\u200e"),
        (b"x" * (LONGEST + 1), f"longer than {LONGEST:,} bytes"),
        (b"x" * (3 * LONGEST + 7), f"longer than {LONGEST:,} bytes"),
    ],
)
def test_a_bad_line_stops_nothing(tmp_path: Path, line: bytes, reason: str) -> None:
    """It is named with its number and the reason, and the sentences around it are read."""
    path = write(tmp_path, b"before\n" + line + b"\nafter\n")
    assert told(path) == [(1, "before"), (2, "!" + reason), (3, "after")]
    assert told(write(tmp_path, b"before\n" + line)) == [(1, "before"), (2, "!" + reason)]


def test_a_treebank(tmp_path: Path) -> None:
    """Its sentences come with the links of words, numbered by the line where each begins; a bad one is named."""
    content = (
        f"{SENTENCE}# text = Birds sing.\n{SENTENCE}{SENTENCE.replace('nsubj', '_')}{SENTENCE}"
    )
    path = write(tmp_path, content, "bank.conllu")
    assert told(path) == [
        (1, "Birds sing."),
        (5, "Birds sing."),
        (10, "!word 1 (Birds) has no relation to its head"),
        (14, "Birds sing."),
    ]
    line = next(iter(read_corpus(path)))
    assert isinstance(line, CorpusLine)
    assert line.annotated is not None
    assert [line.text[slice(*span)] for span in line.annotated.words] == ["Birds", "sing", "."]
    assert [link.relation for link in line.annotated.links] == ["nsubj"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.gz", b"plain", r"a\.gz is compressed: decompress it first"),
        ("a.txt", gzip.compress(b"one", mtime=0), r"a\.txt is compressed: decompress it first"),
        ("a.conllu.xz", lzma.compress(b"one"), r"a\.conllu\.xz is compressed"),
        ("a.txt.zst", b"\x28\xb5\x2f\xfd" + bytes(9), r"a\.txt\.zst is compressed"),
        (
            "a.jsonl",
            b"{}",
            r"a\.jsonl holds JSON lines, which are not read: write one sentence a line",
        ),
        (
            "a.txt",
            "words".encode("utf-16"),
            r"a\.txt is not UTF-8, but looks like UTF-16: save it as UTF-8",
        ),
        (
            "a.txt",
            b"\x00\x00\xfe\xff\x00\x00\x00a",
            r"a\.txt is not UTF-8, but looks like UTF-32: save it as UTF-8",
        ),
    ],
)
def test_packed_or_encoded_otherwise(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    """Said at once, before the first sentence is asked for."""
    with pytest.raises(InputError, match=message):
        read_corpus(write(tmp_path, content, name))


@pytest.mark.parametrize("name", ["missing.txt", "", "a\0b", "bad\x1b[31m.txt"])
def test_no_file(tmp_path: Path, name: str) -> None:
    """A missing file, a folder and an empty name each give one printable line."""
    with pytest.raises(InputError, match="cannot be read: ") as caught:
        read_corpus(tmp_path / name)
    assert str(caught.value).isprintable()


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minus is standard input, in whichever kind is said; it is left open."""
    source = io.TextIOWrapper(io.BytesIO(b"one\n\xff\ntwo"))
    monkeypatch.setattr(sys, "stdin", source)
    assert told(Path("-")) == [(1, "one"), (2, "!not UTF-8: byte 1 is 0xff"), (3, "two")]
    assert not source.buffer.closed
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SENTENCE.encode())))
    assert told(Path("-"), kind="conllu") == [(1, "Birds sing.")]
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="standard input is closed"):
        read_corpus("-")


def test_a_slow_pipe() -> None:
    """Sentences come as soon as they are written, not when the pipe closes, once the first bytes are there."""
    reader = "from attnviz.storage.corpora.corpus import read_corpus"
    code = f"{reader}\nfor line in read_corpus('-'): print(line.text, flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in (b"a first sentence\n", b"second\n"):
            process.stdin.write(word)
            process.stdin.flush()
            assert process.stdout.readline() == word


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("name", "piece", "few"),
    [
        ("a.txt", b"a sentence of some words\n", 12_000),
        ("a.txt", b"x" * 2**16, 64),
        ("a.conllu", SENTENCE.encode(), 1_000),
        ("a.conllu", b"1\tno end\n", 30_000),
        ("a.conllu", b"# no end\n", 30_000),
        ("a.conllu", b"\xff\n", 1_000),
    ],
)
def test_memory_does_not_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, piece: bytes, few: int
) -> None:
    """Three times the lines, or one line or sentence without an end, take no more memory.

    The shorter file is larger than a buffer (128 KiB from Python 3.14), except for bad lines, which are slow to read.
    """
    monkeypatch.setattr(conllu, "MOST_LINES", 300)
    peaks = []
    for times in (few, few, 3 * few):  # the first only warms up
        path = write(tmp_path, piece * times, name)
        tracemalloc.start()
        for _ in read_corpus(path):
            pass
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] <= peaks[1] * 1.1 + 2**14
