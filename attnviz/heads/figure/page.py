"""One head's page as a figure: its weight by offset, its measures beside their controls, its roles, its sentences."""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from attnviz.heads.figure.page_plots import ROW, draw_measures, draw_offsets, shares
from attnviz.heads.notes import note_words, proof, reason_of
from attnviz.heads.record import HeadComparison, HeadProfile
from attnviz.heads.selection import estimate_of, nearest, strongest_shown
from attnviz.heads.wording import CONTROLS_OF_A_HEAD, HELD, NOT_EXPLANATION, described, sample, scored_on
from attnviz.render.figure.export import blank_sheet, save, usual_settings
from attnviz.render.figure.page import canvas
from attnviz.render.figure.pen import BLACK, GREY, MARGIN, POINT, TEXT, TITLE, Pen
from attnviz.render.fonts import Typefaces, typefaces_for
from attnviz.text.display import clip, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BARS = (5.6, 2.5)
"""Inches of the bars by offset."""
DOTS = 4.2
"""Inches across of the measures."""
GAP = 0.5
NAMES = 1.15
"""Inches of the names of measures."""
LINE = 1.45 * TEXT * POINT


def sheet(comparison: HeadComparison, layer: int, head: int) -> Figure:
    """A figure of one head.

    Args:
        comparison: of heads.
        layer: its layer, counted from 0, negative from the end.
        head: its number, likewise.

    Raises:
        SelectionError: there is no such head.
    """
    profile = comparison.head(layer, head)
    with usual_settings():
        pen = blank_sheet(_texts(comparison, profile))
        _draw(pen, comparison, profile)
    return pen.figure


def write(comparison: HeadComparison, layer: int, head: int, path: Path | BytesIO, suffix: str) -> Typefaces:
    """Draw one head's page into a file.

    Args:
        comparison: of heads.
        layer: its layer, counted from 0, negative from the end.
        head: its number, likewise.
        path: the file, or what it is written into.
        suffix: `.png`, `.svg` or `.pdf`.

    Returns:
        The fonts used, with the characters that none has.

    Raises:
        SelectionError: there is no such head.
    """
    profile = comparison.head(layer, head)
    made = sheet(comparison, layer, head)
    title = f"Head {profile.name} of {visible(comparison.model)}"
    save(made, path, suffix, title=title, description=f"{sample(comparison)}; {proof(comparison)}")
    return typefaces_for(_texts(comparison, profile))


def _draw(pen: Pen, comparison: HeadComparison, profile: HeadProfile) -> None:
    """Measure the words, give the figure its size, then draw."""
    names = shares(comparison)
    right = MARGIN + 0.5 + BARS[0] + GAP + NAMES
    width = right + DOTS + MARGIN + 0.1
    full = width - 2 * MARGIN
    title = f"Head {profile.name} · {visible(comparison.model)}"
    above = [
        *((line, TITLE * 1.2, BLACK) for line in pen.wrap(title, full, TITLE * 1.2)),
        *(
            (line, TEXT, GREY)
            for text in (described(comparison), visible(sample(comparison)))
            for line in pen.wrap(text, full)
        ),
    ]
    top = MARGIN + sum(1.4 * size * POINT for _, size, _ in above) + 0.3
    column = BARS[0] + 0.4
    roles = [(line, colour) for text, colour in _roles(profile) for line in pen.wrap(text, column)]
    alike = [(line, BLACK) for text in _alike(comparison, profile) for line in pen.wrap(text, column)]
    left = [*roles, *([("", BLACK), *alike] if alike else [])]
    left_top = top + 0.3 + BARS[1] + 0.6
    dots = ROW * len(names)
    lower = max(left_top + LINE * len(left), top + 0.3 + dots + 0.6) + 0.25
    sentences = _sentences(comparison, profile, pen, full)
    said = [
        (line, GREY if index else BLACK)
        for index, text in enumerate(_said(comparison, profile))
        for line in pen.wrap(text, full)
    ]
    foot = lower + (0.3 + LINE * len(sentences) + 0.2 if sentences else 0.0)
    height = foot + LINE * len(said) + MARGIN
    paper = canvas(pen, width, height)
    named = pen.widest([name for name, _, _ in sentences])
    y = MARGIN
    for line, size, colour in above:
        paper.text(MARGIN, y, line, va="top", **pen.style(size, color=colour))
        y += 1.4 * size * POINT
    _lines(paper, pen, left, left_top)
    if sentences:
        paper.text(MARGIN, lower, "where it is strongest", va="top", **pen.style(TEXT + 1))
        for index, (name, score, text) in enumerate(sentences):
            at = lower + 0.3 + LINE * index
            paper.text(MARGIN, at, name, va="top", **pen.style(color=GREY))
            paper.text(MARGIN + named + 0.4, at, score, va="top", ha="right", **pen.style())
            paper.text(MARGIN + named + 0.5, at, text, va="top", **pen.style())
    _lines(paper, pen, said, foot)
    bars = pen.figure.add_axes(
        ((MARGIN + 0.5) / width, 1 - (top + 0.3 + BARS[1]) / height, BARS[0] / width, BARS[1] / height)
    )
    draw_offsets(bars, pen, comparison, profile)
    axes = pen.figure.add_axes((right / width, 1 - (top + 0.3 + dots) / height, DOTS / width, dots / height))
    draw_measures(axes, pen, comparison, profile)
    paper.set(xlim=(0, width), ylim=(height, 0))


