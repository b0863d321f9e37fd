"""Locks that hold across a fork."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any


def fork_safe_lock() -> Any:
    """Return a reentrant lock for which a fork waits until no other thread holds it.

    In the new process only the thread that forked goes on. A lock that another thread held would stay locked there, and
    what the lock protects would stay half changed.
    """
    lock = RLock()
    if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock
