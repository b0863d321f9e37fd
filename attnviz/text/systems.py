"""Differences between Windows and other systems: quotation marks of shells, names of devices."""

from __future__ import annotations

import re
import sys

DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d) *(\..*)?", re.IGNORECASE)


def is_windows() -> bool:
    """Return whether this is Windows."""
    return sys.platform == "win32"


def is_device(name: str) -> bool:
    """Return whether the name of a file is that of a device, with any ending, as ``NUL.png`` is on Windows."""
    return is_windows() and bool(DEVICES.fullmatch(name))


def quoted(text: str) -> str:
    """Return a text in the quotation marks that a person would type in a shell, such as ``"I love all you"``."""
    if is_windows():
        # cmd knows no other marks than these; PowerShell would replace $ and ` between them.
        if re.search("[$`]", text):
            return "'" + text.replace("'", "''") + "'"
        # Backslashes are special only before a quotation mark.
        escaped = re.sub(r'(\\*)"', r"\1\1\\" + '"', text)
        return '"' + re.sub(r"(\\+)$", r"\1\1", escaped) + '"'
    # Between double quotation marks a shell replaces $ and `, and an interactive one ! before a letter.
    if not re.search(r'["$`\\]|!(?=\S)', text):
        return f'"{text}"'
    return "'" + text.replace("'", "'\\''") + "'"
