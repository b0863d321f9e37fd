"""``attnviz walkthrough``: what it prints and writes, which options go together, and what is refused."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from rich.cells import cell_len

from attnviz.capture.attend import attend
from attnviz.heatmaps.finding import find

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.fixtures.command_line import Result

    Refused = Callable[..., tuple[int, str]]
    Typed = Callable[..., Result]

SEE = "(see attnviz walkthrough --help)"
BY_HAND = "a calculation by hand needs no model: it takes no sentence and no option of a model"
BLANK = "JSON holds every number: an exercise with blank cells cannot be written so"
WHOLE = "a whole layer is followed as the model computed it: no other score can be chosen"
ENDINGS = "the ending must be one of png, svg, pdf, html, json, md, csv"
CAUSAL = "there is no option --causal: attnviz demo mask shows a causal mask beside none"
NUMBERS = '{"query": [[1, 0]], "keys": [[1, 2], [3, 4]], "values": [[5], [6]]}'


def test_toy_alone(typed: Typed, here: Path) -> None:
    """Without a sentence it is "I love all you": the calculation on one screen, and a picture in outputs/."""
    result = typed("walkthrough", "--toy")
    assert result.status == 0
    link = find(attend("I love all you", "toy"))
    assert link is not None
    place = f"layer-{link.layer}-head-{link.head}-query-{link.query}"
    name = f"outputs/walkthrough-i-love-all-you-toy-{place}.png"
    assert result.errors == f"wrote {name}\n"
    assert (here / name).read_bytes().startswith(b"\x89PNG")
    lines = result.output.splitlines()
    assert lines[:2] == [
        f"“{link.words[0]}” attends most to “{link.words[1]}” ({link.weight:.2f})",
        f"toy, head {link.layer}.{link.head}: the query “{link.words[0]}” · “I love all you”",
    ]
    assert max(map(cell_len, lines)) <= 80
    assert len(lines) <= 24
    assert lines[-2:] == [
        "More: --full (every step), --query WORD, --head 2.3, -o FILE.html, --interactive",
        f'Does it matter? attnviz attribute "..." --for {link.words[0]}',
    ]


def test_a_word_chooses_its_head(typed: Typed) -> None:
    """A query alone is followed through the head of its clearest link, as `heatmap` names it."""
    text = "The animal didn't cross the street because it was too tired."
    told = typed("walkthrough", "--toy", text, "--query", "it").output.splitlines()
    assert told[0] == "“it” attends most to “animal” (0.81)"
    assert told[1].startswith("toy, head 2.4: the query “it”")
    told = typed("walkthrough", "--toy", text, "--query", "it", "--head", "0.0").output.splitlines()
    assert told[1].startswith("toy, head 0.0: the query “it”")


def test_exercise(typed: Typed, here: Path) -> None:
    """Blank cells with --exercise, the same numbers with --solution; another seed, another exercise."""
    exercise = ("walkthrough", "--exercise", "0")
    blank = typed(*exercise, "-o", "a.csv").output
    solved = typed(*exercise, "--solution", "-o", "a.csv").output
    assert "____" in blank
    assert "____" not in solved
    assert typed(*exercise, "-o", "a.csv").output == blank
    assert typed("walkthrough", "--exercise", "1", "-o", "a.csv").output != blank
    (here / "mine.json").write_text(NUMBERS)
    for one in (("--example", "seq2seq"), ("--input", "mine.json"), ("--toy",)):
        of_its_own = typed("walkthrough", *one, "--exercise", "0", "-o", "a.csv").output
        assert "____" in of_its_own


REFUSED = [
    ("--query us", "there is no query 'us': there are 0 I, 1 love, 2 all, 3 you"),
    ("--head 2.0", "there is no layer 2: this model has layers 0 to 1 (counted from 0)"),
    ("--head 0.4", "there is no head 4: this model has heads 0 to 3 (counted from 0)"),
    ("--kind cross", "toy-random (seed 0) has no cross attention to show: it has encoder"),
    ("--target 나는", "toy-random (seed 0) generates nothing, so it takes no target"),
    ("''", "the text is empty"),
    ("a\ud800", r"the text is not valid Unicode: character 2 is a lone surrogate (\ud800)"),
    ("--whole-layer 0 --score dot", WHOLE),
    ("-o /dev/null/x.png", None),
]
MISUSED = [
    ("--toy -m toy-ko", "give --toy or another model, not both"),
    ("--query I --all-queries", "give one query or all, not both"),
    (
        "I --head 0.1 --head 1.2",
        "Invalid value for '--head': one head is shown here, not 0.1 and 1.2",
    ),
    ("--whole-layer 1 --head 1.0", "give one head or the whole layer, not both"),
    ("--example seq2seq --input x.json", "give one of example, numbers and exercise"),
    ("--example seq2seq I", BY_HAND),
    ("--input x.json --head 0.0", BY_HAND),
    ("--toy --interactive -o -", "give --interactive or -o -, not both"),
    ("--toy --interactive", "--interactive needs a terminal; without one, leave it out"),
    ("--exercise 1 -o a.json", BLANK),
    ("--solution", "--solution fills in the blank cells of an --exercise"),
    ("--toy -o walk.doc", f"Invalid value for '--output' / '-o': walk.doc: {ENDINGS}"),
    ("--toy --precision 99", None),
    ("--toy --causal", CAUSAL),
    ("--toy --score cosine", None),
]


@pytest.mark.parametrize(("typed_so", "line"), REFUSED)
def test_refused(refused: Refused, typed_so: str, line: str | None) -> None:
    """Words, heads and options that do not exist are refused in one line."""
    status, said = refused("walkthrough", "-m", "toy-random", *shlex.split(typed_so))
    assert status == 1
    assert line is None or said == f"attnviz: {line}"


@pytest.mark.parametrize(("typed_so", "line"), MISUSED)
def test_misused(refused: Refused, typed_so: str, line: str | None) -> None:
    """Options that do not go together, in one line that says where help is."""
    status, said = refused("walkthrough", *shlex.split(typed_so))
    assert status == 2
    assert said.endswith(SEE)
    assert line is None or said == f"attnviz walkthrough: {line} {SEE}"


def test_a_text_that_is_too_long(typed: Typed, refused: Refused, here: Path) -> None:
    """It is cut to what the model reads, which the first line says; with a target it is refused."""
    words = ("walkthrough", "love you " * 70, "-o", "a.md", "-o", "a.html", "-m")
    cut = "Input truncated: 128 of 140 words"
    assert typed(*words, "toy-decoder").output.startswith(f"{cut}\n“love” attends most to ")
    assert (here / "a.md").read_text(encoding="utf-8").startswith(f"{cut}\n\n# “love”")
    page = (here / "a.html").read_text(encoding="utf-8")
    assert page.index(f'<p class="cut">{cut}</p>') < page.index('<p class="source">')
    status, said = refused(*words, "toy-seq2seq", "--target", "나는")
    assert status == 1
    assert "the text has 140 words, but toy-seq2seq reads at most 128" in said


@pytest.mark.parametrize(
    "chosen", [("--example", "seq2seq"), ("--input", "mine.json"), ("--exercise", "0")]
)
def test_no_model_library(
    typed: Typed, monkeypatch: pytest.MonkeyPatch, here: Path, chosen: tuple[str, ...]
) -> None:
    """A calculation by hand needs none: where torch cannot be imported, it is the same."""
    (here / "mine.json").write_text(NUMBERS)
    with_it = typed("walkthrough", *chosen, "-o", "a.md")
    assert with_it.status == 0
    (here / "a.md").unlink()
    for name in ("torch", "transformers"):
        monkeypatch.setitem(sys.modules, name, None)
    assert typed("walkthrough", *chosen, "-o", "a.md") == with_it
