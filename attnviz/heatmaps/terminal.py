"""Heatmaps in a terminal: coloured cells, or shades and numbers without colour.

Every function returns lines no wider than the screen. Labels are measured in cells, so that Korean, Chinese and emoji
keep their columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from attnviz.heatmaps.words import token_level_summary
from attnviz.render.palette import levels
from attnviz.render.sheet import AXES, BLANK, Panel, Sheet, blank_below, pool
from attnviz.render.terminal.screen import Screen
from attnviz.render.terminal.text import centre, fit, legend, shortened, spell, wrap
from attnviz.text.messages import _

LABEL_WIDTH = 14  # largest width of a token's label beside a matrix, in cells
TALLEST = 64  # lines that the heads of a layer may take; otherwise cells are made smaller
NOTHING = -1  # level of a weight whose cell stays blank
SCREEN_LINES = 48  # lines: a usual window has 50, and two are the command and the next prompt
LEAST_THUMBNAIL, MOST_THUMBNAIL = 3, 16  # rows and columns of a thumbnail
STAIRS = 3  # lines over which the keys' names may be spread if one line has no room for them
FEW = 32  # up to this many tokens are shown one by one if the screen is wide enough, however many lines that takes
GAP = 2


@dataclass(frozen=True, slots=True)
class CellFormat:
    """The width and digits of a cell."""

    width: int  # cells across
    # `decimals` (0.34), `percent` (34), or only the colour
    digits: Literal["decimals", "percent", ""]
    # whether one line shows two rows, in its upper and lower half
    halves: bool = False


def draw(sheet: Sheet, screen: Screen, *, full: bool = False) -> list[Text]:
    """Return the lines of a sheet: an overview of many heads, then the one that differs most from the others.

    With `full`, every head in full size instead.
    """
    queries, keys = (
        [spell(name, screen) for name in names] for names in (sheet.query_labels, sheet.key_labels)
    )
    sheet = replace(
        sheet, query_labels=tuple(queries), key_labels=tuple(keys), has_blanks=screen.has_blanks
    )
    if full or len(sheet.panels) == 1:
        scaled, cell = (_fit_one if len(sheet.panels) == 1 else _fit_many)(sheet, screen)
        body = [*_bands(scaled, screen, cell), *_exactly(scaled, screen)]
        return [*_head(sheet, screen, sheet.size), *body, *_foot(sheet, scaled, cell, screen)]
    one = sheet.distinct
    large = replace(sheet, panels=(one,), layers=(one.layer,), heads=(one.head,))
    scaled, cell = _fit_one(large, screen)
    place = one.place
    what = sheet.say(
        _("{size}, one row per layer; shown below: {place}").format(size=sheet.size, place=place)
    )
    title = sheet.say(
        _("Layer {layer}, head {head} differs most from the other heads").format(
            layer=one.layer, head=one.head
        )
    )
    more = sheet.say(
        _("More: --head {place} (one head), -o FILE.html (every head)").format(place=place)
    )
    above = [*_head(sheet, screen, ""), *_wrap(what, screen)]
    below = [
        *_wrap(title, screen, "bold"),
        *list(_bands(scaled, screen, cell))[1:],
        *_exactly(scaled, screen),
    ]
    room = (
        SCREEN_LINES
        - len(above)
        - len(below)
        - len(_foot(sheet, scaled, cell, screen, [more, "-"]))
        - 1
    )
    thumbnails, note = _thumbnails(sheet, screen, room)
    return [*above, *thumbnails, Text(), *below, *_foot(sheet, scaled, cell, screen, [*note, more])]


def _exactly(scaled: Sheet, screen: Screen) -> list[Text]:
    """Return links and statistics of single tokens, if the pattern shows groups of tokens."""
    if len(scaled.panels) > 1 or max(scaled.cell) == 1:
        return []
    said = token_level_summary(scaled.record, scaled.panels[0].layer, scaled.panels[0].head)
    return (
        [Text(), *(line for one in said for line in _wrap(scaled.say(one), screen))] if said else []
    )


def _head(sheet: Sheet, screen: Screen, size: str) -> list[Text]:
    """Return the sentence, the model, and the number of layers and heads."""
    lines = shortened(_wrap(sheet.sentence, screen, "bold"), screen)
    return [*lines, *_wrap(" · ".join(filter(None, [sheet.model, size])), screen)]


def _foot(
    sheet: Sheet, scaled: Sheet, cell: CellFormat, screen: Screen, more: Sequence[str] = ()
) -> list[Text]:
    """Return the legend, the notes and the receipt."""
    percent, axes = cell.digits == "percent", sheet.say(AXES)
    numbers = ""
    if cell.digits:
        numbers = "; " + sheet.say(_("numbers: percent") if percent else _("numbers: rounded"))
    if not cell.digits and not screen.colour:
        axes += "; " + sheet.say(_("{dot} is a small weight").format(dot=screen.dot))
    remarks = [axes, *(note for note in scaled.notes if note not in sheet.notes)]
    if cell.halves:
        remarks.append(sheet.say(_("Each line shows two rows and names the upper one")))
    remarks += [*more, *(note for note in sheet.notes if note in scaled.notes)]
    return [
        Text(),
        *legend(scaled.legend + numbers, screen, most=screen.width),
        *(line for text in remarks for line in _wrap(text, screen, "dim")),
        *_wrap(sheet.proof, screen, "bold" if sheet.is_proved else ""),
    ]


def _wrap(text: str, screen: Screen, style: str = "") -> list[Text]:
    return wrap(text, screen, style, most=screen.width)


def _fit_one(sheet: Sheet, screen: Screen) -> tuple[Sheet, CellFormat]:
    """Find the largest cells with which one pattern fits the screen; pool it if even the smallest do not fit."""
    room = screen.width - _label_width(sheet) - 1
    n = len(sheet.key_labels)
    labels = max(cell_len(label) for label in sheet.key_labels) + 1
    shade = 0 if screen.colour else 1
    for cell in (
        CellFormat(max(6, min(labels, 10)), "decimals"),
        CellFormat(5 + shade, "decimals"),
        CellFormat(3 + shade, "percent"),
        CellFormat(2, ""),
    ):
        if n * cell.width <= room and (cell.width < labels or n <= 30):
            return sheet, cell
    return _pooled(sheet, screen, max(room, 8), max(room, 8)), _thin(screen)


def _pooled(sheet: Sheet, screen: Screen, rows: int, columns: int) -> Sheet:
    """Pool a sheet to at most this many rows and columns, or fewer until it fits: larger groups have longer names."""
    small = pool(sheet, rows, columns)
    while len(small.key_labels) > (room := max(1, screen.width - _label_width(small) - 1)):
        small = pool(sheet, rows, room)
    return small


def _fit_many(sheet: Sheet, screen: Screen) -> tuple[Sheet, CellFormat]:
    """Find the largest cells with which all panels fit on a few screens; pool them if even the smallest do not fit."""
    room = screen.width - _label_width(sheet) - 1
    n_rows, n_keys = len(sheet.query_labels), len(sheet.key_labels)
    for cell in (
        CellFormat(3 if screen.colour else 4, "percent"),
        CellFormat(2, ""),
        _thin(screen),
    ):
        across = (room + GAP) // (max(n_keys * cell.width, *map(cell_len, _titles(sheet))) + GAP)
        bands = math.ceil(len(sheet.panels) / max(1, across))
        height = bands * (math.ceil(n_rows / (2 if cell.halves else 1)) + 3)
        if n_keys * cell.width <= room and height <= TALLEST:
            return sheet, cell
    most = 24 if n_keys > min(room, FEW) else n_keys
    return _pooled(sheet, screen, max(most, 48 if n_rows > n_keys else most), most), _thin(screen)


def _thin(screen: Screen) -> CellFormat:
    return CellFormat(1, "", halves=screen.colour and screen.unicode)


def _titles(sheet: Sheet) -> list[str]:
    own = sheet.scale == "panel"
    return [
        f"{sheet.name(panel)} max {panel.top:.3g}" if own else sheet.name(panel)
        for panel in sheet.panels
    ]


def _label_width(sheet: Sheet) -> int:
    digits = len(str(sheet.numbers[0][-1]))
    return digits + 1 + min(LABEL_WIDTH, max(cell_len(label) for label in sheet.query_labels))


def _bands(sheet: Sheet, screen: Screen, cell: CellFormat) -> Iterator[Text]:
    """Yield bands of panels, as many side by side as fit; labels stand at the left of each band."""
    left, titles = _label_width(sheet), _titles(sheet) if len(sheet.panels) > 1 else []
    digits = len(str(sheet.numbers[0][-1]))
    labels = [
        f"{number:>{digits}} {set_cell_size(fit(label, left - digits - 1, screen), left - digits - 1)}"
        for number, label in zip(sheet.numbers[0], sheet.query_labels, strict=True)
    ]
    room = screen.width - left - 1
    width = max([len(sheet.key_labels) * cell.width, *map(cell_len, titles)])
    across = max(1, (room + GAP) // (width + GAP))
    width = min(width, room)
    header = _column_header(sheet.key_labels, sheet.numbers[1], cell)
    for start in range(0, len(sheet.panels), across):
        panels = sheet.panels[start : start + across]
        yield Text()
        if titles:
            line = (" " * GAP).join(f"{title:<{width}}" for title in titles[start : start + across])
            yield Text(" " * min(left + 1, screen.width - len(line)) + line, "bold", no_wrap=True)
        for names_of_keys in header:
            *others, last = [set_cell_size(names_of_keys, width)] * len(panels)
            last = last if others else set_cell_size(names_of_keys, room)
            yield Text(
                " " * (left + 1) + (" " * GAP).join([*others, last]).rstrip(), "dim", no_wrap=True
            )
        matrices = [_matrix(panel, screen, cell) for panel in panels]
        for name, *parts in zip(labels[:: 2 if cell.halves else 1], *matrices, strict=True):
            padded = (part for row in parts for part in (row, " " * (width - row.cell_len + GAP)))
            yield Text.assemble(f"{name} ", *[*padded][:-1], no_wrap=True)


def _column_header(labels: Sequence[str], numbers: Sequence[int], cell: CellFormat) -> list[str]:
    """Return the names of the keys, spread over some lines if necessary; or their numbers if the names do not fit."""
    longest = max(cell_len(label) for label in labels)
    if longest < cell.width:
        return ["".join(centre(label, cell.width) for label in labels)]
    steps = longest // cell.width + 1
    if cell.digits and steps <= STAIRS:
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
    return [
        "".join(f"{number:<{cell.width * every}}" for number in numbers[::every])[
            : len(labels) * cell.width
        ]
    ]


def _matrix(panel: Panel, screen: Screen, cell: CellFormat) -> list[Text]:
    steps = levels(panel.matrix, panel.top).astype(int)
    level = np.where(
        panel.matrix < blank_below(panel.top), NOTHING if screen.has_blanks else 0, steps
    ).tolist()
    if cell.halves:
        return [_half_line(level[row : row + 2], screen) for row in range(0, len(level), 2)]
    lines = []
    for row, row_steps in zip(panel.matrix.tolist(), level, strict=True):
        line = Text(no_wrap=True)
        for weight, step in zip(row, row_steps, strict=True):
            if step == NOTHING:
                line.append(" " * cell.width)
            elif screen.colour:
                line.append(centre(_digits(weight, cell), cell.width), screen.paint(step))
            else:
                shade = screen.shade(step)
                number = _digits(weight, cell).rjust(cell.width - 1) + shade
                line.append(
                    number if cell.digits else (screen.dot if shade == " " else shade) * cell.width
                )
        lines.append(line)
    return lines


def _half_line(pair: Sequence[Sequence[int]], screen: Screen) -> Text:
    """Return two rows in one line: the upper and the lower half of each character."""
    line = Text(no_wrap=True)
    for cells in zip(*pair, strict=True):
        upper, *lower = (
            None if level == NOTHING else screen.paint(level).bgcolor for level in cells
        )
        if upper is None:
            line.append("▄" if lower and lower[0] else " ", Style.from_color(*lower))
        else:
            line.append("▀", Style.from_color(upper, *lower))
    return line


def _digits(weight: float, cell: CellFormat) -> str:
    """Return the digits of a weight; empty if they would be 0."""
    if weight < BLANK or not cell.digits:
        return ""
    return f"{weight:.2f}" if cell.digits == "decimals" else str(math.floor(100 * weight + 0.5))


def _thumbnails(sheet: Sheet, screen: Screen, room: int) -> tuple[list[Text], list[str]]:
    """Return all panels as thumbnails, one line per layer, and remarks about them.

    They are as large as these lines allow; on a narrow screen the heads of a layer continue in further lines.
    """
    # the names of layers
    margin = cell_len(sheet.say(_("layer {n}").format(n=sheet.layers[-1]))) + 1
    halves, across = _thin(screen).halves, len(sheet.heads)
    while across > 1 and (screen.width - margin) // across - 1 < min(
        len(sheet.key_labels), LEAST_THUMBNAIL
    ):
        across -= 1
    bands = math.ceil(len(sheet.heads) / across)
    across = math.ceil(len(sheet.heads) / bands)
    wide = max(2, min(MOST_THUMBNAIL, (screen.width - margin) // across - 1))
    for size in range(MOST_THUMBNAIL, LEAST_THUMBNAIL - 1, -1):
        small = pool(sheet, size, min(size, wide))
        n_rows = len(small.query_labels)
        # the unused lower half of the last line separates layers too
        apart = n_rows % 2 == 0 or not halves
        each = (n_rows + 1) // 2 if halves else n_rows
        if bands * (len(sheet.layers) * (each + apart) + 1) - 1 <= room:
            break
    else:
        apart = halves and apart
    lines = list(_thumbnail_lines(sheet, small, screen, margin, across, apart=apart))
    if small is sheet:
        return lines, []
    tall, broad = small.cell
    top = f"{max(panel.top for panel in small.panels):.3g}"
    own = sheet.scale == "panel"
    ends = _("each scaled to its own maximum") if own else _("0 to {top}").format(top=top)
    note = _(
        "Thumbnails: {tall} x {broad} tokens per cell (sum over keys, mean over queries), {ends}"
    )
    return lines, [sheet.say(note.format(tall=tall, broad=broad, ends=ends))]


def _thumbnail_lines(
    sheet: Sheet, small: Sheet, screen: Screen, margin: int, across: int, *, apart: bool
) -> Iterator[Text]:
    """Yield lines of thumbnails, this many side by side, with a blank line between layers if they stand `apart`."""
    width, cell = max(len(small.key_labels), len(str(sheet.heads[-1]))), _thin(screen)
    for start in range(0, len(sheet.heads), across):
        chosen = range(start, min(start + across, len(sheet.heads)))
        if start:
            yield Text()
        yield Text(
            " " * margin + " ".join(f"{sheet.heads[i]:<{width}}" for i in chosen),
            "dim",
            no_wrap=True,
        )
        for index, layer in enumerate(sheet.layers):
            panels = [small.panels[index * len(sheet.heads) + i] for i in chosen]
            matrices = [_matrix(panel, screen, cell) for panel in panels]
            name = sheet.say(_("layer {n}").format(n=layer))
            for parts in zip(*matrices, strict=True):
                padded = (part for row in parts for part in (row, " " * (width - row.cell_len + 1)))
                line = Text.assemble(set_cell_size(name, margin), *padded, no_wrap=True)
                line.rstrip_end(screen.width)
                yield line
                name = ""
            if apart and index < len(sheet.layers) - 1:
                yield Text()
