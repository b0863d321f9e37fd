"""An operation from outside: one entry, and it is computed, written out, drawn, put on a page, saved and verified."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.errors import FileFormatError, RecordError
from attnviz.render.terminal.screen import Screen
from attnviz.walkthroughs import operations
from attnviz.walkthroughs.calculation import Calculation, spell_out
from attnviz.walkthroughs.figure.sheet import draw
from attnviz.walkthroughs.files import load
from attnviz.walkthroughs.operations import CELLS, Operation, Text
from attnviz.walkthroughs.pages.html import page as web_page
from attnviz.walkthroughs.pages.markdown import markdown
from attnviz.walkthroughs.record import Grid
from attnviz.walkthroughs.terminal.steps import draw_walk
from attnviz.walkthroughs.verify import FORMULAS, verify
from attnviz.walkthroughs.view import View
from attnviz.walkthroughs.wording import formula_of, shapes_of

if TYPE_CHECKING:
    from pathlib import Path

    from attnviz.walkthroughs.record import Walkthrough

HARDEN = Operation(
    compute=lambda a, b, number: a * b**number,
    axes="TN 1n -> tn",
    numbered=True,
    formula=("{a} * {b}^{number}",),
    signs=(CELLS,),
    spell=lambda hand, cell: (
        f"{hand.factor(cell.values[0])}·{hand.factor(cell.values[1])}^{hand.write(cell.number)}"
    ),
    text=Text(
        ("Hardening", "Each number is multiplied by a power."),
        ("굳히기", "각 수에 거듭제곱을 곱합니다."),
    ),
)


@pytest.fixture
def walk(monkeypatch: pytest.MonkeyPatch) -> Walkthrough:
    """A calculation with an operation that attnviz does not have."""
    monkeypatch.setitem(operations.OPERATIONS, "harden", HARDEN)
    monkeypatch.setitem(FORMULAS, "harden", lambda a, powers, number: a * powers**number)
    c = Calculation()
    c.give("X", Grid(values=np.array([[3.0, 5.0]]), rows=("love",), columns=("u", "v")))
    c.give("P", Grid(values=np.array([[2.0, -1.0]])))
    c.step("harden", "H", "harden", "X", "P", number=3.0)
    return c.finish("An operation of my own")


def test_it_is_computed_and_written_out(walk: Walkthrough) -> None:
    """Its numbers, the names of rows and columns, formula, shapes and one cell by hand."""
    grid, step = walk.grids["H"], walk.steps[0]
    assert grid.values.tolist() == [[24.0, -5.0]]
    assert (grid.rows, grid.columns) == (("love",), ("u", "v"))
    assert formula_of(step) == "H = X * P^3"
    assert shapes_of(walk, step) == "(1, 2) = (1, 2) * (1, 2)^3"
    assert spell_out(walk, step, 0, 1, 3) == "5·(-1)^3 = -5"


def test_it_is_drawn_in_the_terminal(walk: Walkthrough) -> None:
    """With title, formula, sentence and the cell."""
    screen = Screen(width=100, colour=False)
    text = "\n".join(line.plain for line in draw_walk(walk, screen))
    for part in (
        "1. Hardening",
        "H = X ⊙ P^3",
        "Each number is multiplied by a power.",
        "H, u: 3·2^3 = 24",
    ):
        assert part in text


def test_it_is_drawn_as_a_figure(walk: Walkthrough) -> None:
    """The sheet has its matrices, its sign between them, and its title in Korean."""
    (card,) = View(walk=walk, lang="ko").cards()
    assert [sign for sign, _ in card.parts] == ["", CELLS, "→"]
    shown = draw(walk, lang="ko").figure.axes[0].texts
    assert "굳히기" in [text.get_text() for text in shown]


@pytest.mark.parametrize("page", [markdown, web_page])
def test_it_is_on_every_page(walk: Walkthrough, page: object) -> None:
    """As every other step."""
    assert callable(page)
    made = page(walk)
    text = getattr(made, "content", made)
    assert "Hardening" in text
    assert "Each number is multiplied by a power." in text


def test_it_is_saved_and_verified(walk: Walkthrough, tmp_path: Path) -> None:
    """A right file passes, a wrong cell is found; where nobody added it, the file is refused."""
    path = walk.save(tmp_path / "walk.json")
    assert load(path).grids["H"].values.tolist() == [[24.0, -5.0]]
    assert verify(path).fault == ""
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields["grids"]["H"]["values"][0][1] = -5.5
    path.write_text(json.dumps(fields), encoding="utf-8")
    assert "column 1 (v): the file says -5.5, recomputed it is -5.0" in verify(path).fault
    del operations.OPERATIONS["harden"]
    with pytest.raises(FileFormatError, match="there is no operation 'harden'"):
        verify(path)


def test_its_shapes_are_checked(walk: Walkthrough) -> None:
    """As the entry says."""
    c = Calculation()
    c.give("X", walk.grids["X"])
    c.give("P", Grid(values=np.ones((1, 3))))
    with pytest.raises(RecordError, match="step harden: P has 3 columns, but X has 2 columns"):
        c.step("harden", "H", "harden", "X", "P", number=2.0)
