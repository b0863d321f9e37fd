"""The words of every view of heads, in English and in Korean, and what all of them tell: samples, notes, proofs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from attnviz.attention import Note
from attnviz.heads.measures import rules_of
from attnviz.heads.record import HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS, TOO_FEW
from attnviz.heads.selection import HeadRole
from attnviz.text.messages import _, in_language, pgettext
from attnviz.text.notes import Templates, sentence

SAMPLES = "sentences shipped with attnviz"  # what the sentences are called where none are given
TOO_NARROW = "~"  # before an interval that is not to be trusted
MARKS = {True: "●", False: "○"}  # before a role, a relation or a change: whether it is established
OWN = "sentences of its own language that it never saw"  # likewise of a trained home-built model
CLOSEST = 3  # so many roles are named that a head without one comes closest to
ALIKE = 4  # so many of the heads most like one are named
MINOR = {
    "relations_lost",
    "relations_in_one_half",
    "relations_uncounted",
    "relations_of_other_words",
}
"""Notes that stand neither on the first screen nor on the page of a comparison."""

TEXTS: Templates = {
    "layers_heads": _("{n_layers:layer} x {n_heads:head}, {kind}"),
    "mapped": _("{n_layers:layer} (downward) x {n_heads:head} (across), {kind}"),
    "encoder": _("bidirectional self-attention"),
    "decoder": _("causal self-attention"),
    "cross": _("cross-attention"),
    "corpus": _("{corpus}: {n_sentences:sentence}, {n_tokens:token}; special tokens kept"),
    SAMPLES: _(
        "{n_sentences:,} sentences shipped with attnviz, {n_tokens:token}; special tokens kept"
    ),
    OWN: _(
        "{n_sentences:,} sentences of its own language that it never saw, {n_tokens:token}; "
        "special tokens kept"
    ),
    "no_role": _("no clear role"),
    "not_explanation": _(
        "attention is not explanation: where a head looks does not say what the model makes of it"
    ),
    # pictures
    "found": _("A role is established for {n:,} of {n_heads:head}"),
    "found_none": _("No head has an established role ({n_heads:head})"),
    "found_most": _("; most often: {role} ({n:,})"),
    "found_words": _("What each of {n_heads:head} looks at most in one sentence"),
    "of_head": _("head {head}"),
    "heads_from_0": _("head, counted from 0"),
    "layer": _("layer"),
    "n_heads": _("heads"),
    "cards": _("An example of each established role"),
    "cards_unsure": _("An example of each role, none established"),
    "cards_links": _("The strongest links between words, of a head each"),
    "cards_more": _(" ({n:more role} not shown: less clear)"),
    "pattern_axes": _("rows are queries, columns are keys; colour: weight"),
    "no_patterns": _("no patterns: {why}"),
    "no_example": _("no example: it is found in none of the sentences that controls were taken of"),
    "no_example_rows": _("no example: no sentence has {rows} rows that it is counted for"),
    "solid": _(
        "solid: established, the score's 95 % interval lies above all that could rule the role out"
    ),
    "hatched": _("hatched and pale: not established, since {why}"),
    "resampled": _("intervals from resampling sentences"),
    "one_map_colour": _(
        "the word that gets most of each head's weight, special tokens left out; colour: the mean "
        "weight it gets"
    ),
    "head_does": _("Head {head} {role}"),
    "head_may": _("Head {head}, not established: {role}"),
    "head_none": _("Head {head} has no clear role"),
    "measures_title": _("measures with their 95 % intervals, and controls"),
    "this_head": _("this head"),
    "narrow": _("~ too narrow: on real text fewer than 92 of 100 such intervals hold the mean"),
    "count_from_0": _("layers and heads count from 0"),
    # all heads
    "title": _("What each head does · {model}"),
    "role": _("role"),
    "best": _("best"),
    "score": pgettext("heads", "score"),
    "head": _("head"),
    "heads": _("heads, the best first"),
    "meaning": _("what it does"),
    "and_more": _("and {n:,} more"),
    "marks": _(
        "● established: the score's 95 % interval lies above all that could rule the role out; ○ "
        "not established"
    ),
    "marked_so": _(", ? in the map"),
    "because": _("not established: {role}: {why}"),
    "halves": _(
        "a relation's heads are chosen on one half of the sentences and scored on the other"
    ),
    "terms": _("a > b: looks from a to b; {terms}"),
    "to_beat": _("to beat"),
    "to_beat_is": _("; to beat: the highest of these"),
    "at_offset": _("at {n:+d}"),
    "more_roles": _("and {n:,} more, with --table"),
    "relation": _("relation"),
    "right": pgettext("heads", "right"),
    "relations_none": _("relations between words: none of {n:,} is established{few}"),
    "relations_rest": _("{sure:,} of {n:,} relations between words are established{few}"),
    "relations_few": _("; for {n:,} there are too few links to say"),
    "relations_title": _("relations between words, and the head that finds each best"),
    "relations_columns": _(
        "right: how often its largest weight is on the right word; offset: the best fixed one, in "
        "words; rand: the best head of random weights; of both the upper end of the interval; "
        "head, offset and rand are chosen on one half of the sentences and scored on the other"
    ),
    "more": _(
        "more: --table all heads and relations; attnviz head {head} one head; -o heads.csv a file"
    ),
    "more_notes": _("; {n:note} with --table"),
    "sorted": _("sorted by {what}, the largest first"),
    "no_such_role": _("no head has such a role here"),
    "others_hidden": _("{n:other head} not shown"),
    "many_hidden": _(
        "{n:head} with no clear role not shown, since there are more than {most} heads: --role "
        "none shows them, --layer N all of a layer"
    ),
    "columns": _("columns: {controls}"),
    "columns_hidden": _("controls are shown in a window of {cells} cells"),
    "pattern": _(
        "small pattern: mean weight by offset, 0 the token itself, its height the head's largest, "
        "{least} at least"
    ),
    "alike": _("heads that look alike (average linkage of Jensen-Shannon distances)"),
    "cluster": _("cluster {n}"),
    "alone": _("each alone"),
    # lines that every view ends with
    "note": _("note: {text}"),
    "bad_line": _("line {line:,} not used: {reason}"),
    "more_bad": _("{n:more line} not used"),
    "proof": _("verified: max difference {largest} over {n_layers:layer}{all}"),
    "proof_all": _(", all {n:,} sentences"),
    # one head
    "head_title": _("Head {head} · {model}"),
    "place": _("layer {layer}, head {head} of {what}"),
    "no_threshold": _("no clear role: no measure reaches the threshold of a role"),
    "closest": _("closest to one: {roles}"),
    "closest_one": _("{role} {score}, from {threshold} on"),
    "established": _("established: above {controls}"),
    "not_established": _("not established: {why}"),
    "no_controls": _("all controls"),
    "from_on": _("{measure}, a role from {threshold} on"),
    "at_offsets": _("mean weight by offset (0 is the token itself, -1 the one before)"),
    "mean_weights": _("mean weight: {weights}"),
    "most_alike": _("most like it: {heads}"),
    "more_head": _("more: --full all measures, controls and sentences"),
    "held_against": _("held against"),
    "value": pgettext("heads", "value"),
    "could": _("could rule it out"),
    "not_measured": _("its pattern by offset was not measured"),
    "offset": _("offset"),
    "weight": _("weight"),
    "peak": _("largest there"),
    "measure": _("measure"),
    "example": _("typical:"),
    "strongest": _("where it is strongest"),
    "near": _(
        "heads most like it, by mean Jensen-Shannon divergence, in nats (0 to 0.69){cluster}"
    ),
    "in_cluster": _("; {n_others:other} in its cluster, number {n}"),
    "alone_in_cluster": _("; alone in its cluster, number {n}"),
    # one sentence
    "one_title": _("Heads on one sentence · {model}"),
    "one_few": _(
        "one sentence shows what each head looks at here; roles need more sentences: ask for "
        "roles, leave the sentence out, or give a corpus"
    ),
    "one_map": _(
        "the word that gets most of each head's weight, special tokens left out (layers downward, "
        "heads across)"
    ),
    "sorts": _(
        "four sorts of heads, as lectures name them, and the head that is so, established on "
        "{n:sentence}"
    ),
    "sort": _("sort"),
    "sort_none": _("no head does it"),
    "sort_any": _(" in {head}"),
    "sort_links": _("the lecture's link"),
    "one_links": _("the strongest links between words, the strongest of a head each"),
    "from_to": _("from → to"),
    "most": _("gets most"),
    "share": _("share"),
    "top_link": _("strongest link"),
    "more_one": _(
        "more: --table every head; attnviz heatmap with the sentence; -o heads.csv a file"
    ),
    # a second model
    "divergence": _("JSD"),
    "role_after": _("role after"),
    "models": _("{first} → {second}"),
    "roles_moved": _("{n:,} of {n_heads:head} {n:have/has} another clearest role in {second}"),
    "divergence_map": _(
        "how far each head is from the same head in {second}: JSD, the mean Jensen-Shannon "
        "divergence between its rows in the two models, in nats (0 the same, 0.69 no key in "
        "common)"
    ),
    "changed_most": _("the heads that differ most"),
    "in_second": _("in {second}: {role}; JSD {divergence} nats{between}"),
    "proof_both": _("{proof}, in both models"),
    "merged": _("wrote {path}: {n_sentences:sentence}, {n_tokens:token}"),
    # notes
    "text": _("{text}"),
    "one_sentence": _(
        "one sentence{copies}: no interval, so no role is established; from {fewest} different "
        "sentences on one can be"
    ),
    "copies": _(", in {lines:,} lines"),
    "few_sentences": _(
        "{different} different sentences{copies}: too few to say what a head does; {fewest} can "
        "establish a role"
    ),
    "no_random_weights": _(
        "no random weights could be made of this model, so no role is established: {why}"
    ),
    "nothing_measured": _("nothing was measured: no token has more than one token to look at"),
    "sentences_cut": _(
        "{n:sentence} {n:are/is} longer than the model takes: cut, and measured as far as {n:they "
        "go/it goes}"
    ),
    "bad_lines": _("{n:line} could not be used"),
    "relations_uncontrolled": _(
        "no control of random weights was taken of relations between words: they make no role"
    ),
    "relations_lost": _(
        "{n:,} of {total:,} relations between words {n:were/was} left out: a word has no token of "
        "its own"
    ),
    "relations_in_one_half": _(
        "{n:relation} {n:come/comes} up in one half of the sentences only: no head can be chosen "
        "on one half and scored on the other"
    ),
    "relations_uncounted": _(
        "the corpus has more than {most} relations: only the first of them by name were looked "
        "for, {n:,} links were not"
    ),
    "relations_of_other_words": _(
        "{n:sentence} {n:have/has} relations, but between other words than this attention: they "
        "were not looked for"
    ),
    # why a role is not established, by the codes of `attnviz.heads.roles.doubt`
    "too_few_different": _("too few to say: {n:,} of the {fewest} different sentences needed"),
    "too_few_cases": _("too few to say: it comes up {n:,} of the {fewest} times needed"),
    "too_few_sentences": _("too few to say: it comes up in fewer than {fewest} sentences"),
    "below_threshold": _("right in less than {percent} % of the cases"),
    "no_control": _("no control was taken ({controls})"),
    "too_few_for_control": _("too few sentences for an interval of {what}"),
    "control_does_as_much": _("{too} ({value}, {low}–{high})"),
    "few_carry_it": _("few sentences carry it, so its interval is too narrow"),
    # the same in two or three words
    "short_too_few": _("too few to say"),
    "short_below_threshold": _("below {percent} %"),
    "short_no_control": _("no control"),
    "short_few_carry_it": _("few sentences"),
}
"""The phrases, notes and doubts of heads, in English and in Korean."""


class Cells(NamedTuple):
    """A column of a table, as every medium prints it."""

    title: str
    cells: Sequence[str]  # from top to bottom
    right: bool = False  # whether they end at one place, as numbers do


class Count(int):
    """A number that a phrase can write with its noun, ``{n:head}`` as ``1 head``, and choose by, ``{n:are/is}``."""

    def __format__(self, spec: str) -> str:
        many, _, one = spec.partition("/")
        if one:
            return one if self == 1 else many
        return plural(self, spec) if spec.replace(" ", "").isalpha() else super().__format__(spec)


def _counted(fields: Mapping[str, object]) -> dict[str, Any]:
    return {
        name: Count(value) if isinstance(value, int) else value for name, value in fields.items()
    }


def say(phrase: str, /, language: str = "en", **fields: object) -> str:
    """One of `TEXTS` in a language; a phrase that it lacks as it is."""
    if phrase not in TEXTS:
        return phrase
    return in_language(TEXTS[phrase].format(**_counted(fields)), language)


def rounded(value: float, digits: int = 2) -> str:
    """A number with so many decimals; 0 has no sign."""
    text = f"{value:.{digits}f}"
    return text if text.strip("-0.") else text.removeprefix("-")


def ends(low: float, high: float, digits: int = 2, *, narrow: bool = False) -> str:
    """An interval as ``0.12–0.34``, marked where it is not to be trusted; empty where there is none."""
    shown = f"{TOO_NARROW if narrow else ''}{rounded(low, digits)}–{rounded(high, digits)}"
    return "" if math.isnan(low + high) else shown


def plural(n: int, what: str) -> str:
    """As ``1 head`` or ``1,024 heads``."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def role_columns(rows: Sequence[Sequence[HeadRole]], language: str = "en") -> list[Cells]:
    """The table of the roles of a model, as `attnviz.heads.selection.by_role` groups its heads."""
    best = [row[0] for row in rows]
    roles = [role for _, role in best]
    return [
        Cells(
            say("role", language),
            [role.rule.short if role else say("no_role", language) for role in roles],
        ),
        Cells(say("n_heads", language), [f"{len(row):,}" for row in rows], right=True),
        Cells(say("best", language), [head.name if role else "" for head, role in best]),
        Cells(
            say("score", language),
            [f"{role.score:.2f}" if role else "" for role in roles],
            right=True,
        ),
        Cells(
            "95 %",
            [ends(role.low, role.high, narrow=role.narrow) if role else "" for role in roles],
        ),
        Cells(
            say("meaning", language),
            [in_language(role.rule.words, language) if role else "" for role in roles],
        ),
    ]


