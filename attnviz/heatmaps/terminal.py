"""Heatmaps in a terminal: coloured cells, or shades and numbers without colour.

Every function returns lines no wider than the screen. Labels are measured in cells, so that Korean, Chinese and emoji
keep their columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from attnviz.heatmaps.finding import (
    NO_CHANGE,
    NO_LINK,
    Finding,
    find,
    head_sentence,
    other_heads,
)
from attnviz.heatmaps.words import token_level_summary
from attnviz.render.palette import BLANK, MIDDLE, levels
from attnviz.render.sheet import Panel, Sheet, pool
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.text import centre, fit, fold, legend, shortened, spell, wrap
from attnviz.text.display import number_text, percent
from attnviz.text.messages import N_, _
from attnviz.text.notes import CUT, question, sentence

LABEL_WIDTH = 14  # the largest width of a token's label beside a matrix, in character cells
MOST_LINES = 64  # of all panels in full size; if they take more, their cells are smaller
OVERVIEW_LINES = 40  # of one head and thumbnails of all heads, which are left out if they take more
NOTHING = -1  # the level of a weight whose cell stays blank
MASKED = -2  # the level of a cell that the mask hides
# Rows and columns of a thumbnail: groups of tokens in place of tokens would show little.
MOST_THUMBNAIL = 16
MOST_STAIRS = 3  # lines over which the keys' names may be spread if one line has no room for them
FEW = 32  # up to this many tokens are shown one by one if the screen is wide enough, however many lines that takes
MOST_NAMED = 6  # heads whose largest change is named
SAME_PATTERN = N_("All heads have the same pattern here")
GAP = 2  # character cells between panels side by side


@dataclass(frozen=True, slots=True)
class CellFormat:
    """How one weight is shown."""

    width: int  # in character cells
    digits: bool = False  # whether the weight is written in percent, beside its colour or shade
    # whether one line shows two rows of a matrix, in the upper and lower halves of its characters
    halves: bool = False


def draw(sheet: Sheet, screen: Screen, *, full: bool = False, asks: bool = False) -> list[Text]:
    """Return the lines of a sheet: the clearest link, its head, then an overview of all heads.

    With `full`, and of chosen heads or a mean, every pattern in full size instead. A difference begins with its largest
    change. If it `asks` whether that link matters, the last line names the command that tells.
    """
    cut_notes = [sentence(note) for note in sheet.record.notes if note.code in CUT]
    sheet = replace(
        sheet,
        notes=tuple(note for note in sheet.notes if note not in cut_notes),
        query_labels=tuple(spell(label, screen) for label in sheet.query_labels),
        key_labels=tuple(spell(label, screen) for label in sheet.key_labels),
        # A blank cell would have the colour of the terminal, which may be unknown, and look like any weight.
        has_blanks=not screen.colour,
    )
    finding = None if sheet.signed else find(sheet.record)
    is_grid = not (sheet.record.averaged or sheet.record.chosen)
    is_overview = not full and is_grid and len(sheet.panels) > 1
    panel, about = _clearest_head(sheet, finding)
    shown = replace(sheet, panels=(panel,)) if is_overview else sheet
    scaled, cell = _fit(shown, screen)
    above = [
        *(line for note in cut_notes for line in _wrap(note, screen)),
        *_wrap(_answer(sheet, finding), screen, "bold"),
        *_shaded_sentence(sheet, finding, screen),
        *_wrap(about if is_overview else "", screen),
        *_bands(scaled, screen, cell),
        *_token_level(scaled, screen),
        Text(),
    ]
    foot = _foot(sheet, scaled, cell, screen, size="" if is_overview else sheet.size)
    if asks and finding is not None:
        foot += _wrap(question(finding.words[0]), screen, "dim")
    if not is_overview:
        return [*above, *foot]
    thumbnails = _thumbnails(sheet, screen, OVERVIEW_LINES - len(above) - len(foot))
    if not thumbnails:
        more = _("More: --head {place} (one head), --layer {layer} (one layer), -o FILE.html (all)")
        thumbnails = _wrap(more.format(place=panel.place, layer=panel.layer), screen, "dim")
    return [*above, *thumbnails, *foot]


def _answer(sheet: Sheet, finding: Finding | None) -> str:
    """Return the first line: the clearest link, the largest change, or what is to be said in their place."""
    record = sheet.record
    if sheet.signed:
        return sheet.changes[0].sentence if sheet.changes else _(NO_CHANGE)
    if finding is not None:
        return finding.sentence
    if record.averaged:
        return ""
    if len(sheet.panels) == 1:
        return head_sentence(record) if record.cell == 1 else ""
    if _has_one_pattern(sheet):
        return _(SAME_PATTERN)
    return _(NO_LINK) if record.cell == 1 else ""


def _has_one_pattern(sheet: Sheet) -> bool:
    """Return whether all heads have the same pattern, as for a single token."""
    return all(np.allclose(panel.matrix, sheet.panels[0].matrix) for panel in sheet.panels)


def _shaded_sentence(sheet: Sheet, finding: Finding | None, screen: Screen) -> list[Text]:
    """Return the sentence, in which each word has the colour of its weight for the query of the finding."""
    if finding is None:
        return shortened(_wrap(sheet.sentence, screen), screen)
    panel = sheet.panel(finding.layer, finding.head)
    weights = panel.matrix[finding.query]
    row_levels = levels(weights, panel.top, log=panel.log).astype(int).tolist()
    is_own = sheet.record.kind != "cross"
    own_number = sheet.numbers[0][finding.query]
    line = Text()
    before, segment = None, 0
    for token, label, number, level in zip(
        sheet.record.key_tokens, sheet.key_labels, sheet.numbers[1], row_levels, strict=True
    ):
        follows = before is not None and token.span is not None and token.span[0] == before[1]
        follows &= token.segment <= segment
        if line and not follows and not label.startswith("·"):
            line.append(" + " if token.segment > segment else " ")
        before, segment = token.span, max(segment, token.segment)
        style = screen.paint(level) if screen.colour else Style()
        if is_own and number == own_number:
            style += Style(bold=True, underline=True)
        line.append(label.removeprefix("·") if len(label) > 1 else label, style)
        if not screen.colour:
            line.append(screen.shade(level).strip())
    return shortened(fold(line, screen.width), screen)


def _clearest_head(sheet: Sheet, finding: Finding | None) -> tuple[Panel, str]:
    """Return the head with the clearest link or the largest change, or else the first; and a line about the others."""
    if finding is not None:
        return sheet.panel(finding.layer, finding.head), other_heads(sheet.record, finding)
    if sheet.changes:
        change = sheet.changes[0]
        return sheet.panel(change.layer, change.head), _largest_by_head(sheet)
    panel = sheet.panels[0]
    return panel, "" if sheet.signed or _has_one_pattern(sheet) else sheet.name(panel)


def _largest_by_head(sheet: Sheet) -> str:
    """Return the largest change of each of the heads that change most, in words."""
    by_head: dict[str, str] = {}
    for change in sheet.changes:  # the largest first
        by_head.setdefault(f"{change.layer}.{change.head}", f"{100 * change.difference:+.0f}%")
    heads = ", ".join(f"{head} ({size})" for head, size in [*by_head.items()][:MOST_NAMED])
    return _("Largest changes, by head: {heads}").format(heads=heads)


def _token_level(scaled: Sheet, screen: Screen) -> list[Text]:
    """Return links and statistics of single tokens, if the only panel shows groups of tokens."""
    if len(scaled.panels) > 1 or max(scaled.cell) == 1 or scaled.signed:
        return []
    panel = scaled.panels[0]
    summary = token_level_summary(scaled.record, panel.layer, panel.head)
    lines = [line for text in summary for line in _wrap(text, screen)]
    return [Text(), *lines] if lines else []


def _foot(
    sheet: Sheet, scaled: Sheet, cell: CellFormat, screen: Screen, *, size: str
) -> list[Text]:
    """Return the legend, the notes, the model, the `size` and the receipt of a sheet that is shown as `scaled`."""
    if sheet.signed:
        legend_text = scaled.legend
    else:
        legend_text = _("Rows attend to columns: {scale}").format(scale=scaled.scale_words)
        if scaled.has_mask:
            legend_text += "; " + _("hatched: masked")
    notes = [note for note in scaled.notes if note not in sheet.notes]
    if cell.halves:
        notes.append(_("Each line shows two rows and names the upper one"))
    notes += [note for note in sheet.notes if note in scaled.notes]
    lines = [
        *legend(legend_text, screen, most=screen.width, signed=sheet.signed),
        *(line for note in notes for line in _wrap(note, screen, "dim")),
    ]
    model = " · ".join(text for text in (sheet.model, size) if text)
    style = "bold" if sheet.record.receipt else ""
    if cell_len(model) + 3 + cell_len(sheet.proof) > screen.width:
        return [*lines, *_wrap(model, screen), *_wrap(sheet.proof, screen, style)]
    source = spell(f"{model} · ", screen), (spell(sheet.proof, screen), style)
    return [*lines, Text.assemble(*source, no_wrap=True)]


def _wrap(text: str, screen: Screen, style: str = "") -> list[Text]:
    """Return the text in lines as wide as the screen, however wide that is."""
    return wrap(text, screen, style, most=screen.width)


def _fit(sheet: Sheet, screen: Screen) -> tuple[Sheet, CellFormat]:
    """Find the largest cells with which one pattern fits the screen, or several fit a few screens.

    A sheet is pooled if even the smallest do not fit.
    """
    is_single = len(sheet.panels) == 1
    room = screen.width - _label_width(sheet) - 1
    n_rows, n_keys = len(sheet.query_labels), len(sheet.key_labels)
    # Each number has a sign, or without colours a shade character after it.
    mark = 1 if sheet.signed or not screen.colour else 0
    cells = [CellFormat(3 + mark, digits=True), CellFormat(2)]
    name_width = max(map(cell_len, sheet.key_labels)) + 1
    if is_single:
        named = CellFormat(max(6, min(name_width, 10)), digits=True)
        cells = [named, CellFormat(5, digits=True), *cells]
    else:
        cells.append(_thin(screen))
    for cell in cells:
        across = (room + GAP) // (max(n_keys * cell.width, *map(cell_len, _titles(sheet))) + GAP)
        bands = math.ceil(len(sheet.panels) / max(1, across))
        height = bands * (math.ceil(n_rows / (2 if cell.halves else 1)) + 3)
        # Cells as wide as the keys' names are only for short texts; in long ones they would be too wide.
        is_short = cell.width < name_width or n_keys <= 30 if is_single else height <= MOST_LINES
        if n_keys * cell.width <= room and is_short:
            return sheet, cell
    most_keys = 24 if n_keys > min(room, FEW) else n_keys
    most_rows = max(most_keys, 48) if n_rows > n_keys else most_keys
    if is_single:
        most_keys = most_rows = max(room, 8)
    small = pool(sheet, most_rows, most_keys)
    # Larger groups have longer names, which leave less room for the columns.
    while len(small.key_labels) > (room := max(1, screen.width - _label_width(small) - 1)):
        small = pool(sheet, most_rows, room)
    return small, _thin(screen)


def _thin(screen: Screen) -> CellFormat:
    """Return the smallest cell that the screen can show."""
    return CellFormat(1, halves=screen.colour and screen.unicode)


def _titles(sheet: Sheet) -> list[str]:
    """Return the name of each panel, with the end of its colour scale if each panel has its own."""
    names = [sheet.name(panel) for panel in sheet.panels]
    if sheet.scale != "panel":
        return names
    tops = [panel.top for panel in sheet.panels]
    return [f"{name} max {percent(top)}" for name, top in zip(names, tops, strict=True)]


def _label_width(sheet: Sheet) -> int:
    """Return the width of the queries' numbers and names beside a matrix."""
    digits = len(str(sheet.numbers[0][-1]))
    return digits + 1 + min(LABEL_WIDTH, max(cell_len(label) for label in sheet.query_labels))


