"""The steps of a generation, from the finished record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnviz.attention import GENERATED
from attnviz.generations.record import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attnviz.attention import Attention


def steps_of(record: Attention) -> Iterator[Step]:
    """The steps of a record, one after another, as they were seen while the text was generated."""
    places = [
        place for place, token in enumerate(record.query_tokens) if token.segment == GENERATED
    ]
    generated = tuple(record.query_tokens[place] for place in places)
    for number, place in enumerate(places, start=1):
        n_keys = (
            len(record.key_tokens)
            if record.kind == "cross"
            else place + 1 + record.first[0] - record.first[1]
        )
        yield Step(
            number=number,
            most=len(places),
            token=record.query_tokens[place],
            probability=None,
            keys=record.key_tokens[:n_keys],
            so_far=generated[:number],
            weights=record.weights[:, :, place, :n_keys],
            model=record.model,
            kind=record.kind,
        )
