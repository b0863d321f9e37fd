"""Layers walked whole: whatever their family, the last number is the layer's own, and every step is named rightly."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from attnviz.attention import Note
from attnviz.capture.source import open_source
from attnviz.errors import NoAttentionError
from attnviz.text.messages import LANGUAGES
from attnviz.walkthroughs.calculation import largest_difference
from attnviz.walkthroughs.capture import parts
from attnviz.walkthroughs.verify import examine
from attnviz.walkthroughs.wording import explain, formula_of
from tests.walkthroughs.by_hand import largest_error
from tests.walkthroughs.head_walks import once, walk

if TYPE_CHECKING:
    from pathlib import Path

    from attnviz.attention import Kind, Receipt
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
    "head_norm",
    "rotation",
    "rotation_scale",
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


def pre_norm(
    norm: str, network: list[str], *, cross: bool = False, inside: bool = False
) -> list[str]:
    """The steps around the heads of a layer whose norms come before its parts, and perhaps after them, too."""
    own = [norm] if inside else []
    middle = [*HEADS, "residual_cross", norm] if cross else []
    return [
        f"input_{norm}",
        *HEADS,
        *own,
        "residual",
        norm,
        *middle,
        *network,
        *own,
        "residual_out",
    ]


LAYERS: dict[tuple[str, Kind | None], list[str]] = {
    ("toy", None): post_norm(plain("relu")),
    ("toy-random", None): post_norm(plain("relu")),
    ("toy-decoder", None): post_norm(plain("relu")),
    ("toy-transformer", "encoder"): post_norm(plain("relu")),
    ("toy-transformer", "cross"): post_norm(plain("relu"), cross=True),
    ("toy-transformer", "decoder"): post_norm(plain("relu"), cross=True),
    ("real", None): post_norm(plain("gelu")),
    ("albert", None): post_norm(plain("gelu_tanh")),
    ("bart", None): post_norm(plain("gelu")),
    ("bart_wordpiece", "cross"): post_norm(plain("gelu"), cross=True),
    ("bart_wordpiece", "decoder"): post_norm(plain("gelu"), cross=True),
    ("distilbert", None): post_norm(plain("gelu")),
    ("gemma2", None): pre_norm("rms_norm", gate_steps("gelu_tanh"), inside=True),
    ("gpt2", None): pre_norm("norm", plain("gelu_tanh")),
    ("llama", None): pre_norm("rms_norm", gate_steps("silu")),
    ("m2m_100", "cross"): pre_norm("norm", plain("relu"), cross=True),
    ("marian", "cross"): post_norm(plain("gelu"), cross=True),
    ("mistral", None): pre_norm("rms_norm", gate_steps("silu")),
    ("modernbert", None): pre_norm("norm", gate_steps("gelu")),
    ("mt5", "cross"): pre_norm("rms_norm", gate_steps("gelu_tanh"), cross=True),
    ("opt", None): pre_norm("norm", plain("relu")),
    ("pegasus", "cross"): pre_norm("norm", plain("gelu"), cross=True),
    ("roberta", None): post_norm(plain("gelu")),
    ("t5", None): pre_norm("rms_norm", plain("relu")),
    ("t5", "cross"): pre_norm("rms_norm", plain("relu"), cross=True),
    ("t5", "decoder"): pre_norm("rms_norm", plain("relu"), cross=True),
    ("phi3", None): pre_norm("rms_norm", gate_steps("silu")),
    ("qwen3", None): pre_norm("rms_norm", gate_steps("silu")),
    ("olmo2", None): [
        *HEADS,
        "rms_norm",
        "residual",
        *gate_steps("silu"),
        "rms_norm",
        "residual_out",
    ],
    ("starcoder2", None): pre_norm("norm", plain("gelu_tanh")),
}
"""What stands around the heads of each family's layers."""

DECODERS = [(name, kind) for name, kind in LAYERS if kind in {"cross", "decoder"}]

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


