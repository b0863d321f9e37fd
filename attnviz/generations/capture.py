"""Generation step by step: choose a token, read it, keep its row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor

from attnviz.attention import MEMORY, Attention, Heads, Note, Receipt, Token, choose_heads
from attnviz.capture.observers import CPU, WeightCollector
from attnviz.capture.sources.decoding import Decoding
from attnviz.errors import InputError, TooLongError
from attnviz.generations.record import Step
from attnviz.generations.settings import Sampling

# The newest token is named from this many last tokens; decoding all of them would take longer at each step.
WINDOW = 8


def choose(logits: Float[Tensor, " word"], sampling: Sampling, random: torch.Generator) -> int:
    """Return the number of the most likely token, or of one drawn by its probability.

    `random` is the generator of random numbers.

    Sources: top-k, Fan et al. 2018, "Hierarchical Neural Story Generation"; top-p, Holtzman et al. 2020, "The Curious
    Case of Neural Text Degeneration".
    """
    if not sampling.sample:
        return int(logits.argmax())
    # As differences from the largest and as doubles, so that a temperature near 0 makes no infinity and no 0 / 0.
    logits = ((logits - logits.max()).double() / sampling.temperature).to(logits.dtype)
    if sampling.top_k is not None:
        least = logits.topk(min(sampling.top_k, len(logits))).values[-1]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if sampling.top_p is not None:
        probabilities, order = logits.softmax(dim=-1).sort(descending=True, stable=True)
        # The probability of all likelier tokens: it is 0 for the most likely one, which is always kept.
        before = probabilities.cumsum(dim=-1) - probabilities
        logits = logits.index_fill(0, order[before >= sampling.top_p], -torch.inf)
    return int(torch.multinomial(logits.softmax(dim=-1), 1, generator=random))


@dataclass(slots=True, kw_only=True)
class Generation:
    """The text generated so far: token numbers, attention rows, and their receipts."""

    decoding: Decoding  # runs the model
    most: int  # the largest number of tokens that may be generated
    layers: Sequence[int] | None  # the layers to keep, as the user chose them; None for all
    heads: Sequence[int | tuple[int, int]] | None  # the heads to keep, likewise
    numbers: list[int] = field(default_factory=list)  # of the generated tokens in the vocabulary
    labels: tuple[Token, ...] = ()  # the generated tokens that were shown
    # the row of weights that chose each token
    rows: list[Float32[np.ndarray, "layer head key"]] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)  # one per run of the model
    kept: Heads | None = None  # known after the first run

    def read(self, numbers: Sequence[int]) -> Float[Tensor, " word"]:
        """Read tokens, keep the row of the last one, and return the logits of the next token.

        Raises InputError: the rows of all new tokens would need too much memory.
        """
        collector = WeightCollector(rows=slice(-1, None))
        logits, receipt = self.decoding.read(numbers, [collector])
        if self.kept is None:
            places = [*product(collector.layers, collector.heads)]
            self.kept = choose_heads(places, self.layers, self.heads)
            self._check_memory(len(self.kept.indices))
        self.rows.append(self.kept.of(collector.weights(0)[:, :, -1]))
        self.receipts.append(receipt)
        return logits

    def _check_memory(self, n_heads: int) -> None:
        """Raise InputError if the rows of all new tokens would need too much memory in so many heads."""
        n_keys = len(self.decoding.sentence.tokens)
        if self.decoding.kind != "cross":  # generated tokens are keys too
            n_keys += self.most - 1
        size = 4 * n_heads * self.most * n_keys
        if size > MEMORY:
            raise InputError(
                f"the attention of {self.most:,} new tokens takes {size:,} bytes, and at most {MEMORY:,} are kept: "
                "choose heads, or fewer new tokens"
            )

    def step(self, number: int, logits: Float[Tensor, " word"]) -> Step:
        """Return the step that generated the token of this number from these logits."""
        self.labels += self.decoding.tokens(self.numbers[-WINDOW:])[-1:]
        return Step(
            number=len(self.numbers),
            token=self.labels[-1],
            probability=float(logits.softmax(dim=-1)[number]),
            keys=self._keys(self.labels),
            weights=self.rows[-1],
            model=self.decoding.name,
            kind=self.decoding.kind,
        )

    def _keys(self, tokens: tuple[Token, ...]) -> tuple[Token, ...]:
        """Return the keys of the row that chose the last of these tokens: in a decoder all tokens before it."""
        sentence = self.decoding.sentence.tokens
        return sentence if self.decoding.kind == "cross" else (*sentence, *tokens[:-1])

    def record(self, notes: Sequence[Note]) -> Attention:
        """Return the rows of all generated tokens as one record, with further `notes`."""
        decoding, sentence = self.decoding, self.decoding.sentence
        tokens = decoding.tokens(self.numbers)
        keys = self._keys(tokens)
        weights = np.zeros((*self.rows[0].shape[:2], len(tokens), len(keys)), dtype=np.float32)
        for place, row in enumerate(self.rows[: len(tokens)]):
            weights[:, :, place, : row.shape[-1]] = row
        receipt, kept = self._receipt(), self.kept
        assert kept is not None
        unit = "word" if receipt.native == "home-built" else "token"
        sinks = (Note("sinks"),) if decoding.has_sinks else ()
        # A decoder chooses its first token at the last token of the prompt.
        first = len(sentence.tokens) - 1 if decoding.kind == "decoder" else 0
        return Attention(
            weights=weights,
            query_tokens=tokens,
            key_tokens=keys,
            kind=decoding.kind,
            model=decoding.name,
            text=sentence.text,
            target=decoding.text(self.numbers),
            receipt=receipt,
            layers=kept.layers,
            heads=kept.heads,
            chosen=kept.chosen,
            short_rows=("sink",) if decoding.has_sinks else (),
            first=(first, 0),
            by_step=True,
            notes=(*sentence.notes, Note(f"row_generates_{unit}"), *sinks, *notes),
        )

    def _receipt(self) -> Receipt:
        """Return one receipt for all runs: the weakest, with each layer's largest difference."""
        differences = np.max([receipt.differences for receipt in self.receipts], axis=0)
        return replace(
            max(self.receipts, key=lambda receipt: receipt.proves == "output"),
            differences=tuple(differences.tolist()),
            sums=next((receipt.sums for receipt in self.receipts if receipt.sums), None),
            rows=next((receipt.rows for receipt in self.receipts if receipt.rows), None),
        )