def _lines(paper: Axes, pen: Pen, lines: list[tuple[str, str]], top: float) -> None:
    for index, (line, colour) in enumerate(lines):
        paper.text(MARGIN, top + LINE * index, line, va="top", **pen.style(color=colour))


def _roles(profile: HeadProfile) -> list[tuple[str, str]]:
    """The roles with what they are held against, in lines and their colours."""
    if not profile.roles:
        return [(f"{profile.words}: no measure reaches the threshold of a role", BLACK)]
    said = []
    for role in profile.roles:
        score = f"{role.score:.2f}" + ("" if math.isnan(role.low) else f" ({role.low:.2f} to {role.high:.2f})")
        state = "established" if role.established else f"not established: {visible(reason_of(role))}"
        said.append((f"{visible(role.words)} · {role.measure} {score} · {state}", BLACK))
        against = [f"{one.what} {one.value:.2f}" + (" *" if one.rules_out else "") for one in role.controls]
        if against:
            said.append((f"    held against: {'; '.join(against)}", GREY))
    if any(control.rules_out for role in profile.roles for control in role.controls):
        said.append(("    * could rule the role out", GREY))
    return said


def _alike(comparison: HeadComparison, profile: HeadProfile) -> list[str]:
    """The heads most like it, in a line."""
    near = nearest(comparison, profile.layer, profile.head, 5)
    if not near:
        return []
    heads = ", ".join(f"{other.name} ({far:.3f})" for other, far in near)
    return [f"most like it (mean Jensen-Shannon divergence, nats): {heads}"]


def _sentences(comparison: HeadComparison, profile: HeadProfile, pen: Pen, width: float) -> list[tuple[str, str, str]]:
    """Each measure's name, its score, and the sentence where it is strongest, in a line."""
    names = dict.fromkeys([*(role.measure for role in profile.roles), *strongest_shown(comparison)])
    kept = {name: comparison.examples.get((profile.name, name), ()) for name in names}
    first = {name: several[0] for name, several in kept.items() if several}
    room = width - pen.widest(list(first)) - 0.5
    found = []
    for name, example in first.items():
        (line, *more) = pen.wrap(f"“{visible(example.text)}”", room, TEXT, 2)
        found.append((name, f"{example.score:.2f}", clip(line, len(line) - 1) if more else line))
    return found


def _said(comparison: HeadComparison, profile: HeadProfile) -> list[str]:
    """What stands below: the proof, the measures that are no shares, relations, notes, how to read it."""
    others = []
    for measure in comparison.measures:
        if measure.unit in {"nats", "tokens"}:
            value, low, high = estimate_of(comparison, measure.name, profile)
            if not math.isnan(value):
                ends = "" if math.isnan(low) else f" ({low:.2f} to {high:.2f})"
                others.append(f"{measure.name} {value:.2f} {measure.unit}{ends}")
    relations = [
        f"{visible(one.name)}{' (reversed)' * one.reverse} {one.accuracy:.2f} ({one.low:.2f} to {one.high:.2f})"
        for one in comparison.relations
        if (one.layer, one.head) == (profile.layer, profile.head)
    ]
    how = [f"{CONTROLS_OF_A_HEAD[name]}: {what}" for name, what in HELD.items() if name in comparison.controls]
    return [
        proof(comparison),
        *([" · ".join(others)] if others else []),
        *([f"best of all heads at, on half of the sentences: {', '.join(relations)}"] if relations else []),
        *(note_words(note) for note in comparison.notes),
        *([scored_on(comparison)] if relations and profile.roles else []),
        "; ".join(["layers and heads count from 0", *how, NOT_EXPLANATION]),
    ]


def _texts(comparison: HeadComparison, profile: HeadProfile) -> list[str]:
    """All that the picture says, for its fonts."""
    examples = [
        visible(one.text)
        for (name, _), several in comparison.examples.items()
        if name == profile.name
        for one in several[:1]
    ]
    words = [visible(comparison.model), visible(comparison.corpus), *_said(comparison, profile), "√→–·—“”…"]  # noqa: RUF001
    return [*words, *examples, *(text for text, _ in _roles(profile))]
