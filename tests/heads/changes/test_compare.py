"""Two models held against each other: what differs is found, what does not is 0, and both must read the same."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count, islice
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.capture.observers import KeepWeights
from attnviz.capture.source import open_source
from attnviz.errors import InputError, ModelError, RecordError, SelectionError, SettingsError
from attnviz.heads import files as surveys
from attnviz.heads import survey, tally
from attnviz.heads.capture.divergences import divergence_between
from attnviz.heads.capture.survey import check_readable
from attnviz.heads.changes.compare import (
    changes,
    difference,
    is_main,
    largest_changes,
    relation_changes,
    role_difference,
    sort_changes,
)
from attnviz.heads.changes.record import MOST, Changes
from attnviz.heads.relations import HALF_GROUPS, SCORE, LinkHits, Relations, count_links, half_of
from attnviz.heads.settings import SurveySettings
from attnviz.heads.wording import note_words
from attnviz.models.language import splits
from attnviz.models.language.splits import corpus_lines
from attnviz.text.corpus import BadLine, CorpusLine
from tests.heads.surveys import survey_corpus, survey_pair

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from attnviz.capture.sources import Source
    from attnviz.heads.survey import Surveys

pytestmark = pytest.mark.usefixtures("whole_corpora", "few_seeds")

CHANGED = 3
"""The layer of the real model whose queries get noise: a child tuned in one place."""


def sentences(n: int, skip: int = 0) -> list[CorpusLine]:
    """So many sentences that all models know."""
    made = splits.sentences("test")
    words = [next(made).words for _ in range(skip + n)][skip:]
    return [CorpusLine(number=number, text=" ".join(one)) for number, one in enumerate(words, 1)]


def tuned(folder: str, noise: float = 0.08) -> Source:
    """The real model with noise on the query weights of one layer."""
    source = open_source(folder)
    weights = source._model.encoder.layer[CHANGED].attention.self.query.weight  # type: ignore[attr-defined]
    with torch.no_grad():
        weights += noise * torch.randn(weights.shape, generator=torch.Generator().manual_seed(1))
    source.name = "tuned"
    return source


def changed(found: Surveys) -> Changes:
    """What that says."""
    return changes(found.before, found.after, found.divergences, corpus="sentences")


def apart(found: Surveys) -> tally.Tally:
    """How far patterns are apart."""
    assert found.divergences is not None
    return found.divergences


@pytest.fixture(scope="module")
def of_real(real_model: str) -> Surveys:
    """The real model and the tuned one."""
    return survey_pair(
        sentences(40), open_source(real_model), tuned(real_model), SurveySettings(controls=4)
    )


@pytest.fixture(scope="module")
def of_toys() -> Surveys:
    """The home-built encoder and its twin of random weights."""
    source = open_source("toy")
    return survey_pair(sentences(60), source, source.untrained(), SurveySettings(controls=8))


def entropy(row: np.ndarray) -> float:
    """H(p), nats: 0 ln 0 is 0."""
    return -float(sum(p * math.log(p) for p in row.tolist() if p > 0))


def by_formula(
    before: Source, after: Source, lines: Sequence[CorpusLine], kind: str | None = None
) -> np.ndarray:
    """The mean divergence of each head's rows, straight from the definition, sentence by sentence, in double."""
    totals, n = np.zeros(()), 0
    for line in lines:
        kept = []
        target = None
        for source in (before, after):
            batch = source.encode([line.text], kind=kind, targets=[target])  # type: ignore[arg-type]
            target = batch.sentences[0].target
            keep = KeepWeights()
            source.stream(batch, [keep])
            kept.append(keep.weights(0).astype(np.float64))
        causal = not np.triu(kept[0], 1).any() and kept[0].shape[2] == kept[0].shape[3]
        rows = range(
            1 if causal else 0, kept[0].shape[2]
        )  # a row that sees one key only has nothing to choose
        totals = totals + np.array(
            [
                [
                    sum(
                        entropy((p[i] + q[i]) / 2) - (entropy(p[i]) + entropy(q[i])) / 2
                        for i in rows
                    )
                    for p, q in zip(*layer, strict=True)
                ]
                for layer in zip(*kept, strict=True)
            ]
        )
        n += len(rows)
    return np.asarray(totals / n)


