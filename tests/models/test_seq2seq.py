"""Recurrent sequence to sequence: by hand, against PyTorch's own networks, forced and free."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from attnviz.errors import InputError, ModelError, TooLongError
from attnviz.models.attention import scaled_dot_product_attention
from attnviz.models.config import RecurrentConfig
from attnviz.models.seq2seq import RecurrentAttention, RecurrentTranslator

# Different primes, so that no two axes can be confused.
BATCH, SOURCE, STEPS, EMBEDDING, HIDDEN, READ, SAID = 3, 11, 7, 5, 13, 23, 19
CONFIG = RecurrentConfig(
    n_source_words=READ, n_target_words=SAID, d_embedding=EMBEDDING, d_hidden=HIDDEN
)
WITHOUT = replace(CONFIG, attention=None)


def words(n_words: int, *lengths: int) -> Tensor:
    """Sentences of these lengths, in one batch."""
    rows = [torch.randint(CONFIG.mask + 1, n_words, (length,)) for length in lengths]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True)


def translator(config: RecurrentConfig = CONFIG) -> RecurrentTranslator:
    """A model in double precision, which rounds too little to hide a mistake."""
    return RecurrentTranslator(config).double().eval()


@pytest.fixture(params=[CONFIG, WITHOUT], ids=["with attention", "without"])
def model(request: pytest.FixtureRequest) -> RecurrentTranslator:
    """A model with attention, and one without."""
    return translator(request.param)


def plain(attention: RecurrentAttention) -> RecurrentAttention:
    """Its three maps made to change nothing."""
    for linear in (
        attention.query_projection,
        attention.key_projection,
        attention.value_projection,
    ):
        nn.init.eye_(linear.weight)
        nn.init.zeros_(linear.bias)
    return attention


class TestRecurrentAttention:
    """One step: the decoder's state asks, the encoder's states answer."""

    def test_five_steps_by_hand(self) -> None:
        """The example of the course notes: scores 15, 60, 15, 35 give the context [5, 6.94397194e-11, 1]."""
        attention = plain(RecurrentAttention(3, score="dot")).double()
        state = torch.tensor([[10.0, 5, 10]], dtype=torch.float64)
        states = torch.tensor([[[0.0, 1, 1], [5, 0, 1], [1, 1, 0], [0, 5, 1]]], dtype=torch.float64)
        key, value = attention.keys_and_values(states)
        assert attention.score(state, key[0]).tolist() == [[15, 60, 15, 35]]
        context, weights = attention(state, key, value)
        expected = torch.tensor(
            [[2.86251858e-20, 1, 2.86251858e-20, 1.38879439e-11]], dtype=torch.float64
        )
        assert_close(weights, expected, rtol=1e-8, atol=0)
        assert_close(
            context, torch.tensor([[5, 6.94397194e-11, 1]], dtype=torch.float64), rtol=1e-8, atol=0
        )

    def test_scores_are_divided_by_the_root_of_the_hidden_width(self) -> None:
        """With four numbers, a query of ones and keys of zeros and threes score 0 and 6."""
        attention = plain(RecurrentAttention(4))
        states = torch.stack([torch.zeros(4), 3 * torch.ones(4)])[None]
        _, weights = attention(torch.ones(1, 4), *attention.keys_and_values(states))
        assert_close(weights, torch.tensor([[1, math.exp(6)]]) / (1 + math.exp(6)))

    @pytest.mark.parametrize("masked", [False, True])
    def test_parity_with_torch(self, *, masked: bool) -> None:
        """Mapped by hand, PyTorch's function gives the same context."""
        attention = RecurrentAttention(HIDDEN)
        state, states = torch.randn(BATCH, HIDDEN), torch.randn(BATCH, SOURCE, HIDDEN)
        mask = torch.arange(SOURCE) < torch.tensor([[SOURCE], [1], [7]]) if masked else None
        context, weights = attention(state, *attention.keys_and_values(states), mask)
        expected = nn.functional.scaled_dot_product_attention(
            attention.query_projection(state)[:, None],
            attention.key_projection(states),
            attention.value_projection(states),
            None if mask is None else mask[:, None],
        )
        assert_close(context, expected[:, 0])
        assert weights.shape == (BATCH, SOURCE)
        assert mask is None or (weights[~mask] == 0).all()


