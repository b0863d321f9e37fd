"""Rotary positions beside sinusoidal and learned ones: which scores depend on the distance alone.

Source: Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding", section 3.2:
https://arxiv.org/abs/2104.09864
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor

from attnviz.models.embedding import sinusoidal_positions
from attnviz.stories.common import signed, small, story, table
from attnviz.stories.record import Cell, Story
from attnviz.text.messages import _

D, N = 16, 24  # numbers of a vector, and positions
SEED = 0
DISTANCE = 3
STARTS = (0, 5, 10, 20)
WAYS = {"rotary": _("rotary"), "sinusoidal": _("sinusoidal, added"), "learned": _("learned, added")}
TITLE = _(
    "at one distance the score differs from place to place by {alone} if rotary, by {added} if "
    "sinusoidal"
)
LENGTH = _(
    "Turning changes no length: over {n} positions the vector is {length:.3f} long, to within "
    "{off}. Query and key are turned, values are not: positions decide where a word looks, and "
    "are not mixed into what it brings."
)
RECEIPT = _(
    "computed by the formula of Su et al. 2021, section 3.2, in float64; two random words and a "
    "random table (seed {seed}); largest difference along a diagonal of rotary scores {alone}"
)
INTRODUCTION = _(
    "Sinusoidal and learned positions are vectors that are added to the word, once, before the "
    "first layer. Rotary positions (Llama, Mistral, Qwen and most language models today) add "
    "nothing: in every layer, query and key are taken as {n_pairs} pairs of numbers, and each "
    "pair is turned like the hand of a clock, by the position times its own speed, 1 / "
    "10000^(2i/{d})."
)
DISTANCES = _(
    "the score of the same two words, {distance} apart, at some places; last column: all of them"
)
WHY = _(
    "A pair turned by a and one turned by b meet at the angle b - a: where they stand is gone, "
    "how far apart they are stays. So each diagonal of the first pattern of scores has one "
    "colour. With waves added, the product of the two positions depends on the distance alone too "
    "(see `attnviz demo positions`), but word times position stands beside it, and that depends "
    "on the place: the scores differ by up to {added}. A learned table (here as before training, "
    "random) promises nothing: {table}. And it ends with its last row, while angles go on."
)


def angles(n: int = N, d: int = D) -> Float[Tensor, "position pair"]:
    """Return the rotation angle of each pair of numbers at each position, in radians: position / 10000^(2i/d)."""
    speeds = 10_000.0 ** (-2 * torch.arange(d // 2, dtype=torch.float64) / d)
    return torch.arange(n, dtype=torch.float64)[:, None] * speeds


def rotate(x: Float[Tensor, "position d"]) -> Float[Tensor, "position d"]:
    """Each pair of numbers (2i, 2i + 1) of each row turned by its angle: (a cos - b sin, a sin + b cos)."""
    turn = angles(*x.shape)
    a, b = x[:, 0::2], x[:, 1::2]
    return torch.stack(
        [a * turn.cos() - b * turn.sin(), a * turn.sin() + b * turn.cos()], dim=-1
    ).flatten(1)


def two_words() -> tuple[Tensor, Tensor, Tensor]:
    """The vectors of two words [d], and a table of positions such as training begins with [position, d]."""
    random = torch.Generator().manual_seed(SEED)
    one, other = torch.randn(2, D, generator=random, dtype=torch.float64)
    return one, other, torch.randn(N, D, generator=random, dtype=torch.float64)


def scores() -> dict[str, Float[Tensor, "position position"]]:
    """The score q · k / sqrt(d) of the first word at each position (row) and the second at each (column), each way.

    Query and key are the words' vectors themselves: the projections are left out.
    """
    one, other, table = two_words()
    waves = sinusoidal_positions(N, D).double()
    turned = rotate(one.expand(N, D)), rotate(other.expand(N, D))
    ways = zip(
        WAYS, (turned, (one + waves, other + waves), (one + table, other + table)), strict=True
    )
    return {way: query @ key.T / math.sqrt(D) for way, (query, key) in ways}


def spread(found: Tensor) -> float:
    """Return the largest spread of a score between places at the same distance."""
    diagonals = (found.diagonal(distance) for distance in range(1 - N, N))
    return float(max(diagonal.max() - diagonal.min() for diagonal in diagonals))


def tell() -> Story:
    """The demo: what turning does to one vector, and the same two words at equal distances all over the sentence."""
    found = scores()
    apart = {way: spread(values) for way, values in found.items()}
    one, turn, turned = two_words()[0], angles(), rotate(two_words()[0].expand(N, D))
    alone = small(apart["rotary"])
    added = f"{apart['sinusoidal']:.3f}"
    learned = f"{apart['learned']:.3f}"
    length = float(one.norm())
    off = small(float((turned.norm(dim=-1) - one.norm()).abs().max()))
    n_pairs = D // 2
    position, angle_0, pair_0, angle_1, pair_1 = (
        _("position"),
        _("angle 0"),
        _("pair 0"),
        _("angle 1"),
        _("pair 1"),
    )
    turns = (
        (
            place,
            *(
                x
                for i in (0, 1)
                for x in (float(turn[place, i]), *turned[place, 2 * i : 2 * i + 2].tolist())
            ),
        )
        for place in (0, 1, 2, DISTANCE, 10)
    )
    at_places = table(
        _("one query at some positions: its first two pairs"),
        (position, angle_0, pair_0, "", angle_1, pair_1, ""),
        turns,
    )
    places, most = (
        [(start, start + DISTANCE) for start in STARTS],
        (_("positions"), _("differs by at most")),
    )
    rows: list[tuple[Cell, ...]] = [
        (WAYS[way], *(float(values[at]) for at in places), small(apart[way]))
        for way, values in found.items()
    ]
    distances = table(
        DISTANCES.format(distance=DISTANCE),
        (most[0], *(f"{m}, {n}" for m, n in places), most[1]),
        rows,
    )
    axes = (_("position of the query"), _("position of the key"))
    picture = (
        signed(
            _("rotation: cosine of each pair's angle"),
            angles(4 * N).cos().numpy(),
            (_("position"), _("pair of numbers i")),
            1.0,
        ),
        *(
            signed(_("scores: {way}").format(way=WAYS[way]), values.numpy(), axes)
            for way, values in found.items()
        ),
    )
    return story(
        title=TITLE.format(alone=alone, added=added),
        receipt=RECEIPT.format(seed=SEED, alone=alone),
        parts=(
            INTRODUCTION.format(n_pairs=n_pairs, d=D),
            at_places,
            LENGTH.format(n=N, length=length, off=off),
            distances,
            WHY.format(added=added, table=learned),
        ),
        picture=picture,
    )
