"""The commands, sessions and Python of the README, and of pages about heads and models are run as they stand there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.pages import Clone, Page, commands_of, pages_named, sessions_of, short

SHOWN = pages_named("README", "install", "heads", "generation", "models", "own-models", "python")
Environment = Callable[..., dict[str, str]]


@pytest.mark.parametrize("line", commands_of(SHOWN), ids=short)
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


@pytest.mark.parametrize(("page", "session"), sessions_of(SHOWN), ids=short)
def test_sessions(
    page: Page, session: str, clone: Clone, hub: Path, environment: Environment, *, rewrite: bool
) -> None:
    """Terminal sessions show what the terminal prints."""
    clone.check_session(page, session, environment(HF_HOME=str(hub)), rewrite=rewrite)


@pytest.mark.parametrize("page", [page for page in SHOWN if page.fences("python")], ids=str)
def test_python(
    page: Page, clone: Clone, tmp_path: Path, hub: Path, environment: Environment
) -> None:
    """The Python of a page runs, and prints what its comments say."""
    clone.check_python(page, tmp_path, environment(HF_HOME=str(hub)))
