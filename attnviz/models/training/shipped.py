"""The trained models that ship with attnviz: weights as safetensors, all that is known about them in the metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from attnviz.errors import FileFormatError, ModelError
from attnviz.models.language import vocabulary
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.scores import ScoreName
from attnviz.models.seq2seq import RecurrentConfig, RecurrentTranslator
from attnviz.models.training import measure
from attnviz.models.training.loop import State
from attnviz.models.training.tasks import HiddenWords, NextWord, Recipe, Task, Translate
from attnviz.models.translation import TranslationConfig, TranslationTransformer
from attnviz.models.wholes import LanguageConfig, LanguageDecoder, LanguageEncoder

FOLDER = Path(__file__).parent.parent / "weights"

SEEDS = (0, 1, 2)
BOTTLENECK: tuple[tuple[str, int, ScoreName | None], ...] = (("with", 60, "scaled_dot"), ("without", 76, None))
"""Translators that differ in attention alone: as many weights each, so the states of those without it are wider."""

Model = LanguageEncoder | LanguageDecoder | RecurrentTranslator | TranslationTransformer
Config = LanguageConfig | RecurrentConfig | TranslationConfig

_CLASSES: dict[str, tuple[type[Model], type[Config]]] = {
    "encoder": (LanguageEncoder, LanguageConfig),
    "decoder": (LanguageDecoder, LanguageConfig),
    "recurrent": (RecurrentTranslator, RecurrentConfig),
    "translation": (TranslationTransformer, TranslationConfig),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A model to be trained: what it is, what it learns, and how.

    Attributes:
        kind: ``encoder``, ``decoder``, ``recurrent`` or ``translation``.
        config: its sizes.
        recipe: how it is trained.
        learns: what it was trained on, in words.
        clauses: of a model that translates: how many clauses the sentences of a batch have, each as often as the
            others; None is any number, mostly one.
    """

    kind: str
    config: Config
    recipe: Recipe
    learns: str
    clauses: tuple[int | None, ...] = (None,)

    def task(self) -> Task:
        """The model with its first weights, drawn from the recipe's seed, and what it learns."""
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self.recipe.seed)
            model = _CLASSES[self.kind][0](self.config)  # type: ignore[arg-type]
        if isinstance(model, LanguageEncoder):
            return HiddenWords(model, self.recipe)
        if isinstance(model, LanguageDecoder):
            return NextWord(model, self.recipe)
        return Translate(model, self.recipe, self.clauses)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What is known about a trained model.

    Attributes:
        name: its name.
        plan: how it was made.
        source: the words it reads.
        target: the words it says; empty where it reads and says the same.
        quality: what was measured on test sentences, by name.
    """

    name: str
    plan: Plan
    source: Vocabulary
    target: Vocabulary | None = None
    quality: Mapping[str, float] = field(default_factory=dict)


def save(path: Path, card: Card, model: nn.Module) -> None:
    """Write a model's weights and its card into one file."""
    from safetensors.torch import save as serialised

    described = {
        "name": card.name,
        "kind": card.plan.kind,
        "config": asdict(card.plan.config),
        "recipe": asdict(card.plan.recipe),
        "learns": card.plan.learns,
        "clauses": card.plan.clauses,
        "source": card.source.words,
        "target": card.target.words if card.target else None,
        "quality": dict(card.quality),
    }
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    path.write_bytes(serialised(weights, {"card": json.dumps(described, ensure_ascii=False)}))


def save_state(path: Path, name: str, plan: Plan, state: State) -> None:
    """Write where training stopped, so that it can go on."""
    from safetensors.torch import save as serialised

    path.write_bytes(serialised(state.tensors, {"step": str(state.step), "plan": _described(name, plan)}))


