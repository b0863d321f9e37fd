"""Walkthroughs of a person's own numbers, typed in JSON or YAML.

A file holds ``query``, ``keys`` and ``values``; or ``X`` with ``Wq``, ``Wk`` and ``Wv``; or ``weights`` and ``values``.
Without values the calculation ends at the weights. An error names the line of what does not fit.
"""

from __future__ import annotations

import json
import math
import os
import re
from codecs import BOM_UTF8
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_args

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Note
from attnviz.errors import FileFormatError, InputError, SelectionError
from attnviz.storage.files import as_file_error, check_is_file
from attnviz.text.display import clip, from_utf8, visible
from attnviz.text.suggest import suggest
from attnviz.walkthroughs.calculation import SCORE_WEIGHTS, Calculation, Terms, find_row
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.settings import Score

if TYPE_CHECKING:
    import yaml

TABLES = (
    *("query", "keys", "values", "X", "Wq", "Wk", "Wv", "bq", "bk", "bv", "Wo", "bo"),
    *("W", "U", "v", "mask", "weights"),
)
KNOWN = (*TABLES, "words", "query_words", "title", "score", "scale", "causal", "n_heads")
GIVE = "give query, keys and values, or X with Wq, Wk and Wv"

# These may be typed without a list around their only row.
ONE_ROW = ("v", "bq", "bk", "bv", "bo", "query", "weights")

LARGEST = 2**20  # bytes of a file; numbers typed by hand take far fewer
DEEPEST = 8  # lists within lists
ENDINGS = (".json", ".yaml", ".yml")
SUM = 1e-6  # how far given weights may be from a sum of 1, as six digits may leave them


@dataclass(frozen=True, slots=True)
class Homework:
    """The contents of a file."""

    values: dict[str, Any]
    lines: dict[str, int]  # of each name, counted from 1; empty for JSON
    used: set[str] = field(default_factory=set)  # names that the calculation has asked for

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value that is no table."""
        self.used.add(name)
        return self.values.get(name, default)

    def table(self, name: str) -> Float64[np.ndarray, "row column"]:
        """Return a table of numbers."""
        self.used.add(name)
        return _table(self, name)

    def grids(self, *names: str) -> dict[str, Grid]:
        """Return those of these tables that are there, as grids."""
        return {name: Grid(values=self.table(name)) for name in names if name in self}

    def where(self, name: str) -> str:
        """Return the name, after its line."""
        return f"line {self.lines[name]}: {name}" if name in self.lines else name

    def refuse(self, name: str, reason: str) -> NoReturn:
        """Raise a FileFormatError."""
        raise FileFormatError(f"{self.where(name)} {reason}")


def read(path: str | os.PathLike[str], *, query: str | int | None = None) -> Walkthrough:
    """Return the walkthrough of the numbers in a file, of one query (see `find_row`) or all.

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
    """Return the calculation; shapes that clash are refused by its steps."""
    needed: tuple[str, ...]
    if "weights" in homework:
        needed, keys = ("weights", "values"), "values"
    elif "X" in homework:
        needed, keys = ("X", "Wq", "Wk"), "X"
    else:
        needed, keys = ("query", "keys"), "keys"
    missing = [name for name in needed if name not in homework]
    if missing:
        raise FileFormatError(f"it lacks {', '.join(missing)}: {GIVE}")
    words = _words(homework, "words", keys)
    query_words = words if needed[0] == "X" else _words(homework, "query_words", needed[0])
    n_queries = len(homework.table(needed[0]))
    row = None
    if query is not None:
        row = find_row([(word,) for word in query_words] or [()] * n_queries, query)
    if row is not None and not query_words and needed[0] != "weights":
        query_words = tuple(f"query {i}" for i in range(n_queries))
    calculation = Calculation()
    if needed[0] == "weights":
        _write_mixing(calculation, homework, row, words, query_words)
        title, notes = "title_mixed", [Note("weights_given")]
    else:
        _write_attention(calculation, homework, row, words, query_words)
        title, notes = "title_typed", [] if "V" in calculation.grids else [Note("no_values")]
    typed_title = _title(homework)
    for name in homework.values:
        if name not in homework.used:
            homework.refuse(name, f"is of no use beside {', '.join(needed)}")
    followed = 0 if row is None and n_queries == 1 else row
    return calculation.finish(typed_title or Note(title), query=followed, notes=notes)


