"""A story as a value: paragraphs, tables and a picture. Lessons compute it, and views show it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypeAlias

import numpy as np

from attnviz.attention import Attention
from attnviz.result import Result
from attnviz.storage.encoding import to_text, with_nulls
from attnviz.text.display import decimals
from attnviz.text.messages import _, current_language

Cell: TypeAlias = str | int | float  # a float is shown with the decimals of its table


@dataclass(frozen=True, slots=True)
class Table:
    """A table of numbers and texts."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    digits: int = 3  # decimals of a float
    # the values with the lightest and the darkest shade; None for a table without shades
    shade: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A panel of shaded cells."""

    title: str
    values: np.ndarray  # [row, column]; nan for a masked cell
    rows: Sequence[str] = ()  # a label for each row; empty if rows have only numbers
    columns: Sequence[str] = ()
    row_title: str = field(default_factory=lambda: _("query"))
    column_title: str = field(default_factory=lambda: _("key"))
    limits: tuple[float, float] = (0.0, 1.0)  # values at the two ends of the colours
    diverging: bool = False  # whether the limits are symmetric around 0, with two colours


@dataclass(frozen=True, slots=True)
class Series:
    """A named series of numbers, perhaps with an interval around each."""

    name: str
    values: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    @classmethod
    def of(cls, name: str, estimates: Iterable[tuple[float, float, float]]) -> Series:
        """Return a series of estimates, each with a mean and the ends of its interval."""
        values, low, high = zip(*estimates, strict=True)
        return cls(name, values, low, high)


@dataclass(frozen=True, slots=True)
class Lines:
    """A panel of lines."""

    title: str
    x: Sequence[float]
    x_title: str
    series: Sequence[Series]
    y_title: str
    y_limits: tuple[float, float] | None = None  # None for the range of the values
    doubling: bool = False  # whether the x axis is logarithmic, in powers of 2
    y_doubling: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """A panel of bars; several series stand side by side."""

    title: str
    labels: Sequence[str]
    series: Sequence[Series]
    y_title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryView:
    """A sentence on a page, with the view of attention that it describes."""

    text: str
    sentence: str = ""  # the input of the model, on a page in which the model runs
    record: int = 0  # the index of the record, on a page with records
    head: tuple[int, int] | None = None  # layer and head; None for all heads
    query: int | None = None
    key: int | None = None
    step: str = ""  # the name of the step of the calculation that is open


Panel: TypeAlias = Matrix | Lines | Bars


@dataclass(frozen=True, slots=True, kw_only=True)
class Story(Result):
    """A demo with its text, tables and panels."""

    ENDINGS = (".png", ".svg", ".pdf", ".html", ".json")

    name: str = ""
    title: str
    parts: Sequence[str | Table]  # paragraphs and tables, in reading order
    picture: Sequence[Panel]
    main: int = 0  # the index of the panel that shows the title's finding, which is drawn largest
    receipt: str  # how the numbers were verified, or their formula
    views: Sequence[StoryView] = ()  # views of attention, which only the page shows
    records: Sequence[Attention] = ()  # for the views; empty if the model runs in the page
    language: str = field(default_factory=current_language)

    def __repr__(self) -> str:
        return f"<Story {self.name!r}: {self.title}>"


def cell_text(cell: Cell, digits: int) -> str:
    """Format a cell of a table; a dash stands for a missing number."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    return "-" if math.isnan(cell) else decimals(cell, digits)


def typeset(text: str) -> str:
    """Return a text with formulas as a book prints them; a terminal shows them in plain letters."""
    for plain, printed in (("sqrt(", "√("), ("√(d_k)", "√d_k"), ("d_k", "dₖ"), ("K^T", "Kᵀ")):
        text = text.replace(plain, printed)
    return text


def is_number(cell: Cell) -> bool:
    """Return whether a cell is a number, or text such as ``99.6%`` or ``0.98 (0.95 to 1.00)``."""
    number = r"[-+\u2212]?\d[\d.,]*%?( \(.*\))?"
    return not isinstance(cell, str) or re.fullmatch(number, cell) is not None


def to_json(story: Story) -> str:
    """Return the story as JSON; null stands for a masked or missing number."""
    parts = [
        {"text": part} if isinstance(part, str) else {"table": asdict(part)} for part in story.parts
    ]
    content = {
        "format": "attnviz-story",
        "version": 1,
        "name": story.name,
        "title": story.title,
        "parts": parts,
        "picture": [{type(panel).__name__.lower(): asdict(panel)} for panel in story.picture],
        "receipt": story.receipt,
    }
    return to_text(with_nulls(content), "the story")
