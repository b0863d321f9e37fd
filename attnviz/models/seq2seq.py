"""Recurrent sequence to sequence: one network reads the sentence, another writes it in another language, word by word.

Without attention, the second network knows only the last state of the first. With attention, it uses its own state at
each step as a query to find which of the first network's states matters now.

References:
    Sutskever et al. 2014, "Sequence to Sequence Learning with Neural Networks": https://arxiv.org/abs/1409.3215
    Bahdanau et al. 2015, "Neural Machine Translation by Jointly Learning to Align and Translate":
        https://arxiv.org/abs/1409.0473
    Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation":
        https://arxiv.org/abs/1508.04025

The trails of shapes use B batch, S source, T steps, W words that can be generated, E the width of the words' vectors
(d_embedding) and D that of the states (d_hidden).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnviz.models.attention import AttendFunction, scaled_dot_product_attention
from attnviz.models.config import RecurrentConfig
from attnviz.models.embedding import WordEmbedding, likeliest


# context = Attention(s W^Q, H W^K, H W^V)
class RecurrentAttention(nn.Module):
    """Attention with the decoder's state s as query and the encoder's states H as keys and values.

    Source: Bahdanau et al. 2015, section 3.1.
    """

    def __init__(self, d_hidden: int) -> None:
        super().__init__()
        self.query_projection = nn.Linear(d_hidden, d_hidden)  # W^Q
        self.key_projection = nn.Linear(d_hidden, d_hidden)  # W^K
        self.value_projection = nn.Linear(d_hidden, d_hidden)  # W^V

    def keys_and_values(
        self, states: Float[Tensor, "batch source hidden"]
    ) -> tuple[Float[Tensor, "batch source hidden"], Float[Tensor, "batch source hidden"]]:
        """Project the encoder's states to keys and values, which are the same at every step."""
        return self.key_projection(states), self.value_projection(states)  # (B, S, D) each

    def forward(
        self,
        state: Float[Tensor, "batch hidden"],
        key: Float[Tensor, "batch source hidden"],
        value: Float[Tensor, "batch source hidden"],
        mask: Bool[Tensor, "batch source"],
        *,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch hidden"], Float[Tensor, "batch source"] | None]:
        """Return the context [batch, hidden] and the weights [batch, source] of one step.

        ``attend`` sees one head and one query: (B, 1, 1, D), twice (B, 1, S, D) and the mask (B, 1, 1, S).
        """
        query = self.query_projection(state)[:, None, None]  # (B, D) -> (B, 1, 1, D)
        context, weights = attend(query, key[:, None], value[:, None], mask[:, None, None])
        return context[:, 0, 0], None if weights is None else weights[:, 0, 0]  # (B, D), (B, S)


class Encoded(NamedTuple):
    """The encoder's output, as the decoder reads it."""

    states: Tensor  # one for each source word, zero at the padding [batch, source, hidden]
    # encoder state after each sentence's last word, the decoder's first state [batch, hidden]
    last: Tensor
    mask: Tensor  # True for words, False for padding [batch, source]
    key: Tensor  # the states projected to keys; without attention the states, which nobody reads
    value: Tensor  # likewise the values


class RecurrentTranslation(NamedTuple):
    """The decoder's output, step by step."""

    words: Tensor  # the most likely word at each step, padding after the end [batch, step]
    logits: Tensor  # logits of each word [batch, step, words]
    # weights over source words [batch, step, source]; None without attention, or if the `attend` function kept them
    weights: Tensor | None


# s_t = cell([y_(t-1), context(s_(t-1))], s_(t-1)), logits_t = s_t W^O
class RecurrentTranslator(nn.Module):
    """An encoder and a decoder with attention between them, or without it.

    Without attention only the encoder's last state is passed on.

    Source: Bahdanau et al. 2015, section 3; without attention Sutskever et al. 2014, section 2.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__()
        self.config = config
        d_embedding, d_hidden = config.d_embedding, config.d_hidden
        self.source_embedding = WordEmbedding(config.n_source_words, d_embedding, positions=False)
        self.encoder = nn.GRU(d_embedding, d_hidden, batch_first=True)
        self.target_embedding = WordEmbedding(config.n_target_words, d_embedding, positions=False)
        self.attention = None if config.attention is None else RecurrentAttention(d_hidden)
        d_context = 0 if self.attention is None else d_hidden
        self.cell = nn.GRUCell(d_embedding + d_context, d_hidden)
        self.word_projection = nn.Linear(d_hidden, config.n_target_words)
        if config.forgetful:
            forget(self.encoder)

    def encode(self, source: Int[Tensor, "batch source"]) -> Encoded:
        """Return the encoder's states of the sentences; each sentence is read to its last word."""
        here = source != self.config.pad  # (B, S)
        x = self.source_embedding(source)  # (B, S) -> (B, S, E)
        packed = pack_padded_sequence(
            x, here.sum(dim=1).cpu(), batch_first=True, enforce_sorted=False
        )
        packed_states, last = self.encoder(packed)
        states, _ = pad_packed_sequence(
            packed_states, batch_first=True, total_length=source.shape[1]
        )  # (B, S, D)
        key = value = states
        if self.attention is not None:
            key, value = self.attention.keys_and_values(states)
        return Encoded(states, last[0], here, key, value)  # last: (1, B, D) -> (B, D)

    def step(
        self,
        word: Int[Tensor, " batch"],
        state: Float[Tensor, "batch hidden"],
        encoded: Encoded,
        *,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[
        Float[Tensor, "batch words"],
        Float[Tensor, "batch hidden"],
        Float[Tensor, "batch source"] | None,
    ]:
        """Return the next word's logits, the new state, and the weights, given the previous word and state."""
        x = self.target_embedding(word[:, None])[:, 0]  # (B) -> (B, E)
        weights = None
        if self.attention is not None:
            context, weights = self.attention(
                state, encoded.key, encoded.value, encoded.mask, attend=attend
            )
            x = torch.cat([x, context], dim=-1)  # (B, E) and (B, D) -> (B, E + D)
        state = self.cell(x, state)
        return self.word_projection(state), state, weights  # (B, D) -> (B, W)

    def forward(
        self,
        source: Int[Tensor, "batch source"],
        target: Int[Tensor, "batch target"] | None = None,
        *,
        max_length: int | None = None,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> RecurrentTranslation:
        """Translate with teacher forcing: each step reads the right previous word.

        ``target`` is what it should generate, its end included; ``logits[:, i]`` is about ``target[:, i]``. Without a
        target each step reads the model's own most likely word, until the end or at most ``max_length`` words.
        """
        config = self.config
        n_steps = (max_length or config.max_length) if target is None else target.shape[1]
        encoded = self.encode(source)
        state = encoded.last
        read = source.new_full((len(source),), config.start)
        finished = torch.zeros_like(read, dtype=torch.bool)
        words, all_logits, all_weights = [], [], []
        for step in range(n_steps):
            logits, state, weights = self.step(read, state, encoded, attend=attend)
            words.append(likeliest(logits, config).masked_fill(finished, config.pad))
            all_logits.append(logits)
            if weights is not None:
                all_weights.append(weights)
            read = words[-1] if target is None else target[:, step]
            finished = finished | (read == config.end)
            if target is None and finished.all():
                break
        return RecurrentTranslation(
            torch.stack(words, dim=1),  # T of (B) -> (B, T)
            torch.stack(all_logits, dim=1),  # T of (B, W) -> (B, T, W)
            torch.stack(all_weights, dim=1) if all_weights else None,  # T of (B, S) -> (B, T, S)
        )

    @torch.no_grad()
    def translate(
        self, source: Int[Tensor, "batch source"], *, max_length: int | None = None
    ) -> RecurrentTranslation:
        """Translate freely: each step reads the model's own most likely word, until the end."""
        return self.forward(source, max_length=max_length)


@torch.no_grad()
def forget(network: nn.GRU) -> None:
    """Close the gates of a network to the past; training may open them again.

    The opposite of what Jozefowicz et al. 2015 ("An Empirical Exploration of Recurrent Network Architectures", section
    2.2) do to an LSTM's forget gate, for the opposite aim.
    """
    width = network.hidden_size
    bias = network.get_parameter("bias_ih_l0")  # of the gates: reset, update, new
    bias[:width] -= 2
    bias[width : 2 * width] -= 3
