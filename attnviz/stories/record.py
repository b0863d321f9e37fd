"""A story: sentences, tables and a picture, as a value. Demos compute one, views show it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from attnviz.attention import Attention
from attnviz.render.names import DEFAULT
from attnviz.storage.encoding import to_text, with_nulls
from attnviz.text.messages import _, in_language, korean

if TYPE_CHECKING:
    from attnviz.pages import WebPage
    from attnviz.render.figure.style import StyleName

Cell: TypeAlias = str | int | float  # what a table holds; a float is shown with the table's digits


@dataclass(frozen=True, slots=True)
class Table:
    """Numbers with their names."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    digits: int = 3  # after the point of a float
    # the values of the lightest and of the darkest shade; None shades nothing
    shade: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """A panel of shaded cells."""

    title: str
    values: np.ndarray  # [row, column]; nan for a cell that is masked, and so has no number
    rows: tuple[str, ...] = ()  # a label for each row; empty where they are only counted
    columns: tuple[str, ...] = ()  # likewise
    row_title: str = _("query")
    column_title: str = _("key")
    limits: tuple[float, float] = (0.0, 1.0)  # the values at the two ends of the colours
    # whether the middle of the limits is a zero from which both sides differ
    diverging: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One row of numbers with its name, and perhaps the interval that each lies in."""

    name: str
    values: tuple[float, ...]
    low: tuple[float, ...] = ()  # the lower ends of the intervals; empty where there are none
    high: tuple[float, ...] = ()

    @classmethod
    def of(cls, name: str, estimates: Iterable[tuple[float, float, float]]) -> Series:
        """Means, each with the two ends of its interval."""
        values, low, high = zip(*estimates, strict=True)
        return cls(name=name, values=values, low=low, high=high)

    @classmethod
    def each(cls, rows: Mapping[str, Iterable[float]]) -> tuple[Series, ...]:
        """Rows of numbers by their names."""
        return tuple(cls(name=name, values=tuple(map(float, row))) for name, row in rows.items())


@dataclass(frozen=True, slots=True)
class Lines:
    """A panel of lines over numbers."""

    title: str
    x: tuple[float, ...]
    x_title: str
    series: tuple[Series, ...]
    y_title: str
    # the ends of the axis; None where the values decide
    y_limits: tuple[float, float] | None = None
    # whether the places double, so that equal ratios stand at equal distances
    doubling: bool = False
    y_doubling: bool = False  # likewise the values


@dataclass(frozen=True, slots=True)
class Bars:
    """A panel of bars over words, side by side where there are several series."""

    title: str
    labels: tuple[str, ...]
    series: tuple[Series, ...]
    y_title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryView:
    """A sentence of a page, and the view that it speaks of."""

    text: str
    sentence: str = ""  # what the model reads, where it runs in the page
    record: int = 0  # else the number of the story's record that is shown
    head: tuple[int, int] | None = None  # the layer and the head; None for all of them
    query: int | None = None  # the word whose row is looked at
    key: int | None = None  # the word that it looks at
    step: str = ""  # of the calculation that is open


Panel: TypeAlias = Matrix | Lines | Bars


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A demo with all its text, tables and panels."""

    ENDINGS = (".png", ".svg", ".pdf", ".html", ".json")

    name: str = ""
    title: str
    parts: tuple[str | Table, ...]  # paragraphs and tables, in the order to be read
    picture: tuple[Panel, ...]  # from left to right
    receipt: (
        str  # how the numbers were proved, or from which formula they are computed, in one line
    )
    views: tuple[StoryView, ...] = ()  # what its page shows beside text, tables and panels
    # what the views show; none where the model runs in the page
    records: tuple[Attention, ...] = ()
    language: str = "en"
    original: Story | None = None  # in both languages, where this one is in Korean alone

    def __repr__(self) -> str:
        return f"<Story {self.name!r}: {self.title}>"

    def say(self, text: str) -> str:
        """Return a text in the language of the story."""
        return in_language(text, self.language)

    def translated(self, language: str) -> Story:
        """The story, which is in English, in a language of `attnviz.text.messages.LANGUAGES`."""
        if language == self.language:
            return self
        if self.original is not None:
            return self.original
        return replace(
            korean(replace(self, records=())),
            records=self.records,
            language=language,
            original=self,
        )

    def page(self, lang: str | None = None, palette: str = DEFAULT) -> WebPage:
        """The story as a page: its text, tables and panels, and live views where it speaks of patterns.

        It has both languages; None opens it in the story's own.

        Raises:
            SelectionError: a palette or a language that is not there.
        """
        from attnviz.stories.html import page

        return page(self, palette=palette, lang=lang)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        palette: str = DEFAULT,
        style: StyleName = "sheet",
        width: str | None = None,
        dpi: int | None = None,
        lang: str | None = None,
    ) -> Path:
        """Write it by the path's ending: its numbers (`.json`), a page (`.html`), or its panels as a picture.

        Raises:
            OutputError: another ending, or a file that cannot be written.
            SelectionError: a palette that is not there.
            SettingsError: a style or width that no picture has.
        """
        from attnviz.storage.files import check_ending, write_whole

        path = Path(path)
        ending = check_ending(path, self.ENDINGS, "a story is")
        content: str | Callable[[Path], object]
        if ending == ".json":
            content = to_json(self)
        elif ending == ".html":
            content = self.page(lang, palette).html
        else:
            from attnviz.stories.figure import draw

            content = draw(self, palette=palette, style=style, width=width, dpi=dpi).fill
        return write_whole(path, content)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        return self.page()._repr_html_()


def decimals(value: float, digits: int) -> str:
    """A number with so many digits after the point, without a minus before nothing."""
    text = f"{value:.{digits}f}"
    return text if text.strip("-0.") else text.removeprefix("-")


def cell_text(cell: Cell, digits: int) -> str:
    """Format a cell of a table; a dash stands for a missing number."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    return "-" if math.isnan(cell) else decimals(cell, digits)


def is_number(cell: Cell) -> bool:
    """Whether a cell is a number, or reads as one: ``99.6 %``."""
    return not isinstance(cell, str) or re.fullmatch(r"[-+]?[\d.,]+( ?%)?", cell) is not None


def to_json(story: Story) -> str:
    """The story for programs: its sentences, its tables and the numbers of its panels; null for what is no number."""
    parts = [
        {"text": part} if isinstance(part, str) else {"table": asdict(part)} for part in story.parts
    ]
    picture = [{type(panel).__name__.lower(): asdict(panel)} for panel in story.picture]
    about = {"format": "attnviz-story", "version": 1, "name": story.name, "title": story.title}
    return to_text(
        with_nulls(about | {"parts": parts, "picture": picture, "receipt": story.receipt}),
        "the story",
    )
