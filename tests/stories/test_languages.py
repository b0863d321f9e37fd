"""Every story in two languages: all of it in both, with the same numbers, and a finding as its title."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pytest

from attnviz.errors import SelectionError
from attnviz.stories import DEMOS, tell
from attnviz.stories.record import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from attnviz.stories.record import Story

HANGUL = re.compile("[가-힣]")


def texts(part: object) -> Iterator[str]:
    """Yield all texts of a story, in their order."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict | list | tuple):
        for value in part.values() if isinstance(part, dict) else part:
            yield from texts(value)


def numbers(text: str) -> list[str]:
    """Return the numbers with decimals; whole ones may be words in the other language."""
    return sorted(re.findall(r"\d+\.\d+(?:e-\d+)?", text))


@pytest.mark.parametrize("name", DEMOS)
def test_both_languages(told: Callable[[str], Story], name: str) -> None:
    """Each sentence, title and axis has its Korean, with the same numbers."""
    story = told(name)
    other = story.translated("ko")
    assert (story.language, other.language) == ("en", "ko")
    in_korean = replace(other, original=None)
    for english, korean in zip(texts(asdict(story)), texts(asdict(in_korean)), strict=True):
        assert numbers(english) == numbers(korean), (english, korean)
        assert "  " not in english + korean
    paragraphs = [part for part in other.parts if isinstance(part, str)]
    for text in (other.title, other.receipt, *paragraphs, *(view.text for view in other.views)):
        assert HANGUL.search(text), text


@pytest.mark.parametrize("name", DEMOS)
def test_titles(told: Callable[[str], Story], name: str) -> None:
    """A title has a number of the story in it, in both languages, and is short."""
    for story in (told(name), told(name).translated("ko")):
        found = re.findall(r"\d+\.?\d*", story.title)
        content = to_json(replace(story, title=""))
        assert any(number.rstrip("0") in content for number in found), story.title
        assert len(story.title) <= 120


def test_the_command_in_korean(
    told: Callable[[str], Story],
    typed: Callable[..., Any],
    here: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list, the story, its picture and its numbers; an unknown language is refused."""
    listed = typed("demo", "--lang", "ko").output
    assert "스코어를 왜 sqrt(d_k)로 나누는가" in listed
    assert listed.endswith("하나를 보려면: attnviz demo 이름\n")
    result = typed("demo", "library", "--lang", "ko")
    assert (result.status, result.errors) == (0, "wrote outputs/demo-library.png\n")
    story = told("library").translated("ko")
    assert result.output.splitlines()[0] == story.title
    assert result.output.rstrip().endswith(story.receipt.split()[-1])
    assert (here / "outputs" / "demo-library.png").exists()
    printed = typed("demo", "library", "--lang", "ko", "-o", "-").output
    assert json.loads(printed)["title"] == story.title
    monkeypatch.setenv("ATTNVIZ_LANG", "ko")
    assert typed("demo", "library", "-o", "a.json").output == result.output
    assert tell("library", "ko").title == story.title
    with pytest.raises(SelectionError, match="there is no language 'jp'"):
        tell("library", "jp")
