"""Heads made by hand are named for what they do; heads of random weights are named for nothing."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from attnviz.capture.source import as_source, open_source
from attnviz.heads.api import TREEBANK
from attnviz.heads.compare import compare
from attnviz.heads.measures import named as measures_named
from attnviz.heads.record import Estimates
from attnviz.heads.roles import Counts, roles_of
from attnviz.heads.settings import SurveySettings
from attnviz.storage.corpora.corpus import read_corpus
from attnviz.text.corpus import CorpusLine
from tests.heads.by_hand import LAYERS, ByHand
from tests.heads.surveys import survey_model, with_thresholds

if TYPE_CHECKING:
    from attnviz.heads.record import HeadComparison
    from attnviz.text.corpus import BadLine

pytestmark = pytest.mark.usefixtures("whole_corpora")


def sentences(n: int, seed: int = 0) -> list[CorpusLine]:
    """Words drawn at random, which come once more in the same order, then a full stop."""
    random = Random(seed)
    lines = []
    for number in range(1, n + 1):
        half = [f"w{random.randrange(21)}" for _ in range(random.randint(5, 12))]
        lines.append(CorpusLine(number=number, text=" ".join([*half, *half, "."])))
    return lines


@pytest.fixture(scope="module")
def by_hand() -> HeadComparison:
    """The model made by hand on 60 sentences."""
    return compare(
        survey_model(sentences(60), ByHand(), SurveySettings(controls=60)), corpus="made up"
    )


@pytest.fixture(scope="module")
def shipped() -> list[CorpusLine | BadLine]:
    """The sentences that ship."""
    return [*read_corpus(TREEBANK)]


def test_every_head_made_by_hand_is_named_right(by_hand: HeadComparison) -> None:
    """All twelve, and each is established."""
    expected = [
        (f"{layer}.{number}", name)
        for layer, heads in enumerate(LAYERS)
        for number, name in enumerate(heads)
    ]
    assert [(head.name, head.roles[0].name) for head in by_hand.heads] == expected
    for head in by_hand.heads:
        role = head.roles[0]
        assert role.established, (head.name, role.doubt)
        assert role.score > 0.85
        assert role.low <= role.score <= role.high
    # The same weights on keys at random are on the previous token in few rows, which could rule the role out.
    chance = by_hand.heads[0].roles[0].control("chance")
    assert chance is not None
    assert chance.value < 0.2
    assert chance.rules_out


def test_a_model_of_random_weights_has_no_established_role(
    shipped: list[CorpusLine | BadLine],
) -> None:
    """On the sentences that ship, at the usual settings."""
    found = compare(
        survey_model(shipped, open_source("toy-random"), SurveySettings()), corpus="shipped"
    )
    assert found.n_established == 0
    assert found.relations
    assert not [one.name for one in found.relations if one.role.established]


def test_controls_are_of_the_same_sentences(
    shipped: list[CorpusLine | BadLine], real_model: str
) -> None:
    """Controls are taken of 50 of the 452 sentences: where these are longer, random weights do less there, but no role.

    A causal model of random weights gives the token before a share that depends on nothing but how many there are.
    """
    from transformers import AutoTokenizer, GPT2Config, GPT2Model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1000)
        config = GPT2Config(
            vocab_size=30522, n_embd=48, n_layer=3, n_head=6, bos_token_id=0, eos_token_id=0
        )
        source = as_source(GPT2Model(config).eval(), AutoTokenizer.from_pretrained(real_model))
    survey = survey_model(shipped, source, SurveySettings())
    found = compare(survey, corpus="shipped", entries=with_thresholds(1e-9))
    assert found.n_established == 0


@pytest.mark.parametrize(("seen", "named"), [(24, []), (25, ["offset_-8"]), (100, ["offset_-8"])])
def test_an_offset_is_a_role_where_a_quarter_of_the_rows_see_it(
    seen: int, named: list[str]
) -> None:
    """Of an offset as long as the sentences a single row sees one: that is no role, whatever it does."""
    value, taken = np.array([[[1.0, 0.97]]]), measures_named(("entropy", "peak_-8"))
    made = roles_of(
        0,
        0,
        taken,
        Estimates(value=value, low=value - 0.01, high=value),
        {},
        Counts(rows=np.array([[100.0, seen]]), sentences=np.full((1, 2), 30.0), different=100),
    )
    assert [role.name for role in made] == named
