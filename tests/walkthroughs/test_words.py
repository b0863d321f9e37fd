"""Texts of the steps: in both languages, with the shapes of the grids."""

from __future__ import annotations

import numpy as np
import pytest

from attnviz.text.messages import language
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.wording import explain, formula_of, shapes_of
from tests.walkthroughs.by_hand import note

SHAPES = {
    **{"q": (1, 3), "K": (5, 3), "W": (3, 3), "U": (7, 3), "C": (7, 3), "v": (1, 7)},
    **{"s": (1, 5), "A": (5, 2), "b": (1, 3), "M": (3, 2), "d": (1, 2), "n": (1, 1)},
}


@pytest.mark.parametrize(
    ("name", "english", "korean"),
    [
        ("K_3", "Keys K, head 3", "키 K, 헤드 3"),
        ("K_cross_3", "Keys K, cross attention, head 3", "키 K, 크로스 어텐션, 헤드 3"),
        ("own_name", "own name", "own name"),
    ],
)
def test_grids_of_heads_and_strange_names(name: str, english: str, korean: str) -> None:
    """``K_3`` is K of head 3; where a layer has both attentions, a name says of which; others explain themselves."""
    assert explain(name)[0] == english
    with language("ko"):
        assert explain(name)[0] == korean


FORMULAS = [
    ("add", ("q", "b"), (1, 3), None, "q + b", "(1, 3) + (1, 3)"),
    ("projection", ("q", "M", "d"), (1, 2), None, "q M + d", "(1, 3) (3, 2) + (1, 2)"),
    ("dot", ("q", "K"), (1, 5), None, "q Kᵀ", "(1, 3) (3, 5)"),
    ("general", ("q", "W", "K"), (1, 5), None, "q W Kᵀ", "(1, 3) (3, 3) (3, 5)"),
    (
        "additive",
        ("q", "K", "U", "C", "v"),
        (1, 5),
        None,
        "tanh(q Uᵀ + K Cᵀ) vᵀ",
        "tanh((1, 3) (3, 7) + (5, 3) (3, 7)) (7, 1)",
    ),
    ("times", ("s",), (1, 5), 3**-0.5, "s / √3", "(1, 5) / √3"),
    ("softmax", ("s", "n"), (1, 5), None, "softmax(s and n)", "softmax((1, 5) and (1, 1))"),
    ("weigh", ("s", "A"), (5, 2), None, "sᵀ ⊙ A", "(5, 1) ⊙ (5, 2)"),
    ("sum", ("A",), (1, 2), None, "sum of the rows of A", "sum of the rows of (5, 2)"),
    ("concatenate", ("d",) * 8, (1, 16), None, "[d; d; …; d]", "[(1, 2); (1, 2); …; (1, 2)]"),
    ("row", ("K",), (1, 3), 2.0, "row 2 of K", "row 2 of (5, 3)"),
    ("relu", ("q",), (1, 3), None, "max(0, q)", "max(0, (1, 3))"),
]


@pytest.mark.parametrize(
    ("operation", "operands", "shape", "number", "formula", "shapes"), FORMULAS
)
def test_formulas_have_the_names_and_shapes_of_the_grids(
    operation: str,
    operands: tuple[str, ...],
    shape: tuple[int, int],
    number: float | None,
    formula: str,
    shapes: str,
) -> None:
    """Each operation is written with the names and with the shapes of its operands, turned where it turns them."""
    before = CalculationStep(name="scores", result="s", operation="dot", operands=("q", "K"))
    step = CalculationStep(
        name="made", result="r", operation=operation, operands=operands, number=number
    )
    grids = {name: Grid(values=np.zeros(SHAPES[name])) for name in {"q", "K", "s", *operands}}
    grids["r"] = Grid(values=np.zeros(shape))
    walked = Walkthrough(title=note("made"), grids=grids, steps=(before, step))
    assert formula_of(walked, step) == f"r = {formula}"
    assert shapes_of(walked, step) == f"{shape} = {shapes}"
