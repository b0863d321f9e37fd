"""The options of the command line, each defined once as a type; a command lists the options that it takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from attnviz.cli import output
from attnviz.errors import SelectionError, SettingsError
from attnviz.models.registry import Device as DeviceName
from attnviz.render.names import PALETTES
from attnviz.text.messages import language

if TYPE_CHECKING:
    from attnviz.attention import MeanAxis

# The headings of help, in their order.
INPUT, MODEL, SHOWN, LOOK, FILES = "Input", "Model", "What is shown", "Appearance", "Files"
PANELS = (INPUT, MODEL, SHOWN, LOOK, FILES)


def complete_models(incomplete: str) -> list[str]:
    """Return the home-built and cached models whose names begin with the typed text."""
    from attnviz.capture.sources.hub import cached_models
    from attnviz.models.registry import names

    return [name for name in (*names(), *cached_models()) if name.startswith(incomplete)]


def complete_palettes(incomplete: str) -> list[str]:
    """Return the palettes whose names begin with the typed text."""
    return [name for name in PALETTES if name.startswith(incomplete)]


def check_palette(name: str) -> str:
    """Return the name of a palette.

    Raises SettingsError: there is no such palette.
    """
    if name.removesuffix("_r") not in PALETTES:  # known names need no slow import
        from attnviz.render.palette import colours

        try:
            colours(name)
        except SelectionError as error:
            raise SettingsError(str(error), "palette") from None
    return name


def choose_language(context: typer.Context, code: str) -> str:
    """Show texts in this language until the command ends."""
    context.with_resource(language(code))
    return code


def option(*names: str, panel: str, **more: Any) -> Any:
    """Return an option under a heading of help."""
    return typer.Option(*names, rich_help_panel=panel, show_envvar=False, **more)


def output_option(endings: str, default: str = "a PNG in outputs/") -> Any:
    """Return ``--output`` for a command that writes files with these endings."""
    return option(
        "--output",
        "-o",
        metavar="FILE",
        help=f"A file to write: {endings}; repeatable [default: {default}].",
        show_default=False,
        panel=FILES,
    )


# Input
Text = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT",
        help="The sentence; - reads standard input.",
        show_default=False,
        rich_help_panel=INPUT,
    ),
]
File = Annotated[
    Path | None, option("--file", metavar="FILE", help="Read it from a file.", panel=INPUT)
]
Pair = Annotated[
    str | None,
    option(
        "--pair", metavar="TEXT", help="A second sentence, for models that read two.", panel=INPUT
    ),
]
Target = Annotated[
    str | None,
    option(
        "--target",
        metavar="TEXT",
        help="The translation to force, for models that translate.",
        panel=INPUT,
    ),
]
# Model
Model = Annotated[
    str | None,
    option(
        "--model",
        "-m",
        metavar="NAME",
        help="A name, a folder, name@revision or code.py:function.",
        envvar="ATTNVIZ_MODEL",
        autocompletion=complete_models,
        panel=MODEL,
    ),
]
Toy = Annotated[bool, option("--toy", help="The small model that ships with attnviz.", panel=MODEL)]
Device = Annotated[DeviceName, option("--device", help="Where the model runs.", panel=MODEL)]
TrustRemoteCode = Annotated[
    bool,
    option("--trust-remote-code", help="Allow code shipped with the model to run.", panel=MODEL),
]

# What is shown
Layer = Annotated[
    list[str] | None,
    option("--layer", metavar="N", help="Layers: 2, 0-3, -1 (the last); repeatable.", panel=SHOWN),
]
Head = Annotated[
    list[str] | None,
    option(
        "--head", metavar="L.H", help="Heads: 2.3; 3, 0-3 of each layer; repeatable.", panel=SHOWN
    ),
]
Kind = Annotated[
    Literal["encoder", "decoder", "cross"] | None,
    option("--kind", help="Which attention, if several.", panel=SHOWN),
]

# Appearance
Palette = Annotated[
    str,
    option(
        "--palette",
        metavar="NAME",
        help="A palette of attnviz, Matplotlib or seaborn.",
        envvar="ATTNVIZ_PALETTE",
        autocompletion=complete_palettes,
        callback=check_palette,
        panel=LOOK,
    ),
]
Lang = Annotated[
    Literal["en", "ko"],
    option(
        "--lang",
        help="English or Korean.",
        envvar="ATTNVIZ_LANG",
        panel=LOOK,
        callback=choose_language,
    ),
]
Style = Annotated[
    Literal["sheet", "slides", "paper"],
    option("--style", help="What pictures are for.", panel=LOOK),
]
Theme = Annotated[
    Literal["auto", "light", "dark"],
    option("--theme", help="Light or dark paper.", envvar="ATTNVIZ_THEME", panel=LOOK),
]
# Files
Quiet = Annotated[
    bool,
    option(
        "--quiet",
        "-q",
        help='Hide messages such as "wrote ...".',
        callback=output.set_quiet,
        panel=FILES,
    ),
]


def parse_numbers(typed: Sequence[str] | None, option: str) -> list[int] | None:
    """Parse numbers and ranges such as ``2``, ``0-3`` or ``-1``; return None if nothing was typed.

    Raises:
        SettingsError: a text is neither a number nor a range, or a range counts from the end.
    """
    if not typed:
        return None
    numbers: list[int] = []
    for text in typed:
        first, last = _ends(text, option)
        if first != last and min(first, last) < 0:
            raise SettingsError(f"{text!r}: give numbers from the end one by one: -2, -1", option)
        numbers.extend(range(first, last + 1))
    return numbers


def _ends(text: str, option: str) -> tuple[int, int]:
    """Parse a number or a range, both of whose ends may count from the end."""
    match = re.fullmatch(r"(-?\d{1,7})(?:-(-?\d{1,7}))?", text.strip(), re.ASCII)
    if match is None:
        raise SettingsError(f"{text!r} is neither a number nor a range such as 0-3", option)
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first and (first < 0) == (last < 0):
        raise SettingsError(f"the first of {text!r} must not be after the last", option)
    return first, last


def parse_heads(
    layer: Sequence[str] | None, head: Sequence[str] | None
) -> tuple[list[int] | None, list[int | tuple[int, int]] | None]:
    """Parse ``--layer 2 --head 3``, or ``--head 2.3``, as `attnviz.attention.normalize_selection` does.

    Raises:
        SettingsError: a text is no number, or options contradict each other.
    """
    from attnviz.attention import dotted, normalize_selection, parse_head

    heads: list[int | str] = []
    try:
        for text in head or ():
            before, dot, numbers = dotted(text).strip().rpartition(".")
            if "," in numbers:
                parse_head(text)  # refuses it, and says how a head is written
            for number in parse_numbers([numbers], "head") or ():
                heads.append(f"{before}.{number}" if dot else number)
        return normalize_selection(parse_numbers(layer, "layer"), heads or None)
    except SelectionError as error:
        raise SettingsError(str(error), "head") from None


def one_head(head: Sequence[str] | None) -> str | None:
    """Return the head that is given where one is shown. Raises SettingsError: several are given."""
    if head and len(head) > 1:
        raise SettingsError(f"one head is shown here, not {' and '.join(head)}", "head")
    return head[0] if head else None


def parse_means(
    layer: Sequence[str] | None, head: Sequence[str] | None
) -> tuple[MeanAxis, ...] | None:
    """Return the axes to average over, those whose option has ``mean``; none for all heads that are chosen.

    None stands for no mean. Raises SettingsError: ``--layer mean`` stands beside heads with their layers.
    """
    has_layers = any("." in text for text in head or ())
    if "mean" in (layer or ()):
        if has_layers:
            heads = " and ".join(head or ())
            raise SettingsError(f"--layer mean and --head {heads} contradict each other")
        return ("layers", "heads") if "mean" in (head or ()) else ("layers",)
    if "mean" not in (head or ()):
        return None
    return () if has_layers else ("heads",)


def parse_slice(typed: str | None, option: str) -> slice | None:
    """Parse a number or a range of tokens, both ends included; negative numbers count from the end.

    Raises:
        SettingsError: the text is neither a number nor a range.
    """
    if typed is None:
        return None
    first, last = _ends(typed, option)
    # A slice excludes its end, hence + 1; for -1, the last token, that would be 0, so the end is None.
    return slice(first, None if last == -1 else last + 1)
