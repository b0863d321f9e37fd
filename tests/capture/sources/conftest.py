"""A server on loopback that answers as the Hugging Face hub does, and the models it serves."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.ready import BARE, Ready

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator

    from tests.conftest import Run

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DEFAULT = "distilbert-base-uncased"
SOMEBODY = "somebody/distilbert"
"""The same model under a name that the command knows nothing of."""


@dataclass
class Hub:
    """A fake hub: the models it serves, how it misbehaves, and the requests it got.

    Attributes:
        models: the folder of each model.
        errors: models that are refused: the status and the hub's own code for it.
        delay: seconds before each answer.
        portal: whether every answer is a page to log in at, as in a hotel.
        asked: method and path of each request.
    """

    models: dict[str, Path]
    errors: dict[str, tuple[int, str]] = field(default_factory=dict)
    delay: float = 0.0
    portal: bool = False
    asked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Answer", (_Answer,), {"of": self})
        )
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        """The value of ``HF_ENDPOINT``."""
        return f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        """From now on, nobody listens."""
        self.server.shutdown()
        self.server.server_close()


class _Answer(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    of: Hub

    def do_HEAD(self) -> None:
        """Answer what is only a question."""
        self._answer()

    def do_GET(self) -> None:
        """Answer, and send the file."""
        self._answer()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        self.of.asked.append(f"{self.command} {self.path}")
        time.sleep(self.of.delay)
        try:
            if self.of.portal:
                self._reply(200, {"Content-Type": "text/html"}, b"<h1>Welcome to our hotel</h1>")
            else:
                self._resolve()
        except OSError:  # whoever asked has gone
            self.close_connection = True

    def _resolve(self) -> None:
        path = self.path.partition("?")[0]
        found = re.fullmatch(r"/(?P<model>.+?)/resolve/(?P<revision>[^/]+)/(?P<file>.+)", path)
        if found is None:
            return self._api(path)
        folder = self._folder(found["model"])
        if folder is None:
            return None
        if found["revision"] not in {"main", COMMIT}:
            return self._refuse(404, "RevisionNotFound")
        file = folder / found["file"]
        if not file.is_file():
            return self._refuse(404, "EntryNotFound", {"X-Repo-Commit": COMMIT})
        content = file.read_bytes()
        tag = hashlib.sha256(content).hexdigest()
        return self._reply(200, {"ETag": f'"{tag[:40]}"', "X-Repo-Commit": COMMIT}, content)

    def _api(self, path: str) -> None:
        """Answer questions about the model; its list of files is not known."""
        found = re.fullmatch(r"/api/models/(?P<model>.+?)(?P<rest>/(revision|tree)/.+)?", path)
        if found is None or "tree" in (found["rest"] or ""):
            return self._refuse(404, "EntryNotFound")
        if self._folder(found["model"]) is None:
            return None
        body: dict[str, object] = {
            "id": found["model"],
            "sha": COMMIT,
            "private": False,
            "tags": [],
            "siblings": [],
        }
        return self._reply(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    def _folder(self, model: str) -> Path | None:
        """The model's folder; where the model is refused or not there, that is answered, and None returned."""
        # To somebody who is not logged in, the hub does not say whether a model is missing or private.
        status, code = self.of.errors.get(model, (401, "RepoNotFound"))
        if model in self.of.errors or model not in self.of.models:
            self._refuse(status, code)
            return None
        return self.of.models[model]

    def _refuse(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
        self._reply(
            status, {"X-Error-Code": code, "X-Error-Message": "no", **(headers or {})}, b"no"
        )

    def _reply(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        """Send the head and, after GET, the body."""
        self.send_response(status)
        # As to everybody who is not logged in; the library would show it as a warning.
        advice = {
            "X-HF-Warning": "unauthenticated; You are sending unauthenticated requests to the HF Hub."
        }
        for name, value in {**headers, **advice, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)


@pytest.fixture(scope="session")
def tiny_distilbert(tmp_path_factory: pytest.TempPathFactory, real_model: str) -> Path:
    """A folder as the real DistilBERT's repository, with a random one: 3 layers of 2 heads, 10 wide."""
    import torch
    from transformers import DistilBertConfig, DistilBertModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder = tmp_path_factory.mktemp("models") / "distilbert"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = DistilBertConfig(
            n_layers=3, n_heads=2, dim=10, hidden_dim=14, initializer_range=1.0
        )
        DistilBertModel(config).save_pretrained(folder)
    for name in ("tokenizer.json", "vocab.txt"):
        shutil.copy(Path(real_model) / name, folder)
    (folder / "tokenizer_config.json").write_text(
        '{"do_lower_case": true, "model_max_length": 512}'
    )
    return folder


@pytest.fixture
def hub(tiny_distilbert: Path) -> Iterator[Hub]:
    """The hub, serving the tiny DistilBERT under the default model's name and another."""
    hub = Hub(models={DEFAULT: tiny_distilbert, SOMEBODY: tiny_distilbert})
    yield hub
    hub.close()


@pytest.fixture
def online(hub: Hub, environment: Callable[..., dict[str, str]]) -> Callable[..., dict[str, str]]:
    """The environment of a machine that reaches this hub and no other; more can be set."""

    def make(**more: str) -> dict[str, str]:
        return environment(**{"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", **more})

    return make


@pytest.fixture(scope="session")
def ready() -> Iterator[Ready]:
    """A process that knows nothing of any hub yet."""
    made = Ready.start(dict(os.environ), BARE)
    yield made
    made.close()


@pytest.fixture
def heatmap(ready: Ready, online: Callable[..., dict[str, str]], tmp_path: Path) -> Run:
    """Run ``attnviz heatmap`` on such a machine; environment variables can be added."""

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return ready.run(["attnviz", "heatmap", *arguments], tmp_path, online(**more), seconds=120)

    return run


@pytest.fixture
def refused(heatmap: Run, tmp_path: Path) -> Callable[..., str]:
    """Run a command that must fail, see that it says why in one line and leaves nothing, and return the line."""

    def run(*arguments: str, **more: str) -> str:
        result = heatmap(*arguments, **more)
        assert result.stderr.startswith("attnviz: ")
        assert result.stderr.count("\n") == 1
        assert (result.returncode, result.stdout) == (1, "")
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert [path for path in files if tmp_path / "home" not in path.parents] == []
        return result.stderr.removeprefix("attnviz: ").rstrip()

    return run
