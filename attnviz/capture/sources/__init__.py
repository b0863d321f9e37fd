"""The interface of a source, which runs a model; there is one module per kind of model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attnviz.attention import Kind, Receipt
from attnviz.errors import InputError, ModelError, SelectionError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from attnviz.capture.observers import Batch, Observer

# What a model returns: its last vectors, or the logits of words at each place, or of classes of the whole text.
Outputs = Literal["vectors", "words", "classes"]
# What is loaded with a model: the projection to words of a decoder, or the head that was saved, or none.
Head: TypeAlias = Literal["words", "saved"] | None


class Source(ABC):
    """A model that streams its attention."""

    name: str  # the model's name in pictures
    # Whether a head had a sink in the last run, so that its rows could sum to less than 1.
    has_sinks: bool = False
    kinds: tuple[Kind, ...]  # the kinds of attention that it can show, the usual one first
    generates: bool = False  # whether it generates text, so that a target can be given
    can_be_cut: bool = False  # whether `outputs` may change what the layers return
    mask_id: int | None = None  # the token that stands for a hidden word
    mask: str = "[MASK]"  # what is typed for it
    classes: tuple[str, ...] = ()  # that the model sorts a text into
    sorts_one: bool = False  # whether it sorts one text at a time, because it knows no padding
    # Whether it can be told which tokens are padding, so that a batch may hold sentences of several lengths.
    takes_padding: bool = True
    # The number of layers of the last run that were left out, because their rows or columns are not the tokens.
    n_left_out: int = 0

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def encode(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        kind: Kind | None = None,
        targets: Sequence[str | None] | None = None,
    ) -> Batch:
        """Tokenize sentences into one padded batch.

        A text that is longer than the model's positions is cut, with a note; not one with a target, because a shorter
        text would be another task.

        Raises TooLongError: a target or its text is too long.
        """
        from attnviz.capture.batching import join

        no_texts = [None] * len(texts)
        targets = targets or no_texts
        if self.generates and any(target is not None for target in targets):
            kind = kind or "cross"  # all sentences of a batch must have the same kind
        inputs = zip(texts, pairs or no_texts, targets, strict=True)
        return join([self._read(text, pair, target, kind) for text, pair, target in inputs])

    @abstractmethod
    def _read(self, text: str, pair: str | None, target: str | None, kind: Kind | None) -> Batch:
        """Return a batch of one sentence."""

    def encode_prepared(
        self, prepared: Any, *, kind: Kind | None = None, target: str | None = None
    ) -> Batch:
        """Return a batch of one text that is split into words or tokens already, if the source reads such texts.

        Raises InputError: it does not.
        """
        raise InputError(f"{self.name} reads a text, not {type(prepared).__name__}")

    def prepare(self, texts: Sequence[str]) -> None:
        """Generate the texts of many sentences together, if that is faster; `encode` then uses them."""
        return

    @abstractmethod
    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run the model and pass every block of rows to every observer.

        Raises ModelError: the model has no attention that can be captured, or its weights are not verified.
        """

    def outputs(
        self, batch: Batch, observers: Sequence[Observer], outputs: Outputs
    ) -> tuple[Tensor, Receipt]:
        """Run the model as `stream` does, and return one of its outputs too: [batch, token, width].

        Of a batch of kind "cross", all layers of the encoder run before the cross-attention, and are passed on too.

        Raises ModelError: the model has no such output, or only returns its weights.
        """
        raise ModelError(
            f"{self.name} computes its attention by itself: what it does without some of it cannot be seen"
        )

    def word_names(self, numbers: Sequence[int]) -> Sequence[str]:
        """Return the texts of words that the model predicts, by their ids."""
        raise ModelError(f"{self.name} predicts no words")

    def word_id(self, word: str) -> int:
        """Return the id of a word that the model predicts. Raises InputError: it is none of its words."""
        raise ModelError(f"{self.name} predicts no words")

    def hidden(self) -> tuple[nn.Embedding, Tensor] | None:
        """Return the table of word vectors, and the vector that stands for a hidden word; None without a table."""
        return None

    @abstractmethod
    def digest(self) -> str:
        """Return a digest of the bytes of all weights, which identifies the model."""

    @abstractmethod
    def untrained(self, seed: int = 0) -> Source:
        """Return the same architecture with weights drawn from a seed, for comparison with the trained model.

        Raises ModelError: the model does not define how its weights are initialised.
        """


def expect_kind(source: Source, kind: Kind | None, target: str | None) -> Kind:
    """Return the kind of attention to show: `kind` or, if that is None, the usual one.

    Raises SelectionError: the model has no such kind, or a target is given for a model that generates no text.
    """
    if kind is not None and kind not in source.kinds:
        kinds = " and ".join(source.kinds)
        raise SelectionError(f"{source.name} has no {kind} attention to show: it has {kinds}")
    if not source.generates and target is not None:
        raise SelectionError(f"{source.name} generates nothing, so it takes no target")
    return kind or source.kinds[0]
