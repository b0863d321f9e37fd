"""The kind of watched attention follows from where its queries and keys come from; what is no softmax is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import attnviz
from attnviz.errors import NoAttentionError, RecordError

B, T, D = 2, 6, 16


class Written(nn.Module):
    """Attention of one head as `write` computes it; `want` keeps its weights as [batch, query, key]."""

    def __init__(self, write: Callable[..., Tensor]) -> None:
        super().__init__()
        self.write = write
        self.query, self.key, self.value = (nn.Linear(D, D) for _ in range(3))
        self.down, self.sums = nn.Conv2d(D, D, 2, 2), nn.Linear(T, T)
        self.latents = nn.Parameter(torch.randn(1, T, D))
        self.cls = nn.Parameter(torch.randn(1, 1, D))
        self.want = torch.empty(0)

    def attend(self, queries: Tensor, keys: Tensor) -> Tensor:
        self.want = torch.softmax(self.query(queries) @ self.key(keys).mT, -1)
        context: Tensor = self.want @ self.value(keys)
        return context

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.write(self, x)
        return output


def class_token(self: Written, x: Tensor) -> Tensor:
    """The query of a learned token before all others (Touvron et al. 2021, CaiT)."""
    x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1)
    return self.attend(x[:, 0].unsqueeze(1), x)


def last_token(self: Written, x: Tensor) -> Tensor:
    """The query of the last token alone."""
    return self.attend(x[:, -1:], x)


def reduced_keys(self: Written, x: Tensor) -> Tensor:
    """A convolution makes fewer keys of the tokens of a picture (Xie et al. 2021, SegFormer)."""
    picture = x.mT.reshape(len(x), D, 2, T // 2)
    return self.attend(x, self.down(picture).flatten(2).mT)


def learned_queries(self: Written, x: Tensor) -> Tensor:
    """As many learned queries as there are tokens (Jaegle et al. 2021, Perceiver)."""
    return self.attend(self.latents.expand(len(x), -1, -1), x)


def turned_weights(self: Written, x: Tensor) -> Tensor:
    """Projections as products with turned parameters: they are no scores."""
    x = x @ self.query.weight.T
    return self.attend(x, x @ self.key.weight.T)


def projected_keys(self: Written, x: Tensor) -> Tensor:
    """Keys projected to as many places as there are tokens (Wang et al. 2020, Linformer)."""
    return self.attend(x, self.sums(x.mT).mT)


def future_on_past(self: Written, x: Tensor) -> Tensor:
    """Two halves of one series, equally long."""
    return self.attend(x[:, T // 2 :], x[:, : T // 2])


def cache_written_in_place(self: Written, x: Tensor) -> Tensor:
    """Keys in a tensor that is made before (Touvron et al. 2023, LLaMA)."""
    cache = torch.randn(B + 1, T + 3, D)
    cache[:B, 3:] = x
    return self.attend(x, cache[:B])


def cache_written_by_index(self: Written, x: Tensor) -> Tensor:
    """The same as the library's static cache writes it."""
    cache = torch.randn(B, T + 3, D)
    return self.attend(x, cache.index_copy_(1, torch.arange(3, T + 3), x))