def model_names(comparison: HeadComparison) -> str:
    """The model, and behind an arrow the second one, if there is one."""
    if comparison.against is None:
        return comparison.model
    return say("models", first=comparison.model, second=comparison.against.model)


def roles_moved(comparison: HeadComparison, language: str = "en") -> str:
    """How many heads have another clearest role in the second model; empty without one."""
    if comparison.against is None:
        return ""
    pairs = zip(comparison.heads, comparison.against.heads, strict=True)
    n = sum(
        (one.role and one.role.name) != (other.role and other.role.name) for one, other in pairs
    )
    names = {"n_heads": len(comparison.heads), "second": comparison.against.model}
    return say("roles_moved", language, n=n, **names)


def explain_changes(comparison: HeadComparison, language: str = "en") -> list[str]:
    """Explain the numbers of a second model; nothing without one."""
    if comparison.against is None:
        return []
    explained = say("divergence_map", language, second=comparison.against.model)
    return [explained, roles_moved(comparison, language)]


def change_columns(comparison: HeadComparison, most: int, language: str = "en") -> list[Cells]:
    """The table of the heads that differ most from those of the second model, as every medium prints it."""
    there = [
        (head, change)
        for head in comparison.heads
        if (change := head.change) is not None and not math.isnan(change.divergence)
    ]
    shown = sorted(there, key=lambda one: -one[1].divergence)[:most]
    return [
        Cells(say("head", language), [head.name for head, _ in shown]),
        Cells(
            say("divergence", language),
            [rounded(change.divergence) for _, change in shown],
            right=True,
        ),
        Cells("95 %", [ends(change.low, change.high) for _, change in shown]),
        Cells(say("role", language), [marked_role(head.role, language) for head, _ in shown]),
        Cells(
            say("role_after", language), [marked_role(change.role, language) for _, change in shown]
        ),
    ]


