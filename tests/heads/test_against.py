"""A second model beside the first: the divergence of each head equals its formula, and both must read the same."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

import attnviz
from attnviz.capture.observers import WeightCollector
from attnviz.capture.source import open_source
from attnviz.errors import InputError, ModelError
from attnviz.heads.capture.divergences import divergence_between
from attnviz.heads.capture.survey import Surveyor
from attnviz.heads.compare import compare
from attnviz.heads.settings import SurveySettings
from attnviz.heads.terminal import draw_heads, draw_overview, draw_table
from attnviz.models.language import splits
from attnviz.render.terminal.screen import Screen
from attnviz.text.corpus import CorpusLine
from tests.heads.by_formula import entropy
from tests.heads.surveys import survey_model, survey_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from attnviz.capture.sources import Source
    from attnviz.heads.record import HeadComparison
    from attnviz.heads.survey import Survey
    from tests.fixtures.command_line import Result

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


def compared(found: Survey) -> HeadComparison:
    """Both models."""
    return compare(found, corpus="sentences")


def divergences(found: HeadComparison) -> np.ndarray:
    """The divergence of each head: (layer, head)."""
    values = [head.change.divergence for head in found.heads if head.change is not None]
    return np.array(values).reshape(found.n_layers, found.n_heads)


@pytest.fixture(scope="module")
def of_toys() -> Survey:
    """The home-built encoder and its twin of random weights."""
    source = open_source("toy")
    return survey_model(
        sentences(60), source, SurveySettings(controls=8), against=source.untrained()
    )


def by_formula(before: Source, after: Source, lines: Sequence[CorpusLine]) -> np.ndarray:
    """The mean divergence of each head's rows, straight from the definition, sentence by sentence, in double."""
    totals, n = np.zeros(()), 0
    for line in lines:
        kept = []
        target = None
        for source in (before, after):
            batch = source.encode([line.text], targets=[target])
            target = batch.sentences[0].target
            keep = WeightCollector()
            source.stream(batch, [keep])
            kept.append(keep.weights(0).astype(np.float64))
        causal = not np.triu(kept[0], 1).any() and kept[0].shape[2] == kept[0].shape[3]
        # a row that sees one key only has nothing to choose
        rows = range(1 if causal else 0, kept[0].shape[2])
        for layer, head in np.ndindex(*kept[0].shape[:2]):
            p, q = kept[0][layer, head], kept[1][layer, head]
            if not totals.shape:
                totals = np.zeros(kept[0].shape[:2])
            totals[layer, head] += sum(
                entropy((p[i] + q[i]) / 2) - (entropy(p[i]) + entropy(q[i])) / 2 for i in rows
            )
        n += len(rows)
    return np.asarray(totals / n)


def test_divergences_known_by_hand() -> None:
    """Equal heads 0, heads that share no key ln 2, half and half against one; rows that are not counted add nothing."""
    rows = torch.tensor([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]], [[0.5, 0.5]]])
    one = torch.cat([rows, torch.full_like(rows, 0.3)], dim=1)[None]
    other = torch.cat([rows[[1, 2, 3, 3]], torch.full_like(rows, 0.9)], dim=1)[None]
    half = 0.75 * math.log(4 / 3) + 0.25 * math.log(4) - math.log(2) / 2
    found = divergence_between(one, other, torch.tensor([[True, False]]))
    np.testing.assert_allclose(found, [[0, math.log(2), half, 0]], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["real", "toy-transformer"])
def test_divergences_equal_their_formula(name: str, real_model: str) -> None:
    """Every head, on padded batches, against loops over rows: 1e-6; of what a model says, both say the same."""
    lines = sentences(5)
    before = open_source(real_model if name == "real" else name)
    after = tuned(real_model) if name == "real" else before.untrained()
    found = compared(survey_model(lines, before, SurveySettings(controls=2), against=after))
    expected = by_formula(before, after, lines)
    assert np.abs(divergences(found) - expected).max() < 1e-6
    assert expected.max() > 0.01
    if name == "real":  # the layers before the one that was tuned are exactly as they were
        assert not divergences(found)[:CHANGED].any()
    for head in found.heads:
        assert head.change is not None
        assert 0 <= head.change.low <= head.change.divergence <= head.change.high <= math.log(2)


