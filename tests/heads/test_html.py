"""The page of a comparison in a real browser: its numbers are the comparison's, it sorts, it keeps its state."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.capture.source import open_source
from attnviz.heads.html import page
from attnviz.heads.record import Example, HeadComparison
from attnviz.heads.tables import code
from attnviz.heads.words import finding
from attnviz.look import Look
from attnviz.text.messages import _
from tests.fixtures.browser import barriers, downloaded, state

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

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
    shown = show_page(page(comparison, Look()).html)
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
    assert _(head.roles[0].rule.words) in shown.inner_text(".detail")


def test_it_opens_with_the_finding(
    show_page: Callable[..., Page], comparison: HeadComparison
) -> None:
    """The finding stands first; the map has short names, and a legend names those of the map and no others."""
    shown = show_page(page(comparison, Look()).html)
    assert shown.locator("header p").first.inner_text() == finding(comparison)
    roles = {head.role for head in comparison.heads if head.role is not None}
    signs = set(shown.locator(".map .sign").all_inner_texts()) - {"·"}
    assert signs == {code(role) for role in roles}
    legend = set(shown.locator(".legend > span").all_inner_texts())
    assert legend == {f"{code(role)} {_(role.rule.short)}" for role in roles}


def test_it_sorts_and_chooses(show_page: Callable[..., Page], comparison: HeadComparison) -> None:
    """A title sorts, the largest first, then turns round; a role leaves heads that have it; the address keeps it."""
    shown = show_page(page(comparison, Look()).html)
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
        page(comparison, Look()).html,
        "&".join(f"{name}={value}" for name, value in state(shown).items()),
    )
    assert again.inner_text(".all-heads") == shown.inner_text(".all-heads")


def test_keys_and_hostile_addresses(
    show_page: Callable[..., Page], comparison: HeadComparison
) -> None:
    """Arrows move among heads; what is not there is as usual."""
    shown = show_page(page(comparison, Look()).html, "head=9.9&role=%3Cimg%3E&sort=constructor")
    assert not shown.locator(".detail").is_visible()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        shown.keyboard.press(key)
    assert state(shown)["head"] == "1.1"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barriers(
    show_page: Callable[..., Page], comparison: HeadComparison, scheme: str
) -> None:
    """axe-core finds no violation, and at 360 pixels nothing stands beyond the edge."""
    head = next(one for one in comparison.heads if one.roles)
    for width in (1280, 360):
        size = {"width": width, "height": 800}
        shown = show_page(
            page(comparison, Look()).html, f"head={head.name}", color_scheme=scheme, viewport=size
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
    shown = show_page(page(hostile, Look()).html, f"head={head.name}")
    assert shown.locator("img").count() == 0
    assert "<img src=x onerror=alert(1)>" in shown.inner_text(".model")
    assert "<img src=x onerror=alert(1)>" in shown.inner_text(".detail")


def test_the_file(comparison: HeadComparison, tmp_path: Path) -> None:
    """Equal comparisons make equal bytes."""
    comparison.save(tmp_path / "heads.html")
    assert (tmp_path / "heads.html").read_text(encoding="utf-8") == page(comparison, Look()).html
    comparison.save(tmp_path / "ko.html", lang="ko")
    assert '<html lang="ko">' in (tmp_path / "ko.html").read_text(encoding="utf-8")


def test_one_sentence_has_no_roles(show_page: Callable[..., Page]) -> None:
    """The page of one sentence says what the terminal says: where each head attends, and that roles need more."""
    found = attnviz.compare_heads("I love all you", "toy")
    assert isinstance(found, HeadComparison)
    assert any(head.roles for head in found.heads)
    shown = show_page(page(found, Look()).html, "head=0.3&sort=word")
    assert shown.inner_text("h1") == "Heads on one sentence"
    assert "Roles need more sentences" in shown.inner_text("header")
    assert (
        shown.inner_text(".map caption") == "The word that receives most of each head's attention"
    )
    assert found.attention is not None
    received = found.attention.weights.mean(axis=2)
    words = [token.text for token in found.attention.key_tokens]
    expected = [words[key] for key in received.argmax(axis=-1).ravel()]
    assert shown.locator(".map .sign").all_inner_texts() == expected
    assert shown.locator(".all-heads td.name").all_inner_texts() == sorted(expected)
    assert f": {expected[3]} ({received[0, 3].max():.2f})" in shown.inner_text(".detail")
    assert shown.locator("select").count() == 0
    assert shown.locator(".detail .sign").count() == 0
    rows = csv.DictReader(
        io.StringIO(downloaded(shown, "Save CSV").decode("utf-8-sig"), newline="")
    )
    assert [row["word"] for row in rows] == sorted(expected)
    assert "Roles need more sentences" in shown.inner_text("header")


def test_two_models_beside_each_other(show_page: Callable[..., Page]) -> None:
    """The table, the saved table and the page of one head have the divergence and the role in the second model."""
    found = attnviz.compare_heads(SENTENCES, "toy", against=open_source("toy").untrained())
    changes = {head.name: head.change for head in found.heads if head.change is not None}
    shown = show_page(page(found, Look()).html)
    rows = [
        *csv.DictReader(io.StringIO(downloaded(shown, "Save CSV").decode("utf-8-sig"), newline=""))
    ]
    assert [row["head"] for row in rows] == list(changes)
    for row in rows:
        change = changes[row["head"]]
        assert float(row["divergence"]) == pytest.approx(change.divergence, rel=1e-5)
        assert row["role_before"] == ("" if change.role is None else change.role.name)
    shown.get_by_role("button", name="JSD", exact=True).click()
    names = shown.locator(".all-heads tbody th").all_inner_texts()
    assert names == sorted(changes, key=lambda name: -changes[name].divergence)
    assert state(shown) == {"sort": "-divergence"}
    shown.locator(".map button").first.click()
    assert f"JSD {changes['0.0'].divergence:.3f} nats" in shown.inner_text(".detail")
    shown.get_by_role("button", name="role before", exact=True).click()
    assert barriers(shown) == []
