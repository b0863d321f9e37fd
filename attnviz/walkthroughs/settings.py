"""The settings of ``attnviz walkthrough``: what is calculated, and how it is shown.

What makes no sense is refused where a group is made (SettingsError).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import fields
from pathlib import Path
from typing import ClassVar, Literal

from attnviz import settings
from attnviz.errors import SettingsError
from attnviz.options import INPUT, LOOK, REQUIRED, SHOWN, changed, group, option
from attnviz.storage.formats import WALKTHROUGH

Score = Literal["dot", "scaled", "general", "additive"]  # how a query and a key make a score


@group
class WalkthroughText(settings.TextSettings):
    """The sentence, or numbers that need no model."""

    example: Literal["seq2seq", "seq2seq-word", "self-attention"] | None = option(
        "--example", help="A calculation that can be done by hand.", panel=INPUT
    )
    numbers: Path | None = option(
        "--input",
        help="Your own numbers (json, yaml): query, keys, values; or X, Wq, Wk, Wv; or weights, values.",
        metavar="FILE",
        panel=INPUT,
    )
    exercise: bool = option(
        "--exercise",
        default=False,
        help="Leave cells blank to fill in; by itself it makes small integers from --seed.",
        panel=INPUT,
    )
    solution: bool = option(
        "--solution",
        default=False,
        help="With --exercise: show what belongs in the blank cells.",
        panel=INPUT,
    )

    def __post_init__(self) -> None:
        settings.TextSettings.__post_init__(self)
        if self.example is not None and self.numbers is not None:
            raise SettingsError("give an example or a file of numbers, not both")
        if self.solution and not self.exercise:
            raise SettingsError("a solution goes with an exercise: it fills in the blank cells")


@group
class WalkthroughModel(settings.ModelSettings):
    """Which model; the seed may be that of an exercise, so that `loading` checks it."""

    def __post_init__(self) -> None:
        settings.LoadingSettings.__post_init__(self)

    def loading(self, *, exercise: bool) -> settings.ModelSettings:
        """How the model is loaded: an exercise's seed is not its own. Raises SettingsError: another model's sizes."""
        chosen = {one.name: getattr(self, one.name) for one in fields(self)}
        return settings.ModelSettings(**chosen | ({"seed": None} if exercise else {}))


@group
class WalkthroughSelection:
    """Which part of the model is followed, and how its scores are made."""

    layer: str | None = option(
        "--layer",
        help="The layer, counted from 0; -1 is the last [default: 0].",
        metavar="N",
        panel=SHOWN,
    )
    head: str | None = option(
        "--head",
        help="The head with its layer, such as 2.3; or its number, with --layer [default: 0].",
        metavar="L.H",
        panel=SHOWN,
    )
    query: str | None = option(
        "--query",
        help="The query: a word or its number [default: the first, in a decoder the last; with --input all].",
        metavar="WORD|N",
        panel=SHOWN,
    )
    all_queries: bool = option(
        "--all-queries", default=False, help="Follow all words at once, not one.", panel=SHOWN
    )
    whole_layer: bool = option(
        "--whole-layer",
        default=False,
        help="Follow all heads, and then the rest of the layer, to its output.",
        panel=SHOWN,
    )
    kind: settings.Kind | None = settings.kind_option()
    score: Score = option(
        "--score",
        default="scaled",
        help="How a query and a key make a score; pretrained models allow only scaled.",
        panel=SHOWN,
    )
    causal: bool = option(
        "--causal",
        default=False,
        help="Hide the words after each word; for home-built models only.",
        panel=SHOWN,
    )

    def __post_init__(self) -> None:
        if self.query is not None and self.all_queries:
            raise SettingsError("give one query or all, not both")
        if self.head is not None and self.whole_layer:
            raise SettingsError("give one head or the whole layer, not both")
        _ = self.place  # refused here, before any work

    @property
    def place(self) -> tuple[int, int]:
        """The numbers of the layer and the head."""
        layers, heads = settings.layers_and_heads(
            *(() if typed is None else (typed,) for typed in (self.layer, self.head))
        )
        return 0 if layers is None else layers.one("layer"), 0 if heads is None else heads.one(
            "head"
        )

    @property
    def walks_all(self) -> bool:
        """Whether all queries are walked at once."""
        return self.all_queries or (self.whole_layer and self.query is None)


@group
class WalkthroughAppearance:
    """How it is shown."""

    full: bool = option(
        "--full",
        default=False,
        help="Every step, with one cell worked out, from the input to the output.",
        panel=SHOWN,
    )
    steps: str | None = option(
        "--steps",
        help="Only these steps, such as score,softmax,context.",
        metavar="NAMES",
        panel=SHOWN,
    )
    jump: int | None = option("--jump", help="Begin at step N.", metavar="N", least=1, panel=SHOWN)
    interactive: bool = option(
        "--interactive",
        default=False,
        help="Go step by step with the keyboard; a file is written only with -o.",
        panel=SHOWN,
    )
    precision: int | None = option(
        "--precision",
        help="Digits after the point [default: 3; 8 for --example seq2seq].",
        least=0,
        most=17,
        panel=LOOK,
    )
    lang: Literal["en", "ko"] = settings.lang_option()
    palette: str = settings.palette_option()
    background: settings.Background = settings.background_option()


@group
class WalkthroughOutput(settings.OutputSettings):
    """The files: pictures, films, pages, and all numbers as JSON."""

    ENDINGS: ClassVar[Collection[str]] = WALKTHROUGH

    @property
    def suffixes(self) -> list[str]:
        """The endings of the files named, and of what is printed as JSON."""
        return [*([".json"] if self.json else []), *(path.suffix.lower() for path in self.output)]


@group
class VerifySettings:
    """What is computed again."""

    file: Path = option(
        default=REQUIRED, help="A walkthrough that was saved with -o FILE.json.", metavar="FILE"
    )


def check_blanks(suffixes: Iterable[str], *, has_blanks: bool) -> None:
    """Refuse blank cells in JSON, which holds every number. Raises SettingsError: there would be some."""
    if has_blanks and ".json" in suffixes:
        raise SettingsError(
            "JSON holds every number: an exercise with blank cells cannot be written so"
        )


def needs_model(
    text: WalkthroughText, model: WalkthroughModel, selection: WalkthroughSelection
) -> bool:
    """Whether the calculation is a model's. Raises SettingsError: a model or sentence for numbers, an idle seed."""
    of_text, of_model, of_selection = changed(text), changed(model), changed(selection)
    others = (
        {*of_text} - {"--example", "--input", "--exercise", "--solution"}
        | {*of_model} - {"--seed"}
        | {*of_selection}
    )
    if text.example is not None or text.numbers is not None:
        if others - {"--query", "--all-queries"}:
            raise SettingsError(
                "a calculation by hand needs no model: it takes no sentence and no settings of a model"
            )
        if model.seed is not None and not text.exercise:
            raise SettingsError("it goes with an exercise, or with the model toy-random", "seed")
        return False
    return not text.exercise or bool(others)
