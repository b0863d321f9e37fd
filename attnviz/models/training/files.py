"""Trained models as files: weights as safetensors, and everything known about the model in the metadata.

Weights are saved in half precision, which halves the package; models compute in float32.

A file that is missing, damaged or of another kind is refused (FileFormatError).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from attnviz.errors import FileFormatError
from attnviz.models.config import LanguageConfig, RecurrentConfig, TranslationConfig
from attnviz.models.language.vocabulary import SPECIAL, Vocabulary
from attnviz.models.language_models import LanguageDecoder, LanguageEncoder, TranslationTransformer
from attnviz.models.registry import Architecture, Config, Recipe, TrainingPlan
from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.storage.files import check_is_file

Model: TypeAlias = LanguageEncoder | LanguageDecoder | RecurrentTranslator | TranslationTransformer

ARCHITECTURES: Mapping[Architecture, tuple[type[Model], type[Config]]] = {
    "encoder": (LanguageEncoder, LanguageConfig),
    "decoder": (LanguageDecoder, LanguageConfig),
    "recurrent": (RecurrentTranslator, RecurrentConfig),
    "translation": (TranslationTransformer, TranslationConfig),
}
"""The model of each architecture that is trained, and its sizes."""

_T = TypeVar("_T")

FOLDER = Path(__file__).parent.parent / "weights"  # the weights that come with attnviz
ENDING = ".safetensors"  # of files of weights

WRONG_SIZES = "its weights are not of the sizes it tells"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """Everything known about a trained model."""

    name: str
    plan: TrainingPlan  # how it was trained
    source: Vocabulary = field(repr=False)  # the words it reads
    # the words it generates; None where they are those it reads
    target: Vocabulary | None = field(default=None, repr=False)
    # measured on test sentences, by name
    quality: Mapping[str, float] = field(default_factory=dict)


def save(path: Path, card: ModelCard, model: nn.Module) -> None:
    """Write a model's weights and its card into one file."""
    from safetensors.torch import save as serialize

    described = {
        "name": card.name,
        **asdict(card.plan),
        "source": card.source.words,
        "target": card.target.words if card.target else None,
        "quality": dict(card.quality),
    }
    weights = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}
    path.write_bytes(serialize(weights, {"card": json.dumps(described, ensure_ascii=False)}))


def new_model(plan: TrainingPlan) -> Model:
    """Return a model with its initial weights, drawn from the seed of its recipe."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(plan.recipe.seed)
        return ARCHITECTURES[plan.kind][0](plan.config)  # type: ignore[arg-type]  # each architecture has its own config


def load_home_built(name: str) -> tuple[ModelCard, Model]:
    """Return a trained model, by its name in `HOME_BUILT` or by the file that ``attnviz train`` wrote, and its card."""
    return load(file_of(name))


def file_of(name: str) -> Path:
    """Return the path of a model's weights, by its name or by the file itself."""
    if name.endswith(ENDING):
        return Path(name).expanduser()
    return FOLDER / f"{name}{ENDING}"


def load_card(path: Path) -> ModelCard:
    """Return the card of a model."""
    return _open(path)[0]


def load(path: Path) -> tuple[ModelCard, Model]:
    """Return a trained model, ready to run, and its card."""
    card, weights = _open(path)
    try:
        # Drawing first weights that are then replaced takes milliseconds; the meta device, which draws none, takes
        # a second to get ready.
        model = new_model(card.plan)
        model.load_state_dict(weights, assign=True)
    except Exception as error:  # whatever the sizes of a damaged card lead to
        raise _refusal(path, f": {WRONG_SIZES}") from error
    return card, model.eval()


def _open(path: Path) -> tuple[ModelCard, dict[str, Tensor]]:
    """Return the card of a file, and its weights by name. Raises FileFormatError: it holds no model of attnviz."""
    from safetensors import SafetensorError, safe_open

    try:
        check_is_file(path)
        with safe_open(path, framework="pt") as file:
            weights = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118 - it is no dictionary
            described = (file.metadata() or {})["card"]
    except KeyError:
        raise _refusal(path, ", as attnviz train writes one") from None
    except (OSError, SafetensorError, FileFormatError) as error:
        raise _refusal(path, f": {error}") from error
    try:
        card = _card_from(json.loads(described))
    except Exception as error:  # whatever the values of a damaged card lead to
        reason = f"train it again ({type(error).__name__}: {error})"
        raise _refusal(path, f" that this version reads: {reason}") from error
    # A damaged card with huge sizes must not allocate a model of that size.
    n_weights = sum(weight.numel() for weight in weights.values())
    sizes = [size for size in asdict(card.plan.config).values() if isinstance(size, int)]
    if max(sizes) > n_weights:
        raise _refusal(path, f": {WRONG_SIZES}")
    return card, weights


def _refusal(path: Path, reason: str) -> FileFormatError:
    return FileFormatError(f"{path} holds no model of attnviz{reason}")


def _card_from(described: dict[str, Any]) -> ModelCard:
    """Return the card that a file describes."""
    import msgspec

    _, config_class = ARCHITECTURES[described["kind"]]
    plan = TrainingPlan(
        kind=described["kind"],
        config=_convert(config_class, described["config"]),
        recipe=_convert(Recipe, described["recipe"]),
        learns=msgspec.convert(described["learns"], str),
        clauses=tuple(described["clauses"]),
    )
    sizes, target = plan.config, None
    if isinstance(sizes, LanguageConfig):
        source = _vocabulary(described["source"], sizes.n_words)
    else:
        source = _vocabulary(described["source"], sizes.n_source_words)
        target = _vocabulary(described["target"], sizes.n_target_words)
    return ModelCard(
        name=msgspec.convert(described["name"], str),
        plan=plan,
        source=source,
        target=target,
        quality=msgspec.convert(described["quality"], dict[str, float]),
    )


def _vocabulary(words: object, size: int) -> Vocabulary:
    """Return the vocabulary of these words. Raises ValueError: they are not `size`, or do not begin with `SPECIAL`."""
    import msgspec

    vocabulary = Vocabulary(msgspec.convert(words, tuple[str, ...]))
    if vocabulary.words[: len(SPECIAL)] != SPECIAL or len(vocabulary) != size:
        raise ValueError(f"expected {size:,} words that begin with {', '.join(SPECIAL)}")
    return vocabulary


def _convert(kind: type[_T], fields: dict[str, Any]) -> _T:
    """Return a dataclass of these fields, each of its type and none of another name."""
    import msgspec

    return msgspec.convert(asdict(kind(**fields)), kind)  # type: ignore[call-overload]  # every kind is a dataclass
