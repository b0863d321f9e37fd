"""Bad input to ``attnviz compare-heads``: one clear line, and nothing is written."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

pytestmark = pytest.mark.usefixtures("few_seeds")

TOY = ("-m", "toy-random")
NONE = "there is no sentence to measure heads on"
TREE = """\
# text = I saw her
1\tI\tI\tPRON\t_\t_\t2\tnsubj\t_\t_
2\tsaw\tsee\tVERB\t_\t_\t0\troot\t_\t_
3\ther\the\tPRON\t_\t_\t2\tobj\t_\t_

"""


@pytest.fixture
def missed(
    refused: Callable[..., tuple[int, str]], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str]]:
    """Run a command whose mistake must be found before any model is opened."""

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a model was opened for nothing")

    monkeypatch.setattr("attnviz.capture.source.open_source", fail)
    return refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("-o - --table", "-o - prints all heads"),
        ("-o - --head 1.2", "-o - prints all heads"),
        ("--layer x", "neither a number nor a range"),
        ("I --corpus a", "give one of a sentence and a corpus"),
        ("--corpus ''", "the name of the file of sentences is empty"),
        ("I love you", "put the sentence in quotation marks: attnviz compare-heads"),
        ("-o a.npz", "a.npz: the ending must be one of png, svg, pdf, html, csv, json"),
        ("-o a.stats", "a.stats: a comparison is kept as .json"),
        ("I --roles --against toy", "the roles of heads on a sentence are a table of one model"),
        ("--load a.json", "as it was measured: omit model"),
        ("--load a.json --kind decoder", "as it was measured: omit"),
        ("--load a.json --against toy", "as it was measured: omit the second model"),
        ("--load a.json --roles", "as it was measured: omit roles, or give a sentence"),
        ("--load a.txt", "a.txt: a saved comparison ends in .json"),
        ("--load a.json --corpus a.txt", "give one of a corpus and a saved comparison"),
        ("--corpus a --sort entropy", "no option --sort: --table shows all heads"),
        ("--corpus a --shard 1/2", "no option --shard: --ray ADDRESS shares a large corpus"),
    ],
)
def test_usage(missed: Callable[..., tuple[int, str]], arguments: str, words: str) -> None:
    """A mistake on the command line is found before any work, and the error points to the help."""
    status, said = missed("compare-heads", *TOY, *shlex.split(arguments))
    assert (status, words in said) == (2, True), said
    assert said.endswith("(see attnviz compare-heads --help)")


def test_layers_and_heads_that_are_not_there(refused: Callable[..., tuple[int, str]]) -> None:
    """The range is said."""
    line = "attnviz: there is no layer 9: this model has layers 0 to 1 (counted from 0)"
    assert refused("compare-heads", *TOY, "--head", "9.9", "I love you") == (1, line)
    assert refused("compare-heads", *TOY, "--layer", "9", "I love you") == (1, line)
    line = "attnviz: there is no head 4: this model has heads 0 to 3 (counted from 0)"
    assert refused("compare-heads", *TOY, "--head", "1.4", "I love you") == (1, line)


def test_a_head_that_is_not_there_is_missed_early(
    refused: Callable[..., tuple[int, str]], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only after all of a long corpus was read."""
    monkeypatch.setattr("attnviz.heads.capture.survey.WINDOW", 2)
    (here / "a.txt").write_bytes(b"I love you\n" * 4 + b"\xff\n" * 30)
    read = []
    from attnviz.storage.corpora.corpus import Corpus

    line_of = Corpus._line

    def count(self: Corpus, raw: bytes, number: int) -> Any:
        read.append(number)
        return line_of(self, raw, number)

    monkeypatch.setattr(Corpus, "_line", count)
    status, line = refused("compare-heads", *TOY, "--head", "1.4", "--corpus", "a.txt")
    assert (status, line) == (
        1,
        "attnviz: there is no head 4: this model has heads 0 to 3 (counted from 0)",
    )
    assert 0 < len(read) <= 4


@pytest.mark.parametrize(
    ("name", "raw", "line"),
    [
        ("a.txt", None, "a.txt cannot be read: No such file or directory"),
        ("a.txt", b"", f"a.txt: {NONE}"),
        ("a.txt", b"\n\0\n\xff\n", f"a.txt: {NONE}: line 2: a NUL (\\0) at character 1"),
        (
            "a.txt",
            "I".encode("utf-16"),
            "a.txt is not UTF-8, but looks like UTF-16: save it as UTF-8",
        ),
        (
            "a.conllu",
            TREE.replace("\t0\troot", "\tx\troot").encode(),
            f"a.conllu: {NONE}: line 1: Failed parsing field 'head'",
        ),
    ],
)
def test_a_corpus_without_a_sentence(
    refused: Callable[..., tuple[int, str]], here: Path, name: str, raw: bytes | None, line: str
) -> None:
    """Which file it is is said, and what is wrong with its first line, with its number."""
    if raw is not None:
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_bytes(raw)
    status, said = refused("compare-heads", *TOY, "--corpus", name)
    assert status == 1
    assert said.startswith(f"attnviz: {line}")


def test_bad_lines_are_counted_named_and_passed_over(
    typed: Callable[..., Result], here: Path
) -> None:
    """The good lines are measured; of the bad ones the first is named on the screen, all in JSON."""
    good, bad = b"I love you\n", b"a\0\n\xff\n" + b"\0\n" * 6
    (here / "a.txt").write_bytes(good * 3 + bad + good)
    shown = typed("compare-heads", *TOY, "--corpus", "a.txt", "-o", "a.csv")
    assert shown.status == 0
    assert "a.txt: 4 sentences, " in shown.output
    note = "could not be used: 8. The first one is line 4: a NUL (\\0) at character 2"
    assert note in " ".join(shown.output.split())
    found = json.loads(typed("compare-heads", *TOY, "--corpus", "a.txt", "-o", "-").output)
    assert (found["n_sentences"], found["n_bad"]) == (4, 8)
    assert [line for line, _reason in found["bad"]] == [*range(4, 12)]


def test_files_that_are_no_comparison(refused: Callable[..., tuple[int, str]], here: Path) -> None:
    """A file of an earlier version and any other file are refused, with what to do."""
    for name in ("old.stats", "other.json"):
        (here / name).write_text("{}")
    status, line = refused("compare-heads", "--load", "old.stats")
    assert (status, "made by an earlier version of attnviz: make it again" in line) == (1, True)
    assert "holds no comparison" in refused("compare-heads", "--load", "other.json")[1]
