"""A walkthrough in files, one entry for each kind; as JSON every number and every step, nothing lost."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np

from attnviz.attention import Receipt
from attnviz.errors import FileFormatError, OutputError, RecordError, SettingsError
from attnviz.render.names import FILMS
from attnviz.settings import PageSettings
from attnviz.storage.encoding import decode_fields, plain, to_text
from attnviz.storage.files import check_ending, write_whole
from attnviz.storage.record import full_note, harmless_note, plain_note
from attnviz.text.display import visible
from attnviz.walkthroughs.calculation import compute
from attnviz.walkthroughs.pages.html import html
from attnviz.walkthroughs.pages.latex import latex
from attnviz.walkthroughs.pages.markdown import csv, markdown
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.settings import check_blanks
from attnviz.walkthroughs.verify.saved import FORMAT, HIDDEN, VERSION, SavedFile, digest
from attnviz.walkthroughs.verify.saved import read as read_saved

if TYPE_CHECKING:
    from attnviz.render.figure.export import Picture


def to_json(walk: Walkthrough) -> str:
    """The walkthrough as JSON, on one line; each number is the shortest that gives back the same double.

    A receipt brings a digest of all that is there. Raises RecordError: NaN, plus infinity, or half a character.
    """
    fields: dict[str, object] = {"format": FORMAT, "version": VERSION}
    fields |= {name: getattr(walk, name) for name in get_type_hints(Walkthrough)}
    fields["title"], fields["notes"] = plain_note(walk.title), list(map(plain_note, walk.notes))
    fields["receipt"] = None if walk.receipt is None else plain(walk.receipt)
    fields["steps"] = [asdict(step) for step in walk.steps]
    fields["grids"] = {
        name: {"rows": grid.rows, "columns": grid.columns, "values": _rows(grid, name)}
        for name, grid in walk.grids.items()
    }
    if walk.receipt is not None:
        fields["digest"] = digest(fields)
    return to_text(fields, "the walkthrough")


def load(path: str | os.PathLike[str]) -> Walkthrough:
    """Read a walkthrough that attnviz saved.

    Raises FileFormatError: unreadable, no walkthrough, or changed after its receipt was issued, in one line.
    """
    saved = read_saved(path)
    try:
        if saved.is_changed:
            raise FileFormatError("it was changed after its receipt was issued (attnviz verify says where)")
        return _rebuilt(saved)
    except RecordError as error:
        reason = str(error)
    raise FileFormatError(visible(f"{path}: {reason}"))


def _rebuilt(saved: SavedFile) -> Walkthrough:
    found = dict(saved.fields)
    if isinstance(title := found.get("title"), str):
        found["title"] = full_note(title)
    if isinstance(notes := found.get("notes"), list):
        found["notes"] = [full_note(note) for note in notes]
    labels = decode_fields(found, Walkthrough, apart={"grids", "steps"})
    if (labels["own"] is None) != (labels["difference"] is None) or labels["own"] not in {None, *saved.grids}:
        raise FileFormatError("own must name a grid, and difference say how far it is from the model's")
    grids = {
        name: Grid(
            values=np.array(grid.values), rows=tuple(map(visible, grid.rows)), columns=tuple(map(visible, grid.columns))
        )
        for name, grid in saved.grids.items()
    }
    for step in saved.steps:  # whether its numbers are right is for `verify` to say
        made, there = compute(step, grids).shape, grids[step.result].values.shape
        if made != there:
            by = f"{made[0]} x {made[1]} numbers, but {step.result} has {there[0]} x {there[1]}"
            raise FileFormatError(f"step {step.name} makes {by}")
    return Walkthrough(grids=grids, steps=saved.steps, **_harmless(labels))


def _harmless(labels: dict[str, Any]) -> dict[str, Any]:
    """The labels with nothing in them, of what every view prints, that a terminal would obey."""
    shown = {"title": harmless_note(labels["title"]), "model": visible(labels["model"])}
    notes = tuple(map(harmless_note, labels["notes"]))
    receipt: Receipt | None = labels["receipt"]
    if receipt is not None:
        receipt = replace(receipt, native=visible(receipt.native), dtype=visible(receipt.dtype))
    return {**labels, **shown, "notes": notes, "receipt": receipt}


def _rows(grid: Grid, name: str) -> list[list[float | str]]:
    values = grid.values
    if np.isnan(values).any() or np.isposinf(values).any():
        raise RecordError(f"the walkthrough cannot be written: {name} holds NaN or infinity")
    if not values.size:
        raise RecordError(f"the walkthrough cannot be written: {name} is empty")
    return [[HIDDEN if cell == -math.inf else cell for cell in row] for row in values.tolist()]


Content = tuple[bytes, str]  # what a file holds, and the characters in it that no font has


def _page(write: Callable[..., str], walks: Sequence[Walkthrough], _: str, view: dict[str, Any]) -> Content:
    return write(walks[0], **{name: value for name, value in _apart(view)[0].items() if name != "cmap"}).encode(), ""


def _apart(view: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is shown, apart from what a picture is for."""
    page = {field.name for field in fields(PageSettings)}
    return (
        {name: value for name, value in view.items() if name not in page},
        {name: value for name, value in view.items() if name in page},
    )


