"""What each head does as one page: the map of roles, a table to sort, and of each head how sure its roles are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnviz.heads.notes import how_sure, note_words, proof
from attnviz.heads.record import Example, HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import example_of, strongest_of
from attnviz.heads.wording import described, narrow, sample, say
from attnviz.render.html import build, palettes
from attnviz.text.display import visible
from attnviz.text.phrase import LANGUAGES

SCRIPTS = Path(__file__).parent / "scripts"
OWN = tuple(SCRIPTS / name for name in ("heads.js", "changes.js", "heads.css"))


def page(comparison: HeadComparison, language: str = "en") -> str:
    """A comparison as one HTML page to explore, in English or Korean at first; both are in it."""
    measures = [one for one in comparison.measures if one.offset is None]
    about = [described(comparison, one) for one in LANGUAGES]
    labels = {
        "lang": language, "layers": comparison.n_layers, "heads": comparison.n_heads, "about": about,
        "model": visible(comparison.model), "sample": [visible(sample(comparison, one)) for one in LANGUAGES],
        "proof": [proof(comparison, one) for one in LANGUAGES],
        "notes": [[visible(note_words(note, one)) for note in comparison.notes] for one in LANGUAGES],
        "measures": [
            {"name": visible(one.label), "unit": one.unit, "narrow": one.narrow,
             "words": [visible(one.say(lang)) for lang in LANGUAGES]}
            for one in measures
        ],
        "rules": rules_of([role for head in comparison.heads for role in head.roles]),
        "profiles": [_profile(comparison, head, [comparison.names.index(one.name) for one in measures])
                     for head in comparison.heads],
        "not": [[narrow(one), say("not_explanation", one)] for one in LANGUAGES],
        "palette": palettes(),
    }  # fmt: skip
    ko = language == "ko"
    head = [("model", f"{visible(comparison.model)} · {about[ko]}"), ("sample", visible(sample(comparison, language)))]
    title = ("What each head does", "각 헤드가 하는 일")
    return build(
        title[ko], [*head, ("proof proved", proof(comparison, language))], labels=labels | {"title": title}, data=b"",
        own=OWN, language=language,
    )  # fmt: skip


def rules_of(roles: Sequence[Role]) -> list[dict[str, object]]:
    """What roles mean, and how they are drawn, each once."""
    return [
        {"name": rule.name, "short": rule.short, "sign": rule.sign, "colour": rule.colour,
         "words": [rule.say(one) for one in LANGUAGES]}
        for rule in dict.fromkeys(role.rule for role in roles)
    ]  # fmt: skip


def _profile(comparison: HeadComparison, head: HeadProfile, chosen: list[int]) -> dict[str, Any]:
    """One head: its roles, the clearest first, and each measure with its interval."""
    estimates = comparison.estimates
    values = (estimates.value, estimates.low, estimates.high)
    return {
        "name": head.name,
        "roles": [_role(comparison, head, role) for role in head.roles],
        "values": [[number(part[head.layer, head.head, at]) for part in values] for at in chosen],
    }


def _role(comparison: HeadComparison, head: HeadProfile, role: Role) -> dict[str, Any]:
    return {
        "rule": role.name, "score": number(role.score), "low": number(role.low), "high": number(role.high),
        "narrow": role.narrow, "least": role.rule.threshold, "sure": role.established,
        "why": [how_sure(role, one) for one in LANGUAGES],
        "controls": [
            {"words": [CONTROLS[one.name].say(lang, one) for lang in LANGUAGES], "value": number(one.value),
             "low": number(one.low), "high": number(one.high), "out": one.rules_out}
            for one in role.controls
        ],
        "examples": [
            _example(one) for one in (example_of(comparison, head, role), strongest_of(comparison, head, role)) if one
        ],
    }  # fmt: skip


def _example(example: Example) -> dict[str, object]:
    return {"text": visible(example.text), "score": number(example.score)}


def number(value: float) -> float | None:
    """A number as it is measured, in 6 digits; None where there is none."""
    return float(f"{value:.6g}") if math.isfinite(value) else None
