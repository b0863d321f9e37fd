"""The Transformer whole: it reads a sentence and says it in another language, word by word.

References:
    Vaswani et al. 2017, "Attention Is All You Need", figure 1: https://arxiv.org/abs/1706.03762

The trails of shapes use B batch, S source, T target, W words that can be said, D the width of the model (d_model).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor, nn

from attnviz.models.attention import AttendFunction, scaled_dot_product_attention
from attnviz.models.decoder import EncoderDecoder, Weights
from attnviz.models.embedding import WordEmbedding, after_start, likeliest, most_steps
from attnviz.models.shapes import expect_shape
from attnviz.models.wholes import TransformerConfig, initialise


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationConfig(TransformerConfig):
    """The sizes of a model that translates.

    Attributes:
        n_source_words: how many words it can read, special ones included.
        n_target_words: how many words it can say, special ones included.
    """

    n_source_words: int
    n_target_words: int


class Translation(NamedTuple):
    """What an encoder-decoder says, step by step.

    Attributes:
        words: its own choice at each step, padding after the end [batch, target].
        logits: how likely each word was [batch, target, words].
        weights: by kind, each layer's.
    """

    words: Tensor
    logits: Tensor
    weights: Weights


class TranslationTransformer(nn.Module):
    """The Transformer whole: embeddings, encoder, decoder, and a map to the words it can say.

    Args:
        config: its sizes.

    Raises:
        ModelError: sizes that make no sense.

    Source: Vaswani et al. 2017, figure 1.
    """

    def __init__(self, config: TranslationConfig) -> None:
        super().__init__()
        self.config = config
        d_model, positions = config.d_model, config.positions
        self.source_embedding = WordEmbedding(config, config.n_source_words, d_model, positions=positions)
        self.target_embedding = WordEmbedding(config, config.n_target_words, d_model, positions=positions)
        self.transformer = EncoderDecoder(
            config.n_layers, d_model, config.n_heads, config.d_ff, config.activation, dropout=config.dropout
        )
        self.word_map = nn.Linear(d_model, config.n_target_words)
        initialise(self)

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"],
        *,
        positions: bool = True,
        attend_encoder: AttendFunction = scaled_dot_product_attention,
        attend_decoder: AttendFunction = scaled_dot_product_attention,
        attend_cross: AttendFunction = scaled_dot_product_attention,
    ) -> Translation:
        """Teacher forcing: at each step it has read the right words before it, whatever it would have said.

        ``target`` is what should be said, its end included; ``logits[:, i]`` is about ``target[:, i]``.

        Raises:
            InputError: a sentence without words, or too long.
            ModelError: numbers that are no words', or not one target for each source.
        """
        config = self.config
        here = self.source_embedding.expect_words(source)  # (B, S)
        expect_shape("target", target, len(source), "target")
        there = self.target_embedding.expect_words(target)  # (B, T)
        x, weights = self.transformer(
            self.source_embedding(source, positions=positions),  # (B, S) -> (B, S, D)
            self.target_embedding(after_start(target, config.start), positions=positions),  # (B, T) -> (B, T, D)
            here[:, None],
            attend_encoder=attend_encoder,
            attend_decoder=attend_decoder,
            attend_cross=attend_cross,
        )
        logits = self.word_map(x)  # (B, T, D) -> (B, T, W)
        words = likeliest(logits, config).masked_fill(~there, config.pad)
        return Translation(words, logits, weights)

    @torch.no_grad()
    def translate(
        self,
        source: Int[Tensor, "batch source"],
        *,
        max_length: int | None = None,
        positions: bool = True,
        attend_encoder: AttendFunction = scaled_dot_product_attention,
        attend_decoder: AttendFunction = scaled_dot_product_attention,
        attend_cross: AttendFunction = scaled_dot_product_attention,
    ) -> Translation:
        """Free running: at each step it has read its own words, each the likeliest, until the end.

        Since no word looks ahead, what it computed on the way is what it computes when its own words are forced on
        it; the logits and the weights come from that last pass, the only one that the ``attend`` functions see.

        Raises:
            InputError: a sentence without words, or too long.
            ModelError: numbers that are no words'.
        """
        config = self.config
        here = self.source_embedding.expect_words(source)[:, None]  # (B, 1, S)
        memory, _ = self.transformer.encoder(self.source_embedding(source, positions=positions), here)  # (B, S, D)
        read = source.new_full((len(source), 1), config.start)  # (B, 1), one longer with each step
        finished = torch.zeros(len(source), dtype=torch.bool, device=source.device)
        for _ in range(most_steps(max_length, config)):
            x = self.target_embedding(read, positions=positions)  # (B, T, D)
            x, _, _ = self.transformer.decoder(x, memory=memory, memory_mask=here)
            word = likeliest(self.word_map(x[:, -1]), config).masked_fill(finished, config.pad)  # (B)
            read = torch.cat([read, word[:, None]], dim=1)
            finished |= word == config.end
            if finished.all():
                break
        translation: Translation = self(
            source,
            read[:, 1:],
            positions=positions,
            attend_encoder=attend_encoder,
            attend_decoder=attend_decoder,
            attend_cross=attend_cross,
        )
        return translation._replace(words=read[:, 1:])
