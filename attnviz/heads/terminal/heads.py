"""What each head does, in a terminal: a line a head, then roles, clusters, relations, and how to read it all.

No row is ever wrapped. A narrow window shows fewer columns, and what is cut ends in an ellipsis; a wide one has bars
with their numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from rich.text import Text

from attnviz.heads import shown as heads_roles
from attnviz.heads.doubts import why_not
from attnviz.heads.record import MAX_OFFSET, Comparison, measure_of
from attnviz.heads.shown import CONTROLS, MOST, NOT_EXPLANATION, Shown, chosen, counted
from attnviz.heads.terminal import summary as below
from attnviz.heads.terminal.cells import (
    DOUBTFUL,
    ESTABLISHED,
    LEAST_TOP,
    Column,
    bar,
    interval,
    mark,
    number,
    prose,
    role_style,
    rows,
    spark,
    spelled,
)
from attnviz.render.terminal.screen import Screen

BARS = ("previous", "next", "first", "separator", "entropy_share", "distance")
"""The measures that are drawn as bars where there is room."""
FARTHEST = 8.0
"""Tokens at which the bar of a distance is full."""
WITH_CONTROLS, WITH_BARS, WITH_NUMBERS, WITH_LONG_BARS = 80, 116, 160, 185
"""The windows, in cells, from which on a row has its controls, its bars, the bars' numbers, and longer bars."""
_SHORT = {"shuffled": ("shuf", "shuffled"), "untrained": ("rand", "random"), "offset": ("offs", "offset")}
LEGEND = {
    "shuffled": "shuf(fled): the same head on shuffled tokens",
    "untrained": "rand(om): the best head of random weights",
    "offset": "offs(et): the best fixed one",
}
"""What the columns of controls are."""
AIRY = 130
"""The windows, in cells, from which on columns stand further apart."""
LEAST_ROLE = (12, 26, 33)
"""Cells that a role keeps: in a narrow window, beside controls, and beside bars, of which the last give way to it."""
BAD_SHOWN = 5
"""So many lines that could not be used are named."""


def table(
    comparison: Comparison,
    screen: Screen,
    *,
    sort: str = "head",
    role: Sequence[str] = (),
    layers: Sequence[int] = (),
) -> list[Text]:
    """The whole view of a comparison.

    Args:
        comparison: what to show.
        screen: where.
        sort: ``head``, ``role``, ``score``, or a measure, largest first.
        role: names of roles; a head that has any of them is shown. ``none`` is no clear role.
        layers: their numbers, negative from the end.

    Raises:
        SelectionError: there is no such measure, role or layer.
    """
    heads = chosen(comparison, sort=sort, role=role, layers=layers)
    lines = prose(f"What each head does · {comparison.model}", screen, "bold")
    lines += prose(heads_roles.described(comparison), screen)
    lines += prose(heads_roles.sample(comparison), screen)
    lines.append(Text())
    lines += prose(_order(comparison, sort), screen, "dim") if sort != "head" else []
    lines += _heads(heads, comparison, screen, sort) if heads else prose("no head has such a role here", screen)
    if len(heads) < len(comparison.heads):
        lines += prose(_hidden(heads, comparison, asked=bool(role or layers)), screen)
    lines += [Text(), *below.roles(comparison, screen)]
    lines += below.clusters(comparison, screen)
    if comparison.relations:
        lines += [Text(), *below.relations(comparison.relations, screen)]
    return [*lines, Text(), *said(comparison, screen, _legend(comparison, screen))]


def said(comparison: Comparison, screen: Screen, legend: Sequence[str]) -> Iterator[Text]:
    """What stands below every view: how to read it, what to know, which lines were bad; the proof last."""
    for text in legend:
        yield from prose(text, screen, "dim")
    for note in comparison.notes:
        yield from prose(f"note: {note}", screen)
    for line, reason in comparison.bad[:BAD_SHOWN]:
        yield from prose(f"line {line:,} not used: {reason}", screen, indent=2)
    more = comparison.n_bad - min(len(comparison.bad), BAD_SHOWN)
    if more > 0:
        yield from prose(f"{counted(more, 'more line')} not used", screen)
    yield from prose(comparison.proof, screen, "bold" if comparison.proof.startswith("verified") else "")


def _order(comparison: Comparison, sort: str) -> str:
    if sort in {"role", "score"}:
        return f"sorted by {sort}, the largest score first"
    name = heads_roles.measure_named(sort, comparison.measures)
    one = measure_of(name)
    meaning = "" if one is None else f" ({one.meaning})"
    return f"sorted by {name}{meaning}, the largest first"


def _hidden(heads: Sequence[Shown], comparison: Comparison, *, asked: bool) -> str:
    """How many heads are not shown, and how to see them."""
    hidden = len(comparison.heads) - len(heads)
    if asked:
        return f"{counted(hidden, 'other head')} not shown"
    return (
        f"{counted(hidden, 'head')} with no clear role not shown, since there are more than {MOST} heads: "
        "--role none shows them, --layer N all of a layer"
    )


