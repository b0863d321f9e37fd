"""How good a model is, on sentences that it never saw."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle, islice
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from attnviz.models.config import Language, LanguageConfig
from attnviz.models.language import hangul, splits, vocabulary
from attnviz.models.language.english import GoldSentence, Reference
from attnviz.models.language.hangul import PIECE
from attnviz.models.language.korean import Pair
from attnviz.models.language.lexicon import FEELINGS, SHAPES, particle_of
from attnviz.models.language.splits import Split
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.tasks import Model, encode_pairs, pad_numbers
from attnviz.models.wholes import LanguageDecoder, LanguageEncoder, TranslationTransformer

Translator = RecurrentTranslator | TranslationTransformer
Head = tuple[int, int]  # a layer and a head

SAMPLES = 500  # sentences that a measure is taken on


@torch.inference_mode()
def decided_words(model: LanguageEncoder, n: int = SAMPLES) -> float:
    """The share of words that the grammar decides, hidden one at a time, that the model names right."""
    words, places = [], []
    for sentence in islice(splits.sentences("test", language=model.config.language), n):
        for place in sorted(sentence.decided):
            words.append(_numbers(model, [sentence])[0])
            places.append(place)
    shown = pad_numbers(words)
    rows = torch.arange(len(words))
    hidden = shown[rows, places]
    shown[rows, places] = model.config.mask
    named = torch.cat(
        [model(part).logits.argmax(dim=-1) for part in torch.split(shown, 512)]
    )  # (B, T)
    return float((named[rows, places] == hidden).float().mean())


def references(
    split: Split, n: int = SAMPLES, kind: str = "reference", language: Language = "english"
) -> list[GoldSentence]:
    """Sentences of the kind "The animal didn't cross the street because it was too tired"; or with 자기."""
    return list(islice(splits.sentences(split, kind=kind, language=language), n))


def _numbers(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> list[list[int]]:
    known = vocabulary.of_language(model.config.language)
    return [known.encode(sentence.words) for sentence in sentences]


def places(sentences: Sequence[GoldSentence]) -> tuple[Tensor, Tensor]:
    """Where "it" is in each sentence, and the noun that it stands for."""
    pronouns, nouns = zip(
        *((s.reference.pronoun, s.reference.noun) for s in sentences if s.reference), strict=True
    )
    return torch.tensor(pronouns), torch.tensor(nouns)


@torch.inference_mode()
def named_referents(model: LanguageEncoder, n: int = SAMPLES, kind: str = "reference") -> float:
    """The share of sentences in which the model names the noun that "it" stands for."""
    found = references("test", n, kind, model.config.language)
    words = pad_numbers(_numbers(model, found))
    rows, (pronouns, nouns) = torch.arange(len(found)), places(found)
    named = model(words).referents.argmax(dim=-1)  # (B, T)
    return float((named[rows, pronouns] == words[rows, nouns]).float().mean())


@torch.inference_mode()
def weights(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> Tensor:
    """Each head's weights [sentence, layer, head, query, key]; those of queries after a sentence's end mean nothing."""
    reading = model(pad_numbers(_numbers(model, sentences)))
    return torch.stack([one for one in reading.weights if one is not None], dim=1)


def weights_from_it(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> Tensor:
    """Each head's weights from "it" [layer, head, sentence, key]."""
    rows, (pronouns, _) = torch.arange(len(sentences)), places(sentences)
    return weights(model, sentences)[rows, :, :, pronouns].movedim(
        0, 2
    )  # (B, L, H, T) -> (L, H, B, T)


def _right(from_it: Tensor, sentences: Sequence[GoldSentence]) -> Tensor:
    """Whether the largest weight from "it" is on the noun it stands for, or on its particle [..., sentence]."""
    looked, nouns = from_it.argmax(dim=-1), places(sentences)[1]
    particles = [
        s.words[noun + 1].startswith(PIECE)
        for s, noun in zip(sentences, nouns.tolist(), strict=True)
    ]
    return (looked >= nouns) & (looked <= nouns + torch.tensor(particles).long())