class TestEncoding:
    """The sentence read."""

    def test_parity_with_torch(self, model: RecurrentTranslator) -> None:
        """Each sentence of a batch gets the states that PyTorch's network gives it alone, and zeros after them."""
        source = words(READ, 11, 1, 5)
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
        theirs = nn.GRU(EMBEDDING, HIDDEN, batch_first=True).double()
        theirs.load_state_dict(
            {f"{name}_l0": tensor for name, tensor in model.cell.state_dict().items()}
        )
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
        theirs = nn.GRU(EMBEDDING + HIDDEN, HIDDEN, batch_first=True).double()
        theirs.load_state_dict(
            {f"{name}_l0": tensor for name, tensor in model.cell.state_dict().items()}
        )
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

    def test_only_the_last_state_speaks_without_attention(self) -> None:
        """With its states wiped out but for the last, a model with attention says something else, one without not."""
        source, word = words(READ, 11), torch.tensor([CONFIG.start])
        for config in (CONFIG, WITHOUT):
            model = translator(config)
            encoded = model.encode(source)
            key, value = (
                None if part is None else torch.zeros_like(part)
                for part in (encoded.key, encoded.value)
            )
            wiped = encoded._replace(states=torch.zeros_like(encoded.states), key=key, value=value)
            before, after = (
                model.step(word, encoded.last, memory)[0] for memory in (encoded, wiped)
            )
            assert torch.equal(before, after) == (config.attention is None)

    def test_forgetful(self) -> None:
        """Before training, an earlier word changes a state less than where the gates are as PyTorch draws them."""
        source = words(READ, SOURCE)
        other = source.clone()
        other[:, 0] = torch.where(source[:, 0] == READ - 1, READ - 2, READ - 1)
        moved = []
        for forgetful in (False, True):
            torch.manual_seed(0)
            model = translator(replace(CONFIG, forgetful=forgetful))
            moved.append(
                (model.encode(source).states - model.encode(other).states)[0, 3].norm().item()
            )
        assert 0 < moved[1] < moved[0] / 2

    def test_a_later_word_changes_no_earlier_logit(self, model: RecurrentTranslator) -> None:
        """New words at the end of the target leave what came before as it was, to the last bit."""
        source, target = words(READ, 11, 1, 5), words(SAID, 7, 7, 7)
        changed = target.clone()
        changed[:, 4:] = CONFIG.unknown
        before, after = model(source, target), model(source, changed)
        # step 5 is the first to read word 4
        assert torch.equal(before.logits[:, :5], after.logits[:, :5])
        assert not torch.allclose(before.logits[:, 5:], after.logits[:, 5:])
        if before.weights is not None:
            assert torch.equal(before.weights[:, :5], after.weights[:, :5])

    def test_padding_changes_nothing(self, model: RecurrentTranslator) -> None:
        """In a batch each pair gets the numbers that it gets alone."""
        sizes = ((11, 2), (1, 7), (5, 3))
        source, target = words(READ, *(n for n, _ in sizes)), words(SAID, *(n for _, n in sizes))
        together = model(source, target)
        for row, (n_source, n_target) in enumerate(sizes):
            alone = model(source[row : row + 1, :n_source], target[row : row + 1, :n_target])
            assert_close(together.logits[row, :n_target], alone.logits[0])
            if alone.weights is not None:
                assert_close(together.weights[row, :n_target, :n_source], alone.weights[0])


def outspoken(model: RecurrentTranslator) -> RecurrentTranslator:
    """The model with larger weights, so that it does not say one word again and again."""
    for parameter in model.parameters():
        parameter.data.mul_(4)
    return model


