"""Sums over sentences merge: order, batches and parts change nothing, intervals hold what they should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.capture.source import open_source
from attnviz.heads import survey, tally
from attnviz.heads.capture.survey import survey_model
from attnviz.heads.compare import compare
from attnviz.heads.settings import SurveySettings
from attnviz.heads.words import reason
from attnviz.models.language import splits
from attnviz.models.language.splits import corpus_lines
from attnviz.text.corpus import BadLine, CorpusLine
from tests.heads.by_formula import jackknifed

if TYPE_CHECKING:
    from attnviz.heads.survey import Survey

pytestmark = pytest.mark.usefixtures("whole_corpora", "few_seeds")


def sentences(n: int) -> list[CorpusLine]:
    """So many sentences that `toy` knows."""
    made = splits.sentences("test")
    return [
        CorpusLine(number=number, text=" ".join(next(made).words)) for number in range(1, n + 1)
    ]


@pytest.fixture(scope="module")
def whole() -> Survey:
    """A survey of 60 sentences, with its controls."""
    return survey_model(sentences(60), open_source("toy"), SurveySettings(controls=20))


def same(one: Survey, other: Survey, within: float) -> None:
    """Both hold the same numbers, sums relative to their size."""
    assert one.n_sentences == other.n_sentences
    assert one.n_tokens == other.n_tokens
    assert np.array_equal(one.heads.counts, other.heads.counts)
    assert np.array_equal(one.places.counts, other.places.counts)
    # Where two weights of a row are equal but for rounding, the largest may be another in another batch.
    smooth = [at for at, name in enumerate(one.measures) if not name.startswith("peak")]
    for a, b in (
        (one.heads.sums[..., smooth], other.heads.sums[..., smooth]),
        (one.places.sums, other.places.sums),
        (one.places.squares, other.places.squares),
        (one.offsets.sums, other.offsets.sums),
    ):
        assert np.abs(a - b).max() <= within * max(1, np.abs(a).max())
    assert (one.similarity is None) == (other.similarity is None)
    if one.similarity is not None and other.similarity is not None:
        assert one.similarity.n_rows == other.similarity.n_rows
        assert (
            np.abs(one.similarity.total - other.similarity.total).max()
            <= within * one.similarity.n_rows
        )
    assert list(one.sample.texts) == list(other.sample.texts)


def test_parts_make_the_whole(whole: Survey) -> None:
    """Parts measured apart, merged in either order, are the whole: counts exactly, sums within 1e-6."""
    source, lines = open_source("toy"), sentences(60)
    parts = [
        survey_model(part, source, SurveySettings(controls=20))
        for part in (lines[:7], lines[7:31], lines[31:])
    ]
    for order in ((0, 1, 2), (2, 0, 1)):
        merged = survey.merge(survey.merge(parts[order[0]], parts[order[1]]), parts[order[2]])
        same(whole, merged, 1e-6)
        for name, (sums, counts) in whole.sample.controls.items():
            assert np.array_equal(counts, merged.sample.controls[name][1])
            names = whole.measures if sums.shape[-1] == len(whole.measures) else whole.sample.roles
            smooth = [at for at, measure in enumerate(names) if not measure.startswith("peak")]
            assert np.abs(sums - merged.sample.controls[name][0])[..., smooth].max() < 1e-4
        heads = [
            (head.name, [role.name for role in head.roles])
            for head in compare(whole, corpus="").heads
        ]
        assert heads == [
            (head.name, [role.name for role in head.roles])
            for head in compare(merged, corpus="").heads
        ]


def test_long_sentences_are_the_same_in_any_batch() -> None:
    """Of which only some rows are kept to compare heads: which ones does not follow from the other sentences."""
    words = [word for line in sentences(200) for word in line.text.split()]
    lines = [
        CorpusLine(number=number, text=" ".join(words[:n_words]))
        for number, n_words in enumerate((5, 350, 370, 520), 1)
    ]
    source, settings = open_source("toy-random"), SurveySettings(controls=0)
    together = survey_model(lines, source, settings, tokens=4096)
    same(together, survey_model(lines, source, settings, tokens=1), 1e-6)


def test_bad_lines_are_counted_and_named() -> None:
    """Lines that no model can read, and those that this one cannot, are left out and told."""
    lines: list[CorpusLine | BadLine] = [
        CorpusLine(number=1, text="She is eating a green apple"),
        BadLine(number=2, reason="it is no JSON"),
        CorpusLine(number=3, text="xyzzy plugh"),
        CorpusLine(number=4, text="the " * 500),
        CorpusLine(number=5, text="There is a prince"),
    ]
    found = survey_model(lines, open_source("toy"), SurveySettings(controls=2))
    assert (found.n_sentences, found.n_bad) == (2, 3)
    assert [number for number, _ in found.bad] == [2, 3, 4]
    assert "it is no JSON" in found.bad[0][1]
    assert "knows none of these words" in found.bad[1][1]


def test_an_interval_holds_the_mean_as_often_as_it_says() -> None:
    """Of 300 samples of 60 numbers of known mean, about 95 % of the intervals hold it."""
    rng = np.random.default_rng(5)
    held = 0
    for trial in range(300):
        values = rng.gamma(2.0, 1.0, size=(60, 1))
        made = tally.tally_sentences(
            values, np.ones((60, 1)), [trial * 1000 + n for n in range(60)]
        )
        estimate = made.estimate()
        held += int(estimate.low[0] <= 2.0 <= estimate.high[0])
    assert 0.89 <= held / 300 <= 0.98


def test_copies_make_no_interval_narrower() -> None:
    """A corpus written down ten times knows no more than the corpus."""
    rng = np.random.default_rng(6)
    values = rng.normal(size=(40, 1))
    keys = list(range(40))
    once = tally.tally_sentences(values, np.ones((40, 1)), keys).estimate()
    ten = tally.tally_sentences(np.tile(values, (10, 1)), np.ones((400, 1)), keys * 10).estimate()
    assert np.allclose([once.low, once.high], [ten.low, ten.high])


def test_a_control_of_one_sentence_rules_no_role_in() -> None:
    """Where a control has no interval, the reason is that, and not that it does as much."""
    survey = survey_model(sentences(30), open_source("toy"), SurveySettings(controls=1))
    found = compare(survey, corpus="", thresholds={"previous": 0.01})
    roles = [role for head in found.heads for role in head.roles if role.name == "previous"]
    assert roles
    assert {reason(role.doubt).partition(" of ")[0] for role in roles} == {
        "too few sentences for an interval"
    }


def test_the_interval_of_variability_is_that_of_a_jackknife() -> None:
    """Written down once more from its formula: one group of sentences left out at a time."""
    rng = np.random.default_rng(8)
    patterns = rng.dirichlet(np.ones(16), size=(80, 1, 1, 16)) * rng.uniform(
        0.2, 1, size=(80, 1, 1, 1, 1)
    )
    seen = np.ones((80, 1, 16, 16), dtype=bool)
    keys = list(range(80))
    found = survey.variability(survey.places_of(patterns, seen, keys))

    def plain(some: np.ndarray) -> float:
        return float(some.var(axis=0, ddof=1).sum() * len(some) / (some**2).sum())

    group = np.array(keys) % survey.GROUPS
    without = np.array([plain(patterns[group != g, 0, 0]) for g in range(survey.GROUPS)])
    value = plain(patterns[:, 0, 0])
    low, high = jackknifed(value, without, 2.364624)  # Student's t of 7 degrees of freedom
    assert found.value[0, 0] == pytest.approx(value, rel=1e-5)
    assert found.low[0, 0] == pytest.approx(low, rel=1e-4)
    assert found.high[0, 0] == pytest.approx(high, rel=1e-4)


def test_variability_is_0_for_position_alone_and_large_for_content() -> None:
    """Patterns that are the same for every sentence, and patterns drawn anew for each."""
    rng = np.random.default_rng(7)
    fixed = np.zeros((40, 1, 2, 16, 16))
    fixed[:, :, 0] = np.eye(16)
    fixed[:, :, 1] = np.eye(16)[rng.integers(0, 16, size=(40, 1, 16))]
    seen = np.ones((40, 1, 16, 16), dtype=bool)
    found = survey.variability(survey.places_of(fixed, seen, list(range(40))))
    assert found.value[0, 0] == 0
    assert found.value[0, 1] == pytest.approx(1 - 1 / 16, abs=0.05)
    assert found.low[0, 1] < found.value[0, 1] < found.high[0, 1]


def test_a_relation_has_examples() -> None:
    """Of a head that finds a relation the sentences are kept of whose links it finds most; merged parts keep them."""
    lines = corpus_lines(40)
    source = open_source("toy")
    whole = survey_model(lines, source, SurveySettings(controls=40))
    examples = compare(whole, corpus="").examples["1.3", "relation_coreference"]
    assert [example.score for example in examples] == [1.0, 1.0, 1.0]
    assert all(" it " in example.text for example in examples)
    parts = [
        survey_model(part, source, SurveySettings(controls=40)) for part in (lines[:15], lines[15:])
    ]
    assert (
        compare(survey.merge(*parts), corpus="").examples["1.3", "relation_coreference"] == examples
    )
