"""A whole model, small enough to look at: words in, vectors and attention out.

Its weights are random, but always the same random: what it shows is how attention is computed, not what a
trained model has learned. It needs no vocabulary, so any word of any language has a vector of its own.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attnviz.errors import InputError, ModelError
from attnviz.models.attention import AttendFunction, scaled_dot_product_attention
from attnviz.models.config import ToyConfig
from attnviz.models.embedding import sinusoidal_positions
from attnviz.models.transformer import Encoder


def word_vector(word: str, d_model: int, seed: int = 0) -> Float[Tensor, " d_model"]:
    """The word's own vector [d_model]: normal numbers drawn from a generator that the word itself seeds.

    One word spelled in two ways that look alike (a Korean syllable whole, or as its letters) has one vector.
    """
    spelled = f"{seed} {unicodedata.normalize('NFC', word)}".encode()
    number = int.from_bytes(hashlib.blake2b(spelled, digest_size=8).digest())
    return torch.randn(d_model, generator=torch.Generator().manual_seed(number))


class ToyEncoder(nn.Module):
    """Word vectors, positions and an encoder, all drawn from one seed.

    For several sentences at once: ``toy.encoder(*pad([toy.embed(words) for words in sentences]))``.

    Raises:
        ModelError: sizes that do not fit together, or positions of an unknown kind.
    """

    def __init__(self, config: ToyConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or ToyConfig()
        if config.positions not in ("sinusoidal", "learned", "none"):
            raise ModelError(f"no such positions: expected sinusoidal, learned or none, got {config.positions}")
        with torch.random.fork_rng(devices=[]):  # the caller's random numbers stay the caller's
            # Not torch.manual_seed, which would seed every other device's generator too.
            torch.default_generator.manual_seed(config.seed)
            self.encoder = Encoder(config)
            # As The Annotated Transformer does. PyTorch's own choice is smaller: attention would be flat.
            for parameter in self.encoder.parameters():
                if parameter.ndim > 1:
                    nn.init.xavier_uniform_(parameter)
        self.eval()

    def embed(self, words: Sequence[str]) -> Float[Tensor, "tokens d_model"]:
        """Each word's vector plus its position's: shape [tokens, d_model].

        Raises:
            InputError: there are no words, or one string came in place of a sequence of them.
        """
        if isinstance(words, str) or not words:
            raise InputError(f"no words: expected a sequence of at least 1, got {words!r}")
        d_model, seed = self.config.d_model, self.config.seed
        vectors = torch.stack([word_vector(word, d_model, seed) for word in words])  # (T, D)
        positions = self.positions(len(words))
        vectors = vectors if positions is None else vectors + positions  # (T, D) + (T, D)
        return vectors.to(next(self.parameters()))

    def positions(self, n: int) -> Float[Tensor, "position d_model"] | None:
        """The vectors of the first n positions [position, d_model]; None in a model without."""
        config = self.config
        if config.positions == "learned":  # a table of numbers, one row a position, as BERT has it
            rows = [word_vector(f"position {place}", config.d_model, config.seed) for place in range(n)]
            return torch.stack(rows) * 2**-0.5  # as large as waves are
        return sinusoidal_positions(n, config.d_model) if config.positions == "sinusoidal" else None

    def forward(
        self, words: Sequence[str], mask: Bool[Tensor, "*#batch #tokens #tokens"] | None = None, *,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "1 tokens d_model"], list[Float[Tensor, "1 head tokens tokens"] | None]]:  # fmt: skip
        """One sentence's output [1, tokens, d_model] and each layer's weights [1, head, query, key].

        Raises:
            InputError: there are no words.
            ModelError: the mask does not fit.
        """
        output, weights, _ = self.encoder(self.embed(words)[None], mask, attend=attend)
        return output, weights
