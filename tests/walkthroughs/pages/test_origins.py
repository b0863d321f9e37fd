"""Where each number comes from: the cells it is made of, by the arithmetic itself, and its page in a real browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from attnviz.text.messages import language
from attnviz.walkthroughs.calculation import compute, spell_out
from attnviz.walkthroughs.examples import example
from attnviz.walkthroughs.operations import OPERATIONS, ResultCell
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.view import View
from tests.fixtures.browser import barriers, state
from tests.walkthroughs.by_hand import note, walks

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

    Open = Callable[..., Page]

WALKS = walks()


def html(walk: Walkthrough, **view: Any) -> str:
    """The page of a walkthrough."""
    return walk.page(**view).html


GALLERY = Path(__file__).parents[3] / "outputs" / "gallery"
BAD = "</script><img src=x onerror=alert(1)>"


def dependents(walk: Walkthrough, step: CalculationStep, place: int) -> np.ndarray:
    """Which cells of the result are said to be made of which of an operand: (row, column, row and column of result)."""
    shape, made = (
        walk.grids[step.operands[place]].values.shape,
        walk.grids[step.result].values.shape,
    )
    found = np.zeros((*shape, *made), dtype=bool)
    for row, column in np.ndindex(made):
        part = OPERATIONS[step.operation].parts(ResultCell(walk, step, row, column))[place]
        if part is not None:
            rows, columns = (
                list(range(size) if numbers is None else numbers)
                for numbers, size in zip(part, shape, strict=True)
            )
            found[np.ix_(rows, columns, [row], [column])] = True
    return found


def changes(walk: Walkthrough, step: CalculationStep, place: int) -> np.ndarray:
    """Which cells of the result become others when a cell of an operand does: the same axes."""
    name = step.operands[place]
    values, before = walk.grids[name].values, compute(step, walk.grids)
    found = np.zeros((*values.shape, *before.shape), dtype=bool)
    for at in np.ndindex(values.shape):
        other = values.copy()
        other[at] = (
            1.0 - other[at] if step.operation == "mask" and place == 1 else other[at] * 1.01 + 0.003
        )
        found[at] = (
            compute(step, {**walk.grids, name: replace(walk.grids[name], values=other)}) != before
        )
    return found


@pytest.mark.parametrize("name", ["layer", "general", "additive"])
def test_a_cell_is_made_of_what_changes_it(name: str) -> None:
    """Of every operation: no other cell changes it, and each of these does, where it is no 0 and not masked."""
    walk = WALKS[name]
    operands = [(step, place) for step in walk.steps for place in range(len(step.operands))]
    for step, place in operands:
        operand = step.operands[place]
        said = dependents(walk, step, place)
        if operand == "n_heads":
            assert said.all()
            continue
        seen = changes(walk, step, place)
        assert not (seen & ~said).any()
        dead = {"relu", "mask"} & {step.operation} or any(
            not np.isfinite(walk.grids[one].values).all() or (walk.grids[one].values == 0).any()
            for one in step.operands
        )
        assert (seen == said).all() if not dead else seen.any()


SEE_ALL = """() => {
    const cells = [...document.querySelectorAll(".steps td[tabindex]")], place = new Map();
    document.querySelectorAll(".steps table").forEach((table) => {
        for (const [row, line] of [...table.tBodies[0].rows].entries()) {
            const name = table.rows[0].cells[0].textContent;
            for (const cell of line.cells) place.set(cell, [name, row, cell.cellIndex - 1]);
        }
    });
    return cells.map((cell) => {
        cell.click();
        const lit = [...document.querySelectorAll('.steps td[data-is="made"]')].map((one) => place.get(one));
        return { at: place.get(cell), text: document.querySelector("#origin .hand").textContent, lit };
    });
}"""
"""Chooses every number of the steps, and tells what is then said and lit."""


def see_cells(shown: Page) -> list[dict[str, Any]]:
    """Return the text and the highlighted cells of every number of the steps."""
    seen: list[dict[str, Any]] = shown.evaluate(SEE_ALL)
    return seen


DIAGRAM = """() => [...document.querySelectorAll("#diagram td[tabindex]")].map((cell) => {
    cell.click();
    const address = new URLSearchParams(location.hash.slice(1)).get("cell");
    return [cell.textContent, address, document.querySelector("#origin .hand").textContent];
})"""
"""Chooses every number of the diagram: its text, its address and its arithmetic."""


@pytest.mark.parametrize(("name", "lang"), [("layer", "en"), ("seq2seq", "ko"), ("additive", "en")])
def test_the_arithmetic_is_that_of_the_terminal(show_page: Open, name: str, lang: str) -> None:
    """Of every number of every step, letter for letter; what is given says so."""
    walk = WALKS[name]
    steps = {step.result: step for step in walk.steps}
    seen = see_cells(show_page(html(walk, lang=lang)))
    assert len(seen) == sum(grid.values.size for grid in walk.grids.values())
    for one in seen:
        made, row, column = one["at"]
        if made in steps:
            with language(lang):
                arithmetic = spell_out(walk, steps[made], row, column, View(walk=walk).full_digits)
            assert one["text"] == arithmetic
        else:
            assert one["text"] == ("given" if lang == "en" else "주어진 수")
            assert one["lit"] == []


@pytest.mark.parametrize("name", ["seq2seq", "self-attention"])
def test_the_diagram_has_the_arithmetic_of_the_steps(show_page: Open, name: str) -> None:
    """The page begins with it; each of its numbers is one of the walkthrough's, shorter, with its own arithmetic."""
    walk = WALKS[name]
    steps = {step.result: step for step in walk.steps}
    shown = show_page(html(walk))
    assert shown.locator("main section").first.get_attribute("id") == "diagram"
    seen = shown.evaluate(DIAGRAM)
    grids = set()
    for text, address, arithmetic in seen:
        grid, row, column = address.rsplit(".", 2)
        grids.add(grid)
        value = walk.grids[grid].values[int(row), int(column)]
        assert float(text.replace("≈", "")) == pytest.approx(value, abs=0.0051)
        if grid in steps:
            assert arithmetic == spell_out(
                walk, steps[grid], int(row), int(column), View(walk=walk).full_digits
            )
    query = "Q" if walk.query is None else "q"
    assert {query, "K", "scores", "weights", "V", "context"} <= grids
    n_weights = sum(address.startswith("weights.") for _text, address, _arithmetic in seen)
    assert n_weights == walk.grids["weights"].values.size


