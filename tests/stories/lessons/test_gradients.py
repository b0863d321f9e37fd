"""The demo of gradients: they fade along the chain of a recurrent encoder, and not along attention."""

from __future__ import annotations

import pytest
import torch

from attnviz.models.seq2seq import RecurrentTranslator
from attnviz.models.training.tasks import encode_pairs
from attnviz.stories.common import open_model
from attnviz.stories.lessons import gradients
from attnviz.stories.record import Lines, Story
from tests.stories.parts import tables


def test_norms_of_a_known_jacobian(monkeypatch: pytest.MonkeyPatch) -> None:
    """W x of one word has the Frobenius norm of W for it, and 0 for the others."""
    monkeypatch.setattr(gradients, "N_PROBES", 3000)
    random = torch.Generator().manual_seed(2)
    weight = torch.randn(7, 5, generator=random)
    x = torch.randn(2, 3, 5, generator=random).requires_grad_()
    norms = gradients.jacobian_norms(x[:, 1] @ weight.T, x, random)
    assert norms[:, 1].tolist() == pytest.approx([float(weight.norm())] * 2, rel=0.05)
    assert not norms[:, [0, 2]].any()


def test_chain_of_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the Jacobian of the last state by each word's vector, computed by differences."""
    monkeypatch.setattr(gradients, "N_PROBES", 400)
    model = open_model(gradients.MODEL, RecurrentTranslator)[1]
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


def test_findings(story: Story) -> None:
    """Far back little is left along the chain, and as much as ever along attention."""
    (panel,) = story.picture
    assert isinstance(panel, Lines)
    attention, chain, alone = panel.series
    assert chain.values[0] == attention.values[0] == alone.values[0] == pytest.approx(1)
    assert chain.values[-1] < 0.2 < alone.values[-1]
    assert chain.high[-1] < 0.5 < attention.low[-1]
    for share in (chain.values[-1], attention.values[-1]):
        assert f"{100 * share:.1f}%" in story.title
    for row in tables(story)[0].rows:
        shown = [str(cell).split()[0] for cell in row[1:]]
        assert shown == [f"{one.values[int(row[0])]:.3f}" for one in panel.series]
