"""Who is meant by which words: the entities of a treebank, marked with brackets in its last column.

As CorefUD and GUM write them: ``Entity=(e1-person-2`` where a mention begins, ``Entity=e1)`` where it ends,
``Entity=(e1-person-1)`` for one word, ``(e1[1/2]`` for the first of two pieces; several may follow one another.
"""

from __future__ import annotations

import re

from attnviz.storage.corpora.conllu_lines import Block, Row, quoted
from attnviz.text.corpus import Mention

_BRACKET = re.compile(r"\(([^()]+)(\))?|([^()]+)\)")
_PART = re.compile(r"(.+)\[([0-9]{1,3})/([0-9]{1,3})\]")


class _Reader:
    """The brackets of one sentence, read from its first row to its last."""

    def __init__(self, id_field: int) -> None:
        self.pieces: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self.opened: list[tuple[str, int, Row]] = []
        self._id_field = id_field
        self._count = 0
        self._in_parts: dict[tuple[str, str], int] = {}

    def read(self, row: Row, value: str) -> str | None:
        """Take the brackets of a row; what is wrong with them, if anything is."""
        # At an empty node nothing is read: a bracket there opens before the next word, or closes after the last.
        first, past = (row.first - 1, row.first) if row.kind == "word" else (row.first, row.first)
        place = 0
        while match := _BRACKET.match(value, place):
            place = match.end()
            if match[3] is not None:
                same = [index for index, (name, _, _) in enumerate(self.opened) if name == match[3]]
                if not same:
                    return f"the bracket of entity {quoted(match[3])} closes but was not opened"
                name, start, _ = self.opened.pop(same[-1])
                self._keep(name, start, past)
            elif match[2]:
                self._keep(self._entity(match[1]), first, past)
            else:
                self.opened.append((self._entity(match[1]), first, row))
        return None if place == len(value) else f"{quoted(value[place:])} is no bracket of an entity"

    def _entity(self, opened: str) -> str:
        """Which entity an opened bracket names, as the bracket that closes it does."""
        fields = opened.split("-")
        return fields[self._id_field] if self._id_field < len(fields) else fields[0]

    def _keep(self, name: str, first: int, past: int) -> None:
        """Keep a mention, or one of several pieces of it; one that has no word is of what was left out."""
        self._count += 1
        number = self._count
        part = _PART.fullmatch(name)
        if part is not None:
            name, whole = part[1], (part[1], part[3])
            if part[2] == "1":
                self._in_parts[whole] = number
            number = self._in_parts.get(whole, number)
        if first < past:
            self.pieces.setdefault((name, number), []).append((first, past))


def mentions(block: Block, heads: list[int]) -> list[Mention]:
    """The mentions of a sentence, if nothing is wrong with it, in the order in which they begin, the longer first."""
    reader = _Reader(block.id_field)
    for row in block.rows:
        value = row.misc("Entity")
        if value is None:
            continue
        if row.kind == "range":
            block.fault(row.number, f"an entity is marked at {row.columns[0]}: mark it at its words")
        elif wrong := reader.read(row, value):
            block.fault(row.number, wrong)
    for name, _, row in reader.opened:
        block.fault(row.number, f"the bracket of entity {quoted(name)} does not close in its sentence")
    if block.faults:
        return []
    found = [_mention(name, spans, heads) for (name, _), spans in reader.pieces.items()]
    return sorted(found, key=lambda mention: (mention.words[0], -mention.words[1], mention.entity))


def _mention(name: str, spans: list[tuple[int, int]], heads: list[int]) -> Mention:
    inside = {place for first, past in spans for place in range(first, past)}
    head = min((_depth(place, heads), place) for place in inside if heads[place] not in inside)[1]
    words = next(span for span in spans if span[0] <= head < span[1])
    return Mention(entity=name, words=words, head=head)


def _depth(place: int, heads: list[int]) -> int:
    """How many steps up the tree to the root."""
    steps = 0
    while heads[place] >= 0:
        place = heads[place]
        steps += 1
    return steps
