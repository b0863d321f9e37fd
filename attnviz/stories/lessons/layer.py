"""Length, direction and similarity of the word vectors after each part of an encoder layer."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from attnviz.models.language_models import LanguageEncoder
from attnviz.models.transformer import TransformerLayer
from attnviz.stories.common import encode, open_model, small, words_of
from attnviz.stories.record import Bars, Matrix, Series, Story, Table
from attnviz.text.messages import N_, _

SENTENCE = "The animal didn't cross the street because it was too tired."
STEPS = (
    N_("input"),
    N_("attention"),
    N_("+ input"),
    N_("norm"),
    N_("feed-forward"),
    N_("+ normed"),
    N_("norm: output"),
)


class LayerStep(NamedTuple):
    """Means over the words at one step of a layer."""

    length: float
    cosine_with_input: float
    cosine_between_words: float


def run_layer(layer: TransformerLayer, x: Tensor) -> list[Tensor]:
    """Return the vectors [word, d_model] at each of `STEPS`."""
    attention = layer.attention(x)[0]
    sum_1 = x + attention
    norm = layer.attention_norm(sum_1)
    network = layer.feed_forward(norm)
    sum_2 = norm + network
    output = layer.feed_forward_norm(sum_2)
    return [step[0] for step in (x, attention, sum_1, norm, network, sum_2, output)]


def cosines(x: Tensor) -> Tensor:
    """Return the cosine of each pair of word vectors [word, word]."""
    return cosine_similarity(x[:, None], x[None], dim=-1)


def measure(x: Tensor, layer_input: Tensor) -> LayerStep:
    """Measure the vectors [word, d_model] after one step."""
    pair_cosines, n = cosines(x), len(x)
    return LayerStep(
        length=float(x.norm(dim=-1).mean()),
        cosine_with_input=float(cosine_similarity(x, layer_input, dim=-1).mean()),
        # The mean without the diagonal, where each word is compared with itself.
        cosine_between_words=float((pair_cosines.sum() - pair_cosines.trace()) / (n * (n - 1))),
    )


@torch.inference_mode()
def build_story() -> Story:
    """Follow the vectors through every layer of the trained encoder."""
    card, model = open_model("toy", LanguageEncoder)
    words = words_of(SENTENCE)
    ids = encode(card.source, [words])
    x = embedded = model.embedding(ids)
    layers = [layer for layer in model.encoder.layers if isinstance(layer, TransformerLayer)]
    steps, differences = [], []
    for layer in layers:
        vectors = run_layer(layer, x)
        steps.append([measure(step, vectors[0]) for step in vectors])
        x, _weights, _no_cross = layer(x)
        differences.append(float((vectors[-1] - x[0]).abs().max()))
    differences.append(float((model(ids).vectors - x).abs().max()))

    rows = [
        (number, _(name), *step)
        for number, layer_steps in enumerate(steps)
        for name, step in zip(STEPS, layer_steps, strict=True)
        if number == 0 or name != STEPS[0]  # the input is the output of the layer before
    ]
    # In the order of `STEPS`: 0 is the input, 1 what attention brings, 2 the sum of both.
    ratios = [layer_steps[1].length / layer_steps[0].length for layer_steps in steps]
    after_sum = [layer_steps[2].cosine_with_input for layer_steps in steps]
    before, after = steps[0][0].cosine_between_words, steps[-1][-1].cosine_between_words
    return Story(
        title=_(
            "The words' vectors grow more alike: their mean cosine is {before:.2f} "
            "before the {n} layers, {after:.2f} after them"
        ).format(n=len(layers), before=before, after=after),
        receipt=_(
            "verified: max difference {difference} over {n} layers, between the steps and the "
            "layers' own output"
        ).format(difference=small(max(differences)), n=len(layers)),
        parts=[
            _(
                "“{sentence}” in toy: each word is a vector of {d_model} numbers. A layer adds to it "
                "what attention brings from the other words, and then the output of a small network "
                "(feed-forward). After each of these residual sums comes a norm."
            ).format(sentence=SENTENCE, d_model=model.config.d_model),
            Table(
                _("The vectors on their way through the layers, means over the words"),
                [
                    _("layer"),
                    _("step"),
                    _("length"),
                    _("cosine with the input"),
                    _("cosine between words"),
                ],
                rows,
                digits=2,
            ),
            _(
                "What attention brings is {low:.2f} to {high:.2f} times as long as the input and "
                "points elsewhere. The residual sum keeps the input: their cosine is {least:.2f} or "
                "more. The norm makes every vector sqrt({d_model}) = {root:.2f} long, whatever its "
                "length was, then multiplies each component by a learned factor and adds a learned "
                "shift."
            ).format(
                low=min(ratios),
                high=max(ratios),
                least=min(after_sum),
                d_model=model.config.d_model,
                root=model.config.d_model**0.5,
            ),
            _(
                "Attention brings much the same to all words (see their cosine after it), so they become "
                "more similar: the mean cosine between two words is {before:.2f} before the first "
                "layer and {after:.2f} after the last one."
            ).format(before=before, after=after),
        ],
        main=1,
        picture=[
            _cosine_panel(_("Cosine between words: input"), embedded[0], words),
            _cosine_panel(_("Cosine between words: output of the last layer"), x[0], words),
            Bars(
                _("Length of the vectors at each step"),
                [*map(_, STEPS)],
                [
                    Series(
                        _("layer {number}").format(number=number),
                        [step.length for step in layer_steps],
                    )
                    for number, layer_steps in enumerate(steps)
                ],
                _("mean length"),
            ),
        ],
    )


def _cosine_panel(title: str, x: Tensor, words: list[str]) -> Matrix:
    values = cosines(x).numpy()
    return Matrix(title, values, words, words, _("word"), _("word"), (-1.0, 1.0), diverging=True)