def marked_role(role: Role | None, language: str = "en") -> str:
    """The short name of a role behind its mark, or that there is none."""
    return (
        say("no_role", language) if role is None else f"{MARKS[role.established]} {role.rule.short}"
    )


def role_words(role: Role | None, language: str = "en") -> str:
    """Describe the role of a head, or say that it has none."""
    return say("no_role", language) if role is None else in_language(role.rule.words, language)


def role_score(role: Role, language: str = "en") -> str:
    """A role with its score, its interval where there is one, and what the head does."""
    between = ends(role.low, role.high, narrow=role.narrow)
    words = in_language(role.rule.words, language)
    return f"{role.rule.short} {rounded(role.score)}{between and f' ({between})'}: {words}"


def list_alike(comparison: HeadComparison, profile: HeadProfile, language: str = "en") -> str:
    """The heads most like one, with what they do; empty where heads were not compared."""
    near = [
        f"{other.name} ({other.role.rule.short if other.role else say('no_role', language)})"
        for other, _ in comparison.nearest(profile, ALIKE)
    ]
    return say("most_alike", language, heads=", ".join(near)) if near else ""


def description(
    comparison: HeadComparison, language: str = "en", phrase: str = "layers_heads"
) -> str:
    """Describe the model, as ``6 layers x 12 heads, bidirectional self-attention``; ``mapped`` says what is where."""
    fields = {
        "n_layers": comparison.n_layers,
        "n_heads": comparison.n_heads,
        "kind": say(comparison.kind, language),
    }
    return say(phrase, language, **fields)


