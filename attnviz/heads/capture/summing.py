"""What is kept of each batch of a corpus, and what some batches say together."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from jaxtyping import Float64

from attnviz.attention import Kind, Receipt
from attnviz.capture.observers import Batch, Sentence
from attnviz.heads import structure, survey, tally
from attnviz.heads.capture.measuring import Measured
from attnviz.heads.clusters import Divergences
from attnviz.heads.similarity import divergences
from attnviz.heads.structure import Found, Relations
from attnviz.heads.survey import Examples, Places, Sample, Survey
from attnviz.text.corpus import Annotation

KEPT_BYTES = 64 * 2**20
"""Numbers of sentences kept until they are added up: one product for a whole window of a model of 72 heads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one batch gave.

    Attributes:
        measured: of its heads.
        receipt: the proof.
        annotated: the words of each sentence that belong together; None where nothing says so.
        found: what heads find of that; None where attention is between other words.
    """

    measured: Measured
    receipt: Receipt
    annotated: tuple[Annotation | None, ...]
    found: tuple[Found | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """What is kept of one batch until it is added up with others: numbers of each sentence, and sums of what is large.

    Attributes:
        sentences: of the batch.
        keys: of these, as `tally.key_of` makes them.
        kind: of attention.
        n_tokens: tokens read, special ones too.
        sums: of each measure.
        counts: how many rows were counted.
        fixed: likewise of heads made up, each of which looks at one fixed offset.
        fixed_counts: how many rows were counted.
        places: for how far a pattern is position alone.
        examples: the strongest sentences.
        likeness: of all pairs of heads, where it is wished for.
        receipt: the proof.
        annotated: the words of each sentence that belong together.
        found: what heads find of that.
    """

    sentences: tuple[Sentence, ...]
    keys: tuple[int, ...]
    kind: Kind
    n_tokens: int
    sums: Float64[np.ndarray, "sentence layer head measure"]
    counts: Float64[np.ndarray, "sentence layer measure"]
    fixed: Float64[np.ndarray, "sentence offset share"]
    fixed_counts: Float64[np.ndarray, "sentence share"]
    places: Places
    examples: Examples
    likeness: Divergences | None
    receipt: Receipt
    annotated: tuple[Annotation | None, ...]
    found: tuple[Found | None, ...]


def part_of(batch: Batch, ran: Ran, names: Sequence[str], kind: Kind) -> Part:
    """What is kept of one batch.

    Args:
        batch: its sentences.
        ran: what was measured of them.
        names: of the measures.
        kind: of attention.
    """
    measured = ran.measured
    keys = tuple(tally.key_of(sentence.text, sentence.pair) for sentence in batch.sentences)
    sums, counts = measured.sums.cpu().numpy(), measured.counts.cpu().numpy()
    likeness = None
    if measured.rows is not None and measured.rows_counted is not None:
        likeness = divergences(measured.rows, measured.rows_counted)
    few = np.array(["same_word" in name or "induction" in name for name in names])
    enough = np.where(few, 1.0, survey.ENOUGH_ROWS)
    return Part(
        sentences=batch.sentences,
        keys=keys,
        kind=kind,
        n_tokens=int(batch.real.sum()),
        sums=sums,
        counts=counts,
        fixed=measured.fixed.cpu().numpy(),
        fixed_counts=measured.fixed_counts.cpu().numpy(),
        places=survey.places_of(measured.corner.cpu().numpy(), measured.corner_seen.cpu().numpy(), keys),
        examples=survey.examples_of(sums, counts, keys, [sentence.text for sentence in batch.sentences], enough),
        likeness=likeness,
        receipt=ran.receipt,
        annotated=ran.annotated,
        found=ran.found,
    )


def summed(parts: Sequence[Part], about: Mapping[str, str], names: tuple[str, ...], n_sample: int) -> Survey:
    """What some batches say together.

    Args:
        parts: of them.
        about: what makes two surveys ones of the same kind.
        names: of the measures.
        n_sample: how many sentences controls are taken of.
    """
    keys = [key for part in parts for key in part.keys]
    given = ((sentence.text, sentence.pair) for part in parts for sentence in part.sentences)
    texts = dict(sorted(dict(zip(keys, given, strict=True)).items())[:n_sample])
    alike = [part.likeness for part in parts if part.likeness is not None]
    return Survey(
        about=about,
        measures=names,
        heads=tally.tallied(
            np.concatenate([part.sums for part in parts]),
            np.concatenate([part.counts for part in parts])[:, :, None],
            keys,
        ),
        offsets=tally.tallied(
            np.concatenate([part.fixed for part in parts]),
            np.concatenate([part.fixed_counts for part in parts])[:, None],
            keys,
        ),
        places=reduce(operator.add, (part.places for part in parts)),
        examples=reduce(survey.merge_examples, (part.examples for part in parts)),
        sample=Sample(size=n_sample, texts=texts, annotated=_kept(parts, texts)),
        likeness=reduce(operator.add, alike) if alike else None,
        relations=_relations(parts),
        n_tokens=sum(part.n_tokens for part in parts),
        n_cut=sum(sentence.is_cut for part in parts for sentence in part.sentences),
        worst=tuple(map(max, zip(*(part.receipt.differences for part in parts), strict=True))),
        tolerance=max(part.receipt.tolerance for part in parts),
        dtype=parts[0].receipt.dtype,
    )


def is_much(parts: Sequence[Part]) -> bool:
    """Whether what is kept of these batches is so much that it is added up now."""
    return sum(part.sums.nbytes for part in parts) > KEPT_BYTES


def _kept(parts: Sequence[Part], texts: Mapping[int, object]) -> dict[int, Annotation]:
    """The words that belong together of these sentences; of one that comes in two ways, always the same."""
    kept: dict[int, Annotation] = {}
    for part in parts:
        for key, annotated, found in zip(part.keys, part.annotated, part.found, strict=True):
            if key in texts and annotated is not None and found is not None:
                kept[key] = min(kept.get(key, annotated), annotated, key=repr)
    return dict(sorted(kept.items()))


def _relations(parts: Sequence[Part]) -> Relations | None:
    """What heads find of the words that belong together; None where no sentence says which do."""
    n_said = sum(annotated is not None for part in parts for annotated in part.annotated)
    if not n_said:
        return None
    pairs = [(key, one) for part in parts for key, one in zip(part.keys, part.found, strict=True)]
    found = [(key, one) for key, one in pairs if one is not None]
    return replace(structure.tallied(found, *parts[0].sums.shape[1:3]), n_other=n_said - len(found))
