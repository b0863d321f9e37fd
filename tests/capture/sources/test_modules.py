"""Any torch module under watch: what is seen is what it computed, and it stays as it was."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import scaled_dot_product_attention as by_another_name

import attnviz
from attnviz.attention import Note
from attnviz.capture.sources import tracing
from attnviz.capture.stream import Scoring
from attnviz.errors import (
    ModelError,
    NoAttentionError,
    NotVerifiedError,
    RecordError,
    SelectionError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = ["I", "love", "all", "you", "."]


class ByHand(nn.Module):
    """Causal attention as tutorials write it."""

    def __init__(self, d_model: int = 16, n_heads: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.project = nn.Linear(d_model, 3 * d_model)
        self.dropout = nn.Dropout(dropout)
        self.weights = torch.zeros(0)  # what it used, for the tests

    def forward(self, x: Tensor) -> Tensor:
        """Context of each token."""
        n_batch, n, d_model = x.shape
        q, k, v = (
            part.view(n_batch, n, self.n_heads, -1).transpose(1, 2)
            for part in self.project(x).split(d_model, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / (d_model // self.n_heads) ** 0.5
        scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
        self.weights = functional.softmax(scores, dim=-1)
        y: Tensor = self.dropout(self.weights) @ v
        return y.transpose(1, 2).reshape(n_batch, n, d_model)


class Fused(nn.Module):
    """The fused function, by a name of the module's own."""

    def __init__(self, **given: Any) -> None:
        super().__init__()
        self.given = given

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Its context."""
        return by_another_name(q, k, v, **self.given)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def x() -> Tensor:
    """Two inputs of five tokens."""
    return torch.randn(2, 5, 16)


def weights_of(
    layer: nn.MultiheadAttention, query: Tensor, key: Tensor, **masks: Tensor
) -> np.ndarray:
    """The weights that torch itself returns."""
    found: Tensor = layer(query, key, key, average_attn_weights=False, **masks)[1]
    return found.detach().numpy()


def test_an_encoder_of_torch(x: Tensor) -> None:
    """Each layer by its path, its weights as the layer itself returns them; padding may be left out."""
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2
    ).eval()
    padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad(), attnviz.watch(encoder) as seen:
        after = encoder(x, src_key_padding_mask=padding)
    assert [layer.path for layer in seen.layers] == ["layers.0.self_attn", "layers.1.self_attn"]
    record = seen.attention(WORDS[:3], index=1)
    first = encoder.layers[0]
    inner = first(x, src_key_padding_mask=padding)
    for layer, given in ((0, x), (1, inner)):
        attention = encoder.layers[layer].self_attn
        want = weights_of(attention, given, given, key_padding_mask=padding)[1, :, :3, :3]
        np.testing.assert_allclose(record.weights[layer], want, atol=1e-6)
    assert record.kind == "encoder"
    assert record.receipt is not None
    assert record.receipt.max_difference < 1e-5
    torch.testing.assert_close(
        after[0], encoder(x, src_key_padding_mask=padding)[0], atol=1e-5, rtol=0
    )


SHORT, LONG = [12, 13, 14], [5, 6, 7, 8, 9, 10, 11]
"""The ids of two sentences; 0 is padding."""


def padded(side: str, *, short_first: bool) -> dict[str, Tensor]:
    """A batch of both sentences, as a tokenizer of transformers pads it, with the positions that go with it."""
    padding = [0] * (len(LONG) - len(SHORT))
    short = padding + SHORT if side == "left" else SHORT + padding
    ids = torch.tensor([short, LONG] if short_first else [LONG, short])
    mask = (ids > 0).long()
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    return {"input_ids": ids, "attention_mask": mask, "position_ids": positions}


@pytest.fixture(scope="module")
def tiny() -> Callable[[str], Any]:
    """Return a tiny model of transformers, with attention that is not flat."""
    import transformers

    sizes: dict[str, Any] = {
        "vocab_size": 50,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    }
    usual: dict[str, Any] = {
        "num_attention_heads": 3,
        "num_hidden_layers": 2,
        "intermediate_size": 30,
    }
    configs = {
        "GPT2LMHead": transformers.GPT2Config(n_embd=24, n_head=3, n_layer=2, **sizes),
        "Llama": transformers.LlamaConfig(hidden_size=24, num_key_value_heads=1, **usual, **sizes),
        "Bert": transformers.BertConfig(hidden_size=24, **usual, **sizes),
        "T5ForConditionalGeneration": transformers.T5Config(
            d_model=24, num_heads=3, d_kv=8, d_ff=30, num_layers=2, **sizes
        ),
    }

    def make(name: str) -> Any:
        torch.manual_seed(0)
        suffix = "" if name.endswith("Generation") else "Model"
        model = getattr(transformers, name + suffix)(configs[name])
        for parameter in model.parameters():
            if parameter.ndim > 1:
                nn.init.xavier_uniform_(parameter)
        return model.eval()

    return make


@pytest.mark.parametrize("short_first", [True, False])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ["GPT2LMHead", "Llama", "Bert"])
def test_padding(
    tiny: Callable[[str], Any], name: str, implementation: str, side: str, *, short_first: bool
) -> None:
    """On either side: each sentence has the weights that it has alone, and the kind."""
    model = tiny(name)
    model.set_attn_implementation(implementation)
    with torch.no_grad(), attnviz.watch(model) as seen:
        model(**padded(side, short_first=short_first))
    for index, ids in enumerate([SHORT, LONG] if short_first else [LONG, SHORT]):
        with torch.no_grad(), attnviz.watch(model) as alone:
            model(torch.tensor([ids]))
        labels = [str(number) for number in ids]
        record, want = seen.attention(labels, index=index), alone.attention(labels)
        np.testing.assert_allclose(record.weights, want.weights, atol=1e-6)
        assert [token.text for token in record.query_tokens] == labels
        assert record.kind == want.kind == ("encoder" if name == "Bert" else "decoder")
        assert record.short_rows == ()


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_padding_of_a_source(tiny: Callable[[str], Any], implementation: str) -> None:
    """Cross-attention to a source that is padded on the left has as many queries as before."""
    model = tiny("T5ForConditionalGeneration")
    model.set_attn_implementation(implementation)
    read = torch.tensor([[0, 3, 4, 5], [0, 6, 7, 8]])
    batch = padded("left", short_first=True)
    del batch["position_ids"]
    with torch.no_grad(), attnviz.watch(model) as seen:
        model(**batch, decoder_input_ids=read)
    with torch.no_grad(), attnviz.watch(model) as alone:
        model(torch.tensor([SHORT]), decoder_input_ids=read[:1])
    for kind, keys in (("encoder", None), ("cross", list("xyz")), ("decoder", None)):
        queries = list("xyz" if kind == "encoder" else "abcd")
        records = [block.attention(queries, keys, kind=kind) for block in (seen, alone)]  # type: ignore[arg-type]
        np.testing.assert_allclose(records[0].weights, records[1].weights, atol=1e-6)


def test_padding_of_a_prompt(tiny: Callable[[str], Any]) -> None:
    """The last step of generation in a batch: one query, and the keys of its own sentence."""
    model = tiny("GPT2LMHead")
    settings: dict[str, Any] = {"max_new_tokens": 3, "do_sample": False, "eos_token_id": None}
    batch = padded("left", short_first=True)
    del batch["position_ids"]  # generate() makes them
    with torch.no_grad(), attnviz.watch(model) as seen:
        model.generate(**batch, **settings)
    with torch.no_grad(), attnviz.watch(model) as alone:
        model.generate(torch.tensor([SHORT]), **settings)
    step, want = (block.attention(["?"], list("xyz12")) for block in (seen, alone))
    np.testing.assert_allclose(step.weights, want.weights, atol=1e-6)


def test_padding_by_hand(x: Tensor) -> None:
    """A causal mask of -inf and a padding mask of -1e9, as own models have: padding attends to padding alone."""

    class Masked(ByHand):
        def forward(self, x: Tensor) -> Tensor:
            """Causal attention in which the first two tokens are masked."""
            n = x.shape[1]
            scores = x @ x.transpose(-2, -1) / 4
            scores[..., :2] -= 1e9
            scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -torch.inf)
            self.weights = functional.softmax(scores, dim=-1)
            y: Tensor = self.weights @ x
            return y

    module = Masked()
    with attnviz.watch(module) as seen:
        module(x)
    record = seen.attention(WORDS[2:], index=1)
    np.testing.assert_allclose(record.weights[0, 0], module.weights[1, 2:, 2:], atol=1e-6)


def test_a_transformer_of_torch(x: Tensor) -> None:
    """Three kinds of attention, each asked for by name."""
    model = nn.Transformer(16, 4, 2, 2, 32, batch_first=True).eval()
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    with torch.no_grad(), attnviz.watch(model) as seen:
        model(x, x[:, :3], tgt_mask=mask)
    shapes = {
        kind: seen.attention(kind=kind).weights.shape for kind in ("encoder", "decoder", "cross")
    }
    assert shapes == {"encoder": (2, 4, 5, 5), "decoder": (2, 4, 3, 3), "cross": (2, 4, 3, 5)}
    assert seen.attention(kind="cross").layers == (0, 1)  # as the decoder numbers them
    assert [
        token.text for token in seen.attention(WORDS[:3], WORDS, kind="cross").key_tokens
    ] == WORDS
    with pytest.raises(
        SelectionError, match="encoder, decoder, cross attention: choose kind='cross'"
    ):
        seen.attention()
    with pytest.raises(SelectionError, match="different shapes"):
        seen.attention(layers=[0, 2])


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_a_step_with_a_cache(implementation: str) -> None:
    """The one new token and the tokens before it are one sequence: a decoder's, not two."""
    import transformers

    sizes: dict[str, Any] = {"n_embd": 32, "n_layer": 2, "n_head": 4, "vocab_size": 50}
    config = transformers.GPT2Config(**sizes, bos_token_id=1, eos_token_id=2)
    model: Any = transformers.GPT2LMHeadModel(config).eval()
    model.set_attn_implementation(implementation)
    ids = torch.randint(3, 50, (1, 6))
    with torch.no_grad(), attnviz.watch(model) as seen:
        model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=3, min_new_tokens=3)
    record = seen.attention()
    assert (record.kind, record.weights.shape) == ("decoder", (2, 4, 1, 8))


