"""Proof that what was captured is what the model computed, and the digest that says which model it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b

import torch
from jaxtyping import Float32
from torch import Tensor, nn

from attnviz.errors import NotVerifiedError

TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
"""The largest difference accepted between weights times values and the native output, per number format: about ten
times what rounding alone makes. It is relative to the layer's largest output, or sum, where that exceeds 1."""
EVERY_NUMBER, SUMS = 4096, 8
"""Keys up to which every number of an output is compared; beyond, this many random sums of each row. Wrong numbers of a
row cancel out in one sum with a chance of a half at most, and so in all of them once in 2**8 times."""


def signs(width: int, layer: int) -> Float32[Tensor, "d_v sums"]:
    """With which signs the numbers of a row are added up, for each sum: at random, of a layer always the same."""
    chance = torch.Generator().manual_seed(layer)
    return torch.randint(0, 2, (width, SUMS), generator=chance).float() * 2 - 1


def tolerance_of(dtype: torch.dtype) -> float:
    """The tolerance of a number format, relative to a layer's largest output; of one not listed, that of float32."""
    return TOLERANCE.get(dtype, TOLERANCE[torch.float32])


def check_layer(layer: int, difference: float, scale: float, dtype: torch.dtype, unknown: Sequence[str] = ()) -> None:
    """Raise NotVerifiedError for a layer whose difference is above the tolerance, or not a finite number.

    `difference` is the largest one between weights times values and the native output, `scale` that output's largest
    number, at least 1; `unknown` are keywords of the layer that attnviz does not know.
    """
    tolerance = tolerance_of(dtype) * scale
    if difference <= tolerance < math.inf:
        return
    if math.isfinite(difference):
        fault = (
            f"its captured weights times its values differ by {difference:.1e} from the model's own output "
            f"(tolerance {tolerance:.1e} for {str(dtype).removeprefix('torch.')})"
        )
        why = "it may compute attention in a way attnviz does not know (an extra term in its scores, or dropout)"
        why = f"it was given {', '.join(unknown)}, which attnviz does not know" if unknown else why
    else:
        fault = "its output, or its captured weights times its values, is not a finite number"
        why = "its weights may be damaged, or too large for this number format (try dtype float32)"
    raise NotVerifiedError(f"refused, because layer {layer} is not verified: {fault}; {why}")


def digest_of(model: nn.Module) -> str:
    """A short digest of every byte of a model's weights, with names, shapes and formats; takes seconds a gigabyte."""
    found = blake2b(digest_size=8)
    for name, tensor in sorted(model.state_dict().items()):
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return found.hexdigest()
