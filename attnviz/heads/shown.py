"""What every view of a comparison shows of a role: its colour, its sign, its words; and which heads it shows."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.attention import positions
from attnviz.errors import SelectionError
from attnviz.heads.record import MAX_OFFSET, Comparison, HeadProfile, Role, measure_of, measures_up_to, offsets_up_to
from attnviz.heads.roles import CHANCE, OFFSET, SHUFFLED, UNTRAINED, kinds
from attnviz.render.palette import hexed, luminance
from attnviz.render.sheet import KINDS
from attnviz.text.display import clip

COLOURS = {
    "self": "#117733",
    "previous": "#332288",
    "next": "#88ccee",
    "offset": "#44aa99",
    "first": "#cc6677",
    "separator": "#882255",
    "punctuation": "#ee8866",
    "same_word": "#aa4499",
    "induction": "#999933",
    "relation": "#0077bb",
    "broad": "#ddcc77",
}
"""Paul Tol's muted scheme, which colour-blind readers tell apart: https://sronpersonalpages.nl/~pault/.

Grey, which is not among them, is no clear role; punctuation has the orange of his light scheme, a relation the blue of
his vibrant one, which a terminal of 256 colours does not take for that of the next token."""
NONE = "none"
"""Stands for no clear role, where roles are chosen or sorted."""
SIGNS = {
    "self": "self",
    "previous": "-1",
    "next": "+1",
    "first": "1st",
    "separator": "sep",
    "punctuation": ". ,",
    "same_word": "same",
    "induction": "ind",
    "broad": "all",
}
"""What stands in a cell beside the colour, for who sees no colours."""
REVERSED, BACK = "_reversed", "←"
"""How the name of a role ends that is a relation the other way round, and how its sign does."""
FAMILIES = {"offset": "looks at another fixed offset", "relation": "finds a relation between words"}
"""Roles of which there are many, and what each of them does in plain words."""
CONTROLS = {SHUFFLED: "shuffled", UNTRAINED: "random weights", OFFSET: "best offset"}
"""The controls, in the order in which they are shown."""
CONTROLS_OF_A_HEAD = CONTROLS | {CHANCE: "chance"}
"""Those of a head's page, which has room for all."""
HELD = {
    SHUFFLED: "this head on shuffled tokens",
    UNTRAINED: "the best head of random weights",
    OFFSET: "the fixed one that has most of it",
    CHANCE: "this head's weights dealt out at random",
}
"""What each of them is, in a few words."""
NOT_EXPLANATION = "attention is not explanation: where a head looks does not say what the model makes of it"
ORDERS = ("head", "role", "score")
"""How heads can be sorted, beside by a measure."""
MOST = 144
"""Heads that are all shown where nothing was chosen: those of a base model. Of more, those that have a role."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A head with the role that is shown of it.

    Attributes:
        profile: the head.
        role: the clearest, or the clearest of those asked for; None where it has none.
    """

    profile: HeadProfile
    role: Role | None


def family(name: str) -> str:
    """The name under which a role is coloured: all fixed offsets are ``offset``, all relations ``relation``."""
    first = name.partition("_")[0]
    return first if first in FAMILIES else name


def family_words(role: Role) -> str:
    """What heads of the role's colour do, in plain words."""
    return FAMILIES.get(family(role.name), role.words)


def sign(name: str) -> str:
    """A role in a few characters: ``-1``, ``1st``, ``nsubj``; the other way round ``nsubj←``, of a kind ``ns:pa``."""
    if family(name) not in FAMILIES:
        return SIGNS.get(name, name[:4])
    what = name.partition("_")[2]
    relation, _, sort = what.removesuffix(REVERSED).partition(":")
    return (f"{relation[:2]}:{sort[:2]}" if sort else relation[:5]) + BACK * what.endswith(REVERSED)


def readable(colour: str, *, dark: bool) -> str:
    """The nearest colour on the way to white (or black) that can be read on a dark (or light) screen."""
    rgb = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)], dtype=np.float64)
    end = 255.0 if dark else 0.0
    # Few terminals are quite black or white.
    back = float(luminance(np.full(3, 30 if dark else 240, dtype=np.uint8)))
    for part in np.linspace(0, 1, 21):
        mixed = (rgb + (end - rgb) * part).round().astype(np.uint8)
        light = float(luminance(mixed))
        if (light + 0.05) / (back + 0.05) >= 4.5 if dark else (back + 0.05) / (light + 0.05) >= 4.5:
            break
    return hexed(mixed)


def scored_on(comparison: Comparison) -> str:
    """Why the score of a relation differs from that in the table of relations; empty where there is no such table."""
    if not comparison.relations:
        return ""
    return (
        "a role's score is on all sentences; the table of relations scores on half of them, unseen in choosing the head"
    )


def described(comparison: Comparison) -> str:
    """What was measured, as ``6 layers x 12 heads, bidirectional self-attention``."""
    return f"{counted(comparison.n_layers, 'layer')} x {counted(comparison.n_heads, 'head')}, {KINDS[comparison.kind]}"


def sample(comparison: Comparison) -> str:
    """What it was measured on, as ``sample sentences: 117 sentences, 1,545 tokens; special tokens kept``."""
    specials = {"keep": "special tokens kept", "exclude": "special tokens left out"}.get(
        comparison.specials, f"special tokens: {comparison.specials}"
    )
    n = comparison.n_sentences
    return f"{comparison.corpus}: {counted(n, 'sentence')}, {counted(comparison.n_tokens, 'token')}; {specials}"


