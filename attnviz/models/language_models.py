"""Transformers with embeddings and outputs: one with random weights, and models of one or two languages.

The first takes words, and shows how attention is computed, not what a trained model has learned. The others take the
numbers of words, and say for each place how likely each word is.

References:
    Vaswani et al. 2017, "Attention Is All You Need": https://arxiv.org/abs/1706.03762
    Devlin et al. 2019, "BERT", section 3.1, the hidden words: https://arxiv.org/abs/1810.04805
    Radford et al. 2018, GPT, the next word: https://openai.com/research/language-unsupervised

The trails of shapes use B batch, S source, T tokens (or target), W words of the vocabulary and D the width of the model
(d_model).
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from attnviz.models.attention import AttendFunction, scaled_dot_product_attention
from attnviz.models.config import LanguageConfig, ToyConfig, TranslationConfig
from attnviz.models.embedding import (
    WordEmbedding,
    after_start,
    likeliest,
    sinusoidal_positions,
)
from attnviz.models.transformer import Decoder, Encoder, EncoderDecoder, Weights, pad

Layers: TypeAlias = list[Float[Tensor, "batch head tokens tokens"] | None]
"""Each layer's weights; None where the `attend` function kept them."""


def word_vector(word: str, d_model: int, seed: int = 0) -> Float[Tensor, " d_model"]:
    """Return the vector of a word [d_model]: normal numbers from a generator that the word itself seeds.

    Spellings that look alike (a Korean syllable, composed or decomposed) have the same vector.
    """
    spelled = f"{seed} {unicodedata.normalize('NFC', word)}".encode()
    number = int.from_bytes(hashlib.blake2b(spelled, digest_size=8).digest(), "big")
    return torch.randn(d_model, generator=torch.Generator().manual_seed(number))


