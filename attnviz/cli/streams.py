"""Standard output and standard error, with any characters, and with readers that leave early."""

from __future__ import annotations

import errno
import io
import os
from typing import Any

from attnviz.errors import OutputError


class _Output(io.FileIO):
    """An output stream that survives when its reader closes the pipe, as in ``attnviz ... | head``."""

    def write(self, data: Any) -> int:
        """Write bytes; if that fails, redirect the stream to the null device, so that later writes succeed."""
        try:
            return super().write(data)
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            # Windows reports a closed pipe as an invalid argument.
            if error.errno in {errno.EPIPE, errno.EINVAL}:
                return len(data)
            raise OutputError(f"the output cannot be written: {error.strerror}") from None


def open_output(stream: Any) -> Any:
    """Return a text stream on which characters outside its encoding are escapes, and a closed pipe is no error."""
    if stream is None:  # closed by the parent process
        return open(os.devnull, "w", encoding="utf-8")
    if not stream.isatty():  # only a console's own stream shows all characters on Windows
        raw = _Output(stream.fileno(), "wb", closefd=False)
        is_error = stream.fileno() == 2
        stream = io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, line_buffering=is_error)
    stream.reconfigure(errors="backslashreplace")
    return stream
