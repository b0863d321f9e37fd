"""``attnviz walkthrough``: what it prints and writes, which options go together, and what is refused."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from PIL import Image
from rich.cells import cell_len

from attnviz.capture.source import open_source
from attnviz.storage.formats import WALKTHROUGH, Format
from attnviz.walkthroughs.files import load, to_json
from attnviz.walkthroughs.view import View
from tests.fixtures.command_line import files
from tests.walkthroughs.head_walks import walk

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result

    Refused = Callable[..., tuple[int, str]]
    Typed = Callable[..., Result]

SEE = "(see attnviz walkthrough --help)"
BY_HAND = "a calculation by hand needs no model: it takes no sentence and no settings of a model"
BLANK = "JSON holds every number: an exercise with blank cells cannot be written so"
NEITHER = "is neither a number nor a range such as 0-3"
STEPS = "input, row, query, keys, values, scores, scaled, softmax, alignment, context, concatenated, output"
WHOLE = "a whole layer is walked as the model computed it, with no other score and no other mask"
ENDINGS = "the ending must be one of png, svg, pdf, gif, mp4, json, md, tex, csv, html"
NUMBERS = '{"query": [[1, 0]], "keys": [[1, 2], [3, 4]], "values": [[5], [6]]}'


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures without anything on them, for tests to which their names are all that matters."""
    monkeypatch.setitem(WALKTHROUGH, ".png", Format(lambda _: b""))


def test_toy_alone(typed: Typed, here: Path) -> None:
    """Without a sentence it is "I love all you": the calculation on one screen, and a picture in outputs/."""
    result = typed("walkthrough", "--toy")
    assert result.status == 0
    name = "outputs/walkthrough-i-love-all-you-toy-layer-0-head-0-query-0.png"
    assert result.errors == f"wrote {name}\n"
    assert (here / name).read_bytes().startswith(b"\x89PNG")
    lines = result.output.splitlines()
    assert lines[0] == "toy, head 0.0: the query “I” · “I love all you”"
    assert max(map(cell_len, lines)) <= 80
    assert len(lines) <= 24
    assert (
        lines[-1]
        == "more: --full (every step), --query WORD, --head 2.3, -o FILE.html, --interactive"
    )


def test_every_step(typed: Typed) -> None:
    """With --full all steps in order, the proof last."""
    result = typed("walkthrough", "--toy", "--full", "-o", "a.json")
    lines = result.output.splitlines()
    titles = [line.partition(". ")[0] for line in lines if line[:1].isdigit() and ". " in line[:5]]
    assert titles == [str(number) for number in range(1, 13)]
    proof = " ".join(lines[-2:])
    assert "recomputed context is " in proof
    assert "from the model's own" in proof
    assert proof.endswith("over 3 layers")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--toy"], {}),
        (
            ["--toy", "love all", "--layer", "-1", "--head", "3"],
            {"text": "love all", "layer": -1, "head": 3},
        ),
        (["--toy", "--query", "all"], {"query": "all"}),
        (["--toy", "--query", "-1"], {"query": -1}),
        (["--toy", "--all-queries"], {"every": True}),
        (["--toy", "--score", "scaled"], {}),
        (["--toy", "--score", "dot"], {"score": "dot"}),
        (["--toy", "--score", "additive", "--causal"], {"score": "additive", "causal": True}),
        (["--toy", "--whole-layer"], {"whole_layer": True, "every": True}),
        (["--toy", "--whole-layer", "--query", "you"], {"whole_layer": True, "query": "you"}),
        (["--toy", "I", "--pair", "love you"], {"text": "I", "pair": "love you"}),
        (
            ["-m", "toy-transformer", "--kind", "encoder"],
            {"source": "toy-transformer", "kind": "encoder"},
        ),
        (
            ["-m", "toy-seq2seq", "--target", "나는 너를"],
            {"source": "toy-seq2seq", "target": "나는 너를"},
        ),
    ],
)
def test_options_reach_the_walk(
    typed: Typed, arguments: list[str], expected: dict[str, Any]
) -> None:
    """Each option does what its Python name does."""
    result = typed("walkthrough", *arguments, "--json")
    assert (result.status, result.errors) == (0, "")
    printed = json.loads(result.output)
    source = open_source(expected.pop("source", "toy"))
    own = walk(expected.pop("text", "I love all you"), source, **expected)
    assert list(printed["grids"]) == list(own.grids)
    for name, grid in own.grids.items():
        there = [
            [-np.inf if isinstance(cell, str) else cell for cell in row]
            for row in printed["grids"][name]["values"]
        ]
        assert np.array_equal(there, grid.values)
    assert printed["difference"] == own.difference
    assert printed["notes"] == json.loads(to_json(own))["notes"]


