"""The steps of a generation, from the finished record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attnviz.generations.record import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attnviz.attention import Attention


def steps_of(record: Attention) -> Iterator[Step]:
    """The steps of a record, one after another, as they were seen while the text was generated."""
    generated = record.query_tokens
    for place, token in enumerate(generated):
        n_keys = len(record.key_tokens)
        if record.kind == "decoder":
            n_keys += place + 1 - len(generated)
        yield Step(
            number=place + 1,
            most=len(generated),
            token=token,
            probability=None,
            keys=record.key_tokens[:n_keys],
            so_far=generated[: place + 1],
            weights=record.weights[:, :, place, :n_keys],
            model=record.model,
            kind=record.kind,
        )
