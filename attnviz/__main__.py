"""The entry point of the command, for ``attnviz`` and ``python -m attnviz``."""

from __future__ import annotations

import gc
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; Ctrl-C ends it quietly even before it has begun."""
    # Importing libraries creates many objects that are never freed. With Python's default thresholds, searching them
    # for garbage takes a fifth of the time of a short command.
    gc.set_threshold(50_000, 20, 20)
    try:
        from attnviz.cli import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
