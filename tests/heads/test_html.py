"""The page of a comparison in a real browser: its numbers are the comparison's, it sorts, it keeps its state."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.capture.source import open_source
from attnviz.errors import OutputError
from attnviz.heads.changes import wording
from attnviz.heads.changes.compare import changes as compared
from attnviz.heads.html import page, page_of_changes
from attnviz.heads.record import Example, HeadComparison
from attnviz.heads.settings import SurveySettings
from attnviz.models.language.splits import corpus_lines
from tests.fixtures.browser import barriers, downloaded, state
from tests.heads.surveys import survey_pair

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from attnviz.heads.changes.record import Changes

pytestmark = pytest.mark.usefixtures("whole_corpora", "few_seeds")

SENTENCES = [
    "the animal didn't cross the street because it was too tired",
    "a king loves the old queen",
    "I love you",
] * 6


@pytest.fixture(scope="module")
def comparison() -> HeadComparison:
    """Three layers of six heads, some of which have roles."""
    found = attnviz.compare_heads(SENTENCES, model="toy")
    assert isinstance(found, HeadComparison)
    return found


def test_numbers_are_the_comparisons(
    show_page: Callable[..., Page], comparison: HeadComparison
) -> None:
    """The saved table has each measure of each head, and the clearest role; a head's page has its intervals."""
    shown = show_page(page(comparison).html)
    rows = [
        *csv.DictReader(io.StringIO(downloaded(shown, "Save CSV").decode("utf-8-sig"), newline=""))
    ]
    assert [row["head"] for row in rows] == [head.name for head in comparison.heads]
    for row, head in zip(rows, comparison.heads, strict=True):
        assert row["role"] == (head.roles[0].name if head.roles else "")
        assert float(row["prev"]) == pytest.approx(
            comparison.estimate("previous", head.layer, head.head)[0], rel=1e-5
        )
    head = next(one for one in comparison.heads if one.roles)
    shown.get_by_role("button", name=f"{head.name}: ").first.click()
    assert state(shown) == {"head": head.name}
    value, low, high = comparison.estimate("previous", head.layer, head.head)
    line = (
        shown.locator(".measures tr")
        .filter(has_text="weight on the token before")
        .first.inner_text()
    )
    assert line.split("\t")[1:] == [f"{value:.2f}", f"{low:.2f}–{high:.2f}"]
    assert head.roles[0].rule.words in shown.inner_text(".detail")


def test_it_sorts_and_chooses(show_page: Callable[..., Page], comparison: HeadComparison) -> None:
    """A title sorts, the largest first, then turns round; a role leaves heads that have it; the address keeps it."""
    shown = show_page(page(comparison).html)
    shown.get_by_role("button", name="prev", exact=True).click()
    names = shown.locator(".all-heads tbody th").all_inner_texts()
    values = {
        one.name: comparison.estimate("previous", one.layer, one.head)[0]
        for one in comparison.heads
    }
    assert names == sorted(values, key=lambda name: -values[name])
    assert shown.get_attribute(".all-heads th[aria-sort]", "aria-sort") == "descending"
    shown.locator(".all-heads th[aria-sort] button").click()
    assert shown.locator(".all-heads tbody th").all_inner_texts() == sorted(
        values, key=lambda name: values[name]
    )
    role = next(one.roles[0] for one in comparison.heads if one.roles)
    shown.locator("select").select_option(role.name)
    having = [
        one.name for one in comparison.heads if role.name in {other.name for other in one.roles}
    ]
    assert sorted(shown.locator(".all-heads tbody th").all_inner_texts()) == sorted(having)
    again = show_page(
        page(comparison).html, "&".join(f"{name}={value}" for name, value in state(shown).items())
    )
    assert again.inner_text(".all-heads") == shown.inner_text(".all-heads")


def test_keys_language_and_hostile_addresses(
    show_page: Callable[..., Page], comparison: HeadComparison
) -> None:
    """Arrows move among heads; the button turns the language; what is not there is as usual."""
    shown = show_page(page(comparison).html, "head=9.9&role=%3Cimg%3E&sort=constructor&lang=xx")
    assert not shown.locator(".detail").is_visible()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        shown.keyboard.press(key)
    assert state(shown)["head"] == "1.1"
    shown.get_by_role("button", name="한국어").click()
    assert shown.inner_text("h1") == "각 헤드가 하는 일"
    assert shown.get_attribute("html", "lang") == "ko"