def test_cross_attention_is_known_by_its_inputs(x: Tensor) -> None:
    """Even where both sequences are equally long."""
    layer = nn.MultiheadAttention(16, 4, batch_first=True)
    with attnviz.watch(layer) as seen:
        layer(x, x + 1, x + 1)
        layer(x, x + 1, x + 1, need_weights=False)
    assert [one.kind for one in seen.layers] == ["cross"]  # of the last run
    np.testing.assert_allclose(
        seen.attention().weights[0], weights_of(layer, x, x + 1)[0], atol=1e-6
    )


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("average", [True, False])
def test_multi_head_attention_returns_what_it_returns(
    x: Tensor, *, need_weights: bool, average: bool
) -> None:
    """Watched or not; dropout in training changes what is used, not what is shown."""
    layer = nn.MultiheadAttention(16, 4, dropout=0.5, batch_first=True)
    want = weights_of(layer.eval(), x, x)[0]
    layer.train()
    given = {"need_weights": need_weights, "average_attn_weights": average}
    results = []
    for watched in (False, True):
        torch.manual_seed(3)
        if watched:
            with attnviz.watch(layer) as seen:
                results.append(layer(x, x, x, **given))
        else:
            results.append(layer(x, x, x, **given))
    # the very draws of dropout; the fused function is called once more, for the proof
    if need_weights:
        assert torch.equal(results[0][0], results[1][0])
        (_, one), (_, other) = results
        assert one is not None
        assert other is not None
        assert torch.equal(one, other)
    else:
        assert results[1][1] is None
    record = seen.attention()
    np.testing.assert_allclose(record.weights[0], want, atol=1e-6)
    assert record.notes == (Note("dropout"),)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_attention_written_by_hand(x: Tensor, dropout: float) -> None:
    """The weights are the tensor that was used, or in training what dropout was given."""
    model = ByHand(dropout=dropout)
    with attnviz.watch(model) as seen:
        model(x)
    record = seen.attention(WORDS)
    assert np.array_equal(record.weights[0], model.weights[0].detach().numpy())
    assert (record.kind, record.model, record.text) == ("decoder", "ByHand", "I love all you .")
    assert str(record.receipt) == "✓ verified (the model's own softmax)"
    assert bool(record.notes) == bool(dropout)


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ({}, (2, 4, 5, 8)),
        ({"is_causal": True}, (2, 4, 5, 8)),
        ({"scale": 0.3}, (2, 4, 5, 8)),
        ({"attn_mask": torch.ones(5, 5).tril().bool()}, (2, 4, 5, 8)),
        ({"attn_mask": torch.randn(2, 1, 5, 5)}, (2, 4, 5, 8)),
        ({"attn_mask": torch.randn(2, 5, 5)}, (2, 5, 8)),
        ({"enable_gqa": True}, (2, 2, 5, 8)),
    ],
)
def test_the_fused_function(given: dict[str, Any], shape: tuple[int, ...]) -> None:
    """With each of its arguments, also where it was imported by name: against the identity as values."""
    q, k = torch.randn(2, 4, 5, 8) if len(shape) == 4 else torch.randn(shape), torch.randn(shape)
    model = Fused(**given)
    with attnviz.watch(model) as seen:
        model(q, k, torch.randn(shape))
    want = model(q, k, torch.eye(5).expand(*shape[:-2], 5, 5))
    np.testing.assert_allclose(
        seen.attention().weights[0], want[0] if q.ndim == 4 else want[:1], atol=1e-6
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when it compiles
def test_a_compiled_module_runs_as_it_is_written(x: Tensor) -> None:
    """So that its softmax is seen."""
    model = ByHand()
    compiled: nn.Module = torch.compile(model)  # type: ignore[assignment]  # a module is compiled to a module
    with attnviz.watch(compiled) as seen:
        compiled(x)
    assert np.array_equal(seen.attention().weights[0], model.weights[0].detach().numpy())


@pytest.mark.parametrize("fails", [False, True])
def test_all_is_as_before_afterwards(x: Tensor, *, fails: bool) -> None:
    """Hooks, torch's own functions and its fast path, also after an error."""
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 1)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    fused = functional.scaled_dot_product_attention
    with pytest.raises(AssertionError) if fails else torch.enable_grad(), attnviz.watch(model):
        model(x[..., :3] if fails else x).sum().backward()
    assert functional.scaled_dot_product_attention is fused
    assert torch.backends.mha.get_fastpath_enabled()
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())
    assert model.training
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    assert fails or model.layers[0].self_attn.in_proj_weight.grad is not None


