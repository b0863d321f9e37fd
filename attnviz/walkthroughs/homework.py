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
from typing import Any, Literal, NoReturn

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

TABLE = list[list[float]]
ROW = list[float]  # a table that may also be typed as one row, without the outer list
NAMES = list[str | int | float | bool]  # YAML reads some words as numbers or as true

FIELDS: dict[str, tuple[Any, str, str]] = {
    "query": (ROW, "a row for each query", "query"),
    "keys": (TABLE, "a row for each key", "key"),
    "values": (TABLE, "a row for each key", "key"),
    "weights": (ROW, "given weights, a row for each query", "query key"),
    "X": (TABLE, "the input, a row for each word", "key"),
    "Wq": (TABLE, "the projection to queries", ""),
    "bq": (ROW, "added to the queries", ""),
    "Wk": (TABLE, "the projection to keys", ""),
    "bk": (ROW, "added to the keys", ""),
    "Wv": (TABLE, "the projection to values", ""),
    "bv": (ROW, "added to the values", ""),
    "score": (Score, "the score function", ""),
    "W": (TABLE, "of the scores general and additive", ""),
    "U": (TABLE, "of the score additive", ""),
    "v": (ROW, "of the score additive", ""),
    "scale": (float | Literal["sqrt", "none"], "the factor of the scores", ""),
    "mask": (TABLE, "1 where a query may look, 0 where not", "query key"),
    "causal": (bool, "whether no query looks at later keys", ""),
    "n_heads": (int, "the number of heads, which share the columns", ""),
    "Wo": (TABLE, "the output projection", ""),
    "bo": (ROW, "added to the output", ""),
    "words": (NAMES, "a name for each key", ""),
    "query_words": (NAMES, "a name for each query", ""),
    "title": (str, "what is calculated", ""),
}
"""The names that a file may have: their types, their meanings, and which words name the rows and columns."""

# The names that each calculation needs; the first has the queries.
NEEDED = (("weights", "values"), ("X", "Wq", "Wk"), ("query", "keys"))

LARGEST = 2**20  # bytes of a file; numbers typed by hand need far fewer
MOST_HEADS = 128  # each of them takes seven steps
ENDINGS = (".json", ".yaml", ".yml")
# How far the sum of typed weights may be from 1, since they may be rounded to six digits.
SUM = 1e-6


def read(path: str | os.PathLike[str], *, query: str | int | None = None) -> Walkthrough:
    """Return the walkthrough of the numbers in a file, for one query (see `find_row`) or for all.

    Raises FileFormatError: the file cannot be read, or its numbers do not fit together; SelectionError: no such query.
    """
    path = Path(path)
    with as_file_error(path, "numbers"):
        homework = _read(path)
        try:
            return homework.calculate(query)
        except SelectionError as error:
            raise SelectionError(visible(f"{path}: {error}")) from None