def counted(n: int, what: str) -> str:
    """As ``1 head`` or ``1,024 heads``."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def role_names(comparison: Comparison) -> list[str]:
    """The names that roles may be chosen by, in their order; ``offset`` is any fixed one, ``relation`` any relation."""
    found = sorted({role.name for head in comparison.heads for role in head.roles})
    names = dict.fromkeys([kind.name for kind in kinds(comparison.offsets)] + found)
    grouped = ((group, *(name for name in names if family(name) == group)) for group in COLOURS)
    return [*dict.fromkeys(name for group in grouped for name in group), NONE]


def measure_named(wanted: str, measures: Sequence[str]) -> str:
    """The measure that is meant by its name, its beginning, or its heading in a table.

    Raises:
        SelectionError: none, or more than one.
    """
    if wanted in measures:
        return wanted
    meant = [name for name in measures if wanted and name.startswith(wanted)]
    meant = meant or [name for name in measures if (one := measure_of(name)) is not None and one.label == wanted]
    if len(meant) == 1:
        return meant[0]
    raise SelectionError(
        f"there is no measure {clip(wanted, 40)!r}{_hint(wanted, (*ORDERS, *measures), _named_first(measures))}"
    )


def check_sort(wanted: str, max_offset: int = MAX_OFFSET) -> None:
    """Find out before a model is run whether heads can be sorted so.

    Args:
        wanted: the order.
        max_offset: how far fixed offsets are measured.

    Raises:
        SelectionError: they cannot.
    """
    if wanted not in ORDERS:
        measure_named(wanted, tuple(measures_up_to(max_offset)))


def check_role(wanted: str, max_offset: int = MAX_OFFSET) -> None:
    """Find out before a model is run whether there can be such a role; which relations there are, a treebank says.

    Args:
        wanted: the role.
        max_offset: how far fixed offsets are measured.

    Raises:
        SelectionError: there cannot.
    """
    usual = [kind.name for kind in kinds(offsets_up_to(max_offset))]
    _expect_role(wanted, [*dict.fromkeys((*usual, *FAMILIES)), NONE])


def _expect_role(wanted: str, names: Sequence[str]) -> None:
    if wanted not in names and not wanted.startswith("relation_"):
        usual = [*dict.fromkeys(family(name) for name in names)]
        raise SelectionError(f"there is no role {clip(wanted, 40)!r}{_hint(wanted, names, usual)}")


def _hint(wanted: str, names: Sequence[str], shown: Sequence[str]) -> str:
    near = difflib.get_close_matches(wanted, names, 1)
    return f": did you mean {near[0]}?" if near else f": there are {', '.join(shown)}"


def _named_first(measures: Sequence[str]) -> list[str]:
    """The measures without the many offsets, of which one of each sort stands for all."""
    return [name for name in measures if not name.startswith(("offset_", "peak_"))] + [
        name for name in ("offset_-1", "peak_-1") if name in measures
    ]


def chosen(
    comparison: Comparison, *, sort: str = "head", role: Sequence[str] = (), layers: Sequence[int] = ()
) -> list[Shown]:
    """The heads that are asked for, in the order asked for; of more than `MOST`, where nothing is, those with a role.

    Args:
        comparison: of heads.
        sort: ``head`` (as they stand in the model), ``role`` (then by score), ``score``, or a measure, largest first.
        role: names of roles; a head that has any of them is shown. ``none`` is no clear role.
        layers: their numbers, negative from the end.

    Raises:
        SelectionError: there is no such measure, role or layer.
    """
    names = role_names(comparison)
    for one in role:
        _expect_role(one, names)
    rows = set(positions(layers, range(comparison.n_layers), "layer")) if layers else set(range(comparison.n_layers))
    found = [_shown(head, role) for head in comparison.heads if head.layer in rows]
    kept = [one for one in found if one is not None]
    if not role and not layers and len(kept) > MOST:
        kept = [one for one in kept if one.role is not None]
    return _sorted(kept, comparison, sort)


def _shown(head: HeadProfile, wanted: Sequence[str]) -> Shown | None:
    """A head with the role to show; None where it has none of those wanted."""
    if not wanted:
        return Shown(profile=head, role=head.roles[0] if head.roles else None)
    for role in head.roles:
        if role.name in wanted or family(role.name) in wanted:
            return Shown(profile=head, role=role)
    return Shown(profile=head, role=None) if not head.roles and NONE in wanted else None


def _sorted(heads: list[Shown], comparison: Comparison, sort: str) -> list[Shown]:
    if sort == "head":
        return heads
    if sort == "score":
        return sorted(heads, key=lambda one: -one.role.score if one.role else math.inf)
    if sort == "role":
        order = {name: place for place, name in enumerate(role_names(comparison))}
        return sorted(
            heads,
            key=lambda one: (order.get(one.role.name, len(order)), -one.role.score) if one.role else (math.inf, 0.0),
        )
    measure = measure_named(sort, comparison.measures)

    def value(one: Shown) -> float:
        found = comparison.estimate(measure, one.profile.layer, one.profile.head)[0]
        return math.inf if math.isnan(found) else -found

    return sorted(heads, key=value)