def test_a_part_is_seen_while_the_whole_runs(x: Tensor) -> None:
    """The decoder's attention is not the encoder's, and that of another model, as a teacher's, is not its pupil's."""
    model = nn.Transformer(16, 4, 1, 1, 32, batch_first=True)
    with attnviz.watch(model.encoder) as seen:
        model(x, x)
        ByHand()(x)
    assert [layer.path for layer in seen.layers] == ["layers.0.self_attn"]


@dataclass
class Given:
    """Inputs of a class of one's own."""

    x: Tensor


def call_a_part(module: nn.Sequential, x: Tensor) -> None:
    """As translators are used, whose encoder and decoder are called one after the other."""
    module[0](x)


def call_with_an_object(module: nn.Module, x: Tensor) -> None:
    """The module alone knows where its tensors are."""
    module.forward = lambda given: module[0](given.x)  # type: ignore[index]
    module(Given(x))


def call_with_a_list(module: nn.Module, x: Tensor) -> None:
    """One tensor for each sentence, of which a batch is made."""
    module.forward = lambda rows: module[0](torch.stack(rows))  # type: ignore[index]
    module(list(x))


def call_with_unequal_sentences(module: nn.Module, x: Tensor) -> None:
    """The same, padded."""
    padded = nn.utils.rnn.pad_sequence
    module.forward = lambda rows: module[0](padded(rows, batch_first=True))  # type: ignore[index]
    module([x[0], x[1, :3]])