def test_sizes(typed: Typed) -> None:
    """The sizes of the model with random weights."""
    sizes = ("--seed", "3", "--d-model", "12", "--n-heads", "3", "--n-layers", "1")
    printed = json.loads(
        typed("walkthrough", "-m", "toy-random", *sizes, "어떤 말", "--json").output
    )
    assert np.array(printed["grids"]["Wq"]["values"]).shape == (12, 4)
    assert printed["grids"]["X"]["rows"] == ["어떤", "말"]


def test_pretrained(typed: Typed, tiny_bert: str, here: Path) -> None:
    """A pretrained model, its special tokens among the queries."""
    result = typed("walkthrough", "-m", tiny_bert, "I am full", "--query", "[CLS]", "-o", "a.json")
    assert (result.status, result.errors) == (0, "wrote a.json\n")
    walked = load(here / "a.json")
    assert walked.query == 0
    assert walked.grids["K"].rows == ("[CLS]", "i", "am", "full", "[SEP]")
    assert walked.difference is not None
    assert walked.difference < 5e-6


@pytest.mark.parametrize(
    ("typed_steps", "numbers"),
    [
        ("score,softmax,context", [6, 8, 10]),
        ("scores", [6]),
        ("WEIGHTS", [8]),
        ("in", [1]),
        ("q , k", [3, 4]),
    ],
)
def test_steps(typed: Typed, typed_steps: str, numbers: list[int]) -> None:
    """Steps by their names, the beginnings of them, or what they make; they keep their numbers."""
    lines = typed(
        "walkthrough", "--toy", "--steps", typed_steps, "-o", "a.json"
    ).output.splitlines()
    assert [
        int(line.partition(".")[0]) for line in lines if line[:1].isdigit() and ". " in line[:5]
    ] == numbers


def test_jump(typed: Typed) -> None:
    """From a step on, with the numbers that each step has in the whole calculation, and the proof last."""
    whole = typed("walkthrough", "--toy", "--full", "-o", "a.json").output.splitlines()
    lines = typed("walkthrough", "--toy", "--jump", "10", "-o", "a.json").output.splitlines()
    assert lines[:2] == whole[:2]
    start = next(number for number, line in enumerate(whole) if line.startswith("10. "))
    assert lines[-len(whole[start:]) :] == whole[start:]
    assert not any(re.match(r"[1-9]\. ", line) for line in lines)
    some = typed(
        "walkthrough", "--toy", "--steps", "keys,softmax", "--jump", "5", "-o", "a.json"
    ).output
    assert re.findall(r"^(\d+)\. ", some, re.MULTILINE) == ["8"]


FILMS = [
    ("toy", (), 12),
    ("toy-seq2seq", (), 5 * 12),
    ("toy-seq2seq", ("--steps", "softmax,context"), 5 * 2),
    ("toy-seq2seq", ("--query", "1", "--steps", "softmax"), 1),
]


@pytest.mark.parametrize(("model", "more", "n_pictures"), FILMS)
def test_film_has_the_steps(
    typed: Typed,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    more: tuple[str, ...],
    n_pictures: int,
) -> None:
    """The steps one after another; of a decoder that looks at another sentence each word that it says."""
    given: list[Any] = []

    def keep(walks: Any, **view: Any) -> bytes:
        given.append((walks, view))
        return b""

    monkeypatch.setitem(WALKTHROUGH, ".gif", replace(WALKTHROUGH[".gif"], make=keep))
    assert typed("walkthrough", "-m", model, "I love all you", *more, "-o", "a.gif").status == 0
    ((walks, view),) = given
    assert sum(len(View(walk=one, steps=view["steps"]).step_views()) for one in walks) == n_pictures
    assert walks[0].query == ("--query" in more)


