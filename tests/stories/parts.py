"""The paragraphs and the tables of a story."""

from __future__ import annotations

from attnviz.stories.record import Story, Table


def told(story: Story) -> str:
    """Its sentences."""
    return " ".join(part for part in story.parts if isinstance(part, str))


def tables(story: Story) -> list[Table]:
    """Its tables, in their order."""
    return [part for part in story.parts if isinstance(part, Table)]
