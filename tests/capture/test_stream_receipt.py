"""The receipt: what it prints, what it refuses, and how far each number format may be off."""

from __future__ import annotations

import math
import pkgutil
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from attnviz.capture.attend import attend
from attnviz.capture.observers import Batch, WeightCollector
from attnviz.capture.sources import huggingface as pretrained
from attnviz.capture.stream import ForwardPass, Layer, Scoring
from attnviz.capture.verification import EVERY_NUMBER, SUMS
from attnviz.errors import NotVerifiedError
from attnviz.text.messages import language
from attnviz.text.notes import proof

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attnviz.attention import Receipt
    from attnviz.capture.observers import Observer
    from tests.fixtures.zoo import Zoo

TEXT = "The animal didn't cross the street because it was too tired"
DTYPES = {"float64": 1e-12, "float32": 1e-5, "float16": 2e-3, "bfloat16": 1.5e-2}


def counted(
    native: Callable[..., Any], layer: int, change: Callable[[Tensor], Tensor]
) -> Callable[..., Any]:
    """A native implementation whose output is another in one layer."""
    calls = iter(range(99))

    def attention(*given: Any, **more: Any) -> tuple[Tensor, Tensor | None]:
        output, weights = native(*given, **more)
        return change(output) if next(calls) == layer else output, weights

    return attention


def plant(
    monkeypatch: pytest.MonkeyPatch, model: str, layer: int, change: Callable[[Tensor], Tensor]
) -> None:
    """Make the eager implementation of an architecture another in one layer."""
    path = f"transformers.models.{model}.modeling_{model}.eager_attention_forward"
    monkeypatch.setattr(path, counted(pkgutil.resolve_name(path), layer, change))


class TestRefusal:
    """A model whose attention is not the captured one."""

    @pytest.mark.parametrize("fused", [False, True])
    def test_unknown_term(self, *, zoo: Zoo, fused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        """Something added to the scores of layer 3 is found: the layer and the tolerance are named."""
        if fused:
            monkeypatch.setattr(pretrained, "EAGER_UP_TO", 0)
        # The first run of a model also compares it with itself, where a plant of one call would be found before.
        attend(TEXT, zoo.source("distilbert"))
        if fused:
            from transformers import AttentionInterface

            registered: Any = AttentionInterface._global_mapping
            monkeypatch.setitem(
                registered, "sdpa", counted(registered["sdpa"], 6, lambda output: output + 0.01)
            )
        else:
            plant(monkeypatch, "distilbert", 3, lambda output: output + 0.01)
        with pytest.raises(NotVerifiedError) as refused:
            attend(TEXT, zoo.source("distilbert"))
        assert re.fullmatch(
            r"refused, because layer 3 is not verified: its captured weights, or their products with its values, "
            r"differ by \d\.\de-0\d from the model's own \(tolerance 1\.0e-05 for float32\); it may compute "
            r"attention in a way attnviz does not know \(an extra term in its scores, or dropout\)",
            str(refused.value),
        )

    def test_unknown_keyword(self, zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
        """A bias under a name that attnviz does not know is refused, and the name is said."""
        from transformers.models.distilbert import modeling_distilbert

        native = modeling_distilbert.eager_attention_forward

        def biased(
            module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, **given: Any
        ) -> Any:
            alibi = given.pop("alibi")
            return native(
                module, query, key, value, alibi if mask is None else mask + alibi, **given
            )

        monkeypatch.setattr(modeling_distilbert, "eager_attention_forward", biased)
        source = zoo.source("distilbert")
        batch = source.encode([TEXT])
        alibi = -torch.arange(15.0).expand(1, 1, 15, 15)
        batch = replace(batch, inputs={**batch.inputs, "alibi": alibi})
        with pytest.raises(
            NotVerifiedError, match=r"layer 0 .*; it was given alibi, which attnviz does not know$"
        ):
            source.stream(batch, [])


@pytest.mark.parametrize("dtype", DTYPES)
class TestFormats:
    """Every number format has its tolerance, and the real model's weights keep it."""

    @pytest.mark.parametrize("fused", [False, True])
    def test_passes(
        self, *, zoo: Zoo, dtype: str, fused: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The real model passes with room to spare, eager and fused; the record is float32 in any case."""
        if fused:
            monkeypatch.setattr(pretrained, "EAGER_UP_TO", 0)
        record = attend(TEXT, zoo.source("real", dtype))
        assert record.receipt is not None
        assert (record.receipt.dtype, record.receipt.tolerance) == (dtype, DTYPES[dtype])
        assert record.receipt.max_difference < DTYPES[dtype] / 2
        assert record.weights.dtype == "float32"

    def test_refuses(self, zoo: Zoo, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """A planted error of a tenth of the output is refused, even where numbers are coarse."""
        attend(TEXT, zoo.source("real", dtype))  # compares the model with itself, as above
        plant(monkeypatch, "bert", 5, lambda output: output * 1.1)
        with pytest.raises(NotVerifiedError, match=rf"layer 5 .* \(tolerance \S+ for {dtype}\)"):
            attend(TEXT, zoo.source("real", dtype))


class TestLong:
    """Beyond some keys random sums of each row are compared, and the receipt says so."""

    @staticmethod
    def run(
        change: Callable[[Tensor], Tensor],
        n: int = EVERY_NUMBER + 1,
        width: int = 32,
        others: Sequence[Observer] = (),
    ) -> Receipt:
        """The receipt of a layer whose output was changed, where others look on too."""
        torch.manual_seed(0)
        query, key, value = (
            torch.randn(1, 2, 40, width),
            *(torch.randn(1, 2, n, width) for _ in range(2)),
        )
        output = scaled_dot_product_attention(query, key, value + 3)
        batch = Batch(
            sentences=(),
            inputs={},
            real=torch.ones(1, 40, dtype=torch.bool),
            real_keys=torch.ones(1, n) > 0,
        )
        run = ForwardPass(
            batch=batch, observers=[WeightCollector(memory=2**20), *others], native="sdpa"
        )
        output = change(output.transpose(1, 2).clone())
        run.add_layer(
            Layer(query=query, key=key, value=value + 3, output=output, scoring=Scoring())
        )
        return run.receipt("")

    def test_said(self) -> None:
        """In English and in Korean; of fewer keys every number is compared."""
        receipt = self.run(lambda output: output)
        assert receipt.sums == SUMS
        assert re.fullmatch(
            r"✓ verified \(only the output; largest difference \de-0[67], in 8 random sums of each row\)",
            str(receipt),
        )
        assert proof(receipt) == str(receipt)
        with language("ko"):
            assert proof(receipt).endswith(", 각 행의 무작위 합 8개로)")
        assert self.run(lambda output: output, n=EVERY_NUMBER).sums is None
        assert self.run(lambda output: output, width=SUMS).sums is None

    @pytest.mark.parametrize("number", range(0, 32, 5))
    def test_one_number(self, number: int) -> None:
        """A single wrong number is in every sum."""

        def change(output: Tensor) -> Tensor:
            output[0, 39, 1, number] += 0.01
            return output

        with pytest.raises(NotVerifiedError):
            self.run(change)

    def test_many(self) -> None:
        """All numbers wrong by as much, two rows exchanged, two heads exchanged, one number not finite."""
        for change in (
            lambda output: output + 0.01,
            lambda output: output[:, [1, 0, *range(2, 40)]],
            lambda output: output[:, :, [1, 0]],
            lambda output: output.index_put(
                (*map(torch.tensor, ([0], [7], [1], [3])),), torch.tensor(math.nan)
            ),
        ):
            with pytest.raises(NotVerifiedError):
                self.run(change)