@pytest.mark.parametrize(
    ("write", "kind"),
    [
        (cache_written_in_place, "encoder"),
        (cache_written_by_index, "encoder"),
        (class_token, "encoder"),
        (last_token, "decoder"),
        (reduced_keys, "encoder"),
        (learned_queries, "cross"),
        (turned_weights, "encoder"),
        (projected_keys, "cross"),
        (future_on_past, "cross"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_kind(write: Callable[..., Tensor], kind: str) -> None:
    """Attention within one sequence is no cross-attention, whatever the lengths."""
    module = Written(write)
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(B, T, D))
    record = seen.attention(index=1)
    assert record.kind == kind
    np.testing.assert_allclose(record.weights[0, 0], module.want[1], atol=1e-6)


def test_one_layer_again_and_again() -> None:
    """Each time it attends to the same sequence with what it read of it: no heads, but layers."""
    module = Written(lambda _, x: x)

    def recur(x: Tensor, source: Tensor) -> Tensor:
        for _ in range(3):
            x = x + module.attend(x, source)
        return x

    module.forward = recur  # type: ignore[assignment, method-assign]
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(B, T, D), torch.randn(B, 4, D))
    assert [layer.shape for layer in seen.layers] == [(B, 1, T, 4)] * 3
    np.testing.assert_allclose(seen.attention(index=1).weights[2, 0], module.want[1], atol=1e-6)


def test_words_before_the_batch() -> None:
    """A recurrent translator of ids (word, sentence) that repeats its state for each word of the source."""

    class Translator(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.encoder = nn.Embedding(20, D), nn.GRU(D, D, bidirectional=True)
            self.score, self.cell = nn.Linear(3 * D, 1), nn.GRUCell(2 * D, D)

        def forward(self, ids: Tensor) -> Tensor:
            encoded, states = self.encoder(self.embedding(ids))
            keys, state, rows = encoded.permute(1, 0, 2), states[-1], []
            for _ in range(4):
                repeated = state.unsqueeze(1).repeat(1, len(encoded), 1)
                row = self.score(torch.cat((repeated, keys), 2)).squeeze(2).softmax(1)
                state = self.cell(torch.bmm(row.unsqueeze(1), keys).squeeze(1), state)
                rows.append(row)
            return torch.stack(rows, 1)

    for n_words in (T, 2):  # a GRU of two directions has two states
        module = Translator()
        with torch.no_grad(), attnviz.watch(module) as seen:
            want = module(torch.randint(0, 20, (n_words, 3)))
        record = seen.attention(index=2)
        assert record.kind == "cross"
        np.testing.assert_allclose(record.weights[0, 0], want[2], atol=1e-6)


def test_a_graph_is_no_batch() -> None:
    """Nodes (node, d) that attend where the other input, (node, node), has an edge (Velickovic et al. 2018)."""

    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project, self.source, self.target = (
                nn.Linear(D, D),
                nn.Linear(D, 1),
                nn.Linear(D, 1),
            )

        def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
            h = self.project(nodes)
            scores = functional.leaky_relu(self.source(h) + self.target(h).T)
            self.want = torch.where(edges > 0, scores, torch.full_like(scores, -9e15)).softmax(1)
            context: Tensor = self.want @ h
            return context

    module = Graph()
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(T, D), torch.ones(T, T).tril(2))
    record = seen.attention()
    assert record.kind == "encoder"
    np.testing.assert_allclose(record.weights[0, 0], module.want, atol=1e-6)


def test_a_detector() -> None:
    """DETR (Carion et al. 2020): positions are added to queries and keys, and there are as many objects as places."""

    class Detector(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.backbone, self.objects = nn.Conv2d(3, D, 4, 4), nn.Embedding(4, D)
            self.positions = nn.Parameter(torch.randn(4, 1, D))
            self.attention = nn.ModuleList(nn.MultiheadAttention(D, 2) for _ in range(3))

        def forward(self, pictures: Tensor) -> None:
            places = self.backbone(pictures).flatten(2).permute(2, 0, 1)
            objects = self.objects.weight.unsqueeze(1).repeat(1, len(pictures), 1)
            self.attention[0](places + self.positions, places + self.positions, places)
            self.attention[1](objects * 2, objects + 0, objects)
            self.attention[2](objects, places + self.positions, places)

    module = Detector()
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(B, 3, 8, 8))
    assert [layer.kind for layer in seen.layers] == ["encoder", "encoder", "cross"]


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_step_of_grouped_heads(implementation: str) -> None:
    """A Llama of 4 heads on 2 generates from a batch: its last step is one row of 4 heads."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=50,
    )
    model: Any = LlamaForCausalLM(config).eval()
    model.set_attn_implementation(implementation)
    ids = torch.randint(3, 50, (B, 5))
    with torch.no_grad(), attnviz.watch(model) as seen:
        texts = model.generate(
            ids, max_new_tokens=3, do_sample=False, pad_token_id=0, eos_token_id=None
        )
    record = seen.attention(index=1)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        output = model(texts[:, :7], output_attentions=True)
    assert record.kind == "decoder"
    want = torch.stack(output.attentions)[:, 1, :, -1:]
    np.testing.assert_allclose(record.weights, want, atol=1e-6)


@pytest.mark.parametrize("name", ["TimeSeriesTransformer", "Informer"])
def test_a_forecast_of_as_many_places_as_the_past_has(name: str) -> None:
    """Cross-attention of equal lengths, which the model cuts out of one series."""
    import transformers

    n = 8
    config = getattr(transformers, f"{name}Config")(
        prediction_length=n,
        context_length=n,
        lags_sequence=[1, 2],
        num_time_features=1,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        **({"distil": False} if name == "Informer" else {}),
    )
    model = getattr(transformers, f"{name}Model")(config).eval()
    given = {
        "past_values": torch.randn(B, n + 2),
        "past_time_features": torch.randn(B, n + 2, 1),
        "past_observed_mask": torch.ones(B, n + 2),
        "future_values": torch.randn(B, n),
        "future_time_features": torch.randn(B, n, 1),
    }
    with torch.no_grad(), attnviz.watch(model) as seen:
        model(**given)
    with torch.no_grad():
        want = model(**given, output_attentions=True).cross_attentions[0][1]
    weights = seen.attention(kind="cross", index=1).weights
    np.testing.assert_allclose(weights[0], want, atol=1e-5)


def sparsemax(scores: Tensor) -> Tensor:
    """Martins and Astudillo 2016: the nearest point of the simplex."""
    ordered = scores.sort(-1, descending=True).values
    sums, places = ordered.cumsum(-1) - 1, torch.arange(1, scores.shape[-1] + 1)
    n = (places * ordered > sums).sum(-1, keepdim=True)
    return (scores - sums.gather(-1, n - 1) / n).clamp(min=0)


class Sparsemax(torch.autograd.Function):
    """The same as packages write it."""

    @staticmethod
    def forward(_: Any, scores: Tensor) -> Tensor:
        return sparsemax(scores)


def off_by_one(scores: Tensor) -> Tensor:
    """A softmax with one more score of 0."""
    exponentials = scores.exp()
    return exponentials / (1 + exponentials.sum(-1, keepdim=True))


@pytest.mark.parametrize(
    ("normalise", "is_short"),
    [
        (sparsemax, False),
        (Sparsemax.apply, False),
        (lambda scores: functional.log_softmax(scores, -1).exp(), False),
        (lambda scores: (scores.softmax(-1) + scores.neg().softmax(-1)) / 2, False),
        (off_by_one, True),
        (torch.sigmoid, True),
    ],
    ids=["sparsemax", "a function of autograd", "log softmax", "a mean", "off by one", "sigmoid"],
)
def test_other_weights_than_softmax(normalise: Callable[[Tensor], Tensor], is_short: bool) -> None:
    """Numbers between 0 and 1 that are multiplied by values are shown; a note says what their rows sum to."""

    def write(self: Written, x: Tensor) -> Tensor:
        self.want = normalise(self.query(x) @ self.key(x).mT)
        context: Tensor = self.want @ self.value(x)
        return context

    module = Written(write)
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(B, T, D))
    record = seen.attention(index=1)
    np.testing.assert_allclose(record.weights[0, 0], module.want[1], atol=1e-6)
    assert [note.code for note in record.notes] == ["no_softmax"] * is_short
    assert record.short_rows == ("unnormalised",) * is_short


@pytest.mark.parametrize(
    ("mix", "reason"),
    [
        (lambda scores: scores.softmax(-1) - 0.9 * scores.neg().softmax(-1), "some are negative"),
        (lambda scores: scores.exp(), "some are above 1"),
    ],
    ids=["differential", "without a sum"],
)
def test_numbers_that_are_no_weights(mix: Callable[[Tensor], Tensor], reason: str) -> None:
    """The error says what is multiplied by values instead."""

    def write(self: Written, x: Tensor) -> Tensor:
        context: Tensor = mix(self.query(x) @ self.key(x).mT) @ self.value(x)
        return context

    module = Written(write)
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(B, T, D))
    with pytest.raises(NoAttentionError, match=rf"Written multiplies its values by .*{reason}"):
        seen.attention()


class Captions(nn.Module):
    """Show, attend and tell (Xu et al. 2015): the batch shrinks as short captions end."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.region, self.state = nn.LSTMCell(D, D), nn.Linear(D, D), nn.Linear(D, D)
        self.score = nn.Linear(D, 1)

    def forward(self, regions: Tensor, lengths: Sequence[int]) -> Tensor:
        """Return the weights of each word, [caption, word, region]."""
        hidden = cell = torch.zeros(len(regions), D)
        weights = torch.zeros(len(regions), max(lengths), regions.shape[1])
        for step in range(max(lengths)):
            n = sum(length > step for length in lengths)
            keys = torch.tanh(self.region(regions[:n]) + self.state(hidden[:n])[:, None])
            now = torch.softmax(self.score(keys).squeeze(2), dim=1)
            context = (regions[:n] * now[..., None]).sum(1)
            hidden, cell = self.cell(context, (hidden[:n], cell[:n]))
            weights[:n, step] = now.detach()
        return weights


@pytest.mark.parametrize("lengths", [(4, 4, 4), (4, 3, 2), (4, 1, 1)])
def test_texts_of_unequal_length(lengths: tuple[int, ...]) -> None:
    """Each has a record of its own, with as many rows as it has words."""
    module = Captions()
    with torch.no_grad(), attnviz.watch(module) as seen:
        want = module(torch.randn(3, 9, D), lengths)
    for index, n in enumerate(lengths):
        record = seen.attention(tokens=list("wxyz"[:n]), key_tokens=list("abcdefghi"), index=index)
        np.testing.assert_allclose(record.weights[0, 0], want[index, :n], atol=1e-6)


def test_sentences_in_a_loop() -> None:
    """One layer, whose inputs are attended one after the other."""
    module = Written(lambda self, x: torch.stack([self.attend(one, one) for one in x]))
    x = torch.randn(3, T, D)
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(x)
        want = torch.softmax(module.query(x[2]) @ module.key(x[2]).T, -1)
    np.testing.assert_allclose(seen.attention(index=2).weights[0, 0], want, atol=1e-6)
    assert [layer.shape for layer in seen.layers] == [(3, 1, T, T)]


def test_a_bag_without_a_batch() -> None:
    """Patches of one slide, (patch, d), pooled by one weight each (Ilse et al. 2018)."""

    class Bag(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.hidden, self.score = nn.Linear(D, 4), nn.Linear(4, 1)

        def forward(self, patches: Tensor) -> Tensor:
            self.want = torch.softmax(self.score(torch.tanh(self.hidden(patches))).T, dim=1)
            return self.want @ patches

    module = Bag()
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(T, D))
    np.testing.assert_allclose(seen.attention().weights[0, 0], module.want, atol=1e-6)


def test_heads_in_a_loop_on_shared_values() -> None:
    """The interpretable attention of a temporal fusion transformer (Lim et al. 2021) is one layer of heads."""

    class Interpretable(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.queries = nn.ModuleList(nn.Linear(D, 4) for _ in range(3))
            self.keys = nn.ModuleList(nn.Linear(D, 4) for _ in range(3))
            self.value = nn.Linear(D, 4)

        def forward(self, x: Tensor) -> Tensor:
            values, heads = self.value(x), []
            for query, key in zip(self.queries, self.keys, strict=True):
                heads.append(torch.softmax(query(x) @ key(x).mT, -1))
            self.want = torch.stack(heads, 1)
            return torch.stack([head @ values for head in heads]).mean(0)

    module = Interpretable()
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(B, T, D))
    np.testing.assert_allclose(seen.attention(index=1).weights[0], module.want[1], atol=1e-6)


def test_virtual_tokens_are_no_padding() -> None:
    """Labels for a part of the rows of causal attention may be those of any: all rows are to be named."""

    def write(self: Written, x: Tensor) -> Tensor:
        q, k, v = (of(x)[:, None] for of in (self.query, self.key, self.value))
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    module = Written(write)
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(1, T, D))
    with pytest.raises(RecordError, match=r"4 tokens for 6 queries, .* virtual tokens"):
        seen.attention(["I", "love", "all", "you"])
    assert (
        len(seen.attention(["virtual 0", "virtual 1", "I", "love", "all", "you"]).query_tokens) == T
    )


@pytest.mark.parametrize("axes", [None, "head batch query key"])
def test_an_einsum_with_heads_first(axes: str | None) -> None:
    """Weights (head, batch, query, key), with and without their names."""

    def write(self: Written, x: Tensor) -> Tensor:
        q, k, v = (of(x).unflatten(-1, (4, -1)) for of in (self.query, self.key, self.value))
        weights = torch.einsum("bqhd,bkhd->hbqk", q, k).softmax(-1)
        self.want = weights.transpose(0, 1)
        return torch.einsum("hbqk,bkhd->bqhd", weights, v)

    module = Written(write)
    with torch.no_grad(), attnviz.watch(module, axes=axes) as seen:
        module(torch.randn(B, T, D))
    np.testing.assert_allclose(seen.attention(index=1).weights[0], module.want[1], atol=1e-6)
