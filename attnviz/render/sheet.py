"""The content of a heatmap, resolved before it is drawn: labels, matrices, colour limits, signs, notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from attnviz.attention import Attention, Kind, Note
from attnviz.errors import SelectionError
from attnviz.text.display import clip, visible
from attnviz.text.messages import Phrase, _, in_language, join_phrases
from attnviz.text.notes import proof, sentence

Scale = Literal["shared", "panel", "unit"]

BLANK = 0.005  # weights below it leave their cell blank: as a percentage, and with two decimals, they are 0

MANY = 64  # rows and columns of a pooled pattern from which on its colours end below its largest weight

MOST_COMPARED = 32  # rows and columns of the patterns that are compared with one another

# how every picture is read
AXES = _("Rows are queries, columns are keys; layers and heads count from 0")

KINDS: dict[Kind, Phrase] = {
    "encoder": _("bidirectional self-attention"),
    "decoder": _("causal self-attention"),
    "cross": _("cross-attention"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One head's matrix, with the upper end of its colour scale."""

    layer: int
    head: int
    matrix: Float[np.ndarray, "query key"]
    top: float

    @property
    def place(self) -> str:
        """The layer and head, such as ``2.5``."""
        return f"{self.layer}.{self.head}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Everything that a picture of a record shows."""

    record: Attention  # what it is of
    panels: tuple[Panel, ...]  # layer by layer, head by head
    layers: tuple[int, ...]  # the layers shown
    heads: tuple[int, ...]  # the heads shown
    query_labels: tuple[str, ...]  # one a row
    key_labels: tuple[str, ...]  # one a column
    model: str  # the model's name and kind of attention
    sentence: str  # the input, in quotation marks
    scale: Scale  # `shared`, `panel` or `unit`
    notes: tuple[str, ...]  # what else must be said
    proof: str  # the receipt, in words
    is_proved: bool  # whether there is one
    # how many rows and columns stand for, which are fewer where tokens go together
    tokens: tuple[int, int]
    first: tuple[int, int] = (0, 0)  # the number of the first token of the rows, and of the columns
    # How many tokens a row, and a column, stands for; the last perhaps for fewer.
    cell: tuple[int, int] = (1, 1)
    language: str = "en"  # `en` or `ko`, of all that is said
    # whether cells of nearly no weight stay blank; else they have the colour of 0
    has_blanks: bool = True

    def say(self, text: str) -> str:
        """Return a text in the language of the sheet."""
        return in_language(text, self.language)

    def name(self, panel: Panel) -> str:
        """Return a name such as ``head 2.5``."""
        return self.say(_("head {place}").format(place=panel.place))

    @property
    def legend(self) -> str:
        """The meaning of the colours, in words."""
        largest = max(panel.top for panel in self.panels)
        over = max(float(panel.matrix.max()) for panel in self.panels)
        blank = _("blank") if self.has_blanks else _("coloured as 0")
        least = str(BLANK)
        if self.scale == "panel" and len(self.panels) > 1:
            weight = _("weight, 0 to the largest of each panel (max)")
            below = _("{blank}: below {least} or a fiftieth of that")
        elif self.scale == "unit":
            weight, below = _("weight 0 to 1"), _("{blank}: below {least}")
        else:
            weight = _("weight 0 to {largest:.3g}").format(largest=largest)
            below, least = _("{blank}: below {least}"), f"{blank_below(largest):.2g}"
        parts = [weight]
        if over > largest and self.scale != "unit":
            parts.append(_(" (darkest above, up to {over:.3g})").format(over=over))
        if self.scale == "shared" and len(self.panels) > 1:
            parts.append(_(", same scale in all panels"))
        below = below.format(blank=blank, least=least)
        return self.say(join_phrases([join_phrases(parts, ""), below], "; "))

    @property
    def numbers(self) -> tuple[list[int], list[int]]:
        """The number of each row's token, and of each column's; of a group that of its first token."""
        rows, columns = len(self.query_labels), len(self.key_labels)
        (row, column), (tall, wide) = self.first, self.cell
        return [*range(row, row + rows * tall, tall)], [
            *range(column, column + columns * wide, wide)
        ]

    @property
    def distinct(self) -> Panel:
        """The head whose pattern differs most from the others' here.

        It has the largest mean Jensen-Shannon divergence, of rows with rows, from the other heads' patterns (Clark et
        al. 2019 compare heads so over a corpus); the patterns of a long sentence are pooled before.
        """
        panels = pool(self, MOST_COMPARED, MOST_COMPARED).panels
        patterns = np.stack([panel.matrix for panel in panels]).astype(np.float64)
        entropies = _entropies(patterns)  # (head, row)
        mean_divergences = []
        for pattern, entropy in zip(patterns, entropies, strict=True):
            mixed = _entropies((patterns + pattern) / 2)
            mean_divergences.append((mixed - (entropies + entropy) / 2).mean())
        return self.panels[int(np.argmax(mean_divergences))]

    @property
    def description(self) -> str:
        """The words that the file of a picture holds, for pictures without words of their own."""
        return f"{self.model}; {self.sentence}; {self.say(AXES)}; {self.legend}; {self.proof}"

    @property
    def size(self) -> str:
        """The number of layers and heads, as ``6 layers x 12 heads``, or ``layer 5, 12 heads``, or ``head 5.3``."""
        if len(self.panels) == 1:
            return self.name(self.panels[0])
        layers, heads = (
            self.say(one.format(n=numbers[0]) if len(numbers) == 1 else many.format(n=len(numbers)))
            for numbers, one, many in (
                (self.layers, _("layer {n}"), _("{n} layers")),
                (self.heads, _("head {n}"), _("{n} heads")),
            )
        )
        return f"{layers}{', ' if 1 in {len(self.layers), len(self.heads)} else ' x '}{heads}"