def _write_mixing(
    calculation: Calculation,
    homework: Homework,
    row: int | None,
    words: tuple[str, ...],
    query_words: tuple[str, ...],
) -> None:
    weights = Grid(values=homework.table("weights"), rows=query_words, columns=words)
    for i, shares in enumerate(weights.values):
        sums = f"must be from 0 to 1 and sum to 1: row {i} sums to {shares.sum():.6g}"
        if (shares < 0).any():
            homework.refuse("weights", f"{sums}, and {shares.min():g} is below 0")
        if abs(shares.sum() - 1) > SUM:
            homework.refuse("weights", f"{sums}; divide each weight by that sum")
    calculation.give("weights", _select_row(weights, row))
    calculation.give("V", Grid(values=homework.table("values"), rows=words))
    calculation.write_context()


def _write_attention(
    calculation: Calculation,
    homework: Homework,
    row: int | None,
    words: tuple[str, ...],
    query_words: tuple[str, ...],
) -> None:
    queries = _write_inputs(calculation, homework, row, words, query_words)
    mask = _mask(homework, query_words, words)
    if mask is not None:
        mask = _select_row(mask, row)
    score = homework.get("score", "scaled")
    scores: tuple[Score, ...] = get_args(Score)
    if score not in scores:
        homework.refuse("score", f"must be one of {', '.join(scores)}, not {_describe(score)}")
    terms = Terms(
        score=score,
        scaling=_scaling(homework, score),
        weights=homework.grids(*SCORE_WEIGHTS[score]),
        mask=mask,
    )
    result = _write_heads(calculation, terms, queries, _n_heads(homework))
    if "Wo" in homework and "V" in calculation.grids:
        calculation.project("output", "output", result, homework.grids("Wo", "bo"))


def _write_inputs(
    calculation: Calculation,
    homework: Homework,
    row: int | None,
    words: tuple[str, ...],
    query_words: tuple[str, ...],
) -> str:
    """Write down queries (or the followed one), keys and values; return the name of the queries."""
    if "X" in homework:
        x = Grid(values=homework.table("X"), rows=words)

        def projection(letter: str) -> dict[str, Grid]:
            has_weights = f"W{letter}" in homework
            return homework.grids(f"W{letter}", f"b{letter}") if has_weights else {}

        return calculation.write_inputs(x, projection, row, query_words)
    queries = _select_row(Grid(values=homework.table("query"), rows=query_words), row)
    name = calculation.give("q" if len(queries.values) == 1 else "Q", queries)
    for symbol, table in (("K", "keys"), ("V", "values")):
        if table in homework:
            calculation.give(symbol, Grid(values=homework.table(table), rows=words))
    return name


def _write_heads(calculation: Calculation, terms: Terms, queries: str, n_heads: int) -> str:
    """Write down the attention of each head, and all contexts side by side; return their name."""
    inputs = {"query": queries, "keys": "K"}
    if "V" in calculation.grids:
        inputs["values"] = "V"
    if n_heads == 1:
        return calculation.write_attention(terms, queries, "K", inputs.get("values"))
    calculation.give("n_heads", Grid(values=np.array([[float(n_heads)]])))
    results = []
    for head in range(n_heads):
        parts = {
            step: calculation.step(
                f"split_{step}", f"{name}_{head}", "split", name, "n_heads", number=float(head)
            )
            for step, name in inputs.items()
        }
        results.append(
            calculation.write_attention(
                terms, parts["query"], parts["keys"], parts.get("values"), f"_{head}"
            )
        )
    if "values" not in inputs:
        return results[0]
    return calculation.step("concatenated", "concatenated", "concatenate", *results)


def _select_row(grid: Grid, row: int | None) -> Grid:
    """Return the grid with only the followed query's row; None keeps all."""
    if row is None:
        return grid
    values, rows = grid.values[row : row + 1], grid.rows[row : row + 1]
    return Grid(values=values, rows=rows, columns=grid.columns)


