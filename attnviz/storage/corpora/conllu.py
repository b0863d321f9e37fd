"""Treebanks in CoNLL-U, the format of Universal Dependencies, read with the library `conllu`.

Entities are read as CorefUD and GUM write them, in brackets in the last column: ``Entity=(e1-person-2`` where a mention
begins, ``Entity=e1)`` where it ends, ``Entity=(e1-person-1)`` for one word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING

from attnviz.text.corpus import COREFERENCE, Annotation, BadLine, CorpusLine, Link, Span, universal
from attnviz.text.display import clip, visible

if TYPE_CHECKING:
    from conllu import Token, TokenList

COLUMNS = 10
MOST_LINES = 10_000  # most lines of a sentence: a file without empty lines must not fill the memory


class _MalformedError(Exception):
    """A sentence that cannot be used; the message says why."""


def read_conllu(lines: Iterable[str | BadLine]) -> Iterator[CorpusLine | BadLine]:
    """Yield the sentences of a treebank; a malformed one becomes a BadLine that says what is wrong.

    Each word except the root and punctuation is linked to the word that it depends on; the head of each mention is
    linked to the head of the nearest earlier mention of the same entity.
    """
    from conllu import parse
    from conllu.exceptions import ParseException

    id_field = 0  # which part of an opening bracket names the entity, as the file declares
    for first, block in _blocks(lines):
        if bad := _bad_line(first, block):
            yield bad
            continue
        try:
            sentence = parse("\n".join(map(str, block)))[0]
            if declared := sentence.metadata.get("global.Entity"):
                names = declared.split("-")
                id_field = next((i for i, name in enumerate(names) if name in {"eid", "GRP"}), 0)
            if sentence:
                text, annotation = _annotate(sentence, id_field)
                yield CorpusLine(number=first, text=text, annotated=annotation)
        except (ParseException, _MalformedError) as error:
            yield BadLine(number=first, reason=clip(visible(str(error)), 120))


def _blocks(lines: Iterable[str | BadLine]) -> Iterator[tuple[int, list[str | BadLine]]]:
    """Yield the lines of each sentence, with the number of the first."""
    block: list[str | BadLine] = []
    first = 1
    for number, line in enumerate(chain(lines, [""]), start=1):
        if isinstance(line, BadLine) or line.strip():
            if not block:
                first = number
            if len(block) <= MOST_LINES:
                block.append(line if isinstance(line, BadLine) else line.rstrip("\r\n"))
        elif block:
            yield first, block
            block = []


def _bad_line(first: int, block: Sequence[str | BadLine]) -> BadLine | None:
    """Return the first malformed line of a sentence, or None."""
    if len(block) > MOST_LINES:
        reason = f"the sentence has more than {MOST_LINES:,} lines"
        return BadLine(number=first + MOST_LINES, reason=reason)
    for number, line in enumerate(block, start=first):
        if isinstance(line, BadLine):
            return BadLine(number=number, reason=line.reason)
        n_columns = len(line.split("\t"))
        if not line.startswith("#") and n_columns != COLUMNS:
            counted = "1 column" if n_columns == 1 else f"{n_columns} columns"
            reason = f"{counted} where there must be {COLUMNS}, separated by tabs"
            return BadLine(number=number, reason=reason)
    return None


def _annotate(sentence: TokenList, id_field: int) -> tuple[str, Annotation]:
    """Return the text of a sentence and the links between its words. Raises _MalformedError."""
    if any(len(token) < COLUMNS or token["id"] is None for token in sentence):
        raise _MalformedError("a line has an empty column")
    words = [token for token in sentence if isinstance(token["id"], int)]
    if [word["id"] for word in words] != list(range(1, len(words) + 1)) or not words:
        raise _MalformedError("the words are not numbered 1, 2, 3")
    text, spans = _spans(sentence, words)
    heads = _heads(words)
    links = [
        Link(query=number, key=head, relation=word["deprel"])
        for number, (word, head) in enumerate(zip(words, heads, strict=True))
        if head >= 0 and universal(word["deprel"]) != "punct"
    ]
    links += _coreference_links(sentence, id_field, heads)
    return text, Annotation(words=tuple(spans), links=tuple(links))


def _heads(words: Sequence[Token]) -> list[int]:
    """Return the index of each word's head, -1 for the root."""
    for word in words:
        if word["head"] is None or not 0 <= word["head"] <= len(words):
            raise _MalformedError(f"word {word['id']} ({word['form']}) has no head in the sentence")
        if word["deprel"] in {"", "_"}:
            raise _MalformedError(f"word {word['id']} ({word['form']}) has no relation to its head")
    heads = [word["head"] - 1 for word in words]
    if heads.count(-1) != 1:
        raise _MalformedError("the head of exactly one word, the root, must be 0")
    for index in range(len(words)):
        _depth(index, heads)
    return heads


