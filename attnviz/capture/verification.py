"""Verify captured weights against what the model itself computed, by head and row.

The weights times the values must give the layer's own output. That alone does not determine the weights: with more keys
than a value has numbers, other weights give the same product. So the weights are also compared with those that the
model's implementation of attention returns. If it returns none, it runs again with random values in place of the
model's own, and must give the same sums (Freivalds 1977, "Probabilistic machines can use less running time").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import torch
from jaxtyping import Bool, Float, Float32, Int64
from torch import Tensor

from attnviz.attention import TOLERANCE
from attnviz.capture.observers import CPU
from attnviz.errors import NotVerifiedError

if TYPE_CHECKING:
    from attnviz.capture.stream import Layer

# With up to EVERY_NUMBER keys, every number of an output is compared; with more, SUMS random sums of each row are. The
# errors of a row cancel out in one sum with a probability of at most 1/2, and in all eight with at most 1/2**8.
EVERY_NUMBER = 4096
SUMS = 8
# The rounding error of a score grows with the score; above this size it changes the weights by more than usual.
USUAL_SCORE = 16
SAMPLE = 256  # how many rows of a layer run again with random values
TOGETHER = 32  # how many of these run at a time: with fewer, fused attention takes longer for each

# Runs the model's own attention for rows of these numbers with the same values [key, d_v] for every head. A boolean or
# float mask [batch or 1, head or 1, row, key] tells which keys these rows see; None hides no key. Returns
# [batch, row, head, d_v].
Attend: TypeAlias = Callable[[Tensor, Tensor, Tensor | None], Tensor]
# Returns the mask of rows of these numbers, for the first keys up to this number, or None.
MaskOfRows: TypeAlias = Callable[[Tensor, int], Tensor | None]


class LayerCheck:
    """The comparison of one layer's weights with the model's own, a block of rows at a time.

    `real` is False for padding, which is not compared. With `by_sums`, random sums of the output are compared instead
    of every number. The number of the layer is the seed of all random numbers.
    """

    def __init__(self, layer: Layer, real: Bool[Tensor, "batch token"], *, by_sums: bool) -> None:
        self._layer, self._real, self._by_sums = layer, real, by_sums
        dtype = torch.promote_types(layer.query.dtype, torch.float32)
        self._is_coarse = layer.query.dtype != dtype  # a number format coarser than float32
        # The format in which the model computes its weights, which sets the tolerance. In float64 the softmax of most
        # decoders runs in float32, which the numbers tell.
        self.format, own = layer.query.dtype, layer.own_weights
        if (
            own is not None
            and own.dtype == torch.float64
            and torch.equal(own, own.float().double())
        ):
            self.format = torch.float32
        values, key_lengths = layer.value.to(dtype), layer.key.to(dtype).norm(dim=-1)
        n_shared = layer.query.shape[1] // layer.key.shape[1]  # query heads that share one key head
        if n_shared > 1:
            values = values.repeat_interleave(n_shared, dim=1)
            key_lengths = key_lengths.repeat_interleave(n_shared, dim=1)
        self._output, self._width = layer.output.to(dtype), values.shape[-1]
        # The product of the lengths of a query and a key is the largest score that they can have.
        self._query_lengths = layer.query.to(dtype).norm(dim=-1) * abs(layer.scaling)
        if by_sums:
            random_signs = signs((self._width, SUMS), layer.number).to(values)
            values, self._output = values @ random_signs, self._output @ random_signs
        # Two more columns hold the largest number of each value, and the length of its key. Weighted by a row, they
        # tell how large the rounding errors of the row may be.
        sizes = torch.stack([values.abs().amax(dim=-1), key_lengths], dim=-1)
        self._values = torch.cat([values, sizes], dim=-1)
        self._runs_again = own is None and layer.attend is not None
        if self._runs_again:
            self._random_values = signs((layer.key.shape[2], self._width), layer.number).to(values)
            self._sampled = _sample(layer.query.shape[2], layer.number)
            # Of the rows that have not run again yet: their numbers, sums with random values and sizes of scores.
            self._waiting: list[tuple[Tensor, Tensor, Tensor]] = []
        self.difference = 0.0  # the largest so far, as a share (see `compare`)
        # The largest difference of sums with random values. These are computed in float32 at least, whatever the format
        # of the model, and so are held to the tolerance of that format.
        self.difference_of_sums = 0.0

    @property
    def proves_weights(self) -> bool:
        """Whether the weights themselves are compared, and not only their products with the values."""
        return self._layer.own_weights is not None or self._layer.attend is not None

    @property
    def n_rows_of_weights(self) -> int | None:
        """The number of rows in which the weights themselves are compared; None if in all, or in none."""
        return SAMPLE if self._runs_again and self._output.shape[1] > SAMPLE else None

    def compare(
        self,
        first: int,
        first_key: int,
        block: Float[Tensor, "batch head rows seen"],
        mask_of_rows: MaskOfRows,
    ) -> None:
        """Compare the rows of a block, whose weights on the keys before `first_key` are 0.

        The difference of an output is a share of the weighted sum of the values' largest numbers. The difference of
        weights is the sum of all differences in a row, or a random sum of them; the row itself sums to 1. Both are
        divided by the size of the row's scores, if that is unusual and the scores are not finer than the rest.
        """
        rows = slice(first, first + block.shape[2])
        weights, values = block[..., first_key:], self._values[:, :, first_key : block.shape[3]]
        # Products with few columns run faster, and in float32 more precisely, on the transposed matrices.
        product = (values.mT @ weights.mT).mT if self._by_sums else weights @ values
        context, value_size, key_length = product[..., :-2], product[..., -2], product[..., -1]
        score_size = (self._query_lengths[:, :, rows] * key_length / USUAL_SCORE).clamp_min(1)
        # In coarser formats the rounding of scores in float32 is small beside that of everything else.
        slack = torch.ones_like(score_size) if self._is_coarse else score_size
        error = (context - self._output[:, rows].transpose(1, 2)).abs().amax(dim=-1)
        # A head whose values are all 0 has the difference 0, not an undefined one.
        value_size = value_size.clamp_min(torch.finfo(value_size.dtype).tiny)
        share = error / value_size / slack
        self.difference = _larger(self.difference, share, self._real[:, rows])
        if self._layer.own_weights is not None:
            own = self._layer.own_weights[:, :, rows, : block.shape[3]]
            rounded = block.to(own.dtype)  # the model rounded its weights to its own number format
            # Nearly all implementations compute the very same numbers, which is quickly seen.
            if not torch.equal(rounded, own):
                error = (rounded - own).abs().sum(dim=-1, dtype=block.dtype)
                self.difference = _larger(self.difference, error / slack, self._real[:, rows])
        elif self._runs_again:
            self._run_again(rows, block, score_size, mask_of_rows)

    def _run_again(
        self,
        rows: slice,
        block: Float[Tensor, "batch head rows seen"],
        score_size: Float[Tensor, "batch head rows"],
        mask_of_rows: MaskOfRows,
    ) -> None:
        """Run the model's own attention with random values, on sampled rows of some blocks, and compare the sums."""
        assert self._layer.attend is not None
        chosen = self._sampled[(self._sampled >= rows.start) & (self._sampled < rows.stop)]
        places, random_values = chosen - rows.start, self._random_values[: block.shape[3]]
        sums = block[:, :, places] @ random_values
        self._waiting.append((chosen, sums, score_size[:, :, places]))
        numbers, all_sums, sizes = zip(*self._waiting, strict=True)
        waiting = torch.cat(numbers)
        is_last = rows.stop == self._output.shape[1]
        if not len(waiting) or (len(waiting) < TOGETHER and not is_last):
            return
        self._waiting = []
        own = self._layer.attend(waiting, random_values, mask_of_rows(waiting, block.shape[3]))
        error = (torch.cat(all_sums, dim=2) - own.transpose(1, 2)).abs().amax(dim=-1)
        error /= torch.cat(sizes, dim=2)
        self.difference_of_sums = _larger(self.difference_of_sums, error, self._real[:, waiting])

    def expect_equal(self, unknown: Sequence[str] = ()) -> None:
        """Raise NotVerifiedError if a difference is above the tolerance, or not a finite number.

        `unknown` holds keywords of the layer that attnviz does not know.
        """
        number_format, difference = self.format, self.difference
        subject = "its captured weights, or their products with its values,"
        if difference <= tolerance_of(number_format):
            number_format, difference = self._values.dtype, self.difference_of_sums
            subject = "sums of its captured weights"
        tolerance = tolerance_of(number_format)
        if difference <= tolerance:
            return
        if math.isfinite(difference):
            fault = (
                f"{subject} differ by {difference:.1e} from the model's own (tolerance {tolerance:.1e} for "
                f"{name_of_format(number_format)})"
            )
            reason = "it may compute attention in a way attnviz does not know (an extra term in its scores, or dropout)"
            if unknown:
                reason = f"it was given {', '.join(unknown)}, which attnviz does not know"
        else:
            fault = "its output, or its captured weights times its values, is not a finite number"
            reason = "its weights may be damaged, or too large for this number format (try dtype float32)"
        raise NotVerifiedError(
            f"refused, because layer {self._layer.number} is not verified: {fault}; {reason}"
        )


