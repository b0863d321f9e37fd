"""Short stories about attention, each computed live by the models that come with attnviz."""

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

# each demo's name and what it shows, by chapter; in the order to be read
CHAPTERS: dict[Phrase, dict[str, Phrase]] = {
    _("Attention by its numbers"): {
        "library": _("query, key and value, by the picture of a library"),
        "scaling": _("why scores are divided by sqrt(d_k)"),
        "transpose": _("whether K transposed means something else"),
        "self-attention": _("one head, four heads, three projections as one"),
    },
    _("Positions and order"): {
        "positions": _("where a word stands, as waves"),
        "rotary": _("positions as rotations, beside waves and a table"),
        "word-order": _("what attention knows of order, without positions and with them"),
    },
    _("Masks, layers, heads"): {
        "padding": _("a padded batch, with its mask and without"),
        "mask": _("both ways, and from left to right only"),
        "layer": _("what each part of a layer does to the words"),
        "pairs": _("eating and apple, green and apple: which heads link them"),
        "reference": _("what 'it' looks at: tired against wide"),
    },
    _("From English to Korean"): {
        "gradients": _("why attention: gradients that fade, and that do not"),
        "bottleneck": _("long sentences, with attention and without"),
        "alignment": _("which English word each step looks at"),
        "forcing": _("right words or its own words before"),
    },
}
# all of them
DEMOS = {name: about for chapter in CHAPTERS.values() for name, about in chapter.items()}
WITH_A_MODEL = (
    "word-order",
    "pairs",
    "reference",
)  # those that can be told with another model's numbers


def tell(name: str, lang: str = "en", model: Model = None) -> Story:
    """Compute one demo.

    Args:
        name: one of `DEMOS`.
        lang: the language of its texts, `en` or `ko`.
        model: another model to tell one of `WITH_A_MODEL` with, as `attnviz.attend` takes it; None for those that come
            with attnviz.

    Raises:
        SelectionError: there is no demo, or no language, of that name; or the demo takes no model.
        ModelError: the model cannot be used, or has no self-attention.
        FileFormatError: the file of a home-built model is damaged.
        InputError: the model knows none of the story's words, or cannot be shown word by word.
    """
    expect_language(lang)
    check(name, model)
    module = import_module(f"attnviz.stories.lessons.{name.replace('-', '_')}")
    story: Story = module.tell() if model is None else module.tell(model)
    return replace(story, name=name).translated(lang)


def check(name: str, model: object = None) -> None:
    """Refuse a demo that is not there, or a model for one that takes none, by a SelectionError."""
    if name not in DEMOS:
        raise SelectionError(f"there is no demo {name!r}{suggest(name, DEMOS)}")
    if model is not None and name not in WITH_A_MODEL:
        demos = ", ".join(WITH_A_MODEL)
        raise SelectionError(
            f"the demo {name} is told with its own models: another model goes with {demos}"
        )