# How far patterns are apart.


@pytest.mark.parametrize("name", ["real", "toy", "toy-decoder", "toy-transformer"])
def test_divergences_equal_their_formula(name: str, real_model: str) -> None:
    """Every head, on padded batches, against loops over rows: 1e-6; of what a model says, both say the same."""
    lines = sentences(5)
    before = open_source(real_model if name == "real" else name)
    after = tuned(real_model) if name == "real" else before.untrained()
    found = changed(survey_pair(lines, before, after, SurveySettings(controls=2)))
    expected = by_formula(before, after, lines)
    assert np.abs(found.matrix - expected).max() < 1e-6
    assert expected.max() > 0.01


def test_a_model_against_itself_is_0_everywhere(real_model: str) -> None:
    """No pattern, no measure, no role is another; nothing is established."""
    source = open_source(real_model)
    found = changed(survey_pair(sentences(12), source, source, SurveySettings(controls=2)))
    assert not found.matrix.any()
    assert found.pattern is not None
    assert not found.pattern.high.any()
    assert not np.nan_to_num(found.differences.value).any()
    for change in found.heads:
        assert change.same_pattern
        assert not change.role_changed
        assert not change.role_established
        assert not change.beyond_nearest
        assert not largest_changes(found, change)
    assert found.exceeds(0.0) == ()


def test_a_layer_that_was_tuned_is_found_and_those_before_it_are_0(of_real: Surveys) -> None:
    """Earlier layers are exactly as they were; the tuned layer's heads moved most; later ones hear of it."""
    found = changed(of_real)
    assert not found.matrix[:CHANGED].any()
    assert found.matrix[CHANGED].min() > 0.01
    assert found.matrix[CHANGED + 1 :].min() > 0
    assert found.matrix[CHANGED].mean() > 3 * found.matrix[CHANGED + 1 :].mean()
    assert {change.before.layer for change in sort_changes(found)[:5]} == {CHANGED}
    assert sort_changes(replace(found, pattern=None))[0].before.layer == CHANGED
    unchanged = found.heads[: CHANGED * 12]
    assert not any(change.role_changed or largest_changes(found, change) for change in unchanged)


def test_intervals_and_yardsticks_surround_what_they_should(of_real: Surveys) -> None:
    """Values lie in their intervals, changes between 0 and ln 2, and the nearest head is nearer than others are."""
    found = changed(of_real)
    for change in found.heads[CHANGED * 12 :]:
        assert 0 <= change.low <= change.pattern <= change.high <= MOST
        assert 0 < change.nearest < change.others
        assert change.share == change.pattern / change.others
        for one in largest_changes(found, change):
            assert is_main(one.measure)
            assert one.value == pytest.approx(one.after - one.before, abs=1e-12)
            assert one.low <= one.value <= one.high
    first = largest_changes(found, found.heads[CHANGED * 12], 2)
    assert len(first) == 2
    assert first[0].established


def test_paired_intervals_are_narrower(of_real: Surveys) -> None:
    """What sentences do to both models cancels: the interval is narrower than that of two apart."""
    found = changed(of_real)
    heads = of_real.after.heads
    turned = np.concatenate(
        [[0], 1 + np.roll(np.arange(len(heads.sums) - 1), 1)]
    )  # other sentences in each group
    other = replace(
        of_real.after, heads=replace(heads, sums=heads.sums[turned], counts=heads.counts[turned])
    )
    unpaired = changes(of_real.before, other, corpus="sentences")
    at = [
        found.before.names.index(name)
        for name in ("separator", "entropy_share", "confidence", "distance")
    ]
    widths = [
        (one.differences.high - one.differences.low)[CHANGED + 1 :, :, at]
        for one in (found, unpaired)
    ]
    assert np.median(widths[0] / widths[1]) < 0.7
    assert found.paired
    assert not unpaired.paired
    assert np.array_equal(found.differences.value, unpaired.differences.value)


