"""Standard output and standard error as they may be: a pipe that closes, a disk that is full, not there at all."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, TextIO

from attnviz.errors import OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Patient(io.FileIO):
    """A stream whose reader may leave."""

    def write(self, data: ReadableBuffer) -> int:
        """Write; once that fails, what comes later goes nowhere.

        Raises:
            OutputError: the disk is full, or the like. That nobody reads any more is no error.
        """
        try:
            return super().write(data)
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if isinstance(error, BrokenPipeError):
                return memoryview(data).nbytes
            raise OutputError(f"the output cannot be written: {error.strerror}") from None


def patient(stream: TextIO | None) -> TextIO:
    """The same stream, but that it lets its reader leave, and shows a character that it cannot show by its number."""
    if stream is None:  # closed by whoever started us
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - open as long as we are
    raw = _Patient(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.isatty() or stream.fileno() == 2,  # noqa: PLR2004 - standard error
    )
