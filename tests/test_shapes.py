"""The shapes in attnviz's signatures are checked while these tests run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from jaxtyping import Float, TypeCheckError

from attnviz.attention import Attention, indices_of
from attnviz.walkthroughs.arithmetic import norm, softmax
from attnviz.walkthroughs.record import Grid
from tests.fixtures.shapes import has_shape


def test_a_wrong_shape_is_refused() -> None:
    """Axes of one name are equal, and one of the name 1 is 1; fields of a dataclass likewise."""
    with pytest.raises(TypeCheckError, match="softmax"):
        softmax(np.zeros((2, 3)), np.zeros((2, 1)))
    with pytest.raises(TypeCheckError, match="norm"):
        norm(np.zeros((2, 3)), np.zeros((1, 3)), np.zeros((1, 4)), 1e-5)
    with pytest.raises(TypeCheckError, match="Grid"):
        Grid(values=np.zeros(3))


@dataclass
class _Shaped:
    values: tuple[Float[np.ndarray, " row"], ...] | None


def test_what_has_a_shape() -> None:
    """Functions, methods, properties and classes, the annotation however deep; not those without one."""

    def deep(rows: list[dict[str, Float[np.ndarray, "a b"]]]) -> None: ...

    assert [has_shape(one) for one in (deep, _Shaped, Attention)] == [True, True, True]
    assert [has_shape(one) for one in (indices_of, Attention.__repr__, TypeCheckError)] == [
        False,
        False,
        False,
    ]