def test_a_number_of_the_diagram_opens_beside_it(show_page: Open) -> None:
    """On hover and by keyboard; its links stay in the diagram where they can, and unfold what is folded."""
    shown = show_page(html(example("self-attention", query="you")))
    panel = shown.locator("#origin")
    weight = shown.locator("#diagram td", has_text="0.887")
    weight.hover()
    assert panel.locator("h2").inner_text().startswith("weights, love: 0.887")
    weight.click()
    panel.get_by_role("button", name="scaled").click()
    panel.get_by_role("button", name="scores").click()
    panel.get_by_role("button", name="q", exact=True).click()
    assert shown.evaluate("document.activeElement.closest('#diagram') !== null")
    assert not shown.locator("details").first.evaluate("fold => fold.open")
    panel.get_by_role("button", name="x", exact=True).click()
    assert shown.locator("details").first.evaluate("fold => fold.open")
    assert shown.evaluate("document.activeElement.closest('details') !== null")


def test_the_way_down_to_the_input(show_page: Open) -> None:
    """From a weight over score and key to the input, by links; and back, and let go."""
    shown = show_page(html(WALKS["layer"]), "cell=weights.1.0")
    panel = shown.locator("#origin")
    for link in ("masked, love", "biased", "capped", "scaled", "scores", "K, 나는", "X, 나는"):
        panel.get_by_role("button", name=link).first.click()
        assert panel.locator("h2").inner_text().startswith(link)
        chosen = shown.locator('td[data-is="kept"]').first
        assert chosen.evaluate("cell => cell === document.activeElement")
    assert state(shown) == {"cell": "X.0.0"}
    assert panel.locator(".hand").inner_text() == "given"
    panel.get_by_role("button", name="← K, 나는, column 0").click()
    assert state(shown) == {"cell": "K.0.0"}
    panel.get_by_role("button", name="Let go").click()
    assert state(shown) == {}
    assert shown.locator("td[data-is]").count() == 0