@pytest.mark.parametrize(
    "call",
    [call_a_part, call_with_an_object, call_with_a_list, call_with_unequal_sentences],
    ids=lambda call: call.__name__,
)
@pytest.mark.parametrize("n_heads", [1, 4])
def test_sentences_are_no_heads(x: Tensor, call: Callable[..., None], n_heads: int) -> None:
    """However the module gets them."""
    module = nn.Sequential(ByHand(n_heads=n_heads))
    with torch.no_grad(), attnviz.watch(module) as seen:
        call(module, x)
    assert [layer.shape for layer in seen.layers] == [(2, n_heads, 5, 5)]
    weights = seen.attention(index=1).weights
    np.testing.assert_allclose(weights[0], module[0].weights[1], atol=1e-6)  # type: ignore[index]


def test_several_threads(x: Tensor) -> None:
    """Each block sees the attention of its own thread, and torch is as it was before."""
    ahead, fused = threading.Barrier(2), functional.scaled_dot_product_attention

    def see(_: int) -> int:
        model = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
        ahead.wait()
        with attnviz.watch(model) as seen:
            for _ in range(200):
                model(x)
        return len(seen.layers)

    every = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(see, range(2)))
    sys.setswitchinterval(every)
    assert found == [1, 1]
    assert functional.scaled_dot_product_attention is fused
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_learned_bias() -> None:
    """A mask with a gradient, such as a learned bias, is read as any other."""
    bias = nn.Parameter(torch.randn(5, 5))
    model, (q, k, v) = Fused(attn_mask=bias), torch.randn(3, 2, 4, 5, 8)
    with attnviz.watch(model) as seen:
        model(q, k, v)
    expected = (q @ k.mT / 8**0.5 + bias).softmax(dim=-1).detach().numpy()
    np.testing.assert_allclose(seen.attention().weights[0], expected[0], atol=1e-6)


