"""`attnviz.heatmap` beside pyplot, as a script and a notebook use both; each program is a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

START = """
import json, sys
import numpy as np
import attnviz
rows = np.array([[0.75, 0.25], [0.5, 0.5]])
heads = np.stack([rows, rows[::-1]])
"""


def result(program: str, folder: Path) -> Any:
    """Run a program without a screen, and return what its last line prints."""
    done = subprocess.run(
        [sys.executable, "-c", START + program],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MPLBACKEND": "agg"},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


PYPLOT = "import matplotlib.pyplot as plt"


def test_savefig_writes_the_drawing(tmp_path: Path) -> None:
    """Without a figure the drawing becomes pyplot's own: `plt.savefig` and `plt.gca` find it."""
    program = """
axes = attnviz.heatmap(heads)
plt.savefig("drawn.png")
axes.figure.savefig("own.png")
same = open("drawn.png", "rb").read() == open("own.png", "rb").read()
second = attnviz.heatmap(rows)
print(json.dumps([same, plt.gca() is second, len(plt.get_fignums())]))
"""
    assert result(PYPLOT + program, tmp_path) == [True, True, 2]


def test_current_axes(tmp_path: Path) -> None:
    """One pattern is drawn on empty current axes, and over nothing that is there; more have a figure of their own."""
    program = """
figure, (left, right) = plt.subplots(1, 2)
on_right = attnviz.heatmap(rows) is right
plt.sca(left)
on_left = attnviz.heatmap(rows) is left
drawn = [len(axes.images) for axes in (left, right)]
elsewhere = attnviz.heatmap(rows).figure is not figure
plt.figure()
several = attnviz.heatmap(heads).figure is plt.gcf()
blank = plt.figure()
styled = attnviz.heatmap(rows, style="slides").figure is not blank
print(json.dumps([on_right, on_left, drawn, elsewhere, several, styled]))
"""
    assert result(PYPLOT + program, tmp_path) == [True, True, [1, 1], True, True, True]


def test_pyplot_is_left_alone_where_nobody_uses_it(tmp_path: Path) -> None:
    """Seaborn imports pyplot for itself: a program that draws in its colours opens no figures of pyplot."""
    program = """
before = [attnviz.heatmap(rows), "matplotlib.pyplot" in sys.modules][1]
for palette in ("mako", "mako", "viridis"):
    attnviz.heatmap(rows, palette=palette)
from matplotlib import pyplot
print(json.dumps([before, pyplot.get_fignums()]))
"""
    assert result(program, tmp_path) == [False, []]


def test_a_notebook_shows_it(tmp_path: Path) -> None:
    """With IPython's inline backend a cell that ends in a heatmap, or not, shows its picture once."""
    program = """
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.displaypub import CapturingDisplayPublisher
shell = InteractiveShell.instance()
shell.display_pub = CapturingDisplayPublisher()
shell.user_ns.update(attnviz=attnviz, rows=rows, heads=heads)
shell.run_cell("%matplotlib inline")
counts = []
for cell in ("attnviz.heatmap(rows)", "axes = attnviz.heatmap(heads)", "1 + 1"):
    shell.display_pub.outputs.clear()
    assert shell.run_cell(cell).success
    counts.append(sum("image/png" in output["data"] for output in shell.display_pub.outputs))
print(json.dumps(counts))
"""
    assert result(PYPLOT + program, tmp_path) == [1, 1, 0]
