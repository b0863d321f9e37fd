"""The doctor: each architecture of the table in the docs, what is refused, and what the command prints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import attnviz
from attnviz.capture.sources import interface
from attnviz.errors import NoAttentionError
from tests.fixtures.architectures import ARCHITECTURES, PAGE, diagnose, row_of, write_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.capture.stream import Scoring
    from tests.fixtures.command_line import Result
    from tests.fixtures.zoo import Zoo


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_architecture(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """All layers are verified, alone and padded, weights are the library's own within 1e-6, and the row says so."""
    found = diagnose(name, tmp_path)
    assert found.refusal == ""
    assert found.unseen == ()
    # Gemma 4 does not divide its scores by anything, so that their rounding errors are larger.
    close = 5e-6 if name == "gemma4" else 1e-6
    assert all(layer.eager is not None and layer.eager <= close for layer in found.layers)
    row, page = row_of(name, found), PAGE.read_text(encoding="utf-8")
    if request.config.getoption("--rewrite-golden") and row not in page:
        rows = [line for line in page.splitlines() if not line.startswith(f"| {name} |")]
        last = max(number for number, line in enumerate(rows) if line.startswith("|"))
        first = next(number for number, line in enumerate(rows) if line.startswith("|---")) + 1
        rows[first : last + 1] = sorted([*rows[first : last + 1], row])
        page = "\n".join(rows) + "\n"
        PAGE.write_text(page, encoding="utf-8")
    assert f"\n{row}\n" in page


@pytest.mark.usefixtures("as_installed")
class TestRefused:
    """Models that cannot be verified or built."""

    @pytest.mark.parametrize(
        ("name", "planted"),
        [
            ("gemma2", {"softcap": None}),
            ("llama", {"scaling": 0.5}),
            ("mistral", {"mask": None, "causal": True}),
            ("t5", {"bias": None}),
            ("gpt_oss", {"sinks": None}),
        ],
    )
    def test_planted(
        self, name: str, planted: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A soft cap, a scale, a window, a bias or sinks overlooked: the first layer that has it is refused."""
        found = interface._scoring

        def overlook(*given: Any, **more: Any) -> Scoring:
            return replace(found(*given, **more), **planted)

        monkeypatch.setattr(interface, "_scoring", overlook)
        diagnosis = diagnose(name, tmp_path)
        assert diagnosis.refusal.startswith(
            "refused, because layer 0 is not verified: its captured weights"
        )
        assert diagnosis.verdict.startswith(f"{tmp_path.name}/{name}: refused, because layer 0")

    @pytest.mark.parametrize("native", ["sdpa", "eager"])
    def test_its_own_eager_way_is_another(self, zoo: Zoo, native: str) -> None:
        """The library's eager way adds Falcon's ALiBi twice: what is shown is the way that the model runs."""
        import transformers

        tokenizer = zoo.library("falcon_alibi")[0]
        model: Any = transformers.AutoModel.from_pretrained(
            zoo.folder("falcon_alibi"), attn_implementation=native
        )
        is_other = native == "sdpa"
        verdict = attnviz.doctor(model, tokenizer).verdict
        assert ("; output_attentions shows other weights than these (" in verdict) == is_other
        record = attnviz.attend("I love all you", model, tokenizer)
        assert record.receipt is not None
        assert record.receipt.native == ("sdpa" if is_other else "softmax")
        ids = torch.tensor([[token.id for token in record.query_tokens]])
        eager = model(ids, output_attentions=True).attentions[0][0].detach().numpy()
        if is_other:
            biases = np.multiply.outer([2**-4, 2**-8, 2**-2], np.arange(ids.shape[1]))
            eager = eager * np.exp(-biases[:, None] / 16**0.5)
            eager /= eager.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(record.weights[0], eager, rtol=0, atol=1e-6)

    def test_no_attention(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Mamba has none."""
        monkeypatch.setitem(
            ARCHITECTURES, "mamba", ("Mamba", {"hidden_size": 33, "num_hidden_layers": 2})
        )
        with pytest.raises(NoAttentionError, match=r"/mamba has no attention that attnviz can see"):
            diagnose("mamba", tmp_path)


def test_a_model_in_memory_stays_as_it_was(zoo: Zoo) -> None:
    """Its mode, its configuration and its own choice of attention."""
    tokenizer, model = zoo.library("distilbert")
    model.train()
    before = model.config.to_dict(), model.config._attn_implementation
    found = attnviz.doctor(model, tokenizer)
    assert found.verdict.startswith("DistilBertModel in memory, from ")
    assert (model.config.to_dict(), model.config._attn_implementation) == before
    assert model.training
    model.eval()


def test_home_built_models() -> None:
    """Each kind of attention of a home-built model; nothing else computes it, so nothing is compared with eager."""
    found = attnviz.doctor("toy-transformer")
    assert [(layer.kind, layer.number) for layer in found.layers] == [
        (kind, number) for kind in ("cross", "encoder", "decoder") for number in (0, 1)
    ]
    assert [layer.mask for layer in found.layers] == ["full"] * 4 + ["causal"] * 2
    assert found.verdict.startswith("toy-transformer: verified in 6 layers: ")
    assert all(layer.eager is None for layer in found.layers)


class TestCommand:
    """``attnviz doctor``."""

    @pytest.mark.parametrize("columns", [60, 80, 120])
    def test_printed(self, typed: Callable[..., Result], tmp_path: Path, columns: int) -> None:
        """The verdict first, then a row a layer, all of it in any window; columns without a cell are left out."""
        folder = write_config("gemma2", tmp_path)
        result = typed("doctor", str(folder), "--random", columns=columns)
        assert (result.status, result.errors) == (0, "")
        lines = result.output.splitlines()
        assert max(map(len, lines)) <= columns
        assert lines[0].startswith(f"{tmp_path.name}/gemma2: verified in 3 layers: ")
        rows = [line.split()[:5] for line in lines if line[:5].strip().isdigit()]
        assert rows[:3] == [[number, "decoder", "3", "1", "causal"] for number in "012"]
        assert "eager" not in typed("doctor", "toy", columns=columns).output.split("\n\n")[1]

    def test_refused(
        self, typed: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The verdict is the reason, the layers up to it are listed, and the status is 1."""
        found = interface._scoring
        monkeypatch.setattr(
            interface,
            "_scoring",
            lambda *given, **more: replace(found(*given, **more), scaling=2.0),
        )
        result = typed("doctor", str(write_config("bert", tmp_path)), "--random")
        assert result.status == 1
        assert "refused, because layer 0 is not verified" in " ".join(result.output.split())
        assert "\n    0  encoder" in result.output
