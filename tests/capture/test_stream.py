"""From queries and keys to weights: the formula by hand, a block of rows at a time, and each layer proved."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import pad

from attnviz.attention import Receipt
from attnviz.capture import stream
from attnviz.capture.observers import Batch, Sentence
from attnviz.capture.source import open_source
from attnviz.capture.stream import ForwardPass, Layer, Scoring, weights_in_blocks
from attnviz.errors import NotVerifiedError

E = math.e
BATCH, HEADS, GROUPS, TOKENS, WIDTH = 2, 6, 3, 13, 7


def numbers(*shape: int, seed: int = 5) -> Tensor:
    """Normal numbers, the same each time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def whole(query: Tensor, key: Tensor, scoring: Scoring) -> Tensor:
    """All rows put together again, after a look at where each block says it begins."""
    blocks = [
        (first, pad(seen, (0, key.shape[2] - seen.shape[3])).clone())
        for first, _, seen in weights_in_blocks(query, key, scoring)
    ]
    starts = [first for first, _ in blocks]
    lengths = [block.shape[2] for _, block in blocks]
    assert starts == [sum(lengths[:index]) for index in range(len(lengths))]
    return torch.cat([block for _, block in blocks], dim=2)


def only(query: list[list[float]], key: list[list[float]], **scoring: Any) -> list[list[float]]:
    """One head of one sentence, worked out by hand."""
    weights = whole(torch.tensor([[query]]), torch.tensor([[key]]), Scoring(**scoring))
    rows: list[list[float]] = weights[0, 0].tolist()
    return rows


