"""Attention in whatever way it is written: its axes are known from the module's inputs, and gates are no attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import attnviz
from attnviz.errors import NoAttentionError, SettingsError

if TYPE_CHECKING:
    from tests.fixtures.zoo import Zoo

B, T, H, D = 2, 5, 4, 16
Projected = tuple[Tensor, Tensor, Tensor]


class Written(nn.Module):
    """Attention as `write` computes it from q, k and v; `want` keeps its weights as [batch, head, query, key]."""

    def __init__(self, write: Callable[[Written, Tensor, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.write = write
        self.qkv = nn.Linear(D, 3 * D)
        self.want = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        return self.write(self, *self.qkv(x).chunk(3, -1))


def folded(self: Written, *qkv: Tensor) -> Projected:
    """(batch * head, token, d), as fairseq and ESM have it."""
    q, k, v = (t.view(B, T, H, -1).transpose(1, 2).reshape(B * H, T, -1) for t in qkv)
    self.want = torch.softmax(q @ k.mT / 2, -1).view(B, H, T, T)
    return q, k, v


def heads_in_the_batch(self: Written, *qkv: Tensor) -> Tensor:
    """The softmax of folded heads."""
    q, k, v = folded(self, *qkv)
    return torch.bmm(torch.softmax(q @ k.transpose(1, 2) / 2, -1), v)


def heads_in_the_batch_fused(self: Written, *qkv: Tensor) -> Tensor:
    """Torch's fused function on folded heads."""
    q, k, v = folded(self, *qkv)
    return functional.scaled_dot_product_attention(q, k, v)


