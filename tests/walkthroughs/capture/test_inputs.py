"""Rotary positions: the angles found are the library's own, and what is no rotation is not taken for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from attnviz.attention import Note
from attnviz.walkthroughs.arithmetic import rotate
from attnviz.walkthroughs.capture.inputs import rotation_between
from attnviz.walkthroughs.files import load
from attnviz.walkthroughs.verify import verify
from tests.walkthroughs.head_walks import walk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.zoo import Zoo

HEADS = np.random.default_rng(3).normal(size=(3, 7, 12))
ANGLES = np.arange(7)[:, None] * 0.8 ** np.arange(6)


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("llama", ["query", "rotation"]),
        ("modernbert", ["query", "rotation"]),  # one fused projection makes all three
    ],
)
def test_the_angles_are_the_librarys(zoo: Zoo, name: str, steps: list[str], tmp_path: Path) -> None:
    """Each step from the projection on; the file of it is verified."""
    walked = walk(zoo.sentences[1], zoo.source(name), query=3, layer=1, head=1)
    made = {step.result: step for step in walked.steps}
    chain: list[str] = []
    result = "q"
    while result in made and made[result].name not in {"row", "norm"}:
        chain.insert(0, made[result].name)
        result = made[result].operands[0]
    assert chain == steps
    assert Note("rotated") in walked.notes
    model: Any = zoo.library(name)[1]
    config, positions = model.config, torch.arange(len(walked.grids["K"].values))[None]
    kind = [config.layer_types[1]] if name == "modernbert" else []
    cos, sin = model.rotary_emb(torch.zeros(1, 1, config.hidden_size), positions, *kind)
    angles = walked.grids["angles"].values
    for theirs, ours in ((cos, np.cos(angles)), (sin, np.sin(angles))):
        expected = theirs[0, :, : angles.shape[1]].double().numpy()
        np.testing.assert_allclose(ours, expected, atol=1e-5)
    assert walked.from_input is not None
    assert walked.from_input < 2e-6
    walked.save(tmp_path / "w.json")
    assert load(tmp_path / "w.json").steps == walked.steps
    assert verify(tmp_path / "w.json").fault == ""


@pytest.mark.parametrize("distance", [6, 1])
def test_a_rotation_is_found(distance: int) -> None:
    """Pairs of neighbours or of halves; what is not rotated has the angle 0."""
    angles = ANGLES * (np.arange(6) < 4)
    rotated = np.array([rotate(head, angles, float(distance)) for head in HEADS])
    found = rotation_between(HEADS, rotated)
    assert found is not None
    assert found.distance == distance
    np.testing.assert_allclose(found.angles, angles, atol=1e-9)


@pytest.mark.parametrize("name", ["phi", "gpt_oss", "qwen3"])
def test_other_rotations_are_taken_as_given(zoo: Zoo, name: str) -> None:
    """Of some columns, with a factor, behind a norm: the model's own query and keys are used, and a note says so."""
    walked = walk(zoo.sentences[1], zoo.source(name), query=3, layer=1, head=1)
    assert {"q", "K"} <= set(walked.inputs())
    assert Note.of("taken_as_given", names="q, K") in walked.notes


def test_what_is_no_rotation() -> None:
    """Another angle in one head, angles that do not grow with the position, a mirror, and noise."""
    turned = np.array([rotate(head, ANGLES, 6.0) for head in HEADS])
    other = turned.copy()
    other[2] = rotate(HEADS[2], ANGLES * 1.01, 6.0)
    unsteady = np.array([rotate(head, ANGLES**2, 6.0) for head in HEADS])
    noise = turned + np.random.default_rng(4).normal(size=turned.shape) * 1e-2
    for made in (
        other,
        unsteady,
        1.25 * turned,
        HEADS * np.where(np.arange(12) % 2, -1, 1),
        noise,
        HEADS[::-1],
    ):
        assert rotation_between(HEADS, made) is None
