"""Bad input to ``attnviz compare-heads``, ``head`` and ``merge``: one clear line, and nothing is written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from attnviz.storage.encoding import VERSION
from tests.fixtures.command_line import files

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

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


# ------------------------------------------------------------------------------------------ the command line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sort", "entrop"], "did you mean entropy?"),
        (["--sort", "rol"], "did you mean role?"),
        (["--role", "previus"], "did you mean previous?"),
        (["--role", "self", "--role", ""], "there is no role ''"),
        (["--threshold", "previus=0.3"], "did you mean previous?"),
        (["--threshold", "broad=nan"], "must be above 0 and at most 1, not nan"),
        (["--threshold", "broad"], "'broad' is not ROLE=X"),
        (["--threshold", "broad=0.3", "--threshold", " broad = 0.4"], "given two thresholds"),
        (["-o", "-", "--table"], "-o - prints all heads"),
        (["-o", "-", "--layer", "0"], "-o - prints all heads"),
        (["-o", "a.png", "-o", "./a.png"], "a.png is to be written twice"),
        (["--layer", "x"], "neither a number nor a range"),
        (["--controls", "-1"], "greater than or equal to 0"),
        (["I", "--corpus", "a"], "give one of a sentence and a corpus"),
        (["--conllu", "b", "--corpus", "a"], "give one of a corpus and a treebank"),
        (["--corpus", ""], "the name of the file of sentences is empty"),
        (["I", "love", "you"], "put a sentence in quotation marks"),
        (["I", "--checkpoint", "a.stats"], "a checkpoint is for a file of sentences"),
        (["--corpus", "a", "--checkpoint", "a.txt"], "a checkpoint ends in .stats"),
        (["--corpus", "-", "--checkpoint", "a.stats"], "of standard input nobody can tell"),
        (["-o", "a.npz"], "a.npz: the ending must be one of png, svg, pdf, html, csv, json"),
    ],
)
def test_usage(missed: Callable[..., tuple[int, str]], arguments: list[str], words: str) -> None:
    """What was typed cannot be meant: found before any work, with where help is."""
    status, said = missed("compare-heads", *TOY, *arguments)
    assert (status, words in said) == (2, True), said
    assert said.endswith("(see attnviz compare-heads --help)")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--toy"], "it takes no model and no checkpoint"),
        (["--checkpoint", "a.stats"], "it takes no model and no checkpoint"),
        (["--controls", "3", "--dtype", "float64"], "controls and dtype come too late"),
        (["--corpus", "a.txt"], "give one of a corpus and a .stats file"),
    ],
)
def test_usage_of_load(
    missed: Callable[..., tuple[int, str]], arguments: list[str], words: str
) -> None:
    """What --load cannot change is not typed beside it."""
    status, said = missed("compare-heads", "--load", "a.stats", *arguments)
    assert (status, words in said) == (2, True), said


@pytest.mark.parametrize("name", ["x", "3", "3.", ".7", "3.7.1", "3,7", "", "3.\u0667"])
def test_heads_that_are_none(missed: Callable[..., tuple[int, str]], name: str) -> None:
    """A head is a layer and a number."""
    line = f"Invalid value for 'LAYER.HEAD': {name!r} is no head: give its layer and its number, such as 1.2"
    assert missed("head", name, *TOY) == (2, f"attnviz head: {line} (see attnviz head --help)")


def test_heads_count_from_the_end(typed: Callable[..., Result]) -> None:
    """Behind ``--`` a minus begins no option; without it, that is said."""
    shown = typed("head", *TOY, "-o", "a.csv", "--", "-1.-2", "I love you")
    assert shown.output.startswith("Head 1.2 ")
    assert "put -- before a head" in typed("head", "-1.-2", *TOY).errors


def test_layers_and_heads_that_are_not_there(refused: Callable[..., tuple[int, str]]) -> None:
    """The range is said."""
    line = "attnviz: there is no layer 9: this model has layers 0 to 1 (counted from 0)"
    assert refused("head", "9.9", *TOY, "I love you") == (1, line)
    assert refused("compare-heads", *TOY, "--layer", "9", "I love you") == (1, line)
    line = "attnviz: there is no head 4: this model has heads 0 to 3 (counted from 0)"
    assert refused("head", "1.4", *TOY, "I love you") == (1, line)


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
    status, line = refused("head", "1.4", *TOY, "--corpus", "a.txt")
    assert (status, line) == (
        1,
        "attnviz: there is no head 4: this model has heads 0 to 3 (counted from 0)",
    )
    assert 0 < len(read) <= 4


# ------------------------------------------------------------------------------------------------ the corpus


@pytest.mark.parametrize(
    ("name", "raw", "line"),
    [
        ("a.txt", None, "a.txt cannot be read: No such file or directory"),
        ("a.txt", b"", f"a.txt: {NONE}"),
        ("a.txt", b"\n \n\t\n", f"a.txt: {NONE}"),
        ("a.txt", b"\n\0\n\xff\n", f"a.txt: {NONE}: line 2: a NUL (\\0) at character 1"),
        ("a\tb.txt", b"", f"a\\tb.txt: {NONE}"),
        ("folder/a.txt", b"\0\n", f"folder/a.txt: {NONE}: line 1: a NUL (\\0) at character 1"),
        (
            "a.txt",
            "I".encode("utf-16"),
            "a.txt is not UTF-8, but looks like UTF-16: save it as UTF-8",
        ),
        ("a.jsonl", b"{}\n", "a.jsonl holds JSON lines, which are not read: write one sentence"),
        ("a.gz", b"I love you\n", "a.gz is compressed: decompress it first"),
        (
            "a.conllu",
            TREE.replace("\t", " ").encode(),
            f"a.conllu: {NONE}: line 2: 1 column where there must be 10",
        ),
        (
            "a.conllu",
            TREE.replace("\t0\troot", "\tx\troot").encode(),
            f"a.conllu: {NONE}: line 1: Failed parsing field 'head'",
        ),
        (
            "a.conllu",
            b"I love you\n",
            f"a.conllu: {NONE}: line 1: 1 column where there must be 10, separated by tabs",
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


def test_a_folder_a_pipe_and_standard_input(
    refused: Callable[..., tuple[int, str]], here: Path
) -> None:
    """What is no file, or holds nothing."""
    (here / "folder").mkdir()
    assert refused("compare-heads", *TOY, "--corpus", "folder") == (
        1,
        "attnviz: folder cannot be read: Is a directory",
    )
    assert refused("compare-heads", *TOY, "--corpus", "-", stdin=b"") == (
        1,
        f"attnviz: standard input: {NONE}",
    )
    assert refused("compare-heads", *TOY, "--corpus", "-") == (
        1,
        "attnviz: standard input is closed",
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "the text is empty"),
        ("a\ud800", r"the text is not valid Unicode: character 2 is a lone surrogate (\ud800)"),
        (
            "qwxz",
            "toy knows none of these words (qwxz): it reads sentences such as “She is eating a green apple”",
        ),
    ],
)
def test_a_sentence_that_cannot_be_read(
    refused: Callable[..., tuple[int, str]], text: str, line: str
) -> None:
    """One sentence that was typed is no line 1 of anything."""
    status, said = refused("compare-heads", "--toy", text)
    assert status == 1
    assert said.startswith(f"attnviz: {line}")


def test_a_sentence_from_standard_input_that_is_none(
    refused: Callable[..., tuple[int, str]],
) -> None:
    """A pipe that gives nothing is told from a sentence that was typed."""
    for command in (["compare-heads"], ["head", "0.0"]):
        assert refused(*command, *TOY, "-", stdin=b"\n") == (1, "attnviz: standard input is empty")
        assert refused(*command, *TOY, "-", stdin=b" \n") == (
            1,
            "attnviz: standard input is empty (only spaces)",
        )


def test_samples_that_a_model_cannot_read(
    refused: Callable[..., tuple[int, str]], here: Path, tmp_path: Path, tiny_bert: str
) -> None:
    """Where no sentences were given, those that come with attnviz are meant."""
    model = Path(shutil.copytree(tiny_bert, tmp_path / "short"))
    config = json.loads((model / "tokenizer_config.json").read_text())
    (model / "tokenizer_config.json").write_text(json.dumps({**config, "model_max_length": 3}))
    status, said = refused("compare-heads", "-m", str(model))
    assert status == 1
    assert said.startswith(f"attnviz: sentences shipped with attnviz: {NONE}: line ")
    assert files(here) == {}


def test_bad_lines_are_counted_named_and_passed_over(
    typed: Callable[..., Result], here: Path
) -> None:
    """The good lines are measured; of the bad ones the first five are named, on the screen and in JSON all."""
    good, bad = b"I love you\n", b"a\0\n\xff\n" + b"\0\n" * 6
    (here / "a.txt").write_bytes(good * 3 + bad + good)
    shown = typed("compare-heads", *TOY, "--corpus", "a.txt", "-o", "a.csv")
    assert shown.status == 0
    assert "a.txt: 4 sentences, " in shown.output
    assert "line 4 not used: a NUL (\\0) at character 2\n" in shown.output
    assert "line 5 not used: not UTF-8: byte 1 is 0xff\n" in shown.output
    assert "line 8 not used: " in shown.output
    assert "line 9 not used: " not in shown.output
    assert "3 more lines not used\n" in shown.output
    found = json.loads(typed("compare-heads", *TOY, "--corpus", "a.txt", "-o", "-").output)
    assert (found["n_sentences"], found["n_bad"], [one["line"] for one in found["bad"]]) == (
        4,
        8,
        [*range(4, 12)],
    )


def test_a_treebank_with_a_bad_sentence(typed: Callable[..., Result], here: Path) -> None:
    """The line is named; words that are no words of the sentence's text are such a mistake too."""
    (here / "a.conllu").write_text(
        TREE + TREE.replace("\t3\t", "\t9\t").replace("3\ther", "4\ther") + TREE * 2
    )
    shown = typed("compare-heads", *TOY, "--conllu", "a.conllu", "-o", "a.csv")
    assert shown.status == 0
    assert "line 6 not used: the words are not numbered 1, 2, 3" in shown.output
    (here / "a.conllu").write_text(TREE.replace("I saw her", "I heard her") + TREE)
    shown = typed("compare-heads", *TOY, "--conllu", "a.conllu", "-o", "a.csv")
    assert "a.conllu: 1 sentence, " in shown.output
    assert "line 1 not used: the text has “heard her” where “saw” should be" in shown.output


