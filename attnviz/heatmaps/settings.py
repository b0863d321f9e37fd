"""The settings of ``attnviz heatmap``; what makes no sense is refused where a group is made (SettingsError)."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from attnviz import settings
from attnviz.models.registry import TOY, TOY_KOREAN
from attnviz.options import FILES, INPUT, LOOK, MODEL, RARE, SHOWN, group, option
from attnviz.render.names import outputs
from attnviz.storage.formats import FILMS, PAGE, RECORD
from attnviz.text.arguments import bytes_of


@group
class HeatmapText(settings.TextSettings):
    """The sentence, or a saved record in its place."""

    load: Path | None = option(
        "--load", help="Draw a saved record (json, npz, safetensors) instead.", panel=INPUT
    )


@group
class HeatmapSelection:
    """Which part of the record is shown."""

    layer: tuple[str, ...] = settings.layer_option()
    head: tuple[str, ...] = settings.head_option()
    kind: settings.Kind | None = settings.kind_option()
    words: bool = option(
        "--words",
        default=False,
        help="Merge word pieces: to a word the sum, from it the mean.",
        panel=SHOWN,
    )
    hide_special: bool = option(
        "--hide-special",
        default=False,
        help="Leave out [CLS] and its like; rows are not renormalised.",
        panel=SHOWN,
    )
    rows: str | None = option(
        "--rows", help="Only these query tokens, such as 1000-1200.", metavar="N-N", panel=SHOWN
    )
    keys: str | None = option(
        "--keys", help="Only these key tokens, such as 0-100.", metavar="N-N", panel=SHOWN
    )
    memory: str = option(
        "--memory",
        default="1GB",
        metavar="SIZE",
        panel=RARE,
        help="The most memory for weights; where more is needed, tokens are grouped.",
    )
    full: bool = option(
        "--full",
        default=False,
        help="Print every head by itself, one after the other.",
        panel=SHOWN,
    )

    def __post_init__(self) -> None:
        _ = self.ranges, self.window, bytes_of(self.memory)  # refused here, before any work

    @property
    def ranges(self) -> tuple[settings.Ranges | None, settings.Ranges | None]:
        """The layers and the heads chosen; None for all."""
        return settings.layers_and_heads(self.layer, self.head)

    @property
    def arguments(self) -> dict[str, Any]:
        """What `attnviz.attend` is given: the kind, and layers and heads that need not be counted from the end."""
        layers, heads = (one.from_start() if one else None for one in self.ranges)
        return {"kind": self.kind, "layers": layers, "heads": heads}

    @property
    def window(self) -> dict[str, Any]:
        """The rows and keys chosen; None for all."""
        return {name: _slice(name, getattr(self, name)) for name in ("rows", "keys")}


def _slice(name: str, typed: str | None) -> slice | None:
    """A number or a range of tokens, both ends in it, perhaps counted from the end; None for all."""
    if typed is None:
        return None
    first, last = settings.Ranges.read([typed], name).ends[0]  # type: ignore[union-attr]  # of one that was typed
    return slice(first, None if last == -1 else last + 1)


roles_option = partial(
    option,
    "--roles",
    help="What compare-heads measured of the same model (stats): its signs stand on the page.",
    metavar="FILE",
    panel=LOOK,
)


@group
class HeatmapAppearance:
    """How it is drawn."""

    scale: Literal["shared", "panel", "unit"] = option(
        "--scale",
        default="shared",
        help="Where colours end: one scale for all, each panel's own, or 0 to 1.",
        panel=LOOK,
    )
    palette: str = settings.palette_option()
    background: settings.Background = settings.background_option()
    lang: Literal["en", "ko"] = settings.lang_option()
    roles: Path | None = roles_option()


@group
class HeatmapOutput(settings.OutputSettings):
    """The files to write: pictures, a page to explore, records; or JSON to print."""

    ENDINGS: ClassVar[Collection[str]] = tuple(ending for ending in RECORD if ending not in FILMS)

    def __post_init__(self) -> None:
        settings.check_endings(
            [path for path in self.output if path.suffix or len(self.output) > 1], self.ENDINGS
        )

    def many(self, text: HeatmapText) -> Path | None:
        """The folder, or the PDF, for the lines of a file; None where one sentence is drawn, which needs a file."""
        if text.file is None or text.load is not None or len(self.output) != 1:
            settings.check_endings(self.output, self.ENDINGS)
            return None
        return self.output[0] if self.output[0].suffix.lower() in {"", ".pdf"} else None


@group
class TourSettings:
    """Which model runs in the page, and how the page looks."""

    model: Literal["toy", "toy-ko"] = option(
        "--model",
        "-m",
        default=TOY,
        panel=MODEL,
        help=f"The model: {TOY} reads English, {TOY_KOREAN} Korean.",
    )
    palette: str = settings.palette_option()
    lang: Literal["en", "ko"] = settings.lang_option()
    roles: Path | None = roles_option()


@group
class TourOutput(settings.FileSettings):
    """The page to write."""

    ENDINGS: ClassVar[Collection[str]] = (PAGE,)

    output: tuple[Path, ...] = option(
        "--output",
        "-o",
        default=(),
        metavar="FILE",
        panel=FILES,
        help="The page to write, by its ending: {endings}; repeatable [default: outputs/page-MODEL.html].",
    )
    show: bool = option(
        "--open", default=False, help="Open the page when it is written.", panel=FILES
    )

    def usual(self, model: str) -> tuple[Path, ...]:
        """The files named, or else one in `outputs`."""
        return self.output or (outputs() / f"page-{model}{PAGE}",)
