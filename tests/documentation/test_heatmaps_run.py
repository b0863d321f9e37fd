"""The commands and sessions of pages about heatmaps, walkthroughs and the course are run as they stand there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.pages import Clone, Page, commands_of, pages_named, sessions_of, short

SHOWN = pages_named("heatmaps", "walkthroughs", "course")
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
