"""The page of all heads: a map, a sortable table, and each head."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from attnviz.heads import tables, words
from attnviz.heads.measures import Measure
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import example_of, received_by_words
from attnviz.look import Look
from attnviz.pages import WebPage
from attnviz.render.html import build, palettes
from attnviz.text.display import clip, visible
from attnviz.text.messages import _

SCRIPTS = Path(__file__).parent / "scripts"
LONGEST_WORD = 24  # in the map of words, in characters
OWN = tuple(SCRIPTS / name for name in ("heads.js", "heads.css"))


def page(comparison: HeadComparison, look: Look) -> WebPage:
    """Return a comparison as one interactive HTML page."""
    measures = [measure for measure in comparison.measures if measure.offset is None]
    record = comparison.attention
    roles: list[Role] = []
    if record is None:
        roles += [role for head in comparison.heads for role in head.roles]
        roles += [head.change.role for head in comparison.heads if head.change and head.change.role]
    title = _("What each head does") if record is None else _(words.SENTENCE_TITLE)
    model = " · ".join([words.model_names(comparison), words.description(comparison)])
    sample, proof = words.sample(comparison), words.proof(comparison)
    has_note = record is not None and comparison.roles_on is None
    labels = {
        "layers": comparison.n_layers,
        "heads": comparison.n_heads,
        "sentence": record is not None,
        "second": comparison.against is not None,
        "notes": list(map(visible, _notes(comparison))),
        "measures": list(map(_measure, measures)),
        "rules": list(map(_rule, {role.rule: role for role in roles}.values())),
        "profiles": [
            _profile(comparison, head, [measure.name for measure in measures])
            for head in comparison.heads
        ],
        "palette": palettes(),
    }
    head = [("model", model), ("sample", sample), ("proof proved", proof)]
    if has_note:
        head.insert(2, ("note", _(words.ONE_SENTENCE)))
    if record is None:
        head.insert(0, ("finding", words.finding(comparison)))
    if comparison.against is not None:
        head.insert(1, ("finding", words.changes(comparison, comparison.against)))
    heading = [(name, visible(text)) for name, text in head]
    return WebPage(
        build(
            title,
            heading,
            labels=labels,
            data=b"",
            own=OWN,
            theme=look.theme,
        )
    )


def _measure(measure: Measure) -> dict[str, Any]:
    """Return the data of one measure for the script of the page."""
    return {
        "name": visible(measure.label),
        "unit": measure.unit,
        "narrow": measure.narrow,
        "words": visible(_(measure.meaning)),
    }


def _rule(role: Role) -> dict[str, Any]:
    """Return the data of a kind of role for the script of the page."""
    rule = role.rule
    return {
        "name": rule.name,
        "code": tables.code(role),
        "short": visible(_(rule.short)),
        "colour": rule.colour,
        "words": visible(_(rule.words)),
    }


def _notes(comparison: HeadComparison) -> list[str]:
    """Return the notes at the foot of the page."""
    notes: list[str] = []
    if comparison.against is not None:
        notes += [_(words.DIVERGENCE), words.changes(comparison, comparison.against)]
    return [
        *notes,
        _(words.TOO_NARROW),
        _(words.NOT_EXPLANATION),
        *map(words.note_words, comparison.notes),
    ]


def _profile(comparison: HeadComparison, head: HeadProfile, measures: list[str]) -> dict[str, Any]:
    """Return the data of one head for the script of the page.

    Of one sentence, it has no roles, but the word that receives most of the head's attention.
    """
    record = comparison.attention
    data: dict[str, Any] = {
        "name": head.name,
        "roles": [_role(comparison, head, role) for role in head.roles] if record is None else [],
        "word": None,
        "change": None,
        "values": [list(map(_number, comparison.estimate(name, *head.place))) for name in measures],
    }
    if record is not None:
        received = received_by_words(record)[head.place]
        key = int(received.argmax())
        data["word"] = {
            "text": clip(visible(record.key_tokens[key].text), LONGEST_WORD),
            "share": _number(min(float(received[key]), 1.0)),
        }
    if head.change is not None:
        change, role = head.change, head.change.role
        data["change"] = {
            "divergence": list(map(_number, (change.divergence, change.low, change.high))),
            "role": role and {"rule": role.name, "sure": role.established},
        }
    return data


def _role(comparison: HeadComparison, head: HeadProfile, role: Role) -> dict[str, Any]:
    """Return the data of one role for the script of the page."""
    example = example_of(comparison, head, role)
    return {
        "rule": role.name,
        "score": _number(role.score),
        "low": _number(role.low),
        "high": _number(role.high),
        "narrow": role.narrow,
        "least": role.rule.threshold,
        "sure": role.established,
        "why": visible(words.how_sure(role)),
        "controls": [
            {
                "words": visible(CONTROLS[control.name].describe(control)),
                "value": _number(control.value),
                "low": _number(control.low),
                "high": _number(control.high),
                "out": control.rules_out,
            }
            for control in role.controls
        ],
        "example": example and {"text": visible(example.text), "score": _number(example.score)},
    }


def _number(value: float) -> float | None:
    """Return a number with six significant digits; None if it was not measured."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
