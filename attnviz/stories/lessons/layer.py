"""Length, direction and similarity of the words' vectors after each part of an encoder's layer."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import nn
from torch.nn.functional import cosine_similarity, layer_norm

from attnviz.models.transformer import TransformerLayer
from attnviz.models.wholes import LanguageEncoder
from attnviz.stories.common import numbers, open_model, signed, small, story, table, words_of
from attnviz.stories.record import Bars, Series, Story
from attnviz.text.messages import Phrase, _, join_phrases

SENTENCE = "The animal didn't cross the street because it was too tired."
TITLE = _("through {n} layers the mean cosine between words goes from {came:.2f} to {left:.2f}")
RECEIPT = _(
    "verified: max difference {most} over {n} layers, between the steps and the layers' own "
    "output, and between the last and the whole model's"
)
INTRODUCTION = _(
    "“{sentence}”, as toy reads it: each word is a vector of {d_model} numbers. A layer adds to "
    "it what attention brings from the other words, and then what a small network (feed-forward) "
    "makes of it; each sum is followed by a norm. Below are the means over the words: the length "
    "of the vectors, the cosine with what came into the layer (1: the same direction, 0: nothing "
    "in common), and the cosine between two different words."
)
ATTENTION = _(
    "What attention brings is {low:.2f} to {high:.2f} times as long as what came in, and its "
    "cosine with it is {kept} in layers 0 to {last}. The residual sum keeps the old vector in: "
    "with it the cosine is {summed}."
)
NORMS = _(
    "The sums are {shortest:.1f} to {longest:.1f} long. The norm takes each vector's mean away "
    "and makes it sqrt({d_model}) = {root:.2f} long, however long it was; then it multiplies each "
    "number by a learned factor and adds a learned shift, so that what goes out may have another "
    "length. In the last norm the vectors are {plain:.2f} long before the factors, {factored:.2f} "
    "after them, and {shifted:.2f} with the shift (means over the words)."
)
SIMILARITY = _(
    "The mean cosine between two different words is {first} where they come in; it {way}. In the "
    "end the words are {end} they were where they came in."
)
WORD = _("word")
STEPS = (
    _("came in"),
    _("attention"),
    _("+ came in"),
    _("norm"),
    _("feed-forward"),
    _("+ normed"),
    _("norm: out"),
)  # what there is on the way through a layer, from first to last


class LayerStep(NamedTuple):
    """The words' vectors at one place in a layer; each number is a mean."""

    length: float
    kept: float  # the cosine of each vector with the one that came into the layer; 1 is the same direction
    alike: float  # the cosine of two different words' vectors


def parts(layer: TransformerLayer, x: torch.Tensor) -> list[torch.Tensor]:
    """The vectors [tokens, d_model] at each of the steps, computed one after another as the layer does."""
    attended = layer.attention(x)[0]
    summed = x + attended
    normed = layer.attention_norm(summed)
    fed = layer.feed_forward(normed)
    both = normed + fed
    return [
        part[0] for part in (x, attended, summed, normed, fed, both, layer.feed_forward_norm(both))
    ]


def through(norm: nn.LayerNorm, x: torch.Tensor) -> list[float]:
    """The mean length of vectors in a norm: before its learned factors, after them, and with its learned shift."""
    plain = layer_norm(x, norm.normalized_shape, eps=norm.eps)
    factored = plain * norm.weight
    return [float(part.norm(dim=-1).mean()) for part in (plain, factored, factored + norm.bias)]


def similarity(x: torch.Tensor) -> torch.Tensor:
    """The cosine of every two words' vectors [token, token]."""
    return cosine_similarity(x[:, None], x[None], dim=-1)


def measure(x: torch.Tensor, came: torch.Tensor) -> LayerStep:
    """Measure vectors [tokens, d_model] after one part of a layer."""
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
    words = tuple(words_of(SENTENCE))
    shown, steps, differences = numbers(card.source, [words]), list[list[LayerStep]](), []
    x = first = model.embedding(shown)
    layers = [layer for layer in model.encoder.layers if isinstance(layer, TransformerLayer)]
    for layer in layers:
        vectors = parts(layer, x)
        steps.append([measure(part, vectors[0]) for part in vectors])
        x = layer(x).states
        differences.append(float((vectors[-1] - x[0]).abs().max()))
    differences.append(float((model(shown).vectors - x).abs().max()))
    longer = [step[1].length / step[0].length for step in steps]
    sums = [step[place].length for step in steps for place in (2, 5)]
    kept, summed = (", ".join(f"{step[place].kept:.2f}" for step in steps) for place in (1, 2))
    n = len(layers)
    last = len(layers) - 1
    most = small(max(differences))
    low = min(longer)
    high = max(longer)
    shortest = min(sums)
    longest = max(sums)
    root = model.config.d_model**0.5
    norms = through(layers[-1].feed_forward_norm, vectors[-2])
    rows = [
        (number, name, *step)
        for number, layer_steps in enumerate(steps)
        for name, step in zip(STEPS, layer_steps, strict=True)
        if number == 0 or name != STEPS[0]  # what comes in is what went out of the layer before
    ]
    alike = _similarity_in_words([steps[0][0].alike, *(step[-1].alike for step in steps)])
    cosines = partial(signed, axes=(WORD, WORD), top=1.0, rows=words, columns=words)
    lengths: dict[str, list[float]] = {
        _("layer {number}").format(number=i): [step.length for step in layer_steps]
        for i, layer_steps in enumerate(steps)
    }
    return story(
        title=TITLE.format(n=n, came=steps[0][0].alike, left=steps[-1][-1].alike),
        receipt=RECEIPT.format(most=most, n=n),
        parts=(
            INTRODUCTION.format(sentence=SENTENCE, d_model=model.config.d_model),
            ATTENTION.format(low=low, high=high, kept=kept, last=last, summed=summed),
            table(
                _("the vectors on their way, means over the words"),
                (
                    _("layer"),
                    _("step"),
                    _("length"),
                    _("cosine with what came in"),
                    _("cosine between words"),
                ),
                rows,
                digits=2,
            ),
            NORMS.format(
                shortest=shortest,
                longest=longest,
                d_model=model.config.d_model,
                root=root,
                plain=norms[0],
                factored=norms[1],
                shifted=norms[2],
            ),
            alike,
        ),
        picture=(
            cosines(_("cosine between words: coming in"), similarity(first[0]).numpy()),
            cosines(
                _("cosine between words: after layer {last}").format(last=last),
                similarity(x[0]).numpy(),
            ),
            Bars(
                _("length of the vectors at each step"),
                STEPS,
                Series.each(lengths),
                _("mean length"),
            ),
        ),
    )


def _similarity_in_words(alike: list[float]) -> Phrase:
    """Say how the mean cosine between words changes from layer to layer, as the table prints it."""
    shown = [f"{value:.2f}" for value in alike]
    steps = []
    for number, (here, there) in enumerate(pairwise(shown)):
        if float(there) > float(here):
            went = _("rises in layer {number} (to {there})")
        elif float(there) < float(here):
            went = _("falls in layer {number} (to {there})")
        else:
            went = _("stays as it is in layer {number} (to {there})")
        steps.append(went.format(number=number, there=there))
    if float(shown[-1]) > float(shown[0]):
        end = _("more alike than")
    elif float(shown[-1]) < float(shown[0]):
        end = _("less alike than")
    else:
        end = _("as alike as")
    return SIMILARITY.format(first=shown[0], way=join_phrases(steps, ", "), end=end)
