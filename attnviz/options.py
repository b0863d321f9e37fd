"""The options that commands share, and what they mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import typer

from attnviz.models.registry import NAMES, RANDOM
from attnviz.render import names

PALETTES = tuple(names.PALETTES)
PICTURES = tuple(names.PICTURES)
RECORDS = (".json", ".npz", ".safetensors")
PAGES = (".md", ".tex", ".csv", ".html")
"""What a walkthrough is written as, beside a picture and its own JSON."""


_INPUT, _SHOWN, _FILES, _RUN = "Input", "What is shown", "Files", "The model"


def _models(incomplete: str) -> list[str]:
    """Names to complete: the home-built model, and what is in the cache."""
    from huggingface_hub import constants

    cached = Path(constants.HF_HUB_CACHE).glob("models--*")
    names = [
        *NAMES,
        *(folder.name.removeprefix("models--").replace("--", "/") for folder in cached),
    ]
    return [name for name in names if name.startswith(incomplete)]


def _palette(name: str) -> str:
    if name.removesuffix("_r") not in PALETTES:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(PALETTES)} (or one of them with _r)")
    return name


def _whole_number(typed: str | int) -> int:
    """A number as it is typed, or a default; what typer reads numbers with would take the range 0-1 for -1."""
    if re.fullmatch(r"-?\d{1,9}", str(typed).strip(), re.ASCII) is None:
        raise typer.BadParameter(f"{str(typed)!r} is no whole number: one is followed, not a range")
    return int(typed)


Text = Annotated[str | None, typer.Argument(help="The sentence; - reads it from standard input.", show_default=False)]
File = Annotated[Path | None, typer.Option("--file", help="Read the sentence from a file.", rich_help_panel=_INPUT)]
Pair = Annotated[
    str | None,
    typer.Option("--pair", help="A second sentence, for models that read two.", rich_help_panel=_INPUT),
]
Target = Annotated[
    str | None,
    typer.Option("--target", help="What a model that translates is made to say.", rich_help_panel=_INPUT),
]
Kind = Annotated[
    Literal["encoder", "decoder", "cross"] | None,
    typer.Option("--kind", help="Which attention, where a model has several.", rich_help_panel=_SHOWN),
]
Truncate = Annotated[
    bool,
    typer.Option("--truncate", help="Cut a text that is too long for the model, and say so.", rich_help_panel=_INPUT),
]
Load = Annotated[
    Path | None,
    typer.Option("--load", help="Draw a saved record (json, npz, safetensors) instead.", rich_help_panel=_INPUT),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="A Hugging Face model or a folder [default: distilbert-base-uncased].",
        autocompletion=_models,
        show_default=False,
        rich_help_panel=_RUN,
    ),
]
Toy = Annotated[bool, typer.Option("--toy", help="The home-built encoder: no download.", rich_help_panel=_RUN)]


def _size(option: str, least: int, meaning: str) -> object:
    """An option of the home-built model with random weights."""
    return typer.Option(
        option, min=least, help=f"Of {RANDOM}: {meaning}.", metavar="N", show_default=False, rich_help_panel=_RUN
    )


Seed = Annotated[int | None, _size("--seed", 0, "another seed, another model [default: 0]")]
DModel = Annotated[int | None, _size("--d-model", 1, "the width of the words' vectors [default: 20]")]
NHeads = Annotated[int | None, _size("--n-heads", 1, "how many heads share it [default: 4]")]
NLayers = Annotated[int | None, _size("--n-layers", 1, "how many layers follow one another [default: 2]")]
Revision = Annotated[
    str | None,
    typer.Option("--revision", help="A branch, tag or commit of the model.", rich_help_panel=_RUN),
]
Device = Annotated[
    Literal["auto", "cpu", "cuda", "mps"],
    typer.Option("--device", help="Where the model runs.", rich_help_panel=_RUN),
]
Dtype = Annotated[
    Literal["auto", "float32", "float64", "float16", "bfloat16"],
    typer.Option("--dtype", help="The model's number format; auto is as it was saved.", rich_help_panel=_RUN),
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option("--trust-remote-code", help="Let code that comes with the model run.", rich_help_panel=_RUN),
]
Layer = Annotated[
    list[str] | None,
    typer.Option(
        "--layer", help="A layer or a range, such as 2, 0-3, -1 (the last); repeatable.", metavar="N",
        show_default=False, rich_help_panel=_SHOWN,
    ),
]  # fmt: skip
Head = Annotated[
    list[str] | None,
    typer.Option(
        "--head", help="A head or a range, likewise.", metavar="N", show_default=False, rich_help_panel=_SHOWN
    ),
]
Words = Annotated[
    bool,
    typer.Option("--words", help="Merge word pieces: to a word the sum, from it the mean.", rich_help_panel=_SHOWN),
]
HideSpecial = Annotated[
    bool,
    typer.Option(
        "--hide-special",
        help="Leave out [CLS] and its like; rows are not renormalised.",
        rich_help_panel=_SHOWN,
    ),
]
Scale = Annotated[
    Literal["shared", "panel", "unit"],
    typer.Option(
        "--scale",
        help="Where colours end: one scale for all, each panel's own, or 0 to 1.",
        rich_help_panel=_SHOWN,
    ),
]
OneLayer = Annotated[
    int,
    typer.Option(
        "--layer", help="The layer, counted from 0, negative from the end.", parser=_whole_number, metavar="N",
        rich_help_panel=_SHOWN,
    ),
]  # fmt: skip
OneHead = Annotated[
    int,
    typer.Option("--head", help="The head, likewise.", parser=_whole_number, metavar="N", rich_help_panel=_SHOWN),
]
Query = Annotated[
    str | None,
    typer.Option(
        "--query", help="The word that looks, or its number, likewise [default: the first word; of --input all].",
        metavar="WORD|N", show_default=False, rich_help_panel=_SHOWN,
    ),
]  # fmt: skip
AllQueries = Annotated[
    bool, typer.Option("--all-queries", help="All words at once, in place of one.", rich_help_panel=_SHOWN)
]
WholeLayer = Annotated[
    bool,
    typer.Option(
        "--whole-layer", help="All heads, and what follows them, to the layer's output.", rich_help_panel=_SHOWN
    ),
]
Score = Annotated[
    Literal["dot", "scaled", "general", "additive"],
    typer.Option(
        "--score", help="How a query and a key make a score; another than scaled for home-built models alone.",
        rich_help_panel=_SHOWN,
    ),
]  # fmt: skip
Causal = Annotated[
    bool,
    typer.Option(
        "--causal", help="Hide what comes after each word; for home-built models alone.", rich_help_panel=_SHOWN
    ),
]
Steps = Annotated[
    str | None,
    typer.Option(
        "--steps", help="Only these steps, such as score,softmax,context.",
        metavar="NAMES", show_default=False, rich_help_panel=_SHOWN,
    ),
]  # fmt: skip
Precision = Annotated[
    int,
    typer.Option(
        "--precision", min=0, max=17, help="Digits after the point; 8 for --example seq2seq.", rich_help_panel=_SHOWN
    ),
]
Language = Annotated[Literal["en", "ko"], typer.Option("--lang", help="English or Korean.", rich_help_panel=_SHOWN)]
Example = Annotated[
    Literal["seq2seq", "self-attention"] | None,
    typer.Option("--example", help="A calculation that can be done by hand.", rich_help_panel=_INPUT),
]
Numbers = Annotated[
    Path | None,
    typer.Option(
        "--input", help="Your own numbers (json, yaml): query, keys, values; or X, Wq, Wk, Wv.",
        metavar="FILE", show_default=False, rich_help_panel=_INPUT,
    ),
]  # fmt: skip
Exercise = Annotated[
    bool,
    typer.Option(
        "--exercise", help="Leave cells blank, to be filled in; alone, small integers from --seed.",
        rich_help_panel=_INPUT,
    ),
]  # fmt: skip
Solution = Annotated[
    bool, typer.Option("--solution", help="With --exercise: the blank cells filled in.", rich_help_panel=_INPUT)
]
WalkOutput = Annotated[
    list[Path] | None,
    typer.Option(
        "--output", "-o",
        help="A file to write, by its ending: png, svg, pdf, json, md, tex, csv, html, gif, mp4; "
        "repeatable "
        "[default: a named PNG in outputs/].",
        metavar="FILE", show_default=False, rich_help_panel=_FILES,
    ),
]  # fmt: skip
Palette = Annotated[
    str,
    typer.Option(
        "--palette",
        help=f"One of {', '.join(PALETTES)}; with _r turned round.",
        autocompletion=lambda incomplete: [name for name in PALETTES if name.startswith(incomplete)],
        callback=_palette,
        metavar="NAME",
        rich_help_panel=_SHOWN,
    ),
]
Background = Annotated[
    Literal["auto", "dark", "light"],
    typer.Option("--background", help="The terminal's background; auto asks it.", rich_help_panel=_SHOWN),
]
Output = Annotated[
    list[Path] | None,
    typer.Option(
        "--output", "-o",
        help="A file to write, by its ending: png, svg, pdf, json, npz, safetensors; repeatable "
        "[default: a named PNG in outputs/].",
        metavar="FILE", show_default=False, rich_help_panel=_FILES,
    ),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="Print the record as JSON, and no picture.", rich_help_panel=_FILES)]