@dataclass(frozen=True, slots=True)
class HeadSign:
    """The role of a head in a few characters, a colour (``#rrggbb``) and words."""

    sign: str
    colour: str
    words: tuple[str, str]  # in English and in Korean


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSigns:
    """The signs of a model's heads, by layer and head; a head without one has no established role."""

    model: str
    kind: str  # which attention, such as ``encoder``
    n_layers: int
    n_heads: int
    of: Mapping[tuple[int, int], HeadSign]

    def among(
        self, model: str, kind: str, layers: Sequence[int], heads: Sequence[int]
    ) -> dict[tuple[int, int], HeadSign]:
        """Return the signs of some heads of a model.

        Raises SelectionError: it is another model, or another attention of it.
        """
        if (
            (model, kind) != (self.model, self.kind)
            or max(layers) >= self.n_layers
            or max(heads) >= self.n_heads
        ):
            raise SelectionError(
                f"the roles are those of {self.model} ({self.kind}, {self.n_layers} layers x {self.n_heads} heads), "
                f"and cannot be shown on {model} ({kind}, layers to {max(layers)}, heads to {max(heads)}): "
                "measure them by attnviz compare-heads on the same model"
            )
        return {
            place: sign
            for place, sign in self.of.items()
            if place[0] in layers and place[1] in heads
        }


def check_scale(scale: str) -> None:
    """Raise SelectionError for an unknown scale."""
    if scale not in get_args(Scale):
        raise SelectionError(
            f"the scale must be one of {', '.join(get_args(Scale))}, not {scale!r}"
        )


def resolve(record: Attention, scale: Scale = "shared", language: str = "en") -> Sheet:
    """Return what to draw of a record, all of its layers and heads.

    The scale is `shared`, one of colours up to the largest weight shown; `panel`, each head's up to its own; or
    `unit`, 0 to 1. Raises SelectionError: no such scale.
    """
    check_scale(scale)
    text = f"“{visible(record.text)}”" if record.text else ""
    if record.pair is not None:
        text += f" + “{visible(record.pair)}”"
    if record.target is not None:
        text += f" → “{visible(record.target)}”"
    n_tokens: dict[str, str | int] = {
        "n_queries": len(record.query_tokens),
        "n_keys": len(record.key_tokens),
    }
    n_tokens |= next((dict(note.fields) for note in record.notes if note.code == "pooled"), {})
    matrices = [*record.weights.reshape(-1, *record.weights.shape[2:])]
    return Sheet(
        record=record,
        layers=record.layers,
        heads=record.heads,
        first=record.first,
        cell=(record.cell, record.cell),
        panels=_panels(
            product(record.layers, record.heads), matrices, scale, pooled=record.cell > 1
        ),
        query_labels=tuple(token.text for token in record.query_tokens),
        key_labels=tuple(token.text for token in record.key_tokens),
        model=f"{visible(record.model)} · {in_language(KINDS[record.kind], language)}",
        sentence=text,
        scale=scale,
        notes=tuple(in_language(sentence(note), language) for note in record.notes),
        language=language,
        proof=in_language(proof(record.receipt), language),
        is_proved=record.receipt is not None,
        tokens=(int(n_tokens["n_queries"]), int(n_tokens["n_keys"])),
    )


