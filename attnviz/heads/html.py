"""All heads on one page: a map, a table to sort, each head."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from attnviz.heads import words
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import example_of
from attnviz.pages import WebPage
from attnviz.render.html import build, palettes
from attnviz.text.display import visible
from attnviz.text.messages import _, both, in_language, join_phrases

SCRIPTS = Path(__file__).parent / "scripts"
OWN = tuple(SCRIPTS / name for name in ("heads.js", "heads.css"))


def page(comparison: HeadComparison, lang: str = "en") -> WebPage:
    """A comparison as one HTML page to explore, in English or Korean at first; both are in it."""
    measures = [one for one in comparison.measures if one.offset is None]
    roles = [role for head in comparison.heads for role in head.roles]
    roles += [head.change.role for head in comparison.heads if head.change and head.change.role]
    title = _("What each head does")
    model = join_phrases([words.model_names(comparison), words.description(comparison)], " · ")
    sample, proof = words.sample(comparison), words.proof(comparison)
    labels = {
        "lang": lang,
        "layers": comparison.n_layers,
        "heads": comparison.n_heads,
        "title": _pair(title),
        "model": _pair(model),
        "sample": _pair(sample),
        "proof": _pair(proof),
        "second": comparison.against is not None,
        "notes": list(map(_pair, _notes(comparison))),
        "measures": [
            {
                "name": visible(one.label),
                "unit": one.unit,
                "narrow": one.narrow,
                "words": _pair(one.meaning),
            }
            for one in measures
        ],
        "rules": [
            {
                "name": rule.name,
                "short": rule.short,
                "sign": rule.sign,
                "colour": rule.colour,
                "words": _pair(rule.words),
            }
            for rule in dict.fromkeys(role.rule for role in roles)
        ],
        "profiles": [
            _profile(comparison, head, [one.name for one in measures]) for head in comparison.heads
        ],
        "palette": palettes(),
    }
    head = [("model", model), ("sample", sample), ("proof proved", proof)]
    shown = [(name, visible(in_language(text, lang))) for name, text in head]
    return WebPage(
        build(in_language(title, lang), shown, labels=labels, data=b"", own=OWN, language=lang)
    )


def _pair(text: str) -> list[str]:
    """Return a text in English and Korean, with what a page would obey spelled out."""
    return list(map(visible, both(text)))


def _notes(comparison: HeadComparison) -> list[str]:
    notes: list[str] = []
    if comparison.against is not None:
        notes += [words.DIVERGENCE, words.changes(comparison, comparison.against)]
    return [
        *notes,
        words.TOO_NARROW,
        words.NOT_EXPLANATION,
        *map(words.note_words, comparison.notes),
    ]


def _profile(comparison: HeadComparison, head: HeadProfile, measures: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": head.name,
        "roles": [_role(comparison, head, role) for role in head.roles],
        "change": None,
        "values": [list(map(_number, comparison.estimate(name, *head.place))) for name in measures],
    }
    if head.change is not None:
        change, role = head.change, head.change.role
        found["change"] = {
            "divergence": list(map(_number, (change.divergence, change.low, change.high))),
            "role": role and {"rule": role.name, "sure": role.established},
        }
    return found


def _role(comparison: HeadComparison, head: HeadProfile, role: Role) -> dict[str, Any]:
    example = example_of(comparison, head, role)
    return {
        "rule": role.name,
        "score": _number(role.score),
        "low": _number(role.low),
        "high": _number(role.high),
        "narrow": role.narrow,
        "least": role.rule.threshold,
        "sure": role.established,
        "why": _pair(words.how_sure(role)),
        "controls": [
            {
                "words": _pair(CONTROLS[one.name].describe(one)),
                "value": _number(one.value),
                "low": _number(one.low),
                "high": _number(one.high),
                "out": one.rules_out,
            }
            for one in role.controls
        ],
        "example": example and {"text": visible(example.text), "score": _number(example.score)},
    }


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
