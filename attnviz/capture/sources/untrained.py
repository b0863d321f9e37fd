"""The home-built encoder with random weights as a source: any words of any language, no download."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attnviz.attention import Kind, Note, Receipt, Token
from attnviz.capture.observers import Batch, Observer, Sentence, expect_kind
from attnviz.capture.projections import calls_shown
from attnviz.capture.sources.digest import digest_of
from attnviz.capture.stream import Run, Scoring
from attnviz.errors import InputError, ModelError
from attnviz.models.attention import scaled_dot_product_attention
from attnviz.models.positions import sinusoidal_positions
from attnviz.models.toy import ToyConfig, ToyEncoder, word_vector
from attnviz.models.transformer import pad
from attnviz.text.display import visible
from attnviz.text.words import split_words

MOST_WEIGHTS = 50_000_000
"""What a model made up on the spot may have: seconds to draw, 200 MB to hold."""

NOTES = (Note("random_weights"),)


class ToySource:
    """The home-built encoder; a word is a token.

    Args:
        config: its sizes and seed.
        device: where it runs.
        dtype: its number format; None is float32.

    Raises:
        ModelError: sizes that do not fit together, or too large.
    """

    def __init__(
        self,
        config: ToyConfig | None = None,
        *,
        device: torch.device | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        config = config or ToyConfig()
        n_weights = config.n_layers * (4 * config.d_model**2 + 2 * config.d_model * config.d_ff)
        if n_weights > MOST_WEIGHTS:
            raise ModelError(f"these sizes make {n_weights:,} weights: at most {MOST_WEIGHTS:,} are drawn")
        usual = ToyConfig()
        other = [
            f", {size} {getattr(config, size)}"
            for size in ("d_model", "n_heads", "n_layers")
            if getattr(config, size) != getattr(usual, size)
        ]
        self.name = f"toy-random (seed {config.seed}{''.join(other)})"
        self.has_sinks = False
        self.kinds: tuple[Kind, ...] = ("encoder",)
        self.speaks = False
        self._device = device or torch.device("cpu")
        self._model = ToyEncoder(config).to(self._device, dtype or torch.float32)

    def encode(
        self,
        texts: Sequence[str],
        pairs: Sequence[str | None] | None = None,
        *,
        truncate: bool = False,
        kind: Kind | None = None,
        targets: Sequence[str | None] | None = None,
    ) -> Batch:
        """Split sentences into words; there is no longest sentence, so nothing is ever truncated.

        Raises:
            InputError: a sentence has no word.
            SelectionError: another kind of attention than that of an encoder, or a target.
        """
        del truncate
        expect_kind(self, kind, targets)
        sentences = []
        for text, pair in zip(texts, pairs or [None] * len(texts), strict=True):
            tokens = _tokens(text, 0, 0)
            tokens += _tokens(pair or "", 1, len(tokens))
            if not tokens:
                raise InputError(f"there is no word in this text: {visible(text)[:40]!r}")
            sentences.append(Sentence(text=text, pair=pair, tokens=tuple(tokens), notes=NOTES))
        lengths = torch.tensor([len(sentence.tokens) for sentence in sentences])
        return Batch(
            sentences=tuple(sentences),
            inputs={},
            real=torch.arange(int(lengths.max())) < lengths[:, None],
        )

    def stream(self, batch: Batch, observers: Sequence[Observer]) -> Receipt:
        """Run the model once; every observer sees every block of rows.

        Raises:
            NotVerifiedError: a layer's weights are not proved to be the model's own.
        """
        run = Run(batch=batch, observers=observers, native="home-built")

        def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> tuple[Tensor, None]:
            context, _ = scaled_dot_product_attention(query, key, value, mask)
            run.layer(query, key, value, context.transpose(1, 2), Scoring(mask=mask))
            return context, None

        with torch.inference_mode(), calls_shown(self._model, observers):
            vectors = [self._model.embed([token.piece for token in s.tokens]) for s in batch.sentences]
            x, mask = pad(vectors)
            self._model.encoder(x, None if batch.real.all() else mask, attend=attend)
        return run.receipt(self.name)

    def digest(self) -> str:
        """What tells the model's weights from others."""
        return digest_of(self._model)

    def untrained(self, seed: int = 0) -> ToySource:
        """The same sizes, other random weights."""
        config = replace(self._model.config, seed=self._model.config.seed + 1 + seed)
        weight = next(self._model.parameters())
        return ToySource(config, device=self._device, dtype=weight.dtype)

    def embedded(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The vectors of the first sentence's words, and those of their positions: each [token, d_model]."""
        words, config = [token.piece for token in batch.sentences[0].tokens], self._model.config
        vectors = torch.stack([word_vector(word, config.d_model, config.seed) for word in words])
        return vectors, sinusoidal_positions(len(words), config.d_model)


def _tokens(text: str, segment: int, before: int) -> list[Token]:
    """The words of a sentence as tokens, numbered on from those before it."""
    return [
        Token(
            text=visible(text[start:end]),
            piece=text[start:end],
            span=(start, end),
            word=before + number,
            segment=segment,
        )
        for number, (start, end) in enumerate(split_words(text))
    ]
