"""What stands between a projection and the query or key that attention reads: a norm of each head, a rotation, or both.

Rotary positions turn pairs of a query's and a key's numbers by angles that grow with the position (Su et al. 2021,
"RoFormer", equations 13 to 15). No family is named: all heads of a layer are turned by the same angles, so these are
read off what went in and what came out, and it is a rotation only if one angle for each token and pair makes all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from torch import Tensor

from attnviz.capture.projections import KeepProjections, Projection, is_linear, maker_of, same
from attnviz.walkthroughs.arithmetic import pairs, rotate
from attnviz.walkthroughs.capture.parts import Norm, may_be_norm, read_norm
from attnviz.walkthroughs.capture.run import numbers

CLOSE = 1e-4
"""How far turned numbers may be from the model's, relative to the largest."""
STEADY = 1e-2
"""How far an angle may be from position times frequency, in radians."""

Heads = Float64[np.ndarray, "head token d"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotation:
    """How rotary positions turn the rows of a layer's heads."""

    angles: Float64[np.ndarray, "token pair"]  # in radians; a row's further columns stay as they are
    distance: int  # between the two columns of a pair
    scale: float  # what every number is multiplied with besides; mostly 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """How a layer's queries, keys or values are made."""

    projection: Projection
    before: Tensor  # what the projection makes of it: [batch, head, token, d]
    norm: Norm | None = None  # of each head's rows, where one follows
    rotation: Rotation | None = None  # what follows then


def makers(keep: KeepProjections) -> tuple[Made | None, Made | None, Made | None]:
    """How a layer's queries, keys and values are made; None where it is not found."""
    layer = keep.layer
    query, key, value, _ = keep.projections()
    ways = ((query, layer.query), (key, layer.key), (value, layer.value))
    made = [next(_turned(keep, own), None) if one is None else Made(projection=one, before=own) for one, own in ways]
    return made[0], made[1], made[2]


def _turned(keep: KeepProjections, own: Tensor) -> Iterator[Made]:
    """Ways to make this [batch, head, token, d] of what a projection made, or of a norm of that."""
    for before, heads, norm in _candidates(keep, own):
        rotation = None if same(heads, own) else rotation_between(numbers(heads[0]), numbers(own[0]))
        found = maker_of(keep.before, before) if rotation is not None or heads is not before else None
        if found is not None and (rotation is not None or same(heads, own)):
            yield Made(projection=found, before=before, norm=norm, rotation=rotation)


def _candidates(keep: KeepProjections, own: Tensor) -> Iterator[tuple[Tensor, Tensor, Norm | None]]:
    """What projections made of as many heads, and norms of it: before the norm, behind it, and the norm."""
    batch, n_heads, n_tokens, d = own.shape
    size = n_heads * d
    for call in reversed(keep.before):
        if is_linear(call.module) and call.made.shape[1] == n_tokens:
            for first in range(0, call.made.shape[2] - size + 1, size):  # one fused projection may make all three
                heads = call.made[:, :, first : first + size].reshape(batch, n_tokens, n_heads, d).transpose(1, 2)
                yield heads, heads, None
        elif may_be_norm(call) and call.made.shape == (batch, n_tokens * n_heads, d) and (norm := read_norm(call)):
            for one, other, axis in ((n_tokens, n_heads, 1), (n_heads, n_tokens, 2)):  # heads within tokens, or not
                given, made = (x.reshape(batch, one, other, d).transpose(axis, 2) for x in (call.given, call.made))
                yield given, made, norm


def rotation_between(before: Heads, behind: Heads) -> Rotation | None:
    """The rotation that makes one of the other, the same for all heads; None where there is none.

    The two columns of a pair are neighbours, or half of the turned columns apart; columns behind those stay.
    """
    first, other = before[:, 0], behind[:, 0]  # the first position is not turned
    scale = float((first * other).sum() / max((first**2).sum(), np.finfo(float).tiny))
    scale = 1.0 if abs(scale - 1) <= CLOSE else scale
    close = CLOSE * max(1.0, np.abs(behind).max())
    if np.abs(scale * first - other).max() > close:
        return None
    d = before.shape[2]
    moved = np.flatnonzero(np.abs(before - behind).max(axis=(0, 1)) > close)
    least = 2 + int(moved[-1]) // 2 * 2 if scale == 1 and moved.size else d
    for n_turned in range(d - d % 2, least - 1, -2):
        for distance in dict.fromkeys((n_turned // 2, 1)):
            angles = _angles(before[..., :n_turned], behind[..., :n_turned], distance)
            again = [rotate(scale * head, angles, float(distance)) for head in before]
            if np.abs(again - behind).max() <= close and _is_steady(angles):
                return Rotation(angles=angles, distance=distance, scale=scale)
    return None


def _angles(before: Heads, behind: Heads, distance: int) -> Float64[np.ndarray, "token pair"]:
    """The angle of each token and pair that fits all heads best (least squares, of complex numbers)."""
    first, second = pairs(before.shape[2], distance)
    z, turned = (x[..., first] + 1j * x[..., second] for x in (before, behind))
    return np.unwrap(np.angle((z.conj() * turned).sum(axis=0)), axis=0)


def _is_steady(angles: Float64[np.ndarray, "token pair"]) -> bool:
    """Whether each pair's angle is the position times a frequency."""
    position = np.arange(len(angles), dtype=float)[:, None]
    frequency = (position * angles).sum(axis=0) / max((position**2).sum(), 1.0)
    return bool(np.abs(angles - position * frequency).max() <= STEADY)
