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
    """W x of one word: the Frobenius norm of W for it, and 0 for the others."""
    monkeypatch.setattr(gradients, "PROBES", 3000)
    random = torch.Generator().manual_seed(2)
    weight = torch.randn(7, 5, generator=random)
    x = torch.randn(2, 3, 5, generator=random).requires_grad_()
    norms = gradients.jacobian_norms(x[:, 1] @ weight.T, x, random)
    assert norms[:, 1].tolist() == pytest.approx([float(weight.norm())] * 2, rel=0.05)
    assert not norms[:, [0, 2]].any()


def test_the_reach_of_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against the whole Jacobian of the last state by the words' vectors, computed by differences of the inputs."""
    monkeypatch.setattr(gradients, "PROBES", 400)
    _, model = open_model(gradients.MODEL, RecurrentTranslator)
    pairs = gradients.sentences(1)
    source, _ = encode_pairs(pairs, model.config.end)
    assert source.shape == (1, gradients.LENGTH)
    model.attention = None  # the way along it is not measured here
    chain, _ = gradients.reach(model, pairs)
    model = model.double()
    x, step = model.source_embedding(source).detach(), 1e-5
    moves = step * torch.eye(x.shape[-1], dtype=x.dtype)
    for distance in (0, 3, gradients.LENGTH - 1):
        moved = x.repeat(2 * len(moves), 1, 1)
        moved[:, gradients.LENGTH - 1 - distance] += torch.cat([moves, -moves])
        more, less = model.encoder(moved)[1][0].detach().chunk(2)
        length = float(((more - less) / (2 * step)).norm())
        assert float(chain[0, distance]) == pytest.approx(length, rel=0.1)


def test_what_is_found(story: Story) -> None:
    """Far back little is left along the chain, and as much as ever along attention; the table is the picture."""
    (panel,) = story.picture
    assert isinstance(panel, Lines)
    attention, chain, alone = panel.series
    assert chain.values[0] == attention.values[0] == alone.values[0] == pytest.approx(1)
    assert chain.values[-1] < 0.2
    assert attention.values[-1] > 0.5
    assert chain.values[-1] < alone.values[-1]
    assert chain.high[-1] < attention.low[-1]
    far = gradients.LENGTH - 1
    shares = [f"{100 * one.values[-1]:.1f} %" for one in (chain, attention)]
    assert story.title == (
        f"{far} words back: {shares[0]} of the last word's gradient along the chain, {shares[1]} along attention"
    )
    table = tables(story)[0]
    for row, back in zip(table.rows, gradients.SHOWN, strict=True):
        assert row[0] == back
        assert [str(cell).split()[0] for cell in row[1:]] == [
            f"{one.values[back]:.3f}" for one in panel.series
        ]


def test_a_model_without_attention_has_no_way_along_it() -> None:
    """Only its chain is measured."""
    _, model = open_model(gradients.WITHOUT, RecurrentTranslator)
    chain, attention = gradients.reach(model, gradients.sentences(2))
    assert attention is None
    assert chain.shape == (2, gradients.LENGTH)
