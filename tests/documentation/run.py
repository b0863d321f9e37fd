"""The tests of pages whose commands, sessions and Python are run as they stand there; `conftest` gives them a page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.pages import Clone, Page

Environment = Callable[..., dict[str, str]]


def test_commands(
    line: str,
    clone: Clone,
    environment: Environment,
    request: pytest.FixtureRequest,
    *,
    rewrite: bool,
) -> None:
    """Every command works as it stands there, and makes the picture that the gallery has."""
    home = request.getfixturevalue("other_hub" if "distilbert-base-uncased" in line else "hub")
    clone.check_command(line, environment(HF_HOME=str(home)), rewrite=rewrite)


def test_sessions(
    page: Page, session: str, clone: Clone, hub: Path, environment: Environment, *, rewrite: bool
) -> None:
    """Terminal sessions show what the terminal prints."""
    clone.check_session(page, session, environment(HF_HOME=str(hub)), rewrite=rewrite)


def test_python(
    python_page: Page, clone: Clone, tmp_path: Path, hub: Path, environment: Environment
) -> None:
    """The Python of a page runs, and prints what its comments say."""
    clone.check_python(python_page, tmp_path, environment(HF_HOME=str(hub)))
