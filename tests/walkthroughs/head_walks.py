"""Walkthroughs of a model, for many tests that read the same run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from attnviz.walkthroughs.capture import walks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnviz.attention import Receipt
    from attnviz.capture.observers import Batch, Block
    from attnviz.capture.projections import Call
    from attnviz.capture.sources import Source
    from attnviz.capture.stream import Layer
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


class _Tape:
    """An observer that keeps every call and every layer of a run, in their order."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Call | Layer]] = []

    def begin(self, batch: Batch) -> None:
        """Nothing has been seen."""

    def observe(self, block: Block) -> None:
        """Walkthroughs look at no block."""

    def observe_call(self, call: Call) -> None:
        """Keep it."""
        self.seen.append(("observe_call", call))

    def observe_layer(self, layer: Layer) -> None:
        """Keep it."""
        self.seen.append(("observe_layer", layer))


class _Once:
    """A source whose model runs once for each text and kind of attention: what that run showed is shown again."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._batches: dict[str, Batch] = {}
        self._runs: dict[int, tuple[list[tuple[str, Call | Layer]], Receipt]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def encode(self, *texts: Any, **more: Any) -> Batch:
        """The batch that the source makes."""
        asked = repr((texts, more))
        if asked not in self._batches:
            self._batches[asked] = self._source.encode(*texts, **more)
        return self._batches[asked]

    def stream(self, batch: Batch, observers: Sequence[Any]) -> Receipt:
        """The run of this batch."""
        if id(batch) not in self._runs:
            tape = _Tape()
            self._runs[id(batch)] = tape.seen, self._source.stream(batch, [tape])
        seen, receipt = self._runs[id(batch)]
        for observer in observers:
            observer.begin(batch)
            for name, one in seen:
                getattr(observer, name)(one)
        return receipt


def once(source: Source) -> Source:
    """The source, for many walkthroughs of one text: its model runs once, not once for each head and query."""
    return cast("Source", _Once(source))
