"""Each measure once more, straight from its formula: loops over rows of one head of one sentence, in double precision.

Nothing here is shared with attnviz. A row counts where it sees two keys or more; of a share, where it sees such a key.
"""

from __future__ import annotations

import math
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attnviz.attention import Token

SHARES = ("self", "previous", "next", "first", "separator", "punctuation", "same_word", "induction")
OFFSETS = range(-8, 9)


def is_target(what: str, tokens: Sequence[Token], i: int, j: int) -> bool:
    """Whether key j is what this share asks for of query i."""
    query, key = tokens[i], tokens[j]
    if what == "first":
        return j == 0
    if what == "separator":
        return j > 0 and key.special
    if what == "punctuation":
        return not key.special and all(unicodedata.category(c)[0] == "P" for c in key.text)
    if what == "same_word":
        return j < i and not query.special and not key.special and name(key) == name(query)
    if what == "induction":
        before = tokens[j - 1] if j else None
        return (
            j < i
            and before is not None
            and not query.special
            and not before.special
            and name(before) == name(query)
        )
    offset = (
        {"self": 0, "previous": -1, "next": 1}[what]
        if what in ("self", "previous", "next")
        else int(what)
    )
    return j - i == offset


def name(token: Token) -> object:
    """Return the key by which two tokens count as equal."""
    return token.piece if token.id is None else token.id


def reach(n: int, *, causal: bool, window: int | None = None) -> list[range]:
    """The keys that each row sees; in a window, so many of the last ones."""
    return [
        range(max(0, i + 1 - window) if window else 0, i + 1 if causal else n) for i in range(n)
    ]


def entropy(row: np.ndarray) -> float:
    """H(p), nats: 0 ln 0 is 0."""
    return -float(sum(p * math.log(p) for p in row.tolist() if p > 0))


def rows(sees: Sequence[range]) -> list[int]:
    """The rows that count."""
    return [i for i, keys in enumerate(sees) if len(keys) > 1]


def share(
    a: np.ndarray, tokens: Sequence[Token], what: str, sees: Sequence[range]
) -> tuple[float, int]:
    """The sum over rows and how many there are."""
    found = targets(what, tuple(tokens), tuple(sees))
    return sum(float(a[i, j]) for i, keys in found.items() for j in keys), len(found)


@cache
def targets(what: str, tokens: tuple[Token, ...], sees: tuple[range, ...]) -> dict[int, list[int]]:
    """The keys that this share asks for, of each row that sees one: the same for all heads."""
    asked = {i: [j for j in sees[i] if is_target(what, tokens, i, j)] for i in rows(sees)}
    return {i: keys for i, keys in asked.items() if keys}


def ranks(
    tokens: Sequence[Token], vectors: np.ndarray, sees: Sequence[range]
) -> dict[int, tuple[list[int], list[float]]]:
    """The words that each row sees, and their ranks by cosine, less what distance, side and frequency tell of it."""
    words = [
        not token.special and not is_target("punctuation", tokens, 0, j)
        for j, token in enumerate(tokens)
    ]
    found = {}
    for i in rows(sees):
        keys = [j for j in sees[i] if words[i] and words[j] and tokens[i].id != tokens[j].id]
        if len(keys) < 6:
            continue
        cosines = np.array(
            [
                vectors[i] @ vectors[j] / np.linalg.norm(vectors[i]) / np.linalg.norm(vectors[j])
                for j in keys
            ]
        )
        known = np.array(
            [
                [1.0, math.log(abs(i - j)), np.sign(j - i), math.log(1 + (tokens[j].id or 0))]
                for j in keys
            ]
        )
        left = cosines - known @ np.linalg.lstsq(known, cosines, rcond=None)[0]
        found[i] = keys, [(sum(other < own for other in left) + 0.5) / len(keys) for own in left]
    return found


def every(
    a: np.ndarray,
    tokens: Sequence[Token],
    sees: Sequence[range],
    offsets: Sequence[int] = OFFSETS,
    *,
    ranked: dict[int, tuple[list[int], list[float]]] | None = None,
) -> dict[str, tuple[float, int]]:
    """All measures of one head on one sentence.

    Args:
        a: its pattern [query, key].
        tokens: of the sentence.
        sees: the keys that each row sees.
        offsets: those that are fixed.
        ranked: what `ranks` says of the tokens; None where the model has no vocabulary.
    """
    n = len(tokens)
    counted = rows(sees)
    found = {what: share(a, tokens, what, sees) for what in SHARES}
    found |= {f"offset_{o:+d}": share(a, tokens, str(o), sees) for o in offsets}
    for o in offsets:
        having = [i for i in counted if i + o in sees[i]]
        found[f"peak_{o:+d}"] = float(sum(int(a[i].argmax()) - i == o for i in having)), len(having)

    def mean(number: Callable[[int], float]) -> tuple[float, int]:
        return sum(number(i) for i in counted), len(counted)

    def distance(i: int) -> float:
        return sum(float(a[i, j]) * abs(i - j) for j in range(n))

    ranked = ranked or {}
    found["meaning"] = (
        sum(float(np.average(by, weights=a[i, keys])) for i, (keys, by) in ranked.items()),
        len(ranked),
    )
    found["entropy"] = mean(lambda i: entropy(a[i]))
    found["entropy_share"] = mean(lambda i: entropy(a[i]) / math.log(len(sees[i])))
    found["distance"] = mean(distance)
    ends = [j for j in range(1, n) if j == n - 1 and tokens[j].special]
    found["confidence"] = (
        sum(
            max(float(a[i, j]) for j in range(n) if j not in ends) for i in counted if i not in ends
        ),
        len([i for i in counted if i not in ends]),
    )
    means = []
    for j in range(n):
        seen = [i for i in counted if j in sees[i]]
        if seen and len(seen) >= len(counted) / 2:
            means.append(sum(float(a[i, j]) for i in seen) / len(seen))
    found["sink"] = (max(means, default=0.0), int(bool(counted)))
    return found
