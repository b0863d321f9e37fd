"""A person's own numbers, typed by hand in JSON or YAML, made a walkthrough.

Either ``query``, ``keys`` and ``values``, or ``X`` with ``Wq``, ``Wk`` and ``Wv``, or ``weights`` and ``values`` alone;
the rest may be left out. Without ``values``, or ``Wv``, the calculation ends at the weights, which need none. Whatever
does not fit is refused with the names and lines of the two that clash.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypeAlias, get_args

import numpy as np

from attnviz.attention import Note
from attnviz.errors import FileFormatError, RecordError, SelectionError
from attnviz.text.display import clip, visible
from attnviz.text.names import did_you_mean
from attnviz.walkthroughs.calculation import SCORE_MAPS, Calculation, Score, Terms, write_attention, write_context
from attnviz.walkthroughs.homework_file import Entry, NumberTable, expect, match, read_entries, read_table
from attnviz.walkthroughs.record import Grid, Walkthrough
from attnviz.walkthroughs.verify.saved import named, number
from attnviz.walkthroughs.view import chosen_row

DIRECT = ("query", "keys", "values")
PROJECTIONS = ("X", "Wq", "Wk", "Wv")
NEEDED = ("query", "keys", "X", "Wq", "Wk")
"""Of these, whichever of the two is typed, what must not be left out."""
BIASES = ("bq", "bk", "bv")
NUMBERS = (*DIRECT, *PROJECTIONS, *BIASES, "Wo", "bo", "W", "U", "v", "mask", "weights")
LABELS = ("words", "query_words")
OTHERS = ("title", "score", "scale", "causal", "n_heads")
MIXING = ("weights", "values", *LABELS, "title")
"""What may stand beside weights that are given."""
SUM = 1e-6
"""How far the sum of given weights may be from 1: what writing them with six digits may leave."""
KNOWN = (*NUMBERS, *LABELS, *OTHERS)

Fields: TypeAlias = Mapping[str, Entry]
"""What the file holds, by name."""

Tables: TypeAlias = Mapping[str, NumberTable]
"""The tables of numbers in it, by name."""


def read(path: str | os.PathLike[str], *, query: str | int | None = None) -> Walkthrough:
    """The walkthrough of the numbers in a file.

    Args:
        path: the file.
        query: the query that is followed, by the name of its row or by its number, counted from 0, negative from the
            end; None walks all there are at once.

    Raises:
        FileFormatError: the file cannot be read, or its numbers do not fit together; the message is one line.
        SelectionError: there is no such query.
    """
    whole = read_entries(path)
    try:
        return _calculate(_fields(whole), query)
    except SelectionError as error:
        raise SelectionError(visible(f"{path}: {error}")) from None
    except RecordError as error:
        reason = str(error)
    raise FileFormatError(visible(f"{path}: {reason}"))


def _fields(whole: Entry) -> Fields:
    """What the file holds by name, if it may hold all of it together."""
    found = whole.value
    if not isinstance(found, dict):
        raise FileFormatError(f"it must hold names with numbers, such as query, keys and values, not {named(found)}")
    if {"format", "version"} <= set(found):
        raise FileFormatError("it was saved by attnviz, not typed by hand: attnviz verify reads a saved walkthrough")
    for name, field in found.items():
        if name not in KNOWN:
            raise FileFormatError(f"line {field.line}: {clip(name, 40)!r} is not known{did_you_mean(name, KNOWN)}")
    fields = {name: field for name, field in found.items() if field.value is not None or name == "scale"}
    if "weights" in fields:
        _expect_mixing(fields)
        return fields
    _expect_attention(fields)
    return fields


def _expect_mixing(fields: Fields) -> None:
    """Refuse what weights that are given have no use for."""
    if spare := [name for name in fields if name not in MIXING]:
        raise FileFormatError(
            f"{_where(fields, 'weights')} and {_where(fields, spare[0])} do not go together: weights need no query"
        )
    if "values" not in fields:
        raise FileFormatError(f"{_where(fields, 'weights')} has no values that it could mix")


def _expect_attention(fields: Fields) -> None:
    """Refuse what attention lacks, or has no use for."""
    direct, projected = ([name for name in names if name in fields] for names in (DIRECT, (*PROJECTIONS, *BIASES)))
    if direct and projected:
        raise FileFormatError(
            f"{_where(fields, direct[0])} and {_where(fields, projected[0])} do not go together: give query, keys and "
            f"values, or X with Wq, Wk and Wv"
        )
    if missing := [name for name in (PROJECTIONS if projected else DIRECT) if name in NEEDED and name not in fields]:
        raise FileFormatError(f"it lacks {', '.join(missing)}: give query, keys and values, or X with Wq, Wk and Wv")
    if not projected and "values" not in fields and "Wo" in fields:
        raise FileFormatError(f"{_where(fields, 'Wo')} has no values that it could project")
    if projected and "Wv" not in fields and (spare := [name for name in ("bv", "Wo") if name in fields]):
        raise FileFormatError(f"{_where(fields, spare[0])} is of no use without Wv")
    if "bo" in fields and "Wo" not in fields:
        raise FileFormatError(f"{_where(fields, 'bo')} has no Wo that it could be added to")


def _calculate(fields: Fields, wanted: str | int | None) -> Walkthrough:
    tables = {name: read_table(name, fields[name]) for name in NUMBERS if name in fields}
    _check_shapes(tables)
    if "weights" in tables:
        return _mixed(fields, tables, wanted)
    score = _score(fields)
    words, query_words = _labels(fields, tables)
    n_queries = tables["query" if "query" in tables else "X"].size("rows")
    row = None if wanted is None else chosen_row([(word,) for word in query_words] or [()] * n_queries, wanted)
    if row is not None and not query_words:
        query_words = tuple(f"query {i}" for i in range(n_queries))  # so that a reader sees which one is followed
    calculation = Calculation()
    query = _write_operands(calculation, tables, query_words, words, row)
    _check_scores(score, calculation.grids[query], calculation.grids["K"], tables)
    mask = _mask(fields, tables, query_words, words, n_queries)
    has_values = "V" in calculation.grids
    terms = Terms(
        score=score,
        scaling=_scaling(fields, score),
        maps=_grids(tables, *SCORE_MAPS[score]),
        mask=None if mask is None else _of_row(mask, row),
    )
    context = _write_heads(calculation, terms, query, _heads(fields, score, calculation))
    if "Wo" in tables:
        expect(tables["Wo"], "rows", calculation.grids[context].values.shape[1], "the values' width")
        calculation.project("output", "output", context, _grids(tables, "Wo", "bo"))
    followed = 0 if row is None and n_queries == 1 else row
    return calculation.finish(_title(fields), query=followed, notes=() if has_values else (Note("no_values"),))


def _mixed(fields: Fields, tables: Tables, wanted: str | int | None) -> Walkthrough:
    """Values mixed with weights that are given, which no query makes."""
    weights, calculation = tables["weights"], Calculation()
    words = _words(fields, "words", tables["values"])
    queries = _words(fields, "query_words", weights)
    n_queries = weights.size("rows")
    for i, row in enumerate(weights.values):
        if (row < 0).any() or abs(row.sum() - 1) > SUM:
            raise FileFormatError(
                f"{_where(fields, 'weights')} must be from 0 to 1 and sum to 1: row {i} sums to {row.sum():.6g}"
                + (f", and {row.min():g} is below 0" if (row < 0).any() else "; divide each weight by that sum")
            )
    followed = None if wanted is None else chosen_row([(word,) for word in queries] or [()] * n_queries, wanted)
    given = _of_row(Grid(values=weights.values, rows=queries, columns=words), followed)
    calculation.give("weights", given)
    calculation.give("V", Grid(values=tables["values"].values, rows=words))
    write_context(calculation)
    title = _title(fields) if "title" in fields else Note("title_mixed")
    query = 0 if followed is None and n_queries == 1 else followed
    return calculation.finish(title, query=query, notes=(Note("weights_given"),))


def _write_heads(calculation: Calculation, terms: Terms, query: str, n_heads: int) -> str:
    """Write down attention of each head on its own part of queries, keys and values, and all contexts side by side."""
    c, has_values = calculation, "V" in calculation.grids
    operands = {"query": query, "keys": "K", "values": "V" if has_values else "K"}
    if n_heads > 1:
        c.give("n_heads", Grid(values=np.array([[float(n_heads)]])))
    made = []
    for head in range(n_heads):
        suffix, own = "", operands
        if n_heads > 1:
            suffix = f"_{head}"
            for step, name in list(operands.items())[: 2 + has_values]:
                c.step(f"split_{step}", name + suffix, "split", name, "n_heads", number=float(head))
            own = {step: name + suffix for step, name in operands.items()}
        made.append(write_attention(c, terms, **own, suffix=suffix))
        while not has_values and c.steps[-1].name != "softmax":  # the keys stood in for the values
            del c.grids[c.steps.pop().result]
    return made[0] if n_heads == 1 or not has_values else c.step("concatenated", "concatenated", "concatenate", *made)


def _grids(tables: Tables, *symbols: str) -> dict[str, Grid]:
    return {symbol: Grid(values=tables[symbol].values) for symbol in symbols if symbol in tables}


def _write_operands(
    calculation: Calculation, tables: Tables, query_words: tuple[str, ...], words: tuple[str, ...], row: int | None
) -> str:
    """Write down queries, or the one that is followed, keys and values, given or projected; the queries' name."""
    if "query" in tables:
        queries = Grid(values=tables["query"].values, rows=query_words)
        name = calculation.give("q" if row is not None or len(queries.values) == 1 else "Q", _of_row(queries, row))
        for letter, typed in (("K", "keys"), ("V", "values")):
            if typed in tables:
                calculation.give(letter, Grid(values=tables[typed].values, rows=words))
        return name
    x = calculation.give("X", Grid(values=tables["X"].values, rows=words))
    if row is not None:
        x = calculation.step("row", "x", "row", x, number=float(row), rows=query_words[row : row + 1])
    name = "Q" if row is None else "q"
    for step, of, made, letter in (("query", x, name, "q"), ("keys", "X", "K", "k"), ("values", "X", "V", "v")):
        if f"W{letter}" in tables:
            calculation.project(step, made, of, _grids(tables, f"W{letter}", f"b{letter}"))
    return name


