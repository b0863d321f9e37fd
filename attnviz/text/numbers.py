"""Numbers as a person reads them: as short as asked, and never a zero that is none."""

from __future__ import annotations

import math

LARGE = 1e6
"""From here on a number is written with a power of ten."""

ZEROS = "000"
"""What stands behind the point of a number that is nearly whole."""


def shown(value: float, digits: int) -> str:
    """A number with so many digits after its point; what is whole has none, what only rounds to it three zeros at most.

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


def is_exact(value: float, digits: int) -> bool:
    """Whether a number is what is shown of it, nothing rounded off."""
    return math.isinf(value) or float(shown(value, digits)) == value
