"""The page of an attribution in a real browser: its words are shaded by the cut, and each shows its numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import attnviz
from attnviz.attributions.terminal import (
    controls_phrase,
    first_sentence,
    second_sentence,
    verdict_name,
)
from attnviz.text.display import percent
from tests.fixtures.browser import barriers

TEXT = "The animal didn't cross the street because it was too tired"
HOSTILE = "<script>alert(1)</script> &amp;\n\n🙂 you"
LIGHT = r"all => all.map(a => getComputedStyle(a).backgroundColor.match(/\d+/g).reduce((x, y) => +x + +y))"


@cache
def found(text: str = TEXT, model: str = "toy", target: str = "it") -> Any:
    """Return an attribution, made once."""
    return attnviz.attribute(text, model, target=target)


def card(shown: Any) -> str:
    """The text of the card that is seen."""
    return " ".join(shown.locator("article:visible").inner_text().split())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_sentence(show_page: Any, scheme: str) -> None:
    """The verdict first; a larger cut is a stronger shade; mouse, click and arrow keys show the numbers of a word."""
    it = found()
    shown = show_page(it.page().html, color_scheme=scheme)
    words = shown.locator(".words a")
    assert shown.inner_text("h1") == first_sentence(it)
    assert shown.inner_text(".second") == second_sentence(it)
    assert shown.inner_text(".words") == TEXT
    assert shown.locator(".words .output").all_inner_texts() == ["it"]
    light = np.array(words.evaluate_all(LIGHT)) * (1 if scheme == "dark" else -1)
    assert np.all(np.diff(light[np.argsort(it.here)]) >= 0)
    assert light.max() - light.min() > 500
    for place, (token, verdict) in enumerate(zip(it.tokens, it.verdicts, strict=True)):
        words.nth(place).hover()
        assert card(shown).startswith(f"{token.text} {verdict_name(verdict)} weight")
        for values in (it.weight, it.carried, it.here, it.everywhere, it.hidden):
            assert f" {percent(values[place])} " in card(shown) + " "
        if verdict is not None:
            assert controls_phrase(verdict.here, it) in card(shown)
    words.nth(5).click()
    shown.keyboard.press("ArrowRight")
    assert card(shown).startswith("because not tested")
    assert card(show_page(it.page().html, shown.url.partition("#")[2])) == card(shown)
    assert barriers(shown) == []
    for width in (360, 800, 1400):
        shown.set_viewport_size({"width": width, "height": 800})
        assert shown.evaluate("document.documentElement.scrollWidth") == width
    shown.locator(".tokens a").nth(1).click()
    assert card(shown).startswith("animal used")


def test_without_scripts(show_page: Any) -> None:
    """A click on a word shows its card, and the table has every token."""
    shown = show_page(found().page().html, before="0", java_script_enabled=False)
    assert card(shown).startswith("animal used")
    shown.locator(".words a").nth(5).click()
    assert card(shown).startswith("street attended to, not used")
    assert shown.locator(".tokens tbody th").all_inner_texts() == TEXT.split()


def test_other_texts_and_outputs(show_page: Any) -> None:
    """Markup is text and lines break; of a long text some words are grey; a prediction stands after its text."""
    shown = show_page(found(HOSTILE, "toy-random", "you").page().html)
    assert shown.inner_text(".words") == HOSTILE
    shown = show_page(found(" ".join(f"w{n}" for n in range(140)), "toy-random", "w7").page().html)
    assert shown.locator(".words .uncut").count() == 108
    shown.locator(".words .uncut").first.click()
    assert "not cut weight" in card(shown)
    assert "cut here" not in card(shown)
    shown = show_page(found("She is eating", target="sentence").page().html)
    assert shown.locator(".words .output").count() == 0
    assert "cut here" not in shown.inner_text("body")
    pear = replace(
        found("She is eating a green", "toy-decoder", "next"), carried=np.full(5, np.nan)
    )
    shown = show_page(pear.page().html)
    assert shown.inner_text(".words") == "She is eating a green → pear"
    assert "cut here Does the output need it there? 0.67 26% → 10%" in card(shown)
    assert "carried" not in " ".join(shown.locator("th").all_inner_texts())