def test_a_role_that_is_another_is_established_by_its_measure(of_toys: Surveys) -> None:
    """Training made roles; where one came or went, a measure that it is judged by differs for sure."""
    found = changed(of_toys)
    moved = [change for change in found.heads if change.role_changed]
    sure = [change for change in moved if change.role_established]
    assert sure
    for change in moved:
        judged = [role.measure for role in change.roles if role is not None]
        differs = [
            found.difference(name, change.before.layer, change.before.head).established
            for name in judged
            if name in found.before.names
        ]
        assert change.role_established == any(differs)
    assert any(change.beyond_nearest for change in found.heads)


def test_the_difference_of_variability_has_an_interval(of_toys: Surveys) -> None:
    """It is the difference of both values, jackknifed over groups of sentences."""
    found = changed(of_toys)
    at = found.before.names.index("variability")
    before, after = (
        survey.variability(one.places).value for one in (of_toys.before, of_toys.after)
    )
    assert np.allclose(found.differences.value[:, :, at], after - before)
    assert (found.differences.low[:, :, at] < found.differences.high[:, :, at]).all()


@settings(max_examples=25)
@given(
    rows=st.lists(
        st.tuples(*[st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4)] * 2),
        min_size=2,
        max_size=6,
    )
)
def test_divergence_is_symmetric_between_0_and_ln_2(
    rows: list[tuple[list[float], list[float]]],
) -> None:
    """Either way round the same, 0 on equal rows, and in its bounds."""
    pairs = np.array(rows).transpose(1, 0, 2) + np.eye(4)[0] * 1e-3  # (2, rows, 4)
    pairs /= pairs.sum(-1, keepdims=True)
    one, other = (torch.from_numpy(part)[None, None] for part in pairs)
    counted = torch.ones(1, len(rows), dtype=torch.bool)
    found, back, same = (
        divergence_between(*both, counted) for both in ((one, other), (other, one), (one, one))
    )
    assert found == back
    assert not same.any()
    assert 0 <= found[0, 0] <= len(rows) * MOST + 1e-6


def test_the_other_way_round_patterns_change_as_much_and_measures_the_other_way(
    of_toys: Surveys,
) -> None:
    """Before and after may be exchanged."""
    found = changed(of_toys)
    back = changes(of_toys.after, of_toys.before, of_toys.divergences, corpus="sentences")
    assert np.array_equal(found.matrix, back.matrix)
    assert np.array_equal(found.differences.value, -back.differences.value, equal_nan=True)
    assert np.allclose(found.differences.low, -back.differences.high, equal_nan=True)


def test_batches_change_nothing_and_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """In windows and batches of other sizes the same numbers within 1e-6; progress is told window by window."""
    source = open_source("toy")
    other = source.untrained()
    whole = survey_pair(sentences(40), source, other, SurveySettings(controls=4))
    monkeypatch.setattr("attnviz.heads.capture.survey.WINDOW", 16)
    told: list[tuple[Surveys, int]] = []
    parts = survey_pair(
        sentences(40),
        source,
        other,
        SurveySettings(controls=4),
        tokens=60,
        tell=lambda *stop: told.append(stop),
    )
    assert [n_lines for _, n_lines in told] == [16, 32, 40]
    assert [apart(found).n_sentences for found, _ in told] == [16, 32, 40]
    assert np.array_equal(apart(whole).counts, apart(parts).counts)
    assert np.abs(changed(whole).matrix - changed(parts).matrix).max() < 1e-6


@pytest.mark.parametrize("name", ["toy", "toy-transformer"])
def test_a_run_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """From each window that was told: every number of both surveys and of what is between them, to the last bit."""
    source = open_source(name)
    other = source.untrained()
    lines: list[CorpusLine | BadLine] = [
        *sentences(20),
        BadLine(number=21, reason="it is no JSON"),
        *sentences(3, skip=20),
    ]
    monkeypatch.setattr("attnviz.heads.capture.survey.WINDOW", 6)
    told: list[tuple[Surveys, int]] = []
    whole = survey_pair(
        lines, source, other, SurveySettings(controls=4), tell=lambda *stop: told.append(stop)
    )
    assert [n_lines for _, n_lines in told] == [6, 12, 18, 24]
    for found, n_lines in told:
        again = survey_pair(
            lines, source, other, SurveySettings(controls=4), so_far=found, n_lines=n_lines
        )
        assert np.array_equal(apart(again).sums, apart(whole).sums)
        assert (again.before.n_bad, again.after.n_bad) == (1, 1)
        for here, there in ((again.before, whole.before), (again.after, whole.after)):
            assert np.array_equal(here.heads.sums, there.heads.sums)
            assert here.sample.texts == there.sample.texts
            assert here.bad == there.bad == ((21, "it is no JSON"),)


