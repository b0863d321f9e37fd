"""What is said on standard error while a model loads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from attnviz.text.display import visible

if TYPE_CHECKING:
    from attnviz.capture.source import Source


@contextmanager
def opened(model: str | None, **loading: Any) -> Iterator[Source]:  # noqa: ANN401 - as open_source
    """A model, and meanwhile a line on standard error that says that it is loading.

    Args:
        model: its name.
        loading: how it is loaded: the other arguments of `attnviz.capture.source.open_source`.
    """
    from attnviz.capture.source import open_source

    with closing(Notices()) as notices:
        notices.loading(model)
        yield open_source(model, notify=notices.say, **loading)


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
