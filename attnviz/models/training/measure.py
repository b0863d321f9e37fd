"""Measures of a model on sentences that it never saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from attnviz.models.config import Language, LanguageConfig
from attnviz.models.language import splits
from attnviz.models.language.sentences import GoldSentence, Pair
from attnviz.models.language.splits import Split
from attnviz.models.language.vocabulary import PIECE, load_vocabulary
from attnviz.models.language_models import LanguageDecoder, LanguageEncoder, TranslationTransformer
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.files import Model
from attnviz.models.training.tasks import encode_pairs, pad_numbers

Translator = RecurrentTranslator | TranslationTransformer
Head: TypeAlias = tuple[int, int]  # a layer and a head

SAMPLES = 500  # sentences per measure


@torch.inference_mode()
def decided_words(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> float:
    """Return the share of words decided by the grammar that the model names when they are hidden one at a time."""
    # Each sentence once for each word to hide, and the place of this word.
    repeated = [sentence for sentence in sentences for _ in sentence.decided]
    hidden_places = [place for sentence in sentences for place in sorted(sentence.decided)]
    shown, rows = _numbers(model, repeated), torch.arange(len(repeated))
    hidden = shown[rows, hidden_places]
    shown[rows, hidden_places] = model.config.mask
    batches = torch.split(shown, 512)
    named = torch.cat([model(batch).logits.argmax(dim=-1) for batch in batches])  # (B, T)
    return float((named[rows, hidden_places] == hidden).float().mean())


def references(
    split: Split, n: int, kind: str = "reference", language: Language = "english"
) -> list[GoldSentence]:
    """Return sentences such as "The animal didn't cross the street because it was too tired", or with 자기."""
    return list(islice(splits.sentences(split, kind=kind, language=language), n))


def _numbers(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> Tensor:
    """Return the numbers of the words of sentences [sentence, word], padded."""
    vocabulary = load_vocabulary(model.config.language)
    return pad_numbers([vocabulary.encode(sentence.words) for sentence in sentences])


def places(sentences: Sequence[GoldSentence]) -> tuple[Tensor, Tensor]:
    """Return the position of "it" in each sentence, and that of the noun it stands for."""
    found = [sentence.reference for sentence in sentences if sentence.reference is not None]
    pronouns = torch.tensor([reference.pronoun for reference in found])
    nouns = torch.tensor([reference.noun for reference in found])
    return pronouns, nouns


@torch.inference_mode()
def named_referents(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> float:
    """Return the share of sentences in which the model names the noun that "it" stands for."""
    words = _numbers(model, sentences)
    rows, (pronouns, nouns) = torch.arange(len(sentences)), places(sentences)
    named = model(words).referents.argmax(dim=-1)  # (B, T)
    return float((named[rows, pronouns] == words[rows, nouns]).float().mean())


@torch.inference_mode()
def weights(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> Tensor:
    """Return each head's weights [sentence, layer, head, query, key]; ignore queries after a sentence's end."""
    reading = model(_numbers(model, sentences))
    return torch.stack([layer for layer in reading.weights if layer is not None], dim=1)


def weights_from_it(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> Tensor:
    """Return each head's weights from "it" [layer, head, sentence, key]."""
    rows, (pronouns, _) = torch.arange(len(sentences)), places(sentences)
    from_it = weights(model, sentences)[rows, :, :, pronouns]  # (B, L, H, T)
    return from_it.movedim(0, 2)


def _right(from_it: Tensor, sentences: Sequence[GoldSentence]) -> Tensor:
    """Return whether the largest weight from "it" is on the right noun, or on its particle [..., sentence]."""
    top_keys = from_it.argmax(dim=-1)
    _pronouns, nouns = places(sentences)
    after = [s.words[noun + 1] for s, noun in zip(sentences, nouns.tolist(), strict=True)]
    has_particle = torch.tensor([word.startswith(PIECE) for word in after])
    return (top_keys == nouns) | ((top_keys == nouns + 1) & has_particle)