def test_what_each_survey_says_is_what_it_says_alone(of_toys: Surveys) -> None:
    """In step or alone, a model is measured alike, controls included."""
    alone = survey_corpus(sentences(60), open_source("toy"), SurveySettings(controls=8))
    assert np.array_equal(alone.heads.counts, of_toys.before.heads.counts)
    assert (
        np.abs(alone.heads.sums - of_toys.before.heads.sums).max()
        <= 1e-6 * np.abs(alone.heads.sums).max()
    )
    assert alone.sample.controls.keys() == of_toys.before.sample.controls.keys()
    assert alone.about == of_toys.before.about


def test_without_likeness_there_are_no_yardsticks() -> None:
    """Patterns are compared all the same."""
    source = open_source("toy")
    found = changed(
        survey_pair(
            sentences(8), source, source.untrained(), SurveySettings(controls=2, similarity=False)
        )
    )
    assert np.isfinite(found.matrix).all()
    assert all(math.isnan(change.nearest) and math.isnan(change.share) for change in found.heads)
    assert found.before.similarity is None


# Of saved surveys.


def test_saved_numbers_of_the_same_sentences_are_paired(of_toys: Surveys) -> None:
    """Roles and measures are compared as if both had run in step; patterns are not, and that is said."""
    saved = changes(of_toys.before, of_toys.after, corpus="a", corpus_after="b")
    found = changed(of_toys)
    assert saved.paired
    assert saved.pattern is None
    assert np.isnan(saved.matrix).all()
    assert np.array_equal(saved.differences.low, found.differences.low, equal_nan=True)
    assert [one.role_changed for one in saved.heads] == [one.role_changed for one in found.heads]
    assert any("no patterns" in note for note in map(note_words, saved.notes))
    assert any("are paired" in note for note in map(note_words, saved.notes))
    with pytest.raises(SelectionError, match="both models are run"):
        saved.exceeds(0.1)


def test_files_of_the_same_sentences_are_paired(of_toys: Surveys, tmp_path: Path) -> None:
    """What was measured apart, at other times, and saved: paired by the words of the sentences."""
    source = open_source("toy")
    for name, one in (("a", source), ("b", source.untrained())):
        alone = survey_corpus(sentences(60), one, SurveySettings(controls=8), tokens=100)
        surveys.save_stats(
            surveys.Stats(survey=alone, corpora=("60",), run=surveys.SurveyRun()),
            tmp_path / f"{name}.stats",
        )
    before, after = (surveys.load_stats(tmp_path / f"{name}.stats").survey for name in "ab")
    found, in_step = changes(before, after, corpus="60"), changed(of_toys)
    assert found.paired
    smooth = [at for at, name in enumerate(found.before.names) if not name.startswith("peak")]
    for name in ("value", "low", "high"):
        one, other = (getattr(each.differences, name)[..., smooth] for each in (found, in_step))
        assert np.nanmax(np.abs(one - other)) < 1e-5


def test_other_sentences_are_not_paired_and_that_is_said(of_toys: Surveys) -> None:
    """As many sentences, but others: the differences of one model with itself are of the sentences alone."""
    other = survey_corpus(sentences(60, skip=60), open_source("toy"), SurveySettings(controls=8))
    assert not survey.same_sentences(of_toys.before, other)
    found = changes(of_toys.before, other, corpus="a", corpus_after="b")
    assert not found.paired
    assert any("not the same sentences" in note for note in map(note_words, found.notes))
    assert (found.before.corpus, found.after.corpus) == ("a", "b")
    # Nothing but chance differs: about one in twenty intervals excludes 0.
    at = [
        found.before.names.index(name)
        for name in ("self", "previous", "next", "entropy_share", "distance")
    ]
    outside = (found.differences.low[..., at] > 0) | (found.differences.high[..., at] < 0)
    assert outside.mean() < 0.25


