"""Which row is followed of queries that no model made: its name, or its number."""

from __future__ import annotations

from collections.abc import Sequence

from attnviz.errors import SelectionError
from attnviz.text.display import clip, visible


def chosen_row(names: Sequence[str], n_rows: int, wanted: str | int) -> int:
    """The number of the row that a person means.

    Args:
        names: of the rows; empty where they are only counted.
        n_rows: how many there are.
        wanted: a name, whatever the size of its letters where none is exactly so; or a number counted from 0, negative
            from the end, as a number or in digits.

    Raises:
        SelectionError: there is none, or there are several.
    """
    there = ", ".join(f"{number} {name}" for number, name in enumerate(names)) or f"0 to {n_rows - 1}, without names"
    there = clip(there, 200)
    if isinstance(wanted, str):
        shown = clip(visible(wanted), 40)
        found = [number for number, name in enumerate(names) if name == visible(wanted.strip())] or [
            number for number, name in enumerate(names) if name.casefold() == visible(wanted.strip()).casefold()
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise SelectionError(
                f"several queries are '{shown}': choose one by its number: {', '.join(map(str, found))}"
            )
        digits = wanted.strip().removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
            raise SelectionError(f"there is no query '{shown}' to follow: there are {there}")
        wanted = int(wanted)
    if not -n_rows <= wanted < n_rows:
        raise SelectionError(f"there is no query {wanted}: there are {there}")
    return wanted % n_rows