def pool(sheet: Sheet, max_rows: int, max_columns: int) -> Sheet:
    """Return the same picture with at most so many rows and columns; one that fits is returned as is.

    Neighbouring tokens go together: to a group the sum over its keys, from it the mean over its queries (as for
    words), so that rows sum to the same as before. Groups are of one size, but for the last, so that even attention
    stays even, and where queries and keys are the same tokens so are their groups. The colour scale grows with the
    sums, and a note says all this.
    """
    n_rows, n_columns = len(sheet.query_labels), len(sheet.key_labels)
    if n_rows <= max_rows and n_columns <= max_columns:
        return sheet
    tall = math.ceil(n_rows / max(1, max_rows))
    wide = math.ceil(n_columns / max(1, max_columns))
    if sheet.query_labels == sheet.key_labels:
        tall = wide = max(tall, wide)
    rows, columns = list(range(0, n_rows, tall)), list(range(0, n_columns, wide))
    # A row that stands for several tokens counts as many times in the mean over queries.
    counts = np.diff([*range(0, sheet.tokens[0], sheet.cell[0]), sheet.tokens[0]])[:, None]
    matrices = []
    for panel in sheet.panels:
        sums = np.add.reduceat(panel.matrix * counts, rows, axis=0)
        sums = np.add.reduceat(sums, columns, axis=1)
        matrices.append(sums / np.add.reduceat(counts, rows))
    cell = tall * sheet.cell[0], wide * sheet.cell[1]
    before, now = (
        in_language(sentence(pooled_note(one)), sheet.language)
        for one in (sheet, replace(sheet, cell=cell))
    )
    places = [(panel.layer, panel.head) for panel in sheet.panels]
    return replace(
        sheet,
        panels=_panels(places, matrices, sheet.scale, pooled=True),
        cell=cell,
        query_labels=_group_labels(sheet.query_labels, rows, sheet.cell[0]),
        key_labels=_group_labels(sheet.key_labels, columns, sheet.cell[1]),
        notes=(*(note for note in sheet.notes if note != before), now),
    )


def pooled_note(sheet: Sheet) -> Note:
    """Return the note about how many tokens go together."""
    (tall, wide), (rows, columns) = sheet.cell, sheet.tokens
    return Note.of("pooled", cell=tall, wide=wide, n_queries=rows, n_keys=columns)


def blank_below(top: float) -> float:
    """Return the weight below which a cell stays blank: `BLANK`, or less where even `top` is small."""
    return min(BLANK, top / 50)


def _entropies(patterns: Float[np.ndarray, "head query key"]) -> Float[np.ndarray, "head query"]:
    """Return the entropy of each row, in nats."""
    logs = np.log(patterns, where=patterns > 0, out=np.zeros_like(patterns))
    return np.asarray(-(patterns * logs).sum(axis=-1))


def _panels(
    places: Iterable[tuple[int, int]], matrices: Sequence[np.ndarray], scale: Scale, *, pooled: bool
) -> tuple[Panel, ...]:
    """Return panels, each with the upper end of its colour scale.

    In a long text a few links are so much stronger than all others that nothing else would be seen: the scale then ends
    below the largest weight.
    """
    own = [float(matrix.max()) for matrix in matrices]
    if pooled and min(matrices[0].shape) >= MANY:
        own = [
            max(top / 20, float(np.quantile(one, 0.995)))
            for top, one in zip(own, matrices, strict=True)
        ]
    tops = {"shared": [max(own)] * len(own), "panel": own, "unit": [1.0] * len(own)}[scale]
    return tuple(
        Panel(layer=layer, head=head, matrix=matrix, top=top)
        for (layer, head), matrix, top in zip(places, matrices, tops, strict=True)
    )


def _group_labels(labels: Sequence[str], edges: Sequence[int], size: int) -> tuple[str, ...]:
    """Name groups by their first and last token; `size` is above 1 where labels are of groups already."""
    ends = [last - 1 for last in (*edges[1:], len(labels))]
    firsts, lasts = (
        [label.split("…")[end] if size > 1 else label for label in labels] for end in (0, -1)
    )
    return tuple(
        labels[first] if last == first else f"{clip(firsts[first], 8)}…{clip(lasts[last], 8)}"
        for first, last in zip(edges, ends, strict=True)
    )
