"""The notes that the code of walkthroughs holds, found by reading it: also those that no model at hand gives."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).parents[2] / "attnviz"

OF_RECORDS = {"source.py", "attend.py", "batching.py"}
"""Modules whose notes are a record's or a survey's: no walkthrough carries them."""

SPEAKING = [
    path
    for folder in ("capture", "capture/sources", "walkthroughs/capture")
    for path in sorted((PACKAGE / folder).glob("*.py"))
    if path.name not in OF_RECORDS
] + [PACKAGE / "walkthroughs" / f"{name}.py" for name in ("examples", "exercise", "homework")]
"""The modules that write notes of walkthroughs."""


def noted() -> set[tuple[str, ...]]:
    """Every note by its wording, cut where something is filled in."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SPEAKING]
    behind: dict[str, list[ast.AST]] = {}
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef):
            returned = [inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return) and inner.value]
            behind.setdefault(node.name, []).extend(returned)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
            behind.setdefault(node.targets[0].id, []).append(node.value)
    written = (value for tree in trees for node in ast.walk(tree) for value in _notes_in(node))
    return {parts for value in written for parts in _strings(value, behind, frozenset())}


def _notes_in(node: ast.AST) -> list[ast.expr]:
    """What a piece of code makes a note of, or adds to the notes."""
    match node:
        case ast.Assign(targets=[ast.Name(id="notes" | "said")]) | ast.AugAssign(target=ast.Name(id="notes")):
            return [node.value]
        case ast.AugAssign(target=ast.Attribute(attr="notes")):
            return [node.value]
        case ast.keyword(arg="notes"):
            return [node.value]
        case ast.Call(func=ast.Attribute(value=ast.Name(id="notes"))):
            return node.args
        case _:
            return []


def _strings(node: ast.AST, behind: dict[str, list[ast.AST]], seen: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """The texts of an expression, also of constants and functions that it names."""
    inner: list[ast.AST] = []
    match node:
        case ast.JoinedStr():
            yield tuple(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        case ast.Constant(value=str()):
            yield (str(node.value),)
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) if name not in seen:
            inner, seen = behind.get(name, []), seen | {name}
        case ast.IfExp():
            inner = [node.body, node.orelse]
        case ast.Tuple() | ast.List() | ast.Starred() | ast.BinOp():
            inner = list(ast.iter_child_nodes(node))
    for one in inner:
        yield from _strings(one, behind, seen)
