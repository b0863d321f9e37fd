"""Settings: options that belong together are one frozen dataclass, stated once with names, defaults, help and checks.

The command line makes its options from these groups, Python makes the same values, and files keep them. What excludes
another setting is refused by the group itself (SettingsError), with one message, wherever the group was made.
What a field means is said once, in the `help` of its option.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from attnviz.errors import SelectionError, SettingsError
from attnviz.models.registry import RANDOM, Device, Dtype, is_random
from attnviz.options import FILES, INPUT, LOOK, MODEL, RARE, SHOWN, SIZES, changed, group, option
from attnviz.render.names import DEFAULT, PALETTES, outputs
from attnviz.storage.formats import PICTURES
from attnviz.text.display import check_sentence

if TYPE_CHECKING:
    from attnviz.render.figure.style import Style

Kind = Literal[
    "encoder", "decoder", "cross"
]  # as `attnviz.attention.Kind`, which help must not load

Background = Literal["auto", "dark", "light"]

kind_option = partial(
    option, "--kind", help="Which attention, where a model has several.", panel=SHOWN
)
layer_option = partial(
    option,
    "--layer",
    default=(),
    metavar="N",
    panel=SHOWN,
    help="A layer or a range, such as 2, 0-3, -1 (the last); repeatable.",
)
head_option = partial(
    option,
    "--head",
    default=(),
    metavar="L.H",
    panel=SHOWN,
    help="A head with its layer, such as 2.3; or heads of each --layer, such as 3, 0-3.",
)
palette_option = partial(
    option,
    "--palette",
    default=DEFAULT,
    metavar="NAME",
    completes="palettes",
    panel=LOOK,
    variable="ATTNVIZ_PALETTE",
    help=f"{', '.join(PALETTES)}, or any colormap of Matplotlib or seaborn; _r at the end reverses it.",
)
background_option = partial(
    option,
    "--background",
    default="auto",
    help="The terminal's background; auto asks it.",
    panel=RARE,
)
lang_option = partial(
    option, "--lang", default="en", help="English or Korean.", panel=LOOK, variable="ATTNVIZ_LANG"
)
dtype_option = partial(
    option,
    "--dtype",
    default="auto",
    help="The model's number format; auto is as it was saved.",
    panel=RARE,
)
revision_option = partial(
    option, "--revision", help="A branch, tag or commit of the model.", panel=RARE
)
trust_option = partial(
    option,
    "--trust-remote-code",
    default=False,
    help="Let code that comes with the model run.",
    panel=RARE,
)
"""Options of several groups: `layers_and_heads` reads layers and heads."""


@group
class TextSettings:
    """The sentence, and what goes with it."""

    text: str | None = option(help="The sentence; - reads it from standard input.")
    file: Path | None = option("--file", help="Read the sentence from a file.", panel=INPUT)
    pair: str | None = option(
        "--pair", help="A second sentence, for models that read two.", panel=INPUT
    )
    target: str | None = option(
        "--target",
        help="What a model that translates is made to generate (teacher forcing).",
        panel=INPUT,
    )
    truncate: bool = option(
        "--truncate",
        default=False,
        help="Cut a text that is too long for the model, and say so.",
        panel=INPUT,
    )

    def __post_init__(self) -> None:
        if self.text is not None and self.file is not None:
            raise SettingsError("give the sentence or a file, not both")
        check_sentence(self.text)


@group
class LoadingSettings:
    """Which model, and how it is loaded."""

    model: str | None = option(
        "--model",
        "-m",
        help="The model: its name, folder or file, or code.py:function [default: distilbert-base-uncased].",
        completes="models",
        panel=MODEL,
        variable="ATTNVIZ_MODEL",
    )
    toy: bool = option(
        "--toy", default=False, help="The small model that comes with attnviz.", panel=MODEL
    )
    device: Device = option("--device", default="auto", help="Where the model runs.", panel=RARE)
    dtype: Dtype = dtype_option()
    revision: str | None = revision_option()
    trust_remote_code: bool = trust_option()

    def __post_init__(self) -> None:
        if self.toy and changed(self, "model"):
            raise SettingsError("give toy or another model, not both")
        if self.toy and (self.revision is not None or self.trust_remote_code):
            raise SettingsError("toy comes with attnviz: it has no revision and no code to trust")

    @property
    def name(self) -> str | None:
        """The model's name; None for the default."""
        return "toy" if self.toy else self.model

    @property
    def arguments(self) -> dict[str, Any]:
        """What `attnviz.open_source` is given to find and load the model."""
        return {
            "model": self._name_with_sizes(),
            "device": self.device,
            "dtype": self.dtype,
            "revision": self.revision,
            "trust_remote_code": self.trust_remote_code,
        }

    def _name_with_sizes(self) -> str | None:
        if not self.sizes:
            return self.name
        return f"{self.name}:{','.join(f'{size}={n}' for size, n in self.sizes.items())}"

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that were chosen, where some can be."""
        return {}


@group
class ModelSettings(LoadingSettings):
    """The same, and the sizes of the model with random weights."""

    seed: int | None = option(
        "--seed",
        help="Another seed, another model [default: 0].",
        metavar="N",
        least=0,
        panel=SIZES,
    )
    d_model: int | None = option(
        "--d-model",
        help="The width of the words' vectors [default: 20].",
        metavar="N",
        least=1,
        panel=SIZES,
    )
    n_heads: int | None = option(
        "--n-heads", help="The number of heads [default: 4].", metavar="N", least=1, panel=SIZES
    )
    n_layers: int | None = option(
        "--n-layers", help="The number of layers [default: 2].", metavar="N", least=1, panel=SIZES
    )

    def __post_init__(self) -> None:
        LoadingSettings.__post_init__(self)
        if self.sizes and not is_random(self.name):
            raise SettingsError(
                f"{' and '.join(self.sizes)} can be chosen for the model {RANDOM} alone"
            )

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes that were chosen, and the seed."""
        chosen = {
            "seed": self.seed,
            "d_model": self.d_model,
            "n_heads": self.n_heads,
            "n_layers": self.n_layers,
        }
        return {name: size for name, size in chosen.items() if size is not None}


