"""Train a home-built model from its recipe.

The loop is the same for every model, and deterministic on a processor.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from attnviz.models.language.vocabulary import load_vocabulary
from attnviz.models.registry import Recipe, TrainingPlan, training_plan
from attnviz.models.training import files, measure
from attnviz.models.training.files import Model, ModelCard, new_model
from attnviz.models.training.tasks import loss_of
from attnviz.storage.files import check_ending, check_writable, write_whole


def train(
    name: str,
    path: str | os.PathLike[str],
    *,
    seed: int | None = None,
    steps: int | None = None,
    progress: Callable[[int, float], None] | None = None,
) -> ModelCard:
    """Train a home-built model again; the same seed gives the same weights.

    Args:
        name: a trained home-built model, such as ``toy``.
        path: the ``.safetensors`` file to write.
        seed: seed of the initial weights and of the sentences; None for the recipe's.
        steps: number of batches; None for the recipe's.
        progress: is called after each step with its number and its loss, in nats.

    Returns:
        The card of the model, whose `quality` is measured on unseen sentences.

    Raises:
        SettingsError: there is no trained home-built model of this name, a negative seed, or fewer than one step.
        OutputError: another ending, or a file that cannot be written: before the first step.
    """
    path = Path(path)
    check_ending(path, (files.ENDING,), "weights are")
    check_writable(path)
    plan = training_plan(name, seed=seed, steps=steps)
    with _reproducible():
        model = new_model(plan)
        take_steps(model, plan, progress=progress)
        model.half().float()  # the weights are rounded as the file will hold them, then measured
        language = getattr(plan.config, "language", None)
        card = ModelCard(
            name=name,
            plan=plan,
            source=load_vocabulary(language or "source"),
            target=None if language else load_vocabulary("target"),
            quality=measure.quality(model, clauses=plan.clauses),
        )
    write_whole(path, lambda temporary: files.save(temporary, card, model))
    return card


def take_steps(
    model: Model, plan: TrainingPlan, *, progress: Callable[[int, float], None] | None = None
) -> None:
    """Train a model to the end of its recipe.

    Source: Loshchilov and Hutter 2019, AdamW.
    """
    recipe = plan.recipe
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe.rate, weight_decay=0.01)
    model.train()
    for step in range(recipe.steps):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, recipe)
        loss = loss_of(model, plan, step)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if progress is not None:
            progress(step, loss.item())
    model.eval()


def rate_at(step: int, recipe: Recipe) -> float:
    """Return the learning rate of a step: it rises over the first twentieth, then falls to 0 along a cosine.

    Source of the cosine: Loshchilov and Hutter 2017, "SGDR", equation 5.
    """
    rising = (step + 1) / max(1, recipe.steps / 20)
    falling = 0.5 * (1 + math.cos(math.pi * step / recipe.steps))
    return recipe.rate * min(1.0, rising) * falling


@contextmanager
def _reproducible() -> Iterator[None]:
    """Use deterministic algorithms and one thread within the block; one thread is as fast for models this small."""
    threads, deterministic = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(mode=True)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(mode=deterministic)
        torch.set_num_threads(threads)
