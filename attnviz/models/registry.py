"""The table of the home-built models.

To add a model is to add an entry. Reading the table needs no torch, so that names can be completed at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from attnviz.errors import InputError, SettingsError
from attnviz.models.config import (
    LanguageConfig,
    RecurrentConfig,
    ToyConfig,
    TranslationConfig,
)
from attnviz.text.suggest import suggest

if TYPE_CHECKING:
    from attnviz.attention import Kind

Device = Literal["auto", "cpu", "cuda", "mps"]  # devices that a model may run on
# number formats; `auto`: as saved
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
    # largest learning rate: rises over the first twentieth of the steps, then falls to 0 along a cosine
    rate: float = 3e-3
    seed: int = 0  # seed of the initial weights and of the sentences
    # share of heads dropped in each sentence, so that each head learns to work without the others (Zhou et al. 2020,
    # "Scheduled DropHead")
    drop_heads: float = 0.0
    # share of words replaced by "unknown", so that the model tolerates unknown words
    unknown: float = 0.01
    # share of the decoder's previous words replaced by "unknown", so that it must attend to the source (Bowman
    # et al. 2016, "Generating Sentences from a Continuous Space", section 3.1, word dropout)
    forget: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """A model and how it is trained. Files of weights contain it."""

    kind: Architecture  # its architecture
    config: Config  # its sizes
    recipe: Recipe  # how it is trained
    learns: str  # what it is trained on, in words
    # for a translator: the numbers of clauses in its sentences, equally often; None: any number, mostly one
    clauses: tuple[int | None, ...] = (None,)


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeBuiltModel:
    """A home-built model."""

    name: str  # what it is called
    # its architecture, which decides what it can show (`KINDS`)
    architecture: Architecture
    about: str  # training data or purpose, in words
    config: Config | ToyConfig  # its sizes
    recipe: Recipe | None = None  # how it is trained; None for random weights
    clauses: tuple[int | None, ...] = (None,)  # as in `TrainingPlan`
    # whether it exists only for a story and cannot be chosen by name
    for_a_demo: bool = False


TOY = "toy"  # home-built encoder, used if no pretrained model can be downloaded
TOY_KOREAN = "toy-ko"  # the same for Korean sentences
RANDOM = "toy-random"  # the home-built encoder with random weights
SIZES = ("seed", "d_model", "n_heads", "n_layers")  # sizes that can be chosen for such a model
SEEDS = (0, 1, 2)  # the seeds of the models of each kind in the story of the bottleneck
BOTTLENECK = {"with": 60, "without": 76}
"""The widths of translators that differ in attention alone: as many weights each, so those without it are wider."""

_TRANSLATES = "English-Korean sentence pairs of the small language: translates English"


# The sizes of the vocabularies of both languages of these pairs.
_WORDS: dict[str, Any] = {"n_source_words": 196, "n_target_words": 292}


def _bottleneck(which: str, seed: int) -> HomeBuiltModel:
    """Return a translator of the story of the bottleneck, with attention or without (`which`)."""
    return HomeBuiltModel(
        name=f"bottleneck-{which}-{seed}",
        architecture="recurrent",
        about=_TRANSLATES,
        config=RecurrentConfig(
            **_WORDS,
            d_embedding=24,
            d_hidden=BOTTLENECK[which],
            attention="scaled_dot" if which == "with" else None,
        ),
        recipe=Recipe(steps=4000, rate=4e-3, seed=seed),
        clauses=(1, 1, 2, 3),
        for_a_demo=True,
    )


_MODELS = (
    HomeBuiltModel(
        name=TOY,
        architecture="encoder",
        config=LanguageConfig(n_words=1191),
        recipe=Recipe(steps=5000, seed=2, drop_heads=0.5),
        about="English sentences of the small language: predicts hidden words, and the noun that 'it' refers to",
    ),
    HomeBuiltModel(
        name=RANDOM,
        architecture="random",
        config=ToyConfig(),
        about="an encoder with random weights, in any size; it reads any words of any language",
    ),
    HomeBuiltModel(
        name="toy-random-bert",
        architecture="random",
        about="the same with BERT's input: a table of positions (random here), [CLS] and [SEP]",
        config=ToyConfig(positions="learned", special_tokens=True),
    ),
    HomeBuiltModel(
        name="toy-decoder",
        architecture="decoder",
        config=LanguageConfig(n_words=1191),
        recipe=Recipe(steps=2000),
        about="English sentences of the small language: predicts the next word",
    ),
    HomeBuiltModel(
        name=TOY_KOREAN,
        architecture="encoder",
        about="polite Korean sentences: predicts hidden words and particles, and what 그것 and 자기 refer to",
        config=LanguageConfig(n_words=890, language="korean"),
        recipe=Recipe(steps=4500, drop_heads=0.5),
    ),
    HomeBuiltModel(
        name="toy-seq2seq",
        architecture="recurrent",
        about=_TRANSLATES,
        config=RecurrentConfig(**_WORDS, d_embedding=48, d_hidden=96, forgetful=True),
        recipe=Recipe(steps=3500, forget=0.3),
    ),
    HomeBuiltModel(
        name="toy-transformer",
        architecture="translation",
        about=_TRANSLATES,
        config=TranslationConfig(**_WORDS, n_heads=4, n_layers=2),
        recipe=Recipe(steps=4000, drop_heads=0.3, forget=0.4),
    ),
    *(_bottleneck(which, seed) for which in BOTTLENECK for seed in SEEDS),
)

HOME_BUILT: dict[str, HomeBuiltModel] = {model.name: model for model in _MODELS}
"""All of them, by name; another one is one more entry."""


def names() -> tuple[str, ...]:
    """Return the names of models that a user can choose."""
    return tuple(model.name for model in HOME_BUILT.values() if not model.for_a_demo)


def trained() -> tuple[str, ...]:
    """Return the names of models that can be trained again."""
    return tuple(model.name for model in HOME_BUILT.values() if model.recipe is not None)


def training_plan(name: str, *, seed: int | None = None, steps: int | None = None) -> TrainingPlan:
    """Return how a model is trained, with another seed or number of steps than its recipe's if given.

    Raises:
        SettingsError: there is no trained home-built model of this name, a negative seed, or fewer than one step.
    """
    if name not in trained():
        raise SettingsError(f"there is no model {name!r} to train{suggest(name, trained())}")
    if (seed is not None and seed < 0) or (steps is not None and steps < 1):
        raise SettingsError("a seed is at least 0, and there is at least one step")
    model = HOME_BUILT[name]
    recipe = cast("Recipe", model.recipe)
    seed = recipe.seed if seed is None else seed
    return TrainingPlan(
        kind=model.architecture,
        config=cast("Config", model.config),
        recipe=replace(recipe, seed=seed, steps=steps or recipe.steps),
        learns=model.about,
        clauses=model.clauses,
    )


def is_random(name: str | None) -> bool:
    """Return whether a name, without its sizes, is that of a model with random weights."""
    return name in HOME_BUILT and HOME_BUILT[name].architecture == "random"


def split_sizes(name: str) -> tuple[str, dict[str, int]]:
    """Split ``toy-random:n_heads=2,d_model=16`` into the name of a model and its sizes.

    A name of any other model is returned unchanged.

    Raises:
        InputError: an unknown size, or one that is not a whole number.
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