class ToyEncoder(nn.Module):
    """An encoder with word vectors and positions, all drawn from one seed."""

    def __init__(self, config: ToyConfig | None = None) -> None:
        super().__init__()
        self.config = config = config or ToyConfig()
        with torch.random.fork_rng(devices=[]):  # do not change the caller's random state
            # Not torch.manual_seed, which would seed every other device's generator too.
            torch.default_generator.manual_seed(config.seed)
            self.encoder = Encoder(config)
            # As The Annotated Transformer does. PyTorch's own choice is smaller: attention would be flat.
            for parameter in self.encoder.parameters():
                if parameter.ndim > 1:
                    nn.init.xavier_uniform_(parameter)
        self.eval()

    def embed(self, words: Sequence[str]) -> Float[Tensor, "tokens d_model"]:
        """Return each word's vector plus its position's: shape [tokens, d_model]."""
        vectors = self.word_vectors(words) + self.positions(len(words))  # (T, D) + (T, D)
        return vectors.to(next(self.parameters()))

    def word_vectors(self, words: Sequence[str]) -> Float[Tensor, "tokens d_model"]:
        """Return the vectors of words [tokens, d_model]."""
        d_model, seed = self.config.d_model, self.config.seed
        return torch.stack([word_vector(word, d_model, seed) for word in words])

    def positions(self, n: int) -> Float[Tensor, "position d_model"]:
        """Return the vectors of the first n positions [position, d_model]."""
        if self.config.positions == "learned":  # a position table, as in BERT
            table = self.word_vectors([f"position {place}" for place in range(n)])
            return table * 2**-0.5  # as large as sinusoidal positions
        return sinusoidal_positions(n, self.config.d_model)

    def forward(
        self,
        sentences: Sequence[Sequence[str]],
        *,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch tokens d_model"], Layers]:
        """Return the output of sentences, padded, [batch, tokens, d_model] and each layer's weights."""
        x, mask = pad([self.embed(words) for words in sentences])
        x, weights, _ = self.encoder(x, None if mask.all() else mask, attend=attend)
        return x, weights


class Reading(NamedTuple):
    """The output of a language encoder."""

    logits: Tensor  # logits of the word at each place [batch, tokens, words]
    referents: Tensor  # logits of the referent of the word at each place [batch, tokens, words]
    vectors: Tensor  # output of the encoder [batch, tokens, d_model]
    weights: list[Tensor | None]  # each layer's [batch, head, query, key]


class LanguageEncoder(nn.Module):
    """A bidirectional encoder that predicts hidden words and what pronouns refer to.

    Source: Devlin et al. 2019, section 3.1.
    """

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.config = config
        d_model = config.d_model
        self.embedding = WordEmbedding(config.n_words, d_model, positions=config.positions)
        self.encoder = Encoder(config)
        self.word_projection = nn.Linear(d_model, config.n_words)
        self.referent_projection = nn.Linear(d_model, config.n_words)
        initialise(self)

    def encode(
        self,
        words: Int[Tensor, "batch tokens"],
        *,
        positions: bool = True,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch tokens d_model"], Layers]:
        """Return the word vectors and each layer's weights; no word sees padding.

        ``positions=False`` reads the sentences as bags of words.
        """
        here = words != self.config.pad  # (B, T)
        x = self.embedding(words, positions=positions)  # (B, T) -> (B, T, D)
        x, weights, _ = self.encoder(x, here[:, None], attend=attend)
        return x, weights

    def forward(self, words: Int[Tensor, "batch tokens"], **reading: Any) -> Reading:
        """Read sentences as `encode` does, and predict words, which is expensive."""
        x, weights = self.encode(words, **reading)
        # (B, T, D) -> (B, T, W)
        return Reading(self.word_projection(x), self.referent_projection(x), x, weights)


class LanguageDecoder(nn.Module):
    """A decoder that predicts, at each word, which one comes next.

    Source: Radford et al. 2018, section 3.1.
    """

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.config = config
        d_model = config.d_model
        self.embedding = WordEmbedding(config.n_words, d_model, positions=config.positions)
        self.decoder = Decoder(config, cross=False)
        self.word_projection = nn.Linear(d_model, config.n_words)
        initialise(self)

    def encode(
        self,
        words: Int[Tensor, "batch tokens"],
        *,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch tokens d_model"], Layers]:
        """Return the word vectors and each layer's weights.

        Padding comes after the words, and no word attends to later ones, so none sees it.
        """
        x = self.embedding(words)  # (B, T) -> (B, T, D)
        x, weights, _ = self.decoder(x, attend=attend)
        return x, weights

    def forward(
        self, words: Int[Tensor, "batch tokens"], **reading: Any
    ) -> tuple[Float[Tensor, "batch tokens words"], Layers]:
        """Return the logits of the next word at each place [batch, tokens, words], and each layer's weights."""
        x, weights = self.encode(words, **reading)
        return self.word_projection(x), weights  # (B, T, D) -> (B, T, W)


class Translation(NamedTuple):
    """The output of an encoder-decoder, step by step."""

    words: Tensor  # the most likely word at each step, padding after the end [batch, target]
    logits: Tensor  # logits of each word [batch, target, words]
    weights: Weights  # weights of each layer by kind


class TranslationTransformer(nn.Module):
    """The complete Transformer: embeddings, encoder, decoder, and a projection to words.

    Source: Vaswani et al. 2017, figure 1.
    """

    def __init__(self, config: TranslationConfig) -> None:
        super().__init__()
        self.config = config
        d_model, positions = config.d_model, config.positions
        self.source_embedding = WordEmbedding(config.n_source_words, d_model, positions=positions)
        self.target_embedding = WordEmbedding(config.n_target_words, d_model, positions=positions)
        self.transformer = EncoderDecoder(config)
        self.word_projection = nn.Linear(d_model, config.n_target_words)
        initialise(self)

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        **attend: AttendFunction,
    ) -> Translation:
        """Translate with teacher forcing: each step has read the right words before it.

        ``target`` is what it should generate, its end included; ``logits[:, i]`` is about ``target[:, i]``.
        ``attend_encoder``, ``attend_decoder`` and ``attend_cross`` are as in `EncoderDecoder`.
        """
        config = self.config
        here, there = source != config.pad, target != config.pad  # (B, S) and (B, T)
        x, weights = self.transformer(
            self.source_embedding(source),  # (B, S) -> (B, S, D)
            self.target_embedding(after_start(target, config.start)),  # (B, T) -> (B, T, D)
            here[:, None],
            **attend,
        )
        logits = self.word_projection(x)  # (B, T, D) -> (B, T, W)
        words = likeliest(logits, config).masked_fill(~there, config.pad)
        return Translation(words, logits, weights)

    @torch.no_grad()
    def translate(
        self, source: Int[Tensor, "batch source"], *, max_length: int | None = None
    ) -> Translation:
        """Translate freely: each step has read the model's own most likely words, until the end.

        No word attends to later ones, so teacher forcing with its own words gives the same numbers; logits and weights
        come from that last pass.
        """
        config = self.config
        here = (source != config.pad)[:, None]  # (B, 1, S)
        memory, _, _ = self.transformer.encoder(self.source_embedding(source), here)  # (B, S, D)
        read = source.new_full((len(source), 1), config.start)  # (B, 1), one longer with each step
        finished = torch.zeros(len(source), dtype=torch.bool, device=source.device)
        for _ in range(max_length or config.max_length):
            x, _, _ = self.transformer.decoder(
                self.target_embedding(read), memory=memory, memory_mask=here
            )
            word = likeliest(self.word_projection(x[:, -1]), config)  # (B)
            word = word.masked_fill(finished, config.pad)
            read = torch.cat([read, word[:, None]], dim=1)
            finished |= word == config.end
            if finished.all():
                break
        translation: Translation = self(source, read[:, 1:])
        return translation._replace(words=read[:, 1:])


def initialise(model: nn.Module) -> None:
    """Draw every projection again, as The Annotated Transformer does; with PyTorch's defaults attention is flat."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
