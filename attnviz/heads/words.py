"""Texts shared by all views of heads: the model, the sentences, notes, doubts, the receipt."""

from __future__ import annotations

import math

from attnviz.attention import Note
from attnviz.heads.measures import rules_of
from attnviz.heads.record import NO_ROLE, HeadChange, HeadComparison, HeadProfile, Role
from attnviz.heads.roles import CONTROLS
from attnviz.text.display import decimals, visible
from attnviz.text.messages import N_, _, ngettext
from attnviz.text.notes import Templates, sentence, verified

SAMPLES = "sentences shipped with attnviz"  # the name of the default corpus
OWN = "sentences of its own language that it never saw"  # the name of the corpus of a trained home-built model
CORPORA = {
    SAMPLES: N_("Sentences shipped with attnviz"),
    OWN: N_("Sentences of its own language that it never saw"),
}
KINDS = {
    "encoder": N_("bidirectional self-attention"),
    "decoder": N_("causal self-attention"),
    "cross": N_("cross-attention"),
}
MARKS = {True: "●", False: "○"}  # the mark before a role, by whether it is established
MISSING = "—"  # shown for a number that was not measured
CLOSEST = 3  # number of roles named for a head without a role: the closest ones

SENTENCE_TITLE = N_("Heads on one sentence")
ONE_SENTENCE = N_(
    "One sentence shows what each head attends to here. Roles need more sentences: add --roles, "
    "leave the sentence out, or give --corpus."
)
RECEIVES_MOST = N_("The word that receives most of each head's attention")
ESTABLISHED = N_(
    "● Established: the 95% interval of the score reaches the role's threshold and lies above "
    "every control that could rule the role out; ○ not established."
)
HALVES = N_(
    "The heads of a relation are chosen on one half of the sentences and scored on the other."
)
TOO_NARROW = N_(
    "~ The interval is too narrow: on real text, fewer than 92% of such intervals hold the mean."
)
NOT_EXPLANATION = N_(
    "Attention is not explanation: where a head attends does not say what the model makes of it."
)
DIVERGENCE = N_(
    "JSD is the mean Jensen-Shannon divergence between the rows of a head in the two models, in "
    "nats: 0 if they are the same, 0.69 if they share no key."
)

NOTES: Templates = {
    "few_sentences": N_(
        "Different sentences: {different:,}. A role can be established from {fewest} on."
    ),
    "no_random_weights": N_(
        "No role is established, since this model could not be built with random weights: {why}"
    ),
    "nothing_measured": N_("Nothing was measured: every token sees only one token."),
    "sentences_cut": N_("Sentences that were too long for the model and were cut: {n:,}."),
    "bad_lines": N_(
        "Lines that could not be used: {n:,}. The first one is line {line:,}: {reason}"
    ),
    "relations_uncontrolled": N_(
        "Relations between words have no control with random weights, so they make no role."
    ),
    "relations_lost": N_(
        "Relations left out because a word has no token of its own: {n:,} of {total:,}."
    ),
    "relations_in_one_half": N_(
        "Relations left out because only one half of the sentences has them: {n:,}."
    ),
    "relations_of_other_words": N_(
        "Sentences whose relations were not counted, since they are not between queries and keys: "
        "{n:,}."
    ),
}
"""The notes of comparisons, by their codes."""

DOUBTS: Templates = {
    "too_few": N_(
        "too few: {cases:,} cases, in about {sentences} of {different:,} different sentences "
        "(needed: {fewest_cases} in {fewest_sentences} of {fewest_different})"
    ),
    "below_threshold": N_("its interval reaches below the threshold, {least}"),
    "no_control": N_("no control was taken, or on too few sentences ({controls})"),
    "control_does_as_much": N_("{what} scores as much: {value} ({low}–{high})"),
}
"""Why a role is not established, by the codes of `attnviz.heads.roles.doubt`."""
SHORT_DOUBTS = {
    "too_few": N_("too few to say"),
    "below_threshold": N_("interval too low"),
    "no_control": N_("no control"),
}


