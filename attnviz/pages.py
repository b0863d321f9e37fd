"""The HTML page of a result."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from attnviz.render.html import frame
from attnviz.storage.files import check_ending, write_whole


@dataclass(frozen=True, slots=True)
class WebPage:
    """An HTML page, which can be saved and is displayed in notebooks."""

    html: str  # the whole page

    def __repr__(self) -> str:
        """Return the size of the page instead of its text."""
        return (
            f"<WebPage of {len(self.html.encode()) / 1000:,.0f} KB: .save('page.html') writes it>"
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to a file, completely or not at all.

        Raises OutputError: the path does not end in ``.html``, or cannot be written; SettingsError: it is no path.
        """
        check_ending(path, (".html",), "a page is")
        return write_whole(path, self.html)

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks."""
        return frame(self.html)