def reference_accuracy(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> Tensor:
    """Return how often each head's largest weight from "it" is on the right noun [layer, head]."""
    return _right(weights_from_it(model, sentences), sentences).float().mean(dim=-1)


def reference_head(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> Head:
    """Return the head that attends from "it" to the right noun most often.

    Among equals it is one of the last layer, where the model names the noun, and there the one with the most weight.
    """
    from_it = weights_from_it(model, sentences)  # (L, H, B, T)
    right = _right(from_it, sentences).float().mean(dim=-1)  # (L, H)
    _pronouns, nouns = places(sentences)
    on_noun = from_it[:, :, torch.arange(len(sentences)), nouns].mean(dim=-1)  # (L, H)
    n_layers, n_heads = right.shape
    heads = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    return max(heads, key=lambda head: (float(right[head]), head[0], float(on_noun[head])))


def swap_referents(
    sentences: Sequence[GoldSentence], language: Language = "english"
) -> list[GoldSentence]:
    """Return the sentences changed so that each pronoun stands for the other noun.

    Tired becomes wide, or the other way round; with 자기, subject and object exchange their particles.
    """
    from attnviz.models.language.grammar import particle

    for_animals, for_places = splits.endings(language)
    swapped = []
    for number, sentence in enumerate(sentences):
        reference, words = sentence.reference, list(sentence.words)
        assert reference is not None
        if sentence.kind == "own":
            for noun, role in ((reference.noun, "object"), (reference.other, "subject")):
                words[noun + 1] = PIECE + particle(words[noun], role)
        else:
            last = reference.pronoun + 3
            others = for_places if words[last] in for_animals else for_animals
            words[last] = others[number % len(others)]
        other = replace(reference, noun=reference.other, other=reference.noun)
        swapped.append(replace(sentence, words=tuple(words), reference=other))
    return swapped


def accuracy_when_swapped(
    model: LanguageEncoder, head: Head, sentences: Sequence[GoldSentence]
) -> float:
    """Return the share of sentences in which a head is right both before and after the change."""
    swapped = swap_referents(sentences, model.config.language)
    right_before = _right(weights_from_it(model, sentences)[head], sentences)
    right_after = _right(weights_from_it(model, swapped)[head], swapped)
    return float((right_before & right_after).float().mean())


def fixed_offset(sentences: Sequence[GoldSentence]) -> int:
    """Return the most frequent distance from "it" to the noun that it stands for."""
    pronouns, nouns = places(sentences)
    return int((nouns - pronouns).mode().values)


@torch.inference_mode()
def next_words(model: LanguageDecoder, sentences: Sequence[GoldSentence]) -> float:
    """Return the cross entropy of the next words, in nats per word; the end of a sentence counts as a word."""
    config, vocabulary = model.config, load_vocabulary("english")
    words = pad_numbers([[*vocabulary.encode(s.words), config.end] for s in sentences])
    logits, _ = model(words[:, :-1])
    loss = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), words[:, 1:].flatten(), ignore_index=config.pad
    )
    return float(loss)


def some_pairs(split: Split, n: int, clauses: Sequence[int | None]) -> list[Pair]:
    """Return pairs of a split, with each number of clauses in turn; None: any number."""
    streams = cycle([splits.pairs(split, seed, number) for seed, number in enumerate(clauses)])
    return [next(stream) for stream in islice(streams, n)]


class Hits(NamedTuple):
    """How well a model translates, running free; the end of a sentence counts as a word of it."""

    exact: Tensor  # whether a sentence is translated without an error [sentence]
    word_accuracy: (
        float  # the share of words, other than the end, that are generated in the right place
    )


@torch.inference_mode()
def hits(model: Translator, pairs: Sequence[Pair]) -> Hits:
    """Translate each sentence, and compare with the right translation."""
    source, target = encode_pairs(pairs, model.config.end)
    n_steps = target.shape[1]  # later words count as wrong
    words = model.translate(source, max_length=n_steps).words
    words = torch.nn.functional.pad(words, (0, n_steps - words.shape[1]))
    right, is_word = words == target, target != model.config.pad
    is_inner = is_word & (target != model.config.end)
    return Hits((right | ~is_word).all(dim=-1), float(right[is_inner].double().mean()))


def alignment_error(top_keys: Sequence[Sequence[int]], pairs: Sequence[Pair]) -> float:
    """Return the alignment error rate of a source position for each step of each pair.

    1 - (|A and S| + |A and P|) / (|A| + |S|), with the pairs' sure (S) and possible (P) alignments.

    Source: Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", section 4.
    """
    right = total = 0
    for keys, pair in zip(top_keys, pairs, strict=True):
        aligned = set(enumerate(keys[: len(pair.korean)]))
        right += len(aligned & pair.sure) + len(aligned & pair.possible)
        total += len(aligned) + len(pair.sure)
    return 1 - right / total