def right_looks(model: LanguageEncoder, sentences: Sequence[GoldSentence]) -> Tensor:
    """How often each head's largest weight from "it" is on the noun it stands for: shares [layer, head]."""
    return _right(weights_from_it(model, sentences), sentences).float().mean(dim=-1)


def reference_head(model: LanguageEncoder, n: int = SAMPLES, kind: str = "reference") -> Head:
    """The head that looks from "it" at the right noun most often, chosen on validation sentences.

    Of equals it is the one that is nearest to where the model names the noun, in the last layer, with the most weight.
    """
    found = references("validation", n, kind, model.config.language)
    from_it = weights_from_it(model, found)  # (L, H, B, T)
    right = _right(from_it, found).float().mean(dim=-1)
    on_noun = from_it[:, :, torch.arange(len(found)), places(found)[1]].mean(dim=-1)  # (L, H)
    heads = torch.cartesian_prod(*map(torch.arange, right.shape)).tolist()
    layer, head = max(
        heads, key=lambda at: (float(right[tuple(at)]), at[0], float(on_noun[tuple(at)]))
    )
    return layer, head


def turn(sentence: GoldSentence, last: str) -> GoldSentence:
    """A sentence of reference with another last word, and with what "it" then stands for."""
    reference, words = _reference(sentence), list(sentence.words)
    living = {word for feelings, _ in ENDS.values() for word in feelings}
    if (words[reference.pronoun + 3] in living) != (last in living):
        reference = reference.turned
    words[reference.pronoun + 3] = last
    return replace(sentence, words=tuple(words), reference=reference)


def turn_particles(sentence: GoldSentence) -> GoldSentence:
    """A sentence with 자기 whose subject becomes its object, and whose object its subject."""
    reference, words = _reference(sentence), list(sentence.words)
    for place, role in ((reference.noun, "object"), (reference.other, "subject")):
        words[place + 1] = PIECE + particle_of(words[place], role)
    return replace(sentence, words=tuple(words), reference=reference.turned)


def _reference(sentence: GoldSentence) -> Reference:
    if sentence.reference is None:
        raise ValueError("the sentence refers to nothing")
    return sentence.reference


ENDS: dict[Language, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "english": (tuple(one.english for one in FEELINGS), tuple(one.english for one in SHAPES)),
    "korean": (
        tuple(one.because for one in hangul.FEELINGS),
        tuple(one.because for one in hangul.SHAPES),
    ),
}
"""How sentences of reference end in each language: with what is felt by who lives, or with the shape of a place."""


def turn_all(
    sentences: Sequence[GoldSentence], language: Language = "english"
) -> list[GoldSentence]:
    """The same sentences, so turned that each pronoun stands for the other noun.

    Tired is turned to wide, or back; with 자기 subject and object are exchanged.
    """
    (feelings, shapes), found = ENDS[language], list[GoldSentence]()
    for i, sentence in enumerate(sentences):
        if sentence.kind == "own":
            found.append(turn_particles(sentence))
        else:
            others = (
                shapes if sentence.words[_reference(sentence).pronoun + 3] in feelings else feelings
            )
            found.append(turn(sentence, others[i % len(others)]))
    return found


def turning_looks(model: LanguageEncoder, head: Head, sentences: Sequence[GoldSentence]) -> float:
    """The share of sentences whose head looks right both ways: as they are, and turned."""
    both = (sentences, turn_all(sentences, model.config.language))
    one_way, other_way = (_right(weights_from_it(model, found)[head], found) for found in both)
    return float((one_way & other_way).float().mean())


def fixed_offset(sentences: Sequence[GoldSentence]) -> int:
    """The distance from "it" at which the noun it stands for is found most often."""
    pronouns, nouns = places(sentences)
    return int((nouns - pronouns).mode().values)


def offset_looks(offset: int, sentences: Sequence[GoldSentence]) -> float:
    """The share of sentences in which the noun that "it" stands for is at this distance."""
    pronouns, nouns = places(sentences)
    return float((nouns - pronouns == offset).float().mean())


