"""Walkthroughs of numbers that the user types in YAML or JSON.

A file holds ``query``, ``keys`` and ``values``; or ``X`` with ``Wq``, ``Wk`` and ``Wv``; or ``weights`` and ``values``.
Without values the calculation ends at the weights. Error messages name the line of the problem.
"""

from __future__ import annotations

import os
import re
from codecs import BOM_UTF8
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Note, count
from attnviz.errors import FileFormatError, InputError, SelectionError
from attnviz.storage.encoding import decode, from_text
from attnviz.storage.files import as_file_error, check_is_file
from attnviz.text.display import clip, from_utf8, visible
from attnviz.text.suggest import suggest
from attnviz.walkthroughs.calculation import SCORE_WEIGHTS, Calculation, Terms, find_row
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.settings import Score

if TYPE_CHECKING:
    import yaml

# Tables with one row, which may be typed without the outer list.
ONE_ROW = ("v", "bq", "bk", "bv", "bo", "query", "weights")
TABLES = (*ONE_ROW, "keys", "values", "X", "Wq", "Wk", "Wv", "Wo", "W", "U", "mask")

KINDS: dict[str, Any] = {
    **dict.fromkeys(TABLES, list[list[float]]),
    **dict.fromkeys(("words", "query_words"), list[str | float | bool]),
    "title": str,
    "score": Score,
    "scale": float | Literal["sqrt", "none"],
    "causal": bool,
    "n_heads": int,
}
"""The type of each value that a file may have, by its name."""

LARGEST = 2**20  # bytes of a file; numbers typed by hand need far fewer
MOST_HEADS = 128  # each of them takes seven steps
DEEPEST = 8  # levels of nested lists
ENDINGS = (".json", ".yaml", ".yml")
# How far the sum of typed weights may be from 1, since they may be rounded to six digits.
SUM = 1e-6


