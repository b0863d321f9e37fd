"""The formats of files: each is one entry, which says truly what makes the file and what can be said of it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.errors import SelectionError, SettingsError
from attnviz.storage import formats
from attnviz.storage.formats import (
    CHANGES,
    COMPARISON,
    RECORD,
    STORY,
    WALKTHROUGH,
    Format,
    Formats,
    imported,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fixtures.command_line import Result

TABLES = {
    "record": RECORD,
    "walkthrough": WALKTHROUGH,
    "comparison": COMPARISON,
    "changes": CHANGES,
    "story": STORY,
}
ENTRIES = [
    pytest.param(one, id=f"{name}{ending}")
    for name, table in TABLES.items()
    for ending, one in table.items()
]


def test_every_table_is_tested() -> None:
    """Those of the module, and no other."""
    assert [one for one in vars(formats).values() if isinstance(one, Formats)] == [*TABLES.values()]


@pytest.mark.parametrize("one", ENTRIES)
def test_what_makes_it_takes_the_result_and_the_look(one: Format) -> None:
    """The function is there, and takes what the entry says that it takes; what reads is there, too."""
    make = inspect.signature(imported(one.make))
    make.bind(object(), **dict.fromkeys(one.names))
    if one.read:
        inspect.signature(imported(one.read)).bind(Path())


@pytest.mark.parametrize("one", ENTRIES)
def test_whatever_it_takes_is_in_the_entry(one: Format) -> None:
    """A name that stands in the function's own signature can be said."""
    _, *rest = inspect.signature(imported(one.make)).parameters.values()
    assert {name.name for name in rest if name.kind is not name.VAR_KEYWORD} <= {*one.names}


def test_a_format_is_one_entry(
    typed: Callable[..., Result], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One from outside is offered by the command, written by it, and saved from Python, as it says itself."""

    def words(walk: attnviz.Walkthrough, *, lang: str = "en") -> str:
        return f"{lang}: {walk.text}"

    monkeypatch.setitem(WALKTHROUGH, ".txt", Format(words, ("lang",)))
    assert typed("walkthrough", "--toy", "I love", "--lang", "ko", "-o", "walk.TXT").status == 0
    assert (here / "walk.TXT").read_text(encoding="utf-8") == "ko: I love\n"
    walk = attnviz.walkthrough("I love", model="toy")
    assert walk.save(here / "walk.txt").read_text(encoding="utf-8") == "en: I love\n"
    with pytest.raises(
        SettingsError, match=r"^a walkthrough as \.txt has no setting 'cmap': there are lang$"
    ):
        walk.save(here / "walk.txt", cmap="gray")


@pytest.mark.parametrize("name", TABLES)
def test_another_language_is_refused(name: str) -> None:
    """Before anything is drawn, of whatever result."""
    with pytest.raises(SelectionError, match="there is no language 'xx'"):
        TABLES[name].make(".png", object(), lang="xx")


def test_a_record_of_a_new_format_is_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its entry says how."""

    def write(record: attnviz.Attention) -> bytes:
        return record.save(here / "other.npz").read_bytes()

    def read(path: Path) -> attnviz.Attention:
        return imported(RECORD[".npz"].read)(path)  # type: ignore[no-any-return]

    monkeypatch.setitem(RECORD, ".bin", Format(write, read=read))
    record = attnviz.attend("I love", model="toy")
    assert attnviz.load(record.save(here / "record.bin")) == record
