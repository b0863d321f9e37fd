"""The command, as ``attnviz`` and as ``python -m attnviz``."""

from __future__ import annotations

import gc
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line; Ctrl-C ends it quietly even before it has begun."""
    # Libraries make objects that all stay: to look through them for garbage takes a fifth of a short command's time.
    gc.set_threshold(50_000, 20, 20)
    try:
        from attnviz.cli import main as run
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