def sample(comparison: HeadComparison, language: str = "en") -> str:
    """Describe the sentences, as ``sample sentences: 117 sentences, 1,545 tokens; special tokens kept``."""
    return say(
        comparison.corpus if comparison.corpus in {SAMPLES, OWN} else "corpus",
        language,
        corpus=comparison.corpus,
        n_sentences=comparison.n_sentences,
        n_tokens=comparison.n_tokens,
    )


def why_not(doubt: Note | None, language: str = "en") -> str:
    """Why a role is not established, in a few words; empty where it is."""
    if doubt is None:
        return ""
    fields = dict(doubt.fields)
    if doubt.code == "control_does_as_much":
        return in_language(CONTROLS[str(fields["control"])].too_briefly, language)
    code = "too_few" if doubt.code in TOO_FEW else doubt.code
    if f"short_{code}" not in TEXTS:
        return reason_of(doubt, language)
    return say(f"short_{code}", language, **fields)


def reason_of(doubt: Note | None, language: str = "en", *, brief: bool = False) -> str:
    """Why a role is not established, in a line, with the control's interval unless brief; empty where it is."""
    if doubt is None:
        return ""
    fields = dict(doubt.fields)
    if (control := CONTROLS.get(str(fields.get("control")))) is not None:
        if brief and "value" in fields:
            return in_language(control.too, language)
        return say(doubt.code, language, **fields, what=control.words, too=control.too)
    return in_language(sentence(doubt, TEXTS), language)