# Relations between words.


@pytest.fixture(scope="module")
def of_coreference() -> Surveys:
    """The home-built encoder and its twin of random weights on sentences of which is known what “it” stands for."""
    source = open_source("toy")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "attnviz.heads.capture.survey.SEEDS", 8
        )  # of two alone no role is established
        return survey_pair(
            corpus_lines(150), source, source.untrained(), SurveySettings(controls=60)
        )


def links(n: int, right: float, seed: int) -> np.ndarray:
    """Of so many links, which are found."""
    return np.random.Generator(np.random.PCG64(seed)).random(n) < right


def scored(n: int) -> list[int]:
    """The keys of so many sentences of the half on which relations are scored."""
    keys = (tally.key_of(f"sentence {number}") for number in count())
    return list(islice((key for key in keys if half_of(key) == SCORE), n))


def relations(hits: np.ndarray) -> Relations:
    """One relation, a link a sentence, of a model of one head; the sentences are the same ones for the same length."""
    found = [
        (
            key,
            LinkHits(
                names=("obj",), hits=np.full((1, 2, 1, 1), hit), distances=np.array([1]), lost=()
            ),
        )
        for key, hit in zip(scored(len(hits)), hits, strict=True)
    ]
    return count_links(found, 1, 1)


def differing(hits: np.ndarray, hits_after: np.ndarray) -> tuple[float, float, float]:
    """How much more often the one head is right after, on the half that scores."""
    found = role_difference(relations(hits), relations(hits_after), "relation_obj", (0, 0))
    assert found is not None
    return found


def test_a_difference_of_shares_is_that_without_each_group() -> None:
    """Straight from the definition of the jackknife: the same sentences are left out of both models."""
    one = links(300, 0.6, 1)
    other = np.where(links(300, 0.8, 2), one, links(300, 0.9, 3))
    n = HALF_GROUPS
    group = np.array([key // 2 % n for key in scored(300)])
    without = np.array([(other.astype(float) - one)[group != g].mean() for g in range(n)])
    error = np.sqrt((n - 1) / n * ((without - without.mean()) ** 2).sum())
    value, *ends = differing(one, other)
    assert value == pytest.approx(other.mean() - one.mean())
    assert ends == pytest.approx([value - 2.13 * error, value + 2.13 * error], abs=0.02)
    assert differing(other, one) == pytest.approx((-value, -ends[1], -ends[0]))


def test_the_same_sentences_make_a_difference_of_relations_narrower() -> None:
    """What is hard for both models cancels."""
    one = links(300, 0.6, 1)
    other = one | links(300, 0.1, 2)
    _, low, high = differing(one, other)
    _, low_apart, high_apart = differing(one, np.roll(other, 150))
    assert high - low < 0.6 * (high_apart - low_apart)
    assert low > 0 > low_apart


@pytest.mark.usefixtures("checked_shapes")
@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 1), (1, 0), (0, 1)])
def test_few_links_establish_nothing(before: int, after: int) -> None:
    """Where each group says the same, the next link may still say something else."""
    n = 1 if before != after else 10
    value, low, high = differing(np.full(n, before, dtype=bool), np.full(n, after, dtype=bool))
    assert value == after - before
    assert -1 <= low < 0 < high <= 1
    assert low <= value <= high


@pytest.mark.usefixtures("checked_shapes")
def test_no_link_is_no_difference() -> None:
    """What was not counted is no number, and what only one model was measured on is not there."""
    nothing = np.zeros(tally.GROUPS + 1, dtype=np.int32)
    assert all(map(math.isnan, difference((nothing, nothing), (nothing, nothing))))
    one = relations(links(9, 0.5, 1))
    assert role_difference(one, None, "relation_obj", (0, 0)) is None
    assert role_difference(one, one, "previous", (0, 0)) is None
    assert relation_changes(one, None, (), ()) == ()


