"""What tells a model's weights from others, whatever the model is called."""

from __future__ import annotations

from hashlib import blake2b

import torch
from torch import nn


def digest_of(model: nn.Module) -> str:
    """A short digest of all of a model's weights, with their names, shapes and number formats.

    Every byte is read, seconds for each gigabyte: whoever changes a single row of embeddings has another model.
    """
    found = blake2b(digest_size=8)
    for name, tensor in sorted(model.state_dict().items()):
        found.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        found.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return found.hexdigest()
