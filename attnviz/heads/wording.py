"""What every view of a comparison tells: what was measured, on what, and what its controls are."""

from __future__ import annotations

import numpy as np

from attnviz.heads.measures import (
    CHANCE,
    OFFSET,
    SHUFFLED,
    UNTRAINED,
)
from attnviz.heads.notes import counted
from attnviz.heads.record import HeadComparison
from attnviz.render.palette import hexed, luminance
from attnviz.render.sheet import KINDS

CONTROLS = {SHUFFLED: "shuffled", UNTRAINED: "random weights", OFFSET: "best offset"}
"""The controls, in the order in which they are shown."""
CONTROLS_OF_A_HEAD = CONTROLS | {CHANCE: "chance"}
"""Those of a head's page, which has room for all."""
HELD = {
    SHUFFLED: "this head on shuffled tokens",
    UNTRAINED: "the best head of random weights",
    OFFSET: "the fixed one that has most of it",
    CHANCE: "this head's weights dealt out at random",
}
"""What each of them is, in a few words."""
NOT_EXPLANATION = "attention is not explanation: where a head looks does not say what the model makes of it"


def readable(colour: str, *, dark: bool) -> str:
    """The nearest colour on the way to white (or black) that can be read on a dark (or light) screen."""
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=np.float64)
    end = 255.0 if dark else 0.0
    # Few terminals are quite black or white.
    back = float(luminance(np.full(3, 30 if dark else 240, dtype=np.uint8)))
    for part in np.linspace(0, 1, 21):
        mixed = (rgb + (end - rgb) * part).round().astype(np.uint8)
        light = float(luminance(mixed))
        if (light + 0.05) / (back + 0.05) >= 4.5 if dark else (back + 0.05) / (light + 0.05) >= 4.5:
            break
    return hexed(mixed)


def scored_on(comparison: HeadComparison) -> str:
    """Why the score of a relation differs from that in the table of relations; empty where there is no such table."""
    if not comparison.relations:
        return ""
    return (
        "a role's score is on all sentences; the table of relations scores on half of them, unseen in choosing the head"
    )


def described(comparison: HeadComparison) -> str:
    """What was measured, as ``6 layers x 12 heads, bidirectional self-attention``."""
    return f"{counted(comparison.n_layers, 'layer')} x {counted(comparison.n_heads, 'head')}, {KINDS[comparison.kind]}"


def sample(comparison: HeadComparison) -> str:
    """What it was measured on, as ``sample sentences: 117 sentences, 1,545 tokens; special tokens kept``."""
    specials = {"keep": "special tokens kept", "exclude": "special tokens left out"}.get(
        comparison.specials, f"special tokens: {comparison.specials}"
    )
    n = comparison.n_sentences
    return f"{comparison.corpus}: {counted(n, 'sentence')}, {counted(comparison.n_tokens, 'token')}; {specials}"
