"""What a source is, the one interface to a model; a module for each kind of model that becomes one."""

from __future__ import annotations

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
        self, text: str, pair: str | None = None, *, target: str | None = None, kind: Kind | None = None,
        truncate: bool = False,
    ) -> Batch:  # fmt: skip
        """Tokenize a sentence into a batch of one; `batching.join` puts several together."""

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run the model, every block of rows seen by every observer; or ModelError: it has none, or is not proved."""

    def digest(self) -> str:
        """A digest of the bytes of all weights: another model has another one."""

    def untrained(self, seed: int = 0) -> Source:
        """The same architecture with weights drawn from a seed, what a trained model is held against; or ModelError."""


def expect_kind(source: Source, kind: Kind | None, target: str | None) -> Kind:
    """The kind of attention to show, the one chosen or the usual one; or SelectionError: it, or a target, is none."""
    if kind is not None and kind not in source.kinds:
        has = " and ".join(source.kinds)
        raise SelectionError(f"{source.name} has no {kind} attention to show: it has {has}")
    if not source.generates and target is not None:
        raise SelectionError(f"{source.name} generates nothing, so it takes no target")
    return kind or source.kinds[0]
