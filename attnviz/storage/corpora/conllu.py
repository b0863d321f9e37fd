"""Treebanks in CoNLL-U, the format of Universal Dependencies (https://universaldependencies.org/format.html).

A sentence at a time, with a line number for each mistake, as no library keeps; the sentences around a bad one are read.
Entities are read as CorefUD and GUM write them, in brackets in the last column: ``Entity=(e1-person-2`` where a mention
begins, ``Entity=e1)`` where it ends, ``Entity=(e1-person-1)`` for one word, ``(e1[1/2]`` for the first of two pieces.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise

from attnviz.text.corpus import COREFERENCE, Annotation, BadLine, CorpusLine, Link, universal
from attnviz.text.display import clip, visible

COLUMNS = 10
MOST_LINES = (
    10_000  # of a sentence: a file without empty lines is no treebank, and must not fill the memory
)
_NAME = re.compile(r"(0|[1-9][0-9]{0,5})(?:([-.])([1-9][0-9]{0,5}))?")
_KINDS = {None: "word", "-": "range", ".": "empty"}
_NUMBER = re.compile(r"0|[1-9][0-9]{0,5}")
_BRACKET = re.compile(r"\(([^()]+)(\))?|([^()]+)\)")
_PART = re.compile(r"(.+)\[([0-9]{1,3})/([0-9]{1,3})\]")


def read_conllu(lines: Iterable[str | BadLine]) -> Iterator[CorpusLine | BadLine]:
    """The sentences of a treebank, of its lines; in place of a malformed one, the first thing that is wrong with it."""
    return map(parse, split_sentences(lines))


def parse(sentence: SentenceLines) -> CorpusLine | BadLine:
    """A sentence from its lines; where they are malformed, the first thing that is wrong with them.

    Each word is linked to the word that it depends on, but for the root and punctuation; and the head of each mention
    to that of the nearest mention before it of the same person or thing. "Before" compares the two heads: so in "the
    boy who lost his way", all of it one mention, "his" is linked to "boy".
    """
    if sentence.fault is not None:
        return sentence.fault
    try:
        _check_order(sentence)
        heads = _heads(sentence)
        text, spans = _spans(sentence)
        chains = _chains(sentence, heads)
    except _MalformedError as error:
        return error.line
    links = [
        Link(query=number, key=head, relation=row.columns[7])
        for number, (row, head) in enumerate(zip(sentence.words(), heads, strict=True))
        if head >= 0 and universal(row.columns[7]) != "punct"
    ]
    pairs = sorted(
        (later, earlier) for chain in chains for earlier, later in pairwise(sorted(chain))
    )
    links += [Link(query=later, key=earlier, relation=COREFERENCE) for later, earlier in pairs]
    return CorpusLine(
        number=sentence.line,
        text=text,
        annotated=Annotation(words=tuple(spans), links=tuple(links)),
    )


class _MalformedError(Exception):
    def __init__(self, number: int, reason: str) -> None:
        super().__init__(reason)
        self.line = BadLine(number=number, reason=reason)


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a sentence taken apart: a word, several written as one (a range), or an empty node."""

    number: int  # its line in the file
    columns: list[str]  # all ten
    first: int  # its number in the sentence, from 1; of a range that of its first word, of an empty node the one before
    last: int  # of a range that of its last word; else as first
    kind: str  # "word", "range" or "empty"

    @property
    def form(self) -> str:
        """What is written."""
        return self.columns[1]

    def misc(self, name: str) -> str | None:
        """What the last column says under a name; None where it says nothing."""
        pairs = (item.partition("=") for item in self.columns[9].split("|"))
        return next((value for key, equals, value in pairs if key == name and equals), None)


@dataclass(slots=True)
class SentenceLines:
    """The lines of one sentence."""

    line: int  # where it begins
    id_field: int = 0  # which part of an opened bracket names the entity, as the file declares
    comments: dict[str, tuple[int, str]] = field(
        default_factory=dict
    )  # by name, each with its line
    rows: list[Row] = field(default_factory=list)
    fault: BadLine | None = None  # the first line that cannot be taken apart

    def words(self) -> list[Row]:
        """The rows that are words."""
        return [row for row in self.rows if row.kind == "word"]


def split_sentences(lines: Iterable[str | BadLine]) -> Iterator[SentenceLines]:
    """The lines of a treebank, a sentence at a time."""
    sentence: SentenceLines | None = None
    id_field = 0
    for number, line in enumerate(chain(lines, [""]), start=1):
        if isinstance(line, str) and not line.strip():
            if sentence is not None and (sentence.rows or sentence.fault):
                yield sentence
            sentence = None
            continue
        sentence = sentence or SentenceLines(number, id_field)
        try:
            _take(sentence, number, line)
        except _MalformedError as error:
            sentence.fault = sentence.fault or error.line
        id_field = sentence.id_field


