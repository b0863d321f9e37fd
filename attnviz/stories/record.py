"""A story: sentences, tables and a picture, as a value. Demos compute one, views show it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TypeAlias

import numpy as np

from attnviz.storage.encoding import to_text, with_nulls

Cell: TypeAlias = str | int | float
"""What a table holds; a float is shown with the table's digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Numbers with their names.

    Attributes:
        title: what the table shows, in one line.
        columns: a name for each column.
        rows: one cell for each column.
        digits: how many stand after the point of a float.
        shade: the values that the lightest and the darkest shade stand for; None shades nothing.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    digits: int = 3
    shade: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matrix:
    """A panel of shaded cells.

    Attributes:
        title: what it shows.
        values: the numbers [row, column]; nan for a cell that is masked, and so has no number.
        rows: a label for each row; empty where they are only counted.
        columns: likewise.
        row_title: what the rows are.
        column_title: what the columns are.
        limits: the values at the two ends of the colours.
        diverging: whether the middle of the limits is a zero from which both sides differ.
    """

    title: str
    values: np.ndarray
    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    row_title: str = "query"
    column_title: str = "key"
    limits: tuple[float, float] = (0.0, 1.0)
    diverging: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One row of numbers with its name, and perhaps the interval that each lies in.

    Attributes:
        name: as the legend says it.
        values: one for each place.
        low: the intervals' lower ends; empty where there is none.
        high: their upper ends.
    """

    name: str
    values: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A panel of lines over numbers.

    Attributes:
        title: what it shows.
        x: the places.
        x_title: what the places are.
        series: the lines.
        y_title: what the values are.
        y_limits: the ends of the axis; None where the values decide.
        doubling: whether the places double, so that equal ratios stand at equal distances.
        y_doubling: likewise the values.
    """

    title: str
    x: tuple[float, ...]
    x_title: str
    series: tuple[Series, ...]
    y_title: str
    y_limits: tuple[float, float] | None = None
    doubling: bool = False
    y_doubling: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A panel of bars over words, side by side where there are several series.

    Attributes:
        title: what it shows.
        labels: what the bars stand for.
        series: their lengths.
        y_title: what the lengths are.
    """

    title: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    y_title: str


Panel: TypeAlias = Matrix | Lines | Bars


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What a demo tells.

    Attributes:
        name: the demo's name.
        title: what it is about, in one line.
        parts: paragraphs and tables, in the order to be read.
        picture: the panels of its picture, from left to right.
        receipt: how the numbers were proved, or from which formula they are computed, in one line.
    """

    name: str
    title: str
    parts: tuple[str | Table, ...]
    picture: tuple[Panel, ...]
    receipt: str


def to_json(story: Story) -> str:
    """The story for programs: its sentences, its tables and the numbers of its panels; null for what is no number."""
    fields = {
        "name": story.name,
        "title": story.title,
        "parts": [{"text": part} if isinstance(part, str) else {"table": asdict(part)} for part in story.parts],
        "picture": [{type(panel).__name__.lower(): asdict(panel)} for panel in story.picture],
        "receipt": story.receipt,
    }
    return to_text(with_nulls(fields), "the story")
