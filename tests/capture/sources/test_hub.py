"""A model from the hub, from the command line: downloaded, broken off, cached; refused in one clear line, and soon."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from attnviz.capture.sources.hub import SAFETENSORS_ONLY, locate
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


def partial_files(folder: Path) -> list[Path]:
    """What an unfinished download would leave."""
    return [
        path
        for path in folder.rglob("*")
        if "incomplete" in path.name or path.name.startswith("tmp_")
    ]


def test_first_download_then_cache(heatmap: Run, hub: Hub, tmp_path: Path) -> None:
    """The default model is downloaded once; after that the hub is not asked for anything, even where it is gone."""
    first = heatmap("I love all you", "-o", "first.npz")
    assert (first.returncode, first.stderr) == (0, "wrote first.npz\n")
    assert first.stdout.splitlines()[1] == f"{DEFAULT} · bidirectional self-attention"
    assert first.stdout.splitlines()[2].startswith("3 layers x 2 heads, layers down; ")
    assert "GET" in " ".join(hub.asked)
    hub.asked.clear()

    second = heatmap("I love all you", "-m", DEFAULT, "-o", "second.npz")
    assert (second.returncode, second.stderr, second.stdout) == (
        0,
        "wrote second.npz\n",
        first.stdout,
    )
    assert hub.asked == []

    hub.close()
    third = heatmap("I love all you", "-o", "third.npz", HF_HUB_OFFLINE="1")
    assert (third.returncode, third.stderr, third.stdout) == (0, "wrote third.npz\n", first.stdout)
    record = load_record(tmp_path / "first.npz")
    assert record == load_record(tmp_path / "second.npz") == load_record(tmp_path / "third.npz")
    assert [token.text for token in record.query_tokens] == [
        "[CLS]",
        "i",
        "love",
        "all",
        "you",
        "[SEP]",
    ]


def test_broken_off_in_the_middle(
    refused: Callable[..., str], heatmap: Run, hub: Hub, tmp_path: Path
) -> None:
    """A download that breaks off is one line and leaves no half of a file; the next one works."""
    hub.broken = True
    line = refused("I love all you", "-m", SOMEBODY)
    assert line.startswith(
        f"{SOMEBODY} cannot be downloaded: peer closed connection without sending complete message"
    )
    assert partial_files(tmp_path) == []
    hub.broken = False
    result = heatmap("I love all you", "-m", SOMEBODY, "-o", "a.npz")
    assert (result.returncode, result.stderr) == (0, "wrote a.npz\n")


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
    assert result.stderr.endswith('); using the home-built model "toy" instead\nwrote a.npz\n')


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
        (404, "RepoNotFound", f"there is no model '{SOMEBODY}' on the hub (or it is private)"),
        (401, "RepoNotFound", f"there is no model '{SOMEBODY}' on the hub (or it is private)"),
        (
            401,
            "GatedRepo",
            f"{SOMEBODY} is gated: ask its owner for access, then log in with `hf auth login`",
        ),
        (
            403,
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


def test_unknown_revision(refused: Callable[..., str]) -> None:
    """A branch that the model does not have is named."""
    line = refused("I love all you", "-m", f"{SOMEBODY}@nowhere")
    assert line == f"{SOMEBODY} has no revision 'nowhere' on the hub"


@pytest.mark.parametrize(
    ("files", "line"),
    [
        (
            ["config.json", "pytorch_model.bin"],
            f"no/model has no model.safetensors on the hub: {SAFETENSORS_ONLY}",
        ),
        (["README.md"], "no/model on the hub holds no model: it has no config.json"),
    ],
)
def test_not_what_attnviz_reads(
    refused: Callable[..., str],
    hub: Hub,
    tmp_path_factory: pytest.TempPathFactory,
    files: list[str],
    line: str,
) -> None:
    """A model without safetensors, and what is no model, are refused before anything is downloaded or converted."""
    folder = tmp_path_factory.mktemp("other")
    for name in files:
        (folder / name).write_text("{}")
    hub.models["no/model"] = folder
    assert refused("I love all you", "-m", "no/model") == line
    assert not [
        asked for asked in hub.asked if asked.startswith("GET /no/") or "/api/models/" in asked
    ]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("./nowhere", "there is no folder ./nowhere"),
        ("a/b/c", "there is no folder a/b/c"),
        ("a b", "'a b' is neither a folder nor a model's name on the hub"),
        ("", "'' is neither a folder nor a model's name on the hub"),
        ("\x1b[2J", r"'\x1b[2J' is neither a folder nor a model's name on the hub"),
        ("a\nb", r"'a\nb' is neither a folder nor a model's name on the hub"),
        ("가" * 500, f"'{'가' * 99}…' is neither a folder nor a model's name on the hub"),
        ("~nobody-of-this-name", "there is no folder ~nobody-of-this-name"),
    ],
)
def test_names_that_are_none(name: str, line: str) -> None:
    """What cannot be a model's name is refused without asking, and shown, not obeyed."""
    with pytest.raises(UnknownModelError) as caught:
        locate(name)
    assert str(caught.value) == line