# What cannot be compared.


def test_other_tokens_are_refused(real_model: str) -> None:
    """Which sentence, and where the models differ; of a sentence alone there is no line."""
    lines = [CorpusLine(number=7, text="She is eating a green apple")]
    real, toy = open_source(real_model), open_source("toy")
    with pytest.raises(ModelError, match=r"line 7, “She is eating.*8 tokens.*6 to toy"):
        survey_model(lines, real, against=toy)
    with pytest.raises(ModelError, match="same tokens: “She is eating") as refusal:
        Surveyor([real, toy], SurveySettings()).encode("She is eating a green apple")
    assert "line" not in str(refusal.value)
    with pytest.raises(InputError):
        Surveyor([toy, toy], SurveySettings()).encode("xyzzy plugh")


def test_other_shapes_and_kinds_are_refused() -> None:
    """With both numbers, or both kinds."""
    one, other = (open_source(f"toy-random:n_layers={n}") for n in (2, 3))
    with pytest.raises(ModelError, match=r"same numbers of layers and heads: .*2 x .*3 x "):
        survey_model(sentences(3), one, against=other)
    with pytest.raises(ModelError, match=r"toy has encoder attention.*toy-decoder has decoder"):
        survey_model(sentences(3), open_source("toy"), against=open_source("toy-decoder"))


def test_parts_are_the_whole(of_toys: Survey) -> None:
    """Both halves together have the divergences of the whole."""
    source = open_source("toy")
    both = survey_parts(
        [sentences(30), sentences(30, skip=30)],
        source,
        SurveySettings(controls=8),
        against=source.untrained(),
    )
    assert np.abs(divergences(compared(both)) - divergences(compared(of_toys))).max() < 1e-9


# How it is shown, saved and asked for.


def test_views_have_the_divergence(of_toys: Survey) -> None:
    """The map, the table and the card say how far each head is."""
    found, screen = compared(of_toys), Screen(width=80, colour=False)
    head = max(found.heads, key=lambda one: one.change.divergence if one.change else 0.0)
    assert head.change is not None
    views = draw_overview(found, screen), draw_table(found, screen)
    for lines in (*views, draw_heads(found, [head.place], screen)):
        assert max(line.cell_len for line in lines) <= 80
        assert f"{head.change.divergence:.2f}" in "\n".join(line.plain for line in lines)
    assert "toy with random weights → toy" in " ".join(line.plain for line in views[0][:4])


def test_the_second_model_is_before(typed: Callable[..., Result], here: Path) -> None:
    """X --against Y reads Y -> X: the roles of X, and beside them those that Y has; one comparison in every file."""
    lines = [one.text for one in sentences(12)]
    (here / "lines.txt").write_text("\n".join(lines) + "\n")
    names = ["-o", "a.csv", "-o", "a.json", "-o", "a.html", "-o", "a.png"]
    command = ["compare-heads", "-m", "toy", "--corpus", "lines.txt"]
    result = typed(*command, "--against", "toy-random:n_layers=3,n_heads=6,d_model=48", *names)
    assert result.status == 0, result.errors
    found = attnviz.load(here / "a.json")
    assert (found.model, found.against.model.split()[0]) == ("toy", "toy-random")
    with (here / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    for head in found.heads:
        own = [row for row in rows if f"{row['layer']}.{row['head']}" == head.name]
        assert {float(row["divergence"]) for row in own} == {head.change.divergence}
        before = found.against.head(head.place).role
        assert head.change.role == before
        assert {row["role_before"] for row in own} == {"" if before is None else before.name}
    loaded = typed("compare-heads", "--load", "a.json", "-o", "c.csv")
    assert loaded.output == result.output
    assert (here / "a.csv").read_bytes() == (here / "c.csv").read_bytes()
