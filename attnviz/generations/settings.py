"""The settings of ``attnviz generate``; what makes no sense is refused where a group is made (SettingsError)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import ClassVar, Literal

from attnviz import settings
from attnviz.errors import SettingsError
from attnviz.options import INPUT, MODEL, SHOWN, changed, group, option
from attnviz.storage.formats import RECORD
from attnviz.text.display import check_sentence

DEFAULT_MODEL = "toy-decoder"


@group
class Prompt:
    """What the model goes on with, and how far."""

    text: str | None = option(
        help="The text to go on with, or to translate; - reads it from standard input."
    )
    file: Path | None = option("--file", help="Read the text from a file.", panel=INPUT)
    max_new_tokens: int = option(
        "--max-new-tokens",
        default=40,
        help="The most tokens to generate.",
        metavar="N",
        least=1,
        panel=INPUT,
    )
    chat: bool = option(
        "--chat", default=False, help="Put the text into the model's chat template.", panel=INPUT
    )

    def __post_init__(self) -> None:
        if self.text is not None and self.file is not None:
            raise SettingsError("give the text or a file, not both")
        check_sentence(self.text)


@group
class Sampling:
    """How each token is chosen: the likeliest, or one drawn by how likely it is."""

    sample: bool = option(
        "--sample",
        default=False,
        help="Draw each token by its probability; without it, the most likely one is taken.",
        panel=INPUT,
    )
    temperature: float = option(
        "--temperature",
        default=1.0,
        help="With --sample: below 1, likely tokens come more often.",
        metavar="T",
        panel=INPUT,
    )
    top_k: int | None = option(
        "--top-k",
        help="With --sample: choose among the K most likely tokens.",
        metavar="K",
        least=1,
        panel=INPUT,
    )
    top_p: float | None = option(
        "--top-p",
        help="With --sample: choose among the most likely tokens that together have probability P.",
        metavar="P",
        panel=INPUT,
    )
    seed: int = option(
        "--seed",
        default=0,
        help="With --sample: the same seed gives the same text.",
        metavar="N",
        least=0,
        panel=INPUT,
    )

    def __post_init__(self) -> None:
        if changed(self, "temperature", "top_k", "top_p", "seed") and not self.sample:
            raise SettingsError(
                "temperature, top_k, top_p and seed say how to sample: they go with sample"
            )
        if not 0 < self.temperature < float("inf"):
            raise SettingsError(f"it must be above 0, not {self.temperature:g}", "temperature")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise SettingsError(f"it must be above 0 and at most 1, not {self.top_p:g}", "top_p")

    @property
    def how(self) -> str:
        """What differs from the likeliest token, as ``temperature 0.8, seed 3``."""
        parts = [
            ("temperature", self.temperature),
            ("top-k", self.top_k),
            ("top-p", self.top_p),
            ("seed", self.seed),
        ]
        return ", ".join(f"{name} {value:g}" for name, value in parts if value is not None)


@group
class GeneratingModel(settings.LoadingSettings):
    """Which model, and how it is loaded."""

    model: str | None = option(
        "--model",
        "-m",
        help=f"The model: its name, folder or file [default: {DEFAULT_MODEL}].",
        completes="models",
        panel=MODEL,
        variable="ATTNVIZ_MODEL",
    )

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model or DEFAULT_MODEL


@group
class GenerationSelection:
    """Which heads are kept and shown."""

    layer: tuple[str, ...] = settings.layer_option()
    head: tuple[str, ...] = settings.head_option()

    def __post_init__(self) -> None:
        _ = self.numbers  # refused here, before any work

    @property
    def numbers(self) -> tuple[list[int] | None, list[int] | None]:
        """The layers and the heads chosen; None for all."""
        layers, heads = settings.layers_and_heads(self.layer, self.head)
        return layers.one_by_one("layers") if layers else None, heads.one_by_one(
            "heads"
        ) if heads else None


@group
class GenerationAppearance:
    """How it is shown."""

    interactive: bool = option(
        "--interactive",
        default=False,
        help="Generate a token at each key: on, back to look again, q to stop.",
        panel=SHOWN,
    )
    palette: str = settings.palette_option()
    background: settings.Background = settings.background_option()
    lang: Literal["en", "ko"] = settings.lang_option()


@group
class GenerationOutput(settings.FileSettings):
    """The files to write: the record, its picture, a page to explore it, a film of its steps."""

    ENDINGS: ClassVar[Collection[str]] = RECORD
