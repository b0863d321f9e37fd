"""The rules of the design hold: imports, names, sizes, places of tests; and a breach of any import rule is noticed."""

from __future__ import annotations

import ast
import builtins
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from attnviz import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "attnviz"
TESTS = ROOT / "tests"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Check the package in this folder against its contracts."""
    code = (
        "from importlinter.cli import lint_imports_command as lint; lint(prog_name='lint-imports')"
    )
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache"],
        cwd=folder,
        env={"COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_rules_hold() -> None:
    """Every contract is kept."""
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in result.stdout


BREACHES = [
    ("errors.py", "import attnviz.attention", 0),
    ("text/words.py", "from attnviz.models import wholes", 0),
    ("heatmaps/words.py", "from attnviz.heads import record", 0),
    ("render/sheet.py", "from attnviz import storage", 0),
    ("capture/source.py", "from attnviz.heads import survey", 0),
    ("walkthroughs/record.py", "from attnviz.stories import record", 0),
    ("attention.py", "import torch", 1),
    ("render/palette.py", "from transformers import AutoModel", 1),
    ("heads/record.py", "def late() -> None:\n    import torch", 1),
    ("models/config.py", "import rich", 2),
    ("capture/sources/hub.py", "def late() -> None:\n    import matplotlib.pyplot", 2),
    ("walkthroughs/verify/__init__.py", "import numpy", 3),
    ("heads/measures.py", "import torch", 4),
    ("cli/train.py", "def late() -> None:\n    import torch", 4),
    ("walkthroughs/verify/saved.py", "from attnviz.text import display", 3),
]
"""A module, a forbidden import at the top of it or inside a function, and the contract that forbids it."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is said of each broken contract in a copy of the package that has all these breaches."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copy(ROOT / "pyproject.toml", folder)
    shutil.copytree(
        PACKAGE, folder / "attnviz", ignore=lambda _, names: [n for n in names if "typefaces" in n]
    )
    for module, line, _ in BREACHES:
        path = folder / "attnviz" / module
        path.write_text(f"{path.read_text()}\n\n{line}\n")
    result = lint(folder)
    assert result.returncode == 1
    name, said = "", dict[str, str]()
    for line in result.stdout.partition("Broken contracts")[2].splitlines():
        name = line if line in {contract["name"] for contract in CONTRACTS} else name
        said[name] = f"{said.get(name, '')}{line}\n"
    return said


@pytest.mark.parametrize(("module", "line", "contract"), BREACHES)
def test_a_breach_is_noticed(report: dict[str, str], module: str, line: str, contract: int) -> None:
    """The contract that forbids an import names the module and the line that break it."""
    number = len((PACKAGE / module).read_text().splitlines()) + 2 + len(line.splitlines())
    importer = f"attnviz/{module}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert re.search(
        rf"{re.escape(importer)} -> \S+ \(l\.{number}\)", report[CONTRACTS[contract]["name"]]
    )


MODULES = sorted(PACKAGE.rglob("*.py"))
LIBRARY = [
    path
    for path in MODULES
    if path.parent.name != "cli" and path.name not in {"command.py", "commands.py"}
]
"""What Python users call: every module but those of the command line."""


@cache
def tree(path: Path) -> ast.Module:
    """A module, read once."""
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def nodes() -> list[ast.AST]:
    """All that the package is made of."""
    return [node for path in MODULES for node in ast.walk(tree(path))]


def test_refusals_name_no_option() -> None:
    """What is raised names settings as Python does; options are named by the command line."""
    raised = [
        ast.unparse(node)
        for path in LIBRARY
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Raise)
    ]
    ours = [line for line in raised if re.match(r"raise (errors\.)?\w+Error\(", line)]
    assert len(ours) > 250
    assert [line for line in ours if re.search(r"--[a-z]", line)] == []


