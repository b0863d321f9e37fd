"""The interface of a source, through which a model is read; a module for each kind of model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attnviz.attention import Kind, Receipt
from attnviz.errors import SelectionError

if TYPE_CHECKING:
    from attnviz.capture.observers import Batch, Observer


@runtime_checkable  # the shape checks of the tests need it
class Source(Protocol):
    """A model that streams its attention."""

    name: str  # what pictures call the model
    has_sinks: bool  # whether, in the last run, rows could sum to less than 1 because a head may look at nothing
    kinds: tuple[Kind, ...]  # the kinds of attention it can show, the usual one first
    generates: bool  # whether it generates text, so that a target can be given

    def encode(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        truncate: bool = False,
        kind: Kind | None = None,
        targets: Sequence[str | None] | None = None,
    ) -> Batch:
        """Tokenize sentences into one padded batch."""

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run the model and show every block of rows to every observer.

        Raises ModelError: it has no attention that can be seen, or its weights are not verified.
        """

    def digest(self) -> str:
        """Return a digest of the bytes of all weights, which tells models apart."""

    def untrained(self, seed: int = 0) -> Source:
        """Return the same architecture with weights drawn from a seed, to hold a trained model against.

        Raises ModelError: nothing says how its weights are drawn.
        """


class PerSentenceSource(Source):
    """A source that reads sentences one by one and joins them to a batch."""

    def encode(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        truncate: bool = False,
        kind: Kind | None = None,
        targets: Sequence[str | None] | None = None,
    ) -> Batch:
        """Tokenize sentences into one padded batch."""
        from attnviz.capture.batching import join

        nothing = [None] * len(texts)
        targets = targets or nothing
        if self.generates and any(target is not None for target in targets):
            kind = kind or "cross"  # all of a batch are of one kind
        given = zip(texts, pairs or nothing, targets, strict=True)
        return join(
            [
                self._read(text, pair, target, kind, truncate=truncate)
                for text, pair, target in given
            ]
        )

    @abstractmethod
    def _read(
        self, text: str, pair: str | None, target: str | None, kind: Kind | None, *, truncate: bool
    ) -> Batch:
        """Return a batch of one sentence."""


def expect_kind(source: Source, kind: Kind | None, target: str | None) -> Kind:
    """Return the kind of attention to show, the chosen or the usual one.

    Raises SelectionError: the model has no such kind, or generates nothing and was given a target.
    """
    if kind is not None and kind not in source.kinds:
        has = " and ".join(source.kinds)
        raise SelectionError(f"{source.name} has no {kind} attention to show: it has {has}")
    if not source.generates and target is not None:
        raise SelectionError(f"{source.name} generates nothing, so it takes no target")
    return kind or source.kinds[0]
