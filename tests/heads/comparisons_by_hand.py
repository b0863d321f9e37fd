"""Comparisons of heads made by hand: every number comes from a formula, the same on every machine."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from attnviz.attention import Attention, Note
from attnviz.heads.measures import GROUPS, measures_of, rules_of
from attnviz.heads.record import (
    Control,
    Estimates,
    Example,
    HeadChange,
    HeadComparison,
    HeadProfile,
    Relation,
    Role,
)
from attnviz.heads.relations import rule_of

TAKEN = measures_of()
NARROW = {one.name for one in TAKEN if one.narrow}
NAMES = tuple(one.name for one in TAKEN)
SHARES = tuple(one.name for one in TAKEN if one.takes == "keys" and one.offset is None)
RULES = {
    rule.name: rule
    for rule in (
        *(rule for _, rule in rules_of(TAKEN)),
        rule_of("nsubj", reverse=False),
        rule_of("nsubj", reverse=True),
        rule_of("nmod:poss", reverse=True),
    )
}
"""The roles that heads made by hand may have."""
COLOURS = {group: colour for group, (_name, colour) in GROUPS.items()}
"""The colours of roles, by their groups."""
KOREAN = "나는 너희 모두를 사랑해"
ROLES = (
    ("previous", "previous", True),
    ("broad", "entropy_share", False),
    None,
    ("first", "first", True),
    ("offset_-2", "peak_-2", True),
    ("induction", "induction", False),
)
"""Of the heads one after another, and again from the start: name, measure, whether it is established."""
OTHERS = (
    ("self", "self", True),
    ("next", "next", True),
    ("separator", "separator", False),
    ("punctuation", "punctuation", True),
    ("same_word", "same_word", True),
    ("relation_nsubj", "relation_nsubj", True),
    ("relation_nmod:poss_reversed", "relation_nmod:poss_reversed", True),
)
SUBJECT, REFERENT = rule_of("nsubj", reverse=False), rule_of("coreference", reverse=True)
RELATIONS = (
    Relation(
        name="nsubj",
        n=1234,
        layer=0,
        head=1,
        reverse=False,
        role=Role(
            rule=SUBJECT,
            measure=SUBJECT.name,
            score=0.81,
            low=0.76,
            high=0.86,
            controls=(
                Control(name="offset", value=0.55, low=0.5, high=0.6, rules_out=True, offset=1),
                Control(name="untrained", value=0.2, low=math.nan, high=0.25, rules_out=True),
            ),
        ),
    ),
    Relation(
        name="coreference",
        n=45,
        layer=1,
        head=2,
        reverse=True,
        role=Role(
            rule=REFERENT,
            measure=REFERENT.name,
            score=0.6,
            low=0.55,
            high=0.65,
            controls=(
                Control(name="offset", value=0.58, low=0.5, high=0.66, rules_out=True, offset=-6),
            ),
            doubt=Note.of("no_control", controls="untrained"),
        ),
    ),
)


def estimate(n_layers: int, n_heads: int, seed: int) -> Estimates:
    """Values between 0.05 and 0.95 with intervals of 0.04; where the words are never repeated there is no number."""
    layer, head, measure = np.indices((n_layers, n_heads, len(NAMES)))
    value = 0.05 + ((3 + seed + 7 * layer + 11 * head + 5 * measure + layer * head) % 19) / 20
    value[:, :, NAMES.index("same_word")] = np.nan
    return Estimates(value=value, low=value - 0.02, high=value + 0.02)


def role_of(spec: tuple[str, str, bool], score: float) -> Role:
    """A role as it is told in `ROLES`; one that is not established is done by random weights too."""
    name, measure, established = spec
    best = score if not established else 0.1
    controls = (
        Control(
            name="chance", value=0.05, low=0.04, high=0.06, rules_out=measure != "entropy_share"
        ),
        Control(name="untrained", value=best, low=best - 0.02, high=best + 0.02, rules_out=True),
    )
    return Role(
        rule=RULES[name],
        measure=measure,
        score=score,
        low=score - 0.02,
        high=score + 0.02,
        controls=controls,
        narrow=measure in NARROW,
        doubt=None
        if established
        else Note.of(
            "control_does_as_much",
            control="untrained",
            value=f"{best:.2f}",
            low=f"{best - 0.02:.2f}",
            high=f"{best + 0.02:.2f}",
        ),
    )


def made(
    n_layers: int = 2, n_heads: int = 3, *, all_roles: bool = False, **more: object
) -> HeadComparison:
    """A comparison of so many heads."""
    n = n_layers * n_heads
    estimates = estimate(n_layers, n_heads, 0)
    specs = (*ROLES, *OTHERS) if all_roles else ROLES
    heads = []
    for index in range(n):
        layer, head = divmod(index, n_heads)
        spec = specs[index % len(specs)]
        if spec is not None and spec[1] in NAMES:
            estimates.value[layer, head, NAMES.index(spec[1])] = 0.9
        roles = () if spec is None else (role_of(spec, 0.9),)
        heads.append(HeadProfile(layer=layer, head=head, roles=roles))
    offset = estimate(n_layers, n_heads, 4)
    for values in (offset.value, offset.low, offset.high):
        values[:, :, [name not in SHARES for name in NAMES]] = np.nan
    examples = {
        (head.name, measure): (
            Example(text=f"{KOREAN} {head.name}", score=0.75),
            Example(text="I love all", score=0.5),
        )
        for head in heads
        for measure in (*SHARES, "entropy_share", *(role.measure for role in head.roles))
    }
    fields: dict[str, object] = {
        "model": "made by hand",
        "kind": "encoder",
        "corpus": "sentences made by hand",
        "n_sentences": 1234,
        "n_tokens": 98765,
        "differences": (2.5e-07, 1e-07),
        "measures": TAKEN,
        "estimates": estimates,
        "controls": {
            "chance": estimate(n_layers, n_heads, 2),
            "untrained": estimate(n_layers, n_heads, 3),
            "offset": offset,
        },
        "heads": tuple(heads),
        "examples": examples,
        "relations": RELATIONS,
        "n_bad": 7,
        "bad": ((3, "too long: 1,024 tokens"),),
        "notes": (Note.of("sentences_cut", n=3),),
    }
    return HeadComparison(**(fields | more))  # type: ignore[arg-type]


def spelled(record: Attention) -> Attention:
    """Return a record of "I love all you" whose tokens know their characters."""
    spans = [None, (0, 1), (2, 6), (7, 10), (11, 14), None]
    tokens = tuple(
        replace(token, span=span) for token, span in zip(record.key_tokens, spans, strict=True)
    )
    return replace(record, query_tokens=tokens, key_tokens=tokens, receipt=None)


def compared(comparison: HeadComparison) -> HeadComparison:
    """The comparison beside a second model, in which each head has the roles of the head after it."""
    all_roles = [head.roles for head in comparison.heads]
    heads, second_heads = [], []
    for number, head in enumerate(comparison.heads):
        second = replace(head, roles=all_roles[(number + 1) % len(all_roles)])
        value = 0.01 * number
        change = HeadChange(divergence=value, low=value / 2, high=value + 0.01, role=second.role)
        heads.append(replace(head, change=change))
        second_heads.append(second)
    second_model = replace(comparison, model="made by hand, before", heads=tuple(second_heads))
    return replace(comparison, heads=tuple(heads), against=second_model)