def documented(node: ast.AST, around: str = "") -> Iterator[tuple[ast.FunctionDef, str]]:
    """Each public function of a module, and what its own docstring, its class's and the module's say together."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
        around += ast.get_docstring(node) or ""
    if isinstance(node, ast.FunctionDef):
        if not node.name.startswith("_") or node.name.startswith("__"):
            yield node, around
        return
    for inner in ast.iter_child_nodes(node):
        yield from documented(inner, around)


def errors_of(function: ast.AST) -> Iterator[str]:
    """The errors of attnviz that a function raises itself, not those of a function inside it."""
    for node in ast.iter_child_nodes(function):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func).rpartition(".")[2]
            yield from [name] * hasattr(errors, name)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from errors_of(node)


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_docs_name_what_is_raised(path: Path) -> None:
    """Each public function says which errors it raises, and each error that is named is there."""
    own = {node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)}
    for function, said in documented(tree(path)):
        named = set(re.findall(r"\b[A-Z]\w*Error\b", said))
        assert set(errors_of(function)) <= named, function.name
        assert all(hasattr(errors, name) or hasattr(builtins, name) for name in named - own), (
            function.name
        )


def test_no_two_public_classes_have_one_name(nodes: list[ast.AST]) -> None:
    """One name, one meaning."""
    names = Counter(
        node.name
        for node in nodes
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert names.total() > 300
    assert [name for name, n in names.items() if n > 1] == []


def is_for_types(node: ast.AST) -> bool:
    """Whether it is `if TYPE_CHECKING:`, under which nothing is imported when the program runs."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports(node: ast.AST) -> Iterator[str]:
    """What is imported here and inside it, functions too, when the program runs."""
    match node:
        case ast.ImportFrom(module=str(module)):
            yield from (f"{module}.{alias.name}" for alias in node.names)
        case ast.Import():
            yield from (alias.name for alias in node.names)
    for inner in ast.iter_child_nodes(node):
        if not is_for_types(inner):
            yield from imports(inner)


def test_no_module_needs_itself() -> None:
    """There is no circle of imports, wherever they stand."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in MODULES
    }
    needs = {
        name: {one if one in paths else one.rpartition(".")[0] for one in imports(tree(path))}
        & set(paths)
        for name, path in paths.items()
    }
    assert sum(map(len, needs.values())) > 1000
    TopologicalSorter(needs).prepare()  # raises CycleError


def test_functions_are_short(nodes: list[ast.AST]) -> None:
    """None has more than 60 lines or 10 parameters; a method's own object is none of them."""
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert len(functions) > 2000
    for node in functions:
        given = node.args
        names = [
            one.arg
            for one in (
                *given.posonlyargs,
                *given.args,
                *given.kwonlyargs,
                given.vararg,
                given.kwarg,
            )
            if one
        ]
        assert len([name for name in names if name not in {"self", "cls"}]) <= 10, node.name
        assert (node.end_lineno or 0) - node.lineno + 1 <= 60, node.name


def is_in_its_place(test: Path) -> bool:
    """Whether a file of tests lies beside the module that its name begins with, or is named as its folder is.

    Its folder must be one of attnviz. A name that begins with no module and no folder of the same feature is free.
    """
    folder, name = PACKAGE / test.parent, test.stem.removeprefix("test_")
    if not (folder / "__init__.py").exists():
        return False
    modules = [*PACKAGE.joinpath(*test.parent.parts[:1]).rglob("*.py")]
    names = {module.stem for module in modules} | {module.parent.name for module in modules}
    beginnings = [name.rsplit("_", cut)[0] for cut in range(name.count("_") + 1)]
    beginning = next((one for one in beginnings if one in names), None)
    return beginning is None or name == folder.name or (folder / f"{beginning}.py").exists()


def test_tests_lie_as_what_they_test_does() -> None:
    """The folders of tests are those of the package."""
    tests = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    assert len(tests) > 150
    assert [str(test) for test in tests if not is_in_its_place(test)] == []


@pytest.mark.parametrize(
    "test",
    [
        "views/test_table.py",
        "capture/hub/test_hub_download.py",
        "heads/test_heads_roles.py",
        "heads/test_figure.py",
        "heads/test_changes_views.py",
        "heads/test_divergences.py",
        "heads/figure/test_roles.py",
        "stories/lessons/test_stories_mask.py",
    ],
)
def test_a_test_elsewhere_is_noticed(test: str) -> None:
    """In no folder of the package, named by a folder, or not beside the module that it is named after."""
    assert not is_in_its_place(Path(test))
