"""Training: it learns, the same from the same seed, and one call writes a file."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import Tensor, nn

from attnviz.errors import OutputError, SettingsError
from attnviz.models.language.grammar import load_grammar
from attnviz.models.language.vocabulary import load_vocabulary
from attnviz.models.registry import Recipe
from attnviz.models.training import files, measure
from attnviz.models.training.files import new_model
from attnviz.models.training.run import rate_at, take_steps, train
from attnviz.models.training.tasks import dropping_heads, hide, loss_of
from tests.models.training.conftest import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.models.registry import TrainingPlan


def trained(plan: TrainingPlan) -> Tensor:
    """All weights of a model that was trained by its plan, in a row."""
    model = new_model(plan)
    take_steps(model, plan)
    return nn.utils.parameters_to_vector(model.parameters())


@pytest.mark.parametrize("kind", KINDS)
class TestSteps:
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
        weights = trained(plan(kind, steps=4))
        torch.rand(5)
        assert torch.equal(weights, trained(plan(kind, steps=4)))
        assert not torch.equal(weights, trained(plan(kind, steps=4, seed=1)))

    def test_only_words_are_targets(self, plan: Callable[..., TrainingPlan], kind: str) -> None:
        """A model that keeps all its attention maps to itself has the same loss."""
        small = plan(kind)
        model = new_model(small)
        loss = loss_of(model, small, 3)

        def withhold(_: nn.Module, __: Any, output: Any) -> Any:
            is_named = hasattr(output, "_replace")
            return output._replace(weights=None) if is_named else (output[0], None)

        model.register_forward_hook(withhold)
        assert torch.equal(loss_of(model, small, 3), loss)


def test_rate() -> None:
    """200 steps rise for 10, are half way down at 100 along a cosine, and end at nothing."""
    recipe = Recipe(steps=200, rate=2.0)
    rates = [rate_at(step, recipe) for step in range(200)]
    assert rates[0] == pytest.approx(0.2)
    assert rates[4] == pytest.approx(1.0, rel=2e-3)
    assert rates[100] == pytest.approx(1.0)
    assert rates[199] == pytest.approx(0, abs=2e-4)
    assert rates.index(max(rates)) == 9
    assert rate_at(0, Recipe(steps=1)) == pytest.approx(3e-3)


def test_dropping_heads() -> None:
    """A head that is left out adds nothing; the others add more, so that the sum is the same on average."""
    query, ones = torch.randn(101, 5, 2, 3), torch.ones(101, 5, 2, 3)
    context, weights = dropping_heads(0.3, Random(0))(query, query, ones, None)
    is_out = (context == 0).flatten(2)
    assert 0.2 < is_out.float().mean() < 0.4
    assert torch.equal(is_out.all(dim=-1), is_out.any(dim=-1))
    kept = context[context != 0]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / 0.7))
    assert weights is not None
    torch.testing.assert_close(weights.sum(-1), torch.ones(101, 5, 2))


def test_hidden_words(plan: Callable[..., TrainingPlan]) -> None:
    """Of nouns, adjectives and verbs one in four is asked for, of other words one in ten.

    Of those three in five are hidden, one in five is another of the same form, one as it was.
    """
    config: Any = plan("encoder").config
    words = torch.randint(5, config.n_words, (200, 101))
    words[:, 90:] = 0
    shown, hidden = hide(Random(0), words, config, 0.05)
    asked, here = hidden >= 0, words != 0
    assert (hidden[asked] == words[asked]).all()
    assert not asked[:, 90:].any()
    assert (shown[:, 90:] == 0).all()
    known = load_vocabulary("english").words
    alike = load_grammar("english").alike()
    forms = {known.index(word): set(group) for group in alike for word in group}
    of_a_form = torch.tensor([[int(number) in forms for number in row] for row in words])
    assert 0.23 < asked[of_a_form].float().mean() < 0.27
    assert 0.07 < asked[here & ~of_a_form].float().mean() < 0.13
    other = asked & of_a_form & (shown != 4) & (shown != words)
    for new, old in zip(shown[other].tolist(), words[other].tolist(), strict=True):
        assert known[new] in forms[old]
    assert 0.56 < (shown[asked] == 4).float().mean() < 0.64
    assert 0.17 < (shown[asked] == words[asked]).float().mean() < 0.23
    rest = ~asked & here
    assert 0.03 < (shown[rest] == 1).sum() / here.sum() < 0.07
    assert ((shown[rest] == words[rest]) | (shown[rest] == 1)).all()


@pytest.mark.usefixtures("unchecked")
class TestTrain:
    """One call from Python, as the command line does it."""

    def test_one_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The file holds the weights and the card; threads, determinism and random numbers stay the caller's."""
        whole = measure.quality
        monkeypatch.setattr(measure, "quality", lambda model, clauses: whole(model, 5, clauses))
        before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        state, path, steps = torch.get_rng_state(), tmp_path / "a.safetensors", list[int]()
        for name in ("toy-decoder", "toy-seq2seq"):
            card = train(name, path, steps=3, progress=lambda step, _: steps.append(step))
            assert files.load_card(path) == card
            content = path.read_bytes()
            train(name, path, steps=3)
            assert path.read_bytes() == content
        assert steps == [0, 1, 2] * 2
        assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
        assert torch.equal(torch.get_rng_state(), state)

    def test_refused(self, tmp_path: Path) -> None:
        """A name that is not there, a model that is not trained, no place for the file."""
        for name in ("toy-foo", "toy-random"):
            with pytest.raises(SettingsError, match=f"no model '{name}' to train: "):
                train(name, tmp_path / "a.safetensors")
        for place in ("a.pt", "/proc/a.safetensors"):
            with pytest.raises(OutputError):
                train("toy-decoder", tmp_path / place)
