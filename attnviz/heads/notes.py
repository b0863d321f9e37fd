"""Notes, proofs and doubts of heads in words: everywhere else they are data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from attnviz.attention import Note
from attnviz.heads.measures import rules_of
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.heads.wording import TEXTS, counted, say
from attnviz.text.notes import sentence

CLOSEST = 3
"""So many roles are named that a head without one comes closest to."""


def why_not(doubt: Note | None, language: str = "en") -> str:
    """Why a role is not established, in a few words; empty where it is."""
    if doubt is None:
        return ""
    code = "too_few" if doubt.code.startswith("too_few") else doubt.code
    if f"short_{code}" not in TEXTS:
        return reason_of(doubt, language)
    fields = dict(doubt.fields)
    if code == "control_does_as_much":
        kind = CONTROLS[str(fields["control"])]
        fields |= {"title": kind.titles[1], "too": kind.too[1]}
    return say(f"short_{code}", language, **fields)


def reason_of(doubt: Note | None, language: str = "en", *, brief: bool = False) -> str:
    """Why a role is not established, in a line, with the control's interval unless brief; empty where it is."""
    if doubt is None:
        return ""
    fields = dict(doubt.fields)
    if (control := CONTROLS.get(str(fields.get("control")))) is not None:
        ko = language == "ko"
        if brief and "value" in fields:
            return control.too[ko]
        return say(doubt.code, language, **fields, what=control.words[ko], too=control.too[ko])
    return sentence(doubt, language, TEXTS)


def how_sure(role: Role, language: str = "en") -> str:
    """Whether a role is established, and the controls that decide it, each with its interval."""
    if not role.established:
        return say("not_established", language, why=reason_of(role.doubt, language))
    controls = "; ".join(
        f"{CONTROLS[one.name].say(language, one)} {one.value:.2f} ({one.low:.2f}–{one.high:.2f})"  # noqa: RUF001
        for one in role.controls
        if one.rules_out
    )
    return say("established", language, controls=controls or say("no_controls", language))


def doubts(heads: Sequence[HeadProfile], language: str = "en") -> str:
    """Why the clearest roles of some heads are not established, and of how many; empty where all are."""
    unsure = [head.roles[0].doubt for head in heads if head.roles and not head.roles[0].established]
    if len(set(unsure)) == 1:
        return reason_of(unsure[0], language)
    found = Counter(reason_of(doubt, language, brief=True) for doubt in unsure)
    return "; ".join(f"{why} ({counted(n, 'head')})" if len(found) > 1 else why for why, n in found.most_common())


def proof(comparison: HeadComparison, language: str = "en") -> str:
    """That the numbers are proved to be the model's own, in a line."""
    n_layers, largest, n = len(comparison.differences), max(comparison.differences), comparison.n_sentences
    every = say("proof_all", language, n=n) if n != 1 else ""
    return say(
        "proof", language, largest=f"{largest:.1e}" if largest else "0", layers=counted(n_layers, "layer"),
        n_layers=n_layers, all=every,
    )  # fmt: skip


def note_words(note: Note, language: str = "en") -> str:
    """A note of a comparison, or of two models, in a sentence."""
    fields = dict(note.fields)
    if note.code == "few_sentences":
        copies = (", in {lines:,} lines", " ({lines:,}줄에 되풀이됨)")[language == "ko"].format(**fields)
        code = "one_sentence" if fields["different"] == 1 else "few_sentences"
        note = Note.of(code, **fields, copies="" if fields["different"] == fields["lines"] else copies)
    elif fields.get("n") == 1 and f"{note.code}_of_one" in TEXTS:
        note = Note.of(f"{note.code}_of_one", **fields)
    return sentence(note, language, TEXTS)


def closest_roles(comparison: HeadComparison, profile: HeadProfile, language: str = "en") -> str:
    """The roles that a head without one comes closest to, with how much they ask for; empty where none was measured."""
    at = profile.layer, profile.head
    found = [
        (value / rule.threshold, rule, value)
        for measure, rule in rules_of(comparison.measures)
        if (value := comparison.estimate(measure.name, *at)[0]) == value
    ]
    best = [
        say("closest_one", language, role=rule.short, score=f"{value:.2f}", threshold=f"{rule.threshold:.2f}")
        for _, rule, value in sorted(found, key=lambda one: -one[0])[:CLOSEST]
    ]
    return say("closest", language, roles=", ".join(best)) if best else ""


MINOR = {"few_carry", "relations_lost", "relations_in_one_half", "relations_uncounted", "relations_of_other_words"}
"""Notes that stand neither on the first screen nor on the page of a comparison."""
