"""The walkthrough as a value: named grids of numbers, and steps that each make one grid from others."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Kind, Note, ReadOnly, Receipt, indices_of, parse_head
from attnviz.errors import RecordError, SelectionError
from attnviz.text.notes import sentence

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from attnviz.pages import WebPage
    from attnviz.render.figure.style import StyleName
    from attnviz.walkthroughs.view import Blanks, View

__all__ = ["CalculationStep", "Grid", "Walkthrough"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid(ReadOnly):
    """Numbers in rows and columns, with their names. Raises RecordError: they do not fit together."""

    # in double precision; minus infinity where a mask says so
    values: Float64[np.ndarray, "row column"]
    rows: tuple[str, ...] = ()  # a name for each row; empty where they are only counted
    columns: tuple[str, ...] = ()  # likewise

    def __post_init__(self) -> None:
        # a copy of its own, so that nobody else can change it
        values = np.array(self.values, dtype=np.float64)
        if values.ndim != 2:
            raise RecordError(f"a grid has rows and columns: got the shape {values.shape}")
        for axis, labels in (("row", self.rows), ("column", self.columns)):
            size = values.shape[axis == "column"]
            if labels and len(labels) != size:
                raise RecordError(
                    f"a grid needs a name for each {axis}: expected {size}, got {len(labels)}"
                )
        self._lock(values=values)

    def describe_cell(self, row: int, column: int) -> str:
        """Return where a cell is, as ``row 0 (love), column 2``."""
        places = []
        for axis, number, names in (("row", row, self.rows), ("column", column, self.columns)):
            has_name = names and names[number] != str(number)
            places.append(f"{axis} {number} ({names[number]})" if has_name else f"{axis} {number}")
        return ", ".join(places)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalculationStep:
    """One line of the calculation."""

    name: str  # which step it is, such as ``scores``; explanations are found by it
    result: str  # the grid that it makes
    operation: str  # how: a name in `attnviz.walkthroughs.operations.OPERATIONS`
    operands: tuple[str, ...]  # the grids that it is made from
    number: float | None = None  # what some operations need beside them, such as ``times``


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Walkthrough:
    """One calculation of attention, every number of it. Raises RecordError: a step is made from what is not there."""

    ENDINGS = (".png", ".svg", ".pdf", ".html", ".json", ".md", ".csv")

    title: Note  # what is calculated; `attnviz.walkthroughs.texts.NOTES` has the words
    # All numbers by name, those given and those computed, in the order of the calculation. Names are the field's
    # symbols: X, Wq, q, K, V, scores, scaled, weights, alignment, context.
    grids: Mapping[str, Grid]
    # how each computed grid is made from those before it; no step makes the others
    steps: tuple[CalculationStep, ...]
    model: str = ""  # whose calculation it is; empty for numbers made by hand
    text: str = ""  # what the model read, as typed; empty likewise
    kind: Kind | None = None  # which attention it is; here and below None for numbers made by hand
    layer: int | None = None  # its number, counted from 0
    head: int | None = None  # likewise; None of a whole layer, too
    # the number of the query's row; None where all queries are walked at once
    query: int | None = None
    own: str | None = None  # the grid that was computed and that the model computed too
    # The largest difference between the two, where the steps start from the query, keys and values that the model
    # itself handed to its attention; and from the input on, with what the model's number format rounds off in the
    # projections to query, keys and values. None where these are given.
    difference: float | None = None
    from_input: float | None = None
    receipt: Receipt | None = None  # proof of the forward pass that q, k and v were taken from
    notes: tuple[Note, ...] = ()  # what was done to the input

    def __post_init__(self) -> None:
        known = set(self.grids) - {step.result for step in self.steps}
        for step in self.steps:
            for name in step.operands:
                if name not in known:
                    raise RecordError(
                        f"step {step.name} is made from {name}, which is not there before it"
                    )
            if step.result not in self.grids:
                raise RecordError(f"step {step.name} makes {step.result}, which is not there")
            if step.result in known:
                raise RecordError(f"step {step.name} makes {step.result}, which is there already")
            known.add(step.result)

    def inputs(self) -> tuple[str, ...]:
        """Return the grids that no step makes."""
        made = {step.result for step in self.steps}
        return tuple(name for name in self.grids if name not in made)

    def distributions(self) -> tuple[str, ...]:
        """Return the names of the attention weights, one for each head: made by a softmax, or given."""
        made = tuple(step.result for step in self.steps if step.name == "softmax")
        return made or tuple(name for name in self.inputs() if name == "weights")

    def __repr__(self) -> str:
        if not self.model:
            name = sentence(replace(self.title, code=self.title.code.removeprefix("title_")))
            return f"<Walkthrough {name!r}: {len(self.steps)} steps>"
        place = f"layer {self.layer}" if self.head is None else f"head {self.layer}.{self.head}"
        return f"<Walkthrough of {self.model!r} ({self.kind}), {place}: {self.text!r}, {len(self.steps)} steps>"

    def __getitem__(self, place: tuple[int, int] | str) -> Float64[np.ndarray, "query key"]:
        """Return the weights of one head that is walked: ``walk[layer, head]``; numbers by hand are layer 0.

        Of a decoder's layer those of its `kind`. Raises SelectionError: a layer or head that is not walked.
        """
        names = self.distributions()
        if any("_cross" in name for name in names):  # the layer has both attentions
            names = tuple(name for name in names if ("_cross" in name) == (self.kind == "cross"))
        if not names:
            raise SelectionError("this calculation has no attention weights")
        layer, head = parse_head(place)
        indices_of([layer], [self.layer or 0], "layer")
        heads = range(len(names)) if self.head is None else [self.head]
        (number,) = indices_of([head], heads, "head")
        return np.asarray(self.grids[names[number]].values)

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()

    def _repr_png_(self) -> bytes:
        """Return the picture that a notebook shows where it shows no page."""
        from attnviz.walkthroughs.figure.sheet import draw

        return draw(self._view()).png()

    def _view(
        self, lang: str = "en", precision: int | None = None, blanks: Blanks = frozenset()
    ) -> View:
        from attnviz.walkthroughs.view import View

        return View(walk=self, lang=lang, precision=precision, blanks=blanks)

    def figure(
        self,
        *,
        lang: str = "en",
        precision: int | None = None,
        blanks: Blanks = frozenset(),
        palette: str = "teal",
        style: StyleName = "sheet",
        width: str | None = None,
        dpi: int | None = None,
    ) -> Figure:
        """Draw the whole calculation as a Matplotlib figure.

        `lang` is ``en`` or ``ko``, `precision` the digits after the point, and `blanks` are cells left empty.

        Raises:
            SelectionError: no such language or palette.
            SettingsError: a style, width or precision that no picture has.
        """
        from attnviz.walkthroughs.figure.sheet import draw

        view = self._view(lang, precision, blanks)
        return draw(view, palette=palette, style=style, width=width, dpi=dpi).figure

    def page(
        self, lang: str = "en", *, precision: int | None = None, blanks: Blanks = frozenset()
    ) -> WebPage:
        """Make a page where each number tells its origin; the arguments are those of `figure`."""
        from attnviz.walkthroughs.pages.html import page

        return page(self._view(lang, precision, blanks))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        lang: str = "en",
        precision: int | None = None,
        blanks: Blanks = frozenset(),
        palette: str = "teal",
        style: StyleName = "sheet",
        width: str | None = None,
        dpi: int | None = None,
    ) -> Path:
        """Write the calculation to a file, by its ending; the other arguments are those of `figure`.

        ``.json`` loses nothing, and can be loaded and verified; ``.md`` and ``.html`` are pages, ``.csv`` has the
        numbers, ``.png``, ``.svg`` and ``.pdf`` are pictures.

        Raises:
            OutputError: another ending, or a file that cannot be written.
            SelectionError: no such language or palette.
            SettingsError: blank cells in JSON, or a style, width or precision that no picture has.
        """
        from attnviz.storage.files import check_ending, write_whole

        path = Path(path)
        ending = check_ending(path, self.ENDINGS, "a walkthrough is")
        view = self._view(lang, precision, blanks)
        content: str | Callable[[Path], object]
        if ending == ".json":
            from attnviz.walkthroughs.files import to_json

            content = to_json(self, blanks=blanks)
        elif ending == ".html":
            content = self.page(lang, precision=precision, blanks=blanks).html
        elif ending in {".md", ".csv"}:
            from attnviz.walkthroughs.pages import markdown

            content = markdown.csv(view) if ending == ".csv" else markdown.markdown(view)
        else:
            from attnviz.walkthroughs.figure.sheet import draw

            content = draw(view, palette=palette, style=style, width=width, dpi=dpi).fill
        return write_whole(path, content)

    def blanks(self, seed: int = 0) -> frozenset[tuple[str, int, int]]:
        """Return computed cells that a learner fills in, about half of each step's: grid, row and column.

        They are the same for the same seed. Raises SettingsError: the seed is no whole number.
        """
        chance = random.Random(seed)
        chosen: set[tuple[str, int, int]] = set()
        for step in self.steps:
            cells = [
                (step.result, row, column)
                for row, column in np.ndindex(self.grids[step.result].values.shape)
            ]
            wanted = max(1, round(len(cells) / 2))
            for taken in range(wanted):  # the first so many of a shuffled list
                other = taken + below(chance, len(cells) - taken)
                cells[taken], cells[other] = cells[other], cells[taken]
            chosen.update(cells[:wanted])
        return frozenset(chosen)

    def to_frame(self) -> DataFrame:
        """Return the scores, weights and the steps between them as a pandas frame.

        A row for each query and key, by name or number; a column a grid. Raises SelectionError: there are no scores.
        """
        from attnviz.walkthroughs.view import frame

        return frame(self)


def below(chance: random.Random, n: int) -> int:
    """Return a whole number from 0 to n - 1.

    Of Python's random numbers only those of `random` are promised to stay the same.
    """
    return int(chance.random() * n)
