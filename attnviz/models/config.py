"""The sizes of the home-built models.

Reading them does not import torch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from attnviz.errors import ModelError

Language = Literal["english", "korean"]
Positions = Literal["sinusoidal", "learned"]


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """The sizes of a stack of layers; the defaults are the paper's "base" model (Vaswani et al. 2017, table 3)."""

    d_model: int = 512  # width of the word vectors
    n_heads: int = 8  # how many heads share it
    n_layers: int = 6  # how many layers follow one another (in each half, where there are two)
    d_ff: int = 2048  # the width inside the feed-forward networks


@dataclass(frozen=True, kw_only=True)
class ToyConfig(StackConfig):
    """The sizes of the encoder with random weights, which reads any words."""

    d_model: int = 20
    n_heads: int = 4
    n_layers: int = 2
    d_ff: int = 80
    seed: int = 0  # another seed, another model; the same seed, the same model
    # learned ones are drawn at random here, like everything else
    positions: Positions = "sinusoidal"
    special_tokens: bool = False  # whether each sentence is read between ``[CLS]`` and ``[SEP]``


@dataclass(frozen=True, kw_only=True)
class WordsConfig:
    """The numbers of special words, and other settings of every model that reads words."""

    pad: int = 0  # the number that fills a batch up, always after the words
    unknown: int = 1  # that of any word which is not in the vocabulary
    start: int = 2  # what a decoder begins with
    end: int = 3  # what a decoder stops with
    mask: int = 4  # what an encoder hides a word behind; a model that hides none may give it any other's number
    max_length: int = 128  # how many words the model reads or generates at most


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(WordsConfig, StackConfig):
    """The sizes that every Transformer of words has."""

    d_model: int = 48
    n_heads: int = 6
    n_layers: int = 3
    d_ff: int = 192
    positions: bool = True  # whether the vectors say where a word stands


@dataclass(frozen=True, kw_only=True)
class LanguageConfig(TransformerConfig):
    """The sizes of a model of one language."""

    n_words: int  # size of the vocabulary, with special words
    language: Language = "english"  # of these words


@dataclass(frozen=True, kw_only=True)
class TranslationConfig(TransformerConfig):
    """The sizes of a Transformer that translates."""

    n_source_words: int  # size of the source vocabulary, with special words
    n_target_words: int  # size of the target vocabulary, with special words


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(WordsConfig):
    """The sizes of a recurrent encoder-decoder."""

    n_source_words: int  # size of the source vocabulary, with special words
    n_target_words: int  # size of the target vocabulary, with special words
    d_embedding: int = 32  # width of the word vectors
    d_hidden: int = 64  # width of the states
    attention: Literal["scaled_dot"] | None = "scaled_dot"  # None: no attention
    # Whether the encoder's gates are nearly closed to the past before training. Each state is then about its own word
    # at first, and the decoder learns to attend to the others.
    forgetful: bool = False


def expect_sizes(**sizes: int) -> None:
    """Refuse a size below 1: ``expect_sizes(d_ff=0)`` says: d_ff is too small: expected at least 1, got 0."""
    for name, size in sizes.items():
        if size < 1:
            raise ModelError(f"{name} is too small: expected at least 1, got {size}")