def load_state(path: Path, name: str, plan: Plan) -> State:
    """Read where training stopped.

    Raises:
        FileFormatError: the file is damaged, or of another model, seed or recipe.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            told = file.metadata() or {}
            if told["plan"] != _described(name, plan):
                raise FileFormatError(
                    f"{path} is of another training (model, seed, steps or sentences differ): remove it to begin anew"
                )
            tensors = {tensor: file.get_tensor(tensor) for tensor in file.keys()}  # noqa: SIM118 - it is no dictionary
            return State(int(told["step"]), tensors)
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise FileFormatError(f"{path} holds no training to go on with: {error}") from error


def _described(name: str, plan: Plan) -> str:
    return json.dumps([name, asdict(plan)], sort_keys=True)


def load_card(path: Path) -> Card:
    """The card of a model, without its weights.

    Raises:
        FileFormatError: the file holds no model of attnviz.
    """
    return _open(path)[0]


def load(path: Path) -> tuple[Card, Model]:
    """A trained model, ready to run, and its card.

    Raises:
        FileFormatError: the file holds no model of attnviz.
    """
    card, weights = _open(path)
    try:
        # Drawing first weights that are then replaced takes milliseconds; the meta device, which draws none, takes
        # a second to get ready.
        with torch.random.fork_rng(devices=[]):
            model = _CLASSES[card.plan.kind][0](card.plan.config)  # type: ignore[arg-type]
        model.load_state_dict(weights, assign=True)
    except (ModelError, RuntimeError, TypeError) as error:
        raise FileFormatError(f"{path} holds no model of attnviz: its weights are not of the sizes it tells") from error
    return card, model.eval()


def _open(path: Path) -> tuple[Card, dict[str, Tensor]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            described = json.loads((file.metadata() or {})["card"])
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dictionary
        plan = Plan(
            kind=described["kind"],
            config=_CLASSES[described["kind"]][1](**described["config"]),
            recipe=Recipe(**described["recipe"]),
            learns=described["learns"],
            clauses=tuple(described["clauses"]),
        )
        target = described["target"]
        card = Card(
            name=described["name"],
            plan=plan,
            source=Vocabulary(tuple(described["source"])),
            target=Vocabulary(tuple(target)) if target else None,
            quality=described["quality"],
        )
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path} holds no model of attnviz: {type(error).__name__}: {error}") from error
    return card, weights


def told(quality: Mapping[str, float]) -> list[str]:
    """What was measured, a line each: shares in percent, heads as layer.head."""
    lines, rest = [], dict(quality)
    for what in [what for what in rest if what.endswith(" layer")]:
        of = what.removesuffix(" layer")
        head = f"{rest.pop(what):.0f}.{rest.pop(f'{of} head'):.0f}"
        lines.append(f"{of} head, found on validation sentences: {head} (layer.head)")
    for what, value in rest.items():
        lines.append(f"{what}: {value:.3f}" if what.startswith("nats") else f"{what}: {value:.1%}".replace("%", " %"))
    return lines


def quality(model: Model, n: int = measure.SAMPLES, clauses: Sequence[int | None] = (None,)) -> dict[str, float]:
    """What is measured of a model on test sentences, by name; heads are chosen on validation sentences.

    Args:
        model: any of those that ship.
        n: how many sentences of each split.
        clauses: of a model that translates: what its plan says.
    """
    if isinstance(model, LanguageEncoder):
        head = measure.reference_head(model, n)
        test = measure.references("test", n)
        new = untrained(model.config)
        by_chance = measure.reference_head(new, n)
        return {
            "decided words right": measure.decided_words(model, n=n),
            "referents named right": measure.named_referents(model, n=n),
            "reference layer": head[0],
            "reference head": head[1],
            "reference head looks right": float(measure.right_looks(model, test)[head]),
            "reference head turns with the last word": measure.turning_looks(model, head, test),
            "best head of random weights looks right": float(measure.right_looks(new, test)[by_chance]),
            "best fixed offset looks right": measure.offset_looks(
                measure.fixed_offset(measure.references("validation", n)), test
            ),
        }
    if isinstance(model, LanguageDecoder):
        return {"nats a word": measure.next_words(model, n=n)}
    pairs = measure.some_pairs("test", n, clauses)
    found = {
        "translated without a fault": measure.exact_match(model, pairs),
        "words right": measure.word_accuracy(model, pairs),
    }
    if isinstance(model, TranslationTransformer) or model.attention is not None:
        head = measure.alignment_head(model, n, clauses)
        found |= {
            "alignment layer": head[0],
            "alignment head": head[1],
            "alignment error": float(measure.alignment_errors(model, pairs)[head]),
            "alignment error of the diagonal": measure.diagonal_error(pairs),
        }
    return found


def untrained(config: LanguageConfig, seed: int = 0) -> LanguageEncoder:
    """An encoder of these sizes with random weights: what a trained one is held against."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return LanguageEncoder(config).eval()


def plans() -> dict[str, Plan]:
    """The models that ship with attnviz, by name."""
    english, source, target = (len(words()) for words in (vocabulary.english, vocabulary.source, vocabulary.korean))
    translates = "English-Korean sentence pairs of the small language: to say each in Korean"
    recurrent = RecurrentConfig(
        n_source_words=source, n_target_words=target, d_embedding=48, d_hidden=96, forgetful=True
    )
    return {
        "toy": Plan(
            kind="encoder",
            config=LanguageConfig(n_words=english),
            recipe=Recipe(steps=1500, seed=2, drop_heads=0.5),
            learns="English sentences of the small language: to name hidden words, and at 'it' the noun it stands for",
        ),
        "toy-decoder": Plan(
            kind="decoder",
            config=LanguageConfig(n_words=english),
            recipe=Recipe(steps=1500),
            learns="English sentences of the small language: to say the next word",
        ),
        "toy-seq2seq": Plan(
            kind="recurrent", config=recurrent, recipe=Recipe(steps=3500, forget=0.3), learns=translates
        ),
        "toy-transformer": Plan(
            kind="translation",
            config=TranslationConfig(n_source_words=source, n_target_words=target, n_heads=4, n_layers=2),
            recipe=Recipe(steps=4000, drop_heads=0.3, forget=0.4),
            learns=translates,
        ),
        **{
            f"bottleneck-{which}-{seed}": Plan(
                kind="recurrent",
                config=RecurrentConfig(
                    n_source_words=source, n_target_words=target, d_embedding=24, d_hidden=d_hidden, attention=attention
                ),
                recipe=Recipe(steps=4000, rate=4e-3, seed=seed),
                learns=translates,
                clauses=(1, 1, 2, 3),
            )
            for which, d_hidden, attention in BOTTLENECK
            for seed in SEEDS
        },
    }