def _of_row(grid: Grid, row: int | None) -> Grid:
    """Of a grid with a row for each query, that of the one that is followed; None takes all."""
    if row is None:
        return grid
    one = slice(row, row + 1)
    return Grid(values=grid.values[one], rows=grid.rows[one], columns=grid.columns)


# ------------------------------------------------------------------------------------------- what is typed


def _labels(fields: Fields, tables: Tables) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names for the keys, and for the queries."""
    if "X" not in tables:
        return _words(fields, "words", tables["keys"]), _words(fields, "query_words", tables["query"])
    words = _words(fields, "words", tables["X"])
    if "query_words" in fields:
        raise FileFormatError(f"{_where(fields, 'query_words')} is of no use: with X, queries and keys are words")
    return words, words


def _words(fields: Fields, name: str, table: NumberTable) -> tuple[str, ...]:
    """Names for the rows of a table; empty where none are typed."""
    if name not in fields:
        return ()
    found = fields[name].value
    if not isinstance(found, list):
        raise FileFormatError(f"{_where(fields, name)} must be a list of words, not {named(found)}")
    for i, word in enumerate(found):
        if isinstance(word.value, dict | list | None):
            raise FileFormatError(f"line {word.line}: {name}[{i}] must be a word, not {named(word.value)}")
    if len(found) != table.size("rows"):
        raise FileFormatError(
            f"{_where(fields, name)} has {len(found)} words, but {table.name} (line {table.line}) has "
            f"{table.size('rows')} rows"
        )
    return tuple(visible(str(one.value).lower() if isinstance(one.value, bool) else str(one.value)) for one in found)


def _title(fields: Fields) -> Note | str:
    if "title" not in fields:
        return Note("title_typed")
    title = fields["title"]
    if not isinstance(title.value, str) or not title.value.strip():
        raise FileFormatError(f"line {title.line}: title must be text, not {named(title.value)}")
    return " ".join(visible(title.value.replace("\n", " ")).split())


def _score(fields: Fields) -> Score:
    found = fields.get("score", Entry("scaled_dot", 0))
    scores: tuple[Score, ...] = get_args(Score)
    if found.value not in scores:
        raise FileFormatError(f"line {found.line}: score must be one of {', '.join(scores)}, not {named(found.value)}")
    score = scores[scores.index(found.value)]
    needed = SCORE_MAPS[score]
    if missing := [name for name in needed if name not in fields]:
        raise FileFormatError(f"line {found.line}: the score {score} needs {', '.join(missing)}")
    if spare := [name for name in ("W", "U", "v") if name in fields and name not in needed]:
        raise FileFormatError(f"{_where(fields, spare[0])} is of no use to the score {score}")
    return score


def _heads(fields: Fields, score: Score, calculation: Calculation) -> int:
    """How many heads share the columns of queries, keys and values."""
    found = fields.get("n_heads", Entry(1, 0))
    n = found.value
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise FileFormatError(f"line {found.line}: n_heads must be a whole number from 1 on, not {named(n)}")
    if n > 1 and SCORE_MAPS[score]:
        raise FileFormatError(
            f"{_where(fields, 'n_heads')} does not go with the score {score}, whose weights are one head's"
        )
    for name, what in (("q", "queries"), ("Q", "queries"), ("K", "keys"), ("V", "values")):
        width = calculation.grids[name].values.shape[1] if name in calculation.grids else 0
        if width % n:
            raise FileFormatError(
                f"{_where(fields, 'n_heads')} is {n}, which does not divide the {what}' width, {width}"
            )
    return n


def _scaling(fields: Fields, score: Score) -> float | None:
    """What scores are multiplied with; None is 1 / sqrt(d_k)."""
    if "scale" not in fields:
        return None
    field = fields["scale"]
    if field.value in {"none", "None"} if isinstance(field.value, str) else field.value is False:
        return 1.0
    if score != "scaled_dot":
        raise FileFormatError(f"{_where(fields, 'scale')} is of no use to the score {score}, which is not scaled")
    if field.value == "sqrt":
        return None
    if not isinstance(field.value, int | float) or isinstance(field.value, bool):
        raise FileFormatError(
            f"{_where(fields, 'scale')} must be sqrt, none, or the number that scores are multiplied with, not "
            f"{named(field.value)}"
        )
    return number(field.value, _where(fields, "scale"))


def _mask(
    fields: Fields, tables: Tables, query_words: Sequence[str], words: Sequence[str], queries: int
) -> Grid | None:
    """1 where a query may look."""
    causal = fields.get("causal", Entry(value=False, line=0))
    if not isinstance(causal.value, bool):
        raise FileFormatError(f"line {causal.line}: causal must be true or false, not {named(causal.value)}")
    keys = tables["keys" if "keys" in tables else "X"]
    if causal.value and "mask" in tables:
        raise FileFormatError(f"{_where(fields, 'causal')} and {_where(fields, 'mask')} do not go together")
    if causal.value:
        if queries != keys.size("rows"):
            raise FileFormatError(
                f"{_where(fields, 'causal')} needs a query for each key: there are {queries} queries and "
                f"{keys.size('rows')} keys"
            )
        values = np.tri(queries)
    elif "mask" in tables:
        mask = tables["mask"]
        expect(mask, "rows", queries, "the number of queries")
        expect(mask, "columns", keys.size("rows"), "the number of keys")
        values = mask.values
        if not np.isin(values, (0, 1)).all():
            row, column = np.argwhere(~np.isin(values, (0, 1)))[0]
            raise FileFormatError(
                f"{_where(fields, 'mask')} holds 0 and 1 only: [{row}][{column}] is {values[row, column]:g}"
            )
        if not values.any(axis=1).all():
            row = int(np.argmin(values.any(axis=1)))
            raise FileFormatError(f"{_where(fields, 'mask')} leaves the query of row {row} nothing to look at")
    else:
        return None
    return Grid(values=values, rows=tuple(query_words), columns=tuple(words))


# ------------------------------------------------------------------------------------------- what fits what


def _check_shapes(tables: Tables) -> None:
    """Refuse tables of which two numbers clash."""
    if "X" in tables:
        for letter in "qkv":
            if f"W{letter}" not in tables:
                continue
            match(tables["X"], "columns", tables[f"W{letter}"], "rows")
            if f"b{letter}" in tables:
                match(tables[f"b{letter}"], "columns", tables[f"W{letter}"], "columns")
    elif "values" in tables:
        of, side = ("weights", "columns") if "weights" in tables else ("keys", "rows")
        match(tables[of], side, tables["values"], "rows")
    if "bo" in tables:
        match(tables["bo"], "columns", tables["Wo"], "columns")


def _check_scores(score: Score, query: Grid, keys: Grid, tables: Tables) -> None:
    """Refuse queries and keys that the way to score does not fit."""
    d_q, d_k = query.values.shape[1], keys.values.shape[1]
    if score == "general":
        expect(tables["W"], "rows", d_q, "the queries' width")
        expect(tables["W"], "columns", d_k, "the keys' width")
    elif score == "additive":
        expect(tables["W"], "columns", d_q, "the queries' width")
        expect(tables["U"], "columns", d_k, "the keys' width")
        match(tables["W"], "rows", tables["U"], "rows")
        match(tables["v"], "columns", tables["W"], "rows")
    elif d_q != d_k:
        match(*((tables["query"], "columns", tables["keys"], "columns") if "query" in tables else
                 (tables["Wq"], "columns", tables["Wk"], "columns")))  # fmt: skip


def _where(fields: Fields, name: str) -> str:
    return f"line {fields[name].line}: {name}"
