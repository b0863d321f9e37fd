"""Rotary positions compared with sinusoidal and learned ones: which scores depend only on the distance.

Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", section 3.2:
https://arxiv.org/abs/2104.09864
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.models.embedding import sinusoidal_positions
from attnviz.stories.common import signed_panel, small
from attnviz.stories.record import Cell, Story, Table
from attnviz.text.messages import _

D, N = 16, 24  # the size of a vector, and the number of positions
SEED = 0
DISTANCE = 3
STARTS = (0, 5, 10, 20)


def rotate(x: Float[Tensor, "position d"]) -> Float[Tensor, "position d"]:
    """Rotate each pair of columns (2i, 2i + 1) by the angle position / 10000^(2i/d), in radians."""
    n, d = x.shape
    speeds = 10_000.0 ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)
    angles = torch.arange(n, dtype=torch.float64)[:, None] * speeds  # [position, pair]
    first, second = x[:, 0::2], x[:, 1::2]
    columns = [
        first * angles.cos() - second * angles.sin(),
        first * angles.sin() + second * angles.cos(),
    ]
    return torch.stack(columns, dim=-1).flatten(1)


def random_vectors() -> tuple[Tensor, Tensor, Tensor]:
    """Return the vectors of two words [d], and an untrained table of positions [position, d]."""
    random = torch.Generator().manual_seed(SEED)
    query, key = torch.randn(2, D, generator=random, dtype=torch.float64)
    return query, key, torch.randn(N, D, generator=random, dtype=torch.float64)


def scores() -> dict[str, Float[Tensor, "position position"]]:
    """Return the scores q · k / sqrt(d) of two words at all pairs of positions, for each kind of positions.

    Query and key are the vectors of the words themselves, without projections.
    """
    query_word, key_word, learned_table = random_vectors()
    waves = sinusoidal_positions(N, D).double()
    pairs = {
        _("rotary"): (rotate(query_word.expand(N, D)), rotate(key_word.expand(N, D))),
        _("sinusoidal"): (query_word + waves, key_word + waves),
        _("learned"): (query_word + learned_table, key_word + learned_table),
    }
    return {kind: query @ key.T / math.sqrt(D) for kind, (query, key) in pairs.items()}


def spread(scores: Float[Tensor, "position position"]) -> float:
    """Return the largest difference between scores at the same distance."""
    diagonals = [scores.diagonal(distance) for distance in range(1 - N, N)]
    return float(max(diagonal.max() - diagonal.min() for diagonal in diagonals))


def build_story() -> Story:
    """Compare the scores of the same two words at all positions, for three kinds of positions."""
    scores_by_kind = scores()
    rotary, sinusoidal, learned = (spread(values) for values in scores_by_kind.values())
    at_distance: list[Sequence[Cell]] = [
        (kind, *(float(values[start, start + DISTANCE]) for start in STARTS), small(spread(values)))
        for kind, values in scores_by_kind.items()
    ]
    return Story(
        title=_(
            "Rotary scores depend on the distance alone: at one distance they differ by {rotary}, "
            "sinusoidal ones by {sinusoidal:.3f}"
        ).format(rotary=small(rotary), sinusoidal=sinusoidal),
        receipt=_(
            "Computed by the formula of Su et al. 2021, section 3.2, in float64, with random words "
            "and a random table (seed {seed})."
        ).format(seed=SEED),
        parts=[
            _(
                "Sinusoidal and learned positions are added to the word's vector, once, before the "
                "first layer. Rotary positions (Llama, Mistral, Qwen and most language models today) "
                "add nothing. Instead every layer turns the query and the key: their numbers form "
                "{n_pairs} pairs, and each pair turns like the hand of a clock, by the position times "
                "a speed of its own, 1 / 10000^(2i/{d}). Values are not turned: "
                "positions decide where a word attends, not what it brings."
            ).format(n_pairs=D // 2, d=D),
            Table(
                _("The score of the same two words at a distance of {n}").format(n=DISTANCE),
                [
                    _("positions"),
                    *(f"{start}, {start + DISTANCE}" for start in STARTS),
                    _("largest spread at a distance"),
                ],
                at_distance,
            ),
            _(
                "A pair turned by a and a pair turned by b meet at the angle b - a, so only the "
                "distance counts: each diagonal of the first picture has one colour. With sinusoidal "
                "positions, the product of word and position depends on the place: scores at the same "
                "distance differ by up to {sinusoidal:.3f}. With a learned table (random here, as "
                "before training), they differ by up to {learned:.3f}, and the table ends after its "
                "last row."
            ).format(sinusoidal=sinusoidal, learned=learned),
        ],
        picture=[
            signed_panel(
                _("Scores, {kind} positions").format(kind=kind),
                values.numpy(),
                (_("position of the query"), _("position of the key")),
            )
            for kind, values in scores_by_kind.items()
        ],
    )
