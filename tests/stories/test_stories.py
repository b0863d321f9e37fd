"""Every story in two languages, with the same numbers, and as a page in a real browser, with the views that it sets."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.render.theme import DARK, LIGHT
from attnviz.stories import DEMOS
from attnviz.stories.record import Matrix, Table, cell_text, to_json, typeset
from attnviz.text.display import hold_units
from tests.fixtures.browser import barriers, state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    from attnviz.stories.record import Story

SLOW = {"pairs", "bottleneck", "gradients", "forcing", "reference"}
"""Demos that compute for seconds, so that they are told once, in English."""
MINUS, NOTHING = "\u2212", "\u2013"


def _flat(text: str) -> str:
    return " ".join(typeset(text).replace("`", "").split())


def printed(text: str) -> str:
    """Return a text as a page shows it."""
    return hold_units(typeset(text))


def _holds(shown: Page, story: Story) -> None:
    """All sentences, all cells of the tables, and the numbers of the panels that have few enough to be read."""
    text = _flat(shown.evaluate("document.body.textContent"))
    for part in (story.title, story.receipt, *story.parts):
        if not isinstance(part, Table):
            assert _flat(part) in text
            continue
        table = shown.locator(f".lesson > .wide-table[aria-label={_quoted(part.title)}]")
        assert table.locator("thead th").all_inner_texts() == [
            printed(name) for name in part.columns
        ]
        cells = [_flat(cell_text(cell, part.digits)) for row in part.rows for cell in row]
        assert [_flat(cell) for cell in table.locator("tbody > tr > *").all_inner_texts()] == cells
    for panel in story.picture:
        figure = shown.locator(
            "figure", has=shown.locator(f"svg[aria-label={_quoted(panel.title)}]")
        ).first
        if isinstance(panel, Matrix):
            numbers = panel.values.ravel() if max(panel.values.shape) <= 40 else np.array([])
        else:
            numbers = np.array([one.values for one in panel.series]).T.ravel()
        texts = [
            cell.replace(MINUS, "-") for cell in figure.locator("details td").all_text_contents()
        ]
        seen = [float("nan") if text == NOTHING else float(text.split(" (")[0]) for text in texts]
        np.testing.assert_allclose(seen, numbers, rtol=1e-3, atol=1e-12, equal_nan=True)


def _quoted(text: str) -> str:
    return '"' + printed(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


HANGUL = re.compile("[가-힣]")


def _texts(part: object) -> Iterator[str]:
    """Yield all texts of a story, in their order."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict | list | tuple):
        for value in part.values() if isinstance(part, dict) else part:
            yield from _texts(value)


def _decimals(text: str) -> list[str]:
    """Return the numbers with decimals; whole ones may be words in the other language."""
    return sorted(re.findall(r"\d+\.\d+(?:e-\d+)?", text))


@pytest.mark.parametrize("name", sorted(DEMOS.keys() - SLOW))
def test_both_languages(told: Callable[..., Story], name: str) -> None:
    """Each sentence, title and axis has its Korean, with the same numbers."""
    story = told(name)
    other = told(name, "ko")
    assert (story.language, other.language) == ("en", "ko")
    for text, other_text in zip(_texts(asdict(story)), _texts(asdict(other)), strict=True):
        assert _decimals(text) == _decimals(other_text), (text, other_text)
        assert "  " not in text + other_text
    paragraphs = [part for part in other.parts if isinstance(part, str)]
    for text in (other.title, other.receipt, *paragraphs, *(view.text for view in other.views)):
        assert HANGUL.search(text), text
    for told_so in (story, other):
        found = re.findall(r"\d+\.?\d*", told_so.title)
        content = to_json(replace(told_so, title=""))
        assert any(number.rstrip("0") in content for number in found), told_so.title
        assert len(told_so.title) <= 120


@pytest.mark.parametrize(
    ("name", "scheme"), [("library", "dark"), ("mask", "light"), ("positions", "dark")]
)
def test_the_page_of_a_story(
    name: str, scheme: str, told: Callable[..., Story], show_page: Callable[..., Page]
) -> None:
    """It holds the whole story, fits 360 pixels, and has no barriers; some are told in Korean."""
    story = told(name, "ko" if scheme == "dark" else "en")
    shown = show_page(
        story.page().html, viewport={"width": 360, "height": 740}, color_scheme=scheme
    )
    assert shown.inner_text("h1") == printed(story.title)  # no line ends before a unit
    _holds(shown, story)
    assert shown.evaluate("document.documentElement.scrollWidth") == 360
    assert barriers(shown) == []
    assert shown.locator("figure > svg text").count() > 3  # which can be selected


def test_charts_need_no_script(told: Callable[..., Story]) -> None:
    """They are in the page as SVG, with the colours of the page; ids are unique, and no style needs to be allowed."""
    story = told("library")
    page = story.page().html
    assert page == story.page().html
    markup = page[page.index("<main") : page.index("</main>")]
    assert markup.count("<svg") == len(story.picture)
    assert all(typeset(panel.title) in markup for panel in story.picture)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="|url\()#([\w-]+)', markup)) <= set(ids)
    assert " style=" not in markup
    light, dark = page.split("figure {\n")[1:]
    for theme, rules in ((LIGHT, light), (DARK, dark)):
        names = {name: getattr(theme, name) for name in ("frame", "grid", "shade", "hatch")}
        names |= {f"series-{number}": colour for number, colour in enumerate(theme.series)}
        assert all(f"--{name}: {colour};" in rules for name, colour in names.items())
    assert set(re.findall(r"var\(--([\w-]+)\)", markup)) <= {"ink", "faint", "paper", *names}
    evil = replace(story, title="1 < 2 <script>", receipt="<b>", parts=("<i>&</i> `<u>`",))
    page = evil.page().html
    assert "<script>" not in page[: page.index("</main>")]
    assert "<p>&lt;i&gt;&amp;&lt;/i&gt; <code>&lt;u&gt;</code></p>" in page


@pytest.mark.parametrize("name", ["alignment", "mask"])
def test_sentences_set_the_views_of_records(
    name: str, told: Callable[..., Story], show_page: Callable[..., Page]
) -> None:
    """Each sentence opens the record, the head and the word that it speaks of; the address brings them back."""
    story = told(name)
    page = story.page().html
    shown = show_page(page)
    assert {view.record for view in story.views} == set(range(len(story.records)))
    for button, view in zip(shown.locator(".tour ol button").all(), story.views, strict=True):
        button.click()
        assert button.inner_text() == printed(view.text)
        assert button.get_attribute("aria-current") == "step"
        record = story.records[view.record]
        assert shown.inner_text("header .model").startswith(record.model)
        if view.head is None:
            assert shown.locator("#page .pattern").is_hidden()
            assert shown.locator(".thumb:not(.mean)").count() == len(record.layers) * len(
                record.heads
            )
            continue
        assert view.query is not None
        assert shown.inner_text(".pattern h2") == "head {}.{}".format(*view.head)
        row = record.pattern(*view.head)[view.query]
        first = shown.locator("table.row tbody tr").first.inner_text().split()
        assert first[0] == record.key_tokens[int(row.argmax())].text
        assert float(first[1].strip("≈%")) == pytest.approx(100 * row.max(), rel=0.05)
        assert f"“{record.query_tokens[view.query].text}”" in view.text
        if view.record:
            fragment = shown.evaluate("location.hash.slice(1)")
            again = show_page(page, fragment)
            assert state(again) == state(shown)
            assert again.inner_text("header .model").startswith(record.model)
