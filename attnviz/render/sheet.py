"""The content of a heatmap, prepared before it is drawn: labels, matrices, colour limits, signs, notes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from attnviz.attention import Attention, Kind, MeanAxis, Note
from attnviz.errors import SelectionError
from attnviz.render.palette import LOG_LEAST, levels, signed_levels
from attnviz.text.display import clip, percent, visible
from attnviz.text.messages import N_, Message, _
from attnviz.text.notes import proof, sentence

Scale = Literal["shared", "panel", "log"]
# What the numbers of a sheet are: attention, or the difference of two records' attention.
Quantity = Literal["weight", "difference"]
TickLabels: TypeAlias = bool | Literal["auto"] | Sequence[Any]

BLANK = 0.005  # cells with a weight below this stay blank, because it would be printed as 0.00

# A pooled pattern with at least this many rows and columns has a colour scale that ends below its largest weight.
MANY = 64

# Patterns are pooled to at most this many rows and columns before they are compared.
MOST_COMPARED = 32

# Explains the axes of every picture.
AXES = N_("Rows are queries, columns are keys; layers and heads count from 0")

KINDS: dict[Kind, Message] = {
    "encoder": N_("bidirectional self-attention"),
    "decoder": N_("causal self-attention"),
    "cross": N_("cross-attention"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One head's matrix, with the upper end of its colour scale."""

    layer: int
    head: int
    matrix: Float[np.ndarray, "query key"]
    top: float
    log: bool = False  # whether the scale is logarithmic, from `LOG_LEAST` to `top`
    bottom: float = 0.0  # the lower end of a linear scale
    # The middle of a diverging scale, whose ends are equally far from it; None for a scale of one hue.
    center: float | None = None

    @property
    def place(self) -> str:
        """The layer and head, such as ``2.5``."""
        return f"{self.layer}.{self.head}"

    @property
    def levels(self) -> UInt8[np.ndarray, "query key"]:
        """The level of each cell in the palette."""
        if self.center is not None:
            return signed_levels(self.matrix - self.center, self.top - self.center)
        return levels(self.matrix - self.bottom, self.top - self.bottom, log=self.log)

    @property
    def blanks(self) -> Bool[np.ndarray, "query key"]:
        """Which cells stay blank, because their weight is near 0."""
        if self.center is not None:
            return np.zeros(self.matrix.shape, dtype=bool)
        return self.matrix - self.bottom < blank_below(self.top - self.bottom, log=self.log)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Everything that a picture of a record shows."""

    record: Attention  # the record shown
    panels: tuple[Panel, ...]  # one per head, layer by layer
    layers: tuple[int, ...]  # the layers shown
    heads: tuple[int, ...]  # the heads shown
    query_labels: tuple[str, ...]  # one per row
    key_labels: tuple[str, ...]  # one per column
    model: str  # the model's name and kind of attention
    sentence: str  # the input, in quotation marks
    scale: Scale  # `shared`, `panel` or `log`
    notes: tuple[str, ...]  # the record's notes, as sentences
    proof: str  # the receipt, in words
    # The numbers of query and key tokens; if tokens are pooled, there are fewer rows and columns.
    tokens: tuple[int, int]
    first: tuple[int, int] = (0, 0)  # the numbers of the first query token and the first key token
    # The number of tokens per row and per column; the last row and column may stand for fewer.
    cell: tuple[int, int] = (1, 1)
    # The ends of the colour scale that the user chose; None for one that follows from the weights.
    limits: tuple[float | None, float | None] = (None, None)
    # Whether cells of weight near 0 stay blank; otherwise they have the colour of 0.
    has_blanks: bool = True
    quantity: Quantity = "weight"  # what the numbers of the panels are

    @property
    def is_proved(self) -> bool:
        """Whether there is a receipt; a difference has none of its own."""
        return self.record.receipt is not None and self.quantity == "weight"

    @property
    def center(self) -> float | None:
        """The middle of the diverging scale of all panels; None for a scale of one hue."""
        return self.panels[0].center

    def name(self, panel: Panel) -> str:
        """Return a name such as ``head 2.5``, ``layer 2, mean`` or ``head 5, mean``."""
        averaged = self.record.averaged
        if len(averaged) == 2:
            return _("mean")
        if "heads" in averaged:
            return _("layer {n}, mean").format(n=panel.layer)
        if "layers" in averaged:
            return _("head {n}, mean").format(n=panel.head)
        return _("head {place}").format(place=panel.place)

    @property
    def legend(self) -> str:
        """The meaning of the colours, in words."""
        mask = [_("hatched: masked")] if self.has_mask else []
        if self.quantity == "difference":
            return "; ".join([self._difference_words, *mask])
        blank_look = _("blank") if self.has_blanks else _("coloured as 0")
        blank_note = _("{blank}: below {least}")
        if self.scale == "panel" and len(self.panels) > 1:
            # whichever is less: see `blank_below`
            blank_note = _("{blank}: below {least} or a fiftieth of that")
            threshold = BLANK
        elif self.scale == "log":
            threshold = LOG_LEAST
        else:
            panel = self.panels[0]
            threshold = panel.bottom + blank_below(panel.top - panel.bottom)
        weights = _("Weights: {scale}").format(scale=self.scale_words)
        blanks = blank_note.format(blank=blank_look, least=percent(threshold))
        return "; ".join([weights, blanks, *mask])

    @property
    def scale_words(self) -> str:
        """The ends of the scale of weights, and the weight that each key would have if all had the same."""
        top = max(panel.top for panel in self.panels)
        least = self.panels[0].bottom
        if self.scale == "panel" and len(self.panels) > 1:
            scale = _("0 to the largest of each panel (max)")
        elif self.scale == "log":
            scale = _("{least} to {largest}, logarithmic").format(
                least=percent(LOG_LEAST), largest=percent(top)
            )
        else:
            # "0 to 85%", since "0% to 85%" says the unit twice
            least_text = percent(least) if least else "0"
            scale = _("{least} to {largest}").format(least=least_text, largest=percent(top))
        # The scale of a large pooled pattern ends below its largest weight: see `_panels`.
        overall_max = max(float(panel.matrix.max()) for panel in self.panels)
        if overall_max > top:
            scale += _(" (strongest colour above, up to {over})").format(over=percent(overall_max))
        if self.scale in {"shared", "log"} and len(self.panels) > 1:
            scale = _("{scale} in all panels").format(scale=scale)
        even = _("even share: {share}")
        if self.record.kind == "decoder":
            even = _("even share in the last row: {share}")
        return "; ".join([scale, even.format(share=percent(1 / len(self.key_labels)))])

    @property
    def has_mask(self) -> bool:
        """Whether a causal mask hides any cell."""
        return bool((self.masked_from < len(self.key_labels)).any())

    @property
    def _difference_words(self) -> str:
        """The ends of the scale of differences, and the meaning of its colours."""
        panel = max(self.panels, key=lambda panel: panel.top)
        least, top = f"−{percent(-panel.bottom)}", f"+{percent(panel.top)}"
        template = _("Difference {least} to {top}: + (red) is more attention, − (blue) less")
        words = template.format(least=least, top=top)
        if len(self.panels) == 1:
            return words
        if self.scale == "panel":
            return _("each panel has its own scale; the largest: {scale}").format(scale=words)
        return words + _(", same scale in all panels")

    @property
    def numbers(self) -> tuple[list[int], list[int]]:
        """The number of each row's token and of each column's token; for a group, the number of its first token."""
        rows, columns = len(self.query_labels), len(self.key_labels)
        (row, column), (row_size, column_size) = self.first, self.cell
        query_numbers = [*range(row, row + rows * row_size, row_size)]
        if self.record.cell == 1:
            return query_numbers, self.record.key_numbers[::column_size]
        return query_numbers, [*range(column, column + columns * column_size, column_size)]

    @property
    def masked_from(self) -> Int[np.ndarray, " row"]:
        """The first column of each row that the causal mask hides, with all columns after it.

        A row that sees all keys has the number of columns. Masked cells come after the query, and no head attends to
        them.
        """
        n_rows, n_columns = len(self.query_labels), len(self.key_labels)
        if self.record.kind != "decoder":
            return np.full(n_rows, n_columns)
        first_queries, first_keys = map(np.array, self.numbers)
        is_later = first_keys[None] > first_queries[:, None] + self.cell[0] - 1
        is_seen = ~is_later
        for panel in self.panels:
            is_seen |= panel.matrix != 0
        # The place of the last key that a row sees, counted from the end.
        n_masked = np.where(is_seen.any(axis=1), is_seen[:, ::-1].argmax(axis=1), n_columns)
        return n_columns - n_masked

    @property
    def distinct(self) -> Panel:
        """The head whose pattern differs most from those of the other heads shown.

        This head has the largest Jensen-Shannon divergence from the other heads, averaged over rows and heads. Clark et
        al. 2019 compare heads in this way over a corpus. The patterns of a long sentence are pooled first.
        """
        panels = pool(self, MOST_COMPARED, MOST_COMPARED).panels
        patterns = np.stack([panel.matrix for panel in panels]).astype(np.float64)
        entropies = _entropies(patterns)  # (head, row)
        mean_divergences = []
        for pattern, entropy in zip(patterns, entropies, strict=True):
            mixture_entropies = _entropies((patterns + pattern) / 2)
            mean_divergences.append((mixture_entropies - (entropies + entropy) / 2).mean())
        return self.panels[int(np.argmax(mean_divergences))]

    @property
    def description(self) -> str:
        """The description stored in the metadata of a picture's file, for pictures that show no caption."""
        return f"{self.model}; {self.sentence}; {_(AXES)}; {self.legend}; {self.proof}"

    @property
    def size(self) -> str:
        """The numbers of layers and heads, such as ``6 layers x 12 heads``, ``layer 5, 12 heads`` or ``head 5.3``."""
        averaged = self.record.averaged
        if len(self.panels) == 1 and not averaged:
            return self.name(self.panels[0])
        axes: tuple[tuple[MeanAxis, tuple[int, ...], str, str], ...] = (
            ("layers", self.layers, _("layer {n}"), _("{n} layers")),
            ("heads", self.heads, _("head {n}"), _("{n} heads")),
        )
        names = []
        for axis, numbers, singular, plural in axes:
            n = averaged.get(axis, len(numbers))
            name = singular.format(n=numbers[0]) if n == 1 else plural.format(n=n)
            # The mean of both is named once, for both.
            if axis in averaged and len(averaged) == 1:
                name = _("mean of {many}").format(many=name)
            names.append(name)
        is_list = 1 in {len(self.layers), len(self.heads)} and len(averaged) < 2
        size = (", " if is_list else " x ").join(names)
        return _("mean of {many}").format(many=size) if len(averaged) == 2 else size


