"""Layers and heads as they are typed: 2, 0-3, -1 (the last), and 2.3 for layer 2, head 3."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from attnviz.errors import SelectionError, SettingsError


@dataclass(frozen=True, slots=True)
class Ranges:
    """Layers or heads: single numbers and ranges, some perhaps counted from the end.

    Attributes:
        ends: first and last of each.
    """

    ends: tuple[tuple[int, int], ...]

    @classmethod
    def read(cls, typed: Sequence[str], name: str) -> Ranges | None:
        """Read 2, 0-3, -1, -3--1; None where nothing was typed.

        Raises:
            SettingsError: something else was typed.
        """
        ends = []
        for text in typed:
            match = re.fullmatch(r"(-?\d{1,4})(?:-(-?\d{1,4}))?", text.strip(), re.ASCII)
            if match is None:
                raise SettingsError(f"Invalid value for '{name}': {text!r} is neither a number nor a range such as 0-3")
            first = int(match[1])
            ends.append((first, first if match[2] is None else int(match[2])))
        return cls(tuple(ends)) if ends else None

    def one(self, name: str) -> int:
        """The one number.

        Raises:
            SettingsError: it is a range, or there are several.
        """
        numbers = {number for pair in self.ends for number in pair}
        if len(numbers) > 1:
            raise SettingsError(f"Invalid value for '{name}': one is followed, not several")
        return numbers.pop()

    def known(self) -> list[int] | None:
        """The numbers, where none is counted from the end."""
        return None if any(number < 0 for pair in self.ends for number in pair) else self.among(())

    def among(self, held: Sequence[int]) -> list[int]:
        """The numbers, where those held tell what the last one is.

        Raises:
            SelectionError: a range that begins before the first.
            SettingsError: a range that ends before it begins.
        """
        numbers: list[int] = []
        n = held[-1] + 1 if held else 0
        for first, last in self.ends:
            if first == last:
                numbers.append(first)
                continue
            start, end = (number + n if number < 0 else number for number in (first, last))
            if held and start < 0:
                raise SelectionError(f"the range {first}-{last} begins before the first: there are {n}, counted from 0")
            if start > end:
                raise SettingsError(f"the range {first}-{last} ends before it begins")
            numbers += range(start, end + 1)
        return numbers


def layers_and_heads(layer: Sequence[str], head: Sequence[str]) -> tuple[Ranges | None, Ranges | None]:
    """Layers and heads as they are typed: ``--layer 2 --head 3``, or ``--head 2.3``, which says both.

    Raises:
        SettingsError: something else was typed, or the two contradict each other.
    """
    parts = [one.strip().rpartition(".") for one in head]
    named = {before if dot else None for before, dot, _ in parts}
    heads = Ranges.read([number for _, _, number in parts], "--head")
    if named <= {None}:
        return Ranges.read(layer, "--layer"), heads
    if len(named) > 1:
        raise SettingsError(f"--head {' and '.join(head)} are not of one layer: give one, or --layer beside --head")
    (one,) = (str(before) for before in named)
    if layer and {typed.strip() for typed in layer} != {one}:
        raise SettingsError(f"--layer {' and '.join(layer)} and --head {' and '.join(head)} contradict each other")
    return Ranges.read([one], "--head"), heads
