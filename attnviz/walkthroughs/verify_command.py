"""``attnviz verify``: a saved walkthrough computed again, in plain Python arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

from attnviz.settings import REQUIRED, option
from attnviz.text.display import visible

EXAMPLES = """Examples:

attnviz walkthrough --toy -o walk.json

attnviz verify walk.json"""

MOST = 12
"""Names of grids that are listed one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySettings:
    """What is verified.

    Attributes:
        file: a saved walkthrough.
    """

    file: Path = option(default=REQUIRED, help="A walkthrough, saved with -o FILE.json.", metavar="FILE")


def command(settings: VerifySettings) -> None:
    """Compute a saved walkthrough again, in plain Python arithmetic, and name the first number that is wrong.

    Neither torch nor numpy takes part. Every step is computed from the numbers in the file.
    """
    from attnviz.errors import RecordError
    from attnviz.walkthroughs.verify import TOLERANCE, Verdict, verify

    verdict: Verdict = verify(settings.file)
    if verdict.fault:
        raise RecordError(f"{visible(str(settings.file))}: {verdict.fault}")
    names = [f"{i}. {step.step}" for i, step in enumerate(verdict.checked, start=1)]
    made = [f"{step.grid} ({step.shape[0]}, {step.shape[1]})" for step in verdict.checked]
    wide = [max(map(len, texts), default=0) for texts in (names, made)]
    for name, grid, step in zip(names, made, verdict.checked, strict=True):
        typer.echo(f"{name.ljust(wide[0])}  {grid.ljust(wide[1])}  largest difference {_shown(step.largest)}")
    if verdict.given:
        typer.echo(f"given, so not computed: {_listed(verdict.given)}")
    if verdict.unused:
        typer.echo(f"nothing is made from {_listed(verdict.unused)}: nothing here tells whether that is right")
    if verdict.own is not None and verdict.difference is not None:
        typer.echo(f"from the model's own {verdict.own}, says the file: {_shown(verdict.difference)}")
    steps, cells = len(verdict.checked), verdict.cells
    typer.echo(
        f"verified: {steps} step{'' if steps == 1 else 's'}, {cells:,} cell{'' if cells == 1 else 's'}, largest "
        f"difference {_shown(verdict.largest)} (at most {TOLERANCE:.0e} of what a cell is made of)"
    )


def _listed(names: tuple[str, ...]) -> str:
    """The names; of many the first."""
    more = len(names) - MOST
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:MOST])} and {more} more"


def _shown(difference: float) -> str:
    return f"{difference:.1e}" if difference else "0"
