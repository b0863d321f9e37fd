"""Layers followed whole: whatever their family, the last number is the layer's own, and every step is named rightly."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from attnviz.capture.source import open_source
from attnviz.errors import NoAttentionError
from attnviz.walkthroughs.calculation import largest_difference
from attnviz.walkthroughs.texts import BEFORE, BY_KEY
from attnviz.walkthroughs.verify import examine
from attnviz.walkthroughs.wording import explain
from tests.walkthroughs.by_hand import largest_error
from tests.walkthroughs.head_walks import walk

if TYPE_CHECKING:
    from attnviz.attention import Kind
    from attnviz.walkthroughs.record import Walkthrough
    from tests.fixtures.zoo import Zoo

CLOSE = 1e-6
"""How far a recomputed output may be from the model's own in float32, relative to its largest number if above 1."""

TEXT, TARGET = "I love all you", "Yes! I love you"
HEADS = ["concatenated", "output"]
OF_HEAD = {*BY_KEY, *BEFORE, "context"} - {"input_norm", "input_rms_norm"}

# the steps of a feed-forward network of two projections, and of three
RELU, GELU, TANH = (
    ["feed_forward_1", activation, "feed_forward_2"] for activation in ("relu", "gelu", "gelu_tanh")
)
SILU, GATED_GELU = (
    ["feed_forward_gate", activation, "feed_forward_1", "gated", "feed_forward_2"]
    for activation in ("silu", "gelu")
)


def post_norm(network: list[str], *, cross: bool = False) -> list[str]:
    """The steps around the heads of a layer whose norms follow its sums."""
    middle = [*HEADS, "residual_cross", "norm"] if cross else []
    return [*HEADS, "residual", "norm", *middle, *network, "residual_2", "norm_out"]


def pre_norm(norm: str, network: list[str], *, cross: bool = False) -> list[str]:
    """The steps around the heads of a layer whose norms come before its parts."""
    middle = [*HEADS, "residual_cross", norm] if cross else []
    return [f"input_{norm}", *HEADS, "residual", norm, *middle, *network, "residual_out"]


LAYERS: dict[tuple[str, Kind | None], list[str]] = {
    ("toy", None): post_norm(RELU),
    ("toy-decoder", None): post_norm(RELU),
    ("toy-transformer", "encoder"): post_norm(RELU),
    ("toy-transformer", "cross"): post_norm(RELU, cross=True),
    ("toy-transformer", "decoder"): post_norm(RELU, cross=True),
    ("real", None): post_norm(GELU),
    ("bart_wordpiece", "cross"): post_norm(GELU, cross=True),
    ("distilbert", None): post_norm(GELU),
    ("gpt2", None): pre_norm("norm", TANH),
    ("llama", None): pre_norm("rms_norm", SILU),
    ("modernbert", None): pre_norm("norm", GATED_GELU),
    ("t5", "decoder"): pre_norm("rms_norm", RELU, cross=True),
    ("qwen3", None): pre_norm("rms_norm", SILU),
}
"""The steps around the heads of each family's layers."""


@cache
def whole(
    zoo: Zoo, name: str, kind: Kind | None = None, layer: int = 0, query: int | None = None
) -> Walkthrough:
    """A layer of a model; an encoder-decoder whose words are random is made to say something."""
    source = open_source(name) if name.startswith("toy") else zoo.source(name)
    target = TARGET if kind in {"cross", "decoder"} and not name.startswith("toy") else None
    return walk(TEXT, source, whole_layer=True, kind=kind, target=target, layer=layer, query=query)


def output_of(walked: Walkthrough) -> np.ndarray:
    """The numbers that the layer ends in."""
    assert walked.own == walked.steps[-1].result
    return np.asarray(walked.grids[walked.own].values)


@pytest.mark.parametrize(("name", "kind"), LAYERS)
def test_whole_layers(zoo: Zoo, name: str, kind: Kind | None) -> None:
    """All heads, concatenation, projection, sums, norms and network, to the layer's own output; each step explained."""
    for layer in (0, -1):
        walked = whole(zoo, name, kind, layer)
        # Neither those of a head nor the norm of the embeddings, which makes the layer's input.
        steps = [step for step in walked.steps if step.name not in OF_HEAD and step.result != "X"]
        around = [step.name for step in steps]
        expected = LAYERS[name, kind]
        # The norm of the embeddings is all that the first attention of ModernBERT has before it.
        assert around == (expected[1:] if (name, layer) == ("modernbert", 0) else expected)
        output = output_of(walked)
        scale = max(1.0, float(np.abs(output).max()))
        assert walked.difference is not None
        assert walked.from_input is not None
        assert max(walked.difference, walked.from_input / 2) <= CLOSE * scale
        assert largest_error(walked) == 0
        one = whole(zoo, name, kind, layer, 1)
        np.testing.assert_allclose(output_of(one)[0], output[1], atol=1e-11)
        assert examine(one).fault == ""
        for what in {*one.inputs(), *(step.name for step in one.steps)}:
            assert explain(what, "ko")[1], what


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("distilbert", "transformer.layer"),
        ("gpt2", "h"),
        ("llama", "layers"),
        ("mistral", "layers"),
        ("t5", "block"),
        ("bart", "layers"),
    ],
)
def test_the_output_is_what_the_librarys_layer_returns(zoo: Zoo, name: str, where: str) -> None:
    """Asked of the library itself, without attnviz: every layer, the first and the last among them."""
    tokenizer, model = zoo.library(name)
    encoded, theirs = tokenizer(TEXT, return_tensors="pt"), []

    def keep(_: object, __: object, made: Any) -> None:
        theirs.append((made[0] if isinstance(made, tuple) else made)[0].double().numpy())

    hooks = [layer.register_forward_hook(keep) for layer in model.get_submodule(where)]
    with torch.inference_mode():
        model(**{key: encoded[key] for key in ("input_ids", "attention_mask")})
    for hook in hooks:
        hook.remove()
    for layer, expected in enumerate(theirs):
        scale = max(1.0, float(np.abs(expected).max()))
        assert largest_difference(output_of(whole(zoo, name, None, layer)), expected) < 5e-6 * scale


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("toy-seq2seq", "is recurrent: it has no layer to follow as a whole"),
        ("gpt_oss", "layer 0 cannot be followed: no feed-forward network of two"),
        ("phi", "layer 0 cannot be followed: no attention with one output projection"),
        ("gemma2", "layer 0 cannot be followed: no attention with one output projection"),
        ("bloom", "computes its attention by itself"),
    ],
)
def test_other_layers_are_refused(zoo: Zoo, name: str, why: str) -> None:
    """One sentence says why: a recurrent cell, a mixture of experts, a network beside attention, another interface."""
    with pytest.raises(NoAttentionError, match=why) as caught:
        whole(zoo, name)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_a_sum_that_is_scaled(zoo: Zoo) -> None:
    """A layer that adds a share of its attention is not followed as one that adds all of it."""
    source: Any = zoo.source("mistral")
    hook = source._model.layers[0].self_attn.register_forward_hook(
        lambda _, __, made: (made[0] * 0.9, *made[1:])
    )
    with pytest.raises(NoAttentionError, match="no attention with one output projection"):
        walk(TEXT, source, whole_layer=True)
    hook.remove()
    assert walk(TEXT, source, whole_layer=True).own == "residual_2"