def test_sentences_that_are_too_long(
    typed: Callable[..., Result],
    refused: Callable[..., tuple[int, str]],
    here: Path,
    tiny_bert: str,
) -> None:
    """A line too long for the model is a bad line, or is cut with --truncate; alone, it is refused."""
    (here / "a.txt").write_text("I love you\n" + "I love you " * 9 + "\n")
    shown = typed("compare-heads", "-m", tiny_bert, "--corpus", "a.txt", "-o", "a.csv")
    assert "a.txt: 1 sentence, 5 tokens" in shown.output
    assert "line 2 not used: " in shown.output
    cut = typed("compare-heads", "-m", tiny_bert, "--corpus", "a.txt", "--truncate", "-o", "a.csv")
    assert "a.txt: 2 sentences, 21 tokens" in cut.output
    assert "not used" not in cut.output
    status, line = refused("compare-heads", "-m", tiny_bert, "I love you " * 9)
    assert status == 1
    assert "29 tokens" in line
    assert (
        typed(
            "compare-heads", "-m", tiny_bert, "I love you " * 9, "--truncate", "-o", "a.csv"
        ).status
        == 0
    )


def test_no_controls(typed: Callable[..., Result], here: Path) -> None:
    """Without controls no role is established, and why is said."""
    words = ("you", "me", "us", "him", "her", "them", "it", "all", "cats", "dogs", "cake", "boys")
    (here / "a.txt").write_text("".join(f"I love {word} .\n" for word in words))
    shown = typed(
        "compare-heads",
        *TOY,
        "--corpus",
        "a.txt",
        "--controls",
        "0",
        "--threshold",
        "broad=0.01",
        "-o",
        "-",
    )
    assert shown.status == 0
    roles = [role for head in json.loads(shown.output)["heads"] for role in head["roles"]]
    assert roles
    assert not any(role["established"] for role in roles)
    reasons = {role["reason"].partition(" (")[0] for role in roles}
    assert reasons == {"no control was taken"}


