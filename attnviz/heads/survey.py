"""Surveys: sums and a few sentences, collected from a corpus that streams by. The surveys of its parts add up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Float32

from attnviz.attention import Kind
from attnviz.errors import InputError
from attnviz.heads import relations
from attnviz.heads.relations import LinkedSentence, LinkHits, Relations
from attnviz.heads.tally import Tally
from attnviz.text.corpus import BadLine

BAD_LINES = 20  # number of bad lines kept with line number and reason; all of them are counted


class SampledSentence(NamedTuple):
    """A sentence that controls are measured on and examples are chosen from, with the model's own measures."""

    text: str
    sums: Float32[np.ndarray, "layer head measure"]
    counts: Float32[np.ndarray, "layer measure"]


PerSentence: TypeAlias = tuple[Float[np.ndarray, "_ _ _ _"], Float[np.ndarray, "_ _ _"]]
"""Sums (sentence, layer, head, measure) and counts (sentence, layer, measure)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Controls:
    """The controls, measured on the sample of a whole corpus."""

    # all measures of the sampled sentences, with the weights of each on random keys
    chance: PerSentence
    # the measures that may give a role, of models with random weights: the sums have the layers of all models, one
    # after another; the counts are equal for all models. None if the model cannot have random weights.
    untrained: PerSentence | None = None
    no_random: str = ""  # why it cannot; empty if it can
    # the links of the linked sentences that heads of random weights find; the layers of all models one after another
    found: Mapping[int, LinkHits] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Survey:
    """All measurements of a corpus so far."""

    model: str  # the name of the model
    weights: str  # the digest of its weights
    kind: Kind  # the kind of attention
    heads: Tally  # the sums of each measure for each head
    offsets: Tally  # the same sums for imaginary heads that always attend to one fixed offset
    # The sentences that controls are measured on, by their keys: the `sample_size` smallest keys, so that the same
    # corpus always gives the same sample.
    sample_size: int
    sample: Mapping[int, SampledSentence]
    # the sentences for the controls of relations, drawn by `relations.sample_links`
    linked: Mapping[int, LinkedSentence]
    controls: Controls | None = None  # None before they are measured, or if none are asked for
    # the links between words that heads find; None if no sentence is annotated
    relations: Relations | None = None
    n_tokens: int = 0  # number of tokens, special tokens included
    n_cut: int = 0  # number of sentences that were cut because they are too long
    n_bad: int = 0  # number of lines that could not be used
    bad: tuple[BadLine, ...] = ()  # the first of these lines
    worst: tuple[float, ...] = ()  # the largest difference from the model's own output, per layer
    # whether the weights themselves were verified, or only their products with the values
    proves: Literal["weights", "output"] = "weights"
    against: Against | None = None  # a second model on the same sentences; None without one

    @property
    def n_sentences(self) -> int:
        """The number of sentences measured."""
        return self.heads.n_sentences


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Against:
    """A second model, measured on the same sentences as the first."""

    survey: Survey
    divergences: Tally  # between the rows of each head in both models, summed over sentences

    def merge(self, other: Against) -> Against:
        """Merge the measurements of two parts of a corpus."""
        return Against(
            survey=merge(self.survey, other.survey),
            divergences=self.divergences.merge(other.divergences),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """The survey of a part of a corpus, and its lines that could not be used."""

    survey: Survey | None = None  # None without a single sentence
    bad: tuple[BadLine, ...] = ()  # the first of these lines
    n_bad: int = 0  # number of these lines

    def merge(self, later: Part) -> Part:
        """Return this part with the lines that follow it."""
        measured = self.survey or later.survey
        if self.survey is not None and later.survey is not None:
            measured = merge(self.survey, later.survey)
        bad = (*self.bad, *later.bad)[:BAD_LINES]
        return Part(survey=measured, bad=bad, n_bad=self.n_bad + later.n_bad)

    def whole(self, corpus: str = "") -> Survey:
        """Return the survey if this is the whole corpus, whose name is for the message.

        Raises InputError: none of its lines is a sentence that can be used.
        """
        if self.survey is None:
            first_reason = f": line {self.bad[0].number}: {self.bad[0].reason}" if self.bad else ""
            start = f"{corpus}: " if corpus else ""
            raise InputError(f"{start}there is no sentence to measure heads on{first_reason}")
        return replace(self.survey, bad=self.bad, n_bad=self.n_bad)


def merge(one: Survey, other: Survey) -> Survey:
    """Merge the surveys of two parts of a corpus, measured with the same model and settings, before the controls."""
    link_counts = one.relations or other.relations
    if one.relations is not None and other.relations is not None:
        link_counts = relations.merge(one.relations, other.relations)
    # A sentence may be in both parts: `one` is then kept.
    sample = sorted({**other.sample, **one.sample}.items())[: one.sample_size]
    return replace(
        one,
        heads=one.heads.merge(other.heads),
        offsets=one.offsets.merge(other.offsets),
        sample=dict(sample),
        linked=relations.sample_links((*one.linked.items(), *other.linked.items())),
        relations=link_counts,
        n_tokens=one.n_tokens + other.n_tokens,
        n_cut=one.n_cut + other.n_cut,
        worst=tuple(map(max, one.worst, other.worst)),
        proves=max(one.proves, other.proves, key=("weights", "output").index),
        against=one.against and other.against and one.against.merge(other.against),
    )
