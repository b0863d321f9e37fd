"""The mean of heads or layers: the numbers, the words for it, and what has no mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import attnviz
from attnviz.errors import OutputError, SelectionError
from tests.fixtures.pictures import all_texts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from attnviz.attention import Attention
    from tests.fixtures.command_line import Result


@pytest.mark.parametrize(
    ("axes", "numpy_axes", "shape"),
    [(["heads"], 1, (2, 1)), (["layers"], 0, (1, 3)), ([], (0, 1), (1, 1))],
)
def test_the_numbers(
    make_record: Callable[..., Attention],
    axes: list[str],
    numpy_axes: int | tuple[int, int],
    shape: tuple[int, int],
) -> None:
    """They are NumPy's; rows still sum to 1."""
    record = make_record()
    mean = record.mean(*axes)  # type: ignore[arg-type]
    wanted = record.weights.mean(axis=numpy_axes, keepdims=True)
    assert mean.weights.shape[:2] == shape
    assert np.allclose(mean.weights, wanted, atol=1e-7)
    assert np.allclose(mean.weights.sum(axis=-1), 1, atol=1e-6)


def test_the_receipt_covers_what_was_averaged() -> None:
    """All layers of a mean over layers, one layer of a mean of its heads."""
    record = attnviz.attend("I love all you", "toy")
    assert record.mean().proof == record.proof
    assert record.mean("heads").select([1]).proof == record.select([1]).proof


def test_what_has_no_mean(make_record: Callable[..., Attention], tmp_path: Path) -> None:
    """A single head, an axis that is no axis of heads; a data file would lose the heads."""
    with pytest.raises(SelectionError, match="no mean of a single head"):
        make_record(n_heads=1).mean("heads")
    with pytest.raises(SelectionError, match="no mean of a single layer"):
        make_record().select([1]).mean("layers")
    for axis in ("tokens", ["heads", "layers"]):
        with pytest.raises(SelectionError, match="is neither 'layers' nor 'heads'"):
            make_record().mean(axis)  # type: ignore[arg-type]  # no axis
    with pytest.raises(OutputError, match="every head"):
        make_record().mean().save(tmp_path / "a.npz")


def test_in_python() -> None:
    """``"mean"`` stands in the place of a number."""
    record = attnviz.attend("I love all you", "toy")
    axes = attnviz.heatmap(record, layer="mean", head="mean")
    assert "mean of layers 0–2 x heads 0–5" in " ".join(all_texts(axes.figure))
    for layer, head in ((2, "mean"), ("mean", 3)):
        assert attnviz.heatmap(record, layer=layer, head=head) is not None
    for heads in ("2.3", ["2.3", "0.1"]):
        with pytest.raises(SelectionError, match="not both"):
            attnviz.heatmap(record, layer="mean", head=heads)


def test_chosen_heads_in_python() -> None:
    """Exactly the heads of a list, each under its name; with ``"mean"`` among them, their mean."""
    record = attnviz.attend("I love all you", "toy")
    whole = " ".join(all_texts(attnviz.heatmap(record, head=["1.2", (0, 1), "1.2"]).figure))
    assert "heads 0.1, 1.2" in whole
    assert [name in whole for name in ("head 0.1", "head 1.2", "head 0.2", "head 1.1")] == [
        True,
        True,
        False,
        False,
    ]
    mean = attnviz.heatmap(record, head=["0.1", "1.2", "mean"])
    assert "mean of heads 0.1, 1.2" in " ".join(all_texts(mean.figure))
    wanted = (record["0.1"] + record["1.2"]) / 2
    _whole, part = record.choose(head=["0.1", "1.2", "mean"])
    assert np.allclose(part.weights, wanted, atol=1e-7)
    _whole, part = record.choose(layer=1, head=[0, 2, "mean"])
    assert np.allclose(part.weights, record[1][[0, 2]].mean(axis=0), atol=1e-7)


@pytest.mark.parametrize(
    ("options", "answers"),
    [
        (["--head", "mean"], ["3 layers, mean of heads 0–5", "layer 2, mean", "Mean of 6 heads"]),
        (["--layer", "mean"], ["mean of layers 0–2, 6 heads", "head 5, mean", "Mean of 3 layers"]),
        (["--layer", "mean", "--head", "mean"], ["mean of layers 0–2 x heads 0–5"]),
        (
            ["--head", "0-2", "--head", "5", "--head", "mean"],
            ["3 layers, mean of heads 0, 1, 2, 5"],
        ),
        (
            ["--head", "0.1", "--head", "1.2", "--head", "mean"],
            ["toy · bidirectional self-attention · mean of heads 0.1, 1.2", "Mean of 2 heads"],
        ),
        (["--layer", "0-1", "--layer", "mean", "--head", "3"], ["mean of layers 0–1, head 3"]),
    ],
)
def test_on_the_command_line(
    typed: Callable[..., Result], here: Path, options: list[str], answers: list[str]
) -> None:
    """One large panel a layer, or a head; the picture is written, too."""
    result = typed("heatmap", "I love all you", "--toy", *options, "-o", "a.png")
    assert result.status == 0, result.errors
    for answer in answers:
        assert answer in result.output
    assert "verified" in result.output
    assert (here / "a.png").exists()


def test_chosen_heads_on_the_command_line(typed: Callable[..., Result], here: Path) -> None:
    """The heads in full size, in every format; a saved file opens as it was; a difference is of these heads."""
    options = ["--toy", "--head", "0.1", "--head", "1.2"]
    result = typed("heatmap", "I love all you", *options, "-o", "a.json", "-o", "a.html")
    shown = typed("heatmap", "--load", "a.json").output
    for output in (result.output, shown):
        assert "heads 0.1, 1.2" in output
        assert "head 0.1" in output
        assert "1.1" not in output
    changed = typed("heatmap", "I love all you", *options, "--against", "I love all dogs").output
    assert "head 1.2" in changed
    written = sorted(path.name for path in (here / "outputs").iterdir())
    assert written == [
        "heatmap-i-love-all-you-toy-heads-0-1-1-2-against-i-love-all-dogs.png",
        "heatmap-i-love-all-you-toy-heads-0-1-1-2.png",
    ]
    texts = typed("generate", "the cat", *options, "--max-new-tokens", "2", "-o", "b.npz").output
    assert "mean of 2 heads" in texts
    assert attnviz.load(here / "b.npz").chosen == ((0, 1), (1, 2))


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["--toy", "--head", "mean", "--head", "1.2"], "there is no mean of a single head"),
        (["--toy", "--head", "1.2", "--layer", "mean"], "contradict each other"),
        (["--toy", "--head", "mean", "-o", "a.json"], "data files hold every head"),
        (["-m", "toy-transformer", "--head", "mean"], "choose one with --kind"),
    ],
)
def test_refusals(
    refused: Callable[..., tuple[int, str]], arguments: list[str], answer: str
) -> None:
    """In one line, before anything is drawn."""
    assert answer in refused("heatmap", "I love all you", *arguments)[1]
