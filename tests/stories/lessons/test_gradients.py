"""The demo of gradients: they fade along an untrained recurrent chain, and not along attention."""

from __future__ import annotations

import pytest
import torch

from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.common import open_model
from attnviz.stories.lessons import gradients
from attnviz.stories.record import Lines, Story
from tests.stories.parts import panels, tables, told


def test_chain_of_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the Jacobian of the last state by each word's vector, computed by differences."""
    monkeypatch.setattr(gradients, "N_PROBES", 400)
    model = open_model("bottleneck-with-0", RecurrentTranslator)[1]
    pairs = gradients.sentence_pairs()[:1]
    source = encode_pairs(pairs, model.config.end)[0]
    model.attention = None  # only the chain is measured here
    chain, attention = gradients.gradient_norms(model, pairs)
    assert attention is None
    model = model.double()
    x, step = model.source_embedding(source).detach(), 1e-5
    moves = step * torch.eye(x.shape[-1], dtype=x.dtype)
    for distance in (0, 3, gradients.LENGTH - 1):
        moved = x.repeat(2 * len(moves), 1, 1)
        moved[:, gradients.LENGTH - 1 - distance] += torch.cat([moves, -moves])
        more, less = model.encoder(moved)[1][0].detach().chunk(2)
        norm = float(((more - less) / (2 * step)).norm())
        assert float(chain[0, distance]) == pytest.approx(norm, rel=0.1)


@pytest.mark.parametrize(
    ("kind", "least", "most"), [("RNN", 1e-5, 1e-4), ("GRU", 5e-4, 2e-3), ("LSTM", 5e-4, 2e-3)]
)
def test_untrained_chains(story: Story, kind: str, least: float, most: float) -> None:
    """In each network almost nothing is left 13 words back; the share is told in the title and the table."""
    norms = gradients.untrained_norms(gradients.UNTRAINED[kind])
    shares = norms[:, -1] / norms[:, 0]
    assert len(shares) == 10
    assert ((shares > least) & (shares < most)).all()
    lines = panels(story, Lines)[0]
    (series,) = (series for series in lines.series if series.name == kind)
    assert series.values[-1] == pytest.approx(float(shares.mean()), rel=0.1)
    assert series.low[-1] < series.values[-1] < series.high[-1]
    assert f"{kind} " in story.title
    assert f"{100 * series.values[-1]:.2g}%" in story.title
    table = tables(story)[0]
    column = table.columns.index(kind)
    shown = [float(row[column]) for row in table.rows]
    expected = [100 * series.values[int(row[0])] for row in table.rows]
    assert shown == pytest.approx(expected, abs=1e-4)


def test_trained_models(story: Story) -> None:
    """Without attention training keeps the chain open; with it, less is left there, and all along attention."""
    panel = panels(story, Lines)[1]
    attention, chain, alone = panel.series
    for series in panel.series:
        assert series.values[0] == pytest.approx(1)
    assert chain.high[-1] < alone.low[-1] < alone.high[-1]
    assert chain.high[-1] < 0.5 < attention.low[-1]
    assert f"{100 * attention.values[-1]:.1f}%" in story.title
    shares = [f"{100 * series.values[-1]:.1f}%" for series in (chain, alone)]
    assert f"{shares[0]} along the chain with attention and {shares[1]} without" in told(story)
    for row in tables(story)[1].rows:
        shown = [str(cell).split()[0] for cell in row[1:]]
        assert shown == [f"{series.values[int(row[0])]:.3f}" for series in panel.series]