@dataclass(frozen=True, slots=True)
class Homework:
    """The contents of a file."""

    values: dict[str, Any]
    lines: dict[str, int]  # the line of each name, counted from 1; empty for JSON
    used: set[str] = field(default_factory=set)  # names that the calculation has read

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name, or the default. Raises FileFormatError: it has the wrong type."""
        self.used.add(name)
        if name not in self.values:
            return default
        value = self.values[name]
        is_row = isinstance(value, list) and not any(isinstance(row, list) for row in value)
        return decode([value] if name in ONE_ROW and is_row else value, KINDS[name], self.at(name))

    def table(self, name: str) -> Float64[np.ndarray, "row column"]:
        """Return a table of numbers. Raises FileFormatError: it is empty, or its rows differ in length."""
        rows = self.get(name)
        for i, row in enumerate(rows):
            if len(row) != len(rows[0]):
                self.refuse(
                    f"{name}[{i}]", f"has {count(len(row), 'number')}, but row 0 has {len(rows[0])}"
                )
        if not rows or not rows[0]:
            self.refuse(name, "is empty")
        return np.array(rows, dtype=np.float64)

    def grid(self, name: str, rows: tuple[str, ...] = (), columns: tuple[str, ...] = ()) -> Grid:
        """Return a table as a grid, with names for its rows and columns if there are any."""
        return Grid(values=self.table(name), rows=rows, columns=columns)

    def grids(self, *names: str) -> dict[str, Grid]:
        """Return the tables of these names as grids, without those that the file lacks."""
        return {name: self.grid(name) for name in names if name in self}

    def words(self, name: str, table: str) -> tuple[str, ...]:
        """Return the words that name the rows of a table; empty if the file has none."""
        words, n_rows = self.get(name, []), len(self.table(table))
        if words and len(words) != n_rows:
            self.refuse(
                name, f"has {count(len(words), 'word')}, but {table} has {count(n_rows, 'row')}"
            )
        # YAML reads the word "true" as a boolean.
        return tuple(
            visible(str(word).lower() if isinstance(word, bool) else str(word)) for word in words
        )

    def refuse_unused(self, needed: tuple[str, ...]) -> None:
        """Raise FileFormatError for a name that the calculation did not read.

        The message lists the names in `needed`, which determine the calculation.
        """
        for name in self.values:
            if name not in self.used:
                self.refuse(name, f"is of no use beside {', '.join(needed)}")

    def at(self, name: str) -> str:
        """Return where a name or a part of it is, such as ``line 3: keys[2]``."""
        line, label = self.lines.get(name.partition("[")[0]), clip(name, 40)
        return label if line is None else f"line {line}: {label}"

    def refuse(self, name: str, reason: str) -> NoReturn:
        """Raise a FileFormatError with the line, the name and the reason."""
        raise FileFormatError(f"{self.at(name)} {reason}")


def read(path: str | os.PathLike[str], *, query: str | int | None = None) -> Walkthrough:
    """Return the walkthrough of the numbers in a file, for one query (see `find_row`) or for all.

    Raises FileFormatError: the file cannot be read, or its numbers do not fit together; SelectionError: no such query.
    """
    path = Path(path)
    with as_file_error(path, "numbers"):
        homework = _read(path)
        try:
            return _calculate(homework, query)
        except SelectionError as error:
            raise SelectionError(visible(f"{path}: {error}")) from None


def _calculate(homework: Homework, query: str | int | None) -> Walkthrough:
    """Return the walkthrough of a file for one query, or for all; its steps check that the shapes fit together."""
    tables: tuple[str, ...] = ("query", "keys")
    keys = "keys"
    if "weights" in homework:
        tables, keys = ("weights", "values"), "values"
    elif "X" in homework:
        tables, keys = ("X", "Wq", "Wk"), "X"
    missing = [name for name in tables if name not in homework]
    if missing:
        give = "give query, keys and values, or X with Wq, Wk and Wv"
        raise FileFormatError(f"it lacks {', '.join(missing)}: {give}")
    words = homework.words("words", keys)
    query_words = words if "X" in tables else homework.words("query_words", tables[0])
    n_queries = len(homework.table(tables[0]))
    row = None
    if query is not None:
        row = find_row([(word,) for word in query_words] or [()] * n_queries, query)
    if row is not None and not query_words and "weights" not in tables:
        query_words = tuple(f"query {i}" for i in range(n_queries))
    calculation = Calculation()
    if "weights" in tables:
        title, notes = _title(homework, "title_mixed"), [Note("weights_given")]
        _write_mixing(calculation, homework, row, words, query_words)
    else:
        title = _title(homework, "title_typed")
        notes = _write_attention(calculation, homework, row, words, query_words)
    homework.refuse_unused(tables)
    followed_row = 0 if row is None and n_queries == 1 else row
    return calculation.finish(title, query=followed_row, notes=notes)


def _title(homework: Homework, code: str) -> Note:
    """Return the title in the file, or the default title with this code."""
    title = " ".join(visible(homework.get("title", "").replace("\n", " ")).split())
    return Note.of("text", text=title) if title else Note(code)


def _write_mixing(
    calculation: Calculation,
    homework: Homework,
    row: int | None,
    words: tuple[str, ...],
    query_words: tuple[str, ...],
) -> None:
    """Check the weights in the file, and write down the context that they make of the values."""
    weights = homework.grid("weights", query_words, words)
    for i, shares in enumerate(weights.values):
        if (shares < 0).any() or abs(shares.sum() - 1) > SUM:
            reason = f"must be from 0 to 1 and sum to 1: row {i} sums to {shares.sum():.6g}"
            lowest = f", and {shares.min():g} is below 0" if (shares < 0).any() else ""
            homework.refuse("weights", f"{reason}{lowest}")
    calculation.give("weights", _select_row(weights, row))
    calculation.give("V", homework.grid("values", words))
    calculation.write_context()


def _write_attention(
    calculation: Calculation,
    homework: Homework,
    row: int | None,
    words: tuple[str, ...],
    query_words: tuple[str, ...],
) -> list[Note]:
    """Write down attention and the output projection; return the notes for the reader."""
    queries = _write_inputs(calculation, homework, row, words, query_words)
    mask = _mask(homework, query_words, words)
    score = homework.get("score", "scaled")
    terms = Terms(
        score=score,
        scaling=_scaling(homework, score),
        weights=homework.grids(*SCORE_WEIGHTS[score]),
        mask=None if mask is None else _select_row(mask, row),
    )
    n_heads = homework.get("n_heads", 1)
    if not 1 <= n_heads <= MOST_HEADS:
        homework.refuse("n_heads", f"must be a whole number from 1 to {MOST_HEADS}, not {n_heads}")
    result = _write_heads(calculation, terms, queries, n_heads)
    if "Wo" in homework and "V" in calculation.grids:
        calculation.project("output", "output", result, homework.grids("Wo", "bo"))
    return [] if "V" in calculation.grids else [Note("no_values")]


def _write_inputs(
    calculation: Calculation,
    homework: Homework,
    row: int | None,
    words: tuple[str, ...],
    query_words: tuple[str, ...],
) -> str:
    """Write down queries (or only the query that is followed), keys and values; return the name of the queries."""
    if "X" in homework:

        def projection(letter: str) -> dict[str, Grid]:
            has_weights = f"W{letter}" in homework
            return homework.grids(f"W{letter}", f"b{letter}") if has_weights else {}

        return calculation.write_inputs(homework.grid("X", words), projection, row, query_words)
    queries = _select_row(homework.grid("query", query_words), row)
    name = calculation.give("q" if len(queries.values) == 1 else "Q", queries)
    for symbol, table in (("K", "keys"), ("V", "values")):
        if table in homework:
            calculation.give(symbol, homework.grid(table, words))
    return name


def _write_heads(calculation: Calculation, terms: Terms, queries: str, n_heads: int) -> str:
    """Write down the attention of each head, and concatenate their contexts; return the name of the result."""
    inputs = {"query": queries, "keys": "K"}
    if "V" in calculation.grids:
        inputs["values"] = "V"
    if n_heads == 1:
        return calculation.write_attention(terms, queries, "K", inputs.get("values"))
    calculation.give("n_heads", Grid(values=np.array([[float(n_heads)]])))
    results = []
    for head in range(n_heads):
        parts = {}
        for step, name in inputs.items():
            result, number = f"{name}_{head}", float(head)
            parts[step] = calculation.step(
                f"split_{step}", result, "split", name, "n_heads", number=number
            )
        results.append(
            calculation.write_attention(
                terms, parts["query"], parts["keys"], parts.get("values"), f"_{head}"
            )
        )
    if "values" not in inputs:
        return results[0]
    return calculation.step("concatenated", "concatenated", "concatenate", *results)


def _select_row(grid: Grid, row: int | None) -> Grid:
    """Return the grid with one row only, that of the query that is followed; None keeps all rows."""
    if row is None:
        return grid
    values, rows = grid.values[row : row + 1], grid.rows[row : row + 1]
    return Grid(values=values, rows=rows, columns=grid.columns)


def _scaling(homework: Homework, score: Score) -> float | None:
    """Return the factor of the scores; None is 1 / sqrt(d_k)."""
    scale = homework.get("scale", "sqrt")
    if scale == "none":
        return 1.0
    if score != "scaled" and "scale" in homework:
        homework.refuse("scale", f"is of no use to the score {score}, which is not scaled")
    return None if scale == "sqrt" else float(scale)


def _mask(homework: Homework, query_words: tuple[str, ...], words: tuple[str, ...]) -> Grid | None:
    """Return the mask [query, key], 1 for each key that a query may attend to; None without a mask."""
    causal = homework.get("causal", False)
    if causal and "mask" in homework:
        homework.refuse("causal", "and mask do not go together")
    if causal:
        mask = np.tri(len(homework.table("X" if "X" in homework else "query")))
        return Grid(values=mask, rows=query_words, columns=words)
    if "mask" not in homework:
        return None
    mask = homework.table("mask")
    for row, column in np.argwhere(~np.isin(mask, (0, 1))):
        homework.refuse("mask", f"holds 0 and 1 only: [{row}][{column}] is {mask[row, column]:g}")
    return Grid(values=mask, rows=query_words, columns=words)


def _read(path: Path) -> Homework:
    """Return the contents of a file. Raises FileFormatError: it is no JSON or YAML, or has an unknown name."""
    suffix = path.suffix.lower()
    if suffix not in ENDINGS:
        raise FileFormatError(f"numbers are read from {', '.join(ENDINGS)}, not {suffix!r}")
    check_is_file(path, LARGEST)
    try:
        text = from_utf8(path.read_bytes().removeprefix(BOM_UTF8))
    except InputError as error:
        raise FileFormatError(f"it is {error}") from None
    homework = Homework(from_text(text), {}) if suffix == ".json" else _read_yaml(text)
    if {"format", "version"} <= set(homework.values):
        raise FileFormatError(
            "it was saved by attnviz, not typed by hand: attnviz verify reads a saved walkthrough"
        )
    for name, value in list(homework.values.items()):
        if name not in KINDS:
            homework.refuse(name, f"is not known{suggest(name, KINDS)}")
        if value is None:
            del homework.values[name]
    return homework


def _read_yaml(text: str) -> Homework:
    """Return the names, values and lines of a YAML text.

    Raises FileFormatError: the text is no YAML, or uses features that are not allowed here, such as tags.
    """
    import yaml

    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f"line {mark.line + 1}: "
        reason = error.problem or error.context
        raise FileFormatError(f"{where}it is not YAML: {reason}") from None
    # PyYAML raises the last two for an escape sequence that is no character.
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise FileFormatError(f"it is not YAML: {' '.join(str(error).split())}") from None
    if node is None:
        raise FileFormatError("it is empty")
    if not isinstance(node, yaml.MappingNode):
        raise FileFormatError("it must hold names with numbers, such as query, keys and values")
    homework = Homework({}, {})
    seen_ids: set[int] = set()
    for key, value in node.value:
        name, line = key.value, key.start_mark.line + 1
        try:
            if not isinstance(key, yaml.ScalarNode):
                raise FileFormatError("a name must be text")
            if name in homework:
                raise FileFormatError(f"{name} is there twice")
            homework.values[name], homework.lines[name] = _value(value, seen_ids), line
        except FileFormatError as error:
            raise FileFormatError(f"line {line}: {error}") from None
    return homework


def _value(node: yaml.Node, seen_ids: set[int], depth: int = 0) -> Any:
    """Return the value of a node; `seen_ids` holds the ids of the nodes that were read before."""
    import yaml

    if depth > DEEPEST:
        raise FileFormatError("it is nested too deeply to be numbers")
    if id(node) in seen_ids:  # a small file of aliases may stand for billions of numbers
        raise FileFormatError("anchors and aliases (& and *) are not read: write the numbers out")
    seen_ids.add(id(node))
    if not node.tag.startswith("tag:yaml.org,2002:") or "/" in node.tag:
        raise FileFormatError(f"tags such as {node.tag[:40]} are not read")
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, seen_ids, depth + 1) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return {}  # its type is checked later, where a list or a text is expected
    return node.value if node.style else _scalar(node.value)


_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"[-+]?[0-9]{1,15}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")


def _scalar(text: str) -> str | float | bool | None:
    """Return the value of a word without quotation marks.

    PyYAML would read 1_000 and 12:30 as numbers, 2001-01-01 as a date and the word "on" as true.
    """
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