@pytest.mark.usefixtures("checked_shapes")
def test_each_relation_has_the_change_of_its_best_heads(of_coreference: Surveys) -> None:
    """Training found out what “it” stands for; random weights did not: that is sure, and it is another head."""
    found = changed(of_coreference)
    assert [one.name for one in found.relations] == [one.name for one in found.before.relations]
    (one,) = [one for one in found.relations if one.name == "coreference"]
    assert (one.before, one.after) == (found.before.relations[0], found.after.relations[0])
    assert one.value == one.after.accuracy - one.before.accuracy
    assert one.before.n == one.after.n
    assert one.low <= one.value <= one.high < -0.1
    assert one.established
    assert one.moved == (
        (one.before.layer, one.before.head, one.before.reverse)
        != (one.after.layer, one.after.head, one.after.reverse)
    )
    back = changes(of_coreference.after, of_coreference.before, corpus="").relations[0]
    assert (back.value, back.low, back.high) == pytest.approx((-one.value, -one.high, -one.low))
    assert (
        changes(of_coreference.before, of_coreference.before, corpus="").relations[0].changed
        is False
    )
    without = replace(of_coreference.after, relations=None)
    assert changes(of_coreference.before, without, corpus="").relations == ()


def test_a_role_of_a_relation_is_established_by_what_it_finds(of_coreference: Surveys) -> None:
    """A head that lost the role of a relation for sure has lost it, and one that nearly finds as many has not."""
    found = changed(of_coreference)
    lost = [
        change
        for change in found.heads
        if change.role_changed
        and change.roles[0] is not None
        and change.roles[0].name == "relation_coreference"
    ]
    assert lost
    one, other = of_coreference.before.relations, of_coreference.after.relations
    for change in lost:
        ends = role_difference(
            one, other, "relation_coreference", (change.before.layer, change.before.head)
        )
        assert ends is not None
        assert ends[2] < 0
        assert change.role_established
    blind = changes(
        replace(of_coreference.before, heads=of_coreference.after.heads),
        of_coreference.after,
        corpus="",
    )
    assert any(change.role_established for change in blind.heads), (
        "no measure differs here, but what is found does"
    )


# What is watched.


def test_a_threshold_names_the_heads_above_it(of_real: Surveys) -> None:
    """The largest change first, by its value; a threshold that can be met by nothing is refused."""
    found = changed(of_real)
    above = found.exceeds(0.02)
    assert above
    assert [change.name for change in above] == [
        change.name for change in sort_changes(found) if change.pattern > 0.02
    ]
    assert found.exceeds(0.69) == ()
    for wrong in (-0.1, 0.7, math.nan):
        with pytest.raises(SettingsError, match="ln 2"):
            found.exceeds(wrong)


def test_a_watch_that_sees_nothing_is_not_silent() -> None:
    """One token has no row to compare."""
    source = open_source("toy")
    found = changed(
        survey_pair(
            [CorpusLine(number=1, text="apple")],
            source,
            source.untrained(),
            SurveySettings(controls=1),
        )
    )
    assert np.isnan(found.matrix).all()
    with pytest.raises(InputError, match="no row"):
        found.exceeds(0.1)


def test_what_never_ends_is_cut_alike() -> None:
    """A translator of random weights says words without end: the trained one is made to say the same, to the last."""
    source = open_source("toy-transformer")
    found = survey_pair(sentences(2), source.untrained(), source, SurveySettings(controls=2))
    assert found.before.n_tokens == found.after.n_tokens > 200
    assert found.before.n_bad == 0
    assert (changed(found).matrix > 0).all()


# What cannot be compared.


def test_other_tokens_are_refused_with_both_spellings(real_model: str) -> None:
    """Which sentence, and how each model cuts it."""
    lines = [CorpusLine(number=7, text="She is eating a green apple")]
    with pytest.raises(
        ModelError, match=r"line 7, “She is eating.*\[CLS\].*\(8 tokens\).*6 tokens\) to toy"
    ):
        survey_pair(lines, open_source(real_model), open_source("toy"))