run = cache(lambda zoo, name: once(open_model(zoo, name)))
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


@pytest.mark.parametrize("n_heads", [12, 1])
def test_the_size_of_distilbert(zoo: Zoo, tmp_path: Path, n_heads: int) -> None:
    """[CLS] i am full [SEP], 768 wide: twelve heads of 64, or a single one, on words plus learned positions."""
    from transformers import DistilBertConfig, DistilBertModel

    tokenizer, _ = zoo.library("real")
    torch.manual_seed(0)
    model = DistilBertModel(
        DistilBertConfig(vocab_size=len(tokenizer), n_layers=1, n_heads=n_heads)
    ).eval()
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    source = open_source(str(tmp_path))
    walked = walk("I am full", source, whole_layer=True, every=True, full=True)
    shapes = {name: grid.values.shape for name, grid in walked.grids.items()}
    assert walked.grids["X"].rows == ("[CLS]", "i", "am", "full", "[SEP]")
    contexts = [shapes[step.result] for step in walked.steps if step.name == "context"]
    assert contexts == [(5, 768 // n_heads)] * n_heads
    assert walked.own is not None
    assert {shapes[name] for name in ("E", "P", "X", "output", "norm", walked.own)} == {(5, 768)}
    assert np.array_equal(
        walked.grids["P"].values, model.embeddings.position_embeddings.weight[:5].detach().double()
    )
    with torch.inference_mode():
        output = model(**tokenizer("I am full", return_tensors="pt")).last_hidden_state[0]
    assert largest_difference(
        walked.grids[walked.own].values, output.double().numpy()
    ) <= CLOSE * scale(walked)
    shown = Note.of("model_shapes", layers=1, heads=n_heads, d=768 // n_heads, shape="(5, 768)")
    assert shown in walked.notes
    # Unless it is asked for in full, its millions of weights are left out, and the same number comes out.
    short = walk("I am full", source, whole_layer=True, every=True)
    assert not [name for name in short.inputs() if name.startswith("W")]
    assert short.notes == (Note.of("layer_left_out", n="7,077,888"), shown)
    assert sum(grid.values.size for grid in short.grids.values()) < 120_000
    assert largest_error(short) == 0
    assert short.from_input is None
    assert largest_difference(
        short.grids[walked.own].values, walked.grids[walked.own].values
    ) <= CLOSE * scale(walked)


@pytest.mark.parametrize(("name", "kind"), [one for one in LAYERS if one[0] != "real"])
def test_every_step_is_explained_and_can_be_checked(zoo: Zoo, name: str, kind: Kind | None) -> None:
    """No grid of a layer is without a title and a sentence, and plain arithmetic finds the same numbers."""
    walked = whole(zoo, name, kind, query=1)
    for language in LANGUAGES:
        for what in {*walked.inputs(), *(step.name for step in walked.steps)}:
            assert explain(what, language).sentence, what
    verdict = examine(walked)
    assert verdict.fault == ""


MODULES = {
    "distilbert": "transformer.layer",
    "gpt2": "h",
    "llama": "layers",
    "albert": "encoder.albert_layer_groups",
    "gemma2": "layers",
    "mistral": "layers",
    "modernbert": "layers",
    "opt": "decoder.layers",
    "t5": "block",
    "bart": "layers",
    "roberta": "encoder.layer",
    "qwen3": "layers",
    "phi3": "layers",
    "olmo2": "layers",
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
    ("name", "where"),
    [("t5", "decoder.block"), ("mt5", "decoder.block"), ("marian", "model.decoder.layers")],
)
def test_the_output_is_what_the_librarys_decoder_layer_returns(
    zoo: Zoo, name: str, where: str
) -> None:
    """Likewise, of a decoder that looks across."""
    tokenizer, _ = zoo.library(name)
    encoded, said = (
        tokenizer(TEXT, return_tensors="pt"),
        tokenizer(text_target=TARGET, return_tensors="pt"),
    )
    inputs = {key: encoded[key] for key in ("input_ids", "attention_mask")} | {
        "labels": said["input_ids"]
    }
    for layer, expected in enumerate(outputs(zoo.whole(name), where, **inputs)):
        for kind in ("cross", "decoder"):
            walked = whole(zoo, name, kind, layer=layer, every=True)
            assert walked.own is not None
            assert largest_difference(walked.grids[walked.own].values, expected) <= 5e-6 * scale(
                walked
            )


# ------------------------------------------------------------------------------------- decoders that look across


@pytest.mark.parametrize(("name", "kind"), DECODERS)
def test_both_attentions_of_a_decoder(zoo: Zoo, name: str, kind: Kind) -> None:
    """Self-attention comes first, of what was said, then cross attention, of the other sentence; a note says so."""
    walked = whole(zoo, name, kind, every=True)
    made = {step.result: step for step in walked.steps}
    looks = [step.result for step in walked.steps if step.operation == "softmax"]
    n_cross = sum("_cross_" in name for name in looks)
    assert 0 < n_cross < len(looks)
    assert looks == [f"weights_{head}" for head in range(len(looks) - n_cross)] + [
        f"weights_cross_{head}" for head in range(n_cross)
    ]
    assert not np.triu(walked.grids["weights_0"].values, 1).any()
    source = walk(TEXT, open_model(zoo, name), kind="encoder")
    assert (
        walked.grids["M"].rows
        == walked.grids["weights_cross_0"].columns
        == source.grids["weights"].columns
    )
    assert walked.grids["X"].rows == walked.grids["weights_0"].columns
    assert made["K_cross_0"].operands[0] == made["V_cross_0"].operands[0] == "M"
    assert made["Q_cross_0"].operands[0] == made["norm" if "norm" in made else "norm_2"].result
    assert Note("looks_twice") in walked.notes
    assert walked.kind == kind
    assert walked.receipt is not None


def test_the_two_kinds_of_a_decoder_are_one_layer(zoo: Zoo) -> None:
    """Whichever kind is asked for, the layer is the same to the last bit; another word to follow is another row."""
    for name in ("toy-transformer", "t5", "bart_wordpiece"):
        one, other = (whole(zoo, name, kind, query=1, layer=-1) for kind in ("cross", "decoder"))
        assert one.steps == other.steps
        assert {name: grid.values.tolist() for name, grid in one.grids.items()} == {
            name: grid.values.tolist() for name, grid in other.grids.items()
        }
        assert one.receipt == other.receipt
        assert set(one.notes) == set(other.notes)


def test_a_decoder_whose_layers_do_not_all_look_across(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which layer the second attention is of could not be told: refused, in one sentence."""
    source = open_source("toy-transformer")
    stream = source.stream

    def fewer(batch: Any, observers: Any) -> Receipt:
        receipt = stream(batch, observers)
        if batch.kind != "decoder":
            return receipt
        return replace(receipt, layers=receipt.layers[:1], differences=receipt.differences[:1])

    monkeypatch.setattr(source, "stream", fewer)
    with pytest.raises(
        NoAttentionError, match="not every layer of its decoder looks both back and across"
    ):
        walk(TEXT, source, whole_layer=True)


def test_an_encoder_is_walked_alone(zoo: Zoo) -> None:
    """The encoder of a model that translates has one attention, and no note of another."""
    for name in ("toy-transformer", "t5"):
        walked = whole(zoo, name, "encoder")
        assert Note("looks_twice") not in walked.notes
        assert "M" not in walked.grids


# ----------------------------------------------------------------------------------------------- what it begins with


def test_the_input_of_a_pre_norm_layer(zoo: Zoo) -> None:
    """X is what the layer is given, N its norm: attention reads N, and X is what is added again."""
    walked = whole(zoo, "gpt2", None, every=True)
    made = {step.result: step for step in walked.steps}
    assert made["X"].operands == ("E", "P")
    assert made["N"].operands == ("X", "gain_1", "shift_1")
    assert {made[f"{letter}_{head}"].operands[0] for letter in "QKV" for head in range(3)} == {"N"}
    assert made["residual"].operands == ("output", "X")
    assert made["residual_2"].operands == ("narrowed", "residual")
    np.testing.assert_allclose(
        walked.grids["N"].values.mean(axis=1), walked.grids["shift_1"].values.mean(), atol=1e-12
    )
    one = whole(zoo, "gpt2", None, query=2)
    made = {step.result: step for step in one.steps}
    assert (made["x"].operands, made["n"].operands, made["n"].number) == (("X",), ("N",), 2.0)
    assert (made["q_0"].operands[0], made["K_0"].operands[0], made["residual"].operands[1]) == (
        "n",
        "N",
        "x",
    )


def test_what_positions_turn_is_said_once(zoo: Zoo) -> None:
    """Llama's queries and keys are made and turned, by the same angles in every head; a group's values are alike."""
    walked = whole(zoo, "llama", None, every=True)
    made = {step.result: step for step in walked.steps}
    assert made["Q_0"].operands == ("Q_raw_0", "angles")
    assert made["K_5"].operands == ("K_raw_5", "angles")
    assert made["Q_raw_0"].operands[:2] == ("N", "Wq_0")
    assert walked.notes.count(Note("rotated")) == 1
    assert np.array_equal(walked.grids["V_0"].values, walked.grids["V_2"].values)
    assert not np.array_equal(walked.grids["V_2"].values, walked.grids["V_3"].values)


def test_a_factor_is_a_root_only_of_the_width(zoo: Zoo) -> None:
    """Llama's heads are 10 wide and divide by the root of 10; Gemma's, as wide, by 16, which is no root."""
    for name, formula in (
        ("llama", "scaled_0 = scores_0 / sqrt(10)"),
        ("gemma2", "scaled_0 = scores_0 * 0.0625"),
    ):
        walked = whole(zoo, name, None)
        step = next(step for step in walked.steps if step.name == "scaled")
        assert formula_of(step, walk=walked) == formula


# ------------------------------------------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "toy-seq2seq",
            "it is recurrent, one cell that looks once a step; follow that from its query",
        ),
        (
            "gpt_oss",
            "layer 0 cannot be walked whole: it has no feed-forward network of two",
        ),
        (
            "phi",
            "layer 0 cannot be walked whole: it has no attention with one output projection",
        ),
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


@pytest.mark.parametrize(("name", "kind"), [("gpt2", None), ("t5", "cross"), ("toy", None)])
def test_an_activation_that_is_not_known(
    zoo: Zoo, monkeypatch: pytest.MonkeyPatch, name: str, kind: Kind | None
) -> None:
    """Nothing near enough is taken for it: the layer is refused."""
    monkeypatch.setattr(parts, "ACTIVATIONS", {"gelu": torch.nn.functional.gelu})
    with pytest.raises(NoAttentionError, match="it has no feed-forward network"):
        anew(zoo, name, kind)


def test_a_sum_that_is_scaled(zoo: Zoo) -> None:
    """A layer that adds a share of its attention is not walked as one that adds all of it."""
    model = zoo.source("mistral")._model  # type: ignore[attr-defined]
    hook = model.layers[0].self_attn.register_forward_hook(
        lambda _, __, made: (made[0] * 0.9, *made[1:])
    )
    with pytest.raises(NoAttentionError, match="it has no attention with one output projection"):
        anew(zoo, "mistral", None)
    hook.remove()
    assert anew(zoo, "mistral", None).own == "residual_2"


def test_half_precision() -> None:
    """In bfloat16 the parts are found as well, within what it rounds."""
    walked = walk(TEXT, open_source("toy-random", dtype="bfloat16"), whole_layer=True)
    assert walked.difference is not None
    assert 1e-6 < walked.difference < 0.1 * scale(walked)
