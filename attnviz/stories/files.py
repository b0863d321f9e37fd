"""The files of a story: a page, its numbers, its picture."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from attnviz.render.names import PICTURES
from attnviz.storage.files import check_ending, write_whole
from attnviz.stories.record import Story, to_json

ENDINGS = (*PICTURES, ".json", ".html")


def save(story: Story, path: Path, palette: str) -> Path:
    """Write a story as the path's ending says, whole or not at all.

    Raises:
        OutputError: another ending, or a file that cannot be written.
        SelectionError: a palette that is not there.
    """
    check_ending(path, ENDINGS, "a story is")
    suffix = path.suffix.lower()
    if suffix == ".html":
        return story.page(palette=palette).save(path)
    if suffix == ".json":
        return write_whole(path, to_json(story) + "\n")
    from attnviz.stories.figure.sheet import draw

    buffer = BytesIO()
    draw(story, palette).write(buffer, suffix)
    return write_whole(path, buffer.getvalue())
