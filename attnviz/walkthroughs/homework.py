"""A person's own numbers, typed by hand in JSON or YAML, made a walkthrough.

Either ``query``, ``keys``, ``values``, or ``X`` with ``Wq``, ``Wk``, ``Wv``, or ``weights`` and ``values``; without
values the calculation ends at the weights. What does not fit is refused by the names and lines of both.
"""

from __future__ import annotations

import json
import math
import os
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeAlias, get_args

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Note
from attnviz.errors import FileFormatError, InputError, RecordError, SelectionError
from attnviz.storage.files import as_file_error, check_is_file
from attnviz.text.display import clip, from_utf8, visible
from attnviz.text.suggest import suggest
from attnviz.walkthroughs.calculation import SCORE_WEIGHTS, Calculation, Terms, find_row
from attnviz.walkthroughs.operations import SIDES
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.settings import Score

if TYPE_CHECKING:
    import yaml

DIRECT = ("query", "keys", "values")
PROJECTIONS = ("X", "Wq", "Wk", "Wv")
NEEDED = (
    "query",
    "keys",
    "X",
    "Wq",
    "Wk",
)  # of these, whichever of the two is typed, what must not be left out
GIVE = "give query, keys and values, or X with Wq, Wk and Wv"
BIASES = ("bq", "bk", "bv")
NUMBERS = (*DIRECT, *PROJECTIONS, *BIASES, "Wo", "bo", "W", "U", "v", "mask", "weights")
LABELS = ("words", "query_words")
OTHERS = ("title", "score", "scale", "causal", "n_heads")
MIXING = ("weights", "values", *LABELS, "title")  # what may stand beside weights that are given
SUM = 1e-6  # how far the sum of given weights may be from 1: what writing them with six digits may leave
KNOWN = (*NUMBERS, *LABELS, *OTHERS)

ALIKE = (
    *(
        (one, "columns", f"W{to}", side)
        for to in "qkv"
        for one, side in (("X", "rows"), (f"b{to}", "columns"))
    ),
    ("keys", "rows", "values", "rows"),
    ("weights", "columns", "values", "rows"),
    ("bo", "columns", "Wo", "columns"),
)
"""Sizes that must be equal where both tables are typed."""
USELESS = (
    ("weights", "weights", "values", "has no values that it could mix"),
    ("query", "Wo", "values", "has no values that it could project"),
    ("X", "bv", "Wv", "is of no use without Wv"),
    ("X", "Wo", "Wv", "is of no use without Wv"),
    ("bo", "bo", "Wo", "has no Wo that it could be added to"),
)
"""Where the first is typed: a name that is of no use without another, and why."""

