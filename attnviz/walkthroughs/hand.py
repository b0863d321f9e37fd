"""Numbers, sums and products written out, so that the reader can check them by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.text.messages import _

LARGE = 1e6  # numbers at least this large are written with a power of ten
ZEROS = "000"  # the decimals of a number that rounds to an integer but is none
MANY = 3  # with a higher precision, the user wants to see small numbers too
MOST = 6  # most terms of a sum that are written; in a longer sum the middle is added up
HEAD, TAIL = 3, 1  # terms of a long sum before and after its middle
# In a table with few digits, a number that is closer to 0 is written `NEARLY_ZERO`.
TINY, NEARLY_ZERO = 1e-6, "≈ 0"
BLANK = "____"  # a number that a learner fills in, which is NaN
NEAR = 1e-13  # relative rounding error of double precision: closer numbers are equal


def format_number(value: float, digits: int) -> str:
    """Return a number with `digits` decimals.

    Integers have no decimals; a number that only rounds to an integer has at most three zeros. A number too small for
    `digits` decimals gets two more, and a still smaller or a very large one a power of ten, so that "0" is exactly 0.
    Infinity is "∞", and NaN is a blank.
    """
    if math.isnan(value):
        return BLANK
    if math.isinf(value):
        return "-∞" if value < 0 else "∞"
    if value == int(value) and abs(value) < LARGE:
        return str(int(value))
    if 10**-digits <= abs(value) < LARGE:
        rounded = f"{value:.{digits}f}"
        is_whole = digits > len(ZEROS) and not rounded.partition(".")[2].strip("0")
        return rounded.partition(".")[0] + f".{ZEROS}" if is_whole else rounded
    if 10 ** -(digits + 1) <= abs(value) < 1:
        return f"{value:.{digits + 2}f}"
    return f"{value:.{digits}e}"


def one_format(values: np.ndarray, digits: int) -> Callable[[float], str]:
    """Return a function that writes all numbers of a table in one format: integers, decimals, or powers of ten.

    Powers of ten are used if a number is very large, if all are too small for `digits` decimals, or if one is too small
    and the user asks for many digits. Exactly 0 is always "0"; a number below `TINY` that rounds to 0 is "≈ 0".
    """
    amounts = np.abs(values[np.isfinite(values) & (values != 0)])
    small, large = amounts.min(initial=np.inf), amounts.max(initial=0)
    if large < LARGE and bool((amounts == np.rint(amounts)).all()):
        form = ".0f"
    elif large >= LARGE or large < 10**-digits or (digits > MANY and small < 10**-digits):
        form = f".{digits}e"
    else:
        form = f".{digits}f"

    def write(value: float) -> str:
        if value == 0 or not math.isfinite(value):
            return format_number(value, digits)
        text = f"{value:{form}}"
        if float(text) == 0:
            return NEARLY_ZERO if abs(value) < TINY else text.removeprefix("-")
        return text

    return write


@dataclass(frozen=True, slots=True)
class Hand:
    """A writer for the arithmetic of a cell, which remembers the numbers that it wrote."""

    digits: int  # decimals of each number
    numbers: list[float]  # each number written so far

    def write(self, value: float) -> str:
        """Write a number, and remember it, so that `is_exact` can tell whether it was rounded."""
        self.numbers.append(float(value))
        return format_number(float(value), self.digits)

    def factor(self, value: float) -> str:
        """Write a number next to an operator, in brackets if it is negative."""
        text = self.write(value)
        return f"({text})" if text.startswith("-") else text

    def add(self, values: Sequence[float], write: Callable[[int], str]) -> str:
        """Write a sum; `write` gets the index of a term. In a long sum the terms in the middle are added up."""
        n = len(values)
        if n <= MOST:
            return " + ".join(map(write, range(n)))
        first, last = [*map(write, range(HEAD))], [*map(write, range(n - TAIL, n))]
        total = self.write(math.fsum(values[HEAD:-TAIL]))
        middle = _("[{n} more terms: {total}]").format(n=n - HEAD - TAIL, total=total)
        return " + ".join([*first, middle, *last])

    def products(self, a: np.ndarray, b: np.ndarray) -> str:
        """Write the dot product of two vectors as a sum of products."""
        values = (a * b).tolist()
        return self.add(values, lambda i: f"{self.factor(a[i])}·{self.factor(b[i])}")

    def is_exact(self) -> bool:
        """Return whether all numbers so far were written without rounding."""
        finite = [value for value in self.numbers if not math.isinf(value)]
        return all(
            math.isclose(value, float(format_number(value, self.digits)), rel_tol=NEAR)
            for value in finite
        )
