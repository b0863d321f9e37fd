"""The programs beside Python that the tests run: whoever lacks one is told which, and no test is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = {
    "pdftotext": "poppler-utils",
    "pdfinfo": "poppler-utils",
    "chromium": "chromium-headless-shell",
    "firefox": "firefox-esr",
    "cmark-gfm": "cmark-gfm",
}
"""Each program with the Debian packages that it comes in, with all that the tests need of it."""

_NAMES = {
    "chromium": ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"),
    "firefox": ("firefox-esr", "firefox"),
}
"""Programs that do the same under other names."""

_QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--enable-logging=stderr",
)
"""A browser that does nothing but what it is asked for; the sandbox is refused to root, which CI is."""


def program(name: str) -> str:
    """The path of a program; the test fails where there is none."""
    for known in _NAMES.get(name, (name,)):
        if found := shutil.which(known):
            return found
    return pytest.fail(
        f"this test needs the program {name} (on Debian: apt-get install {PACKAGES[name]}), see the README"
    )


def output(name: str, *arguments: str | Path, folder: Path | None = None) -> str:
    """The output of a program; if it fails, the test fails with all its output."""
    done = subprocess.run(
        [program(name), *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        check=False,
        timeout=300,
    )
    said = done.stdout.decode(errors="replace")
    if done.returncode:
        pytest.fail(
            f"{name} failed:\n{said[-4000:]}\n{done.stderr.decode(errors='replace')[-4000:]}"
        )
    return said


def printed(pdf: Path) -> str:
    """The words of a PDF, line by line as they stand on its pages."""
    return output("pdftotext", "-layout", pdf, "-")


def browser(page: Path, *options: str) -> tuple[str, str]:
    """The content and console of a page in a headless browser."""
    profile = page.parent / "profile"
    done = subprocess.run(
        [program("chromium"), *_QUIET, f"--user-data-dir={profile}", *options, page.as_uri()],
        env=os.environ | {"HOME": str(page.parent)},
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if ":CONSOLE" in line)
