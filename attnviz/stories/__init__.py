"""Short stories about attention, computed live with the models that come with attnviz."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from attnviz.errors import SelectionError
from attnviz.text.messages import N_, Message, language
from attnviz.text.suggest import suggest

if TYPE_CHECKING:
    from attnviz.stories.record import Story

# The name and the subject of each demo, by chapter, in reading order.
CHAPTERS: dict[Message, dict[str, Message]] = {
    N_("Attention by its numbers"): {
        "library": N_("query, key and value as a library search"),
        "scaling": N_("why scores are divided by sqrt(d_k)"),
        "transpose": N_("whether transposing K changes its meaning"),
        "self-attention": N_("one head, four heads, and one fused projection"),
    },
    N_("Positions and order"): {
        "positions": N_("sinusoidal positions"),
        "rotary": N_("rotary positions beside sinusoidal and learned ones"),
        "word-order": N_("what attention knows of word order, with positions and without"),
    },
    N_("Masks, layers, heads"): {
        "padding": N_("a padded batch, with its mask and without"),
        "mask": N_("both directions, or left to right only"),
        "layer": N_("what each part of a layer does to the vectors"),
        "pairs": N_("eating and apple, green and apple: which heads link them"),
        "reference": N_("which word 'it' attends to: tired against wide"),
        "matters": N_("does it matter: weights beside what the model does without them"),
    },
    N_("From English to Korean"): {
        "gradients": N_("why attention: gradients vanish along an untrained chain"),
        "bottleneck": N_("long sentences, with attention and without"),
        "alignment": N_("which English word each decoding step attends to"),
        "forcing": N_("teacher forcing and free running"),
    },
}
DEMOS = {name: about for chapter in CHAPTERS.values() for name, about in chapter.items()}


def tell(name: str, lang: str | None = None) -> Story:
    """Compute one demo.

    Args:
        name: one of `DEMOS`.
        lang: the language of the text, `en` or `ko`; None is that of `attnviz.text.messages.language`.

    Raises:
        SelectionError: the demo or language is unknown.
        FileFormatError: the file of a home-built model is damaged.
    """
    check(name)
    lesson = import_module(f"attnviz.stories.lessons.{name.replace('-', '_')}")
    with language(lang):
        story: Story = lesson.build_story()
    return replace(story, name=name)


def told(story: Story, lang: str | None) -> Story:
    """Return a story in a language, told again if it is in the other one; None leaves it as it is."""
    return story if lang in (None, story.language) else tell(story.name, lang)


def check(name: str) -> None:
    """Raise SelectionError if the demo is unknown."""
    if name not in DEMOS:
        raise SelectionError(f"there is no demo {name!r}{suggest(name, DEMOS)}")