@torch.inference_mode()
def next_words(model: LanguageDecoder, n: int = SAMPLES) -> float:
    """How surprised the model is by each next word, in nats; the end of the sentence counts as a word."""
    config = model.config
    english = vocabulary.english()
    words = pad_numbers(
        [[*english.encode(s.words), config.end] for s in islice(splits.sentences("test"), n)]
    )
    logits, _ = model(words[:, :-1])
    target = words[:, 1:].flatten()
    return float(
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), target, ignore_index=config.pad)
    )


def some_pairs(
    split: Split, n: int = SAMPLES, clauses: Sequence[int | None] = (None,)
) -> list[Pair]:
    """So many pairs of a split, in turn of each number of clauses; None is any number."""
    streams = cycle([splits.pairs(split, seed, number) for seed, number in enumerate(clauses)])
    return [next(stream) for stream in islice(streams, n)]


class Hits(NamedTuple):
    """What a model generates of the right translations, running free [sentence, step]; the end counts as a word."""

    right: Tensor  # which words it generates at their place
    here: Tensor  # where there is a word
    inner: Tensor  # where there is one that is not the end

    @property
    def whole(self) -> float:
        """The share of sentences translated without a fault."""
        return float((self.right == self.here).all(dim=-1).double().mean())

    @property
    def words(self) -> float:
        """The share of the words of the right translations that are generated at the same place."""
        return float(self.right[self.inner].double().mean())


@torch.inference_mode()
def hits(model: Translator, pairs: Sequence[Pair]) -> Hits:
    """Translate each sentence."""
    source, target = encode_pairs(pairs, model.config.end)
    words = model.translate(
        source, max_length=target.shape[1]
    ).words  # what comes later is wrong anyway
    words = torch.nn.functional.pad(words, (0, target.shape[1] - words.shape[1]))
    here = target != model.config.pad
    return Hits((words == target) & here, here, here & (target != model.config.end))


@torch.inference_mode()
def alignments(model: Translator, pairs: Sequence[Pair]) -> Tensor:
    """Which source word each head looks at most at each right word: positions [layer, head, sentence, step].

    Raises ValueError: the model has no attention.
    """
    source, target = encode_pairs(pairs, model.config.end)
    if isinstance(model, TranslationTransformer):
        cross = [one for one in model(source, target).weights.cross if one is not None]
        return torch.stack([one.argmax(dim=-1).transpose(0, 1) for one in cross])  # (L, H, B, T)
    recurrent = model(source, target).weights
    if recurrent is None:
        raise ValueError("a model without attention aligns nothing")
    looks: Tensor = recurrent.argmax(dim=-1)[None, None]  # (1, 1, B, T)
    return looks


def alignment_error(looks: Callable[[int, int], int], pairs: Sequence[Pair]) -> float:
    """The alignment error rate of what looks: from a pair's number and a step to a source position.

    1 - (|A and S| + |A and P|) / (|A| + |S|), with the pairs' sure (S) and possible (P) alignments.

    Source: Och and Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", section 4.
    """
    right = total = 0
    for number, pair in enumerate(pairs):
        made = {(step, looks(number, step)) for step in range(len(pair.korean))}
        right += len(made & pair.sure) + len(made & pair.possible)
        total += len(made) + len(pair.sure)
    return 1 - right / total


def alignment_errors(model: Translator, pairs: Sequence[Pair]) -> Tensor:
    """The alignment error rate of each head's largest weights [layer, head]."""
    looks = alignments(model, pairs)
    return torch.tensor(
        [
            [alignment_error(lambda b, t, h=head: int(h[b, t]), pairs) for head in layer]  # type: ignore[misc]
            for layer in looks
        ]
    )


