"""Notes, proofs and doubts of heads in words: everywhere else they are data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from attnviz.attention import Note
from attnviz.heads.measures import (
    OFFSET,
    SHUFFLED,
    UNTRAINED,
)
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.text.notes import Templates, sentence


def counted(n: int, what: str) -> str:
    """As ``1 head`` or ``1,024 heads``."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


TOO_FEW, NO_CONTROL = "too few sentences", "no control"
DOUBTS = {
    TOO_FEW: "there are too few sentences for an interval",
    NO_CONTROL: "no control was taken",
    "shuffled too": "shuffled tokens do as much",
    "random weights too": "random weights do as much",
    "an offset too": "a fixed offset does as much",
    "chance too": "chance does as much",
}
"""Why a role is not established, as tables tell it and in whole words."""
_TOO = {SHUFFLED: "shuffled too", UNTRAINED: "random weights too", OFFSET: "an offset too"}


def why_not(role: Role) -> str:
    """Why a role is not established, in two or three words; empty where it is."""
    if role.established:
        return ""
    deciding = [control for control in role.controls if control.rules_out]
    if math.isnan(role.low) or any(math.isnan(control.high) for control in deciding):
        return TOO_FEW
    for control in deciding:
        if not role.low > control.high:
            return _TOO.get(control.name, f"{control.name} too")
    return NO_CONTROL if role.doubt is not None and role.doubt.code == "no_control" else reason_of(role)


def reason_of(role: Role) -> str:
    """Why a role is not established, in a line; empty where it is."""
    if role.doubt is None:
        return ""
    fields = dict(role.doubt.fields)
    control = next((one for one in role.controls if one.name == fields.get("control")), None)
    match role.doubt.code:
        case "too_few_sentences":
            return "too few sentences for an interval"
        case "no_control":
            return f"no control was taken ({fields['controls']})"
        case "too_few_for_control" if control is not None:
            return f"too few sentences for an interval of {control.what}"
        case "control_does_as_much" if control is not None:
            return f"{control.what} does as much ({control.value:.2f})"
        case _:
            return note_words(role.doubt)


def doubts(heads: Sequence[HeadProfile]) -> str:
    """Why the clearest roles of some heads are not established, and of how many; empty where all are."""
    first = [head.roles[0] for head in heads if head.roles]
    found = Counter(why_not(role) for role in first if not role.established)
    if len(found) == 1:
        return "".join(DOUBTS.get(why, why) for why in found)
    return ", or ".join(f"{DOUBTS.get(why, why)} ({counted(n, 'head')})" for why, n in found.most_common())


def proof(comparison: HeadComparison) -> str:
    """That the numbers are proved to be the model's own, in a line."""
    layers, largest, n = len(comparison.differences), max(comparison.differences), comparison.n_sentences
    over = f"over {counted(layers, 'layer')}" + (f", all {n:,} sentences" if n != 1 else "")
    return f"verified: max difference {f'{largest:.1e}' if largest else '0'} {over}"


def note_words(note: Note) -> str:
    """A note of a comparison, or of two models, in a sentence."""
    fields = dict(note.fields)
    if note.code == "few_sentences":
        return _few_sentences(int(fields["different"]), int(fields["lines"]))
    if note.code in SINGULARS and fields["n"] == 1:
        return SINGULARS[note.code].format(**fields)
    return sentence(note, templates=TEMPLATES)


def _few_sentences(different: int, lines: int) -> str:
    times = "" if different == lines else f", in {lines:,} lines"
    if different == 1:
        return f"one sentence{times}: no interval, so no role is established"
    return f"{different} different sentences{times}: intervals from so few are too narrow"


TEMPLATES: Templates = {
    code: (text, text)
    for code, text in {
        "text": "{text}",
        "nothing_measured": "nothing was measured: no token has more than one token to look at",
        "specials_excluded": (
            "special tokens left out: what remains of each row sums to 1 again, as if they were masked"
        ),
        "sentences_cut": ("{n:,} sentences are longer than the model takes: cut, and measured as far as they go"),
        "bad_lines": "{n:,} lines could not be used",
        "relations_uncontrolled": (
            "no control of random weights was taken of relations between words: they make no role"
        ),
        "relations_lost": ("{n:,} of {total:,} relations between words were left out: a word has no token of its own"),
        "relations_in_one_half": (
            "{n:,} relations come up in one half of the sentences only: no head can be chosen on one half and scored "
            "on the other"
        ),
        "relations_uncounted": (
            "the corpus has more than {most} relations: only the first of them by name were looked for, {n:,} links "
            "were not"
        ),
        "relations_of_other_words": (
            "{n:,} sentences have relations, but between other words than this attention: they were not looked for"
        ),
        "saved_numbers": "saved numbers were compared: roles and measures, no patterns, for which both models are run",
        "other_sentences": (
            "not the same sentences: a difference is that of the models and of the sentences, and the intervals are "
            "not paired"
        ),
        "paired": "both were measured on the same sentences: the intervals of differences are paired",
    }.items()
}
"""The notes of heads, by their codes."""
SINGULARS = {
    "sentences_cut": "1 sentence is longer than the model takes: cut, and measured as far as it goes",
    "bad_lines": "1 line could not be used",
    "relations_in_one_half": (
        "1 relation comes up in one half of the sentences only: no head can be chosen on one half and scored on the "
        "other"
    ),
    "relations_of_other_words": (
        "1 sentence has relations, but between other words than this attention: they were not looked for"
    ),
}
"""Those that are otherwise of one thing."""
