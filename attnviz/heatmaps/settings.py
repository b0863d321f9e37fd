"""The settings of ``attnviz heatmap``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from attnviz.settings import (
    INPUT,
    LOOK,
    SHOWN,
    Background,
    Kind,
    Ranges,
    TextSettings,
    background_option,
    check_palette,
    head_option,
    kind_option,
    lang_option,
    layer_option,
    layers_and_heads,
    option,
    palette_option,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatmapText(TextSettings):
    """The sentence, or a saved record in its place."""

    load: Path | None = option("--load", help="Draw a saved record (json, npz, safetensors) instead.", panel=INPUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatmapSelection:
    """Which part of the record is shown."""

    layer: tuple[str, ...] = layer_option()
    head: tuple[str, ...] = head_option()
    kind: Kind | None = kind_option()
    words: bool = option(
        "--words", default=False, help="Merge word pieces: to a word the sum, from it the mean.", panel=SHOWN
    )
    hide_special: bool = option(
        "--hide-special", default=False, help="Leave out [CLS] and its like; rows are not renormalised.", panel=SHOWN
    )
    full: bool = option("--full", default=False, help="Print every head by itself, one after the other.", panel=SHOWN)

    def __post_init__(self) -> None:
        _ = self.layers, self.heads  # refused here, before any work

    @property
    def layers(self) -> Ranges | None:
        """The layers chosen; None for all."""
        return layers_and_heads(self.layer, self.head)[0]

    @property
    def heads(self) -> Ranges | None:
        """The heads chosen; None for all."""
        return layers_and_heads(self.layer, self.head)[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatmapAppearance:
    """How it is drawn."""

    scale: Literal["shared", "panel", "unit"] = option(
        "--scale", default="shared", help="Where colours end: one scale for all, each panel's own, or 0 to 1.",
        panel=LOOK,
    )  # fmt: skip
    palette: str = palette_option()
    background: Background = background_option()
    lang: Literal["en", "ko"] = lang_option()

    def __post_init__(self) -> None:
        check_palette(self.palette)