# -------------------------------------------------------------------------------------------------- outputs


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ("file/a.png", "{}/file is not a folder"),
        ("folder.stats", "it is a folder"),
        ("/proc/none/a.json", "No such file or directory"),
    ],
)
def test_outputs_that_cannot_be_written(
    missed: Callable[..., tuple[int, str]], here: Path, output: str, reason: str
) -> None:
    """Said before any model is opened, of both commands, and of what is merged."""
    (here / "file").touch()
    (here / "folder.stats").mkdir()
    line = f"attnviz: {output} cannot be written: {reason.format(here)}"
    for command in (["compare-heads"], ["head", "0.0"]):
        assert missed(*command, *TOY, "I love you", "-o", output) == (1, line)
    if output.endswith(".stats"):
        assert missed("merge", "a.stats", "-o", output) == (1, line)


def test_a_checkpoint_that_cannot_be_written(
    missed: Callable[..., tuple[int, str]], here: Path
) -> None:
    """Said before the first window is measured for nothing."""
    (here / "a.txt").write_text("I love you\n")
    line = "attnviz: /proc/none/a.stats cannot be written: No such file or directory"
    assert missed(
        "compare-heads", *TOY, "--corpus", "a.txt", "--checkpoint", "/proc/none/a.stats"
    ) == (1, line)