@dataclass(frozen=True, slots=True)
class Ranges:
    """Layers or heads: single numbers and ranges, some perhaps counted from the end."""

    ends: tuple[tuple[int, int], ...]  # first and last of each

    @classmethod
    def read(cls, typed: Sequence[str], name: str) -> Ranges | None:
        """Read 2, 0-3, -1, -3--1; None where nothing was typed, and a `SettingsError` for all else."""
        ends = []
        for text in typed:
            match = re.fullmatch(r"(-?\d{1,7})(?:-(-?\d{1,7}))?", text.strip(), re.ASCII)
            if match is None:
                raise SettingsError(f"{text!r} is neither a number nor a range such as 0-3", name)
            first = int(match[1])
            last = first if match[2] is None else int(match[2])
            if last < first and (first < 0) == (last < 0):
                raise SettingsError(f"the first of {text!r} must not be after the last", name)
            ends.append((first, last))
        return cls(tuple(ends)) if ends else None

    def one(self, name: str) -> int:
        """The one number; a `SettingsError` where it is a range, or there are several."""
        numbers = {number for pair in self.ends for number in pair}
        if len(numbers) > 1:
            raise SettingsError("one is followed, not several", name)
        return numbers.pop()

    def from_start(self) -> list[int] | None:
        """The numbers, where none is counted from the end."""
        return None if any(number < 0 for pair in self.ends for number in pair) else self.among(())

    def one_by_one(self, what: str) -> list[int]:
        """The numbers, negative from the end; or SettingsError: before a model runs nobody knows a range from there."""
        numbers: list[int] = []
        for first, last in self.ends:
            if first != last and min(first, last) < 0:
                raise SettingsError(
                    f"{what} from the end are given one by one here, such as -2 and -1"
                )
            numbers += range(first, last + 1)
        return numbers

    def among(self, held: Sequence[int]) -> list[int]:
        """The numbers, where those held tell what the last one is.

        Raises SelectionError: a range begins before the first; SettingsError: one ends before it begins.
        """
        numbers: list[int] = []
        n = held[-1] + 1 if held else 0
        for first, last in self.ends:
            start, end = (
                number + n if number < 0 and first != last else number for number in (first, last)
            )
            if held and start < 0 and first != last:
                raise SelectionError(
                    f"the range {first}-{last} begins before the first: there are {n}, counted from 0"
                )
            if start > end:
                raise SettingsError(f"the first of '{first}-{last}' must not be after the last")
            numbers += range(start, end + 1)
        return numbers


def layers_and_heads(
    layer: Sequence[str], head: Sequence[str]
) -> tuple[Ranges | None, Ranges | None]:
    """Layers and heads as they are typed: layer 2 and head 3, or head 2.3, which says both; or SettingsError."""
    parts = [one.strip().rpartition(".") for one in head]
    named = {before if dot else None for before, dot, _ in parts}
    heads = Ranges.read([number for _, _, number in parts], "head")
    if named <= {None}:
        return Ranges.read(layer, "layer"), heads
    if len(named) > 1:
        raise SettingsError(
            f"heads {' and '.join(head)} are not of one layer: give layers and heads apart"
        )
    (one,) = (str(before) for before in named)
    if layer and {typed.strip() for typed in layer} != {one}:
        raise SettingsError(
            f"layer {' and '.join(layer)} and head {' and '.join(head)} contradict each other"
        )
    return Ranges.read([one], "head"), heads


Place = str | tuple[int, int]
"""A head: ``"1.2"`` or ``(1, 2)``, its layer and its number, negative from the end."""


def place_of(head: Place | int, number: int | None = None) -> tuple[int, int]:
    """The layer and the number of a head, which may be given as two numbers too; or SettingsError: it is no head."""
    from attnviz.attention import head_at

    try:
        return head_at(head if number is None else (head, number))
    except SelectionError as error:
        raise SettingsError(str(error)) from None


