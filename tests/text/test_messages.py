"""Messages: each has its Korean, none is stale, and what is shipped is what stands in the catalogue."""

from __future__ import annotations

import subprocess
import sys
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

import attnviz
from attnviz.attention import Note
from attnviz.errors import SelectionError
from attnviz.text.messages import LOCALE, N_, _, current_language, language, ngettext
from attnviz.text.notes import sentence

PO = LOCALE / "ko" / "LC_MESSAGES" / "attnviz.po"
PACKAGE = Path(attnviz.__file__).parent


@pytest.fixture(scope="module")
def catalogue() -> Catalog:
    """The Korean messages."""
    with PO.open("rb") as file:
        return read_po(file, locale="ko", abort_invalid=True)


def places(text: str) -> set[str]:
    """The names of the places in a text."""
    return {name for _before, name, _spec, _conversion in Formatter().parse(text) if name}


def test_every_message_is_in_the_catalogue_and_no_other(catalogue: Catalog) -> None:
    """`pybabel extract` and `pybabel update` would change nothing."""
    extracted = {
        (context, message)
        for _file, _line, message, _comments, context in extract_from_dir(
            PACKAGE,
            [
                ("**.py", "python"),
                ("**.js", "javascript"),
                ("**/templates/**.html", "jinja2"),
            ],
            keywords=DEFAULT_KEYWORDS | {"NC_": ((1, "c"), 2)},
        )
    }
    assert extracted == {(message.context, message.id) for message in catalogue if message.id}
    assert not catalogue.obsolete


def test_every_message_has_its_korean(catalogue: Catalog) -> None:
    """Each is translated, none is marked as a guess, and both have the same places."""
    for message in catalogue:
        if message.id:
            forms = message.string if isinstance(message.string, tuple) else (message.string,)
            assert all(forms), message.id
            assert not message.fuzzy, message.id
            assert places(str(message.id)) == places(str(message.string)), message.id


def test_what_is_shipped_is_compiled_from_the_catalogue(catalogue: Catalog) -> None:
    """`pybabel compile` was run after the last change."""
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    with PO.with_suffix(".mo").open("rb") as shipped:
        found, expected = (vars(GNUTranslations(file))["_catalog"] for file in (shipped, compiled))
    # the header names the version of Babel
    assert {**found, "": ""} == {**expected, "": ""}


def test_a_text_is_looked_up_where_it_is_shown() -> None:
    """In the language of the block, and what stands in its placeholders too."""
    message = N_("layer {layer}, head {head}")
    inside = N_("{control} ({offset:+d})").format(control=N_("the best fixed offset"), offset=-1)
    assert _(message).format(layer=2, head=3) == "layer 2, head 3"
    with language("ko"):
        assert _(message).format(layer=2, head=3) == "2번 층 3번 헤드"
        assert _(inside) == "가장 잘 맞는 고정 위치 (-1)"
        assert (current_language(), _("no such message")) == ("ko", "no such message")
        with language(None):
            assert current_language() == "ko"
    assert (current_language(), _(inside)) == ("en", "the best fixed offset (-1)")


def test_one_and_many() -> None:
    """English has a singular, Korean one form for all."""

    def counted() -> list[str]:
        return [ngettext("{n:,} head", "{n:,} heads", n).format(n=n) for n in (1, 2, 1000)]

    assert counted() == ["1 head", "2 heads", "1,000 heads"]
    with language("ko"):
        assert counted() == ["헤드 1개", "헤드 2개", "헤드 1,000개"]


def test_a_text_that_was_not_looked_up_is_not_shown() -> None:
    """It is an error, not the English in a Korean sentence."""
    for show in (str, "{}".format):
        with pytest.raises(TypeError, match="look up 'heads' with _"):
            show(N_("heads"))


def test_no_module_looks_a_text_up_while_it_is_imported() -> None:
    """A module is imported once, before anybody chose a language."""
    code = """
import pkgutil, importlib, attnviz
from attnviz.text import messages

def refuse(code):
    raise AssertionError("a text is looked up while a module is imported: mark it with N_")

messages._catalogue = refuse
for module in pkgutil.walk_packages(attnviz.__path__, "attnviz."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fields_of_a_note() -> None:
    """Numbers have their thousands set apart, and no terminal obeys a text."""
    note = Note.of("input_truncated_tokens", kept=512, total=20000)
    assert sentence(note) == "Input truncated: 512 of 20,000 tokens"
    with language("ko"):
        assert sentence(note) == "입력을 잘랐습니다: 토큰 20,000개 중 512개"
    assert sentence(Note.of("text", text="a\x1b[2J")) == r"a\x1b[2J"


def test_a_note_with_a_code_of_a_later_version() -> None:
    """A note that nobody knows is told as it is."""
    assert sentence(Note.of("new_thing", n=3, what="x\n")) == r"new_thing, n: 3, what: x\n"


@pytest.mark.parametrize("code", ["fr", "", "EN", 3])
def test_a_language_that_is_not_there(code: str) -> None:
    """It is refused in one line."""
    with pytest.raises(SelectionError, match="there is no language"), language(code):
        pass
