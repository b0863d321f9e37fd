"""What a receipt proves: errors planted in captured weights are refused, whatever the values are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor

import attnviz
from attnviz.capture.attend import attend
from attnviz.capture.observers import Batch
from attnviz.capture.sources import huggingface
from attnviz.capture.sources.tracing import attend_fused
from attnviz.capture.stream import ForwardPass, Layer, Scoring
from attnviz.capture.verification import LayerCheck
from attnviz.errors import NotVerifiedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.attention import Receipt
    from tests.fixtures.zoo import Zoo

TEXT = "The animal didn't cross the street because it was too tired"


def with_scaling(layer: Layer, factor: float) -> Layer:
    """Multiply the scaling of the scores."""
    return replace(layer, scoring=replace(layer.scoring, scaling=layer.scaling * factor))


def with_mask(layer: Layer, mask: Tensor) -> Layer:
    """Replace the mask."""
    return replace(layer, scoring=replace(layer.scoring, mask=mask, causal=False))


def last_key_hidden(layer: Layer) -> Layer:
    """Hide the last key from all queries."""
    n_queries, n_keys = layer.query.shape[2], layer.key.shape[2]
    mask = torch.ones(1, 1, n_queries, n_keys, dtype=torch.bool)
    mask[..., -1] = False
    return with_mask(layer, mask)


def causal(layer: Layer) -> Layer:
    """Hide later keys."""
    n_queries, n_keys = layer.query.shape[2], layer.key.shape[2]
    return with_mask(layer, torch.ones(1, 1, n_queries, n_keys, dtype=torch.bool).tril())


def small_bias(layer: Layer) -> Layer:
    """Add 0.05 to the scores of the first key."""
    bias = torch.zeros(1, 1, layer.query.shape[2], layer.key.shape[2], dtype=layer.query.dtype)
    bias[..., 0] = 0.05
    return replace(layer, scoring=replace(layer.scoring, bias=bias))


def one_row_changed(layer: Layer) -> Layer:
    """Take a tenth off the query of one token in one head."""
    query = layer.query.clone()
    query[:, 3, 5] *= 0.9
    return replace(layer, query=query)


def fewer_numbers(layer: Layer) -> Layer:
    """Leave out the last number of each query, as a wrong d_k would."""
    query = layer.query.clone()
    query[..., -1] = 0
    return replace(layer, query=query)


ERRORS: dict[str, Callable[[Layer], Layer]] = {
    "scale of 1.001": partial(with_scaling, factor=1.001),
    "scale of 0.99": partial(with_scaling, factor=0.99),
    "no scaling": lambda layer: replace(layer, scoring=replace(layer.scoring, scaling=1.0)),
    "queries of 1.02": lambda layer: replace(layer, query=layer.query * 1.02),
    "queries of 1.005": lambda layer: replace(layer, query=layer.query * 1.005),
    "queries of 10,000": lambda layer: replace(layer, query=layer.query * 1e4),
    "keys of 1.02": lambda layer: replace(layer, key=layer.key * 1.02),
    "keys of the next token": lambda layer: replace(layer, key=layer.key.roll(1, dims=2)),
    "queries of the next token": lambda layer: replace(layer, query=layer.query.roll(1, dims=2)),
    "heads in another order": lambda layer: replace(
        layer, query=layer.query.roll(1, dims=1), key=layer.key.roll(1, dims=1)
    ),
    "two heads exchanged": lambda layer: replace(
        layer, query=layer.query[:, [1, 0, *range(2, layer.query.shape[1])]]
    ),
    "a key hidden": last_key_hidden,
    "causal": causal,
    "a bias overlooked": small_bias,
    "one row of one head": one_row_changed,
    "a number of the queries left out": fewer_numbers,
    "soft cap": lambda layer: replace(layer, scoring=replace(layer.scoring, softcap=30.0)),
    "a sink": lambda layer: replace(
        layer, scoring=replace(layer.scoring, sinks=torch.full((layer.query.shape[1],), -1.0))
    ),
}
"""What a wrong capture would pass on as a layer of MiniLM, which has none of these."""


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("error", ERRORS)
def test_planted_errors(
    *, zoo: Zoo, error: str, dtype: Any, fused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is refused in every number format, by the eager and by the fused implementation."""
    add_layer = ForwardPass.add_layer
    monkeypatch.setattr(
        ForwardPass,
        "add_layer",
        lambda run, layer, unknown=(): add_layer(run, ERRORS[error](layer), unknown),
    )
    if fused:
        monkeypatch.setattr(huggingface, "EAGER_UP_TO", 0)
    with pytest.raises(NotVerifiedError, match="layer 0 is not verified"):
        attend(TEXT, zoo.source("real", dtype))


