"""Sums over sentences merge: order, batches and parts change nothing, intervals hold what they should."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import numpy as np
import pytest

from attnviz.capture.source import open_source
from attnviz.heads import relations, tally
from attnviz.heads.capture.survey import Surveyor
from attnviz.heads.compare import compare
from attnviz.heads.measures import measures_of
from attnviz.heads.settings import SurveySettings
from attnviz.heads.words import reason
from attnviz.models.language.splits import corpus_lines
from attnviz.text.corpus import BadLine, CorpusLine
from tests.heads.surveys import survey_model, survey_parts, with_thresholds

if TYPE_CHECKING:
    from attnviz.heads.survey import Survey

pytestmark = pytest.mark.usefixtures("whole_corpora", "few_seeds")


def sentences(n: int) -> tuple[CorpusLine, ...]:
    """So many sentences of the language of `toy`, with the links between their words."""
    return corpus_lines(n)


@pytest.fixture(scope="module")
def whole() -> Survey:
    """A survey of 60 sentences, with its controls."""
    return survey_model(sentences(60), open_source("toy"), SurveySettings(controls=20))


def same(one: Survey, other: Survey, within: float) -> None:
    """Both hold the same numbers, sums relative to their size."""
    assert one.n_sentences == other.n_sentences
    assert one.n_tokens == other.n_tokens
    assert np.array_equal(one.heads.counts, other.heads.counts)
    # Where two weights of a row are equal but for rounding, the largest may be another in another batch.
    smooth = [at for at, measure in enumerate(measures_of()) if measure.takes != "peaks"]
    for a, b in (
        (one.heads.sums[..., smooth], other.heads.sums[..., smooth]),
        (one.offsets.sums, other.offsets.sums),
    ):
        assert np.abs(a - b).max() <= within * max(1, np.abs(a).max())
    assert list(one.sample) == list(other.sample)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_parts_make_the_whole(whole: Survey, order: tuple[int, ...]) -> None:
    """Parts measured apart, in either order, are the whole: counts exactly, sums within 1e-6, controls too."""
    lines = sentences(60)
    parts = (lines[:7], lines[7:31], lines[31:])
    merged = survey_parts(
        [parts[number] for number in order], open_source("toy"), SurveySettings(controls=20)
    )
    same(whole, merged, 1e-6)
    assert whole.controls is not None
    assert merged.controls is not None
    measures = measures_of()
    roles = [measure for measure in measures if measure.role is not None]
    for one, other, columns in (
        (whole.controls.chance, merged.controls.chance, measures),
        (whole.controls.untrained, merged.controls.untrained, roles),
    ):
        assert one is not None
        assert other is not None
        assert np.array_equal(one[1], other[1])
        smooth = [at for at, measure in enumerate(columns) if measure.takes != "peaks"]
        assert np.abs(one[0] - other[0])[..., smooth].max() < 1e-4
    assert links_of(merged) == links_of(whole)
    heads, again = (
        [(head.name, [role.name for role in head.roles]) for head in compare(one, corpus="").heads]
        for one in (whole, merged)
    )
    assert heads == again


def links_of(found: Survey) -> tuple[object, ...]:
    """All that a survey holds of relations, to compare."""
    made, controls = found.relations, found.controls
    assert made is not None
    assert controls is not None
    return (
        [
            (name, one.hits.tolist(), one.offsets.tolist(), one.counts.tolist(), one.lost)
            for name, one in made.by_name.items()
        ],
        [(key, one.annotation) for key, one in found.linked.items()],
        [(key, one.names, one.hits.tolist(), one.lost) for key, one in controls.found.items()],
    )


def test_long_sentences_are_the_same_in_any_batch() -> None:
    """Long sentences are measured a few rows at a time, with what batch they may be in."""
    words = [word for line in sentences(200) for word in line.text.split()]
    lines = [
        CorpusLine(number=number, text=" ".join(words[:n_words]))
        for number, n_words in enumerate((5, 350, 370, 520), 1)
    ]
    source, settings = open_source("toy-random"), SurveySettings(controls=0)
    together = survey_model(lines, source, settings, tokens=4096)
    same(together, survey_model(lines, source, settings, tokens=1), 1e-6)


def test_bad_lines_are_counted_and_named() -> None:
    """Lines that no model can read, and those that this one cannot, are left out and told; long ones are cut."""
    lines: list[CorpusLine | BadLine] = [
        CorpusLine(number=1, text="She is eating a green apple"),
        BadLine(number=2, reason="it is no JSON"),
        CorpusLine(number=3, text="xyzzy plugh"),
        CorpusLine(number=4, text="the " * 500),
        CorpusLine(number=5, text="There is a prince"),
    ]
    found = survey_model(lines, open_source("toy"), SurveySettings(controls=2))
    assert (found.n_sentences, found.n_cut, found.n_bad) == (3, 1, 2)
    assert [line.number for line in found.bad] == [2, 3]
    assert "it is no JSON" in found.bad[0].reason
    assert "knows none of these words" in found.bad[1].reason


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
    found = compare(survey, corpus="", entries=with_thresholds(0.01))
    roles = [role for head in found.heads for role in head.roles if role.name == "previous"]
    assert roles
    assert {reason(role.doubt).partition(" (")[0] for role in roles} == {
        "no control was taken, or on too few sentences"
    }


def test_a_relation_has_examples() -> None:
    """Of a head that finds a relation the sentences are kept of whose links it finds most; merged parts keep them."""
    lines, source, settings = corpus_lines(40), open_source("toy"), SurveySettings(controls=40)
    examples, of_parts = (
        relations.examples_of(found.linked)["1.3", "relation_coreference"]
        for found in (
            survey_model(lines, source, settings),
            survey_parts([lines[:15], lines[15:]], source, settings),
        )
    )
    assert [example.score for example in examples[:3]] == [1.0, 1.0, 1.0]
    assert all(" it " in example.text for example in examples)
    assert of_parts == examples


def test_memory_does_not_grow_with_the_corpus() -> None:
    """What is kept of four times as many sentences takes no more room than what is kept of a quarter."""
    surveyor = Surveyor([open_source("toy-random")], SurveySettings())
    few, many = (len(pickle.dumps(surveyor.measure_all(sentences(n)))) for n in (150, 600))
    assert many < 1.1 * few
