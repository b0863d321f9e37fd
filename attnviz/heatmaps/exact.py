"""What is said of a head whose pattern is too large to be shown token by token: its strongest links, its statistics."""

from __future__ import annotations

from collections.abc import Sequence

from attnviz.attention import Attention, Token
from attnviz.text.display import clip
from attnviz.text.phrase import Phrase, join_phrases

SHOWN = 4  # links that are named

STATED = {
    "entropy": (1, "entropy {} nats", "엔트로피 {}nats"),
    "first": (100, "{}% on the first token", "첫 토큰 {}%"),
    "self": (100, "{}% on itself", "자기 자신 {}%"),
    "previous": (100, "{}% on the token before", "앞 토큰 {}%"),
    "next": (100, "{}% on the next", "다음 토큰 {}%"),
    "distance": (1, "{} tokens away", "거리 {}토큰"),
}
"""How each statistic is told: what it is multiplied by, in English, in Korean."""


def exactly(record: Attention, layer: int, head: int) -> list[Phrase]:
    """The strongest links of a head, and where the record is pooled what its queries do on average.

    Special tokens are left out of the links, which are each to another key; tokens are counted from 0.
    """
    of = record.exact or record

    def name(tokens: Sequence[Token], at: int, side: int) -> str:
        return f"{clip(tokens[at].text, 12)} ({record.first[side] + at:,})"

    links = ", ".join(
        f"{name(of.query_tokens, query, 0)} → {name(of.key_tokens, key, 1)} {_figure(weight)}"
        for query, key, weight in record.links(layer, head, SHOWN)
    )
    said = [Phrase(f"strongest links between tokens: {links}", f"토큰 사이의 가장 강한 연결: {links}")] if links else []
    if record.exact is not None and record.exact.statistics:
        row, column = record.layers.index(layer), record.heads.index(head)
        means = [
            Phrase(*(text.format(_figure(values[row][column] * unit)) for text in words))
            for name, values in record.exact.statistics.items()
            for unit, *words in [STATED[name]]
            if name != "next" or record.kind != "decoder"
        ]
        listed = join_phrases(means, ", ")
        said.append(Phrase(f"each query on average: {listed}", f"쿼리 평균: {listed.ko}"))
    return said


def _figure(value: float) -> str:
    """A number in two or three digits that count."""
    form = ",.0f" if value >= 100 else ".3g" if value > 1 else ".2f" if value >= 0.01 else ".2g"
    return f"{value:{form}}"
