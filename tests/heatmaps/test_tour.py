"""The page in which a model runs: in a real browser its weights are Python's, and what is typed stays text."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import attnviz
from attnviz.attention import Attention
from attnviz.errors import SelectionError
from attnviz.heatmaps.html import EXAMPLES, SENTENCES, TOLERANCE, TOURS, _tour
from attnviz.models.language.splits import sentences
from attnviz.stories import tell
from attnviz.stories.record import typeset
from attnviz.text.display import hold_units, inert
from tests.fixtures.browser import barriers, state

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from attnviz.models.config import Language

Open = Callable[..., "Page"]

STRANGE = {
    "toy": (
        "A QUOKKA chased the Dog, didn't it?",
        "e.g. 3.14 quokkas...",
        'the "cat" -- (sleeps)!',
        "나는 the dog",
        "I",
        "  the   cat  ",
        "the cat's hat isn\u2019t red",
        "🙂 is happy",
        "中文 👩‍👩‍👧 the cat's 1,000 🇰🇷 a:b",
    ),
    "toy-ko": (
        "쿼카가 방에서 자고 있어요?",
        "고양이가, 개를... 만났어요!",
        "The dog 고양이",
        "고양이가 방에서",
        "  나는   ",
        "고양이가",
    ),
}
"""Words that no model knows, capitals, punctuation, other scripts."""

READ = """async (texts) => {
  const field = document.getElementById("typed"), csv = document.querySelectorAll(".saves ~ button")[2];
  const kept = [];
  URL.createObjectURL = (blob) => (kept.push(blob.text()), "blob:none");
  HTMLAnchorElement.prototype.click = () => 0;
  const found = [];
  for (const text of texts) {
    field.value = text;
    field.dispatchEvent(new Event("input"));
    csv.click();
    const lines = (await kept.pop()).trim().split("\\r\\n").slice(1);
    const n = Math.round(Math.sqrt(lines.length / 18));
    found.push([lines.slice(0, n), lines.map((line) => Number(line.split(",").at(-2)))]);
  }
  return found;
}"""
"""Types sentences, one after the other, and brings back of each the lines of its first row, and all weights."""


@pytest.fixture
def show(show_page: Callable[..., Page]) -> Open:
    """Open the page of a model."""

    def open_page(model: str = "toy", fragment: str = "", **options: Any) -> Page:
        look = {name: options.pop(name) for name in ("lang",) if name in options}
        return show_page(attnviz.page(model=model, **look).html, fragment, **options)

    return open_page


@pytest.mark.parametrize("model", TOURS)
def test_the_page_computes_what_python_computes(show: Open, model: str) -> None:
    """A hundred sentences typed into one page: the same tokens, and every weight of every head within 1e-5."""
    language: Language = "korean" if model == "toy-ko" else "english"
    made = itertools.islice(sentences("test", language=language), SENTENCES - len(STRANGE[model]))
    typed = [" ".join(one.words).replace(" ##", "") for one in made]
    typed = [one.capitalize() if i % 3 else one.upper() for i, one in enumerate(typed)] + [
        *STRANGE[model]
    ]
    assert len(typed) == SENTENCES
    seen = show(model).evaluate(READ, typed)
    source = attnviz.open_source(model)
    largest = 0.0
    for text, (lines, weights) in zip(typed, seen, strict=True):
        record = attnviz.attend(text, source)
        assert isinstance(record, Attention)
        assert [row[4] for row in csv.reader(lines)] == [
            inert(token.text) for token in record.key_tokens
        ], text
        theirs = np.array(weights).reshape(record.weights.shape)
        largest = max(largest, float(np.abs(theirs - record.weights).max()))
    assert largest <= TOLERANCE
    assert largest > 0  # it is no copy


@pytest.mark.parametrize("model", TOURS)
def test_what_the_guide_says_is_so(show: Open, model: str) -> None:
    """Each sentence of the guide sets its view, and the pronoun looks most at the noun that is named."""
    shown = show(model)
    steps = shown.locator(".tour li button")
    assert steps.count() == 5
    told: list[Any] = _tour(model, "rocket", "shared").labels["guide"]["steps"]
    for place in (1, 2):
        steps.nth(place).click()
        said = told[place]["text"]
        record = attnviz.attend(told[place]["state"]["text"], model=model)
        query = told[place]["state"]["query"]
        looked_at = record.key_tokens[int(record.weights[1, 3, query].argmax())].text
        assert f"“{looked_at}”" in said
        assert shown.locator("table.row tbody th").first.inner_text().strip() == looked_at
        assert record.query_tokens[query].text in shown.inner_text("#row-title")
    steps.nth(3).click()
    assert state(shown)["toward"] == "to"
    steps.nth(4).click()
    assert shown.locator("svg.lines path").count() > 10
    steps.nth(0).click()
    assert shown.evaluate("document.body.className") == "all"


def test_words_that_are_not_known(show: Open) -> None:
    """They are named, with words like them to choose from; all that are known can be searched."""
    shown = show(fragment="head=1.3")
    shown.fill("#typed", "the dogg sleeps")
    assert "“dogg” not known, read as [UNK]" in " ".join(shown.inner_text(".unknown").split())
    shown.locator(".unknown").get_by_role("button", name="dog", exact=True).click()
    assert shown.input_value("#typed") == "the dog sleeps"
    assert shown.inner_text(".unknown").strip() == ""
    shown.locator(".tour summary").click()
    shown.locator(".tour [type=search]").fill("anima")
    assert shown.inner_text(".known").split() == ["animal", "animals"]
    shown.fill("#typed", "the cat sleeps " * 50 + ".")
    assert "reads 128 words at most" in shown.inner_text(".unknown")
    assert shown.locator(".word").count() == 128
    shown.fill("#typed", "")
    assert "Type a word" in shown.inner_text(".unknown")


def test_the_chosen_word_stays_and_the_address_keeps_the_sentence(show: Open) -> None:
    """Another last word leaves the pronoun chosen; an address brings sentence and head back."""
    shown = show(fragment="head=1.3&query=7")
    shown.fill("#typed", EXAMPLES["toy"].format("wide"))
    assert state(shown)["query"] == "7"
    assert shown.locator("table.row tbody th").first.inner_text() == "street"
    shown.fill("#typed", "the cat sleeps")
    assert "query" not in state(shown)
    again = show(fragment="head=0.2&text=the+cat+sleeps&query=1")
    assert again.locator(".word").all_inner_texts() == ["the", "cat", "sleeps"]
    assert "“cat” attends to" in again.inner_text("#row-title")


@pytest.mark.parametrize(
    ("model", "lang", "fragment", "width", "scheme"),
    [("toy", "en", "head=1.3&query=7", 360, "light"), ("toy-ko", "ko", "", 1280, "dark")],
)
def test_no_barriers_at_any_width(
    show: Open, model: str, lang: str, fragment: str, width: int, scheme: str
) -> None:
    """axe-core finds no violation, in both languages, and at 360 pixels nothing stands beyond the edge."""
    shown = show(
        model, fragment, color_scheme=scheme, viewport={"width": width, "height": 740}, lang=lang
    )
    shown.fill("#typed", "the quokka sleeps")
    shown.locator(".tour summary").click()
    assert barriers(shown) == []
    assert shown.evaluate("document.documentElement.scrollWidth") == width


def test_the_command(typed: Callable[..., Any], tmp_path: Path) -> None:
    """It writes the page that Python writes, at most 1 MB; a model that does not run in a page is refused."""
    for model in TOURS:
        done = typed("page", "-m", model, "-o", str(tmp_path / f"{model}.html"))
        assert done.status == 0, done
        assert (tmp_path / f"{model}.html").read_text(encoding="utf-8") == attnviz.page(
            model=model
        ).html
        assert (tmp_path / f"{model}.html").stat().st_size <= 2**20
    assert typed("page", "-o", "x.png").status == 2
    with pytest.raises(SelectionError, match="no model toy-decoder runs in a page"):
        attnviz.page(model="toy-decoder")


@pytest.mark.parametrize("name", ["reference", "word-order"])
def test_a_story_sets_the_views(name: str, show_page: Callable[..., Page]) -> None:
    """Each sentence opens the view that it speaks of: its words and its weight are what is seen there."""
    told = tell(name)
    shown = show_page(told.page().html)
    assert shown.inner_text("h1") == hold_units(typeset(told.title))
    assert shown.inner_text(".told") == hold_units(typeset(str(told.parts[0])))
    for button, view in zip(shown.locator(".tour ol button").all(), told.views, strict=True):
        assert button.inner_text() == hold_units(typeset(view.text))
        button.click()
        assert shown.input_value("#typed") == view.sentence
        if view.head is None:
            assert shown.locator("#page .pattern").is_hidden()
            continue
        assert shown.inner_text(".pattern h2") == "head {}.{}".format(*view.head)
        row = attnviz.attend(view.sentence, model="toy")[view.head][view.query]
        key = int(row.argmax()) if view.key is None else view.key
        words = shown.locator(".word").all_inner_texts()
        assert f"“{words[key].strip()}”" in view.text
        lines = [line.split() for line in shown.locator("table.row tbody tr").all_inner_texts()]
        shares = [float(weight.strip("≈%")) for word, weight in lines if word == words[key].strip()]
        assert any(share == pytest.approx(100 * row[key], rel=0.05) for share in shares)
        if numbers := re.findall(r"0[.][0-9][0-9]\b", view.text):
            assert f"{row[key]:.2f}" in numbers
        assert shown.locator("details[open] > summary").count() == bool(view.step)
    assert barriers(shown) == []
    shown.set_viewport_size({"width": 360, "height": 640})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360
