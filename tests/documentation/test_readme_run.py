"""The commands, sessions and Python of the README, and of pages about heads and models are run as they stand there."""

from tests.documentation.run import test_commands, test_python, test_sessions  # noqa: F401 - collected here
from tests.fixtures.pages import pages_named

SHOWN = pages_named(
    "README", "install", "heads", "generation", "attributions", "models", "own-models", "python"
)