def test_film(typed: Typed, here: Path) -> None:
    """Each of these steps is a picture of the film; what is no film shows the first word."""
    model, more, n_pictures = FILMS[2]
    result = typed(
        "walkthrough", "-m", model, "I love all you", *more, "-o", "a.gif", "-o", "a.json"
    )
    assert (result.status, result.errors) == (0, "wrote a.gif\nwrote a.json\n")
    with Image.open(here / "a.gif") as film:
        assert getattr(film, "n_frames", 1) == n_pictures
    assert load(here / "a.json").query == 0


def test_film_without_ffmpeg(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said before a model is loaded."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("attnviz.capture.source.open_source", pytest.fail)
    status, said = refused("walkthrough", "--toy", "-o", "a.mp4")
    assert status == 1
    assert said == (
        "attnviz: an .mp4 needs the program ffmpeg, which is not installed: install it, or write a .gif"
    )


TOY, EXAMPLE = ("--toy", "나는 love 너희", "--lang", "ko"), ("--example", "seq2seq")


@pytest.mark.parametrize(
    ("chosen", "ending"),
    [
        *(
            (chosen, ending)
            for chosen in (TOY, EXAMPLE)
            for ending in ("png", "json", "md", "tex", "csv", "html")
        ),
        (TOY, "svg"),
        (TOY, "pdf"),
        (EXAMPLE, "gif"),
    ],
)
def test_files(typed: Typed, here: Path, ending: str, chosen: tuple[str, ...]) -> None:
    """Every ending is written, and is what it says."""
    result = typed("walkthrough", *chosen, "-o", f"walk.{ending}")
    assert (result.status, result.errors) == (0, f"wrote walk.{ending}\n")
    written = (here / f"walk.{ending}").read_bytes()
    begins = {
        "png": b"\x89PNG",
        "pdf": b"%PDF",
        "svg": b"<?xml",
        "json": b'{"format"',
        "gif": b"GIF8",
        "html": b"<!",
        "md": b"#",
    }
    assert written.startswith(begins.get(ending, b""))
    assert len(written) > 500
    assert files(here) == {here / f"walk.{ending}": written}


def test_several_files_and_the_same_again(typed: Typed, here: Path) -> None:
    """Each of several outputs; the same command writes the same bytes."""
    command = ("walkthrough", "--toy", "-o", "a.md", "-o", "deep/er/a.json", "-o", "a.csv")
    first = typed(*command)
    assert first.errors == "wrote a.md\nwrote deep/er/a.json\nwrote a.csv\n"
    before = files(here)
    assert typed(*command) == first
    assert files(here) == before


@pytest.mark.usefixtures("undrawn")
def test_names_differ(typed: Typed, here: Path) -> None:
    """Another sentence, head, query, score, language or step never overwrites a picture; the same command does."""
    commands: list[list[str]] = [
        [],
        ["love"],
        ["love", "--pair", "you"],
        ["--head", "1"],
        ["--query", "1"],
        ["--score", "dot"],
        ["--causal"],
        ["--lang", "ko"],
        ["--steps", "score"],
        ["--exercise"],
        ["--exercise", "--solution"],
        ["--exercise", "--seed", "1"],
    ]
    for arguments in (*commands, *commands[:2]):
        assert typed("walkthrough", "-m", "toy-random", *arguments).status == 0
    assert len(list((here / "outputs").iterdir())) == len(commands)


@pytest.mark.usefixtures("undrawn")
def test_names_differ_by_kind_and_target(typed: Typed, here: Path) -> None:
    """Nor does another kind of attention, or another translation of the same sentence."""
    commands: list[list[str]] = [
        [],
        ["--kind", "encoder"],
        ["--kind", "decoder"],
        ["--target", "나는 너를"],
        ["--target", "나는 너희를"],
    ]
    for arguments in (*commands, commands[0]):
        assert typed("walkthrough", "-m", "toy-transformer", *arguments).status == 0
    names = {path.name for path in (here / "outputs").iterdir()}
    assert len(names) == len(commands)
    assert "walkthrough-i-love-all-you-toy-transformer-layer-0-head-0-query-0-cross.png" in names
    assert any("i-love-all-you-나는-너를-" in name for name in names)


@pytest.mark.usefixtures("undrawn")
def test_names_of_own_numbers(typed: Typed, here: Path) -> None:
    """Numbers typed by hand are named after their file, examples after themselves; and the row that is followed."""
    numbers = NUMBERS.replace("[[1, 0]]", "[[1, 0], [0, 1]]")
    for name in ("mine.json", "yours.json"):
        (here / name).write_text(numbers)
        for more in ((), ("--query", "1")):
            assert typed("walkthrough", "--input", name, *more).status == 0
    (here / "example-self-attention.json").write_text(numbers.replace("1, 0", "1, 1"))
    for other in (
        ("--example", "self-attention"),
        ("--input", "example-self-attention.json", "--lang", "ko"),
    ):
        assert typed("walkthrough", *other).status == 0
    assert {path.name for path in (here / "outputs").iterdir()} == {
        *(
            f"walkthrough-{name}-query-{query}.png"
            for name in ("mine", "yours")
            for query in ("all", "1")
        ),
        *(f"walkthrough-example-self-attention-query-all{more}.png" for more in ("", "-ko")),
    }


def test_examples(typed: Typed) -> None:
    """S10 to every digit; the shapes of S2."""
    output = typed("walkthrough", "--example", "seq2seq", "--full", "-o", "a.json").output
    for number in ("2.86251858e-20", "1.38879439e-11", "6.94397194e-11", "10·5 + 5·0 + 10·1 = 60"):
        assert number in output
    output = typed("walkthrough", "--example", "seq2seq", "--precision", "2", "-o", "a.json").output
    assert re.search(r"encoder 2 .* 60 +1\.00 █████ .* 5\.00 0 +1\.00", output)
    output = typed("walkthrough", "--example", "self-attention", "--full", "-o", "a.json").output
    assert not re.search(r"\d\.\d{4}", output)
    assert "(1, 4, 5)" in output
    assert "(1, 4, 4)" in output


def test_own_numbers(typed: Typed, here: Path) -> None:
    """A file of a person's own numbers; the picture is named after what it is."""
    (here / "mine.json").write_text(NUMBERS)
    result = typed("walkthrough", "--input", "mine.json", "--json")
    assert json.loads(result.output)["grids"]["scores"]["values"] == [[1.0, 3.0]]


def test_one_row_of_own_numbers(typed: Typed, refused: Refused, here: Path) -> None:
    """--query follows one row of a file, and of an example, to its alignment vectors; all is what it is without."""
    (here / "mine.json").write_text(
        NUMBERS.replace("[[1, 0]]", '[[1, 0], [0, 1]], "query_words": ["I", "you"]')
    )
    for chosen in (("--input", "mine.json"), ("--example", "self-attention")):
        everything = typed("walkthrough", *chosen, "--json").output
        assert typed("walkthrough", *chosen, "--all-queries", "--json").output == everything
        one, number = (
            typed("walkthrough", *chosen, "--query", query, "--json").output
            for query in ("you", "-1")
        )
        assert (one == number) == (chosen[0] == "--input")
        assert "alignment" in json.loads(one)["grids"]
        assert "alignment" not in json.loads(everything)["grids"]
    line = "attnviz: mine.json: there is no query 'us': there are 0 I, 1 you"
    assert refused("walkthrough", "--input", "mine.json", "--query", "us") == (1, line)
    line = "attnviz: there is no query '1 to': there are 0 decoder"
    assert refused("walkthrough", "--example", "seq2seq", "--query", "1 to") == (1, line)
    line = "give one query or all, not both"
    status, said = refused("walkthrough", "--input", "mine.json", "--query", "1", "--all-queries")
    assert (status, said) == (2, f"attnviz walkthrough: {line} {SEE}")


def test_without_values(typed: Typed, here: Path) -> None:
    """The weights need none: every file is written up to them, and the walkthrough can be verified."""
    (here / "mine.json").write_text(NUMBERS.partition(', "values"')[0] + "}")
    names = (f"a.{ending}" for ending in ("png", "gif", "json", "md", "tex", "csv", "html"))
    outputs = [part for name in names for part in ("-o", name)]
    result = typed("walkthrough", "--input", "mine.json", *outputs)
    assert result.status == 0
    assert "no values are given: the calculation ends at the weights" in result.output
    assert typed("verify", "a.json").status == 0
    korean = typed("walkthrough", "--input", "mine.json", "--lang", "ko", "-o", "a.json").output
    assert "밸류가 주어지지 않음" in korean


def test_exercise(typed: Typed, here: Path) -> None:
    """Blank cells with --exercise, the same numbers with --solution; another seed, another exercise."""
    blank, solved = (
        typed("walkthrough", "--exercise", *more, "-o", "a.csv").output
        for more in ((), ("--solution",))
    )
    assert "____" in blank
    assert "____" not in solved
    assert typed("walkthrough", "--exercise", "-o", "a.csv").output == blank
    assert typed("walkthrough", "--exercise", "--seed", "1", "-o", "a.csv").output != blank
    (here / "mine.json").write_text(NUMBERS)
    for one in (("--example", "seq2seq"), ("--input", "mine.json"), ("--toy",)):
        assert "____" in typed("walkthrough", *one, "--exercise", "-o", "a.csv").output
    assert "small whole numbers, drawn from seed 0\n" in blank
    assert (
        "drawn from seed 0"
        not in typed("walkthrough", "--example", "seq2seq", "--exercise", "-o", "a.csv").output
    )


def test_words_from_elsewhere(typed: Typed, here: Path) -> None:
    """The sentence from standard input or a file."""
    (here / "text").write_text("love you\n")
    for more, stdin in ((("-",), b"love you\n"), (("--file", "text"), None)):
        printed = json.loads(typed("walkthrough", "--toy", *more, "--json", stdin=stdin).output)
        assert printed["text"] == "love you"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--query", "us"], "there is no query 'us': there are 0 I, 1 love, 2 all, 3 you"),
        (["--query", "4"], "there is no query 4: there are 0 I, 1 love, 2 all, 3 you"),
        (
            ["you and you", "--query", "you"],
            "several queries are 'you': choose one by its number: 0 you, 2 you",
        ),
        (["--layer", "2"], "there is no layer 2: this model has layers 0 to 1 (counted from 0)"),
        (["--head", "9999"], "there is no head 9999: this model has heads 0 to 3 (counted from 0)"),
        (["--steps", "\x1b[2J"], rf"there is no step '\x1b[2J': there are {STEPS}"),
        (["--head", "4"], "there is no head 4: this model has heads 0 to 3 (counted from 0)"),
        (["--kind", "cross"], "toy-random (seed 0) has no cross attention to show: it has encoder"),
        (["--target", "나는"], "toy-random (seed 0) generates nothing, so it takes no target"),
        ([""], "the text is empty"),
        (["I", "--pair", " "], "the second sentence is empty (only spaces)"),
        (["a\ud800"], r"the text is not valid Unicode: character 2 is a lone surrogate (\ud800)"),
        (["--whole-layer", "--causal"], WHOLE),
        (["--steps", "score,xyz"], f"there is no step 'xyz': there are {STEPS}"),
        (["--steps", "scroes"], "there is no step 'scroes': did you mean scores?"),
        (["--steps", " , "], "no step is named: choose some, such as score,softmax,context"),
        (["--jump", "13"], "there is no step 13 to begin at: the last one is 12, counted from 1"),
        (
            ["--steps", "score", "--jump", "7"],
            "there is no step 7 to begin at: the last one is 6, counted from 1",
        ),
        (["-o", "/dev/null/x.png"], None),
    ],
)
def test_refused(refused: Refused, arguments: list[str], line: str | None) -> None:
    """What is not there, in one line."""
    status, said = refused("walkthrough", "-m", "toy-random", *arguments)
    assert status == 1
    assert line is None or said == f"attnviz: {line}"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--toy", "-m", "toy"], "give toy or another model, not both"),
        (
            ["--toy", "--revision", "x"],
            "toy comes with attnviz: it has no revision and no code to trust",
        ),
        (["--query", "I", "--all-queries"], "give one query or all, not both"),
        (["--whole-layer", "--head", "1"], "give one head or the whole layer, not both"),
        (
            ["--example", "seq2seq", "--input", "x.json"],
            "give an example or a file of numbers, not both",
        ),
        (["--example", "seq2seq", "I"], BY_HAND),
        (["--input", "x.json", "--toy"], BY_HAND),
        (["--input", "x.json", "--layer", "0"], BY_HAND),
        (["--toy", "--jump", "2", "--json"], "give --jump or --json, not both"),
        (["--toy", "--interactive", "--json"], "give --interactive or --json, not both"),
        (["--toy", "--full", "--json"], "give --full or --json, not both"),
        (
            ["--toy", "--interactive"],
            "--interactive needs a terminal; without one, --jump N begins at a step",
        ),
        (["--toy", "--jump", "0"], None),
        (["--exercise", "--json"], BLANK),
        (["--exercise", "-o", "a.json"], BLANK),
        (["--solution"], "a solution goes with an exercise: it fills in the blank cells"),
        (
            ["--example", "seq2seq", "--seed", "1"],
            "Invalid value for '--seed': it goes with an exercise, or with the model toy-random",
        ),
        (["--toy", "--d-model", "8"], "d_model can be chosen for the model toy-random alone"),
        (["--toy", "-o", "walk.doc"], f"Invalid value for '--output' / '-o': walk.doc: {ENDINGS}"),
        (["--toy", "--palette", "pinkish"], None),
        (["--toy", "--precision", "99"], None),
        (["--toy", "--precision", "-1"], None),
        (["--toy", "--layer", "0-1"], "Invalid value for '--layer': one is followed, not several"),
        (["--toy", "--head", "0-3"], "Invalid value for '--head': one is followed, not several"),
        (["--toy", "--head", "1.x"], f"Invalid value for '--head': 'x' {NEITHER}"),
        (["--toy", "--head", "\x1b[2J"], rf"Invalid value for '--head': '\x1b[2J' {NEITHER}"),
        (["--toy", "--score", "cosine"], None),
        (["--example", "none"], None),
        (
            ["--toy", "I", "love"],
            "Got unexpected extra argument(s) (love): put a sentence in quotation marks",
        ),
    ],
)
def test_misused(refused: Refused, arguments: list[str], line: str | None) -> None:
    """Options that do not go together, in one line that says where help is."""
    status, said = refused("walkthrough", *arguments)
    assert status == 2
    assert said.endswith(SEE)
    assert line is None or said == f"attnviz walkthrough: {line} {SEE}"