def run_layer(layer: Layer) -> Receipt:
    """The receipt of one layer in a run of its own."""
    n_queries, n_keys = layer.query.shape[2], layer.key.shape[2]
    real, real_keys = (torch.ones(1, n, dtype=torch.bool) for n in (n_queries, n_keys))
    batch = Batch(sentences=(), inputs={}, real=real, real_keys=real_keys)
    run = ForwardPass(batch=batch, observers=[], native="sdpa")
    run.add_layer(layer)
    return run.receipt("made up")


def fused_layer(query: Tensor, key: Tensor, value: Tensor) -> Layer:
    """A layer of the fused function, which can run again."""
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    return Layer(
        query=query,
        key=key,
        value=value,
        output=output.transpose(1, 2),
        scoring=Scoring(),
        attend=partial(attend_fused, query, key, None),
    )


class TestSameProduct:
    """Other weights may have the same product with the values as the model's own."""

    @staticmethod
    def check(*, runs_again: bool) -> LayerCheck:
        """Compare weights that are up to 0.06 off, with 37 tokens and values of 32 numbers."""
        torch.manual_seed(0)
        query, key, value = (torch.randn(1, 1, 37, 32) for _ in range(3))
        weights = (query @ key.mT / 32**0.5).softmax(dim=-1)
        # Directions that change neither the product with the values nor the sum of a row.
        kept = torch.cat([value[0, 0], torch.ones(37, 1)], dim=1)
        free = torch.linalg.svd(kept.T).Vh[33:]
        wrong = weights + 0.2 * free[0]
        assert (wrong - weights).abs().max() > 0.06
        layer = Layer(
            number=0,
            query=query,
            key=key,
            value=value,
            output=(weights @ value).transpose(1, 2),
            scoring=Scoring(),
            own_weights=None if runs_again else weights,
            attend=partial(attend_fused, query, key, None) if runs_again else None,
        )
        check = LayerCheck(layer, torch.ones(1, 37, dtype=torch.bool), by_sums=False)
        check.compare(0, 0, wrong, lambda *_: None)
        return check

    @pytest.mark.parametrize("runs_again", [False, True])
    def test_is_refused(self, *, runs_again: bool) -> None:
        """By the weights that the implementation returned, or by running it with random values."""
        check = self.check(runs_again=runs_again)
        assert check.proves_weights
        with pytest.raises(NotVerifiedError):
            check.expect_equal()


class TestHeads:
    """Each head and row is held to its own size."""

    def test_a_loud_neighbour(self) -> None:
        """Columns shifted in a quiet head are found beside a head that is 100,000 times louder."""
        torch.manual_seed(0)
        query, key, value = (torch.randn(1, 2, 9, 16) for _ in range(3))
        value[:, 1] *= 1e5
        layer = fused_layer(query, key, value)
        assert run_layer(layer).max_difference < 1e-6
        shifted = key.clone()
        shifted[:, 0] = key[:, 0].roll(1, dims=1)
        for attend_again in (layer.attend, None):
            with pytest.raises(NotVerifiedError):
                run_layer(replace(layer, key=shifted, attend=attend_again))

    def test_values_of_zero(self) -> None:
        """A head whose values are all 0 has a receipt for its weights, and none for wrong ones."""
        torch.manual_seed(0)
        query, key, value = (torch.randn(1, 2, 9, 16) for _ in range(3))
        value[:, 0] = 0
        layer = fused_layer(query, key, value)
        receipt = run_layer(layer)
        assert receipt.proves == "weights"
        assert str(receipt).startswith("✓ verified (largest difference ")
        with pytest.raises(NotVerifiedError):
            run_layer(replace(layer, key=key.roll(1, dims=2)))

    def test_only_the_output(self) -> None:
        """What cannot run again, and returns no weights, is proved as a product only, and the receipt says so."""
        torch.manual_seed(0)
        layer = fused_layer(*(torch.randn(1, 2, 9, 16) for _ in range(3)))
        receipt = run_layer(replace(layer, attend=None))
        assert receipt.proves == "output"
        assert str(receipt).startswith("✓ verified (only the output; largest difference ")

    def test_large_scores(self) -> None:
        """Scores of 500 are rounded 30 times as much as usual ones, and pass."""
        torch.manual_seed(0)
        query, key, value = (torch.randn(1, 2, 64, 128) for _ in range(3))
        assert run_layer(fused_layer(6 * query, 6 * key, value)).max_difference < 5e-6


@pytest.mark.parametrize(("n_tokens", "rows"), [(256, None), (300, 256)])
def test_a_receipt_says_in_how_many_rows_the_weights_were_compared(
    n_tokens: int, rows: int | None
) -> None:
    """A fused implementation runs again for a sample of the rows of a long text, and for all of a short one."""
    module = torch.nn.TransformerEncoderLayer(16, 2, batch_first=True).eval()
    with torch.no_grad(), attnviz.watch(module) as seen:
        module(torch.randn(1, n_tokens, 16))
    receipt = seen.attention().receipt
    assert receipt is not None
    assert receipt.rows == rows
    assert ("weights in 256 rows of each layer" in str(receipt)) == (rows is not None)
