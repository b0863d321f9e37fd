"""Training: it learns, the same from the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

from attnviz.models.language.grammar import load_grammar
from attnviz.models.language.vocabulary import load_vocabulary
from attnviz.models.registry import Recipe
from attnviz.models.training.run import rate_at, take_steps
from attnviz.models.training.tasks import dropping_heads, hide, loss_of, new_model
from tests.models.language.conftest import seeded
from tests.models.training.conftest import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from attnviz.models.registry import TrainingPlan


def trained(plan: TrainingPlan) -> dict[str, torch.Tensor]:
    """The weights of a model that was trained by its plan."""
    model = new_model(plan)
    take_steps(model, plan)
    return dict(model.state_dict())


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Whether weights are the same to the last bit."""
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.parametrize("kind", KINDS)
class TestTrain:
    """One loop for all models."""

    @pytest.mark.usefixtures("unchecked")
    def test_loss_falls(self, plan: Callable[..., TrainingPlan], kind: str) -> None:
        """By more than two fifths of a nat in 60 small steps."""
        losses: list[float] = []
        small = plan(kind, steps=60, batch=8)
        model = new_model(small)
        take_steps(model, small, progress=lambda _, loss: losses.append(loss))
        assert len(losses) == 60
        assert sum(losses[-10:]) / 10 < sum(losses[:5]) / 5 - 0.4
        assert not model.training

    def test_same_seed_same_weights(self, plan: Callable[..., TrainingPlan], kind: str) -> None:
        """Whatever random numbers others drew meanwhile; another seed, other weights."""
        one = trained(plan(kind, steps=4))
        torch.rand(5)
        assert equal(one, trained(plan(kind, steps=4)))
        assert not equal(one, trained(plan(kind, steps=4, seed=1)))

    def test_only_words_are_targets(self, plan: Callable[..., TrainingPlan], kind: str) -> None:
        """A model that keeps all its attention maps to itself has the same loss."""
        small = plan(kind)
        model = new_model(small)
        told = loss_of(model, small, 3)

        def withhold(_: nn.Module, __: Any, said: Any) -> Any:
            return said._replace(weights=None) if hasattr(said, "_replace") else (said[0], None)

        model.register_forward_hook(withhold)
        assert torch.equal(loss_of(model, small, 3), told)


class TestRate:
    """Up over the first twentieth, then down as a cosine."""

    def test_by_hand(self) -> None:
        """200 steps rise for 10, are half way down at 100, and end at nothing."""
        recipe = Recipe(steps=200, rate=2.0)
        rates = [rate_at(step, recipe) for step in range(200)]
        assert rates[0] == pytest.approx(0.2)
        assert rates[4] == pytest.approx(1.0, rel=2e-3)
        assert rates[100] == pytest.approx(1.0)
        assert rates[199] == pytest.approx(0, abs=2e-4)
        assert rates.index(max(rates)) == 9
        assert rate_at(0, Recipe(steps=1)) == pytest.approx(3e-3)


class TestTasks:
    """The content of batches."""

    def test_dropping_heads(self) -> None:
        """A head that is left out adds nothing; the others add more, so that the sum is the same on average."""
        query = torch.randn(101, 5, 2, 3)
        ones = torch.ones(101, 5, 2, 3)
        context, weights = dropping_heads(0.3, seeded(0))(query, query, ones, None)
        share = (context == 0).float().mean().item()
        assert 0.2 < share < 0.4
        torch.testing.assert_close(
            context[context != 0], torch.full_like(context[context != 0], 1 / 0.7)
        )
        assert ((context == 0).all(dim=(2, 3)) == (context == 0).any(dim=2).any(dim=-1)).all()
        assert weights is not None
        torch.testing.assert_close(weights.sum(-1), torch.ones(101, 5, 2))

    def test_hidden_words(self, plan: Callable[..., TrainingPlan]) -> None:
        """Of nouns, adjectives and verbs one in four is asked for, of other words one in ten.

        Of those three in five are hidden, one in five is another of the same form, one as it was.
        """
        config: Any = plan("encoder").config
        words = torch.randint(5, config.n_words, (200, 101))
        words[:, 90:] = 0
        shown, hidden = hide(seeded(0), words, config, 0.05)
        asked = hidden >= 0
        assert (hidden[asked] == words[asked]).all()
        assert not asked[:, 90:].any()
        assert (shown[:, 90:] == 0).all()
        n = 200 * 90
        known = load_vocabulary("english").words
        forms = {
            known.index(word): set(group)
            for group in load_grammar("english").alike()
            for word in group
        }
        here = words != 0
        of_a_form = torch.tensor([[int(number) in forms for number in row] for row in words])
        assert 0.23 < asked[of_a_form].float().mean() < 0.27
        assert 0.07 < asked[here & ~of_a_form].float().mean() < 0.13
        other = asked & of_a_form & (shown != 4) & (shown != words)
        assert all(
            known[int(new)] in forms[int(old)]
            for new, old in zip(shown[other], words[other], strict=True)
        )
        assert 0.56 < (shown[asked] == 4).float().mean() < 0.64
        assert 0.17 < (shown[asked] == words[asked]).float().mean() < 0.23
        rest = ~asked & (words != 0)
        assert 0.03 < (shown[rest] == 1).sum() / n < 0.07
        assert ((shown[rest] == words[rest]) | (shown[rest] == 1)).all()