LARGEST = 2**20  # bytes of a file that is read: numbers typed by hand are far fewer
DEEPEST = 8  # how many lists and objects may lie in one another
ONE_ROW = (
    "v",
    "bq",
    "bk",
    "bv",
    "bo",
)  # they, a query and its weights may be typed without a list around the row
ENDINGS = (".json", ".yaml", ".yml")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_HALVES = re.compile(r"(?<!\\)((?:\\\\)*)\\u(d[89ab]..)\\u(d[c-f]..)", re.IGNORECASE)
_INFINITE = re.compile(r"[-+]?\.?(?:inf|infinity)|[-+]?\.?nan", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Homework:
    """What a file holds."""

    fields: Mapping[str, Entry]  # by name
    tables: Mapping[str, Float64[np.ndarray, "row column"]]  # the numbers among them

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def grids(self, *symbols: str) -> dict[str, Grid]:
        """Those of these tables that are there."""
        return {symbol: Grid(values=self.tables[symbol]) for symbol in symbols if symbol in self}

    def refuse(self, name: str, why: str) -> NoReturn:
        """Say where it stands, and what is wrong with it: a FileFormatError."""
        raise FileFormatError(f"{self.where(name)} {why}")

    def where(self, name: str) -> str:
        """Its line and its name."""
        return f"line {self.fields[name].line}: {name}"

    def match(self, one: str, side: str, other: str, other_side: str) -> None:
        """Refuse two tables, if both are typed, of which two sizes clash: a FileFormatError with names and lines."""
        if one in self and other in self:
            n = self.tables[other].shape[SIDES.index(other_side)]
            self.expect(
                one, side, n, f"{other} (line {self.fields[other].line}) has {n} {other_side}"
            )

    def expect(self, name: str, side: str, wanted: int, why: str) -> None:
        """Refuse a table whose size is not what something else makes it: a FileFormatError."""
        n = self.tables[name].shape[SIDES.index(side)]
        if n != wanted:
            raise FileFormatError(
                f"{name} (line {self.fields[name].line}) has {n} {side}, but {why}"
            )


def read(path: str | os.PathLike[str], *, query: str | int | None = None) -> Walkthrough:
    """The walkthrough of the numbers in a file, of one query as `find_row` finds it, or of all at once.

    Raises FileFormatError: the file cannot be read, or its numbers do not fit together; SelectionError: no such query.
    """
    whole = read_entries(path)
    try:
        return _calculate(_check(whole), query)
    except SelectionError as error:
        raise SelectionError(visible(f"{path}: {error}")) from None
    except RecordError as error:
        raise FileFormatError(visible(f"{path}: {error}")) from None


def _check(whole: Entry) -> Homework:
    found = whole.value
    if not isinstance(found, dict):
        raise FileFormatError(
            f"it must hold names with numbers, such as query, keys and values, not {named(found)}"
        )
    if {"format", "version"} <= set(found):
        raise FileFormatError(
            "it was saved by attnviz, not typed by hand: attnviz verify reads a saved walkthrough"
        )
    for name, field in found.items():
        if name not in KNOWN:
            raise FileFormatError(
                f"line {field.line}: {clip(name, 40)!r} is not known{suggest(name, KNOWN)}"
            )
    fields = {
        name: field for name, field in found.items() if field.value is not None or name == "scale"
    }
    _expect_together(Homework(fields, {}))
    typed = Homework(
        fields, {name: read_table(name, fields[name]) for name in NUMBERS if name in fields}
    )
    for alike in ALIKE:
        typed.match(*alike)
    return typed


def _expect_together(typed: Homework) -> None:
    """Refuse what is missing, what says the same twice, and what is of no use."""
    if "weights" in typed:
        if spare := [name for name in typed.fields if name not in MIXING]:
            typed.refuse(
                "weights", f"and {typed.where(spare[0])} do not go together: weights need no query"
            )
    else:
        direct, projected = (
            [name for name in names if name in typed] for names in (DIRECT, (*PROJECTIONS, *BIASES))
        )
        if direct and projected:
            typed.refuse(direct[0], f"and {typed.where(projected[0])} do not go together: {GIVE}")
        if missing := [
            one
            for one in (PROJECTIONS if projected else DIRECT)
            if one in NEEDED and one not in typed
        ]:
            raise FileFormatError(f"it lacks {', '.join(missing)}: {GIVE}")
    for given, name, needed, why in USELESS:
        if given in typed and name in typed and needed not in typed:
            typed.refuse(name, why)


def _calculate(typed: Homework, wanted: str | int | None) -> Walkthrough:
    calculation, score = Calculation(), None if "weights" in typed else _score(typed)
    words, query_words = _labels(typed)
    n_queries = len(typed.tables[next(name for name in ("weights", "query", "X") if name in typed)])
    if score is None:
        _check_weights(typed)
    row = (
        None
        if wanted is None
        else find_row([(word,) for word in query_words] or [()] * n_queries, wanted)
    )
    followed = 0 if row is None and n_queries == 1 else row
    if score is None:  # values are mixed with weights that no query makes
        whole = Grid(values=typed.tables["weights"], rows=query_words, columns=words)
        calculation.give("weights", _of_row(whole, row))
        calculation.give("V", Grid(values=typed.tables["values"], rows=words))
        calculation.write_context()
        return calculation.finish(
            _title(typed, Note("title_mixed")), query=followed, notes=(Note("weights_given"),)
        )
    if row is not None and not query_words:
        # so that a reader sees which one is followed
        query_words = tuple(f"query {i}" for i in range(n_queries))
    query = _write_operands(calculation, typed, query_words, words, row)
    _check_scores(score, calculation.grids[query], calculation.grids["K"], typed)
    mask = _mask(typed, n_queries)
    terms = Terms(
        score=score,
        scaling=_scaling(typed, score),
        weights=typed.grids(*SCORE_WEIGHTS[score]),
        mask=None
        if mask is None
        else _of_row(Grid(values=mask, rows=query_words, columns=words), row),
    )
    context = _write_heads(calculation, terms, query, _heads(typed, score, calculation))
    if "Wo" in typed:
        width = calculation.grids[context].values.shape[1]
        typed.expect("Wo", "rows", width, f"the values' width is {width}")
        calculation.project("output", "output", context, typed.grids("Wo", "bo"))
    notes = () if "V" in calculation.grids else (Note("no_values"),)
    return calculation.finish(_title(typed, Note("title_typed")), query=followed, notes=notes)


def _check_weights(typed: Homework) -> None:
    for i, row in enumerate(typed.tables["weights"]):
        if (row < 0).any() or abs(row.sum() - 1) > SUM:
            rest = (
                f", and {row.min():g} is below 0"
                if (row < 0).any()
                else "; divide each weight by that sum"
            )
            typed.refuse(
                "weights",
                f"must be from 0 to 1 and sum to 1: row {i} sums to {row.sum():.6g}{rest}",
            )


def _write_heads(calculation: Calculation, terms: Terms, query: str, n_heads: int) -> str:
    """Write down attention of each head on its own part of queries, keys and values, and all contexts side by side."""
    c, made = calculation, []
    operands = {"query": query, "keys": "K"} | ({"values": "V"} if "V" in c.grids else {})
    if n_heads > 1:
        c.give("n_heads", Grid(values=np.array([[float(n_heads)]])))
    for head in range(n_heads):
        suffix, own = "", operands
        if n_heads > 1:
            suffix = f"_{head}"
            own = {
                step: c.step(
                    f"split_{step}", name + suffix, "split", name, "n_heads", number=float(head)
                )
                for step, name in operands.items()
            }
        made.append(c.write_attention(terms, own["query"], own["keys"], own.get("values"), suffix))
    if n_heads == 1 or "values" not in operands:
        return made[0]
    return c.step("concatenated", "concatenated", "concatenate", *made)


def _write_operands(
    calculation: Calculation,
    typed: Homework,
    query_words: tuple[str, ...],
    words: tuple[str, ...],
    row: int | None,
) -> str:
    """Write down queries, or the one that is followed, keys and values, given or projected; the queries' name."""
    tables = typed.tables
    if "query" in tables:
        queries = Grid(values=tables["query"], rows=query_words)
        made = calculation.give(
            "q" if row is not None or len(queries.values) == 1 else "Q", _of_row(queries, row)
        )
        for letter, name in (("K", "keys"), ("V", "values")):
            if name in tables:
                calculation.give(letter, Grid(values=tables[name], rows=words))
        return made
    x = Grid(values=tables["X"], rows=words)
    return calculation.write_inputs(
        x, lambda one: typed.grids(f"W{one}", f"b{one}"), row, query_words
    )


def _of_row(grid: Grid, row: int | None) -> Grid:
    """Of a grid with a row for each query, that of the one that is followed; None takes all."""
    if row is None:
        return grid
    one = slice(row, row + 1)
    return Grid(values=grid.values[one], rows=grid.rows[one], columns=grid.columns)


def _labels(typed: Homework) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of the keys, and those of the queries."""
    if "X" not in typed:
        keys, queries = ("values", "weights") if "weights" in typed else ("keys", "query")
        return _words(typed, "words", keys), _words(typed, "query_words", queries)
    words = _words(typed, "words", "X")
    if "query_words" in typed:
        typed.refuse("query_words", "is of no use: with X, queries and keys are words")
    return words, words


def _words(typed: Homework, name: str, table: str) -> tuple[str, ...]:
    if name not in typed:
        return ()
    found, n_rows = typed.fields[name].value, len(typed.tables[table])
    if not isinstance(found, list):
        typed.refuse(name, f"must be a list of words, not {named(found)}")
    for i, word in enumerate(found):
        if isinstance(word.value, dict | list | None):
            raise FileFormatError(
                f"line {word.line}: {name}[{i}] must be a word, not {named(word.value)}"
            )
    if len(found) != n_rows:
        rows = f"{table} (line {typed.fields[table].line}) has {n_rows} rows"
        typed.refuse(name, f"has {len(found)} words, but {rows}")
    return tuple(
        visible(str(one.value).lower() if isinstance(one.value, bool) else str(one.value))
        for one in found
    )


def _title(typed: Homework, usual: Note) -> Note | str:
    if "title" not in typed:
        return usual
    title = typed.fields["title"].value
    if not isinstance(title, str) or not title.strip():
        typed.refuse("title", f"must be text, not {named(title)}")
    return " ".join(visible(title.replace("\n", " ")).split())


def _score(typed: Homework) -> Score:
    found = typed.fields.get("score", Entry("scaled", 0))
    wanted = found.value
    scores: tuple[Score, ...] = get_args(Score)
    if wanted not in scores:
        typed.refuse("score", f"must be one of {', '.join(scores)}, not {named(wanted)}")
    score = scores[scores.index(wanted)]
    needed = SCORE_WEIGHTS[score]
    if missing := [name for name in needed if name not in typed]:
        raise FileFormatError(f"line {found.line}: the score {score} needs {', '.join(missing)}")
    if spare := [name for name in ("W", "U", "v") if name in typed and name not in needed]:
        typed.refuse(spare[0], f"is of no use to the score {score}")
    return score


def _heads(typed: Homework, score: Score, calculation: Calculation) -> int:
    n = typed.fields.get("n_heads", Entry(1, 0)).value
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        typed.refuse("n_heads", f"must be a whole number from 1 on, not {named(n)}")
    if n > 1 and SCORE_WEIGHTS[score]:
        typed.refuse("n_heads", f"does not go with the score {score}, whose weights are one head's")
    for name, what in (("q", "queries"), ("Q", "queries"), ("K", "keys"), ("V", "values")):
        width = calculation.grids[name].values.shape[1] if name in calculation.grids else 0
        if width % n:
            typed.refuse("n_heads", f"is {n}, which does not divide the {what}' width, {width}")
    return n


def _scaling(typed: Homework, score: Score) -> float | None:
    """What scores are multiplied with; None is 1 / sqrt(d_k)."""
    if "scale" not in typed:
        return None
    scale = typed.fields["scale"].value
    if scale in {"none", "None"} if isinstance(scale, str) else scale is False:
        return 1.0
    if score != "scaled":
        typed.refuse("scale", f"is of no use to the score {score}, which is not scaled")
    if scale == "sqrt":
        return None
    if not isinstance(scale, int | float) or isinstance(scale, bool):
        typed.refuse(
            "scale",
            f"must be sqrt, none, or the number that scores are multiplied with, not {named(scale)}",
        )
    return number(scale, typed.where("scale"))


def _mask(typed: Homework, queries: int) -> np.ndarray | None:
    """1 where a query may look [query, key]; None where there is no mask."""
    causal = typed.fields.get("causal", Entry(value=False, line=0)).value
    if not isinstance(causal, bool):
        typed.refuse("causal", f"must be true or false, not {named(causal)}")
    keys = len(typed.tables["keys" if "keys" in typed else "X"])
    if causal and "mask" in typed:
        typed.refuse("causal", f"and {typed.where('mask')} do not go together")
    if causal:
        if queries != keys:
            typed.refuse(
                "causal", f"needs a query for each key: there are {queries} queries and {keys} keys"
            )
        return np.tri(queries)
    if "mask" not in typed:
        return None
    mask = typed.tables["mask"]
    typed.expect("mask", "rows", queries, f"the number of queries is {queries}")
    typed.expect("mask", "columns", keys, f"the number of keys is {keys}")
    for row, column in np.argwhere(~np.isin(mask, (0, 1))):
        typed.refuse("mask", f"holds 0 and 1 only: [{row}][{column}] is {mask[row, column]:g}")
    for row in np.flatnonzero(~mask.any(axis=1)):
        typed.refuse("mask", f"leaves the query of row {row} nothing to look at")
    return mask


def _check_scores(score: Score, query: Grid, keys: Grid, typed: Homework) -> None:
    d_q, d_k = query.values.shape[1], keys.values.shape[1]
    of_queries, of_keys = f"the queries' width is {d_q}", f"the keys' width is {d_k}"
    if score == "general":
        typed.expect("W", "rows", d_q, of_queries)
        typed.expect("W", "columns", d_k, of_keys)
    elif score == "additive":
        typed.expect("W", "columns", d_q, of_queries)
        typed.expect("U", "columns", d_k, of_keys)
        typed.match("W", "rows", "U", "rows")
        typed.match("v", "columns", "W", "rows")
    else:
        one, other = ("query", "keys") if "query" in typed else ("Wq", "Wk")
        typed.match(one, "columns", other, "columns")


@dataclass(frozen=True, slots=True)
class Entry:
    """A value and where it stands."""

    value: Value  # an object, a list, or a text, number, true, false or null
    line: int  # counted from 1


Value: TypeAlias = dict[str, Entry] | list[Entry] | str | int | float | bool | None


def read_entries(path: str | os.PathLike[str]) -> Entry:
    """Return the values of a file, each with its line.

    Raises FileFormatError: it cannot be read, is too large, or is neither JSON nor YAML.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    with as_file_error(path, "numbers"):
        if suffix not in ENDINGS:
            raise FileFormatError(f"numbers are read from {', '.join(ENDINGS)}, not {suffix!r}")
        check_is_file(path, LARGEST)
        try:
            text = from_utf8(path.read_bytes().removeprefix(BOM_UTF8))
        except InputError as error:
            raise FileFormatError(f"it is {error}") from None
        return _parse(_json_as_yaml(text) if suffix == ".json" else text)


def _json_as_yaml(text: str) -> str:
    """Return JSON as YAML, which it is but for tabs and for the spelling of emoji."""
    try:
        json.loads(text, parse_int=str, parse_float=str)  # for the sake of its refusals
    except ValueError as error:
        raise FileFormatError(f"it is not JSON: {error}") from None
    return _HALVES.sub(_join, text.replace("\t", " "))


def _parse(text: str) -> Entry:
    import yaml

    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise FileFormatError(f"{where}it is not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # The last two come from an escape that is no character.
        reason = " ".join(str(error).split())
        raise FileFormatError(f"it is not YAML: {reason}") from None
    if node is None:
        raise FileFormatError("it is empty")
    return _entry(node, set(), depth=0)


def _entry(node: yaml.Node, seen: set[int], depth: int) -> Entry:
    """Return the value of a node with its line; `seen` are the nodes read before it."""
    import yaml

    line = node.start_mark.line + 1
    if depth > DEEPEST:
        raise FileFormatError(f"line {line}: it is nested too deeply to be numbers")
    if id(node) in seen:  # an alias may stand for a file that is far larger
        raise FileFormatError(
            f"line {line}: anchors and aliases (& and *) are not read: write the numbers out"
        )
    seen.add(id(node))
    if not node.tag.startswith("tag:yaml.org,2002:") or "/" in node.tag:
        raise FileFormatError(f"line {line}: tags such as {node.tag[:40]} are not read")
    if isinstance(node, yaml.ScalarNode):
        return Entry(_scalar(node.value, line, is_plain=not node.style), line)
    if isinstance(node, yaml.SequenceNode):
        return Entry([_entry(item, seen, depth + 1) for item in node.value], line)
    fields: dict[str, Entry] = {}
    for key, value in node.value:
        line_of_key = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise FileFormatError(f"line {line_of_key}: a name must be text")
        if key.value in fields:
            raise FileFormatError(f"line {line_of_key}: {key.value} is there twice")
        fields[key.value] = Entry(_entry(value, seen, depth + 1).value, line_of_key)
    return Entry(fields, line)


def _scalar(text: str, line: int, *, is_plain: bool) -> Value:
    """Return a value as it is written: only one without quotation marks can be a number.

    PyYAML would make numbers of 1_000 and 12:30, a date of 2001-01-01 and true of the word "on".
    """
    if not is_plain:
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INFINITE.fullmatch(text):
        raise FileFormatError(f"line {line}: a number must be finite, not {text}")
    if not _FLOAT.fullmatch(text):
        return text
    found = float(text)
    if not math.isfinite(found):
        raise FileFormatError(f"line {line}: {text[:40]} is too large to be a number")
    return int(text) if _INTEGER.fullmatch(text) else found


def _join(pair: re.Match[str]) -> str:
    """One character that JSON spelled as the two halves that UTF-16 has of it."""
    return pair[1] + bytes.fromhex(pair[2] + pair[3]).decode("utf-16-be")


def named(value: object) -> str:
    """Return a value as an error's message names it."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    return clip(json.dumps(value, ensure_ascii=False), 40)


def number(value: Value, where: str) -> float:
    """Return a finite number. Raises FileFormatError: it is something else, such as text that looks like one."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        looks_like_number = isinstance(value, str) and _FLOAT.fullmatch(value)
        advice = ": write it without quotation marks" if looks_like_number else ""
        raise FileFormatError(f"{where} must be a number, not {named(value)}{advice}")
    return float(value)


def read_table(name: str, field: Entry) -> Float64[np.ndarray, "row column"]:
    """A matrix, or one row where that may be. Raises FileFormatError: no numbers, or rows of different lengths."""
    rows = field.value
    if not isinstance(rows, list):
        raise FileFormatError(
            f"line {field.line}: {name} must be a list of numbers, not {named(rows)}"
        )
    if name in (*ONE_ROW, "query", "weights") and not any(
        isinstance(row.value, list) for row in rows
    ):
        rows = [Entry(rows, field.line)]
    if not rows:
        raise FileFormatError(f"line {field.line}: {name} is empty")
    values: list[list[float]] = []
    for i, row in enumerate(rows):
        where = f"line {row.line}: row {i} of {name}"
        if not isinstance(row.value, list):
            raise FileFormatError(f"{where} must be a list of numbers, not {named(row.value)}")
        if not row.value:
            raise FileFormatError(f"{where} is empty")
        values.append(
            [
                number(cell.value, f"line {cell.line}: {name}[{i}][{j}]")
                for j, cell in enumerate(row.value)
            ]
        )
        if len(values[i]) != len(values[0]):
            raise FileFormatError(
                f"{where} has {len(values[i])} numbers, but row 0 has {len(values[0])}"
            )
    if name in ONE_ROW and len(values) > 1:
        raise FileFormatError(f"line {field.line}: {name} must be one row, not {len(values)}")
    return np.array(values)
