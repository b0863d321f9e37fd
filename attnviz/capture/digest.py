"""What tells a model's weights from others, whatever the model is called."""

from __future__ import annotations

from hashlib import blake2b

import torch
from torch import nn

SAMPLED = 4096
"""Numbers looked at of each tensor, evenly spaced: any training changes nearly all of them."""


def digest_of(model: nn.Module) -> str:
    """A short digest of a model's weights: of the name, shape, number format and some numbers of every tensor.

    Models of billions of weights take seconds to read whole, and a thousandth of that so.
    """
    found = blake2b(digest_size=8)
    for name, tensor in sorted(model.state_dict().items()):
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        flat = tensor.detach().flatten()
        places = torch.linspace(0, max(len(flat) - 1, 0), min(SAMPLED, len(flat)), dtype=torch.float64).long()
        found.update(flat[places.to(flat.device)].to("cpu", torch.float64).numpy().tobytes())
    return found.hexdigest()
