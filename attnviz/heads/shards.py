"""Shards: parts of a corpus that are measured on their own, such as on several machines, and merged into the whole.

Shard i of n has the sentences i, i + n, i + 2 n, ... of the file, so that shards are of similar size and each machine
finds its own. A line that cannot be used belongs to the sentence after it, so that no shard has only such lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from attnviz.errors import RecordError, SettingsError
from attnviz.heads import survey
from attnviz.heads.files import Shard, Stats, differences, load_finished, shard_name
from attnviz.heads.survey import Survey
from attnviz.text.corpus import BadLine, CorpusLine
from attnviz.text.display import clip, visible


def parse_shard(text: str) -> Shard:
    """Return the shard of a text such as ``3/64``.

    Raises SettingsError: the text is not a shard, or there is no such shard.
    """
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if match is None:
        raise SettingsError(f"{clip(visible(text), 40)!r} is not I/N, such as 3/64", "shard")
    number, total = match.groups()
    return check_shard((int(number), int(total)))


def check_shard(shard: Shard) -> Shard:
    """Return the shard. Raises SettingsError: there is no such shard."""
    match shard:
        case (int(number), int(total)):
            pass
        case _:
            raise SettingsError(f"it is two numbers, such as (3, 64), not {shard!r}", "shard")
    if not 1 <= number <= total:
        raise SettingsError(
            f"there is no shard {shard_name(shard)}: I/N is one of 1/N to N/N", "shard"
        )
    return shard


def lines_of_shard(
    lines: Iterable[CorpusLine | BadLine], shard: Shard
) -> Iterator[CorpusLine | BadLine]:
    """Yield the lines of a corpus that belong to a shard."""
    number, total = shard
    n_sentences = 0
    for line in lines:
        if n_sentences % total == number - 1:
            yield line
        if isinstance(line, CorpusLine):
            n_sentences += 1


def merge_shards(paths: Sequence[Path]) -> Stats:
    """Return the measurements of a corpus from those of all its shards, in any order.

    Raises RecordError: a file is not a shard of the same run as the first, or a shard is missing or given twice.
    """
    path_of = sorted(_order_shards(paths).items())
    merged = merge_surveys(
        (visible(str(path)), load_finished(path).survey) for _number, path in path_of
    )
    first = load_finished(path_of[0][1])
    return replace(first, survey=merged, shard=None)


def merge_surveys(parts: Iterable[tuple[str, Survey]]) -> Survey:
    """Return the survey of a corpus from those of all its shards, each with its name, in the order of their numbers.

    Another order would change the last bits. Raises RecordError: a shard cannot be merged with the first.
    """
    merged: Survey | None = None
    bad: list[tuple[int, str]] = []
    for name, part in parts:
        bad += part.bad
        try:
            merged = part if merged is None else survey.merge(merged, part)
        except RecordError as error:
            raise RecordError(f"{name}: {error}") from None
    assert merged is not None  # there is at least one shard
    return replace(merged, bad=tuple(sorted(bad)[: survey.BAD_LINES]))


def _order_shards(paths: Sequence[Path]) -> dict[int, Path]:
    """Return the file of each shard by its number.

    The files are not kept in memory: there may be many, and each is as large as the result.
    """
    path_of: dict[int, Path] = {}
    first: Stats | None = None
    for path in paths:
        part, name = load_finished(path), visible(str(path))
        if part.shard is None:
            raise RecordError(f"{name} is not a shard: merge the shards of a corpus on their own")
        first = first or part
        assert first.shard is not None
        number, total = part.shard
        differing = differences(first, part.run, part.fingerprint)
        if total != first.shard[1]:
            differing.append(f"shards are {total}, was {first.shard[1]}")
        if differing:
            raise RecordError(
                f"{name} is not a shard of the same run as {visible(str(paths[0]))}: "
                f"{clip('; '.join(differing), 300)}"
            )
        if number in path_of:
            both = f"{visible(str(path_of[number]))} and {name}"
            raise RecordError(f"{both} are both shard {shard_name(part.shard)}")
        path_of[number] = path
    assert first is not None
    assert first.shard is not None
    total = first.shard[1]
    # From 7 and 12-14, "7,12-14": the form of Slurm's --array, to run these again.
    gaps = [(a + 1, b - 1) for a, b in pairwise([0, *sorted(path_of), total + 1]) if b > a + 1]
    if gaps:
        missing = ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in gaps)
        raise RecordError(f"some of {total} shards are missing: {clip(missing, 200)}")
    return path_of
