"""What each head does, or what two models' heads do otherwise, as one page: a map, a table to sort, each head."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnviz.heads.changes import wording
from attnviz.heads.changes.compare import change_on_map
from attnviz.heads.changes.record import MOST, Change, Changes, RelationChange
from attnviz.heads.measures import Measure
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.selection import example_of, strongest_of
from attnviz.heads.wording import description, how_sure, note_words, proof, sample, say
from attnviz.pages import WebPage
from attnviz.render.html import build, palettes
from attnviz.text.display import visible
from attnviz.text.phrase import LANGUAGES

SCRIPTS = Path(__file__).parent / "scripts"
OWN = tuple(SCRIPTS / name for name in ("heads.js", "changes.js", "heads.css"))


def page(comparison: HeadComparison, lang: str = "en") -> WebPage:
    """A comparison as one HTML page to explore, in English or Korean at first; both are in it."""
    measures = [one for one in comparison.measures if one.offset is None]
    labels = {
        "lang": lang,
        "layers": comparison.n_layers,
        "heads": comparison.n_heads,
        "about": [description(comparison, one) for one in LANGUAGES],
        "model": visible(comparison.model),
        "sample": [visible(sample(comparison, one)) for one in LANGUAGES],
        "proof": [proof(comparison, one) for one in LANGUAGES],
        "notes": [
            [visible(note_words(note, one)) for note in comparison.notes] for one in LANGUAGES
        ],
        "measures": _measures(measures),
        "rules": _rules([role for head in comparison.heads for role in head.roles]),
        "profiles": [
            {
                "name": head.name,
                "roles": [_role(comparison, head, role) for role in head.roles],
                "values": [
                    list(map(_number, comparison.estimate(one.name, *head.place)))
                    for one in measures
                ],
            }
            for head in comparison.heads
        ],
        "not": [[say("narrow", one), say("not_explanation", one)] for one in LANGUAGES],
        "palette": palettes(),
        "title": ["What each head does", "각 헤드가 하는 일"],
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
            "words": [visible(one.say(lang)) for lang in LANGUAGES],
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
            "words": [rule.say(one) for one in LANGUAGES],
        }
        for rule in dict.fromkeys(role.rule for role in roles)
    ]


def _role(comparison: HeadComparison, head: HeadProfile, role: Role) -> dict[str, Any]:
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
                "words": [CONTROLS[one.name].say(lang, one) for lang in LANGUAGES],
                "value": _number(one.value),
                "low": _number(one.low),
                "high": _number(one.high),
                "out": one.rules_out,
            }
            for one in role.controls
        ],
        "examples": [
            {"text": visible(one.text), "score": _number(one.score)}
            for one in (example_of(comparison, head, role), strongest_of(comparison, head, role))
            if one
        ],
    }


def _number(value: float) -> float | None:
    return float(f"{value:.6g}") if math.isfinite(value) else None


def page_of_changes(found: Changes, lang: str = "en") -> WebPage:
    """What changed as one HTML page to explore, in English or Korean at first; both are in it."""
    measures = [one for one in found.measures if one.offset is None]
    title, about, sample, proof = zip(*(_head(found, one) for one in LANGUAGES), strict=True)
    labels = {
        "lang": lang,
        "layers": found.before.n_layers,
        "heads": found.before.n_heads,
        "model": f"{visible(found.before.model)} → {visible(found.after.model)}",
        "about": about,
        "title": title,
        "sample": sample,
        "proof": proof,
        "pattern": found.pattern is not None,
        "caption": [wording.on_map(found, one) for one in LANGUAGES],
        "notes": [_notes_on(found, one) for one in LANGUAGES],
        "not": [[say("narrow", one)] for one in LANGUAGES],
        "measures": _measures(measures),
        "rules": _rules(
            [role for change in found.heads for role in change.roles if role is not None]
        ),
        "profiles": [
            _change(found, change, [one.name for one in measures]) for change in found.heads
        ],
        "relations": [_relation(one) for one in wording.relations(found)],
        "titles": [
            [
                say("relations_changed", one),
                *(column.title for column in wording.relation_columns((), one)),
            ]
            for one in LANGUAGES
        ],
        "palette": palettes(),
    }
    return _built(labels)


def _head(found: Changes, language: str) -> list[str]:
    names = {"before": found.before.model, "after": found.after.model}
    title, corpora = (
        say("changes_title", language, **names),
        wording.corpora_of(found, language, "mapped"),
    )
    proofs = "; ".join(wording.proofs(found, language))
    return list(map(visible, (title, corpora, wording.finding(found, language), proofs)))


def _notes_on(found: Changes, language: str) -> list[str]:
    how = [*wording.how_to_read(found, language), wording.how_measured(found, language)]
    return [visible(text) for text in (*how, *(note_words(note, language) for note in found.notes))]


def _change(found: Changes, change: Change, measures: list[str]) -> dict[str, Any]:
    largest = max((one.pattern for one in found.heads if one.pattern > 0), default=MOST)
    values = [found.difference(name, *change.before.place) for name in measures]
    shown = change_on_map(found, change)
    if found.pattern is not None:
        text = "" if math.isnan(shown) else f"{shown:.2f}"[1:]
        shown = shown / largest if shown > 0 else 0.0
    else:
        text = f"{shown:+.2f}".replace("0.", ".") if shown else ""
    return {
        "name": change.name,
        "text": text,
        "size": _number(shown),
        "beyond": change.beyond_nearest,
        "change": [_number(one) for one in (change.pattern, change.low, change.high)],
        "share": _number(change.share),
        "moved": change.role_changed,
        "sure": change.role_established,
        "roles": [
            None
            if role is None
            else {"rule": role.name, "score": _number(role.score), "sure": role.established}
            for role in change.roles
        ],
        "values": [
            [_number(part) for part in (one.value, one.low, one.high, one.before, one.after)]
            for one in values
        ],
    }


def _relation(one: RelationChange) -> dict[str, Any]:
    values = one.before.accuracy, one.after.accuracy, one.value, one.low, one.high
    return {
        "name": visible(one.name),
        "n": wording.links_of(one),
        "values": [_number(value) for value in values],
        "heads": wording.heads_of(one),
        "sure": one.established,
    }
