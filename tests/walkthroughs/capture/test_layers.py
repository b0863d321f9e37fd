"""Layers walked whole: whatever their family, the last number is the layer's own, and every step is named rightly."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from attnviz.capture.source import open_source
from attnviz.errors import NoAttentionError
from attnviz.text.messages import LANGUAGES
from attnviz.walkthroughs.calculation import largest_difference
from attnviz.walkthroughs.verify import examine
from attnviz.walkthroughs.wording import explain
from tests.walkthroughs.by_hand import largest_error
from tests.walkthroughs.head_walks import walk

if TYPE_CHECKING:
    from attnviz.attention import Kind
    from attnviz.capture.sources import Source
    from attnviz.walkthroughs.record import Walkthrough
    from tests.fixtures.zoo import Zoo

CLOSE = 1e-6
"""How far a recomputed output may be from the model's own in float32, relative to its largest number if above 1."""

TEXT = "I love all you"
TARGET = "Yes! I love you"

ATTENTION = {
    "row",
    "query",
    "keys",
    "values",
    "scores",
    "scaled",
    "bias",
    "softcap",
    "mask",
    "softmax",
    "alignment",
    "context",
    "angle",
    "rotation",
}
"""Steps of one head."""


def plain(activation: str) -> list[str]:
    """The steps of a feed-forward network of two projections."""
    return ["feed_forward_1", activation, "feed_forward_2"]


def gate_steps(activation: str) -> list[str]:
    """The steps of one of three projections."""
    return ["feed_forward_gate", activation, "feed_forward_1", "gated", "feed_forward_2"]


HEADS = ["concatenated", "output"]


def post_norm(network: list[str], *, cross: bool = False) -> list[str]:
    """The steps around the heads of a layer whose norms follow its sums."""
    middle = [*HEADS, "residual_cross", "norm"] if cross else []
    return [*HEADS, "residual", "norm", *middle, *network, "residual_2", "norm_out"]


def pre_norm(norm: str, network: list[str], *, cross: bool = False) -> list[str]:
    """The steps around the heads of a layer whose norms come before its parts."""
    middle = [*HEADS, "residual_cross", norm] if cross else []
    return [f"input_{norm}", *HEADS, "residual", norm, *middle, *network, "residual_out"]


LAYERS: dict[tuple[str, Kind | None], list[str]] = {
    ("toy", None): post_norm(plain("relu")),
    ("toy-random", None): post_norm(plain("relu")),
    ("toy-decoder", None): post_norm(plain("relu")),
    ("toy-transformer", "encoder"): post_norm(plain("relu")),
    ("toy-transformer", "cross"): post_norm(plain("relu"), cross=True),
    ("toy-transformer", "decoder"): post_norm(plain("relu"), cross=True),
    ("real", None): post_norm(plain("gelu")),
    ("bart", None): post_norm(plain("gelu")),
    ("bart_wordpiece", "cross"): post_norm(plain("gelu"), cross=True),
    ("bart_wordpiece", "decoder"): post_norm(plain("gelu"), cross=True),
    ("distilbert", None): post_norm(plain("gelu")),
    ("gpt2", None): pre_norm("norm", plain("gelu_tanh")),
    ("llama", None): pre_norm("rms_norm", gate_steps("silu")),
    ("marian", "cross"): post_norm(plain("gelu"), cross=True),
    ("mistral", None): pre_norm("rms_norm", gate_steps("silu")),
    ("modernbert", None): pre_norm("norm", gate_steps("gelu")),
    ("mt5", "cross"): pre_norm("rms_norm", gate_steps("gelu_tanh"), cross=True),
    ("t5", None): pre_norm("rms_norm", plain("relu")),
    ("t5", "cross"): pre_norm("rms_norm", plain("relu"), cross=True),
    ("t5", "decoder"): pre_norm("rms_norm", plain("relu"), cross=True),
    ("qwen3", None): pre_norm("rms_norm", gate_steps("silu")),
}
"""What stands around the heads of each family's layers."""

home = cache(open_source)


def open_model(zoo: Zoo, name: str) -> Source:
    """A model by its name here."""
    return home(name) if name.startswith("toy") else zoo.source(name)


def walk_layer(source: Source, name: str, kind: Kind | None, **more: Any) -> Walkthrough:
    """A layer walked whole; an encoder-decoder whose words are random is made to say something."""
    target = TARGET if kind in {"cross", "decoder"} and not name.startswith("toy") else None
    return walk(TEXT, source, whole_layer=True, kind=kind, target=target, **more)


def anew(zoo: Zoo, name: str, kind: Kind | None, **more: Any) -> Walkthrough:
    """The layer of a model that runs now."""
    return walk_layer(open_model(zoo, name), name, kind, **more)


run = cache(lambda zoo, name: open_model(zoo, name))
kept = cache(lambda zoo, name, *more, **choice: walk_layer(run(zoo, name), name, *more, **choice))


def whole(zoo: Zoo, name: str, kind: Kind | None, *, layer: int = 0, **more: Any) -> Walkthrough:
    """The same of a model that ran once, walked once for all tests that only read it."""
    walked: Walkthrough = kept(zoo, name, kind, layer=layer, **more)
    return walked