def test_by_keyboard(show_page: Open) -> None:
    """Tab to a table, arrows within it, Enter keeps and goes on, Esc lets go; the address keeps what is kept."""
    shown = show_page(html(WALKS["seq2seq"]))
    title = shown.locator("#origin h2")
    shown.keyboard.press("Tab")
    assert title.inner_text().startswith("q, column 0: 10")
    shown.keyboard.press("ArrowDown")
    assert title.inner_text().startswith("K, encoder 1, column 0: 0")
    shown.keyboard.press("ArrowUp")
    for _ in range(3):
        shown.keyboard.press("Tab")
    shown.keyboard.press("ArrowRight")
    assert title.inner_text().startswith("scores, encoder 2: 60")
    assert state(shown) == {}
    shown.keyboard.press("Enter")
    shown.keyboard.press("ArrowRight")
    assert state(shown) == {"cell": "scores.0.2"}
    shown.locator(".steps td").first.hover()
    assert title.inner_text().startswith("scores, encoder 3: 15")
    shown.keyboard.press("Enter")
    shown.keyboard.press("Tab")
    shown.keyboard.press("Enter")
    assert state(shown) == {"cell": "K.2.0"}
    assert shown.locator(".steps td[aria-selected=true]").inner_text() == "1"
    shown.keyboard.press("Escape")
    assert state(shown) == {}
    assert "Point at a number" in shown.inner_text("#origin")


def test_hostile_names_are_texts(show_page: Open) -> None:
    """Of grids, rows, columns, the model and the title; a link leads to them all the same."""
    there = Grid(values=np.array([[1.5, -2.0]]), rows=(BAD,), columns=(f"{BAD}.1", "\u2028<!--"))
    step = CalculationStep(name=BAD, result=f"{BAD}=&.0", operation="relu", operands=(BAD,))
    walk = Walkthrough(
        title=note(BAD),
        grids={BAD: there, step.result: there},
        steps=(step,),
        model=BAD,
        text=BAD,
        notes=(note(BAD),),
    )
    shown = show_page(html(walk))
    shown.locator("#part-1 td").first.click()
    assert (
        shown.evaluate("new URLSearchParams(location.hash.slice(1)).get('cell')")
        == f"{BAD}=&.0.0.0"
    )
    shown.locator("#origin li button").click()
    assert shown.inner_text("#origin h2").startswith(BAD)
    assert shown.locator("img").count() == 0
    again = show_page(html(walk), shown.evaluate("location.hash.slice(1)"))
    assert (
        again.inner_text("#origin") == shown.inner_text("#origin").partition("\n\u2190")[0].rstrip()
    )


@pytest.mark.parametrize(
    ("fragment", "width", "scheme"),
    [("", 1280, "light"), ("cell=weights.0.1", 360, "dark")],
)
def test_no_barriers(show_page: Open, fragment: str, width: int, scheme: str) -> None:
    """axe-core finds no violation, whether a number is chosen or none."""
    size = {"width": width, "height": 800}
    shown = show_page(html(WALKS["seq2seq"]), fragment, color_scheme=scheme, viewport=size)
    assert barriers(shown) == []


def test_an_exercise_gives_nothing_away(show_page: Open) -> None:
    """A step that has a blank, or is made of one, tells no arithmetic; the solution tells all."""
    walk = example("self-attention")
    hidden = frozenset({("scores", 0, 1), ("weights", 2, 2)})
    names = {name for name, _, _ in hidden}
    steps = {step.result: step for step in walk.steps}
    seen = {
        tuple(one["at"]): one["text"] for one in see_cells(show_page(html(walk, blanks=hidden)))
    }
    assert seen.keys().isdisjoint(hidden)
    for (name, *_), text in seen.items():
        if name in steps and names & {name, *steps[name].operands}:
            assert text == "This step has blanks for you to fill in"
        else:
            assert ("given" in text) == (name not in steps)


def test_the_picture_of_the_gallery(show_page: Open, request: pytest.FixtureRequest) -> None:
    """The page that the docs show, on the weight of *animal*; `--rewrite-golden` takes the picture anew."""
    shown = show_page(
        (GALLERY / "walkthrough-page.html").read_text(encoding="utf-8"), "cell=weights.0.1"
    )
    if request.config.getoption("--rewrite-golden"):
        (GALLERY / "walkthrough-page.png").write_bytes(shown.screenshot())
    # in its own table, and in that by key
    assert shown.locator('td[data-is="made"]:visible').count() == 2 * 12