def _heads(heads: Sequence[Shown], comparison: Comparison, screen: Screen, sort: str) -> Iterator[Text]:
    """The table of heads; the measure that it is sorted by has a column."""
    wide = screen.width
    gap = 1 if wide < AIRY else 2
    least = LEAST_ROLE[(wide >= WITH_CONTROLS) + (wide >= WITH_BARS)]
    reach = MAX_OFFSET if wide >= WITH_BARS else MAX_OFFSET // 2
    columns = [
        Column("head", [Text(one.profile.name) for one in heads], gap=gap),
        Column("  role", [_role(one, screen) for one in heads], least=least, gap=gap),
        Column("score", [_score(one, screen) for one in heads], right=True, gap=gap),
        Column("95 %", [_interval(one, screen) for one in heads], right=True, gap=gap),
    ]
    if _has_patterns(comparison):
        patterns = [_pattern(one, comparison, screen, reach) for one in heads]
        columns.insert(1, Column(_ruler(reach), patterns, gap=gap))
    if sort not in {"head", "role", "score"}:
        name = heads_roles.measure_named(sort, comparison.measures)
        values = [comparison.estimate(name, one.profile.layer, one.profile.head)[0] for one in heads]
        cells = [Text(number(value, screen)) for value in values]
        columns.insert(-2, Column(_heading(name), cells, right=True, gap=gap))
    if wide >= WITH_CONTROLS:
        columns += [
            Column(
                _SHORT[name][wide >= WITH_NUMBERS], [_control(one, name, screen) for one in heads], right=True, gap=gap
            )
            for name in CONTROLS
            if name in comparison.controls
        ]
    if wide >= WITH_BARS:
        columns += _bars(heads, comparison, screen)
    yield from rows(columns, screen)


def _heading(name: str) -> str:
    """Above a measure's column: its label; of one of another version its name."""
    measure = measure_of(name)
    return name if measure is None else measure.label


def _ruler(reach: int) -> str:
    """Above the small patterns: which offsets they show."""
    left, right = f"-{reach}", f"+{reach}"
    return left + "0".center(2 * reach + 1 - len(left) - len(right)) + right


def _pattern(one: Shown, comparison: Comparison, screen: Screen, reach: int) -> Text:
    return Text(
        spark(by_offset(comparison, one.profile.layer, one.profile.head, reach), screen), role_style(one.role, screen)
    )


def _has_patterns(comparison: Comparison) -> bool:
    """Whether the weight at some offset was measured: between two sentences there are none."""
    at = [index for index, name in enumerate(comparison.measures) if name.startswith("offset_")]
    return bool(np.isfinite(comparison.estimates.value[..., at]).any())


def by_offset(comparison: Comparison, layer: int, head: int, reach: int) -> list[float]:
    """The mean weight at each offset, from so many tokens back to so many ahead; NaN where it was not measured."""
    names = [f"offset_{offset:+d}" for offset in range(-reach, reach + 1)]
    return [comparison.estimate(name, layer, head)[0] if name in comparison.measures else math.nan for name in names]


def _role(one: Shown, screen: Screen) -> Text:
    style = role_style(one.role, screen)
    if one.role is None:
        return Text(f"  {one.profile.words}", style)
    why = why_not(one.role)
    found = Text(f"{mark(one.role, screen)} {spelled(one.role.words, screen)}", style)
    if why:
        found.append(spelled(f" · {why}", screen), "dim")
    return found


def _score(one: Shown, screen: Screen) -> Text:
    return Text(number(math.nan if one.role is None else one.role.score, screen))


def _interval(one: Shown, screen: Screen) -> Text:
    return Text("" if one.role is None else interval(one.role.low, one.role.high, screen))


def _control(one: Shown, name: str, screen: Screen) -> Text:
    """A control's value; bold where it is why the role is not established."""
    found = [control for control in (one.role.controls if one.role else ()) if control.name == name]
    if not found:
        return Text("" if one.role is None else number(math.nan, screen), "dim")
    rules_out = one.role is not None and found[0].rules_out and one.role.low <= found[0].high
    return Text(number(found[0].value, screen), "bold" if rules_out else "dim")


def _bars(heads: Sequence[Shown], comparison: Comparison, screen: Screen) -> Iterator[Column]:
    names = [name for name in BARS if name in comparison.measures]
    with_numbers = screen.width >= WITH_NUMBERS
    width = 5 if screen.width >= WITH_LONG_BARS else 4
    for index, name in enumerate(names):
        title = _heading(name)
        cells = []
        for one in heads:
            value = comparison.estimate(name, one.profile.layer, one.profile.head)[0]
            drawn = bar(value / FARTHEST if name == "distance" else value, width, screen)
            if with_numbers and not math.isnan(value):
                digits = 1 if name == "distance" else 2
                drawn = f"{number(value, screen, digits):>4} {drawn}"
            own = one.role is not None and one.role.measure == name
            cells.append(Text(drawn, role_style(one.role, screen) if own else "dim"))
        yield Column(title, cells, gap=2 if with_numbers or index == 0 else 1)


def _legend(comparison: Comparison, screen: Screen) -> list[str]:
    """How to read the table: what it has."""
    held = [LEGEND[name] for name in CONTROLS if name in comparison.controls]
    held = held if screen.width >= WITH_CONTROLS else [f"shown in a window of {WITH_CONTROLS} cells"]
    marks = (
        f"how to read: {ESTABLISHED} the score's 95 % interval lies above the controls that could rule the role out, "
        f"{DOUBTFUL} it does not: not established{'. Controls: ' if held else ''}{', '.join(held)}"
    )
    patterns = [
        f"small pattern: mean weight by offset, 0 the token itself, its height the head's largest, {LEAST_TOP} at least"
    ]
    bars = [f"bars end at 1, that of dist(ance) at {FARTHEST:.0f} tokens; even: entropy as a share of the largest"]
    how = [
        *(patterns if _has_patterns(comparison) else []),
        *(bars if screen.width >= WITH_BARS else []),
        "layers and heads count from 0",
    ]
    return [marks, "; ".join(how), NOT_EXPLANATION]
