"""What is said on standard error while a model loads."""

from __future__ import annotations

import os
import sys

from attnviz.text.display import visible


class Notices:
    """The line that says that a model is loading, which goes when it is there, and lines that stay."""

    def __init__(self) -> None:
        self._loading = False

    def loading(self, model: str | None) -> None:
        """Say that a model is loading, where a person is looking."""
        if not (model or "").startswith("toy") and sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
            sys.stderr.write(f"loading {visible(model or 'distilbert-base-uncased')} ...")
            sys.stderr.flush()
            self._loading = True

    def say(self, line: str) -> None:
        """One line that a user should know."""
        self.close()
        sys.stderr.write(f"attnviz: {line}\n")

    def close(self) -> None:
        """Take away the line that says that a model is loading."""
        if self._loading:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
        self._loading = False