def how_sure(role: Role, language: str = "en") -> str:
    """Whether a role is established, and the controls that decide it, each with its interval."""
    if not role.established:
        return say("not_established", language, why=reason_of(role.doubt, language))
    controls = "; ".join(
        f"{in_language(CONTROLS[one.name].describe(one), language)} {one.value:.2f} ({one.low:.2f}–{one.high:.2f})"
        for one in role.controls
        if one.rules_out
    )
    return say("established", language, controls=controls or say("no_controls", language))


def doubts(heads: Sequence[HeadProfile], language: str = "en") -> str:
    """Why the clearest roles of some heads are not established, and of how many; empty where all are."""
    unsure = [head.role.doubt for head in heads if head.role and not head.role.established]
    if len(set(unsure)) == 1:
        return reason_of(unsure[0], language)
    found = Counter(reason_of(doubt, language, brief=True) for doubt in unsure)
    return "; ".join(
        f"{why} ({plural(n, 'head')})" if len(found) > 1 else why for why, n in found.most_common()
    )


def proof(comparison: HeadComparison, language: str = "en") -> str:
    """Return the proof that the numbers are the model's own, in a line."""
    largest, n = max(comparison.differences), comparison.n_sentences
    if comparison.against is not None:
        largest = max(largest, *comparison.against.differences)
    every = say("proof_all", language, n=n) if n != 1 else ""
    shown = f"{largest:.1e}" if largest else "0"
    line = say("proof", language, largest=shown, n_layers=len(comparison.differences), all=every)
    return line if comparison.against is None else say("proof_both", language, proof=line)


def note_words(note: Note, language: str = "en") -> str:
    """A note of a comparison in a sentence."""
    code, fields = note.code, _counted(dict(note.fields))
    if code == "few_sentences":
        code = "one_sentence" if fields["different"] == 1 else code
        fields["copies"] = (
            "" if fields["different"] == fields["lines"] else say("copies", language, **fields)
        )
    return in_language(sentence(Note.of(code, **fields), TEXTS), language)


def closest_roles(comparison: HeadComparison, profile: HeadProfile, language: str = "en") -> str:
    """The roles that a head without one comes closest to, with how much they ask for; empty where none was measured."""
    found = [
        (value / rule.threshold, rule, value)
        for measure, rule in rules_of(comparison.measures)
        if (value := comparison.estimate(measure.name, *profile.place)[0]) == value
    ]
    best = [
        say(
            "closest_one",
            language,
            role=rule.short,
            score=f"{value:.2f}",
            threshold=f"{rule.threshold:.2f}",
        )
        for _, rule, value in sorted(found, key=lambda one: -one[0])[:CLOSEST]
    ]
    return say("closest", language, roles=", ".join(best)) if best else ""