def check_scale(scale: str) -> None:
    """Raise SelectionError for an unknown scale."""
    if scale not in get_args(Scale):
        raise SelectionError(
            f"the scale must be one of {', '.join(get_args(Scale))}, not {scale!r}"
        )


def resolve(record: Attention, scale: Scale = "shared") -> Sheet:
    """Return the content of a picture of all layers and heads of a record.

    The colour scale is `shared` (0 to the largest weight of all heads), `panel` (0 to the largest weight of each head)
    or `log` (the logarithm, from `LOG_LEAST` to the largest weight of all heads).

    Raises SelectionError: there is no such scale.
    """
    check_scale(scale)
    text = f"“{visible(record.text)}”" if record.text else ""
    if record.pair is not None:
        text += f" + “{visible(record.pair)}”"
    if record.target is not None:
        text += f" → “{visible(record.target)}”"
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
        model=f"{visible(record.model)} · {_(KINDS[record.kind])}",
        sentence=text,
        scale=scale,
        notes=tuple(sentence(note) for note in record.notes),
        proof=proof(record.receipt),
        tokens=record.pooled_from or (len(record.query_tokens), len(record.key_tokens)),
    )


def pool(sheet: Sheet, max_rows: int, max_columns: int) -> Sheet:
    """Return the sheet with at most `max_rows` rows and `max_columns` columns; a sheet that fits is returned unchanged.

    Neighbouring tokens are pooled. A pooled weight is the sum over a group's keys and the mean over its queries, as for
    words, so the row sums do not change. All groups but the last have the same size, so uniform attention stays
    uniform. If queries and keys are the same tokens, they are grouped in the same way. The colour scale grows with the
    sums, and a note states the pooling.
    """
    n_rows, n_columns = len(sheet.query_labels), len(sheet.key_labels)
    if n_rows <= max_rows and n_columns <= max_columns:
        return sheet
    row_size = math.ceil(n_rows / max(1, max_rows))
    column_size = math.ceil(n_columns / max(1, max_columns))
    if sheet.query_labels == sheet.key_labels:
        row_size = column_size = max(row_size, column_size)
    rows, columns = list(range(0, n_rows, row_size)), list(range(0, n_columns, column_size))
    # In the mean over queries, a row that stands for n tokens already counts n times.
    counts = np.diff([*range(0, sheet.tokens[0], sheet.cell[0]), sheet.tokens[0]])[:, None]
    matrices = []
    for panel in sheet.panels:
        sums = np.add.reduceat(panel.matrix * counts, rows, axis=0)
        sums = np.add.reduceat(sums, columns, axis=1)
        matrices.append(sums / np.add.reduceat(counts, rows))
    cell = row_size * sheet.cell[0], column_size * sheet.cell[1]
    old_note, new_note = (
        sentence(pooled_note(pooled_sheet)) for pooled_sheet in (sheet, replace(sheet, cell=cell))
    )
    places = [(panel.layer, panel.head) for panel in sheet.panels]
    pooled_panels = _panels(places, matrices, sheet.scale, pooled=True, center=sheet.center)
    return replace(
        sheet,
        panels=_within(pooled_panels, *sheet.limits),
        cell=cell,
        query_labels=_group_labels(sheet.query_labels, rows, sheet.cell[0]),
        key_labels=_group_labels(sheet.key_labels, columns, sheet.cell[1]),
        notes=(*(note for note in sheet.notes if note != old_note), new_note),
    )


