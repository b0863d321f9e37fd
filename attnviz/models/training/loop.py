"""The training loop: the same for every model, deterministic on a processor, resumable at any step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attnviz.models.registry import Recipe
from attnviz.models.training.tasks import Task


@dataclass(frozen=True, slots=True)
class State:
    """All that training needs to go on."""

    step: int  # the next step
    tensors: dict[str, Tensor]  # the weights and the optimizer's running means, by name


def train(
    task: Task, *, state: State | None = None, progress: Callable[[int, float], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> State:  # fmt: skip
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
    tensors = {f"weights.{name}": tensor.detach().clone() for name, tensor in model.state_dict().items()}
    for name, parameter in model.state_dict(keep_vars=True).items():
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer.{name}.{key}"] = value.detach().clone()
    return State(step, tensors)


def _restore(state: State, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    prefix = "weights."
    model.load_state_dict(
        {name.removeprefix(prefix): tensor for name, tensor in state.tensors.items() if name.startswith(prefix)}
    )
    for name, parameter in model.state_dict(keep_vars=True).items():
        start = f"optimizer.{name}."
        optimizer.state[parameter] = {
            key.removeprefix(start): tensor.clone() for key, tensor in state.tensors.items() if key.startswith(start)
        }
