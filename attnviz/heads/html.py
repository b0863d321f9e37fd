"""All heads on one page: a map, a table to sort, each head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnviz.heads.measures import Measure
from attnviz.heads.record import HeadChange, HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import example_of
from attnviz.heads.wording import (
    description,
    explain_changes,
    how_sure,
    model_names,
    note_words,
    proof,
    sample,
    say,
)
from attnviz.pages import WebPage
from attnviz.render.html import build, palettes
from attnviz.text.display import visible
from attnviz.text.messages import LANGUAGES, _, both

SCRIPTS = Path(__file__).parent / "scripts"
OWN = tuple(SCRIPTS / name for name in ("heads.js", "heads.css"))


def page(comparison: HeadComparison, lang: str = "en") -> WebPage:
    """A comparison as one HTML page to explore, in English or Korean at first; both are in it."""
    measures = [one for one in comparison.measures if one.offset is None]
    labels = {
        "lang": lang,
        "layers": comparison.n_layers,
        "heads": comparison.n_heads,
        "about": [description(comparison, one) for one in LANGUAGES],
        "model": visible(model_names(comparison)),
        "second": comparison.against is not None,
        "sample": [visible(sample(comparison, one)) for one in LANGUAGES],
        "proof": [proof(comparison, one) for one in LANGUAGES],
        "notes": [
            [visible(note_words(note, one)) for note in comparison.notes] for one in LANGUAGES
        ],
        "measures": _measures(measures),
        "rules": _rules(
            [role for head in comparison.heads for role in head.roles]
            + [head.change.role for head in comparison.heads if head.change and head.change.role]
        ),
        "profiles": [
            {
                "name": head.name,
                "roles": [_role(comparison, head, role) for role in head.roles],
                "change": head.change and _change(head.change),
                "values": [
                    list(map(_number, comparison.estimate(one.name, *head.place)))
                    for one in measures
                ],
            }
            for head in comparison.heads
        ],
        "not": [
            [
                *(visible(text) for text in explain_changes(comparison, one)),
                say("narrow", one),
                say("not_explanation", one),
            ]
            for one in LANGUAGES
        ],
        "palette": palettes(),
        "title": both(_("What each head does")),
    }
    return _built(labels)


def _built(labels: dict[str, Any]) -> WebPage:
    ko = labels["lang"] == "ko"
    title, about, sample, proof = (
        labels[name][ko] for name in ("title", "about", "sample", "proof")
    )
    head = [("model", f"{labels['model']} · {about}"), ("sample", sample), ("proof proved", proof)]
    return WebPage(build(title, head, labels=labels, data=b"", own=OWN, language=labels["lang"]))


def _measures(measures: Sequence[Measure]) -> list[dict[str, object]]:
    return [
        {
            "name": visible(one.label),
            "unit": one.unit,
            "narrow": one.narrow,
            "words": both(one.meaning),
        }
        for one in measures
    ]


def _rules(roles: Sequence[Role]) -> list[dict[str, object]]:
    return [
        {
            "name": rule.name,
            "short": rule.short,
            "sign": rule.sign,
            "colour": rule.colour,
            "words": both(rule.words),
        }
        for rule in dict.fromkeys(role.rule for role in roles)
    ]


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
        "why": [how_sure(role, one) for one in LANGUAGES],
        "controls": [
            {
                "words": both(CONTROLS[one.name].describe(one)),
                "value": _number(one.value),
                "low": _number(one.low),
                "high": _number(one.high),
                "out": one.rules_out,
            }
            for one in role.controls
        ],
        "example": example and {"text": visible(example.text), "score": _number(example.score)},
    }


def _change(change: HeadChange) -> dict[str, Any]:
    role = change.role
    return {
        "divergence": [_number(one) for one in (change.divergence, change.low, change.high)],
        "role": role and {"rule": role.name, "sure": role.established},
    }


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None
