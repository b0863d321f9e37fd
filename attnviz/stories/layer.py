"""What each part of an encoder's layer does to the words' vectors: their length, their direction, their similarity."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, layer_norm

from attnviz.models.transformer import TransformerLayer
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories.common import numbers, open_model, prose, small, words_of
from attnviz.stories.record import Bars, Matrix, Series, Story, Table

SENTENCE = "The animal didn't cross the street because it was too tired."
STEPS = ("came in", "attention", "+ came in", "norm", "feed-forward", "+ normed", "norm: out")
"""What there is on the way through a layer, from first to last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerStep:
    """The words' vectors at one place in a layer; each number is a mean."""

    length: float
    kept: float  # the cosine of each vector with the one that came into the layer; 1 is the same direction
    alike: float  # the cosine of two different words' vectors


def parts(layer: TransformerLayer, x: torch.Tensor) -> list[torch.Tensor]:
    """The vectors [tokens, d_model] at each of the steps, computed one after another as the layer does."""
    attended, _ = layer.attention(x)
    summed = x + attended
    normed = layer.attention_norm(summed)
    fed = layer.feed_forward(normed)
    both = normed + fed
    return [part[0] for part in (x, attended, summed, normed, fed, both, layer.feed_forward_norm(both))]


def through(norm: nn.LayerNorm, x: torch.Tensor) -> tuple[float, float, float]:
    """The mean length of vectors in a norm: before its learned factors, after them, and with its learned shift."""
    plain = layer_norm(x, norm.normalized_shape, eps=norm.eps)
    factored = plain * norm.weight
    before, after, out = (float(part.norm(dim=-1).mean()) for part in (plain, factored, factored + norm.bias))
    return before, after, out


def similarity(x: torch.Tensor) -> torch.Tensor:
    """The cosine of every two words' vectors [token, token]."""
    return cosine_similarity(x[:, None], x[None], dim=-1)


def measure(x: torch.Tensor, came: torch.Tensor) -> LayerStep:
    """What is measured of vectors [tokens, d_model] on their way."""
    alike, n = similarity(x), len(x)
    return LayerStep(
        length=float(x.norm(dim=-1).mean()),
        kept=float(cosine_similarity(x, came, dim=-1).mean()),
        alike=float((alike.sum() - alike.trace()) / (n * (n - 1))),
    )


@torch.inference_mode()
def tell() -> Story:
    """The demo: lengths and directions through every layer of the trained encoder."""
    card, model = open_model("toy", LanguageEncoder)
    words = words_of(SENTENCE)
    shown = numbers(card.source, [words])
    x = first = model.embedding(shown)
    steps, differences = [], []
    layers = [layer for layer in model.encoder.layers if isinstance(layer, TransformerLayer)]
    for layer in layers:
        vectors = parts(layer, x)
        steps.append([measure(part, vectors[0]) for part in vectors])
        x = layer(x).states
        differences.append(float((vectors[-1] - x[0]).abs().max()))
    differences.append(float((model(shown).vectors - x).abs().max()))
    last = through(layers[-1].feed_forward_norm, vectors[-2])
    return Story(
        name="layer",
        title="what each part of a layer does to the words' vectors",
        parts=(*_tell(steps, model.config.d_model), _table(steps), *_summed_up(steps, model.config.d_model, last)),
        picture=_picture(steps, words, similarity(first[0]), similarity(x[0])),
        receipt=prose(f"""verified: max difference {small(max(differences))} over {len(layers)} layers, between the
        steps and the layers' own output, and between the last and the whole model's"""),
    )


def _tell(steps: list[list[LayerStep]], d_model: int) -> tuple[str, ...]:
    low, high = (pick(step[1].length / step[0].length for step in steps) for pick in (min, max))
    return (
        prose(f"""“{SENTENCE}”, as toy reads it: each word is a vector of {d_model} numbers. A layer adds to it what
        attention brings from the other words, and then what a small network (feed-forward) makes of it; each sum is
        followed by a norm. Below are the means over the words: the length of the vectors, the cosine with what came
        into the layer (1: the same direction, 0: nothing in common), and the cosine between two different words."""),
        prose(f"""What attention brings is {low:.2f} to {high:.2f} times as long as what came in, and its cosine with it
        is {", ".join(f"{step[1].kept:.2f}" for step in steps)} in layers 0 to {len(steps) - 1}. The residual sum keeps
        the old vector in: with it the cosine is {", ".join(f"{step[2].kept:.2f}" for step in steps)}."""),
    )


def _summed_up(steps: list[list[LayerStep]], d_model: int, last: tuple[float, float, float]) -> tuple[str, ...]:
    summed = [step[place].length for step in steps for place in (2, 5)]
    return (
        prose(f"""The sums are {min(summed):.1f} to {max(summed):.1f} long. The norm takes each vector's mean away and
        makes it sqrt({d_model}) = {d_model**0.5:.2f} long, however long it was; then it multiplies each number by a
        learned factor and adds a learned shift, so that what goes out may have another length. In the last norm the
        vectors are {last[0]:.2f} long before the factors, {last[1]:.2f} after them, and {last[2]:.2f} with the shift
        (means over the words)."""),
        _similarity_in_words([steps[0][0].alike, *(step[-1].alike for step in steps)]),
    )


def _similarity_in_words(alike: list[float]) -> str:
    """How the mean cosine between words goes on from layer to layer, as the table prints it."""
    shown = [f"{value:.2f}" for value in alike]
    went = [
        ("stays as it is" if here == there else "rises" if float(there) > float(here) else "falls")
        + f" in layer {number} (to {there})"
        for number, (here, there) in enumerate(pairwise(shown))
    ]
    first, last = float(shown[0]), float(shown[-1])
    end = "as alike as" if first == last else "more alike than" if last > first else "less alike than"
    return prose(f"""The mean cosine between two different words is {shown[0]} where they come in; it {", ".join(went)}.
    In the end the words are {end} they were where they came in.""")


def _table(steps: list[list[LayerStep]]) -> Table:
    return Table(
        title="the vectors on their way, means over the words",
        columns=("layer", "step", "length", "cosine with what came in", "cosine between words"),
        rows=tuple(
            (number, name, step.length, step.kept, step.alike)
            for number, layer in enumerate(steps)
            for name, step in zip(STEPS, layer, strict=True)
            if number == 0 or name != STEPS[0]  # what comes in is what went out of the layer before
        ),
        digits=2,
    )


def _picture(
    steps: list[list[LayerStep]], words: list[str], before: torch.Tensor, after: torch.Tensor
) -> tuple[Bars | Matrix, ...]:
    def cosines(where: str, values: torch.Tensor) -> Matrix:
        labels, title = tuple(words), f"cosine between words: {where}"
        return Matrix(title, values.numpy(), labels, labels, "word", "word", limits=(-1.0, 1.0), diverging=True)

    lengths = Bars(
        title="length of the vectors at each step",
        labels=STEPS,
        series=tuple(
            Series(name=f"layer {number}", values=tuple(step.length for step in layer))
            for number, layer in enumerate(steps)
        ),
        y_title="mean length",
    )
    return cosines("coming in", before), cosines(f"after layer {len(steps) - 1}", after), lengths