def test_the_page_on_paper(show_page: Callable[..., Page], comparison: HeadComparison) -> None:
    """The table of all heads is as wide as the paper at most, with its colours; on the screen it scrolls."""
    shown = show_page(
        page(comparison).html, viewport={"width": 718, "height": 1000}
    )  # A4 with its usual margins
    over = "one => one.scrollWidth - one.clientWidth"
    assert shown.locator(".wide").evaluate(over) > 100
    assert (
        shown.locator(".wide").evaluate("one => getComputedStyle(one, '::after').position")
        == "sticky"
    )
    shown.emulate_media(media="print")
    assert shown.locator(".all-heads").evaluate("one => one.offsetWidth") <= 718
    assert shown.evaluate("document.documentElement.scrollWidth") == 718
    assert (
        shown.locator(".map .sign").first.evaluate("one => getComputedStyle(one).printColorAdjust")
        == "exact"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barriers(
    show_page: Callable[..., Page], comparison: HeadComparison, scheme: str
) -> None:
    """axe-core finds no violation, and at 360 pixels nothing stands beyond the edge."""
    head = next(one for one in comparison.heads if one.roles)
    for width in (1280, 360):
        size = {"width": width, "height": 800}
        shown = show_page(
            page(comparison).html, f"head={head.name}", color_scheme=scheme, viewport=size
        )
        assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert barriers(shown) == []


def test_hostile_texts_are_texts(
    show_page: Callable[..., Page], comparison: HeadComparison
) -> None:
    """A model, a corpus and a sentence with markup are shown as text, and nothing runs."""
    bad = "</script><img src=x onerror=alert(1)>\u2028<!--"
    head = next(one for one in comparison.heads if one.roles)
    place = head.name, head.roles[0].measure
    hostile = replace(
        comparison, model=bad, corpus=bad, typical={place: Example(text=bad, score=1.0)}
    )
    shown = show_page(page(hostile).html, f"head={head.name}")
    assert shown.locator("img").count() == 0
    assert "<img src=x onerror=alert(1)>" in shown.inner_text(".model")
    assert "<img src=x onerror=alert(1)>" in shown.inner_text(".detail")


def test_the_file(comparison: HeadComparison, tmp_path: Path) -> None:
    """The same comparison makes the same bytes."""
    comparison.save(tmp_path / "heads.html")
    assert (tmp_path / "heads.html").read_text(encoding="utf-8") == page(comparison).html
    comparison.save(tmp_path / "ko.html", lang="ko")
    assert '<html lang="ko">' in (tmp_path / "ko.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def changes() -> Changes:
    """What a model and its twin of other random weights do otherwise, with relations between words."""
    source = open_source("toy")
    made = survey_pair(corpus_lines(60), source, source.untrained(), SurveySettings(controls=8))
    return compared(made.before, made.after, made.divergences, corpus="60 sentences")


def test_two_models_beside_each_other(show_page: Callable[..., Page], changes: Changes) -> None:
    """The map, the saved table and the page of one head are the change's own numbers, before and after."""
    shown = show_page(page_of_changes(changes).html)
    assert shown.locator(".map button").all_inner_texts() == [
        f"{one.pattern:.2f}"[1:] for one in changes.heads
    ]
    frames = [
        bool(shown.locator(f".map button >> nth={at}").locator(".moved").count())
        for at in range(len(changes.heads))
    ]
    assert frames == [one.role_changed for one in changes.heads]
    rows = [
        *csv.DictReader(io.StringIO(downloaded(shown, "Save CSV").decode("utf-8-sig"), newline=""))
    ]
    for row, one in zip(rows, changes.heads, strict=True):
        assert row["head"] == one.name
        assert [row["role_before"], row["role_after"]] == [
            "" if role is None else role.name for role in one.roles
        ]
        assert float(row["change"]) == pytest.approx(one.pattern, rel=1e-5)
        previous = changes.difference("previous", one.before.layer, one.before.head)
        assert float(row["prev"]) == pytest.approx(previous.value, rel=1e-5)
        assert float(row["prev_after"]) == pytest.approx(previous.after, rel=1e-5)
    one = max(changes.heads, key=lambda change: change.pattern)
    shown.get_by_role("button", name="change", exact=True).click()
    assert shown.locator(".all-heads tbody th").first.inner_text() == one.name
    shown.locator(".map button").nth(changes.heads.index(one)).click()
    assert state(shown) == {"sort": "-score", "head": one.name}
    assert f"{one.pattern:.3f} nats" in shown.inner_text(".detail")
    line = shown.locator(".detail tr").filter(has_text="prev").first.inner_text().split("\t")
    previous = changes.difference("previous", one.before.layer, one.before.head)
    assert line[:3] == ["prev", f"{previous.before:.2f}", f"{previous.after:.2f}"]
    relations = shown.locator("footer table tbody tr").all_inner_texts()
    assert [text.split("\t")[0] for text in relations] == [
        found.name for found in wording.relations(changes)
    ]
    shown.get_by_role("button", name="한국어").click()
    assert "각 헤드에서 바뀐 것" in shown.inner_text("h1")


def test_a_role_leaves_heads_that_had_or_have_it(
    show_page: Callable[..., Page], changes: Changes
) -> None:
    """Before or after; the address is that of the same view."""
    role = next(role for one in changes.heads for role in one.roles if role is not None)
    shown = show_page(page_of_changes(changes).html, f"role={role.name}")
    having = [
        one.name
        for one in changes.heads
        if role.name in {had.name for had in one.roles if had is not None}
    ]
    assert shown.locator(".all-heads tbody th").all_inner_texts() == having


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("saved", [False, True])
def test_two_models_without_barriers(
    show_page: Callable[..., Page], changes: Changes, scheme: str, *, saved: bool
) -> None:
    """axe-core finds no violation, also where only saved numbers were compared, and nothing stands beyond the edge."""
    made = page_of_changes(replace(changes, pattern=None) if saved else changes, "ko").html
    for width in (1280, 360):
        shown = show_page(
            made, "head=1.2", color_scheme=scheme, viewport={"width": width, "height": 800}
        )
        assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert barriers(shown) == []


def test_hostile_names_of_two_models(
    show_page: Callable[..., Page], changes: Changes, tmp_path: Path
) -> None:
    """They are shown as text; the file is the page."""
    bad = "</script><img src=x onerror=alert(1)>"
    hostile = replace(changes, before=replace(changes.before, model=bad, corpus=bad))
    shown = show_page(page_of_changes(hostile).html)
    assert shown.locator("img").count() == 0
    assert bad in shown.inner_text("h1")
    assert (
        changes.save(tmp_path / "changes.html").read_text(encoding="utf-8")
        == page_of_changes(changes).html
    )
    with pytest.raises(OutputError, match="changes are saved as"):
        changes.save(tmp_path / "changes.stats")
