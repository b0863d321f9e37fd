"""Standard output in the encodings of consoles, and readers that leave early."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

import pytest

from attnviz.cli.output import print_view
from attnviz.cli.streams import open_output
from attnviz.heatmaps.terminal import draw
from attnviz.render.sheet import resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.attention import Attention

ENCODINGS = ("cp949", "cp437", "cp1252", "utf-8")


class Console(io.TextIOWrapper):
    """A console of Windows: it converts text by itself, and has no file for bytes."""

    def isatty(self) -> bool:
        """It is one."""
        return True


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_console_keeps_its_own_stream(encoding: str) -> None:
    """What is printed passes through the console's own object; what its encoding lacks is an escape."""
    written = io.BytesIO()
    console = Console(written, encoding)
    output = open_output(console)
    assert output is console
    output.write("café 나 ░ 🙂")
    output.flush()
    expected = "café 나 ░ 🙂".encode(encoding, "backslashreplace")
    assert written.getvalue() == expected
    assert (b"\\U0001f642" in expected) == (encoding != "utf-8")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_view_needs_no_escapes(
    monkeypatch: pytest.MonkeyPatch, make_record: Callable[..., Attention], encoding: str
) -> None:
    """Shades, marks and lines are those that the encoding has: a strict stream takes them all."""
    record, written = make_record(), io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding))
    print_view(lambda screen: draw(resolve(record), screen))
    sys.stdout.flush()
    shown = written.getvalue().decode(encoding)
    assert ("[ ░▒▓█]" if encoding == "utf-8" else "[ .:*#]") in shown
    assert "\\" not in shown


def test_nobody_reads_on_windows() -> None:
    """A reader that left is no error, and what comes later goes nowhere."""
    # A counter of Linux answers to a short write as a closed pipe does on Windows: invalid argument.
    with open(os.eventfd(0), "w", encoding="cp949") as stream:
        output = open_output(stream)
        for _ in range(2):
            output.write("나 🙂")
            output.flush()