def heads_before_the_batch(self: Written, *qkv: Tensor) -> Tensor:
    """(head * batch, token, d), by splitting and concatenating."""
    q, k, v = (torch.cat(torch.split(t, D // H, dim=2), dim=0) for t in qkv)
    weights = torch.softmax(q @ k.mT, -1)
    self.want = weights.view(H, B, T, T).transpose(0, 1)
    return torch.cat(torch.split(weights @ v, B, 0), 2)


def tokens_first(self: Written, *qkv: Tensor) -> Tensor:
    """(token, batch, d) inside, as in old Transformers."""
    q, k, v = (t.transpose(0, 1).reshape(T, B * H, D // H).transpose(0, 1) for t in qkv)
    weights = torch.softmax(torch.bmm(q, k.transpose(1, 2)), -1)
    self.want = weights.view(B, H, T, T)
    return torch.bmm(weights, v)


def values_on_the_left(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(batch, d, key) times transposed weights, as in SAGAN."""
    weights = torch.softmax(q @ k.mT, -1)
    self.want = weights[:, None]
    return torch.bmm(v.transpose(1, 2), weights.permute(0, 2, 1))


def keys_before_queries(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Weights (batch, key, query), normalised along axis 1."""
    weights = torch.softmax(k @ q.mT, 1)
    self.want = weights.mT[:, None]
    return weights.transpose(1, 2) @ v


def heads_last(self: Written, *qkv: Tensor) -> Tensor:
    """Weights (batch, query, key, head)."""
    q, k, v = (t.view(B, T, H, -1) for t in qkv)
    weights = torch.softmax(torch.einsum("bqhd,bkhd->bqkh", q, k), 2)
    self.want = weights.permute(0, 3, 1, 2)
    return torch.einsum("bqkh,bkhd->bqhd", weights, v)


def heads_share_keys(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Several heads of queries, one of keys and values (Shazeer 2019)."""
    q = q.view(B, T, H, -1).transpose(1, 2)
    weights = torch.softmax(torch.einsum("bhid,bjd->bhij", q, k[..., : D // H]), -1)
    self.want = weights
    return torch.einsum("bhij,bjd->bhid", weights, v[..., : D // H])


def exponentials_by_hand(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Exponentials divided by their sum."""
    exponentials = torch.exp(q @ k.mT)
    weights = exponentials / exponentials.sum(-1, keepdim=True)
    self.want = weights[:, None]
    return weights @ v


def masked_after_the_softmax(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A causal mask, after which rows are normalised again."""
    weights = torch.softmax(q @ k.mT, -1) * torch.ones(T, T).tril()
    weights = weights / weights.sum(-1)[..., None]
    self.want = weights[:, None]
    return weights @ v


def pooling(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One query without an axis of its own: (w * v).sum(1)."""
    weights = torch.softmax(q.sum(-1), -1)
    self.want = weights[:, None, None]
    return (weights.unsqueeze(-1) * v).sum(dim=1)


def heads_in_a_loop(self: Written, *qkv: Tensor) -> Tensor:
    """One head after the other."""
    q, k, v = (t.view(B, T, H, -1) for t in qkv)
    heads = [torch.softmax(q[:, :, h] @ k[:, :, h].mT, -1) for h in range(H)]
    self.want = torch.stack(heads, 1)
    return torch.cat([head @ v[:, :, h] for h, head in enumerate(heads)], -1)


def queries_in_a_loop(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Two queries after two others, as memory is saved; the last is alone."""
    parts = [torch.softmax(part @ k.mT, -1) for part in torch.split(q, 2, 1)]
    self.want = torch.cat(parts, 1)[:, None]
    return torch.cat([part @ v for part in parts], 1)


def one_query_after_the_other(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Queries without an axis of their own."""
    rows = [torch.softmax((k @ q[:, i, :, None]).squeeze(-1), -1) for i in range(T)]
    self.want = torch.stack(rows, 1)[:, None]
    return torch.stack([(row[..., None] * v).sum(1) for row in rows], 1)


def scores_of_a_linear_layer(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """One output of a layer for each token (Tay et al. 2021, Synthesizer)."""
    weights = torch.softmax(functional.linear(q, k[0]), -1)
    self.want = weights[:, None]
    return weights @ v


def written_into_another_tensor(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """By ``out=``."""
    scores = torch.bmm(q, k.mT, out=torch.empty(B, T, T))
    self.want = torch.softmax(scores, -1)[:, None]
    return torch.bmm(self.want[:, 0], v, out=torch.empty(B, T, D))


def weights_times_weights(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Two steps of a random walk: values are multiplied by the product."""
    weights = torch.softmax(q @ k.mT, -1) @ torch.softmax(k @ q.mT, -1)
    self.want = weights[:, None]
    return weights @ v


def heads_mixed_by_a_layer(self: Written, *qkv: Tensor) -> Tensor:
    """A linear layer over heads, which are the last axis for it."""
    q, k, v = (t.view(B, T, H, -1).transpose(1, 2) for t in qkv)
    mixed = functional.linear((q @ k.mT).softmax(-1).permute(0, 2, 3, 1), torch.rand(H, H) / H)
    self.want = mixed.permute(0, 3, 1, 2)
    return self.want @ v


def dropout_in_place(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The weights as they were before, although they are overwritten."""
    weights = torch.softmax(q @ k.mT, -1)
    self.want = weights.clone()[:, None]
    return functional.dropout(weights, 0.5, training=True, inplace=True) @ v


WAYS = [
    heads_in_a_loop,
    queries_in_a_loop,
    one_query_after_the_other,
    scores_of_a_linear_layer,
    written_into_another_tensor,
    weights_times_weights,
    heads_mixed_by_a_layer,
    dropout_in_place,
    heads_in_the_batch,
    heads_in_the_batch_fused,
    heads_before_the_batch,
    tokens_first,
    values_on_the_left,
    keys_before_queries,
    heads_last,
    heads_share_keys,
    exponentials_by_hand,
    masked_after_the_softmax,
    pooling,
]


@pytest.mark.parametrize("write", WAYS, ids=lambda write: write.__name__)
def test_every_way_of_writing(write: Callable[..., Tensor]) -> None:
    """The weights that the module multiplied, of the sentence that was asked for, in the record's order of axes."""
    module = Written(write).eval()
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(B, T, D))
    for index in range(B):
        record = seen.attention(index=index)
        kinds = {pooling: "cross", masked_after_the_softmax: "decoder"}
        assert record.kind == kinds.get(write, "encoder")
        np.testing.assert_allclose(record.weights, module.want[index][None], atol=1e-6)


@pytest.mark.parametrize(
    ("write", "axes"),
    [
        # Several pools of one text (Lin et al. 2017), whose rows are features of its tokens.
        (lambda x: (x[..., :3].softmax(1).mT.clone(), x), "batch query key"),
        # Each row of a picture attends alone.
        (
            lambda x: (
                torch.softmax(x.view(B, T, 4, 4) @ x.view(B, T, 4, 4).mT, -1),
                x.view(B, T, 4, 4),
            ),
            "batch batch query key",
        ),
    ],
    ids=["pools", "rows of a picture"],
)
def test_axes_that_are_named(write: Callable[[Tensor], tuple[Tensor, Tensor]], axes: str) -> None:
    """What is refused says that axes can be named, and then they can."""

    def named(self: Written, q: Tensor, *_: Tensor) -> Tensor:
        self.want, values = write(q)
        return self.want @ values

    module, x = Written(named), torch.randn(B, T, D)
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(x)
    with pytest.raises(NoAttentionError, match=r"axes='"):
        seen.attention()
    with torch.no_grad(), attnviz.watch(module, axes=axes) as seen:
        module(x)
    want = module.want.flatten(0, -3)
    for index in range(len(want)):
        np.testing.assert_allclose(
            seen.attention(index=index).weights[0, 0], want[index], atol=1e-6
        )


@pytest.mark.parametrize("n", [0, 2])
def test_the_modules_own_code_runs(n: int) -> None:
    """An empty batch, and numbers that cannot be read inside `torch.func.vmap`."""

    def mapped(_: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return torch.softmax(q @ k.mT, -1) @ v

        return torch.func.vmap(attend)(q, k, v) if n else attend(q, k, v)

    module, x = Written(mapped), torch.randn(n, T, D)
    expected = module(x)
    with torch.no_grad(), attnviz.watch(module) as seen:
        assert torch.equal(module(x), expected)
    with pytest.raises(NoAttentionError, match="no attention was seen"):
        seen.attention()


def test_the_caller_names_axes_that_cannot_be_followed() -> None:
    """Numbers that leave torch lose their history: the error says what to write, and that is understood."""

    def through_numpy(self: Written, *qkv: Tensor) -> Tensor:
        q, k, v = (torch.from_numpy(t.numpy().copy()) for t in folded(self, *qkv))
        return torch.softmax(q @ k.mT / 2, -1) @ v

    module, x = Written(through_numpy).eval(), torch.randn(B, T, D)
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(x)
    with pytest.raises(NoAttentionError, match=r"axes='\(batch head\) query key'"):
        seen.attention()
    with torch.no_grad(), attnviz.watch(module, axes="(batch head) query key") as seen:
        module(x)
    np.testing.assert_allclose(seen.attention(index=1).weights[0], module.want[1], atol=1e-6)
    for axes in ("rows columns", "batch query key key", "(batch head key) query"):
        with (
            pytest.raises(SettingsError, match="axes"),
            torch.no_grad(),
            attnviz.watch(module, axes=axes),
        ):
            module(x)


def test_the_axes_of_one_module_of_several() -> None:
    """Those of the module that needs them; the other one is followed as always."""

    def through_numpy(self: Written, *qkv: Tensor) -> Tensor:
        q, k, v = (torch.from_numpy(t.numpy().copy()) for t in folded(self, *qkv))
        return (torch.softmax(q @ k.mT / 2, -1) @ v).view(B, H, T, -1).transpose(1, 2).flatten(2)

    def usual(self: Written, *qkv: Tensor) -> Tensor:
        q, k, v = (t.view(B, T, H, -1).transpose(1, 2) for t in qkv)
        self.want = torch.softmax(q @ k.mT / 2, -1)
        return (self.want @ v).transpose(1, 2).flatten(2)

    module = nn.Sequential(Written(usual), Written(through_numpy)).eval()
    axes = {"1": "(batch head) query key"}
    with torch.no_grad(), attnviz.watch(module, axes=axes) as seen:
        module(torch.randn(B, T, D))
    record = seen.attention(index=1)
    for weights, layer in zip(record.weights, module, strict=True):
        np.testing.assert_allclose(weights, layer.want[1], atol=1e-6)  # type: ignore[index]
    with pytest.raises(SettingsError, match="encoder"):
        attnviz.watch(module, axes={"encoder": "(batch head) query key"})


class MixtureOfExperts(nn.Module):
    """One causal layer, then experts whose outputs a softmax weighs."""

    def __init__(self, n_experts: int = 4) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, D)
        self.qkv, self.gate = nn.Linear(D, 3 * D), nn.Linear(D, n_experts)
        self.experts = nn.ModuleList(nn.Linear(D, D) for _ in range(n_experts))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        q, k, v = self.qkv(x)[:, None].chunk(3, -1)
        x = x + functional.scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0]
        gates = torch.softmax(self.gate(x), -1)
        outputs = torch.stack([expert(x) for expert in self.experts], -2)
        return torch.einsum("bte,bted->btd", gates, outputs)


@pytest.mark.parametrize("text", ["abc", "abcd", "abcdef"])
def test_a_gate_is_no_attention(text: str) -> None:
    """However many tokens there are: as many as experts, fewer or more."""
    record = attnviz.attend(text, model=MixtureOfExperts().eval())
    assert (record.weights.shape[:2], record.kind) == ((1, 1), "decoder")


def linear_attention(_: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A softmax over features, and one over tokens whose rows are features."""
    return q.softmax(-1) @ (k.softmax(-2).mT @ v)


def selective_kernels(_: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Two branches, weighed channel by channel (Li et al. 2019)."""
    gates = torch.stack([functional.linear(t.mean(1), torch.randn(D, D)) for t in (q, k)], 1)
    branches = torch.stack([k, v], 1)
    return (branches * gates.softmax(1)[:, :, None]).sum(1)


@pytest.mark.parametrize("write", [linear_attention, selective_kernels])
def test_what_has_no_weights(write: Callable[..., Tensor]) -> None:
    """It is no attention of tokens."""
    module = Written(write)
    with attnviz.watch(module) as seen:
        module(torch.randn(B, T, D))
    with pytest.raises(NoAttentionError, match="no attention was seen"):
        seen.attention()


class StepByStep(nn.Module):
    """A recurrent decoder with additive attention (Bahdanau et al. 2015), four steps in one call."""

    def __init__(self) -> None:
        super().__init__()
        self.attention, self.gru = Additive(), nn.GRU(D, D, batch_first=True)

    def forward(self, encoded: Tensor, hidden: Tensor) -> Tensor:
        rows = []
        for _ in range(4):
            context, weights = self.attention(hidden.permute(1, 0, 2), encoded)
            _, hidden = self.gru(context, hidden)
            rows.append(weights)
        return torch.cat(rows, 1)


class Additive(nn.Module):
    """One query at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.score = nn.Linear(D, D), nn.Linear(D, D), nn.Linear(D, 1)

    def forward(self, query: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        scores = self.score(torch.tanh(self.query(query) + self.key(keys)))
        weights = torch.softmax(scores.squeeze(2).unsqueeze(1), -1)
        return torch.bmm(weights, keys), weights


def test_the_steps_of_a_decoder_are_rows() -> None:
    """One layer, with a row for each step."""
    module = StepByStep().eval()
    with torch.no_grad(), attnviz.watch(module) as seen:
        want = module(torch.randn(B, 7, D), torch.randn(1, B, D))
    record = seen.attention(tokens=list("wxyz"), key_tokens=list("abcdefg"), index=1)
    assert (record.kind, record.layers) == ("cross", (0,))
    np.testing.assert_allclose(record.weights[0, 0], want[1], atol=1e-6)


@pytest.mark.parametrize("need_weights", [False, True])
def test_the_steps_of_a_module_of_torch_are_rows(need_weights: bool) -> None:
    """Also with torch's own attention, fused or not."""

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(D, H, batch_first=True)

        def forward(self, encoded: Tensor, queries: Tensor) -> None:
            for step in range(queries.shape[1]):
                query = queries[:, step : step + 1]
                self.attention(query, encoded, encoded, need_weights=need_weights)

    module, encoded, queries = Decoder().eval(), torch.randn(B, 7, D), torch.randn(B, 4, D)
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(encoded, queries)
        record = seen.attention(index=1)
    with torch.no_grad():
        want = module.attention(queries, encoded, encoded, average_attn_weights=False)[1]
    np.testing.assert_allclose(record.weights, want[1:2], atol=1e-6)


class Masked(nn.Module):
    """Fused attention, with one mask for each call."""

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(D, D, bias=False) for _ in range(3))
        self.n_heads = n_heads

    def forward(self, query: Tensor, keys: Tensor, mask: Tensor) -> Tensor:
        vectors = (self.query(query), self.key(keys), self.value(keys))
        q, k, v = (x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for x in vectors)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def test_each_step_may_have_a_mask_of_its_own() -> None:
    """As in monotonic attention: the first step may see three keys, the next one four, and so on."""

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = Masked(H)

        def forward(self, encoded: Tensor, queries: Tensor, visible: Tensor) -> None:
            for step in range(queries.shape[1]):
                mask = visible[step].expand(len(encoded), 1, 1, -1)
                self.attention(queries[:, step : step + 1], encoded, mask)

    module, encoded, queries = Decoder().eval(), torch.randn(B, 7, D), torch.randn(B, 4, D)
    visible = torch.ones(4, 7).tril(2).bool()
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(encoded, queries, visible)
        record = seen.attention(index=1)
        attention = module.attention
        query = attention.query(queries[1]).unflatten(-1, (H, -1)).transpose(0, 1)
        key = attention.key(encoded[1]).unflatten(-1, (H, -1)).transpose(0, 1)
        scores = query @ key.mT / (D // H) ** 0.5
    want = scores.masked_fill(~visible, -torch.inf).softmax(-1)
    assert (record.kind, record.weights.shape) == ("cross", (1, H, 4, 7))
    np.testing.assert_allclose(record.weights[0], want, atol=1e-6)


def test_each_head_that_is_a_module_may_have_a_mask_of_its_own() -> None:
    """A head that sees only its own token beside a causal one."""

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleList(Masked(1) for _ in range(2))

        def forward(self, x: Tensor) -> None:
            causal = torch.ones(T, T).tril().bool()
            for head, mask in zip(self.heads, (causal, torch.eye(T).bool()), strict=True):
                head(x, x, mask)

    module = Heads().eval()
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(1, T, D))
        record = seen.attention()
    assert (record.kind, record.weights.shape) == ("decoder", (1, 2, T, T))
    assert ((record.weights[0, 0] > 0) == np.tril(np.ones((T, T)))).all()
    assert ((record.weights[0, 1] > 0) == np.eye(T)).all()


def test_equal_heads_that_are_modules_remain_heads() -> None:
    """Of a single token all weights are 1, and the heads are still four."""
    module = SideBySide()
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(1, 1, D))
    assert seen.layers[0].shape == (1, H, 1, 1)


class Flexible(nn.Module):
    """Attention with a distance penalty and a causal mask, given to `flex_attention` as functions."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.projection, self.function = nn.Linear(D, 3 * D), function

    def vectors(self, x: Tensor) -> list[Tensor]:
        parts = self.projection(x).chunk(3, -1)
        return [part.unflatten(-1, (H, -1)).transpose(1, 2) for part in parts]

    def forward(self, x: Tensor) -> Tensor:
        mask = create_block_mask(
            lambda _b, _h, query, key: key <= query, None, None, T, T, device="cpu"
        )
        output = self.function(
            *self.vectors(x),
            score_mod=lambda score, _b, _h, query, key: score + 0.3 * (key - query),
            block_mask=mask,
        )
        return output.transpose(1, 2).flatten(2)


@pytest.mark.filterwarnings("ignore:flex_attention called without")
@pytest.mark.parametrize("is_compiled", [False, True])
def test_flex_attention_is_seen(is_compiled: bool) -> None:
    """With its changes of the scores and its mask; compiled by the user, as its documentation asks, or not."""
    function: Any = flex_attention
    module = Flexible(torch.compile(function, backend="eager") if is_compiled else function)
    x = torch.randn(B, T, D)
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(x)
        record = seen.attention(tokens=list("abcde"), index=1)
        query, key, _ = module.vectors(x)
    place = torch.arange(T)
    scores = query[1] @ key[1].mT / (D // H) ** 0.5 + 0.3 * (place - place[:, None])
    want = scores.masked_fill(place > place[:, None], -torch.inf).softmax(-1)
    assert record.kind == "decoder"
    np.testing.assert_allclose(record.weights[0], want, atol=1e-6)


def test_a_step_with_a_cache_is_no_cross_attention() -> None:
    """A Llama of 4 heads on 2 while it generates from a padded batch: 4 heads, one query."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = LlamaForCausalLM(config).eval()
    ids = torch.tensor([[0, 0, 1, 7, 8], [1, 5, 6, 7, 8]])
    mask = (ids != 0).long()
    with attnviz.watch(model) as seen:
        texts = model.generate(
            ids, attention_mask=mask, max_new_tokens=3, min_new_tokens=3, do_sample=False
        )
    record = seen.attention(index=1)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        mask = torch.cat([mask, torch.ones(2, 2, dtype=torch.long)], 1)
        output = model(texts[:, :7], attention_mask=mask, output_attentions=True)
    want = torch.stack(output.attentions)[:, 1, :, -1:]
    assert (record.kind, record.layers) == ("decoder", (0, 1))
    np.testing.assert_allclose(record.weights, want, atol=1e-5)


class OneHead(nn.Module):
    """A head as courses write it."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(D, D // H) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        values: Tensor = self.value(x)
        return torch.softmax(self.query(x) @ self.key(x).mT, -1) @ values


class SideBySide(nn.Module):
    """Heads that are modules of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(OneHead() for _ in range(H))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([head(x) for head in self.heads], -1)


def test_modules_side_by_side_are_heads_and_one_after_the_other_layers() -> None:
    """What they read tells them apart: the same input, or the output of the one before."""
    module = nn.Sequential(SideBySide(), SideBySide(), nn.Sequential(OneHead(), nn.Linear(4, D)))
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(1, T, D))
    assert [(layer.path, layer.shape) for layer in seen.layers] == [
        ("0.heads", (1, H, T, T)),
        ("1.heads", (1, H, T, T)),
        ("2.0", (1, 1, T, T)),
    ]
    assert seen.attention(layers=[0, 1]).layers == (0, 1)


@pytest.mark.parametrize("need_weights", [False, True])
def test_rows_without_a_visible_key_are_empty(need_weights: bool) -> None:
    """One head of three may attend to nothing: the others are shown, and a note says so."""
    module = nn.MultiheadAttention(6, 3, batch_first=True).eval()
    x, mask = torch.randn(1, T, 6), torch.tensor([False, False, True]).view(3, 1, 1).expand(3, T, T)
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(x, x, x, attn_mask=mask, need_weights=need_weights)
        record = seen.attention(tokens=list("abcde"))
    with torch.no_grad():
        want = module(x, x, x, attn_mask=mask, average_attn_weights=False)[1][0, :2]
    np.testing.assert_allclose(record.weights[0, :2], want, atol=1e-6)
    assert not record.weights[0, 2].any()
    assert [note.code for note in record.notes] == ["rows_masked"]


def test_sentences_are_not_queries() -> None:
    """Attention over words for a classifier: one query for each sentence of the batch."""

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.score = nn.Embedding(30, D), nn.Linear(D, 1)

        def forward(self, ids: Tensor) -> Tensor:
            words = self.embedding(ids)
            self.weights = torch.softmax(self.score(words).squeeze(-1), -1)
            return torch.bmm(self.weights.unsqueeze(1), words).squeeze(1)

    module = Classifier()
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randint(0, 30, (3, 6)))
    record = seen.attention(tokens=["class"], key_tokens=list("abcdef"), index=2)
    np.testing.assert_allclose(record.weights[0, 0, 0], module.weights[2], atol=1e-6)


def test_arguments_by_name() -> None:
    """Functions of torch may get any of their arguments by name, also by the names that NumPy gives them."""
    library: Any = torch  # its stubs do not have the names of NumPy

    def by_name(self: Written, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        values = library.cat(tensors=[v[:, :2], v[:, 2:]], axis=1)
        weights = library.softmax(library.div(q @ k.mT, other=2.0), axis=-1)
        weights = library.mul(weights, other=torch.ones(T, T))
        self.want = weights[:, None]
        return torch.einsum("bij,bjk->bik", weights, values)

    module = Written(by_name)
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(B, T, D))
    np.testing.assert_allclose(seen.attention(index=1).weights[0], module.want[1], atol=1e-6)


def test_two_products_of_one_layer(zoo: Zoo) -> None:
    """DiffLlama multiplies each layer's weights by two sets of values: two layers, as the model counts them."""
    from transformers import AutoTokenizer, DiffLlamaConfig, DiffLlamaForCausalLM

    tokenizer = AutoTokenizer.from_pretrained(zoo.folder("distilbert"))
    config = DiffLlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    model = DiffLlamaForCausalLM(config).eval()
    record = attnviz.attend("I love all you", model=model, tokenizer=tokenizer)
    with torch.no_grad(), attnviz.watch(model) as seen:
        model(**tokenizer("I love all you", return_tensors="pt"))
    assert record.layers == seen.attention().layers == (0, 1)
    np.testing.assert_allclose(seen.attention().weights, record.weights, atol=1e-6)


def test_windows_of_a_picture_are_not_guessed() -> None:
    """Windows folded into the batch are neither pictures nor heads: what they are has to be told."""

    class Windows(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            windows = x.view(B, 2, 4, 2, 4, 3).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, 3)
            return torch.softmax(windows @ windows.mT, -1) @ windows

    module = Windows()
    with attnviz.watch(module) as seen:
        module(torch.randn(B, 8, 8, 3))
    with pytest.raises(NoAttentionError, match=r"Windows \(8, 16, 16\)"):
        seen.attention()


class OfSignals(nn.Module):
    """Attention of a signal (batch, channel, time) over time."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(3, 16, 3, padding=1)
        self.projections = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        """Return the weights that are expected, [batch, head, query, key]."""
        x = self.convolution(x).transpose(1, 2)
        query, key, value = (
            project(x).view(*x.shape[:2], 4, 4).transpose(1, 2) for project in self.projections
        )
        functional.scaled_dot_product_attention(query, key, value)
        return torch.softmax(query @ key.mT / 2, dim=-1)


def test_channels_first() -> None:
    """The time of a signal is its last axis: its queries and keys, and no features."""
    module = OfSignals()
    with torch.no_grad(), attnviz.watch(module) as seen:
        expected = module(torch.randn(2, 3, 7))
    record = seen.attention(index=1)
    assert record.kind == "encoder"
    torch.testing.assert_close(torch.tensor(record.weights[0]), expected[1])


def test_another_axis_of_the_input_is_refused() -> None:
    """Channels that attend alone, folded into the batch, are neither sentences nor heads; `axes` can name them."""

    def of_channels(x: Tensor) -> Tensor:
        folded = (
            x.transpose(1, 2).flatten(end_dim=1)[..., None].expand(-1, -1, 4)
        )  # [channel, time, d]
        weights = torch.softmax(folded @ folded.mT, dim=-1)
        return weights @ folded

    module = nn.Module()
    module.forward = of_channels
    x = torch.randn(2, 5, 3)
    with attnviz.watch(module) as seen:
        module(x)
    with pytest.raises(NoAttentionError, match=r"not clear what the axes .* axes='"):
        seen.attention()
    with attnviz.watch(module, axes="batch query key") as seen:
        module(x)
    assert seen.attention(index=5).weights.shape == (1, 1, 5, 5)


def test_several_patterns_of_one_layer() -> None:
    """A layer is what the model numbers as a layer, also where it attends twice."""

    class Twice(nn.Module):
        def __init__(self, shift: float) -> None:
            super().__init__()
            self.shift = shift

        def forward(self, x: Tensor) -> Tensor:
            heads = x.view(1, T, H, -1).transpose(1, 2)
            first = functional.scaled_dot_product_attention(heads, heads, heads)
            return first - functional.scaled_dot_product_attention(
                heads + self.shift, heads, heads.flip(-1)
            )

    for shift, n_heads in ((0.0, H), (1.0, 2 * H)):  # the same weights again are no further heads
        module = nn.ModuleDict({"layers": nn.ModuleList(Twice(shift) for _ in range(2))})
        module.forward = lambda x, module=module: [layer(x) for layer in module["layers"]]
        with torch.no_grad(), attnviz.watch(module) as seen:
            module(torch.randn(1, T, D))
        assert seen.attention().weights.shape == (2, n_heads, T, T)
        assert seen.attention().layers == (0, 1)
