"""How arithmetic is written out so that a person can do it by hand: numbers, products and sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attnviz.text.numbers import shown

MOST = 6
"""Terms that a sum is written with; of a longer one those in the middle are counted and summed up."""
HEAD, TAIL = 3, 1
"""Terms of a long sum before and after its middle."""
NEAR = 1e-13
"""Relative difference that double precision makes by itself: numbers nearer than this are equal."""

_MORE = {"en": "[{n} more terms: {total}]", "ko": "[나머지 {n}개 항의 합: {total}]"}


@dataclass(frozen=True, slots=True)
class Hand:
    """What the arithmetic of a cell is written with; `numbers` collects all that is shown.

    Attributes:
        digits: after the point of each number.
        language: ``en`` or ``ko``.
        numbers: each number written so far.
    """

    digits: int
    language: str
    numbers: list[float]

    def write(self, value: float) -> str:
        """A number; it is remembered, to know in the end whether anything was rounded."""
        self.numbers.append(float(value))
        return shown(float(value), self.digits)

    def factor(self, value: float) -> str:
        """A number that stands behind an operator: in brackets where it is negative."""
        text = self.write(value)
        return f"({text})" if text.startswith("-") else text

    def add(self, values: Sequence[float], write: Callable[[int], str]) -> str:
        """A sum of terms, of which `write` writes the one of a number; in the middle shortened where there are many."""
        n = len(values)
        if n <= MOST:
            return " + ".join(map(write, range(n)))
        first, last = [*map(write, range(HEAD))], [*map(write, range(n - TAIL, n))]
        total = self.write(math.fsum(values[HEAD:-TAIL]))
        return " + ".join([*first, _MORE[self.language].format(n=n - HEAD - TAIL, total=total), *last])

    def products(self, a: Sequence[float], b: Sequence[float]) -> str:
        """A sum of products."""
        values = [x * y for x, y in zip(a, b, strict=True)]
        return self.add(values, lambda i: f"{self.factor(a[i])}·{self.factor(b[i])}")

    def is_exact(self) -> bool:
        """Whether no number written was rounded."""
        return all(
            math.isinf(value) or math.isclose(value, float(shown(value, self.digits)), rel_tol=NEAR)
            for value in self.numbers
        )
