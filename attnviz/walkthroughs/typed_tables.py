"""Tables of numbers typed by hand: read with their lines, and held against one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64

from attnviz.errors import FileFormatError
from attnviz.walkthroughs.typed_lines import Line
from attnviz.walkthroughs.verify.saved import named, number

ONE_ROW = ("v", "bq", "bk", "bv", "bo")
"""Numbers of one row; these, and a query, may be typed without a list around the row."""


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers as they were typed.

    Attributes:
        name: in the file.
        line: likewise.
        values: the numbers [row, column].
    """

    name: str
    line: int
    values: Float64[np.ndarray, "row column"]

    def size(self, side: str) -> int:
        """How many ``rows`` or ``columns``."""
        return int(self.values.shape[side == "columns"])


def read_table(name: str, field: Line) -> Table:
    """A matrix, or one row of numbers where that may be.

    Raises:
        FileFormatError: it is no table of numbers, or its rows differ in length; the message says where.
    """
    rows = field.value
    if not isinstance(rows, list):
        raise FileFormatError(f"line {field.line}: {name} must be a list of numbers, not {named(rows)}")
    if name in (*ONE_ROW, "query") and not any(isinstance(row.value, list) for row in rows):
        rows = [Line(rows, field.line)]
    if not rows:
        raise FileFormatError(f"line {field.line}: {name} is empty")
    values: list[list[float]] = []
    for i, row in enumerate(rows):
        where = f"line {row.line}: row {i} of {name}"
        if not isinstance(row.value, list):
            raise FileFormatError(f"{where} must be a list of numbers, not {named(row.value)}")
        if not row.value:
            raise FileFormatError(f"{where} is empty")
        values.append([number(cell.value, f"line {cell.line}: {name}[{i}][{j}]") for j, cell in enumerate(row.value)])
        if len(values[i]) != len(values[0]):
            raise FileFormatError(f"{where} has {len(values[i])} numbers, but row 0 has {len(values[0])}")
    if name in ONE_ROW and len(values) > 1:
        raise FileFormatError(f"line {field.line}: {name} must be one row, not {len(values)}")
    return Table(name, field.line, np.array(values))


def match(one: Table, side: str, other: Table, other_side: str) -> None:
    """Refuse two tables of which two sizes clash.

    Raises:
        FileFormatError: they do; the message names both, and their lines.
    """
    if one.size(side) != other.size(other_side):
        raise FileFormatError(
            f"{one.name} (line {one.line}) has {one.size(side)} {side}, but {other.name} (line {other.line}) has "
            f"{other.size(other_side)} {other_side}"
        )


def expect(one: Table, side: str, wanted: int, what: str) -> None:
    """Refuse a table whose size is not what something else makes it.

    Raises:
        FileFormatError: it is not.
    """
    if one.size(side) != wanted:
        raise FileFormatError(f"{one.name} (line {one.line}) has {one.size(side)} {side}, but {what} is {wanted}")