# -------------------------------------------------------------------------------------------------- .stats


def stats_that_are_none() -> dict[str, bytes | None]:
    """Files that hold no survey, by what they are."""
    from safetensors.numpy import save

    deep = '{"tuple": [' * 3000 + "]}" * 3000
    headed = f'{{"format": "attnviz stats", "version": {VERSION}, "stats": %s}}'
    return {
        "none": None,
        "empty": b"",
        "text": b"hello\n",
        "bytes": b"\xff" * 99,
        "foreign": save({}),
        "other": save({}, {"attnviz": "[]"}),
        "nothing": save({}, {"attnviz": headed % "{}"}),
        "number": save({}, {"attnviz": headed % "7"}),
        "deep": save({}, {"attnviz": headed % deep}),
        "class": save({}, {"attnviz": headed % '{"class": "Path", "fields": {}}'}),
        "array": save({}, {"attnviz": headed % '{"array": "0"}'}),
        "fields": save({}, {"attnviz": headed % '{"class": "Stats", "fields": {}}'}),
        "link": save(
            {},
            {
                "attnviz": headed
                % '{"class": "Link", "fields": {"query": 1, "key": 2, "relation": ""}}'
            },
        ),
        "hollow": save(
            {},
            {
                "attnviz": headed
                % '{"class": "Stats", "fields": {"survey": 3, "corpora": {"tuple": []}, "options": {"mapping": []}}}'
            },
        ),
    }


@pytest.mark.parametrize("name", [*stats_that_are_none()])
def test_stats_that_are_none(
    refused: Callable[..., tuple[int, str]], here: Path, name: str
) -> None:
    """A file that holds no survey is refused in one line wherever it is read."""
    raw = stats_that_are_none()[name]
    if raw is not None:
        (here / "a.stats").write_bytes(raw)
    line = "attnviz: a.stats " + (
        "cannot be read: No such file or directory"
        if raw is None
        else "holds no stats of attnviz's, or is not whole"
    )
    assert refused("compare-heads", "--load", "a.stats") == (1, line)
    assert refused("head", "0.0", "--load", "a.stats") == (1, line)
    assert refused("merge", "a.stats", "-o", "b.stats") == (1, line)
    (here / "a.txt").write_text("I love you\n")
    if raw is not None:
        assert refused("compare-heads", *TOY, "--corpus", "a.txt", "--checkpoint", "a.stats") == (
            1,
            line,
        )


def test_stats_of_another_version(refused: Callable[..., tuple[int, str]], here: Path) -> None:
    """A file of a version to come is said to be one."""
    from safetensors.numpy import save

    (here / "a.stats").write_bytes(
        save({}, {"attnviz": '{"format": "attnviz stats", "version": 99, "stats": {}}'})
    )
    line = "attnviz: a.stats was written by another version of attnviz"
    assert refused("compare-heads", "--load", "a.stats") == (1, line)


def test_parts_that_do_not_fit(
    typed: Callable[..., Result], refused: Callable[..., tuple[int, str]], here: Path
) -> None:
    """What differs is said, with the file."""
    (here / "a.txt").write_text("I love you\nyou love me\n")
    runs = {
        "model": ["-m", "toy-random:seed=1"],
        "sample": ["--controls", "5"],
        "size": ["-m", "toy-random:n_layers=1"],
        "second": ["--against", "toy-random"],
        "a": [],
    }
    for name, arguments in runs.items():
        ran = typed("compare-heads", *TOY, "--corpus", "a.txt", *arguments, "-o", f"{name}.stats")
        assert ran.status == 0
    words = {
        "model": "they differ in model: toy-random (seed 0) and toy-random (seed 1)",
        "sample": "they differ in sample: 50 and 5",
        "second": "only one was compared with another model",
        "size": "they differ in model: toy-random (seed 0) and toy-random (seed 0, n_layers 1)",
    }
    for name, said in words.items():
        status, line = refused("merge", "a.stats", f"{name}.stats", "-o", "b.stats")
        assert status == 1
        assert line.startswith(f"attnviz: {name}.stats: these cannot be put together")
        assert said in line
    assert refused("merge", "a.stats", "-o", "b.txt")[0] == 2
    assert refused("merge", "-o", "b.stats")[0] == 2
