"""A home-built model trained from its recipe, from the first weights to the file, whatever interrupts it.

The loop is the same for every model, deterministic on a processor, and can be gone on with at any step.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import torch
from torch import nn

from attnviz.errors import InputError, SettingsError
from attnviz.models.attention import MultiHeadAttention
from attnviz.models.config import LanguageConfig
from attnviz.models.language.vocabulary import load_vocabulary
from attnviz.models.registry import HOME_BUILT, Recipe, TrainingPlan, trained
from attnviz.models.training import files, measure
from attnviz.models.training.files import ModelCard, State
from attnviz.models.training.tasks import Model, Task, task_of
from attnviz.models.wholes import LanguageEncoder
from attnviz.storage.files import check_ending, check_writable, write_whole

REFERENCE_HEAD = 3
"""The number that the head that finds referents gets in its layer; training would number it at random."""


def unfinished(path: Path) -> Path:
    """Return the path at which training is kept when it is stopped."""
    return path.with_name(f"{path.stem}.unfinished.safetensors")


def plan_of(name: str, *, seed: int | None = None, steps: int | None = None) -> TrainingPlan:
    """Return the training plan of a model, with another seed or number of steps where one is given.

    Raises:
        InputError: there is no trained home-built model of this name.
        SettingsError: a seed below 0, or no step.
    """
    if name not in trained():
        raise InputError(
            f"there is no home-built model {name!r} to train: there are {', '.join(trained())}"
        )
    if (seed is not None and seed < 0) or (steps is not None and steps < 1):
        raise SettingsError("a seed is at least 0, and there is at least one step")
    plan = HOME_BUILT[name].plan()
    own = plan.recipe
    return replace(
        plan, recipe=replace(own, seed=own.seed if seed is None else seed, steps=steps or own.steps)
    )


def train(
    name: str,
    path: str | os.PathLike[str],
    *,
    seed: int | None = None,
    steps: int | None = None,
    begin: Callable[[int, int], None] | None = None,
    progress: Callable[[int, float], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    write: Callable[[Path, Callable[[Path], object]], object] = write_whole,
) -> ModelCard | State:
    """Train a home-built model again, as the one that comes with attnviz was: the same seed gives the same weights.

    Training that was stopped is kept beside the path (`unfinished`); the same call goes on from there. At the end the
    weights, with all that is known about them and how good they are on unseen sentences, are written to the path.

    Args:
        name: one of those that were trained, such as ``toy``.
        path: where the weights shall lie, a ``.safetensors`` file.
        seed: of the first weights and of the sentences; None is the recipe's.
        steps: batches to learn from; None is the recipe's.
        begin: is called once with the first step and the number of all steps.
        progress: is called after each step with its number and its loss, in nats.
        stop: is called after each step; training stops where it returns True.
        write: writes a file with the function that it is given; by default whole or not at all.

    Returns:
        The card of the finished model, whose `quality` is what was measured, or the state that was kept.

    Raises:
        InputError: there is no trained home-built model of this name.
        SettingsError: an argument of another type, a seed below 0, or no step.
        FileFormatError: what was kept is damaged, or of another model, seed or recipe.
        OutputError: another ending, or a file that cannot be written: before the first step.
    """
    path = Path(path)
    check_ending(path, (files.ENDING,), "weights are")
    check_writable(path)
    plan, kept = plan_of(name, seed=seed, steps=steps), unfinished(path)
    state = files.load_state(kept, name, plan) if kept.exists() else None
    task = task_of(plan)
    if begin is not None:
        begin(state.step if state else 0, plan.recipe.steps)
    with _reproducible():
        reached = take_steps(task, state=state, stop=stop, progress=progress)
        write(kept, lambda temporary: files.save_state(temporary, name, plan, reached))
        if reached.step < plan.recipe.steps:
            return reached
        if isinstance(task.model, LanguageEncoder):
            layer, head = measure.reference_head(task.model)
            attention = cast("MultiHeadAttention", task.model.encoder.layers[layer].attention)
            exchange_heads(attention, head, REFERENCE_HEAD)
        card = card_of(name, plan, task.model)
    write(path, lambda temporary: files.save(temporary, card, task.model))
    kept.unlink(missing_ok=True)
    return card


def take_steps(
    task: Task,
    *,
    state: State | None = None,
    progress: Callable[[int, float], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> State:
    """Train a task's model to the end of its recipe, or until `stop`, which is called after each step, returns True.

    What one step does depends on the weights, the optimizer and the step's number alone, so training that was stopped
    and goes on from its state ends with the same weights as training that was not. `progress` is called with each
    step's number and loss, in nats. Returned is the state after the last step taken.

    Source: Loshchilov and Hutter 2019, AdamW.
    """
    model, recipe = task.model, task.recipe
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.rate, weight_decay=0.01)
    step = 0
    if state is not None:
        step = state.step
        _restore(state, model, optimizer)
    model.train()
    while step < recipe.steps and not stop():
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, recipe)
        loss = task.loss(step)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if progress is not None:
            progress(step, loss.item())
        step += 1
    model.eval()
    return _state(step, model, optimizer)


def rate_at(step: int, recipe: Recipe) -> float:
    """The learning rate of a step: up over the first twentieth, then down to 0 as a cosine.

    Source of the cosine: Loshchilov and Hutter 2017, "SGDR", equation 5.
    """
    rising = (step + 1) / max(1, recipe.steps / 20)
    falling = 0.5 * (1 + math.cos(math.pi * step / recipe.steps))
    return recipe.rate * min(1.0, rising) * falling


def _state(step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
    tensors = {
        f"weights.{name}": tensor.detach().clone() for name, tensor in model.state_dict().items()
    }
    for name, parameter in model.state_dict(keep_vars=True).items():
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer.{name}.{key}"] = value.detach().clone()
    return State(step, tensors)


def _restore(state: State, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    prefix = "weights."
    model.load_state_dict(
        {
            name.removeprefix(prefix): tensor
            for name, tensor in state.tensors.items()
            if name.startswith(prefix)
        }
    )
    for name, parameter in model.state_dict(keep_vars=True).items():
        start = f"optimizer.{name}."
        optimizer.state[parameter] = {
            key.removeprefix(start): tensor.clone()
            for key, tensor in state.tensors.items()
            if key.startswith(start)
        }


@torch.no_grad()
def exchange_heads(attention: MultiHeadAttention, one: int, other: int) -> None:
    """Exchange two heads of a layer: it computes the same, but for rounding, since W^O sums over all heads."""
    order = list(range(attention.n_heads))
    order[one], order[other] = other, one
    rows = torch.arange(attention.d_model).view(attention.n_heads, attention.d_k)[order].flatten()
    for projection in (
        attention.query_projection,
        attention.key_projection,
        attention.value_projection,
    ):
        projection.weight.copy_(projection.weight[rows])
        projection.bias.copy_(projection.bias[rows])
    attention.output_projection.weight.copy_(attention.output_projection.weight[:, rows])


def card_of(name: str, plan: TrainingPlan, model: Model) -> ModelCard:
    """All that is known about a trained model, measured on unseen sentences."""
    language = plan.config.language if isinstance(plan.config, LanguageConfig) else None
    return ModelCard(
        name=name,
        plan=plan,
        source=load_vocabulary(language or "source"),
        target=load_vocabulary("target") if language is None else None,
        quality=measure.quality(model, clauses=plan.clauses),
    )


@contextmanager
def _reproducible() -> Iterator[None]:
    """Within it sums are added in one order; one thread is as fast for models this small."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(mode=True)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(mode=deterministic)
        torch.set_num_threads(threads)
