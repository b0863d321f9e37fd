"""The content of a heatmap, prepared before it is drawn: labels, matrices, colour limits, signs, notes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from attnviz.attention import Attention, Kind, MeanAxis, Note, names_of, spans
from attnviz.errors import SelectionError
from attnviz.look import Scale
from attnviz.render.palette import BLANK, LOG_LEAST, blank_below, levels, signed_levels
from attnviz.text.display import clip, percent, visible
from attnviz.text.messages import N_, Message, _
from attnviz.text.notes import proof, sentence

if TYPE_CHECKING:
    from attnviz.heatmaps.finding import Change

TickLabels: TypeAlias = bool | Literal["auto"] | Sequence[Any]

# A pooled pattern with at least this many rows and columns has a colour scale that ends below its largest weight.
MANY = 64

# Explains the axes of every picture.
AXES = N_("Rows are queries, columns are keys; layers and heads count from 0")

KINDS: dict[Kind, Message] = {
    "encoder": N_("bidirectional self-attention"),
    "decoder": N_("causal self-attention"),
    "cross": N_("cross-attention"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One head's matrix, with the ends of its colour scale."""

    layer: int
    head: int
    matrix: Float[np.ndarray, "query key"]
    top: float
    bottom: float = 0.0  # ``-top`` if the numbers are `signed`
    log: bool = False  # whether the scale is logarithmic, from `LOG_LEAST` to `top`
    signed: bool = False  # whether the numbers are differences

    @property
    def place(self) -> str:
        """The layer and head, such as ``2.5``."""
        return f"{self.layer}.{self.head}"

    @property
    def levels(self) -> UInt8[np.ndarray, "query key"]:
        """The level of each cell in the palette."""
        if self.signed:
            return signed_levels(self.matrix, self.top)
        return levels(self.matrix - self.bottom, self.top - self.bottom, log=self.log)

    @property
    def blanks(self) -> Bool[np.ndarray, "query key"]:
        """Which cells stay blank, because their weight is near 0."""
        if self.signed:
            return np.zeros(self.matrix.shape, dtype=bool)
        return self.matrix - self.bottom < blank_below(self.top - self.bottom, log=self.log)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Everything that a picture of a record, or of a difference, shows."""

    record: Attention  # the record shown
    panels: tuple[Panel, ...]  # one per head, layer by layer
    query_labels: tuple[str, ...]  # one per row
    key_labels: tuple[str, ...]  # one per column
    model: str  # the model's name and kind of attention
    sentence: str  # the input, in quotation marks
    scale: Scale
    notes: tuple[str, ...]  # the record's notes, as sentences
    proof: str  # the receipt, in words
    # The number of tokens per row and per column; the last row and column may stand for fewer.
    cell: tuple[int, int] = (1, 1)
    # The ends of the colour scale that the user chose; None for one that follows from the weights.
    limits: tuple[float | None, float | None] = (None, None)
    # Whether cells of weight near 0 stay blank; otherwise they have the colour of 0.
    has_blanks: bool = True
    signed: bool = False  # whether the panels hold differences, on a scale around 0
    changes: tuple[Change, ...] = ()  # the largest ones of a difference, the largest first

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers shown."""
        return tuple(dict.fromkeys(panel.layer for panel in self.panels))

    @property
    def heads(self) -> tuple[int, ...]:
        """The heads shown."""
        return tuple(dict.fromkeys(panel.head for panel in self.panels))

    @property
    def tokens(self) -> tuple[int, int]:
        """The numbers of query and key tokens; if tokens are pooled, there are fewer rows and columns."""
        record = self.record
        return record.pooled_from or (len(record.query_tokens), len(record.key_tokens))

    def panel(self, layer: int, head: int) -> Panel:
        """Return the panel of a head."""
        return next(panel for panel in self.panels if (panel.layer, panel.head) == (layer, head))

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
        if self.signed:
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
        top = percent(panel.top)
        template = _("Difference {least} to {top}: + (red) is more attention, − (blue) less")
        words = template.format(least=f"−{top}", top=f"+{top}")
        if len(self.panels) == 1:
            return words
        if self.scale == "panel":
            return _("each panel has its own scale; the largest: {scale}").format(scale=words)
        return words + _(", same scale in all panels")

    @property
    def numbers(self) -> tuple[list[int], list[int]]:
        """The number of each row's token and of each column's token; for a group, the number of its first token."""
        (row, column), (row_size, column_size) = self.record.first, self.cell
        query_numbers = [row + row_size * index for index in range(len(self.query_labels))]
        if self.record.cell == 1:
            return query_numbers, self.record.key_numbers[::column_size]
        return query_numbers, [column + column_size * i for i in range(len(self.key_labels))]

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
    def description(self) -> str:
        """The description stored in the metadata of a picture's file, for pictures that show no caption."""
        return f"{self.model}; {self.sentence}; {_(AXES)}; {self.legend}; {self.proof}"

    @property
    def size(self) -> str:
        """The layers and heads: ``6 layers x 12 heads``, ``layer 5, 12 heads``, ``head 5.3`` or ``heads 0.1, 1.2``."""
        averaged = self.record.averaged
        if self.record.chosen:
            names_of_all = _("heads {numbers}").format(numbers=names_of(self.record.chosen))
            return _("mean of {many}").format(many=names_of_all) if averaged else names_of_all
        if len(self.panels) == 1 and not averaged:
            return self.name(self.panels[0])
        axes: tuple[tuple[MeanAxis, tuple[int, ...], str, str, str], ...] = (
            ("layers", self.layers, _("layer {n}"), _("{n} layers"), _("layers {numbers}")),
            ("heads", self.heads, _("head {n}"), _("{n} heads"), _("heads {numbers}")),
        )
        names = []
        for axis, numbers, singular, plural, which in axes:
            name = plural.format(n=len(numbers))
            if axis in averaged:
                name = which.format(numbers=spans(averaged[axis]))
            elif len(numbers) == 1:
                name = singular.format(n=numbers[0])
            # The mean of both is named once, for both.
            if axis in averaged and len(averaged) == 1:
                name = _("mean of {many}").format(many=name)
            names.append(name)
        is_list = 1 in {len(self.layers), len(self.heads)} and len(averaged) < 2
        size = (", " if is_list else " x ").join(names)
        return _("mean of {many}").format(many=size) if len(averaged) == 2 else size


