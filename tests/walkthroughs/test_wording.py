"""What is said of the steps: in both languages, with shapes that are the grids' own."""

from __future__ import annotations

import re

import numpy as np
import pytest

from attnviz.text.messages import LANGUAGES
from attnviz.walkthroughs.operations import OPERATIONS, scale
from attnviz.walkthroughs.record import CalculationStep, Grid, Walkthrough
from attnviz.walkthroughs.texts import TEXTS
from attnviz.walkthroughs.wording import explain, formula_of, shapes_of
from tests.walkthroughs.by_hand import note

SHAPES = {
    "q": (1, 3),
    "K": (5, 3),
    "V": (5, 2),
    "W": (3, 3),
    "U": (7, 3),
    "C": (7, 3),
    "v": (1, 7),
    "s": (1, 5),
    "A": (5, 2),
    "c": (1, 2),
    "b": (1, 3),
    "m": (1, 5),
    "M": (3, 2),
    "d": (1, 2),
    "n": (1, 1),
    "R": (5, 6),
    "g": (1, 6),
    "H": (2, 6),
}


def step_of(operation: str, operands: tuple[str, ...], number: float | None) -> CalculationStep:
    """One step."""
    return CalculationStep(
        name="made", result="r", operation=operation, operands=operands, number=number
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", [*TEXTS, *OPERATIONS])
def test_every_step_and_grid_is_explained(name: str, language: str) -> None:
    """A title and a sentence in either language; an operation may be explained by its step."""
    told = explain(name, language)
    assert told.title
    if name in TEXTS:
        assert told.sentence.endswith((".", "다.", "니다."))
        assert bool(re.search("[가-힣]", told.title + told.sentence)) == (language == "ko")


def test_a_name_with_a_number_is_that_of_a_head() -> None:
    """``K_3`` is explained as K of head 3; a second residual sum is no head; a strange name explains itself."""
    assert explain("K_3").title == "Keys K, head 3"
    assert explain("K_3", "ko").title == "키 K, 헤드 3"
    assert explain("gain_2").title == "Gain 2"
    assert explain("norm_3").title == "Layer normalisation 3"
    assert explain("residual_2").title == "Residual connection, feed-forward"
    assert explain("own_name").title == "own name"


def test_grids_of_cross_attention_are_told_apart() -> None:
    """Where a layer has both attentions, a name says of which of them a grid is, and of which head."""
    assert explain("K_cross_3").title == "Keys K, cross attention, head 3"
    assert explain("Wo_cross").title == "Output weights Wo, cross attention"
    assert explain("Wo_cross", "ko").title == "출력 가중치 Wo, 교차 어텐션"
    assert explain("K_cross_3").sentence == explain("K").sentence
    assert explain("own_cross_3").title == "own cross 3"


@pytest.mark.parametrize(
    ("operation", "operands", "shape", "number", "formula", "shapes"),
    [
        ("add", ("q", "b"), (1, 3), None, "r = q + b", "(1, 3) = (1, 3) + (1, 3)"),
        ("projection", ("q", "M"), (1, 2), None, "r = q M", "(1, 2) = (1, 3) (3, 2)"),
        (
            "projection",
            ("q", "M", "d"),
            (1, 2),
            None,
            "r = q M + d",
            "(1, 2) = (1, 3) (3, 2) + (1, 2)",
        ),
        ("dot", ("q", "K"), (1, 5), None, "r = q K^T", "(1, 5) = (1, 3) (3, 5)"),
        ("general", ("q", "W", "K"), (1, 5), None, "r = q W K^T", "(1, 5) = (1, 3) (3, 3) (3, 5)"),
        (
            "additive",
            ("q", "K", "C", "U", "v"),
            (1, 5),
            None,
            "r = tanh(q C^T + K U^T) v^T",
            "(1, 5) = tanh((1, 3) (3, 7) + (5, 3) (3, 7)) (7, 1)",
        ),
        ("times", ("s",), (1, 5), 64**-0.5, "r = s * 0.125", "(1, 5) = (1, 5) * 0.125"),
        ("times", ("s",), (1, 5), 3**-0.5, "r = s / sqrt(3)", "(1, 5) = (1, 5) / sqrt(3)"),
        ("times", ("s",), (1, 5), 0.3, "r = s * 0.3", "(1, 5) = (1, 5) * 0.3"),
        ("softcap", ("s",), (1, 5), 50.0, "r = 50 tanh(s / 50)", "(1, 5) = 50 tanh((1, 5) / 50)"),
        ("mask", ("s", "m"), (1, 5), None, "r = mask(s)", "(1, 5) = mask((1, 5))"),
        ("softmax", ("s",), (1, 5), None, "r = softmax(s)", "(1, 5) = softmax((1, 5))"),
        (
            "softmax",
            ("s", "n"),
            (1, 5),
            None,
            "r = softmax(s and n)",
            "(1, 5) = softmax((1, 5) and (1, 1))",
        ),
        ("weigh", ("s", "V"), (5, 2), None, "r = s^T * V", "(5, 2) = (5, 1) * (5, 2)"),
        (
            "sum",
            ("A",),
            (1, 2),
            None,
            "r = sum of the rows of A",
            "(1, 2) = sum of 5 rows of (1, 2)",
        ),
        ("concatenate", ("q", "c"), (1, 5), None, "r = [q; c]", "(1, 5) = [(1, 3); (1, 2)]"),
        (
            "concatenate",
            ("c",) * 8,
            (1, 16),
            None,
            "r = [c; c; …; c]",
            "(1, 16) = [8 times (1, 2)]",
        ),
        (
            "norm",
            ("q", "b", "b"),
            (1, 3),
            1e-5,
            "r = (q - mean) / sqrt(variance + 1e-05) * b + b",
            "(1, 3) = ((1, 3) - mean) / sqrt(variance + 1e-05) * (1, 3) + (1, 3)",
        ),
        (
            "rms_norm",
            ("q", "b"),
            (1, 3),
            1e-6,
            "r = q / sqrt(mean square + 1e-06) * b",
            "(1, 3) = (1, 3) / sqrt(mean square + 1e-06) * (1, 3)",
        ),
        ("tanh", ("A",), (5, 2), None, "r = tanh(A)", "(5, 2) = tanh((5, 2))"),
        (
            "gru",
            ("m", "c", "R", "g", "H", "g"),
            (1, 2),
            None,
            "r = GRU(m, c)",
            "(1, 2) = GRU((1, 5), (1, 2))",
        ),
        ("split", ("K", "n"), (5, 1), 2.0, "r = split(K, n)", "(5, 1) = split((5, 3), (1, 1))"),
        ("rotate", ("m", "c"), (1, 5), 2.0, "r = rotate(m, c)", "(1, 5) = rotate((1, 5), (1, 2))"),
        ("row", ("K",), (1, 3), 2.0, "r = row 2 of K", "(1, 3) = row 2 of (5, 3)"),
        ("relu", ("q",), (1, 3), None, "r = max(0, q)", "(1, 3) = max(0, (1, 3))"),
        ("gelu", ("q",), (1, 3), None, "r = q Φ(q)", "(1, 3) = (1, 3) Φ((1, 3))"),
        (
            "gelu_tanh",
            ("q",),
            (1, 3),
            None,
            "r = q / 2 * (1 + tanh(sqrt(2 / pi) (q + 0.044715 q^3)))",
            "(1, 3) = (1, 3) / 2 * (1 + tanh(sqrt(2 / pi) ((1, 3) + 0.044715 (1, 3)^3)))",
        ),
        (
            "silu",
            ("q",),
            (1, 3),
            None,
            "r = q / (1 + exp(-q))",
            "(1, 3) = (1, 3) / (1 + exp(-(1, 3)))",
        ),
        ("product", ("q", "b"), (1, 3), None, "r = q * b", "(1, 3) = (1, 3) * (1, 3)"),
    ],
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
    step = step_of(operation, operands, number)
    before = CalculationStep(name="scores", result="s", operation="dot", operands=("q", "K"))
    steps = (before, step) if operands == ("s",) else (step,)
    names = dict.fromkeys(name for one in steps for name in one.operands)
    grids = {name: Grid(values=np.zeros(SHAPES[name])) for name in names} | {
        "s": Grid(values=np.zeros(SHAPES["s"])),
        "r": Grid(values=np.zeros(shape)),
    }
    walk = Walkthrough(title=note("made"), grids=grids, steps=steps)
    assert formula_of(step, walk=walk) == formula
    assert shapes_of(walk, step) == shapes


def test_words_of_formulas_are_korean() -> None:
    """Where a formula has words, they are of the language."""
    grids = {
        "A": Grid(values=np.ones((4, 3))),
        "b": Grid(values=np.ones((1, 3))),
        "r": Grid(values=np.ones((1, 3))),
    }
    for operation, operands, number, formula, shapes in (
        ("sum", ("A",), None, "r = A의 행의 합", "(1, 3) = (1, 3) 행 4개의 합"),
        ("row", ("A",), 2.0, "r = A의 2행", "(1, 3) = (4, 3)의 2행"),
        ("concatenate", ("A",) * 8, None, "r = [A; A; …; A]", "(1, 3) = [(4, 3) 8개]"),
        ("norm", ("A", "b", "b"), 1e-5, "r = (A - 평균) / sqrt(분산 + 1e-05) * b + b", None),
        ("rms_norm", ("A", "b"), 1e-5, "r = A / sqrt(제곱의 평균 + 1e-05) * b", None),
        ("relu", ("A",), None, "r = max(0, A)", "(1, 3) = max(0, (4, 3))"),
    ):
        step = step_of(operation, operands, number)
        walk = Walkthrough(title=note("made"), grids=grids, steps=(step,))
        assert formula_of(step, language="ko") == formula
        assert shapes is None or shapes_of(walk, step, language="ko") == shapes


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0.125, ("/ sqrt", 64.0)),
        (8**-0.5, ("/ sqrt", 8.0)),
        (1.0, ("*", 1.0)),
        (0.3, ("*", 0.3)),
        (-2.0, ("*", -2.0)),
    ],
)
def test_a_root_is_recognised(number: float, expected: tuple[str, float]) -> None:
    """1 / sqrt(64) is written so; 1 and 0.3 are no such thing."""
    assert scale(number) == expected