def _take(sentence: SentenceLines, number: int, line: str | BadLine) -> None:
    if isinstance(line, BadLine):
        raise _MalformedError(number, line.reason)
    if line.startswith("#"):
        _comment(sentence, number, line)
    elif len(sentence.rows) < MOST_LINES:
        sentence.rows.append(_row(number, line.rstrip("\r\n")))
    else:
        raise _MalformedError(number, f"the sentence has more than {MOST_LINES:,} lines")


def _comment(sentence: SentenceLines, number: int, line: str) -> None:
    name, equals, value = line[1:].partition("=")
    name, value = name.strip(), value.strip()
    if name == "global.Entity" and equals:
        fields = value.split("-")
        sentence.id_field = next(
            (place for place, what in enumerate(fields) if what in {"eid", "GRP"}), 0
        )
    elif name in {"text", "sent_id"} and equals:
        if name in sentence.comments:
            raise _MalformedError(
                number, f"a second # {name}, after that of line {sentence.comments[name][0]}"
            )
        sentence.comments[name] = (number, value)


def _row(number: int, line: str) -> Row:
    columns = line.split("\t")
    if len(columns) != COLUMNS:
        hint = "" if "\t" in line else ": they are separated by tabs"
        counted = f"{len(columns)} column{'s' * (len(columns) > 1)}"
        raise _MalformedError(number, f"{counted} where there must be {COLUMNS}{hint}")
    name = _NAME.fullmatch(columns[0])
    if name is None or (name[1] == "0" and name[2] != "."):
        raise _MalformedError(number, f"{quote(columns[0])} is no word's number")
    if not columns[1]:
        raise _MalformedError(number, f"word {columns[0]} has no form")
    return Row(
        number, columns, int(name[1]), int(name[3] if name[2] == "-" else name[1]), _KINDS[name[2]]
    )


def _check_order(sentence: SentenceLines) -> None:
    last = covered = n_empty = 0
    for row in sentence.rows:
        match row.kind:
            case "word":
                fits = row.first == last + 1
                last, n_empty = row.first, 0
            case "range":
                fits = covered < last + 1 == row.first <= row.last
                covered = row.last
            case _:
                n_empty += 1
                fits = row.columns[0] == f"{last}.{n_empty}"
        if not fits:
            raise _MalformedError(row.number, f"number {row.columns[0]} is out of order")
    if not last:
        raise _MalformedError(sentence.line, "the sentence has no words")
    for row in sentence.rows:
        if row.kind == "range" and row.last > last:
            raise _MalformedError(row.number, f"{row.columns[0]} goes past the last word, {last}")


def show_word(row: Row) -> str:
    """A word as a message names it."""
    return f"word {row.columns[0]} ({quote(row.form)})"


def quote(text: str) -> str:
    """A few characters of the file as a message shows them."""
    return f"“{clip(visible(text), 30)}”"


def _heads(sentence: SentenceLines) -> list[int]:
    """The number of each word's head, from 0; -1 for the root."""
    words = sentence.words()
    root: Row | None = None
    for row in words:
        name, relation = row.columns[6], row.columns[7]
        if not _NUMBER.fullmatch(name):
            raise _MalformedError(
                row.number, f"the head of {show_word(row)} is {quote(name)}, which is no number"
            )
        if int(name) > len(words):
            what = f"the head of {show_word(row)} is {name}, but the last word of the sentence is {len(words)}"
            raise _MalformedError(row.number, what)
        if name == "0":
            if root is not None:
                raise _MalformedError(
                    row.number, f"a second root, {show_word(row)}, after {show_word(root)}"
                )
            root = row
        if relation in {"", "_"}:
            raise _MalformedError(row.number, f"{show_word(row)} has no relation to its head")
    if root is None:  # there is a circle too, which says less
        raise _MalformedError(
            sentence.line, "the sentence has no root: the head of one word must be 0"
        )
    heads = [int(row.columns[6]) - 1 for row in words]
    if circle := _circle(heads):
        names = " -> ".join(str(place + 1) for place in (*circle, circle[0]))
        raise _MalformedError(words[circle[0]].number, f"the heads run in a circle: {names}")
    return heads


def _circle(heads: list[int]) -> list[int]:
    """Words that depend on one another in a circle; empty where there are none."""
    done = set[int]()
    for start in range(len(heads)):
        path: list[int] = []
        place = start
        while place >= 0 and place not in done:
            done.add(place)
            path.append(place)
            place = heads[place]
        if place in path:
            return path[path.index(place) :]
    return []


