"""Why roles are not established, as tables and pictures say it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from attnviz.heads.record import HeadProfile, Role
from attnviz.heads.roles import OFFSET, SHUFFLED, UNTRAINED
from attnviz.heads.shown import counted

DOUBTS = {
    "too few sentences": "there are too few sentences for an interval",
    "no control": "no control was taken",
    "shuffled too": "shuffled tokens do as much",
    "random weights too": "random weights do as much",
    "an offset too": "a fixed offset does as much",
    "chance too": "chance does as much",
}
"""Why a role is not established, as tables say it and in whole words."""


def why_not(role: Role) -> str:
    """Why a role is not established, in two or three words; empty where it is."""
    if role.established:
        return ""
    deciding = [control for control in role.controls if control.rules_out]
    if math.isnan(role.low) or any(math.isnan(control.high) for control in deciding):
        return "too few sentences"
    for control in deciding:
        if not role.low > control.high:
            return {SHUFFLED: "shuffled too", UNTRAINED: "random weights too", OFFSET: "an offset too"}.get(
                control.name, f"{control.name} too"
            )
    return "no control" if role.reason.startswith("no control") else role.reason


def doubts(heads: Sequence[HeadProfile]) -> str:
    """Why the clearest roles of some heads are not established, and of how many; empty where all are."""
    first = [head.roles[0] for head in heads if head.roles]
    found = Counter(why_not(role) for role in first if not role.established)
    if len(found) == 1:
        return "".join(DOUBTS.get(why, why) for why in found)
    return ", or ".join(f"{DOUBTS.get(why, why)} ({counted(n, 'head')})" for why, n in found.most_common())
