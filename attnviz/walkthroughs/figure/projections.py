"""The steps before attention as one small drawing: boxes and arrows from the input to queries, keys and values.

Lengths are in inches, font sizes in points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from attnviz.render.figure.page import Page
from attnviz.render.figure.pen import Pen
from attnviz.walkthroughs import wording
from attnviz.walkthroughs.figure.matrix import LETTERS
from attnviz.walkthroughs.operations import MATRIX
from attnviz.walkthroughs.view import StepView, View

FORMULA = 7.5  # font size
BOX_HEIGHT, ROW_PITCH, ARROW_LENGTH, PAD = 0.38, 0.46, 0.42, 0.09


@dataclass(slots=True, eq=False)
class Node:
    """A grid, or the same grid of each head, as a box."""

    name: str  # with its shape
    formula: str  # how it is computed; empty if it is given
    level: int = 0  # its column
    row: float = 0.0
    sources: list[Node] = field(default_factory=list)


class Projections:
    """The drawing with the places of its boxes."""

    def __init__(self, view: View, cards: Sequence[StepView], pen: Pen) -> None:
        """Place a box for each card, and one for each given grid that the first steps start from."""
        self.pen, self.nodes = pen, _connect(view, cards)
        self._place()
        n_columns = max(node.level for node in self.nodes) + 1
        self.widths = [
            max((self._text_width(node) for node in self.nodes if node.level == column), default=0)
            + 2 * PAD
            for column in range(n_columns)
        ]
        self.width = sum(self.widths) + ARROW_LENGTH * (n_columns - 1)
        self.height = max(node.row for node in self.nodes) * ROW_PITCH + BOX_HEIGHT

    def _text_width(self, node: Node) -> float:
        return max(self.pen.width(node.name, LETTERS), self.pen.width(node.formula, FORMULA))

    def _place(self) -> None:
        """Give the last results a row each in the last column, and every other box a row beside its successors."""
        used = {id(source) for node in self.nodes for source in node.sources}
        last_level = max(node.level for node in self.nodes)
        last_nodes = [node for node in self.nodes if id(node) not in used]
        for row, node in enumerate(last_nodes):
            node.level, node.row = last_level, float(row)
        for node in reversed(self.nodes):
            rows = [successor.row for successor in self.nodes if node in successor.sources]
            if rows:
                node.row = sum(rows) / len(rows)
        for level in range(last_level):
            lowest = 0.0
            for node in sorted(
                (node for node in self.nodes if node.level == level), key=lambda node: node.row
            ):
                node.row = max(node.row, lowest)
                lowest = node.row + 1

    def texts(self) -> list[str]:
        """Return all texts, so that fonts can be chosen for them."""
        return [text for node in self.nodes for text in (node.name, node.formula)]

    def draw(self, page: Page, left: float, top: float) -> None:
        """Draw boxes and arrows with the top left corner at (`left`, `top`)."""
        lefts = [left]
        for width in self.widths:
            lefts.append(lefts[-1] + width + ARROW_LENGTH)
        for node in self.nodes:
            x, width = lefts[node.level], self.widths[node.level]
            y = top + node.row * ROW_PITCH
            page.box(
                (x, y, width, BOX_HEIGHT),
                fill=False,
                edgecolor=self.pen.quiet,
                linewidth=0.8,
                zorder=3,
            )
            centre, middle = x + width / 2, y + BOX_HEIGHT / 2
            offset = 0.075 if node.formula else 0.0
            look: dict[str, Any] = {"ha": "center", "va": "center"}
            page.text(centre, middle - offset, node.name, LETTERS, **look)
            if node.formula:
                place = centre, middle + offset
                page.text(*place, node.formula, FORMULA, color=self.pen.quiet, **look)
            for source in node.sources:
                start = lefts[source.level] + self.widths[source.level]
                page.ax.annotate(
                    "",
                    xy=(x, middle),
                    xytext=(start, top + source.row * ROW_PITCH + BOX_HEIGHT / 2),
                    arrowprops={
                        "arrowstyle": "-|>,head_width=0.15,head_length=0.3",
                        "color": self.pen.quiet,
                        "linewidth": 0.8,
                        "shrinkA": 0,
                        "shrinkB": 0,
                    },
                )


def _connect(view: View, cards: Sequence[StepView]) -> list[Node]:
    """Return a box for each card after the boxes of its operands; weights and biases have none."""
    nodes: list[Node] = []
    by_result: dict[str, Node] = {}
    for card in cards:
        steps = [head.step for head in card.heads] or [card.step]
        shape = str(view.walk.grids[card.step.result].values.shape)
        name = card.step.result
        if len(steps) > 1:
            name = f"{name} … {steps[-1].result} "
            shape = f"{len(steps)} {MATRIX} {shape}"
        formula = wording.shown_formula(card.formula).partition(" = ")[2]
        node = Node(f"{name} {shape}", formula)
        for operand in dict.fromkeys(step.operands[0] for step in steps):
            if operand not in by_result and card.step.name != "input":
                values = view.walk.grids[operand].values
                by_result[operand] = Node(f"{operand} {values.shape}", "")
                nodes.append(by_result[operand])
        for operand in dict.fromkeys(name for step in steps for name in step.operands):
            source = by_result.get(operand)
            if source is not None and source not in node.sources:
                node.sources.append(source)
        node.level = max((source.level + 1 for source in node.sources), default=0)
        nodes.append(node)
        by_result |= {step.result: node for step in steps}
    return nodes