def diagonal_error(pairs: Sequence[Pair]) -> float:
    """The alignment error rate of the diagonal: as far along in the source as in the target."""
    return alignment_error(lambda b, t: t * len(pairs[b].english) // len(pairs[b].korean), pairs)


def alignment_head(
    model: Translator, n: int = SAMPLES, clauses: Sequence[int | None] = (None,)
) -> Head:
    """The head that aligns best, chosen on validation pairs."""
    return best(-alignment_errors(model, some_pairs("validation", n, clauses)))


def quality(
    model: Model, n: int = SAMPLES, clauses: Sequence[int | None] = (None,)
) -> dict[str, float]:
    """What is measured of a model on so many test sentences, by name; heads are chosen on validation sentences."""
    if isinstance(model, LanguageEncoder):
        found = {"decided words right": decided_words(model, n)} | _reference_quality(
            model, n, "reference"
        )
        if model.config.language == "korean":
            found |= {
                f"자기: {what}": value
                for what, value in _reference_quality(model, n, "own").items()
            }
        return found
    if isinstance(model, LanguageDecoder):
        return {"nats a word": next_words(model, n)}
    pairs = some_pairs("test", n, clauses)
    translated = hits(model, pairs)
    found = {"translated without a fault": translated.whole, "words right": translated.words}
    if isinstance(model, TranslationTransformer) or model.attention is not None:
        head = alignment_head(model, n, clauses)
        found |= {
            "alignment layer": head[0],
            "alignment head": head[1],
            "alignment error": float(alignment_errors(model, pairs)[head]),
            "alignment error of the diagonal": diagonal_error(pairs),
        }
    return found


def _reference_quality(model: LanguageEncoder, n: int, kind: str) -> dict[str, float]:
    validation, test = (
        references(split, n, kind, model.config.language) for split in ("validation", "test")
    )
    head, new = reference_head(model, n, kind), untrained(model.config)
    return {
        "referents named right": named_referents(model, n, kind),
        "reference layer": head[0],
        "reference head": head[1],
        "reference head looks right": float(right_looks(model, test)[head]),
        f"reference head turns with the {'particles' if kind == 'own' else 'last word'}": turning_looks(
            model, head, test
        ),
        "best head of random weights looks right": float(
            right_looks(new, test)[reference_head(new, n, kind)]
        ),
        "best fixed offset looks right": offset_looks(fixed_offset(validation), test),
    }


def untrained(config: LanguageConfig) -> LanguageEncoder:
    """An encoder of these sizes with random weights: what a trained one is held against."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return LanguageEncoder(config).eval()


Unit = Literal["share", "nats", "layer", "head"]

_OF_REFERENCE: dict[str, Unit] = {
    "referents named right": "share",
    "reference layer": "layer",
    "reference head": "head",
    "reference head looks right": "share",
    "reference head turns with the last word": "share",
    "reference head turns with the particles": "share",
    "best head of random weights looks right": "share",
    "best fixed offset looks right": "share",
}
UNITS: dict[str, Unit] = {
    "decided words right": "share",
    **_OF_REFERENCE,
    **{f"자기: {name}": unit for name, unit in _OF_REFERENCE.items()},
    "nats a word": "nats",
    "translated without a fault": "share",
    "words right": "share",
    "alignment layer": "layer",
    "alignment head": "head",
    "alignment error": "share",
    "alignment error of the diagonal": "share",
}
"""The unit of each figure that `quality` measures; a head comes right after its layer."""


def quality_lines(quality: Mapping[str, float]) -> list[str]:
    """What `quality` measured, a line each: heads first, as layer.head, shares in percent, all else a plain number."""
    heads, lines, layer = [], [], 0.0
    for name, value in quality.items():
        match UNITS.get(name):
            case "layer":
                layer = value
            case "head":
                heads.append(
                    f"{name}, found on validation sentences: {layer:.0f}.{value:.0f} (layer.head)"
                )
            case "share":
                lines.append(f"{name}: {100 * value:.1f} %")
            case _:
                lines.append(f"{name}: {value:.3f}")
    return heads + lines


def best(scores: Tensor) -> Head:
    """The head with the largest number [layer, head]; of equals the first."""
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    return layer, head
