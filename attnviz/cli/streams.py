"""Standard output and standard error, with any characters, and with readers that leave early."""

from __future__ import annotations

import errno
import io
import os
from typing import TYPE_CHECKING, TextIO, cast

from attnviz.errors import OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _Output(io.FileIO):
    """An output stream that survives when its reader closes the pipe, as in ``attnviz ... | head``."""

    def write(self, data: ReadableBuffer) -> int:
        """Write data; if writing fails, redirect the stream to the null device, so that later writes succeed."""
        try:
            return super().write(data)
        except OSError as error:
            null_device = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null_device, self.fileno())
            os.close(null_device)
            # Windows reports a closed pipe as an invalid argument.
            if error.errno in {errno.EPIPE, errno.EINVAL}:
                return memoryview(data).nbytes
            raise OutputError(f"the output cannot be written: {error.strerror}") from None


def open_output(stream: TextIO | None) -> TextIO:
    """Return a stream on which characters outside its encoding are escapes, and a closed pipe is no error.

    A terminal keeps its own stream: on Windows, only that one shows all characters in all code pages.
    """
    if stream is None:  # closed by the parent process
        return open(os.devnull, "w", encoding="utf-8")
    if stream.isatty():
        cast("io.TextIOWrapper", stream).reconfigure(errors="backslashreplace")
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=stream.fileno() == 2,
    )
