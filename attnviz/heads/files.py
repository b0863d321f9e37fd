"""``.stats`` files: what was measured of a corpus, to go on from and to merge."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from attnviz.heads import survey
from attnviz.heads.measures import MAX_OFFSET
from attnviz.heads.relations import HALF_GROUPS, LinkHits, Relations
from attnviz.heads.settings import CONTROLS, SurveySettings
from attnviz.heads.similarity import Divergences
from attnviz.heads.survey import Survey
from attnviz.heads.tally import GROUPS, Tally, regroup
from attnviz.settings import ModelSettings
from attnviz.storage import encoding
from attnviz.storage.corpora.corpus import Fingerprint
from attnviz.text.corpus import Annotation, Link

REPLICATES = 400  # how often earlier versions resampled a corpus, and kept what came of it
DEFAULT = "the default"  # what messages call the model where none was named


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyRun:
    """How sentences were measured."""

    model: ModelSettings = field(default_factory=ModelSettings)  # the model, and how it was loaded
    settings: SurveySettings = field(default_factory=SurveySettings)  # how it was measured
    sentence_field: str | None = (
        None  # where the objects of JSON lines hold their sentence; None is the usual place
    )
    against: str | None = None  # the second model, of two

    def words(self) -> dict[str, str]:
        """All of it as messages tell it, by the names of settings; without what is not given."""
        given = {
            **asdict(self.model),
            **asdict(self.settings),
            "model": self.model.name,
            "field": self.sentence_field,
            "against": self.against,
        }
        usual = {"model": DEFAULT, "kind": "the usual", "field": "text"}
        return {
            name: str(usual[name] if value is None else value)
            for name, value in given.items()
            if name != "toy" and (value is not None or name in usual)
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """A survey and how it came about."""

    survey: Survey  # the survey
    corpora: tuple[str, ...]  # what was read, in a few words each
    n_lines: int | None = (
        None  # of the corpus, read by a run that goes on; None for one that is finished
    )
    fingerprint: Fingerprint | None = (
        None  # of the corpus; None where it has none, as standard input has not
    )
    run: SurveyRun  # how it was measured, which must be the same for a run to go on


@dataclass(frozen=True, slots=True, kw_only=True)
class PairStats:
    """The surveys of two models and how they came about."""

    before: Stats  # of the first model; what it says of the run is said of both
    after: Survey  # the survey of the second
    divergences: Tally  # of each head's rows in the one and in the other, summed over sentences


CLASSES: encoding.Classes = {
    "Stats": Stats,
    "BothStats": PairStats,
    "Run": SurveyRun,
    "ModelSettings": ModelSettings,
    "SurveySettings": SurveySettings,
    "Fingerprint": Fingerprint,
    "Survey": Survey,
    "About": survey.About,
    "Places": survey.Places,
    "Examples": survey.Examples,
    "Sample": survey.Sample,
    "Divergences": Divergences,
    "Tally": Tally,
    "Relations": Relations,
    "Found": LinkHits,
    "Annotated": Annotation,
    "Link": Link,
}
"""What may be in a file, by the names that files have for it."""


def save_stats(stats: Stats | PairStats, path: str | os.PathLike[str]) -> Path:
    """Write a survey, or both of two models, whole or not at all.

    Raises OutputError: another ending, or a file that cannot be written.
    """
    return encoding.write(
        stats, path, encoding.ONE if isinstance(stats, Stats) else encoding.TWO, CLASSES
    )


def load_stats(path: str | os.PathLike[str]) -> Stats:
    """Read a survey that attnviz saved. Raises FileFormatError, in one line: it cannot be read, or holds no survey."""
    stats = encoding.read(
        path, encoding.ONE, CLASSES, Stats, lambda stats: is_whole(stats.survey), _upgrade
    )
    return replace(stats, survey=_in_groups(stats.survey))


def _in_groups(found: Survey) -> Survey:
    """A survey that an earlier version kept as replicates, places in 16 groups, and controls of all measures."""
    if len(found.heads.sums) == GROUPS + 1:
        return found
    places, relations, sample = found.places, found.relations, found.sample
    if relations is not None:
        hits, offsets, counts = (
            np.stack([regroup(half, HALF_GROUPS) for half in halves])
            for halves in (relations.hits, relations.offsets, relations.counts)
        )
        relations = replace(relations, hits=hits, offsets=offsets, counts=counts)
    sums, squares, counts = (
        values.reshape(-1, survey.GROUPS, *values.shape[1:]).sum(axis=0)
        for values in (places.sums, places.squares, places.counts)
    )
    linked = {key: sample.texts[key] for key in sample.annotated}
    return replace(
        found,
        heads=found.heads.regroup(),
        offsets=found.offsets.regroup(),
        relations=relations,
        places=survey.Places(sums=sums, squares=squares, counts=counts),
        sample=replace(sample, roles=found.measures if sample.controls else (), linked=linked),
    )


def _upgrade(written: Any) -> Any:
    """What version 2 of these files wrote, as today: settings and what makes surveys alike are typed, no words."""
    if isinstance(written, list):
        return [_upgrade(one) for one in written]
    if not isinstance(written, dict):
        return written
    if "class" not in written:
        return {name: _upgrade(one) for name, one in written.items()}
    fields = {name: _upgrade(value) for name, value in written["fields"].items()}
    if written["class"] == "Stats":
        fields["run"] = _run_before(dict(fields.pop("options")["mapping"]))
    if written["class"] == "Survey":
        fields["similarity"] = fields.pop("likeness")
        fields["about"] = _about_before(dict(fields["about"]["mapping"]))
    return {"class": written["class"], "fields": fields}


def _run_before(words: Mapping[str, str]) -> dict[str, Any]:
    """How a run was measured, of which version 2 wrote the options as words."""
    sizes = {
        name: f"--{name.replace('_', '-')}" for name in ("seed", "d_model", "n_heads", "n_layers")
    }
    model = {
        "model": None if words.get("--model", DEFAULT) == DEFAULT else words["--model"],
        **{
            name: words[option]
            for name in ("device", "dtype", "revision")
            if (option := f"--{name}") in words
        },
        "trust_remote_code": "--trust-remote-code" in words,
        **{name: int(words[option]) for name, option in sizes.items() if option in words},
    }
    settings = {
        "kind": None if words.get("--kind", "the usual") == "the usual" else words["--kind"],
        "specials": words.get("--specials", "keep"),
        "truncate": words.get("--truncate") == str(True),
        "similarity": words.get("--likeness", str(True)) == str(True),
        "controls": int(words.get("--controls", CONTROLS)),
        "max_offset": int(words.get("--max-offset", MAX_OFFSET)),
    }
    given = words.get("--field", "text")
    return {
        "class": "Run",
        "fields": {
            "model": {"class": "ModelSettings", "fields": model},
            "settings": {"class": "SurveySettings", "fields": settings},
            "sentence_field": None if given == "text" else given,
            "against": words.get("--against"),
        },
    }


def _about_before(words: Mapping[str, str]) -> dict[str, Any]:
    fields = {
        "model": words["model"],
        "weights": words["weights"],
        "kind": words["kind"],
        "specials": words["special tokens"],
        "sample": int(words["sample"]),
        "max_offset": int(words["fixed offsets"].removeprefix("up to ")),
    }
    return {"class": "About", "fields": fields}


def is_whole(found: Survey) -> bool:
    """Whether the parts of a survey fit together."""
    n_layers, n_heads, n_measures = found.heads.sums.shape[1:]
    return (
        len(found.heads.sums) in {GROUPS + 1, REPLICATES + 1}
        and n_measures == len(found.measures)
        and found.heads.counts.shape[1:] == (n_layers, 1, n_measures)
        and found.places.sums.shape[1:3] == found.examples.scores.shape[:2] == (n_layers, n_heads)
        and len(found.worst) == n_layers
    )


def load_pair(path: str | os.PathLike[str]) -> PairStats:
    """Likewise both surveys of two models; a file of one is none."""
    pair = encoding.read(path, encoding.TWO, CLASSES, PairStats, _fits, _upgrade)
    first = replace(pair.before, survey=_in_groups(pair.before.survey))
    return PairStats(
        before=first, after=_in_groups(pair.after), divergences=pair.divergences.regroup()
    )


def _fits(found: PairStats) -> bool:
    one, other, apart = found.before.survey, found.after, found.divergences
    return (
        all(map(is_whole, (one, other)))
        and one.heads.sums.shape == other.heads.sums.shape
        and apart.sums.shape == one.heads.sums.shape[:3]
        and one.n_sentences == other.n_sentences == apart.n_sentences
    )