def follow(
    decoding: Decoding,
    *,
    most: int,
    sampling: Sampling,
    layers: Sequence[int] | None,
    heads: Sequence[int | tuple[int, int]] | None,
    on_step: Callable[[Step], None] | None,
) -> Attention:
    """Generate tokens until the end token, `most` tokens or Ctrl-C, and return their record.

    Ctrl-C is raised again if there is no token yet; the other arguments are those of `attnviz.generate`.
    """
    n_tokens = most if decoding.room is None else min(most, decoding.room)
    generation = Generation(decoding=decoding, most=n_tokens, layers=layers, heads=heads)
    numbers, to_read = generation.numbers, decoding.begin
    never = torch.tensor(decoding.never, dtype=torch.long, device=CPU)
    random = torch.Generator().manual_seed(sampling.seed)
    notes = [Note.of("sampled", how=str(sampling))] if sampling.sample else []
    try:
        while len(numbers) < n_tokens and decoding.ends.isdisjoint(numbers):
            logits = generation.read(to_read).index_fill(0, never, -torch.inf)
            number = choose(logits, sampling, random)
            if decoding.first is not None and not numbers:
                number = decoding.first
            numbers.append(number)
            if on_step is not None:
                on_step(generation.step(number, logits))
            to_read = (number,)
    except (KeyboardInterrupt, TooLongError) as error:
        if not numbers:
            raise
        n, is_cut = len(numbers), isinstance(error, KeyboardInterrupt)
        cut = Note.of("generation_cut", n=n)
        notes.append(cut if is_cut else Note.of("reads_no_more", n=n, why=str(error)))
    else:
        if numbers[-1] not in decoding.ends:
            code = "generation_stopped" if len(numbers) == most else "positions_end"
            notes.append(Note.of(code, n=len(numbers)))
    return generation.record(notes)
