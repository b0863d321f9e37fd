"""The page of all heads: a map with the table of roles, the card of each head, and a sortable table of all measures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from attnviz.heads import tables, words
from attnviz.heads.measures import GROUPS
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.selection import example_of, received_by_words
from attnviz.look import Look
from attnviz.pages import WebPage
from attnviz.render.columns import Column
from attnviz.render.html import build, palettes, template
from attnviz.text.display import clip, visible
from attnviz.text.messages import _

HERE = Path(__file__).parent
OWN = (HERE / "scripts" / "heads.js", HERE / "scripts" / "heads.css")
LONGEST_WORD = 24  # in the map of words, in characters


def page(comparison: HeadComparison, look: Look) -> WebPage:
    """Return a comparison as one interactive HTML page."""
    is_sentence = comparison.attention is not None
    columns = _columns(comparison)
    rows = zip(*(column.pop("cells") for column in columns), strict=True)
    labels = {
        "columns": [{name: column[name] for name in ("name", "share")} for column in columns],
        "heads": [
            {
                "name": head.name,
                "roles": [] if is_sentence else [role.name for role in head.established],
                "cells": row,
            }
            for head, row in zip(comparison.heads, rows, strict=True)
        ],
        "layers": comparison.n_layers,
        "palette": palettes(),
    }
    marks = [_mark(comparison, head) for head in comparison.heads]
    n = comparison.n_heads
    body = template(HERE / "templates" / "heads.html").render(
        caption=_(words.RECEIVES_MOST) if is_sentence else _("Map of roles"),
        map=[marks[start : start + n] for start in range(0, len(marks), n)],
        roles=[] if is_sentence else tables.overview_table(comparison)[0],
        signs=words.signs(comparison),
        comparison=comparison,
        words=words,
        tables=tables,
        visible=visible,
        example_of=example_of,
        lines=_lines,
        measure_columns=_measure_columns,
        percent=_percent,
        columns=columns,
        notes=list(map(visible, _notes(comparison))),
    )
    colours = "\n".join(
        f".{name} {{ --role: {colour}; }}" for name, (_name, colour) in GROUPS.items()
    )
    return WebPage(
        build(
            _(words.SENTENCE_TITLE) if is_sentence else _("What each head does"),
            [(name, visible(text)) for name, text in _heading(comparison)],
            labels=labels,
            own=OWN,
            theme=look.theme,
            body=body,
            rules=colours,
        )
    )


def _heading(comparison: HeadComparison) -> Iterator[tuple[str, str]]:
    """Yield the lines below the title: the findings, the model, the sentences and the receipt."""
    if comparison.attention is None:
        yield "finding", words.finding(comparison)
    if comparison.against is not None:
        yield "finding", words.changes(comparison, comparison.against)
    yield "model", " · ".join([words.model_names(comparison), words.description(comparison)])
    yield "sample", words.sample(comparison)
    if comparison.attention is not None and comparison.roles_on is None:
        yield "note", _(words.ONE_SENTENCE)
    yield "proof proved", words.proof(comparison)


def _notes(comparison: HeadComparison) -> Iterator[str]:
    """Yield the notes at the foot of the page."""
    if comparison.against is not None:
        yield _(words.DIVERGENCE)
    if comparison.attention is None:
        yield _(words.ESTABLISHED)
    yield _(words.TOO_NARROW)
    yield _(words.NOT_EXPLANATION)
    yield from map(words.note_words, comparison.notes)


def _word(comparison: HeadComparison, head: HeadProfile) -> tuple[str, float]:
    """Return the word of a sentence that receives most of a head's attention, and its share."""
    assert comparison.attention is not None
    received = received_by_words(comparison.attention)[head.place]
    key = int(received.argmax())
    text = visible(comparison.attention.key_tokens[key].text)
    return clip(text, LONGEST_WORD), min(float(received[key]), 1.0)


def _mark(comparison: HeadComparison, head: HeadProfile) -> dict[str, Any]:
    """Return what the map shows of a head: its clearest established role, or its word."""
    if comparison.attention is not None:
        text, share = _word(comparison, head)
        return {"name": head.name, "code": text, "role": None, "words": f"{text} {share:.2f}"}
    role = next(iter(head.established), None)
    text = _(role.rule.words) if role else _("no established role")
    return {"name": head.name, "code": tables.map_code(head), "role": role, "words": visible(text)}


def _columns(comparison: HeadComparison) -> list[dict[str, Any]]:
    """Return the columns of the table of all heads."""
    heads, roles = comparison.heads, [head.role for head in comparison.heads]
    columns = [_column("head", _(tables.HEAD), [head.name for head in heads])]
    if comparison.attention is not None:
        received = [_word(comparison, head) for head in heads]
        columns.append(_column("word", _("word"), [word for word, _share in received]))
        shares = [share for _word, share in received]
        columns.append(_column("share", _("share"), shares, is_text=False, share=True))
    else:
        scores = [role.score if role else math.nan for role in roles]
        score, intervals = tables.score_columns(roles)
        columns += [
            _column("role", _(tables.ROLE), list(map(_role_text, roles))),
            _column("score", score.title, scores, is_text=False),
            _column("interval", intervals.title, intervals.cells, is_text=False),
        ]
    changes = [head.change for head in heads if head.change is not None]
    if changes:
        before = [_role_text(change.role) for change in changes]
        divergences = [change.divergence for change in changes]
        columns.append(_column("divergence", _("JSD"), divergences, is_text=False))
        columns.append(_column("role_before", _("role before"), before))
    for number, measure in enumerate(comparison.measures):
        if measure.offset is None:
            name, title = visible(measure.name), visible(measure.label)
            values = comparison.estimates.value[:, :, number].ravel().tolist()
            about = f"{visible(_(measure.meaning))} ({measure.unit})"
            more = {"about": about, "is_text": False, "share": measure.unit == "share"}
            columns.append(_column(name, title, values, **more))
    return columns


def _column(name: str, title: str, cells: Sequence[str | float], **more: object) -> dict[str, Any]:
    """Return a column with its name in CSV; numbers have six significant digits, or are None if not measured."""
    rounded = [
        cell if isinstance(cell, str) else float(f"{cell:.6g}") if math.isfinite(cell) else None
        for cell in cells
    ]
    usual = {"about": "", "is_text": True, "share": False}
    return {"name": name, "title": title, "cells": rounded, **usual, **more}


def _role_text(role: Role | None) -> str:
    """Return the name of a role after its mark; empty without a role."""
    return visible(words.marked_role(role)) if role else ""


def _lines(comparison: HeadComparison, head: HeadProfile) -> Iterator[str]:
    """Yield the sentences of the card of a head, below its roles."""
    if comparison.attention is not None:
        text, share = _word(comparison, head)
        most = _("The word that receives most of its attention: {word} ({share})")
        yield most.format(word=text, share=f"{share:.2f}")
    elif not head.roles:
        yield words.closest_roles(comparison, head)
    if comparison.against is not None and head.change is not None:
        yield words.change(comparison.against, head.change)


def _measure_columns(comparison: HeadComparison, head: HeadProfile) -> list[Column]:
    """Return the columns of the measures of a head: what each is, its value and its interval."""
    _names, value, interval, *_controls, meaning = tables.measure_table(comparison, head)
    return [meaning, value, interval]


def _percent(value: float) -> float:
    """Return a share as a place on a bar from 0 to 100."""
    return float(f"{100 * min(1.0, max(0.0, value)):.4g}") if math.isfinite(value) else 0.0
