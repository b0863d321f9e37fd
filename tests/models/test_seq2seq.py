"""Recurrent sequence to sequence: by hand, against PyTorch's own networks, forced and free."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from attnviz.models.attention import scaled_dot_product_attention
from attnviz.models.config import RecurrentConfig
from attnviz.models.seq2seq import RecurrentAttention, RecurrentTranslator
from tests.models.parity import words

# Different primes, so that no two axes can be confused.
BATCH, SOURCE, STEPS, EMBEDDING, HIDDEN, READ, SAID = 3, 11, 7, 5, 13, 23, 19
CONFIG = RecurrentConfig(
    n_source_words=READ, n_target_words=SAID, d_embedding=EMBEDDING, d_hidden=HIDDEN
)

WITHOUT = replace(CONFIG, attention=None)


def translator(config: RecurrentConfig = CONFIG) -> RecurrentTranslator:
    """A model in double precision, which rounds too little to hide a mistake."""
    return RecurrentTranslator(config).double().eval()


def torchs_network(model: RecurrentTranslator, d_input: int) -> nn.GRU:
    """PyTorch's network with the weights of a model's cell."""
    network = nn.GRU(d_input, HIDDEN, batch_first=True).double()
    cell = model.cell.state_dict()
    network.load_state_dict({f"{name}_l0": tensor for name, tensor in cell.items()})
    return network


class TestRecurrentAttention:
    """One step: the decoder's state asks, the encoder's states answer."""

    def test_five_steps_by_hand(self) -> None:
        """The example of the course notes: scores 15, 60, 15, 35 give the context [5, 6.94397194e-11, 1]."""
        attention = RecurrentAttention(3).double()
        for linear in attention.children():
            linear.load_state_dict({"weight": torch.eye(3), "bias": torch.zeros(3)})
        attention.query_projection.weight.data *= 3**0.5  # undoes the factor of the scores
        state = torch.tensor([[10.0, 5, 10]], dtype=torch.float64)
        states = torch.tensor([[[0.0, 1, 1], [5, 0, 1], [1, 1, 0], [0, 5, 1]]], dtype=torch.float64)
        mask = torch.ones(1, 4, dtype=torch.bool)
        context, weights = attention(state, *attention.keys_and_values(states), mask)
        expected = torch.tensor(
            [[2.86251858e-20, 1, 2.86251858e-20, 1.38879439e-11]], dtype=torch.float64
        )
        assert_close(weights, expected, rtol=1e-8, atol=0)
        assert_close(
            context, torch.tensor([[5, 6.94397194e-11, 1]], dtype=torch.float64), rtol=1e-8, atol=0
        )

    def test_parity_with_torch(self) -> None:
        """Mapped by hand, PyTorch's function gives the same context."""
        attention = RecurrentAttention(HIDDEN)
        state, states = torch.randn(BATCH, HIDDEN), torch.randn(BATCH, SOURCE, HIDDEN)
        mask = torch.arange(SOURCE) < torch.tensor([[SOURCE], [1], [7]])
        context, weights = attention(state, *attention.keys_and_values(states), mask)
        expected = nn.functional.scaled_dot_product_attention(
            attention.query_projection(state)[:, None],
            attention.key_projection(states),
            attention.value_projection(states),
            mask[:, None],
        )
        assert_close(context, expected[:, 0])
        assert weights.shape == (BATCH, SOURCE)
        assert (weights[~mask] == 0).all()


class TestEncoding:
    """The sentence read."""

    @pytest.mark.parametrize("config", [CONFIG, WITHOUT], ids=["with attention", "without"])
    def test_parity_with_torch(self, config: RecurrentConfig) -> None:
        """Each sentence of a batch gets the states that PyTorch's network gives it alone, and zeros after them."""
        model, source = translator(config), words(READ, 11, 1, 5)
        encoded = model.encode(source)
        assert encoded.states.shape == (BATCH, SOURCE, HIDDEN)
        for row, n in enumerate((11, 1, 5)):
            states, last = model.encoder(model.source_embedding(source[row : row + 1, :n]))
            assert_close(encoded.states[row, :n], states[0])
            assert (encoded.states[row, n:] == 0).all()
            assert_close(encoded.last[row], last[0, 0])
        assert encoded.mask.sum(dim=1).tolist() == [11, 1, 5]


class TestDecoding:
    """The sentence said, the right words forced on the decoder."""

    def test_parity_with_torch_without_attention(self) -> None:
        """PyTorch's network with the cell's weights, begun with the encoder's last state, gives the same logits."""
        model = translator(WITHOUT)
        theirs = torchs_network(model, EMBEDDING)
        source, target = words(READ, 11, 1, 5), words(SAID, 7, 7, 7)
        read = torch.cat([torch.full((BATCH, 1), CONFIG.start), target[:, :-1]], dim=1)
        states, _ = theirs(model.target_embedding(read), model.encode(source).last[None])
        logits = model(source, target).logits
        assert logits.shape == (BATCH, STEPS, SAID)
        assert_close(logits, model.word_projection(states))

    def test_parity_with_torch_with_attention(self) -> None:
        """Step by step, PyTorch's attention and network with the same weights give the same logits and weights."""
        model = translator(CONFIG)
        attention = model.attention
        assert attention is not None
        theirs = torchs_network(model, EMBEDDING + HIDDEN)
        maps = nn.MultiheadAttention(HIDDEN, 1, batch_first=True).double()
        linears = (attention.query_projection, attention.key_projection, attention.value_projection)
        maps.load_state_dict(
            {
                "in_proj_weight": torch.cat([linear.weight for linear in linears]),
                "in_proj_bias": torch.cat([linear.bias for linear in linears]),
                "out_proj.weight": torch.eye(HIDDEN),
                "out_proj.bias": torch.zeros(HIDDEN),
            }
        )
        source, target = words(READ, 11, 1, 5), words(SAID, 7, 7, 7)
        translation, encoded = model(source, target), model.encode(source)
        read = torch.cat([torch.full((BATCH, 1), CONFIG.start), target[:, :-1]], dim=1)
        state = encoded.last[None]
        for step in range(STEPS):
            query = state.transpose(0, 1)  # before this step
            context, weights = maps(
                query, encoded.states, encoded.states, key_padding_mask=~encoded.mask
            )
            x = torch.cat([model.target_embedding(read[:, step : step + 1]), context], dim=-1)
            hidden, state = theirs(x, state)
            assert_close(translation.logits[:, step], model.word_projection(hidden[:, 0]))
            assert_close(translation.weights[:, step], weights[:, 0])


class TestAttendFunction:
    """A caller can stand where the formula stands."""

    def test_it_sees_each_step(self) -> None:
        """One head, one query, and the source's keys; the weights may be kept."""
        seen: list[tuple[tuple[int, ...], ...]] = []

        def attend(
            query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
        ) -> tuple[Tensor, None]:
            assert mask is not None
            seen.append(tuple(tuple(part.shape) for part in (query, key, value, mask)))
            return scaled_dot_product_attention(query, key, value, mask)[0], None

        model, source, target = translator(), words(READ, 11, 1, 5), words(SAID, 7, 7, 7)
        translation = model(source, target, attend=attend)
        assert translation.weights is None
        assert torch.equal(translation.logits, model(source, target).logits)
        key = (BATCH, 1, SOURCE, HIDDEN)
        assert seen == [((BATCH, 1, 1, HIDDEN), key, key, (BATCH, 1, 1, SOURCE))] * STEPS