QUERY, KEY = [[1.0, 0.0], [0.0, 2.0]], [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
"""Scores [[1, 0, 0], [0, 2, 0]]: a small sum that can be written out."""


class TestFormula:
    """Weights written out."""

    def test_plain(self) -> None:
        """Each row is e to the scores, divided by their sum."""
        expected = [
            [E / (E + 2), 1 / (E + 2), 1 / (E + 2)],
            [1 / (E**2 + 2), E**2 / (E**2 + 2), 1 / (E**2 + 2)],
        ]
        for row, wanted in zip(only(QUERY, KEY, scaling=1.0), expected, strict=True):
            assert row == pytest.approx(wanted)

    def test_scaled(self) -> None:
        """Unless the model says otherwise, scores are divided by the root of the width."""
        assert only([[2.0, 0, 0, 0]], [[1.0, 0, 0, 0], [0.0, 0, 0, 0]])[0] == pytest.approx(
            [E / (E + 1), 1 / (E + 1)]
        )

    def test_softcap(self) -> None:
        """A cap of 1 makes tanh(1) of a score of 1."""
        top = math.exp(math.tanh(1))
        assert only(QUERY, KEY, scaling=1.0, softcap=1.0)[0] == pytest.approx(
            [top / (top + 2), *[1 / (top + 2)] * 2]
        )

    def test_bias(self) -> None:
        """A bias is added to the scores: one of minus 1 takes a score of 1 back."""
        bias = torch.tensor([[[[-1.0, 0, 0]]]])
        assert only(QUERY, KEY, scaling=1.0, bias=bias)[0] == pytest.approx([1 / 3] * 3)

    def test_sink(self) -> None:
        """A sink with score 1 takes e from the sum, and is then dropped."""
        weights = only(QUERY, KEY, scaling=1.0, sinks=torch.tensor([1.0]))
        assert weights[0] == pytest.approx([E / (2 * E + 2), 1 / (2 * E + 2), 1 / (2 * E + 2)])

    def test_hidden_is_hidden(self) -> None:
        """Real scores of -110,208 have been seen: next to one, a hidden key still has weight 0."""
        hidden = torch.tensor([[[[True, False]]]])
        assert only([[1.0]], [[-110_208.0], [3.0]], scaling=1.0, mask=hidden) == [[1.0, 0.0]]

    def test_nothing_to_look_at(self) -> None:
        """A row that may look nowhere is all zeros, not NaN."""
        nowhere = torch.tensor([[[[False, False, False], [True, False, False]]]])
        assert only(QUERY, KEY, scaling=1.0, mask=nowhere) == [[0, 0, 0], [1, 0, 0]]

    def test_causal(self) -> None:
        """A decoder's first row looks at itself, its second at both."""
        rows = only(QUERY, KEY[:2], scaling=1.0, causal=True)
        assert rows[0] == [1, 0]
        assert rows[1] == pytest.approx([1 / (E**2 + 1), E**2 / (E**2 + 1)])

    def test_groups(self) -> None:
        """Heads 0 and 1 share the first key head, 2 and 3 the second."""
        query, key = numbers(1, 4, 3, WIDTH), numbers(1, 2, 3, WIDTH, seed=6)
        grouped = whole(query, key, Scoring())
        spread = whole(query, key[:, [0, 0, 1, 1]], Scoring())
        assert torch.equal(grouped, spread)

    def test_rounded(self) -> None:
        """An eager model in bfloat16 cannot tell a score of 33.3125 from one of 33.25."""
        query, key = torch.ones(1, 1, 1, 3), torch.tensor([[[[33.25, 0, 0], [33.25, 0.0625, 0]]]])
        query, key = query.bfloat16(), key.bfloat16()
        exact, rounded = (
            whole(query, key, Scoring(scaling=1.0, rounded=rounded)) for rounded in (False, True)
        )
        assert exact.flatten().tolist() == pytest.approx(
            [1 / (1 + E**0.0625), E**0.0625 / (1 + E**0.0625)]
        )
        assert rounded.flatten().tolist() == [0.5, 0.5]
        assert rounded.dtype == torch.float32

    def test_rounded_scores_in_a_window(self) -> None:
        """Weights of rounded scores are in float32, also if a window hides the first keys from all rows."""
        query, key = torch.ones(1, 1, 1, 1).bfloat16(), torch.zeros(1, 1, 4, 1).bfloat16()
        window = torch.tensor([[[[False, True, True, True]]]])
        weights = whole(query, key, Scoring(mask=lambda first, last: window, rounded=True))
        assert weights.flatten().tolist() == pytest.approx([0, 1 / 3, 1 / 3, 1 / 3], abs=1e-7)

    @pytest.mark.parametrize(
        ("given", "computed"),
        [
            (torch.float16, torch.float32),
            (torch.bfloat16, torch.float32),
            (torch.float32, torch.float32),
            (torch.float64, torch.float64),
        ],
    )
    def test_precision(self, given: torch.dtype, computed: torch.dtype) -> None:
        """Weights are computed in float32 at least, and in float64 where the model is."""
        query = numbers(1, 1, 2, WIDTH).to(given)
        assert whole(query, query, Scoring()).dtype == computed


SCORINGS = {
    "plain": Scoring(),
    "causal": Scoring(causal=True),
    "softcap": Scoring(softcap=0.7),
    "sinks": Scoring(sinks=numbers(HEADS)),
    "mask of each row": Scoring(mask=numbers(BATCH, 1, TOKENS, TOKENS) > -1),
    "mask of all rows": Scoring(mask=(numbers(BATCH, 1, 1, TOKENS) > -1)),
    "mask to add": Scoring(mask=numbers(BATCH, 1, TOKENS, TOKENS)),
    "bias": Scoring(bias=numbers(1, HEADS, TOKENS, TOKENS)),
    "all": Scoring(
        scaling=0.3,
        softcap=0.7,
        sinks=numbers(HEADS),
        bias=numbers(1, HEADS, TOKENS, TOKENS),
        mask=numbers(BATCH, 1, TOKENS, TOKENS) > -1,
    ),
}


@pytest.mark.parametrize("scoring", SCORINGS.values(), ids=SCORINGS)
@pytest.mark.parametrize("rows", [0, 1, 2, 5, 12, 13, 99])
def test_blocks_are_the_whole(scoring: Scoring, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows a block has, the weights are the same; a block has one row at least."""
    query, key = numbers(BATCH, HEADS, TOKENS, WIDTH), numbers(BATCH, GROUPS, TOKENS, WIDTH, seed=6)
    one = whole(query, key, scoring)
    monkeypatch.setattr(stream, "BLOCK_BYTES", rows * BATCH * HEADS * TOKENS * 4 + 3)
    many = whole(query, key, scoring)
    assert len(list(weights_in_blocks(query, key, scoring))) == math.ceil(TOKENS / max(1, rows))
    torch.testing.assert_close(many, one, rtol=0, atol=1e-6)


def batch_of(*lengths: int) -> Batch:
    """Sentences of these lengths; nothing but their padding matters."""
    sentence = Sentence(text="", pair=None, tokens=())
    real = torch.arange(TOKENS) < torch.tensor(lengths)[:, None]
    return Batch(sentences=(sentence,) * len(lengths), inputs={}, real=real, real_keys=real)


def layer_of(number: int) -> Layer:
    """A layer with its correct output."""
    query, key = numbers(BATCH, HEADS, TOKENS, WIDTH), numbers(BATCH, GROUPS, TOKENS, WIDTH, seed=6)
    value = numbers(BATCH, GROUPS, TOKENS, 5, seed=7)
    output = whole(query, key, Scoring()) @ value.repeat_interleave(HEADS // GROUPS, dim=1)
    output = output.transpose(1, 2)
    return Layer(number=number, query=query, key=key, value=value, output=output, scoring=Scoring())


def receipt_of(place: tuple[Any, ...], error: float, number: int = -1) -> Receipt:
    """The receipt of a layer to whose output an error was added at one place, for sentences of 13 and 7 tokens."""
    layer = layer_of(number)
    layer.output[place] += error
    run = ForwardPass(batch=batch_of(13, 7), observers=[], native="eager")
    run.add_layer(layer)
    return run.receipt("made-up")


class TestRun:
    """A forward pass watched."""

    def test_difference(self) -> None:
        """An error planted in one number of the output is on the receipt, as a share of the values."""
        receipt = receipt_of((1, 4, 3, 2), 7e-6)
        assert 2e-6 < receipt.max_difference < 7e-6
        assert (receipt.native, receipt.dtype, receipt.tolerance) == ("eager", "float32", 1e-5)

    def test_any_row_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """In whichever block an error is, it is found, and the layer named."""
        monkeypatch.setattr(stream, "BLOCK_BYTES", 1)
        for row in (0, 6, 12):
            with pytest.raises(
                NotVerifiedError,
                match=r"layer 3 .* differ by \d\.\de-03 .* \(tolerance 1\.0e-05 ",
            ):
                receipt_of((0, row, 5, 4), 0.01, number=3)

    def test_padding_does_not_count(self) -> None:
        """Numbers at padding do not matter, not even NaN."""
        assert receipt_of((1, slice(7, None)), math.nan).max_difference < 1e-6

    @pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
    def test_not_a_number(self, broken: float) -> None:
        """NaN and infinity are refused, whichever row they are in: neither passes for a small difference."""
        for row in (0, 12):
            with pytest.raises(
                NotVerifiedError, match=r"layer 0 is not verified: .* is not a finite number"
            ):
                receipt_of((0, row, 0, 0), broken)


@pytest.mark.parametrize(
    "name", ["real", "toy", "toy-decoder", "toy-seq2seq", "toy-transformer", "toy-random"]
)
def test_a_model_has_one_digest(name: str, real_model: str) -> None:
    """Loaded twice it is the same; in another number format, with random weights, or trained on it is another."""
    model = real_model if name == "real" else name
    source = open_source(model)
    digest = source.digest()
    assert digest == open_source(model).digest()
    others = {
        source.untrained().digest(),
        source.untrained(seed=1).digest(),
        open_source(model, dtype="float64").digest(),
    }
    assert len({digest, *others}) == 4