def with_differences(sheet: Sheet, matrices: Sequence[Float[np.ndarray, "query key"]]) -> Sheet:
    """Return the sheet with differences in its panels, on a diverging scale around 0.

    Raises SelectionError: the scale is logarithmic.
    """
    if sheet.scale == "log":
        raise SelectionError("a difference has a sign, and no logarithm: choose another scale")
    places = [(panel.layer, panel.head) for panel in sheet.panels]
    panels = _panels(places, matrices, sheet.scale, pooled=False, center=0.0)
    return replace(sheet, panels=panels, quantity="difference")


def as_number(value: Any, name: str) -> float:
    """Return the value of the argument `name` as a number. Raises SelectionError: it is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise SelectionError(f"{name} is a number, not {value!r}") from None


def with_limits(sheet: Sheet, vmin: float | None, vmax: float | None) -> Sheet:
    """Return the sheet with other ends of its colour scale; None keeps an end.

    A diverging scale reaches equally far to both sides, to the end that is further from its center. Raises
    SelectionError: an end is not a number, the scale is not the shared one, or does not rise, or a scale of weights
    begins below 0.
    """
    if vmin is None and vmax is None:
        return sheet
    vmin = None if vmin is None else as_number(vmin, "vmin")
    vmax = None if vmax is None else as_number(vmax, "vmax")
    if sheet.scale != "shared":
        raise SelectionError(
            f"vmin and vmax are the ends of the shared scale, not of {sheet.scale}"
        )
    if sheet.center is not None:
        reach = max(abs(end - sheet.center) for end in (vmin, vmax) if end is not None)
        vmin, vmax = sheet.center - reach, sheet.center + reach
    panels = _within(sheet.panels, vmin, vmax)
    least = 0.0 if sheet.center is None else -math.inf
    if not least <= panels[0].bottom < panels[0].top < math.inf:
        raise SelectionError(
            f"the colour scale must rise from 0 or more: not from {panels[0].bottom:g} to {panels[0].top:g}"
        )
    return replace(sheet, panels=panels, limits=(vmin, vmax))


def _within(panels: tuple[Panel, ...], vmin: float | None, vmax: float | None) -> tuple[Panel, ...]:
    """Return the panels with these ends of their colour scale; None keeps an end."""
    return tuple(
        replace(
            panel,
            bottom=panel.bottom if vmin is None else vmin,
            top=panel.top if vmax is None else vmax,
        )
        for panel in panels
    )


def with_labels(sheet: Sheet, queries: TickLabels, keys: TickLabels) -> Sheet:
    """Return the sheet with other labels of its queries and keys; see `attnviz.heatmap`.

    Raises SelectionError: there are more or fewer labels than rows or columns.
    """
    return replace(
        sheet,
        query_labels=_ticks(queries, sheet.query_labels, "yticklabels"),
        key_labels=_ticks(keys, sheet.key_labels, "xticklabels"),
    )


def _ticks(chosen: TickLabels, labels: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Return the chosen labels of an axis; `name` is the argument, for the message."""
    if chosen is False:
        return ("",) * len(labels)
    if chosen is True or (isinstance(chosen, str) and chosen == "auto"):
        return labels
    if isinstance(chosen, (str, int)) or len(chosen) != len(labels):
        raise SelectionError(
            f"{name} must be True, False or a list of {len(labels)} labels, one for each token"
        )
    return tuple(visible(str(label)) for label in chosen)