def _bands(sheet: Sheet, screen: Screen, cell: CellFormat) -> Iterator[Text]:
    """Yield the panels in bands, each with as many panels side by side as fit, after the labels of the queries."""
    left = _label_width(sheet)
    titles = _titles(sheet) if len(sheet.panels) > 1 else []
    room = screen.width - left - 1
    width = max([len(sheet.key_labels) * cell.width, *map(cell_len, titles)])
    across = max(1, (room + GAP) // (width + GAP))
    width = min(width, room)
    labels = _row_labels(sheet, screen)[:: 2 if cell.halves else 1]
    headers = _column_header(sheet.key_labels, sheet.numbers[1], cell)
    masked_from = sheet.masked_from
    gap = " " * GAP
    for start in range(0, len(sheet.panels), across):
        panels = sheet.panels[start : start + across]
        yield Text()
        if titles:
            line = gap.join(f"{title:<{width}}" for title in titles[start : start + across])
            # If a title is wider than the room beside the labels, it begins further left.
            yield Text(" " * min(left + 1, screen.width - len(line)) + line, "bold", no_wrap=True)
        for header in headers:
            # The header of a single panel may be wider than its matrix.
            header_width = width if len(panels) > 1 else room
            line = gap.join([set_cell_size(header, header_width)] * len(panels))
            yield Text(" " * (left + 1) + line.rstrip(), "dim", no_wrap=True)
        matrices = [_matrices([panel], masked_from, screen, cell) for panel in panels]
        for label, *rows in zip(labels, *matrices, strict=True):
            yield _join_rows(f"{label} ", rows, width + GAP)


def _row_labels(sheet: Sheet, screen: Screen) -> list[str]:
    """Return the number and the name of each query, all equally wide."""
    numbers = sheet.numbers[0]
    digits = len(str(numbers[-1]))
    width = _label_width(sheet) - digits - 1
    names = [set_cell_size(fit(label, width, screen), width) for label in sheet.query_labels]
    return [f"{number:>{digits}} {name}" for number, name in zip(numbers, names, strict=True)]


def _join_rows(start: str, rows: Sequence[Text], pitch: int) -> Text:
    """Return rows of several panels as one line; they begin `pitch` character cells apart."""
    line = Text(start, no_wrap=True)
    for row in rows[:-1]:
        line.append_text(row).append(" " * (pitch - row.cell_len))
    return line.append_text(rows[-1])


def _column_header(labels: Sequence[str], numbers: Sequence[int], cell: CellFormat) -> list[str]:
    """Return the names of the keys, spread over some lines if necessary; or their numbers if the names do not fit."""
    longest = max(cell_len(label) for label in labels)
    if longest < cell.width:
        return ["".join(centre(label, cell.width) for label in labels)]
    steps = (
        longest // cell.width + 1
    )  # every name is this many cells wide, so it needs as many lines
    if cell.digits and steps <= MOST_STAIRS:
        lines = []
        for step in range(steps):
            names = "".join(
                f"{label}{' ' * (cell.width * steps - cell_len(label))}"
                for label in labels[step::steps]
            )
            lines.append(" " * (cell.width * step + 1) + names)
        return lines
    digits = len(str(numbers[-1]))
    if digits < cell.width:
        return ["".join(centre(str(number), cell.width) for number in numbers)]
    every = 5 if cell.width * 5 > digits else 10
    line = "".join(f"{number:<{cell.width * every}}" for number in numbers[::every])
    return [line[: len(labels) * cell.width]]


def _matrices(
    panels: Sequence[Panel], masked_from: Int[np.ndarray, " row"], screen: Screen, cell: CellFormat
) -> list[Text]:
    """Return the lines of the matrices of panels, one below the other: one per row, or one per two rows.

    If the cell `halves` the lines, half a line is free between two matrices.
    """
    rows: list[list[int]] = []
    for panel in panels:
        levels_of = panel.levels.astype(int)
        if panel.signed and not screen.colour:
            levels_of[levels_of == MIDDLE] = NOTHING
        levels_of[panel.blanks] = 0 if screen.colour else NOTHING
        levels_of[np.arange(panel.matrix.shape[1]) >= masked_from[:, None]] = MASKED
        if rows and cell.halves:
            rows.append([NOTHING] * levels_of.shape[1])
        rows += levels_of.tolist()
    signed = panels[0].signed
    if cell.halves:
        pairs = [rows[row : row + 2] for row in range(0, len(rows), 2)]
        return [_half_line(pair, screen, signed=signed) for pair in pairs]
    lines = []
    weights = np.concatenate([panel.matrix for panel in panels]).tolist()
    for row_weights, row_levels in zip(weights, rows, strict=True):
        line = Text(no_wrap=True)
        for weight, level in zip(row_weights, row_levels, strict=True):
            line.append_text(_cell(weight, level, screen, cell, signed=signed))
        lines.append(line)
    return lines


def _cell(weight: float, level: int, screen: Screen, cell: CellFormat, *, signed: bool) -> Text:
    """Return one weight on its colour, or with its shade; `NOTHING` is blank, `MASKED` hatched."""
    if level == NOTHING:
        return Text(" " * cell.width)
    if level == MASKED:
        return Text(centre(screen.hatch, cell.width), "dim")
    digits = ""
    if cell.digits and abs(weight) >= BLANK:
        # The sign is not the true minus, which some terminals lack.
        digits = number_text(weight, signed=signed).replace("−", "-")
    if screen.colour:
        return Text(centre(digits, cell.width), screen.paint(level, signed=signed))
    if cell.digits:
        mark = "" if signed else screen.shade(level)
        return Text(digits.rjust(cell.width - len(mark)) + mark)
    if signed:
        # The sign alone, once for each quarter of the scale.
        quarters = math.floor(abs(level - MIDDLE) / MIDDLE * 4 + 0.5)
        sign = "+" if level > MIDDLE else "-"
        small = screen.dot if screen.unicode else "."  # in ASCII the dot is a minus
        return Text((sign * min(quarters, cell.width) or small).ljust(cell.width))
    shade = screen.shade(level)
    return Text((screen.dot if shade == " " else shade) * cell.width)


def _half_line(pair: Sequence[Sequence[int]], screen: Screen, *, signed: bool) -> Text:
    """Return the levels of two rows in one line: the upper and the lower half of each character.

    The last row of a matrix may stand alone, in the upper half.
    """
    line = Text(no_wrap=True)
    for cells in zip(*pair, strict=True):
        colours = [
            None if level < 0 else screen.paint(level, signed=signed).bgcolor for level in cells
        ]
        upper, lower = colours[0], colours[1] if len(colours) > 1 else None
        if cells[0] == MASKED and cells[-1] == MASKED:
            line.append(screen.hatch, "dim")
        elif upper is None:
            line.append("▄" if lower else " ", Style.from_color(lower))
        else:
            line.append("▀", Style.from_color(upper, lower))
    return line


def _thumbnails(sheet: Sheet, screen: Screen, room: int) -> list[Text]:
    """Return all panels as thumbnails, one row of them per layer; none if they take more than `room` lines.

    On a narrow screen the heads of a layer continue below.
    """
    if max(sheet.cell) > 1 or max(len(sheet.query_labels), len(sheet.key_labels)) > MOST_THUMBNAIL:
        return []
    heads, cell = sheet.heads, _thin(screen)
    step = 2 if cell.halves else 1  # rows of a line
    pitch = len(sheet.query_labels) + step - 1
    names = {
        index * pitch // step: _("layer {n}").format(n=layer)
        for index, layer in enumerate(sheet.layers)
    }
    margin = max(map(cell_len, (*names.values(), _("head")))) + 1
    width = max(len(sheet.key_labels), len(str(heads[-1]))) + 1
    most_across = (screen.width - margin + 1) // width
    if not most_across:
        return []
    bands = math.ceil(len(heads) / most_across)
    height = math.ceil((len(sheet.layers) * pitch - step + 1) / step)
    if bands * (height + 2) - 1 > room:
        return []
    across = math.ceil(len(heads) / bands)
    lines = []
    for start in range(0, len(heads), across):
        numbers = "".join(f"{head:<{width}}" for head in heads[start : start + across])
        lines += [Text()] if start else []
        lines.append(Text(set_cell_size(_("head"), margin) + numbers.rstrip(), "dim", no_wrap=True))
        columns = [
            _matrices(sheet.panels[head :: len(heads)], sheet.masked_from, screen, cell)
            for head in range(start, min(start + across, len(heads)))
        ]
        for number, row in enumerate(zip(*columns, strict=True)):
            lines.append(_join_rows(set_cell_size(names.get(number, ""), margin), row, width))
            lines[-1].rstrip_end(screen.width)
    return lines