class TestRefused:
    """Errors when a record is asked for."""

    def test_no_attention(self, x: Tensor) -> None:
        """A softmax that chooses classes is none."""
        model = nn.Sequential(nn.Linear(16, 8), nn.Softmax(dim=-1), nn.Linear(8, 2))
        with attnviz.watch(model) as seen:
            model(x)
        with pytest.raises(NoAttentionError, match="no attention was seen in Sequential"):
            seen.attention()

    def test_another_thread(self, x: Tensor) -> None:
        model = ByHand()
        with attnviz.watch(model) as seen:
            thread = threading.Thread(target=model, args=(x,))
            thread.start()
            thread.join()
        with pytest.raises(NoAttentionError, match="in the same thread"):
            seen.attention()

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda scoring: Scoring(scaling=0.5, mask=scoring.mask, causal=scoring.causal),
            lambda scoring: Scoring(scaling=scoring.scaling, mask=None, causal=scoring.causal),
            lambda scoring: Scoring(scaling=scoring.scaling, mask=scoring.mask, softcap=1.0),
        ],
        ids=["scale", "no mask", "soft cap"],
    )
    def test_a_planted_error(
        self, wrong: Callable[[Scoring], Scoring], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The module's own code goes on; its weights are refused, by the number of the layer."""
        monkeypatch.setattr(tracing, "Scoring", lambda **given: wrong(Scoring(**given)))
        q, k, v = torch.randn(3, 2, 4, 5, 8)
        model = nn.ModuleList(Fused(attn_mask=torch.randn(5, 5)) for _ in range(2))
        model.forward = lambda: [layer(q, k, v) for layer in model]
        with attnviz.watch(model) as seen:
            model()
        for number in range(2):
            with pytest.raises(NotVerifiedError, match=f"layer {number} is not verified"):
                seen.attention(layers=[number])

    def test_what_does_not_fit(self, x: Tensor) -> None:
        model = ByHand()
        with attnviz.watch(model) as seen:
            model(x)
        with pytest.raises(RecordError, match="there are 6 tokens for 5 queries"):
            seen.attention([*WORDS, "!"])
        with pytest.raises(RecordError, match="each row must sum to 1"):
            seen.attention(layers=[0], tokens=WORDS, key_tokens=WORDS[:2])
        with pytest.raises(SelectionError, match="there is no input 2: the batch had 2"):
            seen.attention(index=2)
        with pytest.raises(SelectionError, match="there is no layer 1"):
            seen.attention(layers=[1])
        with pytest.raises(SelectionError, match="no cross attention: it has decoder"):
            seen.attention(kind="cross")
        with seen, pytest.raises(ModelError, match="open already"), seen:
            pass
