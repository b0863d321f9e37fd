"""Whole models of one language: numbers of words in, and for each place how likely each word is.

References:
    Vaswani et al. 2017, "Attention Is All You Need": https://arxiv.org/abs/1706.03762
    Devlin et al. 2019, "BERT", section 3.1, the hidden words: https://arxiv.org/abs/1810.04805
    Radford et al. 2018, GPT, the next word: https://openai.com/research/language-unsupervised

The trails of shapes use B batch, T tokens, W words of the vocabulary and D the width of the model (d_model).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn

from attnviz.models.attention import AttendFunction, scaled_dot_product_attention
from attnviz.models.decoder import Decoder
from attnviz.models.embedding import WordEmbedding, WordsConfig
from attnviz.models.transformer import Activation, Encoder


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerConfig(WordsConfig):
    """The sizes that every Transformer has.

    Attributes:
        d_model: the width of the words' vectors.
        n_heads: how many heads share it.
        n_layers: how many layers follow one another (in each half, where there are two).
        d_ff: the width inside the feed-forward networks.
        activation: ``relu`` or ``gelu``.
        positions: whether the vectors say where a word stands.
    """

    d_model: int = 48
    n_heads: int = 6
    n_layers: int = 3
    d_ff: int = 192
    activation: Activation = "relu"
    positions: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageConfig(TransformerConfig):
    """The sizes of a model of one language.

    Attributes:
        n_words: how many words it knows, special ones included.
    """

    n_words: int


class Reading(NamedTuple):
    """What an encoder makes of sentences.

    Attributes:
        logits: how likely each word stands at each place [batch, tokens, words].
        referents: how likely each word is what the one at each place stands for [batch, tokens, words].
        vectors: what the encoder wrote [batch, tokens, d_model].
        weights: each layer's [batch, head, query, key].
    """

    logits: Tensor
    referents: Tensor
    vectors: Tensor
    weights: list[Tensor | None]


class LanguageEncoder(nn.Module):
    """It reads in both directions, names hidden words, and names what a pronoun stands for.

    Args:
        config: its sizes.

    Raises:
        ModelError: sizes that make no sense.

    Source: Devlin et al. 2019, section 3.1.
    """

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.config = config
        d_model = config.d_model
        self.embedding = WordEmbedding(config, config.n_words, d_model, positions=config.positions)
        self.encoder = Encoder(
            config.n_layers, d_model, config.n_heads, config.d_ff, config.activation, dropout=config.dropout
        )
        self.word_map = nn.Linear(d_model, config.n_words)
        self.referent_map = nn.Linear(d_model, config.n_words)
        initialise(self)

    def forward(
        self,
        words: Int[Tensor, "batch tokens"],
        *,
        positions: bool = True,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> Reading:
        """Sentences read whole; padding is seen by no word. ``positions=False`` reads them as sets of words.

        Raises:
            InputError: a sentence without words, or too long.
            ModelError: numbers that are no words'.
        """
        here = self.embedding.expect_words(words)  # (B, T)
        x = self.embedding(words, positions=positions)  # (B, T) -> (B, T, D)
        x, weights = self.encoder(x, here[:, None], attend=attend)
        return Reading(self.word_map(x), self.referent_map(x), x, weights)  # (B, T, D) -> (B, T, W)


class LanguageDecoder(nn.Module):
    """It reads from left to right and says at each word which one comes next.

    Args:
        config: its sizes.

    Raises:
        ModelError: sizes that make no sense.

    Source: Radford et al. 2018, section 3.1.
    """

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.config = config
        d_model = config.d_model
        self.embedding = WordEmbedding(config, config.n_words, d_model, positions=config.positions)
        self.decoder = Decoder(
            config.n_layers,
            d_model,
            config.n_heads,
            config.d_ff,
            config.activation,
            cross=False,
            dropout=config.dropout,
        )
        self.word_map = nn.Linear(d_model, config.n_words)
        initialise(self)

    def forward(
        self,
        words: Int[Tensor, "batch tokens"],
        *,
        positions: bool = True,
        attend: AttendFunction = scaled_dot_product_attention,
    ) -> tuple[Float[Tensor, "batch tokens words"], list[Float[Tensor, "batch head tokens tokens"] | None]]:
        """The logits of the word after each [batch, tokens, words], and each layer's weights.

        The padding comes after the words, and no word looks ahead, so none sees it.

        Raises:
            InputError: a sentence without words, or too long.
            ModelError: numbers that are no words'.
        """
        self.embedding.expect_words(words)
        x = self.embedding(words, positions=positions)  # (B, T) -> (B, T, D)
        x, weights, _ = self.decoder(x, attend=attend)
        return self.word_map(x), weights  # (B, T, D) -> (B, T, W)


def initialise(model: nn.Module) -> None:
    """Draw every map anew, as The Annotated Transformer does: PyTorch's own choice is smaller, attention flat."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