def resolve(record: Attention, scale: Scale = "shared") -> Sheet:
    """Return the content of a picture of all layers and heads of a record."""
    text = f"“{visible(record.text)}”" if record.text else ""
    if record.pair is not None:
        text += f" + “{visible(record.pair)}”"
    if record.target is not None:
        text += f" → “{visible(record.target)}”"
    matrices = [*record.weights.reshape(-1, *record.weights.shape[2:])]
    return Sheet(
        record=record,
        cell=(record.cell, record.cell),
        panels=_panels(record.places, matrices, scale, pooled=record.cell > 1),
        query_labels=tuple(token.text for token in record.query_tokens),
        key_labels=tuple(token.text for token in record.key_tokens),
        model=f"{visible(record.model)} · {_(KINDS[record.kind])}",
        sentence=text,
        scale=scale,
        notes=tuple(sentence(note) for note in record.notes),
        proof=proof(record.receipt),
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
    places = [(panel.layer, panel.head) for panel in sheet.panels]
    pooled = replace(
        sheet,
        panels=_panels(
            places, matrices, sheet.scale, pooled=True, signed=sheet.signed, limits=sheet.limits
        ),
        cell=(row_size * sheet.cell[0], column_size * sheet.cell[1]),
        query_labels=_group_labels(sheet.query_labels, rows, sheet.cell[0]),
        key_labels=_group_labels(sheet.key_labels, columns, sheet.cell[1]),
    )
    notes = [note for note in sheet.notes if note != _pooled_note(sheet)]
    return replace(pooled, notes=(*notes, _pooled_note(pooled)))


def with_differences(sheet: Sheet, matrices: Sequence[Float[np.ndarray, "query key"]]) -> Sheet:
    """Return the sheet with differences in its panels, on a diverging scale around 0.

    Raises SelectionError: the scale is logarithmic.
    """
    if sheet.scale == "log":
        raise SelectionError("a difference has a sign, and no logarithm: choose another scale")
    places = [(panel.layer, panel.head) for panel in sheet.panels]
    panels = _panels(places, matrices, sheet.scale, pooled=False, signed=True)
    return replace(sheet, panels=panels, signed=True)


def with_limits(sheet: Sheet, vmin: Any, vmax: Any) -> Sheet:
    """Return the sheet with other ends of its colour scale; None keeps an end.

    The scale of differences reaches equally far to both sides, to the end that is further from 0. Raises
    SelectionError: an end is not a number, the scale is not the shared one, or does not rise, or a scale of weights
    begins below 0.
    """
    if vmin is None and vmax is None:
        return sheet
    bottom, top = (
        default if value is None else _as_number(value, name)
        for name, value, default in (
            ("vmin", vmin, sheet.panels[0].bottom),
            ("vmax", vmax, sheet.panels[0].top),
        )
    )
    if sheet.scale != "shared":
        raise SelectionError(
            f"vmin and vmax are the ends of the shared scale, not of {sheet.scale}"
        )
    if sheet.signed:
        top = max(abs(end) for end, given in ((bottom, vmin), (top, vmax)) if given is not None)
        bottom = -top
    if not (sheet.signed or bottom >= 0) or not bottom < top < math.inf:
        raise SelectionError(
            f"the colour scale must rise from 0 or more: not from {bottom:g} to {top:g}"
        )
    panels = tuple(replace(panel, bottom=bottom, top=top) for panel in sheet.panels)
    return replace(sheet, panels=panels, limits=(bottom, top))


def _as_number(value: Any, name: str) -> float:
    """Return the value of the argument `name` as a number. Raises SelectionError: it is not a number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise SelectionError(f"{name} is a number, not {value!r}") from None


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


def _pooled_note(sheet: Sheet) -> str:
    """Return the note that states how many tokens are pooled."""
    (row_size, column_size), (rows, columns) = sheet.cell, sheet.tokens
    return sentence(
        Note.of("pooled", cell=row_size, wide=column_size, n_queries=rows, n_keys=columns)
    )


def _panels(
    places: Sequence[tuple[int, int]],
    matrices: Sequence[np.ndarray],
    scale: Scale,
    *,
    pooled: bool,
    signed: bool = False,
    limits: tuple[float | None, float | None] = (None, None),
) -> tuple[Panel, ...]:
    """Return panels, each with the ends of its colour scale: the `limits`, or those that follow from the numbers.

    In a long text a few links are so much stronger than all others that the others would be invisible. The scale of a
    large pooled pattern therefore ends at the 99.5th percentile, or at a twentieth of the largest weight if that is
    more. A shared scale ends at no less than twice an even share, so that a head without preference looks flat.
    """
    tops = [float(np.abs(matrix).max()) for matrix in matrices]
    if signed:  # if all numbers are 0, the scale still needs a length
        tops = [top or 1.0 for top in tops]
    elif pooled and min(matrices[0].shape) >= MANY and scale != "log":
        tops = [
            max(top / 20, float(np.quantile(weights, 0.995)))
            for top, weights in zip(tops, matrices, strict=True)
        ]
    if scale == "shared" and not signed:
        least_top = min(1.0, 2 / matrices[0].shape[1])
        tops = [max(top, least_top) for top in tops]
    if scale != "panel":
        tops = [max(tops)] * len(tops)
    bottom, top = limits
    return tuple(
        Panel(
            layer=layer,
            head=head,
            matrix=matrix,
            top=own_top if top is None else top,
            bottom=(-own_top if signed else 0.0) if bottom is None else bottom,
            log=scale == "log",
            signed=signed,
        )
        for (layer, head), matrix, own_top in zip(places, matrices, tops, strict=True)
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
