"""Three maps in one: why implementations hold query, key and value in a single matrix.

References:
    Radford et al. 2019, GPT-2, whose `c_attn` is such a map: https://github.com/openai/gpt-2
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attnviz.errors import ModelError


# x [W^Q W^K W^V] = [x W^Q, x W^K, x W^V]
def fuse(query_map: nn.Linear, key_map: nn.Linear, value_map: nn.Linear) -> nn.Linear:
    """One map from d_model to 3 h d_k that gives query, key and value side by side, in one multiplication.

    Raises:
        ModelError: the three maps differ in shape, or only some have a bias.
    """
    maps = (query_map, key_map, value_map)
    kinds = {(*m.weight.shape, "no bias" if m.bias is None else "bias") for m in maps}
    if len(kinds) > 1:
        raise ModelError(f"maps to be fused must be of one kind: expected one, got {sorted(kinds)}")
    bias = None if query_map.bias is None else torch.cat([m.bias for m in maps])
    return _linear(torch.cat([m.weight for m in maps]), bias)


def split(fused: nn.Linear) -> tuple[nn.Linear, nn.Linear, nn.Linear]:
    """The three maps that one fused map holds: the inverse of ``fuse``.

    Raises:
        ModelError: its output does not divide by three.
    """
    if fused.out_features % 3:
        raise ModelError(f"a fused map holds three: expected a width that 3 divides, got {fused.out_features}")
    biases = (None, None, None) if fused.bias is None else fused.bias.chunk(3)
    query_map, key_map, value_map = map(_linear, fused.weight.chunk(3), biases)
    return query_map, key_map, value_map


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    d_out, d_in = weight.shape
    # On the device without data, where no random numbers are drawn only to be overwritten.
    linear = nn.Linear(d_in, d_out, bias=bias is not None, device="meta")
    linear.weight = nn.Parameter(weight.detach().clone())
    if bias is not None:
        linear.bias = nn.Parameter(bias.detach().clone())
    return linear
