"""Messages: each has its Korean, none is stale, and what is shipped is what stands in the catalogue."""

from __future__ import annotations

import copy
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po

import attnviz
from attnviz.errors import SelectionError
from attnviz.text.messages import (
    LOCALE,
    Phrase,
    _,
    both,
    expect_language,
    in_language,
    join_phrases,
    korean,
    ngettext,
)

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
            PACKAGE, [("**.py", "python"), ("**.js", "javascript")]
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


def test_a_phrase() -> None:
    """It is its English, carries its Korean, and fills the places of both."""
    phrase = _("layer {layer}, head {head}").format(layer=2, head=3)
    assert both(phrase) == ("layer 2, head 3", "2번 층 3번 헤드")
    assert copy.deepcopy(phrase).ko == "2번 층 3번 헤드"
    assert korean((phrase, ["a", phrase], 3, None)) == (
        "2번 층 3번 헤드",
        ["a", "2번 층 3번 헤드"],
        3,
        None,
    )
    assert [in_language(phrase, language) for language in ("en", "ko")] == list(both(phrase))
    assert in_language("as it is", "ko") == "as it is"


def test_one_and_many() -> None:
    """English has a singular, Korean one form for all."""
    counted = [ngettext("{n:,} head", "{n:,} heads", n).format(n=n) for n in (1, 2, 1000)]
    assert [*map(str, counted)] == ["1 head", "2 heads", "1,000 heads"]
    assert [one.ko for one in counted] == ["헤드 1개", "헤드 2개", "헤드 1,000개"]


def test_phrases_in_phrases() -> None:
    """A value that is a phrase is shown in each language; an empty one leaves no gap."""
    pair = join_phrases([Phrase("one", "하나"), Phrase("two", "둘")], ", ")
    assert both(pair) == ("one, two", "하나, 둘")
    text = Phrase("{first} {pair}. {more}", "{first} {pair}. {more}")
    assert both(text.format(first="", pair=pair, more="")) == ("one, two.", "하나, 둘.")


def test_a_message_that_is_not_translated_is_english() -> None:
    """As a message of a later version."""
    message = "no such message"
    assert both(_(message)) == (message, message)


@pytest.mark.parametrize("language", ["fr", "", None, "EN"])
def test_a_language_that_is_not_there(language: str) -> None:
    """It is refused in one line."""
    with pytest.raises(SelectionError, match="there is no language"):
        expect_language(language)