def _depth(word: int, heads: Sequence[int]) -> int:
    """Return how many words stand above a word in the tree."""
    depth = 0
    while (word := heads[word]) >= 0:
        depth += 1
        if depth > len(heads):
            raise _MalformedError("the heads run in a circle")
    return depth


def _coreference_links(sentence: TokenList, id_field: int, heads: Sequence[int]) -> list[Link]:
    """Return links from the head of each mention to the head of the mention before it of the same entity."""
    mention_heads: dict[str, set[int]] = {}
    for entity, mention in _mentions(sentence, id_field):
        head = min(mention, key=lambda word: (_depth(word, heads), word))
        mention_heads.setdefault(entity, set()).add(head)
    pairs = sorted(
        (later, earlier)
        for chain in mention_heads.values()
        for earlier, later in pairwise(sorted(chain))
    )
    return [Link(query=later, key=earlier, relation=COREFERENCE) for later, earlier in pairs]


def _spans(sentence: TokenList, words: Sequence[Token]) -> tuple[str, list[Span]]:
    """Return the text of a sentence, and the first and one-past-last character of each word."""
    tokens = _surface_tokens(sentence, words)
    joined = ""
    for token, _parts in tokens:
        is_glued = (token["misc"] or {}).get("SpaceAfter") == "No"
        joined += token["form"] if is_glued else f"{token['form']} "
    text = sentence.metadata.get("text", joined.rstrip())
    spans: list[Span] = []
    place = 0
    for token, parts in tokens:
        form = token["form"]
        place += len(text[place:]) - len(text[place:].lstrip())
        if not form or not text.startswith(form, place):
            there = clip(text[place:], 30)
            raise _MalformedError(f"the text has “{there}” where “{form}” should be")
        sizes = [len(part["form"]) for part in parts]
        letters = "".join(part["form"] for part in parts)
        if sum(sizes) == len(form) and letters.casefold() == form.casefold():
            ends = list(accumulate(sizes, initial=place))  # each word has its own characters
            spans += pairwise(ends)
        else:  # all words share the span
            spans += [(place, place + len(form))] * len(parts)
        place += len(form)
    if rest := text[place:].strip():
        raise _MalformedError(f"the text goes on after the last word: “{clip(rest, 30)}”")
    if len(spans) != len(words):
        raise _MalformedError("a range of words is not in order")
    return text, spans


def _surface_tokens(sentence: TokenList, words: Sequence[Token]) -> list[tuple[Token, list[Token]]]:
    """Return the tokens as they are written, each with its words: "don't" is one token with the words 1-2."""
    tokens: list[tuple[Token, list[Token]]] = []
    covered = 0  # number of the last word that belongs to a range
    for token in sentence:
        if isinstance(token["id"], int):
            if token["id"] > covered:
                tokens.append((token, [token]))
        elif token["id"][1] == "-":
            start, _, covered = token["id"]
            tokens.append((token, list(words[start - 1 : covered])))
    return tokens


def _mentions(sentence: TokenList, id_field: int) -> Iterator[tuple[str, range]]:
    """Yield the entity of each mention and the indices of its words; `id_field` is as in `read_conllu`."""
    opened: list[tuple[str, int]] = []  # the entities of open brackets, and the first word of each
    word = 0  # the index of the next word
    for token in sentence:
        # Ranges ("1-2") and empty nodes ("8.1") are tokens, but no words.
        end = word + 1 if isinstance(token["id"], int) else word
        entities = (token["misc"] or {}).get("Entity") or ""
        for bracket in re.findall(r"\([^()]+\)?|[^()]+\)", entities):
            is_opening = bracket.startswith("(")
            fields = bracket.strip("()").split("-")
            entity = fields[id_field] if is_opening and id_field < len(fields) else fields[0]
            if is_opening:
                opened.append((entity, word))
            if bracket.endswith(")"):
                start = _close_bracket(opened, entity)
                # For a discontinuous mention, such as e1[1/2], only the first piece is used.
                if start < end and not re.search(r"\[[2-9]", entity):
                    yield entity.partition("[")[0], range(start, end)
        word = end
    if opened:
        raise _MalformedError(
            f"the bracket of entity {opened[0][0]} does not close in its sentence"
        )


def _close_bracket(opened: list[tuple[str, int]], entity: str) -> int:
    """Remove the latest open bracket of an entity, and return the first word in it."""
    for index in reversed(range(len(opened))):
        if opened[index][0] == entity:
            return opened.pop(index)[1]
    raise _MalformedError(f"the bracket of entity {entity} closes but was not opened")
