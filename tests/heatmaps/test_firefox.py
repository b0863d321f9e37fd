"""The pages in a real Firefox: the same numbers, views and keys as in Chromium, and nothing gets out."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np

import attnviz
from attnviz import page
from attnviz.attention import Attention
from attnviz.heads.record import HeadComparison
from attnviz.heatmaps.html import EXAMPLES, TOLERANCE
from tests.heatmaps.test_tour import READ

if TYPE_CHECKING:
    from tests.fixtures.firefox import Firefox

BUTTON = "[...document.querySelectorAll('button')].find((one) => one.textContent === '{}').click()"
STEPS = ".steps-table tbody tr"


def rows(firefox: Firefox, selector: str) -> list[list[str]]:
    """The cells of the lines of a table."""
    lines = firefox.see(f"[...document.querySelectorAll('{selector}')].map((one) => one.innerText)")
    return [line.split("\t") for line in lines]


def test_a_record(firefox: Firefox) -> None:
    """Listed and saved weights are the record's; a thumbnail opens its head, keys move, the calculation is numpy's."""
    record = attnviz.attend("I love all you", model="toy")
    vectors = record.vectors
    assert vectors is not None
    firefox.open(page(record).html, "head=1.2&query=2&step=context")
    listed = [
        (name.strip(), float(weight.rstrip("%")) / 100)
        for name, weight in rows(firefox, "table.row tbody tr")
    ]
    weights = zip(["I", "love", "all", "you"], record[1, 2][2].tolist(), strict=True)
    wanted = sorted(weights, key=lambda one: -one[1])
    assert [name for name, _ in listed] == [name for name, _ in wanted]
    np.testing.assert_allclose([one for _, one in listed], [one for _, one in wanted], atol=6e-4)
    products = vectors.key[1, 2] @ vectors.query[1, 2, 2]
    steps = np.stack([products, products * vectors.scaling[1], record[1, 2][2]], axis=1)
    shown = [
        [float(one.replace("\N{MINUS SIGN}", "-")) for one in row[-3:]]
        for row in rows(firefox, STEPS)
    ]
    np.testing.assert_allclose(shown, steps, atol=6e-4)
    firefox.see(BUTTON.format("CSV"))
    saved = csv.DictReader(io.StringIO(firefox.file("*.csv").decode("utf-8-sig"), newline=""))
    assert [np.float32(row["weight"]) for row in saved] == record[1, 2].ravel().tolist()
    firefox.click("button[aria-label='head 1.1']")
    firefox.press("\ue014")  # the arrow to the right
    firefox.press("l")
    assert firefox.see("document.querySelector('.title h2').innerText") == "head 1.2"
    lines = firefox.see("document.querySelectorAll('svg.lines path').length")
    assert lines == int((record[1, 2] >= 0.005).sum())
    firefox.click(".word", 1)
    backgrounds = "[...document.querySelectorAll('.word')].map((word) => word.style.background)"
    assert len(set(firefox.see(backgrounds))) == 4
    firefox.press("m")
    drawn = "document.querySelector('.drawing canvas').getContext('2d').getImageData(0, 0, 999, 999).data"
    assert firefox.see(f"new Set({drawn}).size") > 50


def test_the_model_in_the_page(firefox: Firefox) -> None:
    """The toy runs in the page: sentences that are typed have Python's weights."""
    firefox.open(page().html)
    typed = [EXAMPLES["toy"].format("tired"), "A QUOKKA chased the Dog, didn't it?", "나는 the dog"]
    for text, (_, weights) in zip(typed, firefox.run(READ, typed), strict=True):
        record = attnviz.attend(text, model="toy")
        assert isinstance(record, Attention)
        theirs = np.array(weights).reshape(record.weights.shape)
        np.testing.assert_allclose(theirs, record.weights, rtol=0, atol=TOLERANCE)


def test_other_pages(firefox: Firefox) -> None:
    """Heads, a generation and a walkthrough are drawn."""
    found = attnviz.compare_heads(
        ["the animal didn't cross the street because it was too tired"] * 3, model="toy"
    )
    made = attnviz.generate("I love", model="toy-decoder", max_new_tokens=3)
    steps = attnviz.walkthrough("I love all you", model="toy", query="love")
    assert isinstance(found, HeadComparison)
    for text, wanted in (
        (page(found).html, "Layer 0, head 0"),
        (page(made).html, "love"),
        (steps.page().html, "softmax"),
    ):
        firefox.open(text, "head=0.0")
        assert wanted in firefox.see("document.body.innerText")


def test_a_script_that_fails_is_noticed(firefox: Firefox) -> None:
    """So that the check at the end of each test can fail."""
    firefox.open("<!doctype html><main></main><script>nothing.there()</script>")
    assert ["nothing is not defined" in error for error in firefox.errors()] == [True]
