"""Trained models as files: weights as safetensors, all that is known about a model in the metadata.

A file that is not there, is damaged, holds something else or was written by another version is refused
(FileFormatError).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from attnviz.errors import FileFormatError, ModelError
from attnviz.models.language.vocabulary import Vocabulary
from attnviz.models.registry import HOME_BUILT, Recipe, TrainingPlan
from attnviz.models.training.tasks import ARCHITECTURES, Model

_T = TypeVar("_T")

FOLDER = Path(__file__).parent.parent / "weights"  # where the weights lie that come with attnviz
ENDING = ".safetensors"  # of files of weights


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCard:
    """What is known about a trained model."""

    name: str  # its name
    plan: TrainingPlan  # how it was made
    source: Vocabulary  # the words it reads
    target: Vocabulary | None = None  # the words it generates; None where they are those it reads
    quality: Mapping[str, float] = field(
        default_factory=dict
    )  # what was measured on test sentences, by name


@dataclass(frozen=True, slots=True)
class State:
    """All that training needs to go on."""

    step: int  # the next step
    tensors: dict[str, Tensor]  # the weights and the optimizer's running means, by name


def save(path: Path, card: ModelCard, model: nn.Module) -> None:
    """Write a model's weights and its card into one file."""
    from safetensors.torch import save as serialised

    target = card.target.words if card.target else None
    words = {"source": card.source.words, "target": target, "quality": dict(card.quality)}
    described = json.dumps({"name": card.name, **asdict(card.plan), **words}, ensure_ascii=False)
    weights = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    path.write_bytes(serialised(weights, {"card": described}))


def save_state(path: Path, name: str, plan: TrainingPlan, state: State) -> None:
    """Write where training stopped, so that it can go on."""
    from safetensors.torch import save as serialised

    path.write_bytes(
        serialised(state.tensors, {"step": str(state.step), "plan": _described(name, plan)})
    )


def load_state(path: Path, name: str, plan: TrainingPlan) -> State:
    """Read where training stopped; a file of another model, seed or recipe is refused too."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            if metadata["plan"] != _described(name, plan):
                raise FileFormatError(
                    f"{path} is of another training (model, seed, steps or sentences differ): remove it to begin anew"
                )
            tensors = {tensor: file.get_tensor(tensor) for tensor in file.keys()}  # noqa: SIM118 - it is no dictionary
            return State(int(metadata["step"]), tensors)
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        raise FileFormatError(f"{path} holds no training to go on with: {error}") from error


def _described(name: str, plan: TrainingPlan) -> str:
    return json.dumps([name, asdict(plan)], sort_keys=True)


def load_home_built(name: str) -> tuple[ModelCard, Model]:
    """A trained model, by its name in `HOME_BUILT` or by the file that ``attnviz train`` wrote, and its card."""
    return load(file_of(name))


def file_of(name: str) -> Path:
    """Where the weights lie of a trained model, by its name or by its file itself."""
    if name.endswith(ENDING):
        return Path(name).expanduser()
    return HOME_BUILT[name].weights or FOLDER / f"{name}{ENDING}"


def load_card(path: Path) -> ModelCard:
    """The card of a model, without its weights."""
    return _open(path)[0]


def load(path: Path) -> tuple[ModelCard, Model]:
    """A trained model, ready to run, and its card."""
    card, weights = _open(path)
    try:
        # Drawing first weights that are then replaced takes milliseconds; the meta device, which draws none, takes
        # a second to get ready.
        with torch.random.fork_rng(devices=[]):
            model = ARCHITECTURES[card.plan.kind][0](card.plan.config)  # type: ignore[arg-type]
        model.load_state_dict(weights, assign=True)
    except (
        ModelError,
        RuntimeError,
        TypeError,
        ValueError,
        LookupError,
        ArithmeticError,
        MemoryError,
    ) as error:
        raise FileFormatError(
            f"{path} holds no model of attnviz: its weights are not of the sizes it tells"
        ) from error
    return card, model.eval()


def _open(path: Path) -> tuple[ModelCard, dict[str, Tensor]]:
    import msgspec
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            if "card" not in (file.metadata() or {}):
                raise FileFormatError(
                    f"{path} holds no model of attnviz, as attnviz train writes one"
                )
            described = json.loads(file.metadata()["card"])
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dictionary
    except (OSError, SafetensorError, ValueError, RecursionError) as error:
        raise FileFormatError(f"{path} holds no model of attnviz: {error}") from error
    try:
        plan = TrainingPlan(
            kind=described["kind"],
            config=_convert(ARCHITECTURES[described["kind"]][1], described["config"]),
            recipe=_convert(Recipe, described["recipe"]),
            learns=msgspec.convert(described["learns"], str),
            clauses=tuple(described["clauses"]),
        )
        source, target = (
            msgspec.convert(described[side] or (), tuple[str, ...]) for side in ("source", "target")
        )
        card = ModelCard(
            name=msgspec.convert(described["name"], str),
            plan=plan,
            source=Vocabulary(source),
            target=Vocabulary(target) if target else None,
            quality=msgspec.convert(described["quality"], dict[str, float]),
        )
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        RecursionError,
        ModelError,
    ) as error:
        reason = f"train it again ({type(error).__name__}: {error})"
        raise FileFormatError(
            f"{path} holds no model of attnviz that this version reads: {reason}"
        ) from error
    n_weights = sum(weight.numel() for weight in weights.values())
    if any(isinstance(size, int) and size > n_weights for size in asdict(plan.config).values()):
        raise FileFormatError(
            f"{path} holds no model of attnviz: its weights are not of the sizes it tells"
        )
    return card, weights


def _convert(kind: type[_T], held: dict[str, Any]) -> _T:
    """A dataclass of these fields, each of its type and none of another name."""
    import msgspec

    return msgspec.convert(asdict(kind(**held)), kind)  # type: ignore[call-overload]  # every kind is a dataclass
