"""What was typed, made what it means, or refused: layers and heads, the sentence, sizes, files to write."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from attnviz.errors import InputError, SelectionError
from attnviz.models.registry import RANDOM
from attnviz.text.display import visible

LARGEST = 2**20
"""Bytes of a text that is read: some hundred thousand words, far more than any model's positions."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Layers or heads as typed: single numbers and ranges, some perhaps counted from the end.

    Attributes:
        ranges: first and last of each.
    """

    ranges: tuple[tuple[int, int], ...]

    def known(self) -> list[int] | None:
        """The numbers, where none is counted from the end."""
        if any(number < 0 for both in self.ranges for number in both):
            return None
        return self.among(())

    def among(self, held: Sequence[int]) -> list[int]:
        """The numbers, where those held say what the last one is.

        Raises:
            SelectionError: a range that begins before the first.
            BadParameter: a range that ends before it begins.
        """
        numbers: list[int] = []
        n = held[-1] + 1 if held else 0
        for first, last in self.ranges:
            if first == last:
                numbers.append(first)
                continue
            start, end = (number + n if number < 0 else number for number in (first, last))
            if held and start < 0:
                raise SelectionError(f"the range {first}-{last} begins before the first: there are {n}, counted from 0")
            if start > end:
                raise typer.BadParameter(f"the range {first}-{last} ends before it begins")
            numbers += range(start, end + 1)
        return numbers


def chosen(typed: Sequence[str] | None, option: str) -> Chosen | None:
    """Read ``--layer`` or ``--head``: 2, 0-3, -1, -3--1; None where nothing was typed.

    Raises:
        BadParameter: something else was typed.
    """
    if not typed:
        return None
    ranges = []
    for text in typed:
        match = re.fullmatch(r"(-?\d{1,4})(?:-(-?\d{1,4}))?", text.strip(), re.ASCII)
        if match is None:
            raise typer.BadParameter(f"{text!r} is neither a number nor a range such as 0-3", param_hint=f"'{option}'")
        first = int(match[1])
        ranges.append((first, first if match[2] is None else int(match[2])))
    return Chosen(tuple(ranges))


def read_text(text: str | None, file: Path | None, what: str = "the text") -> str:
    """The sentence, from the argument, standard input or a file; the line end after it is not part of it.

    Raises:
        BadParameter: none or several of them are given.
        InputError: it cannot be read, is not UTF-8, or is longer than any model reads.
    """
    if text is not None and file is not None:
        raise typer.BadParameter("give the sentence or --file, not both")
    if file is not None:
        try:
            with file.open("rb") as opened:
                return _decoded(opened.read(LARGEST + 1), visible(str(file)))
        except OSError as error:
            raise InputError(f"{visible(str(file))} cannot be read: {error.strerror}") from None
    if text == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed")
        return _decoded(sys.stdin.buffer.read(LARGEST + 1), "standard input")
    if text is None:
        raise typer.BadParameter('give a sentence, as in "I love all you", or - to read it from standard input')
    try:
        # What the shell handed over in another encoding arrives as lone surrogates.
        return _decoded(text.encode("utf-8", "surrogateescape"), what)
    except UnicodeEncodeError:
        return text  # a surrogate of another kind: refused with all other texts that are no Unicode


def _decoded(raw: bytes, source: str) -> str:
    if len(raw) > LARGEST:
        raise InputError(f"{source} is too long: of a text at most {LARGEST:,} bytes are read")
    try:
        return raw.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{source} is not UTF-8: byte {error.start + 1} is 0x{raw[error.start]:02x}") from None


def sizes(model: str | None, **chosen: int | None) -> dict[str, int]:
    """The sizes typed for the home-built model with random weights.

    Raises:
        BadParameter: some are, and the model is another.
    """
    typed = {name: size for name, size in chosen.items() if size is not None}
    if typed and model != RANDOM:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in typed)
        raise typer.BadParameter(f"{named} can be chosen for --model {RANDOM} alone")
    return typed


def check_outputs(paths: Iterable[Path], endings: Sequence[str]) -> None:
    """Refuse endings that nothing can be written as.

    Raises:
        BadParameter: such an ending.
    """
    for path in paths:
        if path.suffix.lower() not in endings:
            known = ", ".join(suffix.removeprefix(".") for suffix in endings)
            raise typer.BadParameter(
                f"{visible(str(path))}: the ending must be one of {known}", param_hint="'--output' / '-o'"
            )


def check_different(paths: Iterable[Path]) -> None:
    """Refuse to write one file over another.

    Raises:
        BadParameter: two files are one.
    """
    seen = set()
    for path in paths:
        whole = path.absolute()
        if whole in seen:
            raise typer.BadParameter(f"{visible(str(path))} is to be written twice", param_hint="'--output' / '-o'")
        seen.add(whole)


def check_writable(paths: Iterable[Path]) -> None:
    """Find out before any work whether its files can be written.

    Raises:
        OutputError: one of them cannot.
    """
    from attnviz.storage import files as whole

    for path in paths:
        whole.check_writable(path)
