"""The commands and sessions of pages about heatmaps, walkthroughs and the course are run as they stand there."""

from tests.documentation.run import test_commands, test_sessions  # noqa: F401 - collected here
from tests.fixtures.pages import pages_named

SHOWN = pages_named("heatmaps", "walkthroughs", "course")
