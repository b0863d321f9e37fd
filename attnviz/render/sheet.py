"""What a heatmap shows, resolved before anything is drawn: labels, matrices, colour limits, and what must be said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from attnviz.attention import Attention, Kind, Note
from attnviz.errors import SelectionError
from attnviz.text.display import clip, visible
from attnviz.text.notes import sentence

Scale = Literal["shared", "panel", "unit"]

BLANK = 0.005
"""Weights below it leave their cell blank: as a percentage, and with two decimals, they are 0."""

MOST_COMPARED = 32
"""Rows and columns of the patterns that are compared with one another."""

AXES = "rows are queries, columns are keys; layers and heads count from 0"

KINDS: dict[Kind, str] = {
    "encoder": "bidirectional self-attention",
    "decoder": "causal self-attention",
    "cross": "cross-attention",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One head's matrix, with the upper end of its colour scale."""

    layer: int
    head: int
    matrix: Float[np.ndarray, "query key"]
    top: float

    @property
    def name(self) -> str:
        """As ``layer 2, head 5``."""
        return f"layer {self.layer}, head {self.head}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """All that a picture of a record shows.

    Attributes:
        panels: layer by layer, head by head.
        layers: the layers shown.
        heads: the heads shown.
        query_labels: one a row.
        key_labels: one a column.
        model: the model's name and kind of attention.
        sentence: the input, in quotation marks.
        scale: `shared`, `panel` or `unit`.
        notes: what else must be said.
        proof: the receipt, in words.
        is_proved: whether there is one.
    """

    panels: tuple[Panel, ...]
    layers: tuple[int, ...]
    heads: tuple[int, ...]
    query_labels: tuple[str, ...]
    key_labels: tuple[str, ...]
    model: str
    sentence: str
    scale: Scale
    notes: tuple[str, ...]
    proof: str
    is_proved: bool

    @property
    def legend(self) -> str:
        """What the colours mean, in words."""
        largest = max(panel.top for panel in self.panels)
        if self.scale == "unit":
            return f"weight 0 to 1; blank: below {BLANK}"
        if self.scale == "panel" and len(self.panels) > 1:
            return (
                f"weight, in each panel 0 to its own largest (given as max); blank: below {BLANK} or a fiftieth of that"
            )
        end = f"0 to {largest:.3g}" + (", one scale for all" if len(self.panels) > 1 else "")
        return f"weight {end}; blank: below {blank_below(largest):.2g}"

    @property
    def distinct(self) -> Panel:
        """The head whose pattern differs most from the others' here.

        It has the largest mean Jensen-Shannon divergence, of rows with rows, from the other heads' patterns (Clark et
        al. 2019 compare heads so over a corpus); of a long sentence the patterns are pooled before.
        """
        panels = pool(self, MOST_COMPARED, MOST_COMPARED).panels
        patterns = np.stack([panel.matrix for panel in panels]).astype(np.float64)
        own = _entropies(patterns)  # (head, row)
        means = [
            (_entropies((patterns + one) / 2) - (own + mine) / 2).mean()
            for one, mine in zip(patterns, own, strict=True)
        ]
        return self.panels[int(np.argmax(means))]

    @property
    def description(self) -> str:
        """All that is said of a picture without words of its own, as its file keeps it."""
        return f"{self.model}; {self.sentence}; {AXES}; {self.legend}; {self.proof}"

    @property
    def size(self) -> str:
        """How much there is, as ``6 layers x 12 heads``, or ``layer 5, 12 heads``."""
        if len(self.layers) == 1 or len(self.heads) == 1:
            return f"{_named(self.layers, 'layer')}, {_named(self.heads, 'head')}"
        return f"{len(self.layers)} layers x {len(self.heads)} heads"


def resolve(record: Attention, scale: Scale = "shared") -> Sheet:
    """What to draw of a record.

    Args:
        record: with the layers and heads to show.
        scale: `shared`, one colour scale up to the largest weight shown; `panel`, each head's up to its own;
            `unit`, 0 to 1.

    Raises:
        SelectionError: no such scale.
    """
    if scale not in get_args(Scale):
        raise SelectionError(f"the scale must be one of {', '.join(get_args(Scale))}, not {scale!r}")
    matrices = record.weights.reshape(-1, *record.weights.shape[2:])
    places = [(layer, head) for layer in record.layers for head in record.heads]
    panels = tuple(
        Panel(layer=layer, head=head, matrix=matrix, top=top)
        for (layer, head), matrix, top in zip(places, matrices, _tops(list(matrices), scale), strict=True)
    )
    text = f"“{visible(record.text)}”" if record.text else ""
    if record.pair is not None:
        text += f" + “{visible(record.pair)}”"
    if record.target is not None:
        text += f" → “{visible(record.target)}”"
    return Sheet(
        panels=panels,
        layers=record.layers,
        heads=record.heads,
        query_labels=tuple(token.text for token in record.query_tokens),
        key_labels=tuple(token.text for token in record.key_tokens),
        model=f"{visible(record.model)} · {KINDS[record.kind]}",
        sentence=text,
        scale=scale,
        notes=tuple(map(sentence, record.notes)),
        proof=record.proof,
        is_proved=record.receipt is not None,
    )


def pool(sheet: Sheet, max_rows: int, max_columns: int) -> Sheet:
    """The same picture with at most so many rows and columns, or the sheet itself where it has no more.

    Neighbouring tokens go together: to a group the sum over its keys, from it the mean over its queries (as for
    words), so that rows sum to what they summed to. Groups are of one size, but for the last, so that even attention
    stays even, and where queries and keys are the same tokens so are their groups. The colour scale grows with the
    sums, and a note says all this.
    """
    n_rows, n_columns = len(sheet.query_labels), len(sheet.key_labels)
    if n_rows <= max_rows and n_columns <= max_columns:
        return sheet
    tall, wide = (math.ceil(n / max(1, most)) for n, most in ((n_rows, max_rows), (n_columns, max_columns)))
    if sheet.query_labels == sheet.key_labels:
        tall = wide = max(tall, wide)
    rows, columns = list(range(0, n_rows, tall)), list(range(0, n_columns, wide))
    sizes = np.diff([*rows, n_rows])[:, None]
    matrices = [
        np.add.reduceat(np.add.reduceat(panel.matrix, rows, axis=0), columns, axis=1) / sizes for panel in sheet.panels
    ]
    note = Note.of("pooled", n_queries=n_rows, n_keys=n_columns, rows=len(rows), columns=len(columns))
    return replace(
        sheet,
        panels=tuple(
            replace(panel, matrix=matrix, top=top)
            for panel, matrix, top in zip(sheet.panels, matrices, _tops(matrices, sheet.scale), strict=True)
        ),
        query_labels=_group_labels(sheet.query_labels, rows),
        key_labels=_group_labels(sheet.key_labels, columns),
        notes=(*sheet.notes, sentence(note)),
    )


def blank_below(top: float) -> float:
    """The weight below which a cell stays blank: `BLANK`, or less where even the largest, `top`, is small."""
    return min(BLANK, top / 50)


def _entropies(patterns: Float[np.ndarray, "head query key"]) -> Float[np.ndarray, "head query"]:
    """Of each row, in nats."""
    logs = np.log(patterns, where=patterns > 0, out=np.zeros_like(patterns))
    return np.asarray(-(patterns * logs).sum(axis=-1))


def _tops(matrices: Sequence[np.ndarray], scale: Scale) -> list[float]:
    """The upper end of each panel's colour scale."""
    own = [float(matrix.max()) for matrix in matrices]
    return {"shared": [max(own)] * len(own), "panel": own, "unit": [1.0] * len(own)}[scale]


def _group_labels(labels: Sequence[str], edges: Sequence[int]) -> tuple[str, ...]:
    ends = [*edges[1:], len(labels)]
    return tuple(
        labels[first] if last - first == 1 else f"{clip(labels[first], 8)}…{clip(labels[last - 1], 8)}"
        for first, last in zip(edges, ends, strict=True)
    )


def _named(numbers: Sequence[int], what: str) -> str:
    """As ``layer 5`` where there is one, as ``12 heads`` where there are more."""
    return f"{what} {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} {what}s"