def around(walked: Walkthrough) -> list[str]:
    """The steps that are neither those of a head nor make the layer's input."""
    made = {"input", *ATTENTION}
    return [step.name for step in walked.steps if step.name not in made and step.result != "X"]


def scale(walked: Walkthrough) -> float:
    """The largest number of the output, at least 1."""
    assert walked.own is not None
    return max(1.0, float(np.abs(walked.grids[walked.own].values).max()))


@pytest.mark.parametrize(("name", "kind"), LAYERS)
def test_whole_layers(zoo: Zoo, name: str, kind: Kind | None) -> None:
    """All heads, concatenation, output projection, residual sums, norms and feed-forward, to the layer's own output."""
    expected = LAYERS[name, kind]
    for layer in (0, -1):
        walked = whole(zoo, name, kind, layer=layer, every=True)
        # The norm of the embeddings is all that the first attention of ModernBERT has before it.
        assert around(walked) == (expected[1:] if (name, layer) == ("modernbert", 0) else expected)
        assert walked.own == walked.steps[-1].result
        assert walked.head is None
        assert walked.difference is not None
        assert walked.from_input is not None
        assert walked.difference <= CLOSE * scale(walked)
        assert walked.from_input <= 2 * CLOSE * scale(walked)
        assert largest_error(walked) == 0
        one = whole(zoo, name, kind, layer=layer, query=1)
        assert one.own == walked.own
        assert walked.own is not None
        np.testing.assert_allclose(
            one.grids[walked.own].values[0], walked.grids[walked.own].values[1], atol=1e-11
        )


@pytest.mark.parametrize(("name", "kind"), [one for one in LAYERS if one[0] != "real"])
def test_every_step_is_explained_and_can_be_checked(zoo: Zoo, name: str, kind: Kind | None) -> None:
    """No grid of a layer is without a title and a sentence, and plain arithmetic finds the same numbers."""
    walked = whole(zoo, name, kind, query=1)
    for language in LANGUAGES:
        for what in {*walked.inputs(), *(step.name for step in walked.steps)}:
            assert explain(what, language)[1], what
    verdict = examine(walked)
    assert verdict.fault == ""


MODULES = {
    "distilbert": "transformer.layer",
    "gpt2": "h",
    "llama": "layers",
    "mistral": "layers",
    "modernbert": "layers",
    "t5": "block",
    "bart": "layers",
    "qwen3": "layers",
}
"""Where each family keeps its layers."""


def outputs(model: Any, where: str, **inputs: torch.Tensor) -> list[np.ndarray]:
    """What the library's own layers return of one sentence, one after another."""
    kept: list[torch.Tensor] = []

    def keep(_: object, __: object, made: Any) -> None:
        kept.append(made[0] if isinstance(made, tuple) else made)

    hooks = [layer.register_forward_hook(keep) for layer in model.get_submodule(where)]
    with torch.inference_mode():
        model(**inputs)
    for hook in hooks:
        hook.remove()
    return [one[0].double().numpy() for one in kept]


@pytest.mark.parametrize("name", MODULES)
def test_the_output_is_what_the_librarys_layer_returns(zoo: Zoo, name: str) -> None:
    """Asked of the library itself, without attnviz: every layer, the first and the last among them."""
    tokenizer, model = zoo.library(name)
    encoded = tokenizer(TEXT, return_tensors="pt")
    inputs = {key: encoded[key] for key in ("input_ids", "attention_mask")}
    theirs = outputs(model, MODULES[name], **inputs)
    for layer, expected in enumerate(theirs):
        walked = whole(zoo, name, None, layer=layer, every=True)
        assert walked.own is not None
        assert largest_difference(walked.grids[walked.own].values, expected) <= 5e-6 * scale(walked)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "toy-seq2seq",
            "is recurrent: it has no layer to follow as a whole; follow one query of it instead",
        ),
        ("gpt_oss", "layer 0 cannot be followed: no feed-forward network of two"),
        ("phi", "layer 0 cannot be followed: no attention with one output projection"),
        ("gemma2", "layer 0 cannot be followed: no attention with one output projection"),
        (
            "bloom",
            "computes its attention by itself: its weights can be shown, its queries and keys cannot",
        ),
    ],
)
def test_other_layers_are_refused(zoo: Zoo, name: str, why: str) -> None:
    """One sentence says why: a recurrent cell, a mixture of experts, a network beside attention, another interface."""
    with pytest.raises(NoAttentionError, match=why) as caught:
        whole(zoo, name, None)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_a_sum_that_is_scaled(zoo: Zoo) -> None:
    """A layer that adds a share of its attention is not walked as one that adds all of it."""
    model = zoo.source("mistral")._model  # type: ignore[attr-defined]
    hook = model.layers[0].self_attn.register_forward_hook(
        lambda _, __, made: (made[0] * 0.9, *made[1:])
    )
    with pytest.raises(NoAttentionError, match="no attention with one output projection"):
        anew(zoo, "mistral", None)
    hook.remove()
    assert anew(zoo, "mistral", None).own == "residual_2"
