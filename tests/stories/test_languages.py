"""Every story in two languages: all of it is said in both, with the same numbers, and its title has a finding."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pytest

from attnviz.errors import SelectionError
from attnviz.stories import DEMOS, tell
from attnviz.stories.record import Story, to_json
from attnviz.text.messages import Phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

HANGUL = re.compile("[가-힣]")


def texts(part: object) -> Iterator[str]:
    """All texts of a story, in their order."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for value in part.values():
            yield from texts(value)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from texts(value)


def numbers(text: str) -> list[str]:
    """The numbers in a text with digits after the point or with a percent sign: words of Korean may count otherwise."""
    return sorted(re.findall(r"\d+\.\d+(?:e-\d+)?", text))


@pytest.mark.parametrize("name", DEMOS)
def test_all_is_said_in_both_languages(told: Callable[[str], Story], name: str) -> None:
    """Each sentence, title, column and axis has its Korean, with the same numbers; nothing else differs."""
    story = told(name)
    other = story.translated("ko")
    assert (story.language, other.language) == ("en", "ko")
    pairs = list(
        zip(texts(asdict(story)), texts(asdict(replace(other, original=None))), strict=True)
    )
    for said, in_korean in pairs:
        assert numbers(said) == numbers(in_korean), (said, in_korean)
    sentences = [
        (said, ko) for said, ko in pairs if len(said.split()) > 6 and not HANGUL.search(said[:8])
    ]
    assert len(sentences) >= 6
    for said, in_korean in sentences:
        assert said == in_korean or HANGUL.search(in_korean), in_korean
        assert "  " not in said + in_korean
        assert "{" not in said + in_korean
    for part in (
        other.title,
        other.receipt,
        *(part for part in other.parts if isinstance(part, str)),
    ):
        assert HANGUL.search(part), part
    for panel in other.picture:
        assert HANGUL.search(panel.title), panel.title


@pytest.mark.parametrize("name", DEMOS)
def test_titles_say_what_was_found(told: Callable[[str], Story], name: str) -> None:
    """A title has a number of the story in it, in both languages, and is not the topic by which it is listed."""
    story = told(name)
    for one in (story, story.translated("ko")):
        found = numbers(one.title) or re.findall(r"\d+", one.title)
        assert found, one.title
        said = " ".join(texts(json.loads(to_json(one))["parts"])) + to_json(one)
        assert all(number.rstrip("0") in said for number in found), (one.title, found)
        assert len(one.title) <= 120
    assert story.title != DEMOS[name]


def test_a_copied_story_keeps_its_korean() -> None:
    """Dataclasses copy their strings."""
    title = Phrase("a title", "제목")
    copied: Any = asdict(Story(name="n", title=title, parts=(), picture=(), receipt="r"))["title"]
    assert copied.ko == "제목"


def test_the_command_in_korean(
    told: Callable[[str], Story],
    typed: Callable[..., Any],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list, the story, its picture and its numbers; a language that is not there is refused."""
    listed = typed("demo", "--lang", "ko").output
    assert "도서관에 빗댄 쿼리, 키, 밸류" in listed
    assert listed.endswith("하나를 보려면: attnviz demo 이름\n")
    result = typed("demo", "library", "--lang", "ko")
    assert (result.status, result.errors) == (0, "wrote outputs/demo-library.png\n")
    story = told("library").translated("ko")
    assert result.output.splitlines()[0] == story.title
    assert result.output.rstrip().endswith(story.receipt.split()[-1])
    assert (here / "outputs" / "demo-library.png").exists()
    assert (
        json.loads(typed("demo", "library", "--lang", "ko", "-o", "-").output)["title"]
        == story.title
    )
    monkeypatch.setenv("ATTNVIZ_LANG", "ko")
    assert typed("demo", "library", "-o", "a.json").output == result.output
    assert tell("library", "ko").title == story.title
    with pytest.raises(SelectionError, match="there is no language 'jp'"):
        tell("library", "jp")