def draw_picture(walk: Walkthrough, **view: Any) -> Picture:
    """The sheet of a calculation; the arguments, and what is raised, are those of `Walkthrough.figure`."""
    from attnviz.walkthroughs.figure.sheet import draw

    shown, page = _apart(view)
    return draw(walk, **shown).fitted(PageSettings(**page).look)


def _picture(walks: Sequence[Walkthrough], suffix: str, view: dict[str, Any]) -> Content:
    file = BytesIO()
    typefaces = draw_picture(walks[0], **view).write(file, suffix)
    return file.getvalue(), typefaces.missing


def _film(walks: Sequence[Walkthrough], suffix: str, view: dict[str, Any]) -> Content:
    from attnviz.walkthroughs.figure.film import film

    with TemporaryDirectory(prefix="attnviz-") as folder:  # ffmpeg needs a file
        path = Path(folder) / f"film{suffix}"
        typefaces = film(walks, path, suffix, **_apart(view)[0])
        return path.read_bytes(), typefaces.missing


FORMATS: dict[str, Callable[[Sequence[Walkthrough], str, dict[str, Any]], Content]] = {
    ".json": lambda walks, _, __: (f"{to_json(walks[0])}\n".encode(), ""),
    ".md": partial(_page, markdown), ".tex": partial(_page, latex), ".csv": partial(_page, csv),
    ".html": partial(_page, html), ".png": _picture, ".svg": _picture, ".pdf": _picture, ".gif": _film, ".mp4": _film,
}  # fmt: skip
"""What makes a file's content, by its ending: from the calculations, the ending, and how they are shown."""


def content(walks: Sequence[Walkthrough], path: Path, **view: Any) -> Content:
    """What a file of this ending holds: a film all calculations, another file the first; the rest as in `figure`.

    Raises OutputError: another ending; SelectionError: no such step, language or colormap; SettingsError: blank JSON.
    """
    suffix = check_ending(path, tuple(FORMATS), "a walkthrough is")
    check_blanks([suffix], has_blanks=bool(view.get("blanks")))
    return FORMATS[suffix](walks, suffix, view)


def save(walks: Sequence[Walkthrough], path: str | os.PathLike[str], **view: Any) -> Path:
    """Write calculations to a file: several are one film; what is raised is as in `content`.

    Raises OutputError: several of them for a file that holds one, or none; or the file cannot be written;
    SettingsError: something else than walkthroughs.
    """
    if not all(isinstance(walk, Walkthrough) for walk in walks):
        raise SettingsError("of several results a film is made only where all are walkthroughs")
    if len(walks) != 1 and (not walks or Path(path).suffix.lower() not in FILMS):
        one = f"{len(walks)} walkthroughs are no file: only a film ({', '.join(FILMS)}) holds several"
        raise OutputError(visible(f"{path} is not written: {one}"))
    return write_whole(path, content(walks, Path(path), **view)[0])
