"""Walkthroughs of a model, for many tests that read the same run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attnviz.walkthroughs.capture import walks

if TYPE_CHECKING:
    from attnviz.capture.sources import Source
    from attnviz.walkthroughs.record import Walkthrough


def walk(text: str, source: Source, *, every: bool = False, **more: Any) -> Walkthrough:
    """`attnviz.walkthroughs.capture.walks.follow`; a query may be a number."""
    if more.get("query") is not None:
        more["query"] = str(more["query"])
    return walks.follow(text, source, all_queries=every, **more)


def decoding_steps(text: str, source: Source, **more: Any) -> list[Walkthrough]:
    """A walkthrough of each word that a decoder generates."""
    whole = walk(text, source, **more, every=True)
    if whole.kind != "cross":
        return [walk(text, source, **more)]
    n_words = len(whole.grids["weights"].values)
    return [walk(text, source, **more, query=row) for row in range(n_words)]