@torch.inference_mode()
def alignment_errors(model: Translator, pairs: Sequence[Pair]) -> Tensor:
    """Return the alignment error rate of each head's largest weights at the right words [layer, head]."""
    source, target = encode_pairs(pairs, model.config.end)
    weights: Any = model(source, target).weights
    # Of a recurrent model (B, T, S) -> (B, 1, T, S): one layer with one head.
    layers = [weights[:, None]] if isinstance(model, RecurrentTranslator) else weights.cross
    top_keys = torch.stack([layer.argmax(dim=-1).transpose(0, 1) for layer in layers])
    return torch.tensor(  # (L, H, B, T) -> (L, H)
        [[alignment_error(keys, pairs) for keys in heads] for heads in top_keys.tolist()]
    )


def diagonal_error(pairs: Sequence[Pair]) -> float:
    """Return the alignment error rate of the diagonal (same relative position in source and target)."""
    diagonals = []
    for pair in pairs:
        n_source, n_steps = len(pair.english), len(pair.korean)
        diagonals.append([step * n_source // n_steps for step in range(n_steps)])
    return alignment_error(diagonals, pairs)


def best(scores: Tensor) -> Head:
    """Return the head with the largest score [layer, head]; among equals the first."""
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    return layer, head


def quality(
    model: Model, n: int = SAMPLES, clauses: Sequence[int | None] = (None,)
) -> dict[str, float]:
    """Measure a model on this many test sentences, by name; heads are chosen on validation sentences."""
    if isinstance(model, LanguageEncoder | LanguageDecoder):
        language = model.config.language
        sentences = list(islice(splits.sentences("test", language=language), n))
        if isinstance(model, LanguageDecoder):
            return {"cross-entropy, nats per word": next_words(model, sentences)}
        figures = {"hidden words predicted": decided_words(model, sentences)}
        figures |= _reference_quality(model, n, "reference")
        if language == "korean":
            own = _reference_quality(model, n, "own")
            figures |= {f"자기: {name}": value for name, value in own.items()}
        return figures
    pairs = some_pairs("test", n, clauses)
    translated = hits(model, pairs)
    figures = {
        "sentences translated correctly": float(translated.exact.double().mean()),
        "words translated correctly": translated.word_accuracy,
    }
    if isinstance(model, TranslationTransformer) or model.attention is not None:
        head = best(-alignment_errors(model, some_pairs("validation", n, clauses)))
        figures |= {
            "alignment layer": head[0],
            "alignment head": head[1],
            "alignment error": float(alignment_errors(model, pairs)[head]),
            "alignment error of the diagonal": diagonal_error(pairs),
        }
    return figures


def _reference_quality(model: LanguageEncoder, n: int, kind: str) -> dict[str, float]:
    """Return how well a model finds the nouns that pronouns stand for, by name, on n sentences of a kind."""
    test, validation = (
        references(split, n, kind, model.config.language) for split in ("test", "validation")
    )
    pronouns, nouns = places(test)
    head, random = reference_head(model, validation), untrained(model.config)
    random_accuracy = reference_accuracy(random, test)[reference_head(random, validation)]
    is_at_offset = nouns - pronouns == fixed_offset(validation)
    changed = "particles" if kind == "own" else "last word"
    return {
        "referents named": named_referents(model, test),
        "reference layer": head[0],
        "reference head": head[1],
        "reference head attends to the right noun": float(reference_accuracy(model, test)[head]),
        f"reference head follows the {changed}": accuracy_when_swapped(model, head, test),
        "best head with random weights attends to the right noun": float(random_accuracy),
        "best fixed offset is right": float(is_at_offset.float().mean()),
    }


def untrained(config: LanguageConfig) -> LanguageEncoder:
    """Return an encoder of these sizes with random weights, to compare a trained one with."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return LanguageEncoder(config).eval()


def quality_lines(quality: Mapping[str, float]) -> list[str]:
    """Return a line for each figure of `quality`: the heads first, then shares in percent."""
    heads, figures, layer = [], [], 0.0
    for name, value in quality.items():
        if name.endswith(" layer"):
            layer = value  # the next figure is its head
        elif name.endswith(" head"):
            heads.append(
                f"{name}: layer {layer:.0f}, head {value:.0f} (chosen on validation sentences)"
            )
        elif "nats" in name:
            figures.append(f"{name}: {value:.3f}")
        else:
            figures.append(f"{name}: {100 * value:.1f}%")
    return heads + figures
