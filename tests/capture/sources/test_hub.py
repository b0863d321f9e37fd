"""A model from the hub, from the command line: downloaded, broken off, cached; refused in one clear line, and soon."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from attnviz import open_source
from attnviz.errors import UnknownModelError
from attnviz.results import load_record

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.capture.sources.conftest import Hub
    from tests.conftest import Run

DEFAULT = "distilbert-base-uncased"
SOMEBODY = "somebody/distilbert"
AT_ONCE = 8.0
"""Seconds in which a model that cannot be had must be refused: 5, and 3 more for a machine that is busy."""


def test_first_download_then_cache(heatmap: Run, hub: Hub, tmp_path: Path) -> None:
    """The default model is downloaded once; after that the hub is not asked for anything."""
    first = heatmap("I love all you", "-o", "first.npz")
    assert (first.returncode, first.stderr) == (0, "wrote first.npz\n")
    assert f"\n{DEFAULT} · bidirectional self-attention" in first.stdout
    assert first.stdout.count("\nlayer ") == 3
    assert "GET" in " ".join(hub.asked)
    hub.asked.clear()

    again = heatmap("I love all you", "-m", DEFAULT, "-o", "again.npz")
    assert (again.returncode, again.stderr, again.stdout) == (0, "wrote again.npz\n", first.stdout)
    assert hub.asked == []
    record = load_record(tmp_path / "first.npz")
    assert record == load_record(tmp_path / "again.npz")
    assert " ".join(token.text for token in record.query_tokens) == "[CLS] i love all you [SEP]"


def test_slow_hub_and_a_model_by_name(refused: Callable[..., str], hub: Hub) -> None:
    """A hub that answers too late is one line within seconds, and what to do instead."""
    hub.delay = 30
    began = time.monotonic()
    line = refused("I love all you", "-m", SOMEBODY)
    assert time.monotonic() - began < AT_ONCE
    assert line == (
        f"{SOMEBODY} is not in the cache, and the hub did not answer within 3 seconds: download it where there is a "
        "network, give a local folder, or use the home-built model (toy)"
    )


def test_nobody_listens(refused: Callable[..., str], heatmap: Run, hub: Hub) -> None:
    """A refused connection is one line at once; without a name, the home-built model stands in."""
    hub.close()
    began = time.monotonic()
    line = refused("I love all you", "-m", SOMEBODY)
    assert time.monotonic() - began < AT_ONCE
    assert line.startswith(
        f"{SOMEBODY} is not in the cache, and the hub cannot be reached ([Errno 111] Connection refused): download it"
    )
    result = heatmap("I love all you", "-o", "a.npz")
    assert result.returncode == 0
    assert result.stderr.startswith(
        f"attnviz: {DEFAULT} is not in the cache, and the hub cannot be reached ("
    )
    assert result.stderr.endswith("\nwrote a.npz\n")
    notice = result.stderr.splitlines()[0]
    assert '); using the home-built model "toy" instead' in notice
    assert "-m toy-random-bert:n_layers=6,d_model=768,n_heads=12" in notice


def test_offline_by_choice(refused: Callable[..., str], hub: Hub) -> None:
    """With HF_HUB_OFFLINE nobody is asked, and the line says why."""
    line = refused("I love all you", "-m", SOMEBODY, HF_HUB_OFFLINE="1")
    assert line.startswith(
        f"{SOMEBODY} is not in the cache, and the hub may not be asked (HF_HUB_OFFLINE is set): download it"
    )
    assert hub.asked == []


@pytest.mark.parametrize(
    ("status", "code", "line"),
    [
        (401, "RepoNotFound", f"there is no model '{SOMEBODY}' on the hub (or it is private)"),
        (
            401,
            "GatedRepo",
            f"{SOMEBODY} is gated: ask its owner for access, then log in with `hf auth login`",
        ),
    ],
)
def test_what_the_hub_refuses(
    refused: Callable[..., str], hub: Hub, status: int, code: str, line: str
) -> None:
    """A model that is absent, private or gated is said to be so."""
    hub.errors[SOMEBODY] = (status, code)
    assert refused("I love all you", "-m", SOMEBODY) == line


def test_somebody_else_answers(refused: Callable[..., str], hub: Hub) -> None:
    """A page to log in at, as in a hotel, is not taken for the hub."""
    hub.portal = True
    line = refused("I love all you", "-m", SOMEBODY)
    assert line.startswith(
        f"{SOMEBODY} is not in the cache, and what answers in the hub's place is not the hub: "
    )


@pytest.mark.parametrize("folder", [r"C:\models\bert", r"models\bert"])
def test_a_folder_of_windows(folder: str) -> None:
    """The letter of a drive is no name of a model with sizes, and the hub is not asked for a folder."""
    with pytest.raises(UnknownModelError, match="there is no folder"):
        open_source(folder)
