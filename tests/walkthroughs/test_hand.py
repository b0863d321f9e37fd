"""Numbers as they are shown: what is not 0 never looks like it, and what is whole has no decimals."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnviz.walkthroughs.hand import format_number


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [
        (60.0, 3, "60"),
        (-0.0, 3, "0"),
        (0.5, 3, "0.500"),
        (2.86251858e-20, 8, "2.86251858e-20"),
        (2.86251858e-20, 3, "2.863e-20"),
        (0.99999999998611, 8, "1.000"),
        (10.00000001, 8, "10.00000001"),
        (0.99999999998611, 2, "1.00"),
        (0.00027, 3, "0.00027"),
        (0.00002, 3, "2.000e-05"),
        (12345678.25, 2, "1.23e+07"),
        (0.4, 0, "0.40"),
        (-math.inf, 3, "-∞"),
    ],
)
def test_a_number_is_written_as_a_person_would(value: float, digits: int, expected: str) -> None:
    """Whole numbers have no point, small ones keep their digits, tiny ones have a power of ten."""
    assert format_number(value, digits) == expected


@given(st.floats(-1e300, 1e300), st.integers(0, 17))
def test_what_is_shown_is_near_and_is_zero_for_zero_alone(value: float, digits: int) -> None:
    """No number but 0 is shown as 0, and what is shown differs by no more than its last digit."""
    shown, exact = Fraction(format_number(value, digits)), Fraction(value)
    assert (shown == 0) == (exact == 0)
    assert abs(shown - exact) <= Fraction(1, 2 * 10**digits) * max(Fraction(1), abs(exact))