def _words(homework: Homework, name: str, table: str) -> tuple[str, ...]:
    """Return the words that name the rows of a table; none where they are not given."""
    words, n_rows = homework.get(name, []), len(homework.table(table))
    if not isinstance(words, list) or any(isinstance(one, dict | list | None) for one in words):
        homework.refuse(name, "must be a list of words")
    if words and len(words) != n_rows:
        homework.refuse(name, f"has {len(words)} words, but {table} has {n_rows} rows")
    # The word true was read as a truth value.
    return tuple(visible(str(one).lower() if isinstance(one, bool) else str(one)) for one in words)


def _title(homework: Homework) -> str:
    title = homework.get("title", "-")
    if not isinstance(title, str) or not title.strip():
        homework.refuse("title", f"must be text, not {_describe(title)}")
    return " ".join(visible(title.replace("\n", " ")).split()) if "title" in homework else ""


def _n_heads(homework: Homework) -> int:
    n_heads = homework.get("n_heads", 1)
    if not isinstance(n_heads, int) or isinstance(n_heads, bool) or n_heads < 1:
        homework.refuse("n_heads", f"must be a whole number from 1 on, not {_describe(n_heads)}")
    return n_heads


def _scaling(homework: Homework, score: Score) -> float | None:
    """Return the factor of the scores; None is 1 / sqrt(d_k)."""
    scale = homework.get("scale", "sqrt")
    if scale is False or scale in ("none", "None"):
        return 1.0
    if score != "scaled" and "scale" in homework:
        homework.refuse("scale", f"is of no use to the score {score}, which is not scaled")
    if scale == "sqrt":
        return None
    if not isinstance(scale, int | float) or isinstance(scale, bool):
        factor = "the number that scores are multiplied with"
        homework.refuse("scale", f"must be sqrt, none, or {factor}, not {_describe(scale)}")
    return float(scale)


def _mask(homework: Homework, query_words: tuple[str, ...], words: tuple[str, ...]) -> Grid | None:
    """Return 1 where a query may look [query, key]; None where there is no mask."""
    causal = homework.get("causal", False)
    if not isinstance(causal, bool):
        homework.refuse("causal", f"must be true or false, not {_describe(causal)}")
    if causal and "mask" in homework:
        homework.refuse("causal", "and mask do not go together")
    if causal:
        mask = np.tri(len(homework.table("X" if "X" in homework else "query")))
    elif "mask" in homework:
        mask = homework.table("mask")
    else:
        return None
    for row, column in np.argwhere(~np.isin(mask, (0, 1))):
        homework.refuse("mask", f"holds 0 and 1 only: [{row}][{column}] is {mask[row, column]:g}")
    return Grid(values=mask, rows=query_words, columns=words)


def _table(homework: Homework, name: str) -> Float64[np.ndarray, "row column"]:
    rows = homework.values[name]
    if not isinstance(rows, list):
        homework.refuse(name, f"must be a list of numbers, not {_describe(rows)}")
    if name in ONE_ROW and not any(isinstance(row, list) for row in rows):
        rows = [rows]
    for i, row in enumerate(rows):
        where = f"{homework.where(name)}[{i}]"
        if not isinstance(row, list):
            raise FileFormatError(f"{where} must be a list of numbers, not {_describe(row)}")
        for j, cell in enumerate(row):
            if not isinstance(cell, int | float) or isinstance(cell, bool):
                is_quoted = isinstance(cell, str) and _NUMBER.fullmatch(cell)
                advice = ": write it without quotation marks" if is_quoted else ""
                raise FileFormatError(
                    f"{where}[{j}] must be a number, not {_describe(cell)}{advice}"
                )
        if len(row) != len(rows[0]):
            raise FileFormatError(f"{where} has {len(row)} numbers, but row 0 has {len(rows[0])}")
    if not rows or not rows[0]:
        homework.refuse(name, "is empty")
    return np.array(rows, dtype=np.float64)


