"""Tasks of the home-built models: hidden words and referents, next words, translations.

Only words are targets; where heads attend is whatever helped to predict the right word.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import islice
from random import Random

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from attnviz.models.attention import AttendFunction, scaled_dot_product_attention
from attnviz.models.config import (
    Language,
    LanguageConfig,
    WordsConfig,
)
from attnviz.models.language import splits
from attnviz.models.language.grammar import load_grammar
from attnviz.models.language.sentences import Pair
from attnviz.models.language.vocabulary import SPECIAL, load_vocabulary
from attnviz.models.language_models import LanguageDecoder, LanguageEncoder, TranslationTransformer
from attnviz.models.registry import Recipe, TrainingPlan
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.files import Model

IGNORED = -100  # a target that the loss ignores


def loss_of(model: Model, plan: TrainingPlan, step: int) -> Tensor:
    """Return the loss of a model on the batch of a step, in nats; the number of the step determines the batch."""
    if isinstance(model, LanguageEncoder):
        return hidden_words(model, plan.recipe, step)
    if isinstance(model, LanguageDecoder):
        return next_word(model, plan.recipe, step)
    return translation(model, plan.recipe, plan.clauses, step)


def hidden_words(model: LanguageEncoder, recipe: Recipe, step: int) -> Tensor:
    """Return the loss of predicting hidden words, and for the pronoun "it" the noun that it stands for.

    It is the cross entropy of the hidden words plus that of the referents.

    Source: Devlin et al. 2019, BERT, section 3.1.
    """
    random = Random(f"hidden {recipe.seed} {step}")
    language = model.config.language
    stream = splits.sentences("train", random.randrange(2**62), language=language)
    batch = list(islice(stream, recipe.batch))
    vocabulary = load_vocabulary(language)
    words = pad_numbers([vocabulary.encode(_drop_some_stops(random, s.words)) for s in batch])
    shown, hidden = hide(random, words, model.config, recipe.unknown)
    referents = torch.full_like(words, IGNORED)
    for row, sentence in enumerate(batch):
        if sentence.reference is not None:
            pronoun, noun = sentence.reference.pronoun, sentence.reference.noun
            referents[row, pronoun] = words[row, noun]
            # The noun must be visible, or the model could not find out what "it" stands for.
            shown[row, noun] = words[row, noun]
    vectors, _ = model.encode(shown, attend=dropping_heads(recipe.drop_heads, random))
    loss = _loss_at(hidden, vectors, model.word_projection)
    if (referents != IGNORED).any():
        loss = loss + _loss_at(referents, vectors, model.referent_projection)
    return loss


def hide(
    random: Random, words: Tensor, config: LanguageConfig, unknown: float
) -> tuple[Tensor, Tensor]:
    """Choose words to be predicted: one noun, adjective or verb in four, and one other word in ten.

    Three in five of them are hidden, one in five is replaced by another word, and one in five is unchanged. BERT hides
    eight in ten and replaces words by any other word. With fewer, and with another of the same form, words that stand
    there in plain sight are doubted more often: "eating a green [dog]". What they go with is then looked at in
    sentences without a gap too.
    """
    vocabulary, alike = load_vocabulary(config.language), _words_alike(config.language)
    shown, hidden = words.clone(), torch.full_like(words, IGNORED)
    for row, column in (words != config.pad).nonzero().tolist():
        number = int(words[row, column])
        word = vocabulary.words[number]
        chance = random.random() / (0.25 if word in alike else 0.1)
        if chance < 1:
            hidden[row, column] = number
            if chance < 0.6:
                shown[row, column] = config.mask
            elif chance < 0.8:  # a grammatical word is replaced by any other word
                others = alike.get(word, vocabulary.words[len(SPECIAL) :])
                shown[row, column] = vocabulary.encode([random.choice(others)])[0]
        elif random.random() < unknown:
            shown[row, column] = config.unknown
    return shown, hidden


@functools.cache
def _words_alike(language: Language) -> dict[str, tuple[str, ...]]:
    """Return all words of the same form for each noun, adjective and verb."""
    return {word: group for group in load_grammar(language).alike() for word in group}


def next_word(model: LanguageDecoder, recipe: Recipe, step: int) -> Tensor:
    """Return the loss of predicting the next word after each word, the end included.

    Source: Radford et al. 2018, GPT, section 3.1.
    """
    random = Random(f"next {recipe.seed} {step}")
    batch = list(islice(splits.sentences("train", random.randrange(2**62)), recipe.batch))
    encode, end = load_vocabulary("english").encode, model.config.end
    words = pad_numbers([[*encode(_drop_some_stops(random, s.words)), end] for s in batch])
    vectors, _ = model.encode(words[:, :-1], attend=dropping_heads(recipe.drop_heads, random))
    return _loss_at(words[:, 1:], vectors, model.word_projection, model.config.pad)


def _loss_at(
    targets: Tensor, vectors: Tensor, projection: nn.Module, ignored: int = IGNORED
) -> Tensor:
    """Return the cross entropy where there is a target; only there are vectors projected to words."""
    there = targets != ignored
    return cross_entropy(projection(vectors[there]), targets[there])


def translation(
    model: RecurrentTranslator | TranslationTransformer,
    recipe: Recipe,
    clauses: Sequence[int | None],
    step: int,
) -> Tensor:
    """Return the loss of translating into Korean, each word after the right ones before it (teacher forcing)."""
    random = Random(f"translate {recipe.seed} {step}")
    n_clauses = clauses[random.randrange(len(clauses))]
    pairs = list(islice(splits.pairs("train", random.randrange(2**62), n_clauses), recipe.batch))
    source, target = encode_pairs(pairs, model.config.end)
    source = _with_unknown(random, source, recipe.unknown, model.config)
    # decoder input, not output
    read = _with_unknown(random, target, recipe.forget, model.config)
    if isinstance(model, TranslationTransformer):
        logits = model(source, read, attend_cross=dropping_heads(recipe.drop_heads, random)).logits
    else:
        logits = model(source, read).logits
    return cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=model.config.pad)


def _with_unknown(random: Random, words: Tensor, share: float, config: WordsConfig) -> Tensor:
    """Return the numbers of words with a random share of the words replaced by "unknown"."""
    generator = torch.Generator().manual_seed(random.randrange(2**62))
    chosen = torch.rand(words.shape, generator=generator) < share
    return words.masked_fill(chosen & (words != config.pad), config.unknown)


def encode_pairs(pairs: Sequence[Pair], end: int) -> tuple[Tensor, Tensor]:
    """Return pairs as numbers: the sources, and the targets with their end."""
    english, korean = load_vocabulary("source"), load_vocabulary("target")
    source = pad_numbers([english.encode(pair.english) for pair in pairs])
    target = pad_numbers([[*korean.encode(pair.korean), end] for pair in pairs])
    return source, target


def pad_numbers(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return rows of numbers as one tensor [batch, tokens], padded with zeros."""
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)


def dropping_heads(share: float, random: Random) -> AttendFunction:
    """Return attention that drops this share of the heads at random, separately for each sentence."""
    if not share:
        return scaled_dot_product_attention
    generator = torch.Generator().manual_seed(random.randrange(2**62))

    def attend(
        query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        context, weights = scaled_dot_product_attention(query, key, value, mask)
        kept = torch.rand(*context.shape[:2], 1, 1, generator=generator) >= share  # (B, H, 1, 1)
        return context * kept / (1 - share), weights

    return attend


def _drop_some_stops(random: Random, words: Sequence[str]) -> Sequence[str]:
    """Return the sentence, in 30% of the cases without its full stop, as people type."""
    return words[:-1] if words[-1] == "." and random.random() < 0.3 else words