def rounded(value: float) -> str:
    """Return a number with two decimals and no minus sign before zero; a dash for NaN."""
    return MISSING if math.isnan(value) else decimals(value, 2)


def interval(low: float, high: float, *, narrow: bool = False) -> str:
    """Return an interval as ``0.12–0.34``, after ``~`` if it is too narrow; a dash for NaN."""
    if math.isnan(low + high):
        return MISSING
    return f"{'~' if narrow else ''}{rounded(low)}–{rounded(high)}"


def with_interval(value: float, low: float, high: float, *, narrow: bool = False) -> str:
    """Return a number with its interval, if it has one, as ``0.23 (0.12–0.34)``."""
    ends = interval(low, high, narrow=narrow)
    return rounded(value) if ends == MISSING else f"{rounded(value)} ({ends})"


def count_heads(n: int) -> str:
    """Return a number of heads in words."""
    return ngettext("{n:,} head", "{n:,} heads", n).format(n=n)


def count_layers(n: int) -> str:
    """Return a number of layers in words."""
    return ngettext("{n:,} layer", "{n:,} layers", n).format(n=n)


def count_sentences(n: int) -> str:
    """Return a number of sentences in words."""
    return ngettext("{n:,} sentence", "{n:,} sentences", n).format(n=n)


def count_tokens(n: int) -> str:
    """Return a number of tokens in words."""
    return ngettext("{n:,} token", "{n:,} tokens", n).format(n=n)


def model_names(comparison: HeadComparison) -> str:
    """Return the name of the model, after that of the second model, which stands for before, and an arrow."""
    if comparison.against is None:
        return comparison.model
    return f"{comparison.against.model} → {comparison.model}"


def description(comparison: HeadComparison) -> str:
    """Return the size of the model and its kind of attention."""
    return _("{layers} (downward) x {heads} (across), {kind}").format(
        layers=count_layers(comparison.n_layers),
        heads=count_heads(comparison.n_heads),
        kind=_(KINDS[comparison.kind]),
    )


def sample(comparison: HeadComparison) -> str:
    """Return the name and the size of the corpus."""
    return _("{corpus}: {sentences}, {tokens}").format(
        corpus=_(CORPORA.get(comparison.corpus, comparison.corpus)),
        sentences=count_sentences(comparison.n_sentences),
        tokens=count_tokens(comparison.n_tokens),
    )


def proof(comparison: HeadComparison) -> str:
    """Return the receipt of all sentences, of both models if there are two."""
    largest = max(comparison.differences)
    if comparison.against is not None:
        largest = max(largest, *comparison.against.differences)
    return verified(largest, comparison.proves)


def note_words(note: Note) -> str:
    """Return a note of a comparison as a sentence."""
    return sentence(note, NOTES)


def reason(doubt: Note | None) -> str:
    """Return why a role is not established; empty if it is."""
    if doubt is None:
        return ""
    fields = dict(doubt.fields)
    if "control" in fields:
        fields["what"] = _(CONTROLS[str(fields["control"])].words)
    return _(DOUBTS[doubt.code]).format(**fields)


def short_reason(doubt: Note | None) -> str:
    """Return why a role is not established, in two or three words; empty if it is."""
    if doubt is None:
        return ""
    if doubt.code == "control_does_as_much":
        control = CONTROLS[str(dict(doubt.fields)["control"])]
        return _("{control} too").format(control=_(control.title))
    return _(SHORT_DOUBTS[doubt.code])


def not_established(role: Role) -> str:
    """Return that a role is not established, and why."""
    return _("Not established: {why}").format(why=reason(role.doubt))


def role_name(role: Role | None) -> str:
    """Return the short name of a role, with the reason if it is not established."""
    if role is None:
        return _(NO_ROLE)
    if role.established:
        return _(role.rule.short)
    return f"{_(role.rule.short)} · {short_reason(role.doubt)}"


