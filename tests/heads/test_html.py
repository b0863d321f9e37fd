"""The page of a comparison in a real browser: its numbers are the comparison's, it sorts, it keeps its state."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

import attnviz
from attnviz.heads.html import page
from attnviz.heads.record import Example, HeadComparison
from attnviz.heads.tables import evidence, map_code, overview_table
from attnviz.heads.words import describe, finding
from attnviz.look import Look
from attnviz.text.messages import _
from tests.fixtures.browser import barriers, downloaded, state
from tests.heads.comparisons_by_hand import compared, made

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

COMPARISON = made(3, 6, all_roles=True)


def saved(shown: Page) -> list[dict[str, str]]:
    """Return the rows of the table that the page saves."""
    text = downloaded(shown, "Save CSV").decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text, newline="")))


def names(shown: Page) -> list[str]:
    """Return the heads of the table, from top to bottom."""
    return shown.locator(".all-heads tbody th").all_inner_texts()


def test_a_comparison(show_page: Callable[..., Page]) -> None:
    """What is found stands first; map and table of roles are the terminal's; the table sorts; the address keeps it."""
    shown = show_page(page(COMPARISON, Look()).html)
    assert shown.locator("header p").first.inner_text() == finding(COMPARISON)
    signs = shown.locator(".map button").all_inner_texts()
    assert signs == [map_code(head) for head in COMPARISON.heads]
    columns = overview_table(COMPARISON)[0]
    rows = [row.replace("\n", "") for row in shown.locator(".roles tr").all_inner_texts()[1:]]
    cells = zip(*(column.cells for column in columns), strict=True)
    assert [row.split("\t") for row in rows] == [list(row) for row in cells]

    # axe-core finds no violation, and at 360 pixels nothing stands beyond the edge.
    assert barriers(shown) == []
    shown.set_viewport_size({"width": 360, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") == 360

    # Numbers.
    for row, head in zip(saved(shown), COMPARISON.heads, strict=True):
        assert row["head"] == head.name
        assert float(row["score"] or "nan") == pytest.approx(
            head.role.score if head.role else float("nan"), nan_ok=True
        )
        value = COMPARISON.estimate("previous", *head.place)[0]
        assert float(row["previous"]) == pytest.approx(value, rel=1e-5)

    # The card of a head, with its evidence and its measures.
    head = COMPARISON.heads[1]
    shown.get_by_role("button", name=f"{head.name}: ").first.click()
    assert state(shown) == {"head": head.name}
    detail = shown.inner_text(".detail")
    assert describe(head) in detail
    for about, value, low, high in evidence(head.roles[0]):
        assert f"{about}\t{value:.2f}\t{low:.2f}–{high:.2f}" in detail
    assert "Not established: the best head of random weights scores as much" in detail
    value, low, high = COMPARISON.estimate("previous", *head.place)
    assert f"weight on the token before\t{value:.2f}\t{low:.2f}–{high:.2f}" in detail
    assert shown.locator(".detail article:visible").count() == 1
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        shown.keyboard.press(key)
    assert state(shown) == {"head": "2.2"}

    # A title sorts, the largest first, then turns round.
    values = {one.name: COMPARISON.estimate("previous", *one.place)[0] for one in COMPARISON.heads}
    shown.get_by_role("button", name="prev", exact=True).click()
    found = [values[name] for name in names(shown)]
    assert found == sorted(found, reverse=True)
    assert shown.get_attribute(".all-heads th[aria-sort]", "aria-sort") == "descending"
    shown.locator(".all-heads th[aria-sort] button").click()
    found = [values[name] for name in names(shown)]
    assert found == sorted(found)

    # A role leaves the heads that have it.
    role = COMPARISON.heads[0].roles[0]
    shown.get_by_role("button", name=_(role.rule.short), exact=True).click()
    having = [
        head.name for head in COMPARISON.heads if head.roles and head.roles[0].name == role.name
    ]
    assert sorted(names(shown)) == sorted(having)
    assert shown.locator(".map .sign:visible").count() == len(having)
    kept = "&".join(f"{name}={value}" for name, value in state(shown).items())
    text = shown.inner_text(".all-heads")
    assert show_page(page(COMPARISON, Look()).html, kept).inner_text(".all-heads") == text


def test_hostile_texts_are_texts(show_page: Callable[..., Page]) -> None:
    """A model, a corpus and a sentence with markup are shown as text, and nothing runs; addresses likewise."""
    bad = "</script><img src=x onerror=alert(1)>\u2028<!--"
    head = COMPARISON.heads[0]
    typical = {(head.name, head.roles[0].measure): Example(text=bad, score=1.0)}
    hostile = replace(COMPARISON, model=bad, corpus=bad, typical=typical)
    shown = show_page(page(hostile, Look()).html, "head=9.9&role=%3Cimg%3E&sort=constructor")
    assert not shown.locator(".detail").is_visible()
    shown.locator(".map button").first.click()
    assert shown.locator("img").count() == 0
    assert "<img src=x onerror=alert(1)>" in shown.inner_text(".model")
    assert "<img src=x onerror=alert(1)>" in shown.inner_text(".detail")


def test_the_file(tmp_path: Path) -> None:
    """Equal comparisons make equal bytes."""
    path = COMPARISON.save(tmp_path / "ko.html", lang="ko")
    text = path.read_text(encoding="utf-8")
    assert text == COMPARISON.page("ko").html
    assert '<html lang="ko">' in text


def test_one_sentence_has_no_roles(show_page: Callable[..., Page]) -> None:
    """The page of one sentence says what the terminal says: where each head attends, and that roles need more."""
    found = attnviz.compare_heads("I love all you", "toy")
    assert isinstance(found, HeadComparison)
    assert any(head.roles for head in found.heads)
    shown = show_page(page(found, Look()).html, "head=0.3&sort=word")
    assert shown.inner_text("h1") == "Heads on one sentence"
    assert "Roles need more sentences" in shown.inner_text("header")
    assert found.attention is not None
    received = found.attention.weights.mean(axis=2)
    words = [token.text for token in found.attention.key_tokens]
    expected = [words[key] for key in received.argmax(axis=-1).ravel()]
    assert shown.locator(".map .sign").all_inner_texts() == expected
    assert f": {expected[3]} ({received[0, 3].max():.2f})" in shown.inner_text(".detail")
    assert shown.locator(".roles, .detail .evidence").count() == 0
    assert [row["word"] for row in saved(shown)] == sorted(expected)


def test_two_models_beside_each_other(show_page: Callable[..., Page]) -> None:
    """The table and the card of a head have the divergence and the role in the second model."""
    found = compared(COMPARISON)
    changes = {head.name: head.change for head in found.heads if head.change is not None}
    shown = show_page(page(found, Look()).html, "head=0.1", color_scheme="dark")
    assert barriers(shown) == []
    for row in saved(shown):
        change = changes[row["head"]]
        assert float(row["divergence"]) == pytest.approx(change.divergence, rel=1e-5)
        role = "" if change.role is None else _(change.role.rule.short)
        assert role in row["role_before"]
        assert bool(role) == bool(row["role_before"])
    assert "JSD 0.01" in shown.inner_text(".detail")
    shown.get_by_role("button", name="JSD", exact=True).click()
    assert names(shown) == sorted(changes, key=lambda name: -changes[name].divergence)
    assert state(shown) == {"head": "0.1", "sort": "-divergence"}
