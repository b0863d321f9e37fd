"""What two models' heads do otherwise as one page: the map of what changed, a table to sort, each head in both."""

from __future__ import annotations

import math
from typing import Any

from attnviz.heads.changes import wording
from attnviz.heads.changes.compare import most_changed, size
from attnviz.heads.changes.record import MOST, Change, Changes, RelationChange
from attnviz.heads.html import OWN, number, rules_of
from attnviz.heads.notes import note_words
from attnviz.heads.wording import narrow, say
from attnviz.render.html import build, palettes
from attnviz.text.display import visible
from attnviz.text.phrase import LANGUAGES


def page(found: Changes, language: str = "en") -> str:
    """What changed as one HTML page to explore, in English or Korean at first; both are in it."""
    measures = [one for one in found.measures if one.offset is None]
    heads = [_head(found, one) for one in LANGUAGES]
    title, about, sample, proof = ([one[at] for one in heads] for at in range(len(heads[0])))
    model = f"{visible(found.before.model)} → {visible(found.after.model)}"
    labels = {
        "lang": language, "layers": found.before.n_layers, "heads": found.before.n_heads, "model": model,
        "about": about,
        "title": title, "sample": sample, "proof": proof, "pattern": found.pattern is not None,
        "caption": [_caption(found, one) for one in LANGUAGES],
        "notes": [_notes(found, one) for one in LANGUAGES], "not": [[narrow(one)] for one in LANGUAGES],
        "measures": [
            {"name": visible(one.label), "unit": one.unit, "narrow": one.narrow,
             "words": [visible(one.say(lang)) for lang in LANGUAGES]}
            for one in measures
        ],
        "rules": rules_of([role for change in found.heads for role in change.roles if role is not None]),
        "profiles": [_change(found, change, [one.name for one in measures]) for change in found.heads],
        "relations": [_relation(one) for one in wording.relations(found)],
        "titles": [_titles(one) for one in LANGUAGES],
        "palette": palettes(),
    }  # fmt: skip
    ko = language == "ko"
    head = [("model", f"{model} · {about[ko]}"), ("sample", sample[ko]), ("proof proved", proof[ko])]
    return build(title[ko], head, labels=labels, data=b"", own=OWN, language=language)


def _head(found: Changes, language: str) -> list[str]:
    """What stands above: the title, what was measured, what changed in a line, and the proofs."""
    names = {"before": found.before.model, "after": found.after.model}
    corpora = "; ".join(wording.corpora_of(found, language, "mapped"))
    said = say("changes_title", language, **names), corpora, wording.finding(found, language)
    return [visible(text) for text in (*said, "; ".join(wording.proofs(found, language)))]


def _caption(found: Changes, language: str) -> str:
    """What the map's colours and frames mean."""
    what = say("pattern_change" if found.pattern is not None else "measure_change", language)
    return f"{say('figure_colour', language, what=what)}; {say('in_a_frame', language)}"


def _notes(found: Changes, language: str) -> list[str]:
    """How to read it, and what to know."""
    chance = wording.by_chance(found, language)
    how = [
        *wording.how_to_read(found, language),
        say("where_from", language),
        say("how_measure", language, chance=chance),
    ]
    return [visible(text) for text in (*how, *(note_words(note, language) for note in found.notes))]


def _change(found: Changes, change: Change, measures: list[str]) -> dict[str, Any]:
    """One head: how far its pattern changed, its roles, and of each measure the difference, its ends and both sides."""
    at = change.before.layer, change.before.head
    largest = max((one.pattern for one in found.heads if one.pattern > 0), default=MOST)
    values = [found.difference(name, *at) for name in measures]
    if found.pattern is not None:
        shown = change.pattern / largest if change.pattern > 0 else 0.0
        text = "" if math.isnan(change.pattern) else f"{change.pattern:.2f}"[1:]
    else:
        one = next(iter(most_changed(found, change, 1)), None)
        shown = 0.0 if one is None else math.copysign(size(one), one.value)
        text = "" if one is None else f"{shown:+.2f}".replace("0.", ".")
    return {
        "name": change.name, "text": text, "size": number(shown), "beyond": change.beyond_nearest,
        "change": [number(one) for one in (change.pattern, change.low, change.high)], "share": number(change.share),
        "moved": change.role_changed, "sure": change.role_established,
        "roles": [
            None if role is None else {"rule": role.name, "score": number(role.score), "sure": role.established}
            for role in change.roles
        ],
        "values": [[number(part) for part in (one.value, one.low, one.high, one.before, one.after)] for one in values],
    }  # fmt: skip


def _titles(language: str) -> list[str]:
    """What the table of relations shows, and its columns."""
    phrases = "relations_changed", "relation", "n", "before", "after", "change", "95 %", "best_head_title"
    return [phrase if phrase in {"n", "95 %"} else say(phrase, language) for phrase in phrases]


def _relation(one: RelationChange) -> dict[str, Any]:
    """A relation between words: how often it is found before and after, and by which head."""
    values = one.before.accuracy, one.after.accuracy, one.value, one.low, one.high
    return {
        "name": visible(one.name), "n": wording.links_of(one), "values": [number(value) for value in values],
        "heads": wording.heads_of(one), "sure": one.established,
    }  # fmt: skip
