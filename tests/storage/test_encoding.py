"""The typed encoder: what is read is of the type that the field says, or one line names the field."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from attnviz.errors import FileFormatError
from attnviz.storage.encoding import decode


@dataclass(frozen=True)
class Part:
    """A value inside another."""

    share: float
    at: tuple[int, int] | None = None


@dataclass(frozen=True)
class Whole:
    """A value of every type that files hold."""

    name: str
    parts: tuple[Part, ...]
    by_name: Mapping[str, Part]
    by_number: Mapping[int, str]
    mark: str | int | None = None
    way: Literal["left", "right"] | None = None
    is_done: bool = False


GOOD: dict[str, Any] = {
    "name": "a",
    "parts": [{"share": 1, "at": [1, 2]}],
    "by_name": {"b": {"share": 0.5}},
    "by_number": {3: "c"},
}


def test_a_value_is_read() -> None:
    """Lists become tuples, whole numbers become numbers where these are due, what is missing has its default."""
    part = Part(share=1.0, at=(1, 2))
    assert decode(GOOD, Whole, "it") == Whole(
        name="a", parts=(part,), by_name={"b": Part(0.5)}, by_number={3: "c"}
    )
    assert type(decode(1, float, "it")) is float


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": 3}, "it.name must be text, not 3"),
        ({"name": None}, "it.name must be text, not null"),
        ({"name": "\ud800"}, 'it.name holds half a character: "\\ud800"'),
        ({"is_done": 1}, "it.is_done must be true or false, not 1"),
        ({"parts": {}}, "it.parts must be a list, not an object"),
        ({"parts": "abc"}, 'it.parts must be a list, not "abc"'),
        ({"parts": [3]}, "it.parts[0] must be an object, not 3"),
        ({"parts": [{}]}, "it lacks it.parts[0].share"),
        ({"parts": [{"share": True}]}, "it.parts[0].share must be a number, not true"),
        ({"parts": [{"share": float("inf")}]}, "it.parts[0].share must be a number, not Infinity"),
        ({"parts": [{"share": 10**400}]}, "it.parts[0].share: number out of range"),
        (
            {"parts": [{"share": 1, "at": [1]}]},
            "it.parts[0].at: expected a list of length 2, got 1",
        ),
        (
            {"parts": [{"share": 1, "at": [1, 2.5]}]},
            "it.parts[0].at[1] must be a whole number, not 2.5",
        ),
        ({"by_name": {"b": {"share": "1"}}}, "it.by_name[...].share: expected a number, got text"),
        ({"by_number": {"3": "c"}}, "expected a whole number, got text - at key in $.by_number"),
        ({"mark": [1]}, "it.mark must be a whole number or text, not a list"),
        ({"by_name": {"b": None}}, "it.by_name[...]: expected an object, got null"),
        ({"way": "up"}, "it.way: invalid enum value 'up'"),
    ],
)
def test_another_type_is_refused(changes: dict[str, Any], message: str) -> None:
    """In one line, with the way to the field and what it holds."""
    with pytest.raises(FileFormatError, match=re.escape(message)):
        decode({**GOOD, **changes}, Whole, "it")
