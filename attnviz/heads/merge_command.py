"""``attnviz merge``: what was measured on parts of a corpus, put together."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from attnviz.errors import RecordError
from attnviz.text.display import visible

EXAMPLES = """Examples:

attnviz merge monday.stats tuesday.stats -o week.stats"""


def command(
    parts: Annotated[list[Path], typer.Argument(help="The .stats files of the parts.", metavar="STATS...")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .stats file to write.", metavar="FILE")],
) -> None:
    """Put together what compare-heads measured on parts of a corpus, perhaps on several machines.

    The numbers are those of one run over all the parts, but for the rounding of sums; a sentence that is in two parts
    counts twice, as in one corpus that has it twice. attnviz compare-heads --load FILE shows them.
    """
    from attnviz.heads import survey
    from attnviz.heads.files import surveys
    from attnviz.storage import encoding
    from attnviz.storage.files import check_writable

    if output.suffix.lower() != encoding.SUFFIX:
        raise typer.BadParameter(f"{visible(str(output))}: the ending must be stats", param_hint="'--output' / '-o'")
    check_writable(output)
    whole: surveys.Stats | None = None
    for path in parts:
        stats = surveys.load(path)
        if stats.n_lines is not None:
            raise RecordError(f"{visible(str(path))} is a checkpoint of a run that was broken off: let it end first")
        try:
            whole = (
                stats
                if whole is None
                else surveys.Stats(
                    survey=survey.merge(whole.survey, stats.survey),
                    corpora=(*whole.corpora, *stats.corpora),
                    options=whole.options,
                )
            )
        except RecordError as error:
            raise RecordError(f"{visible(str(path))}: {error}") from None
    if whole is None:
        raise typer.BadParameter("give the .stats files of the parts")
    surveys.save(whole, output)
    found = whole.survey
    sys.stderr.write(f"wrote {visible(str(output))}: {found.n_sentences:,} sentences, {found.n_tokens:,} tokens\n")