class TestFreeRunning:
    """The sentence said, each step on the word of the one before."""

    def test_equals_teacher_forcing_on_its_own_words(self, model: RecurrentTranslator) -> None:
        """Forced to say what it says anyway, a model computes the same numbers, to the last bit."""
        source = words(READ, 11, 1, 5)
        free = outspoken(model).translate(source, max_length=STEPS)
        forced = model(source, free.words)
        assert torch.equal(free.logits, forced.logits)
        assert torch.equal(free.words, forced.words)
        if free.weights is not None:
            assert torch.equal(free.weights, forced.weights)

    def test_finished_sentences_stay_finished(self, model: RecurrentTranslator) -> None:
        """After its end a sentence is padding while the others go on, and is what it is alone."""
        source = words(READ, *range(1, 11))
        first = outspoken(model).translate(source, max_length=1).logits[:, 0]
        lead = first[:, CONFIG.end + 1 :].amax(dim=1) - first[:, CONFIG.end]
        # for half of them, the end comes at once
        model.word_projection.bias.data[CONFIG.end] += lead.quantile(0.5)
        together = model.translate(source, max_length=29)
        lengths = []
        for row, said in enumerate(together.words):
            ends = (said == CONFIG.end).nonzero()
            n = int(ends[0]) + 1 if len(ends) else len(said)
            assert (said[:n] >= CONFIG.unknown).all()
            assert (said[:n] != CONFIG.start).all()
            assert (said[n:] == CONFIG.pad).all()
            alone = model.translate(source[row : row + 1, : row + 1], max_length=29)
            assert torch.equal(alone.words[0], said[:n])
            lengths.append(n)
        assert min(lengths) == 1 < max(lengths) == together.words.shape[1]

    def test_it_stops(self) -> None:
        """At the end, at the length asked for, and never after the model's own."""
        model, source = translator(replace(CONFIG, max_length=17)), words(READ, 5, 5)
        model.word_projection.bias.data[CONFIG.end] = -99
        assert [model.translate(source, max_length=n).words.shape[1] for n in (1, 7, 29)] == [
            1,
            7,
            17,
        ]
        assert model.translate(source).words.shape[1] == 17
        model.word_projection.bias.data[CONFIG.end] = 99
        assert model.translate(source).words.tolist() == [[CONFIG.end]] * 2


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


@pytest.mark.usefixtures("as_installed")
class TestRefusals:
    """Impossible arguments are refused; the message names the expected and the given value."""

    def test_sizes(self) -> None:
        """Sizes below 1, names that are not there, a vocabulary without room for the special words."""
        for change, message in (
            ({"d_hidden": 0}, "d_hidden is too small: expected at least 1, got 0"),
            ({"d_embedding": -5}, "d_embedding is too small: expected at least 1, got -5"),
            ({"max_length": 0}, "max_length is too small: expected at least 1, got 0"),
            ({"attention": "cosine"}, "expected dot, scaled_dot, general, additive, got cosine"),
            ({"n_target_words": 4}, "must hold the special words: expected at least 5, got 4"),
            (
                {"end": 2},
                "special words must differ: expected 4 numbers from 0 on, got (0, 1, 2, 2)",
            ),
        ):
            with pytest.raises(ModelError, match=re.escape(message)):
                RecurrentTranslator(replace(CONFIG, **change))
        with pytest.raises(ModelError, match="max_length is too small: expected at least 1, got 0"):
            translator().translate(words(READ, 5), max_length=0)

    def test_words(self) -> None:
        """No words, too many, numbers of no word, padding before a word, another number of targets."""
        model, source, target = (
            translator(replace(CONFIG, max_length=11)),
            words(READ, 11),
            words(SAID, 7),
        )
        with pytest.raises(
            InputError, match="a sentence without words: expected at least 1, got 0"
        ):
            model(torch.zeros_like(source), target)
        with pytest.raises(TooLongError, match="too many words: expected at most 11, got 13"):
            model(words(READ, 13), target)
        with pytest.raises(ModelError, match="no word has this number: expected 0 to 22, got 23"):
            model(torch.full_like(source, 23), target)
        with pytest.raises(ModelError, match="no word has this number: expected 0 to 18, got -1"):
            model(source, torch.full_like(target, -1))
        with pytest.raises(ModelError, match="expected it after the words, got it before one"):
            model(torch.tensor([[0, 5]]), target)