def marked_role(role: Role | None) -> str:
    """Return the name of a role after its mark."""
    return _(NO_ROLE) if role is None else f"{MARKS[role.established]} {role_name(role)}"


def role_score(role: Role) -> str:
    """Return a role with its score, its interval and what the head does."""
    score = with_interval(role.score, role.low, role.high, narrow=role.narrow)
    return _("{role} {score}: {does}").format(
        role=_(role.rule.short), score=score, does=_(role.rule.words)
    )


def place(profile: HeadProfile) -> str:
    """Return the layer and the number of a head."""
    return _("Layer {layer}, head {head}").format(layer=profile.layer, head=profile.head)


def describe(profile: HeadProfile) -> str:
    """Return the layer and number of a head, and what it does."""
    title = f"{place(profile)}: {profile.words}"
    if profile.role and not profile.role.established:
        return _("{title} (not established)").format(title=title)
    return title


def closest_roles(comparison: HeadComparison, profile: HeadProfile) -> str:
    """Return the roles whose thresholds a head without a role comes closest to."""
    scores = [
        (comparison.estimate(measure.name, *profile.place)[0], rule)
        for measure, rule in rules_of(comparison.measures)
    ]
    measured = [(score, rule) for score, rule in scores if not math.isnan(score)]
    measured.sort(key=lambda pair: -pair[0] / pair[1].threshold)
    roles = [
        _("{role} {score} (threshold {threshold})").format(
            role=_(rule.short), score=rounded(score), threshold=rounded(rule.threshold)
        )
        for score, rule in measured[:CLOSEST]
    ]
    return _("No clear role; closest: {roles}").format(roles=", ".join(roles))


def signs(comparison: HeadComparison) -> str:
    """Return the meaning of the signs of a map, and of the table of roles."""
    n_roles = [len(head.established) for head in comparison.heads]
    texts = [_("·: no established role")] if 0 in n_roles else []
    if max(n_roles) > 1:
        texts.append(_("+1: one more role"))
    if max(n_roles) > 0:
        texts.append(_("intervals lie above the controls"))
    return "; ".join(texts)


def change(second: HeadComparison, of_head: HeadChange) -> str:
    """Return the role of a head in a second model, and how far the head is from the one there."""
    return _("In {second}: {role}; JSD {divergence} nats").format(
        second=second.model,
        role=marked_role(of_head.role),
        divergence=with_interval(of_head.divergence, of_head.low, of_head.high),
    )


def changes(comparison: HeadComparison, second: HeadComparison) -> str:
    """Return how many heads have a different clearest role in the second model."""
    pairs = zip(comparison.heads, second.heads, strict=True)
    n = sum(
        (head.role and head.role.name) != (other.role and other.role.name) for head, other in pairs
    )
    text = _("Heads whose clearest role is another one in {second}: {n:,} of {n_heads:,}.")
    return text.format(n=n, n_heads=len(comparison.heads), second=visible(second.model))


def finding(comparison: HeadComparison) -> str:
    """Return the result in one sentence: what the head with the clearest established role does."""
    if comparison.attention is not None:
        return _("The word that each head attends to most in one sentence")
    established = [
        (role.clearness, head, role) for head in comparison.heads for role in head.established
    ]
    if not established:
        return _("No head has an established role")
    _clearness, head, role = max(established, key=lambda candidate: candidate[0])
    return ngettext(
        "Layer {layer}, head {head} {does} (score {score}); {n:,} of {n_heads:,} heads has an "
        "established role",
        "Layer {layer}, head {head} {does} (score {score}); {n:,} of {n_heads:,} heads have an "
        "established role",
        comparison.n_established,
    ).format(
        layer=head.layer,
        head=head.head,
        does=_(role.rule.words),
        score=rounded(role.score),
        n=comparison.n_established,
        n_heads=len(comparison.heads),
    )
