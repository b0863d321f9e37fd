"""Short stories about attention, computed live with the models that come with attnviz."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from attnviz.errors import SelectionError
from attnviz.text.messages import Phrase, _, expect_language
from attnviz.text.suggest import suggest

if TYPE_CHECKING:
    from attnviz.stories.record import Story

# The name and the subject of each demo, by chapter, in reading order.
CHAPTERS: dict[Phrase, dict[str, Phrase]] = {
    _("Attention by its numbers"): {
        "library": _("query, key and value as a library search"),
        "scaling": _("why scores are divided by sqrt(d_k)"),
        "transpose": _("whether transposing K changes its meaning"),
        "self-attention": _("one head, four heads, and one fused projection"),
    },
    _("Positions and order"): {
        "positions": _("sinusoidal positions"),
        "rotary": _("rotary positions beside sinusoidal and learned ones"),
        "word-order": _("what attention knows of word order, with positions and without"),
    },
    _("Masks, layers, heads"): {
        "padding": _("a padded batch, with its mask and without"),
        "mask": _("both directions, or left to right only"),
        "layer": _("what each part of a layer does to the vectors"),
        "pairs": _("eating and apple, green and apple: which heads link them"),
        "reference": _("which word 'it' attends to: tired against wide"),
    },
    _("From English to Korean"): {
        "gradients": _("why attention: gradients vanish along an untrained chain"),
        "bottleneck": _("long sentences, with attention and without"),
        "alignment": _("which English word each decoding step attends to"),
        "forcing": _("teacher forcing and free running"),
    },
}
DEMOS = {name: about for chapter in CHAPTERS.values() for name, about in chapter.items()}


def tell(name: str, lang: str = "en") -> Story:
    """Compute one demo.

    Args:
        name: one of `DEMOS`.
        lang: the language of the text, `en` or `ko`.

    Raises:
        SelectionError: the demo or language is unknown.
        FileFormatError: the file of a home-built model is damaged.
    """
    expect_language(lang)
    check(name)
    lesson = import_module(f"attnviz.stories.lessons.{name.replace('-', '_')}")
    story: Story = lesson.build_story()
    return replace(story, name=name).translated(lang)


def check(name: str) -> None:
    """Raise SelectionError if the demo is unknown."""
    if name not in DEMOS:
        raise SelectionError(f"there is no demo {name!r}{suggest(name, DEMOS)}")
