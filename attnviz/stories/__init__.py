"""Short stories about attention, computed live with the models that come with attnviz."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from attnviz.errors import SelectionError
from attnviz.text.messages import Phrase, _, expect_language
from attnviz.text.suggest import suggest

if TYPE_CHECKING:
    from attnviz.capture.source import Model
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
WITH_A_MODEL = ("word-order", "pairs", "reference")  # demos that also work with the user's model


def tell(name: str, lang: str = "en", model: Model = None) -> Story:
    """Compute one demo.

    Args:
        name: one of `DEMOS`.
        lang: the language of the text, `en` or `ko`.
        model: another model for one of `WITH_A_MODEL`, as `attnviz.attend` takes it; None for the models that come with
            attnviz.

    Raises:
        SelectionError: the demo or language is unknown, or the demo does not take another model.
        ModelError: the model cannot be used, or has no self-attention.
        FileFormatError: the file of a home-built model is damaged.
        InputError: the model knows none of the words of the story, or cannot be shown word by word.
    """
    expect_language(lang)
    check(name, model)
    lesson = import_module(f"attnviz.stories.lessons.{name.replace('-', '_')}")
    story: Story = lesson.build_story() if model is None else lesson.build_story(model)
    return replace(story, name=name).translated(lang)


def check(name: str, model: object = None) -> None:
    """Raise SelectionError if the demo is unknown, or if a model is given for a demo that does not take one."""
    if name not in DEMOS:
        raise SelectionError(f"there is no demo {name!r}{suggest(name, DEMOS)}")
    if model is not None and name not in WITH_A_MODEL:
        demos = ", ".join(WITH_A_MODEL)
        raise SelectionError(
            f"the demo {name} is told with its own models: another model goes with {demos}"
        )