def test_files_are_refused(refused: Refused, here: Path) -> None:
    """A file that is not there, or whose numbers are none."""
    assert refused("walkthrough", "--input", "none.json")[0] == 1
    (here / "bad.json").write_text(NUMBERS.replace("[3, 4]", "[3]"))
    status, said = refused("walkthrough", "--input", "bad.json")
    assert status == 1
    assert said.startswith("attnviz: bad.json: ")


def test_models_without_a_query(refused: Refused, tiny_bert: str) -> None:
    """Another way to score is not for a model that has its own."""
    status, said = refused("walkthrough", "-m", tiny_bert, "I", "--score", "dot")
    assert status == 1
    assert said.endswith("has its own score and mask: another is for the home-built models alone")


def test_no_model_library(typed: Typed, monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    """A calculation by hand needs none: where torch cannot be imported, it is the same."""
    (here / "mine.json").write_text(NUMBERS)
    for chosen in (("--example", "seq2seq"), ("--input", "mine.json"), ("--exercise",)):
        with_it = typed("walkthrough", *chosen, "-o", "a.md")
        (here / "a.md").unlink()
        with monkeypatch.context() as without:
            for name in ("torch", "transformers"):
                without.setitem(sys.modules, name, None)
            assert typed("walkthrough", *chosen, "-o", "a.md") == with_it
        (here / "a.md").unlink()
        assert with_it.status == 0