def _larger(
    largest: float,
    differences: Float[Tensor, "batch head row"],
    real: Bool[Tensor, "batch row"],
) -> float:
    """Return the maximum of `largest` and the differences of all real rows, or NaN if any of these is NaN.

    Python's `max` could drop a NaN, and an undefined difference would then pass for a small one.
    """
    by_row = differences.amax(dim=1)[real.to(differences.device)]
    top = by_row.max().item() if by_row.numel() else 0.0
    return top if math.isnan(top) or top > largest else largest


def _sample(n_rows: int, seed: int) -> Int64[Tensor, " row"]:
    """Return the numbers of the sampled rows: all, or a random one of each of `SAMPLE` equal parts."""
    if n_rows <= SAMPLE:
        return torch.arange(n_rows, device=CPU)
    generator = torch.Generator().manual_seed(seed)
    places = torch.rand(SAMPLE, dtype=torch.float64, generator=generator, device=CPU)
    return ((torch.arange(SAMPLE, device=CPU) + places) * n_rows / SAMPLE).long()


def signs(shape: tuple[int, int], seed: int) -> Float32[Tensor, "n m"]:
    """Return random signs, 1 and -1, of this shape."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, shape, generator=generator, device=CPU).float() * 2 - 1


def tolerance_of(dtype: torch.dtype) -> float:
    """Return the tolerance of a number format; unknown formats use float32's."""
    return TOLERANCE.get(name_of_format(dtype), TOLERANCE["float32"])


def name_of_format(dtype: torch.dtype) -> str:
    """Return the name of a number format, such as ``float32``."""
    return str(dtype).removeprefix("torch.")