def pooled_note(sheet: Sheet) -> Note:
    """Return the note that states how many tokens are pooled."""
    (row_size, column_size), (rows, columns) = sheet.cell, sheet.tokens
    return Note.of("pooled", cell=row_size, wide=column_size, n_queries=rows, n_keys=columns)


def blank_below(top: float, *, log: bool = False) -> float:
    """Return the weight below which a cell stays blank: `BLANK`, or `top` / 50 if that is less; or `LOG_LEAST`."""
    return LOG_LEAST if log else min(BLANK, top / 50)


def _entropies(patterns: Float[np.ndarray, "head query key"]) -> Float[np.ndarray, "head query"]:
    """Return the entropy of each row, in nats."""
    logs = np.log(patterns, where=patterns > 0, out=np.zeros_like(patterns))
    return np.asarray(-(patterns * logs).sum(axis=-1))


def _panels(
    places: Iterable[tuple[int, int]],
    matrices: Sequence[np.ndarray],
    scale: Scale,
    *,
    pooled: bool,
    center: float | None = None,
) -> tuple[Panel, ...]:
    """Return panels, each with the ends of its colour scale; with a `center`, both are equally far from it.

    In a long text a few links are so much stronger than all others that the others would be invisible. The scale of a
    large pooled pattern therefore ends at the 99.5th percentile, or at a twentieth of the largest weight if that is
    more. A shared scale ends at no less than twice an even share, so that a head without preference looks flat.
    """
    panel_tops = [float(matrix.max()) for matrix in matrices]
    if center is not None:
        # If all numbers are the center, the scale still needs a length.
        panel_tops = [center + (float(np.abs(matrix - center).max()) or 1.0) for matrix in matrices]
    elif pooled and min(matrices[0].shape) >= MANY and scale != "log":
        panel_tops = [
            max(top / 20, float(np.quantile(weights, 0.995)))
            for top, weights in zip(panel_tops, matrices, strict=True)
        ]
    if center is None and scale == "shared":
        least_top = min(1.0, 2 / matrices[0].shape[1])
        panel_tops = [max(top, least_top) for top in panel_tops]
    tops = panel_tops if scale == "panel" else [max(panel_tops)] * len(panel_tops)
    return tuple(
        Panel(
            layer=layer,
            head=head,
            matrix=matrix,
            top=top,
            log=scale == "log",
            bottom=0.0 if center is None else 2 * center - top,
            center=center,
        )
        for (layer, head), matrix, top in zip(places, matrices, tops, strict=True)
    )


def _group_labels(labels: Sequence[str], edges: Sequence[int], size: int) -> tuple[str, ...]:
    """Return a label for each group, made of the labels of its first and last token.

    `edges` holds the index of each group's first label; `size` is above 1 if the labels already stand for groups.
    """
    ends = [last - 1 for last in (*edges[1:], len(labels))]
    firsts, lasts = (
        [label.split("…")[end] if size > 1 else label for label in labels] for end in (0, -1)
    )
    return tuple(
        labels[first] if last == first else f"{clip(firsts[first], 8)}…{clip(lasts[last], 8)}"
        for first, last in zip(edges, ends, strict=True)
    )
