"""The paragraphs, the tables and the panels of a story."""

from __future__ import annotations

from typing import TypeVar

from attnviz.stories.record import Bars, Lines, Matrix, Story, Table

P = TypeVar("P", Matrix, Lines, Bars)


def told(story: Story) -> str:
    """Its sentences."""
    return " ".join(part for part in story.parts if isinstance(part, str))


def tables(story: Story) -> list[Table]:
    """Its tables, in their order."""
    return [part for part in story.parts if isinstance(part, Table)]


def panels(story: Story, kind: type[P]) -> list[P]:
    """Its panels of a kind, in their order."""
    return [panel for panel in story.picture if isinstance(panel, kind)]