@group
class PageSettings:
    """What a picture is for, and its size there."""

    style: Literal["sheet", "slides", "paper"] = option(
        "--style",
        default="sheet",
        help="What the picture is for: a sheet by itself, a slide, a column of a paper.",
        panel=LOOK,
    )
    width: Annotated[str, "a length such as 3.3in or 8cm"] | None = option(
        "--width",
        help="The width of the picture: 3.3in, 8cm, 84mm, 240pt [default: by style].",
        metavar="LENGTH",
        panel=LOOK,
    )
    dpi: int | None = option(
        "--dpi",
        help="Dots per inch of a PNG [default: by style].",
        metavar="N",
        least=20,
        most=2400,
        panel=LOOK,
    )

    def __post_init__(self) -> None:
        _ = self.look  # refused here, before any work

    @property
    def look(self) -> Style:
        """The style, with what is wanted otherwise."""
        from attnviz.render.figure.style import style_of

        return style_of(self.style, self.width, self.dpi)


@group
class FigureSettings(PageSettings):
    """What a picture is for, its size there, and the words that go with it."""

    font_size: float | None = option(
        "--font-size",
        help="The size of labels, in points [default: by style and room].",
        metavar="POINTS",
        least=4,
        most=72,
        panel=LOOK,
    )
    title: str | None = option(
        "--title", default="auto", help="Another title, or none.", metavar="TEXT", panel=LOOK
    )
    no_caption: bool = option(
        "--no-caption", default=False, help="No text below the picture.", panel=LOOK
    )

    def __post_init__(self) -> None:
        PageSettings.__post_init__(self)
        check_title(self.title)

    @property
    def heading(self) -> str | None:
        """The title: `auto`, another one, or None for none."""
        return None if self.title == "none" else self.title


@group
class FileSettings:
    """The files to write."""

    ENDINGS: ClassVar[Collection[str]] = PICTURES

    output: tuple[Path, ...] = option(
        "--output",
        "-o",
        default=(),
        help="A file to write, by its ending: {endings}; repeatable [default: a named PNG in outputs/, or in the "
        "folder that ATTNVIZ_OUTPUTS names].",
        metavar="FILE",
        panel=FILES,
    )
    show: bool = option(
        "--open", default=False, help="Open the picture when it is written.", panel=FILES
    )
    strict: bool = option(
        "--strict",
        default=False,
        help="Write no picture with a character that no font has.",
        panel=RARE,
    )

    def __post_init__(self) -> None:
        check_endings(self.output, self.ENDINGS)

    def planned(self, *more: Path | None, writes_picture: bool = True) -> list[Path]:
        """The files that will be written: those named, or else a picture in `outputs`; and `more`."""
        usual = [outputs() / "picture.png"] if writes_picture else []
        return [*(self.output or usual), *(path for path in more if path is not None)]


@group
class OutputSettings(FileSettings):
    """The files to write, or JSON to print."""

    json: bool = option(
        "--json", default=False, help="Print the record as JSON, and no picture.", panel=FILES
    )

    def planned(self, *more: Path | None, writes_picture: bool = True) -> list[Path]:
        """The same; with ``--json`` there is no usual picture."""
        return FileSettings.planned(self, *more, writes_picture=writes_picture and not self.json)


@group
class ShellSettings:
    """How a command speaks: what all commands take, before their name or after it."""

    quiet: bool = option(
        "--quiet",
        "-q",
        default=False,
        help="Print only what was asked for: no line about a file.",
        panel=RARE,
    )
    verbose: bool = option(
        "--verbose",
        "-v",
        default=False,
        help="Tell what was loaded from where, and how long each part took.",
        panel=RARE,
    )
    color: Literal["auto", "always", "never"] = option(
        "--color",
        default="auto",
        help="Colours in the terminal; auto leaves them out of a pipe.",
        panel=RARE,
    )
    no_pager: bool = option(
        "--no-pager",
        default=False,
        help="Print at once what is longer than the window, not in $PAGER.",
        panel=RARE,
    )

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise SettingsError("give quiet or verbose, not both")


def check_title(title: str | None) -> str | None:
    """The title, which is None for none; what no picture can have above it is refused by a `SettingsError`."""
    if re.search("[\ud800-\udfff]", title or ""):
        raise SettingsError("it holds half a character", "title")
    return title


def check_endings(paths: Iterable[Path], endings: Collection[str], name: str = "output") -> None:
    """Refuse files with an ending that nothing can be written as, by a `SettingsError`."""
    for path in paths:
        if path.suffix.lower() not in endings:
            from attnviz.storage.files import use_instead
            from attnviz.text.display import visible

            known = ", ".join(suffix.removeprefix(".") for suffix in endings)
            reason = use_instead(path.suffix) or f"the ending must be one of {known}"
            raise SettingsError(f"{visible(str(path))}: {reason}", name)
