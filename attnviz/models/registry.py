"""The table of the home-built models.

To add a model is to add an entry. Reading the table needs no torch, so that names can be completed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from attnviz.errors import InputError
from attnviz.models.config import (
    Language,
    LanguageConfig,
    RecurrentConfig,
    ScoreName,
    ToyConfig,
    TranslationConfig,
)

if TYPE_CHECKING:
    from attnviz.attention import Kind

Device = Literal["auto", "cpu", "cuda", "mps"]  # where a model may run
# its number format; `auto` is as it was saved
Dtype = Literal["auto", "float32", "float64", "float16", "bfloat16"]
Architecture = Literal["random", "encoder", "decoder", "recurrent", "translation"]
Config: TypeAlias = LanguageConfig | RecurrentConfig | TranslationConfig

KINDS: Mapping[Architecture, tuple[Kind, ...]] = {
    "random": ("encoder",),
    "encoder": ("encoder",),
    "decoder": ("decoder",),
    "recurrent": ("cross",),
    "translation": ("cross", "encoder", "decoder"),
}
"""The kinds of attention that each architecture has, the usual one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a model is trained."""

    steps: int  # how many batches it sees
    batch: int = 128  # sentences in each
    rate: float = 3e-3  # the largest learning rate; it rises over the first twentieth and falls to nothing as a cosine
    seed: int = 0  # of the first weights and of the sentences
    # the share of heads left out in each sentence, so that each learns to do its part alone (Zhou et al. 2020,
    # "Scheduled DropHead")
    drop_heads: float = 0.0
    # the share of words shown as unknown, so that an unknown word among them does no harm
    unknown: float = 0.01
    # the share of its own earlier words that a decoder is shown as unknown, so that it must look at the source (Bowman
    # et al. 2016, "Generating Sentences from a Continuous Space", section 3.1, word dropout)
    forget: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """A model to be trained: what it is, what it learns, and how. Files of weights hold it."""

    kind: Architecture  # its architecture
    config: Config  # its sizes
    recipe: Recipe  # how it is trained
    learns: str  # what it is trained on, in words
    # of a model that translates: how many clauses the sentences of a batch have, each as often as the others; None is
    # any number, mostly one
    clauses: tuple[int | None, ...] = (None,)


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeBuiltModel:
    """A home-built model."""

    name: str  # what it is called
    # which of the home-built architectures it has; what it can show follows from it (`KINDS`)
    architecture: Architecture
    about: str  # what it was trained on, or what it is, in words
    # makes its sizes; a function, since a vocabulary is counted for them
    config: Callable[[], Config | ToyConfig]
    recipe: Recipe | None = None  # how it is trained; None for random weights
    clauses: tuple[int | None, ...] = (None,)  # as in `TrainingPlan`
    # whether it is there for a demo alone, and cannot be chosen by its name
    for_a_demo: bool = False
    weights: Path | None = None  # the file of its weights; None is the one that comes with attnviz

    def plan(self) -> TrainingPlan:
        """Return how it is trained. Raises ValueError: its weights are random."""
        config = self.config()
        if self.recipe is None or isinstance(config, ToyConfig):
            raise ValueError(f"{self.name} is not trained: its weights are random")
        return TrainingPlan(
            kind=self.architecture,
            config=config,
            recipe=self.recipe,
            learns=self.about,
            clauses=self.clauses,
        )


TOY = "toy"  # the home-built encoder, which stands in where no pretrained model can be had
TOY_KOREAN = "toy-ko"  # likewise, where the sentence is Korean
RANDOM = "toy-random"  # the home-built encoder with random weights
SIZES = ("seed", "d_model", "n_heads", "n_layers")  # that can be chosen of such a model
SEEDS = (
    0,
    1,
    2,
)  # of the models that are compared in the demo of the bottleneck, as many of each kind
BOTTLENECK: tuple[tuple[str, int, ScoreName | None], ...] = (
    ("with", 60, "scaled_dot"),
    ("without", 76, None),
)
"""Translators that differ in attention alone: as many weights each, so the states of those without it are wider."""

_TRANSLATES = "English-Korean sentence pairs of the small language: translates English"


def _language(language: Language = "english") -> LanguageConfig:
    from attnviz.models.language.vocabulary import load_vocabulary

    return LanguageConfig(n_words=len(load_vocabulary(language)), language=language)


def _translator(kind: Callable[..., Config], **sizes: object) -> Config:
    from attnviz.models.language.vocabulary import load_vocabulary

    n_source, n_target = len(load_vocabulary("source")), len(load_vocabulary("target"))
    return kind(n_source_words=n_source, n_target_words=n_target, **sizes)


def _bottleneck(
    which: str, d_hidden: int, attention: ScoreName | None, seed: int
) -> HomeBuiltModel:
    return HomeBuiltModel(
        name=f"bottleneck-{which}-{seed}",
        architecture="recurrent",
        about=_TRANSLATES,
        config=partial(
            _translator, RecurrentConfig, d_embedding=24, d_hidden=d_hidden, attention=attention
        ),
        recipe=Recipe(steps=4000, rate=4e-3, seed=seed),
        clauses=(1, 1, 2, 3),
        for_a_demo=True,
    )


_MODELS = (
    HomeBuiltModel(
        name=TOY,
        architecture="encoder",
        config=_language,
        recipe=Recipe(steps=5000, seed=2, drop_heads=0.5),
        about="English sentences of the small language: predicts hidden words, and the noun that 'it' refers to",
    ),
    HomeBuiltModel(
        name=RANDOM,
        architecture="random",
        config=ToyConfig,
        about="an encoder with random weights, in any size; it reads any words of any language",
    ),
    HomeBuiltModel(
        name="toy-random-bert",
        architecture="random",
        about="the same with BERT's input: a table of positions (random here), [CLS] and [SEP]",
        config=lambda: ToyConfig(positions="learned", special_tokens=True),
    ),
    HomeBuiltModel(
        name="toy-decoder",
        architecture="decoder",
        config=_language,
        recipe=Recipe(steps=2000),
        about="English sentences of the small language: predicts the next word",
    ),
    HomeBuiltModel(
        name=TOY_KOREAN,
        architecture="encoder",
        about="polite Korean sentences: predicts hidden words and particles, and what 그것 and 자기 refer to",
        config=lambda: _language("korean"),
        recipe=Recipe(steps=4500, drop_heads=0.5),
    ),
    HomeBuiltModel(
        name="toy-seq2seq",
        architecture="recurrent",
        about=_TRANSLATES,
        config=partial(_translator, RecurrentConfig, d_embedding=48, d_hidden=96, forgetful=True),
        recipe=Recipe(steps=3500, forget=0.3),
    ),
    HomeBuiltModel(
        name="toy-transformer",
        architecture="translation",
        about=_TRANSLATES,
        config=partial(_translator, TranslationConfig, n_heads=4, n_layers=2),
        recipe=Recipe(steps=4000, drop_heads=0.3, forget=0.4),
    ),
    *(_bottleneck(*kind, seed) for kind in BOTTLENECK for seed in SEEDS),
)

HOME_BUILT: dict[str, HomeBuiltModel] = {model.name: model for model in _MODELS}
"""All of them, by name; another one is one more entry."""


def names() -> tuple[str, ...]:
    """Return the names of models that a user can choose."""
    return tuple(model.name for model in HOME_BUILT.values() if not model.for_a_demo)


def trained() -> tuple[str, ...]:
    """Return the names of models that can be trained again."""
    return tuple(model.name for model in HOME_BUILT.values() if model.recipe is not None)


def is_random(name: str | None) -> bool:
    """Return whether a name, without its sizes, is that of a model with random weights."""
    return name in HOME_BUILT and HOME_BUILT[name].architecture == "random"


def split_sizes(name: str) -> tuple[str, dict[str, int]]:
    """Split ``toy-random:n_heads=2,d_model=16`` into the name of a model and its sizes.

    Any name that does not begin with that of a model with random weights is returned whole.

    Raises:
        InputError: a size of another name, or that is no whole number.
    """
    base, colon, typed = name.partition(":")
    if not colon or not is_random(base):
        return name, {}
    sizes: dict[str, int] = {}
    for part in typed.split(","):
        size, _, number = part.partition("=")
        if size.strip() not in SIZES or not number.strip().isdecimal():
            expected = ", ".join(f"{known}=N" for known in SIZES)
            raise InputError(f"{part.strip()!r} is no size of {base}: expected {expected}")
        sizes[size.strip()] = int(number)
    return base, sizes