@dataclass(slots=True)
class Homework:
    """The contents of a file, and the calculation that is made of them; its steps check that shapes fit together."""

    values: dict[str, Any]
    lines: dict[str, int]  # the line of each name, counted from 1; empty for JSON
    used: set[str] = field(default_factory=set)  # names that the calculation has read
    words: dict[str, tuple[str, ...]] = field(default_factory=dict)  # of each ``key`` and ``query``
    row: int | None = None  # the query that is followed; None follows all

    def calculate(self, query: str | int | None) -> Walkthrough:
        """Return the walkthrough for one query, or for all."""
        needed = next((names for names in NEEDED if names[0] in self.values), NEEDED[-1])
        missing = [f"{name} ({FIELDS[name][1]})" for name in needed if name not in self.values]
        if missing:
            give = "give query, keys and values, or X with Wq, Wk and Wv"
            raise FileFormatError(f"it lacks {', '.join(missing)}: {give}")
        queries, is_mixing = needed[0], needed[0] == "weights"
        keys = self._words("words", "X" if queries == "X" else needed[1])
        self.words = {"key": keys}
        self.words["query"] = keys if queries == "X" else self._words("query_words", queries)
        n_queries = len(self._table(queries))
        if query is not None:
            self.row = find_row(
                [(word,) for word in self.words["query"]] or [()] * n_queries, query
            )
            if not self.words["query"] and not is_mixing:
                self.words["query"] = tuple(f"query {i}" for i in range(n_queries))
        calculation, notes = Calculation(), []
        if is_mixing:
            self._write_mixing(calculation)
            notes.append(Note("weights_given"))
        else:
            self._write_attention(calculation)
        if "V" not in calculation.grids:
            notes.append(Note("no_values"))
        title = " ".join(visible(self._get("title", "").replace("\n", " ")).split())
        for name in self.values:
            if name not in self.used:
                self._refuse(name, f"is of no use beside {', '.join(needed)}")
        code = "title_mixed" if is_mixing else "title_typed"
        heading = Note.of("text", text=title) if title else Note(code)
        return calculation.finish(heading, query=0 if n_queries == 1 else self.row, notes=notes)

    def _write_mixing(self, calculation: Calculation) -> None:
        """Check the weights in the file, and write down the context that they make of the values."""
        for i, shares in enumerate(self._table("weights")):
            if (shares < 0).any() or abs(shares.sum() - 1) > SUM:
                lowest = f", and {shares.min():g} is below 0" if (shares < 0).any() else ""
                reason = f"must be from 0 to 1 and sum to 1: row {i} sums to {shares.sum():.6g}"
                self._refuse("weights", reason + lowest)
        calculation.give("weights", self._grid("weights"))
        calculation.give("V", self._grid("values"))
        calculation.write_context()

    def _write_attention(self, calculation: Calculation) -> None:
        """Write down attention, of each head, and the output projection."""
        names = [self._write_inputs(calculation), "K"]
        if "V" in calculation.grids:
            names.append("V")
        score: Score = self._get("score", "scaled")
        scale = self._get("scale", "sqrt") if score == "scaled" else "sqrt"
        terms = Terms(
            score=score,
            scaling=1.0 if scale == "none" else None if scale == "sqrt" else float(scale),
            weights=self._grids(*SCORE_WEIGHTS[score]),
            mask=self._mask(),
        )
        n_heads = self._get("n_heads", 1)
        if not 1 <= n_heads <= MOST_HEADS:
            self._refuse("n_heads", f"must be a whole number from 1 to {MOST_HEADS}, not {n_heads}")
        if n_heads > 1:
            calculation.give("n_heads", Grid(values=np.array([[float(n_heads)]])))
        results = []
        for head in range(n_heads):
            suffix, parts = "", names
            if n_heads > 1:  # each head gets an equal part of the columns
                suffix = f"_{head}"
                parts = [
                    calculation.step(
                        f"split_{step}", name + suffix, "split", name, "n_heads", number=float(head)
                    )
                    for step, name in zip(("query", "keys", "values"), names, strict=False)
                ]
            values = parts[2] if len(parts) == 3 else None
            results.append(calculation.write_attention(terms, parts[0], parts[1], values, suffix))
        if "V" not in names:
            return
        result = results[0]
        if n_heads > 1:
            result = calculation.step("concatenated", "concatenated", "concatenate", *results)
        if "Wo" in self.values:
            calculation.project("output", "output", result, self._grids("Wo", "bo"))

    def _write_inputs(self, calculation: Calculation) -> str:
        """Write down the queries (or the one that is followed), keys and values; return the name of the queries."""
        if "X" in self.values:

            def projection(letter: str) -> dict[str, Grid]:
                has_weights = f"W{letter}" in self.values
                return self._grids(f"W{letter}", f"b{letter}") if has_weights else {}

            x = self._grid("X")
            return calculation.write_inputs(x, projection, self.row, self.words["query"])
        queries = self._grid("query")
        name = calculation.give("q" if len(queries.values) == 1 else "Q", queries)
        for symbol, table in (("K", "keys"), ("V", "values")):
            if table in self.values:
                calculation.give(symbol, self._grid(table))
        return name

    def _mask(self) -> Grid | None:
        """Return the mask [query, key], 1 for each key that a query may attend to; None without a mask."""
        if self._get("causal", False):
            if "mask" in self.values:
                self._refuse("causal", "and mask do not go together")
            n_queries = len(self._table("X" if "X" in self.values else "query"))
            self.values["mask"] = np.tri(n_queries).tolist()
        if "mask" not in self.values:
            return None
        mask = self._table("mask")
        for i, j in np.argwhere(~np.isin(mask, (0, 1))):
            self._refuse("mask", f"holds 0 and 1 only: [{i}][{j}] is {mask[i, j]:g}")
        return self._grid("mask")

    def _get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name, or the default. Raises FileFormatError: it has the wrong type."""
        self.used.add(name)
        if name not in self.values:
            return default
        value, kind = self.values[name], FIELDS[name][0]
        if kind == ROW:
            kind = TABLE
            if isinstance(value, list) and not any(isinstance(row, list) for row in value):
                value = [value]
        return decode(value, kind, self._at(name))

    def _table(self, name: str) -> Float64[np.ndarray, "row column"]:
        """Return a table of numbers. Raises FileFormatError: it is empty, or its rows differ in length."""
        rows = self._get(name)
        for i, row in enumerate(rows):
            if len(row) != len(rows[0]):
                reason = f"has {count(len(row), 'number')}, but row 0 has {len(rows[0])}"
                self._refuse(f"{name}[{i}]", reason)
        if not rows or not rows[0]:
            self._refuse(name, "is empty")
        return np.array(rows, dtype=np.float64)

    def _grid(self, name: str) -> Grid:
        """Return a table with the names of its rows and columns; of queries only the row that is followed."""
        values, axes = self._table(name), FIELDS[name][2].split()
        rows, columns = ([self.words[axis] for axis in axes] + [(), ()])[:2]
        if "query" in axes and self.row is not None:
            followed = slice(self.row, self.row + 1)
            values, rows = values[followed], rows[followed]
        return Grid(values=values, rows=rows, columns=columns)

    def _grids(self, *names: str) -> dict[str, Grid]:
        """Return the tables of these names as grids, without those that the file lacks."""
        return {name: self._grid(name) for name in names if name in self.values}

    def _words(self, name: str, table: str) -> tuple[str, ...]:
        """Return the words that name the rows of a table; empty if the file has none."""
        words, n_rows = self._get(name, []), len(self._table(table))
        if words and len(words) != n_rows:
            reason = f"has {count(len(words), 'word')}, but {table} has {count(n_rows, 'row')}"
            self._refuse(name, reason)
        texts = (str(word).lower() if isinstance(word, bool) else str(word) for word in words)
        return tuple(map(visible, texts))

    def _at(self, name: str) -> str:
        """Return where a name or a part of it is, such as ``line 3: keys[2]``."""
        line, label = self.lines.get(name.partition("[")[0]), clip(name, 40)
        return label if line is None else f"line {line}: {label}"

    def _refuse(self, name: str, reason: str) -> NoReturn:
        """Raise a FileFormatError with the line, the name and the reason."""
        raise FileFormatError(f"{self._at(name)} {reason}")


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
    for name in homework.values:
        if name not in FIELDS:
            homework._refuse(name, f"is not known{suggest(name, FIELDS)}")
    homework.values = {name: value for name, value in homework.values.items() if value is not None}
    return homework


def _read_yaml(text: str) -> Homework:
    """Return the names, values and lines of a YAML text.

    Raises FileFormatError: the text is no YAML, or uses features that are not allowed here, such as tags.
    """
    import yaml

    loader = _yaml_loader()
    try:
        for event in yaml.parse(text, Loader=loader):
            where = f"line {event.start_mark.line + 1}: "
            if isinstance(event, yaml.AliasEvent):  # a small file may stand for billions of numbers
                reason = "anchors and aliases (& and *) are not read: write the numbers out"
                raise FileFormatError(where + reason)
            if getattr(event, "tag", None):
                raise FileFormatError(f"{where}tags such as {event.tag[:40]} are not read")
        opened = loader(text)
        node = opened.get_single_node()
        if node is None:
            raise FileFormatError("it is empty")
        if not isinstance(node, yaml.MappingNode):
            raise FileFormatError("it must hold names with numbers, such as query, keys and values")
        homework = Homework({}, {})
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise FileFormatError(f"line {line}: a name must be text")
            if key.value in homework.values:
                raise FileFormatError(f"line {line}: {key.value} is there twice")
            homework.values[key.value] = opened.construct_object(value, deep=True)
            homework.lines[key.value] = line
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise FileFormatError(f"{where}it is not YAML: {error.problem or error.context}") from None
    # PyYAML raises the last two for an escape sequence that is no character.
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise FileFormatError(f"it is not YAML: {' '.join(str(error).split())}") from None
    return homework


def _yaml_loader() -> Any:
    """Return a class of YAML loaders for which a word without quotation marks is a number as in JSON, or text.

    PyYAML's own would read 1_000 and 12:30 as numbers, 2001-01-01 as a date and the word "on" as true.
    """
    import yaml

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = type("Loader", (base,), {"yaml_implicit_resolvers": {}})
    for kind, words in (
        ("null", "(?i:null|~|)"),
        ("bool", "(?i:true|false)"),
        ("int", "[-+]?(?:0|[1-9][0-9]{0,14})"),
        ("float", r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"),
    ):
        yaml.add_implicit_resolver(
            f"tag:yaml.org,2002:{kind}", re.compile(f"(?:{words})$"), Loader=loader
        )
    return loader
