"""The commands and Python of pages about stories, files and pages are run as they stand there."""

from tests.documentation.run import test_commands, test_python  # noqa: F401 - collected here
from tests.fixtures.pages import pages_named

SHOWN = pages_named(
    *("stories", "page", "files", "architectures"),
    *("contributing", "command-line", "house", "benchmarks"),
)
