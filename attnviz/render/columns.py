"""A column of a table, which a terminal, a picture and a page draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; all columns of a table have the same number of cells."""

    title: str
    cells: Sequence[Any]  # texts from top to bottom, in a terminal with their styles
    right: bool = False  # whether the cells are aligned on the right, as numbers are
    # The smallest width in a narrow terminal, if the column may be narrower than its widest cell; 0 if it may not.
    least: int = 0
    spare: int = 0  # a narrow terminal leaves out the columns with the largest numbers first
    roles: Sequence[Any] = ()  # of a table of heads: the role of each cell, which gives its colour