def test_one_sentence_is_no_line(real_model: str) -> None:
    """It is read by both before anything is measured; what they cut otherwise is said of the sentence."""
    source = open_source("toy")
    check_readable("the boy sees a girl .", [source, source.untrained()])
    with pytest.raises(
        ModelError, match=r"cut this sentence into other tokens: “She is.*” is .*\[CLS\]"
    ) as refusal:
        check_readable("She is eating a green apple", [open_source(real_model), source])
    assert "line" not in str(refusal.value)
    with pytest.raises(InputError):
        check_readable("xyzzy plugh", [source, source.untrained()])


def test_hours_of_lines_that_cannot_be_used_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are counted, the first of them named, whether a sentence comes before them or after."""
    monkeypatch.setattr("attnviz.heads.capture.survey.WINDOW", 10)
    source = open_source("toy")
    bad = [BadLine(number=number, reason="it is no JSON") for number in range(1, 96)]
    more = [replace(line, number=line.number + 97) for line in bad]
    found = survey_pair(
        [*bad, *sentences(2), *more], source, source.untrained(), SurveySettings(controls=2)
    )
    assert (found.before.n_bad, found.after.n_bad) == (190, 190)
    assert [number for number, _ in found.before.bad] == list(range(1, survey.BAD_LINES + 1))


def test_other_numbers_of_heads_are_refused() -> None:
    """With both numbers."""
    one, other = (
        open_source("toy-random", sizes={"n_layers": 2}),
        open_source("toy-random", sizes={"n_layers": 3}),
    )
    with pytest.raises(RecordError, match=r"2 x .*3 x "):
        survey_pair(sentences(3), one, other)


def test_other_kinds_of_attention_are_refused() -> None:
    """Who looks back only is not held against who looks both ways."""
    with pytest.raises(ModelError, match=r"toy has encoder attention.*toy-decoder has decoder"):
        survey_pair(sentences(3), open_source("toy"), open_source("toy-decoder"))


def test_surveys_measured_otherwise_are_refused(of_toys: Surveys) -> None:
    """Special tokens, rules, layers, and the same sentences cut into other tokens."""
    about = replace(of_toys.after.about, specials="exclude")
    with pytest.raises(RecordError, match=r"special tokens: .*keep.*exclude"):
        changes(of_toys.before, replace(of_toys.after, about=about), corpus="")
    with pytest.raises(RecordError, match="cut them into the same tokens"):
        changes(
            of_toys.before, replace(of_toys.after, n_tokens=of_toys.after.n_tokens + 1), corpus=""
        )
    fewer = replace(
        of_toys.after,
        heads=tally.Tally(
            sums=of_toys.after.heads.sums[:, :1],
            counts=of_toys.after.heads.counts[:, :1],
            n_sentences=60,
        ),
    )
    with pytest.raises(RecordError, match="layers x heads"):
        changes(of_toys.before, fewer, corpus="")


def test_bad_lines_are_left_out_of_both_and_named() -> None:
    """What one of the models cannot read, neither is measured on."""
    source = open_source("toy")
    lines: list[CorpusLine | BadLine] = [
        *sentences(4),
        BadLine(number=5, reason="it is no JSON"),
        CorpusLine(number=6, text="xyzzy plugh"),
    ]
    found = survey_pair(lines, source, source.untrained(), SurveySettings(controls=2))
    for one in (found.before, found.after):
        assert (one.n_sentences, one.n_bad) == (4, 2)
        assert [number for number, _ in one.bad] == [5, 6]
    assert apart(found).n_sentences == 4


@pytest.mark.parametrize("lines", [(), (BadLine(number=9, reason="it is no JSON"),)])
def test_nothing_to_compare(lines: Sequence[BadLine]) -> None:
    """Nothing to compare is said, with the first reason."""
    source = open_source("toy")
    with pytest.raises(InputError, match="no sentence" + (".*line 9" if lines else "")):
        survey_pair(lines, source, source)


def test_one_sentence_has_no_intervals() -> None:
    """The change is there, nothing is established, and it is said why."""
    source = open_source("toy")
    found = changed(
        survey_pair(sentences(1), source, source.untrained(), SurveySettings(controls=1))
    )
    assert (found.matrix > 0).any()
    assert not any(change.beyond_nearest or change.role_established for change in found.heads)
    assert not any(
        one.established for change in found.heads for one in largest_changes(found, change)
    )
    assert any("one sentence" in note for note in map(note_words, found.notes))