def _spans(sentence: SentenceLines) -> tuple[str, list[tuple[int, int]]]:
    """The text of a sentence, and where each word lies in it."""
    tokens: list[tuple[Row, list[Row]]] = []
    for row in sentence.rows:
        if row.kind == "range" or (
            row.kind == "word" and not (tokens and row.last <= tokens[-1][0].last)
        ):
            tokens.append((row, [row] if row.kind == "word" else []))
        elif row.kind == "word":
            tokens[-1][1].append(row)
    gaps = ["" if row.misc("SpaceAfter") == "No" else " " for row, _ in tokens]
    written = "".join(row.form + gap for (row, _), gap in zip(tokens, gaps, strict=True)).rstrip()
    line, text = sentence.comments.get("text", (sentence.line, written))
    spans: list[tuple[int, int]] = []
    place = 0
    for (row, words), gap in zip(tokens, gaps, strict=True):
        if not text.startswith(row.form, place):
            there = quote(text[place : place + len(row.form)]) if text[place:] else "nothing more"
            raise _MalformedError(
                row.number, f"the text (line {line}) has {there} where {show_word(row)} should be"
            )
        letters = "".join(word.form for word in words)
        if (
            len(letters) == len(row.form) and letters.casefold() == row.form.casefold()
        ):  # each has its own letters
            spans += pairwise(accumulate((len(word.form) for word in words), initial=place))
        else:  # all have the whole
            spans += [(place, place + len(row.form))] * len(words)
        place += len(row.form)
        rest = text[place:].lstrip()
        space = len(text) - place - len(rest)
        if rest and row is not tokens[-1][0] and bool(space) != bool(gap):
            has, says = ("a space", "says") if space else ("no space", "does not say")
            what = f"the text (line {line}) has {has} after {show_word(row)}, but its last column {says} SpaceAfter=No"
            raise _MalformedError(row.number, what)
        place += space
    if text[place:]:
        raise _MalformedError(line, f"the text goes on after the last word: {quote(text[place:])}")
    return text, spans


class _Brackets:
    """The brackets of one sentence, read from its first row to its last."""

    def __init__(self, id_field: int) -> None:
        self.mentions: dict[
            tuple[str, int], set[int]
        ] = {}  # by entity and number, the places of the words
        self.opened: list[tuple[str, int, Row]] = []
        self._id_field, self._count = id_field, 0
        self._in_parts: dict[tuple[str, str], int] = {}

    def read(self, row: Row, value: str) -> None:
        # At an empty node nothing is read: a bracket there opens before the next word, or closes after the last.
        first, past = (row.first - 1, row.first) if row.kind == "word" else (row.first, row.first)
        place = 0
        while match := _BRACKET.match(value, place):
            place = match.end()
            if match[3] is not None:
                same = [index for index, (name, _, _) in enumerate(self.opened) if name == match[3]]
                if not same:
                    what = f"the bracket of entity {quote(match[3])} closes but was not opened"
                    raise _MalformedError(row.number, what)
                name, start, _ = self.opened.pop(same[-1])
                self._keep(name, start, past)
            elif match[2]:
                self._keep(self._entity(match[1]), first, past)
            else:
                self.opened.append((self._entity(match[1]), first, row))
        if place < len(value):
            raise _MalformedError(row.number, f"{quote(value[place:])} is no bracket of an entity")

    def _entity(self, opened: str) -> str:
        fields = opened.split("-")
        return fields[self._id_field] if self._id_field < len(fields) else fields[0]

    def _keep(self, name: str, first: int, past: int) -> None:
        """Keep a mention, or one of several pieces of it; one without a word belongs to a word that was left out."""
        self._count += 1
        number = self._count
        if part := _PART.fullmatch(name):
            name, whole = part[1], (part[1], part[3])
            if part[2] == "1":
                self._in_parts[whole] = number
            number = self._in_parts.get(whole, number)
        if first < past:
            self.mentions.setdefault((name, number), set()).update(range(first, past))


def _chains(sentence: SentenceLines, heads: list[int]) -> Collection[set[int]]:
    """The heads of the mentions of each person or thing: words whose own heads lie outside the mention.

    Of several such words it is the highest in the tree.
    """
    reader = _Brackets(sentence.id_field)
    for row in sentence.rows:
        if (value := row.misc("Entity")) is not None:
            if row.kind == "range":
                raise _MalformedError(
                    row.number, f"an entity is marked at {row.columns[0]}: mark it at its words"
                )
            reader.read(row, value)
    for name, _, row in reader.opened:
        raise _MalformedError(
            row.number, f"the bracket of entity {quote(name)} does not close in its sentence"
        )
    chains: dict[str, set[int]] = {}
    for (name, _), inside in reader.mentions.items():
        outermost = (place for place in inside if heads[place] not in inside)
        chains.setdefault(name, set()).add(
            min(outermost, key=lambda place: (_depth(place, heads), place))
        )
    return chains.values()


def _depth(place: int, heads: list[int]) -> int:
    """How many steps up the tree to the root."""
    steps = 0
    while heads[place] >= 0:
        place, steps = heads[place], steps + 1
    return steps
