"""Numbers, sums and products written so that a person can check them by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.text.messages import _, in_language

LARGE = 1e6  # from here on a number is written with a power of ten
ZEROS = "000"  # what stands behind the point of a number that is nearly whole
MANY = 3  # more digits than these are asked for by who wants to see small numbers too
MOST = 6  # terms that a sum is written with; of a longer one those in the middle are counted and summed up
HEAD, TAIL = 3, 1  # terms of a long sum before and after its middle
NEAR = 1e-13  # relative difference that double precision makes by itself: numbers nearer than this are equal
_MORE = _("[{n} more terms: {total}]")


def format_number(value: float, digits: int) -> str:
    """Return a number with so many decimals; a whole number has none, one that only rounds to it three zeros at most.

    A number too small for that has two digits more, one that is too small or too large even then a power of ten, so
    that "0" is exactly 0. Infinity is "∞".
    """
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
    """Return the function that writes all numbers of one table alike: whole, with decimals, or with powers of ten.

    Powers of ten are for numbers that would all be too large or too small, and where many digits are asked for, for any
    too small. Exactly 0 is "0" in each.
    """
    amounts = np.abs(values[np.isfinite(values) & (values != 0)])
    small, large = amounts.min(initial=np.inf), amounts.max(initial=0)
    if large < LARGE and bool((amounts == np.rint(amounts)).all()):
        form = ".0f"
    elif large >= LARGE or large < 10**-digits or (digits > MANY and small < 10**-digits):
        form = f".{digits}e"
    else:
        form = f".{digits}f"
    return lambda value: (
        format_number(value, digits) if value == 0 or math.isinf(value) else f"{value:{form}}"
    )


@dataclass(frozen=True, slots=True)
class Hand:
    """Writes the arithmetic of a cell, and remembers its numbers."""

    digits: int  # after the point of each number
    language: str  # ``en`` or ``ko``
    numbers: list[float]  # each number written so far

    def write(self, value: float) -> str:
        """Write a number, and remember it to know whether anything was rounded."""
        self.numbers.append(float(value))
        return format_number(float(value), self.digits)

    def factor(self, value: float) -> str:
        """Write a number behind an operator, in brackets if it is negative."""
        text = self.write(value)
        return f"({text})" if text.startswith("-") else text

    def add(self, values: Sequence[float], write: Callable[[int], str]) -> str:
        """Write a sum, each term by its number; of many terms those in the middle are summed up."""
        n = len(values)
        if n <= MOST:
            return " + ".join(map(write, range(n)))
        first, last = [*map(write, range(HEAD))], [*map(write, range(n - TAIL, n))]
        total = self.write(math.fsum(values[HEAD:-TAIL]))
        more = _MORE.format(n=n - HEAD - TAIL, total=total)
        return " + ".join([*first, in_language(more, self.language), *last])

    def products(self, a: np.ndarray, b: np.ndarray) -> str:
        """Write a sum of products."""
        values = (a * b).tolist()
        return self.add(values, lambda i: f"{self.factor(a[i])}·{self.factor(b[i])}")

    def is_exact(self) -> bool:
        """Return whether no number written was rounded."""
        finite = [value for value in self.numbers if not math.isinf(value)]
        return all(
            math.isclose(value, float(format_number(value, self.digits)), rel_tol=NEAR)
            for value in finite
        )