def _describe(value: object) -> str:
    """Return a value as an error message names it."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return clip(json.dumps(value, ensure_ascii=False), 40)


def _read(path: Path) -> Homework:
    suffix = path.suffix.lower()
    if suffix not in ENDINGS:
        raise FileFormatError(f"numbers are read from {', '.join(ENDINGS)}, not {suffix!r}")
    check_is_file(path, LARGEST)
    try:
        text = from_utf8(path.read_bytes().removeprefix(BOM_UTF8))
    except InputError as error:
        raise FileFormatError(f"it is {error}") from None
    homework = _read_json(text) if suffix == ".json" else _read_yaml(text)
    if {"format", "version"} <= set(homework.values):
        raise FileFormatError(
            "it was saved by attnviz, not typed by hand: attnviz verify reads a saved walkthrough"
        )
    for name in homework.values:
        if name not in KNOWN:
            line = f"line {homework.lines[name]}: " if name in homework.lines else ""
            raise FileFormatError(f"{line}{clip(name, 40)!r} is not known{suggest(name, KNOWN)}")
    for name in [name for name, value in homework.values.items() if value is None]:
        del homework.values[name]
    return homework


def _read_json(text: str) -> Homework:
    def refuse_constant(constant: str) -> NoReturn:
        raise FileFormatError(f"a number must be finite, not {constant}")

    def refuse_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        for name in names:
            if names.count(name) > 1:
                raise FileFormatError(f"{name} is there twice")
        return dict(pairs)

    try:
        values = json.loads(
            text,
            parse_constant=refuse_constant,
            parse_float=_scalar,
            parse_int=_scalar,
            object_pairs_hook=refuse_repeats,
        )
    except RecursionError:
        raise FileFormatError("it is nested too deeply to be numbers") from None
    except ValueError as error:
        raise FileFormatError(f"it is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise FileFormatError(f"{NO_NAMES}, not {_describe(values)}")
    return Homework(values, {})


NO_NAMES = "it must hold names with numbers, such as query, keys and values"


def _read_yaml(text: str) -> Homework:
    import yaml

    try:
        node = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = "" if mark is None else f"line {mark.line + 1}: "
        raise FileFormatError(f"{where}it is not YAML: {error.problem or error.context}") from None
    # The last two come from an escape that is no character.
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise FileFormatError(f"it is not YAML: {reason}") from None
    if node is None:
        raise FileFormatError("it is empty")
    if not isinstance(node, yaml.MappingNode):
        raise FileFormatError(f"{NO_NAMES}, not {_describe(_value(node, set()))}")
    homework = Homework({}, {})
    seen: set[int] = set()
    for key, value in node.value:
        name, line = key.value, key.start_mark.line + 1
        try:
            if not isinstance(key, yaml.ScalarNode):
                raise FileFormatError("a name must be text")
            if name in homework:
                raise FileFormatError(f"{name} is there twice")
            homework.values[name], homework.lines[name] = _value(value, seen), line
        except FileFormatError as error:
            raise FileFormatError(f"line {line}: {error}") from None
    return homework


def _value(node: yaml.Node, seen: set[int], depth: int = 0) -> Any:
    """Return the value of a node; `seen` holds the nodes that were read before."""
    import yaml

    if depth > DEEPEST:
        raise FileFormatError("it is nested too deeply to be numbers")
    if id(node) in seen:  # a small file of aliases may stand for billions of numbers
        raise FileFormatError("anchors and aliases (& and *) are not read: write the numbers out")
    seen.add(id(node))
    if not node.tag.startswith("tag:yaml.org,2002:") or "/" in node.tag:
        raise FileFormatError(f"tags such as {node.tag[:40]} are not read")
    if isinstance(node, yaml.SequenceNode):
        return [_value(item, seen, depth + 1) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return {}  # refused by whoever expects a list or a text
    return node.value if node.style else _scalar(node.value)


_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.?(?:inf|infinity|nan)", re.IGNORECASE)


def _scalar(text: str) -> str | float | bool | None:
    """Return the value of a word without quotation marks.

    PyYAML would read 1_000 and 12:30 as numbers, 2001-01-01 as a date and the word "on" as true.
    """
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _NOT_FINITE.fullmatch(text):
        raise FileFormatError(f"a number must be finite, not {text}")
    if not _NUMBER.fullmatch(text):
        return text
    number = float(text)
    if not math.isfinite(number):
        raise FileFormatError(f"{text[:40]} is too large to be a number")
    return int(text) if _INTEGER.fullmatch(text) else number
