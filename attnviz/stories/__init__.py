"""Short stories about attention, each computed live by the models that come with attnviz."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from attnviz.errors import SelectionError

if TYPE_CHECKING:
    from attnviz.stories.record import Story

DEMOS = {
    "positions": "where a word stands, as waves added to its vector",
    "library": "query, key and value, by the picture of a library",
    "scaling": "why scores are divided by sqrt(d_k)",
    "self-attention": "number by number: one head, four heads, and three projections as one",
    "word-order": "without positions attention cannot tell the order of words; with them it can",
    "mask": "the same sentence read both ways, and from left to right only",
    "pairs": "which words look at each other: eating and apple, green and apple, eating and green",
    "reference": "what 'it' looks at: tired against wide",
    "layer": "what each part of a layer does to the words' vectors",
    "alignment": "English to Korean: which word each decoding step looks at",
    "forcing": "a decoder on the right words before, and on its own",
    "bottleneck": "how translation falls with length, with attention and without",
}
"""Each demo's name, and what it shows; in the order to be read."""


def tell(name: str) -> Story:
    """Compute one demo.

    Raises:
        SelectionError: there is none of that name.
    """
    if name not in DEMOS:
        raise SelectionError(f"there is no demo {name!r}: there are {', '.join(DEMOS)}")
    story: Story = import_module(f"attnviz.stories.{name.replace('-', '_')}").tell()
    return story
