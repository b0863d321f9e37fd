"""The options of the commands that compare heads, and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from attnviz.errors import SelectionError

_INPUT, _SHOWN, _FILES, _RUN = "Input", "What is shown", "Files", "The model"
CONTROLS, MAX_OFFSET = 200, 8
"""What is measured where nothing else is typed."""
FARTHEST = 128
"""The farthest fixed offset that can be asked for: the room for measures grows with it."""
TABLES = (".csv", ".json", ".stats")
"""What a comparison is written as, beside pictures; .stats can be drawn, merged and gone on with later."""


def check_chosen(sort: str, roles: Sequence[str], max_offset: int) -> None:
    """Find out whether there is such an order of the table, and such roles: hours of a corpus are no time to learn it.

    Of relations only a treebank tells the names.

    Raises:
        BadParameter: there is none of that name.
    """
    if sort == "head" and not roles:
        return
    from attnviz.heads.shown import check_role, check_sort

    if sort != "head":
        _known(check_sort, sort, max_offset, "'--sort'")
    for role in roles:
        _known(check_role, role, max_offset, "'--role'")


def _known(check: Callable[[str, int], None], name: str, max_offset: int, option: str) -> None:
    try:
        check(name, max_offset)
    except SelectionError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


Text = Annotated[
    str | None,
    typer.Argument(
        help="One sentence; - reads it from standard input [default: sentences that come with attnviz].",
        show_default=False,
    ),
]
Corpus = Annotated[
    str | None,
    typer.Option(
        "--corpus",
        help="Any number of sentences, a line each; - is standard input. Also .jsonl, .conllu; .gz, .bz2, .xz.",
        metavar="FILE", show_default=False, rich_help_panel=_INPUT,
    ),
]  # fmt: skip
Field = Annotated[
    str | None,
    typer.Option(
        "--field", help="Where the objects of a .jsonl hold their sentence [default: text].",
        metavar="NAME", show_default=False, rich_help_panel=_INPUT,
    ),
]  # fmt: skip
Treebank = Annotated[
    str | None,
    typer.Option(
        "--conllu", help="A treebank: which relation between words each head finds.",
        metavar="FILE", show_default=False, rich_help_panel=_INPUT,
    ),
]  # fmt: skip
Load = Annotated[
    Path | None,
    typer.Option(
        "--load", help="Draw what was measured and saved as .stats; its model is run for examples alone.",
        metavar="FILE", show_default=False, rich_help_panel=_INPUT,
    ),
]  # fmt: skip
Truncate = Annotated[
    bool,
    typer.Option(
        "--truncate", help="Cut sentences that are too long for the model; else they are left out and counted.",
        rich_help_panel=_INPUT,
    ),
]  # fmt: skip
Sort = Annotated[
    str,
    typer.Option(
        "--sort", help="Order of the table: head, role, score, or a measure such as entropy, the largest first.",
        metavar="NAME", rich_help_panel=_SHOWN,
    ),
]  # fmt: skip
Role = Annotated[
    list[str] | None,
    typer.Option(
        "--role", help="Only heads of this role, such as previous; repeatable.",
        metavar="NAME", show_default=False, rich_help_panel=_SHOWN,
    ),
]  # fmt: skip
Specials = Annotated[
    Literal["keep", "exclude"],
    typer.Option(
        "--specials", help="Whether [CLS] and its like look and are looked at, or all is as if they were masked.",
        rich_help_panel=_SHOWN,
    ),
]  # fmt: skip
Threshold = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold", help="From when on a head has a role, such as previous=0.4; repeatable.",
        metavar="ROLE=X", show_default=False, rich_help_panel=_SHOWN,
    ),
]  # fmt: skip
Likeness = Annotated[
    bool,
    typer.Option("--likeness/--no-likeness", help="Compare all pairs of heads too.", rich_help_panel=_SHOWN),
]
MaxOffset = Annotated[
    int,
    typer.Option(
        "--max-offset", help="Measure fixed offsets from so many tokens back to so many ahead.",
        min=1, max=FARTHEST, metavar="N", rich_help_panel=_RUN,
    ),
]  # fmt: skip
Controls = Annotated[
    int,
    typer.Option(
        "--controls", min=0, help="On how many of the sentences controls are taken.", metavar="N", rich_help_panel=_RUN
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint", help="A .stats file to write as it goes, and to go on from after a break.",
        metavar="FILE", show_default=False, rich_help_panel=_FILES,
    ),
]  # fmt: skip
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        help="Another model of the same tokens and heads, such as a fine-tuned one, or a .stats file: what changed.",
        metavar="MODEL", show_default=False, rich_help_panel=_INPUT,
    ),
]  # fmt: skip
FailAbove = Annotated[
    float | None,
    typer.Option(
        "--fail-above",
        help="With --against: exit status 3 where a head's pattern changed by more than so many nats (0 to 0.69).",
        metavar="X", show_default=False, rich_help_panel=_SHOWN,
    ),
]  # fmt: skip
Output = Annotated[
    list[Path] | None,
    typer.Option(
        "--output", "-o",
        help="A file to write, by its ending: png, svg, pdf, csv, json, stats; repeatable "
        "[default: a named PNG in outputs/].",
        metavar="FILE", show_default=False, rich_help_panel=_FILES,
    ),
]  # fmt: skip
Clustermap = Annotated[
    Path | None,
    typer.Option(
        "--clustermap", help="A picture (png, svg, pdf) of all pairs of heads, drawn by seaborn; needs scipy.",
        metavar="FILE", show_default=False, rich_help_panel=_FILES,
    ),
]  # fmt: skip
Json = Annotated[bool, typer.Option("--json", help="Print all of it as JSON, and no picture.", rich_help_panel=_FILES)]
